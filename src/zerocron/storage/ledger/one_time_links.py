"""Links that work once, in the ledger: the first owner's, a new password's, an invitation's.

Owns every query on `one_time_links`. A token is never here, only its hash. Must never decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, or_, select, update

from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import fetch
from zerocron.storage.ledger.people_tables import one_time_links

INVITATIONS_MAX = 100


class LinkKind(StrEnum):
    SETUP = "setup"
    RESET = "reset"
    INVITATION = "invitation"


@dataclass(frozen=True, slots=True)
class Link:
    """`person_id`: whose password a reset is about. `email`, `role`, `team_id`: of an invitation."""

    id: str
    kind: str
    token_hash: str
    created_at: Instant
    expires_at: Instant
    team_id: str | None = None
    person_id: str | None = None
    email: str | None = None
    role: str | None = None
    created_by: str | None = None
    used_at: Instant | None = None


_COLUMNS = (
    one_time_links.c.id,
    one_time_links.c.kind,
    one_time_links.c.token_hash,
    one_time_links.c.created_at,
    one_time_links.c.expires_at,
    one_time_links.c.team_id,
    one_time_links.c.person_id,
    one_time_links.c.email,
    one_time_links.c.role,
    one_time_links.c.created_by,
    one_time_links.c.used_at,
)


def insert(connection: Connection, link: Link) -> None:
    connection.execute(one_time_links.insert(), {column.name: getattr(link, column.name) for column in _COLUMNS})


def find(connection: Connection, kind: LinkKind, token_hash: str, now: Instant) -> Link | None:
    """The link, if it is of that kind and still good."""
    query = select(*_COLUMNS).where(
        one_time_links.c.token_hash == token_hash,
        one_time_links.c.kind == str(kind),
        one_time_links.c.used_at.is_(None),
        one_time_links.c.expires_at > now,
    )
    row = connection.execute(query).first()
    return None if row is None else Link(*row)


def invitations_of(connection: Connection, email: str, now: Instant) -> list[Link]:
    """The invitations to that address that are still good, the oldest first."""
    query = (
        select(*_COLUMNS)
        .where(
            one_time_links.c.kind == str(LinkKind.INVITATION),
            one_time_links.c.email == email,
            one_time_links.c.used_at.is_(None),
            one_time_links.c.expires_at > now,
        )
        .order_by(one_time_links.c.created_at, one_time_links.c.id)
        .limit(INVITATIONS_MAX)
    )
    return [Link(*row) for row in fetch(connection, query, {})]


def is_good(connection: Connection, link_id: str, now: Instant) -> bool:
    """Whether the link of that id would still work."""
    query = select(one_time_links.c.id).where(
        one_time_links.c.id == link_id, one_time_links.c.used_at.is_(None), one_time_links.c.expires_at > now
    )
    return connection.execute(query).first() is not None


def use(connection: Connection, link_id: str, now: Instant) -> bool:
    """False when it was used, or withdrawn, by somebody else meanwhile."""
    statement = (
        update(one_time_links)
        .where(one_time_links.c.id == link_id, one_time_links.c.used_at.is_(None), one_time_links.c.expires_at > now)
        .values(used_at=now)
    )
    return connection.execute(statement).rowcount == 1


def withdraw(connection: Connection, kind: LinkKind, now: Instant, *, person_id: str | None = None) -> int:
    """Let the links of a kind (of one person) work no more; how many there were."""
    statement = update(one_time_links).where(
        one_time_links.c.kind == str(kind), one_time_links.c.used_at.is_(None), one_time_links.c.expires_at > now
    )
    if person_id is not None:
        statement = statement.where(one_time_links.c.person_id == person_id)
    return connection.execute(statement.values(used_at=now)).rowcount


def forget(connection: Connection, before: Instant) -> None:
    """Drop what was used, or good for the last time, before the instant."""
    connection.execute(
        one_time_links.delete().where(or_(one_time_links.c.used_at < before, one_time_links.c.expires_at < before))
    )
