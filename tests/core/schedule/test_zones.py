"""Time zones: names as IANA has them, data from the pinned package, and every change of the clocks found."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.schedule.strategies import attempt

from zerocron.core.errors import Invalid
from zerocron.core.schedule import Schedule, check_timezone, tzdata_version
from zerocron.core.schedule.zones import DAY, changed_hours, local_to_seconds, segment_at, timezones

NAMES = resources.files("tzdata").joinpath("zones").read_text("ascii").split()


def recorded(name: str) -> list[tuple[int, int]]:
    """(UTC second, offset from then on) as the zone's file lists them since 1970, read here without zoneinfo."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    isut, isstd, leap, times, types, chars = struct.unpack(">6L", data[20:44])
    start = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut  # the 32-bit block is skipped
    assert data[start : start + 4] == b"TZif"
    isut, isstd, leap, times, types, chars = struct.unpack(">6L", data[start + 20 : start + 44])
    at = start + 44
    seconds = struct.unpack(f">{times}q", data[at : at + times * 8])
    indexes = data[at + times * 8 : at + times * 9]
    at += times * 9
    offsets = [struct.unpack(">l", data[at + i * 6 : at + i * 6 + 4])[0] for i in range(types)]
    changes = []
    before = offsets[0]
    for second, index in zip(seconds, indexes, strict=True):
        if offsets[index] != before and second >= 0:
            changes.append((second, offsets[index]))
        before = offsets[index]
    return changes


def test_no_two_changes_hide_within_a_day() -> None:
    """What zones.py relies on when it looks once a day: within one day, the clocks do not change there and back."""
    for name in NAMES:
        changes = recorded(name)
        for (_, before), (second, _), (third, after) in zip(changes, changes[1:], changes[2:], strict=False):
            assert third - second > DAY or before != after, name


@pytest.mark.parametrize(
    "name",
    [
        "Europe/Paris",
        "America/New_York",
        "Africa/Casablanca",
        "Asia/Gaza",
        "Pacific/Apia",
        "Antarctica/Casey",
        "Africa/Monrovia",
    ],
)
def test_segments_are_what_the_zone_file_lists(name: str) -> None:
    found = []
    second, before = 0, segment_at(name, 0).offset
    until = recorded(name)[-1][0] + 1  # from there on the file has a rule instead of a list
    while second < until:
        segment = segment_at(name, second)
        assert segment.start == second < segment.end
        if segment.offset != before:
            found.append((segment.start, segment.offset))
            before = segment.offset
        second = segment.end
    assert found == recorded(name)


@pytest.mark.parametrize("name", ["UTC", "Europe/Paris", "PRC", "EST5EDT", "Etc/GMT+5", "America/Argentina/San_Luis"])
def test_a_zone_name_stays_as_it_is(name: str) -> None:
    assert check_timezone(name) == name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CEST", "Europe/Paris"),
        ("PST", "America/Los_Angeles"),
        ("europe/pariss", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("Paris", "Europe/Paris"),
        ("Asia/Paris", "Europe/Paris"),
        ("America/Los Angeles", "America/Los_Angeles"),
        (" Europe/Paris\x00", "Europe/Paris"),
        ("Asia/Mumbai", "Asia/Kolkata"),
        ("UTC+2", "Etc/GMT-2"),
        ("gmt-03:30", "America/St_Johns"),
        ("+0530", "Asia/Kolkata"),
        ("-08:00", "Etc/GMT+8"),
        ("UTC+0", "Etc/UTC"),
        ("UTC+x", "UTC"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_timezone(name)
    assert refusal.value.fields[0].field == "timezone"
    assert refusal.value.suggestions[0] == meant
    assert meant in refusal.value.message


@pytest.mark.parametrize(
    "name", ["", "Factory", "../../etc/passwd", "zone.tab", "tzdata.zi", "UTC+99", "+05:17", "é" * 99]
)
def test_what_is_no_zone_at_all_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="IANA name"):
        check_timezone(name)


@given(st.text())
def test_no_name_brings_anything_but_a_refusal(name: str) -> None:
    outcome = attempt("0 9 * * *", name, 0)
    if isinstance(outcome, Invalid):
        assert [fault.field for fault in outcome.fields] == ["timezone"]
        assert all(check_timezone(meant) == meant for meant in outcome.suggestions)
    else:
        assert name in NAMES


def test_a_stored_schedule_cannot_reach_files_outside_the_package() -> None:
    with pytest.raises(Invalid):
        Schedule("cron", "0 9 * * *", None, None, "../../../etc/passwd").next_after(0)


def test_the_release_has_its_iana_name() -> None:
    version = tzdata_version()
    assert version[:2] == "20"
    assert version[-1].isalpha()


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("UTC", set()),
        ("Asia/Tokyo", set()),
        ("Europe/Paris", {2}),
        ("Australia/Lord_Howe", {1, 2}),
        ("America/Nuuk", {23}),
    ],
)
def test_the_hours_that_clock_changes_touch(name: str, hours: set[int]) -> None:
    assert changed_hours(name) == hours


@pytest.mark.parametrize(
    ("wall", "shown_at"),
    [
        ("2027-03-28T12:00", ["2027-03-28T10:00"]),
        ("2027-03-28T02:30", []),  # the clocks go forward over it
        ("2026-10-25T02:30", ["2026-10-25T00:30", "2026-10-25T01:30"]),  # and back over it
    ],
)
def test_a_local_time_is_shown_never_once_or_twice(wall: str, shown_at: list[str]) -> None:
    def seconds(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())

    assert local_to_seconds("Europe/Paris", seconds(wall)) == [seconds(text) for text in shown_at]


def test_the_zones_to_choose_from_are_places_and_utc() -> None:
    names = timezones()
    assert names[0] == "UTC"
    assert names[1:] == sorted(set(names[1:]))
    assert {"Europe/Paris", "Asia/Kathmandu", "America/Argentina/Ushuaia"} <= set(names)
    assert not {"US/Eastern", "Etc/GMT+5", "EST", "Factory"} & set(names)
    assert all(check_timezone(name) == name for name in names)
