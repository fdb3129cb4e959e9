"""The life of a run: the table is sound, and the two verdicts that move along it keep their bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.lifecycle import FINAL, OPEN, TRANSITIONS, WAITING, Event, advance, settle, settle_lost
from zerocron.core.model import (
    REASON_TEXTS,
    REDELIVERIES_MAX,
    JobStatus,
    OnLost,
    Overlap,
    Reason,
    RetryPolicy,
    RunStatus,
)
from zerocron.core.retry import backoff_ms

NOW = 1_800_000_000_000
DAY_MS = 86_400_000
EVERY_STEP = list(itertools.product(RunStatus, Event))


@pytest.mark.parametrize("status", sorted(FINAL))
def test_a_final_status_has_no_exit(status: RunStatus) -> None:
    for event in Event:
        with pytest.raises(ValueError, match=f"a run that is {status} cannot {event}"):
            advance(status, event)


def test_every_status_is_reached_from_those_a_run_may_begin_in() -> None:
    reached = {RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SKIPPED}
    while True:
        further = {end for (begin, _), end in TRANSITIONS.items() if begin in reached} - reached
        if not further:
            break
        reached |= further
    assert reached == set(RunStatus)


def test_every_open_status_leads_to_an_end() -> None:
    ending = set(FINAL)
    while more := {begin for (begin, _), end in TRANSITIONS.items() if end in ending} - ending:
        ending |= more
    assert ending == set(RunStatus)


def test_every_event_moves_some_run() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.parametrize(("status", "event"), EVERY_STEP)
def test_only_the_steps_of_the_table_exist(status: RunStatus, event: Event) -> None:
    if (status, event) in TRANSITIONS:
        assert advance(status.value, event) == TRANSITIONS[status, event]
    else:
        with pytest.raises(ValueError, match="cannot"):
            advance(status.value, event)


def test_open_final_and_waiting_are_told_apart() -> None:
    assert set(RunStatus) == OPEN | FINAL
    assert not OPEN & FINAL
    assert sorted(OPEN) == [RunStatus.QUEUED, RunStatus.RETRYING, RunStatus.RUNNING]
    assert sorted(WAITING) == [RunStatus.QUEUED, RunStatus.RETRYING]


def test_every_reason_has_a_sentence() -> None:
    assert set(REASON_TEXTS) == set(Reason)
    for text in REASON_TEXTS.values():
        assert text.endswith(".")


policies = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 10),
    backoff=st.sampled_from(["exponential", "linear", "fixed", "fibonacci"]),
    delay_seconds=st.one_of(st.sampled_from([0.0, 1.0, 5.0, 60.0, 86_400.0]), st.floats(0, 86_400)),
)


@given(
    succeeded=st.booleans(),
    failures=st.integers(1, 13),
    retry=policies,
    retry_after_ms=st.none() | st.integers(0, 3_600_000),
    job_status=st.sampled_from(JobStatus),
    overlap=st.sampled_from(Overlap),
    next_slot=st.none() | st.integers(NOW - 2 * DAY_MS, NOW + 2 * DAY_MS) | st.integers(NOW - 5, NOW + 20_000),
)
def test_a_verdict_keeps_its_bounds(
    succeeded: bool,
    failures: int,
    retry: RetryPolicy,
    retry_after_ms: int | None,
    job_status: JobStatus,
    overlap: Overlap,
    next_slot: int | None,
) -> None:
    verdict = settle(
        succeeded=succeeded,
        failures=failures,
        retry=retry,
        retry_after_ms=retry_after_ms,
        job_status=job_status,
        overlap=overlap,
        next_slot=next_slot,
        now=NOW,
    )
    assert (verdict.retry_at is not None) == (verdict.status == RunStatus.RETRYING)
    if succeeded:
        assert (verdict.status, verdict.reason) == (RunStatus.SUCCEEDED, None)
        return
    assert verdict.status in (RunStatus.FAILED, RunStatus.RETRYING)
    stopped = job_status in (JobStatus.PAUSED, JobStatus.DELETED)
    wanted = NOW + max(backoff_ms(retry, failures), retry_after_ms or 0)
    meets_a_slot = overlap != Overlap.ALLOW and next_slot is not None and NOW < next_slot <= wanted
    assert (verdict.status == RunStatus.RETRYING) == (failures < retry.attempts and not stopped and not meets_a_slot)
    if verdict.retry_at is not None:
        assert NOW <= verdict.retry_at == wanted <= NOW + DAY_MS
        assert verdict.reason is None
    elif failures >= retry.attempts:
        assert verdict.reason == (Reason.ATTEMPTS_EXHAUSTED if retry.attempts > 1 else None)
    elif stopped:
        assert verdict.reason == {"paused": Reason.JOB_PAUSED, "deleted": Reason.JOB_DELETED}[job_status]
    else:
        assert verdict.reason == Reason.NO_TIME_FOR_RETRY


def _failed(*, overlap: Overlap = Overlap.SKIP, next_slot: int | None, retry_after_ms: int | None = None) -> RunStatus:
    return settle(
        succeeded=False,
        failures=1,
        retry=RetryPolicy(attempts=2, backoff="fixed", delay_seconds=10),
        retry_after_ms=retry_after_ms,
        job_status=JobStatus.ACTIVE,
        overlap=overlap,
        next_slot=next_slot,
        now=NOW,
    ).status


def test_a_retry_comes_before_the_next_slot_or_not_at_all() -> None:
    assert _failed(next_slot=NOW + 10_001) == RunStatus.RETRYING
    assert _failed(next_slot=NOW + 10_000) == RunStatus.FAILED
    assert _failed(next_slot=NOW + 1) == RunStatus.FAILED


def test_a_retry_may_pass_slots_that_wait_in_a_backlog() -> None:
    assert _failed(next_slot=NOW) == RunStatus.RETRYING
    assert _failed(next_slot=NOW - 60_000) == RunStatus.RETRYING


def test_a_retry_may_pass_slots_that_may_overlap_it() -> None:
    assert _failed(overlap=Overlap.ALLOW, next_slot=NOW + 1) == RunStatus.RETRYING
    assert _failed(overlap=Overlap.QUEUE, next_slot=NOW + 1) == RunStatus.FAILED


def test_a_target_that_asks_for_more_time_gets_it_unless_a_slot_comes_first() -> None:
    assert _failed(next_slot=NOW + 15_000, retry_after_ms=5_000) == RunStatus.RETRYING
    assert _failed(next_slot=NOW + 15_000, retry_after_ms=20_000) == RunStatus.FAILED


@given(
    redeliveries=st.integers(0, REDELIVERIES_MAX + 3),
    on_lost=st.sampled_from(OnLost),
    job_status=st.sampled_from(JobStatus),
)
def test_a_lost_attempt_is_sent_again_a_bounded_number_of_times(
    redeliveries: int, on_lost: OnLost, job_status: JobStatus
) -> None:
    verdict = settle_lost(redeliveries=redeliveries, on_lost=on_lost, job_status=job_status, now=NOW)
    assert (verdict.retry_at is not None) == (verdict.status == RunStatus.RETRYING)
    if verdict.retry_at is not None:
        assert verdict.retry_at == NOW
        assert redeliveries < REDELIVERIES_MAX
    if on_lost == OnLost.GIVE_UP:
        assert (verdict.status, verdict.reason) == (RunStatus.LOST, Reason.NODE_LOST)
    elif job_status in (JobStatus.PAUSED, JobStatus.DELETED):
        assert verdict.status == RunStatus.CANCELLED
    elif redeliveries >= REDELIVERIES_MAX:
        assert (verdict.status, verdict.reason) == (RunStatus.FAILED, Reason.REDELIVERIES_EXHAUSTED)
    else:
        assert verdict.status == RunStatus.RETRYING
