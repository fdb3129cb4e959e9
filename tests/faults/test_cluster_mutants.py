"""The checker's teeth for a cluster: what makes it safe is taken out of real nodes, and every time the checker says so.

Each mutant is shown by the smallest fault that needs what it lacks; the same journeys without a mutant are clean.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.cluster import PREFIX, Cluster, cluster
from tests.faults.cluster_faults import HOURLY, going_on, many, pass_time, wait
from tests.faults.mutants import CLUSTER_MUTANTS
from tests.faults.world import hold, moment
from tests.support.proxy import RequestVerdict

pytestmark = pytest.mark.timeout(300)

Mutants = tuple[str, ...]
Journey = Callable[[Cluster, Mutants], Awaitable[None]]
AT_ONCE = 3


async def both_see_the_same(cluster: Cluster, mutants: Mutants) -> None:
    """No Redis: both nodes take what is due from PostgreSQL, and each statement takes a while."""
    await cluster.start("n1", "n2", mutants=mutants)
    with cluster.fault("redis"), cluster.fault("pg_slow"):
        cluster.redis.kill()
        for node in cluster.nodes.values():
            node.pg.delay_seconds = 0.03
        await many(cluster, "job", 8, overlap="allow")
        await pass_time(7)
        for node in cluster.nodes.values():
            node.pg.delay_seconds = 0
        await asyncio.to_thread(cluster.redis.start)
        await pass_time(2)


async def killed_inside_start(cluster: Cluster, mutants: Mutants) -> None:
    await asyncio.gather(
        cluster.start("n1", mutants=mutants, stop_at="inside-start:2"), cluster.start("n2", mutants=mutants)
    )
    jobs = await many(cluster, "job", 6, overlap="allow")
    await cluster["n1"].died()
    await going_on(cluster, jobs, 1)
    await pass_time(2)


async def flushed(cluster: Cluster, mutants: Mutants) -> None:
    await cluster.start("n1", "n2", mutants=mutants)
    jobs = await many(cluster, "job", 4)
    await going_on(cluster, jobs, 1)
    with cluster.fault("redis"):
        cluster.redis.command("FLUSHALL")
    await pass_time(4)


async def scores_too_early(cluster: Cluster, mutants: Mutants) -> None:
    """Every member is due at once, as the timetable has it; a while ago it was."""
    await cluster.start("n1", "n2", mutants=mutants)
    jobs = await many(cluster, "job", 4)
    await going_on(cluster, jobs, 1)
    with cluster.fault("redis"):
        for _ in range(20):
            for key in cluster.redis.command("KEYS", f"{PREFIX}:{{*}}:lane*"):
                for member in cluster.redis.command("ZRANGE", key, 0, -1):
                    cluster.redis.command("ZADD", key, "XX", 1, member)
            await pass_time(0.1)
    await going_on(cluster, jobs, 1)


async def answers_to_commits_lost(cluster: Cluster, mutants: Mutants) -> None:
    await cluster.start("n1", mutants=mutants)
    jobs = await many(cluster, "job", 4)
    await going_on(cluster, jobs, 1)
    starts, holds_new_runs = 0, False
    with cluster.fault("pg_slow"):

        def every_other_start(chunk: bytes) -> RequestVerdict:
            nonlocal starts, holds_new_runs
            holds_new_runs |= b'"running"' in chunk
            if b"COMMIT" not in chunk or not holds_new_runs:
                return "pass"
            starts, holds_new_runs = starts + 1, False
            return "cut_after" if starts % 2 else "pass"

        cluster["n1"].pg.on_request = every_other_start
        await pass_time(6)
        assert starts
        cluster["n1"].pg.on_request = lambda _chunk: "pass"
        await pass_time(12)  # until runs that nobody executes are given up


async def paused_after_sending(cluster: Cluster, mutants: Mutants) -> None:
    await cluster.start("n1", mutants=mutants)
    job_id = await cluster.job("job", hold, schedule=HOURLY, timeout=120)
    run_id = (await cluster.operate("trigger", job_id))["id"]
    await wait(lambda: cluster.calls, "the request")
    await cluster.start("n2", mutants=mutants)
    go_on = cluster["n1"].freeze()
    cluster.calls[0].answer(200, b"late")
    cluster.route("/job")
    await pass_time(40 * cluster.scale)
    await wait(lambda: cluster.one("SELECT status FROM runs WHERE id = ?", run_id) == "succeeded", "the redelivery")
    go_on()
    await pass_time(2)


async def one_comes_back_before_the_other(cluster: Cluster, mutants: Mutants) -> None:
    """PostgreSQL is away from both for longer than a session, and then n2 finds it a moment later than n1."""
    await cluster.start("n1", "n2", mutants=mutants)
    held = await many(cluster, "held", 12, hold, schedule=HOURLY, timeout=120)
    for job_id in held:
        await cluster.operate("trigger", job_id)
    await wait(lambda: len(cluster.calls) == 12, "the requests")
    links = [cluster[name].pg for name in ("n1", "n2")]
    since = cluster.now_ms()
    for link in links:
        link.refuse = True
        await link.cut()
    await pass_time(45 * cluster.scale)
    renewals = "SELECT count(*) FROM sessions WHERE node = 'n1' AND renewed_at > ?"
    links[0].refuse, healed_at = False, cluster.now_ms()
    await wait(lambda: cluster.one(renewals, healed_at), "n1's return", 15)
    back_at = cluster.now_ms()
    cluster.fault_log.write(kind="pg", **{"from": since, "to": back_at})
    await pass_time(5 * cluster.scale)
    links[1].refuse = False
    cluster["n2"].note("cut_pg", back_at, cluster.now_ms())
    for call in cluster.calls:
        call.answer()
    await wait(lambda: not cluster.one("SELECT count(*) FROM runs WHERE status = 'running'"), "the records")


async def woken_after_a_claim(cluster: Cluster, mutants: Mutants) -> None:
    """n1 halts between claim and start until it is given up; when it goes on, nobody is quicker than it."""
    await cluster.start("n1", mutants=mutants, stop_at="claimed:1:pause")
    # They are due at the next whole second, and n1, which makes them, answers no more from then on.
    await moment((1_000 - cluster.now_ms() % 1_000 + 50) / 1000)
    jobs = await many(cluster, "job", 4, catchup="all", overlap="allow")
    go_on = await cluster["n1"].frozen()
    await cluster.start("n2", mutants=mutants)
    await wait(lambda: cluster.one("SELECT count(*) FROM sessions WHERE end_reason = 'fenced'"), "the fencing", 60)
    await moment((1_000 - cluster.now_ms() % 1_000 + 600) / 1000)
    wake = cluster["n2"].freeze()
    await moment((1_000 - cluster.now_ms() % 1_000 + 50) / 1000)
    go_on()
    await pass_time(1)
    wake()
    await going_on(cluster, jobs, 2)


@dataclass(frozen=True, slots=True)
class Case:
    mutant: str
    journey: Journey
    caught_by: str


CASES = [
    Case("no_compare_and_set", both_see_the_same, "I8"),
    Case("cursor_committed_first", killed_inside_start, "I1"),
    Case("redis_is_the_truth", flushed, "I1"),
    Case("claims_are_believed", scores_too_early, "I5"),
    Case("unclear_commits_repeated", answers_to_commits_lost, "I11"),
    Case("send_before_commit", killed_inside_start, "I8"),
    Case("late_results_count", paused_after_sending, "I14"),
    Case("take_over_at_once", one_comes_back_before_the_other, "I11"),
    Case("sessions_not_held", woken_after_a_claim, "I12"),
]


async def _found(folder: Path, journey: Journey, mutants: Mutants) -> dict[str, list[str]]:
    async with cluster(folder) as it:
        found: dict[str, list[str]] = {}
        try:
            await journey(it, mutants)
        except AssertionError:  # what is waited for may never come from a mutant; what it did is judged all the same
            if not mutants:
                raise
            found["journey"] = [traceback.format_exc(limit=-4)]
        # A mutant may never settle: it is not waited for as long as the engine is.
        for violation in await it.verdict(patience=5 if mutants else 30):
            found.setdefault(violation.invariant, []).append(violation.text)
        return found


async def _play(folder: Path, runs: Iterable[tuple[str, Journey, Mutants]]) -> dict[str, dict[str, list[str]]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, journey: Journey, mutants: Mutants) -> tuple[str, dict[str, list[str]]]:
        async with places:
            try:
                return name, await _found(folder / name, journey, mutants)
            except Exception:
                return name, {"journey": [traceback.format_exc(limit=-4)]}

    return dict(await asyncio.gather(*(one(*run) for run in runs)))


async def test_every_mutant_is_rejected(tmp_path: Path) -> None:
    """By the invariant that says what is wrong with it."""
    found = await _play(tmp_path, [(case.mutant, case.journey, (case.mutant,)) for case in CASES])
    missed = {case.mutant: found[case.mutant] for case in CASES if case.caught_by not in found[case.mutant]}
    assert not missed, missed


async def test_the_same_journeys_are_clean_without_mutants(tmp_path: Path) -> None:
    journeys = {case.journey.__name__: case.journey for case in CASES}
    found = await _play(tmp_path, [(name, journey, ()) for name, journey in journeys.items()])
    assert not any(found.values()), found


def test_every_mutant_has_a_case() -> None:
    assert {case.mutant for case in CASES} == set(CLUSTER_MUTANTS)
