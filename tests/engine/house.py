"""A whole engine in a test: real SQLite, the timetable in memory, time moved by hand, and a scripted target.

    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.until(lambda: house.target.requests, "the first request")

Everything is real but the clock and `send`. A `WatchedLedger` stands before the ledger: it tells the clock when the
ledger is at work, and fails on request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from sqlalchemy import Connection, text
from tests.storage.samples import NOON, sqlite_ledger
from tests.support.clock import ManualClock

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.channels.contract import Kind, Ways
from zerocron.channels.sending import Outlets
from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.exchange import Failure, Outcome, Request, Response, Timings
from zerocron.core.model import DEFAULT_TEAM_ID, Execution, Instant, Job, Run
from zerocron.core.sealing import Keyring
from zerocron.engine.run import Bounds, Engine
from zerocron.engine.sessions import Session
from zerocron.metrics import Metrics
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger, Transaction
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.memory import MemoryTimetable

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Outcome]]
TIMINGS = Timings(None, None, None, 1.0, 2.0)


def answered(status: int = 200, body: bytes = b"ok", headers: Mapping[str, str] | None = None) -> Outcome:
    response = Response(status, tuple((headers or {}).items()), body, len(body), truncated=False, content_type=None)
    return Outcome(response, None, TIMINGS)


def broken(kind: str = "connection_refused") -> Outcome:
    return Outcome(None, Failure(kind, "No answer came."), TIMINGS)


def at_once(outcome: Outcome) -> Answer:
    async def answer(_request: Request) -> Outcome:
        return outcome

    return answer


class Target:
    """Everybody's server: remembers every request and answers as it is told, by URL."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._answers: dict[str, list[Answer]] = {}

    def on(self, url: str, *answers: Answer | Outcome) -> None:
        """The answers to the first, second... request to a URL; the last one stays. Without any it is 200."""
        self._answers[url] = [at_once(item) if isinstance(item, Outcome) else item for item in answers]

    async def send(self, request: Request) -> Outcome:
        self.requests.append(request)
        answers = self._answers.get(request.url)
        if not answers:
            return answered()
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)

    def seen(self, url: str) -> list[tuple[str, int]]:
        """(run id, attempt) of each request to a URL."""
        return [_names(request) for request in self.requests if request.url == url]


def _names(request: Request) -> tuple[str, int]:
    headers = dict(request.headers)
    return headers["X-0cron-Run-Id"], int(headers["X-0cron-Attempt"])


class _RolledBack(Exception):
    """The transaction is to be undone, and nobody is to know."""


class WatchedLedger:
    """A ledger that says when it is at work, and that a test can make fail."""

    def __init__(self, inner: Ledger) -> None:
        self.inner = inner
        self.at_work = 0
        self.writes = 0
        self.is_away = False
        self.before_write: Callable[[], None] = lambda: None
        """Called before each write, and may raise."""
        self.after_write: Callable[[], None] = lambda: None
        """Called after each commit, and may raise: the answer to a commit is lost."""
        self.lose_answer: Callable[[object], Literal["committed", "rolled back"] | None] = lambda _result: None
        """Asked with the result of each write before it commits: whether no answer to the commit comes, and what
        became of it."""

    async def write(self, transaction: Transaction[T]) -> T:
        self._answer()
        self.writes += 1
        self.before_write()
        lost: list[str] = []

        def whole(connection: Connection) -> T:
            result = transaction(connection)
            if (fate := self.lose_answer(result)) is not None:
                lost.append(fate)
                if fate == "rolled back":
                    raise _RolledBack
            return result

        with suppress(_RolledBack):
            result = await self._watched(self.inner.write, whole)
        if lost:
            raise Unclear("The database's answer was lost.")
        self.after_write()
        return result

    async def read(self, transaction: Transaction[T]) -> T:
        self._answer()
        return await self._watched(self.inner.read, transaction)

    def _answer(self) -> None:
        if self.is_away:
            raise Unavailable("The database cannot be used now.")

    async def close(self) -> None:
        await self.inner.close()

    def heal(self) -> None:
        """Fail no more."""
        self.is_away = False
        self.before_write = self.after_write = lambda: None
        self.lose_answer = lambda _result: None

    async def _watched(self, call: Callable[[Transaction[T]], Awaitable[T]], transaction: Transaction[T]) -> T:
        self.at_work += 1
        try:
            return await call(transaction)
        finally:
            self.at_work -= 1


