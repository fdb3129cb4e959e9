"""A TCP proxy that misbehaves on request: what lies between a node and its PostgreSQL or Redis in fault tests.

    async with Proxy("127.0.0.1", server.port) as proxy:   # clients connect to proxy.host, proxy.port
        await proxy.cut()                                  # every open connection is reset (RST, not FIN)
        proxy.refuse = True                                # new connections are reset at once
        proxy.silent = True                                # bytes vanish both ways, and nobody is told: a cut cable
        proxy.delay_seconds = 0.5                          # each chunk waits that long, each way
        proxy.target = (host, other_port)                  # new connections go there
        proxy.on_request = lambda chunk: "cut_after" if b"COMMIT" in chunk else "pass"

A chunk is what one read of a socket gave: a request that is written at once and is smaller than 64 KiB comes in one.
What happens in the very middle of a reset is not promised; what was forwarded before it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from socket import SO_LINGER, SOL_SOCKET
from typing import Literal, Self

from zerocron.clock import SystemClock

RequestVerdict = Literal["pass", "cut", "cut_after", "drop"]
"""`cut` resets before forwarding; `cut_after` forwards, waits for the server's answer, drops it and resets; `drop`
swallows the chunk."""

AnswerVerdict = Literal["pass", "cut", "drop"]

_CHUNK_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # linger for no time at all: closing sends RST


class Proxy:
    """Listens on a free port of the loopback address from `async with` to its end; forwards to `target`."""

    host = "127.0.0.1"

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.refuse = False
        self.delay_seconds = 0.0
        self.on_request: Callable[[bytes], RequestVerdict] = _pass
        self.on_answer: Callable[[bytes], AnswerVerdict] = _pass
        self.accepted = 0
        """How many connections were made so far, refused ones not counted."""
        self._audible = asyncio.Event()
        self._audible.set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for link in list(self._links):
            link.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        return self._port

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._links)

    @property
    def silent(self) -> bool:
        return not self._audible.is_set()

    @silent.setter
    def silent(self, silent: bool) -> None:
        if silent:
            self._audible.clear()
        else:
            self._audible.set()

    async def cut(self) -> None:
        """Reset every open connection, on both sides; returns when the resets are on their way."""
        for link in list(self._links):
            link.reset()
        while self._links:  # the pumps notice in the next turns of the loop
            await asyncio.wait([link.done for link in self._links])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self.refuse:
                _reset(writer)
                return
            self.accepted += 1
            await self._connect(reader, writer)
        except asyncio.CancelledError:
            pass  # only by __aexit__; the stream server would report it as a fault of ours
        finally:
            _reset(writer)
            self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._audible.wait()
        try:
            server_reader, server_writer = await asyncio.open_connection(*self.target)
        except OSError:
            return
        link = _Link(self, reader, writer, server_reader, server_writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)
            link.done.set_result(None)

    async def audible(self) -> None:
        """Wait until the proxy is no longer silent."""
        await self._audible.wait()


class _Link:
    """One client's connection and the one to the server that it stands for."""

    def __init__(
        self,
        proxy: Proxy,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proxy = proxy
        self._client_reader, self._client_writer = client_reader, client_writer
        self._server_reader, self._server_writer = server_reader, server_writer
        self._cut_at_answer = False

    def reset(self) -> None:
        _reset(self._client_writer)
        _reset(self._server_writer)

    async def run(self) -> None:
        pumps = [asyncio.create_task(self._requests()), asyncio.create_task(self._answers())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            await self._proxy.audible()  # while the cable is cut, nobody learns that the other side has gone
            for writer in (self._client_writer, self._server_writer):
                await _close(writer)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.reset()

    async def _requests(self) -> None:
        while chunk := await _read(self._client_reader):
            await self._delay()
            verdict = "drop" if self._proxy.silent else self._proxy.on_request(chunk)
            if verdict == "drop":
                continue
            if verdict == "cut":
                self.reset()
                return
            self._cut_at_answer = verdict == "cut_after"
            self._server_writer.write(chunk)

    async def _answers(self) -> None:
        while chunk := await _read(self._server_reader):
            if self._cut_at_answer:
                self.reset()
                return
            await self._delay()
            verdict = "drop" if self._proxy.silent else self._proxy.on_answer(chunk)
            if verdict == "drop":
                continue
            if verdict == "cut":
                self.reset()
                return
            self._client_writer.write(chunk)

    async def _delay(self) -> None:
        if self._proxy.delay_seconds:
            await SystemClock().sleep(self._proxy.delay_seconds)


def _pass(_chunk: bytes) -> Literal["pass"]:
    return "pass"


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The next chunk; empty when the connection has ended, in whatever way."""
    try:
        return await reader.read(_CHUNK_BYTES)
    except OSError:
        return b""


async def _close(writer: asyncio.StreamWriter) -> None:
    """End a connection in good order, after what was written to it."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        with contextlib.suppress(OSError):
            sock.setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
    writer.transport.abort()
