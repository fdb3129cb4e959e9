"""The start transaction: due members in, committed runs out. No byte is sent before it is done.

Owns the bookkeeping of a batch: what `core.planning` decides about each job and run is gathered here and written in
three statements. Must never send anything and never touch the timetable; it says what should be put and dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection

from zerocron.core.lifecycle import WAITING, Event, advance
from zerocron.core.model import (
    Cause,
    EngineJob,
    Instant,
    JobStatus,
    LastRun,
    Overlap,
    Reason,
    Run,
    RunStatus,
    TriggeredBy,
    run_id_of,
    skipped_run,
)
from zerocron.core.planning import Occupancy, Skip, plan_slots, plan_turn
from zerocron.core.schedule import Schedule
from zerocron.engine.attempt import Started
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.timetable.contract import job_member, run_member, split_member


class LostRace(Exception):
    """Another writer changed a row between reading and writing it; nothing was written."""


@dataclass(slots=True)
class StartedBatch:
    """What a start transaction did, for the timetable and the executor."""

    runs: list[Started] = field(default_factory=list)
    put: dict[str, Instant] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    skipped: int = 0


class StopPoint(Protocol):
    """Called with the name of each step; a fault test kills the process there."""

    def __call__(self, name: str) -> None: ...


def start_batch(
    connection: Connection,
    members: Sequence[str],
    *,
    now: Instant,
    session_id: str,
    stop_point: StopPoint = lambda _name: None,
) -> StartedBatch:
    """Decide and record the fate of due members. Raises LostRace when a guard refused; nothing is written then."""
    by_kind: dict[str, list[str]] = {"j": [], "r": [], "": []}
    for member in members:
        kind, identity = split_member(member)
        by_kind[kind].append(identity)
    waiting = run_rows.lock(connection, by_kind["r"]) if by_kind["r"] else {}
    job_ids = list(dict.fromkeys([*by_kind["j"], *(run.job_id for run in waiting.values())]))
    jobs = job_rows.lock(connection, job_ids, to_start=True) if job_ids else {}
    batch = _Batch(connection, jobs, now, session_id)
    batch.result.drop.extend(by_kind[""])
    for run_id in by_kind["r"]:
        batch.take_turn(run_id, waiting.get(run_id))
    for job_id in by_kind["j"]:
        batch.take_slots(job_id)
    batch.write(stop_point)
    return batch.result


def _schedule_of(job: EngineJob) -> Schedule:
    if job.schedule is None:
        raise ValueError("the job was not locked to start runs")
    return job.schedule


class _Batch:
    """The rows of one start transaction while they are being decided."""

    def __init__(self, connection: Connection, jobs: dict[str, EngineJob], now: Instant, session_id: str) -> None:
        self.result = StartedBatch()
        self._connection = connection
        self._jobs = jobs
        self._now = now
        self._session_id = session_id
        self._seen = {job_id: job.state.next_run_at for job_id, job in jobs.items()}
        self._changed: dict[str, EngineJob] = {}
        self._new: list[Run] = []
        self._moved: list[tuple[Run, run_rows.Seen]] = []
        self._active = self._load_active()

    def _load_active(self) -> dict[str, Run]:
        wanted = [
            job.state.active_run_id for job in self._jobs.values() if job.state.active_run_id and self._exclusive(job)
        ]
        return run_rows.lock(self._connection, wanted) if wanted else {}

    @staticmethod
    def _exclusive(job: EngineJob) -> bool:
        return job.overlap != Overlap.ALLOW

    def take_slots(self, job_id: str) -> None:
        """Decide about a job's due slots."""
        job = self._jobs.get(job_id)
        member = job_member(job_id)
        if job is None or job.status != JobStatus.ACTIVE or job.state.next_run_at is None:
            self.result.drop.append(member)
            return
        due = job.state.next_run_at
        if due > self._now:
            self.result.put[member] = due
            return
        plan = plan_slots(
            _schedule_of(job),
            due=due,
            overlap=job.overlap,
            catchup=job.catchup,
            catchup_window_ms=job.catchup_window_seconds * 1000,
            occupancy=self._occupancy(job),
            now=self._now,
        )
        if plan.waits:
            self.result.drop.append(member)
            return
        for skip in plan.skips:
            self._skip_slots(job, skip)
        if plan.supersede:
            self._supersede(job)
        if plan.start is not None:
            self._start_slot(job, plan.start)
        if plan.queue is not None:
            queued = self._new_run(job, plan.queue, RunStatus.QUEUED)
            job.state.queued_run_id = queued.id
            self._new.append(queued)
        self._move_cursor(job, plan.next_run_at)

    def take_turn(self, run_id: str, run: Run | None) -> None:
        """Decide about a waiting run whose time has come."""
        member = run_member(run_id)
        job = self._jobs.get(run.job_id) if run is not None else None
        if run is None or job is None or run.status not in WAITING or run.retry_at is None:
            self.result.drop.append(member)
            return
        if run.retry_at > self._now:
            self.result.put[member] = run.retry_at
            return
        if self._slot_comes_first(job, run):
            self.take_slots(job.id)
            if job.state.active_run_id != run.id:
                return
        stopped = job.status in (JobStatus.PAUSED, JobStatus.DELETED)
        plan = plan_turn(run.status, run.id, overlap=job.overlap, occupancy=self._occupancy(job), job_paused=stopped)
        seen = run_rows.seen(run)
        run.retry_at = None
        if plan.start:
            self._start_waiting(job, run)
        elif plan.wait_in_queue:
            job.state.queued_run_id = run.id
        else:
            cancel = Reason.JOB_DELETED if job.status == JobStatus.DELETED else plan.cancel
            self._end_waiting(job, run, plan.skip or cancel, cancelled=plan.cancel is not None)
        self._moved.append((run, seen))
        self._changed[job.id] = job
        self.result.drop.append(member)

    def _slot_comes_first(self, job: EngineJob, run: Run) -> bool:
        """A late node may find a retry and the next slot due together: the retry must not consume it (promise 9)."""
        state = job.state
        if run.status != RunStatus.RETRYING or state.active_run_id != run.id or not self._exclusive(job):
            return False
        return state.next_run_at is not None and state.next_run_at <= self._now

    def write(self, stop_point: StopPoint) -> None:
        changed = list(self._changed.values())
        if changed and job_rows.save_states(self._connection, changed, self._seen) != len(changed):
            raise LostRace("a job changed while its slot was being started")
        stop_point("inside-start")
        if self._new:
            run_rows.insert(self._connection, self._new)
        if self._moved and run_rows.move(self._connection, self._moved) != len(self._moved):
            raise LostRace("a run changed while it was being started")

    def _occupancy(self, job: EngineJob) -> Occupancy:
        state = job.state
        active = self._active.get(state.active_run_id) if state.active_run_id else None
        return Occupancy(
            active_run_id=state.active_run_id,
            active_status=active.status if active else None,
            active_is_owed=active is not None and active.status in WAITING and active.cause == Cause.NODE_LOST,
            active_since=state.active_since,
            queued_run_id=state.queued_run_id,
        )

    def _new_run(self, job: EngineJob, slot: Instant, status: RunStatus) -> Run:
        return Run(
            id=run_id_of(job.id, slot),
            scheduled_for=slot,
            trigger_key="",
            job_id=job.id,
            team_id=job.team_id,
            job_version=job.version,
            triggered_by=TriggeredBy.SCHEDULE,
            status=status,
            created_at=self._now,
        )

    def _start_slot(self, job: EngineJob, slot: Instant) -> None:
        run = self._new_run(job, slot, RunStatus.RUNNING)
        self._mark_started(job, run)
        self._new.append(run)
        self.result.runs.append(Started(run, job.definition))

    def _start_waiting(self, job: EngineJob, run: Run) -> None:
        run.status = advance(run.status, Event.START)
        self._mark_started(job, run)
        if job.state.queued_run_id == run.id:
            job.state.queued_run_id = None
        self.result.runs.append(Started(run, job.definition if run.job_version == job.version else None))

    def _mark_started(self, job: EngineJob, run: Run) -> None:
        run.attempt += 1
        run.session_id = self._session_id
        run.attempt_started_at = self._now
        run.started_at = run.started_at or self._now
        if self._exclusive(job):
            if job.state.active_run_id != run.id or run.cause == Cause.NODE_LOST:
                job.state.active_since = self._now  # slots that are due by now were so before it ran: they wait for it
            job.state.active_run_id = run.id
            self._active[run.id] = run

    def _supersede(self, job: EngineJob) -> None:
        run = self._active[job.state.active_run_id or ""]
        seen = run_rows.seen(run)
        run.status = advance(run.status, Event.SUPERSEDE)
        run.reason = Reason.SUPERSEDED
        run.retry_at = None
        run.finished_at = self._now
        self._moved.append((run, seen))
        self.result.drop.append(run_member(run.id))
        state = job.state
        state.failed += 1
        state.consecutive_failures += 1
        state.last_run = LastRun(run.id, run.status, run.scheduled_for, self._now)
        state.active_run_id = state.active_since = None

    def _end_waiting(self, job: EngineJob, run: Run, reason: Reason | None, *, cancelled: bool) -> None:
        run.status = advance(run.status, Event.CANCEL if cancelled else Event.SKIP)
        run.reason = reason
        run.finished_at = self._now
        state = job.state
        if not cancelled:
            state.skipped += 1
            self.result.skipped += 1
        if state.queued_run_id == run.id:
            state.queued_run_id = None
        if state.active_run_id == run.id:
            state.active_run_id = state.active_since = None

    def _skip_slots(self, job: EngineJob, skip: Skip) -> None:
        self._new.append(skipped_run(job, skip.first, skip.last, skip.count, skip.reason, self._now))
        job.state.skipped += skip.count
        self.result.skipped += skip.count

    def _move_cursor(self, job: EngineJob, next_run_at: Instant | None) -> None:
        job.state.next_run_at = next_run_at
        if next_run_at is None:
            job.status = JobStatus.COMPLETED
            self.result.drop.append(job_member(job.id))
        else:
            self.result.put[job_member(job.id)] = next_run_at
        self._changed[job.id] = job
