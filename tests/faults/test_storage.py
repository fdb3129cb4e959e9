"""The n-th write of a journey fails, for every n; afterwards everything is accounted for.

Three ways to fail: refused (nothing is written), committed with the answer lost, and an error nobody expects. And the
ledger away for a while. The journey has each kind of overlap, retries, a job that gives up, triggers, an edit and a
pause; it runs in virtual time (`virtual.py`) over real SQLite, and the checker judges it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection
from tests.faults.checker import Violation, violations
from tests.faults.history import load
from tests.faults.virtual import (
    FaultyLedger,
    Outage,
    VirtualClock,
    VirtualLoop,
    VirtualTarget,
)
from tests.faults.world import Log, prepare

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.core.errors import ZerocronError
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, Job, OnLost, Overlap, RetryPolicy, Run, TriggeredBy
from zerocron.engine.run import Engine
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.memory import MemoryTimetable

pytestmark = pytest.mark.timeout(120)

SPECS = [
    JobSpec("plain", "every 8 seconds", "http://target.test/plain"),
    JobSpec("retried", "*/15 * * * * *", "http://target.test/retried", retry=RetryPolicy(3, "fixed", 2)),
    JobSpec("queued", "every 6 seconds", "http://target.test/queued", overlap=Overlap.QUEUE, catchup=Catchup.ALL),
    JobSpec("allowed", "every 9 seconds", "http://target.test/allowed", overlap=Overlap.ALLOW),
    JobSpec("careful", "every 11 seconds", "http://target.test/careful", on_lost=OnLost.GIVE_UP, catchup=Catchup.NONE),
]
ACTS = {
    "/plain": lambda _before, _attempt: (0.1, 200),
    "/retried": lambda _before, attempt: (0.1, 200 if attempt > 2 else 500),
    "/queued": lambda before, _attempt: (9 if before % 4 == 1 else 0.2, 200),
    "/allowed": lambda before, _attempt: (11 if before % 3 == 0 else 0.2, 200),
    "/careful": lambda before, _attempt: (0.1, 404 if before == 1 else 200),
}
SETTLE_SECONDS = 18
"""The longest that the loops take to come round to what failed; an attempt that nobody executes takes longer."""


class Stage:
    """One journey: the engine, its faulty ledger, and the logs."""

    def __init__(self, inner: SqliteLedger, folder: Path, outage: Outage | None) -> None:
        self.inner = inner
        self.clock = VirtualClock()
        self.target_log, self.fault_log, self.op_log = (
            Log(folder / f"{name}.jsonl") for name in ("target", "faults", "ops")
        )
        self.target = VirtualTarget(self.target_log, ACTS)
        self.outage = outage
        self.ops = 0

    async def run(self) -> FaultyLedger:
        ledger = FaultyLedger(self.inner, None, self.fault_log)
        await ledger.write(_emptied)
        timetable = MemoryTimetable()
        jobs = Jobs(ledger=ledger, timetable=timetable, clock=self.clock)
        made = [await self._operate("create", jobs.create(DEFAULT_TEAM_ID, spec)) for spec in SPECS]
        ids = [job.id for job, _ in made]
        ledger.writes, ledger.outage = 0, self.outage
        engine = await self._started(ledger, timetable)
        for seconds, act in self._verbs(jobs, ids):
            await self.clock.sleep(seconds)
            await act()
        ledger.outage = None
        if ledger.failed:
            await self.clock.sleep(SETTLE_SECONDS)
        await self._caught_up(ledger)
        self.fault_log.write(kind="stop", **{"from": self.clock.now(), "to": None})
        await engine.stop(20)
        return ledger

    def _verbs(self, jobs: Jobs, ids: list[str]) -> list[tuple[float, Callable[[], Awaitable[Any]]]]:
        team, plain, retried, queued = DEFAULT_TEAM_ID, *ids[:3]

        def trigger(job_id: str) -> Awaitable[Any]:
            return self._operate("trigger", jobs.trigger(team, job_id, triggered_by=TriggeredBy.API), job_id)

        def edit(spec: JobSpec) -> JobSpec:
            return JobSpec(spec.name, "every 7 seconds", spec.url, retry=spec.retry)

        return [
            (7.3, lambda: trigger(queued)),
            (1.4, lambda: trigger(plain)),
            (2.1, lambda: self._operate("edit", jobs.edit(team, plain, edit), plain)),
            (10.2, lambda: self._operate("pause", jobs.pause(team, retried), retried)),
            (4.0, lambda: self._operate("resume", jobs.resume(team, retried), retried)),
        ]

    async def _started(self, ledger: FaultyLedger, timetable: MemoryTimetable) -> Engine:
        """An engine that runs; one that cannot start ends its process, and somebody starts another."""
        while True:
            engine = Engine(
                ledger=ledger,
                timetable=timetable,
                clock=self.clock,
                metrics=Metrics(),
                send=self.target.send,
                node="test",
                version="test",
                in_flight_max=50,
                history_days=90,
                history_runs_per_job=1_000,
            )
            try:
                await engine.start()
                return engine
            except (ZerocronError, RuntimeError):
                await self.clock.sleep(1)

    async def _caught_up(self, ledger: FaultyLedger) -> None:
        """Until nothing is due, and nothing runs for longer than a request takes; a minute at most."""
        query = (
            "SELECT (SELECT count(*) FROM jobs WHERE next_run_at <= :now) "
            "+ (SELECT count(*) FROM runs WHERE retry_at <= :now) "
            "+ (SELECT count(*) FROM runs WHERE status = 'running' AND attempt_started_at < :now - 15000)"
        )
        for _ in range(120):
            now = self.clock.now()
            behind = await ledger.read(
                lambda connection: connection.exec_driver_sql(query, {"now": now}).scalar_one()  # noqa: B023
            )
            if not behind:
                return
            await self.clock.sleep(0.5)

    async def _operate(self, kind: str, verb: Awaitable[Any], job_id: str | None = None) -> Any:
        self.ops += 1
        number = self.ops
        self.op_log.write(
            op=number, type="invoke", kind=kind, at=self.clock.now(), data={"job": job_id, "name": f"op {number}"}
        )
        try:
            done = await verb
        except (ZerocronError, RuntimeError):
            self.op_log.write(op=number, type="info", kind=kind, at=self.clock.now())
            return None
        thing = done[0] if isinstance(done, tuple) else done
        data: dict[str, Any] = {}
        if isinstance(thing, Run):
            data = {"run": thing.id}
        elif isinstance(thing, Job):
            data = {"job": thing.id, "version": thing.version}
        self.op_log.write(op=number, type="ok", kind=kind, at=self.clock.now(), data=data)
        return done

    def verdict(self) -> list[Violation]:
        logs = {"target_log": self.target_log.path, "fault_log": self.fault_log.path, "op_log": self.op_log.path}
        return violations(load(self.inner.path.parent, **logs))


def _emptied(connection: Connection) -> None:
    for table in ("audit", "runs", "executions", "jobs", "job_versions", "sessions", "idempotency_keys"):
        connection.exec_driver_sql(f"DELETE FROM {table}")
    connection.exec_driver_sql("DELETE FROM audit")  # of the deletions


def _play(ledger: SqliteLedger, folder: Path, outage: Outage | None) -> tuple[FaultyLedger, list[Violation]]:
    folder.mkdir()
    stage = Stage(ledger, folder, outage)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        faulty = runner.run(stage.run())
    return faulty, stage.verdict()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A thousand failures with their tracebacks are told to nobody: rendering them takes longer than the journeys."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[lambda *_: ""])
    yield
    structlog.reset_defaults()


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[SqliteLedger]:
    """One ledger for all journeys of a test, emptied before each: a new one would compile every statement again.

    It does not wait for the disk: no process dies here, and thirty thousand commits would.
    """
    prepare(tmp_path / "ledger")
    ledger = asyncio.run(SqliteLedger.open(tmp_path / "ledger" / "zerocron.db", lambda _connection: None))
    writer = ledger._write_engine.raw_connection()
    writer.cursor().execute("PRAGMA synchronous = OFF")
    writer.close()
    yield ledger
    asyncio.run(ledger.close())


def test_without_a_fault(inner: SqliteLedger, tmp_path: Path) -> None:
    """The journey has what it is meant to have, and is clean."""
    ledger, found = _play(inner, tmp_path / "clean", None)
    assert not found, "\n".join(map(str, found))
    assert ledger.writes > 40


@pytest.mark.parametrize("how", ["before", "after", "error"])
def test_each_write_fails_once(inner: SqliteLedger, tmp_path: Path, how: Any) -> None:
    """For every n of the journey; the last one is the first that meets no write any more."""
    broken: list[str] = []
    number = 0
    while True:
        number += 1
        ledger, found = _play(inner, tmp_path / f"write-{number}", Outage(how, number))
        if not ledger.failed:
            break
        broken += [f"write {number}: {violation}" for violation in found]
    assert number > 40
    assert not broken, "\n".join(broken[:40])


@pytest.mark.parametrize("seconds", [3, 20])
def test_the_ledger_is_away_for_a_while(inner: SqliteLedger, tmp_path: Path, seconds: int) -> None:
    """No write succeeds for some seconds: what runs is recorded afterwards, and nothing is lost or sent twice."""
    broken: list[str] = []
    for begin in (4.9, 7.5, 8.9, 15):
        outage = Outage("before", between=(begin, begin + seconds))
        ledger, found = _play(inner, tmp_path / f"away-{begin}", outage)
        assert ledger.failed
        broken += [f"away from {begin}: {violation}" for violation in found]
    assert not broken, "\n".join(broken[:40])


@pytest.mark.xfail(strict=True, reason="found here: the slot supersedes the run before the queued one (fault-bugs 6)")
def test_no_slot_overtakes_a_queued_one(inner: SqliteLedger, tmp_path: Path) -> None:
    """One run waits for its retry, one in the queue behind it, and a third slot comes due while nobody is there."""
    spec = JobSpec("job", "every 3 seconds", "http://target.test/job", overlap=Overlap.QUEUE)
    spec = dataclasses.replace(spec, retry=RetryPolicy(2, "fixed", 2))
    stage = Stage(inner, tmp_path, None)
    stage.target = VirtualTarget(stage.target_log, {"/job": lambda before, _: (0.1, 200) if before else (3.1, 500)})

    async def play() -> None:
        ledger = FaultyLedger(inner, None, stage.fault_log)
        await ledger.write(_emptied)
        timetable = MemoryTimetable()
        await stage._operate(
            "create", Jobs(ledger=ledger, timetable=timetable, clock=stage.clock).create(DEFAULT_TEAM_ID, spec)
        )
        engine = await stage._started(ledger, timetable)
        await stage.clock.sleep(6.5)  # the first failed at 6.1 and is to be tried again at 8.1; the second waits
        stopped = stage.clock.now()
        await engine.stop(5)
        await stage.clock.sleep(2.8)  # the third is due at 9
        stage.fault_log.write(kind="stop", **{"from": stopped, "to": stage.clock.now()})
        engine = await stage._started(ledger, MemoryTimetable())
        await stage.clock.sleep(8)
        stage.fault_log.write(kind="stop", **{"from": stage.clock.now(), "to": None})
        await engine.stop(5)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())
    found = stage.verdict()
    assert not found, "\n".join(map(str, found))
