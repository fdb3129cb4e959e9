"""Start again after a restore from backup: from now on, and nothing of what was due before.

Owns `0cron serve --resume-from now`. A restored ledger is as it was when the backup was made; without this, the slots
since then would be caught up on, and the runs that were under way would be sent again, although most of it happened
long ago. Every slot left out is recorded as skipped, every open run as cancelled, both with the reason `restored`.
Nothing is decided twice: it may be interrupted and repeated.
"""

from __future__ import annotations

from functools import partial

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.access import SERVER
from zerocron.core.errors import Conflict
from zerocron.core.lifecycle import Event, advance
from zerocron.core.model import EngineJob, Instant, JobStatus, Reason, Run, skipped_run
from zerocron.core.planning import left_behind
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import Ledger, Transaction

log = structlog.get_logger(__name__)

PAGE = 200
BUSY_SECONDS = 0.1


async def from_now(ledger: Ledger, clock: Clock, *, exclusive: bool) -> None:
    """Leave everything behind that was due or under way. Raises Conflict while other nodes run.

    `exclusive`: the ledger is this process's alone, so there are none.
    """
    now = clock.now()
    await ledger.write(partial(_end_sessions, now=now, exclusive=exclusive))
    cancelled = await _repeat(ledger, clock, partial(_cancel_open_runs, now=now))
    skipped = await _repeat(ledger, clock, partial(_pass_due_slots, now=now))
    told = {"jobs_with_slots_left_out": skipped, "runs_cancelled": cancelled}
    await ledger.write(partial(_record, now=now, told=told))
    log.warning("resumed_from_now", **told)


async def _repeat(ledger: Ledger, clock: Clock, step: Transaction[tuple[int, bool]]) -> int:
    """Do a step until nothing is left for it; how much it did. What another transaction holds is tried again."""
    total = 0
    while True:
        done, is_more = await ledger.write(step)
        total += done
        if not is_more:
            return total
        if not done:
            await clock.sleep(BUSY_SECONDS)


def _record(connection: Connection, now: Instant, told: dict[str, int]) -> None:
    """Of no team: it is the whole server's."""
    subject = audit.Subject("server", "", "0cron")
    audit.record(connection, team_id=None, at=now, by=SERVER, action="server.resume", subject=subject, after=told)


def _end_sessions(connection: Connection, now: Instant, *, exclusive: bool) -> None:
    if not exclusive and session_rows.live_clock_differences(connection, now):
        raise Conflict(
            "Other nodes are running on this ledger (or one stopped less than 30 s ago). Stop them all before you "
            "resume a restored ledger."
        )
    others = session_rows.unended_except(connection, "")
    if others:
        session_rows.end(connection, others, now=now, reason="restored")


def _cancel_open_runs(connection: Connection, now: Instant) -> tuple[int, bool]:
    found = run_rows.some_open(connection, PAGE)
    if not found:
        return 0, False
    job_ids = {run.job_id for run in found}
    jobs = job_rows.lock(connection, list(job_ids))
    busy = job_rows.existing(connection, list(job_ids - jobs.keys())) if len(jobs) < len(job_ids) else set()
    seen = {job_id: job.state.next_run_at for job_id, job in jobs.items()}
    moved: list[tuple[Run, run_rows.Seen]] = []
    for run in found:
        if run.job_id in busy:
            continue
        moved.append((run, run_rows.seen(run)))
        run.status = advance(run.status, Event.CANCEL)
        run.reason = Reason.RESTORED
        run.retry_at = run.session_id = None
        run.finished_at = now
    for job in jobs.values():
        state = job.state
        state.active_run_id = state.active_since = state.queued_run_id = None
        state.crowded = 0
    if jobs:
        job_rows.save_states(connection, list(jobs.values()), seen)
    if moved:
        run_rows.move(connection, moved)
    return len(moved), True


def _pass_due_slots(connection: Connection, now: Instant) -> tuple[int, bool]:
    due = job_rows.due_page(connection, after=(0, ""), until=now, limit=PAGE)
    if not due:
        return 0, False
    jobs = job_rows.lock(connection, [job.id for job in due], to_start=True)
    seen = {job_id: job.state.next_run_at for job_id, job in jobs.items()}
    skipped = [run for job in jobs.values() if (run := _pass_by(job, now)) is not None]
    if jobs:
        job_rows.save_states(connection, list(jobs.values()), seen)
    if skipped:
        run_rows.insert(connection, skipped)
    return len(jobs), True


def _pass_by(job: EngineJob, now: Instant) -> Run | None:
    assert job.schedule is not None  # locked to start
    skip = left_behind(job.schedule, job.state.next_run_at, now, Reason.RESTORED)
    job.state.next_run_at = job.schedule.next_after(now)
    if job.state.next_run_at is None:
        job.status = JobStatus.COMPLETED
    if skip is None:
        return None
    job.state.skipped += skip.count
    return skipped_run(job, skip.first, skip.last, skip.count, Reason.RESTORED, now)
