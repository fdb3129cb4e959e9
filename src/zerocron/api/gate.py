"""What every request to the API passes before a route sees it.

Owns the bounds on request bodies: bytes, nesting, and what counts as JSON. A body is read whole up to its bound,
parsed strictly, and handed on in canonical form, so that no route meets a number, a key or a depth that its parser
would choke on. It also puts the security headers on every answer.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zerocron.api.problems import of_error
from zerocron.core.errors import Invalid, TooLarge, ZerocronError

REQUEST_BYTES_MAX = 1_572_864
"""A job's body of 1 MB, its escapes, and the rest of the job."""

DEPTH_MAX = 32

_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
}


class Gate:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["method"] not in ("POST", "PUT", "PATCH") or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send_secured)
            return
        try:
            body = _canonical(await _read(scope, receive))
        except ZerocronError as error:
            await of_error(error)(scope, receive, send_secured)
            return
        if body is None:
            return  # the client has gone
        await self._app(_as_json(scope, len(body)), _replay(body, receive), send_secured)


async def _read(scope: Scope, receive: Receive) -> bytes | None:
    """The body, or None when the client went away. Raises TooLarge as soon as that is known."""
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isdecimal() and (len(declared) > 12 or int(declared) > REQUEST_BYTES_MAX):
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > REQUEST_BYTES_MAX:
            raise _too_large()
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large() -> TooLarge:
    return TooLarge(f"A request has at most {REQUEST_BYTES_MAX:,} bytes. Keep large data where the job can fetch it.")


def _canonical(body: bytes | None) -> bytes | None:
    if not body:
        return body
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"The body is not valid JSON: {error.msg} at character {error.pos}.") from None
    if _deeper_than(parsed, DEPTH_MAX):
        raise Invalid(f"The JSON is nested more than {DEPTH_MAX} levels deep.")
    return orjson.dumps(parsed)


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def _as_json(scope: Scope, length: int) -> Scope:
    """The scope with the headers of the canonical body. What was sent is JSON or was refused, however it was named."""
    kept = [pair for pair in scope["headers"] if pair[0] not in (b"content-type", b"content-length")]
    extra = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
    return {**scope, "headers": [*kept, *extra]}


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
