"""What came of an attempt: the answer against the job's success rule, and the record of both.

Owns the verdict of an attempt, not of its run (`core.lifecycle` decides that). Where the request held secrets it judges
what `engine.masking` left of the exchange: a rule that saw the answer as it came would tell whoever may edit the job,
one question after the other, what the value is. Pure: it sends and writes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import chain

from zerocron.core.bodies import as_text
from zerocron.core.exchange import Hop, Outcome, Request, Response, Timings
from zerocron.core.model import Execution, ExecutionStatus, Instant, Reason, Run, SuccessRule
from zerocron.core.redaction import Redactor
from zerocron.core.retry import refuses_retry, retry_after_ms
from zerocron.core.success import broken_rule
from zerocron.engine.attempt import Attempt, Result
from zerocron.engine.masking import masked

MATCHED_AT_ONCE_BYTES_MAX = 1_024
"""A longer body is matched with a regular expression beside the event loop: a hostile one takes 10 us a byte."""

JUDGED_AT_ONCE_BYTES_MAX = 4_096
"""A longer exchange is masked, or read as JSON, beside it: full of escapes it takes 5 us a byte."""


def takes_long(rule: SuccessRule, request: Request, outcome: Outcome, redactor: Redactor | None) -> bool:
    """Whether `judge` might hold others up."""
    if redactor is None and not rule.json and rule.body_matches is None:
        return False
    answer = outcome.response or (outcome.failure.response if outcome.failure else None)
    size = 0 if answer is None else len(answer.body)
    if rule.body_matches is not None and size > MATCHED_AT_ONCE_BYTES_MAX:
        return True
    if redactor is not None:
        texts = [request.url, *(hop.url for hop in outcome.hops)]
        texts += chain.from_iterable(chain(request.headers, () if answer is None else answer.headers))
        size += len(request.body or b"") + sum(map(len, texts))
    return size > JUDGED_AT_ONCE_BYTES_MAX


def judge(
    attempt: Attempt,
    request: Request,
    outcome: Outcome,
    *,
    started_at: Instant,
    now: Instant,
    redactor: Redactor | None = None,
) -> Result:
    """Make an attempt's record of what came of it, by the job's success rule. `redactor` masks the secrets it used."""
    if redactor is not None:
        request, outcome = masked(request, outcome, redactor)
    response = outcome.response or (outcome.failure.response if outcome.failure else None)
    body, encoding = _kept(response) if response is not None else (None, "utf-8")
    kind = message = None
    status = ExecutionStatus.SUCCESS
    if outcome.failure is not None:
        kind, message = outcome.failure.kind, outcome.failure.message
        status = ExecutionStatus.TIMEOUT if outcome.failure.timed_out else ExecutionStatus.ERROR
    elif response is not None:
        readable = body if encoding == "utf-8" else None
        rule = attempt.definition.success
        message = broken_rule(rule, response.status, readable, response.headers, outcome.timings.total)
        if message is not None:
            kind, status = "rule", ExecutionStatus.FAILED
    execution = execution_of(
        attempt.run,
        status=status,
        started_at=started_at,
        finished_at=max(now, started_at),
        duration_ms=round(outcome.timings.total, 3),
        timings=_timings_record(outcome.timings),
        request=_request_record(request, outcome.hops),
        request_body=None if request.body is None else request.body.decode(),
        response=None if response is None else _response_record(response, encoding),
        response_body=body,
        error_kind=kind,
        error_message=message,
    )
    if kind is None:
        return Result(attempt.run, attempt.definition.retry, execution)
    asked_ms = None if response is None else _asked_to_wait(response, now)
    return Result(attempt.run, attempt.definition.retry, execution, asked_ms, _no_retry(outcome, response))


def _no_retry(outcome: Outcome, response: Response | None) -> Reason | None:
    """Why there is no use in another attempt after a failed one, if there is none."""
    if response is not None and refuses_retry(response.status, response.headers):
        return Reason.RETRY_REFUSED
    if outcome.failure is not None:
        return Reason.RETRY_USELESS if outcome.failure.permanent else None
    # What redirects has taken the request already, maybe carried it out, and would say the same again.
    return Reason.RETRY_USELESS if response is not None and 300 <= response.status < 400 else None


def execution_of(run: Run, **outcome: object) -> Execution:
    """The record of an attempt of this run, with these fields."""
    fields: dict[str, object] = {"duration_ms": 0} | outcome
    return Execution(
        run_id=run.id,
        scheduled_for=run.scheduled_for,
        attempt=run.attempt,
        job_id=run.job_id,
        team_id=run.team_id,
        session_id=run.session_id or "",
        cause=run.cause,
        **fields,  # type: ignore[arg-type]
    )


def _request_record(request: Request, hops: Sequence[Hop]) -> dict[str, object]:
    record: dict[str, object] = {"url": request.url, "method": request.method, "headers": request.headers}
    if hops:
        record["hops"] = [[hop.method, hop.url, hop.status, hop.with_body] for hop in hops]
    return record


def _timings_record(timings: Timings) -> dict[str, float | None]:
    return {
        "dns": _milliseconds(timings.dns),
        "connect": _milliseconds(timings.connect),
        "tls": _milliseconds(timings.tls),
        "first_byte": _milliseconds(timings.first_byte),
        "total": _milliseconds(timings.total),
    }


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _response_record(response: Response, encoding: str) -> dict[str, object]:
    return {
        "status": response.status,
        "headers": response.headers,
        "body_bytes": response.body_bytes,
        "truncated": response.truncated,
        "encoding": encoding,
    }


def _asked_to_wait(response: Response, now: Instant) -> int | None:
    for name, value in response.headers:
        if name.lower() == "retry-after":
            return retry_after_ms(value, now)
    return None


def _kept(response: Response) -> tuple[str, str]:
    """(the body as it is kept, its encoding): text where it is some, else base64."""
    text = as_text(response.body, response.content_type, truncated=response.truncated)
    return (text, "utf-8") if text is not None else (base64.b64encode(response.body).decode(), "base64")
