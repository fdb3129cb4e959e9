"""Keeps the history from growing for ever.

Owns the rule of age and count: a run is kept for `days`, and a job keeps at most `runs_per_job` runs; a monitor keeps
its newest pings, and failures among many more; alerts that ended are kept for 30 days, sign-ins for 90, links that
work once for 7. Works through them a slice a
tick, in small transactions, so that it never holds the ledger for long. Must never touch an open run.
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.core.monitor import MonitorStatus
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger

TICK_SECONDS = 10.0
JOBS_PER_TICK = 100
RUNS_PER_TRANSACTION = 500
MONITORS_PER_TICK = 500
PINGS_KEPT = 1_000
FAILURES_KEPT = 10_000
FAILURES_DAYS = 365
"""Of a monitor so many pings are kept, the newest; of failures more, and for so long. Each may hold 10 kB."""

FLIPS_KEPT = 1_000
OUTAGES_DAYS = 400
DAY_MS = 86_400_000
IDEMPOTENCY_MS = DAY_MS
SESSIONS_MS = 30 * DAY_MS
DELETED_KEPT_MS = 3_600_000
ALERTS_MS = 30 * DAY_MS
SIGN_INS_MS = 90 * DAY_MS
"""After their end: so long an address is known as one from which a person signs in."""

LINKS_MS = 7 * DAY_MS


class Retention:
    """One loop of one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock, days: int, runs_per_job: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._days = days
        self._runs_per_job = runs_per_job
        self._after_job_id = ""
        self._after_monitor_id = ""

    async def tick(self) -> float:
        """Look after the next slice of jobs; returns the seconds until the next time."""
        now = self._clock.now()
        after = self._after_job_id
        job_ids = await self._ledger.read(lambda connection: job_rows.ids_page(connection, after, JOBS_PER_TICK))
        if job_ids:
            await self._shorten(job_ids, now)
        self._after_job_id = job_ids[-1] if len(job_ids) == JOBS_PER_TICK else ""
        if not self._after_job_id:
            await self._ledger.write(lambda connection: _forget_small_things(connection, now))
            await self._forget_alerts(now)
        await self._shorten_monitors(now)
        return TICK_SECONDS

    async def _forget_alerts(self, now: Instant) -> None:
        """What was told, or could not be, longer ago than people ask about; and deleted channels of which nothing is
        left."""
        remove = partial(alert_rows.remove_finished, before=now - ALERTS_MS, limit=RUNS_PER_TRANSACTION)
        while await self._ledger.write(remove) == RUNS_PER_TRANSACTION:
            pass
        await self._ledger.write(lambda connection: channel_rows.remove_deleted(connection, now - DELETED_KEPT_MS))

    async def _shorten_monitors(self, now: Instant) -> None:
        """The next slice of monitors: the newest pings stay, failures longer, and of a deleted one nothing."""
        after = self._after_monitor_id
        page = await self._ledger.read(lambda connection: monitor_rows.ids_page(connection, after, MONITORS_PER_TICK))
        for monitor_id, status, pings, flips in page:
            is_gone = status == MonitorStatus.DELETED
            shorten = partial(
                monitor_rows.shorten,
                monitor_id=monitor_id,
                pings_up_to=pings if is_gone else pings - PINGS_KEPT,
                failures_kept=0 if is_gone else FAILURES_KEPT,
                failures_since=now - FAILURES_DAYS * DAY_MS,
                flips_up_to=flips if is_gone else flips - FLIPS_KEPT,
                limit=RUNS_PER_TRANSACTION,
            )
            if not is_gone and pings <= PINGS_KEPT and flips <= FLIPS_KEPT:
                continue
            while await self._ledger.write(shorten) == RUNS_PER_TRANSACTION:
                pass
            if is_gone:
                await self._ledger.write(partial(monitor_rows.remove, monitor_id=monitor_id))
        self._after_monitor_id = page[-1][0] if len(page) == MONITORS_PER_TICK else ""

    async def _shorten(self, job_ids: list[str], now: Instant) -> None:
        by_age = now - self._days * DAY_MS
        for job_id, oldest, kept in await self._ledger.read(
            lambda connection: run_rows.oldest_of_jobs(connection, job_ids, self._runs_per_job)
        ):
            before = by_age if kept is None else max(by_age, kept)
            while oldest is not None and oldest < before:
                if await self._ledger.write(partial(remove_runs, job_id=job_id, before=before)) < RUNS_PER_TRANSACTION:
                    break


def remove_runs(connection: Connection, job_id: str, before: Instant) -> int:
    """Remove runs of a job that ended, of slots before the instant: how many, at most RUNS_PER_TRANSACTION."""
    removed = run_rows.delete_of_job(connection, job_id, before=before, limit=RUNS_PER_TRANSACTION)
    if removed:
        execution_rows.delete_of_runs(connection, removed)
    return len(removed)


def _forget_small_things(connection: Connection, now: Instant) -> None:
    key_rows.forget_idempotent(connection, now - IDEMPOTENCY_MS)
    session_rows.delete_settled_before(connection, now - SESSIONS_MS)
    sign_in_rows.forget(connection, now - SIGN_INS_MS)
    link_rows.forget(connection, now - LINKS_MS)
    monitor_rows.forget_outages(connection, now - OUTAGES_DAYS * DAY_MS)
