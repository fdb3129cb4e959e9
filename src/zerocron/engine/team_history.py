"""Keeps the histories of teams within their limits.

Owns the rule: of a team with a limit the oldest runs go, with all that was sent and answered for them, until the rest
has no more bytes than it may. Each such team is counted once an hour, by one node. So it is exact after a count, but
for at most ten minutes' worth of runs that go with the oldest ones; until the next count what was added meanwhile
comes on top. To count as runs end would need a row that every one of them waits for. Must never touch an open run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import structlog

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.engine.retention import RUNS_PER_TRANSACTION, remove_runs
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.limits import HistoryLimit

log = structlog.get_logger(__name__)

TICK_SECONDS = 30.0
COUNT_MS = 3_600_000
SPAN_MS = 600_000
RUNS_PER_QUERY = 2_000
JOBS_PER_QUERY = 500
MINUTES_KEPT_MS = 3_600_000
MINUTES_AHEAD_MS = 180_000
"""Farther ahead no node counts, however much clocks differ and runs are committed early."""


class TeamHistory:
    """One loop of one node."""

    def __init__(self, *, ledger: Ledger, clock: Clock, bytes_max: int | None) -> None:
        """`bytes_max`: of teams that have no limit of their own."""
        self._ledger = ledger
        self._clock = clock
        self._bytes_max = bytes_max

    async def tick(self) -> float:
        """Look after one team; returns the seconds until the next time."""
        now = self._clock.now()
        await self._ledger.write(
            partial(limit_rows.forget_minutes, before=now - MINUTES_KEPT_MS, after=now + MINUTES_AHEAD_MS)
        )
        team = await self._ledger.read(
            partial(limit_rows.to_count, before=now - COUNT_MS + 1, now=now, default=self._bytes_max)
        )
        if team is None:
            return TICK_SECONDS
        if await self._ledger.write(partial(limit_rows.claim_count, team=team, now=now)):
            await self._shorten(team)
        return 0

    async def _shorten(self, team: HistoryLimit) -> None:
        sizes = await self._sizes(team.team_id)
        before, kept = cut(sizes, team.bytes_max)
        if before is not None:
            removed = 0
            async for job_id in self._jobs(team.team_id):
                remove = partial(remove_runs, job_id=job_id, before=before)
                count = RUNS_PER_TRANSACTION
                while count == RUNS_PER_TRANSACTION:
                    count = await self._ledger.write(remove)
                    removed += count
            log.info("history_over_limit", team_id=team.team_id, bytes_max=team.bytes_max, runs_removed=removed)
        await self._ledger.write(partial(limit_rows.save_count, team_id=team.team_id, history_bytes=kept))

    async def _sizes(self, team_id: str) -> Counter[Instant]:
        """The bytes of a team's history, by the span of time in which the slots lie."""
        sizes: Counter[Instant] = Counter()
        async for job_id in self._jobs(team_id):
            after: Instant | None = -1
            while after is not None:
                count = partial(
                    execution_rows.bytes_of_job, job_id=job_id, after=after, limit=RUNS_PER_QUERY, span_ms=SPAN_MS
                )
                found, after = await self._ledger.read(count)
                sizes.update(found)
        return sizes

    async def _jobs(self, team_id: str) -> AsyncIterator[str]:
        after = (-1, "")
        while True:
            page = await self._ledger.read(
                partial(job_rows.ids_of_team, team_id=team_id, after=after, limit=JOBS_PER_QUERY)
            )
            for _, job_id in page:
                yield job_id
            if len(page) < JOBS_PER_QUERY:
                return
            after = page[-1]


def cut(sizes: Counter[Instant], bytes_max: int) -> tuple[Instant | None, int]:
    """Before which instant a history is to go, None if it may stay; and how many bytes are left then."""
    kept = 0
    for span in sorted(sizes, reverse=True):
        if kept + sizes[span] > bytes_max:
            return span + SPAN_MS, kept
        kept += sizes[span]
    return None, kept
