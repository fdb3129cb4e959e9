"""Node sessions in the ledger: which process may be running what.

Owns every query on `sessions`. A session that ended, in whatever way, never becomes valid again. Must never decide
anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import fetch
from zerocron.storage.ledger.tables import sessions


def insert(
    connection: Connection, *, session_id: str, node: str, version: str, now: Instant, expires_at: Instant
) -> None:
    connection.execute(
        sessions.insert(),
        {
            "id": session_id,
            "node": node,
            "version": version,
            "started_at": now,
            "renewed_at": now,
            "expires_at": expires_at,
        },
    )


def renew(connection: Connection, session_id: str, *, now: Instant, expires_at: Instant) -> bool:
    """Prolong a session that has not ended; False when it has, for example because another node fenced it."""
    statement = (
        update(sessions)
        .where(sessions.c.id == session_id, sessions.c.ended_at.is_(None))
        .values(renewed_at=now, expires_at=expires_at)
    )
    return connection.execute(statement).rowcount == 1


def end(connection: Connection, session_ids: Sequence[str], *, now: Instant, reason: str) -> None:
    """End sessions; those that ended already keep their first reason ("closed" or "fenced")."""
    connection.execute(
        update(sessions)
        .where(sessions.c.id.in_(session_ids), sessions.c.ended_at.is_(None))
        .values(ended_at=now, end_reason=reason)
    )


def unended_except(connection: Connection, session_id: str) -> list[str]:
    """Every other session that has not ended."""
    query = select(sessions.c.id).where(sessions.c.ended_at.is_(None), sessions.c.id != session_id)
    return [row[0] for row in fetch(connection, query, {})]


def delete_ended_before(connection: Connection, before: Instant) -> None:
    """Forget sessions that ended long ago."""
    connection.execute(sessions.delete().where(sessions.c.ended_at < before))
