"""A second opinion on cron, by brute force: it looks at every minute (or second) and shares no code with the product.

It replays what Debian's crond does: a virtual clock follows the wall clock; when the wall clock jumps ahead by up to
three hours, jobs at fixed times are run for the minutes that were lost; when it goes back, they wait until it has
caught up. Jobs with a wildcard hour or minute, and all jobs with a seconds field, run whenever the wall clock matches.

The other two policies, for jobs without a wildcard hour or minute: `skip` runs when a matching time is shown for the
first time, and makes nothing good; `run_both` runs whenever the wall clock matches, and makes good what it jumped over.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from zerocron.core.schedule import DstPolicy

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
    rhythm: bool = True  # minute or hour begins with `*`
    has_seconds: bool = False
    dst: DstPolicy = "run_once"

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


@cache
def pinned(zone: str) -> ZoneInfo:
    """The zone by the pinned data; `ZoneInfo(zone)` prefers the machine's own."""
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)


@lru_cache(maxsize=64)
def wall_clock(zone: str, start: int, end: int, step: int) -> list[tuple[int, datetime]]:
    """(UTC second, what the wall clock shows) from start to end."""
    info = pinned(zone)
    return [(t, datetime.fromtimestamp(t, UTC).astimezone(info).replace(tzinfo=None)) for t in range(start, end, step)]


def slots(meaning: Meaning, zone: str, start: int, end: int, *, warm_up: int | None = None) -> list[int]:
    """The slots in [start, end), in UTC seconds; start is a whole minute.

    The clock is watched from `warm_up` seconds before, as what it showed then matters.
    """
    matches = _matcher(meaning)
    step = 60 if meaning.seconds == {0} else 1
    if meaning.rhythm or (meaning.has_seconds and meaning.dst == "run_once"):
        return [t for t, wall in wall_clock(zone, start, end, step) if matches(wall)]
    if warm_up is None:
        warm_up = 2 * 86_400 if step == 60 else 4 * 3600
    clock = wall_clock(zone, start - warm_up, end, step)
    if meaning.dst == "run_once":
        found = _debian(matches, clock)
    elif meaning.dst == "skip":
        found = _first_passes(matches, clock)
    else:
        found = _both_passes(matches, clock, timedelta(seconds=step))
    return [t for t in found if t >= start]


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


def _first_passes(matches: Callable[[datetime], bool], clock: list[tuple[int, datetime]]) -> Iterator[int]:
    """A matching time counts when it is shown and nothing as late was shown before."""
    latest = datetime.min  # noqa: DTZ901 - wall clocks have no zone here
    for second, wall in clock:
        if wall > latest:
            latest = wall
            if matches(wall):
                yield second


def _both_passes(
    matches: Callable[[datetime], bool], clock: list[tuple[int, datetime]], step: timedelta
) -> Iterator[int]:
    """Every matching time that is shown, and one run in the first whole minute after a jump over others."""
    latest = clock[0][1]
    owed = False
    for second, wall in clock:
        jump = wall - latest
        if step < jump <= LONGEST_JUMP + step:
            owed = any(matches(latest + k * step) for k in range(1, jump // step))
        if matches(wall) or (owed and wall.second == 0):
            yield second
        owed = owed and wall.second != 0
        latest = max(latest, wall)
