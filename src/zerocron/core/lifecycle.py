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

from zerocron.core.model import REDELIVERIES_MAX, STOPPED, Instant, OnLost, Overlap, Reason, RetryPolicy, RunStatus
from zerocron.core.retry import RETRY_WINDOW_MS, shortage_wait_ms, wait_ms


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


@dataclass(frozen=True, slots=True)
class Outlook:
    """What decides whether a failed run is tried again, and when. `began_at`: when its first attempt was made."""

    job_status: str
    overlap: str
    next_slot: Instant | None
    began_at: Instant
    now: Instant


def settle(
    outlook: Outlook,
    *,
    succeeded: bool,
    run_id: str,
    failures: int,
    retry: RetryPolicy,
    asked_ms: int | None = None,
    no_retry: Reason | None = None,
    budget_ms: int = 0,
) -> Verdict:
    """Judge an attempt that ended with a result.

    `failures` counts the attempts that failed with a recorded result, this one included; an attempt whose node was
    lost, or that this server could not make, does not use up a retry. `asked_ms` is what the target asked to wait,
    `no_retry` why there is no use in trying again, and `budget_ms` how much later the team's retry budget puts it.
    """
    if succeeded:
        return Verdict(advance(RunStatus.RUNNING, Event.SUCCEED))
    failed = advance(RunStatus.RUNNING, Event.FAIL)
    if failures >= retry.attempts:
        return Verdict(failed, Reason.ATTEMPTS_EXHAUSTED if retry.attempts > 1 else None)
    if no_retry is not None:
        return Verdict(failed, no_retry)
    return _again(outlook, wait_ms(retry, failures, asked_ms=asked_ms, run_id=run_id) + budget_ms)


def settle_shortage(outlook: Outlook, *, shortages: int) -> Verdict:
    """Judge an attempt that was not made because this server itself was short of something, for the n-th time."""
    return _again(outlook, shortage_wait_ms(shortages))


def _again(outlook: Outlook, wait: int) -> Verdict:
    """Try again after the wait, or fail where that may not be.

    Retries end at the next slot (promise 9: they never consume or delay it), unless runs may overlap or that slot is
    itself waiting in a backlog; and they end a day after they began.
    """
    failed = advance(RunStatus.RUNNING, Event.FAIL)
    if outlook.job_status in STOPPED:
        return Verdict(failed, STOPPED[outlook.job_status])
    retry_at = outlook.now + wait
    if (
        outlook.overlap != Overlap.ALLOW
        and outlook.next_slot is not None
        and outlook.now < outlook.next_slot <= retry_at
    ):
        return Verdict(failed, Reason.NO_TIME_FOR_RETRY)
    if retry_at > outlook.began_at + RETRY_WINDOW_MS:
        return Verdict(failed, Reason.RETRY_WINDOW_OVER)
    return Verdict(advance(RunStatus.RUNNING, Event.RETRY), retry_at=retry_at)


def settle_lost(*, redeliveries: int, on_lost: str, job_status: str, now: Instant) -> Verdict:
    """Judge an attempt whose node is gone, so that nobody knows whether its request arrived (promises 1 and 2)."""
    if on_lost == OnLost.GIVE_UP:
        return Verdict(advance(RunStatus.RUNNING, Event.LOSE), Reason.NODE_LOST)
    if job_status in STOPPED:
        return Verdict(advance(RunStatus.RUNNING, Event.CANCEL), STOPPED[job_status])
    if redeliveries >= REDELIVERIES_MAX:
        return Verdict(advance(RunStatus.RUNNING, Event.FAIL), Reason.REDELIVERIES_EXHAUSTED)
    return Verdict(advance(RunStatus.RUNNING, Event.REDELIVER), retry_at=now)
