"""The few places where SQLite and PostgreSQL differ, and nothing else.

Owns how a batch of rows goes into a statement and comes out of one. Everything above it writes one set of queries.

Why batches travel as one JSON value: Python's sqlite3 releases the interpreter lock at every row it steps over and
every parameter set it binds, and must win it back from a busy event loop each time. One JSON text in, one JSON text
out: SQLite does the whole batch in C, without the lock (decision 0005 has the figures). PostgreSQL takes the same text
through jsonb_array_elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Float,
    Integer,
    Select,
    Subquery,
    bindparam,
    cast,
    column,
    func,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import Insert
from sqlalchemy.types import Text, TypeEngine

ROWS = "rows"
"""The name of the one parameter of a batched statement: a JSON array of arrays (`pack`)."""


def pack(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The parameter of a batched statement."""
    return {ROWS: orjson.dumps(rows).decode()}


def batch(dialect: str, columns: Mapping[str, TypeEngine[Any]], name: str = "batch") -> Subquery:
    """The packed rows as a table named `name` with these columns, in this order."""
    rows = bindparam(ROWS, type_=Text())
    if dialect == "sqlite":
        each = func.json_each(rows).table_valued(column("value", Text()))
        fields = [
            func.json_extract(each.c.value, f"$[{index}]", type_=kind).label(label)
            for index, (label, kind) in enumerate(columns.items())
        ]
        return select(*fields).subquery(name)
    elements = func.jsonb_array_elements(cast(rows, postgresql.JSONB)).table_valued(
        column("value", postgresql.JSONB), name=f"{name}_elements"
    )
    fields = [
        cast(elements.c.value.op("->>")(index), kind if _is_number(kind) else Text()).label(label)
        for index, (label, kind) in enumerate(columns.items())
    ]
    return select(*fields).subquery(name)


def _is_number(kind: TypeEngine[Any]) -> bool:
    return isinstance(kind, (Integer, BigInteger, Float, Double))


def columns_of(columns: Iterable[Column[Any]]) -> dict[str, TypeEngine[Any]]:
    """Names and types of table columns, as `batch` takes them."""
    return {item.name: item.type for item in columns}


def insert_batch(dialect: str, columns: Sequence[Column[Any]], *, ignore_existing: bool = False) -> Insert:
    """INSERT of packed rows into the columns' table. `ignore_existing` leaves a row alone whose key is there."""
    table = columns[0].table
    names = [item.name for item in columns]
    source = select(batch(dialect, columns_of(columns)))
    if not ignore_existing:
        return table.insert().from_select(names, source)
    # SQLite cannot tell the ON of a conflict clause from a join without a WHERE before it.
    if dialect == "sqlite":
        return sqlite.insert(table).from_select(names, source.where(true())).on_conflict_do_nothing()
    return postgresql.insert(table).from_select(names, source).on_conflict_do_nothing()


def packed(dialect: str, query: Select[Any]) -> Select[Any]:
    """The query in the form `fetch` runs it in: on SQLite its rows come as one JSON text. For queries that are kept."""
    if dialect != "sqlite":
        return query
    inner = query.subquery("packed")
    return select(func.json_group_array(func.json_array(*inner.c)).label(_PACKED))


_PACKED = "packed_rows"


def fetch(connection: Connection, query: Select[Any], parameters: Mapping[str, Any]) -> list[Any]:
    """All rows of a bounded query as lists, its columns in order."""
    if connection.dialect.name == "sqlite":
        if query.selected_columns.keys() != [_PACKED]:
            query = packed("sqlite", query)
        rows: list[Any] = orjson.loads(connection.execute(query, parameters).scalar_one())
        return rows
    return [list(row) for row in connection.execute(query, parameters)]


def lock_rows(query: Select[Any]) -> Select[Any]:
    """Hold the rows until the transaction ends, passing over those another node holds.

    SQLite renders nothing for it: its write transaction holds the whole file already.
    """
    return query.with_for_update(skip_locked=True)
