"""The days on which the clocks change under a schedule, and what then becomes of its times.

Owns which words are said of it. It must never decide what runs: it asks cron_next.py, so that it cannot tell another
story.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from zerocron.core.schedule.cron_next import count_local, is_literal, made_good, next_local
from zerocron.core.schedule.cron_parse import Cron
from zerocron.core.schedule.model import Schedule
from zerocron.core.schedule.sentences import Remark, say
from zerocron.core.schedule.zones import END_SECOND, FIRST_SECOND, Segment, segment_at

MOST_CHANGES = 20
MOST_TIMES = 12
LONGEST_LOOK_YEARS = 10
_MOST_TIMES_SAID = 3
_YEAR = 31_556_952
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clocks that skips or repeats times of a schedule."""

    at: int  # the instant of the change
    local_date: date  # of the first time that is skipped or repeated
    kind: Literal["gap", "repeat"]
    times: tuple[str, ...]  # those local times, such as "02:30"; the first MOST_TIMES of `count`
    count: int
    effect: str  # what happens, in a sentence


def clock_changes(schedule: Schedule, *, after: int, years: int = 2, language: str = "en") -> tuple[ClockChange, ...]:
    """The changes within so many years (at most LONGEST_LOOK_YEARS) on which the schedule's policy decides something,
    with what it does in a sentence of the language.

    At most MOST_CHANGES of them, the earliest. None for intervals and single instants, which count real time, nor for
    rhythms (minute or hour begins with `*`), which follow the wall clock under every policy.
    """
    if schedule.kind != "cron" or schedule.compiled().rhythm:
        return ()
    second = max(after // 1000 + 1, FIRST_SECOND)
    end = min(second + min(years, LONGEST_LOOK_YEARS) * _YEAR, END_SECOND)
    if second >= end:
        return ()
    found: list[ClockChange] = []
    before = segment_at(schedule.timezone, max(second - 1, FIRST_SECOND))
    while second < end and len(found) < MOST_CHANGES:
        segment = segment_at(schedule.timezone, second)
        if segment.offset != before.offset and (change := _change(schedule, before, segment, language)):
            found.append(change)
        before, second = segment, segment.end
    return tuple(found)


def _change(schedule: Schedule, before: Segment, segment: Segment, language: str) -> ClockChange | None:
    """What the change at the start of a segment does to the schedule; None when it meets none of its times."""
    cron = schedule.compiled()
    is_gap = segment.gap_from < segment.floor
    low = segment.gap_from if is_gap else segment.start + segment.offset
    count = count_local(cron, low, segment.floor)
    if count == 0:
        return None
    times = _times(cron, low, count)
    said = _listed(times, count)
    came_from, went_to = _clock(segment.start + before.offset), _clock(segment.start + segment.offset)
    fate = _in_gap(schedule, segment, said, count) if is_gap else _repeated(schedule, said, count)
    effect = say(Remark("forward" if is_gap else "back", (came_from, went_to, fate)), language)
    local_date = (_EPOCH + timedelta(seconds=next_local(cron, low))).date()
    return ClockChange(segment.start * 1000, local_date, "gap" if is_gap else "repeat", times, count, effect)


def _in_gap(schedule: Schedule, segment: Segment, said: str | Remark, count: int) -> Remark:
    cron = schedule.compiled()
    slot = made_good(cron, schedule.dst, segment)
    many = "one" if count == 1 else "many"
    if slot is None:
        return Remark(f"{many}_lost", (said,))
    local = slot + segment.offset
    is_its_own = next_local(cron, local) == local
    return Remark(f"{many}_{'covered' if is_its_own else 'moved'}", (said, _clock(local)))


def _repeated(schedule: Schedule, said: str | Remark, count: int) -> Remark:
    both = schedule.dst == "run_both" or is_literal(schedule.compiled(), schedule.dst)
    return Remark(f"{'one' if count == 1 else 'many'}_{'both' if both else 'first'}", (said,))


def _times(cron: Cron, local: int, count: int) -> tuple[str, ...]:
    found: list[str] = []
    for _ in range(min(count, MOST_TIMES)):
        local = next_local(cron, local)
        found.append(_clock(local))
        local += 1
    return tuple(found)


def _listed(times: tuple[str, ...], count: int) -> str | Remark:
    if count == 1:
        return times[0]
    if count <= _MOST_TIMES_SAID:
        return Remark("and", (", ".join(times[: count - 1]), times[count - 1]))
    return Remark("and_more", (", ".join(times[:_MOST_TIMES_SAID]), str(count - _MOST_TIMES_SAID)))


def _clock(local: int) -> str:
    wall = _EPOCH + timedelta(seconds=local)
    return wall.strftime("%H:%M:%S") if wall.second else wall.strftime("%H:%M")
