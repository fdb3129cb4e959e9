"""/v1/secrets: values that jobs send and nobody sees."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from zerocron.api.access import needs
from zerocron.api.fields import (
    Cursor,
    Input,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    maybe_instant,
    page_of,
    read_cursor,
    shaped,
)
from zerocron.api.services import Use, Who
from zerocron.api.wording import worded
from zerocron.core.access import Permission
from zerocron.core.secret import ALLOWED_HOSTS_MAX, NAME, VALUE_BYTES_MAX, VALUE_CHARACTERS_MIN
from zerocron.storage.ledger.secrets import SecretRow

router = APIRouter(prefix="/v1/secrets", tags=["secrets"])

NamePath = Annotated[
    str,
    Path(
        description="The secret's name, by which jobs use it: `${secrets.STRIPE_KEY}`. Capitals, digits and `_`, at "
        "most 64, no digit first.",
        examples=["STRIPE_KEY"],
        json_schema_extra={"pattern": f"^{NAME}$"},
    ),
    shaped(f"^{NAME}\\Z", "Write it in capitals, digits and underscores, at most 64, no digit first: STRIPE_KEY."),
]


def _text(given: Any) -> Any:
    """Said before pydantic says it, which would repeat what was given."""
    if not isinstance(given, str):
        raise worded("Give the value as text.")
    return given


class SecretIn(Input):
    """The value of a secret, and where it may go."""

    model_config = ConfigDict(
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [{"value": "an example, which is no key", "allowed_hosts": ["api.example.com"]}]
        },
    )

    value: Annotated[
        SecretStr,
        BeforeValidator(_text),
        Field(
            description=f"At least {VALUE_CHARACTERS_MIN} characters and at most {VALUE_BYTES_MAX:,} bytes, without "
            "NUL. It is sealed, and never shown again.",
            json_schema_extra={"minLength": VALUE_CHARACTERS_MIN, "maxLength": VALUE_BYTES_MAX},
        ),
    ]
    allowed_hosts: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=255)]] | None,
        Field(
            max_length=ALLOWED_HOSTS_MAX,
            description="The only hosts it may be sent to: names, addresses, or `*.example.com` for every host below "
            "that. An empty list allows any host; leave it out to keep what was set before.",
            examples=[["api.example.com"]],
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _known_members(cls, given: Any) -> Any:
        """An unknown name is not repeated: it may be the value."""
        if isinstance(given, dict) and not given.keys() <= cls.model_fields.keys():
            raise worded(f"There are the fields {' and '.join(cls.model_fields)}, and no others.")
        return given


class SecretOut(Output):
    """A secret without its value, which nobody is shown."""

    name: str = Field(examples=["STRIPE_KEY"])
    allowed_hosts: list[str] = Field(description="The only hosts it may be sent to; empty: any.")
    created_at: InstantText
    updated_at: InstantText
    last_used_at: InstantText | None = Field(
        description="When it was last put into a request, written down within 15 seconds. Null when it never was."
    )


class SecretPage(Output):
    """Some of the secrets."""

    items: list[SecretOut]
    next_cursor: NextCursor


class RotatedOut(Output):
    """What a rotation did."""

    secrets: int = Field(description="How many secrets were sealed anew.")


_NO_KEY = "The server has no master key"


@router.put(
    "/{name}",
    response_model=SecretOut,
    responses={409: {"description": f"{_NO_KEY}, or the team has as many secrets as it may have."}},
)
@needs(Permission.WRITE, elevated=True)
async def put_secret(name: NamePath, given: SecretIn, who: Who, services: Use) -> SecretOut:
    """Make a secret, or give it a new value. The next execution of every job that names it uses the new one.

    The answer does not hold the value; nothing that this API answers does.
    """
    made = await services.secrets.put(
        who.team_id, name, given.value.get_secret_value(), given.allowed_hosts, by=who.actor
    )
    return _out(made)


@router.get("", response_model=SecretPage)
@needs(Permission.READ)
async def list_secrets(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> SecretPage:
    """The secrets by name, without their values."""
    (after,) = read_cursor(cursor, str) or ("",)
    found = await services.secrets.page(who.team_id, after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda secret: (secret.name,))
    return SecretPage(items=[_out(secret) for secret in shown], next_cursor=more)


@router.delete("/{name}", status_code=204)
@needs(Permission.WRITE, elevated=True)
async def delete_secret(name: NamePath, who: Who, services: Use) -> None:
    """Delete a secret. A run that names it fails from now on, before anything is sent."""
    await services.secrets.delete(who.team_id, name, by=who.actor)


@router.post(
    "/rotate",
    response_model=RotatedOut,
    responses={409: {"description": f"{_NO_KEY}, or a secret cannot be opened with those it has."}},
)
@needs(Permission.ADMIN, elevated=True, of_server=True)
async def rotate_secrets(who: Who, services: Use) -> RotatedOut:
    """Seal all secrets of this server anew, with new data keys under its newest master key.

    It is about all teams, so it is for admins, and keys, of the server's first team. Jobs go on meanwhile. Afterwards
    no older master key is needed. It may be repeated at any time.
    """
    return RotatedOut(secrets=await services.secrets.rotate(who.team_id, by=who.actor))


def _out(secret: SecretRow) -> SecretOut:
    return SecretOut(
        name=secret.name,
        allowed_hosts=list(secret.allowed_hosts),
        created_at=instant(secret.created_at),
        updated_at=instant(secret.updated_at),
        last_used_at=maybe_instant(secret.last_used_at),
    )
