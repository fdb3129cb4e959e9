"""One node for all tests of a file, on one event loop; a team of its own for each test.

Not for the whole folder: files are run in any order, and a node whose loop stands still meanwhile loses its session.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.api.support import Client, client_of
from tests.support.channels import FakeHook, FakeKind
from tests.support.target import Target

from zerocron.app import Node, run_node
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import Settings

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("api"), outbound_allow="127.0.0.0/8", drain_seconds=0)


@pytest.fixture(scope="module")
def fake() -> FakeKind:
    """The kind of channel that the node has."""
    return FakeKind()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(settings: Settings, fake: FakeKind) -> AsyncIterator[Node]:
    async with run_node(settings, kinds={"fake": fake, "webhook": FakeHook()}) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def api(node: Node) -> Client:
    """A team of this test's own."""
    return await client_of(node, str(uuid.uuid4()))


@pytest_asyncio.fixture(loop_scope="module")
async def first_team(node: Node) -> Client:
    """The server's, whose admins may do what is about all teams."""
    return await client_of(node, DEFAULT_TEAM_ID)


@pytest_asyncio.fixture(loop_scope="module")
async def stranger(node: Node) -> Client:
    """Another team."""
    return await client_of(node, str(uuid.uuid4()))


@pytest_asyncio.fixture(loop_scope="module")
async def target() -> AsyncIterator[Target]:
    async with Target() as it:
        yield it
