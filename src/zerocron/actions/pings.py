"""Pings: taken, made durable together, and answered.

Owns the way of a ping from its request to the ledger. Whoever sent it is answered after the commit that holds it; all
that come while a commit is under way share the next one, so that a thousand of them cost a few commits and not a
thousand. Owns the pulse, too, by which an outage of the ping path is known afterwards. Must never answer for a ping
that is not durable, and never hold more of them than `WAITING_MAX`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

import structlog
from sqlalchemy import Connection

from zerocron.actions.ping_tokens import TokenDirectory
from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.monitor import GAP_MS, JUDGED_AFTER_MS, PULSE_SECONDS, Outage, Ping, PingKind, receive
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.telling import tell_flips, tell_of_outage
from zerocron.storage.timetable.contract import Timetable, monitor_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

BODY_BYTES_MAX = 10_000
BATCH_MAX = 500
WAITING_MAX = 10_000
"""Pings that wait for their commit; each may hold 10 kB. More are told to come again."""

BURST_SECONDS = 2
"""A token may use the allowance of so many seconds at once."""

BUCKETS_MAX = 100_000
_BY_ITSELF_MS = 1_000
"""Of an exclusive ledger, a gap between two processes that is longer than this is an outage."""


class Taken(Enum):
    """What became of a ping."""

    KEPT = "kept"
    UNKNOWN = "unknown"  # no monitor has this token
    NEEDS_POST = "needs post"  # the monitor takes POST only
    TOO_MANY = "too many"


@dataclass(slots=True)
class Arrival:
    """A ping with its wrapping. `body` is what was sent, up to `BODY_BYTES_MAX`; `body_bytes` how much that was."""

    ping: Ping
    method: str
    source: str
    user_agent: str
    body: bytes
    body_bytes: int
    monitor_id: str = ""


@dataclass(slots=True)
class _Written:
    """What one transaction did."""

    outcomes: list[Taken] = field(default_factory=list)
    due: dict[str, Instant] = field(default_factory=dict)


class Pings:
    """The ping path of one node. `per_second`: of one token."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        tokens: TokenDirectory,
        per_second: int,
        exclusive: bool,
    ) -> None:
        self.clock = clock
        self._ledger = ledger
        self._timetable = timetable
        self._tokens = tokens
        self._per_second = per_second
        self._exclusive = exclusive
        self._waiting: deque[tuple[Arrival, asyncio.Future[Taken]]] = deque()
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._buckets: dict[str, tuple[float, float]] = {}
        self._has_pulsed = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name="pings")

    async def stop(self) -> None:
        """Write down what has come, then stop. Stopping twice is no error."""
        task, self._task = self._task, None
        if task is None:
            return
        while self._waiting:
            await self._write_batch()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def take(self, token: str, arrival: Arrival) -> Taken:
        """What became of the ping, once that is durable. Raises Unavailable when nobody can say."""
        monitor_id = self._tokens.known(token) or await self._tokens.find(token)
        if monitor_id is None:
            return Taken.UNKNOWN
        if not self._has_room(monitor_id):
            return Taken.TOO_MANY
        if len(self._waiting) >= WAITING_MAX or self._task is None:
            raise Unavailable("Too many pings wait to be written down.")
        arrival.monitor_id = monitor_id
        future: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrival, future))
        self._came.set()
        return await future

    async def pulse(self) -> float:
        """Say that pings can be taken, and record an outage that is over; returns the seconds until the next time."""
        now = self.clock.now()
        gap_ms = _BY_ITSELF_MS if self._exclusive and not self._has_pulsed else GAP_MS

        def transaction(connection: Connection) -> tuple[Outage | None, dict[str, Instant]]:
            outage = monitor_rows.pulse(connection, now, gap_ms=gap_ms)
            return outage, {} if outage is None else tell_of_outage(connection, outage, now)

        outage, alerts = await self._ledger.write(transaction)
        self._has_pulsed = True
        if alerts:
            await put_near(self._timetable, alerts, now)
        if outage is not None:
            seconds = (outage.ended_at - outage.started_at) / 1000
            log.warning("pings_were_not_taken", seconds=seconds, hint="No monitor is blamed for this time.")
        return PULSE_SECONDS

    def _has_room(self, monitor_id: str) -> bool:
        """One bucket of allowances a monitor, filled as time goes by."""
        now = self.clock.monotonic()
        most = self._per_second * BURST_SECONDS
        left, at = self._buckets.get(monitor_id, (most, now))
        left = min(most, left + (now - at) * self._per_second)
        if left < 1:
            self._buckets[monitor_id] = (left, now)
            return False
        if len(self._buckets) >= BUCKETS_MAX:
            self._buckets.clear()
        self._buckets[monitor_id] = (left - 1, now)
        return True

    async def _work(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                await self._write_batch()

    async def _write_batch(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
        try:
            await self._write(batch)
        except Unavailable as error:
            _refuse(batch, error)
        except Exception:
            log.exception("pings_not_written", pings=len(batch))
            await self._write_one_by_one(batch)

    async def _write_one_by_one(self, batch: list[tuple[Arrival, asyncio.Future[Taken]]]) -> None:
        """So that one that cannot be written takes no other with it."""
        for item in batch:
            try:
                await self._write([item])
            except Exception as error:
                _refuse([item], error)

    async def _write(self, batch: list[tuple[Arrival, asyncio.Future[Taken]]]) -> None:
        arrivals = [arrival for arrival, _ in batch]
        now = self.clock.now()
        written = await self._ledger.write(lambda connection: _record(connection, arrivals, now))
        for (_, future), outcome in zip(batch, written.outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)
        if written.due:
            await put_near(self._timetable, written.due, now)


def _refuse(batch: list[tuple[Arrival, asyncio.Future[Taken]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)


def _record(connection: Connection, arrivals: list[Arrival], now: Instant) -> _Written:
    """One transaction: the pings, what they did to their monitors, and the flips."""
    held = monitor_rows.lock(connection, list({arrival.monitor_id for arrival in arrivals}), wait=True)
    seen_flips = {one.id: one.flips for one in held.values()}
    deadlines = {one.id: one.watch.deadline_at for one in held.values()}
    outages = _outages(connection, arrivals, held, now)
    written = _Written()
    rows, flips, touched, outputs = [], [], {}, {}
    for arrival in arrivals:
        one = held.get(arrival.monitor_id)
        if one is None:
            written.outcomes.append(Taken.UNKNOWN)
            continue
        if one.post_only and arrival.method != "POST":
            written.outcomes.append(Taken.NEEDS_POST)
            continue
        ping = arrival.ping
        brought, duration = receive(one.expectation, one.watch, ping, now=now, outages=outages)
        if brought:
            flips += [monitor_rows.flip_row(one, flip, now) for flip in brought]
            outputs[one.id] = _text(arrival)
        one.pings += 1
        touched[one.id] = one
        rows.append(_row(arrival, one.number_and_team, duration))
        written.outcomes.append(Taken.KEPT)
    if rows:
        changed = list(touched.values())
        monitor_rows.save_watches(connection, changed, [seen_flips[one.id] for one in changed])
        monitor_rows.insert_pings(connection, rows)
    if flips:
        monitor_rows.insert_flips(connection, flips)
        written.due |= tell_flips(connection, flips, now, outputs)
    for one in touched.values():
        deadline, before = one.watch.deadline_at, deadlines[one.id]
        if deadline is not None and (before is None or deadline < before):
            written.due[monitor_member(one.team_id, one.id)] = deadline + JUDGED_AFTER_MS
    return written


def _outages(
    connection: Connection, arrivals: list[Arrival], held: dict[str, monitor_rows.Watched], now: Instant
) -> list[Outage]:
    """Those that matter to the monitors whose deadline is past or is to be set; none for the many that are up."""
    since: Instant | None = None
    for arrival in arrivals:
        one = held.get(arrival.monitor_id)
        if one is None or one.watch.deadline_at is None or one.watch.deadline_at >= arrival.ping.at:
            continue
        begun = [run.started_at for run in one.watch.runs.values()]
        since = min([now if since is None else since, one.watch.anchor or now, *begun])
    return [] if since is None else monitor_rows.known_outages(connection, since, now)


def _row(arrival: Arrival, number_and_team: tuple[str, int, str], duration: int | None) -> list[object]:
    ping = arrival.ping
    monitor_id, number, team_id = number_and_team
    kind = ping.kind
    return [
        monitor_id,
        number,
        team_id,
        str(kind),
        ping.at,
        ping.rid,
        ping.exit_code,
        duration,
        arrival.method,
        arrival.source,
        arrival.user_agent,
        _text(arrival),
        arrival.body_bytes,
    ]


def _text(arrival: Arrival) -> str | None:
    return arrival.body.decode("utf-8", "replace").replace("\0", "\ufffd") if arrival.body else None


def kind_of(word: str) -> tuple[PingKind, int | None] | None:
    """(kind, exit code) of what stands behind the token in an address; None when it means nothing."""
    if word in _WORDS:
        return _WORDS[word], None
    if word.isascii() and word.isdecimal() and len(word) <= 3 and int(word) <= 255:
        code = int(word)
        return (PingKind.SUCCESS if code == 0 else PingKind.FAIL), code
    return None


_WORDS = {"": PingKind.SUCCESS, "start": PingKind.START, "fail": PingKind.FAIL, "log": PingKind.LOG}
