"""Small acts of an operator on the ledger itself, also beside a server that runs: one-time links, limits of teams.

Each opens the ledger, does its one thing, and closes it. Must never do what the API of a running server could.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from sqlalchemy import Connection

from zerocron.actions.one_time_links import new_reset_link, new_setup_link
from zerocron.actions.team_limits import TeamLimits
from zerocron.app import keep_time, open_ledger
from zerocron.clock import Clock, LedgerClock, SystemClock
from zerocron.core.errors import Conflict
from zerocron.private_files import read_if_there
from zerocron.settings import Settings
from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.sessions import database_time
from zerocron.storage.migrations import upgrade


@contextlib.asynccontextmanager
async def _ledger_of_command(settings: Settings) -> AsyncIterator[Ledger]:
    """The ledger for a small act of a command, also beside a server that runs. Raises Invalid, Unavailable."""
    ledger: Ledger
    if settings.database_url:
        ledger = await PostgresLedger.open(settings.database_url, upgrade, connections_max=3)
    else:
        try:
            ledger = await SqliteLedger.open(settings.database_path, upgrade)
        except Conflict:
            ledger = SqliteLedger.beside(settings.database_path)
    try:
        yield ledger
    finally:
        await ledger.close()


async def one_time_url(settings: Settings, *, reset_email: str | None = None, remove_totp: bool = False) -> str:
    """A link that makes the first owner, or lets the person of that address set a new password (`remove_totp`: and
    takes off the second factor that they have lost). A server may run. Raises Conflict when there is an owner,
    NotFound, Invalid, Unavailable."""

    def make(connection: Connection) -> str:
        now = database_time(connection) or SystemClock().now()
        if reset_email is None:
            return new_setup_link(connection, now)
        return new_reset_link(connection, reset_email, now, remove_totp=remove_totp)

    async with _ledger_of_command(settings) as ledger:
        path = await ledger.write(make)
    running_at = await asyncio.to_thread(read_if_there, settings.local_url_path)
    return (settings.base_url or running_at or f"http://{settings.host}:{settings.port}").rstrip("/") + path


@contextlib.asynccontextmanager
async def team_limits(settings: Settings) -> AsyncIterator[TeamLimits]:
    """For `0cron teams limits`: the verbs on the ledger, also beside a server. Raises Invalid, Unavailable."""
    async with _ledger_of_command(settings) as ledger:
        clock: Clock = SystemClock()
        if settings.database_url:
            clock = LedgerClock()
            await keep_time(ledger, clock.observe)
        yield TeamLimits(ledger=ledger, clock=clock, defaults=settings.limits)


async def migrate(settings: Settings) -> None:
    """Bring the ledger's schema up to date, and nothing else. Raises Conflict, Invalid, Unavailable."""
    ledger, _, _ = await open_ledger(settings, None)
    await ledger.close()
