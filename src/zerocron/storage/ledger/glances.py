"""What pages show of many jobs or many runs at once.

Owns queries that only read, and look at a team as a whole or at the newest runs of a job. Each is bounded: by the jobs
of one team, which its index has together, or by a number of runs that is given. Must never be asked by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Select, and_, bindparam, case, func, or_, select

from zerocron.core.explain import Act, Attempt, Version
from zerocron.core.hours import Totals
from zerocron.core.model import Instant, JobStatus, Run, RunStatus
from zerocron.core.monitor import Health, Monitor, MonitorStatus
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.alert_tables import alerts, channels
from zerocron.storage.ledger.dialect import batch, fetch, pack, packed
from zerocron.storage.ledger.monitor_tables import flips, monitors
from zerocron.storage.ledger.people_tables import audit_entries
from zerocron.storage.ledger.runs import COLUMNS as RUN_COLUMNS
from zerocron.storage.ledger.tables import RUN_IS_OPEN, executions, job_versions, jobs, runs, sessions

TAG_SETS_MAX = 10_000
COUNTED_MAX = 10_000
"""How far a queue is counted."""

is_failing = and_(jobs.c.consecutive_failures > 0, jobs.c.status.in_([JobStatus.ACTIVE, JobStatus.COMPLETED]))
"""Its last run failed, and it is not stopped. One that is completed may be triggered again."""

is_running = (
    select(runs.c.id)
    .where(RUN_IS_OPEN, runs.c.job_id == jobs.c.id, runs.c.status == RunStatus.RUNNING)
    .correlate(jobs)
    .exists()
)
JOB_STATES = {
    "failing": is_failing,
    "running": is_running,
    "passing": and_(jobs.c.last_run_id.is_not(None), jobs.c.consecutive_failures == 0),
}
"""What a list of jobs can be narrowed to."""


class JobCounts(NamedTuple):
    """How many jobs of a team there are of each kind, and what all that it ever had have counted."""

    active: int
    paused: int
    disabled: int
    completed: int
    failing: int
    totals: Totals


class Troubled(NamedTuple):
    """A job that needs somebody."""

    id: str
    name: str
    status: str
    status_reason: str | None
    failures: int
    last_run_id: str | None
    last_run_finished_at: Instant | None
    updated_at: Instant


class Mark(NamedTuple):
    """A run in a strip."""

    job_id: str
    run_id: str
    scheduled_for: Instant
    status: str
    slots: int


class RunFact(NamedTuple):
    """What statistics need of a run."""

    run_id: str
    scheduled_for: Instant
    status: str
    trigger_key: str
    started_at: Instant | None
    attempt_started_at: Instant | None
    finished_at: Instant | None
    slots: int


def _how_many(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def job_counts(connection: Connection, team_id: str) -> JobCounts:
    statuses = (JobStatus.ACTIVE, JobStatus.PAUSED, JobStatus.DISABLED, JobStatus.COMPLETED)
    query = select(
        *(_how_many(jobs.c.status == status) for status in statuses),
        _how_many(is_failing),
        *(func.coalesce(func.sum(column), 0) for column in (jobs.c.succeeded, jobs.c.failed, jobs.c.skipped)),
    ).where(jobs.c.team_id == team_id)
    active, paused, disabled, completed, failing, *totals = [int(value) for value in connection.execute(query).one()]
    return JobCounts(active, paused, disabled, completed, failing, Totals(*totals))


def is_job(connection: Connection, team_id: str, job_id: str) -> bool:
    """Whether the team has this job, and it is not deleted."""
    query = select(jobs.c.id).where(jobs.c.id == job_id, jobs.c.team_id == team_id, jobs.c.status != JobStatus.DELETED)
    return connection.scalar(query) is not None


def running_jobs(connection: Connection, team_id: str) -> int:
    """How many jobs of the team have a run that is running now."""
    query = select(func.count(runs.c.job_id.distinct())).where(
        RUN_IS_OPEN, runs.c.team_id == team_id, runs.c.status == RunStatus.RUNNING
    )
    return connection.scalar(query) or 0


def troubled_jobs(connection: Connection, team_id: str, limit: int) -> list[Troubled]:
    """Jobs that are disabled or failing: those first, and of each kind the latest to get there or to fail."""
    is_disabled = jobs.c.status == JobStatus.DISABLED
    query = (
        select(
            jobs.c.id,
            jobs.c.name,
            jobs.c.status,
            jobs.c.status_reason,
            jobs.c.consecutive_failures,
            jobs.c.last_run_id,
            jobs.c.last_run_finished_at,
            jobs.c.updated_at,
        )
        .where(jobs.c.team_id == team_id, or_(is_disabled, is_failing))
        .order_by(case((is_disabled, 0), else_=1), jobs.c.last_run_finished_at.desc(), jobs.c.id)
        .limit(limit)
    )
    return [Troubled(*row) for row in fetch(connection, query, {})]


def last_errors(connection: Connection, run_ids: Sequence[str]) -> dict[str, str]:
    """The message of the last failed execution of each of the runs."""
    query = (
        select(executions.c.run_id, executions.c.error_message)
        .where(executions.c.run_id.in_(run_ids), executions.c.error_message.is_not(None))
        .order_by(executions.c.run_id, executions.c.attempt)
    )
    return dict(fetch(connection, query, {})) if run_ids else {}


def upcoming(connection: Connection, team_id: str, limit: int) -> list[tuple[str, str, Instant]]:
    """(job id, name, when) of the next slots of the team's jobs, one a job."""
    query = (
        select(jobs.c.id, jobs.c.name, jobs.c.next_run_at)
        .where(jobs.c.team_id == team_id, jobs.c.next_run_at.is_not(None))
        .order_by(jobs.c.next_run_at, jobs.c.id)
        .limit(limit)
    )
    return [(job_id, name, at) for job_id, name, at in fetch(connection, query, {})]


