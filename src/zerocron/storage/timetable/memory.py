"""The timetable of a single process: a heap per lane, rebuilt from the ledger at every start.

Owns the members, a heap of (instant, member) for each lane, and a heap of (instant, lane) that finds the lanes with
something due. Changing a member leaves its old entry behind: an entry of a lane counts only while it agrees with the
dictionary, and the heaps are rebuilt when stale ones outnumber the live. A lane is listed at or before the instant of
its first member, never after. Every method runs to its end without awaiting, so that calls never interleave.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Collection, Iterable, Mapping

from zerocron.core.model import Instant
from zerocron.storage.timetable.contract import CLAIM_LIMIT_MAX, HIDE_MS, Claim, lane_of

_STALE_ALLOWED = 1024
_NEVER = float("inf")


class MemoryTimetable:
    """Keeps `contract.Timetable` in this process's memory."""

    def __init__(self) -> None:
        self._due: dict[str, Instant] = {}
        self._lanes: dict[str, list[tuple[Instant, str]]] = {}
        self._entries = 0  # in all lanes together, stale ones too
        self._heads: list[tuple[Instant, str]] = []
        self._listed: dict[str, Instant] = {}  # the one entry of each lane in `_heads` that counts
        self._turn = 0
        self._earlier = asyncio.Event()

    @property
    def earlier(self) -> asyncio.Event:
        return self._earlier

    async def put(self, due: Mapping[str, Instant]) -> None:
        first = self._next_due()
        known, lanes, listed = self._due, self._lanes, self._listed
        for member, instant in due.items():
            if known.get(member) != instant:
                known[member] = instant
                lane = lane_of(member)
                heap = lanes.get(lane)
                if heap is None:
                    heap = lanes[lane] = []
                heapq.heappush(heap, (instant, member))
                self._entries += 1
                if instant < listed.get(lane, _NEVER):
                    self._list(lane, instant)
        now_first = self._next_due()
        if now_first is not None and (first is None or now_first < first):
            self._earlier.set()
        if self._entries > 2 * len(self._due) + _STALE_ALLOWED:
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

    async def claim(self, now: Instant, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
        claimed: list[str] = []
        wanted = min(limit, CLAIM_LIMIT_MAX)
        if wanted > 0:
            due = self._unlist_due(now)
            self._share_out([lane for lane in due if lane not in without], claimed, wanted, now, now + hide_ms)
            for lane in due:
                head = self._head(lane)
                assert head is not None, "what was claimed is hidden, not gone"
                self._list(lane, head)
        return Claim(claimed, self._next_due(without))

    async def clear(self) -> None:
        self._due.clear()
        self._rebuild()

    async def size(self) -> int:
        return len(self._due)

    async def lost(self, now: Instant) -> bool:
        return False  # it ends with the process; who starts loads it without being told

    async def on_duty(self, seconds: float) -> bool:
        return True

    def _share_out(
        self, lanes: list[str], claimed: list[str], wanted: int, now: Instant, hidden_until: Instant
    ) -> None:
        """Round by round an equal share to each lane that has more. When there are more lanes than places, each claim
        begins where the one before ended."""
        if len(lanes) > wanted:
            start = self._turn % len(lanes)
            lanes = lanes[start:] + lanes[:start]
            self._turn += wanted
        while lanes and len(claimed) < wanted:
            share = max(1, (wanted - len(claimed)) // len(lanes))
            lanes = [
                lane
                for lane in lanes
                if self._take(lane, claimed, min(share, wanted - len(claimed)), now, hidden_until)
            ]

    def _take(self, lane: str, claimed: list[str], share: int, now: Instant, hidden_until: Instant) -> bool:
        """Claim up to `share` members of a lane; whether it may have more."""
        heap, known = self._lanes[lane], self._due
        taken = 0
        while taken < share:
            if not heap or heap[0][0] > now:
                return False
            instant, member = heap[0]
            if known.get(member) != instant:
                heapq.heappop(heap)
                self._entries -= 1
                continue
            known[member] = hidden_until
            heapq.heapreplace(heap, (hidden_until, member))
            claimed.append(member)
            taken += 1
        return True

    def _unlist_due(self, now: Instant) -> list[str]:
        """Take the lanes with something due off the list, the earliest first."""
        due: list[str] = []
        while (first := self._next_due()) is not None and first <= now:
            _, lane = heapq.heappop(self._heads)
            del self._listed[lane]
            due.append(lane)
        return due

    def _next_due(self, without: Collection[str] = ()) -> Instant | None:
        """The earliest instant of any member; corrects the list as far as it has to look."""
        set_aside: list[tuple[Instant, str]] = []
        found: Instant | None = None
        while self._heads:
            instant, lane = self._heads[0]
            head = self._head(lane) if self._listed.get(lane) == instant else None
            if head == instant and lane not in without:
                found = instant
                break
            heapq.heappop(self._heads)
            if head == instant:
                set_aside.append((instant, lane))
            elif head is not None:
                self._list(lane, head)
            elif self._listed.get(lane) == instant:
                del self._listed[lane]
        for entry in set_aside:
            heapq.heappush(self._heads, entry)
        return found

    def _head(self, lane: str) -> Instant | None:
        """The instant of a lane's first member; forgets a lane without members."""
        heap = self._lanes.get(lane)
        while heap:
            instant, member = heap[0]
            if self._due.get(member) == instant:
                return instant
            heapq.heappop(heap)
            self._entries -= 1
        self._lanes.pop(lane, None)
        return None

    def _list(self, lane: str, instant: Instant) -> None:
        self._listed[lane] = instant
        heapq.heappush(self._heads, (instant, lane))

    def _rebuild(self) -> None:
        self._lanes = {}
        for member, instant in self._due.items():
            self._lanes.setdefault(lane_of(member), []).append((instant, member))
        for heap in self._lanes.values():
            heapq.heapify(heap)
        self._entries = len(self._due)
        self._listed = {lane: heap[0][0] for lane, heap in self._lanes.items()}
        self._heads = [(instant, lane) for lane, instant in self._listed.items()]
        heapq.heapify(self._heads)
