"""Jobs, runs and executions to put into a ledger, each sound by itself; and a ledger to put them into.

Every builder takes what a test is about and fills in the rest. Ids are new unless given, so that samples never meet.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine
from tests.support.postgres import postgres_server

from zerocron.core.ids import new_id
from zerocron.core.model import (
    DEFAULT_TEAM_ID,
    Cause,
    Definition,
    Execution,
    ExecutionStatus,
    Instant,
    Job,
    JobState,
    JobStatus,
    RetryPolicy,
    Run,
    RunStatus,
    SuccessRule,
    TriggeredBy,
    run_id_of,
)
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import jobs
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.migrations import upgrade

NOON: Instant = 1_800_014_400_000
"""2027-01-15 12:00 UTC, a full minute and hour."""

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
EVERY_MINUTE = Schedule("cron", "* * * * *", None, None, "UTC")
OTHER_TEAM_ID = "00000000-0000-7000-8000-000000000002"
SESSION_ID = "00000000-0000-4000-8000-000000000001"
_numbers = itertools.count()


def an_id() -> str:
    """Later ids sort behind earlier ones."""
    return new_id(NOON + next(_numbers))


def a_job(*, next_run_at: Instant | None = NOON, **given: Any) -> Job:
    fields: dict[str, Any] = {
        "id": an_id(),
        "team_id": DEFAULT_TEAM_ID,
        "version": 1,
        "status": JobStatus.ACTIVE,
        "name": "sample",
        "schedule_text": "* * * * *",
        "schedule": EVERY_MINUTE,
        "definition": a_definition(),
        "overlap": "skip",
        "catchup": "latest",
        "catchup_window_seconds": 86_400,
        "on_lost": "rerun",
        "notify": {},
        "tags": (),
        "warnings": (),
        "state": JobState(next_run_at=next_run_at),
        "created_at": NOON - DAY,
        "updated_at": NOON - DAY,
    }
    return Job(**fields | given)


def a_definition(**given: Any) -> Definition:
    fields: dict[str, Any] = {
        "method": "GET",
        "url": "https://example.com/hook",
        "headers": (),
        "body": None,
        "timeout_seconds": 30.0,
        "retry": RetryPolicy(),
        "success": SuccessRule(),
    }
    return Definition(**fields | given)


def a_run(job: Job, slot: Instant = NOON, **given: Any) -> Run:
    """A run of a slot; `running` in this session unless told otherwise."""
    status = given.get("status", RunStatus.RUNNING)
    is_open = status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.RETRYING)
    fields: dict[str, Any] = {
        "id": run_id_of(job.id, slot),
        "scheduled_for": slot,
        "trigger_key": "",
        "job_id": job.id,
        "team_id": job.team_id,
        "job_version": job.version,
        "triggered_by": TriggeredBy.SCHEDULE,
        "status": status,
        "attempt": 1,
        "created_at": slot,
        "started_at": slot,
        "attempt_started_at": slot,
        "session_id": SESSION_ID if status == RunStatus.RUNNING else None,
        "retry_at": slot + 5_000 if status == RunStatus.RETRYING else None,
        "finished_at": None if is_open else slot + 10,
    }
    return Run(**fields | given)


def a_trigger(job: Job, at: Instant = NOON, **given: Any) -> Run:
    """A queued run that a person asked for."""
    run_id = an_id()
    fields: dict[str, Any] = {
        "id": run_id,
        "trigger_key": run_id,
        "triggered_by": TriggeredBy.MANUAL,
        "status": RunStatus.QUEUED,
        "attempt": 0,
        "started_at": None,
        "attempt_started_at": None,
        "retry_at": at,
    }
    return a_run(job, at, **fields | given)


def an_execution(run: Run, **given: Any) -> Execution:
    fields: dict[str, Any] = {
        "run_id": run.id,
        "scheduled_for": run.scheduled_for,
        "attempt": run.attempt,
        "job_id": run.job_id,
        "team_id": run.team_id,
        "session_id": SESSION_ID,
        "cause": Cause.FIRST,
        "status": ExecutionStatus.SUCCESS,
        "started_at": run.scheduled_for,
        "finished_at": run.scheduled_for + 12,
        "duration_ms": 12.345,
        "timings": {"dns": None, "connect": 1.5, "total": 12.345},
        "request": {"url": "https://example.com/hook", "method": "GET", "headers": [["A", "1"]]},
        "response": {"status": 200, "headers": [], "body_bytes": 2, "truncated": False, "encoding": "utf-8"},
        "response_body": "ok",
    }
    return Execution(**fields | given)


def keep_counted(connection: Connection, job: Job, succeeded: int, failed: int, skipped: int) -> None:
    """Put a job into the ledger that has counted so much."""
    jobs.insert(connection, job)
    state = dataclasses.replace(job.state, succeeded=succeeded, failed=failed, skipped=skipped)
    assert jobs.save_states(connection, [dataclasses.replace(job, state=state)], {job.id: job.state.next_run_at}) == 1


@asynccontextmanager
async def sqlite_ledger(folder: Path) -> AsyncIterator[SqliteLedger]:
    """The ledger of a folder; a new one gets its schema as a copy of one that was migrated before."""
    path = folder / "zerocron.db"
    if not path.exists():
        path.write_bytes(_migrated_file())
    ledger = await SqliteLedger.open(path, lambda _connection: None)
    try:
        yield ledger
    finally:
        await ledger.close()


@asynccontextmanager
async def postgres_ledger(_folder: Path) -> AsyncIterator[PostgresLedger]:
    """A ledger on a new database of the shared server."""
    server = postgres_server()
    database = server.database(migrated=True)
    try:
        ledger = await PostgresLedger.open(server.url(database), lambda _connection: None)
        try:
            yield ledger
        finally:
            await ledger.close()
    finally:
        server.drop(database)


@cache
def _migrated_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        engine = create_engine(f"sqlite:///{path}")
        with engine.begin() as connection:
            upgrade(connection)
        engine.dispose()
        return path.read_bytes()
