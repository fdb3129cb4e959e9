"""The pages of the dashboard as routes beside the API.

Owns what every page has in common: who may see it, what its answer forbids the browser, and what an error looks like.
Must never show a page to whoever is not signed in, other than those that are `open`; nor take a form from a page of
another site, whatever the form does.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from babel.numbers import format_decimal
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from zerocron.core.origins import FOREIGN, is_same_origin
from zerocron.dashboard import charts, views
from zerocron.dashboard.asking import Answer, Api, Problem
from zerocron.dashboard.assets import Assets
from zerocron.dashboard.notices import notice_of
from zerocron.dashboard.routes import Page
from zerocron.dashboard.visit import Signed, Visit, back_to
from zerocron.dashboard.words import LANGUAGES, said, words_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
STATIC = "/static/{name}"
PACKED_FROM_BYTES = 1_000
CODED = re.compile("`([^`]{1,200})`")


@dataclass
class Site:
    """Everything that pages share. `application` is asked as the API; `base_url` is where browsers reach this server,
    empty where that is not known."""

    application: ASGIApp
    now_ms: Callable[[], int]
    version: str
    is_live: bool = True
    base_url: str = ""

    def __post_init__(self) -> None:
        self.assets = Assets()
        self._environments = {language: self._environment(language) for language in LANGUAGES}

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC)

    def routes(self) -> list[BaseRoute]:
        """What is to be put beside the routes of the API."""
        pages = [page for module in views.MODULES for page in module.PAGES]
        made: list[BaseRoute] = [
            Route(page.path, partial(self._serve, page), methods=list(page.methods), name=f"page {page.path}")
            for page in pages
        ]
        return [*made, Route(STATIC, self._static, methods=["GET"])]

    def render(self, visit: Visit, template: str, content: Mapping[str, Any]) -> str:
        """The template, filled. What every template knows: visit, signed, may, asset, and the filters of `telling`."""
        telling = visit.telling
        shared = {
            "visit": visit,
            "signed": visit.signed,
            "may": visit.signed.may if visit.signed is not None else _nothing,
            "asset": self.assets.path,
            "language": visit.language,
            "languages": LANGUAGES,
            "theme": visit.theme,
            "version": self.version,
            "now": telling.now.isoformat(),
            "is_live": self.is_live,
            "notice": notice_of(visit),
            "problem": None,
            "fresh_key": secrets.token_urlsafe,
            "when": telling.when,
            "until": telling.until,
            "length": telling.length,
            "milliseconds": telling.milliseconds,
            "number": telling.number,
            "percent": telling.percent,
            "size": telling.size,
        }
        return self._environments[visit.language].get_template(template).render({**shared, **content})

    def _environment(self, language: str) -> Environment:
        environment = Environment(
            loader=PackageLoader("zerocron.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        )
        environment.install_gettext_translations(words_of(language), newstyle=True)  # type: ignore[attr-defined]
        environment.globals["strip_of"] = charts.strip
        environment.globals["ngettext"] = _counted(environment.globals["ngettext"], language)
        environment.filters["coded"] = _coded
        # For a sentence of the API. `_()` takes what it is given for HTML, which only a text of a template is.
        environment.filters["said"] = partial(said, language)
        return environment

    async def _static(self, request: Request) -> Response:
        found = self.assets.find(request.url.path)
        return PlainTextResponse("There is no such file.", 404) if found is None else found.answer(request)

    async def _serve(self, page: Page, request: Request) -> Response:
        visit = self._visit(request)
        return self._finished(visit, await self._answer(page, visit))

    async def instead_of(self, answer: Answer, request: Request) -> Response:
        """The page that says what an answer would have said that is none."""
        visit = self._visit(request)
        if answer.status < 500:  # else the next question would hardly be answered better
            with contextlib.suppress(Problem):
                await self._know(visit)
        return self._finished(visit, self._explain(visit, Problem(answer, visit.said)))

    def _visit(self, request: Request) -> Visit:
        visit = Visit(self, request, Api(self.application, request))
        visit.api.say = visit.said
        return visit

    def _finished(self, visit: Visit, response: Response) -> Response:
        for cookie in visit.api.cookies:
            response.raw_headers.append((b"set-cookie", cookie))
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return _packed(visit.request, response)

    async def _answer(self, page: Page, visit: Visit) -> Response:
        try:
            await self._know(visit, is_open=page.is_open)
            self._check_origin(visit)
            return await page.view(visit)
        except Problem as problem:
            return self._explain(visit, problem)

    async def _know(self, visit: Visit, *, is_open: bool = False) -> None:
        """Find out who looks. Raises Problem when the page is for those who are signed in, and they are not."""
        try:
            session = await visit.api.get("/v1/session")
        except Problem as problem:
            if problem.status == 401 and is_open:
                return
            raise
        if session["person"] is not None:
            visit.signed = Signed(session)

    def _check_origin(self, visit: Visit) -> None:
        """The API asks the same of what pages send on; but not all that a form does comes before it. Raises Problem."""
        request = visit.request
        if not is_same_origin(
            request.method,
            sec_fetch_site=request.headers.get("sec-fetch-site"),
            origin=request.headers.get("origin"),
            host=request.headers.get("host"),
            own_origins=(self.base_url,) if self.base_url else (),
        ):
            raise Problem(Answer(403, {"title": "Forbidden", "detail": FOREIGN}), visit.said)

    def _explain(self, visit: Visit, problem: Problem) -> Response:
        """What a page that could not be shown looks like."""
        if problem.status == 401:
            here = visit.here if visit.request.method == "GET" and not visit.is_fragment else "/"
            return visit.go(f"/sign-in?next={quote(back_to(here), safe='/')}" if here != "/" else "/sign-in")
        visit.status = problem.status
        if problem.code == "reauthenticate":
            return visit.page("shared/confirm.html", next=visit.here)
        return visit.page("shared/error.html", problem=problem)


def _coded(text: str) -> Markup:
    """A sentence of the API with what it has between backticks as code."""
    return Markup(CODED.sub(r"<code>\1</code>", str(escape(text))))


def _counted(ngettext: Any, language: str) -> Callable[..., Any]:
    """`ngettext` with its number as it is written in the language, where a template does not say how it is shown."""

    @pass_context
    def counted(context: Context, one: str, many: str, count: int, **given: Any) -> Any:
        return ngettext(context, one, many, count, **{"num": format_decimal(count, locale=language), **given})

    return counted


def _nothing(_permission: str) -> bool:
    return False


def _packed(request: Request, response: Response) -> Response:
    """In fewer bytes, for those who can read it so. A page holds no token of ours that its length could betray."""
    body = getattr(response, "body", b"")
    if len(body) < PACKED_FROM_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    response.body = gzip.compress(body, 5, mtime=0)
    response.headers["Content-Length"] = str(len(response.body))
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding, Cookie"
    return response
