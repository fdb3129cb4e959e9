"""Limits of teams in the ledger, and what is counted for them.

Owns every query on the limits of `teams` and on `team_minutes`. A minute of a team is a row that its transaction holds;
whoever holds several takes them in the order of their keys, and after the jobs: one order of locking for everybody.
Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Connection, Integer, func, or_, select, update
from sqlalchemy.sql import Insert, Update

from zerocron.core.model import Instant, JobStatus
from zerocron.core.team_limits import NO_LIMITS, Limits, limit_of, minute_of
from zerocron.storage.ledger import facts
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, insert_or_hold, pack
from zerocron.storage.ledger.people_tables import team_minutes
from zerocron.storage.ledger.tables import jobs, teams

MinuteKey = tuple[str, Instant]
"""(team id, the instant at which the minute begins)."""

_DEFAULTS_FACT = "team_limits"

_LIMITS: tuple[Column[Any], ...] = (teams.c.jobs_max, teams.c.runs_per_minute_max, teams.c.history_bytes_max)
_MINUTE: tuple[Column[Any], ...] = (
    team_minutes.c.team_id,
    team_minutes.c.minute,
    team_minutes.c.runs,
    team_minutes.c.skipped,
)
_KEY = (team_minutes.c.team_id, team_minutes.c.minute)


@dataclass(slots=True)
class Minute:
    """What a team has started in a minute, and how many slots its limit left out."""

    runs: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a team has of what may be limited. `history_bytes` None: not counted, because there is no limit."""

    jobs: int
    runs_this_minute: int
    history_bytes: int | None


def of_team(connection: Connection, team_id: str, defaults: Limits = NO_LIMITS) -> Limits:
    """The limits that hold for the team: its own, and the server's where it has none."""
    mine = _fields(own(connection, team_id))
    return Limits(*(limit_of(one, default) for one, default in zip(mine, _fields(defaults), strict=True)))


def usage(connection: Connection, team_id: str, now: Instant) -> Usage:
    """What the team has now. Runs are counted only where they are limited; a history by the hour."""
    runs = select(team_minutes.c.runs).where(_KEY[0] == team_id, _KEY[1] == minute_of(now))
    history = select(teams.c.history_bytes).where(teams.c.id == team_id)
    return Usage(count_jobs(connection, team_id), connection.scalar(runs) or 0, connection.scalar(history))


def own(connection: Connection, team_id: str) -> Limits:
    """The team's own limits as they are written: None for the server's, 0 for none at all."""
    row = connection.execute(select(*_LIMITS).where(teams.c.id == team_id)).first()
    return NO_LIMITS if row is None else Limits(*row)


def teams_named(connection: Connection) -> list[tuple[str, str]]:
    """(id, name) of every team that is not deleted, by the name."""
    query = select(teams.c.id, teams.c.name).where(teams.c.deleted_at.is_(None)).order_by(teams.c.name, teams.c.id)
    return [(team_id, name) for team_id, name in fetch(connection, query, {})]


def save(connection: Connection, team_id: str, limits: Limits) -> None:
    """Write the team's own limits. A history is counted anew."""
    values = dict(zip((column.name for column in _LIMITS), _fields(limits), strict=True))
    connection.execute(update(teams).where(teams.c.id == team_id).values(**values, history_counted_at=None))


def note_defaults(connection: Connection, limits: Limits) -> None:
    """Write down what teams without limits of their own may have, as the server was told at its start."""
    written = orjson.dumps(_fields(limits)).decode()
    if facts.get(connection, _DEFAULTS_FACT) != written:
        facts.put(connection, _DEFAULTS_FACT, written)


def noted_defaults(connection: Connection) -> Limits | None:
    """What the server that started last wrote down; None before one has."""
    written = facts.get(connection, _DEFAULTS_FACT)
    return None if written is None else Limits(*orjson.loads(written))


def _fields(limits: Limits) -> tuple[int | None, int | None, int | None]:
    return limits.jobs_max, limits.runs_per_minute_max, limits.history_bytes_max


# jobs


def hold(connection: Connection, team_id: str) -> None:
    """Hold the team until the transaction ends, so that nobody else counts what this one adds."""
    connection.execute(select(teams.c.id).where(teams.c.id == team_id).with_for_update())


def count_jobs(connection: Connection, team_id: str) -> int:
    """The team's jobs that are not deleted."""
    query = select(func.count()).select_from(jobs).where(jobs.c.team_id == team_id, jobs.c.status != JobStatus.DELETED)
    return connection.scalar(query) or 0


# runs


def hold_minutes(connection: Connection, keys: Sequence[MinuteKey]) -> dict[MinuteKey, Minute]:
    """These minutes of teams, held until the transaction ends."""
    rows = pack([[*key, 0, 0] for key in sorted(keys)])
    found = connection.execute(_hold_statement(connection.dialect.name), rows)
    return {(team_id, minute): Minute(runs, skipped) for team_id, minute, runs, skipped in found}


@cache
def _hold_statement(dialect: str) -> Insert:
    return insert_or_hold(dialect, _MINUTE, _KEY).returning(*_MINUTE)


def save_minutes(connection: Connection, minutes: Mapping[MinuteKey, Minute]) -> None:
    """Write minutes that are held."""
    rows = pack([[*key, minute.runs, minute.skipped] for key, minute in minutes.items()])
    connection.execute(_save_statement(connection.dialect.name), rows)


@cache
def _save_statement(dialect: str) -> Update:
    rows = batch(dialect, columns_of(_MINUTE))
    return (
        update(team_minutes)
        .values(runs=rows.c.runs, skipped=rows.c.skipped)
        .where(_KEY[0] == rows.c.team_id, _KEY[1] == rows.c.minute)
    )


def forget_minutes(connection: Connection, *, before: Instant, after: Instant) -> None:
    """Drop minutes that nobody counts in any more; and those so far ahead that only a clock that was set back since can
    have counted in them."""
    minute = team_minutes.c.minute
    connection.execute(team_minutes.delete().where(or_(minute < before, minute > after)))


# history


@dataclass(frozen=True, slots=True)
class HistoryLimit:
    """A team whose history is to be counted."""

    team_id: str
    bytes_max: int
    counted_at: Instant | None


def to_count(connection: Connection, *, before: Instant, now: Instant, default: int | None) -> HistoryLimit | None:
    """The team with a limit on its history whose last count is the longest ago, and before the instant. A count that
    lies in the future is of a clock that was set back since, and counts for nothing."""
    column = teams.c.history_bytes_max
    is_limited: ColumnElement[bool] = column > 0
    if default:
        is_limited = or_(is_limited, column.is_(None))
    counted = func.coalesce(teams.c.history_counted_at, 0)
    query = (
        select(teams.c.id, func.coalesce(column, default or 0, type_=Integer()), teams.c.history_counted_at)
        .where(is_limited, or_(counted < before, counted > now))
        .order_by(counted, teams.c.id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else HistoryLimit(*row)


def claim_count(connection: Connection, team: HistoryLimit, now: Instant) -> bool:
    """Take the counting of a team upon oneself; False when another node was first."""
    statement = (
        update(teams)
        .where(teams.c.id == team.team_id, teams.c.history_counted_at.is_not_distinct_from(team.counted_at))
        .values(history_counted_at=now)
    )
    return connection.execute(statement).rowcount == 1


def save_count(connection: Connection, team_id: str, history_bytes: int) -> None:
    """Write down what the count found, and what is left of it."""
    connection.execute(update(teams).where(teams.c.id == team_id).values(history_bytes=history_bytes))
