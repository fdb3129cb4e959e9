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
from itertools import islice

import structlog
from sqlalchemy import Connection

from zerocron.actions.ping_tokens import TokenDirectory
from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.monitor import GAP_MS, JUDGED_AFTER_MS, PULSE_SECONDS, Outage, Ping, PingKind, excuse, receive
from zerocron.core.recent import Recent
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.telling import tell_flips, tell_of_outage
from zerocron.storage.timetable.contract import Timetable, monitor_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)
_told = Recent()

BODY_BYTES_MAX = 10_000
BATCH_MAX = 500
GATHER_SECONDS_MAX = 0.005
"""So long after the last answers a batch waits for those who were answered, while more of them come in each step."""

GATHER_STEP_SECONDS = 0.001

WAITING_MAX = 10_000
"""Pings that wait for their commit; each may hold 10 kB. More are told to come again."""

HELD_AT_ONCE = 2
"""So many monitors are waited for at once that somebody else holds; each takes a connection."""

STOP_SECONDS_MAX = 15.0
"""How long a stop waits for commits: longer than the ledger takes to give one up."""

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
    FAILED = "failed"  # its monitor cannot be judged; the log has why


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


@dataclass(slots=True, eq=False)
class _Item:
    """A ping that waits for its commit, and whoever waits for that."""

    arrival: Arrival
    future: asyncio.Future[Taken]


@dataclass(slots=True)
class _Written:
    """What one transaction did."""

    outcomes: list[Taken | None] = field(default_factory=list)
    """None: somebody else holds the monitor."""
    due: dict[str, Instant] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)

    def note_due(self, touched: list[monitor_rows.Watched], before: dict[str, Instant | None]) -> None:
        """The deadlines that became earlier; later ones are found by whoever looks."""
        for one in touched:
            deadline, earlier = one.watch.deadline_at, before[one.id]
            if deadline is not None and (earlier is None or deadline < earlier):
                self.due[monitor_member(one.team_id, one.id)] = deadline + JUDGED_AFTER_MS


