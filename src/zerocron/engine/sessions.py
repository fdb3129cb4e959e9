"""This node's session, and what is left of sessions that ended.

Owns the row by which other nodes know that this one lives. States: a session is valid from its insertion for
`VALIDITY_MS` after each renewal; it ends as `closed` (this node said so) or `fenced` (somebody else did), and an ended
session never becomes valid again. A node whose own session is not valid starts nothing.

Trust: the SQLite ledger belongs to one process at a time (its file lock), so whoever opens it knows that every other
session is over, and fences them at once instead of waiting for them to expire.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.engine.finishing import Finished, settle_lost_runs, take_over_batch
from zerocron.metrics import Metrics
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

VALIDITY_MS = 30_000
RENEW_SECONDS = 5.0
SAFETY_MS = 5_000
"""A node stops starting runs this long before its session could be taken for expired."""

TAKE_OVER_BATCH = 200
ORPHAN_MS = 30_000
"""A run of ours that is `running` but that nobody here executes is lost once its start is this long ago."""


class Session:
    """The session of this process."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        metrics: Metrics,
        node: str,
        version: str,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._metrics = metrics
        self._node = node
        self._version = version
        self._renewed_at: float | None = None

    async def open(self) -> int:
        """Begin, fence every earlier session of this ledger and settle what they left; how many runs that was."""
        now = self._clock.now()
        begun = self._clock.monotonic()
        await self._ledger.write(
            lambda connection: session_rows.insert(
                connection,
                session_id=self.id,
                node=self._node,
                version=self._version,
                now=now,
                expires_at=now + VALIDITY_MS,
            )
        )
        self._renewed_at = begun
        others = await self._ledger.read(lambda connection: session_rows.unended_except(connection, self.id))
        return await self._take_over(others, reason="fenced") if others else 0

    def is_valid(self) -> bool:
        """Whether this node may start runs. Judged on monotonic time from before the last renewal was sent."""
        if self._renewed_at is None:
            return False
        return (self._clock.monotonic() - self._renewed_at) * 1000 < VALIDITY_MS - SAFETY_MS

    async def renew(self) -> float:
        """Prolong the session; returns the seconds until the next time."""
        now = self._clock.now()
        begun = self._clock.monotonic()
        renewed = await self._ledger.write(
            lambda connection: session_rows.renew(connection, self.id, now=now, expires_at=now + VALIDITY_MS)
        )
        if renewed:
            self._renewed_at = begun
        else:
            self._renewed_at = None
            log.error("session_fenced", session_id=self.id, hint="Restart this node; it starts nothing any more.")
        return RENEW_SECONDS

    async def settle_orphans(self, in_flight: frozenset[str]) -> int:
        """Settle runs of this session that nobody executes, such as after a commit whose answer was lost."""
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[int, Finished | None]:
            mine = run_rows.lock_running_of_sessions(connection, [self.id], limit=100_000)
            orphans = [
                run for run in mine if run.id not in in_flight and (run.attempt_started_at or 0) < now - ORPHAN_MS
            ]
            return len(orphans), settle_lost_runs(connection, orphans, now=now) if orphans else None

        count, finished = await self._ledger.write(transaction)
        if finished is not None:
            log.error("orphaned_runs_settled", count=count)
            await self._publish(finished, now)
        return count

    async def close(self) -> None:
        """End the session and settle runs that were aborted with it; closing twice is no error."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        await self._take_over([self.id], reason="closed")

    async def _take_over(self, session_ids: Sequence[str], *, reason: str) -> int:
        now = self._clock.now()
        await self._ledger.write(lambda connection: session_rows.end(connection, session_ids, now=now, reason=reason))
        total = 0
        while True:
            finished = await self._ledger.write(
                lambda connection: take_over_batch(connection, session_ids, now=now, limit=TAKE_OVER_BATCH)
            )
            if not finished.settled:
                break
            total += finished.settled
            await self._publish(finished, now)
        if total:
            log.warning("lost_runs_settled", count=total, sessions=len(session_ids))
        return total

    async def _publish(self, finished: Finished, now: Instant) -> None:
        for status in finished.ended:
            self._metrics.runs.labels(status).inc()
        await put_near(self._timetable, finished.put, now)
