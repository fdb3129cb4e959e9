"""Sends the requests of started runs, and hands each result to be recorded.

Owns the pipeline load -> unseal -> render -> permit -> sign -> send -> mask -> judge -> settle of one attempt, and the
places: how many requests are in flight in all, for a team and to a host. An attempt keeps its place until its result is
committed, so that a slow ledger slows the claims and nothing piles up; and while the ledger is slow or away, or this
server short of something, there are fewer places. Must never start anything by itself, and never touch the ledger.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from weakref import WeakValueDictionary

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.exchange import ERROR_KINDS, Outcome, Request
from zerocron.core.model import Definition, ExecutionStatus, Instant, Reason, RetryPolicy, Run
from zerocron.core.requests import host_of
from zerocron.core.secret import Secret
from zerocron.engine.attempt import Attempt, Result, Started
from zerocron.engine.judging import execution_of, judge, takes_long
from zerocron.engine.preparing import LEDGER_AWAY, Prepared, Secrets, SigningKeys, prepare
from zerocron.engine.reads import READ_AGAIN_SECONDS, patiently
from zerocron.engine.rendering import NotSent
from zerocron.engine.tally import Lateness
from zerocron.metrics import Metrics

log = structlog.get_logger(__name__)

Send = Callable[[Request], Awaitable[Outcome]]
Settle = Callable[[Result], Awaitable[None]]
Load = Callable[[Run], Awaitable[Definition]]
Permit = Callable[[Run], Awaitable[bool]]
Stopped = Callable[[Run], Awaitable[Reason | None]]
"""Why a run's job is stopped (paused, disabled, deleted); None while it is not. Raises Unavailable after some tries."""

LATE_LOOK_MS = 100
"""An attempt that begins so long after it was committed is looked at once more: whoever stopped the job meanwhile was
told that nothing begins any more (promise 8). One committed before its slot is, as soon as it is late at all. Of an
attempt that was looked at, the permit may take so long, or it is looked at again."""

EARLY_SECONDS_MAX = 1.0
"""No run is committed longer before it begins."""

PLACES_MIN = 50
SLOW_SECONDS = 1.0
"""A start transaction that takes longer than this means that the ledger is slow."""


SHORTAGE_SECONDS = 5.0
"""For so long after this server ran short of something (files, ports, threads) it takes on no more than it can do."""

SHORTAGE_OVER_SECONDS = 330.0
"""Without another for so long a shortage is over, also where nothing was sent: what met it has been tried again."""


async def always(_run: Run) -> bool:
    return True


async def not_stopped(_run: Run) -> Reason | None:
    return None


async def no_secrets(_team_id: str, _names: frozenset[str]) -> Mapping[str, Secret]:
    return {}


async def no_signing_keys(_team_id: str) -> Sequence[bytes]:
    raise NotSent("not_signed", "This server signs no requests. Nothing was sent.")


