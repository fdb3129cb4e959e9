"""While the timetable does not answer, what is due is started straight from the ledger: late by a moment, once each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path

import pytest
import structlog
from sqlalchemy import Connection
from tests.engine.house import House, answered
from tests.engine.test_bounds import InFlight
from tests.storage.samples import MINUTE, NOON, OTHER_TEAM_ID, an_id

from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Instant, RetryPolicy
from zerocron.engine import scheduler as scheduler_module
from zerocron.engine.scheduler import DIRECT_SECONDS, FULL_TEAM_SECONDS
from zerocron.engine.starting import StartedBatch, start_batch
from zerocron.storage.timetable.contract import HIDE_MS, Claim, job_member, monitor_member
from zerocron.storage.timetable.memory import MemoryTimetable

URL = "https://example.com/hook"
OTHER = "https://example.com/other"
LATE_MS_MAX = DIRECT_SECONDS * 1_000 + 10


class Shaky(MemoryTimetable):
    """A timetable that a test can take away. It keeps what it had; what is put or dropped meanwhile is not heard."""

    is_away = False

    def _answer(self) -> None:
        if self.is_away:
            raise TimetableAway("The timetable does not answer.")

    async def put(self, due: Mapping[str, Instant]) -> None:
        if not self.is_away:
            await super().put(due)

    async def drop(self, members: Iterable[str]) -> None:
        if not self.is_away:
            await super().drop(members)

    async def restore(self, due: Mapping[str, Instant], *, now: Instant) -> int:
        self._answer()
        return await super().restore(due, now=now)

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        self._answer()
        return await super().claim(now, limit, hide_ms, without=without)

    async def size(self) -> int:
        self._answer()
        return await super().size()

    async def lost(self, now: Instant) -> bool:
        self._answer()
        return await super().lost(now)

    async def on_duty(self, seconds: float) -> bool:
        self._answer()
        return await super().on_duty(seconds)


class ShakyHouse(House):
    def __init__(self, folder: Path, *, capacity: int = 50, team_max: int | None = None) -> None:
        self.shaky = Shaky()
        super().__init__(folder, capacity=capacity, team_max=team_max, timetable=self.shaky)

    def up(self) -> float | None:
        return self.metrics.registry.get_sample_value("zerocron_timetable_up")


class HalfAway(Shaky):
    """One of its shards is away; the other always has something to give."""

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        claim = await super().claim(now, limit, hide_ms, without=without)
        return claim if claim.members else Claim(["j:other:stranger"], None)

    async def size(self) -> int:
        raise TimetableAway("One shard does not answer.")


async def test_members_of_a_shard_that_is_away_do_not_wait_for_a_pause_of_the_others(tmp_path: Path) -> None:
    async with House(tmp_path, timetable=(timetable := HalfAway())) as house:
        job = await house.create("*/2 * * * * *")
        await house.clock.advance(2.5)
        await timetable.drop([job_member(job.team_id, job.id)])
        await house.clock.advance(2.5)
        lateness = [run.started_at - run.scheduled_for for run in await house.runs(job) if run.started_at]
        assert len(lateness) == 2
        assert max(lateness) <= LATE_MS_MAX


class Slow(MemoryTimetable):
    """A place becomes free while it is asked for what other teams have due."""

    free: Callable[[], Awaitable[None]] | None = None

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        if without and self.free and now >= NOON + 2_000:
            await self.free()
        return await super().claim(now, limit, hide_ms, without=without)


async def test_a_place_that_becomes_free_during_a_claim_is_used_at_once(tmp_path: Path) -> None:
    async with House(tmp_path, team_max=1, timetable=(timetable := Slow())) as house:
        go_on = asyncio.Event()

        async def hanging(_request: Request) -> Outcome:
            await go_on.wait()
            return answered()

        async def free() -> None:
            timetable.free = None
            house.engine.executor.freed.clear()
            go_on.set()
            await house.engine.executor.freed.wait()

        house.target.on(URL, hanging)
        await house.create("2027-01-15T12:00:01Z", URL)
        second = await house.create("2027-01-15T12:00:02Z", OTHER)
        timetable.free = free
        await house.clock.advance(2.5)
        [run] = await house.runs(second)
        assert run.started_at is not None
        assert run.started_at - run.scheduled_for < FULL_TEAM_SECONDS * 1_000


async def test_a_monitor_that_cannot_be_judged_now_keeps_no_slot_of_its_claim_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:

        async def busy(_members: object) -> int:
            raise Unavailable("Another transaction holds what this one needs.")

        monkeypatch.setattr(house.engine.heartbeat, "look", busy)
        job = await house.create("*/2 * * * * *")
        for second in (2, 4, 6):
            await house.timetable.put({monitor_member(DEFAULT_TEAM_ID, an_id()): NOON + second * 1_000})
        await house.clock.advance(7)
        lateness = [(run.started_at or 0) - run.scheduled_for for run in await house.runs(job)]
        assert len(lateness) == 3
        assert max(lateness) <= 10


async def test_every_slot_is_started_once_and_a_moment_late(tmp_path: Path) -> None:
    async with ShakyHouse(tmp_path) as house:
        jobs = [await house.create("*/2 * * * * *") for _ in range(5)]
        await house.clock.advance(3)
        house.shaky.is_away = True
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(60)
        assert house.up() == 0
        assert [entry["event"] for entry in logs].count("timetable_away") == 1, "it is said once"
        house.shaky.is_away = False
        await house.clock.advance(20.5)
        assert house.up() == 1
        slots = [NOON + second * 1_000 for second in range(2, 84, 2)]
        for job in jobs:
            runs = await house.runs(job)
            assert [run.scheduled_for for run in runs] == slots
            assert {(run.status, run.attempt) for run in runs} == {("succeeded", 1)}
            assert max((run.started_at or 0) - run.scheduled_for for run in runs) <= LATE_MS_MAX
        assert len(house.target.requests) == len(slots) * len(jobs)


async def test_retries_and_triggers_are_started_too(tmp_path: Path) -> None:
    async with ShakyHouse(tmp_path) as house:
        house.target.on(URL, answered(500), answered())
        retried = await house.create("2027-01-15T12:00:01Z", retry=RetryPolicy(2, "fixed", 5))
        asked_of = await house.create("0 0 1 1 *", OTHER)
        house.shaky.is_away = True
        with structlog.testing.capture_logs():
            await house.clock.advance(3)
            asked, _ = await house.jobs.trigger(DEFAULT_TEAM_ID, asked_of.id, triggered_by="manual")
            await house.clock.advance(DIRECT_SECONDS + 0.01)
            assert house.target.seen(OTHER) == [(asked.id, 1)]
            await house.clock.advance(5)
        [run] = await house.runs(retried)
        assert (run.status, run.attempt) == ("succeeded", 2)
        first, second = await house.executions(run)
        assert 5_000 <= second.started_at - first.finished_at <= 5_000 + LATE_MS_MAX + 20


async def test_a_timetable_that_is_away_at_the_start_is_no_hindrance(tmp_path: Path) -> None:
    async with ShakyHouse(tmp_path) as house:
        job = await house.create("*/10 * * * * *")
        await house.crash()
        house.shaky.is_away = True
        with structlog.testing.capture_logs():
            await house.restart(after=2)
            await house.clock.advance(20)
            assert len(await house.runs(job)) == 2
            house.shaky.is_away = False
            await house.clock.advance(20.1)
        assert [run.scheduled_for for run in await house.runs(job)] == [NOON + n * 10_000 for n in range(1, 5)]
        assert len(house.target.requests) == 4


async def test_no_more_is_started_than_there_is_room_for(tmp_path: Path) -> None:
    async with ShakyHouse(tmp_path, capacity=10, team_max=6) as house:
        ours, theirs = InFlight(), InFlight()
        house.target.on(URL, ours)
        house.target.on(OTHER, theirs)
        house.shaky.is_away = True
        for _ in range(20):
            await house.create("2027-01-15T12:00:01Z")
            await house.create("2027-01-15T12:00:01Z", OTHER, team_id=OTHER_TEAM_ID)
        with structlog.testing.capture_logs():
            await house.clock.advance(5)
            assert ours.waiting + theirs.waiting == 10
            assert max(ours.most, theirs.most) <= 6
            ours.gate.set()
            await house.clock.advance(30)
            assert theirs.most <= 6
            theirs.gate.set()
            await house.clock.advance(10)
        assert await house.sql("SELECT status, count(*), max(attempt) FROM runs GROUP BY 1") == [("succeeded", 40, 1)]


async def test_a_full_team_leaves_the_places_of_others(tmp_path: Path) -> None:
    async with ShakyHouse(tmp_path, capacity=10, team_max=6) as house:
        house.target.on(URL, InFlight())
        for _ in range(20):
            await house.create("2027-01-15T12:00:01Z")
        other = await house.create("*/2 * * * * *", OTHER, team_id=OTHER_TEAM_ID)
        house.shaky.is_away = True
        with structlog.testing.capture_logs():
            await house.clock.advance(11)
        runs = await house.runs(other)
        assert [run.scheduled_for for run in runs] == [NOON + second * 1_000 for second in range(2, 11, 2)]
        assert max((run.started_at or 0) - run.scheduled_for for run in runs) <= 2 * LATE_MS_MAX


async def test_a_poisoned_member_is_set_aside_there_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ShakyHouse(tmp_path) as house:
        poison, good = await house.create("*/5 * * * * *"), await house.create("*/5 * * * * *", OTHER)
        house.shaky.is_away = True
        tries = 0

        def poisoned(connection: Connection, members: list[str], **given: object) -> StartedBatch:
            nonlocal tries
            if job_member(poison.team_id, poison.id) in members:
                tries += len(members) == 1
                raise LookupError("a row that cannot be read")
            return start_batch(connection, members, **given)  # type: ignore[arg-type]

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", poisoned)
        with structlog.testing.capture_logs():
            await house.clock.advance(60.5)
        assert len(await house.runs(good)) == 12
        assert await house.runs(poison) == []
        assert tries <= 12, "not four times a second"


# bug: a member that cannot be started for a moment was hidden for so long that its slot counted as missed


async def test_one_failure_makes_no_slot_of_a_short_period_a_missed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:
        jobs = [await house.create("*/2 * * * * *") for _ in range(3)]
        faults = 4

        def faulty(*args: object, **given: object) -> StartedBatch:
            nonlocal faults
            if faults and house.clock.now() >= NOON + 4_000:
                faults -= 1
                raise LookupError("for a moment")
            return start_batch(*args, **given)  # type: ignore[arg-type]

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", faulty)
        with structlog.testing.capture_logs():
            await house.clock.advance(20.5)
        assert faults == 0
        for job in jobs:
            runs = await house.runs(job)
            assert [(run.scheduled_for, run.status) for run in runs] == [
                (NOON + second * 1_000, "succeeded") for second in range(2, 21, 2)
            ]


async def test_a_ledger_that_goes_away_among_members_tried_one_by_one_makes_no_slot_a_missed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:
        jobs = [await house.create("*/2 * * * * *") for _ in range(5)]
        faults: list[Exception] = [LookupError("the batch"), Unavailable("The database cannot be used now.")]

        def faulty(*args: object, **given: object) -> StartedBatch:
            if faults and house.clock.now() >= NOON + 4_000:
                raise faults.pop(0)
            return start_batch(*args, **given)  # type: ignore[arg-type]

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", faulty)
        with structlog.testing.capture_logs():
            await house.clock.advance(20.5)
        for job in jobs:
            assert [(run.scheduled_for, run.status) for run in await house.runs(job)] == [
                (NOON + second * 1_000, "succeeded") for second in range(2, 21, 2)
            ]


async def test_members_that_are_poisoned_for_ever_take_no_more_and_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "SET_ASIDE_MAX", 3)
    async with House(tmp_path) as house:
        good = await house.create("* * * * *", OTHER)
        for _ in range(6):
            await house.create("* * * * *")

        def poisoned(connection: Connection, members: list[str], **given: object) -> StartedBatch:
            if set(members) - {job_member(good.team_id, good.id)}:
                raise LookupError("a row that cannot be read")
            return start_batch(connection, members, **given)  # type: ignore[arg-type]

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", poisoned)
        with structlog.testing.capture_logs():
            await house.clock.advance(15 * 60 + 1)
        aside = house.engine.scheduler._set_aside
        assert len(aside) == 3
        assert max(failures for failures, _ in aside.values()) < 500
        assert len(await house.runs(good)) == 15
        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", start_batch)
        await house.clock.advance(11)
        assert await house.sql(
            "SELECT count(*) FROM runs WHERE status = 'succeeded' AND scheduled_for = :at", at=NOON + 15 * MINUTE
        ) == [(7,)]
        assert aside == {}
