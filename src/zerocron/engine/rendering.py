"""The request of an attempt: what the job says, and the headers by which a target recognises run and attempt.

Owns what is sent; pure. Must never decide whether it is sent.
"""

from __future__ import annotations

from zerocron.core.exchange import Request
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Definition
from zerocron.engine.attempt import Attempt


def render(attempt: Attempt) -> Request:
    """The request of an attempt, with the headers by which a target recognises run and attempt (promise 3)."""
    run, definition = attempt.run, attempt.definition
    headers = list(definition.headers)
    given = {name.lower() for name, _ in headers}
    body = definition.body.encode() if definition.body is not None else None
    if body is not None and "content-type" not in given:
        headers.append(("Content-Type", _content_type(definition)))
    headers += [
        ("Idempotency-Key", run.id),
        ("X-0cron-Run-Id", run.id),
        ("X-0cron-Attempt", str(run.attempt)),
        ("X-0cron-Scheduled-For", to_rfc3339(run.scheduled_for)),
        ("X-0cron-Job-Id", run.job_id),
        ("X-0cron-Job-Version", str(run.job_version)),
    ]
    return Request(definition.method, definition.url, headers, body, definition.timeout_seconds)


def _content_type(definition: Definition) -> str:
    """What a body without a declared type is taken for: JSON when it looks like an object or a list, else text."""
    looks_like_json = (definition.body or "").lstrip()[:1] in ("{", "[")
    return "application/json" if looks_like_json else "text/plain; charset=utf-8"
