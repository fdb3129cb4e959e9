"""Specimens of the areas `jobs` and `job`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.dashboard.specimens.kinds import Specimen, page_of, session
from zerocron.dashboard.specimens.overview import HOSTILE, at, job_id, marks

JOB: Mapping[str, Any] = {
    "id": job_id(2),
    "version": 4,
    "name": "Import supplier prices",
    "schedule": "every 15 minutes on weekdays",
    "schedule_kind": "cron",
    "schedule_cron": "*/15 * * * 1-5",
    "description": "every 15 minutes from Monday to Friday (Europe/Paris)",
    "timezone": "Europe/Paris",
    "language": "en",
    "dst": "run_once",
    "day_match": "either",
    "status": "active",
    "status_reason": None,
    "url": "https://suppliers.example.com/v2/prices/import?shop=all&token=${secrets.PRICES_TOKEN}",
    "method": "POST",
    "headers": {"Authorization": "Bearer ${secrets.SUPPLIER_KEY}", "Content-Type": "application/json"},
    "body": '{"full": false, "currency": "EUR", "notify": ["ada@example.com"]}',
    "timeout": 30.0,
    "retry": {"attempts": 4, "backoff": "exponential", "delay": 10.0, "jitter": "none"},
    "overlap": "skip",
    "catchup": "latest",
    "catchup_window": 86_400,
    "on_lost": "rerun",
    "disable_after": 10,
    "redirects": 0,
    "verify_tls": True,
    "sign": True,
    "success": {
        "status": ["2xx", "304"],
        "body_contains": None,
        "body_not_contains": "partial",
        "body_matches": None,
        "json": [{"path": "$.state", "equals": "done"}, {"path": "$.errors", "equals": 0}],
        "headers": {},
        "max_duration_ms": 20_000,
    },
    "notify": {
        "channels": [job_id(80)],
        "on": ["failed", "recovered", "disabled"],
        "after_failures": 2,
        "out_of": None,
        "remind_every": 3_600,
        "late_after": 60,
    },
    "tags": ["prices", "suppliers"],
    "next_run_at": at(minutes=-12, seconds=-53),
    "last_run": {
        "id": job_id(210),
        "status": "failed",
        "scheduled_for": at(minutes=2, seconds=7),
        "finished_at": at(minutes=1, seconds=14),
    },
    "stats": {
        "succeeded": 5_120,
        "failed": 9,
        "skipped": 14,
        "consecutive_failures": 3,
        "average_duration_ms": 842.113,
    },
    "warnings": [],
    "created_at": at(days=75),
    "updated_at": at(days=3, hours=2),
}


def a_job(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """A job that is well."""
    well = {
        "status": "succeeded",
        "id": job_id(200 + number),
        "scheduled_for": at(minutes=5),
        "finished_at": at(minutes=5),
    }
    stats = {**JOB["stats"], "failed": 0, "consecutive_failures": 0}
    usual = {**JOB, "id": job_id(number), "name": name, "tags": [], "last_run": well, "stats": stats}
    return {**usual, **changes}


def _stopped(number: int, name: str, status: str, **changes: Any) -> dict[str, Any]:
    return a_job(number, name, status=status, next_run_at=None, **changes)


_JOBS = [
    {**JOB},
    a_job(
        1,
        "Renew session cache",
        schedule="every minute",
        description="every minute",
        next_run_at=at(seconds=-53),
        tags=["infrastructure"],
    ),
    a_job(
        3,
        "Send order confirmations",
        schedule="*/5 * * * *",
        description="every 5 minutes",
        next_run_at=at(minutes=-2, seconds=-53),
        tags=["orders", "mail"],
    ),
    _stopped(
        4,
        "Sync loyalty points",
        "disabled",
        description="every 6 minutes",
        status_reason="The last 10 runs failed, and `disable_after` is 10.",
        last_run={**JOB["last_run"], "finished_at": at(hours=1, minutes=3)},
        tags=["customers"],
    ),
    a_job(
        5,
        "Close the till of every shop",
        description="every day at 16:00 (Europe/Paris)",
        next_run_at=at(minutes=-27),
        tags=["accounting"],
    ),
    a_job(
        6,
        "Weather for tomorrow's dough",
        description="every hour at minute 0",
        next_run_at=at(minutes=-28),
    ),
    a_job(
        7,
        "Export bookings to accounting (all shops, with the receipts of suppliers and the corrections of the month)",
        description="at 00:00, 06:00, 12:00 and 18:00 on every day from Monday to Saturday (Europe/Paris)",
        next_run_at=at(hours=-3),
        tags=["accounting", "export", "month-end", "receipts"],
    ),
    _stopped(9, "Weekly newsletter", "paused", description="every Friday at 17:00 (Europe/Paris)", tags=["mail"]),
    _stopped(10, "Move the archive", "completed", description="once on 8 March 2027 at 03:00 (Europe/Paris)"),
    a_job(11, "Count visitors", description="every day at 09:30", last_run=None, next_run_at=at(hours=-18)),
]
_STRIPS = {
    "items": [
        {"job_id": job_id(2), "marks": marks(2, 15, {1: "failed", 2: "failed", 3: "failed", 40: "failed"})},
        {"job_id": job_id(1), "marks": marks(1, 1, {1: "running"})},
        {"job_id": job_id(3), "marks": marks(3, 5, dict.fromkeys(range(60, 74), "skipped"))},
        {"job_id": job_id(4), "marks": marks(4, 6, dict.fromkeys(range(1, 11), "failed"), 74)},
        {"job_id": job_id(5), "marks": marks(5, 1_440)},
        {"job_id": job_id(6), "marks": marks(6, 60, {9: "lost"})},
        {"job_id": job_id(7), "marks": marks(7, 360)},
        {"job_id": job_id(9), "marks": []},
        {"job_id": job_id(10), "marks": []},
        {"job_id": job_id(11), "marks": []},
    ]
}
_TAGS = {
    "items": [
        {"tag": tag, "jobs": jobs} for tag, jobs in (("accounting", 2), ("mail", 2), ("orders", 1), ("prices", 1))
    ]
}


def a_run(number: int, minutes: float, status: str = "succeeded", **changes: Any) -> dict[str, Any]:
    """A run of `JOB` that was due so many minutes before the minute that it is, and took about a second."""
    ran = status not in ("skipped", "cancelled", "queued")
    finished = at(minutes=minutes, seconds=6) if ran and status not in ("running", "retrying") else None
    usual = {
        "id": f"01a22a0b-0af8-7952-00aa-{number:012x}",
        "job_id": job_id(2),
        "job_version": 4,
        "scheduled_for": at(minutes=minutes, seconds=7),
        "triggered_by": "schedule",
        "status": status,
        "reason": None,
        "explanation": None,
        "attempts": 1 if ran else 0,
        "retry_at": None,
        "lateness_ms": 4 + number % 5 if ran else None,
        "created_at": at(minutes=minutes, seconds=7),
        "started_at": at(minutes=minutes, seconds=7) if ran else None,
        "finished_at": finished if ran else at(minutes=minutes, seconds=7),
        "count": 1,
        "scheduled_until": None,
    }
    return {**usual, **changes}


_EXHAUSTED = {"reason": "attempts_exhausted", "explanation": "Every attempt failed.", "attempts": 4}
_RUNS = [
    a_run(1, 2, "retrying", attempts=2, retry_at=at(seconds=-18)),
    a_run(2, 17, "failed", **_EXHAUSTED, finished_at=at(minutes=15.7)),
    a_run(3, 24.6, triggered_by="manual"),
    a_run(4, 32, "failed", **_EXHAUSTED, lateness_ms=1_840, finished_at=at(minutes=30.8)),
    a_run(
        5,
        47,
        "skipped",
        reason="overlap",
        explanation="The previous run was still running, and the job's overlap policy is 'skip'.",
    ),
    a_run(6, 62),
    a_run(
        7,
        287,
        "skipped",
        reason="missed",
        explanation="0cron could not run at that time, and the job's catch-up policy leaves it out.",
        count=14,
        scheduled_until=at(minutes=92, seconds=7),
    ),
    *(a_run(8 + index, 302 + index * 15) for index in range(5)),
]


def _stats(**changes: Any) -> dict[str, Any]:
    points = []
    for index in range(160):
        bad = index in (40, 157, 158, 159)
        points.append(
            {
                "at": at(hours=(160 - index)),
                "duration_ms": 9_800 + index * 7 if bad else 620 + (index * 7_919) % 480 + (index % 24) * 20,
                "status": "failed" if bad else "succeeded",
                "run_id": f"01a22a0b-0af8-7952-00ab-{index:012x}",
            }
        )
    usual = {
        "since": at(days=7),
        "is_complete": True,
        "succeeded": 468,
        "failed": 4,
        "skipped": 15,
        "lost": 0,
        "success_rate": 0.991525,
        "duration_ms": {"p50": 842, "p95": 1_310, "max": 10_913},
        "lateness_ms": {"p50": 5, "p99": 38, "max": 1_840},
        "points": points,
    }
    return {**usual, **changes}


_NO_STATS = _stats(succeeded=0, failed=0, skipped=0, success_rate=None, duration_ms=None, lateness_ms=None, points=[])
_PREVIEW = {
    "kind": "cron",
    "schedule_cron": "*/15 * * * 1-5",
    "timezone": "Europe/Paris",
    "language": "en",
    "description": JOB["description"],
    "next": [at(minutes=-27 - 15 * index, seconds=-53) for index in range(4)],
    "warnings": [],
    "clock_changes": [],
}
_CHANNELS = page_of(
    [
        {
            "id": job_id(80),
            "name": "On call",
            "kind": "email",
            "status": "active",
            "status_reason": None,
            "warning": None,
            "destination": "ops@example.com",
            "failures": 0,
            "last_sent_at": at(days=2),
            "created_at": at(days=70),
            "updated_at": at(days=70),
        }
    ]
)


def _one(job: Mapping[str, Any], runs: list[Any] | None = None, stats: Any = None) -> dict[str, Any]:
    """What the API says about one job."""
    path = f"/v1/jobs/{job['id']}"
    return {
        f"GET {path}": job,
        f"GET {path}/runs": page_of(_RUNS if runs is None else runs),
        f"GET {path}/stats": stats or _stats(),
        "POST /v1/schedules/preview": _PREVIEW,
        "GET /v1/channels": _CHANNELS,
    }


def _list(jobs: list[Any], next_cursor: str | None = None) -> dict[str, Any]:
    return {
        "GET /v1/jobs": page_of(jobs, next_cursor),
        "GET /v1/jobs/strips": _STRIPS,
        "GET /v1/tags": _TAGS,
    }


_EXPLAINED = {
    "at": at(minutes=47, seconds=7),
    "verdict": "skipped",
    "sentence": "It did not run. The previous run was still running, and the job's overlap policy is 'skip'.",
    "run": _RUNS[4],
    "nearest_before": at(minutes=62, seconds=7),
    "nearest_after": at(minutes=32, seconds=7),
    "evidence": [
        {"at": at(minutes=47, seconds=6), "what": "It was recorded as skipped."},
        {"at": at(days=12), "what": "The job got this schedule (version 4)."},
        {"at": at(days=12), "what": "“Ada Moreau” changed the job: overlap, schedule."},
    ],
}
_WARNED = a_job(
    12,
    "Old import",
    schedule="*/25 * * * *",
    warnings=["*/25 does not divide the hour evenly: it starts again at minute 0 of each hour."],
    status="paused",
    next_run_at=None,
    last_run=None,
    verify_tls=False,
    retry={"attempts": 1, "backoff": "exponential", "delay": 5.0, "jitter": "none"},
    notify={**JOB["notify"], "channels": []},
    headers={},
    body=None,
    url="https://old.example.com/import",
)
_HOSTILE = {
    **JOB,
    "name": HOSTILE,
    "schedule": HOSTILE,
    "description": HOSTILE,
    "url": "https://example.com/" + HOSTILE,
    "headers": {HOSTILE: HOSTILE + "${secrets.KEY}"},
    "body": HOSTILE + "${secrets.KEY}",
    "tags": [HOSTILE],
    "warnings": [HOSTILE],
    "success": {
        **JOB["success"],
        "status": [HOSTILE],
        "body_contains": HOSTILE,
        "body_not_contains": HOSTILE,
        "body_matches": HOSTILE,
        "json": [{"path": HOSTILE, "equals": HOSTILE}],
        "headers": {HOSTILE: HOSTILE},
    },
}
_HOSTILE_CHANNELS = page_of([{**_CHANNELS["items"][0], "name": HOSTILE}])
_HOSTILE_RUNS = [{**_RUNS[4], "explanation": HOSTILE}]
_BULK_ANSWER = {
    "done": [job_id(1), job_id(3)],
    "refused": [
        {
            "id": job_id(10),
            "detail": "The job is completed: its schedule has no slot left, so there is nothing to pause.",
        }
    ],
}
_PICKED = [("ids", f"active:{job_id(1)}"), ("ids", f"active:{job_id(3)}"), ("ids", f"completed:{job_id(10)}")]
_NEXT = "WzE3OTk5OTY0MDAwMDAsIm5leHQiXQ"
_INVALID = {
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "Ask for at most 200 jobs at once; these are 201.",
    "errors": [{"field": "ids", "message": "Ask for at most 200 jobs at once; these are 201."}],
}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("jobs", "Jobs", "/jobs", _list(_JOBS, _NEXT), is_shown=True),
    Specimen("jobs-none", "No job yet", "/jobs", _list([])),
    Specimen("jobs-nothing-found", "No job is like that", "/jobs?q=nothing&status=paused", _list([])),
    Specimen(
        "jobs-viewer", "Jobs, for a viewer", "/jobs", _list(_JOBS) | {"GET /v1/session": session(permissions=["read"])}
    ),
    Specimen(
        "jobs-told",
        "Many jobs were changed",
        "/jobs/bulk",
        _list(_JOBS) | {"POST /v1/jobs/bulk": _BULK_ANSWER},
        form=(*_PICKED, ("action", "pause")),
    ),
    Specimen(
        "jobs-refused",
        "Many jobs could not be changed",
        "/jobs/bulk",
        _list(_JOBS) | {"POST /v1/jobs/bulk": (422, _INVALID)},
        form=(*_PICKED, ("action", "resume")),
    ),
    Specimen(
        "jobs-delete",
        "Whether to delete many",
        "/jobs/bulk",
        {f"GET /v1/jobs/{each['id']}": each for each in _JOBS[:3]},
        form=(*_PICKED, ("action", "delete")),
    ),
    Specimen(
        "jobs-hostile",
        "Jobs whose texts are code",
        "/jobs?q=%3Cscript%3E",
        _list([_HOSTILE]) | {"GET /v1/tags": {"items": [{"tag": HOSTILE, "jobs": 1}]}},
    ),
    Specimen("job", "A job that fails", f"/jobs/{JOB['id']}", _one(JOB), is_shown=True),
    Specimen("job-well", "A job that is well", f"/jobs/{job_id(1)}", _one(_JOBS[1], _RUNS[8:])),
    Specimen("job-new", "A job that never ran", f"/jobs/{job_id(11)}", _one(_JOBS[9], [], _NO_STATS)),
    Specimen("job-disabled", "A job that was disabled", f"/jobs/{job_id(4)}", _one(_JOBS[3])),
    Specimen("job-paused", "A job that is paused, with warnings", f"/jobs/{job_id(12)}", _one(_WARNED, [], _NO_STATS)),
    Specimen(
        "job-viewer",
        "A job, for a viewer",
        f"/jobs/{JOB['id']}",
        _one(JOB) | {"GET /v1/session": session(permissions=["read"])},
    ),
    Specimen(
        "job-hostile",
        "A job whose texts are code",
        f"/jobs/{JOB['id']}",
        _one(_HOSTILE, _HOSTILE_RUNS) | {"GET /v1/channels": _HOSTILE_CHANNELS},
    ),
    Specimen("job-delete", "Whether to delete a job", f"/jobs/{JOB['id']}/delete", _one(JOB), form=(("asked", ""),)),
    Specimen(
        "job-trigger-refused",
        "A job that cannot run now",
        f"/jobs/{job_id(4)}/trigger",
        _one(_JOBS[3])
        | {
            f"POST /v1/jobs/{job_id(4)}/trigger": (
                409,
                {
                    "title": "Conflict",
                    "status": 409,
                    "detail": "The job is disabled: The last 10 runs failed, and `disable_after` is 10. "
                    "Resume it before triggering it.",
                },
            )
        },
        form=(),
    ),
    Specimen(
        "job-explain",
        "Why a job did not run",
        f"/jobs/{JOB['id']}/explain?at={at(minutes=47, seconds=7)}",
        _one(JOB) | {f"GET /v1/jobs/{JOB['id']}/explain": _EXPLAINED},
        is_shown=True,
    ),
    Specimen("job-explain-ask", "Ask why a job did not run", f"/jobs/{JOB['id']}/explain", _one(JOB)),
    Specimen(
        "job-explain-refused", "Ask with a date that is none", f"/jobs/{JOB['id']}/explain?date=x&time=y", _one(JOB)
    ),
)
