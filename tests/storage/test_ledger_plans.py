"""What the hot statements cost: none reads a whole table, so none grows with what has been kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.storage.samples import NOON, a_job, a_run, a_trigger, an_execution, an_id
from tests.support.postgres import PostgresServer, postgres_server

from zerocron.core.lifecycle import WAITING
from zerocron.core.model import DEFAULT_TEAM_ID, RunStatus
from zerocron.storage.ledger import (
    alerts,
    channels,
    executions,
    glances,
    hours,
    jobs,
    keys,
    limits,
    monitors,
    runs,
    secrets,
    sessions,
    signing,
    telling,
)
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.tables import metadata

JOB = a_job(team_id=DEFAULT_TEAM_ID)
OTHER = a_job()
RUN = a_run(JOB)
EXECUTION = an_execution(RUN)

Hot = Callable[[Connection], Any]

STATEMENTS: dict[str, Hot] = {
    "jobs.get": lambda connection: jobs.get(connection, DEFAULT_TEAM_ID, JOB.id),
    "jobs.lock": lambda connection: jobs.lock(connection, [JOB.id, an_id()]),
    "jobs.lock to start": lambda connection: jobs.lock(connection, [JOB.id, an_id()], to_start=True),
    "jobs.save_states": lambda connection: jobs.save_states(connection, [JOB, OTHER], {JOB.id: NOON, OTHER.id: NOON}),
    "jobs.definitions": lambda connection: jobs.definitions(connection, [(JOB.id, 1), (an_id(), 2)]),
    "jobs.overdue": lambda connection: jobs.overdue(connection, before=NOON, limit=10_000),
    "jobs.due_page": lambda connection: jobs.due_page(connection, after=(NOON, JOB.id), until=NOON * 2, limit=9),
    "jobs.cron_cursors": lambda connection: jobs.cron_cursors(connection, after=(NOON, JOB.id), limit=100),
    "jobs.move_cursors": lambda connection: jobs.move_cursors(
        connection, [jobs.CursorMove(JOB.team_id, JOB.id, 1, NOON, NOON + 1)]
    ),
    "jobs.ids_page": lambda connection: jobs.ids_page(connection, JOB.id, 100),
    "jobs.page": lambda connection: jobs.page(
        connection, DEFAULT_TEAM_ID, status="active", tag="t", text="x", before=(NOON, JOB.id), limit=50
    ),
    "jobs.update_definition": lambda connection: jobs.update_definition(connection, JOB, seen_version=7),
    "runs.insert": lambda connection: runs.insert(connection, [a_run(a_job()), a_trigger(JOB)]),
    "runs.move": lambda connection: runs.move(connection, [(RUN, ("running", 1)), (a_run(a_job()), ("running", 1))]),
    "runs.of_ids": lambda connection: runs.of_ids(connection, [RUN.id, an_id()]),
    "runs.open_of_job": lambda connection: runs.open_of_job(connection, JOB.id, WAITING),
    "runs.get": lambda connection: runs.get(connection, DEFAULT_TEAM_ID, RUN.id),
    "runs.newest_slot": lambda connection: runs.newest_slot(connection, JOB.id),
    "runs.page_of_job": lambda connection: runs.page_of_job(connection, JOB.id, status=None, before=None, limit=50),
    "runs.page_of_job further": lambda connection: runs.page_of_job(
        connection, JOB.id, status="failed", before=(NOON, ""), limit=50
    ),
    "runs.due": lambda connection: runs.due(connection, until=NOON, limit=10_000),
    "runs.oldest_of_jobs": lambda connection: runs.oldest_of_jobs(connection, [JOB.id], 100),
    "runs.delete_of_job": lambda connection: runs.delete_of_job(connection, JOB.id, before=NOON + 1, limit=500),
    "secrets.of_names": lambda connection: secrets.of_names(connection, [(DEFAULT_TEAM_ID, "A"), (JOB.id, "B")]),
    "secrets.take_data_key": lambda connection: secrets.take_data_key(connection, DEFAULT_TEAM_ID),
    "secrets.save_last_used": lambda connection: secrets.save_last_used(connection, {an_id(): NOON}),
    "executions.insert": lambda connection: executions.insert(connection, [an_execution(a_run(a_job()))]),
    "executions.add_late_results": lambda connection: executions.add_late_results(connection, [EXECUTION]),
    "executions.get": lambda connection: executions.get(connection, DEFAULT_TEAM_ID, RUN.id, 1),
    "executions.of_run": lambda connection: executions.of_run(connection, RUN.id),
    "executions.page_of_job": lambda connection: executions.page_of_job(connection, JOB.id, before=None, limit=50),
    "executions.page_of_job further": lambda connection: executions.page_of_job(
        connection, JOB.id, before=(NOON, "", 1), limit=50
    ),
    "executions.count_of_kinds": lambda connection: executions.count_of_kinds(connection, [(RUN.id, NOON)], ["dns"]),
    "executions.delete_of_runs": lambda connection: executions.delete_of_runs(connection, [(RUN.id, NOON)]),
    "executions.bytes_of_job": lambda connection: executions.bytes_of_job(
        connection, JOB.id, after=0, limit=2_000, span_ms=60_000
    ),
    "jobs.ids_of_team": lambda connection: jobs.ids_of_team(connection, DEFAULT_TEAM_ID, (NOON, JOB.id), 500),
    "limits.of_team": lambda connection: limits.of_team(connection, DEFAULT_TEAM_ID),
    "limits.save_minutes": lambda connection: limits.save_minutes(
        connection, {(DEFAULT_TEAM_ID, NOON): limits.Minute()}
    ),
    "sessions.renew": lambda connection: sessions.renew(connection, "x", now=NOON, expires_at=NOON),
    "signing.valid": lambda connection: signing.valid(connection, DEFAULT_TEAM_ID, NOON),
    "keys.find": lambda connection: keys.find(connection, "x"),
    "keys.find_idempotent": lambda connection: keys.find_idempotent(connection, DEFAULT_TEAM_ID, "make", "k"),
    "keys.forget_idempotent": lambda connection: keys.forget_idempotent(connection, NOON),
    "alerts.waiting": lambda connection: alerts.waiting(connection, [an_id()]),
    "alerts.next_of_channel": lambda connection: alerts.next_of_channel(connection, an_id(), NOON, tried_first=True),
    "alerts.begin": lambda connection: alerts.begin(connection, an_id(), tries=0, again_at=NOON),
    "alerts.fold": lambda connection: alerts.fold(connection, an_id(), an_id(), NOON),
    "alerts.message": lambda connection: alerts.message(connection, an_id(), 20),
    "alerts.postpone": lambda connection: alerts.postpone(connection, an_id(), NOON),
    "alerts.accept": lambda connection: alerts.accept(connection, an_id(), NOON, "ok"),
    "alerts.bury_channel": lambda connection: alerts.bury_channel(connection, an_id(), NOON, "paused"),
    "alerts.overdue": lambda connection: alerts.overdue(connection, before=NOON, limit=200),
    "alerts.due_page": lambda connection: alerts.due_page(connection, after=(0, ""), until=NOON, limit=9),
    "alerts.page": lambda connection: alerts.page(
        connection, DEFAULT_TEAM_ID, status="sent", channel_id=None, subject_id=None, before=(NOON, ""), limit=50
    ),
    "alerts.oldest_pending": alerts.oldest_pending,
    "alerts.remove_finished": lambda connection: alerts.remove_finished(connection, NOON, 500),
    "channels.active_of_teams": lambda connection: channels.active_of_teams(connection, [DEFAULT_TEAM_ID]),
    "channels.hold": lambda connection: channels.hold(connection, [an_id()]),
    "glances.is_job": lambda connection: glances.is_job(connection, DEFAULT_TEAM_ID, JOB.id),
    "glances.last_errors": lambda connection: glances.last_errors(connection, [RUN.id, an_id()]),
    "glances.strips": lambda connection: glances.strips(connection, DEFAULT_TEAM_ID, [JOB.id, an_id()], NOON, 100),
    "monitors.of_ids": lambda connection: monitors.of_ids(connection, DEFAULT_TEAM_ID, [an_id(), an_id()]),
    "glances.shown_since": lambda connection: glances.shown_since(connection, [(an_id(), NOON)], 500),
    "glances.newest_runs": lambda connection: glances.newest_runs(connection, JOB.id, NOON, 5_000),
    "glances.runs_at": lambda connection: glances.runs_at(connection, JOB.id, NOON, NOON + 999, 10),
    "glances.slot_before": lambda connection: glances.slot_before(connection, JOB.id, NOON),
    "glances.monitor_version": lambda connection: glances.monitor_version(connection, DEFAULT_TEAM_ID),
    "glances.alert_version": lambda connection: glances.alert_version(connection, DEFAULT_TEAM_ID),
    "glances.shown_counts": lambda connection: glances.shown_counts(connection, DEFAULT_TEAM_ID),
    "glances.down_monitors": lambda connection: glances.down_monitors(connection, DEFAULT_TEAM_ID, 20),
    "glances.monitors_maybe_late": lambda connection: glances.monitors_maybe_late(
        connection, DEFAULT_TEAM_ID, NOON, 1_000
    ),
    "glances.job_ever": lambda connection: glances.job_ever(connection, DEFAULT_TEAM_ID, JOB.id),
    "glances.versions_around": lambda connection: glances.versions_around(connection, JOB.id, NOON, 50),
    "glances.attempts_of": lambda connection: glances.attempts_of(connection, RUN.id, 10),
    "glances.oldest_slot": lambda connection: glances.oldest_slot(connection, JOB.id),
    "glances.acts_around": lambda connection: glances.acts_around(connection, DEFAULT_TEAM_ID, JOB.id, NOON, 4),
    "hours.is_taken": lambda connection: hours.is_taken(connection, NOON),
    "hours.counters_of": lambda connection: hours.counters_of(connection, DEFAULT_TEAM_ID, NOON),
    "hours.lost_since": lambda connection: hours.lost_since(connection, DEFAULT_TEAM_ID, NOON),
    "hours.add_lateness insert": lambda connection: hours.add_lateness(connection, {(DEFAULT_TEAM_ID, NOON, 1): 2}),
    "hours.lateness_of": lambda connection: hours.lateness_of(connection, DEFAULT_TEAM_ID, NOON),
    "telling.is_to_look": lambda connection: telling.is_to_look(connection, NOON),
}
TABLES = r"jobs|teams|team_minutes|runs|executions|job_versions|sessions|alerts|channels|monitors|flips|\w+_keys"
SMALL_INDEX: dict[str, Hot] = {
    "glances.job_version": lambda connection: glances.job_version(connection, an_id()),
    "glances.queue": lambda connection: glances.queue(connection, NOON),
    "glances.running_jobs": lambda connection: glances.running_jobs(connection, DEFAULT_TEAM_ID),
    "runs.running_of_sessions": lambda connection: runs.running_of_sessions(connection, ["x"], 200),
}
"""These go through all open runs, which are few: the index holds no other."""


SMALL_TEAM = an_id()


def page_of_jobs(state: str) -> Hot:
    return lambda connection: jobs.page(
        connection,
        SMALL_TEAM,
        status=None,
        tag=None,
        text=None,
        before=("x", JOB.id),
        limit=50,
        state=glances.JOB_STATES[state],
        sort="name",
    )


OF_A_TEAM: dict[str, Hot] = {
    "glances.job_counts": lambda connection: glances.job_counts(connection, SMALL_TEAM),
    "glances.troubled_jobs": lambda connection: glances.troubled_jobs(connection, SMALL_TEAM, 20),
    "glances.tags": lambda connection: glances.tags(connection, SMALL_TEAM),
    "glances.upcoming": lambda connection: glances.upcoming(connection, SMALL_TEAM, 10),
    **{f"jobs.page {state}": page_of_jobs(state) for state in glances.JOB_STATES},
}
"""These go through all jobs of one team: of one that has all there are it would be the whole table."""


async def plans_of(ledger: SqliteLedger, call: Hot) -> list[str]:
    """How SQLite goes about every statement of the call: one line for each table it reads."""
    plans: list[str] = []

    def transaction(connection: Connection) -> None:
        _insert_samples(connection)
        statements: list[tuple[str, Any]] = []

        def remember(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
            statements.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", remember)
        call(connection)
        event.remove(connection, "before_cursor_execute", remember)
        assert statements
        for statement, parameters in statements:
            lines = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(line[3] for line in lines)

    await ledger.write(transaction)
    return plans


@pytest.mark.parametrize("name", STATEMENTS | OF_A_TEAM)
async def test_a_hot_statement_goes_through_an_index(sqlite: SqliteLedger, name: str) -> None:
    plans = await plans_of(sqlite, (STATEMENTS | OF_A_TEAM)[name])
    scans = [
        plan
        for plan in plans
        if re.match(
            rf"SCAN ({TABLES})\b",
            plan,
        )
    ]
    assert not scans, plans
    assert "insert" in name or any(plan.startswith("SEARCH") for plan in plans), plans


@pytest.mark.parametrize("name", SMALL_INDEX)
async def test_open_runs_are_found_in_an_index_that_holds_no_others(sqlite: SqliteLedger, name: str) -> None:
    plans = await plans_of(sqlite, SMALL_INDEX[name])
    assert any(re.match(r"(SCAN|SEARCH) runs USING INDEX ix_runs_job_id_open", plan) for plan in plans), plans


async def test_the_oldest_alert_that_waits_is_the_first_of_an_index(sqlite: SqliteLedger) -> None:
    """However many wait: it is asked for by every node, all the time."""
    assert await plans_of(sqlite, alerts.oldest_pending) == ["SEARCH alerts USING INDEX ix_alerts_created_at_pending"]


@pytest.mark.parametrize("name", ["jobs.overdue", "jobs.due_page", "jobs.page", "runs.due", "runs.page_of_job"])
async def test_the_order_of_a_page_comes_from_its_index(sqlite: SqliteLedger, name: str) -> None:
    assert not [plan for plan in await plans_of(sqlite, STATEMENTS[name]) if "TEMP B-TREE" in plan]


KEPT = 10_000


async def steps_of(ledger: SqliteLedger, call: Hot) -> int:
    """How many steps SQLite's machine takes for a call, in tens: the same on a busy computer and an idle one."""

    def transaction(connection: Connection) -> int:
        tens = 0

        def count() -> int:
            nonlocal tens
            tens += 1
            return 0

        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(count, 10)
        found = call(connection)
        driver.set_progress_handler(None, 0)
        assert len(found) == 50
        return tens * 10

    return await ledger.read(transaction)


