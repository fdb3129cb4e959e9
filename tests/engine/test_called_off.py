"""Once a job is paused or deleted nothing of it begins any more (promise 8), also when a node is late to begin it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.house import House

from zerocron.engine.attempt import Started
from zerocron.engine.executor import LATE_LOOK_MS


@pytest.mark.parametrize("verb", ["pause", "delete"])
async def test_what_was_committed_before_a_stop_and_begins_long_after_it_is_called_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    held: list[Started] = []
    async with House(tmp_path) as house:
        launch = house.engine.executor.launch
        monkeypatch.setattr(house.engine.executor, "launch", held.append)  # the node stands still behind its commit
        job = await house.create("0 * * * * *")
        await house.clock.advance(60.5)
        [late] = held
        await getattr(house.jobs, verb)(job.team_id, job.id)
        await house.clock.advance(LATE_LOOK_MS / 1_000)
        launch(late)
        await house.clock.advance(1)
        [run] = await house.runs(job)
        assert (run.status, run.reason) == ("cancelled", f"job_{verb}d")
        assert house.target.requests == []
        [execution] = await house.executions(run)
        assert (execution.error_kind, execution.started_at) == ("called_off", run.scheduled_for)
        [row] = await house.sql("SELECT active_run_id, failed FROM jobs")
        assert row == (None, 0)


async def test_what_begins_late_on_a_job_that_goes_on_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Started] = []
    async with House(tmp_path) as house:
        launch = house.engine.executor.launch
        monkeypatch.setattr(house.engine.executor, "launch", held.append)
        job = await house.create("0 * * * * *")
        await house.clock.advance(60.5)
        launch(held[0])
        await house.clock.advance(1)
        assert [run.status for run in await house.runs(job)] == ["succeeded"]
