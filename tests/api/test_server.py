"""The API through a real web server: what arrives as bytes, however broken."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from tests.api.support import JOB, Client

from zerocron.app import Node
from zerocron.serving import HEAD_BYTES_MAX, HttpServer, listen, url_of


@dataclass(frozen=True)
class Wire:
    """A listening server, to which anything may be said."""

    url: str
    port: int
    key: str

    @property
    def head(self) -> bytes:
        return f"Host: evil.example\r\nAuthorization: Bearer {self.key}\r\n".encode()

    async def say(self, first: bytes, more: Iterable[bytes] = ()) -> bytes:
        """Write it all, and read until the server hangs up or a whole answer is there."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        heard = b""
        try:
            async with asyncio.timeout(20):
                writer.write(first)
                for part in more:
                    writer.write(part)
                    await writer.drain()
                while not _is_whole(heard):
                    part = await reader.read(65_536)
                    if not part:
                        break
                    heard += part
        except ConnectionError:
            heard = heard or b"(hung up)"
        finally:
            writer.close()
        return heard


def _is_whole(heard: bytes) -> bool:
    head, found, body = heard.partition(b"\r\n\r\n")
    if not found:
        return False
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return len(body) >= int(length.partition(b":")[2])


@pytest_asyncio.fixture(loop_scope="module")
async def wire(node: Node, api: Client) -> AsyncIterator[Wire]:
    listener = listen("127.0.0.1", 0)
    server = HttpServer(node.application, listener)
    await server.start()
    yield Wire(url_of(listener), listener.getsockname()[1], api.key or "")
    await server.stop()


def status_of(heard: bytes) -> int:
    assert heard.startswith(b"HTTP/1.1 "), heard[:200]
    return int(heard.split()[1])


async def test_a_client_of_its_own_kind(wire: Wire) -> None:
    headers = {"Authorization": f"Bearer {wire.key}", "Idempotency-Key": str(uuid.uuid4())}
    async with aiohttp.ClientSession(wire.url, headers=headers) as session:
        async with session.post("/v1/jobs", json=JOB) as made:
            assert made.status == 201
            job = await made.json()
            assert made.headers["Location"] == f"/v1/jobs/{job['id']}"
        async with session.head(f"/v1/jobs/{job['id']}") as head:
            assert (head.status, await head.read()) == (200, b"")
            assert int(head.headers["Content-Length"]) > 100
        async with session.delete(f"/v1/jobs/{job['id']}") as gone:
            assert (gone.status, await gone.read()) == (204, b"")


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: +2\r\n\r\n{}",
        b"Content-Length: 2x\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        b"Content-Length: 2, 3\r\n\r\n{}",
        b"Content-Length: 99999999999999999999999999\r\n\r\n{}",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"Transfer-Encoding: gzip\r\n\r\n{}",
        b"X: a\r\n Y: folded\x00\r\n\r\n",
        b"X\x00Y: a\r\n\r\n",
    ],
)
async def test_framing_that_two_servers_might_read_differently_is_refused(wire: Wire, framing: bytes) -> None:
    heard = await wire.say(b"POST /v1/jobs HTTP/1.1\r\n" + wire.head + framing)

    assert status_of(heard) == 400
    assert b"connection: close" in heard.lower()


async def test_a_chunked_body_without_length_has_the_same_bound(wire: Wire) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    heard = await wire.say(
        b"POST /v1/jobs HTTP/1.1\r\n" + wire.head + b"Transfer-Encoding: chunked\r\n\r\n", [chunk] * 40
    )

    assert status_of(heard) == 413
    assert b"1,572,864 bytes" in heard


async def test_who_announces_too_much_is_told_before_sending_it(wire: Wire) -> None:
    heard = await wire.say(
        b"POST /v1/jobs HTTP/1.1\r\n" + wire.head + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"
    )

    assert status_of(heard) == 413  # and no 100


async def test_who_has_no_key_is_refused_before_the_body(wire: Wire) -> None:
    heard = await wire.say(
        b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"
    )

    assert status_of(heard) == 401


async def test_a_chunked_job_is_a_job(wire: Wire) -> None:
    body = json.dumps(JOB).encode()
    parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:10], body[10:])]

    heard = await wire.say(
        b"POST /v1/jobs HTTP/1.1\r\n" + wire.head + b"Transfer-Encoding: chunked\r\n\r\n", [*parts, b"0\r\n\r\n"]
    )

    assert status_of(heard) == 201


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"GET /healthz HTTP/1.1\r\nX-A: ", [b"a" * 60_000] * 100),
        (b"GET /healthz HTTP/1.1\r\n", [b"X-A: aaaaaaaa\r\n" * 4_000] * 100),
        (b"GET /", [b"a" * 60_000] * 100),
        (b"GET /healthz HTTP/1.1\r\n", [b"A" * 60_000] * 100),
    ],
)
async def test_a_head_without_end_is_cut(wire: Wire, first: bytes, more: list[bytes]) -> None:
    """uvicorn would gather it all; the client is hung up on after 64 KiB and what the system had buffered."""
    heard = await wire.say(first, more)

    assert heard == b"(hung up)" or status_of(heard) == 400


@pytest.mark.parametrize("more", [b"X-A: aaaaaaaa\r\n" * 4_000, b"X-A: " + b"a" * 60_000])
async def test_trailers_without_end_are_cut(wire: Wire, more: bytes) -> None:
    """uvicorn would keep them for as long as they come, also behind an answer, and from somebody without a key."""
    head = b"POST /v1/ping/nothing HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    assert await wire.say(head, [more] * 400) == b"(hung up)"


async def test_a_large_head_is_fine(wire: Wire) -> None:
    headers = b"".join(b"X-%d: %b\r\n" % (n, b"a" * 1_000) for n in range(50))
    assert len(headers) < HEAD_BYTES_MAX

    heard = await wire.say(b"GET /v1/jobs HTTP/1.1\r\n" + wire.head + headers + b"\r\n")

    assert status_of(heard) == 200


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"OPTIONS * HTTP/1.1", 404),
        (b"GET http://evil.example/healthz HTTP/1.1", 200),
        (b"CONNECT evil.example:80 HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /v1/jobs/%00 HTTP/1.1", 404),
        (b"GET /v1/jobs?q=%00 HTTP/1.1", 422),
        (b"GET /v1/jobs/%ff%fe HTTP/1.1", 404),
        (b"GET /v1/jobs/../../etc/passwd HTTP/1.1", 404),
        (b"GET /v1/jobs/%2e%2e%2f HTTP/1.1", 404),
        (b"TRACE / HTTP/1.1", 405),
        (b"G\xc3\x89T / HTTP/1.1", 400),
        (b"GET / HTTP/9.9", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ],
)
async def test_unusual_requests(wire: Wire, request_line: bytes, status: int) -> None:
    heard = await wire.say(request_line + b"\r\n" + wire.head + b"\r\n")

    assert status_of(heard) == status
    assert b"evil.example" not in heard
    assert b"Traceback" not in heard


async def test_an_upgrade_is_not_taken(wire: Wire) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"

    heard = await wire.say(b"GET /v1/jobs HTTP/1.1\r\n" + wire.head + upgrade + b"\r\n")

    assert status_of(heard) == 200  # as if it had not been asked for
