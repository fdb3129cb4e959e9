"""The geometry of the charts that the server draws."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from zerocron.dashboard import charts


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (1, 1), (1.5, 2), (4, 5), (6, 10), (10, 10), (11, 20), (299, 300), (10_913, 20_000)]
)
def test_the_top_of_an_axis_is_a_round_number(value: float, top: int) -> None:
    assert charts.round_up(value) == top


def test_bars_stand_on_each_other_from_the_ground_up() -> None:
    drawn = charts.bars([{"failed": 1, "succeeded": 3}, {"failed": 0, "succeeded": 0}])

    failed, succeeded = drawn.columns[0]
    assert drawn.top == 5
    assert (failed.kind, failed.y, failed.height) == ("failed", 80, 20)
    assert (succeeded.y, succeeded.height) == (20, 60)
    assert drawn.columns[1] == []


def test_one_failure_among_thousands_is_seen() -> None:
    failed, succeeded = charts.bars([{"failed": 1, "succeeded": 10_000}]).columns[0]

    assert failed.height == charts.SEEN_MIN
    assert succeeded.y >= 0


@given(some.lists(some.fixed_dictionaries({"a": some.integers(0, 10**9), "b": some.integers(0, 10**9)}), max_size=30))
def test_bars_never_leave_their_box(counts: list[dict[str, int]]) -> None:
    for column in charts.bars(counts).columns:
        for block in column:
            assert block.height >= 0
            assert -0.06 <= block.y <= charts.HEIGHT
            assert 0 <= block.x <= block.x + block.width <= charts.WIDTH + 0.1


def test_a_line_breaks_where_a_value_is_missing() -> None:
    drawn = charts.line([0, 50, None, 100, None, 25, 25], 100)

    assert len(re.findall("M", drawn)) == 3
    assert "h" in drawn
    assert drawn.startswith("M71.4 100.0L214.3 50.0M")
    assert charts.line([], 1) == charts.line([None], 1) == ""


def test_a_logarithmic_axis_goes_up_by_tens() -> None:
    scale = charts.Scale.up_to(410)

    assert scale.ticks() == [(1_000, 0), (100, 33.3), (10, 66.7), (1, 100)]
    assert scale.place(1_000) == 1
    assert scale.place(0) == scale.place(1) == 0
    assert scale.place(None) is None
    assert charts.Scale.up_to(0).top == 10
    assert charts.Scale.up_to(1_000).top == 1_000


def test_dots_stand_where_their_runs_were() -> None:
    instants = ("2027-01-01T00:00:00Z", "2027-01-01T00:15:00Z", "2027-01-01T01:00:00Z")
    points = [{"at": at, "duration_ms": 50, "status": "failed"} for at in instants]

    first, second, last = charts.dots(points, 100)
    assert (first.x, second.x, last.x) == (0, 249, 996)
    assert (first.y, first.height, first.kind) == (50, 50, "failed")
    assert charts.dots([], 1) == []
    assert charts.dots(points[:1], 100)[0].x == 0


def test_a_strip_has_its_newest_run_at_the_right() -> None:
    marks = [{"status": status, "scheduled_for": str(n)} for n, status in enumerate(["failed", "succeeded", "skipped"])]
    drawn = charts.strip(marks)

    assert drawn.count == 3
    assert drawn.paths == {"succeeded": "M588 4h4v16h-4z", "skipped": "M594 8h4v12h-4z"}
    assert drawn.failures == [(582, marks[0])]
    assert charts.strip([]).count == 0


def test_a_strip_shows_no_more_than_it_has_room_for() -> None:
    drawn = charts.strip([{"status": "succeeded", "scheduled_for": ""}] * 150)

    assert drawn.count == 100
    assert drawn.paths["succeeded"].startswith("M0 ")


def test_today_is_at_the_right_of_a_monitors_days() -> None:
    whole = charts.days(["up"] * 29 + ["down"])
    young = charts.days(["up", "down"])

    assert whole["down"] == young["down"] == "M174 0h4v20h-4z"
    assert (list(whole), whole["up"].count("M")) == (["up", "down"], 29)
    assert (young["up"], young["none"].count("M")) == ("M168 6h4v14h-4z", 28)
    assert list(charts.days(["down", *["up"] * 30])) == ["up"]
