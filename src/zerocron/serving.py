"""An ASGI application on a listening socket, as a part that starts and stops with the others.

Owns the settings of the web server. Signals are not its business: the application's joiner decides when to stop.
"""

from __future__ import annotations

import asyncio
import os
import socket

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a bound on what it holds of a request before anybody has looked at it."""

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


class HttpServer:
    """One application on one socket."""

    def __init__(self, application: ASGIApp, listener: socket.socket) -> None:
        self._listener = listener
        config = uvicorn.Config(
            application,
            http=BoundedProtocol,
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
