"""/v1/ping/...: where people's own jobs report. No API key: the token in the address is all there is.

Owns the form of a ping's address and of its answers, which are one short word. Stands before the gate, the router and
everything else, because a ping may come thousands of times a second. The body is kept as it is, never parsed and never
decompressed. Must never tell whether a monitor is paused, what it is called or whose it is, and never log a token.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from urllib.parse import parse_qsl
from uuid import UUID

import structlog
from starlette.types import Receive, Scope, Send

from zerocron.actions.ping_tokens import TOKEN
from zerocron.actions.pings import BODY_BYTES_MAX, Arrival, Pings, Taken, kind_of
from zerocron.core.errors import Unavailable
from zerocron.core.monitor import Ping, PingKind
from zerocron.serving import Answer

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
_ADDRESS = re.compile(rf"/v1/ping/({TOKEN.pattern})(?:/([^/]*))?", re.ASCII)
_WORDS = {
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


def _answer(status: int, word: bytes) -> Answer:
    headers = list(_HEADERS)
    if status == 405:
        headers.append((b"allow", b"GET, HEAD, POST"))
    elif status == 408:
        headers.append((b"connection", b"close"))
    elif status == 429:
        headers.append((b"retry-after", b"1"))
    elif status == 503:
        headers.append((b"retry-after", _RETRY_AFTER_SECONDS))
    return Answer(status, headers, word)


_ANSWERS = {status: _answer(status, word) for status, word in _WORDS.items()}


class PingPath:
    """The ASGI application of pings, and the short way past it for GET and HEAD."""

    def __init__(self, pings: Pings) -> None:
        self._pings = pings
        self._untold = 0
        self._told_at: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status = await self._status(scope, receive)
        except Exception as error:
            status = self._failed(error)
        if status is not None:  # else the sender has gone
            await _ANSWERS[status].send(scope, send)

    def prompt(self, scope: Scope, answer: Callable[[Answer], None]) -> bool:
        """Whether the request is an ordinary ping, which is taken; `answer` is called once that is durable, or failed.

        Ordinary is a GET or HEAD for a monitor that is known here. What else may be said about a request, the
        application says.
        """
        if scope["method"] not in ("GET", "HEAD"):
            return False
        match = _ADDRESS.fullmatch(scope["path"])
        monitor_id = self._pings.known(match[1]) if match is not None else None
        if match is None or monitor_id is None:
            return False
        meaning = _meaning(match[2], scope["query_string"])
        if isinstance(meaning, int):
            return False
        taking = self._pings.take(monitor_id, self._arrival(scope, meaning))
        taking.add_done_callback(lambda taken: answer(self._answer_of(taken)))
        return True

    def _answer_of(self, taken: asyncio.Future[Taken]) -> Answer:
        try:
            return _ANSWERS[_STATUS[taken.result()]]
        except Exception as error:
            return _ANSWERS[self._failed(error)]

    def _failed(self, error: Exception) -> int:
        """The status for it. One line every `TOLD_SECONDS`, with how many it stands for: they may be thousands a
        second."""
        self._untold += 1
        now = self._pings.clock.monotonic()
        if self._told_at is None or now - self._told_at >= TOLD_SECONDS:
            if isinstance(error, Unavailable):
                log.warning("pings_not_taken", pings=self._untold, reason=error.message)
            else:
                log.error("pings_failed", pings=self._untold, exc_info=error)
            self._untold, self._told_at = 0, now
        return 503 if isinstance(error, Unavailable) else 500

    async def _status(self, scope: Scope, receive: Receive) -> int | None:
        method = scope["method"]
        if method not in METHODS:
            return 405
        match = _ADDRESS.fullmatch(scope["path"])
        monitor_id = await self._pings.find(match[1]) if match is not None else None
        if match is None or monitor_id is None:
            return 404
        meaning = _meaning(match[2], scope["query_string"])
        if isinstance(meaning, int):
            return meaning
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
        return _STATUS[await self._pings.take(monitor_id, self._arrival(scope, meaning, body, size))]

    def _arrival(self, scope: Scope, meaning: _Meaning, body: bytes = b"", size: int = 0) -> Arrival:
        """Made when all of it was there: that is when it came, and from then on the engine knows that it waits."""
        kind, exit_code, rid = meaning
        client = scope.get("client")
        return Arrival(
            Ping(kind, self._pings.clock.now(), rid, exit_code),
            scope["method"],
            str(client[0])[:64] if client else "",
            _user_agent(scope),
            body,
            size,
        )


_Meaning = tuple[PingKind, int | None, str | None]
"""(kind, exit code, the run's id) that an address says."""


def _meaning(word: str | None, query: bytes) -> _Meaning | int:
    """What the address of a monitor says, or the status for what it should not."""
    kind = kind_of(word or "")
    if word == "" or kind is None:
        return 400 if word and word.isdecimal() else 404
    if len(query) > QUERY_BYTES_MAX:
        return 414
    rid, is_good = _rid(query)
    return (*kind, rid) if is_good else 400


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
