"""What was counted by the hour: how far the counters of a team's jobs had come, and how late requests were.

Owns every query on `team_hours` and `lateness_hours`. The first are taken once an hour by whichever node comes first;
the second are added to by every node, from what it counted itself. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, Table, func, literal, select, true
from sqlalchemy.dialects import postgresql, sqlite

from zerocron.core.hours import Totals
from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, pack
from zerocron.storage.ledger.hour_tables import lateness_hours, team_hours
from zerocron.storage.ledger.tables import RUN_IS_LOST, jobs, runs

EVERYBODY = ""
"""The team that stands for all."""

LATENESS_ROWS_MAX = 10_000
LOST_READ_MAX = 10_000

Counted = Mapping[tuple[str, Instant, int], int]
"""How many requests, by (team id, hour, size)."""


def is_taken(connection: Connection, hour: Instant) -> bool:
    """Whether some node has noted how far the counters had come when the hour began."""
    query = select(team_hours.c.hour).where(team_hours.c.team_id == EVERYBODY, team_hours.c.hour == hour)
    return connection.scalar(query) is not None


def take(connection: Connection, hour: Instant) -> None:
    """Note how far the counters of all teams have come; what another node noted stays."""
    sums = [func.coalesce(func.sum(column), 0) for column in (jobs.c.succeeded, jobs.c.failed, jobs.c.skipped)]
    at = literal(hour, team_hours.c.hour.type)
    everybody = select(literal(EVERYBODY, team_hours.c.team_id.type), at, *sums)
    each = select(jobs.c.team_id, at, *sums).group_by(jobs.c.team_id)
    names = [column.name for column in team_hours.c]
    for source in (everybody.where(true()), each.where(true())):
        connection.execute(_inserting(connection, team_hours).from_select(names, source).on_conflict_do_nothing())


def counters_of(connection: Connection, team_id: str, since: Instant) -> tuple[list[Instant], dict[Instant, Totals]]:
    """(the hours that were looked at, how far the team's counters had come at each that it has a row of)."""
    query = (
        select(
            team_hours.c.team_id, team_hours.c.hour, team_hours.c.succeeded, team_hours.c.failed, team_hours.c.skipped
        )
        .where(team_hours.c.team_id.in_([EVERYBODY, team_id]), team_hours.c.hour >= since)
        .order_by(team_hours.c.hour)
    )
    rows = fetch(connection, query, {})
    looked_at = [hour for owner, hour, *_ in rows if owner == EVERYBODY]
    return looked_at, {hour: Totals(*totals) for owner, hour, *totals in rows if owner == team_id}


def lost_since(connection: Connection, team_id: str, since: Instant) -> list[Instant]:
    """When runs of the team were given up as lost, of very many the newest."""
    query = (
        select(runs.c.finished_at)
        .where(RUN_IS_LOST, runs.c.team_id == team_id, runs.c.finished_at >= since)
        .order_by(runs.c.finished_at.desc())
        .limit(LOST_READ_MAX)
    )
    return [row[0] for row in fetch(connection, query, {})]


def add_lateness(connection: Connection, counted: Counted) -> None:
    """Add what one node counted, in the order of the keys, so that two nodes never wait for each other."""
    rows = batch(connection.dialect.name, columns_of(lateness_hours.c))
    names = [column.name for column in lateness_hours.c]
    source = select(*(rows.c[name] for name in names)).where(true())
    statement = _inserting(connection, lateness_hours).from_select(names, source)
    statement = statement.on_conflict_do_update(
        index_elements=["team_id", "hour", "size"],
        set_={"requests": lateness_hours.c.requests + statement.excluded.requests},
    )
    connection.execute(statement, pack([[*key, counted[key]] for key in sorted(counted)]))


def lateness_of(connection: Connection, team_id: str, since: Instant) -> dict[Instant, dict[int, int]]:
    """How many requests of a team (EVERYBODY: of all) were how late, by hour and size."""
    query = (
        select(lateness_hours.c.hour, lateness_hours.c.size, lateness_hours.c.requests)
        .where(lateness_hours.c.team_id == team_id, lateness_hours.c.hour >= since)
        .limit(LATENESS_ROWS_MAX)
    )
    found: dict[Instant, dict[int, int]] = {}
    for hour, size, requests in fetch(connection, query, {}):
        found.setdefault(hour, {})[size] = requests
    return found


def forget(connection: Connection, before: Instant) -> None:
    """Remove what is older."""
    for table in (team_hours, lateness_hours):
        connection.execute(table.delete().where(table.c.hour < before))


def _inserting(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
