"""Which engine nodes may share a PostgreSQL ledger: any number with Redis, or one without.

Owns one advisory lock on a connection of its own: nodes with Redis hold it together, a node without holds it alone. It
keeps a mistake of the operator from becoming lateness (a node without Redis hears of nothing that others put into
their timetables); it guards no data: the ledger decides about every run, whoever holds the lock. So a node whose
connection is cut goes on, and takes the lock again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg
import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Conflict, Unavailable
from zerocron.storage.ledger.postgres import connect_alone

log = structlog.get_logger(__name__)

ENGINES_LOCK = 0x0C205
"""The key of the advisory lock: any number, the same for all releases."""

JOIN_SECONDS_MAX = 5.0
"""PostgreSQL lets go of the lock of a killed process a moment after it is gone."""

TRY_AGAIN_SECONDS = 0.25
CHECK_SECONDS = 10.0
ANSWER_SECONDS_MAX = 5.0
"""Nothing that is asked waits for anything in the server: without an answer by then the connection is dead."""

_LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What the driver makes of a connection that is cut, the third of one that is cut in the middle of a query."""

ANOTHER_ENGINE = (
    "Another engine node works on this database, and {which} has no Redis: without it there can be only one engine. "
    "Set ZEROCRON_REDIS_URL=redis://... on every node."
)


class Membership:
    """This node's hold on the lock."""

    def __init__(self, url: str, *, clock: Clock, alone: bool) -> None:
        self._url = url
        self._clock = clock
        self._alone = alone
        self._connection: asyncpg.Connection[Any] | None = None
        self._keeper: asyncio.Task[None] | None = None

    @classmethod
    async def join(cls, url: str, *, clock: Clock, alone: bool) -> Membership:
        """Take the lock, `alone` or with others, and keep it. Raises Conflict when the other nodes do not allow it."""
        membership = cls(url, clock=clock, alone=alone)
        deadline = clock.monotonic() + JOIN_SECONDS_MAX
        while not await membership._take():
            if clock.monotonic() >= deadline:
                raise Conflict(ANOTHER_ENGINE.format(which="this one" if alone else "that one"))
            await clock.sleep(TRY_AGAIN_SECONDS)
        membership._keeper = asyncio.create_task(membership._keep(), name="membership")
        return membership

    async def leave(self) -> None:
        """Give the lock back; leaving twice is no error."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        await self._disconnect()

    async def _take(self) -> bool:
        await self._disconnect()
        self._connection = await connect_alone(self._url)
        function = "pg_try_advisory_lock" if self._alone else "pg_try_advisory_lock_shared"
        try:
            taken = bool(
                await self._connection.fetchval(f"SELECT {function}($1)", ENGINES_LOCK, timeout=ANSWER_SECONDS_MAX)
            )
        except _LOST as error:
            raise Unavailable("The database cannot be used now.") from error
        if not taken:
            await self._disconnect()
        return taken

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(CHECK_SECONDS)
            connection = self._connection
            if connection is not None and not connection.is_closed():
                with contextlib.suppress(*_LOST):
                    await connection.fetchval("SELECT 1", timeout=ANSWER_SECONDS_MAX)
                    continue
            try:
                if not await self._take():
                    log.error("another_engine_without_redis", hint=ANOTHER_ENGINE.format(which="one of them"))
            except Unavailable:
                log.warning("membership_not_renewed", hint="The database does not answer; it is tried again.")

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
