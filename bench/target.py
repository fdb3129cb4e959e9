"""What the benchmarks call: a server in a process of its own that notes when each request arrived.

`python -m bench.target` prints its port. `GET /-/arrivals` returns the notes as `[[arrived_ms, scheduled_for], ...]`
and forgets them; every other request is answered with 200.
"""

from __future__ import annotations

import asyncio
import time
from typing import cast

import orjson
import uvloop

_MARK = b"x-0cron-scheduled-for: "
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nOK"
_arrivals: list[tuple[float, str]] = []


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class does not say that it is one

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._data += data
        if not self._data.endswith(b"\r\n\r\n"):
            return
        head, self._data = self._data, b""
        if head.startswith(b"GET /-/arrivals"):
            notes = orjson.dumps(_arrivals)
            _arrivals.clear()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(notes) + notes)
            return
        arrived = time.time() * 1000
        place = head.lower().find(_MARK)
        begin = place + len(_MARK)
        slot = head[begin : head.find(b"\r\n", begin)].decode() if place >= 0 else ""
        _arrivals.append((arrived, slot))
        self._transport.write(_ANSWER)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
