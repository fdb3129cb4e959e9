"""A page in the place of a problem that somebody would read in their browser.

Owns which answers that are no pages become one: what is refused, or fails, at an address that a browser goes to itself
(on the way to an issuer and back, where nothing is, by a fault of ours). Must never touch what a program asked for.
"""

from __future__ import annotations

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zerocron.dashboard.asking import Answer
from zerocron.dashboard.site import Site

PROBLEM = "application/problem+json"
_OF_THE_PROBLEM = {b"content-type", b"content-length", b"content-security-policy"}


class ProblemPages:
    """ASGI middleware, around the API and the pages."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_read_by_people(scope):
            await self._app(scope, receive, send)
            return
        head: Message = {}
        content = bytearray()

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start" and Headers(scope=message).get("content-type") == PROBLEM:
                head.update(message)
            elif head:
                content.extend(message.get("body", b""))
            else:
                await send(message)

        await self._app(scope, receive, keep)
        if head:
            answer = Answer(head["status"], orjson.loads(bytes(content)))
            page = await self._site.instead_of(answer, Request(scope, receive))
            own = {name for name, _ in page.raw_headers if name != b"set-cookie"} | _OF_THE_PROBLEM
            page.raw_headers += [pair for pair in head["headers"] if pair[0].lower() not in own]
            await page(scope, receive, send)


def _is_read_by_people(scope: Scope) -> bool:
    """A browser that goes somewhere says that it wants a page. What only wants the head gets no body to make one of."""
    if scope["path"].startswith("/v1/") or scope["method"] == "HEAD":
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")
