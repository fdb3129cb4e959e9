"""Which engines may share a PostgreSQL ledger: many with Redis, or one without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.support.clock import wait_until
from tests.support.postgres import postgres_server

from zerocron.clock import SystemClock
from zerocron.core.errors import Conflict, Unavailable
from zerocron.storage.ledger import membership
from zerocron.storage.ledger.membership import ENGINES_LOCK, Membership


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "JOIN_SECONDS_MAX", 0.0)
    monkeypatch.setattr(membership, "CHECK_SECONDS", 0.01)


@pytest.fixture
def url() -> Iterator[str]:
    name = postgres_server().database(migrated=True)
    yield postgres_server().url(name)
    postgres_server().drop(name)


@asynccontextmanager
async def joined(url: str, *, alone: bool) -> AsyncIterator[Membership]:
    it = await Membership.join(url, clock=SystemClock(), alone=alone)
    try:
        yield it
    finally:
        await it.leave()
        await it.leave()  # twice is no error


async def holders(url: str, *, cut: bool = False) -> int:
    """How many hold the lock; `cut` ends their connections."""
    connection = await asyncpg.connect(url)
    try:
        query = (
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        found = [row["pid"] for row in await connection.fetch(query, ENGINES_LOCK)]
        if cut:
            for pid in found:  # waits until it is gone
                assert await connection.fetchval("SELECT pg_terminate_backend($1, 30000)", pid)
        return len(found)
    finally:
        await connection.close()


async def test_any_number_with_redis_work_together_and_none_without_beside_them(url: str) -> None:
    async with joined(url, alone=False), joined(url, alone=False):
        with pytest.raises(Conflict, match="this one has no Redis"):
            await Membership.join(url, clock=SystemClock(), alone=True)
        assert await holders(url) == 2
    async with joined(url, alone=True):
        for alone, words in ((False, "that one has no Redis"), (True, "this one has no Redis")):
            with pytest.raises(Conflict, match=words):
                await Membership.join(url, clock=SystemClock(), alone=alone)
    assert await holders(url) == 0, "it is given back, and nothing is left open by who was refused"


async def test_who_comes_a_moment_after_a_killed_one_waits_for_its_lock(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "JOIN_SECONDS_MAX", 30.0)
    monkeypatch.setattr(membership, "TRY_AGAIN_SECONDS", 0.01)
    before = await Membership.join(url, clock=SystemClock(), alone=True)
    after = asyncio.create_task(Membership.join(url, clock=SystemClock(), alone=True))
    await before.leave()
    await (await after).leave()


@pytest.mark.parametrize("alone", [True, False])
async def test_a_cut_connection_is_replaced_and_the_lock_taken_again(url: str, alone: bool) -> None:
    async with joined(url, alone=alone):
        for _ in range(20):  # also in the middle of a query, which the driver calls something else
            assert await holders(url, cut=True) == 1
            await _until_held(url)


async def _until_held(url: str) -> None:
    async with asyncio.timeout(30):
        while not await holders(url):
            pass


async def test_who_lost_the_lock_to_another_goes_on_and_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger decides about every run, whoever holds the lock: what is at stake is lateness."""
    monkeypatch.setattr(membership, "CHECK_SECONDS", 3_600.0)
    with capture_logs() as lines:
        async with joined(url, alone=True) as first:
            await holders(url, cut=True)
            async with joined(url, alone=True):
                monkeypatch.setattr(membership, "CHECK_SECONDS", 0.01)
                assert first._keeper is not None
                first._keeper.cancel()
                first._keeper = asyncio.create_task(first._keep())
                await wait_until(
                    lambda: any(line["event"] == "another_engine_without_redis" for line in lines), "the word of it"
                )
                assert not first._keeper.done()
            await _until_held(url)


async def test_without_a_database_nobody_joins() -> None:
    with pytest.raises(Unavailable):
        await Membership.join("postgresql://nobody@127.0.0.1:9/none", clock=SystemClock(), alone=True)
