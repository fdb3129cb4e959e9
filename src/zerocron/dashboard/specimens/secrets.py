"""Specimens of the area `secrets`. No value is in here, because no page has one."""

from __future__ import annotations

from typing import Any

from zerocron.dashboard.specimens.kinds import Specimen, page_of, session
from zerocron.dashboard.specimens.monitors import HOSTILE, VIEWER

PROVED = session(elevated_until="2027-03-10T14:40:00Z")
"""The session of somebody who said a moment ago who they are."""


def secret(name: str, hosts: list[str], used: str | None = "2027-03-10T14:30:00Z") -> dict[str, Any]:
    """A secret as the API shows it."""
    return {
        "name": name,
        "allowed_hosts": hosts,
        "created_at": "2026-12-04T09:12:00Z",
        "updated_at": "2027-02-19T16:20:00Z",
        "last_used_at": used,
    }


def job(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """A job as the API shows it; the pages of secrets look at its request."""
    return {
        "id": f"01a2f3a0-0000-7000-8000-0000000000{number:02d}",
        "version": 1,
        "name": name,
        "schedule": "every day at 6am",
        "schedule_kind": "cron",
        "schedule_cron": "0 6 * * *",
        "description": "Every day at 06:00",
        "timezone": "UTC",
        "language": "en",
        "dst": "run_once",
        "day_match": "either",
        "status": "active",
        "status_reason": None,
        "url": "https://api.stripe.com/v1/charges",
        "method": "POST",
        "headers": {},
        "body": None,
        "timeout": 30.0,
        "retry": {"attempts": 1, "backoff": "exponential", "delay": 5.0, "jitter": "full"},
        "overlap": "skip",
        "catchup": "latest",
        "catchup_window": 86_400,
        "on_lost": "rerun",
        "disable_after": 0,
        "redirects": 0,
        "verify_tls": True,
        "sign": False,
        "success": {
            "status": ["2xx"],
            "body_contains": None,
            "body_not_contains": None,
            "body_matches": None,
            "json": [],
            "headers": {},
            "max_duration_ms": None,
        },
        "notify": {
            "channels": None,
            "on": ["failed", "recovered"],
            "after_failures": 1,
            "out_of": None,
            "remind_every": None,
            "late_after": 60,
        },
        "tags": [],
        "next_run_at": "2027-03-11T06:00:00Z",
        "last_run": None,
        "stats": {
            "succeeded": 0,
            "failed": 0,
            "skipped": 0,
            "consecutive_failures": 0,
            "average_duration_ms": None,
        },
        "warnings": [],
        "created_at": "2026-12-04T09:12:00Z",
        "updated_at": "2026-12-04T09:12:00Z",
        **changes,
    }


SECRETS = page_of(
    [
        secret("CRM_PASSWORD", [], None),
        secret("STRIPE_KEY", ["api.stripe.com", "*.stripe.com"]),
        secret("WAREHOUSE_TOKEN", ["warehouse.example.com:8443"], "2027-03-09T02:00:00Z"),
    ]
)
_USED = {"Authorization": "Bearer ${secrets.STRIPE_KEY}"}
JOBS = page_of(
    [
        job(1, "charge subscriptions", headers=_USED),
        job(2, "refund report", headers=_USED, status="paused", description="Every Monday at 08:00"),
        job(3, "something else", url="https://example.com/"),
    ]
)
_ALL: dict[str, Any] = {"GET /v1/secrets": SECRETS, "GET /v1/jobs": JOBS, "GET /v1/session": PROVED}
_WRONG = {
    "title": "Unprocessable Content",
    "status": 422,
    "detail": "The value of a secret has at least 8 characters: a shorter one could not be told from ordinary text in "
    "what targets answer, and so not be masked.",
    "errors": [
        {
            "field": "value",
            "message": "The value of a secret has at least 8 characters: a shorter one could not be told from ordinary "
            "text in what targets answer, and so not be masked.",
        },
        {
            "field": "allowed_hosts",
            "message": "An allowed host is a name or an address without scheme, port or path, such as "
            "api.example.com, or *.example.com for every host below that.",
        },
    ],
}

_HOSTILE = {
    **_ALL,
    "GET /v1/secrets": page_of([secret("STRIPE_KEY", [HOSTILE])]),
    "GET /v1/jobs": page_of([job(1, HOSTILE, description=HOSTILE, headers=_USED)]),
}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("secrets", "Secrets", "/secrets", _ALL),
    Specimen("secrets-empty", "No secret yet", "/secrets", {"GET /v1/secrets": page_of([])}),
    Specimen("secrets-viewer", "Secrets for a viewer", "/secrets", {**_ALL, "GET /v1/session": VIEWER}),
    Specimen("secret", "A secret", "/secrets/STRIPE_KEY", _ALL),
    Specimen("secret-unused", "A secret that no job names", "/secrets/CRM_PASSWORD", _ALL),
    Specimen("secret-form", "A new secret", "/secrets/new", _ALL),
    Specimen("secret-form-unproved", "A new secret, by whom?", "/secrets/new", {"GET /v1/secrets": SECRETS}),
    Specimen(
        "secret-form-refused",
        "A new secret, refused",
        "/secrets/new",
        {**_ALL, "PUT /v1/secrets/SHORT": (422, _WRONG)},
        form=(("name", "SHORT"), ("value", "p4ssw0rd that must not come back"), ("allowed_hosts", "stripe")),
    ),
    Specimen("secret-form-replace", "A new value", "/secrets/STRIPE_KEY/replace", _ALL),
    Specimen("secret-delete", "The end of a secret", "/secrets/STRIPE_KEY/delete", _ALL),
    Specimen("secrets-rotate", "All secrets sealed anew", "/secrets/rotate", _ALL),
    Specimen(
        "secrets-rotated",
        "All secrets were sealed anew",
        "/secrets/rotate",
        {**_ALL, "POST /v1/secrets/rotate": {"secrets": 3}},
        form=(),
    ),
    Specimen("secrets-hostile", "Secrets with odd hosts", "/secrets", _HOSTILE),
    Specimen("secret-hostile", "A secret that an odd job names", "/secrets/STRIPE_KEY/delete", _HOSTILE),
)
