"""Runs in the ledger.

Owns every query on `runs`. A run is changed by `move` only, guarded by the status and attempt it was seen with, and
only while its job's row is held (`jobs.lock`), which is therefore the lock of all its runs: one order of locking for
everybody, so nobody waits in a circle. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Column, Connection, Integer, Select, bindparam, func, select, tuple_, update
from sqlalchemy.sql import Insert, Update

from zerocron.core.model import Due, Instant, Run, RunStatus
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, insert_batch, pack, packed
from zerocron.storage.ledger.scheduled import oldest_due
from zerocron.storage.ledger.tables import RUN_IS_OPEN, runs

COLUMNS: tuple[Column[Any], ...] = (
    runs.c.id,
    runs.c.scheduled_for,
    runs.c.trigger_key,
    runs.c.job_id,
    runs.c.team_id,
    runs.c.job_version,
    runs.c.triggered_by,
    runs.c.status,
    runs.c.reason,
    runs.c.attempt,
    runs.c.cause,
    runs.c.redeliveries,
    runs.c.retry_at,
    runs.c.session_id,
    runs.c.attempt_started_at,
    runs.c.created_at,
    runs.c.started_at,
    runs.c.finished_at,
    runs.c.count,
    runs.c.scheduled_until,
)
_MOVING: tuple[Column[Any], ...] = (
    runs.c.status,
    runs.c.reason,
    runs.c.attempt,
    runs.c.cause,
    runs.c.redeliveries,
    runs.c.retry_at,
    runs.c.session_id,
    runs.c.attempt_started_at,
    runs.c.started_at,
    runs.c.finished_at,
)
Seen = tuple[str, int]
"""The status and attempt a run was read with."""


def insert(connection: Connection, new: Sequence[Run]) -> int:
    """New runs; how many were written. A run whose slot has one already raises IntegrityError."""
    rows = pack([_all_values(run) for run in new])
    return connection.execute(_insert_statement(connection.dialect.name), rows).rowcount


@cache
def _insert_statement(dialect: str) -> Insert:
    return insert_batch(dialect, COLUMNS)


def move(connection: Connection, moved: Sequence[tuple[Run, Seen]]) -> int:
    """Write the new state of runs that are still as they were seen; how many were."""
    rows = pack([[run.id, run.scheduled_for, *seen, *_moving_values(run)] for run, seen in moved])
    return connection.execute(_move_statement(connection.dialect.name), rows).rowcount


@cache
def _move_statement(dialect: str) -> Update:
    guard = {"seen_status": runs.c.status.type, "seen_attempt": runs.c.attempt.type}
    rows = batch(dialect, columns_of((runs.c.id, runs.c.scheduled_for)) | guard | columns_of(_MOVING))
    return (
        update(runs)
        .values({column: rows.c[column.name] for column in _MOVING})
        .where(
            runs.c.id == rows.c.id,
            runs.c.scheduled_for == rows.c.scheduled_for,
            runs.c.status == rows.c.seen_status,
            runs.c.attempt == rows.c.seen_attempt,
        )
    )


def seen(run: Run) -> Seen:
    """Remember what a run was before it is changed, for the guard of `move`."""
    return run.status, run.attempt


def of_ids(connection: Connection, run_ids: Sequence[str]) -> dict[str, Run]:
    """The runs by id."""
    query = _of_ids_statement(connection.dialect.name)
    return {row[0]: Run(*row) for row in fetch(connection, query, pack([[run_id] for run_id in run_ids]))}


@cache
def _of_ids_statement(dialect: str) -> Select[Any]:
    wanted = batch(dialect, {"id": runs.c.id.type}, "wanted")
    return packed(dialect, select(*COLUMNS).where(runs.c.id.in_(select(wanted.c.id))))


def open_of_job(connection: Connection, job_id: str, statuses: Collection[RunStatus]) -> list[Run]:
    """The runs of a job that have one of these open statuses."""
    query = select(*COLUMNS).where(runs.c.job_id == job_id, RUN_IS_OPEN, runs.c.status.in_(sorted(statuses)))
    return [Run(*row) for row in fetch(connection, query, {})]


def some_open(connection: Connection, limit: int) -> list[Run]:
    """Some of the open runs."""
    return [Run(*row) for row in fetch(connection, select(*COLUMNS).where(RUN_IS_OPEN).limit(limit), {})]


def running_of_sessions(connection: Connection, session_ids: Sequence[str], limit: int) -> list[Run]:
    """Running runs that belong to these sessions."""
    query = (
        select(*COLUMNS)
        .where(RUN_IS_OPEN, runs.c.status == RunStatus.RUNNING, runs.c.session_id.in_(session_ids))
        .limit(limit)
    )
    return [Run(*row) for row in fetch(connection, query, {})]


def get(connection: Connection, team_id: str, run_id: str) -> Run | None:
    """The run, unless there is none or it is another team's."""
    row = connection.execute(select(*COLUMNS).where(runs.c.id == run_id, runs.c.team_id == team_id)).first()
    return None if row is None else Run(*row)


