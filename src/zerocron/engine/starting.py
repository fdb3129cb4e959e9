"""The start transaction: due members in, committed runs out. No byte is sent before it is done.

Owns the bookkeeping of a batch: what `core.planning` decides about each job and run is gathered here and written in
three statements. Must never send anything and never touch the timetable; it says what should be put and dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection

from zerocron.core.lifecycle import WAITING, Event, advance
from zerocron.core.model import (
    STOPPED,
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
from zerocron.core.planning import Occupancy, Skip, plan_slots, plan_turn, without_run
from zerocron.core.requests import host_of
from zerocron.core.schedule import Schedule
from zerocron.engine.attempt import Started
from zerocron.engine.team_minutes import TeamMinutes
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.telling import JobTelling
from zerocron.storage.timetable.contract import job_member, run_member, split_member

BUSY_MS = 50
"""A job that another transaction holds is looked at again after this: it is being settled, started or edited."""

PLACE_TAKEN_MS = 1_000
"""How often a run that is owed looks again whether the job's place is free."""

HOST_BUSY_MS = 250
"""How often a member looks again whether its host takes another request."""


class LostRace(Exception):
    """Another writer changed a row between reading and writing it; nothing was written."""


class SessionEnded(Exception):
    """Another node gave this session up: it must start nothing more; nothing was written."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id


@dataclass(slots=True)
class StartedBatch:
    """What a start transaction did, for the timetable and the executor."""

    runs: list[Started] = field(default_factory=list)
    put: dict[str, Instant] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Of those dropped: members that are none of ours, or whose job or run does not exist."""

    skipped: int = 0
    deferred: int = 0


class HostRoom(Protocol):
    """How many more requests a host takes, by the URL; None when there is no cap."""

    def __call__(self, url: str) -> int | None: ...


class StopPoint(Protocol):
    """Called with the name of each step; a fault test kills the process there."""

    def __call__(self, name: str) -> None: ...


def start_batch(
    connection: Connection,
    members: Sequence[str],
    *,
    now: Instant,
    session_id: str,
    early_ms: int = 0,
    host_room: HostRoom = lambda _url: None,
    runs_per_minute_max: int | None = None,
    stop_point: StopPoint = lambda _name: None,
) -> StartedBatch:
    """Decide and record the fate of due members; nothing is written when this raises.

    What will be due within `early_ms` and has its place free is started now and sent when it is due: the transaction
    costs no lateness. Everything else is decided when its time has come. `runs_per_minute_max` is of teams that have no
    such limit of their own.

    Raises LostRace when a guard refused, and SessionEnded when the session is over.
    """
    if not session_rows.hold(connection, session_id):
        raise SessionEnded(session_id)
    job_members: dict[str, str] = {}
    run_members: dict[str, str] = {}
    strangers: list[str] = []
    for member in members:
        parts = split_member(member)
        if parts is None:
            strangers.append(member)
        else:
            (job_members if parts.kind == "j" else run_members)[parts.id] = member
    # Which job a run belongs to never changes; what else was read of it before the job is held may.
    waiting = run_rows.of_ids(connection, list(run_members)) if run_members else {}
    job_ids = list(dict.fromkeys([*job_members, *(run.job_id for run in waiting.values())]))
    jobs = job_rows.lock(connection, job_ids, to_start=True) if job_ids else {}
    missing = [job_id for job_id in job_ids if job_id not in jobs]
    busy = job_rows.existing(connection, missing) if missing else set()
    minutes = TeamMinutes(connection, jobs.values(), default=runs_per_minute_max, now=now, early_ms=early_ms)
    batch = _Batch(connection, jobs, now, early_ms, session_id, host_room, minutes, wanted_runs=list(waiting))
    batch.result.unknown.extend(strangers)
    for run_id, member in run_members.items():
        if run_id in waiting and waiting[run_id].job_id in busy:
            batch.result.put[member] = now + BUSY_MS
        else:
            batch.take_turn(run_id, member)
    for job_id, member in job_members.items():
        if job_id in busy:
            batch.result.put[member] = now + BUSY_MS
        else:
            batch.take_slots(job_id, member)
    batch.write(stop_point)
    batch.result.drop.extend(batch.result.unknown)
    return batch.result


def _schedule_of(job: EngineJob) -> Schedule:
    if job.schedule is None:
        raise ValueError("the job was not locked to start runs")
    return job.schedule