@pytest.mark.parametrize("kind", ["runs", "executions", "jobs"])
async def test_a_page_costs_the_same_wherever_it_begins_and_however_much_is_kept(
    sqlite: SqliteLedger, kind: str
) -> None:
    """Ten thousand of a kind, and fifty are asked for: at the top, and far down."""

    def fill(connection: Connection) -> None:
        if kind == "jobs":
            for number in range(KEPT // 10):
                jobs.insert(connection, a_job(created_at=NOON + number))
            return
        made = [a_run(JOB, NOON + number, status=RunStatus.SUCCEEDED) for number in range(KEPT)]
        runs.insert(connection, made)
        runs.insert(connection, [a_run(OTHER, NOON + number, status=RunStatus.SUCCEEDED) for number in range(KEPT)])
        executions.insert(connection, [an_execution(run) for run in made])

    await sqlite.write(fill)

    def page(before: int | None) -> Hot:
        if kind == "runs":
            key = None if before is None else (before, "")
            return lambda connection: runs.page_of_job(connection, JOB.id, status=None, before=key, limit=50)
        if kind == "executions":
            full = None if before is None else (before, "", 1)
            return lambda connection: executions.page_of_job(connection, JOB.id, before=full, limit=50)
        place = None if before is None else (before, "")
        filters: dict[str, Any] = {"status": None, "tag": None, "text": None, "limit": 50}
        return lambda connection: jobs.page(connection, DEFAULT_TEAM_ID, before=place, **filters)

    top = await steps_of(sqlite, page(None))
    down = await steps_of(sqlite, page(NOON + 100))
    assert top < 50_000
    assert down < 2 * top


# PostgreSQL, on tables of some ten thousand rows whose statistics are known

BIG = ("jobs", "job_versions", "runs", "executions")
HOT_ON_POSTGRESQL = STATEMENTS | SMALL_INDEX | OF_A_TEAM


@pytest.fixture(scope="module")
def big_database() -> Iterator[str]:
    server = postgres_server()
    database = server.database(migrated=True)

    async def fill() -> None:
        ledger = await PostgresLedger.open(server.url(database), lambda _connection: None)
        await ledger.write(_insert_samples)
        await ledger.close()

    asyncio.run(fill())
    an_id_of = "md5(({})::text)::uuid::text"
    multiply(server, database, "jobs", id=an_id_of.format("n"), next_run_at=f"{NOON} + n", created_at=f"{NOON} - n")
    multiply(server, database, "job_versions", job_id=an_id_of.format("n"))
    ended = {"status": "'succeeded'", "session_id": "NULL", "finished_at": str(NOON)}
    run = an_id_of.format("-n")
    multiply(server, database, "runs", id=run, job_id=an_id_of.format("n % 500"), scheduled_for=f"{NOON} + n", **ended)
    multiply(server, database, "executions", run_id=run, scheduled_for=f"{NOON} + n")
    for table in BIG:
        server.execute(f"ANALYZE {table}", database)
    yield database
    server.drop(database)


def multiply(server: PostgresServer, database: str, table: str, **changed: str) -> None:
    """Many rows like the one that is there, but for these columns; `n` counts them."""
    columns = [column.name for column in metadata.tables[table].columns]
    values = [changed.get(name, f'it."{name}"') for name in columns]
    names = ", ".join(f'"{name}"' for name in columns)
    server.execute(
        f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} "
        f"FROM (SELECT * FROM {table} LIMIT 1) it, generate_series(1, 20000) n",
        database,
    )


