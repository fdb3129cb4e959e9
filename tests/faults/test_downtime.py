"""Downtime, stops and pauses of the real process, and a clock that jumps (PROMISES C 7 to 11, 43, 48, 52).

Ten minutes of downtime take no time: the first node runs with a clock ten minutes slow and is killed, the second with
the right one. Everything between is downtime to the ledger, and the logs are kept in the ledger's time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.faults.world import World, hold, moment, node_environment, until, wall_ms

from zerocron.actions.jobs import JobSpec
from zerocron.app import Node, run_node
from zerocron.clock import SystemClock
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import load

pytestmark = pytest.mark.timeout(300)

TEN_MINUTES_MS = 600_000


async def _after_ten_minutes(world: World, jobs: list[str]) -> int:
    """Let the jobs run once, be gone for ten minutes, and start again; when the node was gone."""
    await until(lambda: all(world.succeeded(job_id) for job_id in jobs), "a run of each job")
    await world.kill()
    gone_at = world.now_ms()
    world.shift_ms = 0
    await world.start()
    return gone_at


async def test_ten_minutes_down(world: World) -> None:
    """Each policy to the letter: what ran, what is left out, and how many slots each record stands for."""
    world.shift_ms = -TEN_MINUTES_MS
    await world.start()
    latest = await world.job("latest", catchup="latest")
    every = await world.job("all", catchup="all")
    none = await world.job("none", catchup="none")
    interval = await world.job("interval", schedule="every 1 second", catchup="latest")
    narrow = await world.job("narrow", catchup="all", catchup_window=20)
    seldom = await world.job("seldom", schedule="*/5 * * * *", catchup="none")
    gone_at = await _after_ten_minutes(world, [latest, every, none, interval, narrow])
    back_at = world.now_ms()
    await until(lambda: not world.behind(), "the end of the backlog", 60)
    await world.assert_clean()

    for job_id, most in ((latest, 1), (none, 1), (interval, 1), (every, 100), (narrow, 20)):
        runs = [run for run in world.runs(job_id) if gone_at < run["scheduled_for"] <= back_at]
        missed = world.missed(job_id, gone_at)
        late = [run for run in runs if run["status"] != "skipped" and run["created_at"] - run["scheduled_for"] > 5_000]
        assert missed >= 595 - most
        assert len(late) <= most
        # The newest missed slot may be one that came due between the start and its first look at the ledger.
        assert any(run["status"] == "succeeded" and run["scheduled_for"] > gone_at for run in world.runs(job_id))
    slot = world.runs(seldom)[0]
    assert slot["status"] == "skipped" or slot["created_at"] - slot["scheduled_for"] <= 60_000


async def test_killed_while_catching_up(world: World) -> None:
    """Death in the middle of a hundred missed slots: each is run once, and only the one under way twice."""
    world.shift_ms = -TEN_MINUTES_MS
    await world.start()
    job_id = await world.job("all", catchup="all")
    gone_at = await _after_ten_minutes(world, [job_id])
    back_at = world.now_ms()
    await until(lambda: world.succeeded(job_id) > 25, "a part of the backlog")
    await world.kill()
    await world.start()
    await until(lambda: not world.behind(), "the end of the backlog", 60)
    await world.assert_clean()

    runs = [run for run in world.runs(job_id) if gone_at < run["scheduled_for"] <= back_at - 1_500]
    assert sum(run["status"] == "succeeded" for run in runs) >= 90
    assert sum(len(world.executions(run["id"])) > 1 for run in runs) <= 1


async def test_a_backlog_is_accounted_for_when_the_job_is_stopped(world: World) -> None:
    """Slots that were due before the call are in the history, as run or as skipped, whatever the call does."""
    world.shift_ms = -TEN_MINUTES_MS
    await world.start()
    verbs = ("pause", "edit", "delete")
    jobs = [await world.job(verb, lambda call: call.later(0.2, call.answer), catchup="all") for verb in verbs]
    await _after_ten_minutes(world, jobs)
    await until(lambda: all(world.succeeded(job_id) > 5 for job_id in jobs), "a part of the backlog")
    for verb, job_id in zip(verbs, jobs, strict=True):
        await world.operate(verb, job_id, {"schedule": "0 0 1 1 *"} if verb == "edit" else None)
    after = world.now_ms()
    await until(lambda: world.now_ms() > after + 1_200, "the checker's cut-off")
    await world.assert_clean()


async def test_rolling_restarts_under_load(world: World) -> None:
    """SIGTERM with requests in flight: they are finished and recorded, nothing is lost, nothing is sent twice."""
    await world.start()
    slow = [await world.job(f"slow-{n}", lambda call: call.later(0.3, call.answer)) for n in range(10)]
    fast = [await world.job(f"fast-{n}", schedule="every 1 second") for n in range(10)]
    for _ in range(2):
        before = {job_id: world.succeeded(job_id) for job_id in slow + fast}
        seen = len(world.calls)
        await until(lambda: all(world.succeeded(job_id) > before[job_id] for job_id in before), "a run of each")  # noqa: B023
        await until(lambda: len(world.calls) > seen + 10, "requests in flight")  # noqa: B023
        assert await world.stop() == 0
        assert world.one("SELECT count(*) FROM runs WHERE finished_at IS NULL") == 0
        await world.start()
    await world.assert_clean()
    assert world.one("SELECT count(*) FROM executions WHERE error_kind = 'node_lost'") == 0
    assert world.one("SELECT count(*) FROM runs WHERE status = 'failed'") == 0


async def test_a_target_that_hangs_longer_than_the_drain(world: World) -> None:
    """The forced stop leaves the run to be redelivered, or lost; the next node goes on from there."""
    await world.start(drain=0.5)
    rerun = await world.job("rerun", hold, schedule="every 1 hour", timeout=60)
    give_up = await world.job("give-up", hold, schedule="every 1 second", timeout=60, on_lost="give_up")
    run_id = (await world.operate("trigger", rerun))["id"]
    await until(lambda: world.calls_of("/rerun") and world.calls_of("/give-up"), "both requests")
    assert await world.stop(kind="forced_stop") == 0
    assert world.one("SELECT status FROM runs WHERE id = ?", run_id) == "retrying"
    assert world.runs(give_up)[0]["status"] == "lost"
    world.route("/rerun")
    world.route("/give-up")
    await world.start()
    await until(lambda: world.succeeded(rerun) == 1 and world.succeeded(give_up) > 1, "going on")
    await world.assert_clean()
    assert [row["cause"] for row in world.executions(run_id)] == ["first", "node_lost"]
    assert len(world.calls_of("/give-up")) == len({call.run_id for call in world.calls_of("/give-up")})


async def test_a_redelivery_is_not_superseded(world: World) -> None:
    """A run whose attempt was aborted is sent again, also when its job's next slot came due while nobody was there."""
    await world.start(drain=0.5)
    job_id = await world.job("job", hold, schedule="every 1 second", timeout=60)
    await until(lambda: world.calls, "the request")
    assert await world.stop(kind="forced_stop") == 0
    run = world.runs(job_id)[0]
    world.route("/job")
    await until(lambda: world.now_ms() > run["finished_at" if run["finished_at"] else "retry_at"] + 1_100, "a slot")
    await world.start()
    await until(lambda: world.succeeded(job_id) > 1, "going on")
    await world.assert_clean()
    assert [row["cause"] for row in world.executions(run["id"])] == ["first", "node_lost"]


