"""The pages of a team: who is in it, its API keys, what was done in it, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.reading import refusal
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.visit import Visit, lines_of
from zerocron.dashboard.words import words_of

ROLES = ("owner", "admin", "editor", "viewer")
SCOPES = ("read", "trigger", "write", "ping-admin", "admin")
DEFAULT_SCOPES = ("read", "trigger", "write", "ping-admin")
KEY_DAYS = ("7", "30", "90", "365", "")
"""How long a key may be good; the last one is for ever."""
LISTED_MAX = 100
AUDIT_FILTERS = ("action", "actor_id", "subject_id")
PLACES = {"job": "/jobs/", "monitor": "/monitors/", "person": "/members/"}
"""Where what is told of in the audit log has a page of its own."""

PAGES_LOOKED_THROUGH = 20
HIDDEN = "(not recorded)"
"""What the audit log has instead of a value that may be, or hold, a secret."""


def N_(text: str) -> str:
    """Marks a text for the catalogs; it is translated when it is shown."""
    return text


ACTIONS: Mapping[str, str] = {
    "api_key.create": N_("API key made"),
    "api_key.revoke": N_("API key revoked"),
    "channel.create": N_("Channel made"),
    "channel.edit": N_("Channel changed"),
    "channel.delete": N_("Channel deleted"),
    "channel.disable": N_("Channel switched off"),
    "channel.pause": N_("Channel paused"),
    "channel.resume": N_("Channel resumed"),
    "channel.test": N_("Channel tested"),
    "identity.bind": N_("Account linked to an issuer"),
    "identity.remove": N_("Link to an issuer taken off"),
    "invitation.create": N_("Invitation made"),
    "invitation.accept": N_("Invitation accepted"),
    "invitation.withdraw": N_("Invitation withdrawn"),
    "job.create": N_("Job made"),
    "job.edit": N_("Job changed"),
    "job.disable": N_("Job disabled after failures"),
    "job.pause": N_("Job paused"),
    "job.resume": N_("Job resumed"),
    "job.trigger": N_("Job started by hand"),
    "job.delete": N_("Job deleted"),
    "member.edit": N_("Role changed"),
    "member.leave": N_("Team left"),
    "member.remove": N_("Member removed"),
    "monitor.create": N_("Monitor made"),
    "monitor.edit": N_("Monitor changed"),
    "monitor.pause": N_("Monitor paused"),
    "monitor.resume": N_("Monitor resumed"),
    "monitor.delete": N_("Monitor deleted"),
    "password.change": N_("Password changed"),
    "password.reset": N_("Password changed by a link"),
    "password.reset-link": N_("Link for a new password sent"),
    "person.edit": N_("Account changed"),
    "person.join": N_("Came in through an issuer or a proxy"),
    "recovery-codes.renew": N_("Recovery codes renewed"),
    "request.try": N_("Request tried out"),
    "secret.put": N_("Secret set"),
    "secret.delete": N_("Secret deleted"),
    "secret.rotate": N_("Secrets sealed anew"),
    "setup.use": N_("First owner set up"),
    "sign-in.open": N_("Signed in"),
    "sign-in.end": N_("Signed out"),
    "sign-in.elevate": N_("Proved again who they are"),
    "sign-in.refuse": N_("Sign-in refused"),
    "signing_key.rotate": N_("Signing key renewed"),
    "team.create": N_("Team made"),
    "team.edit": N_("Team changed"),
    "team.limits": N_("Limits changed"),
    "team.delete": N_("Team deleted"),
    "totp.confirm": N_("Second factor turned on"),
    "totp.remove": N_("Second factor turned off"),
}
"""What actions are called; one that is not here is shown as the API names it."""


# --- members


async def show_members(visit: Visit) -> Response:
    """GET /members."""
    query = {"limit": LISTED_MAX, "cursor": visit.query.get("cursor")}
    members, more = await lines_of(visit.api, "/v1/members", query)
    open_ = await _all(visit, "/v1/invitations") if _may(visit, "admin") else []
    return visit.page("team/members.html", members=members, next_cursor=more, invitations=open_)


async def show_invite(visit: Visit) -> Response:
    """GET /members/invite."""
    _need(visit, "admin")
    return visit.confirm_first() or visit.page("team/invite.html", roles_given=_roles(visit), email="", role="editor")


async def invite(visit: Visit) -> Response:
    """POST /members/invite. The link is shown where no mail could take it."""
    form = await visit.form()
    given = {"email": form.get("email"), "role": form.get("role")}
    try:
        made = (await visit.api.make("/v1/invitations", given, once=form.get("once"))).data
    except Problem as problem:
        return visit.refused(problem, "team/invite.html", roles_given=_roles(visit), **given)
    if made["url"] is None:
        return visit.go("/members", done="invited")
    return visit.page("team/invited.html", made=made)


async def withdraw(visit: Visit) -> Response:
    """POST /members/invitations/{id}/withdraw. One that is gone meanwhile is as it should be."""
    try:
        await visit.api.send("DELETE", f"/v1/invitations/{visit.path['id']}")
    except Problem as problem:
        if problem.status != 404:
            raise
    return visit.go("/members", done="withdrawn")


async def ask_withdraw(visit: Visit) -> Response:
    """GET /members/invitations/{id}/withdraw."""
    found = _the(visit, await _all(visit, "/v1/invitations"), "id")
    return visit.confirm_first() or visit.page("team/withdraw.html", invitation=found)


async def show_member(visit: Visit) -> Response:
    """GET /members/{id}: what somebody may do, or that they may do nothing here any more."""
    _need(visit, "admin")
    member = await _member(visit)
    return visit.confirm_first() or visit.page("team/member.html", member=member, roles_given=_roles(visit))


async def change_member(visit: Visit) -> Response:
    """POST /members/{id}."""
    role = (await visit.form()).get("role")
    try:
        await visit.api.send("PATCH", f"/v1/members/{visit.path['id']}", {"role": role})
    except Problem as problem:
        member = {**await _member(visit), "role": role}
        return visit.refused(problem, "team/member.html", member=member, roles_given=_roles(visit))
    return visit.go("/members", done="saved")


async def remove_member(visit: Visit) -> Response:
    """POST /members/{id}/remove."""
    try:
        await visit.api.send("DELETE", f"/v1/members/{visit.path['id']}")
    except Problem as problem:
        member = await _member(visit)
        return visit.refused(problem, "team/member.html", member=member, roles_given=_roles(visit))
    return visit.go("/members", done="left")


async def ask_leave(visit: Visit) -> Response:
    """GET /members/leave."""
    return visit.page("team/leave.html")


async def leave(visit: Visit) -> Response:
    """POST /members/leave. Who leaves is signed out where they look at the team, so also here."""
    try:
        await visit.api.send("POST", "/v1/team/leave")
    except Problem as problem:
        return visit.refused(problem, "team/leave.html")
    return visit.go("/sign-in", done="left_team")


async def _member(visit: Visit) -> Mapping[str, Any]:
    return _the(visit, await _all(visit, "/v1/members"), "person_id")


async def _all(visit: Visit, path: str) -> list[Any]:
    """A whole list of the API, which a bound of the API's keeps short."""
    items: list[Any] = []
    cursor: str | None = None
    for _turn in range(PAGES_LOOKED_THROUGH):
        found, cursor = await lines_of(visit.api, path, {"limit": LISTED_MAX, "cursor": cursor})
        items += found
        if cursor is None:
            break
    return items


