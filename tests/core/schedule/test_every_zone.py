"""Slots in every time zone of the pinned data, at every change of the clocks from 2020 to 2035.

Zones whose clocks show the same throughout these years are one case; each case is held against the search of every
minute (oracle.py) around each of its changes, and each name of the case against the case. Which zones are alike is read
from the data without the product. From change to change the schedules and the names take turns, so this takes seconds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.schedule.oracle import Meaning, pinned, slots
from tests.core.schedule.strategies import POLICIES, asked, compiled, fixed_times, meanings

from zerocron.core.schedule import DayMatch, DstPolicy, Schedule

HOUR = 3_600
DAY = 86_400
BEGIN = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
END = int(datetime(2036, 1, 1, tzinfo=UTC).timestamp())
DATA = resources.files("tzdata").joinpath("zoneinfo")
NAMES = sorted(set(DATA.joinpath("..", "zones").read_text("ascii").split()) - {"Factory"})
EVERY_POLICY: tuple[DstPolicy, ...] = ("run_once", "skip", "run_both")


def _meaning(minutes: str, hours: str, weekday: str = "*") -> Meaning:
    def values(text: str, count: int) -> frozenset[int]:
        return frozenset(range(count)) if text == "*" else frozenset(map(int, text.split(",")))

    return Meaning(
        text=f"{minutes} {hours} * * {weekday}",
        minutes=values(minutes, 60),
        hours=values(hours, 24),
        days=frozenset(range(1, 32)),
        months=frozenset(range(1, 13)),
        weekdays=values(weekday, 7),
        rhythm="*" in (minutes, hours),
    )


MEANINGS = (
    _meaning("30", "2"),
    _meaning("0,30", "0,1,2,3"),
    _meaning("15", "0,23"),
    _meaning("0,20,40", ",".join(map(str, range(24)))),
    _meaning("30", "1,2", "0"),
    _meaning("1,59", "0,1,2,3,4"),
    _meaning("0", "0,3"),
    _meaning("20", "*"),
    _meaning("*", "1,2"),
)


class Clocks(NamedTuple):
    """What the clocks of a zone show: an offset to begin with, and (UTC second of a change, offset from then on)."""

    offset: int
    changes: tuple[tuple[int, int], ...]


def _offset(zone: str, second: int) -> int:
    delta = datetime.fromtimestamp(second, pinned(zone)).utcoffset()
    assert delta is not None
    return int(delta.total_seconds())


def _clocks(zone: str) -> Clocks:
    """Found by looking once a day, then by halving (test_zones.py: no clocks change there and back within a day)."""
    changes = []
    shown = [(second, _offset(zone, second)) for second in range(BEGIN, END + 1, DAY)]
    for (low, before), (high, after) in pairwise(shown):
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        changes.append((high, after))
    return Clocks(shown[0][1], tuple(changes))


@cache
def _cases() -> dict[Clocks, list[str]]:
    """Every zone, by what its clocks show in these years."""
    found: dict[Clocks, list[str]] = defaultdict(list)
    by_data: dict[bytes, Clocks] = {}
    for zone in NAMES:
        data = DATA.joinpath(*zone.split("/")).read_bytes()  # half of the names are other words for the same file
        if data not in by_data:
            by_data[data] = _clocks(zone)
        found[by_data[data]].append(zone)
    return found


def _schedule(meaning: Meaning, zone: str, dst: DstPolicy) -> Schedule:
    return Schedule("cron", meaning.text, None, None, zone, dst)


def _walk(schedule: Schedule, start: int, end: int) -> list[int]:
    """The slots in [start, end), UTC seconds, one next_after at a time."""
    found: list[int] = []
    after = start * 1000 - 1
    while (slot := schedule.next_after(after)) is not None and slot < end * 1000:
        assert slot > after
        found.append(slot // 1000)
        after = slot
    return found


def test_every_change_of_the_clocks_in_every_zone_matches_a_search_of_every_minute() -> None:
    turn = 0
    for clocks, zones in _cases().items():
        for second, _ in clocks.changes:
            turn += 1
            zone, meaning = zones[turn % len(zones)], MEANINGS[turn % len(MEANINGS)]
            start, end = second // 60 * 60 - 3 * HOUR, second // 60 * 60 + 5 * HOUR
            for dst in EVERY_POLICY:
                wanted = slots(replace(meaning, dst=dst), zone, start, end, warm_up=HOUR)
                found = _walk(_schedule(meaning, zone, dst), start, end)
                assert found == wanted, (zone, meaning.text, dst, datetime.fromtimestamp(second, UTC))
    assert turn > 1_000


def test_every_name_has_the_slots_of_its_case() -> None:
    """Asked just before each change, and once where there is none: one name cannot have another's clocks."""
    for clocks, zones in _cases().items():
        asked_at = [second * 1000 - 1 for second, _ in clocks.changes] or [BEGIN * 1000]
        schedules = [_schedule(MEANINGS[1], zone, "run_both") for zone in zones]
        first, *others = ([schedule.next_after(at) for at in asked_at] for schedule in schedules)
        for zone, found in zip(zones[1:], others, strict=True):
            assert found == first, (zone, zones[0])
        midday = (BEGIN + 10 * DAY) // DAY * DAY
        noon = Schedule("cron", "0 12 * * *", None, None, zones[0]).next_after((midday - DAY) * 1000)
        assert noon is not None
        shown = datetime.fromtimestamp(noon // 1000, pinned(zones[-1]))
        assert (shown.hour, shown.minute) == (12, 0), zones[-1]


@st.composite
def places(draw: st.DrawFn) -> tuple[str, int]:
    """A zone and a UTC second, mostly some hours before a change of its clocks."""
    clocks = draw(st.sampled_from(list(_cases())))
    zone = draw(st.sampled_from(_cases()[clocks]))
    is_near_one = draw(st.integers(0, 3)) > 0
    if clocks.changes and is_near_one:
        second, _ = draw(st.sampled_from(clocks.changes))
        return zone, second // 60 * 60 - draw(st.integers(0, 24 * 60)) * 60
    return zone, draw(st.integers(BEGIN // 60, END // 60)) * 60


@settings(max_examples=150, deadline=None)
@given(st.one_of(meanings(), fixed_times()).flatmap(asked), places())
def test_random_expressions_in_any_zone_match_a_search_of_every_minute(
    asked_for: tuple[Meaning, DayMatch], place: tuple[str, int]
) -> None:
    meaning, day_match = asked_for
    zone, start = place
    end = start + 2 * DAY
    schedule = compiled(meaning, zone, start * 1000, day_match)
    wanted = slots(meaning, zone, start, end)
    assert _walk(schedule, start, min(end, start + 6 * HOUR)) == [slot for slot in wanted if slot < start + 6 * HOUR]
    assert schedule.count_between(start * 1000 - 1, end * 1000 - 1) == len(wanted)
    for after in wanted[:5]:
        assert schedule.next_after(after * 1000 - 1) == after * 1000


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(meanings(), fixed_times()),
    places(),
    POLICIES,
    st.lists(st.integers(0, 2 * DAY * 1000), min_size=2, max_size=12),
)
def test_a_later_question_never_has_an_earlier_answer(
    meaning: Meaning, place: tuple[str, int], dst: DstPolicy, instants: list[int]
) -> None:
    zone, start = place
    schedule = compiled(replace(meaning, dst=dst), zone, start * 1000)
    before = 0
    for instant in sorted(start * 1000 + later for later in instants):
        slot = schedule.next_after(instant)
        if slot is None:
            continue  # a day that comes again only after the year 2499
        assert slot > instant
        assert slot >= before
        before = slot
