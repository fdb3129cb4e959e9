"""What attempts read from the ledger before they are sent: patiently, and together.

Owns how long an attempt waits for a ledger that is away, and the sharing of queries: attempts that ask at the same time
share one, so that a burst costs a few. Must never keep what it read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable

READ_TRIES = 5
READ_AGAIN_SECONDS = 1.0
ASKED_AT_ONCE_MAX = 200

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


async def patiently(clock: Clock, read: Callable[[], Awaitable[T]]) -> T:
    """What is read, after some tries while the ledger is away. Raises Unavailable."""
    for _ in range(READ_TRIES - 1):
        try:
            return await read()
        except Unavailable:
            await clock.sleep(READ_AGAIN_SECONDS)
    return await read()


class _Asked(NamedTuple, Generic[K, V]):
    keys: frozenset[K]
    found: asyncio.Future[dict[K, V]]


class SharedReads(Generic[K, V]):
    """One query for all who ask meanwhile. `query` is given keys and returns those that there are with their values."""

    def __init__(self, query: Callable[[frozenset[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._query = query
        self._asked: list[_Asked[K, V]] = []
        self._reading: asyncio.Task[None] | None = None

    async def get(self, keys: frozenset[K]) -> dict[K, V]:
        """What a query finds that begins after this was called. Raises what the query does."""
        asked = _Asked(keys, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_for_all(), name="shared-reads")
        return await asked.found

    async def close(self) -> None:
        """Wait for the query under way; closing twice is no error."""
        reading = self._reading
        if reading is not None:
            await asyncio.wait([reading])

    async def _read_for_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked[:ASKED_AT_ONCE_MAX], self._asked[ASKED_AT_ONCE_MAX:]
            await self._read(asked)
        self._reading = None

    async def _read(self, asked: list[_Asked[K, V]]) -> None:
        try:
            found = await self._query(frozenset().union(*(item.keys for item in asked)))
        except Exception as error:
            if len(asked) > 1 and not isinstance(error, Unavailable):
                for item in asked:  # so that a row that cannot be read fails nobody but who needs it
                    await self._read([item])
                return
            for item in asked:
                if not item.found.done():
                    item.found.set_exception(error)
            return
        for item in asked:
            if not item.found.done():  # its attempt may have been given up
                item.found.set_result({key: found[key] for key in item.keys if key in found})
