"""The days on which the policy for clock changes matters: the right days, told as the slots really are."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from types import FrameType
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.schedule.oracle import Meaning
from tests.core.schedule.strategies import ODD_TIMES, POLICIES, fixed_times

from zerocron.core.schedule import ClockChange, DstPolicy, Schedule, clock_changes
from zerocron.core.schedule.clock_changes import MOST_CHANGES

NOW = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 1000
HOUR_MS = 3_600_000


def cron(text: str, zone: str = "Europe/Paris", dst: DstPolicy = "run_once") -> Schedule:
    return Schedule("cron", text, None, None, zone, dst)


def told(text: str, zone: str = "Europe/Paris", dst: DstPolicy = "run_once") -> list[str]:
    return [f"{change.local_date}: {change.effect}" for change in clock_changes(cron(text, zone, dst), after=NOW)]


def test_two_years_of_a_nightly_job() -> None:
    found = clock_changes(cron("30 2 * * *"), after=NOW)
    gap = "The clocks go forward from 02:00 to 03:00: 02:30 does not exist; it runs at 03:00 instead."
    repeat = "The clocks go back from 03:00 to 02:00: 02:30 comes twice, and runs the first time only."
    assert found == (
        ClockChange(_at(2027, 3, 28, 1), date(2027, 3, 28), "gap", ("02:30",), 1, gap),
        ClockChange(_at(2027, 10, 31, 1), date(2027, 10, 31), "repeat", ("02:30",), 1, repeat),
        ClockChange(_at(2028, 3, 26, 1), date(2028, 3, 26), "gap", ("02:30",), 1, gap),
        ClockChange(_at(2028, 10, 29, 1), date(2028, 10, 29), "repeat", ("02:30",), 1, repeat),
    )


def _at(*utc: int) -> int:
    year, month, day, hour = utc
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "dst", "gap", "repeat"),
    [
        ("30 2 * * *", "skip", "02:30 does not exist, and does not run", "comes twice, and runs the first time only"),
        ("30 2 * * *", "run_both", "02:30 does not exist; it runs at 03:00", "comes twice, and runs both times"),
        ("0,30 2 * * *", "skip", "02:00 and 02:30 do not exist, and do not run", "come twice, and run the first time"),
        ("0,30 2 * * *", "run_once", "do not exist; one run for all of them comes at 03:00", "run the first time only"),
        ("0 2,3 * * *", "run_once", "02:00 does not exist; the run at 03:00 stands for it", "02:00 comes twice"),
        (
            "0-59 2 * * *",
            "run_both",
            "02:00, 02:01, 02:02 and 57 more do not exist",
            "57 more come twice, and run both",
        ),
        ("0 0,10,20 2,3 * * *", "run_both", "the run at 03:00 stands for them", "02:00, 02:10 and 02:20 come twice"),
        (
            "5 30 2 * * *",
            "run_once",
            "02:30:05 does not exist, and does not run",
            "02:30:05 comes twice, and runs both",
        ),
    ],
)
def test_what_happens_is_told_under_each_policy(text: str, dst: DstPolicy, gap: str, repeat: str) -> None:
    found = told(text, dst=dst)
    assert len(found) == 4
    assert gap in found[0]
    assert repeat in found[1]


@pytest.mark.parametrize(
    "schedule",
    [
        cron("0 9 * * *"),  # by day
        cron("30 2 * * MON-SAT"),  # changes are on Sundays
        cron("30 2 * 7 *"),
        cron("0 30 2 * * * 2026"),
        cron("30 2 * * *", "UTC"),
        cron("30 2 * * *", "Asia/Tokyo"),
        cron("*/15 * * * *", dst="skip"),  # a rhythm
        Schedule("interval", None, HOUR_MS, NOW, "Europe/Paris"),
        Schedule("once", None, None, _at(2027, 10, 31, 1), "Europe/Paris"),
    ],
)
def test_where_nothing_is_decided_nothing_is_told(schedule: Schedule) -> None:
    assert clock_changes(schedule, after=NOW) == ()


def test_a_change_at_midnight_is_told_on_the_day_of_its_times() -> None:
    assert told("0 23 * * *", "America/Nuuk")[0].startswith("2027-03-27: The clocks go forward from 23:00 to 00:00:")
    assert told("0 23 * * *", "America/Nuuk")[1].startswith("2027-10-30: The clocks go back from 00:00 to 23:00:")
    assert told("0 0 * * *", "America/Havana")[0].startswith("2027-11-07: The clocks go back from 01:00 to 00:00:")


def test_a_day_struck_off_the_calendar_is_told() -> None:
    samoa = Schedule("cron", "0 12 * * *", None, None, "Pacific/Apia")
    found = clock_changes(samoa, after=_at(2011, 12, 1, 0), years=1)
    assert [(change.local_date, change.effect) for change in found] == [
        (
            date(2011, 12, 30),
            "The clocks go forward from 00:00 to 00:00: 12:00 does not exist, and does not run.",
        )
    ]


def test_the_look_ahead_is_bounded() -> None:
    nightly = cron("30 2 * * *")
    assert len(clock_changes(nightly, after=NOW, years=1)) == 2
    assert clock_changes(nightly, after=NOW, years=0) == clock_changes(nightly, after=NOW, years=-1) == ()
    assert len(clock_changes(nightly, after=NOW, years=10)) == MOST_CHANGES
    assert clock_changes(nightly, after=NOW, years=10_000) == clock_changes(nightly, after=NOW, years=10)
    assert clock_changes(nightly, after=10**18) == ()
    assert clock_changes(nightly, after=-(10**18)) == ()  # Paris had no summer time in 1970 and 1971
    assert clock_changes(nightly, after=_at(2027, 3, 28, 1) - 1000, years=1)[0].at == _at(2027, 3, 28, 1)
    assert clock_changes(nightly, after=_at(2027, 3, 28, 1), years=1)[0].at == _at(2027, 10, 31, 1)


@pytest.mark.parametrize("zone", ["Europe/Dublin", "Africa/Casablanca", "Asia/Gaza"])
def test_two_years_are_told_without_counting_their_seconds(zone: str) -> None:
    """By the calls it makes, which are the same on every machine: it goes from change to change."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    schedule = cron("0-59 0-59 0-23 * * *", zone)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        clock_changes(schedule, after=NOW)
    finally:
        sys.setprofile(before)
    assert 0 < calls < 10_000


