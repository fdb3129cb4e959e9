"""Deliveries go through a real Outbound to a server on this machine that speaks as the service does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop
from tests.channels.specimens import AT
from tests.support.target import Target

from zerocron.channels.contract import Ways
from zerocron.channels.email import tls_context
from zerocron.core.exchange import Outcome, Request
from zerocron.outbound import Outbound, parse_allow

CERTIFICATES = Path(__file__).parents[1] / "outbound" / "certificates"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """On uvloop, as the server runs."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def small_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the authority of the tests alone."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.pem"))
    tls_context.cache_clear()


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with Target() as it:
        yield it


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    it = Outbound(allow=parse_allow("127.0.0.0/8"), user_agent="0cron/test")
    await it.start()
    yield it
    await it.close()


@pytest.fixture
def ways_to(outbound: Outbound, target: Target) -> Callable[[str], Ways]:
    """Ways on which a service at this origin is the target: the request is judged, sent and answered as ever."""

    def make(origin: str) -> Ways:
        async def send(request: Request) -> Outcome:
            assert request.redirects == 0
            assert request.verify_tls
            assert request.url.startswith(origin + "/"), "sent to somebody else"
            return await outbound.send(replace(request, url=target.url + request.url.removeprefix(origin)))

        return Ways(send=send, now=lambda: AT, dial=outbound.dial)

    return make
