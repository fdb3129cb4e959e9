"""/v1/api-keys: who may use the API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from zerocron.api.fields import Cursor, Input, Limit, Name, Output, instant, maybe_instant, read_cursor, write_cursor
from zerocron.api.services import Use, Who
from zerocron.storage.ledger.keys import ApiKey

router = APIRouter(prefix="/v1/api-keys", tags=["api keys"])


class KeyIn(Input):
    name: Name


class KeyOut(Output):
    id: str
    name: str
    created_at: str
    last_used_at: str | None


class NewKeyOut(KeyOut):
    """`key` is shown this once and never again."""

    key: str


class KeyPage(Output):
    items: list[KeyOut]
    next_cursor: str | None


@router.post("", status_code=201, response_model=NewKeyOut)
async def create_key(given: KeyIn, who: Who, services: Use) -> NewKeyOut:
    """Make a key. Its text is in this answer only."""
    key, token = await services.keys.create(who.team_id, given.name)
    return NewKeyOut(**_out(key).model_dump(), key=token.text)


@router.get("", response_model=KeyPage)
async def list_keys(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> KeyPage:
    """Keys that are not revoked."""
    (after,) = read_cursor(cursor, str) or ("",)
    found = await services.keys.page(who.team_id, after=after, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return KeyPage(items=[_out(key) for key in found[:limit]], next_cursor=more)


@router.delete("/{key_id}", status_code=204)
async def revoke_key(key_id: Annotated[str, Path(max_length=64)], who: Who, services: Use) -> None:
    """Revoke a key: within a second it opens nothing any more."""
    await services.keys.revoke(who.team_id, key_id)


def _out(key: ApiKey) -> KeyOut:
    return KeyOut(
        id=key.id,
        name=key.name,
        created_at=instant(key.created_at),
        last_used_at=maybe_instant(key.last_used_at),
    )