def _roles(visit: Visit) -> list[str]:
    """The roles that somebody may give: an owner is made by owners alone."""
    return [role for role in ROLES if role != "owner" or _may(visit, "owner")]


def _the(visit: Visit, items: list[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The one that the path names. Raises Problem."""
    found = next((each for each in items if each[name] == visit.path["id"]), None)
    if found is None:
        raise Problem(Answer(404, {"title": "Not Found"}))
    return found


# --- API keys


async def show_keys(visit: Visit) -> Response:
    """GET /keys."""
    items, more = await lines_of(visit.api, "/v1/api-keys", {"limit": 50, "cursor": visit.query.get("cursor")})
    return visit.page("team/keys.html", keys=items, next_cursor=more)


async def show_new_key(visit: Visit) -> Response:
    """GET /keys/new."""
    _need(visit, "admin")
    given = {"name": "", "scopes": DEFAULT_SCOPES, "days": "90"}
    return visit.confirm_first() or visit.page(
        "team/new_key.html", scopes_given=_scopes(visit), days_given=KEY_DAYS, **given
    )


async def make_key(visit: Visit) -> Response:
    """POST /keys/new: the one page that shows the key."""
    form = await visit.form()
    days = form.get("days")
    body = {"name": form.get("name"), "scopes": form.all("scopes"), "expires_at": _after(visit, days)}
    try:
        typed = [form.get("name"), form.all("scopes"), days]
        made = (await visit.api.make("/v1/api-keys", body, once=form.get("once"), typed=typed)).data
    except Problem as problem:
        given = {"name": form.get("name"), "scopes": form.all("scopes"), "days": days}
        return visit.refused(problem, "team/new_key.html", scopes_given=_scopes(visit), days_given=KEY_DAYS, **given)
    base_url = f"{visit.request.url.scheme}://{visit.request.url.netloc}"
    return visit.page("team/made_key.html", made=made, base_url=base_url)


async def ask_revoke(visit: Visit) -> Response:
    """GET /keys/{id}/revoke."""
    items = await _all(visit, "/v1/api-keys")
    return visit.confirm_first() or visit.page("team/revoke.html", key=_the(visit, items, "id"))


async def revoke(visit: Visit) -> Response:
    """POST /keys/{id}/revoke. One that is gone meanwhile is as it should be."""
    try:
        await visit.api.send("DELETE", f"/v1/api-keys/{visit.path['id']}")
    except Problem as problem:
        if problem.status != 404:
            raise
    return visit.go("/keys", done="revoked")


def _scopes(visit: Visit) -> list[str]:
    """A key may do nothing that its maker may not."""
    return [scope for scope in SCOPES if _may(visit, scope)]


def _after(visit: Visit, days: str) -> str | None:
    """The instant so many days from now; None for the choice that is none of days."""
    if days not in KEY_DAYS or not days:
        return None
    return (visit.site.now() + timedelta(days=int(days))).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- the audit log


async def show_audit(visit: Visit) -> Response:
    """GET /audit."""
    filters = {name: visit.query.get(name, "") for name in AUDIT_FILTERS if visit.query.get(name)}
    query = {**filters, "limit": 50, "cursor": visit.query.get("cursor")}
    items, more = await lines_of(visit.api, "/v1/audit", query)
    entries = [{**each, **_told(each), "label": _label(visit, each["action"])} for each in items]
    actions = sorted((_label(visit, name), name) for name in ACTIONS)
    asked = visit.query.get("action", "")
    if asked and asked not in ACTIONS:
        actions.append((asked, asked))
    return visit.page(
        "team/audit.html",
        entries=entries,
        next_cursor=more,
        filters=filters,
        others={name: value for name, value in filters.items() if name != "subject_id"},
        actions=actions,
        actors=await _actors(visit, items),
        subject=_subject(visit, items),
        hidden=HIDDEN,
    )


async def _actors(visit: Visit, items: list[Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Who may be chosen: groups of (id, name), the first one without a title. Who is in the team no more, or a key that
    was revoked, is among them while nothing but what they did is shown."""
    members = [(each["person_id"], each["name"] or each["email"]) for each in await _all(visit, "/v1/members")]
    keys = [(each["id"], each["name"]) for each in await _all(visit, "/v1/api-keys")]
    _ = words_of(visit.language).gettext
    asked = visit.query.get("actor_id", "")
    alone = [("server", "0cron")]
    if asked and asked not in dict(alone + members + keys):
        alone.append((asked, next((each["actor"]["name"] for each in items if each["actor"]["id"] == asked), asked)))
    return [("", alone), (_("People"), members), (_("API keys"), keys)]


def _told(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of an entry beside what it is: its fields one by one, and where its object is."""
    subject = entry["subject"]
    place = PLACES.get(subject["kind"], "")
    is_there = place and subject["id"] and not entry["action"].endswith((".delete", ".remove"))
    return {
        "changes": changes_of(entry["before"], entry["after"]),
        "place": place + subject["id"] if is_there else "",
    }


def _label(visit: Visit, action: str) -> str:
    known = ACTIONS.get(action)
    return "" if known is None else words_of(visit.language).gettext(known)


def _subject(visit: Visit, items: list[Any]) -> str:
    """What the object is called of which alone things are shown."""
    wanted = visit.query.get("subject_id", "")
    return next((str(each["subject"]["name"]) for each in items if each["subject"]["id"] == wanted), wanted)


def changes_of(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[tuple[str, Any, Any]]:
    """(field, as it was, as it became) for each field, as texts; None where there was or is nothing."""
    was, now = before or {}, after or {}
    return [(name, _text(was, name), _text(now, name)) for name in {**was, **now}]


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value in (None, "", [], {}):
        return None
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- settings


async def show_settings(visit: Visit) -> Response:
    """GET /settings."""
    team = await visit.api.get("/v1/team")
    return visit.page("team/settings.html", name=team["name"], **await _settings(visit, team))


async def save_settings(visit: Visit) -> Response:
    """POST /settings."""
    name = (await visit.form()).get("name")
    try:
        await visit.api.send("PATCH", "/v1/team", {"name": name})
    except Problem as problem:
        return visit.refused(
            problem, "team/settings.html", name=name, **await _settings(visit, await visit.api.get("/v1/team"))
        )
    return visit.go("/settings", done="saved")


async def _settings(visit: Visit, team: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows. The server's first team stays, so nobody is offered to delete it."""
    can_delete = _may(visit, "owner") and team["id"] != DEFAULT_TEAM_ID
    return {"team": team, "signing_key": await _signing_key(visit), "can_delete": can_delete}


async def _signing_key(visit: Visit) -> Any:
    try:
        return await visit.api.get("/v1/signing-key")
    except Problem as problem:
        if problem.status == 404:
            return None
        raise


async def ask_rotate(visit: Visit) -> Response:
    """GET /settings/signing-key."""
    _need(visit, "admin")
    asked = visit.confirm_first()
    return asked or visit.page("team/rotate.html", signing_key=await _signing_key(visit))


async def rotate(visit: Visit) -> Response:
    """POST /settings/signing-key: the one page that shows the new key."""
    once = (await visit.form()).get("once")
    try:
        made = (await visit.api.make("/v1/signing-key/rotate", once=once)).data
    except Problem as problem:
        return visit.refused(problem, "team/rotate.html", signing_key=await _signing_key(visit))
    return visit.page("team/rotated.html", made=made)


async def ask_delete(visit: Visit) -> Response:
    """GET /settings/delete."""
    _need(visit, "owner")
    return visit.confirm_first() or visit.page("team/delete.html", team=await visit.api.get("/v1/team"))


async def delete(visit: Visit) -> Response:
    """POST /settings/delete. Its name is typed, so that nobody deletes one team for another. Whoever looked at it is
    signed out."""
    name = (await visit.form()).get("name")
    team = await visit.api.get("/v1/team")
    _ = words_of(visit.language).gettext
    try:
        if name != team["name"]:
            raise refusal(_("This is not its name."), "name", _("This is not its name."))
        await visit.api.send("DELETE", "/v1/team", query={"name": name})
    except Problem as problem:
        return visit.refused(problem, "team/delete.html", team=team)
    return visit.go("/sign-in", done="team_deleted")


def _need(visit: Visit, permission: str) -> None:
    """Nobody fills a form that the API would refuse them. Raises Problem."""
    if not _may(visit, permission):
        detail = words_of(visit.language).gettext("Your role in this team does not allow it.")
        raise Problem(Answer(403, {"title": "Forbidden", "detail": detail}))


def _may(visit: Visit, permission: str) -> bool:
    return visit.signed is not None and visit.signed.may(permission)


PAGES: tuple[Page, ...] = (
    page("/members", show_members),
    page("/members/invite", show_invite),
    act("/members/invite", invite),
    page("/members/invitations/{id}/withdraw", ask_withdraw),
    act("/members/invitations/{id}/withdraw", withdraw),
    page("/members/leave", ask_leave),
    act("/members/leave", leave),
    page("/members/{id}", show_member),
    act("/members/{id}", change_member),
    act("/members/{id}/remove", remove_member),
    page("/keys", show_keys),
    page("/keys/new", show_new_key),
    act("/keys/new", make_key),
    page("/keys/{id}/revoke", ask_revoke),
    act("/keys/{id}/revoke", revoke),
    page("/audit", show_audit),
    page("/settings", show_settings),
    act("/settings", save_settings),
    page("/settings/signing-key", ask_rotate),
    act("/settings/signing-key", rotate),
    page("/settings/delete", ask_delete),
    act("/settings/delete", delete),
)
