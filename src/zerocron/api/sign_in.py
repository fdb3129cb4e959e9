"""/v1/sign-in, /v1/sign-out, /v1/session: who is using the browser."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from zerocron.api.access import needs, public
from zerocron.api.cookies import clear_cookie, is_secure, token_of
from zerocron.api.fields import Input, Output
from zerocron.api.people_models import Code, Email, Password, SessionOut, answer_opened, revealed, session_out
from zerocron.api.services import FromWhere, Services, Use, Who
from zerocron.core.access import Bearer
from zerocron.core.errors import Unauthorized
from zerocron.core.proxies import SIGNED_IN_AS

router = APIRouter(prefix="/v1", tags=["people"])

TOO_MANY = "This was tried too often. `Retry-After` says when to try again."
REFUSED = "The address, the password or the code is not right. `code` is `code_needed` where only a code is missing."
_COOKIE = {"headers": {"Set-Cookie": {"description": "The sign-in.", "schema": {"type": "string"}}}}


class OidcOut(Output):
    """Another way to sign in."""

    name: str = Field(description="What its button says.", examples=["Google"])


class WaysInOut(Output):
    """How one may sign in here."""

    password: bool
    oidc: OidcOut | None = Field(description="An issuer of OpenID Connect; null where there is none.")
    trusted_header: bool = Field(description="A proxy in front says who somebody is.")
    setup_open: bool = Field(description="Nobody is there yet: a set-up link makes the first owner.")
    mail: bool = Field(description="Whether this server can send mails, such as links for new passwords.")
    is_secure: bool = Field(description="Whether the request came over TLS, or from this machine.")


class SignInIn(Input):
    """What somebody gives to sign in."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"email": "ada@example.com", "password": "an example, which is none"}]},
    )

    email: Email
    password: Password
    code: Code = None


class ProofIn(Input):
    """A fresh proof of who one is: the password, or a code."""

    model_config = ConfigDict(
        hide_input_in_errors=True, json_schema_extra={"examples": [{"password": "an example, which is none"}]}
    )

    password: Annotated[Password | None, Field(description="The password.")] = None
    code: Code = None


class TeamChoiceIn(Input):
    """The team to look at."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"team_id": "00000000-0000-7000-8000-000000000001"}]})

    team_id: str = Field(min_length=1, max_length=36, description="One of `teams`.")


@router.get("/sign-in", response_model=WaysInOut)
@public
async def show_ways_in(request: Request, services: Use) -> WaysInOut:
    """How one may sign in here. Needs neither a key nor a sign-in."""
    issuer_name = services.single_sign_on.issuer_name
    return WaysInOut(
        password=True,
        oidc=None if issuer_name is None else OidcOut(name=issuer_name),
        trusted_header=services.single_sign_on.takes_header,
        setup_open=await services.entrance.people.is_setup_open(),
        mail=services.entrance.mailing.can_mail,
        is_secure=is_secure(request.scope, services.base_url),
    )


@router.post(
    "/sign-in",
    response_model=SessionOut,
    responses={200: _COOKIE, 401: {"description": REFUSED}, 429: {"description": TOO_MANY}},
)
@public
async def sign_in(
    given: SignInIn, request: Request, response: Response, visitor: FromWhere, services: Use
) -> SessionOut:
    """Sign in. For browsers, on pages of this server; programs use an API key.

    Who is not there and who gives a wrong password get the same answer.
    """
    opened = await services.entrance.sign_ins.sign_in(
        given.email, given.password.get_secret_value(), revealed(given.code), visitor
    )
    return answer_opened(opened, request, response, services.base_url)


@router.post("/sign-out", status_code=204)
@needs(None)
async def sign_out(request: Request, response: Response, who: Who, services: Use) -> None:
    """Sign out here. The cookie is worth nothing any more, on other nodes within a second."""
    await services.entrance.sign_ins.end(who)
    clear_cookie(response, request.scope, services.base_url)


@router.get("/session", response_model=SessionOut)
@needs(None)
async def show_session(request: Request, who: Who, services: Use) -> SessionOut:
    """Who is asking, with which team, and what they may do."""
    return session_out(await services.entrance.sign_ins.session(who), request, services.base_url)


@router.post(
    "/session/elevate",
    response_model=SessionOut,
    responses={200: _COOKIE, 401: {"description": REFUSED}, 429: {"description": TOO_MANY}},
)
@needs(None)
async def elevate_session(given: ProofIn, request: Request, response: Response, who: Who, services: Use) -> SessionOut:
    """Prove again who you are, by your password or a code: for ten minutes what asks for it may be done."""
    opened = await services.entrance.sign_ins.elevate(
        who,
        revealed(given.password),
        revealed(given.code),
    )
    return answer_opened(opened, request, response, services.base_url)


@router.post(
    "/session/team", response_model=SessionOut, responses={404: {"description": "The person is in no such team."}}
)
@needs(None)
async def choose_team(given: TeamChoiceIn, request: Request, who: Who, services: Use) -> SessionOut:
    """Look at another team of yours. All tabs of the browser do."""
    return session_out(await services.entrance.sign_ins.look_at(who, given.team_id), request, services.base_url)


async def signed_in(request: Request, services: Services) -> Bearer | None:
    """Who uses the browser, at an address where the gate asks nobody for it."""
    token = token_of(request.scope, services.base_url)
    if token is None:
        return None
    try:
        bearer = await services.entrance.sign_ins.recognise(token, request.scope.get(SIGNED_IN_AS))
    except Unauthorized:
        return None
    address = request.client.host if request.client else ""
    return dataclasses.replace(bearer, actor=dataclasses.replace(bearer.actor, address=address))
