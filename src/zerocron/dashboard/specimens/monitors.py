"""Specimens of the area `monitors`: one of each health, a form in each state, and what a viewer sees."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from zerocron.dashboard.specimens.kinds import SESSION, Specimen, page_of, session

_TOKEN = "3f8a51c09be24d7786a1f0c2d95e4b7a60c81d3e5f92a4b7c6d8e0f1a2b3c4d5"
_ID = "01a2f3b0-0000-7000-8000-0000000000"
VIEWER = session(
    permissions=["read"],
    team={**SESSION["team"], "role": "viewer"},
    teams=[{**SESSION["team"], "role": "viewer"}],
)

HOSTILE = """<script>alert(1)</script>"'"""
"""What somebody may have written anywhere: it is shown, and does nothing."""


def monitor(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """A monitor as the API shows it."""
    return {
        "id": f"{_ID}{number:02d}",
        "version": 3,
        "name": name,
        "status": "active",
        "health": "up",
        "health_since": "2027-03-03T01:14:22Z",
        "reason": "ping",
        "explanation": "A ping said that the job is well.",
        "schedule": "every day at 2am",
        "schedule_kind": "cron",
        "schedule_cron": "0 2 * * *",
        "description": "Every day at 02:00",
        "timezone": "Europe/Paris",
        "language": "en",
        "dst": "run_once",
        "day_match": "either",
        "grace_period_seconds": 1800,
        "max_duration_seconds": None,
        "min_duration_seconds": None,
        "post_only": False,
        "resume_on_ping": True,
        "notify": {"channels": None, "on": ["down", "up"], "remind_every": None},
        "tags": [],
        "expected_at": "2027-03-11T01:00:00Z",
        "down_at": "2027-03-11T01:30:00Z",
        "last_ping_at": "2027-03-10T01:16:41Z",
        "last_ping_kind": "success",
        "running": 0,
        "paused_until": None,
        "ping_token": _TOKEN,
        "ping_url": f"https://cron.example.com/v1/ping/{_TOKEN}",
        "pings": 412,
        "warnings": [],
        "created_at": "2026-12-04T09:12:00Z",
        "updated_at": "2027-03-10T01:16:41Z",
        **changes,
    }


def uptime(downs: dict[int, int], *, days: int = 90, known: int = 90) -> dict[str, Any]:
    """Days up to today; `downs`: so many days ago, so many seconds; `known`: since when there is something to judge."""
    today = date(2027, 3, 10)
    items: list[dict[str, Any]] = []
    for ago in reversed(range(days)):
        down = downs.get(ago, 0)
        judged = 86_400 if ago < known else 0
        items.append(
            {
                "date": (today - timedelta(days=ago)).isoformat(),
                "up_seconds": float(judged - down) if judged else 0.0,
                "down_seconds": float(down),
                "downs": 1 if down else 0,
                "uptime": round((judged - down) / judged, 6) if judged else None,
            }
        )
    up, down = sum(day["up_seconds"] for day in items), sum(day["down_seconds"] for day in items)
    return {
        "timezone": "Europe/Paris",
        "up_ratio": round(up / (up + down), 6) if up + down else None,
        "downs": sum(day["downs"] for day in items),
        "down_seconds": down,
        "items": items,
    }


def ping(number: int, kind: str, at: str, **changes: Any) -> dict[str, Any]:
    """A ping as the API shows it."""
    return {
        "number": number,
        "kind": kind,
        "received_at": at,
        "rid": None,
        "exit_code": None,
        "duration_ms": None,
        "method": "POST",
        "source": "203.0.113.24",
        "user_agent": "0cron-exec/1.0",
        "body": None,
        "body_bytes": 0,
        **changes,
    }


def flip(number: int, before: str, after: str, at: str, reason: str, **changes: Any) -> dict[str, Any]:
    """A flip as the API shows it."""
    return {
        "id": f"{_ID}01.{number}",
        "at": at,
        "noticed_at": at,
        "before": before,
        "after": after,
        "reason": reason,
        "explanation": "Something happened.",
        "expected_at": None,
        "last_ping_at": None,
        "exit_code": None,
        "missed": 0,
        "lasted_ms": 604_800_000,
        **changes,
    }


BACKUP = monitor(
    1,
    "Nightly backup",
    tags=["backup", "prod"],
    max_duration_seconds=3000,
    notify={"channels": None, "on": ["down", "up"], "remind_every": 3600},
)
SENSOR = monitor(
    2,
    "Greenhouse sensor",
    health="late",
    health_since="2027-03-10T14:30:00Z",
    schedule="every 15 minutes",
    schedule_kind="interval",
    schedule_cron=None,
    description="every 15 minutes",
    grace_period_seconds=300,
    expected_at="2027-03-10T14:30:00Z",
    down_at="2027-03-10T14:35:00Z",
    last_ping_at="2027-03-10T14:15:00Z",
    timezone="UTC",
)
EXPORT = monitor(
    3,
    "CRM export to the warehouse",
    health="down",
    health_since="2027-03-10T09:05:00Z",
    reason="silence",
    explanation="No ping came when one was expected.",
    schedule="every hour",
    schedule_kind="interval",
    schedule_cron=None,
    description="every hour",
    grace_period_seconds=300,
    expected_at="2027-03-10T09:00:00Z",
    down_at=None,
    last_ping_at="2027-03-10T08:00:00Z",
    tags=["sales"],
)
NEW = monitor(
    4,
    "Invoice run",
    health="new",
    health_since="2027-03-10T14:20:00Z",
    reason=None,
    explanation=None,
    schedule="on the last day of the month at 6pm",
    schedule_cron="0 18 L * *",
    description="On the last day of the month at 18:00",
    expected_at=None,
    down_at=None,
    last_ping_at=None,
    last_ping_kind=None,
    pings=0,
)
PAUSED = monitor(
    5,
    "Old mail gateway",
    status="paused",
    reason="paused",
    explanation="The monitor was paused.",
    health_since="2027-03-08T16:00:00Z",
    expected_at=None,
    down_at=None,
    paused_until="2027-03-12T08:00:00Z",
)
ALL = [EXPORT, SENSOR, BACKUP, NEW, PAUSED]

CHANNELS = page_of(
    [
        {
            "id": "01a2f3c0-0000-7000-8000-000000000001",
            "kind": "slack",
            "name": "ops",
            "status": "active",
            "status_reason": None,
            "warning": None,
            "destination": "hooks.slack.com/services/T0421/B0991/…",
            "failures": 0,
            "last_sent_at": "2027-03-10T09:05:01Z",
            "created_at": "2026-12-02T08:00:00Z",
            "updated_at": "2026-12-02T08:00:00Z",
        },
        {
            "id": "01a2f3c0-0000-7000-8000-000000000002",
            "kind": "email",
            "name": "On call",
            "status": "active",
            "status_reason": None,
            "warning": None,
            "destination": "o…@example.com",
            "failures": 0,
            "last_sent_at": None,
            "created_at": "2026-12-02T08:05:00Z",
            "updated_at": "2026-12-02T08:05:00Z",
        },
    ]
)
PINGS = page_of(
    [
        ping(
            412,
            "success",
            "2027-03-10T01:16:41Z",
            exit_code=0,
            duration_ms=995_000,
            body="dumped 12 of 12 tables\nuploaded 3.4 GB to s3://backups/2027-03-10\n",
            body_bytes=66,
        ),
        ping(411, "start", "2027-03-10T01:00:06Z"),
        ping(410, "fail", "2027-03-09T01:02:12Z", exit_code=3, duration_ms=126_000, body="disk full", body_bytes=9),
        ping(409, "start", "2027-03-09T01:00:06Z"),
        ping(
            408,
            "log",
            "2027-03-08T15:41:00Z",
            method="GET",
            source="2001:db8::17",
            user_agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0",
            rid="8d9a5a2e-7a0e-4a52-9f0e-2f6f0a3c9d11",
        ),
    ],
    "more",
)
FLIPS = page_of(
    [
        flip(4, "down", "up", "2027-03-09T05:10:44Z", "ping", lasted_ms=14_912_000),
        flip(3, "up", "down", "2027-03-09T01:02:12Z", "exit_code", exit_code=3, lasted_ms=1_814_400_000),
        flip(2, "down", "up", "2027-02-16T01:15:20Z", "ping", lasted_ms=85_520_000),
        flip(1, "up", "down", "2027-02-15T01:30:00Z", "silence", missed=1, lasted_ms=6_300_000_000),
    ]
)
PREVIEW = {
    "kind": "cron",
    "schedule_cron": "0 2 * * *",
    "timezone": "Europe/Paris",
    "language": "en",
    "description": "Every day at 02:00",
    "next": [
        "2027-03-11T01:00:00Z",
        "2027-03-12T01:00:00Z",
        "2027-03-13T01:00:00Z",
        "2027-03-14T01:00:00Z",
        "2027-03-15T01:00:00Z",
    ],
    "warnings": [],
    "clock_changes": [
        {
            "at": "2027-03-28T01:00:00Z",
            "kind": "gap",
            "effect": "The clocks go forward from 02:00 to 03:00: 02:00 does not exist; it runs at 03:00 instead.",
        }
    ],
}
REFUSED = {
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "I do not understand “fortnightish” here.",
    "errors": [
        {"field": "schedule", "message": "I do not understand “fortnightish” here."},
        {"field": "grace_period_seconds", "message": "This has to be a whole number; this is text."},
    ],
    "suggestions": ["every 14 days", "every monday at 8am"],
}


def _page(of: dict[str, Any], **more: Any) -> dict[str, Any]:
    path = f"GET /v1/monitors/{of['id']}"
    return {
        path: of,
        f"{path}/pings": PINGS,
        f"{path}/flips": FLIPS,
        f"{path}/uptime": uptime({1: 14_912, 23: 85_520}),
        "GET /v1/channels": CHANNELS,
        **more,
    }


_LIST: dict[str, Any] = {
    "GET /v1/monitors": page_of(ALL, "more"),
    "GET /v1/monitors/uptimes": {
        "items": [
            {"monitor_id": of["id"], **uptime(downs, days=30, known=known)}
            for of, downs, known in (
                (BACKUP, {1: 14_912}, 30),
                (SENSOR, {}, 30),
                (EXPORT, {0: 19_627, 4: 1_200, 11: 300}, 30),
                (NEW, {}, 0),
                (PAUSED, {}, 12),
            )
        ]
    },
}
_NEW_PAGE = {
    **_page(NEW),
    f"GET /v1/monitors/{NEW['id']}/pings": page_of([]),
    f"GET /v1/monitors/{NEW['id']}/flips": page_of([]),
    f"GET /v1/monitors/{NEW['id']}/uptime": uptime({}, known=0),
}
_HIDDEN = {**BACKUP, "ping_token": "", "ping_url": ""}
_ODD = monitor(
    6,
    HOSTILE,
    tags=[HOSTILE],
    schedule=HOSTILE,
    description=HOSTILE,
    warnings=[HOSTILE],
    notify={"channels": ["01a2f3c0-0000-7000-8000-000000000001"], "on": ["late"], "remind_every": None},
)
_ODD_CHANNELS = page_of([{**CHANNELS["items"][0], "name": HOSTILE, "destination": HOSTILE}])
_ODD_PINGS = page_of(
    [ping(1, "fail", "2027-03-10T01:00:00Z", body=HOSTILE, body_bytes=29, source=HOSTILE, user_agent=HOSTILE)]
)
_ODD_PAGE = {
    **_page(_ODD),
    f"GET /v1/monitors/{_ODD['id']}/pings": _ODD_PINGS,
    "GET /v1/monitors": page_of([_ODD]),
    "GET /v1/monitors/uptimes": {"items": [{"monitor_id": _ODD["id"], **uptime({3: 60}, days=30)}]},
    "GET /v1/channels": _ODD_CHANNELS,
}
_ODD_REFUSED = {**REFUSED, "detail": HOSTILE, "suggestions": [HOSTILE]}
_TYPED = (
    ("name", "Fortnightly audit"),
    ("schedule", "every fortnightish"),
    ("timezone", "Europe/Paris"),
    ("grace_period_seconds", "soon"),
    ("grace_period_seconds_unit", "min"),
    ("whom", "some"),
    ("notify.channels", "01a2f3c0-0000-7000-8000-000000000002"),
    ("notify.on", "down"),
    ("tags", "audit, finance"),
)

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("monitors", "Monitors", "/monitors", _LIST),
    Specimen("monitors-empty", "No monitor yet", "/monitors", {"GET /v1/monitors": page_of([])}),
    Specimen("monitors-none", "No monitor like that", "/monitors?q=zebra", {"GET /v1/monitors": page_of([])}),
    Specimen("monitors-viewer", "Monitors for a viewer", "/monitors", {**_LIST, "GET /v1/session": VIEWER}),
    Specimen("monitor", "A monitor", f"/monitors/{BACKUP['id']}", _page(BACKUP), is_shown=True),
    Specimen("monitor-down", "A monitor that is down", f"/monitors/{EXPORT['id']}", _page(EXPORT)),
    Specimen("monitor-late", "A monitor that is late", f"/monitors/{SENSOR['id']}", _page(SENSOR)),
    Specimen("monitor-new", "A monitor without a ping", f"/monitors/{NEW['id']}?done=created", _NEW_PAGE),
    Specimen("monitor-paused", "A monitor that is paused", f"/monitors/{PAUSED['id']}?done=paused", _page(PAUSED)),
    Specimen(
        "monitor-viewer",
        "A monitor for a viewer",
        f"/monitors/{_HIDDEN['id']}",
        {**_page(_HIDDEN), "GET /v1/session": VIEWER},
    ),
    Specimen("monitor-pings", "Pings of a monitor", f"/monitors/{BACKUP['id']}/pings", _page(BACKUP)),
    Specimen("monitor-flips", "Flips of a monitor", f"/monitors/{BACKUP['id']}/flips", _page(BACKUP)),
    Specimen("monitor-rotate", "A new address for a monitor", f"/monitors/{BACKUP['id']}/rotate", _page(BACKUP)),
    Specimen("monitor-delete", "The end of a monitor", f"/monitors/{BACKUP['id']}/delete", _page(BACKUP)),
    Specimen(
        "monitor-form",
        "A new monitor, with what its schedule means",
        "/monitors/new",
        {"GET /v1/channels": CHANNELS, "POST /v1/schedules/preview": PREVIEW},
        form=(
            ("name", "Nightly backup"),
            ("schedule", "every day at 2am"),
            ("timezone", "Europe/Paris"),
            ("grace_period_seconds", "30"),
            ("grace_period_seconds_unit", "min"),
            ("max_duration_seconds_unit", "min"),
            ("min_duration_seconds_unit", "min"),
            ("notify.remind_every_unit", "h"),
            ("whom", "all"),
            ("notify.on", "down"),
            ("notify.on", "up"),
            ("resume_on_ping", "true"),
            ("preview", "1"),
        ),
        is_shown=True,
    ),
    Specimen(
        "monitor-form-refused",
        "A new monitor, refused",
        "/monitors/new",
        {"GET /v1/channels": CHANNELS, "POST /v1/monitors": (422, REFUSED)},
        form=_TYPED,
    ),
    Specimen("monitor-form-edit", "A monitor, changed", f"/monitors/{BACKUP['id']}/edit", _page(BACKUP)),
    Specimen("monitors-hostile", "Monitors with odd texts", "/monitors", _ODD_PAGE),
    Specimen("monitor-hostile", "A monitor with odd texts", f"/monitors/{_ODD['id']}", _ODD_PAGE),
    Specimen("monitor-delete-hostile", "The end of an odd monitor", f"/monitors/{_ODD['id']}/delete", _ODD_PAGE),
    Specimen(
        "monitor-form-hostile",
        "A new monitor with odd texts",
        "/monitors/new",
        {"GET /v1/channels": _ODD_CHANNELS, "POST /v1/monitors": (422, _ODD_REFUSED)},
        form=tuple((name, HOSTILE) for name, _ in _TYPED),
    ),
    Specimen("monitor-form-viewer", "A new monitor for a viewer", "/monitors/new", {"GET /v1/session": VIEWER}),
)
