"""The only door to time.

`now()` is the ledger's time in milliseconds since the epoch; everything that is decided or recorded uses it. Waiting is
on the event loop's monotonic clock, in bounded steps, so that a clock that is set forward or back is noticed within
one step. With SQLite the machine's clock is the ledger's; with PostgreSQL the database's is, kept by `LedgerClock`.
Must never be bypassed: ruff bans the other doors.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
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


SAMPLES_KEPT = 8
AHEAD_MS = 1
"""Ahead of a sample by more than this rounding, the clock follows a database that was set back: older ones are void."""


class LedgerClock(SystemClock):
    """The database's time, carried on by this machine's monotonic clock between samples.

    A sample (the database's time, and monotonic seconds before and after asking) puts the offset between two bounds as
    far apart as the answer took. The lower one is taken, so that `now` is never ahead of the database, and the greatest
    of the last few lower bounds, which comes from the quickest answer. Setting this machine's clock changes nothing.
    """

    def __init__(self) -> None:
        self._offsets_ms: deque[float] = deque(maxlen=SAMPLES_KEPT)
        self._offset_ms = 0.0

    def now(self) -> Instant:
        return int(self._offset_ms + time.monotonic_ns() / 1_000_000)

    def observe(self, database_now: Instant, before: float, after: float) -> None:
        """Take a sample in: the database's time lay between `before` and `after` on the monotonic clock (seconds)."""
        lower, upper = database_now - after * 1000, database_now - before * 1000
        if self._offset_ms > upper + AHEAD_MS:
            self._offsets_ms.clear()
        self._offsets_ms.append(lower)
        self._offset_ms = max(self._offsets_ms)
