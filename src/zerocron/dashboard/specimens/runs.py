"""Specimens of the area `runs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerocron.core.model import REASON_TEXTS, Reason
from zerocron.dashboard.specimens.job_form import JOB, JOB_ID
from zerocron.dashboard.specimens.kinds import Specimen, session

RUN_ID = "2b9c1c52-0d2e-5f41-9c1a-6d6b1f0a4c11"
SLOT = "2027-03-10T08:00:00Z"
HEADERS = {
    "host": "mill.example.com",
    "authorization": "Bearer ${secrets.STRIPE_KEY}",
    "content-type": "application/json",
    "idempotency-key": RUN_ID,
    "x-0cron-run-id": RUN_ID,
    "x-0cron-scheduled-for": SLOT,
    "user-agent": "0cron/1.0",
}
SENT: dict[str, Any] = {
    "url": "https://mill.example.com/orders",
    "method": "POST",
    "headers": HEADERS,
    "body": '{\n  "flour": "T65",\n  "kilograms": 120,\n  "note": "for Ada\'s shop"\n}',
}
ANSWER: dict[str, Any] = {
    "status": 201,
    "headers": {
        "content-type": "application/json",
        "date": "Wed, 10 Mar 2027 08:00:40 GMT",
        "location": "/orders/8841",
        "server": "mill/2.4",
    },
    "body": '{"order":{"id":8841,"state":"accepted","lines":[{"flour":"T65","price":1.10}]},"queued":true}',
    "body_bytes": 96,
    "truncated": False,
    "encoding": "utf-8",
}


def execution(attempt: int, **changes: Any) -> dict[str, Any]:
    """An execution that went well, with changes."""
    return {
        "id": f"{RUN_ID}.{attempt}",
        "run_id": RUN_ID,
        "attempt": attempt,
        "cause": "first" if attempt == 1 else "retry",
        "status": "success",
        "started_at": "2027-03-10T08:00:00.041Z",
        "finished_at": "2027-03-10T08:00:00.353Z",
        "duration_ms": 312.4,
        "timings_ms": {"dns": 8.2, "connect": 21.7, "tls": 48.9, "first_byte": 296.0, "total": 312.4},
        "request": SENT,
        "hops": [],
        "response": ANSWER,
        "error": None,
        **changes,
    }


def run(*executions: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A run of the job with these executions, and changes."""
    last = executions[-1] if executions else None
    reason = changes.get("reason")
    return {
        "id": RUN_ID,
        "job_id": JOB_ID,
        "job_version": 3,
        "scheduled_for": SLOT,
        "triggered_by": "schedule",
        "status": "succeeded",
        "explanation": None if reason is None else REASON_TEXTS[Reason(reason)],
        "attempts": len(executions),
        "retry_at": None,
        "lateness_ms": 41 if executions else None,
        "created_at": SLOT,
        "started_at": executions[0]["started_at"] if executions else None,
        "finished_at": last["finished_at"] if last else "2027-03-10T08:00:00.020Z",
        "count": 1,
        "scheduled_until": None,
        "executions": list(executions),
        **changes,
        "reason": reason,
    }


def answers_of(shown: Mapping[str, Any], *more: tuple[str, Any]) -> dict[str, Any]:
    """What the API answers about a run and its job."""
    whole = {f"GET /v1/executions/{each['id']}": each for each in shown["executions"]}
    return {f"GET /v1/runs/{RUN_ID}": shown, f"GET /v1/jobs/{JOB_ID}": JOB, **whole, **dict(more)}