@dataclass(frozen=True, slots=True)
class _Refused:
    """What this node refused and has not written down yet: from when to when, and whose successes."""

    span: tuple[Instant, ...] = ()
    of_monitors: dict[str, Instant] = field(default_factory=dict)

    @property
    def outages(self) -> list[Outage]:
        return [Outage(*self.span)] if self.span else []

    def excuse(self, held: dict[str, monitor_rows.Watched]) -> None:
        for monitor_id, at in self.of_monitors.items():
            if monitor_id in held:
                excuse(held[monitor_id].watch, at)


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
        self._waiting: deque[_Item] = deque()
        self._held: dict[str, list[_Item]] = {}  # of monitors that somebody else holds
        self._held_places = asyncio.Semaphore(HELD_AT_ONCE)
        self._helpers: set[asyncio.Task[None]] = set()
        self._unsettled: dict[_Item, None] = {}  # all that are in hand, the oldest first
        self._refused: tuple[Instant, ...] = ()
        self._refused_of: dict[str, Instant] = {}
        self._came = asyncio.Event()
        self._awaited = 1  # `_came` is set when so many wait
        self._expected, self._answered_at = 0, 0.0  # those that waited or were answered then
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
        if self._unsettled:
            await asyncio.wait([item.future for item in self._unsettled], timeout=STOP_SECONDS_MAX)
        for working in (task, *self._helpers):
            working.cancel()
        await asyncio.gather(task, *self._helpers, return_exceptions=True)

    @property
    def owed_since(self) -> Instant | None:
        """Of the pings that came from this instant on, some may be missing in the ledger: they wait to be written down,
        or were refused, and nobody knows of that yet."""
        owed = [item.arrival.ping.at for item in islice(self._unsettled, 1)]
        return min([*owed, *self._refused[:1]], default=None)

    def known(self, token: str) -> str | None:
        """The monitor that a token is for, as far as this node knows."""
        return self._tokens.known(token)

    async def find(self, token: str) -> str | None:
        """The monitor that a token is for. Raises Unavailable when nobody can say."""
        try:
            return await self._tokens.find(token)
        except Unavailable:
            self._note_refused(self.clock.now())
            raise

    def take(self, monitor_id: str, arrival: Arrival) -> asyncio.Future[Taken]:
        """Take a ping: what became of it, once that is durable. The future raises Unavailable when nobody can say."""
        future: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        if not self._has_room(monitor_id):
            future.set_result(Taken.TOO_MANY)
            return future
        arrival.monitor_id = monitor_id
        item = _Item(arrival, future)
        if len(self._unsettled) >= WAITING_MAX or self._task is None:
            self._refuse([item], Unavailable("Too many pings wait to be written down."))
            return future
        self._unsettled[item] = None
        self._waiting.append(item)
        if len(self._waiting) >= self._awaited:
            self._came.set()
        return future

    async def pulse(self) -> float:
        """Say that pings can be taken, and record outages that are over; returns the seconds until the next time."""
        now = self.clock.now()
        gap_ms = _BY_ITSELF_MS if self._exclusive and not self._has_pulsed else GAP_MS
        refused = self._unwritten()
        try:
            outages, alerts = await self._ledger.write(lambda connection: _pulse(connection, now, gap_ms, refused))
        except Exception:
            self._note_refused(now)  # a ping would have fared no better
            raise
        if self._refused == refused.span:  # else the longer one is written down next time
            self._refused = ()
        self._refused_of = {one: at for one, at in self._refused_of.items() if at != refused.of_monitors.get(one)}
        self._has_pulsed = True
        if alerts:
            await put_near(self._timetable, alerts, now)
        for outage in outages:
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
                await self._gather()
                await self._write_batch()

    async def _gather(self) -> None:
        """Wait a moment for those who have just been answered: whoever comes again at all comes at once. Without this
        one ping would be written alone and all others wait for it, time after time (1, 49, 1, 49 of 50 senders)."""
        until = self._answered_at + GATHER_SECONDS_MAX
        come = 0
        while come < len(self._waiting) < self._expected and self.clock.monotonic() < until:
            come = len(self._waiting)
            self._awaited = self._expected
            self._came.clear()
            await self.clock.wait(self._came, GATHER_STEP_SECONDS)
        self._awaited = 1

    async def _write_batch(self) -> None:
        batch: list[_Item] = []
        while self._waiting and len(batch) < BATCH_MAX:
            item = self._waiting.popleft()
            behind = self._held.get(item.arrival.monitor_id)
            if behind is None:
                batch.append(item)
            else:
                behind.append(item)  # pings of one monitor stay in their order
        if batch:
            await self._write(batch)

    async def _write_held(self, monitor_id: str) -> None:
        """The pings of a monitor that somebody else holds, while those of all others go on."""
        async with self._held_places:
            while items := self._held[monitor_id]:
                batch = items[:BATCH_MAX]
                del items[:BATCH_MAX]
                await self._write(batch, wait=True)
        del self._held[monitor_id]

    async def _write(self, batch: list[_Item], *, wait: bool = False) -> None:
        """Settle every item of the batch. `wait` for monitors that somebody else holds; else they are held back."""
        try:
            await self._write_together(batch, wait=wait)
        except Unavailable as error:
            self._refuse(batch, error, by_one_row=wait)
        except Exception as error:
            if len(batch) == 1:
                self._refuse(batch, error, by_one_row=True)
                return
            log.exception("pings_not_written", pings=len(batch))
            for item in batch:  # so that one that cannot be written takes no other with it
                if not wait and item.arrival.monitor_id in self._held:
                    self._hold(item)  # behind an earlier one of its monitor
                else:
                    await self._write([item], wait=wait)

    async def _write_together(self, batch: list[_Item], *, wait: bool) -> None:
        arrivals = [item.arrival for item in batch]
        now = self.clock.now()
        refused = self._unwritten()
        written = await self._ledger.write(lambda connection: _record(connection, arrivals, now, refused, wait=wait))
        for monitor_id, error in written.failed.items():
            if _told.is_new(monitor_id):
                log.error("ping_not_judged", monitor=monitor_id, exc_info=error)
        for item, outcome in zip(batch, written.outcomes, strict=True):
            if outcome is None:
                self._hold(item)
                continue
            self._unsettled.pop(item, None)
            if not item.future.done():
                item.future.set_result(outcome)
        self._expected = min(len(self._waiting) + len(batch), BATCH_MAX)
        self._answered_at = self.clock.monotonic()
        if written.due:
            try:
                await put_near(self._timetable, written.due, now)
            except Exception as error:  # the pings are durable; whoever is overdue is found in the ledger
                log.warning("deadlines_not_put", members=len(written.due), reason=str(error))

    def _hold(self, item: _Item) -> None:
        monitor_id = item.arrival.monitor_id
        if monitor_id in self._held:
            self._held[monitor_id].append(item)
            return
        self._held[monitor_id] = [item]
        helper = asyncio.create_task(self._write_held(monitor_id), name="pings-held")
        self._helpers.add(helper)
        helper.add_done_callback(self._helpers.discard)

    def _refuse(self, batch: list[_Item], error: Exception, *, by_one_row: bool = False) -> None:
        """Whoever sent them is told to come again, and nobody is blamed: `by_one_row`, which concerns no other monitor,
        the monitor itself; else whoever may have tried in that time."""
        for item in batch:
            self._unsettled.pop(item, None)
            if not item.future.done():
                item.future.set_exception(error)
            ping = item.arrival.ping
            if not by_one_row:
                self._note_refused(ping.at)
            if ping.kind == PingKind.SUCCESS and len(self._refused_of) < BATCH_MAX:
                self._refused_of[item.arrival.monitor_id] = ping.at

    def _unwritten(self) -> _Refused:
        return _Refused(self._refused, dict(self._refused_of))

    def _note_refused(self, at: Instant) -> None:
        self._refused = _span(*self._refused, at)


