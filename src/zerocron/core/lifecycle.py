"""The life of a run: one table of transitions, and the two decisions that move along it.

Owns which status may follow which, and why a finished attempt leads to the next status. The ledger's guards, the
tests and the diagram in ARCHITECTURE.md are all derived from `TRANSITIONS`. Must never know how anything is stored.

    queued ──start──▶ running ──succeed──▶ succeeded
       │                 ├──fail──▶ failed
       │                 ├──retry / redeliver──▶ retrying ──start──▶ running
       │                 └──lose──▶ lost            └──supersede──▶ failed
       └──skip──▶ skipped;   queued, retrying, and a running run whose node was lost ──cancel──▶ cancelled
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from zerocron.core.model import (
    REDELIVERIES_MAX,
    Instant,
    JobStatus,
    OnLost,
    Overlap,
    Reason,
    RetryPolicy,
    RunStatus,
)
from zerocron.core.retry import backoff_ms


class Event(StrEnum):
    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    REDELIVER = "redeliver"
    LOSE = "lose"
    SUPERSEDE = "supersede"
    SKIP = "skip"
    CANCEL = "cancel"


TRANSITIONS: dict[tuple[RunStatus, Event], RunStatus] = {
    (RunStatus.QUEUED, Event.START): RunStatus.RUNNING,
    (RunStatus.QUEUED, Event.SKIP): RunStatus.SKIPPED,
    (RunStatus.QUEUED, Event.CANCEL): RunStatus.CANCELLED,
    (RunStatus.RUNNING, Event.SUCCEED): RunStatus.SUCCEEDED,
    (RunStatus.RUNNING, Event.FAIL): RunStatus.FAILED,
    (RunStatus.RUNNING, Event.RETRY): RunStatus.RETRYING,
    (RunStatus.RUNNING, Event.REDELIVER): RunStatus.RETRYING,
    (RunStatus.RUNNING, Event.LOSE): RunStatus.LOST,
    (RunStatus.RUNNING, Event.CANCEL): RunStatus.CANCELLED,
    (RunStatus.RETRYING, Event.START): RunStatus.RUNNING,
    (RunStatus.RETRYING, Event.SUPERSEDE): RunStatus.FAILED,
    (RunStatus.RETRYING, Event.CANCEL): RunStatus.CANCELLED,
}

OPEN = frozenset(status for status, _ in TRANSITIONS)
"""Statuses that something still leads out of."""

FINAL = frozenset(RunStatus) - OPEN
"""Statuses that nothing leads out of."""

WAITING = frozenset({RunStatus.QUEUED, RunStatus.RETRYING})
"""Open statuses in which no request is under way: what pause and delete may cancel at once."""


def advance(status: str, event: Event) -> RunStatus:
    """The status after the event. Raises ValueError for a step the table does not have: a fault of ours."""
    following = TRANSITIONS.get((RunStatus(status), event))
    if following is None:
        raise ValueError(f"a run that is {status} cannot {event}")
    return following


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an ended attempt makes of its run. `retry_at` is set exactly when the status is `retrying`."""

    status: RunStatus
    reason: Reason | None = None
    retry_at: Instant | None = None


def settle(
    *,
    succeeded: bool,
    failures: int,
    retry: RetryPolicy,
    retry_after_ms: int | None,
    job_status: str,
    overlap: str,
    next_slot: Instant | None,
    now: Instant,
) -> Verdict:
    """Judge an attempt that ended with a result.

    `failures` counts the attempts that failed with a recorded result, this one included; an attempt whose node was
    lost does not use up a retry. Retries end at the next slot (promise 9: they never consume or delay it), unless runs
    may overlap or that slot is itself waiting in a backlog.
    """
    if succeeded:
        return Verdict(advance(RunStatus.RUNNING, Event.SUCCEED))
    failed = advance(RunStatus.RUNNING, Event.FAIL)
    if failures >= retry.attempts:
        return Verdict(failed, Reason.ATTEMPTS_EXHAUSTED if retry.attempts > 1 else None)
    if job_status == JobStatus.DELETED:
        return Verdict(failed, Reason.JOB_DELETED)
    if job_status == JobStatus.PAUSED:
        return Verdict(failed, Reason.JOB_PAUSED)
    retry_at = now + max(backoff_ms(retry, failures), retry_after_ms or 0)
    if overlap != Overlap.ALLOW and next_slot is not None and now < next_slot <= retry_at:
        return Verdict(failed, Reason.NO_TIME_FOR_RETRY)
    return Verdict(advance(RunStatus.RUNNING, Event.RETRY), retry_at=retry_at)


def settle_lost(*, redeliveries: int, on_lost: str, job_status: str, now: Instant) -> Verdict:
    """Judge an attempt whose node is gone, so that nobody knows whether its request arrived (promises 1 and 2)."""
    if on_lost == OnLost.GIVE_UP:
        return Verdict(advance(RunStatus.RUNNING, Event.LOSE), Reason.NODE_LOST)
    if job_status == JobStatus.DELETED:
        return Verdict(advance(RunStatus.RUNNING, Event.CANCEL), Reason.JOB_DELETED)
    if job_status == JobStatus.PAUSED:
        return Verdict(advance(RunStatus.RUNNING, Event.CANCEL), Reason.JOB_PAUSED)
    if redeliveries >= REDELIVERIES_MAX:
        return Verdict(advance(RunStatus.RUNNING, Event.FAIL), Reason.REDELIVERIES_EXHAUSTED)
    return Verdict(advance(RunStatus.RUNNING, Event.REDELIVER), retry_at=now)
