"""Specimens of the area `overview`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from zerocron.dashboard.specimens.kinds import NOW, SESSION, Specimen, session

_NOW = datetime.fromisoformat(NOW).astimezone(UTC)
_HOUR = timedelta(hours=1)
HOSTILE = "<script>alert(1)</script>\"'&"


def at(**before: float) -> str:
    """An instant so long before the gallery's now: `at(minutes=5)`; of the future when it is negative."""
    return (_NOW - timedelta(**before)).strftime("%Y-%m-%dT%H:%M:%SZ")


def job_id(number: int) -> str:
    return f"01a22a0b-0af8-7952-bb7c-0000000000{number:02x}"


def marks(number: int, minutes: int, bad: Mapping[int, str] | None = None, count: int = 100) -> list[dict[str, Any]]:
    """The strip of a job that runs every so many minutes; `bad` tells how those went that went otherwise."""
    made = []
    for back in range(min(count, 1_440 // minutes), 0, -1):
        status = (bad or {}).get(back, "succeeded")
        run_id = f"01a22a0b-0af8-7952-{number:04x}-{back:012x}"
        made.append(
            {"run_id": run_id, "scheduled_for": at(minutes=back * minutes, seconds=7), "status": status, "count": 1}
        )
    return made


def _hours() -> list[dict[str, Any]]:
    first = _NOW.replace(minute=0, second=0) - 23 * _HOUR
    hours = []
    for index in range(24):
        is_night = index < 15 and index > 8
        hours.append(
            {
                "from": (first + index * _HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "is_counted": True,
                "succeeded": 180 + (index * 37) % 60 - (90 if is_night else 0) - (120 if index == 23 else 0),
                "failed": {11: 3, 12: 9, 13: 2, 23: 3}.get(index, 0),
                "skipped": 14 if index == 5 else 0,
                "lost": 1 if index == 12 else 0,
                "lateness_ms_p50": 3 + (index * 7) % 4,
                "lateness_ms_p99": {12: 410, 13: 160}.get(index, 24 + (index * 13) % 30),
            }
        )
    return hours


_ATTENTION = [
    {
        "kind": "monitor",
        "id": job_id(90),
        "name": "Nightly database backup",
        "state": "down",
        "since": at(hours=5, minutes=12),
        "detail": "",
    },
    {
        "kind": "job",
        "id": job_id(4),
        "name": "Sync loyalty points",
        "state": "disabled",
        "since": at(hours=1, minutes=3),
        "detail": "The last 10 runs failed, and `disable_after` is 10.",
    },
    {
        "kind": "job",
        "id": job_id(2),
        "name": "Import supplier prices",
        "state": "failing",
        "since": at(minutes=32),
        "detail": "The status was 502; the job accepts 2xx.",
    },
    {
        "kind": "monitor",
        "id": job_id(91),
        "name": "Oven temperature probe",
        "state": "late",
        "since": at(minutes=2),
        "detail": "",
    },
]
_UPCOMING = [
    {"job_id": job_id(1), "name": "Renew session cache", "at": at(seconds=-23)},
    {"job_id": job_id(2), "name": "Import supplier prices", "at": at(seconds=-53)},
    {"job_id": job_id(3), "name": "Send order confirmations", "at": at(minutes=-2, seconds=-53)},
    {"job_id": job_id(5), "name": "Close the till of every shop", "at": at(minutes=-27)},
    {"job_id": job_id(6), "name": "Weather for tomorrow's dough", "at": at(minutes=-28)},
    {"job_id": job_id(7), "name": "Export bookings to accounting (all shops, with the receipts)", "at": at(hours=-3)},
    {"job_id": job_id(8), "name": "Nightly report", "at": at(hours=-10, minutes=-28)},
    {"job_id": job_id(9), "name": "Weekly newsletter", "at": at(days=-2)},
]
OVERVIEW: Mapping[str, Any] = {
    "jobs": {"active": 38, "paused": 3, "disabled": 1, "completed": 4, "failing": 1, "running": 2},
    "monitors": {"new": 1, "up": 11, "late": 1, "down": 1, "paused": 2},
    "attention": _ATTENTION,
    "upcoming": _UPCOMING,
    "hours": _hours(),
    "now": NOW,
}
_STRIPS = {
    "items": [
        {"job_id": job_id(4), "marks": marks(4, 6, dict.fromkeys(range(1, 11), "failed"), 74)},
        {"job_id": job_id(2), "marks": marks(2, 15, {1: "failed", 2: "failed", 40: "failed"})},
        {"job_id": job_id(1), "marks": marks(1, 1, {1: "running"})},
        {"job_id": job_id(3), "marks": marks(3, 5, dict.fromkeys(range(60, 74), "skipped"))},
        {"job_id": job_id(5), "marks": marks(5, 60)},
        {"job_id": job_id(6), "marks": marks(6, 60, {9: "lost"})},
        {"job_id": job_id(7), "marks": marks(7, 360)},
        {"job_id": job_id(8), "marks": []},
    ]
}
_WELL = {
    **OVERVIEW,
    "jobs": {**OVERVIEW["jobs"], "disabled": 0, "failing": 0, "running": 0},
    "monitors": {**OVERVIEW["monitors"], "late": 0, "down": 0, "up": 13},
    "attention": [],
    "hours": [{**hour, "failed": 0, "lost": 0, "skipped": 0} for hour in OVERVIEW["hours"]],
}
_NEW: Mapping[str, Any] = {
    "jobs": dict.fromkeys(OVERVIEW["jobs"], 0),
    "monitors": dict.fromkeys(OVERVIEW["monitors"], 0),
    "attention": [],
    "upcoming": [],
    "hours": [
        {
            **hour,
            "is_counted": number > 20,
            **dict.fromkeys(("succeeded", "failed", "skipped", "lost"), 0),
            "lateness_ms_p50": None,
            "lateness_ms_p99": None,
        }
        for number, hour in enumerate(OVERVIEW["hours"])
    ],
    "now": NOW,
}
_HOSTILE = {
    **OVERVIEW,
    "attention": [{**each, "name": HOSTILE, "detail": HOSTILE} for each in _ATTENTION],
    "upcoming": [{**each, "name": HOSTILE} for each in _UPCOMING],
}


def _shown(overview: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"GET /v1/overview": overview, "GET /v1/jobs/strips": _STRIPS, **more}


SPECIMENS: tuple[Specimen, ...] = (
    Specimen("overview", "The overview, with some trouble", "/", _shown(OVERVIEW), is_shown=True),
    Specimen("overview-well", "The overview, all is well", "/", _shown(_WELL)),
    Specimen("overview-new", "The overview of a team that has nothing", "/", _shown(_NEW), is_shown=True),
    Specimen(
        "overview-new-viewer",
        "The same, for a viewer",
        "/",
        _shown(_NEW) | {"GET /v1/session": session(permissions=["read"])},
    ),
    Specimen(
        "overview-quiet",
        "Jobs that never ran",
        "/",
        _shown({**_NEW, "jobs": {**_NEW["jobs"], "paused": 2}}) | {"GET /v1/session": SESSION},
    ),
    Specimen("overview-hostile", "The overview with names that are code", "/", _shown(_HOSTILE)),
)
