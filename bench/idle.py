"""What a server costs that has much to remember and nothing to do, and how soon it is ready."""

from __future__ import annotations

import time

from bench.harness import Seed, alone, arrivals, now_ms, report, seed, server, target, wait_until

DAY_MS = 86_400_000


def idle(jobs: int = 100_000, seconds: int = 20) -> None:
    """Jobs due within days, none now: share of a core, and memory."""
    with target() as port, alone() as site:
        far = now_ms() + DAY_MS
        seed(site, port, [Seed(far + n, DAY_MS) for n in range(jobs)])
        with server(site) as running:
            running.wait_ready()
            cost = running.at_rest(settle=3, seconds=seconds)
            report(bench="idle", jobs=jobs, **cost)


def startup(jobs: int = 100_000) -> None:
    """From the start of the process to the first request, when one of the jobs is overdue by a second."""
    with target() as port, alone() as site:
        far = now_ms() + DAY_MS
        overdue = now_ms() + 1_000
        seed(site, port, [Seed(overdue, DAY_MS), *(Seed(far + n, DAY_MS) for n in range(jobs - 1))])
        wait_until(overdue)
        begun = now_ms()
        with server(site) as running:
            found: list[tuple[float, int | None]] = []
            while not found:
                time.sleep(0.01)
                found = arrivals(port)
            del running
        report(bench="startup", jobs=jobs, first_request_after_ms=round(found[0][0] - begun))
