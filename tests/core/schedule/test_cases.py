"""Cases from the field: what people typed, and when it must run (cron_next.jsonl; each has its `why` and `source`)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from zerocron.core.errors import Invalid
from zerocron.core.schedule import Parsed, parse

CASES = [json.loads(line) for line in Path(__file__).with_name("cron_next.jsonl").read_text("utf-8").splitlines()]

# Forms that the file refuses, as some crons do, and that 0cron takes: what they mean here (UTC, from 2024-01-01).
TAKEN = {
    "cron-wr-003": ["2024-01-01T08:00Z", "2024-01-05T08:00Z", "2024-01-06T08:00Z", "2024-01-07T08:00Z"],
    "cron-wr-004": ["2024-01-06T12:00Z", "2024-01-07T12:00Z", "2024-01-13T12:00Z"],
    "cron-wr-005": ["2024-01-05T00:01Z", "2024-01-05T01:01Z"],
    "cron-wr-006": ["2024-01-07T00:00Z", "2024-01-14T00:00Z"],
    "cron-wr-008": ["2024-01-01T01:00Z", "2024-01-01T02:00Z", "2024-01-01T22:00Z", "2024-01-01T23:00Z"],
    "cron-wr-009": ["2024-01-01T00:01Z", "2024-01-01T00:02Z"],
    "cron-wr-010": ["2024-01-02T00:00Z", "2024-01-03T00:00Z", "2024-01-28T00:00Z"],
    "cron-wr-011": ["2024-02-01T00:00Z", "2024-11-01T00:00Z", "2024-12-01T00:00Z", "2025-01-01T00:00Z"],
    "cron-ln-016": ["2024-01-15T00:00Z", "2024-02-15T00:00Z", "2024-03-15T00:00Z", "2024-04-15T00:00Z"],
    "cron-ln-018": ["2024-02-01T00:00Z", "2024-03-01T00:00Z", "2024-04-01T00:00Z", "2024-05-01T00:00Z"],
    "cron-ln-026": ["2024-01-08T00:00Z", "2024-01-15T00:00Z"],
    "cron-f6-007": ["2024-01-01T12:00Z", "2024-01-02T12:00Z"],
}


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def parsed(case: dict[str, Any]) -> Parsed:
    return parse(case["expr"], timezone=case["tz"], now=instant(case["after"]))


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in cases]


RUNS = [case for case in CASES if not case.get("error")]
REFUSED = [case for case in CASES if case.get("error") and case["id"] not in TAKEN]


@pytest.mark.parametrize("case", named(RUNS))
def test_a_schedule_from_the_field_runs_when_it_should(case: dict[str, Any]) -> None:
    try:
        schedule = parsed(case).schedule
    except Invalid:
        assert case.get("error_also_ok"), case["why"]
        return
    start = instant(case["after"])
    wanted = [instant(text) for text in case["next"]]
    found, at = [], start
    for _ in wanted:
        at = schedule.next_after(at) or 0
        found.append(at)
    assert found == wanted, case["why"]
    assert schedule.count_between(start, wanted[-1]) == len(wanted)
    assert schedule.latest_between(start, wanted[-1], 100) == wanted


@pytest.mark.parametrize("case", named(REFUSED))
def test_a_text_that_is_no_schedule_is_refused_in_words(case: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refusal:
        parsed(case)
    (fault,) = refusal.value.fields
    assert fault.field == ("timezone" if case["kind"] == "tz-invalid" else "schedule")
    assert fault.message


@pytest.mark.parametrize("case", named([case for case in CASES if case["id"] in TAKEN]))
def test_a_form_that_0cron_takes_beyond_cron_has_one_meaning(case: dict[str, Any]) -> None:
    schedule = parsed(case).schedule
    at = instant("2024-01-01T00:00Z")
    for text in TAKEN[case["id"]]:
        at = schedule.next_after(at) or 0
        assert at == instant(text)


def test_every_case_is_used() -> None:
    assert len(CASES) == 260
    assert len(RUNS) + len(REFUSED) + len(TAKEN) == 260
