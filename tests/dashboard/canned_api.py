"""The pages over an API that gives canned answers and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from zerocron.dashboard.asking import call
from zerocron.dashboard.site import Site
from zerocron.dashboard.specimens import NOW, canned
from zerocron.dashboard.specimens.kinds import Specimen

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


class Asked(NamedTuple):
    """A request that a page made of the API."""

    method: str
    path: str
    body: Any


class Shown(NamedTuple):
    """What a browser got."""

    status: int
    text: str
    headers: Mapping[str, str]
    content: bytes


@cache
def _site() -> tuple[Site, Starlette]:
    """One for all tests, because templates are compiled once; each request is answered by the API of its own pages."""
    now_ms = int(datetime.fromisoformat(NOW).astimezone(UTC).timestamp() * 1_000)
    site = Site(canned(Specimen("none", "none", "/")), now_ms=lambda: now_ms, version="0.0.0")
    return site, Starlette(routes=site.routes())


class Pages:
    """The dashboard. `asked`: what it asked of the API since it was made, but for who looks."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.asked: list[Asked] = []
        self._api = canned(Specimen("test", "test", "/", answers))

    async def get(self, path: str, **headers: str) -> Shown:
        return await self._request("GET", path, b"", headers)

    async def post(self, path: str, form: Iterable[tuple[str, str]] = (), **headers: str) -> Shown:
        return await self._request("POST", path, urlencode(list(form)).encode(), headers)

    def sent(self, method: str, path: str) -> list[Any]:
        """The bodies of what was asked so."""
        return [each.body for each in self.asked if (each.method, each.path) == (method, path)]

    async def _request(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> Shown:
        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "client": ("192.0.2.1", 50_000),
            "server": ("cron.example.com", 443),
            "state": {},
        }
        got: dict[str, str] = {}

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    got.update({name.decode().lower(): value.decode() for name, value in message["headers"]})
                await send(message)

            site, routes = _site()
            site.application = self._recorded
            await routes(scope, receive, sending)

        answer = await call(application, scope, content)
        return Shown(answer.status, answer.content.decode(errors="replace"), got, answer.content)

    async def _recorded(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        body = message["body"]
        if scope["path"] != "/v1/session":
            self.asked.append(Asked(scope["method"], scope["path"], orjson.loads(body) if body else None))

        async def again() -> Message:
            return message

        await self._api(scope, again, send)
