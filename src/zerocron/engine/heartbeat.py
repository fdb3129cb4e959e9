"""Looks at monitors whose deadline has come: what silence means.

Owns the flip that nobody's request caused. One transaction holds the monitors, judges them by the pings that are
durable by then and the outages that are known, and writes what they show now, each with its true instant and its row of
history. Ten nodes may look at once: who holds the row flips it, and the others find it flipped. Must never flip for
time in which no pings could be taken, and never trust the timetable about what is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.core.monitor import JUDGED_AFTER_MS, advance
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.telling import tell_flips
from zerocron.storage.timetable.contract import Timetable, monitor_member, split_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

BUSY_MS = 250
"""When a ping or another node holds a monitor, it is looked at again so much later."""

EARLY_MS = 50
"""The scheduler claims a little early, for the sake of runs; that is near enough."""

PER_TRANSACTION = 200
OVERDUE_MS = 2_000
OVERDUE_MAX = 10_000


@dataclass(slots=True)
class Looked:
    """What one transaction did: where the members belong now, and the flips."""

    put: dict[str, Instant] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    flips: list[monitor_rows.FlipRow] = field(default_factory=list)


class Heartbeat:
    """One for each node; called by the scheduler with what it claimed."""

    def __init__(self, *, ledger: Ledger, timetable: Timetable, clock: Clock) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock

    async def look(self, members: Sequence[str]) -> int:
        """Judge monitors by their members; how many flipped. Raises Unavailable."""
        now = self._clock.now()
        looked = await self._ledger.write(lambda connection: look_at(connection, members, now))
        for flip in looked.flips:
            log.info(
                "monitor_flipped",
                monitor=flip.monitor_id,
                before=flip.before,
                after=flip.after,
                reason=flip.reason,
                noticed_after_ms=now - flip.at,
            )
        if looked.drop:
            await self._timetable.drop(looked.drop)
        await put_near(self._timetable, looked.put, now)
        return len(looked.flips)

    async def tick(self) -> int:
        """Look at what should have been looked at long ago: the timetable lost it, or nobody had a place to claim it;
        how many there were."""
        before = self._clock.now() - OVERDUE_MS
        due = await self._ledger.read(
            lambda connection: monitor_rows.overdue(connection, before=before, limit=OVERDUE_MAX)
        )
        members = [monitor_member(one.team_id, one.id) for one in due]
        for begin in range(0, len(members), PER_TRANSACTION):
            await self.look(members[begin : begin + PER_TRANSACTION])
        return len(due)


def look_at(connection: Connection, members: Sequence[str], now: Instant) -> Looked:
    """The transaction. A deadline that was moved by pings is put where it belongs now; most are such."""
    looked = Looked()
    wanted = {parts.id: member for member in members if (parts := split_member(member)) is not None}
    held = monitor_rows.lock(connection, list(wanted), wait=False)
    missing = [monitor_id for monitor_id in wanted if monitor_id not in held]
    busy = monitor_rows.existing(connection, missing) if missing else set()
    looked.put |= {wanted[monitor_id]: now + BUSY_MS for monitor_id in busy}
    looked.drop += [wanted[monitor_id] for monitor_id in missing if monitor_id not in busy]
    due = []
    for one in held.values():
        deadline = one.watch.deadline_at
        if deadline is None:
            looked.drop.append(wanted[one.id])
        elif deadline + JUDGED_AFTER_MS - EARLY_MS > now:
            looked.put[wanted[one.id]] = deadline + JUDGED_AFTER_MS
        else:
            due.append(one)
    if due:
        _judge(connection, due, wanted, looked, now)
    return looked


def _judge(
    connection: Connection,
    due: list[monitor_rows.Watched],
    wanted: dict[str, str],
    looked: Looked,
    now: Instant,
) -> None:
    begun = [one.watch.anchor for one in due if one.watch.anchor is not None]
    begun += [run.started_at for one in due for run in one.watch.runs.values()]
    outages = monitor_rows.known_outages(connection, min(begun, default=now), now)
    seen = [one.flips for one in due]
    for one in sorted(due, key=lambda one: one.watch.deadline_at or 0):
        flips = advance(one.expectation, one.watch, max(now - JUDGED_AFTER_MS, one.watch.deadline_at or 0), outages)
        looked.flips += [monitor_rows.flip_row(one, flip, now) for flip in flips]
        deadline = one.watch.deadline_at
        if deadline is None:
            looked.drop.append(wanted[one.id])
        else:
            looked.put[wanted[one.id]] = deadline + JUDGED_AFTER_MS
    monitor_rows.save_watches(connection, due, seen)
    if looked.flips:
        monitor_rows.insert_flips(connection, looked.flips)
        looked.put |= tell_flips(connection, looked.flips, now)


def is_monitor(member: str) -> bool:
    """Whether a member of the timetable is a monitor's deadline."""
    return member.startswith("m:")
