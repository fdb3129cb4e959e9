"""An execution as a page shows it: how long each part took, and its bodies as text for people.

Owns the arithmetic of the phases and the reading of bodies. What a target sent is text here and nothing else: templates
put it into `<pre>`, escaped.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from zerocron.dashboard.curl import curl_command

CHARACTERS_SHOWN_MAX = 65_536
"""A longer body is cut on the page; it can be downloaded."""

PRETTY_CHARACTERS_MAX = 262_144
"""A longer one is shown as it came: reading and writing it again would hold up others."""

PHASES = ("dns", "connect", "tls", "wait", "body")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an execution, in milliseconds from its start."""

    name: str
    start_ms: float
    length_ms: float


@dataclass(frozen=True, slots=True)
class Body:
    """A body. `text`: what is shown of it. `bytes`: of all of it, None where nobody counted."""

    text: str
    bytes: int | None
    is_json: bool = False
    is_pretty: bool = False
    is_cut: bool = False
    is_binary: bool = False
    is_truncated: bool = False
    is_elsewhere: bool = False
    """It is long, and was not told with the run."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An execution, and what a page makes of it."""

    execution: Json
    phases: tuple[Phase, ...]
    total_ms: float
    request: Body | None
    response: Body | None
    curl: str

    @classmethod
    def of(cls, execution: Json, *, is_raw: bool = False) -> Shown:
        """`is_raw`: bodies as they came, JSON too."""
        phases = phases_of(execution["timings_ms"])
        sent, answer = execution["request"], execution["response"]
        return cls(
            execution=execution,
            phases=phases,
            total_ms=max(execution["duration_ms"], 0.001, *(each.start_ms + each.length_ms for each in phases)),
            request=_body(sent, None, is_raw=is_raw) if sent else None,
            response=_body(answer, answer["body_bytes"], is_raw=is_raw) if answer else None,
            curl=curl_command(sent) if sent else "",
        )

    @property
    def phrase(self) -> str:
        """What the status of the answer is called."""
        answer = self.execution["response"]
        try:
            return HTTPStatus(answer["status"]).phrase if answer else ""
        except ValueError:
            return ""

    @property
    def has_json(self) -> bool:
        return any(body is not None and body.is_json for body in (self.request, self.response))


def phases_of(timings: Json) -> tuple[Phase, ...]:
    """The phases that happened, one behind the other.

    `dns`, `connect` and `tls` are lengths; `first_byte` and `total` count from the start. Where redirects were
    followed, the three are of the last request, and all that was before it is in the wait.
    """
    at = 0.0
    found = []
    for name in ("dns", "connect", "tls"):
        length = timings.get(name)
        if length is not None:
            found.append(Phase(name, at, length))
            at += length
    first_byte, total = timings.get("first_byte"), timings.get("total")
    if first_byte is not None:
        found.append(Phase("wait", at, max(first_byte - at, 0.0)))
        at = max(at, first_byte)
    if total is not None and total > at:
        found.append(Phase("body" if first_byte is not None else "wait", at, total - at))
    return tuple(found)


def whole_body(execution: Json, part: str) -> tuple[bytes, bool] | None:
    """The body of the request or the response as it was, and whether it is text; None where there is none."""
    message = execution[part]
    if message is None or message["body"] is None:
        return None
    if message.get("encoding") == "base64":
        try:
            return base64.b64decode(message["body"], validate=True), False
        except binascii.Error:
            return message["body"].encode(), True
    return message["body"].encode(errors="replace"), True


def _body(message: Json, size: int | None, *, is_raw: bool) -> Body | None:
    text, is_truncated = message["body"], bool(message.get("truncated"))
    if text is None:
        return Body("", size, is_truncated=is_truncated, is_elsewhere=True) if size else None
    if text == "":
        return None
    is_binary = message.get("encoding") == "base64"
    pretty = None if is_binary else _pretty(text)
    shown = text if is_raw or pretty is None else pretty
    return Body(
        text=shown[:CHARACTERS_SHOWN_MAX],
        bytes=len(text.encode(errors="replace")) if size is None else size,
        is_json=pretty is not None,
        is_pretty=pretty is not None and not is_raw,
        is_cut=len(shown) > CHARACTERS_SHOWN_MAX,
        is_binary=is_binary,
        is_truncated=is_truncated,
    )


def _pretty(text: str) -> str | None:
    """An object or a list of JSON, on lines; None for anything else, and where that would show other numbers."""
    if len(text) > PRETTY_CHARACTERS_MAX or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        # Numbers stay as they were written: 1.0 and 1e400 are not ours to change.
        value = json.loads(
            text, parse_float=_Number, parse_int=_Number, parse_constant=_refuse, object_pairs_hook=_object
        )
        return _written(value, "")
    except (ValueError, RecursionError):
        return None


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _refuse(_constant: str) -> Any:
    raise ValueError


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for one that has a name twice: only one of them would be shown."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _written(value: Any, margin: str) -> str:
    if isinstance(value, _Number):
        return str(value)
    inner = margin + "  "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_written(it, inner)}" for key, it in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _written(it, inner) for it in value) + f"\n{margin}]"
    return json.dumps(value, ensure_ascii=False)
