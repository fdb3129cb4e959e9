"""One job, one run and one execution that look real: the examples of the OpenAPI document and the reference."""

from __future__ import annotations

from typing import Any

_JOB_ID = "01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"
_RUN_ID = "5b1f0d8e-7a43-5c1e-8f0b-3a9d2c6e4b70"

JOB: dict[str, Any] = {
    "id": _JOB_ID,
    "version": 1,
    "name": "Nightly report",
    "schedule": "0 2 * * *",
    "schedule_kind": "cron",
    "schedule_cron": "0 2 * * *",
    "description": "every day at 02:00 (Europe/Paris)",
    "timezone": "Europe/Paris",
    "language": "en",
    "dst": "run_once",
    "day_match": "either",
    "status": "active",
    "url": "https://example.com/hooks/nightly",
    "method": "POST",
    "headers": {"X-Team": "reporting"},
    "body": '{"report":"daily"}',
    "timeout": 30,
    "retry": {"attempts": 3, "backoff": "exponential", "delay": 5},
    "overlap": "skip",
    "catchup": "latest",
    "catchup_window": 86400,
    "on_lost": "rerun",
    "success": {"status": ["2xx"], "body_contains": None, "body_not_contains": None},
    "notify": {},
    "tags": ["reporting"],
    "next_run_at": "2027-01-02T01:00:00Z",
    "last_run": {
        "id": _RUN_ID,
        "status": "succeeded",
        "scheduled_for": "2027-01-01T01:00:00Z",
        "finished_at": "2027-01-01T01:00:00.184Z",
    },
    "stats": {
        "succeeded": 41,
        "failed": 1,
        "skipped": 0,
        "consecutive_failures": 0,
        "average_duration_ms": 176.4,
    },
    "warnings": [],
    "created_at": "2026-11-20T15:04:05.678Z",
    "updated_at": "2026-11-20T15:04:05.678Z",
}

RUN: dict[str, Any] = {
    "id": _RUN_ID,
    "job_id": _JOB_ID,
    "job_version": 1,
    "scheduled_for": "2027-01-01T01:00:00Z",
    "triggered_by": "schedule",
    "status": "succeeded",
    "reason": None,
    "explanation": None,
    "attempts": 1,
    "retry_at": None,
    "lateness_ms": 2,
    "created_at": "2027-01-01T01:00:00.002Z",
    "started_at": "2027-01-01T01:00:00.002Z",
    "finished_at": "2027-01-01T01:00:00.184Z",
    "count": 1,
    "scheduled_until": None,
}

EXECUTION: dict[str, Any] = {
    "id": f"{_RUN_ID}.1",
    "run_id": _RUN_ID,
    "attempt": 1,
    "cause": "first",
    "status": "success",
    "started_at": "2027-01-01T01:00:00.003Z",
    "finished_at": "2027-01-01T01:00:00.181Z",
    "duration_ms": 178.214,
    "timings_ms": {"dns": 3.1, "connect": 12.4, "tls": 21.9, "first_byte": 176.5, "total": 178.214},
    "request": {
        "url": "https://example.com/hooks/nightly",
        "method": "POST",
        "headers": {
            "x-team": "reporting",
            "content-type": "application/json",
            "idempotency-key": _RUN_ID,
            "x-0cron-run-id": _RUN_ID,
            "x-0cron-attempt": "1",
            "x-0cron-scheduled-for": "2027-01-01T01:00:00Z",
            "x-0cron-job-id": _JOB_ID,
            "x-0cron-job-version": "1",
        },
        "body": '{"report":"daily"}',
    },
    "response": {
        "status": 200,
        "headers": {"content-type": "text/plain", "content-length": "4"},
        "body": "done",
        "body_bytes": 4,
        "truncated": False,
        "encoding": "utf-8",
    },
    "error": None,
}
