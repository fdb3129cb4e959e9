"""This node's session, and what is left of sessions that ended.

Owns the row by which other nodes know that this one lives. States: a session is valid for `VALIDITY_MS` after each
renewal, by the ledger's clock; it ends as `closed` (this node said so) or `fenced` (another did, or it expired), and an
ended session never becomes valid again: its node opens a new one. Once none of its runs is left running it is settled.

Who may take over: a node that has itself renewed without a gap for one whole validity. After an outage of the ledger
everybody's session looks expired, and only then has every living node had the time to say that it lives; so an outage
never doubles a request. When the ledger's clock is set forward they all look expired, too: a node that sees it jump
begins its steady time anew. The SQLite ledger belongs to one process at a time (its file lock): whoever opens it knows
that every other session is over, and fences them at once.

A node whose own session is not valid starts nothing and sends nothing. What it has sent it records, late or not.
"""

from __future__ import annotations

import asyncio
import statistics
import uuid
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant, Run
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

GAP_SECONDS = 12.0
"""Two renewals further apart than this are a gap: a renewal was missed, and the node's steady time begins anew."""

CLOCK_DIFFERENCE_MS_MAX = 5_000
CLOCK_JURY_MIN = 3
"""So many living nodes can outvote the ledger's clock: if the median of their clocks is further from it than
`CLOCK_DIFFERENCE_MS_MAX`, it is the ledger's that is wrong, and starts are held."""

TAKE_OVER_BATCH = 200
ORPHAN_MS = 30_000
"""A run of ours that is `running` but that nobody here executes is lost once its start is this long ago."""

ORPHANS_MAX = 10_000

OnTime = Callable[[Instant, float, float], None]
"""Told the database's time, and this machine's monotonic seconds before and after it was asked for."""


