"""Cron fields as sets: what an expression means, apart from how it is written.

Owns reading a cron expression of five or six fields into sets and writing sets in one canonical form. It must never
compute an instant (zerocron.core.schedule does) and never know a language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from zerocron.core.schedule.cron_parse import Cron

ALL_MINUTES: Final = frozenset(range(60))
ALL_HOURS: Final = frozenset(range(24))
ALL_DAYS: Final = frozenset(range(1, 32))
ALL_MONTHS: Final = frozenset(range(1, 13))
ALL_WEEKDAYS: Final = frozenset(range(7))
LONGEST_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

LAST: Final = -1  # the last one: of a weekday in `nth`, of the month in `dates`
LAST_WEEKDAY: Final = -2  # in `dates`: the last Monday-to-Friday of the month (LW)

_MONTHS: Final = dict(
    zip(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], range(1, 13), strict=True)
)
_WEEKDAYS: Final = dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True))
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ATOM: Final = rf"(?:[\d*?,/#LW-]|{'|'.join([*_MONTHS, *_WEEKDAYS])})+"
# The first field is a minute or a second: "mon, tue, wed, thu, fri" is a phrase.
_LOOKS_LIKE_CRON: Final = re.compile(rf"@\w+|(?=\S*[\d*?]){_ATOM}(?:\s+{_ATOM}){{4,6}}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fields:
    """The meaning of a cron expression. A full set restricts nothing; `weekdays` is empty where only `nth` counts.

    `wild` tells a rhythm from times of the day: minute or hour begins with `*`. It matters when the clocks change: a
    rhythm follows the wall clock literally, a time of day is met exactly once (see core/schedule/cron_parse.py).
    """

    seconds: frozenset[int] = frozenset({0})
    minutes: frozenset[int] = frozenset({0})
    hours: frozenset[int] = frozenset({0})
    dates: frozenset[int] = ALL_DAYS
    months: frozenset[int] = ALL_MONTHS
    weekdays: frozenset[int] = ALL_WEEKDAYS
    nth: frozenset[tuple[int, int]] = frozenset()  # (weekday, 1 to 5 or LAST)
    wild: bool = False

    def possible(self) -> bool:
        """False for a date that no year has, such as 30 February."""
        ordinary = {d for d in self.dates if d > 0}
        return len(ordinary) < len(self.dates) or any(
            d <= LONGEST_MONTH[month - 1] for d in ordinary for month in self.months
        )


def looks_like_cron(text: str) -> bool:
    """Whether a person pasted an expression, right or wrong."""
    return _LOOKS_LIKE_CRON.fullmatch(text.strip()) is not None


def normal(expression: str) -> str:
    """The expression as core/schedule writes it: capitals, single spaces, no nickname, `*` for `?`."""
    parts = _NICKNAMES.get(expression.strip().lower(), expression).upper().split()
    return " ".join("*" if part == "?" else part for part in parts)


def parse(expression: str) -> Fields | None:
    """The sets of an expression of five fields, or six with leading seconds; None when it is not one."""
    text = _NICKNAMES.get(expression.strip().lower(), expression)
    parts = text.split()
    if len(parts) == 5:
        parts = ["0", *parts]
    if len(parts) != 6:
        return None
    seconds = _plain(parts[0], 0, 59)
    minutes = _plain(parts[1], 0, 59)
    hours = _plain(parts[2], 0, 23)
    dates = _dates(parts[3])
    months = _plain(parts[4], 1, 12, _MONTHS)
    week = _week(parts[5])
    if seconds is None or minutes is None or hours is None or dates is None or months is None or week is None:
        return None
    wild = parts[1].startswith("*") or parts[2].startswith("*")
    return Fields(seconds, minutes, hours, dates, months, week[0], week[1], wild)


def of_cron(cron: Cron) -> Fields | None:
    """The sets of an expression compiled by core/schedule; None for what these sets cannot hold (years, `15W`)."""
    days, nearest, last_day, last_weekday = cron.of_month
    if nearest or cron.years is not None:
        return None
    dates, weekdays = ALL_DAYS, ALL_WEEKDAYS
    nth: frozenset[tuple[int, int]] = frozenset()
    if len(days) < len(ALL_DAYS):
        dates = frozenset([*days, *[LAST] * last_day, *[LAST_WEEKDAY] * last_weekday])
    if len(cron.of_week.days) < len(ALL_WEEKDAYS):
        weekdays = frozenset(cron.of_week.days)
        nth = frozenset((day, n or LAST) for day, n in cron.of_week.nth)
    if cron.either_day and (dates == ALL_DAYS or weekdays == ALL_WEEKDAYS):  # `0 9 1-31 * 1`: either is every day
        dates, weekdays, nth = ALL_DAYS, ALL_WEEKDAYS, frozenset()
    times = frozenset(cron.seconds), frozenset(cron.minutes), frozenset(cron.hours)
    return Fields(*times, dates, frozenset(cron.months), weekdays, nth, cron.rhythm)


def write(fields: Fields) -> str:
    """The canonical text: rising order, ranges from three in a row on; `*` and `*/n` only in a rhythm."""
    parts = [
        _text(fields.minutes, 0, 59, stars=fields.wild),
        _text(fields.hours, 0, 23, stars=fields.wild),
        _dates_text(fields.dates),
        "*" if fields.months == ALL_MONTHS else _runs(sorted(fields.months)),
        _week_text(fields),
    ]
    if fields.seconds != {0}:
        parts.insert(0, _text(fields.seconds, 0, 59, stars=True))
    return " ".join(parts)


def _number(text: str, low: int, high: int, names: dict[str, int]) -> int | None:
    value = names.get(text.lower())
    if value is None and text.isascii() and text.isdigit() and len(text) <= 2:
        value = int(text)
    return value if value is not None and low <= value <= high else None


def _plain(text: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int] | None:
    """A field of lists, ranges (also wrapping ones) and steps."""
    found: set[int] = set()
    for item in text.split(","):
        body, slash, step_text = item.partition("/")
        step = _number(step_text, 1, 99, {}) if slash else 1
        if step is None:
            return None
        first, dash, last = body.partition("-")
        if body in ("*", "?"):
            found.update(range(low, high + 1, step))
            continue
        start = _number(first, low, high, names or {})
        end = _number(last, low, high, names or {}) if dash else (high if slash else start)
        if start is None or end is None:
            return None
        span = range(start, end + 1) if start <= end else [*range(start, high + 1), *range(low, end + 1)]
        found.update(span[::step])
    return frozenset(found)


def _dates(text: str) -> frozenset[int] | None:
    found: set[int] = set()
    for item in text.upper().split(","):
        if item in ("L", "LW"):
            found.add(LAST if item == "L" else LAST_WEEKDAY)
        elif (plain := _plain(item, 1, 31)) is not None:
            found |= plain
        else:
            return None
    return frozenset(found)


def _week(text: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]] | None:
    plain: set[int] = set()
    nth: set[tuple[int, int]] = set()
    for item in text.upper().split(","):
        if "#" in item or (item.endswith("L") and item != "L"):
            name, _, order_text = item.partition("#")
            day = _number(name.removesuffix("L"), 0, 7, _WEEKDAYS)
            order = _number(order_text, 1, 5, {}) if "#" in item else LAST
            if day is None or order is None or ("#" in item and name.endswith("L")):
                return None
            nth.add((day % 7, order))
        elif item in ("*", "?"):
            plain |= ALL_WEEKDAYS
        elif (days := _weekday_item(item)) is not None:
            plain |= days
        else:
            return None
    return frozenset(plain), frozenset(nth)


def _weekday_item(item: str) -> frozenset[int] | None:
    """7 is Sunday too: `5-7` wraps to `5-0`, `5/2` runs up to 7, and only `0-7` is the whole week twice named."""
    body, slash, step = item.partition("/")
    if slash and body != "*" and "-" not in body:
        body += "-7"
    body = "*" if body == "0-7" else body.replace("7", "0")
    return _plain(body + slash + step, 0, 6, _WEEKDAYS)


def step_of(values: Iterable[int]) -> int:
    """The constant distance between three or more values, or 0."""
    ordered = sorted(values)
    gaps = {b - a for a, b in pairwise(ordered)}
    return gaps.pop() if len(ordered) > 2 and len(gaps) == 1 else 0


def _text(values: frozenset[int], low: int, high: int, *, stars: bool) -> str:
    ordered = sorted(values)
    for step in range(1, (high - low + 1) // 2 + 1) if stars else ():
        if ordered == list(range(low, high + 1, step)):
            return f"*/{step}" if step > 1 else "*"
    step = step_of(ordered)
    if step > 1 and len(ordered) > 3:
        return f"{ordered[0]}-{ordered[-1]}/{step}"
    return _runs(ordered)


def _runs(ordered: list[int]) -> str:
    """`1-5`, `1,3,5-7`: a run is written as a range from three values on."""
    pieces: list[str] = []
    start = 0
    for i in range(1, len(ordered) + 1):
        if i == len(ordered) or ordered[i] != ordered[i - 1] + 1:
            run = ordered[start:i]
            pieces += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(value) for value in run]
            start = i
    return ",".join(pieces)


def _dates_text(dates: frozenset[int]) -> str:
    plain = frozenset(date for date in dates if date > 0)
    pieces = ["*" if plain == ALL_DAYS else _runs(sorted(plain))] if plain else []
    return ",".join(pieces + ["L"] * (LAST in dates) + ["LW"] * (LAST_WEEKDAY in dates))


def _week_text(fields: Fields) -> str:
    pieces = ["*" if len(fields.weekdays) == 7 else _runs(sorted(fields.weekdays))]
    by_order = sorted(fields.nth, key=lambda pair: (pair[1] if pair[1] > 0 else 9, pair[0]))
    pieces += [f"{day}L" if order == LAST else f"{day}#{order}" for day, order in by_order]
    return ",".join(piece for piece in pieces if piece)
