"""Minutes on end: whether the history keeps up, or something grows."""

from __future__ import annotations

import re
import statistics
import time
import urllib.request
from collections.abc import Sequence

from bench.harness import (
    Seed,
    Server,
    arrivals,
    cluster,
    now_ms,
    percentiles,
    recorded,
    report,
    seed,
    server,
    target,
    wait_until,
)

SAMPLE_SECONDS = 1.0


def sustained(per_second: int = 1_000, seconds: int = 300) -> None:
    """The same jobs every second. What is under way or waits to be recorded must not become more with time."""
    with target() as port, cluster() as site:
        begin = now_ms() + 10_000
        seed(site, port, [Seed(begin + n * 1000 // per_second, 1_000) for n in range(per_second)])
        samples: list[float] = []
        with server(site) as running:
            running.wait_ready()
            wait_until(begin)
            memory_at_first = running.memory_mb()
            while now_ms() < begin + seconds * 1000:
                time.sleep(SAMPLE_SECONDS)
                samples.append(_in_flight(running))
            memory_at_last = running.memory_mb()
            end = now_ms()
        late = [(slot, arrived - slot) for arrived, slot in arrivals(port) if slot is not None]
        minutes = [
            percentiles([ms for slot, ms in late if begin + since <= slot < begin + since + 60_000])
            for since in range(0, seconds * 1000, 60_000)
        ]
        kept = recorded(site)
        report(
            bench="cluster-sustained",
            per_second=per_second,
            seconds=seconds,
            requests=len(late),
            recorded=kept["runs"],
            executions=kept["executions"],
            last_recorded_after_ms=kept["last_finished_at"] - end,
            lateness_ms_by_minute=minutes,
            in_flight_first_minute=_mean(samples[:60]),
            in_flight_last_minute=_mean(samples[-60:]),
            memory_mb=[round(memory_at_first, 1), round(memory_at_last, 1)],
        )


def _in_flight(running: Server) -> float:
    """Requests under way and results that wait to be recorded: a place is free when its result is."""
    url = (running.data_dir / "local-url").read_text().strip() + "/metrics"
    with urllib.request.urlopen(url) as answer:
        found = re.search(r"^zerocron_requests_in_flight (\S+)$", answer.read().decode(), re.MULTILINE)
    if found is None:
        raise LookupError("the server does not say how many requests are in flight")
    return float(found.group(1))


def _mean(samples: Sequence[float]) -> float:
    return round(statistics.fmean(samples), 1)
