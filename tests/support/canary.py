"""A secret that can be recognised anywhere: its value, and every trace of it that a dump could hold."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

CANARY = 'canary/zq7xvw"9c é&+<tail-5d2e>'
"""Something that every encoding has to change, with parts that none does."""

LINES = f" {CANARY}\r\n{CANARY}\t"
"""The same where servers change it: blanks at its ends, and a line end."""

_CORES = ("zq7xvw", "9c é", "tail-5d2e", "canary")


def spellings(value: str = CANARY) -> dict[str, str]:
    """The value as targets repeat it."""
    content = value.encode()
    lines = {
        "trimmed": value.strip(),
        "other line ends": value.replace("\r\n", "\n"),
        "trimmed with other line ends": value.replace("\r\n", "\n").strip(),
        "one line": value.replace("\r\n", " "),
        "form with other line ends": quote_plus(value.replace("\r\n", "\n").strip()),
    }
    return (
        {name: text for name, text in lines.items() if value != CANARY}
        | {
            "plain": value,
            "url": quote(value, safe=""),
            "url in lower case": quote(value, safe="/").lower(),
            "form": quote_plus(value),
            "json": json.dumps(value)[1:-1],
            "json as it is": json.dumps(value, ensure_ascii=False)[1:-1],
            "json every character": "".join(f"\\u{ord(sign):04x}" for sign in value),
            "html": html.escape(value),
            "html numbers": "".join(f"&#{ord(sign)};" for sign in value),
            "json in json": json.dumps(json.dumps({"k": value})),
            "html in json": json.dumps(html.escape(value))[1:-1],
            "hex": content.hex(),
        }
        | {
            f"base64 {name} {before}": encode(b"x" * before + content + b"y").decode()
            for before in range(3)
            for name, encode in (("std", base64.b64encode), ("url", base64.urlsafe_b64encode))
        }
    )


def traces(dump: bytes, value: str = CANARY) -> list[str]:
    """What of the value is in a dump, in whatever spelling."""
    wanted: dict[str, bytes] = {f"{core!r}": core.encode() for core in _CORES if core in value}
    wanted["latin-1"] = value.encode("latin-1")
    wanted["utf-16"] = value.encode("utf-16-le")
    for name, text in spellings(value).items():
        inner = text[4:-4] if name.startswith("base64") else text
        wanted[name] = inner.encode()
        wanted[f"{name} in json"] = json.dumps(inner)[1:-1].encode()
    return [name for name, trace in wanted.items() if trace in dump]
