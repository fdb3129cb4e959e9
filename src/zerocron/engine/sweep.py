"""Repairs the timetable from the ledger, always.

Owns the comparison of the index with the truth. At start and then every 2 s it puts back what is overdue and missing;
every 15 s it brings what will be due within the horizon. It never decides about a run: an overdue member that is put
back goes the same way as every other.
"""

from __future__ import annotations

import structlog

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.engine.executor import Executor
from zerocron.engine.sessions import Session
from zerocron.metrics import Metrics
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable, job_member, run_member
from zerocron.storage.timetable.horizon import HORIZON_MS

log = structlog.get_logger(__name__)

SWEEP_SECONDS = 2.0
LOAD_MS = 15_000
OVERDUE_MS = 2_000
PAGE = 2_000
OVERDUE_MAX = 10_000


class Sweep:
    """One loop of one node."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        session: Session,
        executor: Executor,
        metrics: Metrics,
    ) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._session = session
        self._executor = executor
        self._metrics = metrics
        self._loaded_at: Instant | None = None
        self._loaded_until: Instant | None = None

    async def tick(self) -> float:
        """Repair once; returns the seconds until the next time."""
        now = self._clock.now()
        repaired = await self._restore_overdue(now)
        if repaired and self._loaded_until is not None:
            log.info("timetable_repaired", members=repaired)
            self._metrics.repaired.inc(repaired)
        clock_was_set_back = self._loaded_at is not None and now < self._loaded_at
        if self._loaded_at is None or now - self._loaded_at >= LOAD_MS or clock_was_set_back:
            await self._load_horizon(now, whole=clock_was_set_back)
            await self._session.settle_orphans(self._executor.in_flight)
            self._metrics.timetable_size.set(await self._timetable.size())
        return SWEEP_SECONDS

    async def _restore_overdue(self, now: Instant) -> int:
        before = now - OVERDUE_MS
        jobs = await self._ledger.read(
            lambda connection: job_rows.overdue(connection, before=before, limit=OVERDUE_MAX)
        )
        runs = await self._ledger.read(lambda connection: run_rows.due(connection, until=before, limit=OVERDUE_MAX))
        due = {job_member(job_id): instant for job_id, instant in jobs}
        due |= {run_member(run_id): instant for run_id, instant in runs}
        return await self._timetable.restore(due, now=now) if due else 0

    async def _load_horizon(self, now: Instant, *, whole: bool) -> None:
        """Bring what is due up to the horizon: all of it the first time, then the part that came into view."""
        until = now + HORIZON_MS
        start = (self._loaded_until or 0) if not whole else 0
        after = (start, "")
        while True:
            page = await self._load_page(after, until)
            if not page:
                break
            await self._timetable.restore({job_member(job_id): due for job_id, due in page}, now=now)
            job_id, due = page[-1]
            after = (due, job_id)
        runs = await self._ledger.read(lambda connection: run_rows.due(connection, until=until, limit=OVERDUE_MAX))
        await self._timetable.restore({run_member(run_id): due for run_id, due in runs}, now=now)
        self._loaded_at, self._loaded_until = now, until

    async def _load_page(self, after: tuple[Instant, str], until: Instant) -> list[tuple[str, Instant]]:
        return await self._ledger.read(
            lambda connection: job_rows.due_page(connection, after=after, until=until, limit=PAGE)
        )
