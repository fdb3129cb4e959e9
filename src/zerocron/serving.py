"""An ASGI application on a listening socket, as a part that starts and stops with the others.

Owns the settings of the web server, the bound on what it holds of a request, and the short way past ASGI. Signals are
not its business: the application's joiner decides when to stop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from zerocron.core.errors import Conflict

LISTEN_BACKLOG = 2048
STOP_SECONDS_MAX = 5

HEAD_BYTES_MAX = 65_536
"""The most that a request's address and headers take together. uvicorn itself has no bound on them."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises Conflict when the address is taken or is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=LISTEN_BACKLOG)
    except OSError as error:
        raise Conflict(
            f"Cannot listen on {host}:{port}: {_reason(error)}. Choose another with --host and --port."
        ) from None


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def url_of(listener: socket.socket) -> str:
    """The URL by which this machine reaches the listener."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Answer:
    """A whole answer that is made once and sent often."""

    def __init__(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        lines = [*headers, (b"content-length", str(len(body)).encode())]
        self._start = {"type": "http.response.start", "status": status, "headers": lines}
        self.status_line = STATUS_LINE[status]
        self.lines = _lines(lines)
        self.body = body
        self.closes = (b"connection", b"close") in lines

    async def send(self, scope: Scope, send: Send) -> None:
        """As an ASGI application answers."""
        await send(self._start)
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self.body})


def _lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


Prompt = Callable[[Scope, Callable[[Answer], None]], bool]
"""A method `prompt` that an application may have, for requests that need neither a body nor a task: whether it takes
the request. Then it calls back with the answer, once, later; else it is called as an application."""


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with a bound on what it holds of a request before anybody has looked at it, and a short way
    for requests that are answered without a task of their own (decision 0018)."""

    _bytes_without_body = 0
    _had_body = False
    _head_is_done = False

    def data_received(self, data: bytes) -> None:
        self._had_body = False
        super().data_received(data)
        if self._had_body:
            return
        self._bytes_without_body += len(data)
        if self._bytes_without_body <= HEAD_BYTES_MAX or self.transport.is_closing():
            return
        if self._head_is_done:  # trailers, or framing without anything in it
            self.transport.close()
        else:
            self.send_400_response(f"The address and the headers have at most {HEAD_BYTES_MAX} bytes.")

    def on_message_begin(self) -> None:
        self._bytes_without_body, self._head_is_done = 0, False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_is_done = True
        super().on_headers_complete()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_is_done:  # uvicorn would keep trailers, which mean nothing here, for as long as they come
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._had_body, self._bytes_without_body = True, 0
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Begin to answer. Were uvicorn to call it no more, all requests would go its way."""
        prompt: Prompt | None = getattr(app, "prompt", None)
        scope: Any = cycle.scope
        # A sender who does not read is waited for in a task.
        if prompt is None or self.flow.write_paused or not prompt(scope, partial(self._answer, cycle)):
            super()._start_asgi_task(cycle, app)

    def _answer(self, cycle: RequestResponseCycle, answer: Answer) -> None:
        """What uvicorn makes of the messages that `Answer.send` sends."""
        cycle.on_response = _nothing  # as uvicorn does: connection and request would hold each other
        if cycle.disconnected or self.transport.is_closing():  # uvicorn notes the former of the last request alone
            return
        is_last = answer.closes or not cycle.keep_alive
        self.transport.write(
            b"".join(
                (
                    answer.status_line,
                    _lines(cycle.default_headers),
                    answer.lines,
                    b"connection: close\r\n" if is_last and not answer.closes else b"",
                    b"\r\n",
                    b"" if cycle.scope["method"] == "HEAD" else answer.body,
                )
            )
        )
        cycle.response_started = cycle.response_complete = True
        if is_last:
            self.transport.close()
        self.on_response_complete()


def _nothing() -> None:
    pass


class HttpServer:
    """One application on one socket."""

    def __init__(self, application: ASGIApp, listener: socket.socket) -> None:
        self._listener = listener
        config = uvicorn.Config(
            application,
            http=Protocol,
            ws="none",
            log_config=None,
            proxy_headers=False,  # it would believe them of everybody on this machine; zerocron.api.forwarded decides
            access_log=False,  # paths may hold tokens, and the metrics count
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server._serve([self._listener]), name="http-server")

    async def stop(self) -> None:
        """Let answers under way finish, then close the socket. Stopping twice is no error."""
        task, self._task = self._task, None
        if task is not None:
            self._server.should_exit = True
            await asyncio.wait([task], timeout=STOP_SECONDS_MAX + 1)
        self._listener.close()
