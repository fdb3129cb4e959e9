"""Errors as `application/problem+json` (RFC 9457).

Owns the one table that maps our errors to HTTP, and the wording of validation errors. Must never show a stack, a
secret or an internal address: an error of ours that nobody foresaw is a 500 with an id, and the log has the rest.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from zerocron.core.errors import (
    Conflict,
    FieldError,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
    ZerocronError,
)

log = structlog.get_logger(__name__)

STATUSES: Mapping[type[ZerocronError], HTTPStatus] = {
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
_HEADERS: Mapping[type[ZerocronError], Mapping[str, str]] = {
    Unauthorized: {"WWW-Authenticate": "Bearer"},
    Unavailable: {"Retry-After": "5"},
}
MEDIA_TYPE = "application/problem+json"
SHOWN_FIELDS_MAX = 20


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    suggestions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    **extensions: str,
) -> Response:
    """A problem response. `type` is `about:blank`: the status says the kind, `detail` what to do."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **extensions,
    }
    if errors:
        content["errors"] = [{"field": fault.field, "message": fault.message} for fault in errors]
    if suggestions:
        content["suggestions"] = list(suggestions)
    return Response(orjson.dumps(content), status, dict(headers or {}), MEDIA_TYPE)


def of_error(error: ZerocronError) -> Response:
    """The response to one of our errors."""
    kind = next(known for known in STATUSES if isinstance(error, known))
    return problem(
        STATUSES[kind],
        error.message,
        errors=error.fields if isinstance(error, Invalid) else (),
        suggestions=error.suggestions if isinstance(error, Invalid) else (),
        headers=_HEADERS.get(kind),
    )


def install(app: FastAPI) -> None:
    """Let every error of the application leave as a problem."""

    @app.exception_handler(ZerocronError)
    async def ours(_request: Request, error: ZerocronError) -> Response:
        return of_error(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        faults = [_fault(item) for item in error.errors()[:SHOWN_FIELDS_MAX]]
        first = faults[0]
        detail = f"{first.field}: {first.message}" if first.field else first.message
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=faults)

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: HTTPException) -> Response:
        detail = {
            404: "There is nothing at this address. GET /openapi.json lists what there is.",
            405: "This address does not take that method.",
        }.get(error.status_code, str(error.detail))
        return problem(error.status_code, detail, headers=error.headers)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        error_id = str(uuid.uuid4())
        log.error("request_failed", error_id=error_id, method=request.method, path=request.url.path, exc_info=error)
        return problem(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "0cron failed to handle this request. The server's log has the details under this id.",
            error_id=error_id,
        )


def _fault(item: Mapping[str, Any]) -> FieldError:
    place = [str(part) for part in item["loc"] if part not in ("body", "query", "path", "header")]
    kind, context = item["type"], item.get("ctx", {})
    message = {
        "extra_forbidden": "there is no such field",
        "missing": "this field is needed",
        "json_invalid": "the body is not valid JSON",
    }.get(kind)
    if message is None:
        raised = context.get("error")
        message = str(raised) if isinstance(raised, ValueError) else str(item["msg"])
    return FieldError(".".join(place), message)
