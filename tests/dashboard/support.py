"""Pages without a browser: an API whose answers are given and whose questions are kept, and HTML read as a tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from zerocron.dashboard.asking import call
from zerocron.dashboard.site import Site
from zerocron.dashboard.specimens import NOW, SPECIMENS
from zerocron.dashboard.specimens.kinds import SESSION
from zerocron.dashboard.telling import read_instant
from zerocron.dashboard.visit import LANGUAGE_COOKIE
from zerocron.dashboard.words import DEFAULT

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"
"""What people and targets write, when they mean no good."""

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))


def _now_ms() -> int:
    return round(read_instant(NOW).timestamp() * 1_000)


@dataclass(frozen=True)
class Asked:
    """A request that a page made of the API."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any = None
    once: str = field(default="", compare=False)
    """Its Idempotency-Key."""


@dataclass
class CannedApi:
    """The API: what is not in `answers` is not there. `answers` are as those of a specimen."""

    answers: dict[str, Any]
    asked: list[Asked] = field(default_factory=list)
    is_replay: bool = False
    """Whether all that is asked for was made before."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive()).get("body", b"")
        method, path = scope["method"], scope["path"]
        query = dict(parse_qsl(scope["query_string"].decode()))
        once = dict(scope["headers"]).get(b"idempotency-key", b"").decode()
        self.asked.append(Asked(method, path, query, json.loads(body) if body else None, once))
        found = self.answers.get(f"{method} {path}", (404, {"title": "Not Found", "detail": f"Not told: {path}"}))
        status, data = found if isinstance(found, tuple) else (200, found)
        headers = [
            (b"content-type", b"application/json"),
            *([(b"idempotent-replay", b"true")] if self.is_replay else []),
        ]
        head = {"type": "http.response.start", "status": status, "headers": headers}
        await send({**head})
        await send({"type": "http.response.body", "body": orjson.dumps(data)})

    def sent(self) -> list[Asked]:
        """What was to change something."""
        return [each for each in self.asked if each.method != "GET"]

    def bodies(self, method: str, path: str) -> list[Any]:
        """What such requests brought."""
        return [each.body for each in self.asked if (each.method, each.path) == (method, path)]

    def questions(self, path: str) -> list[Asked]:
        return [each for each in self.asked if each.path == path]


@dataclass
class Element:
    """A tag, with what is in it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    @property
    def text(self) -> str:
        """All text in it, with single blanks."""
        parts = (each if isinstance(each, str) else each.text for each in self.children)
        return " ".join(" ".join(parts).split())

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """All such elements in it; `class_` is one of the classes, `for_` and `data_x` are attributes so called."""
        return [each for each in self._below() if each._is(tag, attributes)]

    def one(self, tag: str = "", **attributes: str) -> Element:
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag} {attributes}"
        return found[0]

    def fields(self) -> list[tuple[str, str]]:
        """What a form would send without being touched, apart from its buttons."""
        pairs: list[tuple[str, str]] = []
        for each in self._below():
            name, kind = each.get("name"), each.get("type", "text")
            if not name or "disabled" in each.attributes or each.tag not in ("input", "select", "textarea"):
                continue
            if each.tag == "select":
                options = each.all("option")
                chosen = [option for option in options if "selected" in option.attributes] or options[:1]
                pairs += [(name, option.get("value")) for option in chosen]
            elif each.tag == "textarea":
                pairs.append((name, "".join(part for part in each.children if isinstance(part, str)).lstrip("\n")))
            elif kind not in ("checkbox", "radio") or "checked" in each.attributes:
                pairs.append((name, each.get("value")))
        return pairs

    def typed(self) -> list[tuple[str, str]]:
        """The same but for the key of the form, which is another one each time."""
        return [(name, value) for name, value in self.fields() if name != "once"]

    def _below(self) -> Iterator[Element]:
        for each in self.children:
            if isinstance(each, Element):
                yield each
                yield from each._below()

    def _is(self, tag: str, attributes: Mapping[str, str]) -> bool:
        if tag and self.tag != tag:
            return False
        for name, value in attributes.items():
            if name == "class_":
                if value not in self.get("class").split():
                    return False
            elif self.attributes.get(name.rstrip("_").replace("_", "-")) != value:
                return False
        return True


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> ends <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def read(html: str) -> Element:
    """The page as a tree. Fails for tags that do not fit: ours are all closed."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader._open == [reader.root], f"<{reader._open[-1].tag}> is not closed"
    return reader.root


@dataclass(frozen=True)
class Shown:
    """What a page answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def html(self) -> str:
        return self.content.decode()

    @property
    def tree(self) -> Element:
        return read(self.html)

    @property
    def location(self) -> str:
        return self.headers.get("location", "")


