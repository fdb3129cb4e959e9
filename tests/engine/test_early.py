"""Runs are committed a moment before their slot, and sent at it: not before, and not when a person stopped them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.book import Book, member
from tests.engine.house import House
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run

from zerocron.actions.jobs import Jobs
from zerocron.core.model import DEFAULT_TEAM_ID, Job, JobState, RunStatus
from zerocron.engine.starting import StartedBatch, start_batch
from zerocron.storage.ledger import sessions as session_rows

TEAM = DEFAULT_TEAM_ID
EARLY = 15
Verb = Callable[[Jobs, Job], Any]


async def start_early(book: Book, job: Job, *, now: int) -> StartedBatch:
    """As a claim does that looks `EARLY` milliseconds ahead."""

    def transaction(connection: Any) -> StartedBatch:
        session_rows.insert(connection, session_id="s", node="n", version="0", now=now, expires_at=now + HOUR)
        return start_batch(connection, [member(job)], now=now, session_id="s", early_ms=EARLY)

    return await book.ledger.write(transaction)


async def test_a_slot_with_a_free_place_is_started_early_and_begins_at_its_instant(book: Book) -> None:
    job = await book.keep(a_job())
    [started] = (await start_early(book, job, now=NOON - EARLY)).runs
    run = await book.run(started)
    assert (run.scheduled_for, run.status, run.created_at) == (NOON, RunStatus.RUNNING, NOON - EARLY)
    assert (run.started_at, run.attempt_started_at) == (NOON, NOON)
    assert (await book.job(job)).state == JobState(NOON + MINUTE, run.id, NOON)


async def test_nothing_is_started_earlier_than_that(book: Book) -> None:
    job = await book.keep(a_job())
    batch = await start_early(book, job, now=NOON - EARLY - 1)
    assert (batch.runs, batch.put) == ([], {member(job): NOON})


@pytest.mark.parametrize("overlap", ["skip", "queue"])
async def test_what_the_place_decides_waits_for_the_instant(book: Book, overlap: str) -> None:
    """The active run may end in the last millisecond: then the slot is not skipped."""
    job = a_job(overlap=overlap)
    active = a_run(job, NOON - MINUTE)
    job.state = JobState(NOON, active.id, NOON - MINUTE)
    await book.keep(job, active)
    batch = await start_early(book, job, now=NOON - EARLY)
    assert (batch.runs, batch.skipped) == ([], 0)
    assert batch.put == {member(job): NOON + EARLY}, "a claim that looks ahead finds it when it is due"


async def test_a_run_beside_another_is_started_early_where_that_is_allowed(book: Book) -> None:
    job = a_job(overlap="allow")
    await book.keep(job, a_run(job, NOON - MINUTE))
    [started] = (await start_early(book, job, now=NOON - 3)).runs
    assert started.run.scheduled_for == NOON
    assert (await book.job(job)).state.active_since == NOON, "who pauses the job sees that something is about to begin"


async def test_the_request_leaves_at_the_slot(tmp_path: Path) -> None:
    async with House(tmp_path, early_ms=EARLY) as house:
        sent: list[int] = []
        send = house.target.send

        async def noted(request: Any) -> Any:
            sent.append(house.clock.now())
            return await send(request)

        house.engine.executor._send = noted
        job = await house.create("* * * * *")
        await house.clock.advance(180)
        assert sent == [NOON + MINUTE, NOON + 2 * MINUTE, NOON + 3 * MINUTE]
        created = [run.created_at for run in await house.runs(job)]
        assert sorted(created) == [at - EARLY for at in sent]


async def pause(jobs: Jobs, job: Job) -> None:
    await jobs.pause(TEAM, job.id)


async def delete(jobs: Jobs, job: Job) -> None:
    await jobs.delete(TEAM, job.id)


async def edit(jobs: Jobs, job: Job) -> None:
    await jobs.edit(TEAM, job.id, lambda spec: dataclasses.replace(spec, schedule="0 0 1 1 *"))


@pytest.mark.parametrize("overlap", ["skip", "allow"])
@pytest.mark.parametrize("verb", [pause, delete, edit])
async def test_a_verb_between_the_commit_and_the_slot_returns_when_the_run_has_begun(
    tmp_path: Path, verb: Verb, overlap: str
) -> None:
    """Promise 8: once the call has returned, nothing of the old order of things begins."""
    async with House(tmp_path, early_ms=EARLY) as house:
        job = await house.create("* * * * *", overlap=overlap)
        await house.clock.advance(60 - 0.010)
        assert [run.status for run in await house.runs(job)] == ["running"]
        assert house.target.requests == []
        calling = asyncio.ensure_future(verb(house.jobs, job))
        await house.clock.advance(0.009)
        assert not calling.done()
        await house.clock.advance(0.001)
        await calling
        assert len(house.target.requests) == 1
        await house.clock.advance(180)
        assert len(house.target.requests) == 1


async def test_a_clock_that_was_set_back_does_not_make_a_verb_wait(tmp_path: Path) -> None:
    async with House(tmp_path, early_ms=EARLY) as house:
        job = await house.create("* * * * *")
        house.target.on("https://example.com/hook", _never)
        await house.clock.advance(61)
        house.clock.set(NOON - HOUR)
        await house.jobs.pause(TEAM, job.id)


async def _never(_request: Any) -> Any:
    await asyncio.get_running_loop().create_future()


async def test_a_verb_that_waited_for_the_job_looks_at_what_was_begun_meanwhile(tmp_path: Path) -> None:
    """By the time at which it got the job, not the one at which it asked for it."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.sql("UPDATE jobs SET active_since = :slot WHERE id = :id", slot=NOON + 10_000, id=job.id)
        house.ledger.before_write = lambda: house.clock.set(NOON + 9_990)
        pausing = asyncio.create_task(house.jobs.pause(TEAM, job.id))
        await house.clock.rest()
        assert not pausing.done()
        house.ledger.heal()
        await house.clock.advance(0.01)
        assert (await pausing).status == "paused"
