"""Time that stands still until a test moves it: a `zerocron.clock.Clock` for everything that waits.

`advance` moves through the sleepers in the order of their deadlines and wakes each at its own instant; between two it
lets everything run that can run without time passing (`rest`). That is exact while nothing awaits real I/O. For what
does (a ledger in its threads), give `busy`: `rest` then also waits, in real time, until it says no.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from zerocron.core.model import Instant

T = TypeVar("T")

QUIET_TURNS = 15
"""So many rounds of the event loop without anybody being busy count as rest: no chain of callbacks here is longer."""

REAL_SECONDS_MAX = 60.0
"""What is busy for longer than this in real time hangs."""


class ManualClock:
    """Starts at an instant; `now` may be set to any other, while `monotonic` only ever advances."""

    def __init__(self, now: Instant, *, busy: Callable[[], bool] = lambda: False) -> None:
        self.busy = busy
        self._ahead_ms: float = now  # of the monotonic clock
        self._seconds = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def now(self) -> Instant:
        return round(self._ahead_ms + self._seconds * 1000)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        await self._sleeper(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set():
            return True
        setting = asyncio.create_task(event.wait())
        sleeping = self._sleeper(seconds)
        either: list[asyncio.Future[Any]] = [setting, sleeping]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            setting.cancel()
            sleeping.cancel()
            await asyncio.gather(setting, return_exceptions=True)
        return event.is_set()

    @property
    def sleepers(self) -> int:
        """How many wait for time to pass."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def set(self, now: Instant) -> None:
        """Somebody sets the clock, forward or back; no sleeper notices."""
        self._ahead_ms = now - self._seconds * 1000

    async def advance(self, seconds: float) -> None:
        """Let that much time pass, waking each sleeper when its time has come."""
        end = self._seconds + seconds
        await self.rest()
        while self._sleepers and self._sleepers[0][0] <= end:
            deadline, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._seconds = max(self._seconds, deadline)
            future.set_result(None)
            await self.rest()
        self._seconds = end
        await self.rest()

    async def until(self, condition: Callable[[], T], what: str, *, within: float = 60.0) -> T:
        """Let time pass, sleeper by sleeper, until the condition holds. AssertionError if it never does."""
        end = self._seconds + within
        await self.rest()
        while not (value := condition()):
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)
            assert self._sleepers, f"{what}: nothing waits for time to pass"
            deadline = self._sleepers[0][0]
            assert deadline <= end, f"{what}: did not come within {within} s"
            await self.advance(max(0.0, deadline - self._seconds))
        return value

    async def rest(self) -> None:
        """Let everything run that can run while time stands still."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + REAL_SECONDS_MAX
        quiet = 0
        while quiet < QUIET_TURNS:
            if self.busy():
                assert loop.time() < deadline, "something is busy for ever"
                quiet = 0
                await moment(0.0005)
            else:
                quiet += 1
                await _turn()

    def _sleeper(self, seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._seconds + max(seconds, 0.0), next(self._numbers), future))
        return future


async def moment(seconds: float = 0.002) -> None:
    """A short pause in real time, between two looks at a condition."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_later(seconds, _release, future)
    await future


def _release(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def wait_until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Real time: the first true value of the condition. AssertionError, naming what was waited for, at the deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not (value := condition()):
        assert loop.time() < deadline, f"{what} did not come within {seconds} s"
        await moment()
    return value


async def _turn() -> None:
    """One round of the event loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_soon(_release, future)
    await future
