"""The pages of a person about themselves: name, language, zone, password, second factor, issuers, browsers, teams."""

from __future__ import annotations

import base64
import re
from typing import Any

from starlette.responses import Response

from zerocron.dashboard.asking import Problem
from zerocron.dashboard.reading import refusal
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.views.sign_in import refusal_of, remember
from zerocron.dashboard.visit import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, Visit, lines_of, segment
from zerocron.dashboard.words import LANGUAGES, words_of

HOME = "/account"
BROWSERS_SHOWN = 50

_BROWSERS = (
    ("Edge", re.compile(r"Edg(?:A|iOS)?/(\d{1,4})")),
    ("Opera", re.compile(r"OPR/(\d{1,4})")),
    ("Firefox", re.compile(r"(?:Firefox|FxiOS)/(\d{1,4})")),
    ("Chrome", re.compile(r"(?:Chrome|CriOS)/(\d{1,4})")),
    ("Safari", re.compile(r"Version/(\d{1,4})[^)]{0,40} Safari/")),
)
_SYSTEMS = (
    ("iPhone", re.compile(r"iPhone")),
    ("iPad", re.compile(r"iPad")),
    ("Android", re.compile(r"Android")),
    ("Windows", re.compile(r"Windows")),
    ("macOS", re.compile(r"Macintosh")),
    ("ChromeOS", re.compile(r"CrOS")),
    ("Linux", re.compile(r"Linux")),
)


# --- the person


async def show(visit: Visit) -> Response:
    """GET /account."""
    assert visit.signed is not None
    given = dict(visit.signed.person)
    return visit.page("account/account.html", given=given, **await _content(visit))


async def save(visit: Visit) -> Response:
    """POST /account. The theme is a matter of this browser, the rest of the person."""
    form = await visit.form()
    given = {name: form.get(name) for name in ("name", "language", "timezone")}
    try:
        await visit.api.send("PATCH", "/v1/me", given)
    except Problem as problem:
        return visit.refused(problem, "account/account.html", given=given, **await _content(visit))
    response = visit.go(HOME, done="saved")
    remember(visit, response, THEME_COOKIE, form.get("theme"), THEMES)
    remember(visit, response, LANGUAGE_COOKIE, form.get("language"), LANGUAGES)
    return response


async def _content(visit: Visit) -> dict[str, Any]:
    items, more = await lines_of(visit.api, "/v1/me/sign-ins", {"limit": BROWSERS_SHOWN})
    browsers = [{**each, "name": browser_of(each["user_agent"])} for each in items]
    browsers.sort(key=lambda each: not each["is_current"])
    return {
        "browsers": browsers,
        "has_more_browsers": more is not None,
        "identities": await _identities(visit),
        "oidc": await _issuer(visit),
        "refusal": refusal_of(visit),
    }


def browser_of(user_agent: str) -> tuple[str, str]:
    """What a browser says it is, in short: its name with its version, and its system. Empty where it says neither."""
    text = user_agent[:500]
    browser = next((f"{name} {match[1]}" for name, pattern in _BROWSERS if (match := pattern.search(text))), "")
    system = next((name for name, pattern in _SYSTEMS if pattern.search(text)), "")
    return browser, system


# --- the password


async def show_password(visit: Visit) -> Response:
    """GET /account/password. Who has none yet proves in another way who they are before they type one."""
    assert visit.signed is not None
    asked = None if visit.signed.person["has_password"] else visit.confirm_first()
    return asked or visit.page("account/password.html")


async def change_password(visit: Visit) -> Response:
    """POST /account/password.

    The password of now is the proof that this needs, so nobody is asked twice: it is given as a proof first.
    """
    form = await visit.form()
    assert visit.signed is not None
    current = form.raw("current_password") if visit.signed.person["has_password"] else None
    try:
        if current is not None:
            await _prove(visit, current)
        body = {"current_password": current, "new_password": form.raw("new_password")}
        await visit.api.send("PUT", "/v1/me/password", body)
    except Problem as problem:
        return visit.refused(problem, "account/password.html")
    return visit.go(HOME, done="password_changed")


async def _prove(visit: Visit, password: str) -> None:
    """Raises Problem; of a wrong password as one about the field it was typed into."""
    try:
        await visit.api.send("POST", "/v1/session/elevate", {"password": password, "code": None})
    except Problem as problem:
        if problem.status != 401:
            raise
        _ = words_of(visit.language).gettext
        wrong = _("This is not your password of now.")
        raise refusal(wrong, "current_password", wrong) from None


# --- the second factor


async def show_second_factor(visit: Visit) -> Response:
    """GET /account/second-factor."""
    return visit.confirm_first() or visit.page("account/second_factor.html")


async def begin_second_factor(visit: Visit) -> Response:
    """POST /account/second-factor: what the app scans. The picture comes from the API, and is put in as an image: as
    one it can do nothing but be seen."""
    try:
        made = await visit.api.send("POST", "/v1/me/totp")
    except Problem as problem:
        return visit.refused(problem, "account/second_factor.html")
    picture = "data:image/svg+xml;base64," + base64.b64encode(made["qr_svg"].encode()).decode()
    return visit.page("account/second_factor_code.html", made=made, picture=picture)


async def confirm_second_factor(visit: Visit) -> Response:
    """POST /account/second-factor/code."""
    code = (await visit.form()).get("code")
    try:
        made = await visit.api.send("POST", "/v1/me/totp/confirm", {"code": code})
    except Problem as problem:
        return visit.refused(problem, "account/second_factor_code.html", made=None, picture="")
    return _codes(visit, made, is_new=True)


