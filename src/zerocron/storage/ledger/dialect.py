"""The few places where SQLite and PostgreSQL differ, and nothing else.

Owns how a batch of rows goes into a statement and comes out of one. Everything above it writes one set of queries.

Why batches travel as one JSON value: Python's sqlite3 releases the interpreter lock at every row it steps over and
every parameter set it binds, and must win it back from a busy event loop each time. One JSON text in, one JSON text
out: SQLite does the whole batch in C, without the lock (decision 0005 has the figures).

PostgreSQL takes the same text, too: 200 runs cost the process 0.2 ms of its one core so, and 1.1 ms as an array for
each column. From a kilobyte of text a row on it is the other way round (200 executions with answers of 4 kB: 15 ms,
and 7 ms as arrays; of 30 kB: 100 ms and 39 ms), so rows that may hold so much go in as `wide` ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    Float,
    Integer,
    LargeBinary,
    Select,
    Subquery,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import Insert
from sqlalchemy.types import Text, TypeEngine

ROWS = "rows"
"""The name of the one parameter of a batched statement: a JSON array of arrays (`pack`). Those of a wide one have a
number behind it."""

POSTGRES_TIME: ColumnElement[Any] = literal_column("floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
"""The instant at which PostgreSQL comes to it, by its own clock."""


def pack(rows: Sequence[Sequence[Any]], parameter: str = ROWS) -> dict[str, str]:
    """The parameter of a batched statement."""
    return {parameter: orjson.dumps(rows).decode()}


def pack_wide(dialect: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The parameters of a batched statement that was made `wide`."""
    if dialect == "sqlite":
        return pack(rows)
    return {f"{ROWS}_{index}": values for index, values in enumerate(zip(*rows, strict=True))}


def batch(
    dialect: str,
    columns: Mapping[str, TypeEngine[Any]],
    name: str = "batch",
    *,
    wide: bool = False,
    parameter: str = ROWS,
) -> Subquery:
    """The packed rows as a table named `name` with these columns, in this order. `parameter` where a statement takes
    two batches."""
    rows = bindparam(parameter, type_=Text())
    if dialect == "sqlite":
        each = func.json_each(rows).table_valued(column("value", Text()))
        fields = [
            func.json_extract(each.c.value, f"$[{index}]", type_=kind).label(label)
            for index, (label, kind) in enumerate(columns.items())
        ]
        return select(*fields).subquery(name)
    if wide:
        arrays = [
            bindparam(f"{ROWS}_{index}", (), type_=postgresql.ARRAY(_on_postgres(kind)))
            for index, kind in enumerate(columns.values())
        ]
        table = func.unnest(*arrays).table_valued(*columns).render_derived(name=f"{name}_columns")
        return select(*table.c).subquery(name)
    elements = func.jsonb_array_elements(cast(rows, postgresql.JSONB)).table_valued(
        column("value", postgresql.JSONB), name=f"{name}_elements"
    )
    fields = [
        cast(elements.c.value.op("->>")(literal_column(str(index))), _on_postgres(kind)).label(label)
        for index, (label, kind) in enumerate(columns.items())
    ]
    return select(*fields).subquery(name)


def _on_postgres(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Texts without their limit, whose keeping is up to the column: a cast would cut them off in silence."""
    return kind if isinstance(kind, (Integer, BigInteger, Float, Double)) else Text()


def columns_of(columns: Iterable[Column[Any]]) -> dict[str, TypeEngine[Any]]:
    """Names and types of table columns, as `batch` takes them."""
    return {item.name: item.type for item in columns}


def insert_batch(
    dialect: str, columns: Sequence[Column[Any]], *, ignore_existing: bool = False, wide: bool = False
) -> Insert:
    """INSERT of packed rows into the columns' table. `ignore_existing` leaves a row alone whose key is there."""
    table = columns[0].table
    names = [item.name for item in columns]
    source = select(batch(dialect, columns_of(columns), wide=wide))
    if not ignore_existing:
        return table.insert().from_select(names, source)
    # SQLite cannot tell the ON of a conflict clause from a join without a WHERE before it.
    if dialect == "sqlite":
        return sqlite.insert(table).from_select(names, source.where(true())).on_conflict_do_nothing()
    return postgresql.insert(table).from_select(names, source).on_conflict_do_nothing()


def insert_or_hold(dialect: str, columns: Sequence[Column[Any]], key: Sequence[Column[Any]]) -> Insert:
    """INSERT of packed rows; one whose key is there already is held until the transaction ends, as it is."""
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    source = select(batch(dialect, columns_of(columns))).where(true())
    names = [item.name for item in columns]
    return (
        insert(columns[0].table)
        .from_select(names, source)
        .on_conflict_do_update(index_elements=list(key), set_={key[0].name: key[0]})
    )


def byte_length(dialect: str, text: ColumnElement[Any]) -> ColumnElement[int]:
    """Of a text, in UTF-8; 0 of none. PostgreSQL does not even unpack it for that."""
    if dialect == "sqlite":
        return func.coalesce(func.length(cast(text, LargeBinary())), 0)
    return func.coalesce(func.octet_length(text), 0)


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
