"""The building blocks of the API's models: bounds that fields share, and how pages and instants are written."""

from __future__ import annotations

import base64
from typing import Annotated, Any

import orjson
from fastapi import Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from zerocron.core.errors import Invalid
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Instant

PAGE_MAX = 200
NAME_CHARACTERS_MAX = 200


class Input(BaseModel):
    """What a client sends: unknown fields are refused, and a number is no string."""

    model_config = ConfigDict(extra="forbid", strict=True, str_max_length=2_000_000)


class Output(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(extra="forbid")


Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]
ShortText = Annotated[str, StringConstraints(max_length=1_000)]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description=f"How many items, at most {PAGE_MAX}.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next_cursor` of the page before; leave it out for the first page.")
]


def instant(value: Instant) -> str:
    return to_rfc3339(value)


def maybe_instant(value: Instant | None) -> str | None:
    return None if value is None else to_rfc3339(value)


def write_cursor(*key: Any) -> str:
    """An opaque text for the place after a row."""
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def read_cursor(text: str | None, *kinds: type) -> Any:
    """The key a cursor was made of, as a tuple of these types; None without one. Raises Invalid for any other text."""
    if text is None:
        return None
    try:
        key = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        key = None
    fits = (
        isinstance(key, list)
        and len(key) == len(kinds)
        and all(type(part) is kind for part, kind in zip(key, kinds, strict=True))
        and all(-(2**53) < part < 2**53 for part in key if isinstance(part, int))
        and all("\0" not in part for part in key if isinstance(part, str))
    )
    if not fits:
        raise Invalid("This cursor is not one that a list here returned.", field="cursor")
    return tuple(key)
