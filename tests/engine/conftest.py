"""A ledger and the engine's transactions on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.book import Book
from tests.engine.house import House
from tests.storage.samples import sqlite_ledger

from zerocron.app import EARLY_MS
from zerocron.storage.ledger.database import SqliteLedger


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    async with sqlite_ledger(tmp_path) as it:
        yield it


@pytest.fixture
def book(ledger: SqliteLedger) -> Book:
    return Book(ledger)


@pytest.fixture(params=[0, EARLY_MS], ids=["at the slot", "early"])
def early_ms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """For what must hold however long before their slots runs are committed, and as long as the product does it."""
    early_ms: int = request.param
    monkeypatch.setattr(House, "early_ms", early_ms)
    monkeypatch.setattr(Book, "early_ms", early_ms)
    return early_ms