@settings(max_examples=200, deadline=None)
@given(fixed_times(), st.sampled_from([odd for odd in ODD_TIMES if odd[0] != "UTC"]), POLICIES)
def test_what_is_told_is_what_happens(meaning: Meaning, odd: tuple[str, int], dst: DstPolicy) -> None:
    """On the days it names, and on no others, the slots are not one for each time of the day, at that time."""
    zone, start = odd
    schedule = Schedule("cron", meaning.text, None, None, zone, dst)
    after = start * 1000
    found = {change.at: change for change in clock_changes(schedule, after=after, years=1)}
    info = ZoneInfo(zone)
    at = after + HOUR_MS
    for _ in range(60):  # the two and a half days around the odd time, hour by hour
        before, now = (_offset(at - HOUR_MS, info), _offset(at, info))
        changes = [change for instant, change in found.items() if at - HOUR_MS < instant <= at]
        if before == now:
            assert not changes
        for change in changes:
            _check(schedule, change, info)
        at += HOUR_MS


def _offset(at: int, info: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(at / 1000, info).utcoffset()


def _check(schedule: Schedule, change: ClockChange, info: ZoneInfo) -> None:
    """The slots of the next three hours, as the wall clock shows them, against the kind and the policy."""
    slots = schedule.latest_between(change.at - 1, change.at + 3 * HOUR_MS, 1_000)
    shown = [datetime.fromtimestamp(slot / 1000, info).strftime("%Y-%m-%d %H:%M") for slot in slots]
    first = f"{change.local_date} {change.times[0]}"
    if change.kind == "repeat":
        assert (first in shown) == (schedule.dst == "run_both")
        assert ("both times" in change.effect) == (schedule.dst == "run_both")
    else:
        assert first not in shown
        if " instead" in change.effect or "stands for" in change.effect:
            assert schedule.dst != "skip"
            assert f"at {shown[0][-5:]}" in change.effect
        else:
            assert "not run" in change.effect
