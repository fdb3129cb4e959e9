"""Sends the requests of started runs, and hands each result to be recorded.

Owns the pipeline load -> render -> send -> judge -> settle of one attempt, and the number of requests in flight. An
attempt keeps its place until its result is committed, so that a slow ledger slows the claims and nothing piles up.
Must never start anything by itself, and never touch the ledger.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request, Response, Timings
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Definition, Execution, ExecutionStatus, Instant, RetryPolicy, Run
from zerocron.core.retry import retry_after_ms
from zerocron.core.success import broken_rule
from zerocron.engine.attempt import Attempt, Result, Started
from zerocron.metrics import Metrics

log = structlog.get_logger(__name__)

Send = Callable[[Request], Awaitable[Outcome]]
Settle = Callable[[Result], Awaitable[None]]
Load = Callable[[Run], Awaitable[Definition]]

LOAD_TRIES = 5
LOAD_AGAIN_SECONDS = 1.0


class Executor:
    """Runs attempts concurrently, at most `capacity` at a time."""

    def __init__(
        self, *, load: Load, send: Send, settle: Settle, clock: Clock, metrics: Metrics, capacity: int
    ) -> None:
        self._load = load
        self._send = send
        self._settle = settle
        self._clock = clock
        self._metrics = metrics
        self._capacity = capacity
        self._tasks: dict[asyncio.Task[None], str] = {}  # by task: two attempts of a run may meet in passing
        self.freed = asyncio.Event()
        metrics.capacity.set(capacity)
        metrics.in_flight.set_function(lambda: len(self._tasks))

    @property
    def free(self) -> int:
        """How many more attempts may be launched."""
        return self._capacity - len(self._tasks)

    @property
    def in_flight(self) -> frozenset[str]:
        """Ids of the runs being executed."""
        return frozenset(self._tasks.values())

    def launch(self, started: Started) -> None:
        """Execute a started run in the background."""
        task = asyncio.create_task(self._execute(started))
        self._tasks[task] = started.run.id
        task.add_done_callback(self._release)

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
        self._tasks.pop(task, None)
        self.freed.set()

    async def _execute(self, started: Started) -> None:
        try:
            attempt = Attempt(started.run, started.definition or await self._loaded(started.run))
            result = await self._attempt(attempt)
        except Exception:
            # A fault of ours in one attempt is recorded as its failure; it must not leave the run open.
            log.exception("attempt_failed_inside", run_id=started.run.id, attempt=started.run.attempt)
            result = self._internal_error(started)
        await self._settle(result)

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
        execution = _execution(
            started.run,
            status=ExecutionStatus.ERROR,
            started_at=now,
            finished_at=now,
            error_kind="internal",
            error_message="0cron itself failed while executing this attempt; its log has the details.",
        )
        return Result(started.run, started.definition.retry if started.definition else RetryPolicy(), execution)


def render(attempt: Attempt) -> Request:
    """The request of an attempt, with the headers by which a target recognises run and attempt (promise 3)."""
    run, definition = attempt.run, attempt.definition
    headers = list(definition.headers)
    given = {name.lower() for name, _ in headers}
    body = definition.body.encode() if definition.body is not None else None
    if body is not None and "content-type" not in given:
        headers.append(("Content-Type", _content_type(definition)))
    headers += [
        ("Idempotency-Key", run.id),
        ("X-0cron-Run-Id", run.id),
        ("X-0cron-Attempt", str(run.attempt)),
        ("X-0cron-Scheduled-For", to_rfc3339(run.scheduled_for)),
        ("X-0cron-Job-Id", run.job_id),
        ("X-0cron-Job-Version", str(run.job_version)),
    ]
    return Request(definition.method, definition.url, headers, body, definition.timeout_seconds)


def _content_type(definition: Definition) -> str:
    """What a body without a declared type is taken for: JSON when it looks like an object or a list, else text."""
    looks_like_json = (definition.body or "").lstrip()[:1] in ("{", "[")
    return "application/json" if looks_like_json else "text/plain; charset=utf-8"


def judge(attempt: Attempt, request: Request, outcome: Outcome, *, started_at: Instant, now: Instant) -> Result:
    """Make an attempt's record of what came of it, by the job's success rule."""
    response = outcome.response or (outcome.failure.response if outcome.failure else None)
    body, encoding = _text(response) if response is not None else (None, "utf-8")
    kind = message = None
    status = ExecutionStatus.SUCCESS
    if outcome.failure is not None:
        kind, message = outcome.failure.kind, outcome.failure.message
        status = ExecutionStatus.TIMEOUT if kind == "timeout" else ExecutionStatus.ERROR
    elif response is not None:
        readable = body if encoding == "utf-8" else None
        message = broken_rule(attempt.definition.success, response.status, readable)
        if message is not None:
            kind, status = "rule", ExecutionStatus.FAILED
    execution = _execution(
        attempt.run,
        status=status,
        started_at=started_at,
        finished_at=max(now, started_at),
        duration_ms=round(outcome.timings.total, 3),
        timings=_timings_record(outcome.timings),
        request={"url": request.url, "method": request.method, "headers": request.headers},
        request_body=attempt.definition.body,
        response=None if response is None else _response_record(response, encoding),
        response_body=body,
        error_kind=kind,
        error_message=message,
    )
    wait_ms = _asked_to_wait(response, now) if kind is not None else None
    return Result(attempt.run, attempt.definition.retry, execution, wait_ms)


def _execution(run: Run, **outcome: object) -> Execution:
    fields: dict[str, object] = {"duration_ms": 0} | outcome
    return Execution(
        run_id=run.id,
        scheduled_for=run.scheduled_for,
        attempt=run.attempt,
        job_id=run.job_id,
        team_id=run.team_id,
        session_id=run.session_id or "",
        cause=run.cause,
        **fields,  # type: ignore[arg-type]
    )


def _timings_record(timings: Timings) -> dict[str, float | None]:
    return {
        "dns": _milliseconds(timings.dns),
        "connect": _milliseconds(timings.connect),
        "tls": _milliseconds(timings.tls),
        "first_byte": _milliseconds(timings.first_byte),
        "total": _milliseconds(timings.total),
    }


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _response_record(response: Response, encoding: str) -> dict[str, object]:
    return {
        "status": response.status,
        "headers": response.headers,
        "body_bytes": response.body_bytes,
        "truncated": response.truncated,
        "encoding": encoding,
    }


def _asked_to_wait(response: Response | None, now: Instant) -> int | None:
    for name, value in response.headers if response is not None else ():
        if name.lower() == "retry-after":
            return retry_after_ms(value, now)
    return None


def _text(response: Response) -> tuple[str, str]:
    """The body as it is kept: text where it is UTF-8 without NUL (PostgreSQL stores none), else base64."""
    data = response.body
    if response.truncated:
        data = _whole_characters(data)
    if b"\0" not in data:
        try:
            return data.decode(), "utf-8"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(response.body).decode(), "base64"


def _whole_characters(data: bytes) -> bytes:
    """Without the first bytes of a UTF-8 character that the cap cut in two."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1100_0000:  # the first byte of a character of several
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            return data
    return data
