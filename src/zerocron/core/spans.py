"""Lengths of time as people write them: `30`, `30 s`, `5 min`, `2h`, `1 d`.

Owns both directions; what one writes, the other reads as the same. Pure.
"""

from __future__ import annotations

import re

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SIZES = {"ms": 0.001, "": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "j": 86_400}
_SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,6})?) ?([a-z]{0,3})", re.ASCII)


def span(seconds: float) -> str:
    """A length that somebody set, in its largest whole unit: `30 s`, `90 s`, `1 d`, `0.5 s`."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size and seconds % size == 0), (1, "s"))
    return f"{seconds / size:g} {unit}"


def read_seconds(text: str) -> float:
    """Seconds from `30`, `1.5`, `250ms`, `30s`, `5m`, `5 min`, `2h`, `1d` (in French `1j`).

    Raises ValueError for anything else.
    """
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZES:
        raise ValueError(f"{text!r} is not a length of time. Write seconds, or 30s, 5m, 2h, 1d.")
    return float(match[1]) * _SIZES[match[2]]
