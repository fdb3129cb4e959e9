"""The nouns: what a run keeps of its job survives being written down."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.model import Definition, Execution, RetryPolicy, SuccessRule

texts = st.text(max_size=20)
definitions = st.builds(
    Definition,
    method=texts,
    url=texts,
    headers=st.lists(st.tuples(texts, texts), max_size=4).map(tuple),
    body=st.none() | texts,
    timeout_seconds=st.floats(0.1, 900),
    retry=st.builds(RetryPolicy, st.integers(1, 10), texts, st.floats(0, 86_400)),
    success=st.builds(SuccessRule, st.lists(texts, max_size=3).map(tuple), st.none() | texts, st.none() | texts),
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
        "retry": [3, "linear", 2.5],
        "success": [["2xx", "404"], "ok", None],
    }
    assert Definition.from_json(written) == Definition(
        "POST",
        "https://example.com/hook",
        (("X-Key", "1"), ("X-Key", "2")),
        "hi",
        30,
        RetryPolicy(3, "linear", 2.5),
        SuccessRule(("2xx", "404"), "ok", None),
    )


def test_an_execution_is_named_by_its_run_and_its_number() -> None:
    execution = Execution("run", 0, 2, "job", "team", "session", "retry", "success", 0, 1, 1.0)
    assert execution.id == "run.2"
