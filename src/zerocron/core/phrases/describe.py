"""Schedules in words, from their meaning: field sets in, a sentence out.

Owns the order of a sentence; the words are each language's Speech. It must never say what is not exactly so: where
words fail it returns None and the caller shows the expression. Every sentence can be read back (a property test).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from .fields import (
    ALL_DAYS,
    ALL_HOURS,
    ALL_MINUTES,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    LAST,
    LAST_WEEKDAY,
    Fields,
    step_of,
)
from .instants import wall
from .language import Speech

MOST_TIMES: Final = 12  # in one sentence
MOST_DATES: Final = 10
MOST_MINUTES: Final = 6


def cron_words(fields: Fields, speech: Speech) -> str | None:
    """The sentence of some fields, or None."""
    free = (fields.dates, fields.weekdays, fields.months) == (ALL_DAYS, ALL_WEEKDAYS, ALL_MONTHS) and not fields.nth
    often = _rhythm(fields, speech, free)
    times = None if often else _times(fields, speech)
    if often is None and times is None:
        return None
    days = _days(fields, speech, leading=times is not None)
    if days is None:
        return None
    return " ".join(piece for piece in ((often, days) if often else (days, times)) if piece)


def interval_words(every_ms: int, speech: Speech) -> str:
    """Every so often, in the largest unit that divides it."""
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
    for unit, size in units:
        n = every_ms // size
        if every_ms % size == 0 and not (unit == "day" and n in speech.long_days):
            one, many = speech.rhythms[unit]
            return one if n == 1 else many.format(n)
    seconds = format((Decimal(every_ms) / 1000).normalize(), "f").replace(".", speech.decimal_mark)
    return speech.rhythms["second"][1].format(seconds)


def instant_words(at: int, timezone: str, speech: Speech) -> str:
    """On a date, at a time, with the zone."""
    when = wall(at, timezone)
    date = speech.instant_date.format(
        day=speech_day(when.day, speech), month=speech.months[when.month - 1], year=when.year
    )
    return speech.instant.format(date, at_words([(when.hour, when.minute, when.second)], speech), timezone)


def speech_day(day: int, speech: Speech) -> str:
    """A day in a full date: the number, or what the language says for the first."""
    return speech.first_day if day == 1 else str(day)


def joined(words: Sequence[str], speech: Speech) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + speech.and_ + words[-1]


def at_words(times: Sequence[tuple[int, int, int]], speech: Speech) -> str:
    """At these times."""
    if not speech.each_time:
        return speech.at.format(joined([time_words(*time, speech) for time in times], speech))
    return joined(
        [(speech.at_one if time[0] == 1 else speech.at).format(time_words(*time, speech)) for time in times], speech
    )


def time_words(hour: int, minute: int, second: int, speech: Speech) -> str:
    if second:
        return f"{hour:02}:{minute:02}:{second:02}"
    return speech.hour_minute.format(hour, minute) if minute else speech.hour_only.format(hour)


# ---- the time part -------------------------------------------------------------------------------------------------


def _times(fields: Fields, speech: Speech) -> str | None:
    """A list of times; a rhythm (`wild`) is none."""
    size = len(fields.seconds) * len(fields.minutes) * len(fields.hours)
    if fields.wild or size > MOST_TIMES or len(fields.seconds) > 1:
        return None
    times = [(h, m, s) for h in sorted(fields.hours) for m in sorted(fields.minutes) for s in fields.seconds]
    return at_words(times, speech)


def _rhythm(fields: Fields, speech: Speech, free: bool) -> str | None:
    """Every N minutes or hours, all day or in a window."""
    if fields.seconds != {0}:
        return None
    step = _minute_step(fields.minutes)
    if step and fields.wild:
        every = _every("minute", step, speech)
        return every if fields.hours == ALL_HOURS else _window(every, _hour_run(fields.hours, free), step, speech)
    hours = _hour_step(fields.hours)
    if hours and fields.wild and len(fields.minutes) <= MOST_MINUTES:
        every = _every("hour", hours, speech)
        minutes = sorted(fields.minutes)
        if minutes == [0]:
            return every
        listed = joined([str(minute) for minute in minutes], speech)
        return f"{every} {speech.at_minutes[len(minutes) > 1].format(listed)}"
    return None if fields.wild else _hours_in_window(fields, speech, free)


def _every(unit: str, n: int, speech: Speech) -> str:
    one, many = speech.rhythms[unit]
    return one if n == 1 else many.format(n)


def _minute_step(minutes: frozenset[int]) -> int:
    """N when the minutes are every N-th of the hour, from 0 on, and more than one; else 0."""
    if minutes == ALL_MINUTES:
        return 1
    step = 60 // len(minutes)
    return step if len(minutes) > 1 and minutes == frozenset(range(0, 60, step)) and 60 % step == 0 else 0


def _hour_step(hours: frozenset[int]) -> int:
    """The same for hours of the day."""
    step = 24 // len(hours)
    return step if len(hours) > 1 and hours == frozenset(range(0, 24, step)) and 24 % step == 0 else 0


def _hour_run(hours: frozenset[int], free: bool) -> tuple[int, int] | None:
    """First and last of hours in a row; a run over midnight only where every day is the same."""
    starts = [hour for hour in hours if (hour - 1) % 24 not in hours]
    if len(starts) != 1:
        return None
    first, last = starts[0], (starts[0] + len(hours) - 1) % 24
    return (first, last) if last >= first or free else None


def _window(every: str, run: tuple[int, int] | None, step: int, speech: Speech) -> str | None:
    if run is None:
        return None
    start, end = time_words(run[0], 0, 0, speech), time_words(run[1], 60 - step, 0, speech)
    return f"{every} {speech.window.format(start, end)}"


def _hours_in_window(fields: Fields, speech: Speech, free: bool) -> str | None:
    """Every N hours between two hours, where a list of times would be long."""
    if len(fields.minutes) != 1 or len(fields.hours) < 5 or fields.hours == ALL_HOURS:
        return None
    (minute,) = fields.minutes
    step = step_of(fields.hours)
    run = _hour_run(fields.hours, free)
    if step > 1:
        run = (min(fields.hours), max(fields.hours))
    elif run is None:
        return None
    every = _every("hour", max(step, 1), speech)
    start, end = time_words(run[0], minute, 0, speech), time_words(run[1], minute, 0, speech)
    return f"{every} {speech.window.format(start, end)}"


# ---- the day part --------------------------------------------------------------------------------------------------


def _days(fields: Fields, speech: Speech, *, leading: bool) -> str | None:
    """The days; empty where a rhythm needs no days."""
    if fields.dates != ALL_DAYS and (fields.weekdays != ALL_WEEKDAYS or fields.nth):
        return None
    of = speech.of_month
    if fields.months != ALL_MONTHS:
        of = _of_months(fields, speech)
    if fields.dates != ALL_DAYS:
        dates = _dates(fields.dates, speech)
        return dates and speech.dates.format(dates, of)
    if fields.nth:
        return _nth(fields, of, speech)
    months = "" if fields.months == ALL_MONTHS else speech.in_months.format(_months(fields, speech))
    week = _weekdays(fields.weekdays, speech, leading=leading)
    return " ".join(piece for piece in (week, months) if piece)


def _of_months(fields: Fields, speech: Speech) -> str:
    months = _months(fields, speech)
    if min(fields.dates) > 0 and fields.dates != ALL_DAYS:
        return speech.dates_of_months.format(months)
    return (speech.of_vowel if speech.of_vowel and months[0] in "ao" else speech.of_months).format(months)


def _months(fields: Fields, speech: Speech) -> str:
    return joined([speech.months[month - 1] for month in sorted(fields.months)], speech)


def _weekdays(days: frozenset[int], speech: Speech, *, leading: bool) -> str:
    if days == ALL_WEEKDAYS:
        return speech.every_day if leading else ""
    if days == frozenset(range(1, 6)) and speech.workdays[0]:
        return speech.workdays[0 if leading else 1]
    starts = [day for day in days if (day - 1) % 7 not in days]
    if len(days) > 2 and len(starts) == 1:
        first, last = starts[0], (starts[0] + len(days) - 1) % 7
        return speech.weekday_span.format(speech.weekdays[first], speech.weekdays[last])
    ordered = sorted(days, key=lambda day: (day - 1) % 7)
    names = speech.weekday_leads if leading else speech.weekdays
    template = speech.every_weekdays if leading else speech.on_weekdays
    return template.format(joined([names[day] for day in ordered], speech))


def _dates(dates: frozenset[int], speech: Speech) -> str | None:
    if len(dates) > MOST_DATES or LAST_WEEKDAY in dates:
        return speech.last_weekday if dates == {LAST_WEEKDAY} else None
    words = [speech.date_words[date - 1] for date in sorted(dates) if date > 0]
    return joined(words + [speech.last_day] * (LAST in dates), speech)


def _nth(fields: Fields, of: str, speech: Speech) -> str | None:
    """The first and third Monday; the orders must be the same for each weekday."""
    days = sorted({day for day, _ in fields.nth}, key=lambda day: (day - 1) % 7)
    orders = sorted({order for _, order in fields.nth}, key=lambda order: order if order > 0 else 9)
    if fields.weekdays or len(days) * len(orders) != len(fields.nth):
        return None
    order_words = [speech.orders[order - 1 if order > 0 else 5] for order in orders]
    return speech.nth.format(joined(order_words, speech), joined([speech.nth_days[day] for day in days], speech), of)
