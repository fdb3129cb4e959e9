"""Jobs and their versions in the ledger.

Owns every query on `jobs` and `job_versions`. `save_states` never touches what a user wrote; `update_definition` moves
the cursor and what belongs to it, and leaves the engine's counters alone. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    case,
    func,
    literal,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.sql import Update

from zerocron.core.model import (
    Definition,
    Due,
    EngineJob,
    Instant,
    Job,
    JobState,
    JobStatus,
    LastRun,
    Overlap,
    delivery_of_json,
)
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import scheduled
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, lock_rows, pack, packed
from zerocron.storage.ledger.scheduled import (
    Place,
    has_tag,
    in_order,
    oldest_due,
    schedule_columns,
    schedule_values,
)
from zerocron.storage.ledger.tables import job_versions, jobs, teams

_DEFINITION: tuple[Column[Any], ...] = (
    jobs.c.method,
    jobs.c.url,
    jobs.c.headers,
    jobs.c.body,
    jobs.c.timeout_seconds,
    jobs.c.delivery,
)
_SCHEDULE = schedule_columns(jobs)
_STATE: tuple[Column[Any], ...] = (
    jobs.c.next_run_at,
    jobs.c.active_run_id,
    jobs.c.active_since,
    jobs.c.queued_run_id,
    jobs.c.crowded,
    jobs.c.succeeded,
    jobs.c.failed,
    jobs.c.skipped,
    jobs.c.consecutive_failures,
    jobs.c.duration_ms_total,
    jobs.c.status_reason,
    jobs.c.last_run_id,
    jobs.c.last_run_status,
    jobs.c.last_run_scheduled_for,
    jobs.c.last_run_finished_at,
)
_OWN: tuple[Column[Any], ...] = (
    jobs.c.id,
    jobs.c.team_id,
    jobs.c.version,
    jobs.c.status,
    jobs.c.name,
    jobs.c.schedule,
    jobs.c.overlap,
    jobs.c.catchup,
    jobs.c.catchup_window_seconds,
    jobs.c.on_lost,
    jobs.c.disable_after,
    jobs.c.notify,
    jobs.c.tags,
    jobs.c.warnings,
    jobs.c.language,
    jobs.c.created_at,
    jobs.c.updated_at,
)
_POLICY: tuple[Column[Any], ...] = (
    jobs.c.id,
    jobs.c.team_id,
    jobs.c.version,
    jobs.c.status,
    jobs.c.overlap,
    jobs.c.catchup,
    jobs.c.catchup_window_seconds,
    jobs.c.on_lost,
    jobs.c.disable_after,
    jobs.c.notify,
    jobs.c.alert_state,
)
STARTED_BODY_CHARACTERS_MAX = 16_384
LISTED_BODY_CHARACTERS_MAX = 8_192
"""Longer bodies are left out of lists; the job itself has them."""


def _with_short_body(columns: Sequence[Column[Any]], characters_max: int) -> list[ColumnElement[Any]]:
    short = case((func.length(jobs.c.body) <= characters_max, jobs.c.body), else_=null()).label("body")
    return [short if column is jobs.c.body else column for column in columns]


_team_limit = select(teams.c.runs_per_minute_max).where(teams.c.id == jobs.c.team_id).scalar_subquery()
_has_body = jobs.c.body.is_not(None).label("has_body")
_ALL = (*_OWN, *_SCHEDULE, *_DEFINITION, *_STATE)
_N_OWN, _N_SCHEDULE, _N_DEFINITION = len(_OWN), len(_SCHEDULE), len(_DEFINITION)
_N_STATE = len(_STATE)
_N_COUNTERS = _N_STATE - 4  # what follows is the last run


def insert(connection: Connection, job: Job) -> None:
    """A new job and its first version."""
    connection.execute(jobs.insert(), _user_values(job) | {"id": job.id, "next_run_at": job.state.next_run_at})
    _insert_version(connection, job)


def update_definition(connection: Connection, job: Job, *, seen_version: int) -> bool:
    """Write what a user changed, as a new version; False when the job is no longer at `seen_version`."""
    statement = (
        update(jobs)
        .where(jobs.c.id == job.id, jobs.c.version == seen_version, jobs.c.status != JobStatus.DELETED)
        .values(
            _user_values(job)
            | {
                "next_run_at": job.state.next_run_at,
                "active_run_id": job.state.active_run_id,
                "active_since": job.state.active_since,
                "queued_run_id": job.state.queued_run_id,
                "crowded": job.state.crowded,
                "skipped": job.state.skipped,
                "status_reason": job.state.status_reason,
            }
        )
    )
    if connection.execute(statement).rowcount != 1:
        return False
    _insert_version(connection, job)
    return True


def forget_failures(connection: Connection, job_id: str) -> None:
    """Count the failed runs in a row from nothing again."""
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(consecutive_failures=0))


def get(connection: Connection, team_id: str, job_id: str, *, lock: bool = False) -> Job | None:
    """The job, unless there is none, it is deleted, or it is another team's."""
    query = select(*_ALL).where(jobs.c.id == job_id, jobs.c.team_id == team_id, jobs.c.status != JobStatus.DELETED)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _job(row)


