"""Makes ledgers full of jobs, starts real servers over them, and reads what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from zerocron.core.instants import from_rfc3339
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.tables import executions, job_versions, jobs, runs
from zerocron.storage.migrations import upgrade


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def target() -> Iterator[int]:
    """The port of a running target."""
    process = subprocess.Popen([sys.executable, "-m", "bench.target"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def arrivals(port: int) -> list[tuple[float, int | None]]:
    """(arrived, scheduled for) of each request since the last call, in milliseconds."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/arrivals") as answer:
        notes = orjson.loads(answer.read())
    return [(arrived, from_rfc3339(slot) if slot else None) for arrived, slot in notes]


@dataclass(frozen=True, slots=True)
class Seed:
    """A job to put into a ledger: an interval, so that its slots need not fall on whole seconds."""

    first_at: int
    every_ms: int


def seed(data_dir: Path, port: int, seeds: Sequence[Seed]) -> None:
    """Fill a new ledger."""
    asyncio.run(_seed(data_dir, port, seeds))


async def _seed(data_dir: Path, port: int, seeds: Sequence[Seed]) -> None:
    ledger = await SqliteLedger.open(data_dir / "zerocron.db", upgrade)

    def transaction(connection: Connection) -> None:
        for begin in range(0, len(seeds), 5_000):
            rows = [_row(begin + n, item, port) for n, item in enumerate(seeds[begin : begin + 5_000])]
            connection.execute(jobs.insert(), rows)
            connection.execute(job_versions.insert(), [_version(row) for row in rows])

    await ledger.write(transaction)
    await ledger.close()


def _row(number: int, item: Seed, port: int) -> dict[str, Any]:
    return {
        "id": f"00000000-0000-7000-8000-{number:012d}",
        "team_id": DEFAULT_TEAM_ID,
        "version": 1,
        "status": "active",
        "name": f"bench {number}",
        "schedule": f"every {item.every_ms // 1000} seconds",
        "schedule_kind": "interval",
        "schedule_cron": None,
        "schedule_every_ms": item.every_ms,
        "schedule_at": item.first_at - item.every_ms,
        "timezone": "UTC",
        "method": "GET",
        "url": f"http://127.0.0.1:{port}/ok",
        "headers": "[]",
        "body": None,
        "timeout_seconds": 30,
        "retry_attempts": 1,
        "retry_backoff": "exponential",
        "retry_delay_seconds": 5,
        "success": '[["2xx"],null,null]',
        "overlap": "skip",
        "catchup": "latest",
        "catchup_window_seconds": 86_400,
        "on_lost": "rerun",
        "notify": "{}",
        "tags": "[]",
        "warnings": "[]",
        "next_run_at": item.first_at,
        "created_at": item.first_at - item.every_ms,
        "updated_at": item.first_at - item.every_ms,
    }


def _version(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "job_id": row["id"],
        "version": 1,
        "team_id": row["team_id"],
        "status": "active",
        "schedule": "{}",
        "definition": "{}",
        "created_at": row["created_at"],
    }


@dataclass(slots=True)
class Server:
    """A real server process."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    started_at: float

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1_000_000

    def wait_ready(self, seconds: float = 60) -> None:
        url_file = self.data_dir / "local-url"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(_ready_url(url_file)) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.02)
        raise TimeoutError("the server did not become ready")


def _ready_url(url_file: Path) -> str:
    return url_file.read_text().strip() + "/readyz"


@contextlib.contextmanager
def server(data_dir: Path, **settings: object) -> Iterator[Server]:
    """A server over the data, stopped with SIGTERM."""
    environment = os.environ | {
        "ZEROCRON_DATA_DIR": str(data_dir),
        "ZEROCRON_PORT": "0",
        "ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8",
        "ZEROCRON_LOG_LEVEL": "warning",
    }
    environment |= {f"ZEROCRON_{name.upper()}": str(value) for name, value in settings.items()}
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "zerocron", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Server(process, data_dir, begun)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextlib.contextmanager
def data_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="zerocron-bench-") as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def reader(folder: Path) -> AsyncIterator[SqliteLedger]:
    """The ledger of a server that has stopped."""
    ledger = await SqliteLedger.open(folder / "zerocron.db", upgrade)
    try:
        yield ledger
    finally:
        await ledger.close()


def recorded(folder: Path) -> dict[str, Any]:
    """What a stopped server left: counts of runs by status, executions, and when the last one was recorded."""

    async def read() -> dict[str, Any]:
        async with reader(folder) as ledger:
            return await ledger.read(_recorded)

    return asyncio.run(read())


def _recorded(connection: Connection) -> dict[str, Any]:
    statuses = connection.execute(select(runs.c.status, func.count()).group_by(runs.c.status)).all()
    return {
        "runs": {status: count for status, count in statuses},  # noqa: C416 - rows are no pairs for the type checker
        "executions": connection.scalar(select(func.count()).select_from(executions)),
        "last_finished_at": connection.scalar(select(func.max(runs.c.finished_at))),
    }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and the maximum, rounded to a hundredth."""
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 2),
        "p99": round(ordered[max(0, int(len(ordered) * 0.99) - 1)], 2),
        "max": round(ordered[-1], 2),
    }


def report(**line: object) -> None:
    print(orjson.dumps(line).decode(), flush=True)
