"""Once a job is paused or deleted nothing of it begins any more (promise 8), also when a node is late to begin it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.house import House
from tests.support.channels import FakeKind

from zerocron.actions.channels import Channels, ChannelSpec
from zerocron.actions.secrets import Secrets
from zerocron.channels.contract import Ways
from zerocron.channels.sending import Outlets
from zerocron.core.alerting import JOB_EVENTS, Notify
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.sealing import new_master_key, read_master_keys
from zerocron.engine.attempt import Started
from zerocron.engine.executor import LATE_LOOK_MS


def standing_still(house: House, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Started], Callable[[Started], object]]:
    """The node stands still behind its commits: what it would have launched, and how it goes on with one of them."""
    held: list[Started] = []
    launch = house.engine.executor.launch
    monkeypatch.setattr(house.engine.executor, "launch", held.append)
    return held, launch


@pytest.mark.parametrize("verb", ["pause", "delete"])
async def test_what_was_committed_before_a_stop_and_begins_long_after_it_is_called_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    async with House(tmp_path) as house:
        held, launch = standing_still(house, monkeypatch)
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
    async with House(tmp_path) as house:
        held, launch = standing_still(house, monkeypatch)
        job = await house.create("0 * * * * *")
        await house.clock.advance(60.5)
        launch(held[0])
        await house.clock.advance(1)
        assert [run.status for run in await house.runs(job)] == ["succeeded"]


@pytest.mark.parametrize(("away_seconds", "sent"), [(7, 1), (60, 2)])
async def test_a_stop_that_was_answered_before_the_ledger_went_away_is_seen_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away_seconds: int, sent: int
) -> None:
    """Away for longer than a look is tried for; and for longer than the session is valid, and until the next slot."""
    async with House(tmp_path) as house:
        held, launch = standing_still(house, monkeypatch)
        stopped, goes_on = [await house.create("0 * * * * *", f"https://example.com/{name}") for name in "ab"]
        await house.clock.advance(60.5)
        await house.jobs.pause(stopped.team_id, stopped.id)
        house.ledger.is_away = True
        for late in held:
            launch(late)
        monkeypatch.undo()
        await house.clock.advance(away_seconds)
        assert house.target.requests == []
        house.ledger.heal()
        await house.clock.advance(20)
        assert [request.url for request in house.target.requests] == ["https://example.com/b"] * sent
        assert [run.status for run in await house.runs(stopped)] == ["cancelled"]
        assert (await house.runs(goes_on))[0].status == "succeeded"


async def test_a_run_that_was_called_off_is_told_to_nobody_and_counts_as_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, keyring = FakeKind(), read_master_keys(new_master_key(), source="test")
    async with House(tmp_path, kinds={"fake": kind}, keyring=keyring) as house:
        channels = Channels(
            ledger=house.ledger,
            clock=house.clock,
            secrets=Secrets(ledger=house.ledger, clock=house.clock, keyring=keyring),
            outlets=Outlets({"fake": kind}, Ways(house.target.send, house.clock.now)),
        )
        await channels.create(DEFAULT_TEAM_ID, ChannelSpec("drawer", "fake", {"place": "drawer"}))
        held, launch = standing_still(house, monkeypatch)
        job = await house.create("0 * * * * *", disable_after=1, notify=Notify(JOB_EVENTS, late_after=1))
        await house.clock.advance(60.5)
        await house.jobs.pause(job.team_id, job.id)
        await house.clock.advance(20)
        launch(held[0])
        await house.clock.advance(5)
        assert [run.status for run in await house.runs(job)] == ["cancelled"]
        assert (kind.sent, await house.sql("SELECT count(*) FROM alerts")) == ([], [(0,)])
        state = (await house.job(job)).state
        assert (state.failed, state.succeeded, state.consecutive_failures) == (0, 0, 0)
        assert (await house.job(job)).status == "paused", "and not disabled"
