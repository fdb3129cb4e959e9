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
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
from sqlalchemy import Connection, func, select
from tests.support.postgres import PostgresServer
from tests.support.redis import RedisServer

from zerocron.core.instants import from_rfc3339
from zerocron.core.model import DEFAULT_TEAM_ID, Definition, RetryPolicy, SuccessRule
from zerocron.storage.ledger.database import Ledger, SqliteLedger
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.tables import executions, job_versions, jobs, runs
from zerocron.storage.migrations import upgrade

T = TypeVar("T")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def wait_until(instant: int) -> None:
    """Until an instant in milliseconds; not at all when it has passed."""
    time.sleep(max(0.0, (instant - now_ms()) / 1000))


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


def all_arrivals(port: int, requests: int) -> list[tuple[float, int]]:
    """(arrived, scheduled for) of each request that was due. Raises when there are more or fewer of them."""
    found = [(arrived, slot) for arrived, slot in arrivals(port) if slot is not None]
    if len(found) != requests:
        raise RuntimeError(f"{len(found)} requests arrived where {requests} were due: this is no measurement.")
    return found


@dataclass(frozen=True, slots=True)
class Seed:
    """A job to put into a ledger: an interval, so that its slots need not fall on whole seconds."""

    first_at: int
    every_ms: int
    team_id: str = DEFAULT_TEAM_ID


@dataclass(frozen=True, slots=True)
class Site:
    """A place for servers: a folder, the settings they need, and the way to their ledger."""

    folder: Path
    settings: dict[str, str]
    open_ledger: Callable[[], Awaitable[Ledger]]


SiteOf = Callable[[], AbstractContextManager[Site]]


@contextlib.contextmanager
def alone() -> Iterator[Site]:
    """One server on SQLite."""
    with tempfile.TemporaryDirectory(prefix="zerocron-bench-") as text:
        folder = Path(text)
        yield Site(folder, {}, lambda: SqliteLedger.open(folder / "zerocron.db", upgrade))


@contextlib.contextmanager
def cluster() -> Iterator[Site]:
    """Servers on a PostgreSQL and a Redis of their own; every commit waits for the disk."""
    with (
        tempfile.TemporaryDirectory(prefix="zerocron-bench-") as folder,
        PostgresServer(fsync=True, settings=POSTGRES_SETTINGS) as postgres,
        RedisServer() as redis,
    ):
        url = postgres.url(postgres.database())
        settings = {"database_url": url, "redis_url": redis.url()}
        yield Site(Path(folder), settings, lambda: PostgresLedger.open(url, upgrade))


POSTGRES_SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min"}
"""What everybody sets who runs PostgreSQL for more than a try."""


def seed(site: Site, port: int, seeds: Sequence[Seed]) -> None:
    """Fill a new ledger."""

    def transaction(connection: Connection) -> None:
        for begin in range(0, len(seeds), 1_000):
            rows = [_row(begin + n, item, port) for n, item in enumerate(seeds[begin : begin + 1_000])]
            connection.execute(jobs.insert(), rows)
            connection.execute(job_versions.insert(), [_version(row) for row in rows])

    in_ledger(site, transaction)


def multiply(site: Site, count: int, first_at: int, spread_ms: int) -> None:
    """Copies of the job that is there, due over a span of time; made in the database (PostgreSQL's generate_series)."""
    own = {
        "id": "'f' || lpad(to_hex(n), 7, '0') || '-0000-7000-8000-000000000000'",
        "next_run_at": f"{first_at} + n::bigint * {spread_ms} / {count}",
    }
    names = [column.name for column in jobs.columns]
    values = ", ".join(own.get(name, f"jobs.{name}") for name in names)

    def copies(begin: int) -> Callable[[Connection], None]:
        until = min(begin + SLICE, count)
        text = (
            f"INSERT INTO jobs ({', '.join(names)}) SELECT {values} "
            f"FROM (SELECT * FROM jobs LIMIT 1) jobs, generate_series({begin + 1}, {until}) n"
        )
        return lambda connection: connection.exec_driver_sql(text).close()

    async def work() -> None:
        ledger = await site.open_ledger()
        for begin in range(0, count, SLICE):
            await ledger.write(copies(begin))
        await ledger.write(lambda connection: connection.exec_driver_sql("ANALYZE jobs").close())
        await ledger.close()

    asyncio.run(work())


SLICE = 50_000


def in_ledger(site: Site, transaction: Callable[[Connection], T]) -> T:
    async def work() -> T:
        ledger = await site.open_ledger()
        try:
            return await ledger.write(transaction)
        finally:
            await ledger.close()

    return asyncio.run(work())


_DELIVERY = orjson.dumps(Definition("GET", "", (), None, 30, RetryPolicy(), SuccessRule()).delivery_json()).decode()


def _row(number: int, item: Seed, port: int) -> dict[str, Any]:
    return {
        "id": f"00000000-0000-7000-8000-{number:012d}",
        "team_id": item.team_id,
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
        "delivery": _DELIVERY,
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

    def at_rest(self, *, settle: float, seconds: float) -> dict[str, float]:
        """What it costs while nothing is due: the share of a core over so many seconds, and memory."""
        time.sleep(settle)
        before = self.cpu_seconds()
        time.sleep(seconds)
        used = self.cpu_seconds() - before
        return {"core_percent": round(100 * used / seconds, 2), "memory_mb": round(self.memory_mb(), 1)}


def _ready_url(url_file: Path) -> str:
    return url_file.read_text().strip() + "/readyz"


@contextlib.contextmanager
def server(site: Site, name: str = "node", **settings: object) -> Iterator[Server]:
    """A server of the site, stopped with SIGTERM."""
    folder = site.folder if not site.settings else site.folder / name
    environment = os.environ | {
        "ZEROCRON_DATA_DIR": str(folder),
        "ZEROCRON_PORT": "0",
        "ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8",
        "ZEROCRON_LOG_LEVEL": "warning",
    }
    environment |= {f"ZEROCRON_{name.upper()}": str(value) for name, value in (site.settings | settings).items()}
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "zerocron", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Server(process, folder, begun)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def recorded(site: Site) -> dict[str, Any]:
    """What stopped servers left: counts of runs by status, executions, and when the last one was recorded."""
    return in_ledger(site, _recorded)


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
