"""Strict JSON: what the API reads is what every parser would read and every store can keep.

Owns what counts as JSON here. Refused with the place and what to do: names given twice (parsers disagree on which
counts), numbers that cannot be kept exactly or at all, NaN, half characters, NUL (PostgreSQL stores none), and nesting
deeper than `DEPTH_MAX`. Must never build anything whose size its input does not bound.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from zerocron.api.wording import field_path
from zerocron.core.errors import FieldError, Invalid

DEPTH_MAX = 32
FRACTION_CHARACTERS_MAX = 100
"""A number with a fraction or an exponent is no longer than this; a double keeps 17 digits of it."""

_WHOLE_MIN, _WHOLE_MAX = -(2**63), 2**64 - 1
_Link = tuple[Any, Any] | None
"""Where a value is: (link of what holds it, its name or index); None for the document itself."""


@dataclass(frozen=True, slots=True)
class _Unfit:
    """Stands where a value was that is refused; the walk knows where that is."""

    message: str
    name: str | None = None  # of the member at fault, when the value is an object


def read_json(body: bytes) -> Any:
    """The document. Raises Invalid, naming the field where there is one."""
    try:
        document = _DECODER.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Invalid(f"The body is not valid UTF-8, from its byte {error.start} on. Send JSON in UTF-8.") from None
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise Invalid(f"The body is not valid JSON: {reason}, line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _too_deep(None) from None
    _check(document)
    return document


def _whole(text: str) -> int | _Unfit:
    if len(text) <= 20 and _WHOLE_MIN <= (number := int(text)) <= _WHOLE_MAX:
        return number
    digits = len(text.lstrip("-"))
    return _Unfit(f"This number of {digits:,} digits cannot be kept exactly. Give a smaller one, or send it as text.")


def _fraction(text: str) -> float | _Unfit:
    if len(text) > FRACTION_CHARACTERS_MAX:
        return _Unfit(f"This number has {len(text):,} characters; {FRACTION_CHARACTERS_MAX} are the most. Round it.")
    number = float(text)
    return number if math.isfinite(number) else _Unfit("This number is too large. Give a smaller one.")


def _constant(text: str) -> _Unfit:
    return _Unfit(f"JSON has no {text}. Give a number, or null.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unfit:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    counted = Counter(name for name, _ in pairs)
    return _Unfit("This name is given twice. Give it once.", counted.most_common(1)[0][0])


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_constant, strict=True
)


def _check(document: Any) -> None:
    """Walk level by level; a link per container is enough to tell the place of a fault."""
    level: list[tuple[Any, _Link]] = []
    if type(document) in (dict, list):
        level.append((document, None))
    else:
        _check_leaf(document, None)
    for _ in range(DEPTH_MAX):
        below: list[tuple[Any, _Link]] = []
        for container, link in level:
            for name, value in _members(container, link):
                kind = type(value)
                if kind is dict or kind is list:
                    below.append((value, (link, name)))
                elif kind is str or kind is _Unfit:
                    _check_leaf(value, (link, name))
        level = below
    if level:
        raise _too_deep(level[0][1])


def _check_leaf(value: Any, link: _Link) -> None:
    if isinstance(value, _Unfit):
        raise _refusal(value.message, link if value.name is None else (link, value.name))
    if isinstance(value, str) and (fault := _text_fault(value)) is not None:
        raise _refusal(fault, link)


def _members(container: Any, link: _Link) -> Iterable[tuple[Any, Any]]:
    if type(container) is list:
        return enumerate(container)
    for name in container:
        if (fault := _text_fault(name)) is not None:
            raise _refusal(fault, (link, name))
    members: Iterable[tuple[Any, Any]] = container.items()
    return members


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return "This holds a NUL character (U+0000), which cannot be stored. Leave it out."
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = ord(text[error.start])
            return f"This holds half of a character (U+{half:04X}). Send both halves of the surrogate pair, or neither."
    return None


def _refusal(message: str, link: _Link) -> Invalid:
    field = _field(link)
    return Invalid(f"{field}: {message}", fields=[FieldError(field, message)]) if field else Invalid(message)


def _too_deep(link: _Link) -> Invalid:
    return _refusal(f"This is nested more than {DEPTH_MAX} levels deep. Flatten it, or send it as text.", link)


def _field(link: _Link) -> str:
    names: list[Any] = []
    while link is not None:
        link, name = link
        names.append(name)
    return field_path(reversed(names))
