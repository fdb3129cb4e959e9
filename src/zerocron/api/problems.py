"""Errors as `application/problem+json` (RFC 9457).

Owns the one table that maps our errors to HTTP. Must never show a stack, a secret or an internal address: an error of
ours that nobody foresaw is a 500 with an id, and the log has the rest.
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
from fastapi.routing import iter_route_contexts
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from zerocron.api.fields import Output
from zerocron.api.wording import fault_of
from zerocron.core.errors import (
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    Unclear,
    ZerocronError,
)

log = structlog.get_logger(__name__)

STATUSES: Mapping[type[ZerocronError], HTTPStatus] = {
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    TooMany: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
RETRY_AFTER = {"Retry-After": "5"}
_HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: RETRY_AFTER,
}
_TITLES = {413: "Content Too Large", 414: "URI Too Long", 422: "Unprocessable Content"}
"""As RFC 9110 has them; older Pythons know older names."""

MEDIA_TYPE = "application/problem+json"
SHOWN_FAULTS_MAX = 20


class Fault(Output):
    """One field of the request, and what to do about it."""

    field: str = Field(description="Where it is: `url`, `retry.attempts`, `headers.X-Token`, `tags.0`.")
    message: str = Field(description="What is wrong with it and what would be right.")


class Problem(Output):
    """An error (RFC 9457). `detail` says what to do."""

    type: str = Field(description="Always `about:blank`: `status` says the kind.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What went wrong and what to do, for a person.")
    errors: list[Fault] = Field(default=[], description="The fields at fault, at most 20.")
    suggestions: list[str] = Field(default=[], description="Inputs that would be accepted instead.")
    code: str = Field(
        default="",
        description="What a program can do about it. `reauthenticate` with a 403: the same request succeeds once the "
        "person has proved anew who they are. `code_needed` with a 401: a code of the second factor, too. With a 409, "
        "of an `Idempotency-Key`: `key_reused` for another request, `made_before` what is shown only once, "
        "`mail_not_known` where nobody can say whether a mail went out, or `made_and_gone` since.",
    )
    error_id: str = Field(default="", description="With a 500: the id under which the server's log has the rest.")


def title_of(status: int) -> str:
    """The status in words."""
    return _TITLES.get(status) or HTTPStatus(status).phrase


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
        "title": title_of(status),
        "status": status,
        "detail": detail,
        **extensions,
    }
    if errors:
        content["errors"] = [{"field": fault.field, "message": fault.message} for fault in errors[:SHOWN_FAULTS_MAX]]
    if suggestions:
        content["suggestions"] = list(suggestions)
    return Response(orjson.dumps(content), status, dict(headers or {}), MEDIA_TYPE)


AWAY = "The database cannot be used now. The same request may succeed later."
UNCLEAR = (
    "The database's answer was lost: whether the change was made is not known. Look before you repeat it, or repeat it "
    "with the same Idempotency-Key."
)


def of_error(error: ZerocronError) -> Response:
    """The response to one of our errors."""
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    message = error.message
    if isinstance(error, Unavailable):
        log.warning("unavailable", reason=message)  # the driver's words may name files and hosts: for the log only
        message = UNCLEAR if isinstance(error, Unclear) else AWAY
    headers = _HEADERS.get(status)
    if isinstance(error, TooMany):
        headers = {"Retry-After": str(error.retry_after_seconds)}
    return problem(
        status,
        message,
        errors=error.fields if isinstance(error, Invalid) else (),
        suggestions=error.suggestions if isinstance(error, Invalid) else (),
        headers=headers,
        **({"code": error.code} if isinstance(error, Conflict | Forbidden | Unauthorized) and error.code else {}),
    )


def unforeseen(scope: Scope, error: Exception) -> Response:
    """The response to a fault of ours. The log gets the stack, the client an id to ask for it by."""
    error_id = str(uuid.uuid4())
    log.error("request_failed", error_id=error_id, method=scope["method"], path=scope["path"], exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "0cron failed to handle this request. The server's log has the details under this error_id.",
        headers={"X-Error-Id": error_id},
        error_id=error_id,
    )


def install(app: FastAPI) -> None:
    """Let the errors of the routes leave as problems. What is left over is the gate's."""

    @app.exception_handler(ZerocronError)
    async def ours(_request: Request, error: ZerocronError) -> Response:
        return of_error(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        faults = [fault_of(item) for item in error.errors()[:SHOWN_FAULTS_MAX]]
        return of_error(Invalid(_summary(faults[0]), fields=[fault for fault in faults if fault.field]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == HTTPStatus.NOT_FOUND:
            return problem(error.status_code, _nothing_here(request.url.path))
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = ", ".join(sorted(_methods_at(app.routes, request.scope)))
            return problem(
                error.status_code, f"This address takes {allowed}, not {request.method}.", headers={"Allow": allowed}
            )
        return problem(error.status_code, str(error.detail), headers=error.headers)


def _summary(fault: FieldError) -> str:
    return f"{fault.field}: {fault.message}" if fault.field else fault.message


def _nothing_here(path: str) -> str:
    if path.endswith("/") and path.startswith("/v1/"):
        return "There is nothing at this address. Leave out the slash at its end."
    return "There is nothing at this address. GET /openapi.json lists what there is."


def _methods_at(routes: Sequence[BaseRoute], scope: Scope) -> set[str]:
    """Every method that some route takes at this path."""
    found: set[str] = set()
    for route in iter_route_contexts(routes):
        regex = getattr(route, "path_regex", None)
        if regex is not None and route.methods and regex.match(scope["path"]):
            found |= route.methods
    return found | {"HEAD"} if "GET" in found else found
