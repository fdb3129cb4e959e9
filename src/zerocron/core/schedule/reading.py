"""From a text to a schedule: expressions, and the plain forms of intervals and instants.

The front door for what a person types is core/understanding.py, which asks here for expressions.

Owns what is accepted as text at all, and which kind of schedule it is. It must never guess: a text that is not exactly
one schedule is refused, with what to write instead.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NoReturn

from zerocron.core.schedule.cron_next import DstPolicy, is_literal
from zerocron.core.schedule.cron_parse import EXAMPLES, Cron, DayMatch, compile_cron, shown
from zerocron.core.schedule.intervals import Moment, Span, read_moment, read_span
from zerocron.core.schedule.model import Parsed, Schedule
from zerocron.core.schedule.repairs import repaired
from zerocron.core.schedule.sentences import Refusal, Remark, refusal
from zerocron.core.schedule.zones import END_SECOND, changed_hours, check_timezone

LONGEST_TEXT = 1_000


def parse(
    text: str,
    *,
    timezone: str = "UTC",
    now: int,
    anchor: int | None = None,
    dst: DstPolicy = "run_once",
    day_match: DayMatch = "either",
) -> Parsed:
    """Read a cron expression, an interval or a single instant; Invalid names the field and what to write instead.

    `now` is the instant that "in 20 minutes" counts from, and a schedule must still have a slot after it. Intervals are
    anchored at `anchor`, or at `now` without one.
    """
    if len(text) > LONGEST_TEXT:
        raise refusal("too_long", f"{LONGEST_TEXT:,}", f"{len(text):,}")
    timezone = check_timezone(timezone)
    try:
        reading = _read(text, timezone, dst, day_match)
    except Refusal as refused:
        meant = (
            Schedule("cron", cron.text, None, None, timezone, dst, day_match) for cron in repaired(text, day_match)
        )
        likely = [str(schedule.cron) for schedule in meant if schedule.next_after(now) is not None]
        raise Refusal(refused.remark, suggestions=likely or refused.suggestions) from None
    if isinstance(reading, Parsed):
        parsed = reading
    elif isinstance(reading, Moment):
        schedule = Schedule("once", None, None, reading.at, timezone, dst, day_match)
        parsed = Parsed(schedule, reading.remarks)
    elif reading.word == "in":
        if now + reading.ms >= END_SECOND * 1000:
            raise refusal("too_late", shown(text))
        parsed = Parsed(Schedule("once", None, None, now + reading.ms, timezone, dst, day_match), ())
    else:
        start = now if anchor is None else anchor
        schedule = Schedule("interval", None, reading.ms, start, timezone, dst, day_match)
        parsed = Parsed(schedule, interval_remarks(schedule))
    if parsed.schedule.next_after(now) is None:
        _refuse_past(text, parsed.schedule.kind)
    return parsed


@lru_cache(maxsize=8192)
def _read(text: str, timezone: str, dst: DstPolicy, day_match: DayMatch) -> Parsed | Moment | Span:
    """What a text means, as far as it does not depend on now."""
    plain = _plain(text)
    lower = plain.lower()
    found = read_span(lower) or read_moment(lower, timezone)
    if found is not None:
        return found
    cron = compile_cron(plain, day_match)
    schedule = Schedule("cron", cron.text, None, None, timezone, dst, day_match)
    return Parsed(schedule, (*cron.remarks, *_clock_remarks(cron, timezone, dst)))


def _clock_remarks(cron: Cron, timezone: str, dst: DstPolicy) -> Iterator[Remark]:
    """Where the policy for clock changes is not what decides."""
    if not is_literal(cron, dst) or changed_hours(timezone).isdisjoint(cron.hours):
        return
    if dst != "run_once":
        yield Remark("policy_without_effect")
    elif cron.has_seconds and len(cron.hours) < 24:
        yield Remark("seconds_are_literal")


def _plain(text: str) -> str:
    """The text as printable ASCII with single spaces; Invalid for anything that only looks like it."""
    text = text.strip(" \t\r\n")
    if "\n" in text or "\r" in text:
        raise refusal("one_line")
    if not text.isascii():
        text = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    text = " ".join(word for word in text.replace("\t", " ").split(" ") if word)
    if not text:
        raise refusal("needed", suggestions=EXAMPLES)
    for character in text:
        if not " " <= character <= "~":
            name = unicodedata.name(character, "no printable character").lower()
            raise refusal("character", f"{ord(character):04X}", name)
    return text


def interval_remarks(schedule: Schedule) -> tuple[Remark, ...]:
    """What someone who counts in days may not expect of an interval."""
    assert schedule.every_ms, "an interval has a length"
    if schedule.every_ms % 86_400_000 or not changed_hours(schedule.timezone):
        return ()
    return (Remark("interval_shifts"),)


def _refuse_past(text: str, kind: str) -> NoReturn:
    if kind == "once":
        raise refusal("past", shown(text))
    raise refusal("over", shown(text))
