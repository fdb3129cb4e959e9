"""One request of a page: who looks, in which language and zone, what they ask of the API, and what they get to see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.schedule.zones import timezones
from zerocron.dashboard.asking import Answer, Api, Problem, Query
from zerocron.dashboard.forms import FORM_BYTES_MAX, Form, read_form
from zerocron.dashboard.notices import N_
from zerocron.dashboard.telling import Telling, read_instant
from zerocron.dashboard.words import DEFAULT, LANGUAGES, said, wanted_language, words_of

if TYPE_CHECKING:
    from zerocron.dashboard.site import Site

TIME_TO_TYPE = timedelta(minutes=3)
THEMES = ("auto", "light", "dark")
THEME_COOKIE = "0cron-theme"
LANGUAGE_COOKIE = "0cron-language"
TOO_LARGE = N_("This form is too large to be read. Go back: what you typed is still there. Keep large data elsewhere.")
SENT_BEFORE: Mapping[str, str] = {
    "made_before": N_(
        "This form was sent before. What it made was shown then, and only then: if you did not keep it, send "
        "the form again to make another."
    ),
    "mail_not_known": N_(
        "This form was sent before, and the mail may be on its way. If it does not come, invite again: that makes "
        "the link of the first mail invalid."
    ),
    "made_and_gone": N_(
        "This form was sent before, and what it made was deleted since. Send it again to make another."
    ),
    "key_reused": N_("This form was sent before, with something else in it. Send it again."),
}
"""What the API says of an `Idempotency-Key`, to whoever sent a form twice. A form shown anew has another key."""
UNREADABLE = N_("This form cannot be read. Go back, and send it again.")

View = Callable[["Visit"], Awaitable[Response]]


@dataclass(slots=True)
class Signed:
    """Who looks, as GET /v1/session told it."""

    session: Mapping[str, Any]

    @property
    def person(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.session["person"]
        return found

    @property
    def team(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.session["team"]
        return found

    def may(self, permission: str) -> bool:
        return permission in self.session["permissions"]

    @property
    def runs_server(self) -> bool:
        """Whether they may do what is about all teams: the admins of the server's first team may."""
        return self.may("admin") and self.team["id"] == DEFAULT_TEAM_ID


@dataclass
class Visit:
    """What a view works with."""

    site: Site
    request: Request
    api: Api
    signed: Signed | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    # --- what was asked

    @property
    def path(self) -> Mapping[str, str]:
        """The parameters in the path."""
        found: Mapping[str, str] = self.request.path_params
        return found

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    @property
    def chunk(self) -> int:
        """Which page of a list that grows below itself is asked for, from 1: the parts of the list have ids."""
        given = self.query.get("chunk", "")
        return int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 1

    @property
    def is_fragment(self) -> bool:
        """Asked by a script for a part of a page."""
        return self.request.headers.get("hx-request") == "true" and "hx-boosted" not in self.request.headers

    async def form(self, *, bytes_max: int = FORM_BYTES_MAX) -> Form:
        """The fields that were sent. Raises Problem for a form that is larger than it can be."""
        content = bytearray()
        async for part in self.request.stream():
            content += part
            if len(content) > bytes_max:
                raise self._refusal(413, "Content Too Large", self._worded(TOO_LARGE))
        try:
            return read_form(bytes(content), self.request.headers.get("content-type", ""))
        except ValueError:
            raise self._refusal(400, "Bad Request", self._worded(UNREADABLE)) from None

    def _worded(self, text: str) -> str:
        """A text of the pages in the reader's language."""
        return words_of(self.language).gettext(text)

    def _refusal(self, status: int, title: str, detail: str) -> Problem:
        return Problem(Answer(status, {"title": title, "detail": detail}), self.said)

    @property
    def here(self) -> str:
        """The address of this page, for coming back."""
        query = self.request.url.query
        return self.request.url.path + (f"?{query}" if query else "")

    # --- who looks

    @cached_property
    def language(self) -> str:
        if self.signed is not None:
            return str(self.signed.person["language"])
        chosen = self.request.cookies.get(LANGUAGE_COOKIE, "")
        return chosen if chosen in LANGUAGES else wanted_language(self.request.headers.get("accept-language"))

    def said(self, text: str | None) -> str:
        """A sentence of the API in the reader's language; any other text as it is."""
        return said(self.language, text)

    @property
    def timezone(self) -> str:
        return "UTC" if self.signed is None else str(self.signed.person["timezone"])

    @property
    def timezones(self) -> list[str]:
        """What a field for a time zone offers: who looks has most to do with their own."""
        return list(dict.fromkeys((self.timezone, *timezones())))

    @cached_property
    def telling(self) -> Telling:
        return Telling(self.language or DEFAULT, ZoneInfo(self.timezone), self.site.now())

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME_COOKIE, "")
        return chosen if chosen in THEMES else "auto"

    def confirm_first(self) -> Response | None:
        """Asks who somebody is before they fill a form whose sending needs a fresh proof of it, so that nothing typed
        is lost; None for who gave one so lately that there is time to type."""
        until = None if self.signed is None else self.signed.session["elevated_until"]
        if until is not None and read_instant(until) - self.site.now() > TIME_TO_TYPE:
            return None
        self.status = 403
        return self.page("shared/confirm.html", next=self.here)

    # --- what they get

    def page(self, template: str, /, **content: Any) -> HTMLResponse:
        """A page, or a part of one, from `templates/`."""
        return HTMLResponse(self.site.render(self, template, content), self.status, dict(self.headers))

    def go(self, to: str, *, done: str | None = None, **more: str) -> Response:
        """On to another page of ours (303), which may say what was done: `done` names a text of `notices.py`."""
        if done is not None:
            query = urlencode({"done": done, **more})
            to += ("&" if "?" in to else "?") + query
        if self.request.headers.get("hx-request") == "true":
            return Response(status_code=204, headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)

    def made(self, to: str, answer: Answer) -> Response:
        """On to what a form made, or had made when it was sent before."""
        return self.go(to, done="created_before" if answer.is_replay else "created")

    def in_words(self, problem: Problem) -> Problem:
        """The same, without what only a program knows of its requests."""
        if problem.code in SENT_BEFORE:
            problem.detail = self._worded(SENT_BEFORE[problem.code])
        return problem

    def refused(self, problem: Problem, template: str, /, **content: Any) -> HTMLResponse:
        """The form again, with what was wrong. Raises the problem again when it is not about what was typed."""
        if problem.status not in (400, 402, 403, 404, 409, 413, 422, 429) or problem.code == "reauthenticate":
            raise problem
        self.status = problem.status if problem.status != 404 else 422
        return self.page(template, problem=self.in_words(problem), **content)


def back_to(address: str | None, otherwise: str = "/") -> str:
    """An address of this site only: what somebody put into a link must lead nowhere else."""
    if not address or not address.startswith("/") or address.startswith(("//", "/\\")) or len(address) > 2_000:
        return otherwise
    return quote(address, safe="/?&=%:+,;@~!$'()*-._#[]") if address.isprintable() else otherwise


def segment(text: str) -> str:
    """An id as one part of a path of the API, whatever somebody put in its place."""
    return "".join(each for each in text if each.isascii() and (each.isalnum() or each in "-_."))[:64] or "-"


async def lines_of(api: Api, path: str, query: Query | None = None) -> tuple[list[Any], str | None]:
    """A page of a list of the API: its items, and the cursor of what follows."""
    found = await api.get(path, query)
    return found["items"], found["next_cursor"]
