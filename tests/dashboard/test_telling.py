"""How instants and numbers are written for a reader."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from zerocron.dashboard.telling import Telling


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", ["100%", "99.99%", "97.53%", "0%", "—"]),
        ("fr", ["100\xa0%", "99,99\xa0%", "97,53\xa0%", "0\xa0%", "—"]),
        ("es", ["100\xa0%", "99,99\xa0%", "97,53\xa0%", "0\xa0%", "—"]),
    ],
)
def test_a_ratio_is_the_whole_only_when_nothing_is_missing(language: str, told: list[str]) -> None:
    telling = Telling(language, ZoneInfo("UTC"), datetime(2027, 1, 1, tzinfo=UTC))

    assert [telling.percent(ratio) for ratio in (1, 0.999999, 0.97534, 0, None)] == told


@pytest.mark.parametrize(
    ("language", "size", "day"), [("en", "4.3 GB", "Mar 9,"), ("fr", "4,3 Go", "9 mars,"), ("es", "4,3 GB", "9 mar,")]
)
def test_sizes_and_days_are_written_as_the_language_does(language: str, size: str, day: str) -> None:
    telling = Telling(language, ZoneInfo("UTC"), datetime(2027, 3, 10, 12, tzinfo=UTC))

    assert telling.size(4_300_000_000) == size
    assert day in telling.when("2027-03-09T07:00:00Z")
