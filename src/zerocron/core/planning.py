"""What to do about a due slot: start it, queue it, skip it, or let it wait.

Owns the meaning of `overlap` and `catchup`, and the account of every slot: each slot between the old and the new
`next_run_at` of a plan is in exactly one of its starts, its queued run or its skips. Must never do I/O: it reads a
snapshot of the job and the time, and returns what the ledger is to write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from zerocron.core.lifecycle import WAITING
from zerocron.core.model import Catchup, Cause, Instant, Overlap, Reason, Run, RunStatus
from zerocron.core.schedule import Schedule

MISFIRE_MS = 5_000
"""A slot later than this was missed, and the catch-up policy decides; up to it, it is merely late and runs."""

NO_CATCHUP_MS = 60_000
"""`catchup: none` still runs the newest slot when it is not later than this: a restart is no reason to leave it out."""

CATCHUP_RUNS_MAX = 100
"""`catchup: all` runs the newest this many missed slots; older ones are recorded as skipped."""


@dataclass(frozen=True, slots=True)
class Skip:
    """`count` slots from `first` to `last`, recorded as one skipped run."""

    first: Instant
    last: Instant
    count: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """The fate of a job's due slots. `waits` leaves everything as it is: the active run's end brings the job back."""

    next_run_at: Instant | None
    start: Instant | None = None
    queue: Instant | None = None
    skips: tuple[Skip, ...] = ()
    supersede: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What holds the job's place: the run that counts as under way, and the one that waits behind it.

    A slot at or before `active_since` was due before the active run began; it waits for it instead of being skipped.
    `active_is_owed`: the active run lost its node and waits to be sent again, which no slot may prevent (promise 1).
    """

    active_run_id: str | None = None
    active_status: str | None = None
    active_is_owed: bool = False
    active_since: Instant | None = None
    queued_run_id: str | None = None


@lru_cache(maxsize=8_192)
def next_slot(schedule: Schedule, after: Instant) -> Instant | None:
    """`schedule.next_after(after)`, remembered: thousands of jobs share a schedule and meet at the same second."""
    return schedule.next_after(after)


def plan_slots(
    schedule: Schedule,
    *,
    due: Instant,
    overlap: str,
    catchup: str,
    catchup_window_ms: int,
    occupancy: Occupancy,
    now: Instant,
) -> SlotPlan:
    """Decide about the slots from `due` (the job's `next_run_at`, not later than `now`) on.

    A plan starts at most one run; if more slots are due, the new `next_run_at` is itself due and is claimed again, so
    that a backlog is worked off in order and between other jobs.
    """
    if now - due <= MISFIRE_MS:
        return _plan_slot(schedule, due, (), overlap, occupancy)
    if _must_wait(due, overlap, occupancy):
        return SlotPlan(next_run_at=due, waits=True)
    kept, skips = _sort_missed(schedule, due, catchup, catchup_window_ms, now)
    if kept is None:
        return SlotPlan(next_run_at=next_slot(schedule, now), skips=skips)
    return _plan_slot(schedule, kept, skips, overlap, occupancy)


def _plan_slot(
    schedule: Schedule, slot: Instant, skips: tuple[Skip, ...], overlap: str, occupancy: Occupancy
) -> SlotPlan:
    """Decide about one slot; `skips` are earlier ones already given up."""
    if _must_wait(slot, overlap, occupancy):
        return SlotPlan(next_run_at=slot, skips=skips, waits=not skips)
    following = next_slot(schedule, slot)
    if overlap == Overlap.ALLOW or occupancy.active_run_id is None:
        return SlotPlan(following, start=slot, skips=skips)
    if occupancy.active_status in WAITING:
        return SlotPlan(following, start=slot, skips=skips, supersede=True)
    if overlap == Overlap.QUEUE and occupancy.queued_run_id is None:
        return SlotPlan(following, queue=slot, skips=skips)
    reason = Reason.QUEUE_FULL if overlap == Overlap.QUEUE else Reason.OVERLAP
    return SlotPlan(following, skips=(*skips, Skip(slot, slot, 1, reason)))


def without_run(plan: SlotPlan, slot: Instant, reason: Reason) -> SlotPlan:
    """The plan with the slot that it starts or queues left out. What the slot would have ended goes on."""
    skips = (*plan.skips, Skip(slot, slot, 1, reason))
    return replace(plan, start=None, queue=None, skips=skips, supersede=False)


