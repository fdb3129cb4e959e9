"""Secrets and data keys in the ledger, sealed.

Owns every query on `secrets` and `data_keys`. Neither a value nor a key is ever here, only what `core.sealing` made of
it. Must never decide anything.

A team's newest data key seals; `take_data_key` counts the use and so holds its row until the transaction ends, which
makes it the lock of the team's secrets: a rotation holds all data keys of the team before it reads what they sealed.
Keys are made and replaced by one at a time (`hold_keys`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, func, select, update

from zerocron.core.model import Instant
from zerocron.core.sealing import DataKey, Keyring
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, insert_batch, pack, pack_wide
from zerocron.storage.ledger.tables import data_keys, secrets

_KEYS_LOCK = int.from_bytes(b"keys")
"""The first half of an advisory lock's key, the second is the team: any number, the same in all releases."""


@dataclass(frozen=True, slots=True)
class DataKeyRow:
    """A data key: `wrapped` is sealed by the master key of that id, `generation` counts within the team."""

    id: str
    team_id: str
    generation: int
    master_key_id: str
    wrapped: str
    uses: int = 0

    def opened(self, keyring: Keyring) -> DataKey:
        """Raises CannotOpen."""
        return keyring.open_data_key(
            self.wrapped, master_key_id=self.master_key_id, key_id=self.id, team_id=self.team_id
        )


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret: `sealed` opens with the data key of that id only."""

    id: str
    team_id: str
    name: str
    data_key_id: str
    sealed: str
    allowed_hosts: tuple[str, ...]
    created_at: Instant
    updated_at: Instant
    last_used_at: Instant | None = None


_SECRET = (
    secrets.c.id,
    secrets.c.team_id,
    secrets.c.name,
    secrets.c.data_key_id,
    secrets.c.sealed,
    secrets.c.allowed_hosts,
    secrets.c.created_at,
    secrets.c.updated_at,
    secrets.c.last_used_at,
)
DATA_KEY = (
    data_keys.c.id,
    data_keys.c.team_id,
    data_keys.c.generation,
    data_keys.c.master_key_id,
    data_keys.c.wrapped,
    data_keys.c.uses,
)


def hold_keys(connection: Connection, team_id: str) -> None:
    """Nobody else makes or replaces data keys of the team until the transaction ends. The rows alone cannot hold that
    off: who waited for one of them goes on with what there was when it began to wait."""
    if connection.dialect.name != "sqlite":  # which has one writer
        connection.execute(select(func.pg_advisory_xact_lock(_KEYS_LOCK, func.hashtext(team_id))))


def take_data_key(connection: Connection, team_id: str) -> DataKeyRow | None:
    """The data key that seals for the team, one more use of it counted; None when the team has none, or when it was
    replaced at this moment (ask again, after `hold_keys`)."""
    newest = (
        select(data_keys.c.id).where(data_keys.c.team_id == team_id).order_by(data_keys.c.generation.desc()).limit(1)
    )
    found = connection.scalar(newest)
    taken = update(data_keys).where(data_keys.c.id == found).values(uses=data_keys.c.uses + 1)
    if found is None or connection.execute(taken).rowcount != 1:
        return None
    row = connection.execute(select(*DATA_KEY).where(data_keys.c.id == found)).one()
    return DataKeyRow(*row)


def add_data_key(connection: Connection, key: DataKeyRow, now: Instant) -> bool:
    """False when the team has a key of this generation already."""
    columns = (*DATA_KEY, data_keys.c.created_at)
    row = [key.id, key.team_id, key.generation, key.master_key_id, key.wrapped, key.uses, now]
    statement = insert_batch(connection.dialect.name, columns, ignore_existing=True)
    return connection.execute(statement, pack([row])).rowcount == 1


def hold_data_keys(connection: Connection, team_id: str) -> list[DataKeyRow]:
    """All data keys of the team, oldest first, held until the transaction ends."""
    query = select(*DATA_KEY).where(data_keys.c.team_id == team_id).order_by(data_keys.c.generation).with_for_update()
    return [DataKeyRow(*row) for row in fetch(connection, query, {})]


def data_keys_of(connection: Connection, key_ids: Iterable[str]) -> dict[str, DataKeyRow]:
    """Data keys by their ids."""
    wanted = list(key_ids)
    query = select(*DATA_KEY).where(data_keys.c.id.in_(wanted))
    return {row[0]: DataKeyRow(*row) for row in fetch(connection, query, {})} if wanted else {}


def remove_data_keys(connection: Connection, key_ids: Iterable[str]) -> None:
    """For keys that seal nothing any more."""
    connection.execute(data_keys.delete().where(data_keys.c.id.in_(list(key_ids))))


def team_after(connection: Connection, team_id: str) -> str | None:
    """The next team that has data keys, in the order of ids."""
    query = select(data_keys.c.team_id).where(data_keys.c.team_id > team_id).order_by(data_keys.c.team_id).limit(1)
    found = connection.scalar(query)
    return None if found is None else str(found)


def master_key_ids(connection: Connection) -> set[str]:
    """The master keys without which some secret cannot be opened."""
    query = select(data_keys.c.master_key_id).distinct()
    return {row[0] for row in fetch(connection, query, {})}


def insert(connection: Connection, secret: SecretRow) -> None:
    connection.execute(secrets.insert(), _values(secret))


def replace(connection: Connection, secret: SecretRow) -> None:
    """Write a secret over the one of the same id."""
    connection.execute(update(secrets).where(secrets.c.id == secret.id).values(_values(secret)))


def reseal(connection: Connection, sealed: Mapping[str, str], data_key_id: str) -> int:
    """Write what another data key made of values, by the secrets' ids; how many rows it met. Nothing else changes."""
    dialect = connection.dialect.name
    rows = batch(dialect, columns_of((secrets.c.id, secrets.c.sealed)), wide=True)
    statement = update(secrets).values(sealed=rows.c.sealed, data_key_id=data_key_id).where(secrets.c.id == rows.c.id)
    return connection.execute(statement, pack_wide(dialect, [list(item) for item in sealed.items()])).rowcount


