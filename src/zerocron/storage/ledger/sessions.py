"""Node sessions in the ledger: which process may be running what.

Owns every query on `sessions`. A session that ended, in whatever way, never becomes valid again. A session is settled
once it has ended and none of its runs is left running. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, func, or_, select, text, update

from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import POSTGRES_TIME, fetch
from zerocron.storage.ledger.tables import sessions

STALLED_SECONDS_MAX = 10.0
"""A transaction of ours hears from its node within milliseconds."""

_END_STALLED = text(
    """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = '0cron'
      AND xact_start IS NOT NULL AND wait_event = 'ClientRead'
      AND state_change < pg_catalog.clock_timestamp() - make_interval(secs => :seconds)
    """
)


def database_time(connection: Connection) -> Instant | None:
    """The database's own clock at this moment; None for SQLite, whose clock is the machine's."""
    if connection.dialect.name == "sqlite":
        return None
    milliseconds: Instant = connection.execute(select(POSTGRES_TIME)).scalar_one()
    return milliseconds


def end_stalled(connection: Connection, *, seconds: float = STALLED_SECONDS_MAX) -> int:
    """End the transactions whose nodes have said nothing for so long, and with them their locks; how many. PostgreSQL.

    Its own time limits do not: between a statement that was prepared and its execution a transaction is not idle, and
    the time limit of a statement waits until the client has spoken. A node that stands still there, frozen or cut off,
    would keep its rows from all others, and its session from being ended.
    """
    if connection.dialect.name == "sqlite":
        return 0
    return sum(connection.scalars(_END_STALLED, {"seconds": seconds}))


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


def renew(
    connection: Connection, session_id: str, *, now: Instant, expires_at: Instant, clock_difference_ms: int = 0
) -> bool:
    """Prolong a session that has not ended; False when it has, for example because another node fenced it."""
    statement = (
        update(sessions)
        .where(sessions.c.id == session_id, sessions.c.ended_at.is_(None))
        .values(renewed_at=now, expires_at=expires_at, clock_difference_ms=clock_difference_ms)
    )
    return connection.execute(statement).rowcount == 1


def hold(connection: Connection, session_id: str) -> bool:
    """Keep a session from being ended until this transaction is over; False when it has ended already.

    It may be renewed meanwhile: who ends a session takes a stronger hold than who renews it.
    """
    return connection.scalar(_HOLD, {"session": session_id}) is not None


_HOLD = (
    select(sessions.c.id)
    .where(sessions.c.id == bindparam("session"), sessions.c.ended_at.is_(None))
    .with_for_update(read=True, key_share=True)
)


def end(connection: Connection, session_ids: Sequence[str], *, now: Instant, reason: str) -> None:
    """End sessions; those that ended already keep their first reason ("closed" or "fenced")."""
    _end(connection, sessions.c.id.in_(session_ids), now=now, reason=reason)


def fence_expired(connection: Connection, now: Instant, *, validity_ms: int) -> int:
    """End every session that was not renewed in time; how many.

    One that would be valid for longer than a validity was not renewed since the database's clock was set back.
    """
    out_of_time = or_(sessions.c.expires_at < now, sessions.c.expires_at > now + validity_ms)
    return _end(connection, out_of_time, now=now, reason="fenced")


def _end(connection: Connection, condition: ColumnElement[bool], *, now: Instant, reason: str) -> int:
    """End those that have not ended, once no transaction holds them any more: an UPDATE alone would not wait for it."""
    query = select(sessions.c.id).where(sessions.c.settled_at.is_(None), sessions.c.ended_at.is_(None), condition)
    ending = list(connection.scalars(query.order_by(sessions.c.id).with_for_update()))
    if ending:
        statement = update(sessions).where(sessions.c.id.in_(ending)).values(ended_at=now, end_reason=reason)
        connection.execute(statement)
    return len(ending)


def unended_except(connection: Connection, session_id: str) -> list[str]:
    """Every other session that has not ended."""
    query = select(sessions.c.id).where(
        sessions.c.settled_at.is_(None), sessions.c.ended_at.is_(None), sessions.c.id != session_id
    )
    return [row[0] for row in fetch(connection, query, {})]


def unsettled(connection: Connection) -> list[str]:
    """Sessions that ended and may have left running runs behind."""
    query = select(sessions.c.id).where(sessions.c.settled_at.is_(None), sessions.c.ended_at.is_not(None))
    return [row[0] for row in fetch(connection, query, {})]


def mark_settled(connection: Connection, session_ids: Sequence[str], now: Instant) -> None:
    connection.execute(update(sessions).where(sessions.c.id.in_(session_ids)).values(settled_at=now))


def live_clock_differences(connection: Connection, now: Instant) -> list[int]:
    """How far the machine's clock of each living node is ahead of the database's, in milliseconds."""
    query = select(func.coalesce(sessions.c.clock_difference_ms, 0)).where(
        sessions.c.settled_at.is_(None), sessions.c.ended_at.is_(None), sessions.c.expires_at > now
    )
    return [row[0] for row in fetch(connection, query, {})]


def delete_settled_before(connection: Connection, before: Instant) -> None:
    """Forget sessions that ended long ago and left nothing behind."""
    connection.execute(sessions.delete().where(sessions.c.settled_at < before))
