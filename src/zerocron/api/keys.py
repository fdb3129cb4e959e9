"""/v1/api-keys: who may use the API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

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
    visible_text,
)
from zerocron.api.services import OnceKey, Use, Who
from zerocron.storage.ledger.keys import ApiKey

router = APIRouter(prefix="/v1/api-keys", tags=["api keys"])


class ApiKeyIn(Input):
    """A key to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "deploy script"}]})

    name: Annotated[str, *visible_text(200, "Who or what will use it.", "deploy script")]


class ApiKeyOut(Output):
    """A key, without its secret."""

    id: str = Field(description="The part of the key between its underscores.", examples=["k3v9q0x2m1za"])
    name: str
    created_at: InstantText
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
async def create_api_key(given: ApiKeyIn, who: Who, services: Use, key: OnceKey = None) -> NewApiKeyOut:
    """Make a key. Its text is in this answer only."""
    made, token = await services.keys.create(who.team_id, given.name, key)
    return NewApiKeyOut(**_out(made).model_dump(), key=token.text)


@router.get("", response_model=ApiKeyPage)
async def list_api_keys(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> ApiKeyPage:
    """Keys that are not revoked, in the order of their ids."""
    (after,) = read_cursor(cursor, str) or ("",)
    found = await services.keys.page(who.team_id, after=after, limit=limit + 1)
    shown, more = page_of(found, limit, lambda key: (key.id,))
    return ApiKeyPage(items=[_out(key) for key in shown], next_cursor=more)


@router.delete("/{key_id}", status_code=204)
async def revoke_api_key(key_id: Annotated[str, Path(description="The key's `id`.")], who: Who, services: Use) -> None:
    """Revoke a key: it opens nothing any more, on other nodes within a second. A key may revoke itself."""
    await services.keys.revoke(who.team_id, key_id)


def _out(key: ApiKey) -> ApiKeyOut:
    return ApiKeyOut(
        id=key.id,
        name=key.name,
        created_at=instant(key.created_at),
        last_used_at=maybe_instant(key.last_used_at),
    )
