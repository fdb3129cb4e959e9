"""What the API says of a person, and of what a browser may do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr
from starlette.requests import Request
from starlette.responses import Response

from zerocron.actions.sign_ins import Opened, Session
from zerocron.api.cookies import is_secure, set_cookie
from zerocron.api.fields import Identifier, InstantText, Output, instant, maybe_instant, visible_text
from zerocron.api.wording import worded
from zerocron.core.access import Permission, Role
from zerocron.core.mail import ADDRESS_CHARACTERS_MAX
from zerocron.core.passwords import CHARACTERS_MAX, CHARACTERS_MIN
from zerocron.core.people import NAME_CHARACTERS_MAX
from zerocron.storage.ledger.people import Person

CODE_CHARACTERS_MAX = 50
TOKEN_CHARACTERS_MAX = 100


def _text(given: Any) -> Any:
    """Said before pydantic says it, which would repeat what was given."""
    if given is not None and not isinstance(given, str):
        raise worded("Give this as text.")
    return given


def _short(most: int) -> BeforeValidator:
    def check(given: Any) -> Any:
        if isinstance(_text(given), str) and len(given) > most:
            raise worded(f"At most {most} characters.")
        return given

    return BeforeValidator(check)


def secret_text(most: int, description: str, *examples: str) -> Any:
    """The parts of `Annotated[SecretStr, *...]` for a text that no error repeats."""
    return (
        _short(most),
        Field(description=description, examples=list(examples) or None, json_schema_extra={"maxLength": most}),
    )


Email = Annotated[
    str,
    Field(min_length=1, max_length=ADDRESS_CHARACTERS_MAX, description="A mail address.", examples=["ada@example.com"]),
]
Password = Annotated[SecretStr, *secret_text(CHARACTERS_MAX, "The password of now.")]
NewPassword = Annotated[
    SecretStr,
    *secret_text(
        CHARACTERS_MAX,
        f"{CHARACTERS_MIN} to {CHARACTERS_MAX} characters, of whatever kind; none of those that everybody tries first.",
    ),
]
Code = Annotated[
    SecretStr | None,
    *secret_text(CODE_CHARACTERS_MAX, "A code of the second factor, or one of its recovery codes.", "123456"),
]
LinkToken = Annotated[SecretStr, *secret_text(TOKEN_CHARACTERS_MAX, "What stands behind the last slash of the link.")]
PersonName = Annotated[str, *visible_text(NAME_CHARACTERS_MAX, "What others see.", "Ada Lovelace")]
Language = Annotated[Literal["en", "fr", "es"], Field(description="Of pages and mails.")]
TimezoneName = Annotated[
    str, Field(min_length=1, max_length=64, description="In which times are shown.", examples=["Europe/Paris"])
]


def revealed(given: SecretStr | None) -> str | None:
    """What a field holds, for the one place that compares it."""
    return None if given is None else given.get_secret_value()


class PersonOut(Output):
    """A person, as they see themselves."""

    id: Identifier
    email: str = Field(examples=["ada@example.com"])
    name: str = Field(examples=["Ada Lovelace"])
    language: Language
    timezone: str = Field(examples=["Europe/Paris"])
    has_password: bool
    has_totp: bool = Field(description="Whether a second factor is asked for.")
    created_at: InstantText


class PlaceOut(Output):
    """A team that the person is in."""

    id: Identifier
    name: str = Field(examples=["Team"])
    role: Role = Field(description="What the person is in it.")


class LookedAtOut(Output):
    """The team that requests are about."""

    id: Identifier
    name: str = Field(examples=["Team"])
    role: Role | None = Field(description="What the person is in it; null for a key.")


class SessionOut(Output):
    """Who is asking, and what they may do."""

    person: PersonOut | None = Field(description="Null for an API key.")
    team: LookedAtOut
    teams: list[PlaceOut] = Field(description="All teams of the person.")
    permissions: list[Permission] = Field(description="What may be done in the team.")
    method: Literal["password", "setup", "invitation", "oidc", "trusted-header", "key"] = Field(
        description="How the person signed in, or `key`."
    )
    elevated_until: InstantText | None = Field(
        description="Until then what asks for a fresh proof of who one is may be done."
    )
    is_secure: bool = Field(
        description="Whether nobody on the way could read along: the request came over TLS, or from this machine."
    )


def person_out(person: Person) -> PersonOut:
    return PersonOut(
        id=person.id,
        email=person.email,
        name=person.name,
        language=person.language,  # type: ignore[arg-type]
        timezone=person.timezone,
        has_password=person.password_hash is not None,
        has_totp=person.has_totp,
        created_at=instant(person.created_at),
    )


def session_out(session: Session, request: Request, base_url: str) -> SessionOut:
    bearer, sign_in = session.bearer, session.sign_in
    elevated = sign_in.elevated_until if sign_in is not None and bearer.is_elevated else None
    return SessionOut(
        person=None if session.person is None else person_out(session.person),
        team=LookedAtOut(id=bearer.team_id, name=session.team_name, role=session.role),
        teams=[PlaceOut(id=one.team_id, name=one.team_name, role=one.role) for one in session.teams],
        permissions=sorted(bearer.permissions, key=list(Permission).index),
        method="key" if sign_in is None else sign_in.method,  # type: ignore[arg-type]
        elevated_until=maybe_instant(elevated),
        is_secure=is_secure(request.scope, base_url),
    )


def answer_opened(opened: Opened, request: Request, response: Response, base_url: str) -> SessionOut:
    """What is told of a sign-in that was opened or elevated; its token goes into the cookie, and nowhere else."""
    sign_in = opened.session.sign_in
    if sign_in is not None:
        lasts_seconds = (sign_in.expires_at - sign_in.created_at) // 1000
        set_cookie(response, request.scope, base_url, opened.token, max_age_seconds=lasts_seconds)
    return session_out(opened.session, request, base_url)
