"""Keeps stored instants true when the rules of time zones change.

Owns one act at start: when the ledger's instants were computed with other zone data than this release carries, the next
slot of every cron job is computed again. A slot that is due already is left to the scheduler.
"""

from __future__ import annotations

import dataclasses

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant, Job
from zerocron.storage.ledger import facts
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger, Transaction

log = structlog.get_logger(__name__)

FACT = "tzdata"
PAGE = 500


async def refresh(ledger: Ledger, clock: Clock, version: str) -> int:
    """Compute again what needs it; how many jobs moved."""
    known = await ledger.read(lambda connection: facts.get(connection, FACT))
    if known == version:
        return 0
    moved = 0
    if known is not None:
        moved = await _recompute(ledger, clock.now())
        log.info("zone_data_changed", before=known, after=version, jobs_moved=moved)
    await ledger.write(lambda connection: facts.put(connection, FACT, version))
    return moved


async def _recompute(ledger: Ledger, now: Instant) -> int:
    moved = 0
    after_id = ""
    while True:
        page, changed = await ledger.write(_recompute_page(after_id, now))
        if not page:
            return moved
        moved += changed
        after_id = page[-1]


def _recompute_page(after_id: str, now: Instant) -> Transaction[tuple[list[str], int]]:
    def transaction(connection: Connection) -> tuple[list[str], int]:
        page = job_rows.cron_jobs_due_after(connection, after_id=after_id, now=now, limit=PAGE)
        changed: list[Job] = []
        seen: dict[str, Instant | None] = {}
        for job in page:
            recorded = run_rows.newest_slot(connection, job.id)  # later than now if the clock was set back since
            following = job.schedule.next_after(max(now, recorded or now))
            if following is not None and following != job.state.next_run_at:
                seen[job.id] = job.state.next_run_at
                changed.append(dataclasses.replace(job, state=dataclasses.replace(job.state, next_run_at=following)))
        if changed:
            job_rows.save_states(connection, changed, seen)
        return [job.id for job in page], len(changed)

    return transaction
