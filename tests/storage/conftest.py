"""The implementations under contract. To bring one in, add one line: its contract tests then run as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.storage.samples import sqlite_ledger

from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.memory import MemoryTimetable


@asynccontextmanager
async def memory_timetable() -> AsyncIterator[Timetable]:
    yield MemoryTimetable()


TIMETABLES: dict[str, Callable[[], AbstractAsyncContextManager[Timetable]]] = {"memory": memory_timetable}
"""Each gives an empty timetable, and takes it away behind the block."""

LEDGERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Ledger]]] = {"sqlite": sqlite_ledger}
"""Each gives an empty, migrated ledger, given a folder it may keep files in."""


@pytest.fixture(params=sorted(TIMETABLES))
async def timetable(request: pytest.FixtureRequest) -> AsyncIterator[Timetable]:
    async with TIMETABLES[request.param]() as it:
        yield it


@pytest.fixture(params=sorted(LEDGERS))
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    async with LEDGERS[request.param](tmp_path) as it:
        yield it


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    """For what is promised of SQLite alone."""
    async with sqlite_ledger(tmp_path) as it:
        yield it
