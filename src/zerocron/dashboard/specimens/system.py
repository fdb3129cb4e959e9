"""Specimens of the area `system`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.dashboard.specimens.kinds import Specimen
from zerocron.dashboard.specimens.overview import HOSTILE


def _node(name: str, **changes: Any) -> dict[str, Any]:
    made = {
        "node": name,
        "version": "0.9.0",
        "started_at": "2027-03-08T06:00:12Z",
        "renewed_at": "2027-03-10T14:32:04Z",
        "clock_difference_ms": 3,
        "status": "ok",
    }
    return {**made, **changes}


SYSTEM: Mapping[str, Any] = {
    "version": "0.9.0",
    "tzdata": "2027a",
    "nodes": [
        _node("cron-1"),
        _node("cron-2", started_at="2027-03-08T06:04:40Z", clock_difference_ms=-12, renewed_at="2027-03-10T14:32:06Z"),
        _node("cron-3", started_at="2027-03-09T22:15:03Z", clock_difference_ms=0),
    ],
    "ended_nodes": [],
    "ledger": {"kind": "postgresql", "version": "17.4", "status": "ok"},
    "timetable": {"kind": "redis", "status": "ok", "size": 12480},
    "queue": {"due": 3, "running": 41, "waiting": 7},
    "lateness_ms": {"p50": 4, "p99": 61},
    "loops": [
        {"name": name, "status": "ok"}
        for name in ("scheduler", "heartbeat", "notifier", "sweep", "sessions", "retention")
    ],
}
ILL: Mapping[str, Any] = {
    **SYSTEM,
    "nodes": [
        _node("cron-1"),
        _node("cron-2", status="silent", renewed_at="2027-03-10T14:29:50Z"),
        _node("cron-3", clock_difference_ms=6_400, version="0.8.2"),
    ],
    "timetable": {"kind": "redis", "status": "away", "size": None},
    "queue": {"due": 1_204, "running": 500, "waiting": 96},
    "lateness_ms": {"p50": 1_840, "p99": 8_300},
    "loops": [{"name": "scheduler", "status": "ok"}, {"name": "notifier", "status": "stalled"}],
}
ONE: Mapping[str, Any] = {
    **SYSTEM,
    "nodes": [_node("notebook", clock_difference_ms=None)],
    "ledger": {"kind": "sqlite", "version": None, "status": "ok"},
    "timetable": {"kind": "memory", "status": "ok", "size": 1},
    "queue": {"due": 0, "running": 0, "waiting": 0},
    "lateness_ms": None,
}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("system", "The system: all is well", "/system", {"GET /v1/system": SYSTEM}, is_shown=True),
    Specimen("system-ill", "The system: much is wrong", "/system", {"GET /v1/system": ILL}),
    Specimen("system-one", "The system: one machine", "/system", {"GET /v1/system": ONE}),
    Specimen(
        "system-hostile",
        "The system: names that would act",
        "/system",
        {
            "GET /v1/system": {
                **SYSTEM,
                "version": HOSTILE,
                "nodes": [_node(HOSTILE, version=HOSTILE)],
                "ledger": {"kind": "postgresql", "version": HOSTILE, "status": "away"},
                "loops": [{"name": HOSTILE, "status": "stalled"}],
            }
        },
    ),
)
