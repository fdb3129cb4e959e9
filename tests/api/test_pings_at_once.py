"""Pings that are answered without a task of their own: nobody can tell (decision 0018)."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import structlog
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from tests.api.support import Client
from tests.support.clock import wait_until

from zerocron.api.pings import PingPath
from zerocron.app import Node
from zerocron.clock import SystemClock
from zerocron.core.errors import Unavailable
from zerocron.serving import Answer, HttpServer, Protocol, listen
from zerocron.storage.ledger import monitors as rows

_DATE = re.compile(rb"\r\ndate: [^\r]*")


@dataclass
class Site:
    """One application behind two servers: the second one does not know that there is a short way."""

    node: Node
    servers: tuple[HttpServer, HttpServer]

    async def say(self, request: bytes, server: int) -> bytes:
        """All that is answered until the server hangs up, without the date."""
        reader, writer = await self.connect(server)
        writer.write(request)
        async with asyncio.timeout(20):
            heard = await reader.read()
        writer.close()
        return _DATE.sub(b"", heard)

    async def connect(self, server: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.servers[server]._listener.getsockname())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(node: Node) -> AsyncIterator[Site]:
    async def by_the_long_way(scope: Scope, receive: Receive, send: Send) -> None:
        await node.application(scope, receive, send)

    servers = (
        HttpServer(node.application, listen("127.0.0.1", 0)),
        HttpServer(by_the_long_way, listen("127.0.0.1", 0)),
    )
    for server in servers:
        await server.start()
    it = Site(node, servers)
    yield it
    for server in servers:
        await server.stop()


async def kept(node: Node, monitor_id: str) -> list[rows.PingRow]:
    """The newest first, once none is in hand: who is hung up on has no answer to wait for."""
    await wait_until(lambda: not node.pings._unsettled, "the commit")
    return await node.ledger.read(
        lambda connection: rows.pings_page(connection, monitor_id, kind=None, before=None, limit=100)
    )


def what(pings: list[rows.PingRow]) -> list[tuple[Any, ...]]:
    return [
        (ping.kind, ping.rid, ping.exit_code, ping.method, ping.source, ping.user_agent, ping.body) for ping in pings
    ]


RID = "3b241101-e2bb-4255-8caf-4136c566a962"
HEADERS = (
    b"User-Agent: curl/8\r\n",
    b"user-agent: \xe9\xff\r\nUser-Agent: another\r\n",
    b"Connection: keep-alive\r\n",
    b"Connection: close\r\n",
    b"Connection: upgrade, close\r\nUpgrade: websocket\r\n",  # uvicorn drops what comes behind it
    b"Expect: 100-continue\r\n",
    b"X-Forwarded-For: 203.0.113.7\r\n",
    b"Broken\r\n",
)
BODIES = (
    b"\r\n",
    b"Content-Length: 0\r\n\r\n",
    b"Content-Length: 5\r\n\r\nhello",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
)

requests = st.builds(
    lambda method, known, path, query, version, headers, body: (
        b"%b /v1/ping/%%(%b)b%b%b HTTP/%b\r\nHost: a.example\r\n%b%b"
        % (method, known, path, query, version, b"".join(headers), body)
    ),
    st.sampled_from([b"GET", b"GET", b"HEAD", b"POST", b"PUT"]),
    st.sampled_from([b"any", b"any", b"any", b"post", b"none"]),
    st.sampled_from([b"", b"", b"/", b"/start", b"/fail", b"/log", b"/7", b"/256", b"/x", b"/fail/x", b"/%%73tart"]),
    st.sampled_from([b"", b"", f"?rid={RID}".encode(), b"?rid=x", b"?a=%%00", b"?" + b"a" * 1_025, b"#a"]),
    st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]),
    st.lists(st.sampled_from(HEADERS), max_size=2),
    st.sampled_from(BODIES),
)
LAST = b"GET /v1/ping/%(any)b/log HTTP/1.1\r\nConnection: close\r\n\r\n"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(requests, min_size=1, max_size=3))
async def test_both_ways_answer_the_same_bytes_and_keep_the_same_pings(
    site: Site, api: Client, monkeypatch: pytest.MonkeyPatch, said: list[bytes]
) -> None:
    """Several requests at once on one connection, too, and with anything odd about them."""
    monkeypatch.setattr(site.node.pings, "_per_second", 1_000_000)
    heard, known = [], []
    for server in (0, 1):
        monitors = [await api.monitor(), await api.monitor(post_only=True)]
        tokens = {
            b"any": monitors[0]["ping_token"].encode(),
            b"post": monitors[1]["ping_token"].encode(),
            b"none": b"0" * 64,
        }
        heard.append(await site.say(b"".join([*said, LAST]) % tokens, server))
        known.append([what(await kept(site.node, monitor["id"])) for monitor in monitors])
    assert heard[0] == heard[1]
    assert known[0] == known[1]


async def test_an_ordinary_ping_goes_the_short_way(site: Site, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were uvicorn to change, pings would go on, slower, and this would tell."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PingPath, "__call__", broken)
    token = (await api.monitor())["ping_token"].encode()
    for method in (b"GET", b"HEAD"):
        heard = await site.say(method + b" /v1/ping/%b/start HTTP/1.1\r\nConnection: close\r\n\r\n" % token, 0)
        assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    heard = await site.say(b"POST /v1/ping/%b HTTP/1.1\r\nConnection: close\r\n\r\n" % token, 0)
    assert heard.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize(
    ("error", "status"), [(Unavailable("The ledger is away."), 503), (ZeroDivisionError("a secret"), 500), (None, 429)]
)
async def test_what_fails_is_said_the_same_way(
    site: Site, api: Client, monkeypatch: pytest.MonkeyPatch, error: Exception | None, status: int
) -> None:
    token = (await api.monitor())["ping_token"].encode()
    request = b"GET /v1/ping/%b HTTP/1.1\r\nConnection: close\r\n\r\n" % token
    with structlog.testing.capture_logs() as logs, monkeypatch.context() as patch:
        if error is None:
            patch.setattr(site.node.pings, "_per_second", 0)
        else:
            patch.setattr(site.node.pings, "_ledger", BrokenLedger(error))
        short, long = [await site.say(request, server) for server in (0, 1)]
    assert short == long
    assert short.startswith(b"HTTP/1.1 %d " % status)
    assert (b"retry-after" in short) == (status in (429, 503))
    assert token.decode() not in repr(logs)


class SlowLedger:
    """The ledger of a node's pings, whose writes wait until they are let go."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = asyncio.Event()
        self._ledger = node.ledger
        monkeypatch.setattr(node.pings, "_ledger", self)

    async def write(self, transaction: Any) -> Any:
        await self.go.wait()
        return await self._ledger.write(transaction)


