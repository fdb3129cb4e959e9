"""`${secrets.KEY}`: where a job may name a secret, and how the value is put there.

Owns the syntax and the escaping by context: a value cannot leave the place where its placeholder stands. A text is read
once, so that a value which looks like a placeholder stays what it is. Pure; whoever calls it has the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

import orjson

from zerocron.core.secret import NAME

Escape = Callable[[str], str]

_BEGIN = "${secrets."
_PLACEHOLDER = re.compile(r"\$\{secrets\.(" + NAME + r")\}")
# What somebody may have meant as one: another case, blanks, a missing brace, the braces of other tools.
_LOOKALIKE = re.compile(
    r"(?:\$\{{1,2}|\{\{)\s*secrets?\s*[.:\[][^{}\n]{0,100}\}{0,2}|\$\{secrets?\}|\$\(?secrets\.\w{1,64}\)?",
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


def fill(text: str, value_of: Callable[[str], str], escape: Escape = str) -> str:
    """The text with every placeholder replaced, by name."""
    if _BEGIN not in text:
        return text
    return _PLACEHOLDER.sub(lambda found: escape(value_of(found[1])), text)


def fill_url(url: str, value_of: Callable[[str], str]) -> str:
    """A URL whose placeholders stand in its path, query or fragment. Raises ValueError for one before these."""
    if is_before_path(url):
        raise ValueError("a placeholder in the scheme or host of a URL")
    return fill(url, value_of, in_url)


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
    """What looks like a placeholder and is none, so that it will be sent as it stands."""
    found = dict.fromkeys(item for text in texts for item in _lookalikes(text))
    return list(found)[:WARNINGS_MAX]


def _lookalikes(text: str) -> Iterator[str]:
    if "secret" not in text.lower():
        return
    exact = [found.span() for found in _PLACEHOLDER.finditer(text)]
    for found in _LOOKALIKE.finditer(text):
        if not any(start < found.end() and found.start() < end for start, end in exact):
            yield found[0][:_SHOWN_CHARACTERS_MAX]


def warnings(url: str, headers: Iterable[tuple[str, str]], body: str | None) -> tuple[str, ...]:
    """A sentence for each lookalike in a request."""
    return tuple(
        f"{found} is not a placeholder of a secret and is sent as it stands; one is written ${{secrets.KEY}}, with KEY "
        "in capitals."
        for found in lookalikes([url, *(value for _, value in headers), body or ""])
    )
