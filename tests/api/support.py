"""A client that speaks ASGI to the application: no socket, no HTTP library between a test and what it sends.

Every test gets a team of its own (`conftest.py`), so all of them share one node and see only what is theirs.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from zerocron.app import Node

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self, status: int, field: str | None = None) -> str:
        """Its `detail` (or the message for the field), after making sure that it is that problem."""
        assert self.status == status, (self.status, self.body[:500])
        assert self.headers["content-type"] == "application/problem+json"
        document = self.json
        assert document["type"] == "about:blank"
        assert document["status"] == status
        assert document["title"]
        assert document["detail"]
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
        body: bytes | Iterable[bytes] | None = None,
        headers: Headers = (),
        query: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Send JSON, or the bytes of `body` (in several messages when it is not bytes) just as they are."""
        given = dict(headers.items() if isinstance(headers, Mapping) else headers)
        if self.key is not None:
            given.setdefault("authorization", f"Bearer {self.key}")
        if document is not None:
            body = json.dumps(document).encode()
            given.setdefault("content-type", "application/json")
        parts = [body or b""] if isinstance(body, (bytes, type(None))) else list(body)
        return await send(self.application, method, path, parts, list(given.items()), query or {})

    def with_key(self, key: str | None) -> Client:
        return dataclasses.replace(self, key=key)

    async def job(self, **fields: Any) -> dict[str, Any]:
        """Create a job that is due in years, unless said otherwise."""
        answer = await self("POST", "/v1/jobs", JOB | fields)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self("GET", path, query=query)
        assert answer.status == 200, answer.body
        return answer.json

    async def walk(self, path: str, limit: int, between: Callable[[], Any] | None = None) -> list[Any]:
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


JOB = {"name": "a job", "schedule": "0 0 1 1 *", "url": "http://127.0.0.1:9/"}


async def send(
    application: Any,
    method: str,
    path: str,
    parts: list[bytes],
    headers: list[tuple[str, str]],
    query: Mapping[str, Any],
    scheme: str = "http",
) -> Answer:
    """One request to an ASGI application. `path` may hold percent-encoding and a query of its own."""
    from urllib.parse import unquote

    split = urlsplit(path) if not path.startswith("//") else urlsplit("").__class__("", "", path, "", "")
    text = split.query or urlencode(query, quote_via=quote)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": unquote(split.path),
        "raw_path": split.path.encode(),
        "query_string": text.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    left = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    left[-1]["more_body"] = False
    start: dict[str, Any] = {}
    body = b""

    async def receive() -> dict[str, Any]:
        if left:
            return left.pop(0)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing more comes")

    async def take(message: dict[str, Any]) -> None:
        nonlocal body
        if message["type"] == "http.response.start":
            assert not start, "one answer"
            start.update(message)
        else:
            body += message.get("body", b"")

    await application(scope, receive, take)
    names = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], names, body)


async def client_of(node: Node, team_id: str) -> Client:
    """A client with a key that was made for the team."""
    _, token = await node.keys.create(team_id, "test")
    return Client(node.application, team_id, token.text)
