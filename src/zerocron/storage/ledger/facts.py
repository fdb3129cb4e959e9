"""Facts about the ledger itself, such as the zone data its instants were computed with."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from zerocron.storage.ledger.dialect import insert_batch, pack
from zerocron.storage.ledger.tables import facts


def get(connection: Connection, name: str) -> str | None:
    value = connection.scalar(select(facts.c.value).where(facts.c.name == name))
    return None if value is None else str(value)


def put(connection: Connection, name: str, value: str) -> None:
    if connection.execute(update(facts).where(facts.c.name == name).values(value=value)).rowcount == 0:
        connection.execute(
            insert_batch(connection.dialect.name, (facts.c.name, facts.c.value), ignore_existing=True),
            pack([[name, value]]),
        )


def add(connection: Connection, name: str, value: str) -> None:
    """Put a fact that is not there yet; one that is stays as it is, also if another node adds it at this moment."""
    connection.execute(
        insert_batch(connection.dialect.name, (facts.c.name, facts.c.value), ignore_existing=True),
        pack([[name, value]]),
    )
