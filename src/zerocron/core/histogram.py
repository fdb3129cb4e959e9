"""Counts of milliseconds by size, and what they say: a few dozen numbers instead of millions.

Owns the sizes, which are stored by their number and must never change their order. A percentile is the upper end of the
size that it falls into: never too small, and at most a quarter (below 8 ms: 1 ms) too large. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping


def _bounds() -> tuple[int, ...]:
    bounds = [0]
    while bounds[-1] < 86_400_000:
        bounds.append(max(bounds[-1] + 1, bounds[-1] * 5 // 4))
    return tuple(bounds)


BOUNDS_MS = _bounds()
"""The largest value of each size; what is larger than the last (a day) is counted with it."""


def size_of(milliseconds: int) -> int:
    """The number of the size that a value belongs to."""
    return min(bisect_left(BOUNDS_MS, milliseconds), len(BOUNDS_MS) - 1)


def percentile(counts: Mapping[int, int], percent: int) -> int | None:
    """So many in a hundred were not larger than this, of values counted by size; None of none."""
    total = sum(counts.values())
    if total == 0:
        return None
    wanted, seen = -(-total * percent // 100), 0
    for size in sorted(counts):
        seen += counts[size]
        if seen >= wanted:
            return BOUNDS_MS[min(size, len(BOUNDS_MS) - 1)]
    raise AssertionError("the counts sum up to their total")


def exact_percentile(ascending: list[int], percent: int) -> int:
    """The same of the values themselves, of which there is one or more."""
    return ascending[max(0, -(-len(ascending) * percent // 100) - 1)]
