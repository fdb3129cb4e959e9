"""/auth/...: pages a browser passes through on its way in, by an issuer or by the proxy in front.

Owns the redirects and the cookie that the browser keeps while it is at the issuer. Whatever goes wrong ends on the
sign-in page (of a proof, where one is asked for it) with a code of `core.single_sign_on.Refusal` in `refused`; the log
says more. Must never redirect to what a request says, but to a path of this server.

To link an identity is begun by `POST /v1/me/identities` alone: what a page of another site can make a browser ask for
by going there must give nobody a way into an account.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

import structlog
from fastapi import APIRouter, Query, Request
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from zerocron.actions.single_sign_on import Answer
from zerocron.api.cookies import is_tls
from zerocron.api.people_models import answer_opened
from zerocron.api.services import FromWhere, Services, Use
from zerocron.api.sign_in import signed_in
from zerocron.core.proxies import SIGNED_IN_AS
from zerocron.core.single_sign_on import FLOW_SECONDS_MAX, Purpose, Refusal, SignInRefused, safe_path

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/auth", include_in_schema=False)

T = TypeVar("T")
SECURE_NAME = "__Host-0cron-oidc"
PLAIN_NAME = "0cron-oidc"

Given = Annotated[str | None, Query(max_length=8_192)]


@router.get("/oidc/start")
async def start_at_issuer(
    request: Request, services: Use, visitor: FromWhere, next: Given = None, prove: bool = False
) -> Response:
    """To the issuer. `next`: a path of this server to go on to; `prove`: the issuer is to ask anew who it is."""
    if not _is_gone_to(request):
        return _onwards(services, "/sign-in")
    purpose = Purpose.PROOF if prove else Purpose.SIGN_IN
    bearer = await signed_in(request, services) if prove else None
    begun = await _tried(services.single_sign_on.start(next, visitor, purpose, bearer))
    if isinstance(begun, Refusal):
        return _refused(services, begun, purpose, safe_path(next))
    url, kept = begun
    response = RedirectResponse(url, 303)
    keep_meanwhile(response, request, services, kept)
    return response


@router.get("/oidc/callback")
async def come_back_from_issuer(
    request: Request,
    services: Use,
    visitor: FromWhere,
    code: Given = None,
    state: Given = None,
    iss: Given = None,
    error: Given = None,
) -> Response:
    """From the issuer, signed in there."""
    if not _is_gone_to(request):
        return _onwards(services, "/sign-in")
    kept = cookie_parser(request.headers.get("cookie", "")).get(_cookie_name(request, services))
    flow = services.single_sign_on.begun(kept)
    purpose = Purpose.SIGN_IN if flow is None else flow.purpose
    bearer = None if purpose == Purpose.SIGN_IN else await signed_in(request, services)
    answer = Answer(code, state, iss, error)
    done = await _tried(services.single_sign_on.finish(kept, answer, visitor, bearer))
    if isinstance(done, Refusal):
        response = _refused(services, done, purpose, "/" if flow is None else flow.path)
    else:
        opened, path = done
        response = _onwards(services, path)
        if opened is not None:
            answer_opened(opened, request, response, services.base_url)
    _keep(response, request, services, "", 0)
    return response


@router.get("/header")
async def enter_by_header(request: Request, services: Use, visitor: FromWhere, next: Given = None) -> Response:
    """By the word of the trusted proxy through which this came."""
    if not _is_gone_to(request):
        return _onwards(services, "/sign-in")
    opened = await _tried(services.single_sign_on.enter(request.scope.get(SIGNED_IN_AS), visitor))
    if isinstance(opened, Refusal):
        return _refused(services, opened)
    response = _onwards(services, safe_path(next))
    answer_opened(opened, request, response, services.base_url)
    return response


def _is_gone_to(request: Request) -> bool:
    """Whether somebody goes there, as far as the browser says. An image, a script or a frame on a page of another site
    must open no sign-ins, end none that is under way, and use up nobody's allowance."""
    mode, target = (request.headers.get(f"sec-fetch-{name}") for name in ("mode", "dest"))
    return mode in (None, "navigate") and target in (None, "document")


async def _tried(attempt: Awaitable[T]) -> T | Refusal:
    try:
        return await attempt
    except SignInRefused as refused:
        log.warning("sign_in_refused", refusal=str(refused.refusal), reason=refused.why)
        return refused.refusal


def _refused(services: Services, refusal: Refusal, purpose: Purpose = Purpose.SIGN_IN, path: str = "/") -> Response:
    told = {"refused": str(refusal)}
    if purpose == Purpose.PROOF:
        return _onwards(services, f"/confirm?{urlencode(told | {'next': path})}")
    return _onwards(services, f"/sign-in?{urlencode(told)}")


def _onwards(services: Services, path: str) -> Response:
    """To a path of this server, below its base URL."""
    return RedirectResponse(urlsplit(services.base_url).path.rstrip("/") + path, 303)


def _cookie_name(request: Request, services: Services) -> str:
    return SECURE_NAME if is_tls(request.scope, services.base_url) else PLAIN_NAME


def keep_meanwhile(response: Response, request: Request, services: Services, kept: str) -> None:
    """Let the browser keep this while it is at the issuer."""
    _keep(response, request, services, kept, FLOW_SECONDS_MAX)


def _keep(response: Response, request: Request, services: Services, kept: str, seconds: int) -> None:
    response.set_cookie(
        _cookie_name(request, services),
        kept,
        max_age=seconds,
        path="/",
        secure=is_tls(request.scope, services.base_url),
        httponly=True,
        samesite="lax",
    )