def _insert_samples(connection: Connection) -> None:
    jobs.insert(connection, JOB)
    runs.insert(connection, [RUN])
    executions.insert(connection, [EXECUTION])


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


async def postgres_plans_of(database: str, call: Hot) -> list[dict[str, Any]]:
    """Every node of the plan of every statement of the call."""
    found: list[dict[str, Any]] = []

    def transaction(connection: Connection) -> None:
        statements: list[tuple[str, Any]] = []

        def remember(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
            statements.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", remember)
        call(connection)
        event.remove(connection, "before_cursor_execute", remember)
        assert statements
        for statement, parameters in statements:
            [plan] = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
            found.extend(nodes(plan["Plan"]))
        raise Undone

    ledger = await PostgresLedger.open(postgres_server().url(database), lambda _connection: None)
    try:
        with pytest.raises(Undone):
            await ledger.write(transaction)
    finally:
        await ledger.close()
    return found


class Undone(Exception):
    """What was tried is not to stay."""


@pytest.mark.parametrize("name", HOT_ON_POSTGRESQL)
async def test_a_hot_statement_reads_no_table_whole_on_postgresql(big_database: str, name: str) -> None:
    plans = await postgres_plans_of(big_database, HOT_ON_POSTGRESQL[name])
    scans = [plan for plan in plans if plan["Node Type"] == "Seq Scan" and plan["Relation Name"] in BIG]
    assert not scans, scans


async def test_a_table_that_is_read_whole_would_be_noticed(big_database: str) -> None:
    plans = await postgres_plans_of(
        big_database, lambda connection: connection.exec_driver_sql("SELECT id FROM jobs WHERE name = 'x'")
    )
    assert [plan["Node Type"] for plan in plans] == ["Seq Scan"]
