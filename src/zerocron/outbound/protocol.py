"""The client's end of a connection, and what aiohttp's parser leaves open about it.

The parser forgets an answer whose bytes arrive together with something invalid, such as a body longer than its
Content-Length, and lets the reader of a body with broken chunks wait for ever. So it gets the head by itself, and a
reader is told. Its bounds are for a line and a number of lines; the product of the two would be 16 MB, so there is one
for the whole. Of chunks only what they hold reaches the cap of `zerocron.core.bodies`, and there may be endless framing
around nothing; so what a body takes on the wire has a bound here. What arrives when nothing is due ends the connection:
it must never be taken for the answer to a later request.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import perf_counter

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from zerocron.outbound import probe as probes
from zerocron.outbound.probe import Probe
from zerocron.outbound.wire import Wire

HEAD_BYTES_MAX = 256 * 1024  # of an answer and all its interim answers
HEADER_FIELD_BYTES_MAX = 16 * 1024
HEADERS_READ_MAX = 1_000
INTERIM_ANSWERS_MAX = 50  # 1xx answers before the real one
WRITE_BYTES = 64 * 1024  # of a request at once; the rest as the target takes it
FRAMING_BYTES_MAX = 1_048_576  # of a body: sizes and extensions of chunks, trailers, and what comes in beyond the cap


def is_interim(status: int) -> bool:
    """Whether the real answer is still to come. A status that does not exist, such as 99, is an answer."""
    return 100 <= status < 200 and status != 101


class MoreThanIsRead(aiohttp.ClientPayloadError):
    """The body takes more on the wire than is read of it."""


class Protocol(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop, body_bytes_max: int) -> None:
        super().__init__(loop)
        self._wire_bytes_max = body_bytes_max + FRAMING_BYTES_MAX
        self._head_due = False
        self._head_bytes = 0
        self._wire_bytes = 0
        self._interim = 0
        if (probe := probes.current.get()) is not None:
            probe.connected_at = perf_counter()

    def send(self, wire: Wire, probe: Probe) -> asyncio.Task[None] | None:
        """The connection is handed to a request. What does not go out at once, the task that is returned writes.

        Raises OSError for a connection that has just gone.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("The connection is gone")
        self._head_due = True
        self._head_bytes = 0
        self._wire_bytes = 0
        self._interim = 0
        probe.ready_at = perf_counter()
        if probe.single_use:
            self.force_close()
        self.set_response_params(
            skip_payload=not wire.answer_has_body,
            read_until_eof=True,
            auto_decompress=False,
            max_line_size=HEADER_FIELD_BYTES_MAX,
            max_field_size=HEADER_FIELD_BYTES_MAX,
            max_headers=HEADERS_READ_MAX,
        )
        if len(wire.body) <= WRITE_BYTES:
            transport.write(wire.head + wire.body)
            return None
        transport.write(wire.head)
        return self._loop.create_task(self._write(wire.body))

    @property
    def has_sent_all(self) -> bool:
        """Whether nothing waits here for a target that does not take it: a next request would wait behind it, and be
        blamed on the target. (Over TLS the layer below may hold something that cannot be seen from here.)"""
        return self.transport is not None and self.transport.get_write_buffer_size() == 0

    async def _write(self, body: bytes) -> None:
        """As fast as the target takes it. A connection that breaks is the reader's to tell."""
        writer, rest = StreamWriter(self, self._loop), memoryview(body)
        with suppress(OSError):
            while rest:
                await writer.write(rest[:WRITE_BYTES])
                rest = rest[WRITE_BYTES:]

    def close(self) -> None:
        """Also of a connection in use, when the pool is closed: aiohttp forgets who reads a body."""
        payload = self._payload
        super().close()
        if payload is not None and not payload.is_eof():
            payload.set_exception(ConnectionAbortedError("The connection was closed here"))

    def data_received(self, data: bytes) -> None:
        """From the socket; or from aiohttp itself, with no bytes, to go on parsing after a pause."""
        if not data:
            pass
        elif self._head_due:
            self._head_bytes += len(data)
            cut = data.find(b"\r\n\r\n") + 4
            if 4 <= cut < len(data):
                super().data_received(data[:cut])
                data = data[cut:]
        elif self._payload is not None and self._payload.is_eof():
            if self.transport is not None:
                self.transport.close()
            return
        else:
            self._wire_bytes += len(data)
            if self._wire_bytes > self._wire_bytes_max:  # dropped, until the reader lets go of the connection
                if self._payload is not None:
                    self._loop.call_soon(self._payload.set_exception, MoreThanIsRead("More than is read"))
                return
        super().data_received(data)
        if self._head_due and self._head_bytes > HEAD_BYTES_MAX and self._exception is None:
            self._give_up(f"Got more than {HEAD_BYTES_MAX} bytes of head")
        if self._exception is not None and (payload := self._payload) is not None and not payload.is_eof():
            # In a moment, for the reader shall first get what came before the fault.
            self._loop.call_soon(payload.set_exception, aiohttp.ClientPayloadError("Invalid body"))

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """The parser has read a head."""
        if not is_interim(data[0].code):
            self._head_due = False
        else:
            self._interim += 1
            if self._interim > INTERIM_ANSWERS_MAX:
                self._give_up("Too many interim answers")
                return
        super().feed_data(data, size)

    def _give_up(self, reason: str) -> None:
        self._buffer.clear()
        self.set_exception(HttpProcessingError(code=400, message=reason))
        if self.transport is not None:
            self.transport.close()
