"""Executions in the ledger: every attempt, with what was sent and what came back.

Owns every query on `executions`. Rows are written once, when the attempt has ended or its node is known to be lost; a
result that comes after that is added to the row and changes nothing else. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import add, attrgetter
from typing import Any

import orjson
from sqlalchemy import BigInteger, Column, Connection, and_, case, cast, func, null, select, tuple_, update
from sqlalchemy.sql import Insert

from zerocron.core.model import Execution, Instant
from zerocron.storage.ledger.dialect import batch, byte_length, columns_of, fetch, insert_batch, pack, pack_wide
from zerocron.storage.ledger.tables import executions, runs

COLUMNS: tuple[Column[Any], ...] = (
    executions.c.run_id,
    executions.c.scheduled_for,
    executions.c.attempt,
    executions.c.job_id,
    executions.c.team_id,
    executions.c.session_id,
    executions.c.cause,
    executions.c.status,
    executions.c.started_at,
    executions.c.finished_at,
    executions.c.duration_ms,
    executions.c.timings,
    executions.c.request,
    executions.c.request_body,
    executions.c.response,
    executions.c.response_body,
    executions.c.error_kind,
    executions.c.error_message,
)
_attributes = attrgetter(*(column.name for column in COLUMNS))
_JSON = [index for index, column in enumerate(COLUMNS) if column.name in ("timings", "request", "response")]
_LATE: tuple[Column[Any], ...] = (
    executions.c.finished_at,
    executions.c.duration_ms,
    executions.c.timings,
    executions.c.response,
    executions.c.response_body,
)
_WEIGHED = (
    executions.c.request,
    executions.c.request_body,
    executions.c.response,
    executions.c.response_body,
)
LISTED_BODY_CHARACTERS_MAX = 8_192
"""Longer bodies are left out of lists; the execution itself has them."""


def insert(connection: Connection, new: Sequence[Execution]) -> None:
    """Record ended attempts. One that is recorded already stays as it is."""
    dialect = connection.dialect.name
    connection.execute(_insert_statement(dialect), pack_wide(dialect, [_all_values(execution) for execution in new]))


@cache
def _insert_statement(dialect: str) -> Insert:
    return insert_batch(dialect, COLUMNS, ignore_existing=True, wide=True)


def add_late_results(connection: Connection, late: Sequence[Execution]) -> None:
    """Keep what came back for attempts that were given up as lost; their status stays."""
    keys = (executions.c.run_id, executions.c.scheduled_for, executions.c.attempt)
    rows = batch(connection.dialect.name, columns_of((*keys, *_LATE)))
    statement = (
        update(executions)
        .values({column: rows.c[column.name] for column in _LATE})
        .where(*(key == rows.c[key.name] for key in keys), executions.c.error_kind == "node_lost")
    )
    connection.execute(statement, pack([_values(execution, (*keys, *_LATE)) for execution in late]))


def get(connection: Connection, team_id: str, run_id: str, attempt: int) -> Execution | None:
    """The execution, unless there is none or it is another team's."""
    query = select(*COLUMNS).where(
        executions.c.run_id == run_id, executions.c.attempt == attempt, executions.c.team_id == team_id
    )
    row = connection.execute(query).first()
    return None if row is None else _execution(row)


def of_run(connection: Connection, run_id: str) -> list[Execution]:
    """All executions of a run in order, with their bodies up to `LISTED_BODY_CHARACTERS_MAX`."""
    query = select(*_listed()).where(executions.c.run_id == run_id).order_by(executions.c.attempt)
    return [_execution(row) for row in fetch(connection, query, {})]


def page_of_job(
    connection: Connection, job_id: str, *, before: tuple[Instant, str, int] | None, limit: int
) -> list[tuple[str, Execution]]:
    """(trigger key of the run, execution) of a job, latest slot first, from the one after `before` on.

    `before` is (scheduled_for, trigger_key, attempt). The order is that of the runs' index, which leads to the
    executions of a job without an index of their own on the hot path.
    """
    keys = (runs.c.scheduled_for, runs.c.trigger_key, executions.c.attempt)
    query = (
        select(runs.c.trigger_key, *_listed())
        .join_from(
            runs,
            executions,
            and_(executions.c.run_id == runs.c.id, executions.c.scheduled_for == runs.c.scheduled_for),
        )
        .where(runs.c.job_id == job_id)
    )
    if before is not None:
        # The first condition follows from the second, and only it leads to the place in the index.
        query = query.where(runs.c.scheduled_for <= before[0], tuple_(*keys) < before)
    query = query.order_by(*(key.desc() for key in keys)).limit(limit)
    return [(row[0], _execution(row[1:])) for row in fetch(connection, query, {})]


