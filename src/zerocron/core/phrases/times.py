"""Hours of the day: what "8 in the evening", "12 am" and "from 9 to 5" are on a clock of 24 hours.

Owns every rule about am, pm and parts of the day. It must never choose where two hours are as likely: it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from . import meaning as m
from .draft import Idea, Refused
from .fields import ALL_HOURS, Fields

# part -> said hour -> hour of the day; an hour that is missing contradicts the part
_PARTS: Final[Mapping[str, Mapping[int, int]]] = {
    "am": {12: 0, **{h: h for h in range(1, 12)}},
    "pm": {12: 12, **{h: h + 12 for h in range(1, 12)}},
    "morning": {h: h for h in range(12)},
    "afternoon": {12: 12, **{h: h + 12 for h in range(1, 9)}, **{h: h for h in range(13, 21)}},
    "evening": {**{h: h + 12 for h in range(4, 12)}, **{h: h for h in range(16, 24)}},
    "night": {12: 0, **{h: h for h in range(6)}, **{h: h + 12 for h in range(6, 12)}, **{h: h for h in range(18, 24)}},
}


def part_hours(part: m.PartOfDay) -> tuple[int, ...]:
    """Hours that are often meant by a part of the day."""
    return {"morning": (8, 9), "afternoon": (14, 15), "evening": (18, 20), "night": (22, 2)}.get(part.part, (9, 21))


def exact(time: m.Time) -> bool:
    """Whether the time names one hour of the day: 9am, 9:30, noon; not "7" nor "7h"."""
    return time.form == "clock" or time.part is not None


def half_known(time: m.Time) -> bool:
    """Whether the time could be in either half of the day, beside another that says its half ("9:30 and 10pm")."""
    return time.part is None and 0 < time.hour < (12 if time.form == "clock" else 13)


def resolve(time: m.Time, part: m.Part | None, notes: list[tuple[str, str]]) -> m.Time:
    """The time on a clock of 24 hours, or Refused."""
    said = f"{time.hour}:{time.minute:02}"
    if not time.exists:
        raise Refused("bad_time", said)
    known = time.part or part
    if known is None:
        if time.form == "bare" and 0 < time.hour < 13:
            notes.append(("bare_hour", f"{time.hour:02}:00"))
        return replace(time, form="clock")
    hour = _PARTS[known].get(time.hour)
    if hour is None:
        raise Refused("bad_time" if known in ("am", "pm") else "part_conflict", said)
    if time.part and part and hour not in _PARTS[part].values():
        raise Refused("part_conflict", f"{hour}:{time.minute:02}")
    return replace(time, hour=hour, form="clock", part=None)


def window_times(window: m.Window, notes: list[tuple[str, str]]) -> tuple[m.Time, m.Time]:
    """Both ends of a window. A bare hour beside an exact one takes the only half of the day that keeps order."""
    start, end = window.start, window.end
    vague = [_vague(start), _vague(end)]
    if not any(vague):
        return resolve(start, None, notes), resolve(end, None, notes)
    if all(vague) and start.hour < end.hour:
        return resolve(start, None, notes), resolve(end, None, notes)
    choices = [
        (a, b)
        for a in (_halves(start) if vague[0] else [resolve(start, None, [])])
        for b in (_halves(end) if vague[1] else [resolve(end, None, [])])
        if (a.hour, a.minute) < (b.hour, b.minute)
    ]
    if len(choices) == 1 and not all(vague):
        return choices[0]
    raise Refused("ambiguous_window", ideas=[_hourly(a, b) for a, b in choices[:3]])


def _vague(time: m.Time) -> bool:
    return time.form == "bare" and time.part is None and 0 < time.hour <= 12


def _halves(time: m.Time) -> list[m.Time]:
    return [replace(time, hour=hour, form="clock") for hour in (time.hour % 12, time.hour % 12 + 12)]


def _hourly(start: m.Time, end: m.Time) -> Idea:
    """An hourly example of a window, to show a reading."""
    hours = frozenset(range(start.hour, end.hour + 1)) if start.hour < end.hour else ALL_HOURS
    return Fields(minutes=frozenset({start.minute}), hours=hours)
