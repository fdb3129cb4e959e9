"""The geometry of charts that the server draws: where bars, lines and dots stand in a box of 1,000 by 100.

Owns scales alone; templates draw, and words and colours are theirs. Strips have a box of their own. All are stretched
to whatever room there is, so that nothing in them may be text or round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zerocron.dashboard.telling import read_instant

WIDTH, HEIGHT = 1_000.0, 100.0
SEEN_MIN = 3.0
"""A bar of one among thousands has this height: a failure must be seen."""

GAP_SHARE = 0.22
DOT_WIDTH = 4.0
STEPS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a bar, from its upper left corner; `kind` is an outcome."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of stacked parts, and the number at the top of the box."""

    top: int
    columns: Sequence[Sequence[Block]]


STRIP_MARKS = 100
STRIP_STEP, STRIP_WIDTH, STRIP_HEIGHT = 6, 4, 20
BAD = frozenset(("failed", "lost"))
DAYS = 30
DAY_HEIGHTS = {"down": 20, "up": 14, "none": 3}


@dataclass(frozen=True, slots=True)
class Strip:
    """The latest runs of a job in a box of 600 by 20, the newest at the right.

    `paths` has one path for each outcome that is no failure, so that a list of many jobs stays small; `failures` have
    their place and their mark, since each is to say when it was.
    """

    count: int
    paths: Mapping[str, str]
    failures: Sequence[tuple[int, Mapping[str, Any]]]


def days(kinds: Sequence[str]) -> dict[str, str]:
    """The last days of a monitor in a box of 178 by 20, today at the right, as one path for each kind: `up`, `down`,
    `none`. Days before it was made are of no kind."""
    paths: dict[str, str] = {}
    whole = ["none"] * (DAYS - len(kinds)) + list(kinds[-DAYS:])
    for index, kind in enumerate(whole):
        height = DAY_HEIGHTS[kind]
        bar = f"M{index * STRIP_STEP} {STRIP_HEIGHT - height}h{STRIP_WIDTH}v{height}h-{STRIP_WIDTH}z"
        paths[kind] = paths.get(kind, "") + bar
    return paths


def strip(marks: Sequence[Mapping[str, Any]]) -> Strip:
    """Of `{scheduled_for, status}`, oldest first."""
    shown = marks[-STRIP_MARKS:]
    paths: dict[str, str] = {}
    failures: list[tuple[int, Mapping[str, Any]]] = []
    for index, mark in enumerate(shown, STRIP_MARKS - len(shown)):
        status, x = mark["status"], index * STRIP_STEP
        if status in BAD:
            failures.append((x, mark))
            continue
        y = 4 if status == "succeeded" else 8
        paths[status] = f"{paths.get(status, '')}M{x} {y}h{STRIP_WIDTH}v{STRIP_HEIGHT - y}h-{STRIP_WIDTH}z"
    return Strip(len(shown), paths, failures)


def bars(counts: Sequence[Mapping[str, int]]) -> Bars:
    """One bar for each mapping of outcome to count, the first outcome lowest."""
    top = round_up(max((sum(each.values()) for each in counts), default=0))
    step = WIDTH / max(len(counts), 1)
    return Bars(top, [_stack(each, top, index * step, step) for index, each in enumerate(counts)])


def _stack(counts: Mapping[str, int], top: int, x: float, step: float) -> list[Block]:
    placed: list[Block] = []
    y = HEIGHT
    for kind, count in counts.items():
        if count:
            height = min(max(count / top * HEIGHT, SEEN_MIN), y)
            y -= height
            placed.append(Block(kind, _tidy(x + step * GAP_SHARE / 2), _tidy(y), _tidy(step * (1 - GAP_SHARE)), height))
    return placed


def line(values: Sequence[float | None], top: float) -> str:
    """The `d` of a path through the middles of as many columns as there are values; it breaks where one is missing.

    A value by itself is a short stroke, so that it is seen.
    """
    step = WIDTH / max(len(values), 1)
    parts: list[str] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        x, y = _tidy((index + 0.5) * step), _tidy(HEIGHT - value / top * HEIGHT)
        follows = index > 0 and values[index - 1] is not None
        parts.append(f"L{x} {y}" if follows else f"M{x} {y}")
        if not follows and (index + 1 == len(values) or values[index + 1] is None):
            parts.append(f"h{_tidy(step / 3)}")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis from 1 up to a power of ten: what is usual and what is rare are both seen on it."""

    top: int

    @classmethod
    def up_to(cls, value: float) -> Scale:
        return cls(10 ** max(1, math.ceil(math.log10(max(value, 1)))))

    def place(self, value: float | None) -> float | None:
        """Between 0 and 1; None for None."""
        return None if value is None else math.log10(max(value, 1)) / math.log10(self.top)

    def ticks(self) -> list[tuple[int, float]]:
        """The powers of ten from the top, and how far below it each stands, in percent."""
        count = round(math.log10(self.top))
        return [(10**power, _tidy(100 - power / count * 100)) for power in range(count, -1, -1)]


def dots(points: Sequence[Mapping[str, Any]], top: float) -> list[Block]:
    """A thin bar for each `{at, duration_ms, status}`, from the first instant at the left to the last at the right."""
    if not points:
        return []
    instants = [read_instant(each["at"]).timestamp() for each in points]
    span = max(instants[-1] - instants[0], 1.0)
    return [
        Block(
            each["status"],
            _tidy((at - instants[0]) / span * (WIDTH - DOT_WIDTH)),
            _tidy(HEIGHT - (height := max(each["duration_ms"] / top * HEIGHT, SEEN_MIN))),
            DOT_WIDTH,
            _tidy(height),
        )
        for at, each in zip(instants, points, strict=True)
    ]


def round_up(value: float) -> int:
    """The next of 1, 2, 3, 5, 10, 20 ...: a number that one can read at the top of an axis."""
    size = 1
    while size * STEPS[-1] < value:
        size *= 10
    return next(step * size for step in STEPS if step * size >= value)


def _tidy(value: float) -> float:
    return round(value, 1)