def count_of_kinds(
    connection: Connection, run_keys: Sequence[tuple[str, Instant]], kinds: Sequence[str]
) -> dict[str, int]:
    """How many executions of these runs ended with one of the kinds of error; runs without any are left out."""
    wanted = batch(connection.dialect.name, columns_of((executions.c.run_id, executions.c.scheduled_for)), "wanted")
    same = and_(executions.c.run_id == wanted.c.run_id, executions.c.scheduled_for == wanted.c.scheduled_for)
    query = (
        select(executions.c.run_id, func.count().label("executions"))
        .join_from(wanted, executions, same)
        .where(executions.c.error_kind.in_(kinds))
        .group_by(executions.c.run_id)
    )
    return dict(fetch(connection, query, pack([list(key) for key in run_keys])))


def bytes_of_job(
    connection: Connection, job_id: str, *, after: Instant, limit: int, span_ms: int
) -> tuple[dict[Instant, int], Instant | None]:
    """What was sent and answered for the next `limit` or so runs of a job, with slots after the instant: the bytes of
    heads and bodies, by the span of time the slot is in; and after which slot to go on, None at the end."""
    of_job = runs.c.job_id == job_id
    until: Instant | None = connection.scalar(
        select(runs.c.scheduled_for)
        .where(of_job, runs.c.scheduled_for > after)
        .order_by(runs.c.scheduled_for)
        .offset(limit - 1)
        .limit(1)
    )
    span = (executions.c.scheduled_for - executions.c.scheduled_for % span_ms).label("span")
    size = reduce(add, (byte_length(connection.dialect.name, column) for column in _WEIGHED))
    same = and_(executions.c.run_id == runs.c.id, executions.c.scheduled_for == runs.c.scheduled_for)
    query = (
        select(span, cast(func.sum(size), BigInteger).label("bytes"))
        .select_from(runs)
        .join(executions, same)
        .where(of_job, runs.c.scheduled_for > after)
        .group_by(span)
    )
    if until is not None:
        query = query.where(runs.c.scheduled_for <= until)
    return dict(fetch(connection, query, {})), until


def delete_of_runs(connection: Connection, run_keys: Sequence[tuple[str, Instant]]) -> None:
    """Remove the executions of runs that are removed."""
    rows = batch(connection.dialect.name, columns_of((executions.c.run_id, executions.c.scheduled_for)))
    doomed = select(rows.c.run_id, rows.c.scheduled_for)
    connection.execute(
        executions.delete().where(tuple_(executions.c.run_id, executions.c.scheduled_for).in_(doomed)),
        pack([list(run_key) for run_key in run_keys]),
    )


def _listed() -> list[Any]:
    bodies = (executions.c.request_body, executions.c.response_body)
    return [
        case((func.length(column) <= LISTED_BODY_CHARACTERS_MAX, column), else_=null()).label(column.name)
        if column in bodies
        else column
        for column in COLUMNS
    ]


def _all_values(execution: Execution) -> list[Any]:
    values = list(_attributes(execution))
    for index in _JSON:
        if values[index] is not None:
            values[index] = orjson.dumps(values[index]).decode()
    return values


def _values(execution: Execution, columns: Sequence[Column[Any]]) -> list[Any]:
    by_name = dict(zip((column.name for column in COLUMNS), _all_values(execution), strict=True))
    return [by_name[column.name] for column in columns]


def _execution(row: Sequence[Any]) -> Execution:
    fields = dict(zip((column.name for column in COLUMNS), row, strict=True))
    for name in ("timings", "request", "response"):
        if fields[name] is not None:
            fields[name] = orjson.loads(fields[name])
    return Execution(**fields)
