"""The implementations under contract. To bring one in, add one line: its contract tests then run as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.storage.samples import postgres_ledger, sqlite_ledger
from tests.support.people import House, house_over
from tests.support.redis import redis_server

from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.memory import MemoryTimetable
from zerocron.storage.timetable.redis import RedisTimetable

_prefixes = (f"test-{number}" for number in count())


@asynccontextmanager
async def memory_timetables(nodes: int) -> AsyncIterator[Sequence[Timetable]]:
    yield [MemoryTimetable()] * nodes


@asynccontextmanager
async def redis_timetables(nodes: int) -> AsyncIterator[Sequence[RedisTimetable]]:
    prefix = next(_prefixes)
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(nodes):
            opened.append(await RedisTimetable.open(redis_server().url(), prefix=prefix))
            stack.push_async_callback(opened[-1].close)
        yield opened
        await opened[0].clear()


TIMETABLES: dict[str, Callable[[int], AbstractAsyncContextManager[Sequence[Timetable]]]] = {
    "memory": memory_timetables,
    "redis": redis_timetables,
}
"""Each gives one empty timetable as so many nodes see it (a process is one node), and takes it away again."""

LEDGERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Ledger]]] = {
    "sqlite": sqlite_ledger,
    "postgres": postgres_ledger,
}
"""Each gives an empty, migrated ledger, given a folder it may keep files in."""


@pytest.fixture(params=sorted(TIMETABLES))
async def timetable(request: pytest.FixtureRequest) -> AsyncIterator[Timetable]:
    async with TIMETABLES[request.param](1) as nodes:
        yield nodes[0]


@pytest.fixture(params=sorted(TIMETABLES))
async def two_nodes(request: pytest.FixtureRequest) -> AsyncIterator[Sequence[Timetable]]:
    async with TIMETABLES[request.param](2) as nodes:
        yield nodes


@pytest.fixture(params=sorted(LEDGERS))
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    async with LEDGERS[request.param](tmp_path) as it:
        yield it


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    """For what is promised of SQLite alone."""
    async with sqlite_ledger(tmp_path) as it:
        yield it


@pytest.fixture
async def house(ledger: Ledger) -> AsyncIterator[House]:
    """People and their sign-ins over the ledger."""
    async with house_over(ledger) as it:
        yield it