def strips(connection: Connection, team_id: str, job_ids: Sequence[str], since: Instant, limit: int) -> list[Mark]:
    """The runs of these jobs of the team from the instant on, of each the newest `limit`, oldest first."""
    query = _strips_statement(connection.dialect.name)
    parameters = pack([[job_id] for job_id in job_ids]) | {"team": team_id, "since": since, "newer": limit - 1}
    marks = [Mark(*row) for row in fetch(connection, query, parameters)]
    marks.sort(key=lambda mark: (mark.job_id, mark.scheduled_for))
    return marks


@cache
def _strips_statement(dialect: str) -> Select[Any]:
    wanted = batch(dialect, {"id": jobs.c.id.type}, "wanted")
    since, team = bindparam("since", type_=BigInteger()), bindparam("team", type_=runs.c.team_id.type)
    newest = runs.alias("newest")
    oldest_shown = (
        select(newest.c.scheduled_for)
        .where(newest.c.job_id == wanted.c.id, newest.c.scheduled_for >= since)
        .order_by(newest.c.scheduled_for.desc())
        .limit(1)
        .offset(bindparam("newer", type_=Integer()))
        .correlate(wanted)
        .scalar_subquery()
    )
    query = select(runs.c.job_id, runs.c.id, runs.c.scheduled_for, runs.c.status, runs.c.count).join_from(
        wanted,
        runs,
        and_(
            runs.c.job_id == wanted.c.id,
            runs.c.team_id == team,
            runs.c.scheduled_for >= func.coalesce(oldest_shown, since),
        ),
    )
    return packed(dialect, query)


def shown_since(
    connection: Connection, begins: Sequence[tuple[str, Instant]], limit: int
) -> dict[str, list[tuple[Instant, str]]]:
    """Of each (monitor id, instant), what it showed from then on, as (at, what it showed from then on), oldest first:
    the first of them is the flip before the instant, if there is one. Of very many flips the newest `limit`.
    """
    query = _shown_since_statement(connection.dialect.name)
    found: dict[str, list[tuple[Instant, str]]] = {monitor_id: [] for monitor_id, _ in begins}
    for monitor_id, _number, at, after in fetch(connection, query, pack(begins) | {"newer": limit - 1}):
        found[monitor_id].append((at, after))
    return found