def _must_wait(slot: Instant, overlap: str, occupancy: Occupancy) -> bool:
    if overlap == Overlap.ALLOW:
        return False
    if occupancy.active_run_id is None:
        return occupancy.queued_run_id is not None  # its turn has come and is being started
    if occupancy.active_is_owed:
        return True
    if occupancy.active_status in WAITING and occupancy.queued_run_id is not None:
        return True  # an earlier slot is queued: ending the active run for this one would let it overtake
    return occupancy.active_since is not None and slot <= occupancy.active_since


def _sort_missed(
    schedule: Schedule, due: Instant, catchup: str, window_ms: int, now: Instant
) -> tuple[Instant | None, tuple[Skip, ...]]:
    """Of the slots in [due, now], the first to run (None: none of them) and the skips before it."""
    before = due - 1
    if catchup == Catchup.ALL:
        newest = [slot for slot in schedule.latest_between(before, now, CATCHUP_RUNS_MAX) if now - slot <= window_ms]
    else:
        limit_ms = min(window_ms, NO_CATCHUP_MS) if catchup == Catchup.NONE else window_ms
        newest = [slot for slot in schedule.latest_between(before, now, 1) if now - slot <= limit_ms]
    kept = newest[0] if newest else None
    end = now if kept is None else kept - 1
    count = schedule.count_between(before, end)
    if count == 0:
        # The stored cursor need not be a slot of the schedule as computed today; it was one, and is accounted for.
        return kept, () if kept == due else (Skip(due, due, 1, Reason.MISSED),)
    last = schedule.latest_between(before, end, 1)[-1]
    # The stored cursor need not be a slot of the schedule as it is computed today (zone data change): it is the first.
    return kept, (Skip(min(due, last), last, count, Reason.MISSED),)


def left_behind(schedule: Schedule, due: Instant | None, now: Instant, reason: Reason) -> Skip | None:
    """The slots from `due` (the job's `next_run_at`) to now, given up because the job was stopped or rescheduled."""
    if due is None or due > now:
        return None
    count = schedule.count_between(due - 1, now)
    if count == 0:
        return Skip(due, due, 1, reason)  # the cursor is no slot of the schedule as computed today; it was one
    return Skip(due, schedule.latest_between(due - 1, now, 1)[-1], count, reason)


def claim_on_place(run: Run) -> tuple[bool, bool, Instant, str]:
    """The order in which runs come by their job's place: nothing may start beside a running one, and no slot may
    overtake one that is owed because its node was lost."""
    return run.status != RunStatus.RUNNING, run.cause != Cause.NODE_LOST, run.scheduled_for, run.id


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """The fate of a waiting run whose time has come: exactly one of these."""

    start: bool = False
    wait_in_queue: bool = False
    wait: bool = False
    supersede: bool = False
    skip: Reason | None = None
    cancel: Reason | None = None


def plan_turn(
    status: str, run_id: str, *, is_owed: bool, overlap: str, occupancy: Occupancy, job_paused: bool
) -> TurnPlan:
    """Decide about a queued or retrying run that is due.

    A retrying run holds the job's place already, unless it began while runs of the job were allowed to overlap: then
    another may hold it, and the retry ends, or waits if it is owed (its node was lost). A queued run (a manual trigger,
    or a slot that waited) needs the place free.
    """
    if job_paused:
        return TurnPlan(cancel=Reason.JOB_PAUSED)
    if overlap == Overlap.ALLOW:
        return TurnPlan(start=True)
    if status == RunStatus.RETRYING:
        if occupancy.active_run_id in (None, run_id):
            return TurnPlan(start=True)
        return TurnPlan(wait=True) if is_owed else TurnPlan(supersede=True)
    if occupancy.queued_run_id not in (None, run_id):
        return TurnPlan(skip=Reason.QUEUE_FULL if overlap == Overlap.QUEUE else Reason.OVERLAP)
    if occupancy.active_run_id in (None, run_id):
        return TurnPlan(start=True)
    if overlap == Overlap.QUEUE:
        return TurnPlan(wait_in_queue=True)
    return TurnPlan(skip=Reason.OVERLAP)