_TIMED_OUT = execution(
    1,
    status="timeout",
    finished_at="2027-03-10T08:00:02.043Z",
    duration_ms=2_002.0,
    timings_ms={"dns": 8.2, "connect": 21.7, "tls": 48.9, "first_byte": None, "total": 2_002.0},
    response=None,
    error={
        "kind": "timeout",
        "message": "The request did not finish within 2 s: the target was reached, but did not answer.",
    },
)
_REFUSED = execution(
    2,
    status="failed",
    started_at="2027-03-10T08:00:12.050Z",
    finished_at="2027-03-10T08:00:12.964Z",
    duration_ms=914.0,
    timings_ms={"dns": 1.1, "connect": 20.2, "tls": 44.0, "first_byte": 840.5, "total": 914.0},
    response={
        "status": 503,
        "headers": {"content-type": "text/html", "retry-after": "20"},
        "body": "<!doctype html>\n<title>The mill is closed</title>\n<script>alert(1)</script>\n<h1>Back soon</h1>\n",
        "body_bytes": 94,
        "truncated": False,
        "encoding": "utf-8",
    },
    error={"kind": "rule", "message": "The status was 503; the job accepts 2xx, 409."},
)
_AT_LAST = execution(3, started_at="2027-03-10T08:00:40.010Z", finished_at="2027-03-10T08:00:40.322Z")
_REDIRECTED = execution(
    1,
    hops=[
        {"method": "GET", "url": "http://mill.example.com/health", "status": 308, "with_body": False},
        {"method": "GET", "url": "https://mill.example.com/health", "status": 200, "with_body": False},
    ],
    request={
        "url": "http://mill.example.com/health",
        "method": "GET",
        "headers": {"user-agent": "0cron/1.0"},
        "body": None,
    },
    response={
        "status": 200,
        "headers": {"content-type": "image/png", "set-cookie": "a=1; Path=/\nb=2; Path=/"},
        "body": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" * 3,
        "body_bytes": 1_310_720,
        "truncated": True,
        "encoding": "base64",
    },
)

_RETRIED = run(_TIMED_OUT, _REFUSED, _AT_LAST)
_FAILED = run(_TIMED_OUT, _REFUSED, status="failed", reason="attempts_exhausted")
_RETRYING = run(
    _TIMED_OUT, _REFUSED, status="retrying", retry_at="2027-03-10T14:32:52Z", finished_at=None, lateness_ms=41
)
_RUNNING = run(status="running", finished_at=None, started_at=SLOT, attempts=1, lateness_ms=12)
_SKIPPED = run(status="skipped", reason="missed", count=12, scheduled_until="2027-03-10T10:45:00Z")
_LOST = run(
    execution(
        1,
        status="error",
        response=None,
        request=None,
        timings_ms={"dns": None, "connect": None, "tls": None, "first_byte": None, "total": None},
        error={
            "kind": "node_lost",
            "message": "The process that ran it stopped before the result was recorded; the request may have been "
            "sent.",
        },
    ),
    status="lost",
    reason="node_lost",
)
_PAUSED = (409, {"title": "Conflict", "status": 409, "detail": "The job is paused. Resume it before triggering it."})

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("run-retried", "A run that succeeded at last", f"/runs/{RUN_ID}", answers_of(_RETRIED), is_shown=True),
    Specimen("run-attempt", "An earlier attempt of a run", f"/runs/{RUN_ID}?attempt=2", answers_of(_RETRIED)),
    Specimen("run-failed", "A run that failed", f"/runs/{RUN_ID}", answers_of(_FAILED)),
    Specimen("run-succeeded", "A run that succeeded at once", f"/runs/{RUN_ID}", answers_of(run(execution(1)))),
    Specimen("run-raw", "Bodies as they came", f"/runs/{RUN_ID}?raw=1", answers_of(run(execution(1)))),
    Specimen("run-redirected", "A run with redirects and bytes", f"/runs/{RUN_ID}", answers_of(run(_REDIRECTED))),
    Specimen("run-retrying", "A run that waits for its next attempt", f"/runs/{RUN_ID}", answers_of(_RETRYING)),
    Specimen("run-running", "A run that is under way", f"/runs/{RUN_ID}", answers_of(_RUNNING)),
    Specimen("run-skipped", "Slots that did not run", f"/runs/{RUN_ID}", answers_of(_SKIPPED)),
    Specimen("run-lost", "A run whose server was lost", f"/runs/{RUN_ID}", answers_of(_LOST)),
    Specimen(
        "run-viewer",
        "A run as a viewer sees it, of a job that was deleted",
        f"/runs/{RUN_ID}",
        {
            **answers_of(run(execution(1), triggered_by="manual")),
            f"GET /v1/jobs/{JOB_ID}": (404, {"title": "Not Found", "status": 404, "detail": "There is no such job."}),
            "GET /v1/session": session(permissions=["read"]),
        },
    ),
    Specimen(
        "run-replay-refused",
        "A paused job cannot be run again",
        f"/runs/{RUN_ID}/replay",
        answers_of(_FAILED, (f"POST /v1/jobs/{JOB_ID}/trigger", _PAUSED)),
        form=(),
    ),
    Specimen("outcomes", "What can become of a run", "/outcomes"),
)
