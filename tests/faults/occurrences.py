"""When a schedule is due, worked out a second time: the checker's own oracle.

Shares no code with `zerocron.core.schedule`, so that one mistake cannot hide itself. Cron with five fields goes through
cronsim; with six (leading seconds) the seconds are walked one by one; intervals and single instants are arithmetic.
Only plain fields are read (`*`, numbers, ranges, lists, steps), and a six-field walk refuses a range with a clock
change in it: fault runs are short and choose their schedules. Instants are milliseconds, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Lowest and highest value of second, minute, hour, day of month, month, day of week."""

WALK_SECONDS_MAX = 2 * 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def occurrences(schedule: Mapping[str, Any], after: int, until: int) -> list[int]:
    """Every slot of a `job_versions.schedule` in (after, until], ascending."""
    if until <= after:
        return []
    if schedule["kind"] == "once":
        return [schedule["at"]] if after < schedule["at"] <= until else []
    if schedule["kind"] == "interval":
        at, every = schedule["at"], schedule["every_ms"]
        first = max(1, (after - at) // every + 1)
        return list(range(at + first * every, until + 1, every))
    policy = (schedule.get("dst", "run_once"), schedule.get("day_match", "either"))
    assert policy == ("run_once", "either"), f"the oracle knows Debian's rules only, not {policy}"
    fields = schedule["cron"].split()
    if len(fields) == 5:
        return list(_simulated(schedule["cron"], schedule["timezone"], after, until))
    assert len(fields) == 6, f"the oracle does not read {schedule['cron']!r}"
    return list(_walked(tuple(fields), schedule["timezone"], after, until))


def following(schedule: Mapping[str, Any], after: int) -> int | None:
    """The first slot later than the instant, looked for in growing steps up to a month."""
    for span in (10_000, 3_600_000, 86_400_000, 32 * 86_400_000):
        if schedule["kind"] == "cron" and len(schedule["cron"].split()) == 6 and span > WALK_SECONDS_MAX * 1000:
            break
        found = occurrences(schedule, after, after + span)
        if found:
            return found[0]
    return None


def _simulated(cron: str, timezone: str, after: int, until: int) -> Iterator[int]:
    # cronsim works in whole minutes: begin a minute early and drop what is not after the instant.
    start = (_EPOCH + timedelta(milliseconds=after - 60_000)).astimezone(ZoneInfo(timezone))
    for moment in CronSim(cron, start):
        instant = round(moment.timestamp() * 1000)
        if instant > until:
            return
        if instant > after:
            yield instant


def _walked(fields: tuple[str, ...], timezone: str, after: int, until: int) -> Iterator[int]:
    first, last = after // 1000 + 1, until // 1000
    assert last - first <= WALK_SECONDS_MAX, "a walk is for short ranges"
    zone = ZoneInfo(timezone)
    shift = _local(first, zone).utcoffset()
    assert shift == _local(last, zone).utcoffset(), "a walk does not cross a clock change"
    seconds, minutes, hours, days, months, weekdays = _sets(fields)
    either = not fields[3].startswith("*") and not fields[5].startswith("*")
    for second in range(first, last + 1):
        local = _local(second, zone)
        if local.second not in seconds or local.minute not in minutes or local.hour not in hours:
            continue
        by_day, by_weekday = local.day in days, local.isoweekday() % 7 in weekdays
        if local.month in months and (by_day or by_weekday if either else by_day and by_weekday):
            yield second * 1000


def _local(second: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(second, UTC).astimezone(zone)


@lru_cache(maxsize=256)
def _sets(fields: tuple[str, ...]) -> tuple[frozenset[int], ...]:
    sets = [_values(text, low, high) for text, (low, high) in zip(fields, _RANGES, strict=True)]
    sets[5] = frozenset(value % 7 for value in sets[5])
    return tuple(sets)


def _values(text: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        begin, dash, end = span.partition("-")
        if span == "*":
            first, last = low, high
        elif dash:
            first, last = int(begin), int(end)
        else:
            first, last = int(begin), high if slash else int(begin)
        values.update(range(first, last + 1, int(step) if slash else 1))
    return frozenset(values)
