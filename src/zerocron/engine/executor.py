"""Sends the requests of started runs, and hands each result to be recorded.

Owns the pipeline load -> permit -> render -> send -> judge -> settle of one attempt, and the places: how many requests
are in flight in all, for a team and to a host. An attempt keeps its place until its result is committed, so that a slow
ledger slows the claims and nothing piles up; and while the ledger is slow or away there are fewer places. Must never
start anything by itself, and never touch the ledger.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import Definition, ExecutionStatus, RetryPolicy, Run
from zerocron.core.requests import host_of
from zerocron.engine.attempt import Attempt, Result, Started
from zerocron.engine.judging import execution_of, judge
from zerocron.engine.rendering import render
from zerocron.metrics import Metrics

log = structlog.get_logger(__name__)

Send = Callable[[Request], Awaitable[Outcome]]
Settle = Callable[[Result], Awaitable[None]]
Load = Callable[[Run], Awaitable[Definition]]
Permit = Callable[[Run], Awaitable[bool]]

LOAD_TRIES = 5
LOAD_AGAIN_SECONDS = 1.0
EARLY_SECONDS_MAX = 1.0
"""No run is committed longer before it begins."""

PLACES_MIN = 50
SLOW_SECONDS = 1.0
"""A start transaction that takes longer than this means that the ledger is slow."""


async def always(_run: Run) -> bool:
    return True


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
    ) -> None:
        self._load = load
        self._send = send
        self._settle = settle
        self._permit = permit
        self._clock = clock
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
        elif self._places < self._capacity:
            self._set_places(self._places + max(1, self._capacity // 20))

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
            await self._due(started.run)
            if not await self._permit(started.run):
                log.warning("attempt_not_sent", run_id=started.run.id, reason="its session has ended")
                return  # whoever ended it settles the run
            result = await self._attempt(attempt)
        except Exception:
            # A fault of ours in one attempt is recorded as its failure; it must not leave the run open.
            log.exception("attempt_failed_inside", run_id=started.run.id, attempt=started.run.attempt)
            result = self._internal_error(started)
        await self._settle(result)

    async def _due(self, run: Run) -> None:
        """Wait for the instant for which the run was started, if that was early. A clock that is set back meanwhile
        keeps nobody: it was not that early."""
        begins_at = run.attempt_started_at or 0
        until = self._clock.monotonic() + EARLY_SECONDS_MAX
        while (early_ms := begins_at - self._clock.now()) > 0 and self._clock.monotonic() < until:
            await self._clock.sleep(min(early_ms / 1000, EARLY_SECONDS_MAX))

    async def _loaded(self, run: Run) -> Definition:
        """What to send, when the start transaction left it in the ledger."""
        for _ in range(LOAD_TRIES - 1):
            try:
                return await self._load(run)
            except Unavailable:
                await self._clock.sleep(LOAD_AGAIN_SECONDS)
        return await self._load(run)

    async def _attempt(self, attempt: Attempt) -> Result:
        request = render(attempt)
        started_at = self._clock.now()
        if attempt.run.attempt == 1:
            self._metrics.lateness.observe(max(0, started_at - attempt.run.scheduled_for) / 1000)
        outcome = await self._send(request)
        self._metrics.duration.observe(outcome.timings.total / 1000)
        return judge(attempt, request, outcome, started_at=started_at, now=self._clock.now())

    def _internal_error(self, started: Started) -> Result:
        now = self._clock.now()
        execution = execution_of(
            started.run,
            status=ExecutionStatus.ERROR,
            started_at=now,
            finished_at=now,
            error_kind="internal",
            error_message="0cron itself failed while executing this attempt; its log has the details.",
        )
        return Result(started.run, started.definition.retry if started.definition else RetryPolicy(), execution)
