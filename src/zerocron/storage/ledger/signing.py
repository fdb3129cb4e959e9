"""Signing keys in the ledger, sealed.

Owns every query on `signing_keys`. A key is here only as the data key of its team sealed it. Must never decide
anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, or_, select, update

from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, DataKey, Keyring
from zerocron.core.signing import read_key
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, pack
from zerocron.storage.ledger.secrets import DATA_KEY, DataKeyRow
from zerocron.storage.ledger.tables import data_keys, signing_keys

_NAME = "signing key"
"""What it is sealed as: no secret of a user can have such a name."""


@dataclass(frozen=True, slots=True)
class SigningKeyRow:
    """`sealed` opens with the data key of that id only. `expires_at` None: this is the one of the team."""

    team_id: str
    id: str
    data_key_id: str
    sealed: str
    created_at: Instant
    expires_at: Instant | None = None


_COLUMNS = (
    signing_keys.c.team_id,
    signing_keys.c.id,
    signing_keys.c.data_key_id,
    signing_keys.c.sealed,
    signing_keys.c.created_at,
    signing_keys.c.expires_at,
)


def seal(key: DataKey, signing_key_id: str, text: str) -> str:
    """A signing key as it is kept."""
    return key.seal(text, secret_id=signing_key_id, name=_NAME)


def insert(connection: Connection, key: SigningKeyRow) -> None:
    """Raises IntegrityError when the team has one that expires never."""
    connection.execute(signing_keys.insert(), {column.name: getattr(key, column.name) for column in _COLUMNS})


def expire(connection: Connection, team_id: str, at: Instant) -> None:
    """The team's key is good until then."""
    current = (signing_keys.c.team_id == team_id, signing_keys.c.expires_at.is_(None))
    connection.execute(update(signing_keys).where(*current).values(expires_at=at))


def remove_expired(connection: Connection, team_id: str, now: Instant) -> None:
    connection.execute(signing_keys.delete().where(signing_keys.c.team_id == team_id, signing_keys.c.expires_at <= now))


def valid(connection: Connection, team_id: str, now: Instant) -> list[SigningKeyRow]:
    """The keys of a team that sign, the newest first; none when it has none."""
    query = (
        select(*_COLUMNS)
        .where(
            signing_keys.c.team_id == team_id,
            or_(signing_keys.c.expires_at.is_(None), signing_keys.c.expires_at > now),
        )
        .order_by(signing_keys.c.created_at.desc(), signing_keys.c.id.desc())
    )
    return [SigningKeyRow(*row) for row in fetch(connection, query, {})]


def opened(connection: Connection, rows: Sequence[SigningKeyRow], keyring: Keyring) -> list[bytes]:
    """The keys themselves, in the order of the rows. Raises CannotOpen."""
    query = select(*DATA_KEY).where(data_keys.c.id.in_({row.data_key_id for row in rows}))
    keys = {row[0]: DataKeyRow(*row).opened(keyring) for row in fetch(connection, query, {})}
    return [_opened(row, keys) for row in rows]


def reseal(connection: Connection, team_id: str, opened_keys: Mapping[str, DataKey], key: DataKey) -> int:
    """Seal the keys of a team with another data key; how many there were. Raises CannotOpen."""
    kept = [
        SigningKeyRow(*row) for row in fetch(connection, select(*_COLUMNS).where(signing_keys.c.team_id == team_id), {})
    ]
    if not kept:
        return 0
    values = [[row.id, seal(key, row.id, _text(row, opened_keys))] for row in kept]
    rows = batch(connection.dialect.name, columns_of((signing_keys.c.id, signing_keys.c.sealed)))
    statement = (
        update(signing_keys)
        .values(sealed=rows.c.sealed, data_key_id=key.id)
        .where(signing_keys.c.team_id == team_id, signing_keys.c.id == rows.c.id)
    )
    return connection.execute(statement, pack(values)).rowcount


def _text(row: SigningKeyRow, keys: Mapping[str, DataKey]) -> str:
    key = keys.get(row.data_key_id)
    if key is None:
        raise CannotOpen
    return key.open(row.sealed, secret_id=row.id, name=_NAME)


def _opened(row: SigningKeyRow, keys: Mapping[str, DataKey]) -> bytes:
    return read_key(_text(row, keys))
