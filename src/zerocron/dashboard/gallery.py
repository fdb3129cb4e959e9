"""/-/specimens: the gallery of pages and states, in development only."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zerocron.dashboard.site import STATIC, Site
from zerocron.dashboard.specimens import NOW, SPECIMENS, canned
from zerocron.dashboard.words import DEFAULT, LANGUAGES


def _now_ms() -> int:
    return int(datetime.fromisoformat(NOW).astimezone(UTC).timestamp() * 1_000)


@cache
def _site_of(name: str, language: str) -> Starlette:
    site = Site(canned(SPECIMENS[name], language), _now_ms, "0.0.0", is_live=False)
    return Starlette(routes=site.routes())


OF_THE_BROWSER = (b"content-length", b"content-type", b"cookie", b"origin", b"sec-fetch-site")
"""Not passed on: a specimen that is a form was sent from a page of ours, whatever brought somebody to the gallery."""


class _Shown:
    """A specimen as a response: the request goes on to its page."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        specimen = SPECIMENS[self._name]
        path, _, query = specimen.path.partition("?")
        form = None if specimen.form is None else urlencode(specimen.form).encode()
        asked = Request(scope).query_params.get("language", "")
        language = asked if asked in LANGUAGES else DEFAULT
        cookies = f"{Request(scope).headers.get('cookie', '')}; 0cron-language={language}".encode()
        headers = [pair for pair in scope["headers"] if pair[0] not in OF_THE_BROWSER]
        inner = {
            **scope,
            "method": "GET" if form is None else "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [*headers, (b"cookie", cookies), (b"sec-fetch-site", b"same-origin")],
        }

        async def body() -> Message:
            return {"type": "http.request", "body": form or b"", "more_body": False}

        application: ASGIApp = _site_of(self._name, language)
        await application(inner, body, send)


async def _list(_request: Request) -> Response:
    items = "".join(f'<li><a href="/-/specimens/{name}">{each.title}</a></li>' for name, each in SPECIMENS.items())
    return HTMLResponse(f'<!doctype html><html lang="en"><title>Specimens</title><h1>Specimens</h1><ul>{items}</ul>')


class _Show:
    """The endpoint. A class, so that it is called as the ASGI application that it is."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["name"]
        if name in SPECIMENS:
            await _Shown(name)(scope, receive, send)
        else:
            await PlainTextResponse("There is no such specimen.", 404)(scope, receive, send)


def routes() -> list[BaseRoute]:
    """What is put beside the pages."""
    return [Route("/-/specimens", _list), Route("/-/specimens/{name}", _Show())]


def application() -> Starlette:
    """The gallery by itself, without a product."""
    files = Site(canned(next(iter(SPECIMENS.values()))), _now_ms, "0.0.0", is_live=False)
    return Starlette(routes=[*routes(), *(each for each in files.routes() if getattr(each, "path", "") == STATIC)])
