"""Pings: durable ones a second beside a bare ASGI "OK", one hot monitor, and how soon silence is noticed."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import uvloop
from sqlalchemy import Connection, func, select

from bench.harness import Site, SiteOf, alone, cluster, in_ledger, now_ms, percentiles, report, server, wait_until
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.storage.ledger.monitor_tables import flips, monitors

MONITORS = 1_000
CONNECTIONS = 50
SECONDS = 5.0
DAY_MS, HOUR_MS, GRACE_MS = 86_400_000, 3_600_000, 60_000


def pings(site_of: SiteOf = alone) -> None:
    """1,000 monitors and then one, over 50 connections, each beside the bare server in the same run."""
    acknowledged = 0
    with site_of() as site:
        bare = _bare()
        with server(site, pings_per_second=1_000_000) as running:
            running.wait_ready()
            address, key = _where(running.data_dir)
            tokens = _make(address, key, MONITORS, "every hour", 300)
            for name, used in (("pings", tokens), ("pings-one-monitor", tokens[:1])):
                before = running.cpu_seconds()
                load = _load(address, [f"/v1/ping/{token}" for token in used])
                acknowledged += load.answers - load.refused
                report(
                    bench=_called(name, site_of),
                    monitors=len(used),
                    connections=CONNECTIONS,
                    pings_per_second=round(load.per_second),
                    milliseconds=load.milliseconds,
                    refused=load.refused,
                    bare_per_second=round(bare.per_second),
                    bare_milliseconds=bare.milliseconds,
                    share_of_bare=round(load.per_second / bare.per_second, 2),
                    cpu_us_per_ping=round((running.cpu_seconds() - before) / load.answers * 1e6),
                )
        # Each commit counts its pings in their monitors' rows; the rows of pings are soon shortened.
        kept = in_ledger(site, lambda connection: connection.scalar(select(func.sum(monitors.c.pings)))) or 0
        report(bench=_called("pings-lost", site_of), acknowledged=acknowledged, lost=acknowledged - int(kept))


def silence(site_of: SiteOf = alone, count: int = 10_000) -> None:
    """So many monitors fall silent at the same instant: from their deadline to the recorded flip."""
    with site_of() as site:
        deadline = now_ms() + 30_000
        _seed(site, count, lambda _number: deadline)
        with server(site) as running:
            running.wait_ready()
            wait_until(deadline)
            time.sleep(15)
        late = in_ledger(site, _delays)
        report(bench=_called("silence", site_of), monitors=count, flips=len(late), delay_ms=percentiles(late))


def idle_monitors(site_of: SiteOf = alone, count: int = 100_000, seconds: int = 20) -> None:
    """Monitors whose next pings are due within a day: share of a core, and memory."""
    with site_of() as site:
        far = now_ms() + DAY_MS
        _seed(site, count, lambda number: far + number)
        with server(site) as running:
            running.wait_ready()
            cost = running.at_rest(settle=3, seconds=seconds)
            report(bench=_called("idle-monitors", site_of), monitors=count, **cost)


def _called(name: str, site_of: SiteOf) -> str:
    return name if site_of is alone else f"cluster-{name}"


def cluster_pings() -> None:
    """The same over PostgreSQL."""
    pings(cluster)


def cluster_silence() -> None:
    """The same over PostgreSQL and Redis."""
    silence(cluster)


def cluster_idle_monitors() -> None:
    """The same over PostgreSQL and Redis."""
    idle_monitors(cluster)


def _delays(connection: Connection) -> list[int]:
    rows = connection.execute(select(flips.c.noticed_at - flips.c.at).where(flips.c.after == "down"))
    return [int(row[0]) for row in rows]


def _where(data_dir: Any) -> tuple[tuple[str, int], str]:
    url = (data_dir / "local-url").read_text().strip()
    host, _, port = url.removeprefix("http://").rpartition(":")
    return (host, int(port)), (data_dir / "local-key").read_text().strip()


def _make(address: tuple[str, int], key: str, count: int, schedule: str, grace: int) -> list[str]:
    tokens = []
    for number in range(count):
        request = urllib.request.Request(
            f"http://{address[0]}:{address[1]}/v1/monitors",
            data=orjson.dumps({"name": f"bench {number}", "schedule": schedule, "grace_period_seconds": grace}),
            headers={"Authorization": f"Bearer {key}"},
        )
        with urllib.request.urlopen(request) as answer:
            tokens.append(orjson.loads(answer.read())["ping_token"])
    return tokens


def _seed(site: Site, count: int, deadline_of: Callable[[int], int]) -> None:
    """Monitors that are up, by periods that count from their last ping, into a new ledger."""

    def transaction(connection: Connection) -> None:
        for begin in range(0, count, 1_000):
            rows = [_row(number, deadline_of(number)) for number in range(begin, min(begin + 1_000, count))]
            connection.execute(monitors.insert(), rows)

    in_ledger(site, transaction)


def _row(number: int, deadline: int) -> dict[str, Any]:
    pinged_at = deadline - DAY_MS - GRACE_MS
    return {
        "id": f"00000000-0000-7000-8000-{number:012d}",
        "team_id": DEFAULT_TEAM_ID,
        "version": 1,
        "status": "active",
        "name": f"bench {number}",
        "schedule": "every day",
        "schedule_kind": "interval",
        "schedule_every_ms": DAY_MS,
        "schedule_at": pinged_at,
        "timezone": "UTC",
        "schedule_dst": "run_once",
        "schedule_day_match": "either",
        "language": "en",
        "grace_ms": GRACE_MS,
        "post_only": 0,
        "resume_on_ping": 1,
        "notify": "{}",
        "tags": "[]",
        "warnings": "[]",
        "token_hash": f"{number:064x}",
        "token_sealed": "",
        "token_changed_at": pinged_at - HOUR_MS,
        "health": "up",
        "since": pinged_at,
        "reason": "ping",
        "anchor": pinged_at,
        "result_at": pinged_at,
        "last_ping_at": pinged_at,
        "last_ping_kind": "success",
        "deadline_at": deadline,
        "pings": 1,
        "flips": 0,
        "created_at": pinged_at - HOUR_MS,
        "updated_at": pinged_at,
    }


def _bare() -> Load:
    """The same load on uvicorn with an application that says OK."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "bench.pings:bare_application", "--port", str(port), "--log-level", "error"]
    )
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        return _load(("127.0.0.1", port), ["/v1/ping/" + "0" * 64])
    finally:
        process.terminate()
        process.wait()


async def bare_application(scope: Any, _receive: Any, send: Any) -> None:
    """What uvicorn can do at most."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"OK\n"})


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a load: `refused` answers were not 200."""

    answers: int
    per_second: float
    milliseconds: dict[str, float]
    refused: int


def _load(address: tuple[str, int], paths: Sequence[str], *, seconds: float = SECONDS) -> Load:
    """One request at a time on each connection."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode() for path in paths]
    taken: list[float] = []
    refused = 0

    async def one(number: int, until: float) -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection(*address)
        place = number
        while time.monotonic() < until:
            begun = time.monotonic()
            writer.write(requests[place % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            lower = head.lower()
            begin = lower.index(b"content-length: ") + 16
            await reader.readexactly(int(lower[begin : lower.index(b"\r\n", begin)]))
            taken.append((time.monotonic() - begun) * 1000)
            refused += not head.startswith(b"HTTP/1.1 200")
            place += CONNECTIONS
        writer.close()

    async def work() -> float:
        begun = time.monotonic()
        await asyncio.gather(*(one(number, begun + seconds) for number in range(CONNECTIONS)))
        return time.monotonic() - begun

    elapsed = uvloop.run(work())
    return Load(len(taken), len(taken) / elapsed, percentiles(taken), refused)
