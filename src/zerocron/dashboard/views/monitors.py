"""The pages of monitors: the list, one of them, and the form that makes and changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from babel.dates import format_date
from starlette.responses import Response

from zerocron.dashboard import charts
from zerocron.dashboard.asking import Problem
from zerocron.dashboard.forms import Form
from zerocron.dashboard.notices import N_
from zerocron.dashboard.reading import length_fields, seconds, tags, told, told_fields, typed
from zerocron.dashboard.rights import unable
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.snippets import snippets
from zerocron.dashboard.visit import Visit, lines_of
from zerocron.dashboard.words import words_of

API = "/v1/monitors"
UPTIME_DAYS = 90
PERIODS_DAYS = (1, 7, 30, 90)
LAST_SHOWN = 10
PREVIEWED = 5
STATES = ("down", "late", "up", "new", "paused")
SORTS = ("-created_at", "name", "updated")
PAUSES_SECONDS = (3_600, 14_400, 86_400, 604_800)
CHANNELS_SHOWN_MAX = 200
LISTS = ("notify.on", "notify.channels")
TEXTS = ("name", "schedule", "timezone", "language", "dst", "day_match", "post_only", "resume_on_ping", "tags", "whom")
PING_KINDS = ("success", "start", "fail", "log")

ONE_CHANNEL = N_("Choose at least one channel, or nobody.")


# --- looking


async def show_all(visit: Visit) -> Response:
    """GET /monitors."""
    asked = {name: visit.query.get(name, "") for name in ("q", "state", "tag", "sort")}
    here = visit.query.get("cursor", "")
    query = {**asked, "sort": asked["sort"] if asked["sort"] in SORTS[1:] else "", "cursor": here}
    items, cursor = await lines_of(visit.api, API, query)
    uptimes = await _uptimes(visit, [each["id"] for each in items])
    content = {
        "rows": [(each, uptimes.get(each["id"])) for each in items],
        "cursor": cursor,
        "asked": asked,
        "here": here,
        "is_narrowed": any(asked[name] for name in ("q", "state", "tag")) or bool(here),
    }
    if visit.is_fragment:
        return visit.page("monitors/rows.html", **content)
    return visit.page("monitors/monitors.html", states=STATES, sorts=SORTS, **content)


async def show(visit: Visit) -> Response:
    """GET /monitors/{id}; with `part` the part of it that refreshes itself."""
    monitor = await visit.api.get(f"{API}/{visit.path['id']}")
    part = visit.query.get("part") if visit.is_fragment else None
    if part == "standing":
        return visit.page("monitors/standing.html", monitor=monitor)
    if part == "history":
        return visit.page("monitors/history.html", monitor=monitor, **await _history(visit))
    url = monitor["ping_url"]
    return visit.page(
        "monitors/monitor.html",
        monitor=monitor,
        channels={each["id"]: each["name"] for each in await _channels(visit)},
        snippets=snippets(url, cron=monitor["schedule_cron"], post_only=monitor["post_only"]) if url else [],
        pauses=PAUSES_SECONDS,
        **await _history(visit),
    )


async def _history(visit: Visit) -> dict[str, Any]:
    path = f"{API}/{visit.path['id']}"
    pings, flips, days = await asyncio.gather(
        visit.api.get(f"{path}/pings", {"limit": LAST_SHOWN}),
        visit.api.get(f"{path}/flips", {"limit": LAST_SHOWN}),
        _uptime(visit, visit.path["id"], UPTIME_DAYS),
    )
    return {
        "pings": pings,
        "flips": flips,
        "periods": [_period(days, period) for period in PERIODS_DAYS],
        "days": [_day(visit, day) for day in days],
        "uptime": _period(days, UPTIME_DAYS),
    }


async def show_pings(visit: Visit) -> Response:
    """GET /monitors/{id}/pings."""
    kind = visit.query.get("kind", "")
    path = f"{API}/{visit.path['id']}"
    monitor = await visit.api.get(path)
    items, cursor = await lines_of(
        visit.api, f"{path}/pings", {"kind": kind if kind in PING_KINDS else "", "cursor": visit.query.get("cursor")}
    )
    return visit.page("monitors/pings.html", monitor=monitor, pings=items, cursor=cursor, kind=kind, kinds=PING_KINDS)


async def show_flips(visit: Visit) -> Response:
    """GET /monitors/{id}/flips."""
    path = f"{API}/{visit.path['id']}"
    monitor = await visit.api.get(path)
    items, cursor = await lines_of(visit.api, f"{path}/flips", {"cursor": visit.query.get("cursor")})
    return visit.page("monitors/flips.html", monitor=monitor, flips=items, cursor=cursor)


# --- making and changing


@dataclass(frozen=True, slots=True)
class _Made:
    """The form of a monitor: where it belongs and what is in its fields."""

    visit: Visit
    fields: Mapping[str, Any]
    monitor: Mapping[str, Any] | None = None
    """The one that is changed; None makes a new one."""

    async def content(self, preview: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {
            "fields": dict.fromkeys(TEXTS, "") | dict(self.fields),
            "monitor": self.monitor,
            "channels": await _channels(self.visit),
            "preview": preview,
        }


async def show_new(visit: Visit) -> Response:
    """GET /monitors/new."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    return visit.page("monitors/form.html", **await _Made(visit, _defaults(visit)).content())


