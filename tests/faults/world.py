"""One fault run: a node process, a target that does as it is told, and the four logs that the checker reads.

`Scene` and `NodeProcess` are what a run with one node on SQLite (`World`) and one with a cluster (`cluster.Cluster`)
have in common. Owns the processes (always reaped), the logs, and waiting: for a condition, up to a deadline. `now_ms`
is the time of the ledger; while `shift_ms` is not 0 it is that of a clock that is wrong by as much, and everything is
logged in it, so that ten minutes of downtime take no time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import signal
import sqlite3
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import create_engine
from tests.faults.checker import Violation, violations
from tests.faults.history import FOREVER, History, load
from tests.faults.zygote import Forked, zygote
from tests.support.target import Exchange, Target

from zerocron.api.problems import AWAY
from zerocron.storage.migrations import upgrade

ROOT = Path(__file__).parents[2]
Behaviour = Callable[["Call"], None]

AUDIT = """
CREATE TABLE audit (seq INTEGER PRIMARY KEY, kind TEXT, id TEXT, before INTEGER, after INTEGER, note TEXT);
CREATE TRIGGER audit_cursor AFTER UPDATE OF next_run_at ON jobs WHEN OLD.next_run_at IS NOT NEW.next_run_at BEGIN
    INSERT INTO audit (kind, id, before, after, note) VALUES ('cursor', NEW.id, OLD.next_run_at, NEW.next_run_at,
        CASE WHEN OLD.version = NEW.version THEN 'same' ELSE 'new version' END);
END;
CREATE TRIGGER audit_end AFTER UPDATE ON runs WHEN OLD.finished_at IS NOT NULL BEGIN
    INSERT INTO audit (kind, id, note) VALUES ('run_after_end', OLD.id, OLD.status || ' to ' || NEW.status);
END;
CREATE TRIGGER audit_delete AFTER DELETE ON runs BEGIN
    INSERT INTO audit (kind, id, note) VALUES ('run_deleted', OLD.id, OLD.status);
END;
"""
"""What the tables cannot tell afterwards. Triggers are part of each transaction, so what is rolled back is not here."""


def wall_ms() -> int:
    """The machine's clock: the tests stand outside of the product, whose door to time is not theirs."""
    return time.time_ns() // 1_000_000  # noqa: TID251


async def moment(seconds: float = 0.01) -> None:
    """A short pause between two looks at a condition."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, future.set_result, None)
    try:
        await future
    finally:
        timer.cancel()


async def until(condition: Callable[[], Any], what: str, seconds: float = 45, *, every: float = 0.01) -> Any:
    """The first true value of the condition. Raises AssertionError, naming what was waited for, after the deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not (value := condition()):
        assert loop.time() < deadline, f"{what} did not come within {seconds} s"
        await moment(every)
    return value


