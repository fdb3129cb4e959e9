"""Reading a schedule for somebody who may have named a language.

Owns what a named language means: the text is read in it where that is possible, and the answer is worded in it. Must
never guess more than `core.understanding` does.
"""

from __future__ import annotations

from collections.abc import Callable

from zerocron.core.errors import Invalid
from zerocron.core.model import Instant
from zerocron.core.phrases import Code
from zerocron.core.schedule import DayMatch, DstPolicy, Schedule
from zerocron.core.understanding import DEFAULT_TIMEZONE, Understood, understand


def read(
    text: str,
    *,
    timezone: str | None,
    now: Instant,
    language: Code | None,
    dst: DstPolicy,
    day_match: DayMatch,
    reader: Callable[..., Understood] = understand,
) -> Understood:
    """What the text means, read in `language` or else in whichever understands it. Raises Invalid.

    `reader` is `understand`, or its sister for what a monitor expects.
    """

    def reading(preferred: Code | None) -> Understood:
        return reader(
            text, timezone=timezone, now=now, language=preferred, wording=language, dst=dst, day_match=day_match
        )

    try:
        return reading(language)
    except Invalid:
        if language is None:
            raise
        return reading(None)  # its refusal is of the language that comes nearest, which may be the named one


def spoken(understood: Understood, language: Code | None) -> Code:
    """The language to answer in: the named one, else that of the phrase, else English."""
    return language or understood.language or "en"


def given_timezone(schedule: Schedule) -> str | None:
    """The zone that an edit starts from. UTC may be nobody's choice, so a new schedule may name another."""
    return None if schedule.timezone == DEFAULT_TIMEZONE else schedule.timezone
