"""The pages of channels: the list, one of them with a test, and the forms that make and change them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from zerocron.dashboard.asking import Problem
from zerocron.dashboard.forms import Form
from zerocron.dashboard.reading import typed
from zerocron.dashboard.rights import unable
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.visit import Visit, lines_of

API = "/v1/channels"
ALERTS_SHOWN = 10
LONG_FIELDS = ("headers", "template")
"""Those of more than one line."""


async def show_all(visit: Visit) -> Response:
    """GET /channels."""
    items, cursor = await lines_of(visit.api, API, {"cursor": visit.query.get("cursor")})
    content = {"channels": items, "cursor": cursor, "is_first": not visit.query.get("cursor")}
    if visit.is_fragment:
        return visit.page("channels/rows.html", **content)
    return visit.page("channels/channels.html", kinds=[] if items else await _kinds(visit), **content)


async def show(visit: Visit) -> Response:
    """GET /channels/{id}."""
    content = await _content(visit)
    return visit.page("channels/standing.html" if visit.is_fragment else "channels/channel.html", **content)


async def test(visit: Visit) -> Response:
    """POST /channels/{id}/test: a message now, and what came of it on the page."""
    path = f"{API}/{visit.path['id']}"
    try:
        told = await visit.api.send("POST", f"{path}/test")
    except Problem as problem:
        return visit.refused(problem, "channels/channel.html", **await _content(visit))
    return visit.page("channels/channel.html", **await _content(visit, told))


async def after_test(visit: Visit) -> Response:
    """GET /channels/{id}/test: whoever comes back to the address of a result."""
    return visit.go(f"/channels/{visit.path['id']}")


async def show_new(visit: Visit) -> Response:
    """GET /channels/new: the kinds, or the form of the one that was chosen."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    kinds = await _kinds(visit)
    kind = _kind_of(kinds, visit.query.get("kind", ""))
    if kind is None:
        return visit.page("channels/kinds.html", kinds=kinds)
    return visit.page("channels/form.html", kind=kind, channel=None, fields=_blank(kind))


async def create(visit: Visit) -> Response:
    """POST /channels/new."""
    form = await visit.form()
    kind = _kind_of(await _kinds(visit), form.get("kind"))
    if kind is None:
        return visit.go("/channels/new")
    document = {"kind": kind["kind"], "name": form.get("name"), "config": _config(kind, form)}
    try:
        made = await visit.api.make(API, document, once=form.get("once"))
    except Problem as problem:
        return visit.refused(problem, "channels/form.html", kind=kind, channel=None, fields=_kept(kind, form))
    return visit.made(f"/channels/{made.data['id']}", made)


async def show_edit(visit: Visit) -> Response:
    """GET /channels/{id}/edit: its name, and all of its settings anew if they are to change."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    channel, kind = await _with_kind(visit)
    return visit.page("channels/form.html", kind=kind, channel=channel, fields=_blank(kind) | {"name": channel["name"]})


async def edit(visit: Visit) -> Response:
    """POST /channels/{id}/edit."""
    form = await visit.form()
    channel, kind = await _with_kind(visit)
    config = _config(kind, form)
    change: dict[str, Any] = {"name": form.get("name")}
    if config:
        change["config"] = config
    try:
        await visit.api.send("PATCH", f"{API}/{channel['id']}", change)
    except Problem as problem:
        return visit.refused(problem, "channels/form.html", kind=kind, channel=channel, fields=_kept(kind, form))
    return visit.go(f"/channels/{channel['id']}", done="saved")


async def pause(visit: Visit) -> Response:
    """POST /channels/{id}/pause."""
    await visit.api.send("POST", f"{API}/{visit.path['id']}/pause")
    return visit.go(f"/channels/{visit.path['id']}", done="paused")


async def resume(visit: Visit) -> Response:
    """POST /channels/{id}/resume."""
    await visit.api.send("POST", f"{API}/{visit.path['id']}/resume")
    return visit.go(f"/channels/{visit.path['id']}", done="resumed")


async def ask_delete(visit: Visit) -> Response:
    """GET /channels/{id}/delete."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    return visit.page("channels/delete.html", **await _sure(visit))


async def delete(visit: Visit) -> Response:
    """POST /channels/{id}/delete. Refused (409) while a job or monitor names it; the page says the way out."""
    try:
        await visit.api.send("DELETE", f"{API}/{visit.path['id']}")
    except Problem as problem:
        return visit.refused(problem, "channels/delete.html", **await _sure(visit))
    return visit.go("/channels", done="deleted")


async def _sure(visit: Visit) -> dict[str, Any]:
    channel = await visit.api.get(f"{API}/{visit.path['id']}")
    return {"channel": channel, "back": f"/channels/{channel['id']}"}


async def _content(visit: Visit, told: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A channel's page; `told` is what came of a test."""
    channel, (alerts, more) = await asyncio.gather(
        visit.api.get(f"{API}/{visit.path['id']}"),
        lines_of(visit.api, "/v1/alerts", {"channel": visit.path["id"], "limit": ALERTS_SHOWN}),
    )
    return {"channel": channel, "alerts": alerts, "has_more": more is not None, "told": told}


async def _kinds(visit: Visit) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = (await visit.api.get("/v1/channel-kinds"))["items"]
    return found


def _kind_of(kinds: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((kind for kind in kinds if kind["kind"] == name), None)


async def _with_kind(visit: Visit) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """A channel and its kind; one that this server does not have any more has no fields."""
    channel, kinds = await asyncio.gather(visit.api.get(f"{API}/{visit.path['id']}"), _kinds(visit))
    gone = {"kind": channel["kind"], "label": channel["kind"], "fields": []}
    return channel, _kind_of(kinds, channel["kind"]) or gone


def _config(kind: Mapping[str, Any], form: Form) -> dict[str, str]:
    """The settings that were typed; an empty field is one that was left out."""
    given = {each["name"]: form.raw(_name(each)) for each in kind["fields"]}
    return {name: value if name in LONG_FIELDS else value.strip() for name, value in given.items() if value.strip()}


def _name(field: Mapping[str, Any]) -> str:
    """The name of a setting's field in the form: as the API's errors name it."""
    return f"config.{field['name']}"


def _blank(kind: Mapping[str, Any]) -> dict[str, str]:
    return dict.fromkeys(["name", *map(_name, kind["fields"])], "")


def _kept(kind: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """What was typed, for showing it again; what is secret has to be typed again."""
    secret = {_name(each): "" for each in kind["fields"] if each["secret"]}
    return _blank(kind) | typed(form) | secret


PAGES: tuple[Page, ...] = (
    page("/channels", show_all),
    page("/channels/new", show_new),
    act("/channels/new", create),
    page("/channels/{id}", show),
    page("/channels/{id}/edit", show_edit),
    act("/channels/{id}/edit", edit),
    page("/channels/{id}/test", after_test),
    act("/channels/{id}/test", test),
    act("/channels/{id}/pause", pause),
    act("/channels/{id}/resume", resume),
    page("/channels/{id}/delete", ask_delete),
    act("/channels/{id}/delete", delete),
)
