"""Readings for phrases that are understood and refused: what the person may have meant, as schedules.

Owns the ideas behind each `No` of the tables. It must never accept anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from . import meaning as m
from .draft import Idea, Interval, Refused, simple_ideas
from .fields import LAST_WEEKDAY, Fields
from .times import resolve

_DAY_MS: Final = 86_400_000


def ideas_for(no: m.No, pieces: Sequence[Any]) -> list[Idea]:
    """At most three schedules near this refusal, at the time the phrase said."""
    clocks = [piece for piece in pieces if isinstance(piece, m.Clock)]
    time = clocks[0].times[0] if clocks else m.Time(0)
    try:
        time = resolve(time, None, [])
    except Refused:
        time = m.Time(9)
    base = Fields(frozenset({time.second}), frozenset({time.minute}), frozenset({time.hour}))
    rhythms = [piece for piece in pieces if isinstance(piece, m.Every) and piece.n > 0]
    make = _IDEAS.get(no.reason)
    return make(no, base, rhythms)[:3] if make else []


def _business_hours(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    """The usual office hours in the phrase's rhythm: 9 to 17 on weekdays."""
    step = rhythms[0].n * m.SECONDS.get(rhythms[0].unit, 0) / 60 if rhythms else 60
    week = Fields(weekdays=frozenset(range(1, 6)), hours=frozenset(range(9, 17)))
    if 1 <= step < 60 and step == int(step) and 60 % int(step) == 0:
        return [replace(week, minutes=frozenset(range(0, 60, int(step))), wild=True)]
    return [replace(week, hours=frozenset(range(9, 18)))]


def _fortnight(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    first = replace(base, dates=frozenset({1}))
    if no.unit == "month":
        return [replace(base, dates=frozenset({1, 15})), replace(first, months=frozenset(range(1, 13, 2)))]
    if no.unit == "year":
        return [replace(first, months=frozenset({1, 7})), replace(first, months=frozenset({1}))]
    if no.unit == "day":
        return [Interval(14 * _DAY_MS), replace(base, dates=frozenset({1, 15}))]
    return [Interval((no.n or 14) * _DAY_MS), replace(base, weekdays=frozenset({1, 4}))]


def _intervals(*days: int) -> Callable[[m.No, Fields, list[m.Every]], list[Idea]]:
    return lambda no, base, rhythms: [Interval(n * _DAY_MS) for n in days]


def _nth_day(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    """The 4th day of each month, or every 4 days."""
    dates: list[Idea] = [replace(base, dates=frozenset({no.n}))] if 1 <= no.n <= 31 else []
    return [*dates, Interval(no.n * _DAY_MS)] if 1 < no.n <= 31 else dates


def _nth_weekday(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    """The second Tuesday of each month, every Tuesday, or every 14 days."""
    pairs = frozenset((day, no.n) for day in no.days)
    nth: list[Idea] = [replace(base, weekdays=frozenset(), nth=pairs)] if 1 <= no.n <= 5 else []
    each: list[Idea] = [replace(base, weekdays=no.days)] if no.days else []
    return [*nth, *each, *([Interval(no.n * 7 * _DAY_MS)] if 2 <= no.n <= 50 else [])]


def _near_weekday(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    first = replace(base, weekdays=frozenset(), nth=frozenset({(1, 1)}))
    return [first, replace(base, dates=frozenset({1})), replace(base, dates=frozenset({LAST_WEEKDAY}))]


def _from_end(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    if no.days:
        return [replace(base, weekdays=frozenset(), nth=frozenset((d, order) for d in no.days)) for order in (-1, 4, 3)]
    return [replace(base, dates=frozenset({-1})), replace(base, dates=frozenset({28}))]


def _weekly(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    return [replace(base, weekdays=no.days)] if no.days else [base]


def _yearly(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    return [replace(base, dates=frozenset({1}), months=frozenset({1}))]


def _vague(no: m.No, base: Fields, rhythms: list[m.Every]) -> list[Idea]:
    steps = {"minute": (5, 10), "hour": (120, 180), "day": (1440,)}.get(no.unit or "", (60, 1440))
    return [idea for n in steps for idea in simple_ideas(m.every(n, "minute"))]


_IDEAS: Final[dict[str, Callable[[m.No, Fields, list[m.Every]], list[Idea]]]] = {
    "business_hours": _business_hours,
    "ambiguous_biweekly": _fortnight,
    "fifteen_days": _intervals(14, 15),
    "eight_days": _intervals(7, 8),
    "ambiguous_nth_day": _nth_day,
    "ambiguous_nth_weekday": _nth_weekday,
    "every_n_weeks": _nth_weekday,
    "nearest_weekday": _near_weekday,
    "from_end": _from_end,
    "next_day": _weekly,
    "vague": _vague,
    "week_number": _yearly,
    "day_of_year": _yearly,
}