def page(
    connection: Connection,
    team_id: str,
    *,
    status: str | None,
    tag: str | None,
    text: str | None,
    before: Place | None,
    limit: int,
    state: ColumnElement[bool] | None = None,
    sort: str = "-created_at",
) -> list[tuple[Any, Job]]:
    """(what it is sorted by, job) in that order, from the one after the place `before` on; without longer bodies.

    `state` is a further condition, one of those that `glances` has.
    """
    query = select(*_with_short_body(_ALL, LISTED_BODY_CHARACTERS_MAX)).where(
        jobs.c.team_id == team_id, jobs.c.status != JobStatus.DELETED
    )
    if status is not None:
        query = query.where(jobs.c.status == status)
    if state is not None:
        query = query.where(state)
    if tag is not None:
        query = query.where(has_tag(jobs.c.tags, tag))
    if text is not None:
        query = query.where(
            or_(jobs.c.name.icontains(text, autoescape=True), jobs.c.url.icontains(text, autoescape=True))
        )
    rows = fetch(connection, in_order(query, jobs, sort, before, limit), {})
    return [(row[0], _job(row[1:])) for row in rows]


def lock(connection: Connection, job_ids: Sequence[str], *, to_start: bool = False) -> dict[str, EngineJob]:
    """The jobs by id, deleted ones too, held until the transaction ends. A job another node holds is left out: whoever
    misses one asks `existing` whether it is held or gone.

    `to_start` brings their schedules, the limit of their team and their definitions along; the definition of a job with
    a long body stays behind (None), so that a batch of two hundred is not two hundred megabytes.
    """
    query = _lock_statement(connection.dialect.name, to_start=to_start)
    return {row[0]: _engine_job(row) for row in fetch(connection, query, pack([[job_id] for job_id in job_ids]))}


def existing(connection: Connection, job_ids: Sequence[str]) -> set[str]:
    """Which of the ids are jobs, deleted ones too."""
    return scheduled.existing(connection, jobs, job_ids)


def statuses(connection: Connection, job_ids: Iterable[str]) -> dict[str, str]:
    """What these jobs are now: active, paused, and so on."""
    rows = batch(connection.dialect.name, columns_of([jobs.c.id]))
    query = select(jobs.c.id, jobs.c.status).where(jobs.c.id == rows.c.id)
    return {row[0]: row[1] for row in connection.execute(query, pack([[job_id] for job_id in job_ids]))}


def wait_for(connection: Connection, job_id: str) -> None:
    """Hold a job, after whoever holds it now has committed or not."""
    connection.execute(select(jobs.c.id).where(jobs.c.id == job_id).with_for_update())


