"""The building blocks of the API's models: bounds that fields share, and how pages and instants are written."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from zerocron.api.wording import worded
from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339, to_rfc3339
from zerocron.core.model import Instant

T = TypeVar("T")

PAGE_MAX = 200
NAME_CHARACTERS_MAX = 200
MEMBERS_MAX = 100
"""No object of ours has as many fields: more are refused before each of them becomes an error."""


def few(given: Any, most: int) -> Any:
    """Refuses an object with more members than that, before any of them is looked at."""
    if isinstance(given, dict) and len(given) > most:
        raise PydanticCustomError("too_long", "", {"max_length": most, "actual_length": len(given)})
    return given


class Input(BaseModel):
    """What a client sends: unknown fields are refused, and a number is no string."""

    model_config = ConfigDict(extra="forbid", strict=True, str_max_length=2_000_000)

    @model_validator(mode="before")
    @classmethod
    def _few_members(cls, given: Any) -> Any:
        return few(given, MEMBERS_MAX)


class Output(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(extra="forbid")


def shaped(pattern: str, otherwise: str) -> AfterValidator:
    """A text that matches the pattern as a whole; `otherwise` says what to do when it does not."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.search(text) is None:
            raise worded(otherwise)
        return text

    return AfterValidator(check)


def unset() -> Any:
    """The default of a field that may be left out and is not null: `model_fields_set` tells whether it was given."""
    return Field(default_factory=lambda: None)


_VISIBLE = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
_VISIBLE_OTHERWISE = "Give at least one visible character, and no line breaks or control characters."


def visible_text(most: int, description: str, *examples: str) -> Any:
    """The parts of `Annotated[str, *...]` for one line of text that shows something."""
    return (
        Field(
            min_length=1,
            max_length=most,
            description=description,
            examples=list(examples) or None,
            json_schema_extra={"pattern": _VISIBLE},
        ),
        shaped(_VISIBLE, _VISIBLE_OTHERWISE),
    )


InstantText = Annotated[
    str,
    Field(json_schema_extra={"format": "date-time"}, examples=["2027-01-01T09:00:00Z"], description="RFC 3339, UTC."),
]
Identifier = Annotated[str, Field(examples=["01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"])]

JobId = Annotated[str, Path(description="The job's `id`.")]
RunId = Annotated[str, Path(description="The run's `id`.")]
ExecutionId = Annotated[str, Path(description="The execution's `id`: that of its run, a dot and its attempt.")]

Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description=f"How many items, at most {PAGE_MAX}.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next_cursor` of the page before; leave it out for the first page.")
]
NextCursor = Annotated[str | None, Field(description="Give it as `cursor` to get what follows; null on the last page.")]


def instant(value: Instant) -> str:
    return to_rfc3339(value)


def maybe_instant(value: Instant | None) -> str | None:
    return None if value is None else to_rfc3339(value)


def read_instant(text: str, field: str) -> Instant:
    """An instant that a client wrote. Raises Invalid, which names the field."""
    try:
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid("Give an instant with its offset, such as 2027-01-02T09:00:00Z.", field=field) from None


def write_cursor(*key: Any) -> str:
    """An opaque text for the place after a row."""
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def read_ids(text: str, field: str, most: int) -> list[str]:
    """Ids with commas between them."""
    wanted = [one.strip() for one in text.split(",") if one.strip()]
    if len(wanted) > most:
        raise Invalid(f"Ask for at most {most} at once; these are {len(wanted)}.", field=field)
    return wanted


def page_of(found: list[T], limit: int, key: Callable[[T], tuple[Any, ...]]) -> tuple[list[T], str | None]:
    """What a page shows of the `limit + 1` rows that were asked for, and the cursor of what follows."""
    return found[:limit], write_cursor(*key(found[limit - 1])) if len(found) > limit else None


SORT_TEXT = "A `-` in front turns it round; names are compared without their capitals; `updated` has the latest first."


def key_kind(sort: str) -> type:
    """The type of what rows are sorted by, for `read_cursor`."""
    return str if sort.removeprefix("-") == "name" else int


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
        raise Invalid(
            "This cursor is not one that a list here returned. Leave it out to start at the first page.", field="cursor"
        )
    return tuple(key)
