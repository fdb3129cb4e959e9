"""A client that speaks ASGI to the application: no socket, no HTTP library between a test and what it sends.

Every test gets a team of its own (`conftest.py`), so all of them share one node and see only what is theirs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

from zerocron.app import Node

JOB = {"name": "a job", "schedule": "0 0 1 1 *", "url": "http://127.0.0.1:9/"}
"""The least that makes a job. It is due in months and calls nobody."""

MONITOR = {"name": "a monitor", "schedule": "every hour"}
"""The least that makes a monitor."""

CHANNEL = {"name": "a channel", "kind": "fake", "config": {"place": "drawer"}}
"""A channel of the one kind that the tests' node has."""

NOWHERE = "01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"
"""An id that nothing has."""


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status."""

    status: int
    headers: Mapping[str, str]  # names in lower case; those that come several times with a line for each
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self, status: int, field: str | None = None) -> str:
        """Its `detail`, or the message for the field, after making sure that it is a problem of that status."""
        assert self.status == status, (self.status, self.body[:500])
        assert self.headers["content-type"] == "application/problem+json"
        document = self.json
        assert document["type"] == "about:blank"
        assert document["status"] == status
        assert document["title"]
        assert document["detail"].endswith((".", "'"))
        if field is None:
            return str(document["detail"])
        messages = {fault["field"]: fault["message"] for fault in document.get("errors", [])}
        assert field in messages, document
        return str(messages[field])


@dataclass(frozen=True)
class Client:
    """Requests with the key of one team."""

    application: Any
    team_id: str
    key: str | None

    async def __call__(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        body: bytes | list[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        scheme: str = "http",
    ) -> Answer:
        """Send JSON, or the bytes of `body` (in several messages when they are a list) just as they are."""
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if self.key is not None:
            given.setdefault("authorization", f"Bearer {self.key}")
        if document is not None:
            body = json.dumps(document).encode()
        parts = body if isinstance(body, list) else [body]
        path, _, text = path.partition("?")
        scope = scope_of(method, path, text or urlencode(query or {}, quote_via=quote), given, scheme)
        return await exchange(self.application, scope, parts)

    def with_key(self, key: str | None) -> Client:
        return dataclasses.replace(self, key=key)

    async def job(self, **fields: Any) -> dict[str, Any]:
        """Create a job; without fields one that is due in months."""
        answer = await self("POST", "/v1/jobs", JOB | fields)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made

    async def monitor(self, **fields: Any) -> dict[str, Any]:
        """Create a monitor; without fields one that expects a ping every hour."""
        answer = await self("POST", "/v1/monitors", MONITOR | fields)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made

    async def channel(self, **fields: Any) -> dict[str, Any]:
        """Create a channel; without fields one of the kind `fake`."""
        answer = await self("POST", "/v1/channels", CHANNEL | fields)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self("GET", path, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    async def post(self, path: str) -> Any:
        answer = await self("POST", path)
        assert answer.status in (200, 202), answer.body
        return answer.json

    async def runs(self, job_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.get(f"/v1/jobs/{job_id}/runs", limit=200))["items"]
        return found

    async def run_that(self, run_id: str, *statuses: str) -> dict[str, Any]:
        """The run, once it has one of these statuses."""
        found: dict[str, Any] = {}

        async def look() -> bool:
            found.update(await self.get(f"/v1/runs/{run_id}"))
            return found["status"] in statuses

        await until(look, f"a run that is {statuses}")
        return found

    async def walk(self, path: str, limit: int, between: Callable[[], Awaitable[object]] | None = None) -> list[Any]:
        """All items of a list, page by page; `between` is awaited after each page."""
        items: list[Any] = []
        query: dict[str, Any] = {"limit": limit}
        while True:
            page = await self.get(path, **query)
            assert len(page["items"]) <= limit
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            query["cursor"] = page["next_cursor"]
            if between is not None:
                await between()


async def client_of(node: Node, team_id: str) -> Client:
    """A client with a key that was made for the team."""
    _, token = await node.keys.create(team_id, "test")
    return Client(node.application, team_id, token.text)


def scope_of(method: str, path: str, query: str, headers: Mapping[str, str], scheme: str = "http") -> dict[str, Any]:
    """The scope of a request, as a web server makes it. `path` may be percent-encoded."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }


async def exchange(application: Any, scope: dict[str, Any], parts: Iterable[bytes]) -> Answer:
    """One request to an ASGI application."""
    left = list(parts)
    start: dict[str, Any] = {}
    body = b""

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing more comes")

    async def take(message: dict[str, Any]) -> None:
        nonlocal body
        if message["type"] == "http.response.start":
            assert not start, "one answer to a request"
            start.update(message)
        else:
            body += message.get("body", b"")

    await application(scope, receive, take)
    headers: dict[str, str] = {}
    for raw_name, raw_value in start["headers"]:
        name, value = raw_name.decode().lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}\n{value}" if name in headers else value
    return Answer(start["status"], headers, body)


async def moment(seconds: float = 0.01) -> None:
    """A short pause between two looks at something."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, future.set_result, None)
    try:
        await future
    finally:
        timer.cancel()


async def until(look: Callable[[], Awaitable[bool]], what: str, seconds: float = 60) -> None:
    """Look until it is so. Raises AssertionError, naming what was waited for, after the deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not await look():
        assert loop.time() < deadline, f"{what} did not come within {seconds} s"
        await moment()