class BrokenLedger:
    """One that raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def write(self, _transaction: Any) -> Any:
        raise self._error


async def in_hand(node: Node) -> None:
    """Until a ping is."""
    await wait_until(lambda: node.pings._unsettled, "a ping in hand")


def connection_of(server: HttpServer) -> Protocol:
    """The only one it has."""
    (connection,) = server._server.server_state.connections
    assert isinstance(connection, Protocol)
    return connection


async def test_a_stop_waits_for_the_answer(node: Node, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = listen("127.0.0.1", 0)
    server = HttpServer(node.application, listener)
    await server.start()
    token = (await api.monitor())["ping_token"].encode()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    slow = SlowLedger(node, monkeypatch)
    writer.write(b"GET /v1/ping/%b HTTP/1.1\r\nHost: a.example\r\n\r\n" % token)
    await in_hand(node)
    connection = connection_of(server)
    stopping = asyncio.create_task(server.stop())
    await wait_until(lambda: not connection.cycle.keep_alive, "the stop at the connection")
    async with asyncio.timeout(10):
        assert not stopping.done()
        slow.go.set()
        heard = await reader.read()
        await stopping
    assert heard.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close\r\n" in heard
    writer.close()


async def test_who_has_gone_is_told_nothing_and_the_ping_counts(
    site: Site, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = await api.monitor()
    _, writer = await site.connect()
    slow = SlowLedger(site.node, monkeypatch)
    writer.write(b"GET /v1/ping/%b HTTP/1.1\r\nHost: a.example\r\n\r\n" % monitor["ping_token"].encode())
    await in_hand(site.node)
    connection = connection_of(site.servers[0])
    connections = connection.connections
    writer.transport.abort()
    await wait_until(lambda: not connections, "the end of the connection")
    async with asyncio.timeout(10):
        slow.go.set()
        while not await kept(site.node, monitor["id"]):
            await site.node.clock.sleep(0.01)
    assert not connection.cycle.response_started


async def test_who_does_not_read_is_waited_for_in_a_task(
    site: Site, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else answers to requests that come one behind another would pile up."""
    token = (await api.monitor())["ping_token"].encode()
    reader, writer = await site.connect()
    request = b"GET /v1/ping/%b/log HTTP/1.1\r\nHost: a.example\r\n\r\n" % token
    writer.write(request)
    async with asyncio.timeout(10):
        await reader.readuntil(b"OK\n")
        connection = connection_of(site.servers[0])
        connection.pause_writing()
        writer.write(request)
        await wait_until(lambda: connection.tasks, "a task")
        connection.resume_writing()
        assert (await reader.readuntil(b"OK\n")).startswith(b"HTTP/1.1 200")
    writer.close()


OK = Answer(200, (), b"OK\n")


class Taking:
    """An application that takes every request, and answers when a test says so."""

    def __init__(self) -> None:
        self.taken: list[Callable[[Answer], None]] = []

    def prompt(self, _scope: Scope, answer: Callable[[Answer], None]) -> bool:
        self.taken.append(answer)
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await OK.send(scope, send)


async def ask(server: HttpServer, said: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*server._listener.getsockname())
    writer.write(said)
    return reader, writer


def test_who_was_hung_up_on_with_several_requests_in_hand_is_told_nothing() -> None:
    """What follows them is no HTTP. On uvloop, which the server runs on, a write to a closed connection raises."""
    application = Taking()

    async def scenario() -> None:
        server = HttpServer(application, listen("127.0.0.1", 0))
        await server.start()
        reader, writer = await ask(server, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n" * 2 + b"Broken\r\n\r\n")
        try:
            async with asyncio.timeout(10):
                assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
            (answer,) = application.taken
            answer(OK)
        finally:
            writer.close()
            await server.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_a_connection_that_is_over_leaves_nothing_to_the_garbage_collector() -> None:
    """Most pings come on a connection of their own."""
    application = Taking()

    async def scenario() -> None:
        server = HttpServer(application, listen("127.0.0.1", 0))
        await server.start()
        reader, writer = await ask(server, b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
        gc.disable()
        try:
            async with asyncio.timeout(5):
                while not application.taken:
                    await SystemClock().sleep(0.005)
                connection = weakref.ref(connection_of(server))
                application.taken.pop()(OK)
                assert (await reader.read()).endswith(b"OK\n")
                while connection() is not None:
                    await SystemClock().sleep(0.005)
        finally:
            gc.enable()
            writer.close()
            await server.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
