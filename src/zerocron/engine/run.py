"""The driver: repeats each part's tick, and starts and stops them in the right order.

Owns the loops and their health. A tick that fails is logged and tried again after a growing pause; no failure ends a
loop. Stopping first stops claiming, then waits for what is in flight, then records, then closes the session; stopping
twice is no error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from zerocron.channels.contract import Ways
from zerocron.channels.sending import Outlets
from zerocron.clock import Clock
from zerocron.core.model import STOPPED, Definition, JobStatus, Reason, Run
from zerocron.core.retry import RetryBudget
from zerocron.core.sealing import Keyring
from zerocron.engine.executor import Executor, Send
from zerocron.engine.finisher import Finisher
from zerocron.engine.heartbeat import Heartbeat
from zerocron.engine.notifier import Notifier
from zerocron.engine.reads import SharedReads
from zerocron.engine.retention import Retention
from zerocron.engine.scheduler import Scheduler
from zerocron.engine.sessions import Session
from zerocron.engine.signing import Signer
from zerocron.engine.starting import StopPoint
from zerocron.engine.sweep import Sweep
from zerocron.engine.tally import Lateness, Tally
from zerocron.engine.unsealing import Unsealer
from zerocron.metrics import Metrics
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable

log = structlog.get_logger(__name__)

FAILURE_PAUSE_SECONDS_MAX = 5.0
TICK_SECONDS_MAX = 10.0
"""How long a stop waits for the tick under way."""

STALLED_SECONDS = 60.0
"""A loop that has finished no tick for this long counts as stalled, and the node as not ready."""


class Part(Protocol):
    """What a loop repeats: one bounded step, which says how long nothing is to be done."""

    async def tick(self) -> float: ...


class Loop:
    """Repeats a tick for ever."""

    def __init__(
        self,
        name: str,
        tick: Callable[[], Awaitable[float]],
        *,
        clock: Clock,
        metrics: Metrics,
        pause: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._tick = tick
        self._clock = clock
        self._metrics = metrics
        self._pause = pause or clock.sleep
        self._finished_at = clock.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._ticking = False
        self._stopping = False

    @property
    def age_seconds(self) -> float:
        """Since the last finished tick; one that failed does not count."""
        return self._clock.monotonic() - self._finished_at

    @property
    def is_stalled(self) -> bool:
        return self.age_seconds > STALLED_SECONDS

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"loop-{self.name}")

    async def stop(self) -> None:
        """Let a tick under way end (a transaction must not commit behind our back), then end the loop."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        if self._ticking:
            await asyncio.wait([task], timeout=TICK_SECONDS_MAX)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self._ticking = True
                seconds = await self._tick()
                self._ticking = False
                self._finished_at = self._clock.monotonic()
                failures = 0
                if not self._stopping:
                    await self._pause(seconds)
            except Exception:
                self._ticking = False
                failures += 1
                seconds = min(0.1 * 2 ** min(failures, 10), FAILURE_PAUSE_SECONDS_MAX)
                log.exception("tick_failed", loop=self.name, failures=failures, again_in_seconds=seconds)
                self._metrics.loop_errors.labels(self.name).inc()
                await self._clock.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much at once, how early, and how long kept. Of in-flight requests 0 means: as the executor sees fit.

    `retry_percent_max`: of a team's runs, so many retries in a hundred (`core.retry.RetryBudget`).
    """

    in_flight_max: int
    team_in_flight_max: int = 0
    host_in_flight_max: int = 0
    early_ms: int = 0
    retry_percent_max: int = 20
    history_days: int = 90
    history_runs_per_job: int = 100_000
    audit_days: int = 365
    runs_per_minute_max: int | None = None
    """Of a team that has no limit of its own; None: as many as come due."""


class Engine:
    """Everything that happens because time passed."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        metrics: Metrics,
        session: Session,
        send: Send,
        bounds: Bounds,
        keyring: Keyring | None = None,
        allow_insecure_tls: bool = False,
        outlets: Outlets | None = None,
        stop_point: StopPoint = lambda _name: None,
    ) -> None:
        self.session, self._ledger, self._metrics = session, ledger, metrics
        keyring = keyring or Keyring()
        self._finisher = Finisher(
            ledger=ledger,
            timetable=timetable,
            clock=clock,
            metrics=metrics,
            stop_point=stop_point,
            budget=RetryBudget(bounds.retry_percent_max),
        )
        self.unsealer = Unsealer(ledger=ledger, clock=clock, keyring=keyring)
        self._signer = Signer(ledger=ledger, clock=clock, keyring=keyring)
        self._statuses: SharedReads[str, str] = SharedReads(self._read_statuses)
        lateness = Lateness()
        self.tally = Tally(ledger=ledger, clock=clock, lateness=lateness)
        self.executor = Executor(
            load=self._load_definition,
            send=send,
            settle=self._finisher.settle,
            clock=clock,
            metrics=metrics,
            capacity=bounds.in_flight_max,
            team_max=bounds.team_in_flight_max,
            host_max=bounds.host_in_flight_max,
            permit=self.session.permits,
            stopped=self._why_stopped,
            secrets=self.unsealer.secrets,
            signing_keys=self._signer.keys,
            allow_insecure_tls=allow_insecure_tls,
            lateness=lateness,
        )
        self.heartbeat = Heartbeat(ledger=ledger, timetable=timetable, clock=clock, metrics=metrics)
        self.notifier = Notifier(
            ledger=ledger,
            timetable=timetable,
            clock=clock,
            metrics=metrics,
            keyring=keyring,
            outlets=outlets or Outlets({}, Ways(send, clock.now)),
        )
        self._make_loops(timetable, clock, bounds, stop_point)

    def _make_loops(self, timetable: Timetable, clock: Clock, bounds: Bounds, stop_point: StopPoint) -> None:
        metrics = self._metrics
        self.sweep = Sweep(
            ledger=self._ledger,
            timetable=timetable,
            clock=clock,
            session=self.session,
            executor=self.executor,
            metrics=metrics,
        )
        self.scheduler = Scheduler(
            ledger=self._ledger,
            timetable=timetable,
            clock=clock,
            session=self.session,
            executor=self.executor,
            heartbeat=self.heartbeat,
            notifier=self.notifier,
            metrics=metrics,
            stop_point=stop_point,
            early_ms=bounds.early_ms,
            runs_per_minute_max=bounds.runs_per_minute_max,
            index_is_sound=lambda: self.sweep.index_is_sound,
        )
        self.retention = Retention(
            ledger=self._ledger,
            clock=clock,
            days=bounds.history_days,
            runs_per_job=bounds.history_runs_per_job,
            audit_days=bounds.audit_days,
        )
        self._claiming = Loop(
            "scheduler", self.scheduler.tick, clock=clock, metrics=metrics, pause=self.scheduler.pause
        )
        self._keeping = self._keeping_loops(clock)
        self._running = False

    def _keeping_loops(self, clock: Clock) -> list[Loop]:
        """Each alone, so that what fails in one keeps no other from its turn."""
        parts: dict[str, Part] = {
            "sweep": self.sweep,
            "heartbeat": self.heartbeat,
            "notifier": self.notifier,
            "session": self.session,
            "retention": self.retention,
        }
        return [Loop(name, part.tick, clock=clock, metrics=self._metrics) for name, part in parts.items()]

    @property
    def loops(self) -> list[Loop]:
        return [self._claiming, *self._keeping]

    async def _load_definition(self, run: Run) -> Definition:
        key = (run.job_id, run.job_version)
        found = await self._ledger.read(lambda connection: job_rows.definitions(connection, [key]))
        return found[key]

    async def _read_statuses(self, job_ids: frozenset[str]) -> Mapping[str, str]:
        return await self._ledger.read(lambda connection: job_rows.statuses(connection, job_ids))

    async def _why_stopped(self, run: Run) -> Reason | None:
        found = await self._statuses.get(frozenset([run.job_id]))
        return STOPPED.get(found.get(run.job_id, JobStatus.ACTIVE))

    async def start(self) -> None:
        """Open the session, settle what a dead process left, and begin."""
        await self.session.open()
        self._finisher.start()
        for loop in self.loops:
            loop.start()
        self._running = True

    def stalled(self) -> list[str]:
        """Names of loops that do not go round; the age of each is published on the way."""
        for loop in self.loops:
            self._metrics.loop_age.labels(loop.name).set(loop.age_seconds)
        if not self._running:
            return [loop.name for loop in self.loops]
        ages = {loop.name: loop.age_seconds for loop in self.loops}
        ages |= {"finisher": self._finisher.age_seconds, "executor": self.executor.short_seconds}
        return [name for name, age in ages.items() if age > STALLED_SECONDS]

    async def stop(self, drain_seconds: float, force: asyncio.Event | None = None) -> None:
        """Drain and stop. Setting `force` ends the wait for running requests at once."""
        if not self._running:
            return
        self._running = False
        clock = asyncio.get_running_loop().time
        until = clock() + TICK_SECONDS_MAX  # for both: nobody listens to `force` meanwhile
        await self._claiming.stop()
        await self.scheduler.stop(max(0.0, until - clock()))
        log.info("draining", in_flight=len(self.executor.in_flight), seconds=drain_seconds)
        if not await self._drained(drain_seconds, force):
            log.warning("aborting", in_flight=len(self.executor.in_flight))
            await self.executor.abort()
        self.executor.close()
        await self._finisher.stop()
        await self.unsealer.close()
        await self._signer.close()
        await self._statuses.close()
        for loop in self._keeping:
            await loop.stop()
        await self.notifier.stop()
        with contextlib.suppress(Exception):
            await self.unsealer.save_use()
        with contextlib.suppress(Exception):
            await self.session.close()

    async def _drained(self, seconds: float, force: asyncio.Event | None) -> bool:
        drain = asyncio.create_task(self.executor.drain(seconds))
        waiting: list[asyncio.Task[bool]] = [drain]
        if force is not None:
            waiting.append(asyncio.create_task(force.wait()))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return not self.executor.in_flight
