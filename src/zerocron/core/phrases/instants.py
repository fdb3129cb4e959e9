"""Schedules that run once: tomorrow at 9, on 3 March 2027 at 10:00, in 20 minutes.

Owns the step from a date and a zone to an instant. It must never read a clock: `now` is an argument. A local time that
does not exist (the spring change) is refused; of one that comes twice the first is taken, with a note.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from zerocron.core.schedule.zones import END_SECOND, local_to_seconds, segment_at

from . import meaning as m
from .draft import Draft, Idea, Instant, Refused
from .fields import Fields
from .times import part_hours, resolve

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = END_SECOND // 86_400 - 2


def wall(at: int, timezone: str) -> datetime:
    """What a clock on the wall of that zone shows at an instant; its own zone is only nominal."""
    second = at // 1000
    return _EPOCH + timedelta(seconds=second + segment_at(timezone, second).offset)


def moment(
    draft: Draft, when: m.On | m.Ahead | m.After, notes: list[tuple[str, str]], timezone: str, now: int
) -> Instant:
    """The one instant, or Refused."""
    if draft.rhythms or draft.count or draft.restricted or draft.window or draft.start or draft.minute:
        raise Refused("bounded")
    try:
        today = wall(now, timezone).date()
        if isinstance(when, m.After) and not (when.unit in ("day", "week") and draft.clock):
            return _after(draft, when, now)
        day = _day(when, today)
    except (OverflowError, ValueError):
        raise Refused("bad_date") from None
    if draft.part and not draft.times:
        raise Refused("which_hour", ideas=_in_part(draft.part, day, timezone, now))
    time = _time(draft, notes)
    if not 0 <= (day - _EPOCH.date()).days < _LAST_DAY:
        raise Refused("bad_date")
    local = datetime(day.year, day.month, day.day, time.hour, time.minute, time.second, tzinfo=UTC)
    return _place(local, notes, timezone, now, yearly=isinstance(when, m.On))


def _after(draft: Draft, when: m.After, now: int) -> Instant:
    if draft.clock or draft.part:
        raise Refused("two_schedules")
    if when.unit not in m.SECONDS:
        raise Refused("vague")
    ahead = when.n * m.SECONDS[when.unit] * 1000
    if not 1000 <= ahead < END_SECOND * 1000 - now:
        raise Refused("bad_number")
    return Instant(now + int(ahead))


def _day(when: m.On | m.Ahead | m.After, today: date) -> date:
    if isinstance(when, m.On):
        return date(when.year, when.month, when.day)
    if isinstance(when, m.Ahead):
        return today + timedelta(days=when.days)
    return today + timedelta(days=int(when.n) * (7 if when.unit == "week" else 1))


def _time(draft: Draft, notes: list[tuple[str, str]]) -> m.Time:
    if len(draft.times) > 1:
        raise Refused("two_schedules")
    if draft.times:
        return resolve(draft.times[0], draft.part.part if draft.part else None, notes)
    notes.append(("no_time", ""))
    return m.Time(0)


def _in_part(part: m.PartOfDay, day: date, timezone: str, now: int) -> list[Idea]:
    """Likely hours of that part of that one day, as far as they are to come."""
    found: list[Idea] = []
    for hour in part_hours(part):
        local = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
        seconds = local_to_seconds(timezone, int(local.timestamp()))
        found += [Instant(second * 1000) for second in seconds[:1] if second * 1000 > now]
    return found


def _place(local: datetime, notes: list[tuple[str, str]], timezone: str, now: int, *, yearly: bool) -> Instant:
    seconds = local_to_seconds(timezone, int(local.timestamp()))
    if not seconds:
        raise Refused("no_such_local_time", timezone)
    if len(seconds) > 1:
        notes.append(("comes_twice", timezone))
    if seconds[0] * 1000 <= now:
        daily = Fields(minutes=frozenset({local.minute}), hours=frozenset({local.hour}))
        again = replace(daily, dates=frozenset({local.day}), months=frozenset({local.month}))
        raise Refused("past", ideas=[again if yearly else daily])
    return Instant(seconds[0] * 1000)
