"""Looks at monitors whose deadline has come: what silence means.

Owns the flip that nobody's request caused. One transaction holds the monitors, judges them by the pings that are
durable by then and the outages that are known, and writes what they show now, each with its true instant and its row of
history. Ten nodes may look at once: who holds the row flips it, and the others find it flipped. A monitor that cannot
be judged is told of once, left as it is and looked at ever more rarely, and keeps no other from being judged. Must
never flip for time in which no pings could be taken, and never trust the timetable about what is due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.monitor import JUDGED_AFTER_MS, advance
from zerocron.metrics import Metrics
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.telling import tell_flips
from zerocron.storage.timetable.contract import Timetable, monitor_member, split_member
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

BUSY_MS = 250
"""When a ping or another node holds a monitor, it is looked at again so much later."""

EARLY_MS = 50
"""The scheduler claims so early, for the sake of runs, and that is near enough. `app.EARLY_MS` is at most this: what is
claimed earlier would be put back at once, again and again."""

PER_TRANSACTION = 200
TICK_SECONDS = 2.0
OVERDUE_MS = 2_000
OVERDUE_MAX = 10_000
ASIDE_MS = 2_000
ASIDE_MS_MAX = 300_000
ASIDE_MAX = 10_000
"""A monitor that cannot be judged is looked at again after this long, then after twice as long, and so on."""


@dataclass(slots=True)
class Looked:
    """What one transaction did: where the members belong now, and the flips."""

    put: dict[str, Instant] = field(default_factory=dict)
    drop: list[str] = field(default_factory=list)
    flips: list[monitor_rows.FlipRow] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)


class Heartbeat:
    """One for each node: called by the scheduler with what it claimed, and a loop that finds what nobody claims."""

    def __init__(self, *, ledger: Ledger, timetable: Timetable, clock: Clock, metrics: Metrics) -> None:
        self.pings_owed_since: Callable[[], Instant | None] = lambda: None
        """From when on pings may have come to this node that are not in the ledger yet; where it takes some, the house
        says how to know."""
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._metrics = metrics
        self._aside: dict[str, tuple[int, Instant]] = {}  # member: failures, and when it is looked at again

    async def look(self, members: Sequence[str]) -> int:
        """Judge monitors by their members; how many flipped. Raises Unavailable."""
        now = self._clock.now()
        members, later = self._without_aside(members, now)
        if later:
            await put_near(self._timetable, later, now)
        if not members:
            return 0
        looked = await self._look_together(members, now)
        for flip in looked.flips:
            log.info(
                "monitor_flipped",
                monitor=flip.monitor_id,
                before=flip.before,
                after=flip.after,
                reason=flip.reason,
                noticed_after_ms=now - flip.at,
            )
        for member, error in looked.failed.items():
            looked.put[member] = self._put_aside(member, error, now)
        if self._aside:
            for member in members:
                if member not in looked.failed:
                    self._aside.pop(member, None)
        if looked.drop:
            await self._timetable.drop(looked.drop)
        await put_near(self._timetable, looked.put, now)
        return len(looked.flips)

    async def tick(self) -> float:
        """Look at what should have been looked at long ago: the timetable lost it, or nobody had a place to claim it.
        Returns the seconds until the next time."""
        now = self._clock.now()
        due = await self._ledger.read(
            lambda connection: monitor_rows.overdue(connection, before=now - OVERDUE_MS, limit=OVERDUE_MAX)
        )
        members, _ = self._without_aside([monitor_member(one.team_id, one.id) for one in due], now)
        for begin in range(0, len(members), PER_TRANSACTION):
            await self.look(members[begin : begin + PER_TRANSACTION])
        return TICK_SECONDS

    async def _look_together(self, members: Sequence[str], now: Instant) -> Looked:
        """In one transaction, or one by one if that fails."""
        try:
            owed = self.pings_owed_since()
            return await self._ledger.write(lambda connection: look_at(connection, members, now, owed))
        except Unavailable:
            raise
        except Exception as error:
            if len(members) == 1:
                return Looked(failed={members[0]: error})
            log.exception("batch_look_failed", members=len(members))
        looked = Looked()
        for member in members:
            one = await self._look_together([member], now)
            looked.put |= one.put
            looked.drop += one.drop
            looked.flips += one.flips
            looked.failed |= one.failed
        return looked

    def _without_aside(self, members: Sequence[str], now: Instant) -> tuple[list[str], dict[str, Instant]]:
        """(those to look at, when the others are)."""
        if not self._aside:
            return list(members), {}
        later = {member: until for member in members if (until := self._aside.get(member, (0, 0))[1]) > now}
        later = {member: until for member, until in later.items() if until <= now + ASIDE_MS_MAX}  # no clock set back
        return [member for member in members if member not in later], later

    def _put_aside(self, member: str, error: Exception, now: Instant) -> Instant:
        failures, _ = self._aside.pop(member, (0, 0))
        delay_ms = min(ASIDE_MS << min(failures, 10), ASIDE_MS_MAX)
        if failures == 0:
            log.error(
                "monitor_not_judged",
                member=member,
                again_in_seconds=delay_ms / 1000,
                hint="It shows what it showed. Its schedule or its row may be damaged: edit it, or make it anew.",
                exc_info=error,
            )
        self._metrics.loop_errors.labels("heartbeat").inc()
        self._aside[member] = (failures + 1, now + delay_ms)
        if len(self._aside) > ASIDE_MAX:
            del self._aside[next(iter(self._aside))]
        return now + delay_ms


def look_at(connection: Connection, members: Sequence[str], now: Instant, owed_since: Instant | None = None) -> Looked:
    """The transaction. A deadline that was moved by pings is put where it belongs now; most are such. Nothing is judged
    from `owed_since` on: a ping that came in time may still be on its way."""
    until = now if owed_since is None else min(now, owed_since - 1)
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
        elif deadline > until:
            looked.put[wanted[one.id]] = now + BUSY_MS
        else:
            due.append(one)
    if due:
        _judge(connection, due, wanted, looked, now, until)
    return looked


def _judge(
    connection: Connection,
    due: list[monitor_rows.Watched],
    wanted: dict[str, str],
    looked: Looked,
    now: Instant,
    until: Instant,
) -> None:
    begun = [one.watch.anchor for one in due if one.watch.anchor is not None]
    begun += [run.started_at for one in due for run in one.watch.runs.values()]
    outages = monitor_rows.known_outages(connection, min(begun, default=now), now)
    judged, seen = [], []
    for one in sorted(due, key=lambda one: one.watch.deadline_at or 0):
        before = one.flips
        at = min(until, max(now - JUDGED_AFTER_MS, one.watch.deadline_at or 0))
        try:
            flips = advance(one.expectation, one.watch, at, outages)
        except Exception as error:  # its schedule, its zone, its row: it is nobody else's
            looked.failed[wanted[one.id]] = error
            continue
        judged.append(one)
        seen.append(before)
        looked.flips += [monitor_rows.flip_row(one, flip, now) for flip in flips]
        deadline = one.watch.deadline_at
        if deadline is None:
            looked.drop.append(wanted[one.id])
        else:
            looked.put[wanted[one.id]] = deadline + JUDGED_AFTER_MS
    looked.put |= tell_flips(connection, {one.id: one for one in judged}, looked.flips, now)
    if judged:
        monitor_rows.save_watches(connection, judged, seen)
    if looked.flips:
        monitor_rows.insert_flips(connection, looked.flips)


def is_monitor(member: str) -> bool:
    """Whether a member of the timetable is a monitor's deadline."""
    return member.startswith("m:")
