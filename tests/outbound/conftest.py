"""Every test here runs on asyncio's own loop and on uvloop: they differ in what they raise and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop
from tests.outbound.helpers import LOCAL, USER_AGENT, Dialling
from tests.support.target import Target

from zerocron.outbound import Outbound, parse_allow

CERTIFICATES = Path(__file__).parent / "certificates"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def small_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the authority of these tests alone: reading the system's takes 20 ms, in each of hundreds of tests."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.pem"))


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as it:
        yield it


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    """One that may call this machine."""
    it = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await it.start()
    yield it
    await it.close()


@pytest.fixture
async def dialling() -> AsyncIterator[Callable[[str], Dialling]]:
    """Makes Outbounds with a given allow list that stop short of connecting."""
    made: list[Dialling] = []

    def make(allow: str = "") -> Dialling:
        it = Dialling(allow=parse_allow(allow), user_agent=USER_AGENT)
        it.dialled = []
        made.append(it)
        return it

    yield make
    for it in made:
        await it.close()


@pytest.fixture(autouse=True)
async def nothing_left_running() -> AsyncIterator[None]:
    """No task outlives a test."""
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left
