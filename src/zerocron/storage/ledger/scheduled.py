"""What the rows of jobs, runs and monitors have in common: a schedule, tags, an age, an instant at which they are due.

Owns these parts of queries. Which rows are meant is for the aggregate's own file to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, func, or_, select, true, tuple_

from zerocron.core.model import Due, Instant
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger.dialect import batch, fetch, pack

_SCHEDULE = (
    "schedule_kind",
    "schedule_cron",
    "schedule_every_ms",
    "schedule_at",
    "timezone",
    "schedule_dst",
    "schedule_day_match",
)
"""In the order of the fields of `Schedule`."""


def schedule_columns(table: Table) -> tuple[Column[Any], ...]:
    return tuple(table.c[name] for name in _SCHEDULE)


def schedule_values(schedule: Schedule) -> dict[str, Any]:
    fields = (
        schedule.kind,
        schedule.cron,
        schedule.every_ms,
        schedule.at,
        schedule.timezone,
        schedule.dst,
        schedule.day_match,
    )
    return dict(zip(_SCHEDULE, fields, strict=True))


def has_tag(tags: Column[str], tag: str) -> ColumnElement[bool]:
    """Not LIKE: it does not tell capitals apart on SQLite, and does on PostgreSQL."""
    return func.replace(tags, orjson.dumps(tag).decode(), "") != tags


def newest_first(query: Select[Any], table: Table, before: tuple[Instant, str] | None, limit: int) -> Select[Any]:
    """A page, from the row after `before` (created_at, id) on."""
    if before is not None:
        query = query.where(tuple_(table.c.created_at, table.c.id) < before)
    return query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit)


Place = tuple[Any, str]
"""A row's place in an order: the value that it is sorted by, and its id."""

LAST: Instant = 2**52
"""Behind every instant: the place of rows that have none."""


def order_of(table: Table, sort: str) -> tuple[ColumnElement[Any], bool]:
    """(what rows are sorted by, whether the largest come first) under a name that the API has for it."""
    keys: dict[str, Callable[[], ColumnElement[Any]]] = {
        "created_at": lambda: table.c.created_at,
        "name": lambda: func.lower(table.c.name),
        "updated": lambda: table.c.updated_at,
        "next_run_at": lambda: func.coalesce(table.c.next_run_at, LAST),
    }
    name = sort.removeprefix("-")
    return keys[name](), sort.startswith("-") or name == "updated"


def in_order(query: Select[Any], table: Table, sort: str, before: Place | None, limit: int) -> Select[Any]:
    """A page in that order, from the row after the place `before` on; each row has the value in front."""
    key, is_descending = order_of(table, sort)
    place = tuple_(key, table.c.id)
    if before is not None:
        query = query.where(place < before if is_descending else place > before)
    order = (key.desc(), table.c.id.desc()) if is_descending else (key, table.c.id)
    return query.with_only_columns(key.label("sort_key"), *query.selected_columns).order_by(*order).limit(limit)


def oldest_due(
    connection: Connection,
    due_at: Column[Any],
    *conditions: ColumnElement[bool],
    limit: int,
    without: Collection[str],
) -> list[Due]:
    """Rows that meet the conditions, by when they are due; those of the teams in `without` are left out."""
    table = due_at.table
    query = (
        select(table.c.team_id, table.c.id, due_at)
        .where(*conditions, table.c.team_id.not_in(without) if without else true())
        .order_by(due_at)
        .limit(limit)
    )
    return [Due(*row) for row in fetch(connection, query, {})]


def due_page(
    connection: Connection, due_at: Column[Any], *, after: tuple[Instant, str], until: Instant, limit: int
) -> list[Due]:
    """Rows due up to `until` by (due_at, id), from the one after `after` on."""
    due, row_id = after
    table = due_at.table
    query = (
        select(table.c.team_id, table.c.id, due_at)
        .where(due_at >= due, due_at <= until, or_(due_at > due, table.c.id > row_id))
        .order_by(due_at, table.c.id)
        .limit(limit)
    )
    return [Due(*row) for row in fetch(connection, query, {})]


def existing(connection: Connection, table: Table, ids: Sequence[str], *conditions: ColumnElement[bool]) -> set[str]:
    """Which of the ids are rows that meet the conditions."""
    wanted = batch(connection.dialect.name, {"id": table.c.id.type}, "wanted")
    query = select(table.c.id).where(table.c.id.in_(select(wanted.c.id)), *conditions)
    return {row[0] for row in fetch(connection, query, pack([[one] for one in ids]))}
