"""/v1/setup, /v1/password-resets, /v1/invitations/...: what a link that works once is for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field

from zerocron.actions.sign_ins import Opened
from zerocron.api.access import public
from zerocron.api.fields import Input, InstantText, Output, instant
from zerocron.api.people_models import (
    Code,
    Email,
    Language,
    LinkToken,
    NewPassword,
    PersonName,
    SessionOut,
    TimezoneName,
    answer_opened,
    revealed,
    session_out,
)
from zerocron.api.services import FromWhere, Use
from zerocron.api.sign_in import REFUSED, TOO_MANY, signed_in
from zerocron.core.access import Role
from zerocron.core.people import DEFAULT_TIMEZONE

router = APIRouter(prefix="/v1", tags=["people"])

EXAMPLE_TOKEN = "Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX"
NO_LINK = "The link does not work (any more)."


class SetupIn(Input):
    """The first owner."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {
                    "token": EXAMPLE_TOKEN,
                    "email": "ada@example.com",
                    "name": "Ada Lovelace",
                    "password": "an example, which is none",
                }
            ]
        },
    )

    token: LinkToken
    email: Email
    name: PersonName
    password: NewPassword
    language: Language = "en"
    timezone: TimezoneName = DEFAULT_TIMEZONE


@router.post(
    "/setup",
    status_code=201,
    response_model=SessionOut,
    responses={404: {"description": NO_LINK}, 429: {"description": TOO_MANY}},
)
@public
async def set_up(given: SetupIn, request: Request, response: Response, visitor: FromWhere, services: Use) -> SessionOut:
    """Become the first owner of this server, by the link that `0cron serve` prints while there is nobody.

    Closed from then on: more people come by invitation.
    """
    opened = await services.entrance.people.set_up(
        given.token.get_secret_value(),
        email=given.email,
        name=given.name,
        password=given.password.get_secret_value(),
        language=given.language,
        timezone=given.timezone,
        visitor=visitor,
    )
    return answer_opened(opened, request, response, services.base_url)


class ResetIn(Input):
    """Who has lost their password."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"email": "ada@example.com"}]})

    email: Email


class NewPasswordIn(Input):
    """A new password, by a link."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"token": EXAMPLE_TOKEN, "new_password": "an example, which is none"}]},
    )

    token: LinkToken
    new_password: NewPassword
    code: Code = None


class LookIn(Input):
    """An invitation to look at."""

    model_config = ConfigDict(hide_input_in_errors=True, json_schema_extra={"examples": [{"token": EXAMPLE_TOKEN}]})

    token: LinkToken


class InvitationOut(Output):
    """What an invitation is for."""

    team: str = Field(description="Its name.", examples=["Operations"])
    email: str = Field(description="Who is invited: the account has this address.", examples=["ada@example.com"])
    role: Role
    has_account: bool = Field(description="Whether there is an account with this address: it is used, none is made.")
    invited_by: str | None = Field(
        description="The name of the person who made it; null when that was a key.", examples=["Grace Hopper"]
    )
    expires_at: InstantText


class AcceptIn(Input):
    """What accepting needs: of a new account a name and a password, of one that is there its password and code, or the
    cookie of a sign-in to it."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [{"token": EXAMPLE_TOKEN, "name": "Ada Lovelace", "password": "an example, which is none"}]
        },
    )

    token: LinkToken
    name: PersonName | None = None
    password: Annotated[NewPassword | None, Field(description="A new one, or that of the account.")] = None
    code: Code = None


@router.post("/password-resets", status_code=202, responses={429: {"description": TOO_MANY}})
@public
async def ask_for_reset(given: ResetIn, visitor: FromWhere, services: Use) -> None:
    """Ask for a new password: a link is sent to the address, if it is somebody's. The answer does not tell.

    Without a mail server nothing is sent; the operator makes a link with `0cron setup-link --reset`.
    """
    await services.entrance.resets.ask(given.email, visitor)


@router.post(
    "/password-resets/use",
    status_code=204,
    responses={401: {"description": REFUSED}, 404: {"description": NO_LINK}, 429: {"description": TOO_MANY}},
)
@public
async def use_reset(given: NewPasswordIn, visitor: FromWhere, services: Use) -> None:
    """Set a new password by the link. A second factor is asked for as ever. Every browser is signed out."""
    await services.entrance.resets.use(
        given.token.get_secret_value(), given.new_password.get_secret_value(), revealed(given.code), visitor
    )


@router.post(
    "/invitations/look",
    response_model=InvitationOut,
    responses={404: {"description": NO_LINK}, 429: {"description": TOO_MANY}},
)
@public
async def look_at_invitation(given: LookIn, visitor: FromWhere, services: Use) -> InvitationOut:
    """What an invitation is for, before it is accepted."""
    found = await services.entrance.invitations.look(given.token.get_secret_value(), visitor)
    return InvitationOut(
        team=found.team,
        email=found.email,
        role=found.role,
        has_account=found.has_account,
        invited_by=found.invited_by,
        expires_at=instant(found.expires_at),
    )


@router.post(
    "/invitations/accept",
    response_model=SessionOut,
    responses={401: {"description": REFUSED}, 404: {"description": NO_LINK}, 429: {"description": TOO_MANY}},
)
@public
async def accept_invitation(
    given: AcceptIn, request: Request, response: Response, visitor: FromWhere, services: Use
) -> SessionOut:
    """Join the team, signed in. Who has signed in with the invited address already needs nothing but the link."""
    found = await services.entrance.invitations.accept(
        given.token.get_secret_value(),
        name=given.name,
        password=revealed(given.password),
        code=revealed(given.code),
        visitor=visitor,
        bearer=await signed_in(request, services),
    )
    if isinstance(found, Opened):
        return answer_opened(found, request, response, services.base_url)
    return session_out(found, request, services.base_url)
