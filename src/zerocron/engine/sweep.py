"""Repairs the timetable from the ledger, always.

Owns the comparison of the index with the truth. At start and then every 2 s the node on duty puts back what is overdue
and missing; every 15 s it brings what will be due within the horizon; and when the index was lost, one node loads it
anew, slice by slice. It never decides about a run: an overdue member that is put back goes the same way as every other.
Must never let anything else come between: a step that fails keeps no other from its turn.
"""

from __future__ import annotations

from functools import partial

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.core.model import Due, Instant
from zerocron.core.monitor import JUDGED_AFTER_MS
from zerocron.engine.executor import Executor
from zerocron.engine.sessions import Session
from zerocron.metrics import Metrics
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable, alert_member, job_member, monitor_member, run_member
from zerocron.storage.timetable.horizon import HORIZON_MS

log = structlog.get_logger(__name__)

SWEEP_SECONDS = 2.0
LOAD_MS = 15_000
OVERDUE_MS = 2_000
DUTY_SECONDS = 6.0
"""A node on duty that falls silent is replaced after this."""

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
        self._settled_at: Instant | None = None
        self._timetable_is_away = False
        self._is_rebuilding = False

    async def tick(self) -> float:
        """Repair once; returns the seconds until the next time. Raises what a step raised, after the others."""
        now = self._clock.now()
        failures: list[Exception] = []
        for step in (self._settle, self._repair_unless_away, self._measure_overdue):
            try:
                await step(now)
            except Unavailable:
                raise  # the others would fail as well
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return SWEEP_SECONDS

    async def _settle(self, now: Instant) -> None:
        if self._settled_at is None or abs(now - self._settled_at) >= LOAD_MS:
            await self._session.settle_orphans(lambda: self._executor.in_hand)
            self._settled_at = now

    async def _repair_unless_away(self, now: Instant) -> None:
        try:
            await self._repair(now)
        except TimetableAway:
            if not self._timetable_is_away:
                log.warning("timetable_not_swept", hint="It does not answer; what is due is started from the ledger.")
            self._timetable_is_away = True
        else:
            self._timetable_is_away = False

    @property
    def index_is_sound(self) -> bool:
        """Whether the timetable took in all it was given; if not, what is due may be in the ledger alone."""
        return not (self._timetable_is_away or self._is_rebuilding)

    async def _repair(self, now: Instant) -> None:
        if not self._is_rebuilding and await self._timetable.lost(now):  # to ask again would say that it is done
            if self._loaded_at is None:
                log.info("timetable_is_empty", hint="It is filled from the ledger.")
            else:
                log.warning("timetable_lost", hint="It is loaded anew from the ledger; service goes on meanwhile.")
            self._metrics.rebuilt.inc()
            self._is_rebuilding = True
        if self._is_rebuilding:  # until it succeeds: a loss is told once, and to one node
            await self._load_horizon(now, whole=True)
            self._is_rebuilding = False
        self._metrics.timetable_size.set(await self._timetable.size())
        if not await self._timetable.on_duty(DUTY_SECONDS):
            return
        repaired = await self._restore_overdue(now)
        if repaired and self._loaded_until is not None:
            log.info("timetable_repaired", members=repaired)
            self._metrics.repaired.inc(repaired)
        clock_was_set_back = self._loaded_at is not None and now < self._loaded_at
        if self._loaded_at is None or now - self._loaded_at >= LOAD_MS or clock_was_set_back:
            await self._load_horizon(now, whole=clock_was_set_back)

    async def _measure_overdue(self, now: Instant) -> None:
        """On every node, whether the timetable answers or not: an alarm must not depend on what it watches."""

        def oldest(connection: Connection) -> list[Due]:
            return [
                *job_rows.overdue(connection, before=now, limit=1),
                *run_rows.due(connection, until=now, limit=1),
            ]

        due = await self._ledger.read(oldest)
        self._metrics.overdue.set(max((now - it.at for it in due), default=0) / 1000)

    async def _restore_overdue(self, now: Instant) -> int:
        before = now - OVERDUE_MS
        jobs = await self._ledger.read(
            lambda connection: job_rows.overdue(connection, before=before, limit=OVERDUE_MAX)
        )
        runs = await self._ledger.read(lambda connection: run_rows.due(connection, until=before, limit=OVERDUE_MAX))
        due = _job_members(jobs) | _run_members(runs)
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
            await self._timetable.restore(_job_members(page), now=now)
            after = (page[-1].at, page[-1].id)
        await self._load_monitors((start, ""), until, now)
        await self._load_alerts((start, ""), until, now)
        runs = await self._ledger.read(lambda connection: run_rows.due(connection, until=until, limit=OVERDUE_MAX))
        await self._timetable.restore(_run_members(runs), now=now)
        self._loaded_at, self._loaded_until = now, until

    async def _load_monitors(self, after: tuple[Instant, str], until: Instant, now: Instant) -> None:
        """The deadlines that came into view."""
        while True:
            page = await self._ledger.read(partial(monitor_rows.due_page, after=after, until=until, limit=PAGE))
            if not page:
                return
            members = {monitor_member(one.team_id, one.id): one.at + JUDGED_AFTER_MS for one in page}
            await self._timetable.restore(members, now=now)
            after = (page[-1].at, page[-1].id)

    async def _load_alerts(self, after: tuple[Instant, str], until: Instant, now: Instant) -> None:
        """The alerts that are to be sent, or tried again."""
        while True:
            page = await self._ledger.read(partial(alert_rows.due_page, after=after, until=until, limit=PAGE))
            if not page:
                return
            await self._timetable.restore({alert_member(one.team_id, one.id): one.at for one in page}, now=now)
            after = (page[-1].at, page[-1].id)

    async def _load_page(self, after: tuple[Instant, str], until: Instant) -> list[Due]:
        return await self._ledger.read(
            lambda connection: job_rows.due_page(connection, after=after, until=until, limit=PAGE)
        )


def _job_members(jobs: list[Due]) -> dict[str, Instant]:
    return {job_member(job.team_id, job.id): job.at for job in jobs}


def _run_members(runs: list[Due]) -> dict[str, Instant]:
    return {run_member(run.team_id, run.id): run.at for run in runs}
