"""Whether an answer is a success: each kind of rule, what is refused as one, and the sentence about what was broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.model import JsonRule, SuccessRule
from zerocron.core.success import MATCHED_BYTES_MAX, broken_rule, check_path, check_pattern, check_status_pattern

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
    assert broken_rule(rule, 200, "all Done") == "The body does not contain 'done'; it begins with 'all Done'."
    assert broken_rule(rule, 200, None) == "The body does not contain 'done'; it is empty or no text."


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
    assert len(broken) < 150
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


# regular expressions


def test_an_expression_matches_anywhere_in_the_body_or_the_sentence_shows_how_it_begins() -> None:
    rule = SuccessRule(body_matches=r"rows: [1-9]\d*")
    assert broken_rule(rule, 200, "ok, rows: 12") is None
    assert broken_rule(rule, 200, "ok, rows: 0") == (
        r"The body does not match 'rows: [1-9]\\d*'; it begins with 'ok, rows: 0'."
    )
    assert broken_rule(SuccessRule(body_matches="^é.$"), 200, "éü") is None, "of letters, not of bytes"
    assert broken_rule(SuccessRule(body_matches="(?i)DONE"), 200, "Done") is None
    assert broken_rule(SuccessRule(body_matches="^$"), 200, None) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing )"),
        ("[a", "missing ]"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<!a)b", "invalid"),
        ("a**", "bad repetition operator: **"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (".{200}", "it is too big; repeat less"),
        (r"\pL{900}", "pattern too large"),
        ("\ud800", "it is not text"),
    ],
)
def test_an_expression_that_cannot_be_linear_is_refused_with_the_reason(pattern: str, said: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_pattern(pattern)
    assert said in refusal.value.message
    assert refusal.value.fields[0].field == "success.body_matches"


def test_an_expression_that_would_backtrack_for_ever_takes_a_moment() -> None:
    begun = perf_counter()
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        assert broken_rule(SuccessRule(body_matches=check_pattern(pattern)), 200, "a" * 60_000 + "!") is not None
    assert perf_counter() - begun < 30  # for ever, if it backtracked


def test_of_a_long_body_an_expression_sees_the_beginning() -> None:
    rule = SuccessRule(body_matches="end")
    assert broken_rule(rule, 200, "x" * (MATCHED_BYTES_MAX - 3) + "end") is None
    assert broken_rule(rule, 200, "x" * (MATCHED_BYTES_MAX - 2) + "end") is not None
    assert broken_rule(rule, 200, "é" * MATCHED_BYTES_MAX) is not None, "cut in the middle of a letter"


@given(st.text(max_size=30), st.text(max_size=100))
def test_no_expression_and_no_body_breaks_anything(pattern: str, body: str) -> None:
    try:
        check_pattern(pattern)
    except Invalid:
        return
    broken_rule(SuccessRule(body_matches=pattern), 200, body)


@given(st.text(max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_an_escaped_text_matches_where_it_is_contained(text: str, before: str, behind: str) -> None:
    rule = SuccessRule(body_matches=re2.escape(text))
    assert broken_rule(rule, 200, before + text + behind) is None


# JSON

BODY = (
    '{"jobs": [{"state": "done", "rows": 3, "ok": true, "none": null, "a b": 1.5}], "$": {"": "empty"}, "big": 1e400}'
)


def at(path: str, equals: Any) -> SuccessRule:
    return SuccessRule(json=(JsonRule(check_path(path), json.dumps(equals)),))


@pytest.mark.parametrize(
    ("path", "equals"),
    [
        ("$.jobs[0].state", "done"),
        ("$.jobs[0].rows", 3),
        ("$.jobs[0].rows", 3.0),
        ("$.jobs[0].ok", True),
        ("$.jobs[0].none", None),
        ('$.jobs[0]["a b"]', 1.5),
        ('$["jobs"][0]["st\\u0061te"]', "done"),
        ('$["$"][""]', "empty"),
    ],
)
def test_a_place_in_the_body_has_to_equal_what_the_rule_says(path: str, equals: Any) -> None:
    body = BODY.replace("1e400", "1")
    assert broken_rule(at(path, equals), 200, body) is None


@pytest.mark.parametrize(
    ("path", "equals", "said"),
    [
        ("$.jobs[0].rows", 4, "The body has 3 at $.jobs[0].rows; the job expects 4."),
        ("$.jobs[0].rows", "3", "The body has 3 at $.jobs[0].rows; the job expects '3'."),
        ("$.jobs[0].ok", 1, "The body has true at $.jobs[0].ok; the job expects 1."),
        ("$.jobs[0].none", False, "The body has null at $.jobs[0].none; the job expects false."),
        ("$.jobs[0].state", "Done", "The body has 'done' at $.jobs[0].state; the job expects 'Done'."),
        ("$.jobs[1].state", "done", "The body has nothing at $.jobs[1].state; the job expects 'done'."),
        ("$.jobs.state", "done", "The body has nothing at $.jobs.state; the job expects 'done'."),
        ("$[0]", "done", "The body has nothing at $[0]; the job expects 'done'."),
        ("$.jobs", "done", "The body has a list at $.jobs; the job expects 'done'."),
        ("$", None, "The body has an object at $; the job expects null."),
    ],
)
def test_the_sentence_says_what_was_where(path: str, equals: Any, said: str) -> None:
    assert broken_rule(at(path, equals), 200, BODY.replace("1e400", "1")) == said


@pytest.mark.parametrize("body", [None, "", "{", "[" * 100_000, '{"a": NaN}', "ok", "{} {}"])
def test_a_body_that_is_not_json_breaks_the_rule(body: str | None) -> None:
    broken = broken_rule(at("$.a", 1), 200, body)
    assert broken is not None
    assert broken.startswith("The body is not JSON; it ")
    assert len(broken) < 150


@pytest.mark.parametrize(
    "path",
    ["", "a", "$a", "$.", "$..a", "$.*", "$[*]", "$[-1]", "$[1:2]", "$[?(@.a)]", "$['a']", '$["a]', "$.a b", "$ .a",
     "$[", "$.1", '$["\\x"]', "$[0000000]", "$." + ".".join("a" * 21), "$" + "[0]" * 21],
)  # fmt: skip
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_path(path)
    assert refusal.value.fields[0].field == "success.json"


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def leaves(document: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    if isinstance(document, dict):
        for name, value in document.items():
            yield from leaves(value, f"{path}[{json.dumps(name)}]")
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, document


@given(documents, scalars | st.text(max_size=8))
def test_every_leaf_is_found_and_equals_itself_and_nothing_of_another_kind(document: Any, other: Any) -> None:
    body = json.dumps(document)
    for path, value in leaves(document):
        assert broken_rule(at(path, value), 200, body) is None
        same = json.dumps(value) == json.dumps(other) or (
            value == other and isinstance(value, bool) == isinstance(other, bool)
        )
        assert (broken_rule(at(path, other), 200, body) is None) == same


# headers and time


def test_headers_are_compared_by_exact_value_and_any_capitals() -> None:
    rule = SuccessRule(headers=(("X-State", "complete"),))
    assert broken_rule(rule, 200, None, [("x-STATE", " complete ")]) is None
    assert broken_rule(rule, 200, None, [("X-State", "no"), ("X-State", "complete")]) is None
    assert broken_rule(rule, 200, None, [("X-State", "a"), ("X-State", "b")]) == (
        "The header X-State was 'a, b'; the job expects 'complete'."
    )
    assert broken_rule(rule, 200, None, []) == "The header X-State is missing; the job expects 'complete'."


def test_an_answer_may_take_as_long_as_the_rule_says() -> None:
    rule = SuccessRule(max_duration_ms=1_500)
    assert broken_rule(rule, 200, None, duration_ms=1_500.0) is None
    said = "The answer took 1,501 ms; the job accepts at most 1,500 ms."
    assert broken_rule(rule, 200, None, duration_ms=1_500.6) == said


# what is shown


@given(
    st.builds(
        SuccessRule,
        status=st.just(("2xx",)) | st.just(("1xx",)),
        body_contains=st.none() | st.text(max_size=200),
        body_not_contains=st.none() | st.text(max_size=5),
        json=st.just(()) | st.builds(lambda text: (JsonRule("$.a", json.dumps(text)),), st.text(max_size=200)),
        headers=st.just(()) | st.builds(lambda value: (("X-A", value),), st.text(max_size=200)),
        max_duration_ms=st.none() | st.integers(1, 900_000),
    ),
    st.text(max_size=300) | st.builds(lambda text: json.dumps({"a": text}), st.text(max_size=200)),
    st.floats(0, 1e9),
)
def test_a_sentence_is_short_and_ends_with_a_full_stop(rule: SuccessRule, body: str, duration_ms: float) -> None:
    broken = broken_rule(rule, 204, body, [("X-A", body)], duration_ms)
    if broken is not None:
        assert broken.endswith(".")
        assert len(broken) < 1_000
