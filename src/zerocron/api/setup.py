"""/v1/setup: the first owner of a server that has nobody yet."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict

from zerocron.api.access import public
from zerocron.api.fields import Input
from zerocron.api.people_models import (
    Email,
    Language,
    LinkToken,
    NewPassword,
    PersonName,
    SessionOut,
    TimezoneName,
    answer_opened,
)
from zerocron.api.services import FromWhere, Use
from zerocron.api.sign_in import TOO_MANY
from zerocron.core.people import DEFAULT_TIMEZONE

router = APIRouter(prefix="/v1", tags=["people"])

NO_LINK = "The link does not work (any more)."


class SetupIn(Input):
    """The first owner."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {
                    "token": "Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX",
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
    opened = await services.people.set_up(
        given.token.get_secret_value(),
        email=given.email,
        name=given.name,
        password=given.password.get_secret_value(),
        language=given.language,
        timezone=given.timezone,
        visitor=visitor,
    )
    return answer_opened(opened, request, response, services.base_url)
