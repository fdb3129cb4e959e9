"""The way from a page to the API: a request within the process, on behalf of whoever looks.

Owns what of the browser's request goes along: who it is, where it comes from, and from which page. Must never add a
right: a page can ask only what its reader may.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Scope

from zerocron.core.proxies import SIGNED_IN_AS

PASSED_ON = (b"cookie", b"host", b"origin", b"sec-fetch-site", b"user-agent")
"""Not what proxies say: that was read when the page was asked for, and would be believed of the wrong peer here."""
READING = frozenset({"/v1/schedules/preview", "/v1/requests/curl"})
"""Asked by POST for the length of the question; they change nothing, and only our page gets the answer. So they are
asked as from a page of ours whatever brought its reader here, where a browser's own POST would be refused: a page that
was opened from a mail or a bookmark shows what the same page shows otherwise."""

Query = Mapping[str, str | int | bool | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said. `cookies` are its Set-Cookie headers, for the browser. `is_replay`: it is about something that
    the same request made before."""

    status: int
    data: Any
    content: bytes = b""
    media_type: str = ""
    cookies: tuple[bytes, ...] = ()
    is_replay: bool = False


class Problem(Exception):
    """The API refused. `errors` maps the fields at fault to what to do about them.

    `say` puts each sentence into the language of whoever reads it.
    """

    def __init__(self, answer: Answer, say: Callable[[str], str] = str) -> None:
        told: Mapping[str, Any] = answer.data if isinstance(answer.data, dict) else {}
        self.status = answer.status
        self.title = say(str(told.get("title", "")))
        self.detail = say(_without_field(told))
        self.code = str(told.get("code", ""))
        self.error_id = str(told.get("error_id", ""))
        self.suggestions: list[str] = list(told.get("suggestions", []))
        self.errors: dict[str, str] = {each["field"]: say(each["message"]) for each in told.get("errors", [])}
        super().__init__(f"{self.status} {told.get('detail', '')}")


def _without_field(told: Mapping[str, Any]) -> str:
    """The detail, without the name of a field that the API has before it: pages show messages beside their fields."""
    detail = str(told.get("detail", ""))
    first = next(iter(told.get("errors", ())), None)
    return first["message"] if first and detail == f"{first['field']}: {first['message']}" else detail


