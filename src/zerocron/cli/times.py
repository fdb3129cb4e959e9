"""Instants and durations as people read them: in the machine's own zone, with UTC beside it where it matters.

Pure: `now` is always given. An instant is milliseconds since the epoch, as everywhere.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

from zerocron.core.instants import from_rfc3339
from zerocron.core.model import Instant
from zerocron.core.schedule.zones import segment_at

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(text: str) -> Instant:
    """An instant as the API writes it."""
    return from_rfc3339(text)


def local(value: Instant) -> datetime:
    return _at(value).astimezone()


def in_zone(value: Instant, name: str) -> datetime:
    """The instant on the clocks of a zone, by the same zone data as the schedules."""
    return _at(value).astimezone(timezone(timedelta(seconds=segment_at(name, value // 1000).offset)))


def _at(value: Instant) -> datetime:
    return _EPOCH + timedelta(milliseconds=value)


def here(now: Instant) -> str:
    """What the machine's zone is called in a heading: `CET`, `UTC`, `UTC+05:45`."""
    return zone_name(local(now).tzinfo)


def zone_name(zone: tzinfo | None) -> str:
    name = (zone.tzname(None) if zone is not None else None) or "UTC"
    return f"UTC{name}" if name[:1] in "+-" else name


def relative(value: Instant, now: Instant) -> str:
    """`in 8 s`, `in 14 h`, `3 min ago`, `now`."""
    seconds = abs(value - now) / 1000
    if seconds < 0.5:
        return "now"
    # Two of a unit before it is used: "in 90 min" says more than "in 1 h".
    size, unit = next(
        (size, unit) for size, unit in _UNITS if round(seconds) >= 2 * size or size == 1 or round(seconds) == size
    )
    number = f"{max(1, round(seconds / size))} {unit}"
    return f"in {number}" if value > now else f"{number} ago"


def short(value: Instant, now: Instant) -> str:
    """At most twelve characters: `16:04:30` today, `Mon 02:30` within six days, `Dec 24 02:30`, `2028-12-24`."""
    moment, today = local(value), local(now)
    seconds = moment.strftime(":%S") if moment.second else ""
    days = (moment.date() - today.date()).days
    if days == 0:
        return moment.strftime("%H:%M:%S")
    if abs(days) <= 6:
        return moment.strftime("%a %H:%M") + seconds
    if abs(days) <= 300:
        return moment.strftime("%b %d %H:%M")
    return moment.strftime("%Y-%m-%d")


def row(value: Instant) -> str:
    """Fourteen characters for a column of past times: `11-29 16:04:30`."""
    return local(value).strftime("%m-%d %H:%M:%S")


def full(value: Instant) -> str:
    """`Mon 2026-11-30 09:00:00 CET (08:00:00 UTC)`."""
    moment, utc = local(value), _at(value)
    text = moment.strftime("%a %Y-%m-%d %H:%M:%S") + f" {zone_name(moment.tzinfo)}"
    if not moment.utcoffset():
        return text
    return text + utc.strftime(" (%H:%M:%S UTC)" if utc.date() == moment.date() else " (%Y-%m-%d %H:%M:%S UTC)")


def when(text: str | None, now: Instant) -> str:
    """An instant of the API from here, and in full; `none` where there is none."""
    if text is None:
        return "none"
    at = instant(text)
    return f"{relative(at, now)}, {full(at)}"


def duration(milliseconds: float) -> str:
    """`0.4 ms`, `12 ms`, `1.23 s`, `2 min 5 s`, `1 h 2 min`."""
    if milliseconds < 0.95:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s" if left else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