class _Batch:
    """The rows of one start transaction while they are being decided."""

    def __init__(
        self,
        connection: Connection,
        jobs: dict[str, EngineJob],
        now: Instant,
        early_ms: int,
        session_id: str,
        host_room: HostRoom,
        minutes: TeamMinutes,
        wanted_runs: list[str],
    ) -> None:
        self.result = StartedBatch()
        self._connection = connection
        self._jobs = jobs
        self._now = now
        self._early_ms = early_ms
        self._session_id = session_id
        self._host_room = host_room
        self._minutes = minutes
        self._taken: Counter[str] = Counter()
        self._seen = {job_id: job.state.next_run_at for job_id, job in jobs.items()}
        self._changed: dict[str, EngineJob] = {}
        self._new: list[Run] = []
        self._moved: list[tuple[Run, run_rows.Seen]] = []
        self._telling = JobTelling(connection, now)
        self._runs = self._load_runs(wanted_runs)

    def _load_runs(self, wanted: list[str]) -> dict[str, Run]:
        """The wanted runs, and those that hold the place of a job, as they are now that the jobs are held."""
        holders = [
            job.state.active_run_id for job in self._jobs.values() if job.state.active_run_id and self._exclusive(job)
        ]
        wanted = [*wanted, *holders]
        return run_rows.of_ids(self._connection, wanted) if wanted else {}

    @staticmethod
    def _exclusive(job: EngineJob) -> bool:
        return job.overlap != Overlap.ALLOW

    def take_slots(self, job_id: str, member: str) -> None:
        """Decide about a job's due slots."""
        job = self._jobs.get(job_id)
        if job is None:
            self.result.unknown.append(member)
            return
        if job.status != JobStatus.ACTIVE or job.state.next_run_at is None:
            self.result.drop.append(member)
            return
        due = job.state.next_run_at
        if due > self._now and not self._may_start_early(job, due):
            self.result.put[member] = self._later(due)
            return
        plan = plan_slots(
            _schedule_of(job),
            due=due,
            overlap=job.overlap,
            catchup=job.catchup,
            catchup_window_ms=job.catchup_window_seconds * 1000,
            occupancy=self._occupancy(job),
            now=max(self._now, due),
        )
        if plan.waits:
            self.result.drop.append(member)
            return
        slot = plan.start if plan.start is not None else plan.queue
        if slot is not None and not self._minutes.has_room(job.team_id, self._begins_at(slot)):
            plan = without_run(plan, slot, Reason.TEAM_LIMIT)
        if plan.start is not None and not self._host_takes_one(job, member):
            return
        for skip in plan.skips:
            self._skip_slots(job, skip)
        if plan.supersede:
            self._supersede(job)
        if plan.start is not None:
            self._start_slot(job, plan.start)
        if plan.queue is not None:
            queued = self._new_run(job, plan.queue, RunStatus.QUEUED)
            self._minutes.take(job.team_id, self._begins_at(plan.queue))
            job.state.queued_run_id = queued.id
            self._new.append(queued)
        self._move_cursor(job, plan.next_run_at)

    def take_turn(self, run_id: str, member: str) -> None:
        """Decide about a waiting run whose time has come."""
        run = self._runs.get(run_id)
        job = self._jobs.get(run.job_id) if run is not None else None
        if run is None or job is None:
            self.result.unknown.append(member)
            return
        if run.status not in WAITING or run.retry_at is None:
            self.result.drop.append(member)
            return
        if run.retry_at > self._now:
            self.result.put[member] = self._later(run.retry_at)
            return
        if self._slot_comes_first(job, run):
            self.take_slots(job.id, job_member(job.team_id, job.id))
            if job.state.active_run_id != run.id:
                return
        plan = plan_turn(
            run.status,
            run.id,
            is_owed=run.cause == Cause.NODE_LOST,
            overlap=job.overlap,
            occupancy=self._occupancy(job),
            job_paused=job.status in STOPPED,
        )
        if plan.start and not self._host_takes_one(job, member):
            return
        seen = run_rows.seen(run)
        run.retry_at = None
        if plan.start:
            self._start_waiting(job, run)
        elif plan.wait_in_queue:
            job.state.queued_run_id = run.id
        elif plan.wait:
            run.retry_at = self._now + PLACE_TAKEN_MS
        elif plan.supersede:
            self._end_superseded(job, run)
        else:
            cancel = STOPPED.get(job.status, plan.cancel)
            self._end_waiting(job, run, plan.skip or cancel, cancelled=plan.cancel is not None)
        self._moved.append((run, seen))
        self._changed[job.id] = job
        if run.retry_at is None:
            self.result.drop.append(member)
        else:
            self.result.put[member] = run.retry_at

    def _may_start_early(self, job: EngineJob, due: Instant) -> bool:
        if due > self._now + self._early_ms:
            return False
        return not self._exclusive(job) or (job.state.active_run_id is None and job.state.queued_run_id is None)

    def _later(self, due: Instant) -> Instant:
        """When to look again at what is not due yet: a claim takes members up to `early_ms` before their instant."""
        return due if due > self._now + self._early_ms else due + self._early_ms

    def _host_takes_one(self, job: EngineJob, member: str) -> bool:
        """Whether one more request may go to the job's host now; the member comes back later if not."""
        room = self._host_room(job.url)
        if room is None:
            return True
        host = host_of(job.url)
        if self._taken[host] >= room:
            self.result.put[member] = self._now + HOST_BUSY_MS
            self.result.deferred += 1
            return False
        self._taken[host] += 1
        return True

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
        self._minutes.write()
        if self._new:
            run_rows.insert(self._connection, self._new)
        if self._moved and run_rows.move(self._connection, self._moved) != len(self._moved):
            raise LostRace("a run changed while it was being started")
        self.result.put |= self._telling.write()

    def _occupancy(self, job: EngineJob) -> Occupancy:
        state = job.state
        active = self._runs.get(state.active_run_id) if state.active_run_id else None
        return Occupancy(
            active_run_id=active.id if active else None,  # a holder that does not exist holds nothing
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
        self._minutes.take(job.team_id, self._begins_at(slot))
        self._mark_started(job, run)
        self._new.append(run)
        self.result.runs.append(Started(run, job.definition, host_of(job.url)))

    def _start_waiting(self, job: EngineJob, run: Run) -> None:
        run.status = advance(run.status, Event.START)
        self._mark_started(job, run)
        if job.state.queued_run_id == run.id:
            job.state.queued_run_id = None
        definition = job.definition if run.job_version == job.version else None
        self.result.runs.append(Started(run, definition, host_of(job.url)))

    def _begins_at(self, slot: Instant) -> Instant:
        """A run is committed before its slot, and sent at it."""
        return max(self._now, slot)

    def _mark_started(self, job: EngineJob, run: Run) -> None:
        begins_at = self._begins_at(run.scheduled_for)
        run.attempt += 1
        run.session_id = self._session_id
        run.attempt_started_at = begins_at
        run.started_at = run.started_at or begins_at
        if self._exclusive(job):
            if job.state.active_run_id != run.id or run.cause == Cause.NODE_LOST:
                job.state.active_since = begins_at  # slots that are due by then were so before it ran: they wait for it
            job.state.active_run_id = run.id
            self._runs[run.id] = run
        elif begins_at > self._now:
            job.state.active_since = begins_at  # who pauses or edits the job waits until then

    def _supersede(self, job: EngineJob) -> None:
        run = self._runs[job.state.active_run_id or ""]
        seen = run_rows.seen(run)
        run.retry_at = None
        self._end_superseded(job, run)
        self._moved.append((run, seen))
        self.result.drop.append(run_member(run.team_id, run.id))

    def _end_superseded(self, job: EngineJob, run: Run) -> None:
        run.status = advance(run.status, Event.SUPERSEDE)
        run.reason = Reason.SUPERSEDED
        run.finished_at = self._now
        state = job.state
        state.failed += 1
        state.consecutive_failures += 1
        state.last_run = LastRun(run.id, run.status, run.scheduled_for, self._now)
        self._telling.ended(job, run, None)
        if state.active_run_id == run.id:
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
        skipped = skipped_run(job, skip.first, skip.last, skip.count, skip.reason, self._now)
        self._new.append(skipped)
        if skip.reason != Reason.TEAM_LIMIT or self._minutes.leave_out(job.team_id, self._begins_at(skip.last)):
            self._telling.skipped(job, skipped)
        job.state.skipped += skip.count
        self.result.skipped += skip.count

    def _move_cursor(self, job: EngineJob, next_run_at: Instant | None) -> None:
        job.state.next_run_at = next_run_at
        if next_run_at is None:
            job.status = JobStatus.COMPLETED
            self.result.drop.append(job_member(job.team_id, job.id))
        else:
            self.result.put[job_member(job.team_id, job.id)] = next_run_at
        self._changed[job.id] = job
