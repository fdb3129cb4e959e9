"""Whether an answer is a success: status patterns, body conditions, and the sentence about what was broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.model import SuccessRule
from zerocron.core.success import broken_rule, check_status_pattern

STATUSES = range(100, 600)


def accepted(*patterns: str) -> set[int]:
    return {status for status in STATUSES if broken_rule(SuccessRule(patterns), status, None) is None}


def test_without_a_rule_of_its_own_a_job_accepts_200_to_299() -> None:
    assert {status for status in STATUSES if broken_rule(SuccessRule(), status, None) is None} == set(range(200, 300))


@pytest.mark.parametrize(
    ("pattern", "statuses"),
    [
        ("2xx", range(200, 300)),
        ("5XX", range(500, 600)),
        ("404", [404]),
        ("200-204", range(200, 205)),
        ("299-301", [299, 300, 301]),
        ("418-418", [418]),
    ],
)
def test_a_pattern_accepts_exactly_what_it_says(pattern: str, statuses: list[int]) -> None:
    assert accepted(check_status_pattern(pattern)) == set(statuses)


def test_one_of_several_patterns_is_enough() -> None:
    assert accepted("204", "301-302", "4xx") == {204, 301, 302, *range(400, 500)}


def test_no_pattern_at_all_accepts_nothing() -> None:
    assert accepted() == set()


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "2",
        "20",
        "2x",
        "xxx",
        "6xx",
        "0xx",
        "099",
        "600",
        "200-",
        "-299",
        "200-600",
        "200–299",
        "2xx-3xx",
        " 2xx",
        "２xx",
    ],
)
def test_what_is_no_status_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="'2xx', '200-299' or '404'") as refusal:
        check_status_pattern(pattern)
    assert refusal.value.fields[0].field == "success.status"


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(Invalid, match="smaller status first"):
        check_status_pattern("299-200")


def test_a_pattern_that_got_past_the_check_accepts_nothing_rather_than_everything() -> None:
    assert accepted("nonsense") == set()


def test_the_sentence_says_which_status_came_and_which_are_accepted() -> None:
    assert broken_rule(SuccessRule(("2xx", "404")), 500, "") == "The status was 500; the job accepts 2xx, 404."


def test_the_body_must_contain_what_the_rule_asks_for() -> None:
    rule = SuccessRule(body_contains="done")
    assert broken_rule(rule, 200, "all done") is None
    assert broken_rule(rule, 200, "all Done") == "The body does not contain 'done'."
    assert broken_rule(rule, 200, None) == "The body does not contain 'done'."


def test_the_body_must_not_contain_what_the_rule_forbids() -> None:
    rule = SuccessRule(body_not_contains="error")
    assert broken_rule(rule, 200, "fine") is None
    assert broken_rule(rule, 200, None) is None
    assert broken_rule(rule, 200, "an error") == "The body contains 'error'."


def test_a_status_that_is_not_accepted_is_named_before_the_body() -> None:
    broken = broken_rule(SuccessRule(body_contains="x"), 500, "y")
    assert broken is not None
    assert broken.startswith("The status was 500")


def test_a_long_text_of_a_rule_is_shown_shortened() -> None:
    broken = broken_rule(SuccessRule(body_contains="x" * 5_000), 200, "")
    assert broken is not None
    assert len(broken) < 130
    assert "…" in broken


@given(
    status=st.integers(100, 599),
    body=st.none() | st.text(max_size=20),
    contains=st.none() | st.text(max_size=3),
    forbids=st.none() | st.text(max_size=3),
)
def test_an_answer_is_a_success_exactly_when_all_three_conditions_hold(
    status: int, body: str | None, contains: str | None, forbids: str | None
) -> None:
    kept = body or ""
    holds = 200 <= status < 300
    holds = holds and (contains is None or contains in kept)
    holds = holds and (forbids is None or forbids not in kept)
    assert (broken_rule(SuccessRule(("2xx",), contains, forbids), status, body) is None) == holds