async def test_stopped_for_two_seconds_while_sending(world: World) -> None:
    """SIGSTOP shorter than a session: nothing is lost and nothing is sent twice; the slots of the pause are late."""
    await world.start()
    job_id = await world.job("job", lambda call: call.later(0.1, call.answer))
    others = [await world.job(f"other-{n}", schedule="every 1 second") for n in range(5)]
    await until(lambda: world.succeeded(job_id) and len(world.calls_of("/job")) > world.succeeded(job_id), "a request")
    go_on = world.freeze()
    frozen_at = wall_ms()
    await until(lambda: wall_ms() > frozen_at + 2_000, "two seconds")
    go_on()
    before = world.succeeded(job_id)
    await until(lambda: world.succeeded(job_id) > before + 2, "going on")
    await world.assert_clean()
    assert world.one("SELECT count(*) FROM executions WHERE attempt > 1 OR error_kind IS NOT NULL") == 0
    assert all(world.succeeded(other) >= 3 for other in others)


async def test_verbs_race_the_due_instant(world: World) -> None:
    """Calls that arrive within milliseconds of the second at which their jobs are due (I17 to I19)."""
    await world.start()
    pick = random.Random("race")
    jobs: list[tuple[str, str]] = []

    async def make(verb: str, number: str) -> None:
        overlap = pick.choice(("skip", "queue", "allow"))
        jobs.append((verb, await world.job(f"{verb}-{number}", overlap=overlap)))

    for verb in ("edit", "pause", "delete", "trigger"):
        for number in range(5):
            await make(verb, str(number))
    for schedule in ("every 1 second", "*/2 * * * * *", "* * * * * *", "every 2 seconds"):
        second = (wall_ms() // 1_000 + 1) * 1_000
        races = [_race(world, verb, job_id, schedule, second, pick.randint(-15, 25)) for verb, job_id in jobs]
        await asyncio.gather(*races)
        jobs = [(verb, job_id) for verb, job_id in jobs if verb != "delete"]
        for number in range(5):
            await make("delete", f"{second}-{number}")
    after = world.now_ms()
    await until(lambda: world.now_ms() > after + 1_200, "the checker's cut-off")
    await world.assert_clean()


async def _race(world: World, verb: str, job_id: str, schedule: str, second: int, offset_ms: int) -> None:
    await moment(max(0, second + offset_ms - wall_ms()) / 1000)
    await world.operate(verb, job_id, {"schedule": schedule} if verb == "edit" else None)
    if verb == "pause":
        await world.operate("resume", job_id)


async def test_a_second_process_refuses(world: World) -> None:
    """It says who has the data and ends; the first one does not notice."""
    await world.start()
    job_id = await world.job("job")
    process = world.process
    assert process is not None
    second = await asyncio.to_thread(
        subprocess.run,
        world.command(),
        env=node_environment(world.data_dir),
        cwd=world.root,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert second.returncode != 0
    assert f"Another 0cron (process {process.pid}) already uses {world.data_dir}" in second.stderr.decode()
    await until(lambda: world.succeeded(job_id) > 1, "going on")
    await world.assert_clean()


async def test_killed_under_write_load(world: World) -> None:
    """kill -9 while jobs are made and triggered: what was acknowledged is there, and the file is whole."""
    await world.start()
    first = await world.job("first", schedule="every 1 hour", overlap="allow")
    made = 0

    async def load_it(worker: int) -> None:
        nonlocal made
        for number in range(200):
            key = f"key-{worker}-{number}"
            body = {
                "name": f"job-{worker}-{number}",
                "schedule": "0 0 1 1 *",
                "url": world.target.url + f"/made-{worker}",
            }
            if await world.operate("create", body=body, key=key) is None:
                return
            if await world.operate("trigger", first, key=f"trigger-{key}") is None:
                return
            made += 1

    workers = [asyncio.create_task(load_it(worker)) for worker in range(4)]
    await until(lambda: made > 30, "some load")
    await world.kill()
    await asyncio.gather(*workers)
    await world.start()
    await until(lambda: not world.one("SELECT count(*) FROM runs WHERE finished_at IS NULL"), "the end of the runs")
    await world.assert_clean()


class JumpingClock(SystemClock):
    """The machine's clock, set forward and back while it is used."""

    def __init__(self) -> None:
        self.offset_ms = 0

    def now(self) -> int:
        return super().now() + self.offset_ms

    def jump(self, world: World, ms: int) -> None:
        """Set the clock of the ledger; time that never was is logged as downtime."""
        now = world.now_ms()
        self.offset_ms += ms
        world.shift_ms += ms
        if ms > 0:
            world.fault_log.write(kind="clock", **{"from": now, "to": now + ms})


@asynccontextmanager
async def _node(world: World, clock: JumpingClock) -> AsyncIterator[Node]:
    settings = load({"data_dir": world.data_dir, "outbound_allow": "127.0.0.0/8"}, {})
    async with run_node(settings, clock=clock) as node:
        yield node


def _between_slots(world: World, job_id: str) -> bool:
    idle = world.one("SELECT count(*) FROM runs WHERE finished_at IS NULL") == 0
    return bool(idle and world.succeeded(job_id) and 200 < world.now_ms() % 1_000 < 600)


async def test_the_clock_goes_forward(world: World) -> None:
    """Ten minutes that never were: one late run by the policy, no burst, and the schedule goes on."""
    clock = JumpingClock()
    async with _node(world, clock) as node:
        job, _ = await node.jobs.create(DEFAULT_TEAM_ID, JobSpec("job", "* * * * * *", world.route("/job")))
        await until(lambda: _between_slots(world, job.id), "a moment between two slots")
        before = len(world.calls)
        clock.jump(world, TEN_MINUTES_MS)
        await until(lambda: world.succeeded(job.id) >= before + 3, "going on")
        assert len(world.calls) <= before + 4
    await _assert_in_process_clean(world)


async def test_the_clock_goes_back(world: World) -> None:
    """Two seconds happen again: no slot is run twice, and the cursor waits."""
    clock = JumpingClock()
    async with _node(world, clock) as node:
        job, _ = await node.jobs.create(DEFAULT_TEAM_ID, JobSpec("job", "* * * * * *", world.route("/job")))
        await until(lambda: world.succeeded(job.id) > 3 and _between_slots(world, job.id), "some runs")
        before = world.succeeded(job.id)
        clock.jump(world, -2_000)
        await until(lambda: world.succeeded(job.id) > before + 2, "going on", 8)
    assert len({call.run_id for call in world.calls}) == len(world.calls)
    await _assert_in_process_clean(world)


async def test_the_clock_goes_back_and_a_job_is_changed(world: World) -> None:
    """Neither a new schedule nor a resume brings slots back that have run."""
    clock = JumpingClock()
    async with _node(world, clock) as node:
        spec = JobSpec("edit", "* * * * * *", world.route("/edit"))
        edited, _ = await node.jobs.create(DEFAULT_TEAM_ID, spec)
        spec = JobSpec("resume", "* * * * * *", world.route("/resume"))
        resumed, _ = await node.jobs.create(DEFAULT_TEAM_ID, spec)
        await until(lambda: world.succeeded(edited.id) > 3 and _between_slots(world, resumed.id), "some runs")
        before = {job_id: world.succeeded(job_id) for job_id in (edited.id, resumed.id)}
        clock.jump(world, -2_000)
        await node.jobs.pause(DEFAULT_TEAM_ID, resumed.id)
        await node.jobs.resume(DEFAULT_TEAM_ID, resumed.id)
        await node.jobs.edit(DEFAULT_TEAM_ID, edited.id, _every_second_by_other_words)
        await until(lambda: all(world.succeeded(job_id) > before[job_id] + 2 for job_id in before), "going on", 8)
    assert len({call.run_id for call in world.calls}) == len(world.calls)


def _every_second_by_other_words(spec: JobSpec) -> JobSpec:
    return dataclasses.replace(spec, schedule="*/1 * * * * *")


async def _assert_in_process_clean(world: World) -> None:
    world.fault_log.write(kind="stop", **{"from": world.now_ms(), "to": None})
    await world.assert_clean()