@cache
def _lock_statement(dialect: str, *, to_start: bool) -> Select[Any]:
    wanted = batch(dialect, {"id": jobs.c.id.type}, "wanted")
    columns: tuple[ColumnElement[Any], ...] = (*_POLICY, *_STATE)
    if to_start:
        columns = (*columns, *_SCHEDULE, *_with_short_body(_DEFINITION, STARTED_BODY_CHARACTERS_MAX))
        columns = (*columns, _team_limit.label("runs_per_minute_max"), _has_body)
    return packed(dialect, lock_rows(select(*columns).where(jobs.c.id.in_(select(wanted.c.id)))))


def save_states(connection: Connection, changed: Sequence[Job | EngineJob], seen: Mapping[str, Instant | None]) -> int:
    """Write the engine's part of jobs that were locked in this transaction; how many rows it met.

    `seen` has the `next_run_at` each was locked with: the compare of the compare-and-set. A job whose
    schedule has no slot left becomes `completed` through its status.
    """
    rows = pack([[job.id, job.version, seen[job.id], job.status, *_state_values(job.state)] for job in changed])
    return connection.execute(_save_states_statement(connection.dialect.name), rows).rowcount


@cache
def _save_states_statement(dialect: str) -> Update:
    columns = {"id": jobs.c.id.type, "seen_version": Integer(), "seen_next_run_at": jobs.c.next_run_at.type}
    rows = batch(dialect, columns | columns_of((jobs.c.status, *_STATE)))
    return (
        update(jobs)
        .values({column: rows.c[column.name] for column in (jobs.c.status, *_STATE)})
        .where(
            jobs.c.id == rows.c.id,
            jobs.c.version == rows.c.seen_version,
            jobs.c.next_run_at.is_not_distinct_from(rows.c.seen_next_run_at),
        )
    )


def disable(connection: Connection, job: EngineJob, *, now: Instant) -> None:
    """Note that a job which was locked in this transaction is disabled now, as a version that is otherwise the same."""
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(version=jobs.c.version + 1, updated_at=now))
    before = select(
        job_versions.c.job_id,
        job_versions.c.version + 1,
        job_versions.c.team_id,
        literal(JobStatus.DISABLED, job_versions.c.status.type),
        job_versions.c.schedule,
        job_versions.c.definition,
        literal(now, job_versions.c.created_at.type),
    ).where(job_versions.c.job_id == job.id, job_versions.c.version == job.version)
    connection.execute(job_versions.insert().from_select([column.name for column in job_versions.c], before))


def definitions(connection: Connection, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Definition]:
    """What jobs were at earlier versions, by (job id, version)."""
    keys = batch(connection.dialect.name, columns_of((job_versions.c.job_id, job_versions.c.version)), "wanted")
    query = select(job_versions.c.job_id, job_versions.c.version, job_versions.c.definition).where(
        job_versions.c.job_id == keys.c.job_id, job_versions.c.version == keys.c.version
    )
    rows = fetch(connection, query, pack([list(key) for key in wanted]))
    return {(job_id, version): Definition.from_json(orjson.loads(raw)) for job_id, version, raw in rows}


def overdue(connection: Connection, *, before: Instant, limit: int, without: Collection[str] = ()) -> list[Due]:
    """Jobs due before the instant, oldest first; those of the teams in `without` are left out.

    A job whose slot waits for its own active run is left out: the end of that run brings it back.
    """
    waits = and_(
        jobs.c.overlap != Overlap.ALLOW, jobs.c.active_run_id.is_not(None), jobs.c.next_run_at <= jobs.c.active_since
    )
    conditions = (jobs.c.next_run_at < before, or_(jobs.c.active_since.is_(None), ~waits))
    return oldest_due(connection, jobs.c.next_run_at, *conditions, limit=limit, without=without)


