"""Gathering: the pieces of a phrase laid out in one draft, or the reason why they cannot be one schedule.

Owns what may be said together and how often. It must never compute a cron field; plan.py does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from . import meaning as m
from .fields import ALL_WEEKDAYS, Fields


@dataclass(frozen=True, slots=True)
class Interval:
    """An idea or a plan: every so many milliseconds."""

    ms: int


@dataclass(frozen=True, slots=True)
class Instant:
    """An idea or a plan: once, in milliseconds since the epoch."""

    ms: int


@dataclass(frozen=True, slots=True)
class Raw:
    """An idea that only an expression can say."""

    cron: str


Idea = Fields | Interval | Instant | Raw


class Refused(Exception):
    """The phrase is understood and is no schedule: a key of MESSAGES, its details, and schedules that come near."""

    def __init__(self, reason: str, detail: str = "", ideas: Sequence[Idea] = (), zone: str | None = None) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.ideas = tuple(ideas)
        self.zone = zone


@dataclass(slots=True)
class Draft:
    """Everything the phrase said, each at most once."""

    rhythms: list[m.Every] = field(default_factory=list)
    count: m.Count | None = None
    clock: m.Clock | None = None
    part: m.PartOfDay | None = None
    days: m.Days | None = None
    without: m.Except | None = None
    nth: m.Nth | None = None
    dates: m.Dates | None = None
    months: m.Months | None = None
    minute: m.Minute | None = None
    start: m.Start | None = None
    window: m.Window | None = None
    zone: m.Zone | None = None
    moment: m.On | m.Ahead | m.After | None = None

    @property
    def restricted(self) -> bool:
        """Whether some days are left out."""
        return any((self.days, self.without, self.nth, self.dates, self.months))

    @property
    def times(self) -> tuple[m.Time, ...]:
        return self.clock.times if self.clock else ()


_PLACES: Final[dict[type, str]] = {
    m.Count: "count",
    m.Clock: "clock",
    m.PartOfDay: "part",
    m.Days: "days",
    m.Except: "without",
    m.Nth: "nth",
    m.Dates: "dates",
    m.Months: "months",
    m.Minute: "minute",
    m.Start: "start",
    m.Window: "window",
    m.Zone: "zone",
    m.On: "moment",
    m.Ahead: "moment",
    m.After: "moment",
}
_SUBJECTS: Final = (m.Days, m.Dates, m.Nth, m.Every, m.Months)


class SaidTwice(Exception):
    """A kind of piece came a second time: the phrase is two schedules, cut at `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def gather(pieces: Sequence[Any]) -> Draft:
    """One draft, or SaidTwice."""
    draft = Draft()
    for at, piece in enumerate(pieces):
        if isinstance(piece, m.Every):
            draft.rhythms.append(piece)
            continue
        place = _PLACES[type(piece)]
        if getattr(draft, place) not in (None, piece):
            while at > 1 and isinstance(piece, m.Clock) and isinstance(pieces[at - 1], _SUBJECTS):
                at -= 1
            raise SaidTwice(at)
        setattr(draft, place, piece)
    return draft


def rhythm(draft: Draft) -> m.Every | None:
    """The one rhythm of the draft. "Every 10 minutes every month" is "every 10 minutes"; others do not stack."""
    rhythms = list(draft.rhythms)
    if draft.count is not None:
        rhythms = _counted(draft, draft.count, rhythms)
    for every in rhythms:
        if not 0 < every.n < 1_000_000_000:
            raise Refused("bad_number")
    if len(rhythms) < 2:
        return rhythms[0] if rhythms else None
    order = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
    first, *others = sorted(rhythms, key=lambda every: order.index(every.unit))
    if any(every.n != 1 or every.unit not in ("day", "month", "year") for every in others if every != first):
        raise Refused("stacked", ideas=simple_ideas(first))
    return first


def _counted(draft: Draft, count: m.Count, rhythms: list[m.Every]) -> list[m.Every]:
    """Twice a day needs two times, once a week one day: then the count says nothing more than they do."""
    unit = count.unit
    if unit is None:
        if count.n == 1 and len(rhythms) == 1 and rhythms[0].n != 1:
            return rhythms  # once every 2 hours
        if len(rhythms) != 1 or rhythms[0].n != 1:
            raise Refused("which_times")
        unit = rhythms[0].unit
        rhythms = []
    said = {
        "day": len(draft.times),
        "week": len(draft.days.days) if draft.days else 0,
        "month": len(draft.dates.dates) if draft.dates else len(draft.nth.pairs) if draft.nth else 0,
    }.get(unit, 0)
    if said not in (0, count.n):
        raise Refused("count_mismatch", f"{count.n}")
    if count.n != 1 and (not said or count.n == 0):
        raise Refused("which_times", ideas=_count_ideas(count.n, unit))
    return [*rhythms, m.Every(Decimal(1), unit)]


def _count_ideas(n: int, unit: m.Unit) -> list[Idea]:
    hours = {2: (9, 18), 3: (8, 13, 18), 4: (8, 12, 16, 20)}.get(n)
    if unit == "day" and hours:
        return [Fields(hours=frozenset(range(0, 24, 24 // n)), wild=True), Fields(hours=frozenset(hours))]
    if unit == "hour" and n and 60 % n == 0:
        return simple_ideas(m.every(60 // n, "minute"))
    days = {2: {1, 4}, 3: {1, 3, 5}, 4: {1, 2, 4, 5}, 5: {1, 2, 3, 4, 5}}.get(n)
    if unit == "week" and days:
        return [Fields(hours=frozenset({9}), weekdays=frozenset(days))]
    if unit == "month" and n == 2:
        return [Fields(hours=frozenset({9}), dates=frozenset({1, 15}))]
    return []


def simple_ideas(every: m.Every, like: Fields | None = None) -> list[Idea]:
    """The rhythm itself when cron says it, else its neighbours that cron says, on the days of `like`."""
    base = like or Fields()
    minutes = every.n * m.SECONDS.get(every.unit, 0) / 60
    if not 0 < minutes <= 1440:
        return []
    exact = [n for n in range(1, 61) if 60 % n == 0] + [60 * n for n in (2, 3, 4, 6, 8, 12, 24)]
    if minutes in exact:
        near = [int(minutes)]
    else:
        near = [n for n in exact if n < minutes][-1:] + [n for n in exact if n > minutes][:1]
    return [replace(base, minutes=minutes_of(n), hours=hours_of(n), wild=n < 1440) for n in near]


def minutes_of(step: int) -> frozenset[int]:
    return frozenset(range(0, 60, step)) if step < 60 else frozenset({0})


def hours_of(step: int) -> frozenset[int]:
    return frozenset(range(24)) if step <= 60 else frozenset(range(0, 24, step // 60))


def weekdays(draft: Draft) -> frozenset[int]:
    """The weekdays that are left."""
    days = draft.days.days if draft.days else ALL_WEEKDAYS
    return days - (draft.without.days if draft.without else frozenset())
