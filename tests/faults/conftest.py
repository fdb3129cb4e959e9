"""Fixtures of the fault tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.faults import world as worlds
from tests.faults.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A prepared ledger and a target, without a node yet."""
    async with worlds.world(tmp_path) as it:
        yield it


@pytest.fixture(autouse=True)
async def nothing_left_running() -> AsyncIterator[None]:
    """No task outlives a test."""
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left
