"""Examples for the reference: a curl command that works as it is, and JSON that is easy to read."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

_TOKENS = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=:)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>\b(?:true|false|null)\b)|(?P<number>-?\d[\d.eE+-]*)'
)


def curl(method: str, path: str, *, needs_key: bool, body: Any = None, query: Mapping[str, str] | None = None) -> str:
    """The command. Its variables are those of the command line's client, and the ids a reader knows."""
    address = re.sub(r"\{(\w+)\}", lambda match: f"${match[1].upper()}", path)
    if query:
        address += "?" + urlencode(query)
    words = ["curl" if method == "GET" else f"curl -X {method}", f'"$ZEROCRON_API_URL{address}"']
    if needs_key:
        words.append('-H "Authorization: Bearer $ZEROCRON_API_KEY"')
    if body is not None:
        words.append('-H "Content-Type: application/json"')
        words.append(f"-d {_quoted(json.dumps(body, indent=2, ensure_ascii=False))}")
    return " \\\n  ".join([f"{words[0]} {words[1]}", *words[2:]])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def json_markup(value: Any) -> str:
    """JSON as HTML, its parts in spans for the style sheet to colour."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    made: list[str] = []
    end = 0
    for match in _TOKENS.finditer(text):
        made.append(html.escape(text[end : match.start()]))
        made.append(f'<span class="j-{match.lastgroup}">{html.escape(match[0])}</span>')
        end = match.end()
    return "".join([*made, html.escape(text[end:])])
