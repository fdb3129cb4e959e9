"""Server mode: PostgreSQL, Redis and nodes on the same cores, beside the same bare loop."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from tests.support.redis import RedisServer

from bench import lateness
from bench.harness import (
    Seed,
    all_arrivals,
    cluster,
    multiply,
    now_ms,
    percentiles,
    recorded,
    report,
    seed,
    server,
    target,
    wait_until,
)
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.storage.timetable.contract import CLAIM_LIMIT_MAX, job_member
from zerocron.storage.timetable.redis import RedisTimetable

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
burst = partial(lateness.burst, site_of=cluster)
steady = partial(lateness.steady, seconds=30, site_of=cluster)


def two_nodes(jobs: int = 10_000) -> None:
    """The burst again, shared by two nodes."""
    with target() as port, cluster() as site:
        due = (now_ms() + 14_000) // 1000 * 1000
        seed(site, port, [Seed(due, HOUR_MS)] * jobs)
        with server(site, "one") as one, server(site, "two") as two:
            one.wait_ready()
            two.wait_ready()
            wait_until(due + 8_000)
        late = [arrived - slot for arrived, slot in all_arrivals(port, jobs)]
        kept = recorded(site)
        report(
            bench="cluster-two-nodes",
            jobs=jobs,
            requests=len(late),
            lateness_ms=percentiles(late),
            recorded=kept["runs"],
            all_recorded_after_ms=kept["last_finished_at"] - due,
        )


def fairness(big: int = 49_000, small: int = 1_000, teams: int = 100) -> None:
    """A team with nearly all of the jobs that are due in one second, beside many small ones (PROMISES.md C 49)."""
    with target() as port, cluster() as site:
        due = (now_ms() + 40_000) // 1000 * 1000
        own = [f"00000000-0000-7000-8000-9{n % teams:011d}" for n in range(small)]
        seeds = [Seed(due, HOUR_MS)] * big + [Seed(due + 1, HOUR_MS, team_id) for team_id in own]
        seed(site, port, seeds)
        with server(site) as running:
            running.wait_ready()
            wait_until(due + 30_000)
        found = [(arrived - slot, slot) for arrived, slot in all_arrivals(port, big + small)]
        report(
            bench="cluster-fairness",
            big_team_jobs=big,
            small_teams=teams,
            small_jobs=small,
            small_lateness_ms=percentiles([late for late, slot in found if slot == due + 1]),
            big_lateness_ms=percentiles([late for late, slot in found if slot == due]),
            recorded=recorded(site)["runs"],
        )


def million(jobs: int = 1_000_000, seconds: int = 20) -> None:
    """One node over a million jobs: ready to fire, memory, and the share of a core while nothing is due."""
    with target() as port, cluster() as site:
        seed(site, port, [Seed(now_ms() + 60_000, DAY_MS)])
        multiply(site, jobs, now_ms() + DAY_MS, DAY_MS)
        with server(site) as running:
            running.wait_ready()
            ready_ms = round((time.monotonic() - running.started_at) * 1000)
            cost = running.at_rest(settle=5, seconds=seconds)
            report(bench="cluster-million", jobs=jobs, ready_ms=ready_ms, **cost)


def claim(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000), repeats: int = 50) -> None:
    """What a claim of 200 costs, by how many members there are."""

    async def measure(url: str, size: int) -> float:
        timetable = await RedisTimetable.open(url, prefix=f"bench{size}")
        ids = [f"{n:08x}-0000-7000-8000-000000000000" for n in range(size)]
        for begin in range(0, size, 10_000):
            await timetable.put({job_member(DEFAULT_TEAM_ID, i): n for n, i in enumerate(ids[begin : begin + 10_000])})
        costs = []
        for turn in range(repeats):
            begun = time.perf_counter()
            got = await timetable.claim(DAY_MS, CLAIM_LIMIT_MAX, DAY_MS + turn)
            costs.append((time.perf_counter() - begun) * 1000)
            assert len(got.members) == CLAIM_LIMIT_MAX
        await timetable.close()
        return percentiles(costs)["p50"]

    with RedisServer() as redis:
        costs = {size: asyncio.run(measure(redis.url(), size)) for size in sizes}
        report(
            bench="cluster-claim",
            claim_of_200_ms={str(size): cost for size, cost in costs.items()},
            ratio=round(costs[sizes[-1]] / costs[sizes[0]], 2),
        )
