"""A second opinion on cron, by brute force: it looks at every minute (or second) and shares no code with the product.

It replays what Debian's crond does: a virtual clock follows the wall clock; when the wall clock jumps ahead by up to
three hours, jobs at fixed times are run for the minutes that were lost; when it goes back, they wait until it has
caught up. Jobs with a wildcard hour or minute, and all jobs with a seconds field, run whenever the wall clock matches.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
LONGEST_JUMP = timedelta(hours=3)


@dataclass(frozen=True)
class Meaning:
    """What an expression must mean, as sets; made together with its text by the strategies, never by parsing it."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    seconds: frozenset[int] = frozenset({0})
    last_day: bool = False
    last_weekday: bool = False
    nth: frozenset[tuple[int, int]] = frozenset()  # (weekday, n), n = 0 for the last
    nearest: frozenset[int] = frozenset()
    both_days: bool = True
    literal: bool = True

    def matches_day(self, wall: date) -> bool:
        of_month, of_week = self._of_month(wall), self._of_week(wall)
        return (of_month and of_week) if self.both_days else (of_month or of_week)

    def _of_month(self, wall: date) -> bool:
        month = range(1, calendar.monthrange(wall.year, wall.month)[1] + 1)
        working = working_days(wall.year, wall.month)
        nearest = {min(working, key=lambda day: abs(day - wanted)) for wanted in self.nearest if wanted in month}
        return (
            wall.day in self.days
            or (self.last_day and wall.day == month[-1])
            or (self.last_weekday and wall.day == working[-1])
            or wall.day in nearest
        )

    def _of_week(self, wall: date) -> bool:
        weekday = wall.isoweekday() % 7
        if weekday in self.weekdays:
            return True
        n = 1
        while (wall - timedelta(days=7 * n)).month == wall.month:
            n += 1
        is_last = (wall + timedelta(days=7)).month != wall.month
        return (weekday, n) in self.nth or ((weekday, 0) in self.nth and is_last)


@lru_cache(maxsize=4096)
def working_days(year: int, month: int) -> list[int]:
    return [row[day] for row in calendar.monthcalendar(year, month) for day in range(5) if row[day]]


@lru_cache(maxsize=64)
def wall_clock(zone: str, start: int, end: int, step: int) -> list[tuple[int, datetime]]:
    """(UTC second, what the wall clock shows) from start to end."""
    info = ZoneInfo(zone)
    return [(t, datetime.fromtimestamp(t, UTC).astimezone(info).replace(tzinfo=None)) for t in range(start, end, step)]


def slots(meaning: Meaning, zone: str, start: int, end: int) -> list[int]:
    """The slots in [start, end), in UTC seconds; start is a whole minute."""
    matches = _matcher(meaning)
    if meaning.literal:
        step = 60 if meaning.seconds == {0} else 1
        return [t for t, wall in wall_clock(zone, start, end, step) if matches(wall)]
    warm_up = 2 * 86_400  # the virtual clock must know what was shown before
    return [t for t in _debian(matches, wall_clock(zone, start - warm_up, end, 60)) if t >= start]


def _matcher(meaning: Meaning) -> Callable[[datetime], bool]:
    day_matches = lru_cache(maxsize=None)(meaning.matches_day)
    return lambda wall: (
        wall.minute in meaning.minutes
        and wall.hour in meaning.hours
        and wall.second in meaning.seconds
        and wall.month in meaning.months
        and day_matches(wall.date())
    )


def _debian(matches: Callable[[datetime], bool], clock: list[tuple[int, datetime]]) -> Iterator[int]:
    virtual = clock[0][1] - MINUTE
    for second, wall in clock:
        jump = wall - virtual - MINUTE
        if jump < timedelta(0):
            continue  # the wall clock went back: wait
        first = virtual + MINUTE if jump <= LONGEST_JUMP else wall
        if any(matches(first + k * MINUTE) for k in range((wall - first) // MINUTE + 1)):
            yield second
        virtual = wall
