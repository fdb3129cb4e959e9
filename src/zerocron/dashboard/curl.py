"""A request as a command for a shell.

Owns the quoting: whatever stands in the request, the shell takes it as one word and runs nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

OWN_HEADERS = frozenset(("content-length", "host", "connection", "accept-encoding"))
"""What curl sends by itself."""

_SAFE = re.compile(r"[A-Za-z0-9_/.:@%+,-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""A terminal acts upon these even between quotes, when the command is pasted."""


def quoted(text: str) -> str:
    """One word of a shell, without a NUL, which no command can be given.

    Between single quotes nothing has a meaning but the next single quote. Control characters are written as escapes,
    which bash, zsh and ksh read.
    """
    if _CONTROL.search(text):
        plain = text.replace("\0", "").replace("\\", "\\\\").replace("'", "\\'")
        return "$'" + _CONTROL.sub(lambda found: "".join(f"\\x{each:02x}" for each in found[0].encode()), plain) + "'"
    return text if _SAFE.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def curl_command(request: Mapping[str, Any]) -> str:
    """The request of an execution, on lines of its own. Where a secret was, its placeholder stays."""
    method, url = str(request["method"]), str(request["url"])
    words = [f"curl {quoted(url)}"]
    if method == "HEAD":
        words.append("--head")
    elif method != "GET" or request["body"]:
        words.append(f"-X {quoted(method)}")
    if any(each in url for each in "[]{}"):
        words.append("--globoff")
    if "/." in url:
        words.append("--path-as-is")
    for name, value in request["headers"].items():
        if name.lower() not in OWN_HEADERS:
            words.append(f"-H {quoted(f'{name}: {value}' if value else f'{name};')}")
    if request["body"]:
        words.append(f"--data-raw {quoted(str(request['body']))}")
    return " \\\n  ".join(words)
