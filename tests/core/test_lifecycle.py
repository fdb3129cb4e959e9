"""The life of a run: the table is sound, and the two verdicts that move along it keep their bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.lifecycle import (
    FINAL,
    OPEN,
    TRANSITIONS,
    WAITING,
    Event,
    Outlook,
    Verdict,
    advance,
    settle,
    settle_lost,
    settle_shortage,
)
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
from zerocron.core.retry import shortage_wait_ms, wait_ms

NOW = 1_800_000_000_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
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
    jitter=st.sampled_from(["none", "full"]),
)
outlooks = st.builds(
    Outlook,
    job_status=st.sampled_from(JobStatus),
    overlap=st.sampled_from(Overlap),
    next_slot=st.none() | st.integers(NOW - 2 * DAY_MS, NOW + 2 * DAY_MS) | st.integers(NOW - 5, NOW + 20_000),
    began_at=st.integers(NOW - 2 * DAY_MS, NOW) | st.just(NOW),
    now=st.just(NOW),
)
RUN_ID = "01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"


@given(
    outlook=outlooks,
    succeeded=st.booleans(),
    failures=st.integers(1, 13),
    retry=policies,
    asked_ms=st.none() | st.integers(0, 3_600_000),
    no_retry=st.none() | st.sampled_from([Reason.RETRY_REFUSED, Reason.RETRY_USELESS]),
    budget_ms=st.just(0) | st.integers(0, 2 * DAY_MS),
)
def test_a_verdict_keeps_its_bounds(
    outlook: Outlook,
    succeeded: bool,
    failures: int,
    retry: RetryPolicy,
    asked_ms: int | None,
    no_retry: Reason | None,
    budget_ms: int,
) -> None:
    verdict = settle(
        outlook,
        succeeded=succeeded,
        run_id=RUN_ID,
        failures=failures,
        retry=retry,
        asked_ms=asked_ms,
        no_retry=no_retry,
        budget_ms=budget_ms,
    )
    assert (verdict.retry_at is not None) == (verdict.status == RunStatus.RETRYING)
    if succeeded:
        assert (verdict.status, verdict.reason) == (RunStatus.SUCCEEDED, None)
    elif failures >= retry.attempts:
        reason = Reason.ATTEMPTS_EXHAUSTED if retry.attempts > 1 else None
        assert (verdict.status, verdict.reason) == (RunStatus.FAILED, reason)
    elif no_retry is not None:
        assert (verdict.status, verdict.reason) == (RunStatus.FAILED, no_retry)
    else:
        wait = wait_ms(retry, failures, asked_ms=asked_ms, run_id=RUN_ID) + budget_ms
        assert _is_again(verdict, outlook, wait)


@given(outlook=outlooks, shortages=st.integers(1, 400))
def test_what_this_server_could_not_send_is_tried_again_within_the_same_bounds(
    outlook: Outlook, shortages: int
) -> None:
    assert _is_again(settle_shortage(outlook, shortages=shortages), outlook, shortage_wait_ms(shortages))


def _is_again(verdict: Verdict, outlook: Outlook, wait: int) -> bool:
    """Whether it is tried again after the wait, or says rightly why it is not."""
    retry_at, slot = outlook.now + wait, outlook.next_slot
    if outlook.job_status in ("paused", "disabled", "deleted"):
        return verdict == Verdict(RunStatus.FAILED, Reason(f"job_{outlook.job_status}"))
    if outlook.overlap != Overlap.ALLOW and slot is not None and outlook.now < slot <= retry_at:
        return verdict == Verdict(RunStatus.FAILED, Reason.NO_TIME_FOR_RETRY)
    if retry_at - outlook.began_at > DAY_MS:
        return verdict == Verdict(RunStatus.FAILED, Reason.RETRY_WINDOW_OVER)
    return verdict == Verdict(RunStatus.RETRYING, retry_at=retry_at)


def _failed(*, overlap: Overlap = Overlap.SKIP, next_slot: int | None, retry_after_ms: int | None = None) -> RunStatus:
    return settle(
        Outlook(JobStatus.ACTIVE, overlap, next_slot, NOW, NOW),
        succeeded=False,
        run_id=RUN_ID,
        failures=1,
        retry=RetryPolicy(attempts=2, backoff="fixed", delay_seconds=10),
        asked_ms=retry_after_ms,
    ).status


def test_retries_end_a_day_after_the_first_attempt() -> None:
    slow = RetryPolicy(attempts=10, backoff="fixed", delay_seconds=7 * 3_600)
    ends = []
    for failures in range(1, 5):
        outlook = Outlook(JobStatus.ACTIVE, Overlap.SKIP, None, NOW, NOW + (failures - 1) * 7 * HOUR_MS)
        ends.append(settle(outlook, succeeded=False, run_id=RUN_ID, failures=failures, retry=slow).reason)
    assert ends == [None, None, None, Reason.RETRY_WINDOW_OVER]


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
    elif job_status in ("paused", "disabled", "deleted"):
        assert (verdict.status, verdict.reason) == (RunStatus.CANCELLED, Reason(f"job_{job_status}"))
    elif redeliveries >= REDELIVERIES_MAX:
        assert (verdict.status, verdict.reason) == (RunStatus.FAILED, Reason.REDELIVERIES_EXHAUSTED)
    else:
        assert verdict.status == RunStatus.RETRYING
