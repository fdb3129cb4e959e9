"""The contract of a timetable: what is due next, in an index that may be lost at any moment.

Owns the words and the promises; `memory` and `redis` keep them. `tests/storage/test_timetable_contract.py` is the
definition: an implementation is done when it passes. A timetable must never be asked what is true: a member may be
missing, early or late, and the ledger's guards and the sweep make good for all three.

A member's name carries its lane, the team it belongs to: a claim gives every lane that has something due its fair
share, so that a team with fifty thousand jobs due at once keeps nobody else waiting (decision 0008).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from zerocron.core.model import Instant

CLAIM_LIMIT_MAX = 200
"""A claim never takes more: a longer one would keep a shared index from everybody else."""

HIDE_MS = 10_000
"""How long a claimed member stays away unless it is put or dropped: then its claimer is taken for dead."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`members` are due; `next_due` is the earliest instant of any member left in the lanes that were looked at, None
    when there is none."""

    members: Sequence[str]
    next_due: Instant | None


class Timetable(Protocol):
    """Members (`j:<team>:<job>`, `r:<team>:<run>`, `m:<team>:<monitor>`, `a:<team>:<alert>`) and the instants at which
    they are due. All calls may run concurrently."""

    @property
    def earlier(self) -> asyncio.Event:
        """Set when a member was put ahead of all others, here or by another node, so that who waits for `next_due`
        looks again; the one who waits clears it. It is a hint: a message may be lost, or come for nothing."""
        ...

    async def put(self, due: Mapping[str, Instant]) -> None:
        """Set when members are due, whatever they were before. Never raises for an index that is away: the sweep makes
        good for it."""
        ...

    async def restore(self, due: Mapping[str, Instant], *, now: Instant) -> int:
        """Put members that are missing, or that are later than a claim made now would hide them; how many.

        A member hidden by a claim is left alone: somebody is working on it. Raises TimetableAway.
        """
        ...

    async def drop(self, members: Iterable[str]) -> None:
        """Forget members; unknown ones are no error. Never raises for an index that is away."""
        ...

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        """Take up to `limit` (at most `CLAIM_LIMIT_MAX`) members due at `now` and push each to `now + hide_ms` in the
        same step: no two claims return the same member within that time.

        Every lane with something due gets an equal share of the limit, and what it does not use goes to the others;
        within a lane the earliest come first. When more lanes are due than the limit has places, they take turns. Lanes
        in `without` are passed over; each one costs a little, so that it should be hundreds at most. When nobody heard
        the answer to a claim (TimetableAway, a caller that gave up), the next claim of the same node finds its members.
        Raises TimetableAway.
        """
        ...

    async def clear(self) -> None:
        """Forget everything. Raises TimetableAway."""
        ...

    async def size(self) -> int:
        """How many members there are. Raises TimetableAway."""
        ...

    async def lost(self, now: Instant) -> bool:
        """Whether the index has lost members since this was last asked (erased, restored from a copy, failed over).

        One node is told, and it has to restore them all; by asking again it says that it has done so. When it does not
        ask again for some seconds, another is told. An index that nobody has used yet counts as lost, one in the memory
        of its only node never does: it begins and ends with the process. Raises TimetableAway.
        """
        ...

    async def on_duty(self, seconds: float) -> bool:
        """Whether the caller is the one node that is to sweep for the next `seconds`. Raises TimetableAway."""
        ...


class Member(NamedTuple):
    """The parts of a member's name."""

    kind: str
    lane: str
    id: str


def job_member(team_id: str, job_id: str) -> str:
    return f"j:{team_id}:{job_id}"


def run_member(team_id: str, run_id: str) -> str:
    return f"r:{team_id}:{run_id}"


def monitor_member(team_id: str, monitor_id: str) -> str:
    return f"m:{team_id}:{monitor_id}"


def alert_member(team_id: str, alert_id: str) -> str:
    return f"a:{team_id}:{alert_id}"


def split_member(member: str) -> Member | None:
    """The parts of a member; None when it is none of ours."""
    kind, _, rest = member.partition(":")
    lane, colon, identity = rest.partition(":")
    if kind not in ("j", "r", "m", "a") or not colon or not lane or not identity:
        return None
    return Member(kind, lane, identity)


def lane_of(member: str) -> str:
    """The lane a member belongs to; those that are none of ours share the lane ""."""
    parts = member.split(":", 2)
    return parts[1] if len(parts) == 3 else ""
