"""Results are recorded in batches, whoever hands one in waits for its commit, and none is left behind."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.engine.book import Book, failed, succeeded
from tests.engine.house import WatchedLedger
from tests.storage.samples import NOON, a_job
from tests.support.clock import ManualClock

from zerocron.core.errors import Unavailable
from zerocron.core.model import Run
from zerocron.engine.attempt import Result, Started
from zerocron.engine.finisher import Finisher
from zerocron.engine.finishing import finish_batch
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.memory import MemoryTimetable


class Bench:
    """A finisher over a ledger that can be made to fail."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.book = Book(ledger)
        self.ledger = WatchedLedger(ledger)
        self.clock = ManualClock(NOON, busy=lambda: self.ledger.at_work > 0)
        self.finisher = Finisher(
            ledger=self.ledger,
            timetable=MemoryTimetable(),
            clock=self.clock,
            metrics=Metrics(),
            stop_point=lambda _name: None,
        )
        self.handed_in: list[asyncio.Task[None]] = []

    async def started(self, count: int) -> list[Started]:
        jobs = [await self.book.keep(a_job()) for _ in range(count)]
        return (await self.book.start(*jobs)).runs

    def hand_in(self, *runs: Started, **given: Any) -> None:
        self.handed_in += [asyncio.create_task(self.finisher.settle(succeeded(run, **given))) for run in runs]

    async def statuses(self, runs: list[Started]) -> list[str]:
        return [(await self.book.run(run)).status for run in runs]


@asynccontextmanager
async def benched(ledger: SqliteLedger) -> AsyncIterator[Bench]:
    bench = Bench(ledger)
    bench.finisher.start()
    try:
        yield bench
    finally:
        bench.ledger.before_write = lambda: None
        stopping = asyncio.create_task(bench.finisher.stop())
        while not stopping.done():
            await bench.clock.advance(0.1)
        for task in bench.handed_in:
            task.cancel()
        await asyncio.gather(stopping, *bench.handed_in, return_exceptions=True)


def fails(times: int, error: Callable[[], Exception]) -> Callable[[], None]:
    left = [error() for _ in range(times)]

    def before_write() -> None:
        if left:
            raise left.pop()

    return before_write


def away() -> Exception:
    return Unavailable("The database cannot be used now.")


async def test_results_that_come_together_share_a_commit(ledger: SqliteLedger) -> None:
    async with benched(ledger) as bench:
        runs = await bench.started(30)
        bench.hand_in(*runs)
        await bench.clock.advance(0.02)
        assert all(task.done() for task in bench.handed_in)
        assert bench.ledger.writes == 1
        assert await bench.statuses(runs) == ["succeeded"] * 30


async def test_a_result_is_not_taken_for_recorded_before_its_commit(ledger: SqliteLedger) -> None:
    async with benched(ledger) as bench:
        [run] = await bench.started(1)
        bench.ledger.before_write = fails(2, away)
        bench.hand_in(run)
        await bench.clock.advance(0.05)
        assert not bench.handed_in[0].done()
        assert await bench.statuses([run]) == ["running"]
        await bench.clock.advance(1)
        assert bench.handed_in[0].done()
        assert await bench.statuses([run]) == ["succeeded"]


async def test_a_batch_stays_together_while_the_ledger_is_away(ledger: SqliteLedger) -> None:
    """A hundred results cost one commit when it is back, not a hundred."""
    async with benched(ledger) as bench:
        runs = await bench.started(20)
        bench.ledger.before_write = fails(3, away)
        bench.hand_in(*runs)
        await bench.clock.advance(2)
        assert await bench.statuses(runs) == ["succeeded"] * 20
        assert bench.ledger.writes == 4


async def test_an_outage_of_minutes_loses_nothing(ledger: SqliteLedger) -> None:
    async with benched(ledger) as bench:
        first, second = await bench.started(2)
        bench.ledger.before_write = fails(1_000_000, away)
        bench.hand_in(first)
        await bench.clock.advance(150)
        bench.hand_in(second)
        await bench.clock.advance(150)
        assert bench.finisher.age_seconds > 60, "whoever watches is told"
        bench.ledger.before_write = lambda: None
        await bench.clock.advance(6)
        assert await bench.statuses([first, second]) == ["succeeded"] * 2
        assert bench.finisher.age_seconds == 0


async def test_a_lost_answer_to_a_commit_is_asked_for_again_and_changes_nothing(ledger: SqliteLedger) -> None:
    async with benched(ledger) as bench:
        runs = await bench.started(3)
        bench.ledger.after_write = fails(1, away)
        bench.hand_in(*runs)
        await bench.clock.advance(1)
        assert all(task.done() for task in bench.handed_in)
        jobs = [run.run.job_id for run in runs]
        counted = await bench.ledger.inner.read(
            lambda connection: connection.exec_driver_sql("SELECT id, succeeded FROM jobs").all()
        )
        assert {job_id: count for job_id, count in counted if job_id in jobs} == dict.fromkeys(jobs, 1)


