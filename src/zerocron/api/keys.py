"""/v1/api-keys: who may use the API."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

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
    read_instant,
    unset,
    visible_text,
)
from zerocron.api.services import OnceKey, Use, Who
from zerocron.core.access import DEFAULT_SCOPES, KEY_SCOPES, Permission, in_order
from zerocron.core.errors import Forbidden
from zerocron.core.model import Instant
from zerocron.storage.ledger.keys import ApiKey

router = APIRouter(prefix="/v1/api-keys", tags=["api keys"])

Scope = Literal["read", "write", "trigger", "ping-admin", "admin"]


class ApiKeyIn(Input):
    """A key to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "deploy script"}]})

    name: Annotated[str, *visible_text(200, "Who or what will use it.", "deploy script")]
    scopes: Annotated[
        list[Scope],
        Field(
            min_length=1,
            max_length=len(KEY_SCOPES),
            description="What it may do, at most what its maker may. Left out: all but `admin`.",
            examples=[["read", "trigger"]],
        ),
    ] = unset()
    expires_at: str | None = Field(
        default=None,
        max_length=40,
        description="From then on it opens nothing: RFC 3339, within a year. Null: it is good until it is revoked.",
        examples=["2027-06-01T00:00:00Z"],
        json_schema_extra={"format": "date-time"},
    )


class ApiKeyOut(Output):
    """A key, without its secret."""

    id: str = Field(description="The part of the key between its underscores.", examples=["k3v9q0x2m1za"])
    name: str
    status: Literal["active", "expired"]
    scopes: list[Scope] = Field(description="What it may do.")
    created_at: InstantText
    created_by: str | None = Field(description="The person who made it; null when a key or the server did.")
    expires_at: InstantText | None = Field(description="Null: it is good until it is revoked.")
    last_used_at: InstantText | None = Field(description="Null when it never was.")


class NewApiKeyOut(ApiKeyOut):
    """A key with its secret, which is shown this once and never again."""

    key: str = Field(description="The key itself. Keep it now: only a hash of it is stored.")


class ApiKeyPage(Output):
    """Some of the keys."""

    items: list[ApiKeyOut]
    next_cursor: NextCursor


@router.post(
    "",
    status_code=201,
    response_model=NewApiKeyOut,
    responses={409: {"description": "The `Idempotency-Key` made a key before, and that is shown only once."}},
)
@needs(Permission.ADMIN, elevated=True)
async def create_api_key(given: ApiKeyIn, who: Who, services: Use, key: OnceKey = None) -> NewApiKeyOut:
    """Make a key. Its text is in this answer only. It may do nothing that whoever makes it may not do."""
    scopes = frozenset(map(Permission, given.scopes)) if "scopes" in given.model_fields_set else DEFAULT_SCOPES
    lacking = in_order(scopes - who.permissions)
    if lacking:
        raise Forbidden(f"You cannot give what you may not do yourself: {', '.join(lacking)}. Name fewer `scopes`.")
    expires_at = None if given.expires_at is None else read_instant(given.expires_at, "expires_at")
    made, token = await services.keys.create(
        who.team_id, given.name, key, scopes=scopes, expires_at=expires_at, by=who.actor
    )
    return NewApiKeyOut(**_out(made, services.clock.now()).model_dump(), key=token.text)


@router.get("", response_model=ApiKeyPage)
@needs(Permission.ADMIN)
async def list_api_keys(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> ApiKeyPage:
    """Keys that are not revoked, in the order of their ids."""
    (after,) = read_cursor(cursor, str) or ("",)
    found = await services.keys.page(who.team_id, after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda key: (key.id,))
    now = services.clock.now()
    return ApiKeyPage(items=[_out(key, now) for key in shown], next_cursor=more)


@router.delete("/{key_id}", status_code=204)
@needs(Permission.ADMIN, elevated=True)
async def revoke_api_key(key_id: Annotated[str, Path(description="The key's `id`.")], who: Who, services: Use) -> None:
    """Revoke a key: it opens nothing any more, on other nodes within a second. A key with the scope `admin` may revoke
    itself."""
    await services.keys.revoke(who.team_id, key_id, by=who.actor)


def _out(key: ApiKey, now: Instant) -> ApiKeyOut:
    return ApiKeyOut(
        id=key.id,
        name=key.name,
        status="expired" if key.has_expired(now) else "active",
        scopes=cast(list[Scope], in_order(key.scopes)),
        created_by=key.created_by_name,
        expires_at=maybe_instant(key.expires_at),
        created_at=instant(key.created_at),
        last_used_at=maybe_instant(key.last_used_at),
    )
