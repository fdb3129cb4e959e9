"""/v1/ping/...: where people's own jobs report. No API key: the token in the address is all there is.

Owns the form of a ping's address and of its answers, which are one short word. Stands before the gate, the router and
everything else, because a ping may come thousands of times a second. The body is kept as it is, never parsed and never
decompressed. Must never tell whether a monitor is paused, what it is called or whose it is, and never log a token.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qsl
from uuid import UUID

import structlog
from starlette.types import Receive, Scope, Send

from zerocron.actions.ping_tokens import TOKEN
from zerocron.actions.pings import BODY_BYTES_MAX, Arrival, Pings, Taken, kind_of
from zerocron.core.errors import Unavailable
from zerocron.core.monitor import Ping

log = structlog.get_logger(__name__)

PATH = "/v1/ping/"
METHODS = ("GET", "HEAD", "POST")
READ_BYTES_MAX = 4_000_000
"""A longer body than is kept is read to its end and let go, so that its sender is not cut off; up to this size."""

READ_SECONDS_MAX = 10.0
"""A body that takes longer is given up, with its connection."""

QUERY_BYTES_MAX = 1_024
TOLD_SECONDS = 10.0

_RETRY_AFTER_SECONDS = b"5"
_USER_AGENT_CHARACTERS_MAX = 200
_ADDRESS = re.compile(r"/v1/ping/([^/]*)(?:/([^/]*))?")
_ANSWERS = {
    200: b"OK\n",
    400: b"bad request\n",
    404: b"not found\n",
    405: b"method not allowed\n",
    408: b"too slow\n",
    413: b"too large\n",
    414: b"query too long\n",
    429: b"too many pings\n",
    500: b"failed\n",
    503: b"not now\n",
}
_HEADERS = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    # A page of another site may report what it did; there is nothing to read here that it does not know.
    (b"access-control-allow-origin", b"*"),
)
"""What means something for a word of plain text; each header costs every ping a little."""

_STATUS = {Taken.KEPT: 200, Taken.UNKNOWN: 404, Taken.NEEDS_POST: 405, Taken.TOO_MANY: 429, Taken.FAILED: 500}


class PingPath:
    """The ASGI application of pings."""

    def __init__(self, pings: Pings) -> None:
        self._pings = pings
        self._untold = 0
        self._told_at: float | None = None
        self._starts = {
            status: {
                "type": "http.response.start",
                "status": status,
                "headers": [*_HEADERS, (b"content-length", str(len(body)).encode()), *_extra(status)],
            }
            for status, body in _ANSWERS.items()
        }
        self._bodies = {status: {"type": "http.response.body", "body": body} for status, body in _ANSWERS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status = await self._status(scope, receive)
        except Unavailable as error:
            if self._is_to_be_told():
                log.warning("pings_not_taken", pings=self._untold, reason=error.message)
                self._untold = 0
            status = 503
        except Exception:
            if self._is_to_be_told():
                log.exception("pings_failed", pings=self._untold)
                self._untold = 0
            status = 500
        if status is None:
            return  # the sender has gone
        await send(self._starts[status])
        await send(self._bodies[status] if scope["method"] != "HEAD" else _NO_BODY)

    def _is_to_be_told(self) -> bool:
        """One line every `TOLD_SECONDS`, with how many it stands for: they may be thousands a second."""
        self._untold += 1
        now = self._pings.clock.monotonic()
        if self._told_at is not None and now - self._told_at < TOLD_SECONDS:
            return False
        self._told_at = now
        return True

    async def _status(self, scope: Scope, receive: Receive) -> int | None:
        method = scope["method"]
        if method not in METHODS:
            return 405
        match = _ADDRESS.fullmatch(scope["path"])
        if match is None:
            return 404
        token, word = match.groups()
        monitor_id = await self._pings.find(token) if TOKEN.fullmatch(token) else None
        kind = kind_of(word or "")
        if monitor_id is None or word == "" or kind is None:
            return 400 if monitor_id is not None and (word or "").isdecimal() else 404
        query = scope["query_string"]
        if len(query) > QUERY_BYTES_MAX:
            return 414
        rid, is_good = _rid(query)
        if not is_good:
            return 400
        body, size = b"", 0
        if method == "POST":
            try:
                async with asyncio.timeout(READ_SECONDS_MAX):
                    read = await _read(receive)
            except TimeoutError:
                return 408
            if read is None:
                return None
            body, size = read
            if size > READ_BYTES_MAX:
                return 413
        client = scope.get("client")
        arrival = Arrival(
            # It came when all of it was there: from then on the engine knows that it waits.
            Ping(kind[0], self._pings.clock.now(), rid, kind[1]),
            method,
            str(client[0])[:64] if client else "",
            _user_agent(scope),
            body,
            size,
        )
        return _STATUS[await self._pings.take(monitor_id, arrival)]


_NO_BODY = {"type": "http.response.body", "body": b""}


def _extra(status: int) -> list[tuple[bytes, bytes]]:
    if status == 405:
        return [(b"allow", b"GET, HEAD, POST")]
    if status == 408:
        return [(b"connection", b"close")]
    if status == 429:
        return [(b"retry-after", b"1")]
    return [(b"retry-after", _RETRY_AFTER_SECONDS)] if status == 503 else []


def _rid(query: bytes) -> tuple[str | None, bool]:
    """(the run's id, whether the query is good). Other parameters mean nothing here and are let pass."""
    if not query:
        return None, True
    given = [value for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True) if name == "rid"]
    if not given:
        return None, True
    try:
        return str(UUID(given[0])), len(given) == 1 and len(given[0]) == 36
    except ValueError:
        return None, False


def _user_agent(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"user-agent":
            text: str = value.decode("latin-1")[:_USER_AGENT_CHARACTERS_MAX].replace("\0", "")
            return text
    return ""


async def _read(receive: Receive) -> tuple[bytes, int] | None:
    """(the beginning of the body, how long it is); None when the sender went away."""
    parts: list[bytes] = []
    kept = size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part: bytes = message.get("body", b"")
        size += len(part)
        if kept < BODY_BYTES_MAX and part:
            parts.append(part[: BODY_BYTES_MAX - kept])
            kept += len(parts[-1])
        if not message.get("more_body", False) or size > READ_BYTES_MAX:
            return b"".join(parts), size
