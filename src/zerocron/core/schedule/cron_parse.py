"""Cron expressions: text -> sets of values, compiled once.

Owns the grammar. It must never look at a clock or a zone, and never guess: what it does not know, it refuses.

    fields   5: minute hour day-of-month month day-of-week
             6: a leading second;  7: a leading second and a trailing year
    terms    *  a  a-b  */n  a/n  a-b/n, in lists; a/n runs to the end of the field; a range may wrap (FRI-MON, 22-2)
    days     L last day of the month, LW its last weekday (Mon-Fri), 15W the weekday nearest the 15th in the same month,
             5L last Friday, MON#2 second Monday; ? in a day field is *; Sunday is 0 and 7

Debian cron's two rules are kept here as flags:

    either_day   neither day field begins with `*`: a day matches when EITHER does, otherwise when BOTH do. A job may
                 ask that both must match (`DayMatch`); then this flag is never set
    rhythm       minute or hour begins with `*`: every matching reading of the wall clock counts. Otherwise these are
                 fixed times of the day, and the job's `DstPolicy` decides what the clocks do to them (cron_next.py)
    has_seconds  there is a second field: crond has none, so it has no rule for it (cron_next.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, NoReturn

from zerocron.core.schedule.sentences import Remark, Unit, refusal

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
FULL_NAMES = {name.upper(): name[:3].upper() for name in WEEKDAYS + MONTHS}


@dataclass(frozen=True, slots=True)
class _Field:
    name: Unit
    low: int
    high: int
    cycle: int  # how many values before the range starts again; 0: it never does
    names: dict[str, int]
    special: tuple[str, ...] = ()


_SECOND = _Field("second", 0, 59, 60, {})
_MINUTE = _Field("minute", 0, 59, 60, {})
_HOUR = _Field("hour", 0, 23, 24, {})
_DAY = _Field("day of month", 1, 31, 31, {}, ("L", "LW", "15W"))
_MONTH = _Field("month", 1, 12, 12, {name[:3].upper(): i for i, name in enumerate(MONTHS, 1)})
_WEEKDAY = _Field("day of week", 0, 7, 7, {name[:3].upper(): i for i, name in enumerate(WEEKDAYS)}, ("5L", "MON#2"))
_YEAR = _Field("year", 1970, 2499, 0, {})

NICKNAMES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

# What a schedule may look like, for texts that give no hint of what was meant.
EXAMPLES = ("0 9 * * MON-FRI", "*/15 * * * *", "every 90 minutes", "in 20 minutes")

LAST = 0  # as the n of an nth weekday: the last one of its month

DayMatch = Literal["either", "both"]
"""Which day fields must match where day of month and weekday are both restricted; "either" is Debian cron's rule."""


class DaysOfMonth(NamedTuple):
    days: tuple[int, ...]
    nearest: tuple[int, ...]  # the n of each nW
    last_day: bool
    last_weekday: bool


class DaysOfWeek(NamedTuple):
    days: tuple[int, ...]  # 0 (Sunday) to 6
    nth: tuple[tuple[int, int], ...]  # (day, n): n from 1 to 5, or LAST


@dataclass(frozen=True, slots=True)
class Cron:
    """A compiled expression. Tuples are ascending and without doubles."""

    text: str  # canonical: compiling it again gives the same Cron
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    of_month: DaysOfMonth
    months: tuple[int, ...]
    of_week: DaysOfWeek
    years: tuple[int, ...] | None  # None: every year
    either_day: bool
    rhythm: bool
    has_seconds: bool
    # day_masks[length of the month - 28][weekday of its 1st, Monday 0]: bit d is set when day d matches
    day_masks: tuple[tuple[int, ...], ...]
    remarks: tuple[Remark, ...]  # warnings


@lru_cache(maxsize=8192)
def compile_cron(text: str, day_match: DayMatch = "either") -> Cron:
    """The compiled form of a printable ASCII expression; Invalid(field="schedule") when it is not one.

    Cached: the work is done once an expression and process, whatever the number of jobs that share it.
    """
    parts = _split(text)
    canonical = " ".join(parts)
    fields = ["0", *parts] if len(parts) == 5 else parts
    second, minute, hour, day, month, weekday = fields[:6]
    of_month, of_week = _days_of_month(day), _days_of_week(weekday)
    either = day_match == "either" and not (day.startswith("*") or weekday.startswith("*"))
    cron = Cron(
        text=canonical,
        seconds=_values(_SECOND, second),
        minutes=_values(_MINUTE, minute),
        hours=_values(_HOUR, hour),
        of_month=of_month,
        months=_values(_MONTH, month),
        of_week=of_week,
        years=_values(_YEAR, fields[6]) if len(fields) == 7 and fields[6] != "*" else None,
        either_day=either,
        rhythm=minute.startswith("*") or hour.startswith("*"),
        has_seconds=len(parts) != 5,
        day_masks=_day_masks(of_month, of_week, either),
        remarks=(
            *(_day_warnings(day, weekday) if day_match == "either" else ()),
            *_warnings(second, minute, hour, day),
        ),
    )
    if not _can_match(cron):
        raise refusal("never", shown(canonical), suggestions=_with_last_day(parts))
    return cron