class House:
    """An engine over the ledger of a folder."""

    early_ms = 0
    """How long before its slot a run may be committed; the fixture `early_ms` plays with what the product has, too."""

    def __init__(
        self,
        folder: Path,
        *,
        now: Instant = NOON,
        capacity: int = 50,
        team_max: int | None = None,
        host_max: int = 0,
        early_ms: int | None = None,
        timetable: Timetable | None = None,
        kinds: Mapping[str, Kind] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        """A team may take all of the capacity unless `team_max` says otherwise."""
        self.clock = ManualClock(now, busy=lambda: self.ledger.at_work > 0)
        self.metrics = Metrics()
        self.target = Target()
        self.timetable = timetable or MemoryTimetable()
        self._folder = folder
        self._kinds = kinds
        self._keyring = keyring
        self._capacity = capacity
        self._team_max = capacity if team_max is None else team_max
        self._host_max = host_max
        self._early_ms = self.early_ms if early_ms is None else early_ms
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.ledger = WatchedLedger(await self._stack.enter_async_context(sqlite_ledger(self._folder)))
        self.jobs = Jobs(ledger=self.ledger, timetable=self.timetable, clock=self.clock)
        self.engine = self._engine()
        await self.engine.start()
        await self.clock.rest()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ledger.heal()
        await self.stop()
        await self._stack.aclose()

    def _engine(self) -> Engine:
        return Engine(
            ledger=self.ledger,
            timetable=self.timetable,
            clock=self.clock,
            metrics=self.metrics,
            session=Session(
                ledger=self.ledger,
                timetable=self.timetable,
                clock=self.clock,
                metrics=self.metrics,
                node="test",
                version="0",
            ),
            send=self.target.send,
            outlets=Outlets(self._kinds or {}, Ways(self.target.send, self.clock.now)),
            keyring=self._keyring,
            bounds=Bounds(
                in_flight_max=self._capacity,
                team_in_flight_max=self._team_max,
                host_in_flight_max=self._host_max,
                early_ms=self._early_ms,
            ),
        )

    async def stop(self, drain_seconds: float = 0.0, force: asyncio.Event | None = None) -> None:
        """Stop the engine, letting it have the time it asks for."""
        stopping = asyncio.create_task(self.engine.stop(drain_seconds, force))
        await self.clock.rest()
        while not stopping.done():
            await self.clock.advance(0.05)
        await stopping

    async def crash(self) -> None:
        """The process is killed: nothing is recorded, settled or closed any more."""
        engine, executor = self.engine, self.engine.executor
        tasks = [*executor._tasks, engine._finisher._task, *(loop._task for loop in engine.loops)]
        alive = [task for task in tasks if task is not None]
        for task in alive:
            task.cancel()
        await asyncio.gather(*alive, return_exceptions=True)
        engine._running = False

    async def restart(self, *, after: float = 0.0) -> None:
        """The next process, that many seconds later: the timetable is empty, the ledger is what it was."""
        await self.clock.advance(after)
        await self.timetable.clear()
        self.engine = self._engine()
        await self.engine.start()
        await self.clock.rest()

    async def create(
        self,
        schedule: str = "* * * * *",
        url: str = "https://example.com/hook",
        *,
        team_id: str = DEFAULT_TEAM_ID,
        **given: Any,
    ) -> Job:
        job, _ = await self.jobs.create(team_id, JobSpec(name="sample", schedule=schedule, url=url, **given))
        return job

    async def job(self, job: Job) -> Job:
        return await self.jobs.get(job.team_id, job.id)

    async def runs(self, job: Job) -> list[Run]:
        """All runs of a job, the earliest slot first."""
        found = await self.ledger.read(
            lambda connection: run_rows.page_of_job(connection, job.id, status=None, before=None, limit=1_000)
        )
        return found[::-1]

    async def lateness(self, *jobs: Job) -> list[int]:
        """By how many ms the first request of each run began after its slot; of runs that have been sent."""
        runs = [run for job in jobs for run in await self.runs(job)]
        firsts = [(run, (await self.executions(run))[:1]) for run in runs]
        return [first.started_at - run.scheduled_for for run, found in firsts for first in found]

    async def executions(self, run: Run) -> list[Execution]:
        return await self.ledger.read(lambda connection: execution_rows.of_run(connection, run.id))

    async def sql(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Look at the ledger, or break it, from outside."""

        def transaction(connection: Connection) -> list[tuple[Any, ...]]:
            result = connection.execute(text(statement), parameters)
            return [tuple(row) for row in result] if result.returns_rows else []

        return await self.ledger.inner.write(transaction)
