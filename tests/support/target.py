"""A local HTTP target that misbehaves on request: the other end of every outgoing test and benchmark.

In a test:      async with Target() as target: ... target.url + "/slow/3" ... target.requests[0].path
As a process:   python -m tests.support.target --port 0 --log FILE     (prints its port, appends a line per request)

It speaks just enough HTTP/1.1, on a bare asyncio.Protocol: "/ok" with recording off is one comparison and one write.
Every delay is a timer of the loop, so a hundred hanging requests cost nothing. What it can do:

    /ok  /status/{n}  /echo  /headers/{n}  /binary  /huge/{bytes}  /gzip-bomb  /redirect?to=...
    /slow/{seconds}  /hang  /drip  /reset  /garbage  /truncated  /chunk-broken  /close-after-keepalive
    /fail-then-ok/{k}?key=...

Anything else is a 404, unless scripted: `target.on("/path", lambda exchange: exchange.answer(200, b"hi"))`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import ssl
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from socket import SO_LINGER, SOL_SOCKET
from typing import IO, Self, cast
from urllib.parse import parse_qs

_REASONS = {200: "OK", 204: "No Content", 302: "Found", 404: "Not Found", 500: "Internal Server Error"}
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
_BOMB_BYTES = 200 * 1024 * 1024
_BLOCK = 64 * 1024
_LOGGED_HEADERS = ("idempotency-key", "content-length", "user-agent")


@dataclass(frozen=True, slots=True)
class Received:
    """One request as the target saw it; in `headers` names are lower-case and the last of a repeated one wins."""

    received_at: float  # the loop's clock
    wall_ms: float  # milliseconds since 1970
    method: str
    path: str  # as sent, with the query
    headers: dict[str, str]
    body: bytes
    raw_headers: tuple[tuple[str, str], ...] = ()
    connection: int = 0  # the how-many-th connection of this target
    nth: int = 0  # the how-many-th request of that connection, from 1


class Exchange:
    """A request and the connection it came on: what a handler gets."""

    __slots__ = ("connection", "request", "target")

    def __init__(self, target: Target, connection: _Connection, request: Received) -> None:
        self.target = target
        self.connection = connection
        self.request = request

    def answer(self, status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = ()) -> None:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if status >= 200 and status not in (204, 304):
            lines.append(f"Content-Length: {len(body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self.raw(head if self.request.method == "HEAD" else head + body)

    def raw(self, data: bytes) -> None:
        transport = self.connection.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def close(self) -> None:
        if self.connection.transport is not None:
            self.connection.transport.close()

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        transport = self.connection.transport
        if transport is not None:
            transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self.target.later(seconds, action)


Handler = Callable[[Exchange], None]


class Target:
    """The server. `requests` holds what came in, in order, unless `recording` is off."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        recording: bool = True,
        log: IO[str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.recording = recording
        self.requests: list[Received] = []
        self.connections = 0
        self.open: set[_Connection] = set()
        self.failures: defaultdict[str, int] = defaultdict(int)
        self._log = log
        self._tls = tls
        self.blurts: bytes | None = None  # said to whatever comes in, HTTP or not, before closing
        self._scripted: dict[str, Handler] = {}
        self._early: dict[str, Handler] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self._tls is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    @property
    def bare(self) -> bool:
        """Nothing is kept or scripted, so the quick answer will do."""
        return not self.recording and self._log is None

    def on(self, path: str, handler: Handler, *, early: bool = False) -> None:
        """Answer this path (without its query) with `handler`.

        `early`: as soon as the head is there; the body and all that follows on that connection is read and dropped.
        """
        (self._early if early else self._scripted)[path] = handler

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self, loop), self.host, self.port, ssl=self._tls, backlog=4096
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._server is not None:
            self._server.close()
            for connection in list(self.open):
                if connection.transport is not None:
                    connection.transport.abort()
            await self._server.wait_closed()
            await self.wait_for(lambda: not self.open)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def wait_for(self, condition: Callable[[], bool], timeout: float = 60.0) -> None:
        """Until something true of this target (a request came, a connection closed), at most `timeout` seconds."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(condition)

    # What the connections call.

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        def run() -> None:
            self._timers.discard(timer)
            action()

        timer = asyncio.get_running_loop().call_later(seconds, run)
        self._timers.add(timer)

    def changed(self) -> None:
        if self._changed._waiters:  # nobody waits, nothing to tell
            task = asyncio.get_running_loop().create_task(self._notify())
            _notifiers.add(task)
            task.add_done_callback(_notifiers.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def early(self, path: str) -> Handler | None:
        return self._early.get(path.partition("?")[0]) if self._early else None

    def received(self, exchange: Exchange, handler: Handler | None = None) -> None:
        request = exchange.request
        if self.recording:
            self.requests.append(request)
            self.changed()
        if self._log is not None:
            self._log.write(_log_line(request))
            self._log.flush()
        (handler or self._scripted.get(request.path.partition("?")[0]) or _handler(request.path))(exchange)


_notifiers: set[asyncio.Task[None]] = set()


class _Connection(asyncio.Protocol):
    """Splits the bytes of a connection into requests, one at a time."""

    def __init__(self, target: Target, loop: asyncio.AbstractEventLoop) -> None:
        self.target = target
        self.transport: asyncio.Transport | None = None
        self._loop = loop
        self._buffer = b""
        self._nth = 0
        self._number = 0
        self._deaf = False  # what comes in is dropped

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.target.connections += 1
        self._number = self.target.connections
        self.target.open.add(self)
        self.target.changed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.target.open.discard(self)
        self.target.changed()

    def data_received(self, data: bytes) -> None:
        if not self._buffer and data.startswith(b"GET /ok ") and data.endswith(b"\r\n\r\n") and self.target.bare:
            assert self.transport is not None
            self.transport.write(_OK)
            return
        if self._deaf:
            return
        if self.target.blurts is not None and self.transport is not None:
            self.transport.write(self.target.blurts)
            self.transport.close()
            return
        self._buffer += data
        while self._buffer and self._take_one():
            pass

    def _take_one(self) -> bool:
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, tail = first.partition(" ")
        raw = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
        headers = {name.lower(): value for name, value in raw}
        path = tail.rpartition(" ")[0]
        early = self.target.early(path)
        length = int(headers.get("content-length", "0"))
        if early is not None:
            self._deaf = True
        elif len(rest) < length:
            return False
        self._buffer = b"" if self._deaf else rest[length:]
        self._nth += 1
        wall_ms = time.time() * 1000  # noqa: TID251  the target is another party: its clock is the real one
        request = Received(
            received_at=self._loop.time(),
            wall_ms=wall_ms,
            method=method,
            path=path,
            headers=headers,
            body=rest[:length],
            raw_headers=raw,
            connection=self._number,
            nth=self._nth,
        )
        self.target.received(Exchange(self.target, self, request), early)
        return True


# The built-in behaviours. Each takes the exchange; what follows the first word of the path is in `_argument`.


def _argument(exchange: Exchange, default: str = "") -> str:
    parts = exchange.request.path.partition("?")[0].split("/")
    return parts[2] if len(parts) > 2 and parts[2] else default


def _query(exchange: Exchange, name: str) -> str:
    return parse_qs(exchange.request.path.partition("?")[2]).get(name, [""])[0]


def _ok(exchange: Exchange) -> None:
    exchange.raw(_OK if exchange.request.method != "HEAD" else _OK[:-2])


def _status(exchange: Exchange) -> None:
    exchange.answer(int(_argument(exchange, "200")), b"status")


def _slow(exchange: Exchange) -> None:
    exchange.later(float(_argument(exchange, "1")), lambda: exchange.answer(200, b"slow"))


def _hang(exchange: Exchange) -> None:
    """Never answer."""


def _drip(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")

    def drop() -> None:
        exchange.raw(b".")
        exchange.later(0.2, drop)

    drop()


def _reset(exchange: Exchange) -> None:
    exchange.reset()


def _huge(exchange: Exchange) -> None:
    """So many bytes, written as fast as the other side reads."""
    left = int(_argument(exchange, "10000000"))
    exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)

    def more() -> None:
        nonlocal left
        transport = exchange.connection.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() < 4 * _BLOCK:
            transport.write(b"x" * min(left, _BLOCK))
            left -= min(left, _BLOCK)
        if left:
            exchange.later(0, more)

    more()


@cache
def gzip_bomb() -> bytes:
    """Takes a second to make: ask for it before the clock runs."""
    return gzip.compress(bytes(_BOMB_BYTES), 9)


def _gzip_bomb(exchange: Exchange) -> None:
    """200 MB of zeros in 200 kB."""
    exchange.answer(200, gzip_bomb(), [("Content-Encoding", "gzip")])


def _truncated(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nonly this")
    exchange.later(0.02, exchange.close)


def _chunk_broken(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nworld\r\n")


def _redirect(exchange: Exchange) -> None:
    exchange.answer(302, b"", [("Location", _query(exchange, "to"))])


def _close_after_keepalive(exchange: Exchange) -> None:
    """Answer the first request of a connection; close silently on the second."""
    if exchange.request.nth == 1:
        exchange.answer(200, b"first")
    else:
        exchange.close()


def _echo(exchange: Exchange) -> None:
    request = exchange.request
    seen = {
        "method": request.method,
        "path": request.path,
        "headers": request.raw_headers,
        "body": request.body.decode("latin-1"),
    }
    exchange.answer(200, json.dumps(seen).encode(), [("Content-Type", "application/json")])


def _headers(exchange: Exchange) -> None:
    count = int(_argument(exchange, "10"))
    exchange.answer(200, b"headers", [(f"X-Header-{n}", str(n)) for n in range(count)])


def _binary(exchange: Exchange) -> None:
    exchange.answer(200, bytes(range(256)) * 4, [("Content-Type", "application/octet-stream")])


def _fail_then_ok(exchange: Exchange) -> None:
    key = _query(exchange, "key")
    exchange.target.failures[key] += 1
    if exchange.target.failures[key] <= int(_argument(exchange, "1")):
        exchange.answer(500, b"not yet")
    else:
        exchange.answer(200, b"ok")


def _garbage(exchange: Exchange) -> None:
    exchange.raw(b"\x16\x03\x01 this is not HTTP\r\n\r\n")


def _not_found(exchange: Exchange) -> None:
    exchange.answer(404, b"no such behaviour")


_BEHAVIOURS: dict[str, Handler] = {
    "ok": _ok,
    "status": _status,
    "slow": _slow,
    "hang": _hang,
    "drip": _drip,
    "reset": _reset,
    "huge": _huge,
    "gzip-bomb": _gzip_bomb,
    "truncated": _truncated,
    "chunk-broken": _chunk_broken,
    "redirect": _redirect,
    "close-after-keepalive": _close_after_keepalive,
    "echo": _echo,
    "headers": _headers,
    "binary": _binary,
    "fail-then-ok": _fail_then_ok,
    "garbage": _garbage,
}


def _handler(path: str) -> Handler:
    return _BEHAVIOURS.get(path.partition("?")[0].strip("/").partition("/")[0], _not_found)


def _log_line(request: Received) -> str:
    interesting = {
        name: value
        for name, value in request.headers.items()
        if name in _LOGGED_HEADERS or name.startswith(("x-0cron-", "webhook-"))
    }
    line = {"wall_ms": request.wall_ms, "method": request.method, "path": request.path, "headers": interesting}
    return json.dumps(line) + "\n"


async def _serve(port: int, log: IO[str] | None) -> None:
    async with Target(port=port, recording=False, log=log) as target:
        sys.stdout.write(f"{target.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", help="append a JSON line per request to this file")
    options = parser.parse_args()
    run: Callable[..., object] = asyncio.run
    with contextlib.suppress(ImportError):
        import uvloop

        run = uvloop.run
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(options.log, "a", encoding="utf-8")) if options.log else None
        with contextlib.suppress(KeyboardInterrupt):
            run(_serve(options.port, log))


if __name__ == "__main__":
    main()
