"""/v1/me: what a person may change about themselves."""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Path, Request, Response
from pydantic import ConfigDict, Field, SecretStr

from zerocron.actions.second_factors import of_person
from zerocron.actions.sign_ins import IDLE_MS
from zerocron.api.access import needs
from zerocron.api.fields import (
    Cursor,
    Identifier,
    Input,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    page_of,
    read_cursor,
)
from zerocron.api.people_models import (
    CODE_CHARACTERS_MAX,
    Language,
    NewPassword,
    Password,
    PersonName,
    PersonOut,
    TimezoneName,
    person_out,
    revealed,
    secret_text,
)
from zerocron.api.services import FromWhere, Use, Who
from zerocron.api.sign_in import TOO_MANY
from zerocron.api.single_sign_on import keep_meanwhile
from zerocron.core.errors import Conflict, TooMany
from zerocron.core.single_sign_on import Purpose, Refusal, SignInRefused
from zerocron.storage.ledger.sign_ins import SignIn

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/v1/me", tags=["people"])


class MeIn(Input):
    """What to change; what is left out, or null, stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"timezone": "Europe/Paris"}]})

    name: PersonName | None = None
    language: Language | None = None
    timezone: TimezoneName | None = None


class PasswordIn(Input):
    """A new password."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"current_password": "an example", "new_password": "another example"}]},
    )

    current_password: Annotated[Password | None, Field(description="Null only for who has none yet.")] = None
    new_password: NewPassword


class ConfirmationIn(Input):
    """The first code of an authenticator app."""

    model_config = ConfigDict(hide_input_in_errors=True, json_schema_extra={"examples": [{"code": "123456"}]})

    code: Annotated[SecretStr, *secret_text(CODE_CHARACTERS_MAX, "The code that the app shows.", "123456")]


class EnrolmentOut(Output):
    """What an authenticator app needs. It counts once a code of it was given."""

    secret: str = Field(description="The seed, in base 32, to be typed where no camera is.")
    uri: str = Field(description="The same as the app reads it: `otpauth://...`.")
    qr_svg: str = Field(description="The URI as a QR code, an SVG image.")


class RecoveryCodesOut(Output):
    """Codes for when the authenticator app is lost: each works once. They are shown this once and never again."""

    recovery_codes: list[str] = Field(examples=[["4kd8-w2pn-7xq3-hm5t"]])


class SignInOut(Output):
    """A browser in which the person has signed in."""

    id: Identifier
    method: str = Field(description="How: `password`, `setup`, `invitation`, `oidc` or `trusted-header`.")
    address: str = Field(description="From where, at the time.", examples=["203.0.113.7"])
    user_agent: str = Field(description="What the browser calls itself.")
    created_at: InstantText
    last_seen_at: InstantText = Field(description="Written down within 15 seconds.")
    expires_at: InstantText = Field(description="When it ends if it is not used meanwhile.")
    is_current: bool = Field(description="Whether it is the one of this request.")


class SignInPage(Output):
    """Some of the sign-ins."""

    items: list[SignInOut]
    next_cursor: NextCursor


class IdentityOut(Output):
    """Who you are at an issuer of OpenID Connect."""

    id: str = Field(examples=["6f1d0c5b2a7e4f8893b1c0d2e4f6a8b0"])
    issuer: str = Field(examples=["https://accounts.google.com"])
    subject: str = Field(description="What the issuer calls you, for ever.", examples=["110169484474386276334"])
    created_at: InstantText = Field(description="When it was linked.")
    is_in_use: bool = Field(description="Whether its issuer is this server's now, so that you can come in by it.")
    is_last_way_in: bool = Field(description="Without it you could not come in any more, so it stays.")


class IdentitiesOut(Output):
    """Your identities, the oldest first."""

    items: list[IdentityOut]


class LinkingOut(Output):
    """Where to go on to."""

    url: str = Field(description="A page of the issuer. The browser that asked comes back from it within ten minutes.")


@router.patch("", response_model=PersonOut)
@needs(None)
async def edit_me(given: MeIn, who: Who, services: Use) -> PersonOut:
    """Change your name, language or time zone."""
    return person_out(
        await services.entrance.people.edit(who, name=given.name, language=given.language, timezone=given.timezone)
    )


@router.put("/password", status_code=204, responses={429: {"description": TOO_MANY}})
@needs(None, elevated=True)
async def change_my_password(given: PasswordIn, who: Who, services: Use) -> None:
    """Change your password. Every other browser in which you have signed in is signed out."""
    await services.entrance.people.change_password(
        who,
        revealed(given.current_password),
        given.new_password.get_secret_value(),
    )


@router.post(
    "/totp",
    response_model=EnrolmentOut,
    responses={409: {"description": "There is one already, or the server has no master key to seal it with."}},
)
@needs(None, elevated=True)
async def begin_totp(who: Who, services: Use) -> EnrolmentOut:
    """Begin to set up a second factor: an authenticator app. It is asked for once you have confirmed it."""
    made = await services.entrance.second_factors.begin(who)
    return EnrolmentOut(secret=made.secret, uri=made.uri, qr_svg=made.qr_svg)


