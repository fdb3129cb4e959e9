"""What is kept of an attempt, without the values of the secrets it used.

Owns the last step before a record leaves for the ledger. The answer was judged as it came; what is kept of it and of
the request is masked here. Pure.
"""

from __future__ import annotations

import base64
import dataclasses

from zerocron.core.exchange import Request
from zerocron.core.model import BODY_BYTES_MAX, Execution
from zerocron.core.redaction import Redactor
from zerocron.engine.attempt import Result

MASKED_AT_ONCE_CHARACTERS_MAX = 65_536
"""A longer record is masked in a thread: it takes milliseconds, in which other runs would be late."""


def is_long(result: Result) -> bool:
    execution = result.execution
    return len(execution.request_body or "") + len(execution.response_body or "") > MASKED_AT_ONCE_CHARACTERS_MAX


def masked(result: Result, request: Request, redactor: Redactor) -> Result:
    """The same result, its record masked. `request` as it was sent."""
    execution = result.execution
    response, response_body = _masked_response(execution, redactor)
    return dataclasses.replace(
        result,
        execution=dataclasses.replace(
            execution,
            request=redactor.anything(execution.request),
            request_body=None if request.body is None else redactor.text(request.body.decode()),
            response=response,
            response_body=response_body,
            error_message=None if execution.error_message is None else redactor.sentence(execution.error_message),
        ),
    )


def _masked_response(execution: Execution, redactor: Redactor) -> tuple[dict[str, object] | None, str | None]:
    response, body = redactor.anything(execution.response), execution.response_body
    if response is None or body is None:
        return response, body
    # Of an answer that failed nobody knows where it would have ended.
    cut = bool(response.get("truncated")) or execution.error_kind not in (None, "rule")
    if response.get("encoding") == "base64":
        data = redactor.data(base64.b64decode(body), cut=cut)
        response["truncated"] = response.get("truncated") or len(data) > BODY_BYTES_MAX
        return response, base64.b64encode(data[:BODY_BYTES_MAX]).decode()
    text = redactor.text(body, cut=cut)
    if len(text) > max(BODY_BYTES_MAX, len(body)):  # masks may be longer than what they hide
        response["truncated"] = True
        text = text[:BODY_BYTES_MAX]
    return response, text
