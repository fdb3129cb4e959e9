"""API keys and idempotency keys in the ledger.

Owns every query on `api_keys` and `idempotency_keys`. A key's secret is never here, only its hash. Must never decide
anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, or_, select, update

from zerocron.core.access import KEY_SCOPES, Permission, in_order
from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, insert_batch, lock_rows, pack
from zerocron.storage.ledger.people_tables import people
from zerocron.storage.ledger.tables import api_keys, idempotency_keys


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept: `secret_hash` is the SHA-256 of the secret, in hex."""

    id: str
    team_id: str
    name: str
    secret_hash: str
    created_at: Instant
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None
    scopes: frozenset[Permission] = KEY_SCOPES
    expires_at: Instant | None = None
    created_by: str | None = None
    """The person who made it, by id; `created_by_name` is read with lists alone."""
    created_by_name: str | None = None

    def has_expired(self, now: Instant) -> bool:
        return self.expires_at is not None and self.expires_at <= now


_IDEMPOTENCY: tuple[Column[Any], ...] = (
    idempotency_keys.c.team_id,
    idempotency_keys.c.operation,
    idempotency_keys.c.key,
    idempotency_keys.c.request_hash,
    idempotency_keys.c.resource_id,
    idempotency_keys.c.created_at,
)
_COLUMNS: tuple[Column[Any], ...] = (
    api_keys.c.id,
    api_keys.c.team_id,
    api_keys.c.name,
    api_keys.c.secret_hash,
    api_keys.c.created_at,
    api_keys.c.last_used_at,
    api_keys.c.revoked_at,
    api_keys.c.scopes,
    api_keys.c.expires_at,
    api_keys.c.created_by,
)
_FIELDS = (*(column.name for column in _COLUMNS), "created_by_name")


def insert(connection: Connection, key: ApiKey) -> None:
    values = {column.name: getattr(key, column.name) for column in _COLUMNS}
    connection.execute(api_keys.insert(), values | {"scopes": " ".join(in_order(key.scopes))})


def find(connection: Connection, key_id: str) -> ApiKey | None:
    """The key by its id, revoked or not."""
    row = connection.execute(select(*_COLUMNS).where(api_keys.c.id == key_id)).first()
    return None if row is None else _key(*row)


def page(connection: Connection, team_id: str, *, after: str, limit: int) -> list[ApiKey]:
    """The team's keys that are not revoked, by id."""
    query = (
        select(*_COLUMNS, people.c.name.label(_FIELDS[-1]))
        .select_from(api_keys.outerjoin(people, people.c.id == api_keys.c.created_by))
        .where(api_keys.c.team_id == team_id, api_keys.c.revoked_at.is_(None), api_keys.c.id > after)
        .order_by(api_keys.c.id)
        .limit(limit)
    )
    return [_key(*row) for row in fetch(connection, query, {})]


def _key(*row: Any) -> ApiKey:
    values = dict(zip(_FIELDS, row, strict=False))
    return ApiKey(**values | {"scopes": frozenset(map(Permission, values["scopes"].split()))})


def revoke(connection: Connection, team_id: str, key_id: str, now: Instant) -> str | None:
    """The key's name; None when the team has no such key, or it is revoked already."""
    statement = (
        update(api_keys)
        .where(api_keys.c.id == key_id, api_keys.c.team_id == team_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(api_keys.c.name)
    )
    name: str | None = connection.execute(statement).scalar()
    return name


def save_last_used(connection: Connection, used: Mapping[str, Instant]) -> None:
    """Record when keys were last used; of two nodes the later one counts. As with sign-ins, rows that somebody else
    changes at this moment are passed over."""
    rows = batch(connection.dialect.name, columns_of((api_keys.c.id, api_keys.c.last_used_at)))
    free = lock_rows(select(api_keys.c.id).where(api_keys.c.id.in_(select(rows.c.id))))
    is_later = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < rows.c.last_used_at)
    statement = (
        update(api_keys)
        .values(last_used_at=rows.c.last_used_at)
        .where(api_keys.c.id == rows.c.id, is_later, api_keys.c.id.in_(free))
    )
    connection.execute(statement, pack([list(item) for item in used.items()]))


def find_idempotent(connection: Connection, team_id: str, operation: str, key: str) -> tuple[str, str] | None:
    """(request hash, resource id) of what this key made before; None when it is new."""
    row = connection.execute(
        select(idempotency_keys.c.request_hash, idempotency_keys.c.resource_id).where(
            idempotency_keys.c.team_id == team_id,
            idempotency_keys.c.operation == operation,
            idempotency_keys.c.key == key,
        )
    ).first()
    return None if row is None else (row[0], row[1])


def claim_idempotent(
    connection: Connection,
    *,
    team_id: str,
    operation: str,
    key: str,
    request_hash: str,
    resource_id: str,
    now: Instant,
) -> bool:
    """Note what the key makes, in the transaction that makes it; False when it has made something before.

    Of two that do this at once the second waits until the first has committed or not.
    """
    statement = insert_batch(connection.dialect.name, _IDEMPOTENCY, ignore_existing=True)
    row = [team_id, operation, key, request_hash, resource_id, now]
    return connection.execute(statement, pack([row])).rowcount == 1


def forget_idempotent(connection: Connection, before: Instant) -> None:
    """Drop idempotency keys older than the instant."""
    connection.execute(idempotency_keys.delete().where(idempotency_keys.c.created_at < before))
