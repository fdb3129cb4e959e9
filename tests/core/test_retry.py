"""How long to wait before the next attempt: the formulas, their bounds, what a target asks for, and the budget."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.model import RetryPolicy
from zerocron.core.retry import (
    BACKOFF_SECONDS_MAX,
    BUDGET_BURST,
    BUDGET_TEAMS_MAX,
    STRATEGIES,
    RetryBudget,
    backoff_ms,
    refuses_retry,
    retry_after_ms,
    shortage_wait_ms,
    strategy_warning,
    wait_ms,
)

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


# the wait itself


def test_without_jitter_the_longer_of_back_off_and_request_is_waited() -> None:
    policy = RetryPolicy(3, "fixed", 10)
    assert [wait_ms(policy, 1, asked_ms=asked, run_id="r") for asked in (None, 0, 9_999, 30_000)] == [
        10_000,
        10_000,
        10_000,
        30_000,
    ]


@given(
    run_id=st.uuids().map(str),
    failures=st.integers(1, 10),
    backoff=st.sampled_from(STRATEGIES),
    delay=st.floats(0, 3_600),
    asked_ms=st.none() | st.integers(0, HOUR_MS),
)
def test_full_jitter_is_a_part_of_the_back_off_behind_what_was_asked_for_and_always_the_same(
    run_id: str, failures: int, backoff: str, delay: float, asked_ms: int | None
) -> None:
    policy = RetryPolicy(10, backoff, delay, "full")
    wait = wait_ms(policy, failures, asked_ms=asked_ms, run_id=run_id)
    assert (asked_ms or 0) <= wait <= (asked_ms or 0) + backoff_ms(policy, failures)
    assert wait == wait_ms(policy, failures, asked_ms=asked_ms, run_id=run_id)


def test_full_jitter_spreads_a_thousand_runs_evenly_over_the_window() -> None:
    policy = RetryPolicy(2, "fixed", 100, "full")
    waits = sorted(wait_ms(policy, 1, asked_ms=None, run_id=f"run {number}") for number in range(1_000))
    tenths = [sum(tenth * 10_000 <= wait < (tenth + 1) * 10_000 for wait in waits) for tenth in range(10)]
    assert min(tenths) > 60
    again = {wait_ms(policy, 2, asked_ms=None, run_id=f"run {number}") for number in range(1_000)}
    assert len(again & set(waits)) < 50, "each failure draws anew"


def test_a_shortage_of_our_own_is_waited_for_twice_as_long_each_time_up_to_five_minutes() -> None:
    assert [shortage_wait_ms(number) // 1000 for number in (1, 2, 3, 4, 5, 6, 7, 8, 100)] == [
        *(5, 10, 20, 40, 80, 160),
        *(300, 300, 300),
    ]


@pytest.mark.parametrize(
    ("status", "headers", "refuses"),
    [
        (489, [], True),
        (500, [("X-0cron-Retry", "no")], True),
        (500, [("x-0CRON-retry", " NO ")], True),
        (500, [("X-0cron-Retry", "yes")], False),
        (500, [("X-0cron-Retry", "")], False),
        (500, [("X-Retry", "no")], False),
        (488, [], False),
    ],
)
def test_a_target_ends_the_attempts_by_a_status_or_a_header(
    status: int, headers: list[tuple[str, str]], refuses: bool
) -> None:
    assert refuses_retry(status, headers) == refuses


# the budget


def planned(budget: RetryBudget, count: int, now: int, team: str = "team") -> list[int]:
    """How much later each of so many retries is made that are decided at this instant."""
    waits = []
    for _ in range(count):
        waits.append(budget.wait_ms(team, now))
        budget.take(team, now)
    return waits


def test_a_burst_of_retries_is_made_at_once_and_what_goes_beyond_it_one_a_second() -> None:
    waits = planned(RetryBudget(20), BUDGET_BURST + 3, NOW)
    assert waits == [0] * BUDGET_BURST + [1_000, 2_000, 3_000]


def test_a_thousand_jobs_that_fail_in_one_second_are_spread_and_the_budget_holds() -> None:
    budget = RetryBudget(20)
    for _ in range(1_000):
        budget.began("team", NOW)
    waits = planned(budget, 1_000, NOW)
    assert waits == sorted(waits)
    assert waits[:BUDGET_BURST] == [0] * BUDGET_BURST
    share = 1_000 / 60 * 20 / 100  # a fifth of a thousand runs a minute
    for second in range(0, waits[-1] // 1000, 10):
        within = sum(second * 1000 < wait <= (second + 10) * 1000 for wait in waits)
        assert within <= 10 * share + 1
    assert 260_000 < waits[-1] < 280_000


def test_what_fails_for_ever_gets_its_share_of_retries_and_no_more() -> None:
    budget = RetryBudget(20)
    made, now = 0, NOW
    for second in range(1_200):
        now = NOW + second * 1000
        for _ in range(50):  # fifty runs a second, each of which fails and would be retried
            budget.began("team", now)
            if budget.wait_ms("team", now) < 5_000:  # else the next slot comes first, and nothing is drawn
                budget.take("team", now)
                made += 1
    assert 0.19 * 60_000 < made < 0.21 * 60_000 + BUDGET_BURST + 5 * 10


def test_a_team_pays_for_itself_alone_and_comes_to_rest() -> None:
    budget = RetryBudget(20)
    assert max(planned(budget, 200, NOW)) == 100_000
    assert planned(budget, 100, NOW, "other") == [0] * 100
    assert budget.wait_ms("team", NOW + 99_000) == 2_000
    assert planned(budget, 100, NOW + 201_000) == [0] * 100
    assert budget.wait_ms("team", NOW) > 0, "a clock that steps back gives nothing"


def test_no_more_teams_are_remembered_than_is_good() -> None:
    budget = RetryBudget(20)
    for number in range(BUDGET_TEAMS_MAX + 10):
        budget.take(f"team {number}", NOW)
    assert len(budget._teams) == BUDGET_TEAMS_MAX
