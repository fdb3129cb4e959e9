"""What a schedule is to the rest of the house: a small value that knows its slots.

Owns `Schedule` and `Parsed`. It must never read text (reading.py does) nor know how cron is evaluated (cron_next.py).
Instants are milliseconds since the Unix epoch, UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zerocron.core.schedule import cron_next, describe
from zerocron.core.schedule.cron_next import DstPolicy
from zerocron.core.schedule.cron_parse import Cron, DayMatch, compile_cron
from zerocron.core.schedule.sentences import Remark, say
from zerocron.core.schedule.zones import END_SECOND


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due. Hashable, so that it can be the key of a cache.

    Cron slots are whole seconds from 1970 up to the year 2500.
    """

    kind: Literal["cron", "interval", "once"]
    cron: str | None  # canonical expression; kind cron
    every_ms: int | None  # kind interval
    at: int | None  # kind interval: the anchor, slots are at + k * every_ms for k >= 1; kind once: the instant
    timezone: str  # IANA name
    dst: DstPolicy = "run_once"  # what a change of the clocks does to fixed times; kind cron
    day_match: DayMatch = "either"  # where day of month and day of week are both restricted; kind cron

    def next_after(self, instant: int) -> int | None:
        """The first slot strictly later than the instant; None when there is none."""
        if self.kind == "cron":
            second = cron_next.next_slot(self.compiled(), self.timezone, self.dst, instant // 1000 + 1)
            return None if second is None else second * 1000
        found = self._slot(max(1, self._index(instant) + 1))
        return found if found is not None and found > instant else None

    def count_between(self, after: int, until: int) -> int:
        """How many slots lie in (after, until]."""
        if until <= after:
            return 0
        if self.kind == "cron":
            start, end = after // 1000 + 1, until // 1000 + 1
            return cron_next.count_slots(self.compiled(), self.timezone, self.dst, start, end)
        return max(0, self._index(until)) - max(0, self._index(after))

    def latest_between(self, after: int, until: int, limit: int) -> list[int]:
        """The newest `limit` slots in (after, until], ascending."""
        if until <= after or limit <= 0:
            return []
        if self.kind == "cron":
            start, end = after // 1000 + 1, until // 1000 + 1
            found = cron_next.latest_slots(self.compiled(), self.timezone, self.dst, start, end, limit)
            return [second * 1000 for second in found]
        last, first = max(0, self._index(until)), max(0, self._index(after)) + 1
        slots = (self._slot(k) for k in range(max(first, last - limit + 1), last + 1))
        return [slot for slot in slots if slot is not None]

    def describe(self) -> str:
        """The schedule in plain English, from its meaning, such as "every weekday at 09:00 (Europe/Paris)".

        Says anything; core/understanding.py has words in other languages, which can be read back.
        """
        if self.kind == "cron":
            return f"{describe.describe_cron(self.compiled())} ({self.timezone})"
        if self.kind == "interval":
            assert self.every_ms, "an interval has a length"
            return describe.describe_interval(self.every_ms)
        assert self.at is not None
        return f"once, {describe.describe_instant(self.at, self.timezone)}"

    def compiled(self) -> Cron:
        """The sets of a schedule of kind cron."""
        assert self.cron is not None, "a schedule of kind cron has an expression"
        return compile_cron(self.cron, self.day_match)

    # Intervals and single instants, as the slots number 1, 2, 3... (a single instant has number 1 only).

    def _index(self, instant: int) -> int:
        """The number of the last slot at or before the instant; below 1 when there is none."""
        assert self.at is not None, "an interval has an anchor, a single instant has itself"
        if self.kind == "once":
            return int(instant >= self.at)
        assert self.every_ms, "an interval has a length"
        return (min(instant, END_SECOND * 1000 - 1) - self.at) // self.every_ms

    def _slot(self, index: int) -> int | None:
        assert self.at is not None
        if self.kind == "once":
            return self.at if index == 1 else None
        assert self.every_ms, "an interval has a length"
        slot = self.at + index * self.every_ms
        return slot if slot < END_SECOND * 1000 else None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A schedule as read from a person's text, and what that person should know about it."""

    schedule: Schedule
    remarks: tuple[Remark, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The remarks in English."""
        return tuple(say(remark) for remark in self.remarks)
