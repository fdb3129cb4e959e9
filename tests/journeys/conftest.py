"""What a journey starts with: a running server, a person with its key, and a target to call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.journeys.server import Person, Server, serving
from tests.support.target import Target


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for every journey that lets it live."""
    with serving(tmp_path_factory.mktemp("journeys") / "data") as it:
        yield it


@pytest.fixture
def person(running: Server) -> Person:
    return Person(running)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    with serving(tmp_path / "data") as it:
        yield it


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as it:
        yield it
