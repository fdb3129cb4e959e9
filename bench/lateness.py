"""Lateness: many requests due at once, and a steady stream of them, beside a bare aiohttp loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import aiohttp
import uvloop

from bench.harness import (
    Seed,
    SiteOf,
    all_arrivals,
    alone,
    now_ms,
    percentiles,
    recorded,
    report,
    seed,
    server,
    target,
    wait_until,
)

HOUR_MS = 3_600_000
IN_FLIGHT = 500


def bare(port: int, due: Sequence[int]) -> dict[str, float]:
    """Lateness of a loop that only sends: no ledger, no history, nothing else."""

    async def run() -> None:
        gate = asyncio.Semaphore(IN_FLIGHT)
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(slot: str) -> None:
                async with session.get(
                    f"http://127.0.0.1:{port}/ok", headers={"X-0cron-Scheduled-For": slot}
                ) as answer:
                    await answer.read()
                gate.release()

            tasks = []
            for instant in due:
                wait = (instant - time.time() * 1000) / 1000
                if wait > 0:
                    await asyncio.sleep(wait)
                await gate.acquire()
                tasks.append(asyncio.create_task(one(_text(instant))))
            await asyncio.gather(*tasks)

    uvloop.run(run())
    return lateness(port, len(due))


def _text(instant: int) -> str:
    from zerocron.core.instants import to_rfc3339

    return to_rfc3339(instant)


def lateness(port: int, requests: int) -> dict[str, float]:
    """At the target, of that many requests: a figure over fewer would leave out the worst of them."""
    return percentiles([arrived - slot for arrived, slot in all_arrivals(port, requests)])


def burst(jobs: int = 10_000, site_of: SiteOf = alone) -> None:
    """All due in the same second."""
    with target() as port, site_of() as site:
        at = now_ms() + 2_000
        beside = bare(port, [at] * jobs)
        due = (now_ms() + 12_000) // 1000 * 1000
        seed(site, port, [Seed(due, HOUR_MS)] * jobs)
        with server(site) as running:
            running.wait_ready()
            wait_until(due)
            before = running.cpu_seconds()
            wait_until(due + 8_000)
            cpu = running.cpu_seconds() - before
        ours = lateness(port, jobs)
        kept = recorded(site)
        report(
            bench="burst" if site_of is alone else "cluster-burst",
            jobs=jobs,
            lateness_ms=ours,
            bare_lateness_ms=beside,
            ratio_p99=round(ours["p99"] / beside["p99"], 2),
            recorded=kept["runs"],
            executions=kept["executions"],
            all_recorded_after_ms=kept["last_finished_at"] - due,
            cpu_us_per_run=round(cpu / jobs * 1e6),
        )


def steady(per_second: int = 1_000, seconds: int = 20, site_of: SiteOf = alone) -> None:
    """The same number every second, spread evenly over it."""
    with target() as port, site_of() as site:
        begin = now_ms() + 1_000
        beside = bare(port, [begin + n * 1000 // per_second for n in range(per_second * 5)])
        count = per_second * seconds
        begin = now_ms() + 12_000
        seed(site, port, [Seed(begin + n * 1000 // per_second, HOUR_MS) for n in range(count)])
        with server(site) as running:
            running.wait_ready()
            wait_until(begin)
            before = running.cpu_seconds()
            wait_until(begin + seconds * 1000)
            cpu = running.cpu_seconds() - before
            wait_until(begin + seconds * 1000 + 2_000)
        ours = lateness(port, count)
        kept = recorded(site)
        report(
            bench="steady" if site_of is alone else "cluster-steady",
            per_second=per_second,
            seconds=seconds,
            lateness_ms=ours,
            bare_lateness_ms=beside,
            ratio_p99=round(ours["p99"] / beside["p99"], 2),
            recorded=kept["runs"],
            executions=kept["executions"],
            cpu_us_per_run=round(cpu / count * 1e6),
        )
