"""Pings: durable ones a second beside a bare ASGI "OK", one hot monitor, and how soon silence is noticed."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import orjson
import uvloop
from sqlalchemy import Connection, select

from bench.harness import SiteOf, alone, cluster, in_ledger, percentiles, report, server
from zerocron.storage.ledger.monitor_tables import flips

MONITORS = 1_000
CONNECTIONS = 50
SECONDS = 5.0


def pings(site_of: SiteOf = alone) -> None:
    """1,000 monitors and then one, over 50 connections, each beside the bare server in the same run."""
    with site_of() as site:
        bare = _bare()
        with server(site, pings_per_second=1_000_000) as running:
            running.wait_ready()
            address, key = _where(running.data_dir)
            tokens = _make(address, key, MONITORS, "every hour", 300)
            for name, used in (("pings", tokens), ("pings-one-monitor", tokens[:1])):
                before = running.cpu_seconds()
                rate, milliseconds, refused = _load(address, [f"/v1/ping/{token}" for token in used])
                cpu = running.cpu_seconds() - before
                report(
                    bench=name if site_of is alone else f"cluster-{name}",
                    monitors=len(used),
                    connections=CONNECTIONS,
                    pings_per_second=round(rate),
                    milliseconds=milliseconds,
                    refused=refused,
                    bare_per_second=round(bare),
                    share_of_bare=round(rate / bare, 2),
                    cpu_us_per_ping=round(cpu / (rate * SECONDS) * 1e6),
                )


def silence(site_of: SiteOf = alone) -> None:
    """1,000 monitors fall silent at the same instant: from their deadline to the recorded flip."""
    with site_of() as site:
        with server(site, pings_per_second=1_000_000) as running:
            running.wait_ready()
            address, key = _where(running.data_dir)
            tokens = _make(address, key, MONITORS, "every 4 seconds", 2)
            _load(address, [f"/v1/ping/{token}" for token in tokens], seconds=1.0, at_least_once=True)
            time.sleep(8)
        late = in_ledger(site, _delays)
        report(
            bench="silence" if site_of is alone else "cluster-silence",
            monitors=MONITORS,
            flips=len(late),
            delay_ms=percentiles(late),
        )


def cluster_pings() -> None:
    """The same over PostgreSQL."""
    pings(cluster)


def cluster_silence() -> None:
    """The same over PostgreSQL and Redis."""
    silence(cluster)


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


def _bare() -> float:
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
        rate, _, _ = _load(("127.0.0.1", port), ["/v1/ping/" + "0" * 64])
        return rate
    finally:
        process.terminate()
        process.wait()


async def bare_application(scope: Any, _receive: Any, send: Any) -> None:
    """What uvicorn can do at most."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"OK\n"})


def _load(
    address: tuple[str, int], paths: Sequence[str], *, seconds: float = SECONDS, at_least_once: bool = False
) -> tuple[float, dict[str, float], int]:
    """(answers a second, milliseconds each took, how many were not 200), one request at a time on each connection."""
    requests = [f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode() for path in paths]
    taken: list[float] = []
    refused = 0

    async def one(number: int, until: float) -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection(*address)
        place, done = number, 0
        while time.monotonic() < until or (at_least_once and done * CONNECTIONS < len(requests)):
            begun = time.monotonic()
            writer.write(requests[place % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            lower = head.lower()
            begin = lower.index(b"content-length: ") + 16
            await reader.readexactly(int(lower[begin : lower.index(b"\r\n", begin)]))
            taken.append((time.monotonic() - begun) * 1000)
            refused += not head.startswith(b"HTTP/1.1 200")
            place += CONNECTIONS
            done += 1
        writer.close()

    async def work() -> float:
        begun = time.monotonic()
        await asyncio.gather(*(one(number, begun + seconds) for number in range(CONNECTIONS)))
        return time.monotonic() - begun

    elapsed = uvloop.run(work())
    return len(taken) / elapsed, percentiles(taken), refused
