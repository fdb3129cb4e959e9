"""kill -9 of the real process at each step of a run's life (PROMISES C 1 to 6), for both kinds of `on_lost`.

Each journey: a node works, dies at the stop point, is started again, goes on; then what the promise says about the
interrupted run, and the checker over everything. A restart on the same SQLite file fences the dead process at once, so
what it left is redelivered within seconds instead of 45.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults import world as worlds
from tests.faults.world import Call, World, hold, until

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True)
class Step:
    """What is seen after a death there: requests at the target and the execution causes, for rerun and for give_up."""

    stop_at: str
    rerun: tuple[int, list[str]]
    give_up: tuple[int, list[str], str]


STEPS = [
    # Nothing is committed: the slot is simply taken again.
    Step("claimed", (1, ["first"]), (1, ["first"], "succeeded")),
    Step("inside-start", (1, ["first"]), (1, ["first"], "succeeded")),
    # The run is committed and nothing is sent.
    Step("started", (1, ["first", "node_lost"]), (0, ["first"], "lost")),
    # The answer is there and its record is not.
    Step("before-finish", (2, ["first", "node_lost"]), (1, ["first"], "lost")),
    # The record is there: no second request.
    Step("after-finish", (1, ["first"]), (1, ["first"], "succeeded")),
]


@pytest.mark.parametrize("on_lost", ["rerun", "give_up"])
async def test_killed_at_each_step(tmp_path: Path, on_lost: str) -> None:
    """A node of its own for each step, all at once."""
    journeys = (_killed_at(tmp_path / step.stop_at, on_lost, step) for step in STEPS)
    failed = [error for error in await asyncio.gather(*journeys, return_exceptions=True) if error is not None]
    if failed:
        raise failed[0]


async def _killed_at(folder: Path, on_lost: str, step: Step) -> None:
    async with worlds.world(folder) as world:
        await world.start(stop_at=step.stop_at)
        job_id = await world.job("job", on_lost=on_lost, catchup="all")  # on a slow machine a restart takes a while
        await world.died()
        before_commit = step.stop_at in ("claimed", "inside-start")
        slot = world.one("SELECT next_run_at FROM jobs" if before_commit else "SELECT max(scheduled_for) FROM runs")
        await world.start()
        await _goes_on(world, job_id)
        await world.assert_clean()
        run_id = world.one("SELECT id FROM runs WHERE scheduled_for = ?", slot)
        _assert_run(world, run_id, *(step.give_up if on_lost == "give_up" else (*step.rerun, "succeeded")))


async def test_killed_while_the_target_thinks(world: World) -> None:
    """After the request was written and before its answer: two requests with one key, or one and the run is lost."""
    await world.start()
    jobs = [await world.job(on_lost, hold, on_lost=on_lost) for on_lost in ("rerun", "give_up")]
    await until(lambda: world.calls_of("/rerun") and world.calls_of("/give_up"), "the requests")
    await world.kill()
    again, once = world.calls_of("/rerun")[0], world.calls_of("/give_up")[0]
    world.route("/rerun")
    world.route("/give_up")
    await world.start()
    await _goes_on(world, *jobs)
    await world.assert_clean()

    _assert_run(world, once.run_id, 1, ["first"], "lost")
    _assert_run(world, again.run_id, 2, ["first", "node_lost"], "succeeded")
    keys = {call.exchange.request.headers["idempotency-key"] for call in _calls(world, again.run_id)}
    assert keys == {again.run_id}


async def test_killed_again_and_again(world: World) -> None:
    """A request whose node always dies is sent four times and no more (no poison loop)."""
    await world.start()
    job_id = await world.job("poison", hold, schedule="every 1 second", timeout=60)
    for attempt in range(1, 5):
        await until(lambda: world.calls[-1:] and world.calls[-1].attempt == attempt, f"attempt {attempt}")  # noqa: B023
        await world.kill()
        if attempt == 4:
            world.route("/poison")
        await world.start()
    await _goes_on(world, job_id)
    await world.assert_clean()

    run = world.runs(job_id)[0]
    assert (run["status"], run["reason"], run["attempt"]) == ("failed", "redeliveries_exhausted", 4)
    assert len(_calls(world, run["id"])) == 4


async def test_killed_while_a_retry_waits(world: World) -> None:
    """The wait is in the ledger: the retry comes when it is due, once, and not before."""
    await world.start()
    job_id = await world.job(
        "retry",
        lambda call: call.answer(503 if call.attempt == 1 else 200),
        schedule="every 1 hour",
        retry={"attempts": 2, "backoff": "fixed", "delay": 3},
    )
    run_id = (await world.operate("trigger", job_id))["id"]
    await until(lambda: world.one("SELECT status FROM runs WHERE id = ?", run_id) == "retrying", "the failure")
    await world.kill()
    await world.start()
    await until(lambda: world.one("SELECT status FROM runs WHERE id = ?", run_id) == "succeeded", "the retry")
    await world.assert_clean()
    _assert_run(world, run_id, 2, ["first", "retry"], "succeeded")


async def _goes_on(world: World, *jobs: str) -> None:
    """Each job has two more successes, and nothing is open from before the restart."""
    before = {job_id: world.succeeded(job_id) for job_id in jobs}
    restarted = world.now_ms()
    await until(lambda: all(world.succeeded(job_id) >= before[job_id] + 2 for job_id in jobs), "going on")
    query = "SELECT count(*) FROM runs WHERE finished_at IS NULL AND created_at < ?"
    await until(lambda: world.one(query, restarted - 1000) == 0, "the end of what was open")


def _calls(world: World, run_id: str) -> list[Call]:
    return [call for call in world.calls if call.run_id == run_id]


def _assert_run(world: World, run_id: str, requests: int, causes: list[str], status: str) -> None:
    run = world.rows("SELECT * FROM runs WHERE id = ?", run_id)[0]
    seen = (len(_calls(world, run_id)), [row["cause"] for row in world.executions(run_id)], run["status"])
    assert seen == (requests, causes, status)