def delete(connection: Connection, team_id: str, name: str) -> bool:
    """False when the team has no such secret."""
    statement = secrets.delete().where(secrets.c.team_id == team_id, secrets.c.name == name)
    return connection.execute(statement).rowcount == 1


def get(connection: Connection, team_id: str, name: str) -> SecretRow | None:
    query = select(*_SECRET).where(secrets.c.team_id == team_id, secrets.c.name == name)
    found = fetch(connection, query, {})
    return _secret(found[0]) if found else None


def page(connection: Connection, team_id: str, *, after: str, limit: int) -> list[SecretRow]:
    """The team's secrets by name, from the one after `after` on."""
    query = (
        select(*_SECRET)
        .where(secrets.c.team_id == team_id, secrets.c.name > after)
        .order_by(secrets.c.name)
        .limit(limit)
    )
    return [_secret(row) for row in fetch(connection, query, {})]


def count(connection: Connection, team_id: str) -> int:
    return connection.scalar(select(func.count()).select_from(secrets).where(secrets.c.team_id == team_id)) or 0


def of_names(connection: Connection, wanted: Iterable[tuple[str, str]]) -> list[tuple[SecretRow, DataKeyRow]]:
    """The secrets by (team id, name), each with the data key that opens it; those that there are."""
    names = batch(connection.dialect.name, columns_of((secrets.c.team_id, secrets.c.name)), "wanted")
    query = select(*_SECRET, *(column.label(f"key_{column.name}") for column in DATA_KEY)).where(
        secrets.c.team_id == names.c.team_id,
        secrets.c.name == names.c.name,
        data_keys.c.id == secrets.c.data_key_id,
    )
    rows = fetch(connection, query, pack([list(key) for key in wanted]))
    return [(_secret(row[: len(_SECRET)]), DataKeyRow(*row[len(_SECRET) :])) for row in rows]


def save_last_used(connection: Connection, used: Mapping[str, Instant]) -> None:
    """Record when secrets were last sent, by their ids."""
    rows = batch(connection.dialect.name, columns_of((secrets.c.id, secrets.c.last_used_at)))
    statement = update(secrets).values(last_used_at=rows.c.last_used_at).where(secrets.c.id == rows.c.id)
    connection.execute(statement, pack([list(item) for item in used.items()]))


def _values(secret: SecretRow) -> dict[str, object]:
    return {
        "id": secret.id,
        "team_id": secret.team_id,
        "name": secret.name,
        "data_key_id": secret.data_key_id,
        "sealed": secret.sealed,
        "allowed_hosts": orjson.dumps(secret.allowed_hosts).decode(),
        "created_at": secret.created_at,
        "updated_at": secret.updated_at,
        "last_used_at": secret.last_used_at,
    }


def _secret(row: Sequence[object]) -> SecretRow:
    secret_id, team_id, name, data_key_id, sealed, hosts, *instants = row
    return SecretRow(secret_id, team_id, name, data_key_id, sealed, tuple(orjson.loads(hosts)), *instants)  # type: ignore[arg-type]
