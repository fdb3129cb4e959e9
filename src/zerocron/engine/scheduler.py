"""Turns due members into committed runs, and wakes for the next one.

Owns the claim and the wait between claims. One tick claims what there is room for and starts it in one transaction;
between ticks it sleeps until the next due instant, and less when an earlier member is put or a place becomes free. Must
never let one bad member stop the others: it is set aside and the rest of its batch goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.engine.executor import Executor
from zerocron.engine.sessions import Session
from zerocron.engine.starting import StartedBatch, StopPoint, start_batch
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import CLAIM_LIMIT_MAX, HIDE_MS, Timetable
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

FULL_BATCH = 20
COMPANY_SECONDS = 0.002
"""After a smaller batch the next claim waits this long, so that runs that come due one by one share a transaction: at a
thousand a second it halves the work for a millisecond of lateness."""

IDLE_SECONDS_MAX = 1.0
"""The longest sleep: a clock that was set, or an index another process changed, is noticed after it."""


class Scheduler:
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
        stop_point: StopPoint,
    ) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._session = session
        self._executor = executor
        self._metrics = metrics
        self._stop_point = stop_point

    async def tick(self) -> float:
        """Start what is due; returns how many seconds nothing will be."""
        self._timetable.earlier.clear()  # before every way out: left set, it would end each pause at once
        if not self._session.is_valid():
            return IDLE_SECONDS_MAX  # a node that may have been given up starts nothing
        free = self._executor.free
        if free <= 0:
            self._executor.freed.clear()
            await self._clock.wait(self._executor.freed, IDLE_SECONDS_MAX)
            return 0
        now = self._clock.now()
        claim = await self._timetable.claim(now, min(free, CLAIM_LIMIT_MAX))
        if claim.members:
            self._stop_point("claimed")
            await self._start(claim.members)
            return 0 if len(claim.members) >= FULL_BATCH else COMPANY_SECONDS
        if claim.next_due is None:
            return IDLE_SECONDS_MAX
        return min((claim.next_due - self._clock.now()) / 1000, IDLE_SECONDS_MAX)

    async def pause(self, seconds: float) -> None:
        """Sleep between ticks, unless an earlier member is put."""
        if seconds == COMPANY_SECONDS:
            await self._clock.sleep(seconds)
        elif seconds > 0:
            await self._clock.wait(self._timetable.earlier, seconds)

    async def _start(self, members: Sequence[str]) -> None:
        try:
            await self._start_together(members)
        except Unavailable:
            # They would come back by themselves, but only after the hiding time, and then count as missed.
            await self._timetable.put(dict.fromkeys(members, self._clock.now()))
            raise
        except Exception:
            if len(members) == 1:
                self._set_aside(members[0])
                return
            log.exception("batch_start_failed", members=len(members))
            for member in members:
                await self._start([member])

    async def _start_together(self, members: Sequence[str]) -> None:
        now = self._clock.now()
        session_id, stop_point = self._session.id, self._stop_point
        begun = self._clock.monotonic()
        started = await self._ledger.write(
            lambda connection: start_batch(connection, members, now=now, session_id=session_id, stop_point=stop_point)
        )
        self._metrics.transaction.labels("start").observe(self._clock.monotonic() - begun)
        self._stop_point("started")
        for run in started.runs:
            self._executor.launch(run)
        await self._publish(started, now)

    async def _publish(self, started: StartedBatch, now: Instant) -> None:
        if started.skipped:
            self._metrics.runs.labels("skipped").inc(started.skipped)
        if started.drop:
            await self._timetable.drop(started.drop)
        await put_near(self._timetable, started.put, now)

    def _set_aside(self, member: str) -> None:
        """Leave it hidden by its claim: it is tried again when that ends, and nothing waits for it meanwhile."""
        log.exception("member_set_aside", member=member, again_in_seconds=HIDE_MS // 1000)
        self._metrics.loop_errors.labels("scheduler").inc()
