"""An edit that forbids runs to overlap while several are under way: none starts beside another (promise 6)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.engine.book import Book, failed, succeeded
from tests.storage.samples import MINUTE, NOON, a_definition, a_job, a_trigger
from tests.support.clock import ManualClock

from zerocron.actions.jobs import Jobs
from zerocron.core.model import DEFAULT_TEAM_ID, Job, Overlap, RetryPolicy, Run
from zerocron.engine.attempt import Started
from zerocron.engine.starting import PLACE_TAKEN_MS
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.memory import MemoryTimetable

TEAM = DEFAULT_TEAM_ID
EXCLUSIVE = [Overlap.SKIP, Overlap.QUEUE]


class Bench:
    """A job of every minute that lets its runs overlap, until it is told otherwise."""

    def __init__(self, book: Book, ledger: Ledger) -> None:
        self.book = book
        self.clock = ManualClock(NOON)
        self.jobs = Jobs(ledger=ledger, timetable=MemoryTimetable(), clock=self.clock)

    async def with_runs(self, count: int, **given: Any) -> tuple[Job, list[Started]]:
        """The job, and a run of each of the first slots, all under way."""
        definition = a_definition(retry=RetryPolicy(3, "fixed", 1))
        job = await self.book.keep(a_job(overlap=Overlap.ALLOW, definition=definition, **given))
        begun = []
        for minute in range(count):
            begun += (await self.book.start(job, now=NOON + minute * MINUTE)).runs
        self.clock.set(NOON + (count - 1) * MINUTE + 30_000)
        assert len(begun) == count
        return job, begun

    async def edit(self, job: Job, overlap: Overlap) -> None:
        await self.jobs.edit(TEAM, job.id, lambda spec: dataclasses.replace(spec, overlap=overlap))

    async def start(self, *things: Job | Run, at: int | None = None) -> list[str]:
        """Ids of the runs that start."""
        if at is not None:
            self.clock.set(at)
        return [started.run.id for started in (await self.book.start(*things, now=self.clock.now())).runs]

    async def finish(self, run: Started | Run, *, good: bool = True, **given: Any) -> dict[str, int]:
        result = succeeded(run, **given) if good else failed(run, **given)
        return (await self.book.finish(result, now=self.clock.now())).put

    async def place(self, job: Job) -> tuple[str | None, int]:
        state = (await self.book.job(job)).state
        return state.active_run_id, state.crowded

    async def slot_statuses(self, job: Job) -> list[tuple[str, str | None]]:
        return [(run.status, run.reason) for run in await self.book.runs(job)]


@pytest.fixture
def bench(book: Book, ledger: Ledger) -> Bench:
    return Bench(book, ledger)


@pytest.mark.parametrize("overlap", EXCLUSIVE)
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_the_place_is_taken_until_the_last_of_them_has_ended(bench: Bench, overlap: Overlap, count: int) -> None:
    job, runs = await bench.with_runs(count)
    await bench.edit(job, overlap)
    for minute, run in enumerate(runs, start=count):
        assert await bench.start(job, at=NOON + minute * MINUTE) == [], "another is still running"
        holder, crowded = await bench.place(job)
        left = [other.run.id for other in runs[minute - count :]]
        assert holder in left
        assert crowded or len(left) == 1
        await bench.finish(run)
    assert await bench.place(job) == (None, 0)
    reason = "overlap" if overlap == Overlap.SKIP else None
    assert (await bench.slot_statuses(job))[count] == ("skipped" if reason else "queued", reason)
    waiting = [run for run in await bench.book.runs(job) if run.status == "queued"]
    assert len(waiting) == (overlap == Overlap.QUEUE)
    if waiting:
        assert await bench.start(*waiting) == [waiting[0].id], "the end of the last one woke it"
    else:
        assert len(await bench.start(job, at=NOON + 2 * count * MINUTE)) == 1


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_results_of_all_of_them_in_one_batch_free_the_place(bench: Bench, overlap: Overlap) -> None:
    job, runs = await bench.with_runs(3)
    await bench.edit(job, overlap)
    finished = await bench.book.finish(*(succeeded(run) for run in runs), now=bench.clock.now())
    assert finished.settled == 3
    assert await bench.place(job) == (None, 0)


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_the_holder_that_fails_and_waits_for_a_retry_gives_its_place_to_one_that_runs(
    bench: Bench, overlap: Overlap
) -> None:
    """Held by what waits, the place would be free for the next slot or the retry, beside the one that runs."""
    job, runs = await bench.with_runs(2)
    await bench.edit(job, overlap)
    holder, _ = await bench.place(job)
    [active] = [run for run in runs if run.run.id == holder]
    [other] = [run for run in runs if run.run.id != holder]
    await bench.finish(active, good=False)
    assert (await bench.book.run(active)).status == "retrying"
    assert await bench.place(job) == (other.run.id, 1)
    retry_at = (await bench.book.run(active)).retry_at
    assert await bench.start(active.run, at=retry_at) == []
    assert ((await bench.book.run(active)).status, (await bench.book.run(active)).reason) == ("failed", "superseded")
    assert await bench.start(job, at=NOON + 2 * MINUTE) == []
    await bench.finish(other)
    assert await bench.place(job) == (None, 0)


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_one_that_waits_for_a_retry_holds_the_place_once_none_runs(bench: Bench, overlap: Overlap) -> None:
    """So that its retry does not consume the next slot: the slot ends it, as always."""
    job, (first, second) = await bench.with_runs(2)
    await bench.edit(job, overlap)
    await bench.finish(first, good=False)
    await bench.finish(second)
    assert await bench.place(job) == (first.run.id, 0)
    [started] = await bench.start(job, at=NOON + 2 * MINUTE)
    assert ((await bench.book.run(first)).status, (await bench.book.run(first)).reason) == ("failed", "superseded")
    assert (await bench.place(job))[0] == started


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_a_retry_that_was_waiting_at_the_edit_does_not_start_beside_a_run(bench: Bench, overlap: Overlap) -> None:
    job, (first, second) = await bench.with_runs(2)
    await bench.finish(first, good=False)
    await bench.edit(job, overlap)
    assert (await bench.place(job))[0] == second.run.id
    assert await bench.start(first.run, at=bench.clock.now() + 1_000) == []
    assert (await bench.book.run(first)).reason == "superseded"
    state = (await bench.book.job(job)).state
    assert (state.failed, state.consecutive_failures) == (1, 1)
    assert state.active_run_id == second.run.id


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_a_run_that_is_owed_waits_for_the_place_and_is_sent(bench: Bench, overlap: Overlap) -> None:
    """Its node was lost (promise 1): it may neither be given up nor start beside another."""
    job, runs = await bench.with_runs(3)
    await bench.edit(job, overlap)
    lost = dataclasses.replace(runs[1].run, session_id="dead")
    await bench.book.ledger.write(lambda connection: run_rows.move(connection, [(lost, run_rows.seen(lost))]))
    await bench.book.lose("dead", now=bench.clock.now())
    owed = await bench.book.run(runs[1])
    assert (owed.status, owed.cause) == ("retrying", "node_lost")
    batch = await bench.book.start(owed, now=bench.clock.now())
    assert batch.runs == []
    assert list(batch.put.values()) == [bench.clock.now() + PLACE_TAKEN_MS]
    await bench.finish(runs[0])
    await bench.finish(runs[2])
    assert await bench.place(job) == (owed.id, 0), "no slot may overtake it"
    assert await bench.start(job, at=NOON + 3 * MINUTE) == []
    assert await bench.start(owed) == [owed.id]
    [second] = [run for run in await bench.book.runs(job) if run.status == "running"]
    await bench.finish(second)
    assert await bench.place(job) == (None, 0)


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_all_that_ran_are_lost_and_each_is_sent_again_one_after_the_other(bench: Bench, overlap: Overlap) -> None:
    job, runs = await bench.with_runs(3)
    await bench.edit(job, overlap)
    await bench.book.lose(now=bench.clock.now())
    waiting = [await bench.book.run(run) for run in runs]
    sent: list[str] = []
    for _ in range(3):
        began = await bench.start(*waiting, job, at=bench.clock.now() + PLACE_TAKEN_MS)
        assert len(began) == 1
        sent += began
        [running] = [run for run in await bench.book.runs(job) if run.status == "running"]
        await bench.finish(running)
    assert sorted(sent) == sorted(run.run.id for run in runs)
    assert await bench.place(job) == (None, 0)


async def test_an_edit_back_lets_them_overlap_again_and_forward_counts_anew(bench: Bench) -> None:
    job, runs = await bench.with_runs(2)
    await bench.edit(job, Overlap.SKIP)
    await bench.edit(job, Overlap.ALLOW)
    [third] = await bench.start(job, at=NOON + 2 * MINUTE)
    await bench.edit(job, Overlap.QUEUE)
    holder, crowded = await bench.place(job)
    assert holder in {third, *(run.run.id for run in runs)}
    assert crowded == 1
    for run in runs:
        assert await bench.start(job, at=bench.clock.now() + MINUTE) == []
        await bench.finish(run)
    assert await bench.place(job) == (third, 0)


async def test_between_the_exclusive_policies_nothing_changes(bench: Bench) -> None:
    job, runs = await bench.with_runs(2)
    await bench.edit(job, Overlap.SKIP)
    before = await bench.place(job)
    await bench.edit(job, Overlap.QUEUE)
    assert await bench.place(job) == before
    assert before[0] in {run.run.id for run in runs}


async def test_a_trigger_waits_for_the_last_of_them_too(bench: Bench) -> None:
    job, runs = await bench.with_runs(2)
    await bench.edit(job, Overlap.QUEUE)
    asked = a_trigger(job, bench.clock.now())
    await bench.book.ledger.write(lambda connection: run_rows.insert(connection, [asked]))
    assert await bench.start(asked) == []
    await bench.finish(runs[0])
    assert (await bench.book.run(asked)).retry_at is None
    await bench.finish(runs[1])
    assert await bench.start(asked) == [asked.id]


@pytest.mark.parametrize("overlap", EXCLUSIVE)
async def test_a_pause_meanwhile_keeps_the_place_for_what_runs_on(bench: Bench, overlap: Overlap) -> None:
    job, runs = await bench.with_runs(3)
    await bench.edit(job, overlap)
    await bench.finish(runs[0], good=False)
    await bench.jobs.pause(TEAM, job.id)
    assert (await bench.book.run(runs[0])).status == "cancelled"
    await bench.jobs.resume(TEAM, job.id)
    for minute, run in enumerate(runs[1:], start=3):
        assert await bench.start(job, at=NOON + minute * MINUTE) == []
        await bench.finish(run)
    assert await bench.place(job) == (None, 0)


async def test_an_edit_while_it_is_paused_counts_after_it_is_resumed(bench: Bench) -> None:
    job, runs = await bench.with_runs(2)
    await bench.jobs.pause(TEAM, job.id)
    await bench.edit(job, Overlap.SKIP)
    await bench.jobs.resume(TEAM, job.id)
    assert await bench.start(job, at=NOON + 2 * MINUTE) == []
    await bench.finish(runs[0])
    await bench.finish(runs[1])
    assert len(await bench.start(job, at=NOON + 3 * MINUTE)) == 1


async def test_a_job_deleted_meanwhile_lets_them_end(bench: Bench) -> None:
    job, runs = await bench.with_runs(3)
    await bench.edit(job, Overlap.SKIP)
    await bench.jobs.delete(TEAM, job.id)
    await bench.finish(runs[0], good=False)
    await bench.finish(runs[1])
    await bench.finish(runs[2])
    assert [run.status for run in await bench.book.runs(job)] == ["failed", "succeeded", "succeeded"]
    assert (await bench.book.job(job)).state.active_run_id is None


async def test_a_job_that_has_nothing_under_way_is_free_after_the_edit(bench: Bench) -> None:
    job, [run] = await bench.with_runs(1)
    await bench.finish(run)
    await bench.edit(job, Overlap.SKIP)
    assert await bench.place(job) == (None, 0)
    assert len(await bench.start(job, at=NOON + MINUTE)) == 1


async def test_a_place_held_by_a_run_that_does_not_exist_is_free(bench: Bench) -> None:
    job = a_job(overlap=Overlap.SKIP)
    job.state.active_run_id, job.state.active_since = "00000000-0000-4000-8000-00000000dead", NOON + MINUTE
    await bench.book.keep(job)
    [started] = await bench.start(job, at=NOON)
    assert await bench.place(job) == (started, 0)


async def test_a_trigger_takes_a_place_held_by_a_run_that_does_not_exist(bench: Bench) -> None:
    job = a_job(overlap=Overlap.SKIP, next_run_at=NOON + MINUTE)
    job.state.active_run_id = "00000000-0000-4000-8000-00000000dead"
    asked = a_trigger(job)
    await bench.book.keep(job, asked)
    assert await bench.start(asked, at=NOON) == [asked.id]
