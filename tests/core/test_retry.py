"""How long to wait before the next attempt: the formulas, their bounds, and what a target may ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.model import RetryPolicy
from zerocron.core.retry import BACKOFF_SECONDS_MAX, STRATEGIES, backoff_ms, retry_after_ms, strategy_warning

NOW = int(datetime(2027, 5, 3, 12, tzinfo=UTC).timestamp()) * 1000
HOUR_MS = 3_600_000


def waits(backoff: str, delay: float, retries: int) -> list[float]:
    """The seconds before retry number 0, 1, 2..., as the formulas count."""
    policy = RetryPolicy(10, backoff, delay)
    return [backoff_ms(policy, failures) / 1000 for failures in range(1, retries + 1)]


def test_exponential_doubles_from_the_delay_on() -> None:
    assert waits("exponential", 5, 5) == [5, 10, 20, 40, 80]


def test_linear_adds_the_delay_each_time() -> None:
    assert waits("linear", 5, 5) == [5, 10, 15, 20, 25]


def test_fixed_stays_at_the_delay() -> None:
    assert waits("fixed", 5, 5) == [5, 5, 5, 5, 5]


@pytest.mark.parametrize("unknown", ["", "fibonacci", "EXPONENTIAL", "exponential ", "jitter"])
def test_an_unknown_strategy_acts_as_fixed_and_its_owner_is_told(unknown: str) -> None:
    assert waits(unknown, 7, 3) == [7, 7, 7]
    warning = strategy_warning(unknown)
    assert warning is not None
    assert repr(unknown) in warning
    assert "fixed" in warning


@pytest.mark.parametrize("known", STRATEGIES)
def test_a_known_strategy_needs_no_warning(known: str) -> None:
    assert strategy_warning(known) is None


@given(
    backoff=st.sampled_from([*STRATEGIES, "unknown"]),
    delay=st.floats(0, BACKOFF_SECONDS_MAX),
    retries=st.integers(0, 20),
)
def test_the_formulas_hold_for_every_delay_up_to_a_day(backoff: str, delay: float, retries: int) -> None:
    factor = {"exponential": 2**retries, "linear": retries + 1}.get(backoff, 1)
    exact = min(Fraction(delay) * factor, Fraction(BACKOFF_SECONDS_MAX)) * 1000
    assert abs(backoff_ms(RetryPolicy(10, backoff, delay), retries + 1) - exact) <= 1


@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("0", 0),
        ("1", 1_000),
        (" 120 ", 120_000),
        ("007", 7_000),
        ("3600", HOUR_MS),
        ("3601", HOUR_MS),
        ("315360000", HOUR_MS),  # ten years
        ("9" * 400, HOUR_MS),
    ],
)
def test_retry_after_in_seconds_is_obeyed_up_to_an_hour(value: str, wait_ms: int) -> None:
    assert retry_after_ms(value, NOW) == wait_ms


@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("Mon, 03 May 2027 12:00:30 GMT", 30_000),
        ("Mon, 03 May 2027 14:00:30 +0200", 30_000),
        ("Mon, 03 May 2027 12:00:30 -0000", 30_000),
        ("Monday, 03-May-27 12:01:00 GMT", 60_000),  # the obsolete form of RFC 850
        ("Mon May  3 12:01:00 2027", 60_000),  # and that of asctime()
        ("Mon, 03 May 2027 11:59:59 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 03 May 2037 12:00:00 GMT", HOUR_MS),
    ],
)
def test_retry_after_as_a_date_is_obeyed_up_to_an_hour(value: str, wait_ms: int) -> None:
    assert retry_after_ms(value, NOW) == wait_ms


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "soon",
        "-1",
        "-120",
        "+5",
        "1.5",
        "1e3",
        "0x10",
        "5 seconds",
        "5,5",
        "١٢",  # digits, but not those of HTTP
        "²",
        "2027-05-03T12:00:30Z",
        "Mon, 99 May 2027 12:00:30 GMT",
        "Mon, 03 May 2027 99:00:30 GMT",
        "Mon, 03 May 99999 12:00:30 GMT",
        "NaN",
        "inf",
    ],
)
def test_junk_in_retry_after_is_ignored(value: str) -> None:
    assert retry_after_ms(value, NOW) is None


@given(st.text(max_size=60) | st.from_regex(r"\A\w{3}, \d{1,2} \w{3} \d{1,6} \d\d:\d\d(:\d\d)? [+-]?\w{1,12}\Z"))
def test_no_retry_after_breaks_anything_or_leaves_its_bounds(value: str) -> None:
    wait = retry_after_ms(value, NOW)
    assert wait is None or 0 <= wait <= HOUR_MS


@given(st.integers(-HOUR_MS, 2 * HOUR_MS).map(lambda ms: ms // 1000 * 1000))
def test_a_date_and_the_seconds_to_it_mean_the_same(ahead_ms: int) -> None:
    date = format_datetime(datetime.fromtimestamp((NOW + ahead_ms) / 1000, UTC), usegmt=True)
    assert retry_after_ms(date, NOW) == retry_after_ms(str(max(0, ahead_ms // 1000)), NOW)
