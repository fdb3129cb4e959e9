"""/v1/monitors: the monitors of a team. Pings themselves come by `zerocron.api.pings`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, cast

import structlog
from fastapi import APIRouter, Path, Query, Request, Response

from zerocron.actions.monitors import UPTIMES_MAX, MonitorSpec, Seen
from zerocron.api.access import needs
from zerocron.api.fields import (
    SORT_TEXT,
    Cursor,
    Limit,
    instant,
    key_kind,
    maybe_instant,
    page_of,
    read_cursor,
    read_ids,
    read_instant,
    write_cursor,
)
from zerocron.api.job_models import LanguageCode
from zerocron.api.monitor_models import (
    DayOut,
    FlipOut,
    FlipPage,
    MonitorChange,
    MonitorIn,
    MonitorOut,
    MonitorPage,
    PauseIn,
    PingOut,
    PingPage,
    UptimeOfMonitor,
    UptimeOut,
    UptimesOut,
)
from zerocron.api.notify_models import MonitorNotifyOut, changed_notify, notify_out
from zerocron.api.services import KEY_REUSED, OnceKey, Services, Use, Who, note_replay
from zerocron.core.access import Bearer, Permission
from zerocron.core.alerting import MONITOR_DEFAULT
from zerocron.core.monitor import FLIP_REASON_TEXTS, PAUSED, Day, FlipReason, Health, Monitor, PingKind
from zerocron.core.monitor_schedule import describe_expected
from zerocron.core.recent import Recent
from zerocron.storage.ledger.monitors import FlipRow, PingRow

log = structlog.get_logger(__name__)
_told = Recent()
router = APIRouter(prefix="/v1/monitors", tags=["monitors"])

MonitorId = Annotated[str, Path(description="The monitor's `id`.")]
StatusIn = Literal["active", "paused"]
HealthIn = Literal["new", "up", "down"]
StateIn = Literal["new", "up", "late", "down", "paused"]
MonitorSortIn = Literal["created_at", "-created_at", "name", "-name", "updated"]
_CHANGED_MEANWHILE = "Somebody else changed the monitor at the same moment."


@router.post("", status_code=201, response_model=MonitorOut, responses={409: {"description": KEY_REUSED}})
@needs(Permission.WRITE)
async def create_monitor(
    given: MonitorIn, who: Who, services: Use, request: Request, response: Response, key: OnceKey = None
) -> MonitorOut:
    """Create a monitor. It waits for its first ping, however long that takes, and then for each expected one."""
    seen, is_new = await services.monitors.create(who.team_id, _spec(given), key, by=who.actor)
    response.headers["Location"] = f"/v1/monitors/{seen.monitor.id}"
    note_replay(response, is_new=is_new)
    return _out(seen, who, request, services)


@router.get("", response_model=MonitorPage)
@needs(Permission.READ)
async def list_monitors(
    who: Who,
    services: Use,
    request: Request,
    status: Annotated[StatusIn | None, Query(description="Only monitors of this status.")] = None,
    health: Annotated[
        HealthIn | None, Query(description="Only active monitors of this health; `up` has the late ones, too.")
    ] = None,
    state: Annotated[
        StateIn | None,
        Query(
            description="Only monitors that show this. It is judged as it is asked for, so that a page may have fewer "
            "than `limit` although there are more: go on while there is a `next_cursor`."
        ),
    ] = None,
    tag: Annotated[str | None, Query(max_length=50, description="Only monitors with this tag.")] = None,
    q: Annotated[str | None, Query(max_length=200, description="Only monitors with this in their name.")] = None,
    sort: Annotated[MonitorSortIn, Query(description=f"The order. {SORT_TEXT}")] = "-created_at",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> MonitorPage:
    """Monitors, newest first unless `sort` says otherwise. A cursor goes on in the order it was made for."""
    shown, following = await services.monitors.page(
        who.team_id,
        status=status,
        health=health,
        state=state,
        tag=tag,
        text=q,
        sort=sort,
        before=read_cursor(cursor, key_kind(sort), str),
        limit=limit,
    )
    more = None if following is None else write_cursor(*following)
    return MonitorPage(items=[_out(seen, who, request, services) for seen in shown], next_cursor=more)


@router.get("/uptimes", response_model=UptimesOut)
@needs(Permission.READ)
async def show_uptimes(
    who: Who,
    services: Use,
    ids: Annotated[
        str,
        Query(
            max_length=UPTIMES_MAX * 37,
            description=f"Ids of monitors, at most {UPTIMES_MAX}, with commas between them. One that is not known is "
            "left out.",
            examples=["01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"],
        ),
    ],
    days: Annotated[int, Query(ge=1, le=90, description="How many days, today included.")] = 30,
) -> UptimesOut:
    """How long some monitors were up and down, together and day by day. Of one that changed more often than 500 times,
    the time before the last 500 changes counts as neither.
    """
    found = await services.monitors.uptimes(who.team_id, read_ids(ids, "ids", UPTIMES_MAX), days=days)
    return UptimesOut(
        items=[UptimeOfMonitor(monitor_id=one, **_uptime(zone, days)) for one, (zone, days) in found.items()]
    )


@router.get("/{monitor_id}", response_model=MonitorOut)
@needs(Permission.READ)
async def show_monitor(monitor_id: MonitorId, who: Who, services: Use, request: Request) -> MonitorOut:
    """One monitor: what was written, and where it stands."""
    return _out(await services.monitors.get(who.team_id, monitor_id), who, request, services)


@router.patch("/{monitor_id}", response_model=MonitorOut, responses={409: {"description": _CHANGED_MEANWHILE}})
@needs(Permission.WRITE)
async def edit_monitor(
    monitor_id: MonitorId, change: MonitorChange, who: Who, services: Use, request: Request
) -> MonitorOut:
    """Change a monitor. Fields left out stay as they are; its health is judged anew, by the same pings."""
    seen = await services.monitors.edit(who.team_id, monitor_id, lambda spec: _changed(spec, change), by=who.actor)
    return _out(seen, who, request, services)


@router.delete("/{monitor_id}", status_code=204)
@needs(Permission.WRITE)
async def delete_monitor(monitor_id: MonitorId, who: Who, services: Use) -> None:
    """Delete a monitor with its pings and flips. Its token opens nothing any more."""
    await services.monitors.delete(who.team_id, monitor_id, by=who.actor)


@router.post("/{monitor_id}/pause", response_model=MonitorOut, responses={409: {"description": _CHANGED_MEANWHILE}})
@needs(Permission.WRITE)
async def pause_monitor(
    monitor_id: MonitorId, who: Who, services: Use, request: Request, given: PauseIn | None = None
) -> MonitorOut:
    """Judge a monitor no more, for good or until an instant. Pings are still taken and kept.

    Pausing twice is no error.
    """
    until = None if given is None or given.until is None else read_instant(given.until, "until")
    seen = await services.monitors.pause(who.team_id, monitor_id, until, by=who.actor)
    return _out(seen, who, request, services)


@router.post("/{monitor_id}/resume", response_model=MonitorOut, responses={409: {"description": _CHANGED_MEANWHILE}})
@needs(Permission.WRITE)
async def resume_monitor(monitor_id: MonitorId, who: Who, services: Use, request: Request) -> MonitorOut:
    """Judge a monitor again, from now on. What did not come while it was paused does not count.

    Resuming twice is no error.
    """
    return _out(await services.monitors.resume(who.team_id, monitor_id, by=who.actor), who, request, services)


@router.post(
    "/{monitor_id}/rotate-token", response_model=MonitorOut, responses={409: {"description": _CHANGED_MEANWHILE}}
)
@needs(Permission.PING_ADMIN)
async def rotate_monitor_token(monitor_id: MonitorId, who: Who, services: Use, request: Request) -> MonitorOut:
    """Give a monitor a new token. The one before opens nothing any more; on other nodes within seconds."""
    return _out(await services.monitors.rotate_token(who.team_id, monitor_id, by=who.actor), who, request, services)


@router.get("/{monitor_id}/pings", response_model=PingPage)
@needs(Permission.READ)
async def list_pings(
    monitor_id: MonitorId,
    who: Who,
    services: Use,
    kind: Annotated[PingKind | None, Query(description="Only pings of this kind.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PingPage:
    """Pings, newest first: the last 1,000, and failures for longer."""
    before = read_cursor(cursor, int)
    found = await services.monitors.pings(
        who.team_id, monitor_id, kind=kind, before=before[0] if before else None, limit=limit + 1
    )
    shown, more = page_of(found, limit, lambda ping: (ping.number,))
    return PingPage(items=[_ping_out(ping) for ping in shown], next_cursor=more)


@router.get("/{monitor_id}/flips", response_model=FlipPage)
@needs(Permission.READ)
async def list_flips(
    monitor_id: MonitorId, who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None
) -> FlipPage:
    """Changes of what the monitor showed, newest first: each with the instant it was so, not when it was noticed."""
    before = read_cursor(cursor, int)
    found = await services.monitors.flips(
        who.team_id, monitor_id, before=before[0] if before else None, limit=limit + 1
    )
    shown, more = page_of(found, limit, lambda flip: (flip.number,))
    return FlipPage(items=[_flip_out(flip) for flip in shown], next_cursor=more)


@router.get("/{monitor_id}/uptime", response_model=UptimeOut)
@needs(Permission.READ)
async def show_uptime(
    monitor_id: MonitorId,
    who: Who,
    services: Use,
    days: Annotated[int, Query(ge=1, le=366, description="How many days, today included.")] = 30,
) -> UptimeOut:
    """How long the monitor was up and down, day by day."""
    zone, found = await services.monitors.uptime(who.team_id, monitor_id, days=days)
    return UptimeOut(**_uptime(zone, found))


_NO_TOKEN = "Its ping token cannot be opened here. Pings with it still count; to see one, make a new one."


def _described(monitor: Monitor) -> str:
    """In words; as it was written where those cannot be made: one monitor must not hide the others of its team."""
    try:
        return describe_expected(monitor.expectation.schedule, monitor.language)
    except Exception as error:
        if _told.is_new(monitor.id, monitor.version):
            log.error("schedule_not_described", monitor=monitor.id, exc_info=error)
        return monitor.schedule_text


def _out(seen: Seen, who: Bearer, request: Request, services: Services) -> MonitorOut:
    monitor, verdict = seen.monitor, seen.verdict
    token = (seen.token or None) if Permission.PING_ADMIN in who.permissions else None
    expectation, watch = monitor.expectation, monitor.watch
    schedule, spec = expectation.schedule, MonitorSpec.of(monitor)
    is_paused = watch.status == PAUSED
    is_late = verdict.health == Health.LATE and not is_paused
    reason = None if watch.reason is None else FlipReason(watch.reason)
    base = services.base_url or str(request.base_url).rstrip("/")
    return MonitorOut(
        id=monitor.id,
        version=monitor.version,
        name=monitor.name,
        status="paused" if is_paused else "active",
        health="late" if is_late else cast(HealthIn, str(watch.health)),
        health_since=instant(watch.since if not is_late or verdict.at is None else verdict.at),
        reason=reason,
        explanation=None if reason is None else FLIP_REASON_TEXTS[reason],
        schedule=monitor.schedule_text,
        schedule_kind=schedule.kind,
        schedule_cron=schedule.cron,
        description=_described(monitor),
        timezone=schedule.timezone,
        language=cast(LanguageCode, monitor.language),
        dst=schedule.dst,
        day_match=schedule.day_match,
        grace_period_seconds=spec.grace_period_seconds,
        max_duration_seconds=spec.max_duration_seconds,
        min_duration_seconds=spec.min_duration_seconds,
        post_only=monitor.post_only,
        resume_on_ping=expectation.resume_on_ping,
        notify=MonitorNotifyOut(**notify_out(monitor.notify, "monitor")),
        tags=list(monitor.tags),
        expected_at=None if is_paused else maybe_instant(verdict.expected_at),
        down_at=None if is_paused or watch.health == Health.DOWN else maybe_instant(verdict.down_at),
        last_ping_at=maybe_instant(watch.last_ping_at),
        last_ping_kind=None if watch.last_ping_kind is None else PingKind(watch.last_ping_kind),
        running=sum(not run.is_overdue for run in watch.runs.values()),
        paused_until=maybe_instant(watch.resume_at) if is_paused else None,
        ping_token=token,
        ping_url=f"{base}/v1/ping/{token}" if token else None,
        pings=monitor.pings,
        warnings=[*monitor.warnings, *([] if seen.token else [_NO_TOKEN])],
        created_at=instant(monitor.created_at),
        updated_at=instant(monitor.updated_at),
    )


def _ping_out(ping: PingRow) -> PingOut:
    return PingOut(
        number=ping.number,
        kind=PingKind(ping.kind),
        received_at=instant(ping.received_at),
        rid=ping.rid,
        exit_code=ping.exit_code,
        duration_ms=ping.duration_ms,
        method=ping.method,
        source=ping.source,
        user_agent=ping.user_agent,
        body=ping.body,
        body_bytes=ping.body_bytes,
    )


def _flip_out(flip: FlipRow) -> FlipOut:
    reason, details = FlipReason(flip.reason), flip.details
    return FlipOut(
        id=flip.id,
        at=instant(flip.at),
        noticed_at=instant(flip.noticed_at),
        before=cast(Any, flip.before),
        after=cast(Any, flip.after),
        reason=reason,
        explanation=FLIP_REASON_TEXTS[reason],
        expected_at=maybe_instant(details.get("expected_at")),
        last_ping_at=maybe_instant(details.get("last_ping_at")),
        exit_code=details.get("exit_code"),
        missed=details.get("missed", 0),
        lasted_ms=flip.at - details.get("previous_since", flip.at),
    )


def _uptime(timezone: str, days: list[Day]) -> dict[str, Any]:
    """The fields of an UptimeOut."""
    up_ms, down_ms = sum(day.up_ms for day in days), sum(day.down_ms for day in days)
    return {
        "timezone": timezone,
        "up_ratio": round(up_ms / (up_ms + down_ms), 6) if up_ms + down_ms else None,
        "downs": sum(day.downs for day in days),
        "down_seconds": down_ms / 1000,
        "items": [_day_out(day) for day in days],
    }


def _day_out(day: Day) -> DayOut:
    judged = day.up_ms + day.down_ms
    return DayOut(
        date=day.date,
        up_seconds=day.up_ms / 1000,
        down_seconds=day.down_ms / 1000,
        downs=day.downs,
        uptime=round(day.up_ms / judged, 6) if judged else None,
    )


def _spec(given: MonitorIn) -> MonitorSpec:
    fields = {name: getattr(given, name) for name in MonitorIn.model_fields if name not in ("notify", "tags")}
    fields["timezone"] = given.timezone if "timezone" in given.model_fields_set else None
    return MonitorSpec(
        **fields,
        notify=changed_notify(MONITOR_DEFAULT, given.notify),
        tags=tuple(dict.fromkeys(given.tags)),
    )


def _changed(spec: MonitorSpec, change: MonitorChange) -> MonitorSpec:
    """The specification with the given fields replaced."""
    given = {name: getattr(change, name) for name in change.model_fields_set}
    if "notify" in given:
        given["notify"] = changed_notify(spec.notify, given["notify"])
    if "tags" in given:
        given["tags"] = tuple(dict.fromkeys(given["tags"]))
    return dataclasses.replace(spec, **given)
