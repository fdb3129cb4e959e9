"""The only door to time.

`now()` is the ledger's time in milliseconds since the epoch; everything that is decided or recorded uses it. Waiting is
on the event loop's monotonic clock, in bounded steps, so that a clock that is set forward or back is noticed within
one step. With SQLite the machine's clock is the ledger's. Must never be bypassed: ruff bans the other doors.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from zerocron.core.model import Instant


class Clock(Protocol):
    """What the house asks of time; tests bring one that they move by hand."""

    def now(self) -> Instant:
        """The ledger's time."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that is never set; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long on the monotonic clock."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most that long; whether it was set."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> Instant:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set():
            return True
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True