@cache
def _shown_since_statement(dialect: str) -> Select[Any]:
    wanted = batch(dialect, {"id": monitors.c.id.type, "since": BigInteger()}, "wanted")
    earlier = flips.alias("earlier")
    newest_first = (
        select(earlier.c.number)
        .where(earlier.c.monitor_id == wanted.c.id)
        .order_by(earlier.c.number.desc())
        .limit(1)
        .correlate(wanted)
    )
    at_first = newest_first.where(earlier.c.at <= wanted.c.since).scalar_subquery()
    oldest_read = newest_first.offset(bindparam("newer", type_=Integer())).scalar_subquery()
    query = (
        select(flips.c.monitor_id, flips.c.number, flips.c.at, flips.c.after)
        .join_from(
            wanted,
            flips,
            and_(
                flips.c.monitor_id == wanted.c.id,
                flips.c.number >= func.coalesce(at_first, 0),
                flips.c.number >= func.coalesce(oldest_read, 0),
            ),
        )
        .order_by(flips.c.monitor_id, flips.c.number)
    )
    return packed(dialect, query)


def newest_runs(connection: Connection, job_id: str, since: Instant, limit: int) -> list[RunFact]:
    """Runs of a job from the instant on, of very many the newest, newest first."""
    query = (
        select(
            runs.c.id,
            runs.c.scheduled_for,
            runs.c.status,
            runs.c.trigger_key,
            runs.c.started_at,
            runs.c.attempt_started_at,
            runs.c.finished_at,
            runs.c.count,
        )
        .where(runs.c.job_id == job_id, runs.c.scheduled_for >= since)
        .order_by(runs.c.scheduled_for.desc(), runs.c.trigger_key.desc())
        .limit(limit)
    )
    return [RunFact(*row) for row in fetch(connection, query, {})]


def runs_at(connection: Connection, job_id: str, first: Instant, last: Instant, limit: int) -> list[Run]:
    """Runs of a job whose slots lie in [first, last]."""
    query = (
        select(*RUN_COLUMNS)
        .where(runs.c.job_id == job_id, runs.c.scheduled_for >= first, runs.c.scheduled_for <= last)
        .order_by(runs.c.scheduled_for, runs.c.trigger_key)
        .limit(limit)
    )
    return [Run(*row) for row in fetch(connection, query, {})]


