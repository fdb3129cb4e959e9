"""The contract of a timetable: what is due next, in an index that may be lost at any moment.

Owns the words and the promises; `memory` keeps them (Redis will). `tests/storage/test_timetable_contract.py` is the
definition: an implementation is done when it passes. A timetable must never be asked what is true: a member may be
missing, early or late, and the ledger's guards and the sweep make good for all three.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zerocron.core.model import Instant

CLAIM_LIMIT_MAX = 200
"""A claim never takes more: a longer one would keep a shared index from everybody else."""

HIDE_MS = 10_000
"""How long a claimed member stays away unless it is put or dropped: then its claimer is taken for dead."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`members` are due; `next_due` is the earliest instant of any member left, None when there is none."""

    members: Sequence[str]
    next_due: Instant | None


class Timetable(Protocol):
    """Members (`j:<job>`, `r:<run>`) and the instants at which they are due. All calls may run concurrently."""

    @property
    def earlier(self) -> asyncio.Event:
        """Set when a member was put ahead of all others, so that who waits for `next_due` looks again; the one who
        waits clears it."""
        ...

    async def put(self, due: Mapping[str, Instant]) -> None:
        """Set when members are due, whatever they were before."""
        ...

    async def restore(self, due: Mapping[str, Instant], *, now: Instant) -> int:
        """Put members that are missing, or that are later than a claim made now would hide them; how many.

        A member hidden by a claim is left alone: somebody is working on it.
        """
        ...

    async def drop(self, members: Iterable[str]) -> None:
        """Forget members; unknown ones are no error."""
        ...

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS) -> Claim:
        """Take up to `limit` (at most `CLAIM_LIMIT_MAX`) members due at `now`, earliest first, and push each to
        `now + hide_ms` in the same step: no two claims return the same member within that time."""
        ...

    async def clear(self) -> None:
        """Forget everything."""
        ...

    async def size(self) -> int:
        """How many members there are."""
        ...


def job_member(job_id: str) -> str:
    return f"j:{job_id}"


def run_member(run_id: str) -> str:
    return f"r:{run_id}"


def split_member(member: str) -> tuple[str, str]:
    """(kind, id) of a member; the kind of one that is none of ours is ""."""
    kind, colon, identity = member.partition(":")
    return (kind, identity) if colon and kind in ("j", "r") else ("", member)
