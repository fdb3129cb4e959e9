"""Counts by the hour, from how far counters had come when hours began."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.hours import HOUR_MS, Totals, growth, hours_back

NOW = 1_800_014_400_000 + 1_234_567
HOURS = hours_back(NOW, 4)
A, B, C, D = HOURS


def of(count: int) -> Totals:
    return Totals(count, 2 * count, 3 * count)


def test_the_last_hours_end_with_the_one_under_way() -> None:
    assert list(HOURS) == [D - 3 * HOUR_MS, D - 2 * HOUR_MS, D - HOUR_MS, D]
    assert D <= NOW < D + HOUR_MS
    assert hours_back(D, 1)[0] == D


def test_each_hour_has_what_came_between_two_notes() -> None:
    noted = {A: of(10), B: of(15), C: of(15), D: of(40)}
    assert growth(HOURS, HOURS, noted, of(41)) == {A: of(5), B: of(0), C: of(25), D: of(1)}


def test_before_the_first_note_nothing_is_known() -> None:
    assert growth(HOURS, [C, D], {C: of(7), D: of(9)}, of(9)) == {C: of(2), D: of(0)}
    assert growth(HOURS, [], {}, of(9)) == {}


def test_a_team_without_a_note_had_counted_nothing() -> None:
    assert growth(HOURS, [C, D], {D: of(9)}, of(9)) == {C: of(9), D: of(0)}
    assert growth(HOURS, [C, D], {}, of(3)) == {C: of(0), D: of(3)}


def test_while_no_server_was_there_nothing_happened() -> None:
    assert growth(HOURS, [A, D], {A: of(1), D: of(6)}, of(8)) == {A: of(5), B: of(0), C: of(0), D: of(2)}


def test_a_note_before_the_hours_that_are_shown_counts() -> None:
    earlier = A - 5 * HOUR_MS
    assert growth(HOURS, [earlier, C], {earlier: of(1), C: of(6)}, of(6)) == {A: of(0), B: of(0), C: of(0), D: of(0)}


@given(st.lists(st.integers(0, 9), min_size=24, max_size=24), st.sets(st.integers(0, 22)))
def test_nothing_is_counted_twice_and_nothing_is_left_out(grown: list[int], missing: set[int]) -> None:
    hours = hours_back(NOW, 24)
    far = [sum(grown[:index]) for index in range(25)]
    looked_at = [hour for index, hour in enumerate(hours) if index not in missing]
    noted = {hour: of(far[hours.index(hour)]) for hour in looked_at}
    found = growth(hours, looked_at, noted, of(far[24]))
    assert set(found) == set(hours[hours.index(looked_at[0]) :])
    assert sum(one.succeeded for one in found.values()) == far[24] - far[hours.index(looked_at[0])]
