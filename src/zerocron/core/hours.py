"""What happened in each hour, from counters that only grow and were noted when hours began.

Owns the arithmetic. Nothing is counted twice and nothing is left out: whatever came between two notes is in one hour.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zerocron.core.model import Instant

HOUR_MS = 3_600_000


class Totals(NamedTuple):
    """How far counters have come, or how much they grew."""

    succeeded: int
    failed: int
    skipped: int


def hours_back(now: Instant, hours: int) -> Sequence[Instant]:
    """When the last so many hours of UTC began, the one under way included, oldest first."""
    this = now - now % HOUR_MS
    return range(this - (hours - 1) * HOUR_MS, this + 1, HOUR_MS)


def growth(
    hours: Sequence[Instant], looked_at: Sequence[Instant], noted: Mapping[Instant, Totals], now_at: Totals
) -> dict[Instant, Totals]:
    """How much counters grew in each of the hours; an hour of which that is not known is left out.

    `looked_at` are the hours at whose beginning notes were made, ascending, and `noted` what they say: without a note
    there was nothing to count yet. Between two of them no node was there to make one, so that all happened in the first
    of those hours.
    """
    grown: dict[Instant, Totals] = {}
    nothing = Totals(0, 0, 0)
    for index, hour in enumerate(looked_at):
        begin = noted.get(hour, nothing)
        is_last = index + 1 == len(looked_at)
        end = now_at if is_last else noted.get(looked_at[index + 1], nothing)
        if hour in hours:
            grown[hour] = Totals(*(max(0, late - early) for early, late in zip(begin, end, strict=True)))
        following = hours[-1] + HOUR_MS if is_last else looked_at[index + 1]
        for between in hours:
            if hour < between < following:
                grown[between] = nothing
    return grown
