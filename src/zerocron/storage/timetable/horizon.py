"""How far ahead the timetable looks.

Owns the one rule that keeps the index small: members due beyond the horizon stay in the ledger, and the sweep brings
them when they come near.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping

from zerocron.clock import Clock
from zerocron.core.errors import TimetableAway, Unclear
from zerocron.core.model import Instant
from zerocron.storage.timetable.contract import Timetable

HORIZON_MS = 120_000


async def put_near(timetable: Timetable, due: Mapping[str, Instant], now: Instant) -> None:
    """Put the members due within the horizon; forget the others, whose old instants no longer hold."""
    near = {member: instant for member, instant in due.items() if instant <= now + HORIZON_MS}
    if near:
        await timetable.put(near)
    if len(near) < len(due):
        await timetable.drop([member for member in due if member not in near])


async def point_at(timetable: Timetable, member: str, due: Instant | None, now: Instant) -> None:
    """Put one member where it belongs now; None: nowhere."""
    if due is None:
        await timetable.drop([member])
    else:
        await put_near(timetable, {member: due}, now)


@contextlib.asynccontextmanager
async def in_step(timetable: Timetable, member: str, clock: Clock) -> AsyncIterator[None]:
    """Around a change of what the member stands for. When nobody knows whether it was made, the member is due at once:
    whoever claims it asks the ledger, and puts it where it belongs or drops it."""
    try:
        yield
    except Unclear:
        with contextlib.suppress(TimetableAway):
            await timetable.put({member: clock.now()})
        raise
