"""A ledger and the engine's transactions on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.book import Book
from tests.storage.samples import sqlite_ledger

from zerocron.storage.ledger.database import SqliteLedger


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    async with sqlite_ledger(tmp_path) as it:
        yield it


@pytest.fixture
def book(ledger: SqliteLedger) -> Book:
    return Book(ledger)