class Log:
    """JSON lines in a file, each written at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **line: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Call:
    """A request at the target that a behaviour is to answer, now or later or never."""

    def __init__(self, world: Scene, exchange: Exchange, number: int) -> None:
        self.world = world
        self.exchange = exchange
        self.number = number
        self.run_id = exchange.request.headers.get("x-0cron-run-id", "")
        self.attempt = int(exchange.request.headers.get("x-0cron-attempt", "0"))

    def answer(self, status: int = 200, body: bytes = b"ok", headers: Mapping[str, str] | None = None) -> None:
        if self.exchange.connection.transport is None:
            return
        self.exchange.answer(status, body, list((headers or {}).items()))
        self.world.target_log.write(
            event="answered", n=self.number, status=status, body_sha256=hashlib.sha256(body).hexdigest()
        )

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self.exchange.later(seconds, action)


def answer_ok(call: Call) -> None:
    call.answer()


def hold(call: Call) -> None:
    """Never answer."""


class NodeProcess:
    """One process of 0cron at a time, with its data directory and its log.

    Its deaths, stops and pauses go into the fault log, under its name; the only node of a world has none.
    """

    def __init__(self, folder: Path, *, now_ms: Callable[[], int], fault_log: Log, name: str = "") -> None:
        self.name = name
        self.data_dir = folder / "data"
        self.death_note = folder / "died-at"
        self.log_path = folder / "node.log"
        self.environment: dict[str, str] = {}
        self.options: list[str] = []
        self.process: Forked | None = None
        self.url = ""
        self.key = ""
        self._now_ms = now_ms
        self._fault_log = fault_log
        self._down: tuple[str, int] | None = None

    async def start(self, *, stop_at: str | None = None, mutants: tuple[str, ...] = (), drain: float = 10) -> None:
        """Start it and wait until it is ready, or has died at its stop point before."""
        assert self.process is None, "it runs"
        self.process = self._spawn(stop_at, mutants, drain)
        await self._ready()

    def _spawn(self, stop_at: str | None, mutants: tuple[str, ...], drain: float) -> Forked:
        (self.data_dir / "local-url").unlink(missing_ok=True)
        self.death_note.unlink(missing_ok=True)
        environment = node_environment(self.data_dir) | self.environment | {"ZEROCRON_DRAIN_SECONDS": str(drain)}
        if stop_at is not None:
            environment["ZEROCRON_STOP_AT"] = stop_at
        return zygote().fork(self._words(mutants), environment, self.log_path)

    def command(self) -> list[str]:
        """What starts such a process without a zygote; in `ROOT`, with `node_environment`."""
        return [sys.executable, "-m", "tests.faults.node", *self._words()]

    def _words(self, mutants: tuple[str, ...] = ()) -> list[str]:
        patches = [argument for name in mutants for argument in ("--mutant", name)]
        return [*patches, "--death-note", str(self.death_note), *self.options]

    async def _ready(self, seconds: float = 90) -> None:
        url_file = self.data_dir / "local-url"
        process = self.process
        assert process is not None
        await until(lambda: url_file.exists() or process.poll() is not None, f"the node {self.name}", seconds)
        assert process.returncode in (None, -signal.SIGKILL), f"it did not start: {self.log()[-2000:]}"
        self.note_up()
        if process.returncode is None:
            self.url = url_file.read_text().strip()
            self.key = (self.data_dir / "local-key").read_text().strip()

    def note_down(self, kind: str, since: int) -> None:
        """From now on it does nothing, until `note_up` or for ever."""
        self._down = (kind, since)

    def note_up(self, at: int | None = None) -> None:
        """Write down when it was away; `at` None: as of now."""
        if self._down is not None:
            kind, since = self._down
            self.note(kind, since, self._now_ms() if at is None else at)
            self._down = None

    def note(self, kind: str, since: int, until: int | None) -> None:
        node = {"node": self.name} if self.name else {}
        self._fault_log.write(kind=kind, **{"from": since, "to": until}, **node)

    def close_log(self) -> None:
        """What it is now, it stays."""
        if self._down is not None:
            kind, since = self._down
            self.note(kind, since, None)
            self._down = None

    async def died(self, seconds: float = 60) -> None:
        """Wait until it has killed itself."""
        process = self.process
        assert process is not None
        await until(lambda: process.poll() is not None, "the node's death", seconds)
        assert process.returncode == -signal.SIGKILL, f"the node ended by itself: {self.log()[-2000:]}"
        self.process = None
        self.note_down("kill", int(self.death_note.read_text()))

    async def kill(self) -> None:
        """SIGKILL from outside, whatever it does at the moment."""
        process = self.process
        assert process is not None
        since = self._now_ms()
        process.kill()
        await until(lambda: process.poll() is not None, "the node's death")
        self.process = None
        self.note_down("kill", since)

    async def stop(self, seconds: float = 60, *, kind: str = "stop") -> int:
        """SIGTERM, and wait for the end."""
        process = self.process
        assert process is not None
        since = self._now_ms()
        process.terminate()
        await until(lambda: process.poll() is not None, "the end of the node", seconds)
        self.process = None
        self.note_down(kind, since)
        assert process.returncode is not None
        return process.returncode

    def died_meanwhile(self) -> None:
        """It died at its stop point while it was being stopped."""
        assert self._down is not None
        self.note_down("kill", min(self._down[1], int(self.death_note.read_text())))

    def freeze(self) -> Callable[[], None]:
        """SIGSTOP; the returned function continues it."""
        process, since = self.process, self._now_ms()
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        return self._go_on(process, since)

    async def frozen(self, seconds: float = 60) -> Callable[[], None]:
        """Wait until it has halted at its stop point; the returned function continues it."""
        process = self.process
        assert process is not None
        await until(lambda: self.death_note.exists() and self.death_note.read_text(), "the halt of the node", seconds)
        return self._go_on(process, int(self.death_note.read_text()))

    def _go_on(self, process: Forked, since: int) -> Callable[[], None]:
        def go_on() -> None:
            process.send_signal(signal.SIGCONT)
            self.note("pause", since, self._now_ms())

        return go_on

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def reap(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Scene(ABC):
    """What every fault run has, whatever its nodes and its ledger are: a target, and the API with a record of calls."""

    root = ROOT

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shift_ms = 0
        self.target = Target()
        self.target_log = Log(folder / "target.jsonl")
        self.fault_log = Log(folder / "faults.jsonl")
        self.op_log = Log(folder / "ops.jsonl")
        self.inbox_log = Log(folder / "inbox.jsonl")
        self.calls: list[Call] = []
        self.session: aiohttp.ClientSession | None = None
        self._paths: set[str] = set()
        self._has_channel = False
        self._ops = itertools.count(1)

    @abstractmethod
    def address(self, node: str | None) -> tuple[str, str]:
        """The URL of a node's API, and a key; None leaves the choice."""

    def one(self, query: str, *values: Any) -> Any:
        """The first value of the first row of a query on the ledger; None when there is none."""
        rows = self.rows(query, *values)
        return next(iter(rows[0].values())) if rows else None

    @abstractmethod
    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of a query on the ledger."""

    @abstractmethod
    def node_log(self) -> str:
        """What the nodes wrote."""

    def now_ms(self) -> int:
        """The ledger's time."""
        return wall_ms() + self.shift_ms

    # --- the target

    def route(self, path: str, behaviour: Behaviour = answer_ok) -> str:
        """The URL of a path whose requests this behaviour answers; routing it again changes the behaviour."""
        self._paths.add(path)

        def receive(exchange: Exchange) -> None:
            number = len(self.calls)
            request = exchange.request
            kept = {name: value for name, value in request.headers.items() if name.startswith("x-0cron-")}
            kept["idempotency-key"] = request.headers.get("idempotency-key", "")
            self.target_log.write(
                n=number, wall_ms=request.wall_ms + self.shift_ms, method=request.method, path=path, headers=kept
            )
            call = Call(self, exchange, number)
            self.calls.append(call)
            behaviour(call)

        self.target.on(path, receive)
        return self.target.url + path

    async def _open_channel(self, node: str | None) -> None:
        """A webhook that is told of every job's failures: alerts have to survive what runs do."""
        if self._has_channel:
            return
        self._has_channel = True

        def receive(exchange: Exchange) -> None:
            alert_id = exchange.request.headers.get("webhook-id", "")
            self.inbox_log.write(alert=alert_id, wall_ms=exchange.request.wall_ms + self.shift_ms)
            exchange.answer(204, b"", [])

        self.target.on("/inbox", receive)
        channel = {"kind": "webhook", "name": "inbox", "config": {"url": f"{self.target.url}/inbox"}}
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            status, told = await self.call("POST", "/v1/channels", channel, node=node)
            assert status in (201, 503), told

    def calls_of(self, path: str) -> list[Call]:
        return [call for call in self.calls if call.exchange.request.path == path]

    # --- the API

    async def call(
        self, method: str, path: str, body: Any = None, key: str | None = None, *, node: str | None = None
    ) -> tuple[int, Any]:
        """One API call. Raises aiohttp.ClientError or TimeoutError when nobody knows what came of it."""
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
        url, api_key = self.address(node)
        headers = {"Authorization": f"Bearer {api_key}", "Connection": "close"}
        if key is not None:
            headers["Idempotency-Key"] = key
        async with self.session.request(method, url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.status != 204 else None

    async def operate(
        self,
        kind: str,
        job_id: str | None = None,
        body: Any = None,
        key: str | None = None,
        *,
        node: str | None = None,
    ) -> Any:
        """A write through the API, on the record. The answer's JSON; None when it failed or nobody knows."""
        number = next(self._ops)
        data: dict[str, Any] = {"job": job_id, "key": key} | ({"name": body["name"]} if kind == "create" else {})
        self.op_log.write(op=number, type="invoke", kind=kind, at=self.now_ms(), data=data)
        plain = {"create": ("POST", ""), "edit": ("PATCH", f"/{job_id}"), "delete": ("DELETE", f"/{job_id}")}
        method, path = plain.get(kind, ("POST", f"/{job_id}/{kind}"))
        try:
            status, answer = await self.call(method, f"/v1/jobs{path}", body, key, node=node)
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.op_log.write(op=number, type="info", kind=kind, at=self.now_ms())
            return None
        at = self.now_ms()
        if status >= 300:
            told = answer.get("detail") if isinstance(answer, dict) else None
            # "May succeed later" says that nothing happened. Of any other answer of this kind nobody knows.
            outcome = "info" if status >= 500 and (status, told) != (503, AWAY) else "failed"
            self.op_log.write(op=number, type=outcome, kind=kind, at=at, data={"status": status, "detail": told})
            return None
        if kind == "trigger":
            made = {"run": answer["id"]}
        elif kind == "delete":
            made = {"version": self.one("SELECT version FROM jobs WHERE id = ?", job_id)}
        else:
            made = {"job": answer["id"], "version": answer["version"]}
        self.op_log.write(op=number, type="ok", kind=kind, at=at, data=made)
        return answer or {}

    async def job(self, name: str, behaviour: Behaviour = answer_ok, *, node: str | None = None, **fields: Any) -> str:
        """Create a job that calls its own path; its id. Every second by cron, unless said otherwise."""
        await self._open_channel(node)
        url = self.route(f"/{name}", behaviour)
        body = {"name": name, "schedule": "* * * * * *", "url": url} | fields
        made = await self.operate("create", body=body, node=node)
        assert made is not None, (
            f"the job {name} was not made: {self.op_log.path.read_text()} {self.node_log()[-2000:]}"
        )
        return str(made["id"])

    # --- the ledger

    def runs(self, job_id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM runs WHERE job_id = ? ORDER BY scheduled_for, trigger_key", job_id)

    def missed(self, job_id: str, after: int) -> int:
        """How many slots of a job of every second are told as missed after an instant. Who was behind when it was
        killed leaves slots from before, and one row tells of all that follow one another."""
        found = 0
        for run in self.runs(job_id):
            if run["reason"] == "missed":
                until = run["scheduled_until"] or run["scheduled_for"]
                before = max(0, (after - run["scheduled_for"]) // 1_000 + 1)
                found += max(0, run["count"] - before) if until > after else 0
        return found

    def executions(self, run_id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM executions WHERE run_id = ? ORDER BY attempt", run_id)

    def succeeded(self, job_id: str) -> int:
        return int(self.one("SELECT count(*) FROM runs WHERE job_id = ? AND status = 'succeeded'", job_id))

    def behind(self) -> int:
        """How many jobs and waiting runs are due and not dealt with."""
        jobs, runs = (
            self.one("SELECT count(*) FROM jobs WHERE next_run_at <= ?", self.now_ms()),
            self.one("SELECT count(*) FROM runs WHERE retry_at <= ?", self.now_ms()),
        )
        return int(jobs + runs)

    @abstractmethod
    async def verdict(self, *, patience: float = 10) -> list[Violation]:
        """End what runs, once it has caught up; then judge."""

    async def assert_clean(self) -> None:
        """The run kept every promise."""
        found = await self.verdict()
        assert not found, "\n".join(map(str, [*found, self.folder]))

    async def leave(self) -> None:
        if self.session is not None:
            await self.session.close()
        await self.target.stop()


class World(Scene):
    """One node over SQLite, made by `world()`; after the run, `verdict()` says what the checker found."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.node = NodeProcess(folder, now_ms=self.now_ms, fault_log=self.fault_log)
        self.data_dir = self.node.data_dir

    # --- the node

    @property
    def process(self) -> Forked | None:
        return self.node.process

    async def start(self, *, stop_at: str | None = None, mutants: tuple[str, ...] = (), drain: float = 10) -> None:
        """Start the node and wait until it is ready, or has died at its stop point before."""
        self.node.options = ["--clock-offset-ms", str(self.shift_ms)]
        await self.node.start(stop_at=stop_at, mutants=mutants, drain=drain)

    def command(self) -> list[str]:
        """What starts a node; in `root`, with `node_environment`."""
        return self.node.command()

    async def died(self, seconds: float = 60) -> None:
        """Wait until the node has killed itself."""
        await self.node.died(seconds)

    async def kill(self) -> None:
        """SIGKILL from outside, whatever it does at the moment."""
        await self.node.kill()

    async def stop(self, seconds: float = 60, *, kind: str = "stop") -> int:
        """SIGTERM, and wait for the end."""
        return await self.node.stop(seconds, kind=kind)

    def died_meanwhile(self) -> None:
        """The node died at its stop point while it was being stopped."""
        self.node.died_meanwhile()

    def freeze(self) -> Callable[[], None]:
        """SIGSTOP; the returned function continues it."""
        return self.node.freeze()

    def node_log(self) -> str:
        return self.node.log()

    def address(self, node: str | None) -> tuple[str, str]:
        return self.node.url, self.node.key

    # --- the ledger

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with self._connected() as connection:
            return [dict(row) for row in connection.execute(query, values)]

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.data_dir / "zerocron.db", timeout=10)
        connection.execute("PRAGMA query_only = ON")
        connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            connection.close()

    # --- the end

    def history(self) -> History:
        """All that is known, the node being stopped."""
        self.node.close_log()
        return load(
            self.data_dir,
            target_log=self.target_log.path,
            fault_log=self.fault_log.path,
            op_log=self.op_log.path,
            inbox_log=self.inbox_log.path,
        )

    async def verdict(self, *, patience: float = 10) -> list[Violation]:
        """Stop the node if it still runs, once it has caught up (it is given some time for that); then judge."""
        if self.process is not None:
            with contextlib.suppress(AssertionError):
                await until(lambda: not self.behind(), "being up to date", patience)
            assert await self.stop() == 0, self.node_log()[-2000:]
        assert self.one("PRAGMA integrity_check") == "ok"
        return violations(self.history())

    async def close(self) -> None:
        self.node.reap()
        await self.leave()


def node_environment(data_dir: Path) -> dict[str, str]:
    """What a node process is told; nothing of ours from outside gets in."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ZEROCRON_")}  # noqa: TID251
    return inherited | {
        "ZEROCRON_DATA_DIR": str(data_dir),
        "ZEROCRON_PORT": "0",
        "ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8",
        "ZEROCRON_LOG_LEVEL": "info",
        "ZEROCRON_LOG_FORMAT": "json",
    }


def prepare(data_dir: Path) -> None:
    """An empty ledger with the audit in it. In one go: Alembic keeps its context in globals, so two at once clash."""
    data_dir.mkdir(parents=True)
    engine = create_engine(f"sqlite:///{data_dir / 'zerocron.db'}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    audited = sqlite3.connect(data_dir / "zerocron.db")
    audited.execute("PRAGMA journal_mode = WAL")
    audited.executescript(AUDIT)
    audited.close()


@contextlib.asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """A prepared ledger and a listening target; no node yet. Whatever happens, nothing is left running."""
    it = World(folder)
    prepare(it.data_dir)
    await it.target.start()
    try:
        yield it
    finally:
        await it.close()


__all__ = [
    "FOREVER",
    "Call",
    "NodeProcess",
    "Scene",
    "World",
    "answer_ok",
    "hold",
    "moment",
    "until",
    "wall_ms",
    "world",
]
