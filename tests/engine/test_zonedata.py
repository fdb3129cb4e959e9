"""Stored instants follow the rules of time zones when a release brings other rules."""

from __future__ import annotations

import pytest
from tests.engine.book import Book
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.model import Job
from zerocron.core.schedule import Schedule
from zerocron.engine import zonedata
from zerocron.storage.ledger.database import SqliteLedger

HOURLY = Schedule("cron", "0 * * * *", None, None, "UTC")


async def job_due(book: Book, next_run_at: int | None, schedule: Schedule = HOURLY, status: str = "active") -> Job:
    return await book.keep(a_job(schedule=schedule, next_run_at=next_run_at, status=status))


async def test_other_zone_data_moves_the_cursors_that_it_changes(book: Book, ledger: SqliteLedger) -> None:
    clock = ManualClock(NOON)
    assert await zonedata.refresh(ledger, clock, "2026a") == 0
    stale = await job_due(book, NOON + 30 * MINUTE)  # as computed by rules of other days
    right = await job_due(book, NOON + HOUR)
    due = await job_due(book, NOON - 10 * MINUTE)
    paused = await job_due(book, None, status="paused")
    interval = await job_due(book, NOON + 1, Schedule("interval", None, HOUR, NOON, "UTC"))
    assert await zonedata.refresh(ledger, clock, "2026b") == 1
    cursors = [(await book.job(job)).state.next_run_at for job in (stale, right, due, paused, interval)]
    assert cursors == [NOON + HOUR, NOON + HOUR, NOON - 10 * MINUTE, None, NOON + 1]
    assert (await book.job(stale)).version == 1, "nobody edited it"


async def test_the_same_zone_data_moves_nothing(book: Book, ledger: SqliteLedger) -> None:
    clock = ManualClock(NOON)
    await zonedata.refresh(ledger, clock, "2026a")
    stale = await job_due(book, NOON + 30 * MINUTE)
    assert await zonedata.refresh(ledger, clock, "2026a") == 0
    assert (await book.job(stale)).state.next_run_at == NOON + 30 * MINUTE


async def test_thousands_of_jobs_are_gone_through_in_pages(
    book: Book, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(NOON)
    await zonedata.refresh(ledger, clock, "2026a")
    jobs = [await job_due(book, NOON + 30 * MINUTE) for _ in range(7)]
    monkeypatch.setattr(zonedata, "PAGE", 3)
    assert await zonedata.refresh(ledger, clock, "2026b") == 7
    assert {(await book.job(job)).state.next_run_at for job in jobs} == {NOON + HOUR}


async def test_a_schedule_without_a_further_slot_is_left_as_it_is(book: Book, ledger: SqliteLedger) -> None:
    clock = ManualClock(NOON)
    await zonedata.refresh(ledger, clock, "2026a")
    last = await job_due(book, NOON + HOUR, Schedule("cron", "0 0 0 1 1 * 2020", None, None, "UTC"))
    assert await zonedata.refresh(ledger, clock, "2026b") == 0
    assert (await book.job(last)).state.next_run_at == NOON + HOUR


async def test_a_slot_that_has_its_record_is_not_made_the_next_one_again(book: Book, ledger: SqliteLedger) -> None:
    """The clock was set back since that slot ran; starting it twice would fail for ever."""
    clock = ManualClock(NOON)
    await zonedata.refresh(ledger, clock, "2026a")
    job = a_job(schedule=HOURLY, next_run_at=NOON + 2 * HOUR + 30 * MINUTE)
    await book.keep(job, a_run(job, NOON + HOUR, status="succeeded"), a_run(job, NOON + 2 * HOUR, status="skipped"))
    assert await zonedata.refresh(ledger, clock, "2026b") == 1
    assert (await book.job(job)).state.next_run_at == NOON + 3 * HOUR
