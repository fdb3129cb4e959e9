"""Specimens of the area `job_form`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.dashboard.job_draft import DEFAULTS, Draft
from zerocron.dashboard.specimens.kinds import Specimen, page_of, session

JOB_ID = "01a22a0b-5e10-7c3a-9d41-2f6f0a3c9d11"
CHANNELS = page_of(
    [
        {
            "id": "01a22a0b-1111-7952-bb7c-f148bfd7b711",
            "kind": "slack",
            "name": "On call",
            "status": "active",
            "status_reason": None,
            "warning": None,
            "destination": "hooks.slack.com/…/B04",
            "failures": 0,
            "last_sent_at": "2027-03-09T03:00:05Z",
            "created_at": "2026-12-01T08:10:00Z",
            "updated_at": "2026-12-01T08:10:00Z",
        },
        {
            "id": "01a22a0b-2222-7952-bb7c-f148bfd7b722",
            "kind": "email",
            "name": "Bakery office",
            "status": "active",
            "status_reason": None,
            "warning": None,
            "destination": "office@example.com",
            "failures": 0,
            "last_sent_at": None,
            "created_at": "2026-12-01T08:12:00Z",
            "updated_at": "2026-12-01T08:12:00Z",
        },
    ]
)
SECRETS = page_of(
    [
        {
            "name": name,
            "allowed_hosts": [],
            "created_at": "2026-12-02T09:00:00Z",
            "updated_at": "2026-12-02T09:00:00Z",
            "last_used_at": None,
        }
        for name in ("OVEN_TOKEN", "STRIPE_KEY")
    ]
)
PREVIEW: dict[str, Any] = {
    "kind": "cron",
    "schedule_cron": "0 9 * * 1-5",
    "timezone": "Europe/Paris",
    "language": "en",
    "description": "every weekday at 09:00 (Europe/Paris)",
    "next": [f"2027-03-{day}T08:00:00Z" for day in ("11", "12", "15", "16", "17")],
    "warnings": [],
    "clock_changes": [],
}
GAP = "The clocks go forward from 02:00 to 03:00: 02:30 does not exist; it runs at 03:00 instead."
WARNED: dict[str, Any] = {
    **PREVIEW,
    "schedule_cron": "30 2 13 * 0",
    "timezone": "America/New_York",
    "description": "on day 13 of the month or every Sunday at 02:30 (30 2 13 * 0, America/New_York)",
    "next": [
        "2027-03-13T07:30:00Z",
        "2027-03-14T07:00:00Z",
        "2027-03-21T06:30:00Z",
        "2027-03-28T06:30:00Z",
        "2027-04-04T06:30:00Z",
    ],
    "warnings": [
        "Day of month and day of week are both restricted: it fires when EITHER matches (Debian cron's rule)."
    ],
    "clock_changes": [
        {"at": "2027-03-14T07:00:00Z", "kind": "gap", "effect": GAP},
        {"at": "2028-03-12T07:00:00Z", "kind": "gap", "effect": GAP},
    ],
}
JOB: dict[str, Any] = {
    **DEFAULTS,
    "id": JOB_ID,
    "version": 3,
    "name": "Order flour",
    "schedule": "every weekday at 9am",
    "schedule_kind": "cron",
    "schedule_cron": "0 9 * * 1-5",
    "description": "every weekday at 09:00 (Europe/Paris)",
    "timezone": "Europe/Paris",
    "language": "en",
    "status": "active",
    "status_reason": None,
    "url": "https://mill.example.com/orders",
    "method": "POST",
    "headers": {"Authorization": "Bearer ${secrets.STRIPE_KEY}", "Content-Type": "application/json"},
    "body": '{\n  "flour": "T65",\n  "kilograms": 120\n}',
    "retry": {"attempts": 5, "backoff": "exponential", "delay": 10.0, "jitter": "none"},
    "success": {
        "status": ["2xx", "409"],
        "body_contains": None,
        "body_not_contains": None,
        "body_matches": None,
        "json": [{"path": "$.order.state", "equals": "accepted"}],
        "headers": {},
        "max_duration_ms": 2_000,
    },
    "overlap": "queue",
    "notify": {
        "channels": [CHANNELS["items"][0]["id"]],
        "on": ["failed", "recovered", "disabled", "missed"],
        "after_failures": 3,
        "out_of": 5,
        "remind_every": 14_400,
        "late_after": 60,
    },
    "tags": ["purchasing", "mill"],
    "next_run_at": "2027-03-11T08:00:00Z",
    "last_run": {
        "id": "01a22a0b-6f10-5c3a-9d41-2f6f0a3c9d12",
        "status": "succeeded",
        "scheduled_for": "2027-03-10T08:00:00Z",
        "finished_at": "2027-03-10T08:00:01Z",
    },
    "stats": {"succeeded": 68, "failed": 2, "skipped": 0, "consecutive_failures": 0, "average_duration_ms": 312.5},
    "warnings": [],
    "created_at": "2026-12-01T08:20:00Z",
    "updated_at": "2027-02-01T10:02:00Z",
}
TRIED: dict[str, Any] = {
    "id": "01a22a0b-7a10-7c3a-9d41-2f6f0a3c9d13.1",
    "run_id": "01a22a0b-7a10-7c3a-9d41-2f6f0a3c9d13",
    "attempt": 1,
    "cause": "first",
    "status": "failed",
    "started_at": "2027-03-10T14:32:05.120Z",
    "finished_at": "2027-03-10T14:32:05.432Z",
    "duration_ms": 312.4,
    "timings_ms": {"dns": 8.2, "connect": 21.7, "tls": 48.9, "first_byte": 296.0, "total": 312.4},
    "request": {
        "url": "https://mill.example.com/orders",
        "method": "POST",
        "headers": {"host": "mill.example.com"},
        "body": "{}",
    },
    "hops": [],
    "response": {
        "status": 422,
        "headers": {"content-type": "application/json", "date": "Wed, 10 Mar 2027 14:32:05 GMT"},
        "body": '{"error":"kilograms is missing","order":null}',
        "body_bytes": 45,
        "truncated": False,
        "encoding": "utf-8",
    },
    "error": {"kind": "rule", "message": "The status was 422; the job accepts 2xx."},
    "verdict": "failed",
    "sentence": "The status was 422; the job accepts 2xx.",
}


def typed(job: Mapping[str, Any], *more: tuple[str, str], **texts: str) -> list[tuple[str, str]]:
    """The form of a job as a browser sends it, with other texts in some fields."""
    draft = Draft.of_job(job)
    fields = {**draft.texts, "notify.told": draft.told, "seen": draft.seen} | texts
    pairs = [(name, text) for name, text in fields.items() if text or name not in ("sign", "verify_tls")]
    for group, rows in draft.rows.items():
        pairs += [pair for name, value in rows for pair in ((f"{group}.name", name), (f"{group}.value", value))]
    pairs += [("notify.channels", each) for each in draft.channels]
    return [*pairs, *(("notify.on", event) for event in draft.events), *more]


_OFFERED = {"GET /v1/channels": CHANNELS, "GET /v1/secrets": SECRETS}
_SHOWN = {**_OFFERED, "POST /v1/schedules/preview": PREVIEW}
_NOT_READ = (
    422,
    {
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "I do not understand “nineish” here.",
        "errors": [{"field": "schedule", "message": "I do not understand “nineish” here."}],
        "suggestions": ["every weekday at 00:00"],
    },
)
_REFUSED = (
    422,
    {
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "url: A URL starts with http:// or https:// and a host, such as https://example.com/hook.",
        "errors": [
            {
                "field": "url",
                "message": "A URL starts with http:// or https:// and a host, such as https://example.com/hook.",
            },
            {"field": "retry.attempts", "message": "This has to be at most 10; this is 50."},
            {
                "field": "headers.X Team",
                "message": "A header name is made of letters, digits and !#$%&'*+-.^_`|~ without blanks.",
            },
            {
                "field": "success.json.0.path",
                "message": "'order' is not a JSON path. Write it like $.jobs[0].state or $[\"any name\"].",
            },
        ],
    },
)

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("job-new", "A new job", "/jobs/new", _OFFERED),
    Specimen("job-new-curl", "A new job from a curl command", "/jobs/new?curl=1", _OFFERED),
    Specimen(
        "job-new-clone", "A copy of a job", f"/jobs/new?clone={JOB_ID}", {**_SHOWN, f"GET /v1/jobs/{JOB_ID}": JOB}
    ),
    Specimen("job-edit", "A job is edited", f"/jobs/{JOB_ID}/edit", {**_SHOWN, f"GET /v1/jobs/{JOB_ID}": JOB}),
    Specimen(
        "job-new-preview",
        "A new job whose schedule is read",
        "/jobs/new",
        _SHOWN,
        typed(
            {**DEFAULTS, "name": "Order flour", "url": "https://mill.example.com/orders"},
            ("do", "preview"),
            schedule="every weekday at 9am",
            timezone="Europe/Paris",
        ),
        is_shown=True,
    ),
    Specimen(
        "job-new-warned",
        "A schedule with warnings, in another zone",
        "/jobs/new",
        {**_OFFERED, "POST /v1/schedules/preview": WARNED},
        typed(DEFAULTS, ("do", "preview"), schedule="30 2 13 * 0", timezone="America/New_York"),
    ),
    Specimen(
        "job-new-not-read",
        "A schedule that cannot be read",
        "/jobs/new",
        {**_OFFERED, "POST /v1/schedules/preview": _NOT_READ},
        typed(DEFAULTS, ("do", "preview"), name="Order flour", schedule="every weekday at nineish"),
    ),
    Specimen(
        "job-new-refused",
        "A job that the API refuses",
        "/jobs/new",
        {**_SHOWN, "POST /v1/jobs": _REFUSED},
        typed(
            {
                **JOB,
                "headers": {"X Team": "mill"},
                "success": {**JOB["success"], "json": [{"path": "order", "equals": 1}]},
            },
            ("do", "save"),
            url="mill.example.com/orders",
            **{"retry.attempts": "50"},
        ),
    ),
    Specimen(
        "job-new-tried",
        "The request is sent once",
        "/jobs/new",
        {**_SHOWN, "POST /v1/requests/try": TRIED},
        typed({**JOB, "success": DEFAULTS["success"]}, ("do", "try")),
    ),
    Specimen(
        "job-edit-changed",
        "Somebody else changed it meanwhile",
        f"/jobs/{JOB_ID}/edit",
        {**_SHOWN, f"GET /v1/jobs/{JOB_ID}": {**JOB, "schedule": "every day at 8am", "disable_after": 5}},
        typed(JOB, ("do", "save")),
    ),
    Specimen(
        "job-new-viewer",
        "A viewer may not make jobs",
        "/jobs/new",
        {"GET /v1/session": session(permissions=["read"])},
    ),
)