def _span(*instants: Instant) -> tuple[Instant, ...]:
    """(the first, the last), or nothing."""
    return (min(instants), max(instants)) if instants else ()


def _pulse(
    connection: Connection, now: Instant, gap_ms: int, refused: _Refused
) -> tuple[list[Outage], dict[str, Instant]]:
    """One transaction: the outages that are over, and the members of the alerts about them."""
    gap = monitor_rows.pulse(connection, now, gap_ms=gap_ms)
    for outage in refused.outages:
        monitor_rows.insert_outage(connection, outage)
    if refused.of_monitors:
        held = monitor_rows.lock(connection, list(refused.of_monitors), wait=False)
        refused.excuse(held)
        if held:
            monitor_rows.save_watches(connection, list(held.values()), [one.flips for one in held.values()])
    outages = [*refused.outages, *([] if gap is None else [gap])]
    alerts: dict[str, Instant] = {}
    for outage in outages:
        alerts |= tell_of_outage(connection, outage, now)
    return outages, alerts


def _record(
    connection: Connection, arrivals: list[Arrival], now: Instant, refused: _Refused, *, wait: bool
) -> _Written:
    """One transaction: the pings, what they did to their monitors, and the flips."""
    held, busy = _hold(connection, {arrival.monitor_id for arrival in arrivals}, wait=wait)
    refused.excuse(held)
    seen_flips = {one.id: one.flips for one in held.values()}
    deadlines = {one.id: one.watch.deadline_at for one in held.values()}
    outages = _outages(connection, arrivals, held, now, refused)
    written = _Written()
    rows: list[tuple[str, list[object]]] = []
    flips: list[monitor_rows.FlipRow] = []
    outputs: dict[str, str | None] = {}
    for arrival in arrivals:
        one = held.get(arrival.monitor_id)
        if one is None:
            written.outcomes.append(None if arrival.monitor_id in busy else Taken.UNKNOWN)
            continue
        if one.post_only and arrival.method != "POST":
            written.outcomes.append(Taken.NEEDS_POST)
            continue
        written.outcomes.append(Taken.KEPT)
        try:
            brought, duration = receive(one.expectation, one.watch, arrival.ping, now=now, outages=outages)
        except Exception as error:  # its schedule, its zone, its row: nothing of this batch is kept of it
            written.failed[one.id] = error
        else:
            if brought:
                flips += [monitor_rows.flip_row(one, flip, now) for flip in brought]
                outputs[one.id] = _text(arrival)
            one.pings += 1
            rows.append((one.id, _row(arrival, one.number_and_team, duration)))
    if written.failed:
        rows = [(monitor_id, row) for monitor_id, row in rows if monitor_id not in written.failed]
        flips = [flip for flip in flips if flip.monitor_id not in written.failed]
        written.outcomes = [
            Taken.FAILED if arrival.monitor_id in written.failed and outcome == Taken.KEPT else outcome
            for arrival, outcome in zip(arrivals, written.outcomes, strict=True)
        ]
    touched = [held[monitor_id] for monitor_id in dict.fromkeys(monitor_id for monitor_id, _ in rows)]
    written.due |= tell_flips(connection, held, flips, now, outputs)
    if rows:
        seen = [seen_flips[one.id] for one in touched]
        monitor_rows.save_pings(connection, touched, seen, [row for _, row in rows])
    if flips:
        monitor_rows.insert_flips(connection, flips)
    written.note_due(touched, deadlines)
    return written


def _hold(connection: Connection, wanted: set[str], *, wait: bool) -> tuple[dict[str, monitor_rows.Watched], set[str]]:
    """(those that are ours now, those that are somebody else's)."""
    held = monitor_rows.lock(connection, list(wanted), wait=wait)
    missing = [] if wait else [monitor_id for monitor_id in wanted if monitor_id not in held]
    return held, monitor_rows.existing(connection, missing) if missing else set()


def _outages(
    connection: Connection,
    arrivals: list[Arrival],
    held: dict[str, monitor_rows.Watched],
    now: Instant,
    refused: _Refused,
) -> list[Outage]:
    """Those that matter to the monitors whose deadline is past or is to be set; none for the many that are up."""
    since: Instant | None = None
    for arrival in arrivals:
        one = held.get(arrival.monitor_id)
        if one is None or one.watch.deadline_at is None or one.watch.deadline_at >= arrival.ping.at:
            continue
        begun = [run.started_at for run in one.watch.runs.values()]
        since = min([now if since is None else since, one.watch.anchor or now, *begun])
    return [] if since is None else [*monitor_rows.known_outages(connection, since, now), *refused.outages]


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
