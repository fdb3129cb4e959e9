"""The finish transaction: results in, settled runs out; and the same for attempts whose node is lost.

Owns the bookkeeping of a batch of endings. A result of a run that is no longer as it was (its node had been given up,
the run was taken over) is kept beside its execution and changes nothing. Running it twice with the same results
changes nothing the second time, so it may be repeated after an unclear commit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from zerocron.core.access import SERVER
from zerocron.core.exchange import OWN_SHORTAGE_KINDS
from zerocron.core.lifecycle import FINAL, Event, Outlook, Verdict, advance, settle, settle_lost, settle_shortage
from zerocron.core.model import (
    Cause,
    EngineJob,
    Execution,
    ExecutionStatus,
    Instant,
    JobStatus,
    LastRun,
    Overlap,
    Reason,
    Run,
    RunStatus,
    skipped_run,
)
from zerocron.core.planning import claim_on_place, left_behind
from zerocron.core.retry import RetryBudget
from zerocron.engine.attempt import Result
from zerocron.engine.judging import execution_of
from zerocron.engine.starting import LostRace
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.telling import JobTelling
from zerocron.storage.timetable.contract import job_member, run_member

UNRECORDED_MESSAGE = "What was sent and answered could not be recorded; the log of the server says why."
LOST_MESSAGE = "The process that ran it stopped before the result was recorded; the request may have been sent."


@dataclass(slots=True)
class Finished:
    """What a finish transaction did, for the timetable and the metrics."""

    put: dict[str, Instant] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    """Ids of jobs that were disabled, because too many of their runs failed in a row."""

    busy: set[str] = field(default_factory=set)
    """Runs that were left as they are because another transaction holds their job: to be tried again."""

    settled: int = 0
    late: int = 0


def finish_batch(
    connection: Connection, results: Sequence[Result], *, now: Instant, budget: RetryBudget | None = None
) -> Finished:
    """Record results, each with its run's next status, the job's counters and the place it frees.

    Retries draw on the budget. What was drawn in a transaction that is rolled back is not given back.
    """
    ending = _Ending(connection, [result.run for result in results], now)
    shortages = _shortages(connection, results)
    late: list[Execution] = []
    for result in results:
        sent = result.run
        if sent.id in ending.finished.busy:
            continue
        run = ending.runs.get(sent.id)
        if run is None or run.status != RunStatus.RUNNING or run.attempt != sent.attempt:
            late.append(result.execution)
            continue
        ending.executions.append(result.execution)
        if run.attempt == 1 and result.called_off is None:
            # Written down before it was sent, as what was planned: how late it really was is known now.
            run.started_at = max(run.started_at or 0, result.execution.started_at)
            ending.began(run)
            if budget is not None:
                budget.began(run.team_id, now)
        ending.end(run, _settler(result, shortages.get(run.id, 0), budget, now), result.execution.duration_ms)
    if late:
        execution_rows.add_late_results(connection, late)
        ending.finished.late = len(late)
    return ending.write()


def _settler(
    result: Result, shortages: int, budget: RetryBudget | None, now: Instant
) -> Callable[[Run, EngineJob], Verdict]:
    def verdict(run: Run, job: EngineJob) -> Verdict:
        outlook = Outlook(job.status, job.overlap, job.state.next_run_at, run.started_at or run.created_at, now)
        if result.is_shortage:
            return settle_shortage(outlook, shortages=shortages + 1)
        if result.called_off is not None:
            return Verdict(advance(RunStatus.RUNNING, Event.CANCEL), result.called_off)
        draws = None if result.succeeded else budget
        made = settle(
            outlook,
            succeeded=result.succeeded,
            run_id=run.id,
            failures=run.attempt - run.redeliveries - shortages,
            retry=result.retry,
            asked_ms=result.retry_after_ms,
            no_retry=result.no_retry,
            budget_ms=draws.wait_ms(run.team_id, now) if draws else 0,
        )
        if draws and made.status == RunStatus.RETRYING:
            draws.take(run.team_id, now)
        return made

    return verdict


def _shortages(connection: Connection, results: Sequence[Result]) -> dict[str, int]:
    """How many earlier attempts of failed runs this server itself could not make: they count as no failure."""
    again = [result.run for result in results if result.run.attempt > 1 and not result.succeeded]
    if not again:
        return {}
    keys = [(run.id, run.scheduled_for) for run in again]
    return execution_rows.count_of_kinds(connection, keys, sorted(OWN_SHORTAGE_KINDS))


def take_over_batch(connection: Connection, session_ids: Sequence[str], *, now: Instant, limit: int) -> Finished:
    """Settle up to `limit` running runs of sessions that have ended (promise 2).

    Each lost attempt gets its execution row, so that every request that may have been sent has one.
    """
    lost = run_rows.running_of_sessions(connection, session_ids, limit)
    return settle_lost_runs(connection, lost, now=now)


def settle_lost_runs(connection: Connection, lost: Sequence[Run], *, now: Instant) -> Finished:
    """Settle running runs whose outcome nobody will report, those of them that are still as they were read."""
    ending = _Ending(connection, lost, now)
    for seen in lost:
        run = ending.runs.get(seen.id)
        if run is None or (run.status, run.attempt, run.session_id) != (seen.status, seen.attempt, seen.session_id):
            continue
        ending.executions.append(_lost_execution(run, now))
        ending.end(run, _lost_settler(now), 0)
    return ending.write()


def _lost_settler(now: Instant) -> Callable[[Run, EngineJob], Verdict]:
    def verdict(run: Run, job: EngineJob) -> Verdict:
        return settle_lost(redeliveries=run.redeliveries, on_lost=job.on_lost, job_status=job.status, now=now)

    return verdict


def _lost_execution(run: Run, now: Instant) -> Execution:
    started_at = run.attempt_started_at or run.created_at
    finished_at = max(now, started_at)  # the clock may have been set back
    return execution_of(
        run,
        status=ExecutionStatus.ERROR,
        started_at=started_at,
        finished_at=finished_at,
        duration_ms=finished_at - started_at,
        error_kind="node_lost",
        error_message=LOST_MESSAGE,
    )


def bare(result: Result) -> Result:
    """The same ending without what was sent and answered, for a result whose record the ledger does not take."""
    execution = dataclasses.replace(
        result.execution,
        timings={},
        request={},
        request_body=None,
        response=None,
        response_body=None,
        error_message=None if result.succeeded else UNRECORDED_MESSAGE,
    )
    return dataclasses.replace(result, execution=execution)


def disabled_sentence(failures: int, disable_after: int) -> str:
    """Why a job is disabled, for its owner."""
    if failures == 1:
        return f"The last run failed, and `disable_after` is {disable_after:,}."
    return f"The last {failures:,} runs failed, and `disable_after` is {disable_after:,}."


class _Ending:
    """The rows of one finish transaction while they are being decided."""

    def __init__(self, connection: Connection, ending: Sequence[Run], now: Instant) -> None:
        self.finished = Finished()
        self.executions: list[Execution] = []
        self._connection = connection
        self._now = now
        job_ids = list(dict.fromkeys(run.job_id for run in ending))
        self._jobs = job_rows.lock(connection, job_ids) if job_ids else {}
        self._seen = {job_id: job.state.next_run_at for job_id, job in self._jobs.items()}
        held = [run.id for run in ending if run.job_id in self._jobs]
        self.runs = run_rows.of_ids(connection, held) if held else {}
        if len(held) < len(ending):
            self._find_busy(ending)
        self._changed: dict[str, EngineJob] = {}
        self._moved: list[tuple[Run, run_rows.Seen]] = []
        self._disabled: dict[str, EngineJob] = {}
        self._telling = JobTelling(connection, now)

    def began(self, run: Run) -> None:
        """It is known now when a run's first request was sent."""
        self._telling.began(self._jobs[run.job_id], run)

    def end(self, run: Run, settler: Callable[[Run, EngineJob], Verdict], duration_ms: float) -> None:
        """Move a running run on by its verdict."""
        job = self._jobs[run.job_id]
        verdict = settler(run, job)
        self.finished.settled += 1
        seen = run_rows.seen(run)
        lost = verdict.status == RunStatus.RETRYING and self.executions[-1].error_kind == "node_lost"
        run.status = verdict.status
        run.reason = verdict.reason
        run.retry_at = verdict.retry_at
        run.session_id = None
        if run.status in FINAL:
            run.finished_at = self._now
            was = job.status
            self._count(job, run, duration_ms)
            disabled = was != job.status == JobStatus.DISABLED
            self._telling.ended(job, run, self.executions[-1], disabled=disabled)
            self.finished.ended.append(run.status)
        else:
            run.cause = Cause.NODE_LOST if lost else Cause.RETRY
            run.redeliveries += lost
        if job.state.active_run_id == run.id:
            self._pass_place_on(job, run)
        if run.retry_at is not None:
            self.finished.put[run_member(run.team_id, run.id)] = run.retry_at
        self._moved.append((run, seen))
        self._changed[job.id] = job

    def write(self) -> Finished:
        for job in self._disabled.values():
            self._end_schedule(job)
        for job in self._changed.values():
            self._call_next(job)
        changed = list(self._changed.values())
        if changed and job_rows.save_states(self._connection, changed, self._seen) != len(changed):
            raise LostRace("a job changed while its run was being settled")
        if self._moved and run_rows.move(self._connection, self._moved) != len(self._moved):
            raise LostRace("a run changed while it was being settled")
        for job in self._disabled.values():
            name = job_rows.disable(self._connection, job, now=self._now)
            self._record_disabled(job, name)
            self.finished.disabled.append(job.id)
        if self.executions:
            execution_rows.insert(self._connection, self.executions)
        self.finished.put |= self._telling.write()
        return self.finished

    def _record_disabled(self, job: EngineJob, name: str) -> None:
        audit.record(
            self._connection,
            team_id=job.team_id,
            at=self._now,
            by=SERVER,
            action="job.disable",
            subject=audit.Subject("job", job.id, name),
            before={"status": JobStatus.ACTIVE},
            after={"status": JobStatus.DISABLED, "status_reason": job.state.status_reason},
        )

    def _find_busy(self, ending: Sequence[Run]) -> None:
        missed = [run for run in ending if run.job_id not in self._jobs]
        existing = job_rows.existing(self._connection, [run.job_id for run in missed])
        self.finished.busy = {run.id for run in missed if run.job_id in existing}

    def _count(self, job: EngineJob, run: Run, duration_ms: float) -> None:
        state = job.state
        if run.status == RunStatus.SUCCEEDED:
            state.succeeded += 1
            state.consecutive_failures = 0
        elif run.status != RunStatus.CANCELLED:
            state.failed += 1
            state.consecutive_failures += 1
            if job.status == JobStatus.ACTIVE and 0 < job.disable_after <= state.consecutive_failures:
                job.status = JobStatus.DISABLED
                state.status_reason = disabled_sentence(state.consecutive_failures, job.disable_after)
                self._disabled[job.id] = job
        state.duration_ms_total += duration_ms
        state.last_run = LastRun(run.id, run.status, run.scheduled_for, self._now)

    def _end_schedule(self, job: EngineJob) -> None:
        """A job that is disabled has no next slot; those that are due already are accounted for.

        Its member in the timetable is dropped when it is claimed.
        """
        state = job.state
        due, state.next_run_at = state.next_run_at, None
        if due is None:
            return
        schedule = job_rows.lock(self._connection, [job.id], to_start=True)[job.id].schedule
        skip = None if schedule is None else left_behind(schedule, due, self._now, Reason.JOB_DISABLED)
        if skip is not None:
            skipped = skipped_run(job, skip.first, skip.last, skip.count, skip.reason, self._now)
            run_rows.insert(self._connection, [skipped])
            state.skipped += skip.count

    def _pass_place_on(self, job: EngineJob, run: Run) -> None:
        """Who holds the place of a job once this run holds it no more, or waits in it for its next attempt."""
        state = job.state
        holder = run if run.status not in FINAL else None
        if state.crowded:
            waiting = self._under_way(job)
            holder = min(waiting, key=claim_on_place, default=None)
            state.crowded = int(len(waiting) > 1)
        if holder is None:
            state.active_run_id = state.active_since = None
        elif holder is not run or run.cause == Cause.NODE_LOST:
            state.active_run_id = holder.id
            state.active_since = self._now  # slots that came due meanwhile wait for it

    def _under_way(self, job: EngineJob) -> list[Run]:
        """Runs that began before an edit forbade overlapping, as this transaction leaves them."""
        begun = run_rows.open_of_job(self._connection, job.id, [RunStatus.RUNNING, RunStatus.RETRYING])
        return [run for run in (self.runs.get(run.id, run) for run in begun) if run.status not in FINAL]

    def _call_next(self, job: EngineJob) -> None:
        """Once a job's place is free: wake the run that waited for it, and look at slots that did."""
        state = job.state
        if state.active_run_id is not None and job.overlap != Overlap.ALLOW:
            return
        if state.queued_run_id is not None:
            self._wake(state.queued_run_id)
        if state.next_run_at is not None and state.next_run_at <= self._now:
            self.finished.put[job_member(job.team_id, job.id)] = state.next_run_at

    def _wake(self, run_id: str) -> None:
        run = self.runs.get(run_id) or run_rows.of_ids(self._connection, [run_id]).get(run_id)
        if run is None or run.status != RunStatus.QUEUED or run.retry_at is not None:
            return
        run.retry_at = self._now
        self._moved.append((run, run_rows.seen(run)))
        self.finished.put[run_member(run.team_id, run.id)] = self._now