class Session:
    """The session of this process. `exclusive`: the ledger is this process's alone."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        metrics: Metrics,
        node: str,
        version: str,
        exclusive: bool = True,
        on_time: OnTime = lambda _now, _before, _after: None,
        machine_now: Callable[[], Instant] | None = None,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._metrics = metrics
        self._node = node
        self._version = version
        self._exclusive = exclusive
        self._on_time = on_time
        self._machine_now = machine_now or clock.now
        self._renewed_at: float | None = None
        self._ledger_ahead_ms = 0.0  # of our monotonic clock, at the last renewal
        self._steady_since: float | None = None
        self._renewed = asyncio.Event()
        self._clocks_agree = True
        self._told_of: type[Exception] | None = None  # why stalled transactions cannot be ended
        metrics.session_valid.set_function(lambda: float(self.is_valid()))

    async def open(self) -> int:
        """Begin; how many runs of dead processes were settled. Only an exclusive one settles any yet."""
        await self._open()
        if not self._exclusive:
            return 0
        others = await self._ledger.read(lambda connection: session_rows.unended_except(connection, self.id))
        if others:
            await self._end(others, reason="fenced")
        return await self._settle_ended()

    def is_valid(self) -> bool:
        """Whether this node may start runs. Judged on monotonic time from before the last renewal was sent."""
        if self._renewed_at is None or not self._clocks_agree:
            return False
        return (self._clock.monotonic() - self._renewed_at) * 1000 < VALIDITY_MS - SAFETY_MS

    async def permits(self, run: Run) -> bool:
        """Whether a started run may be sent. While the ledger is away the answer waits; it is no once another node
        has ended the session under which the run was started."""
        while run.session_id == self.id and self._renewed_at is not None:
            if self.is_valid():
                return True
            self._renewed.clear()
            await self._clock.wait(self._renewed, RENEW_SECONDS)
        return False

    async def tick(self) -> float:
        """Renew, and take over what others left when this node is fit to; returns the seconds until the next time."""
        await self.renew()
        if not self._exclusive:
            await self._end_stalled()
        if self._may_take_over():
            if not self._exclusive:
                await self._fence_expired()
            await self._settle_ended()
        return RENEW_SECONDS

    async def renew(self) -> None:
        """Prolong the session, or open a new one when another node has ended it."""
        begun = self._clock.monotonic()

        def transaction(connection: Connection) -> tuple[Instant | None, bool, list[int]]:
            database_now = session_rows.database_time(connection)
            now = self._clock.now() if database_now is None else database_now
            difference = self._machine_now() - now
            renewed = session_rows.renew(
                connection, self.id, now=now, expires_at=now + VALIDITY_MS, clock_difference_ms=difference
            )
            differences = session_rows.live_clock_differences(connection, now) if database_now is not None else []
            return database_now, renewed, differences

        database_now, renewed, differences = await self._ledger.write(transaction)
        self._take_time(database_now, begun)
        self._judge_clocks(differences)
        if renewed:
            self._note_renewal(begun, database_now)
            return
        log.error("session_fenced", session_id=self.id, hint="This node was silent for too long; it goes on anew.")
        self._renewed_at = None
        self._renewed.set()
        self.id = str(uuid.uuid4())
        await self._open()

    def lose(self, session_id: str) -> None:
        """Somebody saw that this session has ended: start nothing until the next renewal has opened a new one."""
        if session_id == self.id:  # else that has been done meanwhile
            self._renewed_at = None
            self._renewed.set()

    async def settle_orphans(self, in_hand: Callable[[], frozenset[str]]) -> int:
        """Settle runs of this session that nobody executes, such as one whose result could not be written.

        `in_hand` names those that somebody here executes or is about to. It is asked after the ledger: a run whose
        commit was waited for all through an outage must not be taken for lost in the moment it is launched.
        """
        now = self._clock.now()
        session_id = self.id
        mine = await self._ledger.read(
            lambda connection: run_rows.running_of_sessions(connection, [session_id], ORPHANS_MAX)
        )
        known = in_hand()
        orphans = [run for run in mine if run.id not in known and (run.attempt_started_at or 0) < now - ORPHAN_MS]
        if not orphans:
            return 0
        finished = await self._ledger.write(lambda connection: settle_lost_runs(connection, orphans, now=now))
        log.error("orphaned_runs_settled", count=finished.settled)
        await self._publish(finished, now)
        return finished.settled

    async def close(self) -> None:
        """End the session and settle runs that were aborted with it; closing twice is no error."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        self._renewed.set()
        await self._end([self.id], reason="closed")
        await self._settle_ended()

    async def _open(self) -> None:
        begun = self._clock.monotonic()

        def transaction(connection: Connection) -> Instant | None:
            database_now = session_rows.database_time(connection)
            now = self._clock.now() if database_now is None else database_now
            session_rows.insert(
                connection,
                session_id=self.id,
                node=self._node,
                version=self._version,
                now=now,
                expires_at=now + VALIDITY_MS,
            )
            return database_now

        database_now = await self._ledger.write(transaction)
        self._take_time(database_now, begun)
        self._steady_since = None
        self._note_renewal(begun, database_now)

    def _note_renewal(self, begun: float, database_now: Instant | None) -> None:
        gap = self._renewed_at is None or begun - self._renewed_at > GAP_SECONDS
        ahead_ms = 0 if database_now is None else database_now - begun * 1000
        was_set = abs(ahead_ms - self._ledger_ahead_ms) > CLOCK_DIFFERENCE_MS_MAX
        if gap or was_set or self._steady_since is None:
            self._steady_since = begun
        self._ledger_ahead_ms = ahead_ms
        self._renewed_at = begun
        self._renewed.set()

    def _take_time(self, database_now: Instant | None, begun: float) -> None:
        if database_now is None:
            return
        self._on_time(database_now, begun, self._clock.monotonic())
        self._metrics.clock_difference.set((self._machine_now() - self._clock.now()) / 1000)

    def _judge_clocks(self, differences: Sequence[int]) -> None:
        """The ledger's clock decides, unless most of the machines say that it is wrong (PROMISES.md C 44)."""
        wrong = len(differences) >= CLOCK_JURY_MIN and abs(statistics.median(differences)) > CLOCK_DIFFERENCE_MS_MAX
        if wrong and self._clocks_agree:
            log.error("ledger_clock_is_wrong", differences_ms=sorted(differences), hint="Starts are held meanwhile.")
        self._clocks_agree = not wrong

    def _may_take_over(self) -> bool:
        if self._exclusive:
            return True
        if not self.is_valid() or self._steady_since is None:
            return False
        return (self._clock.monotonic() - self._steady_since) * 1000 >= VALIDITY_MS

    async def _end_stalled(self) -> None:
        try:
            ended = await self._ledger.write(session_rows.end_stalled)
        except Exception as error:  # such as a role that may not: no reason to leave the runs of dead nodes alone
            if type(error) is not self._told_of:
                log.warning("stalled_transactions_not_ended", reason=type(error).__name__)
            self._told_of = type(error)
            return
        self._told_of = None
        if ended:
            log.warning("stalled_transactions_ended", count=ended, hint="A node stood still or was cut off in them.")

    async def _fence_expired(self) -> None:
        def transaction(connection: Connection) -> int:
            now = session_rows.database_time(connection)
            return session_rows.fence_expired(
                connection, self._clock.now() if now is None else now, validity_ms=VALIDITY_MS
            )

        fenced = await self._ledger.write(transaction)
        if fenced:
            log.warning("sessions_fenced", count=fenced)
            self._metrics.sessions_fenced.inc(fenced)

    async def _end(self, session_ids: Sequence[str], *, reason: str) -> None:
        now = self._clock.now()
        await self._ledger.write(lambda connection: session_rows.end(connection, session_ids, now=now, reason=reason))

    async def _settle_ended(self) -> int:
        """Take over the running runs of all sessions that ended; how many were settled now."""
        ended = await self._ledger.read(session_rows.unsettled)
        if not ended:
            return 0
        total = 0
        while True:
            now = self._clock.now()
            finished = await self._ledger.write(partial(_take_over, session_ids=ended, now=now))
            total += finished.settled
            await self._publish(finished, now)
            if not finished.settled:  # what another transaction holds is left for the next time
                await self._ledger.write(partial(_mark_settled, session_ids=ended, now=now))
                break
        if total:
            log.warning("lost_runs_settled", count=total, sessions=len(ended))
            self._metrics.lost_runs.inc(total)
        return total

    async def _publish(self, finished: Finished, now: Instant) -> None:
        for status in finished.ended:
            self._metrics.runs.labels(status).inc()
        await put_near(self._timetable, finished.put, now)


def _take_over(connection: Connection, session_ids: Sequence[str], now: Instant) -> Finished:
    return take_over_batch(connection, session_ids, now=now, limit=TAKE_OVER_BATCH)


def _mark_settled(connection: Connection, session_ids: Sequence[str], now: Instant) -> None:
    """No run of theirs can start any more: a start holds its session's row, and a session ends only when none does."""
    if not run_rows.running_of_sessions(connection, session_ids, 1):
        session_rows.mark_settled(connection, session_ids, now)
