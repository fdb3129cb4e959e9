"""The timetable of a single process: a heap, rebuilt from the ledger at every start.

Owns the members and a heap of (instant, member). Changing a member leaves its old heap entry behind; an entry counts
only while it agrees with the dictionary, and the heap is rebuilt when stale ones outnumber the live. Every method runs
to its end without awaiting, so that calls never interleave.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Mapping

from zerocron.core.model import Instant
from zerocron.storage.timetable.contract import CLAIM_LIMIT_MAX, HIDE_MS, Claim

_STALE_ALLOWED = 1024


class MemoryTimetable:
    """Keeps `contract.Timetable` in this process's memory."""

    def __init__(self) -> None:
        self._due: dict[str, Instant] = {}
        self._heap: list[tuple[Instant, str]] = []
        self._earlier = asyncio.Event()

    @property
    def earlier(self) -> asyncio.Event:
        return self._earlier

    async def put(self, due: Mapping[str, Instant]) -> None:
        first = self._next_due()
        for member, instant in due.items():
            if self._due.get(member) != instant:
                self._due[member] = instant
                heapq.heappush(self._heap, (instant, member))
        now_first = self._next_due()
        if now_first is not None and (first is None or now_first < first):
            self._earlier.set()
        if len(self._heap) > 2 * len(self._due) + _STALE_ALLOWED:
            self._rebuild()

    async def restore(self, due: Mapping[str, Instant], *, now: Instant) -> int:
        latest = now + HIDE_MS
        lost = {
            member: instant
            for member, instant in due.items()
            if (known := self._due.get(member)) is None or known > max(instant, latest)
        }
        await self.put(lost)
        return len(lost)

    async def drop(self, members: Iterable[str]) -> None:
        for member in members:
            self._due.pop(member, None)

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS) -> Claim:
        claimed: list[str] = []
        hidden_until = now + hide_ms
        while len(claimed) < min(limit, CLAIM_LIMIT_MAX):
            due = self._next_due()
            if due is None or due > now:
                break
            _, member = heapq.heappop(self._heap)
            self._due[member] = hidden_until
            heapq.heappush(self._heap, (hidden_until, member))
            claimed.append(member)
        return Claim(claimed, self._next_due())

    async def clear(self) -> None:
        self._due.clear()
        self._heap.clear()

    async def size(self) -> int:
        return len(self._due)

    def _next_due(self) -> Instant | None:
        while self._heap:
            instant, member = self._heap[0]
            if self._due.get(member) == instant:
                return instant
            heapq.heappop(self._heap)
        return None

    def _rebuild(self) -> None:
        self._heap = [(instant, member) for member, instant in self._due.items()]
        heapq.heapify(self._heap)
