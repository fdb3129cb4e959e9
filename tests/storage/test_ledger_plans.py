"""What the hot statements cost: none reads a whole table, so none grows with what has been kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event
from tests.storage.samples import NOON, a_job, a_run, a_trigger, an_execution, an_id

from zerocron.core.model import DEFAULT_TEAM_ID, RunStatus
from zerocron.storage.ledger import executions, jobs, keys, runs, sessions
from zerocron.storage.ledger.database import SqliteLedger

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
    "jobs.ids_page": lambda connection: jobs.ids_page(connection, JOB.id, 100),
    "jobs.page": lambda connection: jobs.page(
        connection, DEFAULT_TEAM_ID, status="active", tag="t", text="x", before=(NOON, JOB.id), limit=50
    ),
    "jobs.update_definition": lambda connection: jobs.update_definition(connection, JOB, seen_version=7),
    "runs.insert": lambda connection: runs.insert(connection, [a_run(a_job()), a_trigger(JOB)]),
    "runs.move": lambda connection: runs.move(connection, [(RUN, ("running", 1)), (a_run(a_job()), ("running", 1))]),
    "runs.lock": lambda connection: runs.lock(connection, [RUN.id, an_id()]),
    "runs.lock_waiting_of_job": lambda connection: runs.lock_waiting_of_job(connection, JOB.id),
    "runs.get": lambda connection: runs.get(connection, DEFAULT_TEAM_ID, RUN.id),
    "runs.newest_slot": lambda connection: runs.newest_slot(connection, JOB.id),
    "runs.page_of_job": lambda connection: runs.page_of_job(connection, JOB.id, status=None, before=None, limit=50),
    "runs.page_of_job further": lambda connection: runs.page_of_job(
        connection, JOB.id, status="failed", before=(NOON, ""), limit=50
    ),
    "runs.due": lambda connection: runs.due(connection, until=NOON, limit=10_000),
    "runs.oldest": lambda connection: runs.oldest(connection, JOB.id),
    "runs.oldest_kept": lambda connection: runs.oldest_kept(connection, JOB.id, 100),
    "runs.delete_of_job": lambda connection: runs.delete_of_job(connection, JOB.id, before=NOON + 1, limit=500),
    "executions.insert": lambda connection: executions.insert(connection, [an_execution(a_run(a_job()))]),
    "executions.add_late_results": lambda connection: executions.add_late_results(connection, [EXECUTION]),
    "executions.get": lambda connection: executions.get(connection, DEFAULT_TEAM_ID, RUN.id, 1),
    "executions.of_run": lambda connection: executions.of_run(connection, RUN.id),
    "executions.page_of_job": lambda connection: executions.page_of_job(connection, JOB.id, before=None, limit=50),
    "executions.page_of_job further": lambda connection: executions.page_of_job(
        connection, JOB.id, before=(NOON, "", 1), limit=50
    ),
    "executions.delete_of_runs": lambda connection: executions.delete_of_runs(connection, [(RUN.id, NOON)]),
    "sessions.renew": lambda connection: sessions.renew(connection, "x", now=NOON, expires_at=NOON),
    "keys.find": lambda connection: keys.find(connection, "x"),
    "keys.find_idempotent": lambda connection: keys.find_idempotent(connection, DEFAULT_TEAM_ID, "make", "k"),
    "keys.forget_idempotent": lambda connection: keys.forget_idempotent(connection, NOON),
}
SMALL_INDEX: dict[str, Hot] = {
    "runs.lock_running_of_sessions": lambda connection: runs.lock_running_of_sessions(connection, ["x"], 200),
    "runs.count_open": runs.count_open,
}
"""These go through all open runs, which are few: the index holds no other."""


async def plans_of(ledger: SqliteLedger, call: Hot) -> list[str]:
    """How SQLite goes about every statement of the call: one line for each table it reads."""
    plans: list[str] = []

    def transaction(connection: Connection) -> None:
        jobs.insert(connection, JOB)
        runs.insert(connection, [RUN])
        executions.insert(connection, [EXECUTION])
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


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_hot_statement_goes_through_an_index(sqlite: SqliteLedger, name: str) -> None:
    plans = await plans_of(sqlite, STATEMENTS[name])
    scans = [plan for plan in plans if re.match(r"SCAN (jobs|runs|executions|job_versions|sessions|\w+_keys)\b", plan)]
    assert not scans, plans
    assert "insert" in name or any(plan.startswith("SEARCH") for plan in plans), plans


@pytest.mark.parametrize("name", SMALL_INDEX)
async def test_open_runs_are_found_in_an_index_that_holds_no_others(sqlite: SqliteLedger, name: str) -> None:
    plans = await plans_of(sqlite, SMALL_INDEX[name])
    assert any(re.match(r"(SCAN|SEARCH) runs USING INDEX ix_runs_job_id_open", plan) for plan in plans), plans


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
