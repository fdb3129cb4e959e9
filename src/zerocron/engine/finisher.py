"""Gathers results and records them in batches.

Owns the queue between the executor and the finish transaction. A result waits at most `LINGER_SECONDS` for company,
and whoever handed it in waits until it is committed. While the ledger is away results stay here (there are never more
than the executor has places) and the same batch is tried again: the transaction may safely be repeated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.retry import RetryBudget
from zerocron.engine.attempt import Result
from zerocron.engine.finishing import Finished, bare, finish_batch
from zerocron.engine.starting import StopPoint
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

LINGER_SECONDS = 0.015
IDLE_SECONDS = 60
BATCH_MAX = 250
COMPANY_ENOUGH = 150
"""So many results wait for no more. In a burst a transaction costs most; fewer places would stand empty with less."""

BATCH_BYTES_MAX = 8_388_608
RETRY_SECONDS_MAX = 5.0
BUSY_SECONDS = 0.05
"""When all results of a batch wait for jobs that other transactions hold, the next look is this much later."""

ALONE_ATTEMPTS_MAX = 3

Handed = tuple[Result, asyncio.Future[None]]
"""A result, and who waits for it to be written."""


class Finisher:
    """One task that writes; many that wait for their result to be written."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        metrics: Metrics,
        stop_point: StopPoint,
        budget: RetryBudget | None = None,
    ) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._metrics = metrics
        self._stop_point = stop_point
        self._budget = budget
        self._waiting: list[Handed] = []
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._in_hand = False  # a batch that is being written
        self._written_at = clock.monotonic()

    @property
    def age_seconds(self) -> float:
        """How long results have been waiting without any being written; 0 when none waits."""
        return self._clock.monotonic() - self._written_at if self._waiting or self._in_hand else 0.0

    def start(self) -> None:
        self._task = asyncio.create_task(self._write_forever(), name="finisher")

    async def stop(self) -> None:
        """Stop after what was handed in so far is written; stopping twice is no error."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._arrived.set()
        await asyncio.wait([task], timeout=RETRY_SECONDS_MAX)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def settle(self, result: Result) -> None:
        """Hand a result in; returns once it is committed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((result, future))
        self._arrived.set()
        await future

    async def _write_forever(self) -> None:
        while self._waiting or not self._stopping:
            await self._clock.wait(self._arrived, IDLE_SECONDS)
            self._written_at = self._clock.monotonic()
            if not self._waiting:
                self._arrived.clear()
                continue
            if len(self._waiting) < COMPANY_ENOUGH:
                await self._clock.sleep(LINGER_SECONDS)
            batch = self._take()
            self._in_hand = True
            busy = await self._record(batch)
            self._in_hand = False
            if busy:
                self._waiting += busy
                self._arrived.set()  # nobody else may come
            if len(busy) == len(batch):
                await self._clock.sleep(BUSY_SECONDS)

    def _take(self) -> list[Handed]:
        size = count = 0
        for result, _ in self._waiting[:BATCH_MAX]:
            execution = result.execution
            size += len(execution.request_body or "") + len(execution.response_body or "")
            if count and size > BATCH_BYTES_MAX:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._arrived.clear()
        return batch

    async def _record(self, batch: list[Handed]) -> list[Handed]:
        """Write until it is written, for as long as the ledger is away; those whose job another transaction holds.

        A batch that fails for another reason is tried one by one. A result that cannot be written even alone is written
        without its request and answer, so that its run ends as it did; and if that fails, too, it is left to the sweep,
        which settles its run as lost. Nothing behind it waits for ever.
        """
        delay = 0.1
        failures = 0
        while True:
            try:
                return await self._write(batch)
            except Unavailable as error:
                self._metrics.ledger_unavailable.inc()
                log.error("ledger_unavailable", results_waiting=len(self._waiting) + len(batch), error=str(error))
            except Exception:
                failures += 1
                log.exception("results_not_recorded", results=len(batch), attempt=failures)
                if len(batch) == 1 and failures == ALONE_ATTEMPTS_MAX:
                    batch = [(bare(batch[0][0]), batch[0][1])]
                elif len(batch) == 1 and failures > ALONE_ATTEMPTS_MAX:
                    _resolve(batch)
                    return []
            self._metrics.loop_errors.labels("finisher").inc()
            await self._clock.sleep(delay)
            delay = min(delay * 2, RETRY_SECONDS_MAX)
            if failures and len(batch) > 1:
                return [busy for handed in batch for busy in await self._record([handed])]

    async def _write(self, batch: list[Handed]) -> list[Handed]:
        results = [result for result, _ in batch]
        self._stop_point("before-finish")
        begun = self._clock.monotonic()
        finished = await self._ledger.write(
            # The time is taken when it is its turn: of two transactions the later one has the later time.
            lambda connection: finish_batch(connection, results, now=self._clock.now(), budget=self._budget)
        )
        self._metrics.transaction.labels("finish").observe(self._clock.monotonic() - begun)
        self._stop_point("after-finish")
        _resolve(handed for handed in batch if handed[0].run.id not in finished.busy)  # their places are free
        await self._publish(finished, results, self._clock.now())
        return [handed for handed in batch if handed[0].run.id in finished.busy] if finished.busy else []

    async def _publish(self, finished: Finished, results: list[Result], now: Instant) -> None:
        for status, count in Counter(finished.ended).items():
            self._metrics.runs.labels(status).inc(count)
        written = [result.execution.status for result in results if result.run.id not in finished.busy]
        for status, count in Counter(written).items():
            self._metrics.executions.labels(status).inc(count)
        for job_id in finished.disabled:
            log.warning("job_disabled", job_id=job_id, reason="too many of its runs failed in a row")
        if finished.late:
            log.warning("late_results_kept", count=finished.late)
        await put_near(self._timetable, finished.put, now)


def _resolve(written: Iterable[Handed]) -> None:
    for _, future in written:
        if not future.done():
            future.set_result(None)