async def show_code_field(visit: Visit) -> Response:
    """GET /account/second-factor/code: who comes back to it has the app, and lacks the picture."""
    return visit.confirm_first() or visit.page("account/second_factor_code.html", made=None, picture="")


async def ask_off(visit: Visit) -> Response:
    """GET /account/second-factor/off."""
    return visit.confirm_first() or visit.page("account/second_factor_off.html")


async def take_off(visit: Visit) -> Response:
    """POST /account/second-factor/off."""
    await visit.api.send("DELETE", "/v1/me/totp")
    return visit.go(HOME, done="second_factor_off")


async def ask_codes(visit: Visit) -> Response:
    """GET /account/recovery-codes."""
    return visit.confirm_first() or visit.page("account/new_codes.html")


async def new_codes(visit: Visit) -> Response:
    """POST /account/recovery-codes."""
    return _codes(visit, await visit.api.send("POST", "/v1/me/recovery-codes"), is_new=False)


def _codes(visit: Visit, made: Any, *, is_new: bool) -> Response:
    """The one page that shows the codes. The file to keep is in the page itself, so no script is needed to save it."""
    codes = made["recovery_codes"]
    text = "\n".join(["0cron", *codes, ""])
    file = "data:text/plain;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()
    return visit.page("account/codes.html", codes=codes, file=file, is_new=is_new)


# --- who they are at an issuer


async def _identities(visit: Visit) -> list[Any]:
    found: list[Any] = (await visit.api.get("/v1/me/identities"))["items"]
    return found


async def _issuer(visit: Visit) -> Any:
    """What the issuer of this server is called; None where there is none."""
    return (await visit.api.get("/v1/sign-in"))["oidc"]


async def ask_link(visit: Visit) -> Response:
    """GET /account/identities/new."""
    return visit.confirm_first() or await _link_page(visit)


async def link(visit: Visit) -> Response:
    """POST /account/identities/new: the way to the issuer, as a link. A browser follows no form to another site from a
    page of ours."""
    try:
        made = await visit.api.send("POST", "/v1/me/identities")
    except Problem as problem:
        if problem.status != 409:
            raise
        return visit.go(f"{HOME}?refused=issuer")
    return await _link_page(visit, made["url"])


async def _link_page(visit: Visit, url: str = "") -> Response:
    issuer = await _issuer(visit)
    return visit.go(HOME) if issuer is None else visit.page("account/link.html", name=issuer["name"], url=url)


async def ask_unlink(visit: Visit) -> Response:
    """GET /account/identities/{id}/remove."""
    return visit.confirm_first() or await _unlink_page(visit)


async def unlink(visit: Visit) -> Response:
    """POST /account/identities/{id}/remove. One that is gone meanwhile is as it should be."""
    try:
        await visit.api.send("DELETE", f"/v1/me/identities/{segment(visit.path['id'])}")
    except Problem as problem:
        if problem.status == 409:
            return await _unlink_page(visit, problem)
        if problem.status != 404:
            raise
    return visit.go(HOME, done="unlinked")


async def _unlink_page(visit: Visit, problem: Problem | None = None) -> Response:
    found = next((each for each in await _identities(visit) if each["id"] == visit.path["id"]), None)
    if found is None:
        return visit.go(HOME)
    template = "account/unlink.html"
    return visit.page(template, identity=found) if problem is None else visit.refused(problem, template, identity=found)


# --- browsers and teams


async def end_browser(visit: Visit) -> Response:
    """POST /account/browsers/{id}/end. One that has ended meanwhile is as it should be."""
    try:
        await visit.api.send("DELETE", f"/v1/me/sign-ins/{visit.path['id']}")
    except Problem as problem:
        if problem.status != 404:
            raise
    return visit.go(HOME, done="ended")


async def end_other_browsers(visit: Visit) -> Response:
    """POST /account/browsers/end-others."""
    await visit.api.send("DELETE", "/v1/me/sign-ins")
    return visit.go(HOME, done="ended_others")


async def show_new_team(visit: Visit) -> Response:
    """GET /account/teams/new."""
    return visit.page("account/new_team.html", name="")


async def make_team(visit: Visit) -> Response:
    """POST /account/teams/new: the team, which is looked at from then on."""
    form = await visit.form()
    name = form.get("name")
    try:
        made = (await visit.api.make("/v1/teams", {"name": name}, once=form.get("once"))).data
        await visit.api.send("POST", "/v1/session/team", {"team_id": made["id"]})
    except Problem as problem:
        return visit.refused(problem, "account/new_team.html", name=name)
    return visit.go("/", done="team_made")


PAGES: tuple[Page, ...] = (
    page(HOME, show),
    act(HOME, save),
    page("/account/password", show_password),
    act("/account/password", change_password),
    page("/account/second-factor", show_second_factor),
    act("/account/second-factor", begin_second_factor),
    page("/account/second-factor/code", show_code_field),
    act("/account/second-factor/code", confirm_second_factor),
    page("/account/second-factor/off", ask_off),
    act("/account/second-factor/off", take_off),
    page("/account/recovery-codes", ask_codes),
    act("/account/recovery-codes", new_codes),
    page("/account/identities/new", ask_link),
    act("/account/identities/new", link),
    page("/account/identities/{id}/remove", ask_unlink),
    act("/account/identities/{id}/remove", unlink),
    act("/account/browsers/end-others", end_other_browsers),
    act("/account/browsers/{id}/end", end_browser),
    page("/account/teams/new", show_new_team),
    act("/account/teams/new", make_team),
)
