"""Coming in and going out: signing in, links that work once, being asked again who one is.

Must never put the token of a link into a page, a title or the address of another page: forms of such a page are sent
to where it is, and links that have to lead back to it are redirects (`WAYS_BACK`), on which nobody stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from zerocron.dashboard.asking import Problem
from zerocron.dashboard.forms import Form
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.visit import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, Visit, back_to
from zerocron.dashboard.words import LANGUAGES, words_of

CHOICE_SECONDS = 400 * 86_400
"""So long a browser keeps a cookie at most (RFC 6265bis)."""

FORM = "sign_in/form.html"

WAYS_BACK: Mapping[str, str] = {"issuer": "/auth/oidc/start", "header": "/auth/header"}
"""Of who has an account: where they sign in before they accept an invitation."""


def N_(text: str) -> str:
    """Marks a text for the catalogs; it is translated when it is shown."""
    return text


REFUSALS: Mapping[str, str] = {
    "unknown": N_("Nobody with your address is known here. Ask an owner or admin of a team for an invitation."),
    "unverified": N_("You were signed in there, but without an address that is known to be yours."),
    "disabled": N_("Your account here is disabled. Ask an owner of your team."),
    "no_team": N_("You are in no team any more. Ask an owner or admin of one for an invitation."),
    "not_set_up": N_("This server has no owner yet. Whoever runs it has a link that makes the first one."),
    "expired": N_("This took too long, or began in another browser. Try again."),
    "denied": N_("You were not signed in there. Try again."),
    "issuer": N_("The answer from there could not be used. Try again; if it stays so, tell whoever runs this server."),
    "busy": N_("Too many people are signing in at this moment. Try again in a minute."),
    "too_many": N_("There were too many attempts from your network. Try again in a few minutes."),
    "no_header": N_("The proxy has named nobody. Open this page through it."),
    "somebody_else": N_("You signed in there as somebody else than here, so nothing is proved."),
    "taken": N_("That account there belongs to somebody else here. It can be linked to one of you only."),
    "no_proof": N_("The answer from there does not say that you were asked just now, so it proves nothing."),
    "too_many_linked": N_("You have linked as many as one may. Take one off first."),
}
"""Why an issuer or a proxy let nobody in: what `refused` in the address stands for. Nothing else of it is shown."""


# --- signing in


async def show_sign_in(visit: Visit) -> Response:
    """GET /sign-in."""
    next_ = back_to(visit.query.get("next"))
    if visit.signed is not None:
        refused = visit.query.get("refused", "")
        return visit.go(f"/account?refused={refused}" if refused in REFUSALS else next_)
    content = {"ways": await _ways(visit), "next": next_, "email": "", "asks_code": False}
    return visit.page("sign_in/sign_in.html", refusal=refusal_of(visit), **content)


def refusal_of(visit: Visit) -> str:
    """Why an issuer or a proxy brought nothing, as the address of this page says; empty where it does not."""
    refusal = REFUSALS.get(visit.query.get("refused", ""), "")
    return words_of(visit.language).gettext(refusal) if refusal else ""


async def sign_in(visit: Visit) -> Response:
    """POST /sign-in.

    The password is never written into a page. So when a code turns out to be needed, a script puts the field for it
    into the form that is there; without scripts the password is typed again.
    """
    form = await visit.form()
    next_ = back_to(form.get("next"))
    try:
        await visit.api.send("POST", "/v1/sign-in", {"email": form.get("email"), **_proof(form)})
    except Problem as problem:
        asks_code = form.has("code") or problem.code == "code_needed"
        content = {"next": next_, "email": form.get("email"), "asks_code": asks_code}
        if not visit.is_fragment:
            return _again(visit, problem, "sign_in/sign_in.html", ways=await _ways(visit), refusal="", **content)
        if asks_code:
            visit.headers |= {"HX-Retarget": "#second-factor", "HX-Reswap": "innerHTML"}
        return _again(visit, problem, "sign_in/code.html" if asks_code else FORM, **content)
    return visit.go(next_)


async def sign_out(visit: Visit) -> Response:
    """POST /sign-out. Who is signed out already gets what they wanted."""
    try:
        await visit.api.send("POST", "/v1/sign-out")
    except Problem as problem:
        if problem.status != 401:
            raise
    return visit.go("/sign-in", done="signed_out")


# --- the first owner


async def show_setup(visit: Visit) -> Response:
    """GET /setup/{token}."""
    return await _setup_page(visit, {"language": visit.language})


async def set_up(visit: Visit) -> Response:
    """POST /setup/{token}."""
    form = await visit.form()
    given = {name: form.get(name) for name in ("email", "name", "language")} | _zone(form)
    try:
        body = {**given, "token": visit.path["token"], "password": form.raw("password")}
        await visit.api.send("POST", "/v1/setup", body)
    except Problem as problem:
        if problem.status == 404:
            return await _setup_page(visit, given, is_gone=True)
        ways = await _ways(visit)
        return _again(visit, problem, "sign_in/setup.html", ways=ways, given=given, is_gone=not ways["setup_open"])
    return visit.go("/")


async def _setup_page(visit: Visit, given: dict[str, str], *, is_gone: bool = False) -> Response:
    ways = await _ways(visit)
    is_gone = is_gone or not ways["setup_open"]
    visit.status = 404 if is_gone else 200
    return visit.page("sign_in/setup.html", ways=ways, given=given, is_gone=is_gone)


# --- a new password


async def show_reset(visit: Visit) -> Response:
    """GET /reset."""
    return visit.page("sign_in/reset.html", ways=await _ways(visit), email="")


async def ask_for_reset(visit: Visit) -> Response:
    """POST /reset. Whether there is such a person is told to nobody."""
    email = (await visit.form()).get("email")
    try:
        await visit.api.send("POST", "/v1/password-resets", {"email": email})
    except Problem as problem:
        return _again(visit, problem, "sign_in/reset.html", ways=await _ways(visit), email=email)
    return visit.go("/sign-in", done="reset_sent")


async def show_new_password(visit: Visit) -> Response:
    """GET /reset/{token}."""
    return visit.page("sign_in/new_password.html", ways=await _ways(visit), asks_code=False)


async def set_new_password(visit: Visit) -> Response:
    """POST /reset/{token}."""
    form = await visit.form()
    body = {"token": visit.path["token"], "new_password": form.raw("new_password"), "code": form.get("code") or None}
    try:
        await visit.api.send("POST", "/v1/password-resets/use", body)
    except Problem as problem:
        if problem.status == 404:
            return _gone(visit)
        asks_code = form.has("code") or problem.code == "code_needed"
        return _again(visit, problem, "sign_in/new_password.html", ways=await _ways(visit), asks_code=asks_code)
    return visit.go("/sign-in", done="password_reset")


# --- an invitation


async def show_invitation(visit: Visit) -> Response:
    """GET /invitation/{token}. `by`: sign in there first, and come back."""
    way = WAYS_BACK.get(visit.query.get("by", ""))
    if way is not None:
        return visit.go(f"{way}?{urlencode({'next': visit.request.url.path})}")
    return await _invitation_page(visit, None, {}, asks_code=False)


async def accept_invitation(visit: Visit) -> Response:
    """POST /invitation/{token}. Who has an account proves that it is theirs; who has none makes one."""
    form = await visit.form()
    given = {"name": form.get("name"), **_zone(form)}
    body: dict[str, Any] = {"token": visit.path["token"]}
    if form.has("name"):
        body["name"] = form.get("name")
    if form.has("password"):
        body |= _proof(form)
    try:
        await visit.api.send("POST", "/v1/invitations/accept", body)
    except Problem as problem:
        if problem.status == 404:
            return _gone(visit)
        asks_code = form.has("code") or problem.code == "code_needed"
        return await _invitation_page(visit, problem, given, asks_code=asks_code)
    if form.has("name"):
        with contextlib.suppress(Problem):  # they are in; how times are shown can be changed at any time
            await visit.api.send("PATCH", "/v1/me", {"language": visit.language, **_zone(form)})
    return visit.go("/", done="joined")


async def _invitation_page(
    visit: Visit, problem: Problem | None, given: dict[str, str], *, asks_code: bool
) -> Response:
    try:
        invitation = await visit.api.look("/v1/invitations/look", {"token": visit.path["token"]})
    except Problem as refusal:
        if refusal.status == 404:
            return _gone(visit)
        raise
    is_theirs = visit.signed is not None and visit.signed.person["email"] == invitation["email"]
    content = {"ways": await _ways(visit), "invitation": invitation, "is_theirs": is_theirs, "given": given}
    template = "sign_in/invitation.html"
    if problem is None:
        return visit.page(template, asks_code=asks_code, **content)
    return _again(visit, problem, template, asks_code=asks_code, **content)


# --- who are you, again; which team; how it looks


async def show_confirm(visit: Visit) -> Response:
    """GET /confirm."""
    return visit.page("shared/confirm.html", next=back_to(visit.query.get("next")), refusal=refusal_of(visit))


async def confirm(visit: Visit) -> Response:
    """POST /confirm: for ten minutes what asks for a fresh proof may be done."""
    form = await visit.form()
    next_ = back_to(form.get("next"))
    proof = {"password": form.raw("password") or None, "code": form.get("code") or None}
    try:
        await visit.api.send("POST", "/v1/session/elevate", proof)
    except Problem as problem:
        return _again(visit, problem, "shared/confirm.html", next=next_)
    return visit.go(next_)


async def choose_team(visit: Visit) -> Response:
    """POST /team: what was looked at belongs to the other team, so one begins at the overview."""
    await visit.api.send("POST", "/v1/session/team", {"team_id": (await visit.form()).get("team_id")})
    return visit.go("/")


async def choose_appearance(visit: Visit) -> Response:
    """POST /appearance: kept in cookies, for who is not signed in."""
    form = await visit.form()
    response = visit.go(back_to(form.get("next"), "/sign-in"))
    remember(visit, response, THEME_COOKIE, form.get("theme"), THEMES)
    remember(visit, response, LANGUAGE_COOKIE, form.get("language"), LANGUAGES)
    return response


def remember(visit: Visit, response: Response, name: str, value: str, among: Any) -> None:
    """Let the browser keep a choice, if it is one of ours."""
    if value in among:
        is_tls = visit.request.url.scheme == "https"
        response.set_cookie(name, value, max_age=CHOICE_SECONDS, secure=is_tls, httponly=True, samesite="lax")


# --- what these have in common


async def _ways(visit: Visit) -> Any:
    return await visit.api.get("/v1/sign-in")


def _proof(form: Form) -> dict[str, str | None]:
    return {"password": form.raw("password"), "code": form.get("code") or None}


def _zone(form: Form) -> dict[str, str]:
    """The time zone, where a script or a person named one."""
    zone = form.get("timezone")
    return {"timezone": zone} if zone else {}


def _again(visit: Visit, problem: Problem, template: str, /, **content: Any) -> Response:
    """The form again. Here a 401 says that what was typed is wrong, and not that nobody is signed in."""
    if problem.status != 401:
        response: Response = visit.refused(problem, template, **content)
    else:
        visit.status = 401
        response = visit.page(template, problem=problem, **content)
    if visit.is_fragment:
        response.status_code = 200  # htmx puts nothing else into the page
    return response


def _gone(visit: Visit) -> Response:
    visit.status = 404
    return visit.page("sign_in/gone.html")


PAGES: tuple[Page, ...] = (
    page("/sign-in", show_sign_in, is_open=True),
    act("/sign-in", sign_in, is_open=True),
    act("/sign-out", sign_out, is_open=True),
    page("/setup/{token}", show_setup, is_open=True),
    act("/setup/{token}", set_up, is_open=True),
    page("/reset", show_reset, is_open=True),
    act("/reset", ask_for_reset, is_open=True),
    page("/reset/{token}", show_new_password, is_open=True),
    act("/reset/{token}", set_new_password, is_open=True),
    page("/invitation/{token}", show_invitation, is_open=True),
    act("/invitation/{token}", accept_invitation, is_open=True),
    page("/confirm", show_confirm),
    act("/confirm", confirm),
    act("/team", choose_team),
    act("/appearance", choose_appearance, is_open=True),
)
