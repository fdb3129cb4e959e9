"""Stored instants follow the rules of time zones when a release brings other rules, and no run waits for it."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection
from tests.engine.book import Book
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.model import Job
from zerocron.core.schedule import Schedule
from zerocron.engine import zonedata
from zerocron.engine.zonedata import ZoneData
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.contract import job_member
from zerocron.storage.timetable.memory import MemoryTimetable

HOURLY = Schedule("cron", "0 * * * *", None, None, "UTC")


class Site:
    """A ledger whose instants were computed with the zone data of 2026a."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger = ledger
        self.clock = ManualClock(NOON)
        self.timetable = MemoryTimetable()

    def node(self, version: str) -> ZoneData:
        return ZoneData(ledger=self.ledger, timetable=self.timetable, clock=self.clock, version=version)

    async def refresh(self, version: str) -> int:
        """All slices one after the other; how many jobs moved."""
        node = self.node(version)
        for _ in range(100):
            await node.tick()
            if node.is_done:
                return node.moved
        raise AssertionError("there is no end to it")


@pytest.fixture
async def site(ledger: SqliteLedger) -> Site:
    made = Site(ledger)
    await made.refresh("2026a")
    return made


async def job_due(book: Book, next_run_at: int | None, schedule: Schedule = HOURLY, status: str = "active") -> Job:
    return await book.keep(a_job(schedule=schedule, next_run_at=next_run_at, status=status))


async def test_other_zone_data_moves_the_cursors_that_it_changes(book: Book, site: Site) -> None:
    stale = await job_due(book, NOON + 30 * MINUTE)  # as computed by rules of other days
    right = await job_due(book, NOON + HOUR)
    due = await job_due(book, NOON - 10 * MINUTE)
    now = await job_due(book, NOON)
    paused = await job_due(book, None, status="paused")
    interval = await job_due(book, NOON + 1, Schedule("interval", None, HOUR, NOON, "UTC"))
    assert await site.refresh("2026b") == 1
    cursors = [(await book.job(job)).state.next_run_at for job in (stale, right, due, now, paused, interval)]
    assert cursors == [NOON + HOUR, NOON + HOUR, NOON - 10 * MINUTE, NOON, None, NOON + 1]
    assert (await book.job(stale)).version == 1, "nobody edited it"


async def test_the_same_zone_data_moves_nothing(book: Book, site: Site) -> None:
    stale = await job_due(book, NOON + 30 * MINUTE)
    assert await site.refresh("2026a") == 0
    assert (await book.job(stale)).state.next_run_at == NOON + 30 * MINUTE


async def test_what_moved_is_woken_at_its_new_slot(book: Book, site: Site) -> None:
    near = Schedule("cron", "1 * * * *", None, None, "UTC")
    early, late = await job_due(book, NOON + 30 * MINUTE, near), await job_due(book, NOON + 30_000)
    await site.timetable.put({job_member(late.team_id, late.id): NOON + 30_000})
    assert await site.refresh("2026b") == 2
    claim = await site.timetable.claim(NOON + 2 * HOUR, 10)
    assert list(claim.members) == [job_member(early.team_id, early.id)], "the other one is beyond the horizon"


async def test_jobs_are_gone_through_in_slices_those_due_soonest_first(
    book: Book, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zonedata, "SLICE", 2)
    jobs = [await job_due(book, NOON + minutes * MINUTE) for minutes in (50, 20, 40, 10, 30)]
    soonest_first = [jobs[index] for index in (3, 1, 4, 2, 0)]
    node = site.node("2026b")
    moved = []
    while not node.is_done:
        assert await node.tick() < 1 or node.is_done
        moved.append([(await book.job(job)).state.next_run_at == NOON + HOUR for job in soonest_first])
    assert moved[:3] == [[True, True, False, False, False], [True, True, True, True, False], [True] * 5]
    assert moved[-1] == [True] * 5


@pytest.mark.parametrize("damage", ["timezone = 'Nowhere/Gone'", "schedule_cron = 'nonsense'"])
async def test_a_job_that_cannot_be_computed_keeps_no_other_from_it(book: Book, site: Site, damage: str) -> None:
    broken, stale = await job_due(book, NOON + 10 * MINUTE), await job_due(book, NOON + 30 * MINUTE)

    def break_it(connection: Connection) -> None:
        connection.exec_driver_sql(f"UPDATE jobs SET {damage} WHERE id = '{broken.id}'").close()

    await book.ledger.write(break_it)
    assert await site.refresh("2026b") == 1
    assert (await book.job(stale)).state.next_run_at == NOON + HOUR


async def test_what_was_interrupted_is_done_again(book: Book, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zonedata, "SLICE", 1)
    jobs = [await job_due(book, NOON + minutes * MINUTE) for minutes in (10, 20)]
    await site.node("2026b").tick()
    assert await site.refresh("2026b") == 1
    assert [(await book.job(job)).state.next_run_at for job in jobs] == [NOON + HOUR] * 2


async def test_a_slot_that_passes_before_its_job_is_reached_is_caught_up_with(
    book: Book, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zonedata, "SLICE", 1)
    await job_due(book, NOON + 10 * MINUTE)
    forward = await job_due(book, NOON + 90 * MINUTE)  # by the new rules it is due at 13:00
    node = site.node("2026b")
    await node.tick()
    site.clock.set(NOON + HOUR + 3_000)
    while not node.is_done:
        await node.tick()
    assert (await book.job(forward)).state.next_run_at == NOON + HOUR


async def test_a_schedule_without_a_further_slot_is_left_as_it_is(book: Book, site: Site) -> None:
    last = await job_due(book, NOON + HOUR, Schedule("cron", "0 0 0 1 1 * 2020", None, None, "UTC"))
    assert await site.refresh("2026b") == 0
    assert (await book.job(last)).state.next_run_at == NOON + HOUR


async def test_a_slot_that_has_its_record_is_not_made_the_next_one_again(book: Book, site: Site) -> None:
    """The clock was set back since that slot ran; starting it twice would fail for ever."""
    job = a_job(schedule=HOURLY, next_run_at=NOON + 2 * HOUR + 30 * MINUTE)
    await book.keep(job, a_run(job, NOON + HOUR, status="succeeded"), a_run(job, NOON + 2 * HOUR, status="skipped"))
    assert await site.refresh("2026b") == 1
    assert (await book.job(job)).state.next_run_at == NOON + 3 * HOUR
