"""After a claim that took as much as there was room for, the next ones do not wait for what the last has left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import structlog
from sqlalchemy import text
from tests.engine.house import House
from tests.storage.samples import NOON, an_id

from zerocron.core.errors import TimetableAway
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.engine import run as run_module
from zerocron.engine.scheduler import BEHIND_MAX
from zerocron.storage.timetable.contract import HIDE_MS, monitor_member
from zerocron.storage.timetable.memory import MemoryTimetable

URL = "https://example.com/hook"
OTHER = "https://example.com/other"


class Deaf(MemoryTimetable):
    """Answers claims, and takes in nothing that it is told until `hears` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.hears = asyncio.Event()
        self.hears.set()
        self.fault: Exception | None = None

    async def drop(self, members: Iterable[str]) -> None:
        await self.hears.wait()
        if self.fault is not None:
            raise self.fault
        await super().drop(members)


async def test_the_next_claim_does_not_wait_until_the_timetable_knows_of_the_last(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=1, timetable=(timetable := Deaf())) as house:
        await house.create("2027-01-15T12:00:01Z", URL)
        await house.create("2027-01-15T12:00:01Z", OTHER)
        timetable.hears.clear()
        await house.clock.advance(1.5)
        assert {request.url for request in house.target.requests} == {URL, OTHER}
        assert await timetable.size() == 2
        timetable.hears.set()
        await house.clock.advance(0.5)
        assert await timetable.size() == 0


async def test_a_stop_waits_until_the_timetable_knows_what_was_started(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=1, timetable=(timetable := Deaf())) as house:
        await house.create("2027-01-15T12:00:01Z", URL)
        timetable.hears.clear()
        await house.clock.advance(1.5)
        assert len(house.target.requests) == 1
        drain = house.engine.executor.drain
        known: list[int] = []

        async def drained(seconds: float) -> bool:
            known.append(await timetable.size())
            return await drain(seconds)

        house.engine.executor.drain = drained  # type: ignore[method-assign]
        asyncio.get_running_loop().call_later(0.05, timetable.hears.set)
        await house.engine.stop(1)
        assert known == [0]


async def test_what_the_timetable_does_not_take_in_keeps_nobody(tmp_path: Path) -> None:
    """The member comes back when its hiding ends, and is dropped then."""
    async with House(tmp_path, timetable=(timetable := Deaf())) as house:
        first = await house.create("2027-01-15T12:00:01Z", URL)
        second = await house.create("2027-01-15T12:00:02Z", OTHER)
        timetable.fault = RuntimeError("a fault of ours")
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(2.5)
        assert {request.url for request in house.target.requests} == {URL, OTHER}
        assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["claim_not_settled"] * 2
        assert house.engine.executor.free == 50
        timetable.fault = None
        await house.clock.advance(HIDE_MS / 1000 + 1)
        assert await timetable.size() == 0
        assert [len(await house.runs(job)) for job in (first, second)] == [1, 1]


async def test_the_next_claims_do_not_wait_until_monitors_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But only so many: a ledger that judges slowly is not given ever more to do."""
    async with House(tmp_path, capacity=1) as house:
        go_on = asyncio.Event()
        looked: list[str] = []

        async def look(members: Sequence[str]) -> int:
            looked.extend(members)
            await go_on.wait()
            await house.timetable.drop(members)
            return 0

        monkeypatch.setattr(house.engine.heartbeat, "look", look)
        due = {monitor_member(DEFAULT_TEAM_ID, an_id()): NOON + 1_000 for _ in range(BEHIND_MAX + 3)}
        await house.timetable.put(due)
        await house.clock.advance(2)
        assert len(looked) == BEHIND_MAX + 1
        go_on.set()
        await house.clock.advance(1)
        assert sorted(looked) == sorted(due)
        await house.engine.stop(1)
        assert await house.timetable.size() == 0


@pytest.mark.parametrize("error", [TimetableAway("It does not answer."), RuntimeError("a fault of ours")])
async def test_a_look_that_fails_behind_a_claim_ends_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The monitors cannot even be set aside; the runs that come due after it begin in time, and no tick fails."""
    async with House(tmp_path, capacity=1) as house:

        async def fails(_members: object) -> int:
            raise RuntimeError("It cannot be judged.")

        async def unheard(_member: str) -> None:
            raise error

        monkeypatch.setattr(house.engine.heartbeat, "look", fails)
        monkeypatch.setattr(house.engine.scheduler, "_put_aside", unheard)
        await house.timetable.put(
            {monitor_member(DEFAULT_TEAM_ID, an_id()): NOON + 1_000 for _ in range(BEHIND_MAX + 1)}
        )
        job = await house.create("*/2 * * * * *")
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(5)
        late_ms = [(run.started_at or 0) - run.scheduled_for for run in await house.runs(job)]
        assert len(late_ms) == 2
        assert max(map(abs, late_ms)) <= 20
        assert "tick_failed" not in [entry["event"] for entry in logs]
        assert ("claim_not_settled" in [entry["event"] for entry in logs]) == isinstance(error, RuntimeError)


async def test_a_stop_gives_up_what_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "TICK_SECONDS_MAX", 0.05)
    async with House(tmp_path, capacity=1, timetable=(timetable := Deaf())) as house:
        await house.create("2027-01-15T12:00:01Z", URL)
        timetable.hears.clear()
        await house.clock.advance(1.5)
        await house.engine.stop(1)
        timetable.hears.set()
        assert await timetable.size() == 1


async def test_a_stop_ends_also_when_its_tick_waits_for_what_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick is cancelled; the drain and all that follows are not."""
    monkeypatch.setattr(run_module, "TICK_SECONDS_MAX", 0.05)
    async with House(tmp_path, capacity=1) as house:

        async def look(_members: object) -> int:
            await asyncio.Event().wait()
            return 0

        monkeypatch.setattr(house.engine.heartbeat, "look", look)
        monitors = [monitor_member(DEFAULT_TEAM_ID, an_id()) for _ in range(BEHIND_MAX + 1)]
        await house.timetable.put(dict.fromkeys(monitors, NOON + 1_000))
        await house.clock.advance(2)
        await house.engine.stop(1)
        ended = "SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL"
        assert await house.ledger.inner.read(lambda connection: connection.scalar(text(ended))) == 1