def _split(text: str) -> list[str]:
    parts = text.upper().split()
    if len(parts) == 1 and parts[0].startswith("@"):
        if parts[0] not in NICKNAMES:
            known = ", ".join(name.lower() for name in NICKNAMES)
            raise refusal("nickname", shown(text), known, suggestions=("@daily", "@hourly"))
        parts = NICKNAMES[parts[0]].split()
    if len(parts) not in (5, 6, 7):
        raise refusal("field_count", shown(text), str(len(parts)), suggestions=EXAMPLES)
    first_day = 2 if len(parts) == 5 else 3
    for place in (first_day, first_day + 2):
        if parts[place] == "?":
            parts[place] = "*"
    return parts


def _with_last_day(parts: list[str]) -> tuple[str, ...]:
    """The expression on the last day of the month instead: what a 31st in a short month often means."""
    place = 2 if len(parts) == 5 else 3
    return (" ".join([*parts[:place], "L", *parts[place + 1 :]]),) if parts[place + 2] == "*" else ()


# --- one field -----------------------------------------------------------------------------------------------------

_TERM = re.compile(r"(\*|[0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?(?:/([0-9]+))?")
_NEAREST = re.compile(r"([0-9]+)W")
_NTH = re.compile(r"([0-9]+|[A-Z]+)#([1-5])")
_LAST_OF = re.compile(r"([0-7])L")


