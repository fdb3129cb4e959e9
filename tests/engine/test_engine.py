"""The engine as a whole: what it must survive, with time moved by hand."""

from __future__ import annotations

from pathlib import Path

from tests.engine.house import House
from tests.storage.samples import MINUTE, NOON


async def test_a_slot_is_sent_at_its_second_and_recorded(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(59.9)
        assert house.target.requests == []
        await house.clock.until(lambda: house.target.requests, "the request", within=0.2)
        await house.clock.advance(0.1)
        [run] = await house.runs(job)
        assert (run.status, run.scheduled_for, run.started_at) == ("succeeded", NOON + MINUTE, NOON + MINUTE)
        [execution] = await house.executions(run)
        assert execution.response_body == "ok"


async def test_a_node_whose_session_is_not_valid_starts_nothing_and_does_not_spin(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.create("*/10 * * * * *")
        house.engine.session._renewed_at = None
        house.timetable.earlier.set()
        await house.clock.advance(30)
        assert house.target.requests == []
