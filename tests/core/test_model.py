"""The nouns: what a run keeps of its job survives being written down."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.model import Definition, Execution, JsonRule, RetryPolicy, SuccessRule

texts = st.text(max_size=20)
definitions = st.builds(
    Definition,
    method=texts,
    url=texts,
    headers=st.lists(st.tuples(texts, texts), max_size=4).map(tuple),
    body=st.none() | texts,
    timeout_seconds=st.floats(0.1, 900),
    retry=st.builds(RetryPolicy, st.integers(1, 10), texts, st.floats(0, 86_400), st.sampled_from(["none", "full"])),
    success=st.builds(
        SuccessRule,
        status=st.lists(texts, max_size=3).map(tuple),
        body_contains=st.none() | texts,
        body_not_contains=st.none() | texts,
        body_matches=st.none() | texts,
        json=st.lists(st.builds(JsonRule, texts, texts), max_size=3).map(tuple),
        headers=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
        max_duration_ms=st.none() | st.integers(1, 900_000),
    ),
    redirects=st.integers(0, 5),
    verify_tls=st.booleans(),
    sign=st.booleans(),
)


@given(definitions)
def test_a_definition_survives_the_way_to_json_and_back(definition: Definition) -> None:
    assert Definition.from_json(json.loads(json.dumps(definition.to_json()))) == definition


def test_a_definition_written_by_the_first_release_is_still_read() -> None:
    written = {
        "method": "POST",
        "url": "https://example.com/hook",
        "headers": [["X-Key", "1"], ["X-Key", "2"]],
        "body": "hi",
        "timeout_seconds": 30,
        "delivery": {
            "retry": {"attempts": 3, "backoff": "linear", "delay_seconds": 2.5, "jitter": "full"},
            "success": {"status": ["2xx", "404"], "body_contains": "k", "json": [["$.a", "1"]], "headers": [["A", ""]]},
            "redirects": 2,
            "verify_tls": False,
            "sign": True,
        },
    }
    assert Definition.from_json(written) == Definition(
        "POST",
        "https://example.com/hook",
        (("X-Key", "1"), ("X-Key", "2")),
        "hi",
        30,
        RetryPolicy(3, "linear", 2.5, "full"),
        SuccessRule(("2xx", "404"), "k", json=(JsonRule("$.a", "1"),), headers=(("A", ""),)),
        redirects=2,
        verify_tls=False,
        sign=True,
    )


def test_what_only_a_newer_release_knows_is_passed_over_and_what_an_older_one_did_not_is_at_its_default() -> None:
    definition = Definition("GET", "https://example.com/", (), None, 30, RetryPolicy(), SuccessRule())
    written = definition.to_json()
    written["delivery"]["retry"]["mood"] = "good"
    written["delivery"]["success"]["mood"] = ["good"]
    written["delivery"]["mood"] = written["mood"] = "good"
    for name in ("json", "headers"):
        del written["delivery"]["success"][name]
    del written["delivery"]["retry"]["jitter"]
    assert Definition.from_json(json.loads(json.dumps(written))) == definition


def test_an_execution_is_named_by_its_run_and_its_number() -> None:
    execution = Execution("run", 0, 2, "job", "team", "session", "retry", "success", 0, 1, 1.0)
    assert execution.id == "run.2"