def poisoned(poison: Run) -> Callable[..., Any]:
    def transaction(connection: Any, results: list[Result], **kwargs: Any) -> Any:
        if any(result.run.id == poison.id for result in results):
            raise LookupError("a result that cannot be written")
        return finish_batch(connection, results, **kwargs)

    return transaction


async def test_a_result_that_cannot_be_written_does_not_hold_up_the_others(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with benched(ledger) as bench:
        runs = await bench.started(5)
        monkeypatch.setattr("zerocron.engine.finisher.finish_batch", poisoned(runs[2].run))
        bench.hand_in(*runs)
        await bench.clock.advance(5)
        assert await bench.statuses(runs) == ["succeeded", "succeeded", "running", "succeeded", "succeeded"]
        assert all(task.done() for task in bench.handed_in), "its run is left to the sweep"


@pytest.mark.parametrize("status", ["succeeded", "failed"])
async def test_a_record_that_the_ledger_does_not_take_leaves_its_run_ended_as_it_did(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    def picky(connection: Any, results: list[Result], **kwargs: Any) -> Any:
        if any(result.execution.request for result in results):
            raise LookupError("a record that cannot be written")
        return finish_batch(connection, results, **kwargs)

    async with benched(ledger) as bench:
        [run] = await bench.started(1)
        monkeypatch.setattr("zerocron.engine.finisher.finish_batch", picky)
        made = {"succeeded": succeeded, "failed": failed}[status](run)
        execution = dataclasses.replace(made.execution, request={"url": "https://example.com"})
        handed_in = asyncio.create_task(bench.finisher.settle(dataclasses.replace(made, execution=execution)))
        await bench.clock.advance(5)
        assert handed_in.done()
        assert await bench.statuses([run]) == [status]
        [recorded] = await bench.book.executions(run)
        assert (recorded.status, recorded.error_kind) == (execution.status, execution.error_kind)
        assert (recorded.request, recorded.response) == ({}, None)


async def test_a_poisoned_result_is_given_up_also_after_an_outage(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with benched(ledger) as bench:
        poison, good = await bench.started(2)
        monkeypatch.setattr("zerocron.engine.finisher.finish_batch", poisoned(poison.run))
        bench.ledger.before_write = fails(5, away)
        bench.hand_in(poison)
        await bench.clock.advance(1)
        bench.hand_in(good)
        await bench.clock.advance(60)
        assert await bench.statuses([poison, good]) == ["running", "succeeded"]


async def test_a_batch_is_bounded_in_number_and_in_bytes(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerocron.engine.finisher.BATCH_MAX", 4)
    monkeypatch.setattr("zerocron.engine.finisher.BATCH_BYTES_MAX", 100)
    async with benched(ledger) as bench:
        runs = await bench.started(10)
        bench.hand_in(*runs)
        await bench.clock.advance(0.1)
        assert bench.ledger.writes == 3
        runs = await bench.started(4)
        bench.hand_in(*runs, response_body="x" * 60)
        await bench.clock.advance(0.1)
        assert bench.ledger.writes == 3 + 4
        assert await bench.statuses(runs) == ["succeeded"] * 4


async def test_stopping_records_what_was_handed_in_even_if_nobody_waits_for_it_any_more(
    ledger: SqliteLedger,
) -> None:
    """A stop that aborts cancels the attempts; a result that had already come must not be thrown away with them."""
    bench = Bench(ledger)
    bench.finisher.start()
    runs = await bench.started(3)
    bench.hand_in(*runs)
    await bench.clock.rest()
    for task in bench.handed_in:
        task.cancel()
    await asyncio.gather(*bench.handed_in, return_exceptions=True)
    stopping = asyncio.create_task(bench.finisher.stop())
    await bench.clock.advance(0.1)
    await stopping
    assert await bench.statuses(runs) == ["succeeded"] * 3
    await bench.finisher.stop()


async def test_stopping_what_never_started_is_no_error(ledger: SqliteLedger) -> None:
    await Bench(ledger).finisher.stop()


async def test_a_finisher_with_nothing_to_do_ends_at_once(ledger: SqliteLedger) -> None:
    bench = Bench(ledger)
    bench.finisher.start()
    await bench.clock.advance(200)
    async with asyncio.timeout(20):  # the bench's clock stands still: what waits for it waits for ever
        await bench.finisher.stop()
    assert bench.ledger.writes == 0
