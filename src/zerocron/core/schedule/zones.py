"""Time zones: their names, and when their clocks change.

Owns the only road from a zone name to offsets. It reads the pinned `tzdata` package, never the machine's files
(/usr/share/zoneinfo), so that all nodes of a cluster agree and a stale container cannot move a job.

The rest of the package sees a zone as *segments*: stretches of time with one offset. In each of them local time is
`instant + offset`, plain arithmetic. Instants and local times in this module are whole seconds; a local time counts
from 1970-01-01 00:00 on the wall clock.

What a change of the clocks does to a segment (Debian's cron, and the high-water mark it keeps):

    gap    the wall clock jumps over [gap_from, floor): those local times exist nowhere
    fold   the wall clock goes back: local times below `floor` have been shown before, so this is their second pass
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from zerocron.core.schedule.sentences import Remark, refusal

DAY = 86_400
# Slots exist from 1970-01-01 up to 2500-01-01, both UTC: every search has an end.
FIRST_SECOND = 0
END_SECOND = int(datetime(2500, 1, 1, tzinfo=UTC).timestamp())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CHUNK_BITS = 25  # segments are found and cached by stretches of 2**25 s, about 388 days
_LOOK_BACK = 3 * DAY  # a local time can only have been shown before if that was within the last 26 h


@dataclass(frozen=True, slots=True)
class Segment:
    """[start, end) in UTC seconds with one `offset` (local = UTC + offset). `floor` and `gap_from` are local seconds.

    `gap_from` is `floor` unless the segment begins with a gap.
    """

    start: int
    end: int
    offset: int
    floor: int
    gap_from: int


def segment_at(zone: str, second: int) -> Segment:
    """The segment that holds a UTC second within [FIRST_SECOND, END_SECOND]."""
    segments = _segments(zone, second >> _CHUNK_BITS)
    for segment in segments[:-1]:
        if second < segment.end:
            return segment
    return segments[-1]


def local_to_seconds(zone: str, local: int) -> list[int]:
    """The UTC seconds at which the wall clock shows `local`: none in a gap, two in a fold, ascending."""
    found: list[int] = []
    second = local - DAY
    while second <= local + DAY:
        segment = segment_at(zone, second)
        if segment.start <= local - segment.offset < segment.end:
            found.append(local - segment.offset)
        second = segment.end
    return found


@lru_cache(maxsize=1024)
def changed_hours(zone: str) -> frozenset[int]:
    """The hours of the day that clock changes skip or repeat, in whole or in part; empty for most zones of the world.

    Looked up in 2040, where only standing rules are left.
    """
    hours: set[int] = set()
    for segment in _segments(zone, int(datetime(2040, 1, 1, tzinfo=UTC).timestamp()) >> _CHUNK_BITS):
        has_gap = segment.gap_from < segment.floor
        low = segment.gap_from if has_gap else segment.start + segment.offset
        hours.update(second // 3600 % 24 for second in range(low, segment.floor, 60))
    return frozenset(hours)


@lru_cache(maxsize=4096)
def _segments(zone: str, chunk: int) -> tuple[Segment, ...]:
    """The segments of one chunk, found by asking for the offset once a day and halving where it differs.

    Two changes that cancel out within one day would be missed; a test shows that tzdata has none since 1970.
    """
    info = _load(zone)
    start, end = chunk << _CHUNK_BITS, (chunk + 1) << _CHUNK_BITS
    second = begun = start - _LOOK_BACK
    offset = _offset(info, second)
    gap_from = floor = second + offset
    segments: list[Segment] = []
    while second < end:
        probe = min(second + DAY, end)
        if _offset(info, probe) == offset:
            second = probe
            continue
        changed = _first_change(info, second, probe, offset)
        segments.append(Segment(begun, changed, offset, floor, gap_from))
        shown = max(floor, changed + offset)  # the wall clock's high-water mark
        begun = second = changed
        offset = _offset(info, changed)
        floor = max(shown, changed + offset)
        gap_from = shown if changed + offset > shown else floor
    segments.append(Segment(begun, end, offset, floor, gap_from))
    return tuple(replace(s, start=max(start, s.start)) for s in segments if start < s.end and s.start < s.end)


def _first_change(info: ZoneInfo, low: int, high: int, offset: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(info, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(info: ZoneInfo, second: int) -> int:
    delta = (_EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
    assert delta is not None
    return delta.days * DAY + delta.seconds


# --- names ---------------------------------------------------------------------------------------------------------


def tzdata_version() -> str:
    """The IANA release in use, such as "2026f". Nodes of one cluster must agree on it."""
    return str(importlib.import_module("tzdata").IANA_VERSION)


def check_timezone(name: str) -> str:
    """The name itself if the pinned zone data has it, aliases such as "PRC" included; Invalid otherwise."""
    if name in _names():
        return name
    suggestions = _nearest(name)
    hint = Remark(("zone_use", "zone_meant", "zone_or")[min(len(suggestions), 2)], suggestions[:2])
    if suggestions and suggestions[0].startswith("Etc/GMT"):
        hint = Remark("zone_reversed", (hint,))
    raise refusal("zone", _shown(name), hint, field="timezone", suggestions=suggestions)


_REGIONS = tuple(
    f"{name}/"
    for name in ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


def timezones() -> list[str]:
    """The zones to choose from: UTC, then those of places by name. Old names and fixed distances are left out."""
    return ["UTC", *sorted(name for name in _names() if name.startswith(_REGIONS))]


def same_clocks(one: str, other: str) -> bool:
    """Whether two names are of one zone: Asia/Calcutta is Asia/Kolkata."""
    return one == other or _data(one) == _data(other)


def _data(name: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *check_timezone(name).split("/")).read_bytes()


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    return frozenset(listed) - {"Factory"}  # "Factory" means: nobody has set the zone of this machine


@lru_cache(maxsize=1024)
def _load(name: str) -> ZoneInfo:
    check_timezone(name)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 64 else name[:60] + "...")


def _nearest(name: str) -> tuple[str, ...]:
    """A few names that were probably meant: a known other word for it, its offset, its spelling, its city."""
    if len(name) > 64:
        return ()
    cleaned = "_".join("".join(c for c in name if c.isprintable()).split())
    known = _OTHER_WORDS.get(cleaned.upper()) or _by_offset(cleaned)
    if known:
        return known
    by_lower = {candidate.lower(): candidate for candidate in sorted(_names())}
    lower = cleaned.lower()
    if lower in by_lower:
        return (by_lower[lower],)
    city = lower.rsplit("/", 1)[-1]
    same_city = [full for key, full in by_lower.items() if city and key.rsplit("/", 1)[-1] == city]
    near = difflib.get_close_matches(lower, list(by_lower), n=3, cutoff=0.75)
    return tuple(dict.fromkeys(same_city + [by_lower[key] for key in near]))[:5]


def _by_offset(name: str) -> tuple[str, ...]:
    """Zones for "UTC+2", "GMT-03:30", "+05:30": whole hours have a fixed zone, whose sign is the other way round."""
    text = name.upper().removeprefix("UTC").removeprefix("GMT")
    if text[:1] not in ("+", "-"):
        return ()
    hours, _, minutes = text[1:].partition(":")
    if len(hours) == 4 and not minutes:
        hours, minutes = hours[:2], hours[2:]
    if not (hours.isascii() and hours.isdigit() and len(hours) <= 2 and minutes in ("", "00", "30", "45")):
        return ()
    if minutes in ("", "00"):
        fixed = f"Etc/GMT{'-' if text[0] == '+' else '+'}{int(hours)}" if int(hours) else "Etc/UTC"
        return (fixed,) if fixed in _names() else ()
    return _HALF_HOURS.get(f"{text[0]}{int(hours):02}:{minutes}", ())


_HALF_HOURS = {
    "-09:30": ("Pacific/Marquesas",),
    "-03:30": ("America/St_Johns",),
    "+03:30": ("Asia/Tehran",),
    "+04:30": ("Asia/Kabul",),
    "+05:30": ("Asia/Kolkata", "Asia/Colombo"),
    "+05:45": ("Asia/Kathmandu",),
    "+06:30": ("Asia/Yangon",),
    "+08:45": ("Australia/Eucla",),
    "+09:30": ("Australia/Darwin", "Australia/Adelaide"),
    "+10:30": ("Australia/Lord_Howe",),
    "+12:45": ("Pacific/Chatham",),
}

# Abbreviations are not zones (IST is three of them), and some cities have no entry of their own.
_OTHER_WORDS = {
    "ACST": ("Australia/Darwin", "Australia/Adelaide"),
    "AEDT": ("Australia/Sydney", "Australia/Melbourne"),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AKDT": ("America/Anchorage",),
    "AKST": ("America/Anchorage",),
    "AMERICA/SAN_FRANCISCO": ("America/Los_Angeles",),
    "AMERICA/WASHINGTON": ("America/New_York",),
    "ASIA/BANGALORE": ("Asia/Kolkata",),
    "ASIA/BEIJING": ("Asia/Shanghai",),
    "ASIA/DELHI": ("Asia/Kolkata",),
    "ASIA/MUMBAI": ("Asia/Kolkata",),
    "AST": ("America/Halifax", "America/Puerto_Rico"),
    "AWST": ("Australia/Perth",),
    "BRT": ("America/Sao_Paulo",),
    "BST": ("Europe/London",),
    "CAT": ("Africa/Maputo",),
    "CDT": ("America/Chicago",),
    "CEST": ("Europe/Paris", "Europe/Berlin"),
    "CST": ("America/Chicago", "Asia/Shanghai"),
    "EAT": ("Africa/Nairobi",),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Athens", "Europe/Kyiv"),
    "ET": ("America/New_York",),
    "EUROPE/MUNICH": ("Europe/Berlin",),
    "GST": ("Asia/Dubai",),
    "HKT": ("Asia/Hong_Kong",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "LOCALTIME": ("UTC",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PKT": ("Asia/Karachi",),
    "PST": ("America/Los_Angeles",),
    "PT": ("America/Los_Angeles",),
    "SAST": ("Africa/Johannesburg",),
    "SGT": ("Asia/Singapore",),
    "US/PACIFIC-NEW": ("America/Los_Angeles",),
    "WAT": ("Africa/Lagos",),
    "WEST": ("Europe/Lisbon",),
    "Z": ("UTC",),
}
