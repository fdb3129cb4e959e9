"""An answer as it comes in, within its caps, so that a failure can show what there was of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from time import perf_counter

from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError

from zerocron.core.bodies import Body
from zerocron.core.exchange import Response
from zerocron.outbound.protocol import FRAMING_BYTES_MAX, MoreThanIsRead, Protocol, is_interim

HEADERS_MAX = 100  # kept of an answer; more are read (`protocol`) and dropped
HEADER_BYTES_MAX = 64 * 1024  # kept


class Reading:
    __slots__ = ("_body", "_body_bytes_max", "_head", "complete", "head_at")

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._head: RawResponseMessage | None = None
        self._body: Body | None = None
        self.head_at: float | None = None
        self.complete = False

    async def run(self, protocol: Protocol) -> None:
        """The answer to what was sent. Raises what aiohttp does."""
        head, content = await protocol.read()
        while is_interim(head.code):
            head, content = await protocol.read()
        self.head_at = perf_counter()
        self._head = head
        body = self._body = Body(head.headers.get("Content-Encoding"), self._body_bytes_max)
        if head.code == 101:
            raise HttpProcessingError(code=101, message="The target switched to another protocol without being asked.")
        coding = head.headers.get("Transfer-Encoding")
        if coding is not None and coding.lower() not in ("chunked", "identity"):
            raise HttpProcessingError(code=400, message="A transfer coding that nobody asked for")
        try:
            while chunk := await content.readany():
                if not body.feed(chunk):
                    return
        except MoreThanIsRead:
            if body.wire_bytes < FRAMING_BYTES_MAX // 16:  # next to nothing but framing: one byte a chunk gives a sixth
                raise
            return
        body.end()
        self.complete = True

    def response(self) -> Response | None:
        if self._head is None or self._body is None:
            return None
        content_type = self._head.headers.get("Content-Type")
        return Response(
            status=self._head.code,
            headers=_kept_headers(self._head.raw_headers),
            body=self._body.content,
            body_bytes=self._body.wire_bytes,
            truncated=self._body.truncated or not self.complete,
            content_type=None if content_type is None else _text(content_type.encode("utf-8", "surrogateescape")),
            decode_error=self._body.decode_error,
        )


def _kept_headers(raw: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    kept: list[tuple[str, str]] = []
    room = HEADER_BYTES_MAX
    for name, value in raw[:HEADERS_MAX]:
        room -= len(name) + len(value)
        if room < 0:
            break
        kept.append((_text(name), _text(value)))
    return tuple(kept)


_UNSTORABLE = re.compile("[\x00\r\n]")


def _text(value: bytes) -> str:
    """UTF-8 where it is that, else Latin-1, which every byte is; without what databases and logs choke on."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return text if text.isprintable() else _UNSTORABLE.sub(" ", text)
