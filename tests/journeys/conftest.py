"""What a journey starts with: a running server, a person with its key, and a target to call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.journeys.server import Person, Server, serving
from tests.support.target import Target


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path / "data") as it:
        yield it


@pytest.fixture
async def person(server: Server) -> Person:
    return Person(server)


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as it:
        yield it
