"""Instants as text: there and back without losing a millisecond."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.instants import from_rfc3339, to_rfc3339

END_MS = int(datetime(2500, 1, 1, tzinfo=UTC).timestamp()) * 1000
instants = st.integers(0, END_MS)


@given(instants)
def test_an_instant_survives_the_way_to_text_and_back(instant: int) -> None:
    assert from_rfc3339(to_rfc3339(instant)) == instant


@given(instants)
def test_the_text_is_what_the_standard_library_makes_of_it(instant: int) -> None:
    moment = datetime.fromtimestamp(instant // 1000, UTC).replace(microsecond=instant % 1000 * 1000)
    unit = "milliseconds" if instant % 1000 else "seconds"
    assert to_rfc3339(instant) == moment.isoformat(timespec=unit).replace("+00:00", "Z")


@given(st.lists(instants.map(lambda instant: instant // 1000 * 1000), min_size=2))
def test_whole_seconds_sort_as_text_as_they_do_as_instants(times: list[int]) -> None:
    assert sorted(map(to_rfc3339, times)) == [to_rfc3339(instant) for instant in sorted(times)]


def test_milliseconds_are_shown_only_where_there_are_some() -> None:
    assert to_rfc3339(1_798_794_000_000) == "2027-01-01T09:00:00Z"
    assert to_rfc3339(1_798_794_000_007) == "2027-01-01T09:00:00.007Z"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-01-01T09:00:00Z", 1_798_794_000_000),
        ("2027-01-01T10:00:00+01:00", 1_798_794_000_000),
        ("2027-01-01T04:30:00-04:30", 1_798_794_000_000),
        ("2027-01-01T09:00:00.0079Z", 1_798_794_000_007),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_any_offset_is_read(text: str, instant: int) -> None:
    assert from_rfc3339(text) == instant


@pytest.mark.parametrize("text", ["2027-01-01T09:00:00", "2027-01-01"])
def test_a_time_without_an_offset_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match="needs an offset"):
        from_rfc3339(text)


@pytest.mark.parametrize("text", ["", "now", "1798794000000", "2027-13-01T00:00:00Z", "2027-01-01T25:00:00Z", "9am"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat|month|hour"):
        from_rfc3339(text)
