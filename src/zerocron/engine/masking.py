"""An exchange without the values of the secrets it used.

Owns the step between the answer of a target and everything that is made of it. Rules, records and sentences see an
exchange as it was masked here: what somebody may read or test of an answer never depends on a value. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from zerocron.core.bodies import as_text
from zerocron.core.exchange import Failure, Outcome, Request, Response
from zerocron.core.model import BODY_BYTES_MAX
from zerocron.core.redaction import UNSEARCHABLE, Redactor


def masked(request: Request, outcome: Outcome, redactor: Redactor) -> tuple[Request, Outcome]:
    """The request as it was sent and what came of it, both masked."""
    answer, failure = outcome.response, outcome.failure
    return (
        dataclasses.replace(
            request,
            url=redactor.text(request.url),
            headers=_masked_headers(request.headers, redactor),
            body=None if request.body is None else redactor.text(request.body.decode()).encode(),
        ),
        dataclasses.replace(
            outcome,
            response=None if answer is None else _masked_response(answer, redactor, cut=answer.truncated),
            failure=None if failure is None else _masked_failure(failure, redactor),
            hops=tuple(dataclasses.replace(hop, url=redactor.text(hop.url)) for hop in outcome.hops),
        ),
    )


def _masked_headers(headers: Iterable[tuple[str, str]], redactor: Redactor) -> tuple[tuple[str, str], ...]:
    return tuple((redactor.text(name), redactor.text(value)) for name, value in headers)


def _masked_failure(failure: Failure, redactor: Redactor) -> Failure:
    answer = failure.response
    return dataclasses.replace(
        failure,
        message=redactor.sentence(failure.message),
        # Of an answer that failed nobody knows where it would have ended.
        response=None if answer is None else _masked_response(answer, redactor, cut=True),
    )


def _masked_response(response: Response, redactor: Redactor, *, cut: bool) -> Response:
    headers = _masked_headers(response.headers, redactor)
    body = _masked_body(response, redactor, cut=cut)
    if body == response.body:
        return dataclasses.replace(response, headers=headers)
    return dataclasses.replace(
        response,
        headers=tuple((name, UNSEARCHABLE if name.lower() == "content-length" else value) for name, value in headers),
        body=body[:BODY_BYTES_MAX],
        body_bytes=len(body),  # the size of what came would tell how long the value is
        truncated=response.truncated or len(body) > BODY_BYTES_MAX,
    )


def _masked_body(response: Response, redactor: Redactor, *, cut: bool) -> bytes:
    text = as_text(response.body, response.content_type, truncated=response.truncated)
    if text is None:
        return redactor.data(response.body, cut=cut)
    masked = redactor.text(text, cut=cut)
    return response.body if masked == text else masked.encode()