def slot_before(connection: Connection, job_id: str, at: Instant) -> Run | None:
    """The last record of a slot before the instant; one that stands for several may reach beyond it."""
    query = (
        select(*RUN_COLUMNS)
        .where(runs.c.job_id == job_id, runs.c.scheduled_for < at, runs.c.trigger_key == "")
        .order_by(runs.c.scheduled_for.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else Run(*row)


class JobEver(NamedTuple):
    """A job of a team, also one that is deleted."""

    name: str
    created_at: Instant
    next_run_at: Instant | None


def job_ever(connection: Connection, team_id: str, job_id: str) -> JobEver | None:
    """The job, whatever has become of it, unless it is another team's."""
    query = select(jobs.c.name, jobs.c.created_at, jobs.c.next_run_at)
    row = connection.execute(query.where(jobs.c.id == job_id, jobs.c.team_id == team_id)).first()
    return None if row is None else JobEver(*row)


def versions_around(connection: Connection, job_id: str, at: Instant, limit: int) -> list[Version]:
    """The last versions of a job up to the instant and the first ones after it, at most so many each, ascending."""
    query = select(
        job_versions.c.version, job_versions.c.created_at, job_versions.c.status, job_versions.c.schedule
    ).where(job_versions.c.job_id == job_id)
    earlier = query.where(job_versions.c.created_at <= at).order_by(job_versions.c.version.desc()).limit(limit)
    later = query.where(job_versions.c.created_at > at).order_by(job_versions.c.version).limit(limit)
    rows = [*reversed(fetch(connection, earlier, {})), *fetch(connection, later, {})]
    return [Version(number, since, status, _schedule(text)) for number, since, status, text in rows]


def _schedule(text: str) -> Schedule:
    raw = orjson.loads(text)
    return Schedule(**{name: raw[name] for name in Schedule.__slots__ if name in raw})


def attempts_of(connection: Connection, run_id: str, limit: int) -> list[Attempt]:
    """The last executions of a run, ascending."""
    query = (
        select(executions.c.attempt, executions.c.started_at, executions.c.status, executions.c.error_message)
        .where(executions.c.run_id == run_id)
        .order_by(executions.c.attempt.desc())
        .limit(limit)
    )
    return [Attempt(*row) for row in reversed(fetch(connection, query, {}))]


def oldest_slot(connection: Connection, job_id: str) -> Instant | None:
    """The first slot of a job that is on record."""
    query = select(runs.c.scheduled_for).where(runs.c.job_id == job_id).order_by(runs.c.scheduled_for).limit(1)
    found: Instant | None = connection.scalar(query)
    return found


def acts_around(connection: Connection, team_id: str, subject_id: str, at: Instant, limit: int) -> list[Act]:
    """What was done to a thing: the last before the instant and the first after it, at most so many each, ascending."""
    query = select(
        audit_entries.c.at,
        audit_entries.c.action,
        audit_entries.c.actor_name,
        audit_entries.c.before,
        audit_entries.c.after,
    ).where(audit_entries.c.subject_id == subject_id, audit_entries.c.team_id == team_id)
    earlier = query.where(audit_entries.c.at <= at).order_by(audit_entries.c.at.desc()).limit(limit)
    later = query.where(audit_entries.c.at > at).order_by(audit_entries.c.at).limit(limit)
    rows = [*reversed(fetch(connection, earlier, {})), *fetch(connection, later, {})]
    return [
        Act(when, action, actor, orjson.loads(before or "null"), orjson.loads(after or "null"))
        for when, action, actor, before, after in rows
    ]


def tags(connection: Connection, team_id: str) -> list[tuple[list[str], int]]:
    """(tags, how many jobs have just these), the most frequent first."""
    query = (
        select(jobs.c.tags, func.count().label("jobs"))
        .where(jobs.c.team_id == team_id, jobs.c.status != JobStatus.DELETED, jobs.c.tags != "[]")
        .group_by(jobs.c.tags)
        .order_by(func.count().desc(), jobs.c.tags)
        .limit(TAG_SETS_MAX)
    )
    return [(orjson.loads(text), count) for text, count in fetch(connection, query, {})]


# monitors


def shown_counts(connection: Connection, team_id: str) -> dict[str, int]:
    """How many monitors of the team show what, by what is stored: of `new` and `up` some may be late."""
    shown = case((monitors.c.status == MonitorStatus.PAUSED, MonitorStatus.PAUSED), else_=monitors.c.health)
    query = select(shown.label("shown"), func.count().label("how_many")).where(
        monitors.c.team_id == team_id, monitors.c.status != MonitorStatus.DELETED
    )
    return dict(fetch(connection, query.group_by(shown), {}))


def may_show(shown: str, now: Instant) -> ColumnElement[bool]:
    """Who shows this (`new`, `up`, `late`, `down`, `paused`) is in here; of `new`, `up` and `late` others are, too.

    Whose deadline, which is never too late, is more than a grace away is not late.
    """
    if shown == MonitorStatus.PAUSED:
        return monitors.c.status == MonitorStatus.PAUSED
    is_active = monitors.c.status == MonitorStatus.ACTIVE
    if shown == Health.LATE:
        may_be_late = monitors.c.deadline_at < now + monitors.c.grace_ms
        return and_(is_active, monitors.c.health.in_([Health.NEW, Health.UP]), may_be_late)
    return and_(is_active, monitors.c.health == shown)


def down_monitors(connection: Connection, team_id: str, limit: int) -> list[Monitor]:
    """Active monitors of the team that are down, the latest to go down first."""
    return monitor_rows.some(connection, team_id, may_show(Health.DOWN, 0), monitors.c.since.desc(), limit)


def monitors_maybe_late(connection: Connection, team_id: str, now: Instant, limit: int) -> list[Monitor]:
    """Monitors of the team that may be late; whether they are, `core.monitor.judge` says."""
    return monitor_rows.some(connection, team_id, may_show(Health.LATE, now), monitors.c.deadline_at, limit)


# what changes


def job_version(connection: Connection, team_id: str) -> tuple[Any, ...]:
    """Differs from what it was before whenever something that is shown of the team's jobs or runs has changed."""
    of_jobs = select(
        func.count(),
        func.max(jobs.c.updated_at),
        func.max(jobs.c.last_run_finished_at),
        func.sum(jobs.c.succeeded + jobs.c.failed + jobs.c.skipped + jobs.c.version),
    ).where(jobs.c.team_id == team_id)
    of_open = select(
        func.count(), func.max(runs.c.created_at), func.max(runs.c.attempt_started_at), func.sum(runs.c.attempt)
    ).where(RUN_IS_OPEN, runs.c.team_id == team_id)
    return (*connection.execute(of_jobs).one(), *connection.execute(of_open).one())


def monitor_version(connection: Connection, team_id: str) -> tuple[Any, ...]:
    """The same of its monitors; being late is no change of a row."""
    query = select(
        func.count(), func.sum(monitors.c.version), func.sum(monitors.c.pings), func.sum(monitors.c.flips)
    ).where(monitors.c.team_id == team_id)
    return tuple(connection.execute(query).one())


def alert_version(connection: Connection, team_id: str) -> tuple[Any, ...]:
    """The same of its alerts and channels."""
    newest = (
        select(alerts.c.id, alerts.c.status, alerts.c.tries)
        .where(alerts.c.team_id == team_id)
        .order_by(alerts.c.created_at.desc(), alerts.c.id.desc())
        .limit(50)
    )
    of_channels = select(
        func.count(), func.max(channels.c.updated_at), func.max(channels.c.last_sent_at), func.sum(channels.c.failures)
    ).where(channels.c.team_id == team_id)
    return (tuple(map(tuple, fetch(connection, newest, {}))), *connection.execute(of_channels).one())


# the installation


class NodeRow(NamedTuple):
    """A session: a process that runs jobs, or ran them."""

    id: str
    node: str
    version: str
    started_at: Instant
    renewed_at: Instant
    expires_at: Instant
    clock_difference_ms: int | None
    ended_at: Instant | None
    end_reason: str | None


def nodes(connection: Connection, limit: int) -> list[NodeRow]:
    """Sessions, the newest first."""
    query = (
        select(
            sessions.c.id,
            sessions.c.node,
            sessions.c.version,
            sessions.c.started_at,
            sessions.c.renewed_at,
            sessions.c.expires_at,
            sessions.c.clock_difference_ms,
            sessions.c.ended_at,
            sessions.c.end_reason,
        )
        .order_by(sessions.c.started_at.desc())
        .limit(limit)
    )
    return [NodeRow(*row) for row in fetch(connection, query, {})]


def database_version(connection: Connection) -> str:
    """The version of the database, such as `17.4`."""
    is_sqlite = connection.dialect.name == "sqlite"
    query = func.sqlite_version() if is_sqlite else func.current_setting("server_version")
    return str(connection.scalar(select(query))).split()[0]


def queue(connection: Connection, now: Instant) -> tuple[int, int, int]:
    """(slots that are due, runs that are running, runs that wait), each counted up to COUNTED_MAX."""
    due = select(jobs.c.id).where(jobs.c.next_run_at <= now)
    running = select(runs.c.id).where(RUN_IS_OPEN, runs.c.status == RunStatus.RUNNING)
    waiting = select(runs.c.id).where(RUN_IS_OPEN, runs.c.status != RunStatus.RUNNING)
    counted = [
        connection.scalar(select(func.count()).select_from(query.limit(COUNTED_MAX).subquery())) or 0
        for query in (due, running, waiting)
    ]
    return counted[0], counted[1], counted[2]
