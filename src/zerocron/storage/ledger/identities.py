"""Who people are at issuers of OpenID Connect, in the ledger.

Owns every query on `identities`. Must never decide anything.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import insert_batch, pack
from zerocron.storage.ledger.people_tables import identities


def find(connection: Connection, issuer: str, subject: str) -> str | None:
    """Whose identity it is: a person's id."""
    query = select(identities.c.person_id).where(identities.c.issuer == issuer, identities.c.subject == subject)
    found: str | None = connection.scalar(query)
    return found


def bind(connection: Connection, issuer: str, subject: str, person_id: str, now: Instant) -> None:
    """It is this person's from now on. One that is somebody's already stays theirs."""
    columns = (identities.c.issuer, identities.c.subject, identities.c.person_id, identities.c.created_at)
    statement = insert_batch(connection.dialect.name, columns, ignore_existing=True)
    connection.execute(statement, pack([[issuer, subject, person_id, now]]))