@router.post(
    "/totp/confirm",
    response_model=RecoveryCodesOut,
    responses={409: {"description": "Nothing was begun."}, 429: {"description": TOO_MANY}},
)
@needs(None, elevated=True)
async def confirm_totp(given: ConfirmationIn, who: Who, services: Use) -> RecoveryCodesOut:
    """From now on the second factor is asked for. Every other browser in which you have signed in is signed out."""
    codes = await services.entrance.second_factors.confirm(who, given.code.get_secret_value())
    services.entrance.sign_ins.forget(who.person_id or "")
    return RecoveryCodesOut(recovery_codes=codes)


@router.delete("/totp", status_code=204, responses={404: {"description": "There is none."}})
@needs(None, elevated=True)
async def remove_totp(who: Who, services: Use) -> None:
    """Take the second factor off. Every other browser in which you have signed in is signed out."""
    await services.entrance.second_factors.remove(who)
    services.entrance.sign_ins.forget(who.person_id or "")


@router.post(
    "/recovery-codes", response_model=RecoveryCodesOut, responses={409: {"description": "There is no second factor."}}
)
@needs(None, elevated=True)
async def renew_recovery_codes(who: Who, services: Use) -> RecoveryCodesOut:
    """Ten new recovery codes; those before are worth nothing any more."""
    return RecoveryCodesOut(recovery_codes=await services.entrance.second_factors.renew_recovery_codes(who))


@router.get("/sign-ins", response_model=SignInPage)
@needs(None)
async def list_sign_ins(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> SignInPage:
    """The browsers in which you have signed in, the newest first."""
    found = await services.entrance.sign_ins.page(who, before=read_cursor(cursor, int, str), limit=limit + 1)
    shown, more = page_of(found, limit, lambda one: (one.created_at, one.id))
    return SignInPage(items=[_out(one, who.sign_in_id) for one in shown], next_cursor=more)


@router.delete("/sign-ins", status_code=204)
@needs(None)
async def end_other_sign_ins(who: Who, services: Use) -> None:
    """Sign out everywhere but here."""
    await services.entrance.sign_ins.end_others(who)


@router.delete("/sign-ins/{sign_in_id}", status_code=204)
@needs(None)
async def end_sign_in(
    sign_in_id: Annotated[str, Path(description="The sign-in's `id`.")], who: Who, services: Use
) -> None:
    """Sign out in that browser."""
    await services.entrance.sign_ins.end(who, sign_in_id)


@router.get("/identities", response_model=IdentitiesOut)
@needs(None)
async def list_identities(who: Who, services: Use) -> IdentitiesOut:
    """Who you are at issuers of OpenID Connect: by these you come in without a password."""
    found = await services.single_sign_on.identities.mine(who)
    return IdentitiesOut(
        items=[
            IdentityOut(
                id=one.id,
                issuer=one.identity.issuer,
                subject=one.identity.subject,
                created_at=instant(one.identity.created_at),
                is_in_use=one.is_in_use,
                is_last_way_in=one.is_last_way_in,
            )
            for one in found
        ]
    )


@router.post(
    "/identities",
    response_model=LinkingOut,
    responses={
        200: {"headers": {"Set-Cookie": {"description": "For the way back.", "schema": {"type": "string"}}}},
        409: {"description": "This server has no issuer, or it cannot be used now."},
        429: {"description": TOO_MANY},
    },
)
@needs(None, elevated=True)
async def begin_linking(
    request: Request, response: Response, who: Who, visitor: FromWhere, services: Use
) -> LinkingOut:
    """Begin to link who you are at the issuer of this server.

    For browsers: go to `url` and sign in there; you come back to your account, which that identity opens from then on.
    It counts for the sign-in that asks, and for nobody else.
    """
    of_person(who)
    if services.single_sign_on.issuer_name is None:
        raise Conflict("This server has no issuer of OpenID Connect.")
    try:
        url, kept = await services.single_sign_on.start("/account?done=linked", visitor, Purpose.LINK, who)
    except SignInRefused as refused:
        log.warning("linking_refused", refusal=str(refused.refusal), reason=refused.why)
        if refused.refusal == Refusal.TOO_MANY:
            raise TooMany(refused.why, refused.retry_after_seconds) from None
        raise Conflict("The issuer cannot be used now. Try again; the log of the server says why.") from None
    keep_meanwhile(response, request, services, kept)
    return LinkingOut(url=url)


@router.delete(
    "/identities/{identity_id}",
    status_code=204,
    responses={409: {"description": "Nothing else would be left by which you come in."}},
)
@needs(None, elevated=True)
async def remove_identity(
    identity_id: Annotated[str, Path(description="The identity's `id`.")], who: Who, services: Use
) -> None:
    """Take an identity off your account. Every other browser in which you have signed in is signed out.

    Where the issuer vouches for your address here, whoever signs in there by that address is let in, and linked, again.
    """
    await services.single_sign_on.identities.remove(who, identity_id)


def _out(sign_in: SignIn, current_id: str | None) -> SignInOut:
    return SignInOut(
        id=sign_in.id,
        method=sign_in.method,
        address=sign_in.address,
        user_agent=sign_in.user_agent,
        created_at=instant(sign_in.created_at),
        last_seen_at=instant(sign_in.last_seen_at),
        expires_at=instant(min(sign_in.expires_at, sign_in.last_seen_at + IDLE_MS)),
        is_current=sign_in.id == current_id,
    )