async def create(visit: Visit) -> Response:
    """POST /monitors/new."""
    form = await visit.form()
    made = _Made(visit, typed(form, lists=LISTS))
    if form.has("preview"):
        return await _previewed(visit, form, made)
    try:
        answer = await visit.api.make(API, _document(visit, form), once=form.get("once"))
    except Problem as problem:
        return visit.refused(problem, "monitors/form.html", **await made.content())
    return visit.made(f"/monitors/{answer.data['id']}", answer)


async def show_edit(visit: Visit) -> Response:
    """GET /monitors/{id}/edit."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    monitor = await visit.api.get(f"{API}/{visit.path['id']}")
    return visit.page("monitors/form.html", **await _Made(visit, _fields_of(monitor), monitor).content())


async def edit(visit: Visit) -> Response:
    """POST /monitors/{id}/edit."""
    form = await visit.form()
    path = f"{API}/{visit.path['id']}"
    made = _Made(visit, typed(form, lists=LISTS), await visit.api.get(path))
    if form.has("preview"):
        return await _previewed(visit, form, made)
    try:
        await visit.api.send("PATCH", path, _document(visit, form))
    except Problem as problem:
        return visit.refused(problem, "monitors/form.html", **await made.content())
    return visit.go(f"/monitors/{visit.path['id']}", done="saved")


async def preview(visit: Visit) -> Response:
    """POST /monitors/preview: what a schedule means, as a part of the form."""
    form = await visit.form()
    if not form.get("schedule"):
        return visit.page("monitors/preview.html", preview=None)
    try:
        found = await visit.api.send("POST", "/v1/schedules/preview", _previewed_document(visit, form))
    except Problem as problem:
        if problem.status != 422:
            raise
        return visit.page("monitors/preview.html", preview=None, problem=problem)
    return visit.page("monitors/preview.html", preview=found)


async def _previewed(visit: Visit, form: Form, made: _Made) -> Response:
    """The form again, with what its schedule means: for those without scripts."""
    try:
        found = await visit.api.send("POST", "/v1/schedules/preview", _previewed_document(visit, form))
    except Problem as problem:
        return visit.refused(problem, "monitors/form.html", **await made.content())
    return visit.page("monitors/form.html", **await made.content(found))


# --- acting


async def pause(visit: Visit) -> Response:
    """POST /monitors/{id}/pause: for good, or for the seconds that the form names."""
    form = await visit.form()
    wanted = form.get("for")
    lasting = int(wanted) if wanted in map(str, PAUSES_SECONDS) else None
    until = None if lasting is None else (visit.site.now() + timedelta(seconds=lasting)).isoformat()
    await visit.api.send("POST", f"{API}/{visit.path['id']}/pause", {"until": until})
    return visit.go(f"/monitors/{visit.path['id']}", done="paused")


async def resume(visit: Visit) -> Response:
    """POST /monitors/{id}/resume."""
    await visit.api.send("POST", f"{API}/{visit.path['id']}/resume")
    return visit.go(f"/monitors/{visit.path['id']}", done="resumed")


async def ask_rotate(visit: Visit) -> Response:
    """GET /monitors/{id}/rotate."""
    if (calm := unable(visit, "ping-admin")) is not None:
        return calm
    return visit.page("monitors/rotate.html", **await _sure(visit))


async def rotate(visit: Visit) -> Response:
    """POST /monitors/{id}/rotate."""
    try:
        await visit.api.send("POST", f"{API}/{visit.path['id']}/rotate-token")
    except Problem as problem:
        return visit.refused(problem, "monitors/rotate.html", **await _sure(visit))
    return visit.go(f"/monitors/{visit.path['id']}", done="saved")


async def ask_delete(visit: Visit) -> Response:
    """GET /monitors/{id}/delete."""
    if (calm := unable(visit, "write")) is not None:
        return calm
    return visit.page("monitors/delete.html", **await _sure(visit))


async def delete(visit: Visit) -> Response:
    """POST /monitors/{id}/delete."""
    await visit.api.send("DELETE", f"{API}/{visit.path['id']}")
    return visit.go("/monitors", done="deleted")


async def _sure(visit: Visit) -> dict[str, Any]:
    monitor = await visit.api.get(f"{API}/{visit.path['id']}")
    return {"monitor": monitor, "back": f"/monitors/{monitor['id']}"}


# --- what the API is asked and told


async def _channels(visit: Visit) -> Sequence[Mapping[str, Any]]:
    items, _cursor = await lines_of(visit.api, "/v1/channels", {"limit": CHANNELS_SHOWN_MAX})
    return items


async def _uptime(visit: Visit, monitor_id: str, days: int) -> Sequence[Mapping[str, Any]]:
    """Its days, oldest first; none when it was deleted meanwhile."""
    try:
        found = await visit.api.get(f"{API}/{monitor_id}/uptime", {"days": days})
    except Problem as problem:
        if problem.status != 404:
            raise
        return ()
    items: Sequence[Mapping[str, Any]] = found["items"]
    return items


async def _uptimes(visit: Visit, monitor_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The last 30 days of each that there was something to judge of, with the days as a strip."""
    if not monitor_ids:
        return {}
    found = await visit.api.get(f"{API}/uptimes", {"ids": ",".join(monitor_ids), "days": charts.DAYS})
    return {
        each["monitor_id"]: {**each, "strip": charts.days([_kind(day) for day in each["items"]])}
        for each in found["items"]
        if each["up_ratio"] is not None
    }


