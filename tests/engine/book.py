"""The engine's transactions by themselves, on a real ledger: no loops, no clock, no timetable.

book = Book(ledger)
job = await book.keep(a_job())
started = await book.start(job)              # as if the timetable had said that it is due
await book.finish(failed(started.runs[0]))   # as if its request had come back
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select, text
from tests.storage.samples import NOON, SESSION_ID, an_execution

from zerocron.core.model import DEFAULT_TEAM_ID, Execution, Instant, Job, RetryPolicy, Run
from zerocron.engine.attempt import Result, Started
from zerocron.engine.finishing import Finished, finish_batch, take_over_batch
from zerocron.engine.starting import StartedBatch, start_batch
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger import tables
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import job_member, run_member


def member(thing: Job | Run | str) -> str:
    if isinstance(thing, str):
        return thing
    return job_member(thing.team_id, thing.id) if isinstance(thing, Job) else run_member(thing.team_id, thing.id)


def succeeded(started: Started | Run, **given: Any) -> Result:
    run = started.run if isinstance(started, Started) else started
    execution = an_execution(run, cause=run.cause, session_id=run.session_id or "", **given)
    return Result(run, _retry_of(started), execution)


def failed(started: Started | Run, *, retry_after_ms: int | None = None, **given: Any) -> Result:
    failure = {"status": "failed", "error_kind": "rule", "error_message": "The status was 500; the job accepts 2xx."}
    good = succeeded(started, **failure | given)
    return Result(good.run, good.retry, good.execution, retry_after_ms)


def _retry_of(started: Started | Run) -> RetryPolicy:
    definition = started.definition if isinstance(started, Started) else None
    return definition.retry if definition else RetryPolicy()


class Book:
    """A ledger with the engine's verbs on it."""

    early_ms = 0
    """As in `house.House`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def keep(self, job: Job, *runs: Run) -> Job:
        """Write a job down with its state, and runs of it."""

        def transaction(connection: Connection) -> None:
            job_rows.insert(connection, job)
            job_rows.save_states(connection, [job], {job.id: job.state.next_run_at})
            if runs:
                run_rows.insert(connection, runs)

        await self.ledger.write(transaction)
        return job

    async def start(self, *members: Job | Run | str, now: Instant = NOON, session_id: str = SESSION_ID) -> StartedBatch:
        """Due members in, committed runs out."""
        names = [member(thing) for thing in members]

        def transaction(connection: Connection) -> StartedBatch:
            if connection.scalar(select(tables.sessions.c.id).where(tables.sessions.c.id == session_id)) is None:
                session_rows.insert(
                    connection, session_id=session_id, node="book", version="0", now=now, expires_at=now + 30_000
                )
            return start_batch(connection, names, now=now, session_id=session_id, early_ms=self.early_ms)

        return await self.ledger.write(transaction)

    async def finish(self, *results: Result, now: Instant = NOON + 100) -> Finished:
        return await self.ledger.write(lambda connection: finish_batch(connection, results, now=now))

    async def lose(self, session_id: str = SESSION_ID, *, now: Instant = NOON + 100, limit: int = 200) -> Finished:
        """The node of a session is gone."""
        return await self.ledger.write(
            lambda connection: take_over_batch(connection, [session_id], now=now, limit=limit)
        )

    async def job(self, job: Job) -> Job:
        """The job as it is now; deleted ones are found too."""
        whole = await self.ledger.read(lambda connection: job_rows.get(connection, job.team_id, job.id))
        if whole is not None:
            return whole
        found = await self.ledger.write(lambda connection: job_rows.lock(connection, [job.id]))
        job.status, job.state = found[job.id].status, found[job.id].state
        return job

    async def run(self, run: Run | Started) -> Run:
        run_id = run.run.id if isinstance(run, Started) else run.id
        found = await self.ledger.read(lambda connection: run_rows.get(connection, DEFAULT_TEAM_ID, run_id))
        assert found is not None
        return found

    async def runs(self, job: Job) -> list[Run]:
        """All runs of a job, the earliest slot first."""
        found = await self.ledger.read(
            lambda connection: run_rows.page_of_job(connection, job.id, status=None, before=None, limit=1_000)
        )
        return found[::-1]

    async def executions(self, run: Run | Started) -> list[Execution]:
        run_id = run.run.id if isinstance(run, Started) else run.id
        return await self.ledger.read(lambda connection: execution_rows.of_run(connection, run_id))

    async def everything(self) -> list[Any]:
        """All rows of all tables the engine writes, to see whether anything changed."""

        def transaction(connection: Connection) -> list[Any]:
            tables = ("jobs", "job_versions", "runs", "executions")
            return [connection.execute(text(f"SELECT * FROM {table} ORDER BY 1, 2, 3")).all() for table in tables]

        return await self.ledger.read(transaction)