def due_page(connection: Connection, *, after: tuple[Instant, str], until: Instant, limit: int) -> list[Due]:
    """Jobs due up to `until` by (next_run_at, id), from the one after `after` on."""
    return scheduled.due_page(connection, jobs.c.next_run_at, after=after, until=until, limit=limit)


def ids_page(connection: Connection, after: str, limit: int) -> list[str]:
    """Ids of all jobs, deleted ones too, in order, from the one after `after` on."""
    query = select(jobs.c.id).where(jobs.c.id > after).order_by(jobs.c.id).limit(limit)
    return [row[0] for row in fetch(connection, query, {})]


def ids_of_team(
    connection: Connection, team_id: str, after: tuple[Instant, str], limit: int
) -> list[tuple[Instant, str]]:
    """(created_at, id) of a team's jobs, deleted ones too, in order, from the one after `after` on."""
    place = (jobs.c.created_at, jobs.c.id)
    query = select(*place).where(jobs.c.team_id == team_id, tuple_(*place) > after).order_by(*place).limit(limit)
    return [(created_at, job_id) for created_at, job_id in fetch(connection, query, {})]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an active cron job stands, and the schedule that says where it should."""

    team_id: str
    job_id: str
    version: int
    next_run_at: Instant
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class CursorMove:
    """A job's next slot, as it was seen and as it is to be."""

    team_id: str
    job_id: str
    version: int
    seen: Instant
    following: Instant


def cron_cursors(connection: Connection, *, after: tuple[Instant, str], limit: int) -> list[Cursor]:
    """Active cron jobs by (next_run_at, id), from the one after `after` on."""
    due, after_id = after
    query: Select[Any] = (
        select(jobs.c.team_id, jobs.c.id, jobs.c.version, jobs.c.next_run_at, *_SCHEDULE)
        .where(
            jobs.c.schedule_kind == "cron",
            jobs.c.next_run_at >= due,
            or_(jobs.c.next_run_at > due, jobs.c.id > after_id),
        )
        .order_by(jobs.c.next_run_at, jobs.c.id)
        .limit(limit)
    )
    return [
        Cursor(team_id, job_id, version, next_run_at, Schedule(*schedule))
        for team_id, job_id, version, next_run_at, *schedule in fetch(connection, query, {})
    ]


def move_cursors(connection: Connection, moves: Sequence[CursorMove]) -> set[str]:
    """Set the next slots of jobs that still stand where they were seen, and nothing else of them; their ids."""
    columns = {
        "id": jobs.c.id.type,
        "version": Integer(),
        "seen": jobs.c.next_run_at.type,
        "following": jobs.c.next_run_at.type,
    }
    rows = batch(connection.dialect.name, columns)
    statement = (
        update(jobs)
        .values(next_run_at=rows.c.following)
        .where(jobs.c.id == rows.c.id, jobs.c.version == rows.c.version, jobs.c.next_run_at == rows.c.seen)
        .returning(jobs.c.id)
    )
    packed_moves = pack([[move.job_id, move.version, move.seen, move.following] for move in moves])
    return set(connection.scalars(statement, packed_moves))


def _insert_version(connection: Connection, job: Job) -> None:
    schedule = job.schedule
    connection.execute(
        job_versions.insert(),
        {
            "job_id": job.id,
            "version": job.version,
            "team_id": job.team_id,
            "status": job.status,
            "schedule": orjson.dumps(
                {
                    "kind": schedule.kind,
                    "cron": schedule.cron,
                    "every_ms": schedule.every_ms,
                    "at": schedule.at,
                    "timezone": schedule.timezone,
                    "dst": schedule.dst,
                    "day_match": schedule.day_match,
                    "overlap": job.overlap,
                    "catchup": job.catchup,
                    "catchup_window_seconds": job.catchup_window_seconds,
                    "on_lost": job.on_lost,
                }
            ).decode(),
            "definition": orjson.dumps(job.definition.to_json()).decode(),
            "created_at": job.updated_at,
        },
    )