def newest_slot(connection: Connection, job_id: str) -> Instant | None:
    """The latest slot of a job that has a record, run or skipped; None when none has."""
    query = (
        select(func.coalesce(runs.c.scheduled_until, runs.c.scheduled_for))
        .where(runs.c.job_id == job_id, runs.c.trigger_key == "")
        .order_by(runs.c.scheduled_for.desc())
        .limit(1)
    )
    found: Instant | None = connection.scalar(query)
    return found


def page_of_job(
    connection: Connection,
    job_id: str,
    *,
    status: str | None,
    before: tuple[Instant, str] | None,
    limit: int,
) -> list[Run]:
    """Runs of a job, latest slot first, from the one after `before` (scheduled_for, trigger_key) on."""
    query = select(*COLUMNS).where(runs.c.job_id == job_id)
    if status is not None:
        query = query.where(runs.c.status == status)
    if before is not None:
        query = query.where(tuple_(runs.c.scheduled_for, runs.c.trigger_key) < before)
    query = query.order_by(runs.c.scheduled_for.desc(), runs.c.trigger_key.desc()).limit(limit)
    return [Run(*row) for row in fetch(connection, query, {})]


def due(connection: Connection, *, until: Instant, limit: int, without: Collection[str] = ()) -> list[Due]:
    """Waiting runs due up to the instant, oldest first; those of the teams in `without` are left out."""
    return oldest_due(connection, runs.c.retry_at, runs.c.retry_at <= until, limit=limit, without=without)


def oldest_of_jobs(
    connection: Connection, job_ids: Sequence[str], keep: int
) -> list[tuple[str, Instant | None, Instant | None]]:
    """(job id, the earliest slot it has a run of, the slot of its `keep`-th newest run); None where there is none."""
    query = _oldest_statement(connection.dialect.name)
    parameters = pack([[job_id] for job_id in job_ids]) | {"newer": keep - 1}
    return [(job_id, oldest, kept) for job_id, oldest, kept in fetch(connection, query, parameters)]


@cache
def _oldest_statement(dialect: str) -> Select[Any]:
    wanted = batch(dialect, {"id": runs.c.id.type}, "wanted")
    of_job = select(runs.c.scheduled_for).where(runs.c.job_id == wanted.c.id).correlate(wanted)
    newest_first = of_job.order_by(runs.c.scheduled_for.desc()).limit(1)
    kept = newest_first.offset(bindparam("newer", type_=Integer()))
    oldest = of_job.order_by(runs.c.scheduled_for).limit(1)
    return packed(dialect, select(wanted.c.id, oldest.scalar_subquery(), kept.scalar_subquery().label("kept")))


def delete_of_job(connection: Connection, job_id: str, *, before: Instant, limit: int) -> list[tuple[str, Instant]]:
    """Remove finished runs of a job scheduled before the instant; the keys of those removed, at most `limit`."""
    chosen = (
        select(runs.c.id, runs.c.scheduled_for)
        .where(runs.c.job_id == job_id, runs.c.scheduled_for < before, runs.c.finished_at.is_not(None))
        .limit(limit)
    )
    found = [(run_id, slot) for run_id, slot in fetch(connection, chosen, {})]
    if found:
        rows = batch(connection.dialect.name, columns_of((runs.c.id, runs.c.scheduled_for)))
        doomed = select(rows.c.id, rows.c.scheduled_for)
        connection.execute(runs.delete().where(tuple_(runs.c.id, runs.c.scheduled_for).in_(doomed)), pack(found))
    return found


_all_values = attrgetter(*(column.name for column in COLUMNS))
_moving_values = attrgetter(*(column.name for column in _MOVING))
