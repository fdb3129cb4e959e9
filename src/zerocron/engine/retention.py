"""Keeps the history from growing for ever.

Owns the rule of age and count: a run is kept for `days`, and a job keeps at most `runs_per_job` runs. Works through the
jobs a slice a tick, in small transactions, so that it never holds the ledger for long. Must never touch an open run.
"""

from __future__ import annotations

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import Ledger

TICK_SECONDS = 10.0
JOBS_PER_TICK = 100
RUNS_PER_TRANSACTION = 500
DAY_MS = 86_400_000
IDEMPOTENCY_MS = DAY_MS
SESSIONS_MS = 30 * DAY_MS


class Retention:
    """One loop of one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock, days: int, runs_per_job: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._days = days
        self._runs_per_job = runs_per_job
        self._after_job_id = ""

    async def tick(self) -> float:
        """Look after the next slice of jobs; returns the seconds until the next time."""
        now = self._clock.now()
        after = self._after_job_id
        job_ids = await self._ledger.read(lambda connection: job_rows.ids_page(connection, after, JOBS_PER_TICK))
        for job_id in job_ids:
            await self._shorten(job_id, now)
        self._after_job_id = job_ids[-1] if len(job_ids) == JOBS_PER_TICK else ""
        if not self._after_job_id:
            await self._ledger.write(lambda connection: _forget_small_things(connection, now))
        return TICK_SECONDS

    async def _shorten(self, job_id: str, now: Instant) -> None:
        before = now - self._days * DAY_MS
        kept = await self._ledger.read(lambda connection: run_rows.oldest_kept(connection, job_id, self._runs_per_job))
        if kept is not None:
            before = max(before, kept)
        oldest = await self._ledger.read(lambda connection: run_rows.oldest(connection, job_id))
        while oldest is not None and oldest < before:
            removed = await self._ledger.write(lambda connection: _remove(connection, job_id, before))
            if removed < RUNS_PER_TRANSACTION:
                break


def _remove(connection: Connection, job_id: str, before: Instant) -> int:
    removed = run_rows.delete_of_job(connection, job_id, before=before, limit=RUNS_PER_TRANSACTION)
    if removed:
        execution_rows.delete_of_runs(connection, removed)
    return len(removed)


def _forget_small_things(connection: Connection, now: Instant) -> None:
    key_rows.forget_idempotent(connection, now - IDEMPOTENCY_MS)
    session_rows.delete_ended_before(connection, now - SESSIONS_MS)
