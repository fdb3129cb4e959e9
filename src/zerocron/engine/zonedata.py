"""Keeps stored instants true when the rules of time zones change.

Owns one act: when the ledger's instants were computed with other zone data than this release carries, the next slot of
every cron job is computed again. It must never hold up a run: it goes through the jobs behind the engine's back, those
due soonest first, one small slice a tick, and what it moves is guarded by the version and the slot it saw. A slot that
is due already is left to the scheduler, which computes the one after it by the new rules.

Slots are computed from the instant at which the work began, however long it takes: a slot that the new rules bring
forward, and that passes before its job is reached, becomes overdue and is caught up with instead of being lost. After a
crash, or where two nodes do the same, the work is done again and finds nothing to move.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import ZerocronError
from zerocron.core.model import Instant
from zerocron.storage.ledger import facts
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.jobs import CursorMove
from zerocron.storage.timetable.contract import Timetable, job_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

FACT = "tzdata"
SLICE = 100  # jobs; some milliseconds of work
PAUSE_SECONDS = 0.02
IDLE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class _Slice:
    """What was found in one slice: where the next one begins (None: there is no more), and what has to move."""

    after: tuple[Instant, str] | None
    moves: list[CursorMove]


class ZoneData:
    """Brings the cursors of all jobs up to the zone data of this release, once."""

    def __init__(self, *, ledger: Ledger, timetable: Timetable, clock: Clock, version: str) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._version = version
        self._known: str | None = None
        self._since: Instant | None = None  # when the work began
        self._after: tuple[Instant, str] = (0, "")
        self.is_done = False
        self.moved = 0
        """How many jobs have moved so far."""

    async def tick(self) -> float:
        """Look whether there is work, or do one slice of it; the seconds until the next tick."""
        if self.is_done:
            return IDLE_SECONDS
        if self._since is None:
            self._known = await self._ledger.read(lambda connection: facts.get(connection, FACT))
            if self._known in (None, self._version):
                return await self._finish()
            self._since = self._clock.now()
            self._after = (self._since + 1, "")
        since, after = self._since, self._after
        found = await self._ledger.read(lambda connection: _look(connection, after, since))
        if found.moves:
            moved = await self._ledger.write(lambda connection: job_rows.move_cursors(connection, found.moves))
            self.moved += len(moved)
            due = {
                job_member(move.team_id, move.job_id): move.following for move in found.moves if move.job_id in moved
            }
            await put_near(self._timetable, due, self._clock.now())
        if found.after is None:
            return await self._finish()
        self._after = found.after
        return PAUSE_SECONDS

    async def _finish(self) -> float:
        if self._known != self._version:
            await self._ledger.write(lambda connection: facts.put(connection, FACT, self._version))
        if self._since is not None:
            log.info("zone_data_changed", before=self._known, after=self._version, jobs_moved=self.moved)
        self.is_done = True
        return IDLE_SECONDS


def _look(connection: Connection, after: tuple[Instant, str], since: Instant) -> _Slice:
    page = job_rows.cron_cursors(connection, after=after, limit=SLICE)
    moves: list[CursorMove] = []
    for job in page:
        try:
            following = job.schedule.next_after(since)
            if following == job.next_run_at:
                continue
            recorded = run_rows.newest_slot(connection, job.job_id)  # it ran meanwhile, or the clock was set back since
            following = job.schedule.next_after(max(since, recorded or since))
        except (ZerocronError, ValueError) as error:  # such as a zone that the new data no longer has
            log.error("slot_not_computed_again", job_id=job.job_id, reason=str(error))
            continue
        if following is not None and following != job.next_run_at:
            moves.append(CursorMove(job.team_id, job.job_id, job.version, job.next_run_at, following))
    if len(page) < SLICE:
        return _Slice(None, moves)
    return _Slice((page[-1].next_run_at, page[-1].job_id), moves)
