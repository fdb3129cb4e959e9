"""`${secrets.KEY}`: where a job may name a secret, and how the value is put there.

Owns the syntax and the escaping by context: a value cannot leave the place where its placeholder stands. A text is read
once, so that a value which looks like a placeholder stays what it is. Pure; whoever calls it has the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from urllib.parse import quote

import orjson

from zerocron.core.secret import NAME

Escape = Callable[[str], str]

_BEGIN = "${secrets."
_PLACEHOLDER = re.compile(r"\$\{secrets\.(" + NAME + r")\}")
# What somebody may have meant as one: another case, blanks, a missing brace, the braces of other tools.
_LOOKALIKE = re.compile(
    r"(?:\$\{{1,2}|\{\{)[ \t]*secrets?[ \t]*[.:\[][^{}\n]{0,100}\}{0,2}|\$\{secrets?\}|\$\(?secrets\.\w{1,64}\)?",
    re.IGNORECASE,
)
_BEFORE_PATH = re.compile(r"[^/?#]*(?://[^/?#]*)?")
WARNINGS_MAX = 5
_SHOWN_CHARACTERS_MAX = 60


def may_hold(text: str) -> bool:
    """A quick look, for the many texts that hold none."""
    return _BEGIN in text


def names_in(text: str) -> set[str]:
    """The secrets that a text names."""
    return set(_PLACEHOLDER.findall(text)) if _BEGIN in text else set()


class TooLong(Exception):
    """With the values in their places a text would be longer than it may be; it was not made."""


def names_of_request(url: str, headers: Iterable[tuple[str, str]], body: str | None) -> frozenset[str]:
    """The names of the secrets that a request needs; for most there are none."""
    texts = [url, *(value for _, value in headers)]
    if body is not None:
        texts.append(body)
    if not any(map(may_hold, texts)):
        return frozenset()
    return frozenset().union(*map(names_in, texts))


def fill(text: str, value_of: Callable[[str], str], escape: Escape = str, *, characters_max: int) -> str:
    """The text with every placeholder replaced, by name. Raises TooLong.

    A value is escaped once, however often it is named; and ten bytes can name 16 kB, so the length is known before the
    text is made.
    """
    if _BEGIN not in text:
        return text
    parts = _PLACEHOLDER.split(text)  # text, name, text, name, ..., text
    if len(parts) == 1:
        return text
    values = {name: escape(value_of(name)) for name in set(parts[1::2])}
    parts[1::2] = [values[name] for name in parts[1::2]]
    if sum(map(len, parts)) > characters_max:
        raise TooLong
    return "".join(parts)


def fill_url(url: str, value_of: Callable[[str], str], *, characters_max: int) -> str:
    """A URL whose placeholders stand in its path, query or fragment. Raises TooLong, and ValueError for one before
    these."""
    if is_before_path(url):
        raise ValueError("a placeholder in the scheme or host of a URL")
    return fill(url, value_of, in_url, characters_max=characters_max)


def is_before_path(url: str) -> bool:
    """Whether a placeholder stands in the scheme, host or port of the URL, where none may: it decides who is called."""
    before = _BEFORE_PATH.match(url)
    return before is not None and _BEGIN in before[0]


def in_url(value: str) -> str:
    """As one component of a path or query: it can neither end it nor begin another."""
    return quote(value, safe="")


def in_json(value: str) -> str:
    """As part of a string in JSON, without the quotes around it."""
    return orjson.dumps(value).decode()[1:-1]


def escape_for(content_type: str) -> Escape:
    """How a value stands in a body of this type: escaped in JSON and in forms, as it is anywhere else."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in ("application/json", "text/json") or media_type.endswith("+json"):
        return in_json
    return in_url if media_type == "application/x-www-form-urlencoded" else str


def lookalikes(texts: Iterable[str]) -> list[str]:
    """What looks like a placeholder and is none, so that it will be sent as it stands: the first few."""
    found: dict[str, None] = {}
    for item in chain.from_iterable(map(_lookalikes, texts)):
        found[item] = None
        if len(found) == WARNINGS_MAX:
            break
    return list(found)


def _lookalikes(text: str) -> Iterator[str]:
    if "secret" not in text.lower():
        return
    for found in _LOOKALIKE.finditer(_PLACEHOLDER.sub("\n", text)):  # nothing that is looked for holds a line end
        yield found[0][:_SHOWN_CHARACTERS_MAX]


def warnings(url: str, headers: Iterable[tuple[str, str]], body: str | None) -> tuple[str, ...]:
    """A sentence for each lookalike in a request."""
    return tuple(
        f"{found} is not a placeholder of a secret and is sent as it stands; one is written ${{secrets.KEY}}, with KEY "
        "in capitals."
        for found in lookalikes([url, *(value for _, value in headers), body or ""])
    )
