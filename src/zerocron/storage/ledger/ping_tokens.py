"""Ping tokens in the ledger: columns of `monitors` that have a life of their own.

Owns the queries that look tokens up, date them and seal them anew. Must never see a token: what is here is a keyed hash
of it and a sealed form.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Text, select, tuple_, update

from zerocron.core.model import Instant
from zerocron.core.monitor import MonitorStatus
from zerocron.storage.ledger.dialect import POSTGRES_TIME, batch, fetch, pack
from zerocron.storage.ledger.monitor_tables import monitors

_alive = monitors.c.status != MonitorStatus.DELETED


def date(connection: Connection, monitor_id: str) -> None:
    """Let its token have changed at this moment. Last in the transaction that changed it: so the time limits of the
    ledger bound how much later it is committed, whatever time its node lost before."""
    if connection.dialect.name != "sqlite":  # which nobody else reads
        connection.execute(update(monitors).where(monitors.c.id == monitor_id).values(token_changed_at=POSTGRES_TIME))


def changed(connection: Connection, *, after: tuple[Instant, str], limit: int) -> list[tuple[Instant, str, str, bool]]:
    """(changed at, monitor id, token hash, whether it is good) by (changed at, id), from the one after `after` on."""
    query = (
        select(monitors.c.token_changed_at, monitors.c.id, monitors.c.token_hash, monitors.c.status)
        .where(tuple_(monitors.c.token_changed_at, monitors.c.id) > after)
        .order_by(monitors.c.token_changed_at, monitors.c.id)
        .limit(limit)
    )
    return [(row[0], row[1], row[2], row[3] != MonitorStatus.DELETED) for row in fetch(connection, query, {})]


def find(connection: Connection, token_hash: str) -> str | None:
    """The id of the monitor that has this token."""
    return connection.scalar(select(monitors.c.id).where(monitors.c.token_hash == token_hash, _alive))


def sealed(connection: Connection, *, after: str, limit: int) -> list[tuple[str, str]]:
    """(monitor id, its sealed token) by id, from the one after `after` on."""
    query = (
        select(monitors.c.id, monitors.c.token_sealed)
        .where(monitors.c.id > after, _alive)
        .order_by(monitors.c.id)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in fetch(connection, query, {})]


def reseal(connection: Connection, rows: Sequence[Sequence[str]]) -> None:
    """(monitor id, sealed before, sealed anew) of each; one that was rotated meanwhile stays as it is."""
    new = batch(connection.dialect.name, {"id": monitors.c.id.type, "before": Text(), "after": Text()})
    statement = (
        update(monitors)
        .values(token_sealed=new.c.after)
        .where(monitors.c.id == new.c.id, monitors.c.token_sealed == new.c.before)
    )
    connection.execute(statement, pack(rows))
