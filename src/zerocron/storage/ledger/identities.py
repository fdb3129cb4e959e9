"""Who people are at issuers of OpenID Connect, in the ledger.

Owns every query on `identities`. Must never decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import fetch, insert_batch, pack
from zerocron.storage.ledger.people_tables import identities

LISTED_MAX = 100


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a person is at an issuer: `subject` is what it calls them, for ever."""

    issuer: str
    subject: str
    created_at: Instant


def find(connection: Connection, issuer: str, subject: str) -> str | None:
    """Whose identity it is: a person's id."""
    query = select(identities.c.person_id).where(identities.c.issuer == issuer, identities.c.subject == subject)
    found: str | None = connection.scalar(query)
    return found


def of_person(connection: Connection, person_id: str) -> list[Identity]:
    """The person's, the oldest first; at most LISTED_MAX."""
    query = (
        select(identities.c.issuer, identities.c.subject, identities.c.created_at)
        .where(identities.c.person_id == person_id)
        .order_by(identities.c.created_at, identities.c.issuer, identities.c.subject)
        .limit(LISTED_MAX)
    )
    return [Identity(*row) for row in fetch(connection, query, {})]


def remove(connection: Connection, person_id: str, identity: Identity) -> bool:
    """False when it is not this person's (any more)."""
    statement = identities.delete().where(
        identities.c.issuer == identity.issuer,
        identities.c.subject == identity.subject,
        identities.c.person_id == person_id,
    )
    return connection.execute(statement).rowcount == 1


def bind(connection: Connection, issuer: str, subject: str, person_id: str, now: Instant) -> bool:
    """It is this person's from now on. False when it is somebody's already, whose it stays."""
    columns = (identities.c.issuer, identities.c.subject, identities.c.person_id, identities.c.created_at)
    statement = insert_batch(connection.dialect.name, columns, ignore_existing=True)
    return connection.execute(statement, pack([[issuer, subject, person_id, now]])).rowcount == 1
