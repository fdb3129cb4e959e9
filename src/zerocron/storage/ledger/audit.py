"""The audit log in the ledger: who did what to what, and when.

Owns every query on `audit_entries`. Entries are written in the transaction of what they tell, and never changed. Must
never hold the value of a secret: who writes an entry gives the fields that may be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from sqlalchemy import Column, Connection, and_, or_, select

from zerocron.core.access import Actor
from zerocron.core.ids import first_id, new_id
from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import fetch
from zerocron.storage.ledger.people_tables import audit_entries

DETAIL_CHARACTERS_MAX = 20_000
"""Of `before` and of `after` as JSON: a long field is left out of an entry rather than the entry itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One act. `action` is a noun and a verb, `job.pause`; `before` and `after` hold only what changed."""

    id: str
    team_id: str | None
    at: Instant
    actor_kind: str
    actor_id: str
    actor_name: str
    address: str
    action: str
    subject_kind: str
    subject_id: str
    subject_name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Subject:
    """What was acted on."""

    kind: str
    id: str
    name: str


_COLUMNS: tuple[Column[Any], ...] = tuple(audit_entries.c)


def record(
    connection: Connection,
    *,
    team_id: str | None,
    at: Instant,
    by: Actor,
    action: str,
    subject: Subject,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write down an act, in the transaction that does it."""
    connection.execute(
        audit_entries.insert(),
        {
            "id": new_id(at),
            "team_id": team_id,
            "at": at,
            "actor_kind": by.kind,
            "actor_id": by.id,
            "actor_name": by.name[:254],
            "address": by.address[:45],
            "action": action,
            "subject_kind": subject.kind,
            "subject_id": subject.id[:64],
            "subject_name": subject.name[:254],
            "before": _written(before),
            "after": _written(after),
        },
    )


class Owned(Protocol):
    """Something that belongs to a team and has a name."""

    @property
    def id(self) -> str: ...
    @property
    def team_id(self) -> str: ...
    @property
    def name(self) -> str: ...


def record_of(
    connection: Connection,
    kind: str,
    owned: Owned,
    verb: str,
    by: Actor,
    at: Instant,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write down what was done to one thing of a team: `job.pause` for the kind `job` and the verb `pause`."""
    record(
        connection,
        team_id=owned.team_id,
        at=at,
        by=by,
        action=f"{kind}.{verb}",
        subject=Subject(kind, owned.id, owned.name),
        before=before,
        after=after,
    )


def page(
    connection: Connection,
    team_id: str,
    *,
    before: tuple[Instant, str] | None,
    limit: int,
    subject_id: str | None = None,
    action: str | None = None,
    actor_id: str | None = None,
) -> list[Entry]:
    """The team's entries, newest first, from before that place on."""
    query = select(*_COLUMNS).where(audit_entries.c.team_id == team_id)
    if subject_id is not None:
        query = query.where(audit_entries.c.subject_id == subject_id)
    if action is not None:
        query = query.where(audit_entries.c.action == action)
    if actor_id is not None:
        query = query.where(audit_entries.c.actor_id == actor_id)
    if before is not None:
        at, entry_id = before
        query = query.where(or_(audit_entries.c.at < at, and_(audit_entries.c.at == at, audit_entries.c.id < entry_id)))
    query = query.order_by(audit_entries.c.at.desc(), audit_entries.c.id.desc()).limit(limit)
    return [_entry(*row) for row in fetch(connection, query, {})]


def remove_old(connection: Connection, before: Instant, limit: int) -> int:
    """Forget entries that are older than the instant; how many. The database itself refuses that for young ones."""
    old = (
        select(audit_entries.c.id)
        .where(audit_entries.c.id < first_id(before), audit_entries.c.at < before)
        .order_by(audit_entries.c.id)
        .limit(limit)
    )
    return connection.execute(audit_entries.delete().where(audit_entries.c.id.in_(old))).rowcount


def _entry(*row: Any) -> Entry:
    values = [*row[:11], _read(row[11]), _read(row[12])]
    return Entry(*values)


def _written(detail: Mapping[str, Any] | None) -> str | None:
    if not detail:
        return None
    fields = {name: orjson.dumps(value).decode() for name, value in detail.items()}
    while fields and sum(map(len, fields.values())) > DETAIL_CHARACTERS_MAX:
        fields[max(fields, key=lambda name: len(fields[name]))] = '"(too long to be kept here)"'
    return "{" + ",".join(f"{orjson.dumps(name).decode()}:{value}" for name, value in fields.items()) + "}"


def _read(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
