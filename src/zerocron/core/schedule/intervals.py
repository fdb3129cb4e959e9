"""Intervals and single instants: their words, and the instants they mean.

Owns "every <n> <unit>", "in <n> <unit>" and ISO 8601 date-times. It must never read a clock: what depends on now is
left to reading.py. Lengths are milliseconds; instants are milliseconds since the Unix epoch, UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from zerocron.core.schedule.cron_parse import shown
from zerocron.core.schedule.sentences import Remark, refusal
from zerocron.core.schedule.zones import END_SECOND, local_to_seconds

LONGEST_INTERVAL = 366 * 86_400_000
_UNITS = {
    1_000: ("s", "sec", "secs", "second", "seconds"),
    60_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000: ("h", "hr", "hrs", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
    604_800_000: ("week", "weeks"),
}
_UNIT_MS = {word: ms for ms, words in _UNITS.items() for word in words}
_LENGTH = re.compile(r"(every|in) ([0-9]+) ?([a-z]+)")
_SINGULAR = {"every second": 1_000, "every minute": 60_000, "every hour": 3_600_000}
_IDEAS = ("every 90 minutes", "every 2 hours", "in 20 minutes", "0 9 * * *")
_GO_LENGTH = re.compile(r"@every (?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")
_INSTANT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ t](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r" ?(?P<offset>z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time: repeated ("every") or waited for once ("in")."""

    word: Literal["every", "in"]
    ms: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant, independent of now."""

    at: int
    remarks: tuple[Remark, ...]


def read_span(text: str) -> Span | None:
    """The span a lower-case text with single spaces means; None when it does not look like one."""
    if text in _SINGULAR:
        return Span("every", _SINGULAR[text])
    if match := _LENGTH.fullmatch(text):
        word, number, unit = match.groups()
        if unit not in _UNIT_MS:
            ideas = (f"{word} {number} minutes",) if len(number) <= 6 else ()
            raise refusal("length_unit", shown(unit), suggestions=ideas)
        return _bounded(word, int(number) * _UNIT_MS[unit])
    if text.startswith("@every"):
        _refuse_go_length(text)
    if text.startswith(("every ", "in ")) or text in ("every", "in"):
        raise refusal("no_interval", shown(text), suggestions=_IDEAS)
    return None


def _bounded(word: str, ms: int) -> Span:
    if word == "in":
        if ms < 1_000:
            raise refusal("wait_bounds", suggestions=("in 1 second",))
        return Span("in", ms)
    if not 1_000 <= ms <= LONGEST_INTERVAL:
        ideas = ("every 1 second",) if ms < 1_000 else ("every 366 days", "0 0 1 1 *")
        raise refusal("interval_bounds", suggestions=ideas)
    return Span("every", ms)


def _refuse_go_length(text: str) -> None:
    suggestions = ["every 90 minutes"]
    if (match := _GO_LENGTH.fullmatch(text)) and any(match.groups()):
        hours, minutes, seconds = (int(group or 0) for group in match.groups())
        total = hours * 3600 + minutes * 60 + seconds
        for size, unit in ((3600, "hours"), (60, "minutes"), (1, "seconds")):
            if total and total % size == 0:
                suggestions = [f"every {total // size} {unit}"]
                break
    raise refusal("go_length", suggestions[0], suggestions=suggestions)


def looks_like_moment(text: str) -> bool:
    """Whether a person wrote an ISO 8601 date, with or without a time: right or wrong."""
    return _INSTANT.fullmatch(" ".join(text.lower().split())) is not None


def read_moment(text: str, zone: str) -> Moment | None:
    """The instant a lower-case ISO 8601 date-time means; None when the text does not look like one."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    remarks: tuple[Remark, ...] = () if match["hour"] else (Remark("midnight_used"),)
    try:
        wall = datetime.fromisoformat(match["date"]).replace(
            hour=int(match["hour"] or 0), minute=int(match["minute"] or 0), second=int(match["second"] or 0), tzinfo=UTC
        )
    except ValueError:
        raise refusal("no_moment", shown(text)) from None
    try:
        offset = _offset(match["offset"])
    except ValueError:
        raise refusal("no_offset", shown(text)) from None
    ms = int((match["fraction"] or "0")[:3].ljust(3, "0"))
    local = int(wall.timestamp())
    if not 0 <= local < END_SECOND - 2 * 86_400:
        raise refusal("moment_bounds", shown(text))
    if offset is not None:
        return Moment((local - offset) * 1000 + ms, remarks)
    seconds = local_to_seconds(zone, local)
    if not seconds:
        later = _wall(local_after_gap(zone, local))
        raise refusal("moment_skipped", shown(text), zone, later, suggestions=(later,))
    if len(seconds) > 1:
        remarks += (Remark("comes_twice", (zone,)),)
    return Moment(seconds[0] * 1000 + ms, remarks)


def _offset(text: str | None) -> int | None:
    """Seconds east of Greenwich of "z", "+05:30", "-0800", "+02"; None for None."""
    if text is None or text == "z":
        return None if text is None else 0
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("the offset must be between -23:59 and +23:59")
    return (hours * 3600 + minutes * 60) * (-1 if text[0] == "-" else 1)


def local_after_gap(zone: str, local: int) -> int:
    """The first whole minute of local time that exists after a local time that does not."""
    minute = -(-local // 60) * 60
    while not local_to_seconds(zone, minute):  # at most a day of minutes: the largest gaps are 24 h
        minute += 60
    return minute


def _wall(local: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=local)).strftime("%Y-%m-%d %H:%M")