class Executor:
    """Runs attempts concurrently, at most `capacity` at a time, of which one team takes at most `team_max` and one host
    at most `host_max` (0: no bound)."""

    def __init__(
        self,
        *,
        load: Load,
        send: Send,
        settle: Settle,
        clock: Clock,
        metrics: Metrics,
        capacity: int,
        team_max: int = 0,
        host_max: int = 0,
        permit: Permit = always,
        stopped: Stopped = not_stopped,
        secrets: Secrets = no_secrets,
        signing_keys: SigningKeys = no_signing_keys,
        allow_insecure_tls: bool = False,
        lateness: Lateness | None = None,
    ) -> None:
        self._load = load
        self._lateness = lateness or Lateness()
        self._send = send
        self._settle = settle
        self._permit = permit
        self._stopped = stopped
        self._signing_keys = signing_keys
        self._allow_insecure_tls = allow_insecure_tls
        self._short_since: float | None = None
        self._short_at = float("-inf")
        self._secrets = secrets
        self._clock = clock
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="zerocron-judge")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by team, while somebody has one
        self._metrics = metrics
        self._capacity = self._places = capacity
        self._team_max = team_max or max(1, capacity * 9 // 10)
        self._host_max = host_max
        self._tasks: dict[asyncio.Task[None], Started] = {}  # by task: two attempts of a run may meet in passing
        self._teams: Counter[str] = Counter()
        self._hosts: Counter[str] = Counter()
        self.freed = asyncio.Event()
        self.expected: Sequence[Started] = ()
        """Runs whose start is being committed; they are launched as soon as it is known to be."""

        metrics.capacity.set(capacity)
        metrics.places.set(capacity)
        metrics.in_flight.set_function(lambda: len(self._tasks))

    @property
    def free(self) -> int:
        """How many more attempts may be launched."""
        return self._places - len(self._tasks)

    @property
    def in_flight(self) -> frozenset[str]:
        """Ids of the runs being executed."""
        return frozenset(started.run.id for started in self._tasks.values())

    @property
    def in_hand(self) -> frozenset[str]:
        """Ids of the runs being executed and of those about to be."""
        return self.in_flight | {started.run.id for started in self.expected}

    def team_room(self) -> tuple[list[str], int]:
        """(the teams that have all the places one may have, how many more the next fullest may take)."""
        fullest = self._teams.most_common()
        full = [team_id for team_id, count in fullest if count >= self._team_max]
        others = fullest[len(full) :]
        return full, self._team_max - (others[0][1] if others else 0)

    def host_room(self, url: str) -> int | None:
        """How many more requests the host of the URL takes; None when hosts have no bound."""
        return self._host_max - self._hosts[host_of(url)] if self._host_max else None

    def launch(self, started: Started) -> None:
        """Execute a started run in the background."""
        task = asyncio.create_task(self._execute(started))
        self._tasks[task] = started
        self._teams[started.run.team_id] += 1
        self._hosts[started.host] += 1
        task.add_done_callback(self._release)

    def ledger_took(self, seconds: float) -> None:
        """Told how long a start transaction took; a slow ledger is given less to do."""
        if seconds > SLOW_SECONDS:
            self._metrics.deferred.labels("ledger").inc()
            self._set_places(self._places // 2)
        elif self._places < self._capacity and self._clock.monotonic() - self._short_at > SHORTAGE_SECONDS:
            self._set_places(self._places + max(1, self._capacity // 20))

    @property
    def short_seconds(self) -> float:
        """For how long this server has run short of something that requests need; 0 while it does not."""
        now = self._clock.monotonic()
        if self._short_since is not None and now - self._short_at > SHORTAGE_OVER_SECONDS:
            self._short_since = None
        return 0.0 if self._short_since is None else now - self._short_since

    def _ran_short(self) -> None:
        """Nothing was sent for want of something of our own: less is to be under way than was."""
        now = self._clock.monotonic()
        if now - self._short_at > SHORTAGE_SECONDS:
            self._metrics.deferred.labels("shortage").inc()
            self._set_places(len(self._tasks) // 2)
            log.error("ran_short", in_flight=len(self._tasks), places=self._places, hint="Allow more open files.")
        if self._short_since is None or now - self._short_at > SHORTAGE_OVER_SECONDS:
            self._short_since = now
        self._short_at = now

    def _set_places(self, places: int) -> None:
        self._places = min(max(places, PLACES_MIN), self._capacity)
        self._metrics.places.set(self._places)

    async def drain(self, seconds: float) -> bool:
        """Wait for everything in flight, at most that long; whether all ended."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        return not self._tasks

    async def abort(self) -> None:
        """Cancel what is in flight; its runs stay `running` in the ledger, for the take-over to settle."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """After `drain` or `abort`. Closing twice is no error."""
        self._beside.shutdown(wait=False, cancel_futures=True)

    def _release(self, task: asyncio.Task[None]) -> None:
        started = self._tasks.pop(task)
        for counter, key in ((self._teams, started.run.team_id), (self._hosts, started.host)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        self.freed.set()

    async def _execute(self, started: Started) -> None:
        try:
            attempt = Attempt(started.run, started.definition or await self._loaded(started.run))
            prepared = await prepare(attempt, secrets=self._secrets, signing_keys=self._signing_keys)
            late = await self._is_late(started.run)
            # Until one look and one permit came without a gap in which somebody could have stopped the job.
            while True:
                begun = self._clock.now()  # before the look: whoever stops the job from here on was not first
                is_known, stopped = True, None
                try:
                    stopped = await self._stopped(started.run) if late else None
                except Unavailable:
                    is_known = False  # somebody may have been told that it is stopped before the ledger went away
                    await self._clock.sleep(READ_AGAIN_SECONDS)
                asked_at = self._clock.monotonic()
                if not await self._permit(started.run):
                    log.warning("attempt_not_sent", run_id=started.run.id, reason="its session has ended")
                    return  # whoever ended it settles the run
                if is_known and (self._clock.monotonic() - asked_at) * 1000 <= LATE_LOOK_MS:
                    break
                late = True  # the ledger was away meanwhile, and much may have been asked of it since it is back
            if stopped is None:
                result = await self._attempt(attempt, prepared, begun)
            else:
                result = self._called_off(started, stopped)
        except Unavailable:
            result = self._not_made(started, LEDGER_AWAY.kind, LEDGER_AWAY.message)
        except Exception:
            # A fault of ours in one attempt is recorded as its failure; it must not leave the run open.
            log.exception("attempt_failed_inside", run_id=started.run.id, attempt=started.run.attempt)
            said = "0cron itself failed while executing this attempt; its log has the details."
            result = self._not_made(started, "internal", said)
        await self._settle(result)

    async def _is_late(self, run: Run) -> bool:
        """Wait until the attempt is to begin; whether by then its job may have been stopped by somebody."""
        begins_at = run.attempt_started_at or 0
        late_ms_max = LATE_LOOK_MS
        if begins_at > self._clock.now():
            await self._due(run)
        elif run.attempt == 1 and run.created_at < begins_at == run.scheduled_for:
            late_ms_max = 0  # it was committed early (decision 0011), and the commit's answer came after the slot
        return not 0 <= self._clock.now() - begins_at <= late_ms_max  # a clock that was set back tells nothing

    def _called_off(self, started: Started, reason: Reason) -> Result:
        """Nothing was sent. The attempt has its record, as of when it was to begin."""
        begins_at = started.run.attempt_started_at or 0
        result = self._not_made(started, "called_off", ERROR_KINDS["called_off"])
        execution = dataclasses.replace(result.execution, started_at=begins_at, finished_at=begins_at)
        return dataclasses.replace(result, execution=execution, called_off=reason)

    async def _due(self, run: Run) -> None:
        """Wait for the instant for which the run was started, if that was early. A clock that is set back meanwhile
        keeps nobody: it was not that early."""
        begins_at = run.attempt_started_at or 0
        until = self._clock.monotonic() + EARLY_SECONDS_MAX
        while (early_ms := begins_at - self._clock.now()) > 0 and self._clock.monotonic() < until:
            await self._clock.sleep(min(early_ms / 1000, EARLY_SECONDS_MAX))

    async def _loaded(self, run: Run) -> Definition:
        """What to send, when the start transaction left it in the ledger. Raises Unavailable."""
        return await patiently(self._clock, partial(self._load, run))

    async def _attempt(self, attempt: Attempt, prepared: Prepared, started_at: Instant) -> Result:
        """No value of a secret is in what this returns."""
        run, request, redactor = attempt.run, prepared.request, prepared.redactor
        if prepared.refusal is not None:
            return judge(attempt, request, prepared.refusal.outcome(), started_at=started_at, now=started_at)
        if run.attempt == 1:
            late_ms = max(0, started_at - run.scheduled_for)
            self._metrics.lateness.observe(late_ms / 1000)
            self._lateness.note(run.team_id, started_at, late_ms)
        request = prepared.to_send(attempt, started_at, allow_insecure_tls=self._allow_insecure_tls)
        outcome = await self._send(request)
        self._metrics.duration.observe(outcome.timings.total / 1000)
        if outcome.failure is not None and outcome.failure.own_shortage:
            self._ran_short()
        elif self._short_since is not None and self._clock.monotonic() - self._short_at > SHORTAGE_SECONDS:
            self._short_since = None  # there is enough of everything again
        verdict = partial(
            judge, attempt, request, outcome, started_at=started_at, now=self._clock.now(), redactor=redactor
        )
        if not takes_long(attempt.definition.success, request, outcome, redactor):
            return verdict()
        # One thread for all: more would take the event loop's turns from it. In its queue a team has one place.
        async with self._turns.setdefault(run.team_id, asyncio.Lock()):
            return await asyncio.get_running_loop().run_in_executor(self._beside, verdict)

    def _not_made(self, started: Started, kind: str, message: str) -> Result:
        """An attempt of which nothing is known but that it failed here."""
        now = max(self._clock.now(), started.run.attempt_started_at or 0)
        execution = execution_of(
            started.run,
            status=ExecutionStatus.ERROR,
            started_at=now,
            finished_at=now,
            error_kind=kind,
            error_message=message,
        )
        return Result(started.run, started.definition.retry if started.definition else RetryPolicy(), execution)