def _values(field: _Field, text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for term in text.split(","):
        found.update(_range(field, term))
    return tuple(sorted(found))


def _days_of_month(text: str) -> DaysOfMonth:
    days: set[int] = set()
    nearest: set[int] = set()
    terms = text.split(",")
    for term in terms:
        if match := _NEAREST.fullmatch(term):
            nearest.add(_value(_DAY, match[1], term))
        elif term not in ("L", "LW"):
            days.update(_range(_DAY, term))
    return DaysOfMonth(tuple(sorted(days)), tuple(sorted(nearest)), "L" in terms, "LW" in terms)


def _days_of_week(text: str) -> DaysOfWeek:
    weekdays: set[int] = set()
    nth: set[tuple[int, int]] = set()
    for term in text.split(","):
        if match := _NTH.fullmatch(term):
            nth.add((_value(_WEEKDAY, match[1], term) % 7, int(match[2])))
        elif match := _LAST_OF.fullmatch(term):
            nth.add((int(match[1]) % 7, LAST))
        else:
            weekdays.update(value % 7 for value in _range(_WEEKDAY, term))
    return DaysOfWeek(tuple(sorted(weekdays)), tuple(sorted(nth)))


def _range(field: _Field, term: str) -> Iterator[int]:
    """The values of `*`, `a`, `a-b`, each with an optional `/n`."""
    match = _TERM.fullmatch(term)
    if match is None:
        _refuse(field, term)
    first, last, step_text = match.groups()
    step = int(step_text) if step_text else 1
    if step == 0:
        _refuse(field, term, Remark("step_zero"))
    if first == "*":
        if last is not None:
            _refuse(field, term)
        return iter(range(field.low, field.high + 1, step))
    low = _value(field, first, term)
    high = _value(field, last, term) if last else field.high if step_text else low
    if high >= low:
        return iter(range(low, high + 1, step))
    if not field.cycle:
        _refuse(field, term, Remark("backwards", (term,), field.name))
    low = field.low + (low - field.low) % field.cycle  # Sunday as 7 begins a wrapping range as 0
    high += field.cycle if high < low else 0
    return (field.low + (value - field.low) % field.cycle for value in range(low, high + 1, step))


def _value(field: _Field, text: str, term: str) -> int:
    """The number one word of a term stands for."""
    if text in field.names:
        return field.names[text]
    if text in FULL_NAMES and FULL_NAMES[text] in field.names:
        _refuse(field, text, Remark("write", (FULL_NAMES[text],)))
    if not text.isdigit():
        _refuse(field, term)
    value = int(text)
    if not field.low <= value <= field.high:
        if field is _WEEKDAY and _YEAR.low <= value <= _YEAR.high:
            _refuse(field, text, Remark("year_needs_seven"))
        if field is _HOUR and value == 24:
            _refuse(field, text, Remark("midnight_is_0"))
        _refuse(field, text)
    return value


def _refuse(field: _Field, term: str, why: Remark | None = None) -> NoReturn:
    words = (*field.names, *field.special)
    bounds = str(field.low), str(field.high)
    why = why or (Remark("use_or", (*bounds, ", ".join(words))) if words else Remark("use", bounds))
    if not term:
        raise refusal("empty_term", why, unit=field.name)
    raise refusal("term", shown(term), why, unit=field.name)


def shown(text: str) -> str:
    """What a person typed, safe to print: quoted, cut, anything unprintable escaped."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


# --- days of a month -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _day_masks(of_month: DaysOfMonth, of_week: DaysOfWeek, either: bool) -> tuple[tuple[int, ...], ...]:
    """See Cron.day_masks. There are only 28 kinds of month, so each day of each kind is decided now.

    Cached, as half of the work on an expression is here, and many share their days and not their times.
    """
    fixed = sum(1 << day for day in of_month.days)
    weeks = [_weekday_bits(of_week, first) for first in range(7)]
    last_ones = [weekday for weekday, n in of_week.nth if n == LAST]

    def mask(length: int, first: int) -> int:
        month, week = fixed | of_month.last_day << length, weeks[first]
        for day in (*of_month.nearest, *(length,) * of_month.last_weekday):
            if day <= length:
                month |= 1 << _nearest_weekday(day, length, first)
        for weekday in last_ones:
            day = _first_on(weekday, first)
            week |= 1 << day + (length - day) // 7 * 7
        return (month | week if either else month & week) & ((2 << length) - 2)

    return tuple(tuple(mask(length, first) for first in range(7)) for length in range(28, 32))


def _weekday_bits(of_week: DaysOfWeek, first: int) -> int:
    """The days on which the weekdays and the first to fifth ones fall, whatever the length of the month."""
    if len(of_week.days) == len(WEEKDAYS):
        return -1
    bits = 0
    for weekday in of_week.days:
        bits |= _EVERY_7TH << _first_on(weekday, first)
    for weekday, n in of_week.nth:
        if n != LAST:
            bits |= 1 << _first_on(weekday, first) + 7 * (n - 1)
    return bits


_EVERY_7TH = sum(1 << day for day in range(0, 35, 7))


def _first_on(weekday: int, first: int) -> int:
    """The first day (1 to 7) on a weekday (Sunday 0) of a month whose 1st is a `first` (Monday 0)."""
    return (weekday - 1 - first) % 7 + 1


def _nearest_weekday(day: int, length: int, first: int) -> int:
    """The day from Monday to Friday nearest to `day`, within the month."""
    weekday = (first + day - 1) % 7
    if weekday == 5:  # Saturday: Friday, or Monday when that is another month
        return day - 1 if day > 1 else day + 2
    if weekday == 6:  # Sunday: Monday, or Friday
        return day + 1 if day < length else day - 2
    return day


_LENGTHS = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}


def _can_match(cron: Cron) -> bool:
    """Whether some month it names, in some year, has a matching day. Every kind of month comes up within 400 years."""
    return any(any(cron.day_masks[length - 28]) for month in cron.months for length in _LENGTHS.get(month, (31,)))


# --- warnings ------------------------------------------------------------------------------------------------------


def _day_warnings(day: str, weekday: str) -> Iterator[Remark]:
    """For someone who has not said whether either or both day fields must match."""
    if "*" not in (day, weekday):
        if day.startswith("*") or weekday.startswith("*"):
            yield Remark("both_days")
        else:
            yield Remark("either_day")


def _warnings(second: str, minute: str, hour: str, day: str) -> Iterator[Remark]:
    for field, text in ((_SECOND, second), (_MINUTE, minute), (_HOUR, hour)):
        yield from _step_warnings(field, text)
    if match := re.fullmatch(r"\*/([0-9]+)", day):
        step = int(match[1])
        if 1 < step < 31:
            yield Remark("days_restart", (day, str(step)))


def _step_warnings(field: _Field, text: str) -> Iterator[Remark]:
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None or match[3] is None or match[2] is not None:
            continue
        step, start = int(match[3]), 0 if match[1] == "*" else _value(field, match[1], term)
        if start + step > field.high:
            yield Remark("step_too_large", (term[:20], str(start), match[3][:6]), field.name)
        elif start < step and field.cycle % step:
            yield Remark("step_uneven", (term, str(start)), field.name)
