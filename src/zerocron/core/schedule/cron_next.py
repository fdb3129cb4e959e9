"""Cron slots: a compiled expression and a zone -> instants.

Owns the arithmetic of cron. It must never read text, and never search without an end (zones.END_SECOND).

Why our own evaluator and not cronsim: of the recorded cases cronsim 2.8 answers nine wrongly (instants in the past in a
repeated hour, slots lost or invented around half-hour and midnight changes, one-value ranges with a step), it has no
count and no year, and it walks step by step (40 us a call and more). The tests still use it as a second opinion.

Two layers, both in whole seconds:

    local    the wall clock as a plain number line, where a day is 86,400 s. Times of day are numbered by rank and
             select, days are looked up in the month masks of `Cron`, so counting multiplies instead of walking.
    slots    per zone segment (see zones.py), local answers shifted by its offset.

Clock changes are decided in `_part` alone, by the schedule's policy:

                 a fixed time in a gap                      a fixed time that comes twice
    run_once     one run in the first whole minute after    the first pass only             (Debian's crond)
    skip         does not run                               the first pass only
    run_both     one run in the first whole minute after    both passes

However many times a gap swallows, one run makes them good, and a slot of that very minute is that run. A gap of more
than three hours (a day struck off the calendar, as in Samoa in 2011) is a correction of the calendar: nothing is made
good.

Two kinds of cron are *literal* instead: they fire whenever the wall clock shows a matching time, so not in a gap, and
in both passes. A rhythm (minute or hour begins with `*`) is literal under every policy: every 15 minutes stays every
15 minutes. A fixed time with a second field is literal under `run_once`, which is crond's policy, and crond has no
seconds; whoever chooses another policy gets it.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import date
from typing import Literal

from zerocron.core.schedule.cron_parse import Cron
from zerocron.core.schedule.zones import DAY, END_SECOND, FIRST_SECOND, Segment, segment_at

DstPolicy = Literal["run_once", "skip", "run_both"]
"""What becomes of fixed times of the day when the clocks change; see above."""

_LONGEST_CAUGHT_UP = 3 * 3600
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_NEVER = END_SECOND + 2 * DAY  # a local second after the end in every zone
_LAST_YEAR = 2500


# --- slots ---------------------------------------------------------------------------------------------------------


def next_slot(cron: Cron, zone: str, dst: DstPolicy, second: int) -> int | None:
    """The first slot at or after a UTC second."""
    second = max(second, FIRST_SECOND)
    while second < END_SECOND:
        segment = segment_at(zone, second)
        caught_up, local, _ = _part(cron, dst, segment, second, segment.end)
        if caught_up is not None:
            return caught_up
        found = next_local(cron, local)
        if found - segment.offset < segment.end:
            slot = found - segment.offset
            return slot if slot < END_SECOND else None
        # Nothing up to `found`, so segments that end well before it need no look, once behind any fold met here.
        behind_folds = segment.end - second > 2 * DAY
        second = max(segment.end, found - 2 * DAY) if behind_folds else segment.end
    return None


def count_slots(cron: Cron, zone: str, dst: DstPolicy, start: int, end: int) -> int:
    """How many slots lie in [start, end), UTC seconds."""
    second, end = max(start, FIRST_SECOND), min(end, END_SECOND)
    count = 0
    while second < end:
        segment = segment_at(zone, second)
        caught_up, low, high = _part(cron, dst, segment, second, min(end, segment.end))
        count += count_local(cron, low, high) + (caught_up is not None)
        second = segment.end
    return count


def latest_slots(cron: Cron, zone: str, dst: DstPolicy, start: int, end: int, limit: int) -> list[int]:
    """The newest `limit` slots in [start, end), ascending."""
    start, second = max(start, FIRST_SECOND), min(end, END_SECOND)
    found: list[int] = []
    while second > start and len(found) < limit:
        segment = segment_at(zone, second - 1)
        caught_up, low, high = _part(cron, dst, segment, max(start, segment.start), second)
        while len(found) < limit and (local := previous_local(cron, low, high)) is not None:
            found.append(local - segment.offset)
            high = local
        if caught_up is not None and len(found) < limit:
            found.append(caught_up)
        second = segment.start
    return found[::-1]


def is_literal(cron: Cron, dst: DstPolicy) -> bool:
    """Whether it fires at every matching reading of the wall clock, and at nothing else."""
    return cron.rhythm or (cron.has_seconds and dst == "run_once")


def made_good(cron: Cron, dst: DstPolicy, segment: Segment) -> int | None:
    """The slot that makes good what the gap at the start of a segment has swallowed, if one does."""
    return _part(cron, dst, segment, segment.start, segment.end)[0]


def _part(cron: Cron, dst: DstPolicy, segment: Segment, start: int, end: int) -> tuple[int | None, int, int]:
    """What of a segment counts within [start, end): (the catch-up slot, if any; the local times [low, high) to match).

    The catch-up slot is a UTC second, and comes before every match in [low, high).
    """
    low, high = start + segment.offset, end + segment.offset
    if is_literal(cron, dst):
        return None, low, high
    if dst != "run_both":
        low = max(low, segment.floor)
    if dst == "skip" or not 0 < segment.floor - segment.gap_from <= _LONGEST_CAUGHT_UP:
        return None, low, high
    target = -(-segment.floor // 60) * 60  # the first whole local minute after the gap
    if not low <= target < high or next_local(cron, segment.gap_from) >= segment.floor:
        return None, low, high
    return target - segment.offset, target + 1, high  # a slot of that very minute is the same slot


# --- the wall clock as a number line -------------------------------------------------------------------------------


def next_local(cron: Cron, local: int) -> int:
    """The first matching local second at or after `local`; _NEVER when there is none."""
    day, time = divmod(local, DAY)
    found = _next_day(cron, day)
    if found == day:
        rank = _rank(cron, time)
        if rank < _times(cron):
            return day * DAY + _select(cron, rank)
        found = _next_day(cron, day + 1)
    return _NEVER if found is None else found * DAY + _select(cron, 0)


def previous_local(cron: Cron, low: int, high: int) -> int | None:
    """The last matching local second in [low, high)."""
    day, time = divmod(high, DAY)
    found = _previous_day(cron, day, low // DAY)
    if found == day:
        rank = _rank(cron, time)
        if rank > 0:
            local = day * DAY + _select(cron, rank - 1)
            return local if local >= low else None
        found = _previous_day(cron, day - 1, low // DAY)
    if found is None:
        return None
    local = found * DAY + _select(cron, _times(cron) - 1)
    return local if local >= low else None


def count_local(cron: Cron, low: int, high: int) -> int:
    """How many matching local seconds lie in [low, high)."""
    if high <= low:  # all of a short part of a segment may be a second pass
        return 0
    return _count_before(cron, low // DAY, high) - _count_before(cron, low // DAY, low)


def _count_before(cron: Cron, first_day: int, local: int) -> int:
    """How many matching local seconds lie from the start of `first_day` up to `local`."""
    day, time = divmod(local, DAY)
    count = _count_days(cron, first_day, day) * _times(cron)
    return count + _rank(cron, time) if _count_days(cron, day, day + 1) else count


# --- times of day: rank and select over hours x minutes x seconds ---------------------------------------------------


def _times(cron: Cron) -> int:
    return len(cron.hours) * len(cron.minutes) * len(cron.seconds)


def _rank(cron: Cron, time: int) -> int:
    """How many times of day are earlier than `time` (seconds since midnight)."""
    hour, rest = divmod(time, 3600)
    hours, minutes, seconds = cron.hours, cron.minutes, cron.seconds
    whole_hours = bisect_left(hours, hour)
    rank = whole_hours * len(minutes)
    if whole_hours == len(hours) or hours[whole_hours] != hour:
        return rank * len(seconds)
    minute, second = divmod(rest, 60)
    whole_minutes = bisect_left(minutes, minute)
    rank = (rank + whole_minutes) * len(seconds)
    if whole_minutes == len(minutes) or minutes[whole_minutes] != minute:
        return rank
    return rank + bisect_left(seconds, second)


def _select(cron: Cron, rank: int) -> int:
    """The time of day (seconds since midnight) that `rank` others precede."""
    rest, second = divmod(rank, len(cron.seconds))
    hour, minute = divmod(rest, len(cron.minutes))
    return cron.hours[hour] * 3600 + cron.minutes[minute] * 60 + cron.seconds[second]


# --- days, numbered from 1970-01-01 ---------------------------------------------------------------------------------

_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _length(year: int, month: int) -> int:
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return _MONTH_LENGTHS[month]


def _mask(cron: Cron, year: int, month: int, length: int, first: int) -> int:
    """The matching days of a month as bits, given its length and the weekday of its first day (Monday 0)."""
    if month not in cron.months or (cron.years is not None and year not in cron.years):
        return 0
    return cron.day_masks[length - 28][first]


def _next_day(cron: Cron, day: int) -> int | None:
    """The first matching day at or after `day`."""
    start = date.fromordinal(day + _EPOCH_ORDINAL)
    year, month, wanted = start.year, start.month, start.day
    before = day - wanted  # the number of the day before the 1st
    first = (before + 4) % 7  # 1970-01-01 was a Thursday, 3
    while year <= _LAST_YEAR:
        length = _length(year, month)
        bits = _mask(cron, year, month, length, first) >> wanted << wanted
        if bits:
            return before + (bits & -bits).bit_length() - 1
        before, first, wanted = before + length, (first + length) % 7, 1
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return None


def _previous_day(cron: Cron, day: int, earliest: int) -> int | None:
    """The last matching day at or before `day`, and not before `earliest`."""
    while day >= earliest:
        end = date.fromordinal(day + _EPOCH_ORDINAL)
        before = day - end.day
        length = _length(end.year, end.month)
        bits = _mask(cron, end.year, end.month, length, (before + 4) % 7) & ((2 << end.day) - 1)
        if bits:
            found = before + bits.bit_length() - 1
            return found if found >= earliest else None
        day = before
    return None


def _count_days(cron: Cron, start: int, end: int) -> int:
    """How many matching days lie in [start, end)."""
    count = 0
    while start < end:
        at = date.fromordinal(start + _EPOCH_ORDINAL)
        before = start - at.day
        length = _length(at.year, at.month)
        bits = _mask(cron, at.year, at.month, length, (before + 4) % 7) >> at.day
        after = before + length + 1  # the 1st of the next month
        if end < after:
            bits &= (1 << (end - start)) - 1
        count += bits.bit_count()
        start = after
    return count
