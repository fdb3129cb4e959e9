"""What a person writes about when a monitor expects its pings, and the words to say it back.

Owns the one difference to a job's schedule: words that name a length and nothing else are a period, counted from the
last success. Everything else is `core.understanding`'s.
"""

from __future__ import annotations

import dataclasses

from zerocron.core import phrases
from zerocron.core.errors import Invalid
from zerocron.core.model import Instant
from zerocron.core.schedule import DayMatch, DstPolicy, Schedule
from zerocron.core.schedule.intervals import read_span
from zerocron.core.understanding import Understood, describe, understand

_DAY_MS = 86_400_000


def understand_expected(
    text: str,
    *,
    timezone: str | None,
    now: Instant,
    language: str | None = None,
    wording: str | None = None,
    dst: DstPolicy = "run_once",
    day_match: DayMatch = "either",
) -> Understood:
    """What a monitor is to expect. Words that name a length and nothing else ("every 5 minutes", "every day") are a
    period, which counts from the last success and not from the clock; all else is read as for a job. Raises Invalid.
    """
    spoken = " ".join(text.lower().split())
    period_ms = _span_ms(spoken) if spoken.startswith("every ") else None
    if period_ms is not None:
        zone = understand("0 0 1 1 *", timezone=timezone, now=now).schedule.timezone
        return Understood(Schedule("interval", None, period_ms, now, zone, dst, day_match), (), "en", ())
    understood = understand(
        text, timezone=timezone, now=now, language=language, wording=wording, dst=dst, day_match=day_match
    )
    schedule = understood.schedule
    if understood.language is None:
        return understood
    if schedule.kind == "interval":
        return dataclasses.replace(understood, warnings=())  # it does not count from the start of a job here
    period_ms = _PERIODS.get(schedule.cron or "")
    if period_ms is None or spoken != phrases.describe_interval(period_ms, understood.language):
        return understood
    period = Schedule("interval", None, period_ms, now, schedule.timezone, dst, day_match)
    return Understood(period, (), understood.language, ())


def _span_ms(spoken: str) -> int | None:
    if spoken in _NAMED_SPANS:
        return _NAMED_SPANS[spoken]
    words = spoken.split()
    if len(words) != 3 or not words[1].isdecimal():
        return None
    try:
        span = read_span(spoken)
    except Invalid:
        return None
    return None if span is None else span.ms


_NAMED_SPANS = {
    "every second": 1_000,
    "every minute": 60_000,
    "every hour": 3_600_000,
    "every day": _DAY_MS,
    "every week": 7 * _DAY_MS,
}
_PERIODS = (
    {f"*/{minutes} * * * *": minutes * 60_000 for minutes in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30)}
    | {f"0 */{hours} * * *": hours * 3_600_000 for hours in (2, 3, 4, 6, 8, 12)}
    | {"* * * * *": 60_000, "0 * * * *": 3_600_000, "0 0 * * *": _DAY_MS}
)


def describe_expected(schedule: Schedule, language: str) -> str:
    """The schedule in words; a period is its length alone."""
    if schedule.kind != "interval":
        return describe(schedule, language)
    return phrases.describe_interval(schedule.every_ms or 0, language)