def _user_values(job: Job) -> dict[str, Any]:
    definition = job.definition
    return {
        "team_id": job.team_id,
        "version": job.version,
        "status": job.status,
        "name": job.name,
        "schedule": job.schedule_text,
        **schedule_values(job.schedule),
        "language": job.language,
        "method": definition.method,
        "url": definition.url,
        "headers": orjson.dumps(definition.headers).decode(),
        "body": definition.body,
        "timeout_seconds": definition.timeout_seconds,
        "delivery": orjson.dumps(definition.delivery_json()).decode(),
        "overlap": job.overlap,
        "catchup": job.catchup,
        "catchup_window_seconds": job.catchup_window_seconds,
        "on_lost": job.on_lost,
        "disable_after": job.disable_after,
        "notify": orjson.dumps(job.notify).decode(),
        "tags": orjson.dumps(job.tags).decode(),
        "warnings": orjson.dumps(job.warnings).decode(),
        "created_at": job.created_at,
        "updated_at": job.updated_at,
    }


def _state_values(state: JobState) -> list[Any]:
    last = state.last_run
    return [
        state.next_run_at,
        state.active_run_id,
        state.active_since,
        state.queued_run_id,
        state.crowded,
        state.succeeded,
        state.failed,
        state.skipped,
        state.consecutive_failures,
        state.duration_ms_total,
        state.status_reason,
        *((last.id, last.status, last.scheduled_for, last.finished_at) if last else (None,) * 4),
    ]


def _engine_job(row: Sequence[Any]) -> EngineJob:
    job_id, team_id, version, status, overlap, catchup, window, on_lost, disable_after, notify, told, *rest = row
    state = _state(rest[:_N_STATE])
    job = EngineJob(job_id, team_id, version, status, overlap, catchup, window, on_lost, disable_after, state)
    job.notify, job.alert_state = notify, told
    if len(rest) > _N_STATE:
        *schedule_and_definition, job.runs_per_minute_max, has_body = rest[_N_STATE:]
        job.schedule = Schedule(*schedule_and_definition[:_N_SCHEDULE])
        definition = _definition(schedule_and_definition[_N_SCHEDULE:])
        job.url = definition.url
        if definition.body is not None or not has_body:
            job.definition = definition
    return job


def _job(row: Sequence[Any]) -> Job:
    own, rest = row[:_N_OWN], row[_N_OWN:]
    schedule, rest = rest[:_N_SCHEDULE], rest[_N_SCHEDULE:]
    definition, state = rest[:_N_DEFINITION], rest[_N_DEFINITION:]
    job_id, team_id, version, status, name, text, overlap, catchup, window, on_lost, *own = own
    disable_after, notify, tags, warnings, language, created_at, updated_at = own
    return Job(
        id=job_id,
        team_id=team_id,
        version=version,
        status=status,
        name=name,
        schedule_text=text,
        schedule=Schedule(*schedule),
        definition=_definition(definition),
        overlap=overlap,
        catchup=catchup,
        catchup_window_seconds=window,
        on_lost=on_lost,
        notify=orjson.loads(notify),
        tags=tuple(orjson.loads(tags)),
        warnings=tuple(orjson.loads(warnings)),
        state=_state(state),
        created_at=created_at,
        updated_at=updated_at,
        language=language,
        disable_after=disable_after,
    )


def _state(values: Sequence[Any]) -> JobState:
    state = JobState(*values[:_N_COUNTERS])
    if values[_N_COUNTERS] is not None:
        state.last_run = LastRun(*values[_N_COUNTERS:])
    return state


def _definition(values: Sequence[Any]) -> Definition:
    method, url, headers, body, timeout, delivery = values
    return Definition(method, url, _headers(headers), body, timeout, **_delivery(delivery))


@lru_cache(maxsize=1024)
def _delivery(text: str) -> Mapping[str, Any]:
    return delivery_of_json(orjson.loads(text))


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    return tuple([(name, value) for name, value in orjson.loads(text)]) if text != "[]" else ()
