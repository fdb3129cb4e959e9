"""Counts by the hour what nobody could count afterwards: a look at a day of a busy team must not read a million runs.

Owns two kinds of notes, none of which costs the path of a run a statement. At the beginning of each hour the first node
that comes notes how far the counters of all jobs have come, which makes exact counts of the hours between. And each
node adds to the ledger, every `SAVE_SECONDS`, how late its requests were; what a node had not added when it was killed
is missing there. Both are kept for two days.
"""

from __future__ import annotations

from collections import Counter

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import Unclear
from zerocron.core.histogram import size_of
from zerocron.core.hours import HOUR_MS
from zerocron.core.model import Instant
from zerocron.storage.ledger import hours
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

SAVE_SECONDS = 15.0
KEPT_MS = 48 * HOUR_MS
WAITING_MAX = 100_000
"""Keys that wait for a ledger that is away; of more the lateness is not counted."""


class Lateness:
    """How late first requests were, as one node has counted it since it last wrote it down."""

    def __init__(self) -> None:
        self.counted: Counter[tuple[str, Instant, int]] = Counter()

    def note(self, team_id: str, at: Instant, lateness_ms: int) -> None:
        """A request was sent at `at`. Cheap: every run comes by here."""
        key = (team_id, at - at % HOUR_MS, size_of(lateness_ms))
        if key in self.counted or len(self.counted) < WAITING_MAX:
            self.counted[key] += 1

    def take(self) -> Counter[tuple[str, Instant, int]]:
        """What was counted, which is not counted any more; with the sums over all teams."""
        taken, self.counted = self.counted, Counter()
        for (team_id, hour, size), requests in list(taken.items()):
            if team_id != hours.EVERYBODY:
                taken[hours.EVERYBODY, hour, size] += requests
        return taken

    def put_back(self, taken: Counter[tuple[str, Instant, int]]) -> None:
        """It could not be written down."""
        for key, requests in taken.items():
            if key[0] != hours.EVERYBODY and (key in self.counted or len(self.counted) < WAITING_MAX):
                self.counted[key] += requests


class Tally:
    """One loop of every engine."""

    def __init__(self, *, ledger: Ledger, clock: Clock, lateness: Lateness) -> None:
        self._ledger = ledger
        self._clock = clock
        self._lateness = lateness
        self._looked_at: Instant | None = None

    async def tick(self) -> float:
        """Note what there is to note; returns the seconds until the next time."""
        await self._look()
        await self.save()
        now = self._clock.now()
        return min(SAVE_SECONDS, (HOUR_MS - now % HOUR_MS) / 1000)

    async def save(self) -> None:
        """Write down how late requests were. Raises Unavailable, and keeps it for the next time."""
        taken = self._lateness.take()
        if not taken:
            return
        try:
            await self._ledger.write(lambda connection: hours.add_lateness(connection, taken))
        except Unclear:
            requests = sum(count for (team_id, *_), count in taken.items() if team_id != hours.EVERYBODY)
            log.warning("lateness_perhaps_not_counted", requests=requests)  # rather missing than there twice
            raise
        except Exception:
            self._lateness.put_back(taken)
            raise

    async def _look(self) -> None:
        """Once an hour, unless another node has: how far the counters have come."""
        now = self._clock.now()
        hour = now - now % HOUR_MS
        if self._looked_at is not None and hour <= self._looked_at:
            return

        def transaction(connection: Connection) -> None:
            hours.take(connection, hour)
            hours.forget(connection, now - KEPT_MS)

        if not await self._ledger.read(lambda connection: hours.is_taken(connection, hour)):
            await self._ledger.write(transaction)
        self._looked_at = hour
