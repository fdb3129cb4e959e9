"""An engine in virtual time over a real SQLite ledger that fails on demand.

Owns three stand-ins: an event loop whose clock jumps to the next timer as soon as nothing is left to do (a minute takes
milliseconds, and a slow machine changes nothing), a `Ledger` around `SqliteLedger` whose n-th write fails, and a target
without a network. While a transaction is in its thread, virtual time stands still.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import selectors
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from tests.faults.world import Log

from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.exchange import Outcome, Request, Response, Timings
from zerocron.storage.ledger.database import SqliteLedger, Transaction

T = TypeVar("T")
EPOCH_MS = 1_800_000_000_000
REAL_SECONDS_MAX = 30
"""A transaction that takes longer than this has hung."""


class _Selector(selectors.DefaultSelector):
    """Waits in virtual time; in real time only for threads at work."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual = 0.0
        self.at_work = 0

    def select(self, timeout: float | None = None) -> Any:
        if self.at_work or timeout is None:
            ready = super().select(REAL_SECONDS_MAX if timeout != 0 else 0)
            assert ready or timeout == 0, "a transaction hangs, or nothing is left that could ever happen"
            return ready
        ready = super().select(0)
        if not ready:
            self.virtual += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Use it as `asyncio.Runner(loop_factory=VirtualLoop)`."""

    def __init__(self) -> None:
        self.waiter = _Selector()
        super().__init__(self.waiter)

    def time(self) -> float:
        return self.waiter.virtual

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Something is under way in a thread: time stands still."""
        self.waiter.at_work += 1
        try:
            yield
        finally:
            self.waiter.at_work -= 1


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class VirtualClock:
    """`zerocron.clock.Clock` on the loop's time. It ticks a millisecond ahead of the loop's rounding.

    Transactions ask it in the ledger's thread, where no loop runs: there it is the loop of the journey.
    """

    def __init__(self) -> None:
        self._loop: VirtualLoop | None = None

    def now(self) -> int:
        return EPOCH_MS + round(self.monotonic() * 1000)

    def monotonic(self) -> float:
        with contextlib.suppress(RuntimeError):
            self._loop = virtual_loop()
        assert self._loop is not None, "time is asked for before the journey begins"
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        done = asyncio.Event()
        timer = virtual_loop().call_later(max(seconds, 0.001), done.set)
        try:
            await done.wait()
        finally:
            timer.cancel()

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.001)):
                await event.wait()
        return event.is_set()


Failing = Literal["before", "after", "unclear", "error", "die-before", "die-after"]
"""The write is refused; it is committed and the answer is lost, by a ledger that does not say so or by one that does
(PostgreSQL's); it raises what nobody expects; and the whole process ends before or after it: nothing more comes back
from the ledger until somebody has cleared up (`Stage.kill`)."""


class AnswerLost(Unavailable):
    """The write was committed, and the ledger does not say that this may be so."""


@dataclass(slots=True)
class Outage:
    """Which writes fail: the `number`-th (from 1), or all of a stretch of virtual time."""

    how: Failing
    number: int | None = None
    between: tuple[float, float] | None = None

    def meets(self, number: int, at: float) -> bool:
        if self.between is not None:
            return self.between[0] <= at < self.between[1]
        return number == self.number


@dataclass(slots=True)
class FaultyLedger:
    """Keeps the contract of `Ledger`, except when the outage says otherwise."""

    inner: SqliteLedger
    outage: Outage | None
    fault_log: Log
    writes: int = 0
    failed: int = 0
    dead: bool = False

    async def write(self, transaction: Transaction[T]) -> T:
        self.writes += 1
        loop = virtual_loop()
        how = self.outage.how if self.outage is not None and self.outage.meets(self.writes, loop.time()) else None
        await self._still_alive(how == "die-before")
        if how in ("before", "after", "unclear", "error"):
            self._log(how)
        if how == "before":
            raise Unavailable("refused by the test")
        if how == "error":
            raise RuntimeError("by the test")
        with loop.working():
            result = await self.inner.write(transaction)
        await self._still_alive(how == "die-after")
        if how == "after":
            raise AnswerLost("the answer was lost by the test")
        if how == "unclear":
            raise Unclear("the answer was lost by the test, and the ledger knows")
        return result

    async def _still_alive(self, dies: bool) -> None:
        self.dead = self.dead or dies
        if self.dead:
            await asyncio.Event().wait()

    async def read(self, transaction: Transaction[T]) -> T:
        await self._still_alive(False)
        with virtual_loop().working():
            return await self.inner.read(transaction)

    async def close(self) -> None:
        with virtual_loop().working():
            await self.inner.close()

    def _log(self, how: Failing) -> None:
        self.failed += 1
        now = VirtualClock().now()
        # A failed start gives its claim back; a member whose start fails even alone is set aside for 10 s.
        self.fault_log.write(kind="ledger", **{"from": now, "to": now + (12_000 if how == "error" else 6_000)})


Act = Callable[[int, int], tuple[float, int]]
"""(how many requests this path had before, attempt) -> (seconds until the answer, its status)."""


@dataclass(slots=True)
class VirtualTarget:
    """Answers in process; logs like a target of `world.py`."""

    log: Log
    acts: Mapping[str, Act]
    seen: dict[str, int] = field(default_factory=dict)
    requests: int = 0

    async def send(self, request: Request) -> Outcome:
        clock = VirtualClock()
        headers = {name.lower(): value for name, value in request.headers}
        path = str(urlsplit(request.url).path)
        number, self.requests = self.requests, self.requests + 1
        kept = {name: value for name, value in headers.items() if name.startswith(("x-0cron-", "idempotency-key"))}
        self.log.write(n=number, wall_ms=clock.now(), method=request.method, path=path, headers=kept)
        before = self.seen.get(path, 0)
        self.seen[path] = before + 1
        seconds, status = self.acts[path](before, int(headers["x-0cron-attempt"]))
        await clock.sleep(seconds)
        body = b"ok"
        digest = hashlib.sha256(body).hexdigest()
        self.log.write(event="answered", n=number, status=status, body_sha256=digest)
        response = Response(status, (), body, len(body), truncated=False, content_type=None)
        return Outcome(response, None, Timings(None, None, None, seconds * 1000, seconds * 1000))
