"""Whether an answer is a success, by the job's rule.

Owns the reading of status patterns ("2xx", "200-299", "404"), of JSON paths and of regular expressions, and the
sentence that says which rule an answer breaks and what was seen. Must never see more of the answer than is kept of it:
a rule over a truncated body judges the kept part, in which the values of secrets are masked. Must never take longer
than the answer is long: expressions are RE2's, which match in linear time and refuse what they could not
(back-references, look-around).

A JSON path is `$`, then any number of `.name`, `["any name"]` and `[index]`, such as `$.jobs[0].state`. There are no
wildcards and no filters: a path leads to one place or to none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import orjson
import re2  # type: ignore[import-untyped]

from zerocron.core.errors import Invalid
from zerocron.core.model import SuccessRule

SHOWN_CHARACTERS_MAX = 80
PATTERN_CHARACTERS_MAX = 1_000
PROGRAM_STEPS_MAX = 1_000
"""The size of a compiled expression. Each byte of a body may cost a look at each of its steps, some 10 ns."""

MATCHED_BYTES_MAX = 65_536
"""Expressions see the first this many bytes of a body: with the bound above, half a second at the very worst."""

PATH_CHARACTERS_MAX = 200
PATH_STEPS_MAX = 20
NUMBER_MAX = 2**53
"""Whole numbers beyond it are not the same for everybody who reads JSON, so none is compared with."""

_PATTERN = re.compile(r"(?P<class>[1-5])xx|(?P<low>[1-5]\d\d)(?:-(?P<high>[1-5]\d\d))?", re.ASCII | re.IGNORECASE)
_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,6})\]|\[("(?:[^"\\\x00-\x1f]|\\.)*")\]')
_MISSING = object()

Header = tuple[str, str]


def check_status_pattern(text: str) -> str:
    """The pattern, lower case. Raises Invalid when it is none of "2xx", "200-299", "404"."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise Invalid(f"{text!r} is not a status rule. Use '2xx', '200-299' or '404'.", field="success.status")
    if match["high"] is not None and match["high"] < match["low"]:
        raise Invalid(f"{text!r} is empty: write the smaller status first.", field="success.status")
    return text.lower()


def check_pattern(text: str) -> str:
    """The regular expression as it is. Raises Invalid, saying why, where RE2 does not know it or it is too big."""
    problem = None
    try:
        expression = _compiled(text)
    except (re2.error, UnicodeEncodeError) as error:
        problem = _reason(error)
    else:
        if expression.programsize > PROGRAM_STEPS_MAX:
            problem = "it is too big; repeat less"
    if problem is not None:
        raise Invalid(
            f"{_shown(text)} is not a regular expression that 0cron takes: {problem}. The syntax is that of RE2, "
            "without back-references and look-around.",
            field="success.body_matches",
        )
    return text


def check_path(text: str) -> str:
    """The JSON path as it is. Raises Invalid for what is not one."""
    try:
        steps = _steps(text)
    except ValueError:
        raise Invalid(
            f'{_shown(text)} is not a JSON path. Write it like $.jobs[0].state or $["any name"].', field="success.json"
        ) from None
    if len(steps) > PATH_STEPS_MAX:
        raise Invalid(f"A JSON path has at most {PATH_STEPS_MAX} steps; this has {len(steps)}.", field="success.json")
    return text


def broken_rule(
    rule: SuccessRule,
    status: int,
    body: str | None,
    headers: Iterable[Header] = (),
    duration_ms: float = 0,
) -> str | None:
    """The sentence that says which rule the answer breaks and what was seen; None when it is a success.

    `body` None: there is none that is text.
    """
    if status not in _accepted(rule.status):
        return f"The status was {status}; the job accepts {', '.join(rule.status)}."
    if rule.max_duration_ms is not None and duration_ms > rule.max_duration_ms:
        return f"The answer took {duration_ms:,.0f} ms; the job accepts at most {rule.max_duration_ms:,} ms."
    if rule.headers:
        broken = _broken_header(rule.headers, list(headers))
        if broken is not None:
            return broken
    return _broken_body(rule, body or "")


def _broken_header(expected: Sequence[Header], seen: Sequence[Header]) -> str | None:
    for name, value in expected:
        values = [given.strip() for given_name, given in seen if given_name.lower() == name.lower()]
        if value not in values:
            was = f"was {_shown(', '.join(values))}" if values else "is missing"
            return f"The header {name} {was}; the job expects {_shown(value)}."
    return None


def _broken_body(rule: SuccessRule, body: str) -> str | None:
    if rule.body_contains is not None and rule.body_contains not in body:
        return f"The body does not contain {_shown(rule.body_contains)}; it {_beginning(body)}."
    if rule.body_not_contains is not None and rule.body_not_contains in body:
        return f"The body contains {_shown(rule.body_not_contains)}."
    if rule.body_matches is not None and not _matches(rule.body_matches, body):
        return f"The body does not match {_shown(rule.body_matches)}; it {_beginning(body)}."
    if rule.json:
        return _broken_json(rule, body)
    return None


def _broken_json(rule: SuccessRule, body: str) -> str | None:
    try:
        document = orjson.loads(body)
    except (ValueError, RecursionError):
        return f"The body is not JSON; it {_beginning(body)}."
    for condition in rule.json:
        expected, found = orjson.loads(condition.equals), _at(document, condition.path)
        if found is _MISSING:
            return f"The body has nothing at {condition.path}; the job expects {_shown_json(expected)}."
        if not _equal(found, expected):
            seen = _shown_json(found)
            return f"The body has {seen} at {condition.path}; the job expects {_shown_json(expected)}."
    return None


@lru_cache(maxsize=1024)
def _accepted(patterns: tuple[str, ...]) -> frozenset[int]:
    accepted: set[int] = set()
    for text in patterns:
        match = _PATTERN.fullmatch(text)
        if match is None:
            continue
        if match["class"] is not None:
            low = int(match["class"]) * 100
            high = low + 99
        else:
            low = int(match["low"])
            high = int(match["high"] or low)
        accepted.update(range(low, high + 1))
    return frozenset(accepted)


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = 1 << 20
    return re2.compile(pattern.encode(), options)


def _matches(pattern: str, body: str) -> bool:
    return _compiled(pattern).search(body[:MATCHED_BYTES_MAX].encode()[:MATCHED_BYTES_MAX]) is not None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args and isinstance(error, re2.error) else "it is not text"
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


@lru_cache(maxsize=4096)
def _steps(path: str) -> tuple[str | int, ...]:
    """The names and indices of a path. Raises ValueError when it is none."""
    if not path.startswith("$"):
        raise ValueError(path)
    steps: list[str | int] = []
    place = 1
    while place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            raise ValueError(path)
        name, index, quoted = match.groups()
        steps.append(int(index) if index is not None else name if name is not None else orjson.loads(quoted))
        place = match.end()
    return tuple(steps)


def _at(document: Any, path: str) -> Any:
    for step in _steps(path):
        fits = isinstance(document, dict) if isinstance(step, str) else isinstance(document, list)
        if not fits or (step not in document if isinstance(step, str) else step >= len(document)):
            return _MISSING
        document = document[step]
    return document


def _equal(found: Any, expected: Any) -> bool:
    """As JSON has it: 1 is 1.0, but true is not 1."""
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def _beginning(body: str) -> str:
    return f"begins with {_shown(body)}" if body else "is empty or no text"


def _shown_json(value: Any) -> str:
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return orjson.dumps(value).decode()


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 1] + "…")
