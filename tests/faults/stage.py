"""An engine on a stage: started, stopped and killed in virtual time, over one real ledger and with the checker's logs.

A kill abandons every task where it stands. A transaction that is in its thread at that moment may still commit, as it
may when a process dies. The ledger is emptied for each journey and kept for the next: a new one would compile every
statement again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection
from tests.faults.checker import Violation, violations
from tests.faults.history import History, load
from tests.faults.virtual import Act, AnswerLost, FaultyLedger, VirtualClock, VirtualLoop, VirtualTarget
from tests.faults.world import Log, prepare

from zerocron.actions.jobs import Jobs
from zerocron.app import EARLY_MS
from zerocron.core.errors import Unclear, ZerocronError
from zerocron.core.model import Job, Run
from zerocron.engine.run import Bounds, Engine
from zerocron.engine.sessions import Session
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.memory import MemoryTimetable

_BEHIND = (
    "SELECT (SELECT count(*) FROM jobs WHERE next_run_at <= :now) "
    "+ (SELECT count(*) FROM runs WHERE retry_at <= :now) "
    "+ (SELECT count(*) FROM runs WHERE status = 'running' AND attempt_started_at < :now - 15000)"
)


class Stage:
    """One journey."""

    def __init__(self, inner: SqliteLedger, folder: Path, acts: Mapping[str, Act]) -> None:
        self.clock = VirtualClock()
        self.target_log, self.fault_log, self.op_log = (
            Log(folder / f"{name}.jsonl") for name in ("target", "faults", "ops")
        )
        self.target = VirtualTarget(self.target_log, acts)
        self.inner = inner
        self.ledger = FaultyLedger(inner, None, self.fault_log)
        self.engine: Engine | None = None
        self._timetable = MemoryTimetable()
        self._operations = 0
        self._down: tuple[str, int] | None = None

    def play(self, journey: Callable[[], Awaitable[None]]) -> list[Violation]:
        """Empty the ledger, play, and judge."""

        async def whole() -> None:
            await self.ledger.write(_emptied)
            self.ledger.writes = 0
            await journey()

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(whole())
        return violations(self.history())

    def history(self) -> History:
        if self._down is not None:
            self.fault_log.write(kind=self._down[0], **{"from": self._down[1], "to": None})
            self._down = None
        return load(
            self.inner.path.parent,
            target_log=self.target_log.path,
            fault_log=self.fault_log.path,
            op_log=self.op_log.path,
        )

    @property
    def jobs(self) -> Jobs:
        return Jobs(ledger=self.ledger, timetable=self._timetable, clock=self.clock)

    async def start(self) -> None:
        """A new process: an empty timetable and another session. One that cannot start is started again."""
        while True:
            self._timetable = MemoryTimetable()
            metrics = Metrics()
            session = Session(
                ledger=self.ledger,
                timetable=self._timetable,
                clock=self.clock,
                metrics=metrics,
                node="test",
                version="test",
            )
            engine = Engine(
                ledger=self.ledger,
                timetable=self._timetable,
                clock=self.clock,
                metrics=metrics,
                session=session,
                send=self.target.send,
                bounds=Bounds(in_flight_max=50, history_runs_per_job=1_000, early_ms=EARLY_MS),
            )
            try:
                await engine.start()
            except (ZerocronError, RuntimeError):
                await self.clock.sleep(1)
                continue
            self.engine = engine
            if self._down is not None:
                self.fault_log.write(kind=self._down[0], **{"from": self._down[1], "to": self.clock.now()})
                self._down = None
            return

    async def stop(self, drain: float = 20) -> None:
        engine, self.engine = self.engine, None
        assert engine is not None
        self._down = ("stop", self.clock.now())
        await engine.stop(drain)

    async def kill(self) -> None:
        """Everything stops where it stands."""
        self.engine = None
        self._down = ("kill", self._down[1] if self._down else self.clock.now())  # it may have been stopping already
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.ledger.dead = False

    async def caught_up(self) -> None:
        """Until nothing is due, and nothing runs for longer than a request takes; some minutes at most."""
        for _ in range(500):
            now = self.clock.now()
            behind = await self.ledger.read(
                lambda connection: connection.exec_driver_sql(_BEHIND, {"now": now}).scalar_one()  # noqa: B023
            )
            if not behind:
                return
            await self.clock.sleep(0.5)

    async def calling(self, kind: str, verb: Awaitable[Any], job_id: str) -> None:
        """A verb whose process may die under it: nobody waits for it longer than a second."""
        task = asyncio.ensure_future(self.operate(kind, verb, job_id))
        await asyncio.wait([task], timeout=1)

    async def operate(self, kind: str, verb: Awaitable[Any], job_id: str | None = None) -> Any:
        """A verb, on the record. What it gives; None when it failed or nobody knows."""
        self._operations += 1
        number = self._operations
        data: dict[str, Any] = {"job": job_id, "name": f"op {number}"}
        self.op_log.write(op=number, type="invoke", kind=kind, at=self.clock.now(), data=data)
        try:
            done = await verb
        except (ZerocronError, RuntimeError) as error:
            is_clear = isinstance(error, ZerocronError) and not isinstance(error, (Unclear, AnswerLost))
            self.op_log.write(op=number, type="failed" if is_clear else "info", kind=kind, at=self.clock.now())
            return None
        thing = done[0] if isinstance(done, tuple) else done
        made: dict[str, Any] = {}
        if isinstance(thing, Run):
            made = {"run": thing.id}
        elif isinstance(thing, Job):
            made = {"job": thing.id, "version": thing.version}
        self.op_log.write(op=number, type="ok", kind=kind, at=self.clock.now(), data=made)
        return thing


def _emptied(connection: Connection) -> None:
    for table in ("runs", "executions", "jobs", "job_versions", "sessions", "idempotency_keys"):
        connection.exec_driver_sql(f"DELETE FROM {table}")
    connection.exec_driver_sql("DELETE FROM audit")  # which has the deletions


@contextlib.contextmanager
def open_ledger(folder: Path) -> Iterator[SqliteLedger]:
    """A ledger for many journeys. It does not wait for the disk: no process dies here, and the commits are many."""
    prepare(folder)
    ledger = asyncio.run(SqliteLedger.open(folder / "zerocron.db", lambda _connection: None))
    writer = ledger._write_engine.raw_connection()
    writer.cursor().execute("PRAGMA synchronous = OFF")
    writer.close()
    try:
        yield ledger
    finally:
        asyncio.run(ledger.close())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Thousands of failures are told to nobody: rendering their tracebacks takes longer than the journeys."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[lambda *_: ""])
    try:
        yield
    finally:
        structlog.reset_defaults()
