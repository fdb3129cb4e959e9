"""Validation errors in words: which field, what its bound is, what was given, and so what to do.

Owns the table from the kinds of pydantic's errors to sentences. Must never repeat more of an input than a person needs
to find it: numbers where a number belongs, and words where there is a choice of some. Any other text may be a secret
that was put into the wrong place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from zerocron.core.errors import FieldError

NAME_CHARACTERS_SHOWN = 60
PATH_CHARACTERS_SHOWN = 200
VALUE_CHARACTERS_SHOWN = 40

Context = Mapping[str, Any]


def worded(message: str) -> PydanticCustomError:
    """What a validator of ours raises: the message reaches the client as it is."""
    return PydanticCustomError("worded", "{text}", {"text": message})


def field_path(parts: Iterable[object]) -> str:
    """`retry.attempts`, `headers.X-A`, `tags.0`: shortened where a client's own names are long."""
    names = [clipped(str(part), NAME_CHARACTERS_SHOWN) for part in parts]
    path = clipped(".".join(names), PATH_CHARACTERS_SHOWN)
    return path.encode(errors="replace").decode()  # a name may hold half of a character


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def number(value: float) -> str:
    """`86,400` rather than `86,400.0`."""
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def fault_of(error: Mapping[str, Any]) -> FieldError:
    """One of pydantic's errors as a fault that a person can mend."""
    place = [part for part in error["loc"][1:] if part != "[key]"]  # the first says body, query or header
    if not place and error["type"] == "missing":
        return FieldError("", "This request needs a body: a JSON object.")
    return FieldError(field_path(place), _sentence(error))


def _sentence(error: Mapping[str, Any]) -> str:
    say = _SENTENCES.get(error["type"])
    if say is None:
        return f"{str(error['msg']).rstrip('.')}."
    return say(error.get("ctx", {}), error.get("input"))


def _kind_of(given: Any) -> str:
    """What was given, but for its content."""
    if isinstance(given, bool) or given is None:
        return {True: "; this is true", False: "; this is false", None: "; this is null"}[given]
    return _KINDS.get(type(given), "")


_KINDS = {
    int: "; this is a number",
    float: "; this is a number",
    str: "; this is text",
    dict: "; this is an object",
    list: "; this is a list",
}


def _number_shown(given: Any) -> str:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return f"; this is {given:,}" if is_number else _kind_of(given)


def _shown(given: Any) -> str:
    """What was given in the place of a word, or as a number in a query."""
    if not isinstance(given, str):
        return _number_shown(given)
    is_number = given.lstrip("-").isdigit()
    return f"; this is {clipped(given if is_number else ascii(given), VALUE_CHARACTERS_SHOWN)}"


def _kind(name: str) -> Callable[[Context, Any], str]:
    return lambda _context, given: f"This has to be {name}{_kind_of(given)}."


def _numeric(name: str) -> Callable[[Context, Any], str]:
    return lambda _context, given: f"This has to be {name}{_number_shown(given)}."


def _parsed(name: str) -> Callable[[Context, Any], str]:
    """Of what comes as text only: query parameters."""
    return lambda _context, given: f"This has to be {name}{_shown(given)}."


def _too_long(context: Context, _given: Any) -> str:
    return f"At most {context['max_length']:,} items{_how_many(context)}."


def _how_many(context: Context) -> str:
    count = context.get("actual_length")
    return f"; these are {count:,}" if isinstance(count, int) else ""


def _string_too_long(context: Context, given: Any) -> str:
    length = f"; this has {len(given):,}" if isinstance(given, str) else ""
    return f"At most {context['max_length']:,} characters{length}."


def _string_too_short(context: Context, _given: Any) -> str:
    least = context["min_length"]
    return "This cannot be empty." if least == 1 else f"At least {least:,} characters."


def _choice(context: Context, given: Any) -> str:
    others, _, last = str(context["expected"]).rpartition(" or ")  # pydantic's; as a sentence of ours, pages know it
    expected = f"{others} or {last}" if others else last
    return f"This has to be {expected}{_shown(given) if isinstance(given, str) else _kind_of(given)}."


_SENTENCES: Mapping[str, Callable[[Context, Any], str]] = {
    "worded": lambda context, _given: str(context["text"]),
    "missing": lambda _context, _given: "This field is needed.",
    "extra_forbidden": lambda _context, _given: "There is no such field. Leave it out.",
    "string_type": lambda _context, given: f"This has to be text{_kind_of(given)}.",
    "string_too_long": _string_too_long,
    "string_too_short": _string_too_short,
    "int_type": _numeric("a whole number"),
    "int_from_float": _numeric("a whole number"),
    "int_parsing": _parsed("a whole number"),
    "int_parsing_size": _parsed("a smaller whole number"),
    "float_type": _numeric("a number"),
    "float_parsing": _parsed("a number"),
    "bool_type": _kind("true or false"),
    "bool_parsing": _parsed("true or false"),
    "list_type": _kind("a list"),
    "dict_type": _kind("an object"),
    "model_type": _kind("an object"),
    "model_attributes_type": _kind("an object"),
    "literal_error": _choice,
    "too_long": _too_long,
    "too_short": lambda context, _given: f"Give at least {context['min_length']:,}.",
    "greater_than_equal": lambda ctx, given: f"This has to be at least {number(ctx['ge'])}{_shown(given)}.",
    "less_than_equal": lambda ctx, given: f"This has to be at most {number(ctx['le'])}{_shown(given)}.",
}