@dataclass(slots=True)
class Api:
    """The API, as one visitor may use it.

    Answers' cookies are kept for the page's own answer, and count for what is asked after them: a proof of who one is
    gives the sign-in another token, and the one before opens nothing any more.
    """

    application: ASGIApp
    request: Request
    cookies: list[bytes] = field(default_factory=list)
    say: Callable[[str], str] = str

    async def get(self, path: str, query: Query | None = None) -> Any:
        """What is there. Raises Problem."""
        return (await self.ask("GET", path, query)).data

    async def send(self, method: str, path: str, body: Any = None, query: Query | None = None) -> Any:
        """Change something. Raises Problem."""
        return (await self.ask(method, path, query, body)).data

    async def make(self, path: str, body: Any = None, *, once: str, typed: Any = None) -> Answer:
        """Make something, once for each form: `once` is the text that the form was shown with (`ui.once()`). The same
        form sent twice gets what the first one made. `typed`: what makes it the same form, where the body has more in
        it than was typed, such as an instant. Raises Problem."""
        content = b"" if body is None else orjson.dumps(body)
        headers = self._headers(path)
        if once:
            headers.append(
                (b"idempotency-key", _once_key(once, path, content if typed is None else orjson.dumps(typed)))
            )
        return await self._asked("POST", path, None, content, headers)

    async def ask(self, method: str, path: str, query: Query | None = None, body: Any = None) -> Answer:
        """One request of the API. Raises Problem for every answer that is no success."""
        content = b"" if body is None else orjson.dumps(body)
        return await self._asked(method, path, query, content, self._headers(path))

    async def look(self, path: str, body: Any) -> Any:
        """What is there, of something that must not stand in an address. Raises Problem.

        Only for what changes nothing: the page asks it in its own name, without the cookie, because whoever follows a
        link from a mail comes from another site.
        """
        kept = [pair for pair in self._headers(path) if pair[0] in (b"host", b"user-agent")]
        headers = [*kept, (b"sec-fetch-site", b"same-origin")]
        return (await self._asked("POST", path, None, orjson.dumps(body), headers)).data

    async def _asked(
        self, method: str, path: str, query: Query | None, content: bytes, headers: list[tuple[bytes, bytes]]
    ) -> Answer:
        if content:
            headers += [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        answer = await call(self.application, _scope(self.request.scope, method, path, query, headers), content)
        self.cookies.extend(answer.cookies)
        if answer.status >= 400:
            raise Problem(answer, self.say)
        return answer

    def _headers(self, path: str) -> list[tuple[bytes, bytes]]:
        headers = [pair for pair in self.request.scope["headers"] if pair[0] in PASSED_ON]
        if path in READING:
            headers = [pair for pair in headers if pair[0] not in (b"origin", b"sec-fetch-site")]
            headers.append((b"sec-fetch-site", b"same-origin"))
        if self.cookies:
            headers = [(b"cookie", _held(headers, self.cookies)), *(pair for pair in headers if pair[0] != b"cookie")]
        return headers


def _once_key(once: str, path: str, content: bytes) -> bytes:
    """Another one when other things are asked for: whoever goes back to a form and changes it wants a second thing, and
    is not told of keys. Of all of it a hash, because keys are kept and what is asked for may hold a secret."""
    return hashlib.sha256(b"\n".join((once.encode(), path.encode(), content))).hexdigest().encode()


def _held(headers: Sequence[tuple[bytes, bytes]], given: Sequence[bytes]) -> bytes:
    """The Cookie header of a browser that had that one, and was given these Set-Cookie headers since."""
    pairs = [pair for name, value in headers if name == b"cookie" for pair in value.split(b";")]
    pairs += [cookie.partition(b";")[0] for cookie in given]
    held = {name.strip(): value.strip() for name, _, value in (pair.partition(b"=") for pair in pairs)}
    return b"; ".join(name + b"=" + value for name, value in held.items() if value)


async def call(application: ASGIApp, scope: Scope, content: bytes) -> Answer:
    """One ASGI request, and all of its answer."""
    given = False
    head: Message = {}
    parts: list[bytes] = []

    async def receive() -> Message:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            head.update(message)
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await application(scope, receive, send)
    headers: list[tuple[bytes, bytes]] = list(head.get("headers", ()))
    media_type = next((value.decode() for name, value in headers if name.lower() == b"content-type"), "")
    raw = b"".join(parts)
    data = orjson.loads(raw) if raw and "json" in media_type.partition(";")[0] else None
    cookies = tuple(value for name, value in headers if name.lower() == b"set-cookie")
    is_replay = any(name.lower() == b"idempotent-replay" for name, _ in headers)
    return Answer(int(head.get("status", 500)), data, raw, media_type, cookies, is_replay)


def _scope(outer: Scope, method: str, path: str, query: Query | None, headers: list[tuple[bytes, bytes]]) -> Scope:
    said = {SIGNED_IN_AS: outer[SIGNED_IN_AS]} if SIGNED_IN_AS in outer else {}
    return {
        **said,
        "type": "http",
        "asgi": outer.get("asgi", {"version": "3.0"}),
        "http_version": "1.1",
        "method": method,
        "scheme": outer.get("scheme", "http"),
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(_pairs(query or {})).encode(),
        "root_path": outer.get("root_path", ""),
        "headers": headers,
        "client": outer.get("client"),
        "server": outer.get("server"),
        "state": {},
    }


def _pairs(query: Query) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None or value == "":
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [(name, str(each).lower() if isinstance(each, bool) else str(each)) for each in values]
    return pairs
