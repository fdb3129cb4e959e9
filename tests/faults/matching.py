"""Matching of windows to points in time: which windows found no point, and which points no window."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Span = tuple[float, float]


def unmatched(windows: Sequence[Span], points: Sequence[float]) -> tuple[list[Span], list[float]]:
    """One point for one window. Taking for each point the open window that ends first matches as many as can be."""
    coming = sorted(windows)
    opened: list[tuple[float, float]] = []
    missed: list[Span] = []
    homeless: list[float] = []
    position = 0
    for point in sorted(points):
        while position < len(coming) and coming[position][0] <= point:
            begin, end = coming[position]
            heapq.heappush(opened, (end, begin))
            position += 1
        while opened and opened[0][0] < point:
            end, begin = heapq.heappop(opened)
            missed.append((begin, end))
        if opened:
            heapq.heappop(opened)
        else:
            homeless.append(point)
    missed += [(begin, end) for end, begin in opened] + coming[position:]
    return sorted(missed), homeless