@cache
def _site() -> tuple[Site, Starlette]:
    """One for all tests of a process: it compiles its templates once. Whom it asks is set before every request."""
    site = Site(CannedApi({}), _now_ms, "0.0.0")
    return site, Starlette(routes=site.routes())


MULTIPART = "multipart/form-data; boundary=edge"


def multipart(fields: Sequence[tuple[str, str]]) -> bytes:
    """The fields as browsers write them in such a form; their texts are as the browser has them."""
    head = '--edge\r\nContent-Disposition: form-data; name="{}"\r\n\r\n'
    parts = [head.format(quote(name, safe=" ")).encode() + value.encode() + b"\r\n" for name, value in fields]
    return b"".join(parts) + b"--edge--\r\n"


@dataclass
class Pages:
    """The dashboard over a canned API, at the instant of the specimens."""

    api: CannedApi

    @classmethod
    def of(cls, name: str, **answers: Any) -> Pages:
        """With the answers of a specimen, and others: `Pages.of("jobs", **{"GET /v1/tags": ...})`."""
        return cls.over({**SPECIMENS[name].answers, **answers})

    @classmethod
    def over(cls, answers: Mapping[str, Any]) -> Pages:
        return cls(CannedApi({"GET /v1/session": SESSION, **answers}))

    async def get(self, path: str, *, is_fragment: bool = False, headers: Mapping[str, str] | None = None) -> Shown:
        given = {"hx-request": "true"} if is_fragment else {}
        return await self._ask("GET", path, b"", {**given, **(headers or {})})

    async def post(
        self,
        path: str,
        fields: Sequence[tuple[str, str]] = (),
        *,
        is_fragment: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Shown:
        given = {"sec-fetch-site": "same-origin"} | ({"hx-request": "true"} if is_fragment else {})
        return await self._ask("POST", path, urlencode(fields).encode(), {**given, **(headers or {})})

    async def post_long(self, path: str, fields: Sequence[tuple[str, str]]) -> Shown:
        """As a browser sends a form with long texts."""
        headers = {"sec-fetch-site": "same-origin", "content-type": MULTIPART}
        return await self._ask("POST", path, multipart(fields), headers)

    async def specimen(self, name: str, language: str = DEFAULT) -> Shown:
        """A specimen as the gallery shows it to a reader of a language, signed in or not."""
        session = self.api.answers["GET /v1/session"]
        if isinstance(session, dict) and session.get("person"):
            self.api.answers["GET /v1/session"] = {**session, "person": {**session["person"], "language": language}}
        specimen, headers = SPECIMENS[name], {"cookie": f"{LANGUAGE_COOKIE}={language}"}
        if specimen.form is None:
            return await self.get(specimen.path, headers=headers)
        return await self.post(specimen.path, specimen.form, headers=headers)

    async def _ask(self, method: str, path: str, content: bytes, headers: Mapping[str, str]) -> Shown:
        bare, _, query = path.partition("?")
        site, application = _site()
        site.application = self.api
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": bare,
            "raw_path": bare.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in {"host": "t", **headers}.items()],
            "client": ("127.0.0.1", 1),
            "server": ("t", 80),
            "state": {},
        }
        answered: dict[str, str] = {}

        async def noted(inner: Scope, receive: Receive, send: Send) -> None:
            async def watched(message: Any) -> None:
                if message["type"] == "http.response.start":
                    answered.update({name.decode(): value.decode() for name, value in message["headers"]})
                await send(message)

            await application(inner, receive, watched)

        answer = await call(noted, scope, content)
        return Shown(answer.status, answered, answer.content)
