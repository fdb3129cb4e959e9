"""Slots of any schedule: next, count and latest agree with each other, with a brute-force search, and with cronsim."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from time import process_time

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from tests.core.schedule.oracle import Meaning, slots
from tests.core.schedule.strategies import ODD_TIMES, asked, compiled, fixed_times, meanings

from zerocron.core.schedule import DayMatch, DstPolicy, Schedule

HOUR = 3_600
DAY = 86_400
YEAR_MS = 365 * DAY * 1000
# Minutes after the start of an odd time; quarters of an hour are where clocks change.
INSTANTS = st.one_of(st.integers(0, 30 * 60), st.integers(0, 120).map(lambda quarters: quarters * 15))
NOW = int(datetime(2026, 11, 29, tzinfo=UTC).timestamp()) * 1000


def cron(text: str, zone: str = "UTC", *, dst: DstPolicy = "run_once", day_match: DayMatch = "either") -> Schedule:
    return Schedule("cron", " ".join(text.upper().split()), None, None, zone, dst, day_match)


def steps(schedule: Schedule, after: int, until: int) -> list[int]:
    """All slots in (after, until], one next_after at a time."""
    found = []
    at = schedule.next_after(after)
    while at is not None and at <= until:
        found.append(at)
        later = schedule.next_after(at)
        assert later is None or later > at
        at = later
    return found


@settings(max_examples=300, deadline=None)
@given(st.one_of(meanings(), fixed_times()).flatmap(asked), st.sampled_from(ODD_TIMES), INSTANTS)
def test_minutes_match_a_search_of_every_minute(
    asked_for: tuple[Meaning, DayMatch], odd: tuple[str, int], later: int
) -> None:
    """Across every kind of clock change (gaps, folds, half hours, missing midnights, missing days) and policy."""
    meaning, day_match = asked_for
    zone, start = odd
    end = start + 3 * DAY
    schedule = compiled(meaning, zone, start * 1000, day_match)
    wanted = [second * 1000 for second in slots(meaning, zone, start, end)]
    after, until = start * 1000 - 1, end * 1000 - 1
    assert schedule.latest_between(after, until, 10_000) == wanted
    assert schedule.count_between(after, until) == len(wanted)
    if len(wanted) <= 300:
        assert steps(schedule, after, until) == wanted
    middle = (start + later * 60) * 1000 + 1  # from an instant in the thick of it
    rest = [slot for slot in wanted if slot > middle]
    assert schedule.count_between(middle, until) == len(rest)
    assert schedule.count_between(after, middle) == len(wanted) - len(rest)
    assert schedule.latest_between(middle, until, 3) == rest[-3:]
    if rest:
        assert schedule.next_after(middle) == rest[0]


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(meanings(with_seconds=True), fixed_times(with_seconds=True)).flatmap(asked),
    st.sampled_from(ODD_TIMES),
    st.integers(4, 20),
)
def test_seconds_match_a_search_of_every_second(
    asked_for: tuple[Meaning, DayMatch], odd: tuple[str, int], hours: int
) -> None:
    meaning, day_match = asked_for
    zone, start = odd
    start += hours // 4 * 4 * HOUR
    end = start + 4 * HOUR
    schedule = compiled(meaning, zone, start * 1000, day_match)
    wanted = [second * 1000 for second in slots(meaning, zone, start, end)]
    after, until = start * 1000 - 1, end * 1000 - 1
    assert schedule.latest_between(after, until, 20_000) == wanted
    assert schedule.count_between(after, until) == len(wanted)
    assert steps(schedule, after, after + HOUR * 100) == [slot for slot in wanted if slot <= after + HOUR * 100]


@settings(max_examples=100, deadline=None)
@given(meanings(), st.integers(1990, 2090))
def test_days_match_a_search_of_every_day(meaning: Meaning, year: int) -> None:
    """Three years of days, leap days and century ends included."""
    start = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1000
    schedule = compiled(meaning, "UTC", start)
    days = [date(year, 1, 1) + timedelta(days=n) for n in range(3 * 365)]
    matching = [day for day in days if day.month in meaning.months and meaning.matches_day(day)]
    per_day = len(meaning.minutes) * len(meaning.hours)
    assert schedule.count_between(start - 1, start + 3 * YEAR_MS - 1) == per_day * len(matching)
    at = start - 1
    for day in matching[:40]:
        midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000
        first = schedule.next_after(at)
        assert first is not None
        assert midnight <= first < midnight + DAY * 1000
        at = midnight + DAY * 1000 - 1
        assert schedule.latest_between(start - 1, at, 1) > [first - 1]
        assert schedule.count_between(midnight - 1, at) == per_day


@settings(max_examples=100, deadline=None)
@given(meanings(), st.integers(0, 20_000))
def test_cronsim_agrees_where_it_is_right(meaning: Meaning, day: int) -> None:
    """UTC. Left out: what cronsim refuses (wrapping ranges, nW) or misreads (a range of one value with a step)."""
    start = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(days=day)
    text = meaning.text.upper()
    assume(not re.search(r"-[A-Z0-9]+/", text))
    schedule = compiled(meaning, "UTC", int(start.timestamp()) * 1000)
    try:
        theirs = CronSim(text, start)
    except CronSimError:
        reject()
    at = int(start.timestamp()) * 1000
    for _ in range(4):
        at = schedule.next_after(at) or 0
        assert at == int(next(theirs).timestamp()) * 1000


@settings(max_examples=150, deadline=None)
@given(
    meanings().flatmap(asked),
    st.sampled_from(ODD_TIMES),
    st.integers(-40 * DAY * 1000, 40 * DAY * 1000),
    st.integers(0, 10 * DAY * 1000),
    st.integers(0, 200),
)
def test_next_count_and_latest_tell_one_story(
    asked_for: tuple[Meaning, DayMatch], odd: tuple[str, int], shift: int, length: int, limit: int
) -> None:
    meaning, day_match = asked_for
    zone, start = odd
    after = start * 1000 + shift
    schedule = compiled(meaning, zone, after, day_match)
    until = after + length
    count = schedule.count_between(after, until)
    if count > 500:
        latest = schedule.latest_between(after, until, limit)
        assert len(latest) == limit
        assert steps(schedule, latest[0] - 1, until) == latest if latest else True
        return
    found = steps(schedule, after, until)
    assert count == len(found)
    assert schedule.latest_between(after, until, limit) == (found[-limit:] if limit else [])


@given(
    st.integers(1, 366 * DAY).map(lambda seconds: seconds * 1000), st.integers(0, 2**42), st.integers(-(10**6), 10**6)
)
def test_an_interval_keeps_its_beat(every: int, anchor: int, beats: int) -> None:
    schedule = Schedule("interval", None, every, anchor, "UTC")
    after = anchor + beats * every // 7
    slot = schedule.next_after(after)
    if slot is None:
        assert after + 2 * every > int(datetime(2499, 1, 1, tzinfo=UTC).timestamp()) * 1000
        return
    assert slot > max(after, anchor)
    assert (slot - anchor) % every == 0
    assert slot - every <= max(after, anchor)
    assert schedule.count_between(after, slot) == 1
    assert schedule.count_between(after, slot - 1) == 0
    assert schedule.latest_between(after, slot + 3 * every, 2) == [slot + 2 * every, slot + 3 * every][:2]


def test_a_single_instant_is_one_slot() -> None:
    schedule = Schedule("once", None, None, 5_000, "UTC")
    assert schedule.next_after(4_999) == 5_000
    assert schedule.next_after(5_000) is None
    assert schedule.next_after(-1) == 5_000
    assert schedule.count_between(0, 10_000) == 1
    assert schedule.count_between(5_000, 10_000) == 0
    assert schedule.latest_between(0, 10_000, 5) == [5_000]
    assert schedule.latest_between(5_000, 10_000, 5) == []


@pytest.mark.parametrize(
    "schedule",
    [
        cron("0 9 * * *", "Europe/Paris"),
        Schedule("interval", None, 60_000, 0, "UTC"),
        Schedule("once", None, None, 9, "UTC"),
    ],
    ids=lambda schedule: schedule.kind,
)
def test_an_empty_or_backward_span_holds_nothing(schedule: Schedule) -> None:
    assert schedule.count_between(NOW, NOW) == 0
    assert schedule.count_between(NOW, 0) == 0
    assert schedule.latest_between(NOW, NOW, 5) == []
    assert schedule.latest_between(NOW, 0, 5) == []
    assert schedule.latest_between(0, NOW, 0) == []
    assert schedule.latest_between(0, NOW, -1) == []


@pytest.mark.parametrize("text", ["* * * * *", "0 9 * * *", "0 0 29 2 */7", "* * * * * *", "0 0 0 1 1 ? 2030"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "Pacific/Kiritimati"])
def test_time_before_1970_and_after_2499_is_empty(text: str, zone: str) -> None:
    schedule = cron(text.replace("?", "*"), zone)
    first = schedule.next_after(-(10**18))
    assert first is not None
    assert first >= 0
    end = int(datetime(2500, 1, 1, tzinfo=UTC).timestamp()) * 1000
    last = schedule.latest_between(0, 10**18, 1)[0]
    assert last < end
    assert schedule.next_after(last) is None
    assert schedule.next_after(10**18) is None
    assert schedule.count_between(end, 10**18) == 0
    assert schedule.count_between(last - 1, 10**18) == 1


def test_a_rare_schedule_is_not_lost_in_a_repeated_hour() -> None:
    """Asked in the first pass of its last slot: the next one is the same reading of the clock, not a year away."""
    schedule = cron("*/30 2 31 10 *", "Europe/Paris")
    first_pass = int(datetime(2027, 10, 31, 0, 30, tzinfo=UTC).timestamp()) * 1000
    assert schedule.next_after(first_pass) == first_pass + HOUR * 1000 // 2
    assert schedule.next_after(first_pass + HOUR * 1000 // 2) == first_pass + HOUR * 1000


def test_a_repeated_hour_over_the_seam_of_two_stretches_is_still_a_repeat() -> None:
    first_pass = int(datetime(2185, 11, 6, 8, 30, tzinfo=UTC).timestamp()) * 1000
    schedule = cron("30 1 * * *", "America/Los_Angeles")
    assert schedule.next_after(first_pass - 1) == first_pass
    assert schedule.next_after(first_pass) == first_pass + 25 * HOUR * 1000
    assert schedule.count_between(first_pass, first_pass + 24 * HOUR * 1000) == 0


def test_a_span_that_lies_within_a_second_pass_holds_nothing() -> None:
    """South Sudan, 31 January 2021: 23:00 came back just as midnight was due; midnight itself came an hour later."""
    second_pass = int(datetime(2021, 1, 31, 21, 0, tzinfo=UTC).timestamp()) * 1000
    schedule = cron("0 0,23 * * *", "Africa/Juba")
    assert schedule.count_between(second_pass - 1, second_pass) == 0
    assert schedule.count_between(second_pass - 1, second_pass + HOUR * 1000 - 1) == 0
    assert schedule.latest_between(second_pass - 1, second_pass + HOUR * 1000 - 1, 9) == []
    assert schedule.next_after(second_pass) == second_pass + HOUR * 1000


def test_the_last_interval_is_before_the_year_2500() -> None:
    schedule = Schedule("interval", None, 366 * DAY * 1000, 0, "UTC")
    (last,) = schedule.latest_between(0, 10**18, 1)
    assert schedule.next_after(last) is None
    assert schedule.next_after(10**18) is None
    assert schedule.count_between(0, 10**18) == last // (366 * DAY * 1000)


def test_a_year_ends_a_schedule() -> None:
    schedule = cron("0 30 9 1 1,7 * 2027-2028", "Europe/Paris")
    found = steps(schedule, NOW, NOW + 10 * YEAR_MS)
    assert [datetime.fromtimestamp(slot / 1000, UTC).isoformat() for slot in found] == [
        "2027-01-01T08:30:00+00:00",
        "2027-07-01T07:30:00+00:00",
        "2028-01-01T08:30:00+00:00",
        "2028-07-01T07:30:00+00:00",
    ]
    assert schedule.count_between(NOW, NOW + 10 * YEAR_MS) == 4


@pytest.mark.parametrize(
    ("zone", "after", "wanted"),
    [
        # 24 h struck off the calendar: a correction, not a clock change, so nothing is made good
        ("Pacific/Apia", "2011-12-29T13:00-10:00", "2011-12-31T12:00+14:00"),
        # three hours are still made good
        ("Antarctica/Casey", "2009-10-17T13:00+08:00", "2009-10-18T12:00+11:00"),
    ],
)
def test_only_short_gaps_are_made_good(zone: str, after: str, wanted: str) -> None:
    start = round(datetime.fromisoformat(after).timestamp() * 1000)
    found = cron("0 12 * * *", zone).next_after(start)
    assert found == round(datetime.fromisoformat(wanted).timestamp() * 1000)


def test_a_gap_that_ends_inside_a_minute_is_made_good_in_the_next_one() -> None:
    """Liberia moved from -00:44:30 to UTC on 7 January 1972: 00:00:00 became 00:44:30."""
    start = round(datetime.fromisoformat("1972-01-06T12:00Z").timestamp() * 1000)
    schedule = cron("0,10,50 0 * * *", "Africa/Monrovia")
    found = [
        datetime.fromtimestamp(slot / 1000, UTC).isoformat() for slot in steps(schedule, start, start + DAY * 1000)
    ]
    assert found == ["1972-01-07T00:45:00+00:00", "1972-01-07T00:50:00+00:00"]


PARIS_GAP = (datetime(2027, 3, 27, 23, tzinfo=UTC), datetime(2027, 3, 28, 22, tzinfo=UTC))  # 28 March 2027
PARIS_FOLD = (datetime(2027, 10, 30, 22, tzinfo=UTC), datetime(2027, 10, 31, 23, tzinfo=UTC))  # 31 October 2027


@pytest.mark.parametrize(
    ("text", "dst", "gap", "fold"),  # hours and minutes in UTC: the gap is at 01:00, the fold at 01:00
    [
        ("30 2 * * *", "run_once", ["01:00"], ["00:30"]),
        ("30 2 * * *", "skip", [], ["00:30"]),
        ("30 2 * * *", "run_both", ["01:00"], ["00:30", "01:30"]),
        ("0,30 2,3 * * *", "run_once", ["01:00", "01:30"], ["00:00", "00:30", "02:00", "02:30"]),
        ("0,30 2,3 * * *", "skip", ["01:00", "01:30"], ["00:00", "00:30", "02:00", "02:30"]),
        ("0,30 2,3 * * *", "run_both", ["01:00", "01:30"], ["00:00", "00:30", "01:00", "01:30", "02:00", "02:30"]),
        # with a second field: to the letter, unless a policy is chosen
        ("0 30 2 * * *", "run_once", [], ["00:30", "01:30"]),
        ("0 30 2 * * *", "skip", [], ["00:30"]),
        ("0 30 2 * * *", "run_both", ["01:00"], ["00:30", "01:30"]),
        # a rhythm follows the wall clock under every policy
        ("*/30 2 * * *", "run_once", [], ["00:00", "00:30", "01:00", "01:30"]),
        ("*/30 2 * * *", "skip", [], ["00:00", "00:30", "01:00", "01:30"]),
        ("*/30 2 * * *", "run_both", [], ["00:00", "00:30", "01:00", "01:30"]),
    ],
)
def test_a_policy_decides_what_the_clocks_do_to_fixed_times(
    text: str, dst: DstPolicy, gap: list[str], fold: list[str]
) -> None:
    schedule = cron(text, "Europe/Paris", dst=dst)
    for (begin, end), wanted in ((PARIS_GAP, gap), (PARIS_FOLD, fold)):
        after, until = round(begin.timestamp() * 1000) - 1, round(end.timestamp() * 1000) - 1
        found = steps(schedule, after, until)
        assert [datetime.fromtimestamp(slot / 1000, UTC).strftime("%H:%M") for slot in found] == wanted
        assert schedule.count_between(after, until) == len(wanted)
        assert schedule.latest_between(after, until, 9) == found


def test_five_arguments_are_a_schedule_with_the_rules_of_crond() -> None:
    schedule = Schedule("cron", "0 9 13 * FRI", None, None, "UTC")
    assert (schedule.dst, schedule.day_match) == ("run_once", "either")


def test_both_day_fields_must_match_when_that_is_chosen() -> None:
    """Fridays the 13th of 2026 and 2027."""
    after = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000
    found = steps(cron("0 9 13 * FRI", day_match="both"), after, after + 2 * YEAR_MS)
    days = [datetime.fromtimestamp(slot / 1000, UTC).date().isoformat() for slot in found]
    assert days == ["2026-02-13", "2026-03-13", "2026-11-13", "2027-08-13"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0 0 15W * *", ["2027-01-15", "2027-02-15", "2027-03-15", "2027-04-15", "2027-05-14", "2027-06-15"]),
        ("0 0 1W * *", ["2027-01-01", "2027-02-01", "2027-03-01", "2027-04-01", "2027-05-03", "2027-06-01"]),
        ("0 0 31W * *", ["2027-01-29", "2027-03-31", "2027-05-31", "2027-07-30", "2027-08-31", "2027-10-29"]),
        ("0 0 LW * *", ["2027-01-29", "2027-02-26", "2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30"]),
    ],
)
def test_the_nearest_weekday_stays_in_its_month(text: str, days: list[str]) -> None:
    start = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1000 - 1
    found = steps(cron(text), start, start + YEAR_MS)[:6]
    assert [datetime.fromtimestamp(slot / 1000, UTC).date().isoformat() for slot in found] == days


@pytest.mark.parametrize("text", ["* * * * * *", "*/5 1-22 * * 1-6", "0 0 29 2 */7", "30 2 L * *"])
def test_a_year_is_counted_at_once(text: str) -> None:
    schedule = cron(text, "Europe/Paris")
    began = process_time()
    count = schedule.count_between(NOW, NOW + YEAR_MS)
    newest = schedule.latest_between(NOW, NOW + YEAR_MS, 100)
    assert process_time() - began < 0.05
    assert len(newest) == min(count, 100)
    if text == "* * * * * *":
        assert count == 365 * DAY