def _period(days: Sequence[Mapping[str, Any]], length: int) -> dict[str, Any]:
    """The last `length` days as one: how much of what was judged it was up, and how often it went down."""
    last = days[-length:]
    up, down = (sum(day[name] for day in last) for name in ("up_seconds", "down_seconds"))
    judged = up + down
    return {
        "days": length,
        "up_ratio": up / judged if judged else None,
        "down_seconds": down,
        "downs": sum(day["downs"] for day in last),
    }


def _day(visit: Visit, day: Mapping[str, Any]) -> dict[str, Any]:
    """A day with its name, and how it looks."""
    name = format_date(date.fromisoformat(day["date"]), "medium", locale=visit.language)
    return {**day, "name": name, "kind": _kind(day)}


def _kind(day: Mapping[str, Any]) -> str:
    """How a day looks: up, down for a part of it, or nothing to judge."""
    return "none" if day["uptime"] is None else "down" if day["down_seconds"] else "up"


def _defaults(visit: Visit) -> dict[str, Any]:
    return {
        "timezone": visit.timezone,
        **length_fields("grace_period_seconds", 300),
        **length_fields("max_duration_seconds", None),
        **length_fields("min_duration_seconds", None),
        "resume_on_ping": "true",
        **told_fields({"channels": None, "on": ["down", "up"], "remind_every": None}),
    }


def _fields_of(monitor: Mapping[str, Any]) -> dict[str, Any]:
    same = {name: monitor[name] for name in ("name", "schedule", "timezone", "language", "dst", "day_match")}
    lengths = ("grace_period_seconds", "max_duration_seconds", "min_duration_seconds")
    flags = {name: "true" for name in ("post_only", "resume_on_ping") if monitor[name]}
    fields: dict[str, Any] = {**same, **flags, "tags": ", ".join(monitor["tags"]), **told_fields(monitor["notify"])}
    for name in lengths:
        fields |= length_fields(name, monitor[name])
    return fields


def _document(visit: Visit, form: Form) -> dict[str, Any]:
    """What the API is sent for the form. Raises Problem for what only the form can have wrong."""
    document: dict[str, Any] = {
        "name": form.get("name"),
        "schedule": form.get("schedule"),
        "timezone": form.get("timezone"),
        "max_duration_seconds": seconds(form, "max_duration_seconds"),
        "min_duration_seconds": seconds(form, "min_duration_seconds"),
        "post_only": form.has("post_only"),
        "resume_on_ping": form.has("resume_on_ping"),
        "notify": told(form, nobody_chosen=words_of(visit.language).gettext(ONE_CHANNEL)),
        "tags": tags(form),
    }
    grace = seconds(form, "grace_period_seconds")
    chosen = {"grace_period_seconds": grace, **{name: form.get(name) for name in ("language", "dst", "day_match")}}
    return document | {name: value for name, value in chosen.items() if value not in ("", None)}


def _previewed_document(visit: Visit, form: Form) -> dict[str, Any]:
    document = {
        "schedule": form.get("schedule"),
        "timezone": form.get("timezone"),
        "language": form.get("language") or visit.language,
        "count": PREVIEWED,
        "subject": "monitor",
    }
    chosen = {name: form.get(name) for name in ("dst", "day_match")}
    return document | {name: value for name, value in chosen.items() if value}


PAGES: tuple[Page, ...] = (
    page("/monitors", show_all),
    page("/monitors/new", show_new),
    act("/monitors/new", create),
    act("/monitors/preview", preview),
    page("/monitors/{id}", show),
    page("/monitors/{id}/edit", show_edit),
    act("/monitors/{id}/edit", edit),
    page("/monitors/{id}/pings", show_pings),
    page("/monitors/{id}/flips", show_flips),
    act("/monitors/{id}/pause", pause),
    act("/monitors/{id}/resume", resume),
    page("/monitors/{id}/rotate", ask_rotate),
    act("/monitors/{id}/rotate", rotate),
    page("/monitors/{id}/delete", ask_delete),
    act("/monitors/{id}/delete", delete),
)
