"""A job that another transaction holds is left for a moment: nobody waits for it, and nothing of it is lost.

Where a ledger has one writer (SQLite) no job is ever held by another: here `jobs.lock` is made to leave some out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.engine.book import Book, member, succeeded
from tests.engine.house import House
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run, a_trigger, an_id

from zerocron.core.model import EngineJob, Job
from zerocron.engine.starting import BUSY_MS
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.timetable.contract import job_member

LOCK = job_rows.lock
Hold = Callable[..., set[str]]


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    """Hold jobs, as another transaction would; the set that comes back may be changed at any time."""
    held: set[str] = set()

    def lock(connection: Connection, job_ids: Sequence[str], *, to_start: bool = False) -> dict[str, EngineJob]:
        return LOCK(connection, [job_id for job_id in job_ids if job_id not in held], to_start=to_start)

    def begin(*jobs: Job) -> set[str]:
        held.update(job.id for job in jobs)
        return held

    monkeypatch.setattr(job_rows, "lock", lock)
    return begin


async def test_a_held_job_comes_back_at_once_and_the_others_start(book: Book, hold: Hold) -> None:
    held, free = await book.keep(a_job()), await book.keep(a_job())
    hold(held)
    batch = await book.start(held, free)
    assert [started.run.job_id for started in batch.runs] == [free.id]
    assert batch.put[member(held)] == NOON + BUSY_MS
    assert member(held) not in batch.drop
    assert (await book.job(held)).state == held.state
    assert await book.runs(held) == []


async def test_a_waiting_run_of_a_held_job_comes_back_at_once(book: Book, hold: Hold) -> None:
    job = await book.keep(a_job(next_run_at=NOON + HOUR))
    retry, asked = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON), a_trigger(job)
    await book.ledger.write(lambda connection: run_rows.insert(connection, [retry, asked]))
    before = await book.everything()
    held = hold(job)
    batch = await book.start(retry, asked)
    assert batch.runs == []
    assert batch.put == {member(retry): NOON + BUSY_MS, member(asked): NOON + BUSY_MS}
    assert batch.drop == []
    assert await book.everything() == before
    held.clear()
    assert len((await book.start(retry)).runs) == 1


async def test_a_job_that_is_gone_is_not_taken_for_held(book: Book, hold: Hold) -> None:
    gone = job_member("team", an_id())
    hold()
    batch = await book.start(gone)
    assert (batch.put, batch.drop) == ({}, [gone])


async def test_the_result_of_a_held_job_is_neither_recorded_nor_taken_for_late(book: Book, hold: Hold) -> None:
    jobs = [await book.keep(a_job()) for _ in range(3)]
    runs = (await book.start(*jobs)).runs
    held = hold(jobs[1])
    finished = await book.finish(*(succeeded(run) for run in runs))
    assert finished.busy == {runs[1].run.id}
    assert (finished.settled, finished.late) == (2, 0)
    assert [(await book.run(run)).status for run in runs] == ["succeeded", "running", "succeeded"]
    assert await book.executions(runs[1]) == []
    held.clear()
    assert (await book.finish(succeeded(runs[1]))).settled == 1
    assert (await book.run(runs[1])).status == "succeeded"


async def test_a_lost_run_of_a_held_job_is_left_for_the_next_time(book: Book, hold: Hold) -> None:
    jobs = [await book.keep(a_job()) for _ in range(2)]
    runs = (await book.start(*jobs)).runs
    held = hold(jobs[0])
    finished = await book.lose()
    assert (finished.busy, finished.settled) == ({runs[0].run.id}, 1)
    held.clear()
    assert (await book.lose()).settled == 1
    assert [(await book.run(run)).status for run in runs] == ["retrying", "retrying"]


async def test_a_slot_whose_job_is_held_starts_as_soon_as_it_is_let_go(tmp_path: Path, hold: Hold) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        held = hold(job)
        await house.clock.advance(11.02)
        assert await house.runs(job) == []
        held.clear()
        await house.clock.advance(0.1)
        [run] = await house.runs(job)
        assert run.started_at is not None
        assert run.started_at - run.scheduled_for < 1_000 + 20 + BUSY_MS + 10


async def test_a_result_whose_job_is_held_is_recorded_as_soon_as_it_is_let_go(tmp_path: Path, hold: Hold) -> None:
    """With nothing else to record: it once waited a minute for company."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.clock.until(lambda: house.target.requests, "the request")
        held = hold(job)
        await house.clock.advance(2)
        assert [run.status for run in await house.runs(job)] == ["running"]
        assert house.engine.executor.free == 49, "it keeps its place"
        held.clear()
        await house.clock.advance(0.2)
        assert [run.status for run in await house.runs(job)] == ["succeeded"]
        assert house.engine.executor.free == 50


async def test_a_held_job_holds_up_the_results_of_no_other(tmp_path: Path, hold: Hold) -> None:
    async with House(tmp_path) as house:
        jobs = [await house.create("2027-01-15T12:00:10Z") for _ in range(3)]
        await house.clock.until(lambda: len(house.target.requests) == 3, "the requests")
        held = hold(jobs[0])
        await house.clock.advance(0.3)
        assert [(await house.runs(job))[0].status for job in jobs] == ["running", "succeeded", "succeeded"]
        held.clear()
        await house.clock.advance(0.3)
        assert (await house.runs(jobs[0]))[0].status == "succeeded"
        counted = house.metrics.registry.get_sample_value("zerocron_executions_total", {"status": "success"})
        assert counted == 3, "each is counted once, however often it was tried"


async def test_stopping_waits_for_a_result_whose_job_is_held(tmp_path: Path, hold: Hold) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.clock.until(lambda: house.target.requests, "the request")
        held = hold(job)
        stopping = asyncio.create_task(house.stop(drain_seconds=0))
        await house.clock.rest()
        held.clear()
        await stopping
        assert [(run.status, run.attempt) for run in await house.runs(job)] == [("succeeded", 1)]


async def test_a_session_is_not_settled_while_one_of_its_jobs_is_held(tmp_path: Path, hold: Hold) -> None:
    async with House(tmp_path) as house:
        held_job, free = await house.create("2027-01-15T12:00:10Z"), await house.create("2027-01-15T12:00:10Z")
        forever = asyncio.Event()

        async def hang(_request: Any) -> Any:
            await forever.wait()

        house.target.on("https://example.com/hook", hang)
        await house.clock.until(lambda: len(house.target.requests) == 2, "the requests")
        await house.crash()
        held = hold(held_job)
        await house.restart(after=1)
        settled = await house.sql("SELECT settled_at IS NOT NULL FROM sessions WHERE ended_at IS NOT NULL")
        assert settled == [(0,)]
        assert [(await house.runs(job))[0].attempt for job in (held_job, free)] == [1, 2]
        held.clear()
        await house.clock.advance(6)
        assert (await house.runs(held_job))[0].attempt == 2
        settled = await house.sql("SELECT settled_at IS NOT NULL FROM sessions WHERE ended_at IS NOT NULL")
        assert settled == [(1,)]
