"""What the rows of a table mean: small pieces that know nothing of any language.

Owns the vocabulary between the tables and plan.py: rows build these pieces, plan.py joins them into one schedule. A
piece never judges: an hour of 25 is a Time like any other until plan.py refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal

from .fields import ALL_MONTHS, LAST

Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
SECONDS: Final[dict[str, int]] = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}

Form = Literal["bare", "hour", "clock"]  # "7", "7 h", "7:00 or 7am or noon": how sure the hour is
Part = Literal["am", "pm", "morning", "afternoon", "evening", "night"]


@dataclass(frozen=True, slots=True)
class Every:
    """A rhythm: every `n` units. `bare` when the word "every" was left out ("15 min")."""

    n: Decimal
    unit: Unit
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """So many times a unit; the unit may be said elsewhere ("every day twice")."""

    n: int
    unit: Unit | None


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day as it was said."""

    hour: int
    minute: int = 0
    second: int = 0
    form: Form = "clock"
    part: Part | None = None

    @property
    def exists(self) -> bool:
        """Whether a clock shows it."""
        return self.hour < 24 and self.minute < 60 and self.second < 60


@dataclass(frozen=True, slots=True)
class Clock:
    """At these times."""

    times: tuple[Time, ...]


@dataclass(frozen=True, slots=True)
class PartOfDay:
    """In the evening, every morning."""

    part: Part


@dataclass(frozen=True, slots=True)
class Days:
    """On these weekdays, 0 is Sunday."""

    days: frozenset[int]


@dataclass(frozen=True, slots=True)
class Except:
    """Not on these weekdays."""

    days: frozenset[int]


@dataclass(frozen=True, slots=True)
class Nth:
    """The n-th weekdays of the month: (weekday, order), order LAST for the last one."""

    pairs: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Dates:
    """Days of the month; LAST and LAST_WEEKDAY are negative numbers."""

    dates: frozenset[int]


@dataclass(frozen=True, slots=True)
class Months:
    """In these months."""

    months: frozenset[int]


@dataclass(frozen=True, slots=True)
class Minute:
    """At these minutes of the hour."""

    minutes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Start:
    """A rhythm begins at that time."""

    time: Time


@dataclass(frozen=True, slots=True)
class Window:
    """Between two times."""

    start: Time
    end: Time


@dataclass(frozen=True, slots=True)
class Zone:
    """In that time zone: an IANA name, in any case."""

    name: str


@dataclass(frozen=True, slots=True)
class On:
    """On one date."""

    year: int
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """So many days from today."""

    days: int


@dataclass(frozen=True, slots=True)
class After:
    """So long from now."""

    n: Decimal
    unit: Unit


@dataclass(frozen=True, slots=True)
class No:
    """Words that are understood and cannot be a schedule; `reason` is a key of the tables' MESSAGES."""

    reason: str
    n: int = 0  # what the readings need: a number, a unit, weekdays
    unit: Unit | None = None
    days: frozenset[int] = frozenset()
    zone: str = ""
    instead: tuple[Any, ...] = ()  # pieces that may have been meant in its place


_Day = Days | Except | Nth | Dates | Months
_Hour = Clock | PartOfDay | Minute | Start | Window
Piece = Every | Count | _Day | _Hour | Zone | On | Ahead | After | No

# ---- builders: what a row's `build` may be -------------------------------------------------------------------------


def about(_word: Any, times: Any) -> No:
    """A time that is not meant exactly."""
    return No("about", instead=(Clock(times),))


def loosely(build: Callable[..., Any]) -> Callable[..., No]:
    """A rhythm or a wait that is not meant exactly, which `build` makes of the rest of the pattern."""
    return lambda _word, *values: No("loose", instead=(build(*values),))


def give(value: Any) -> Callable[..., Any]:
    """This value, whatever the pattern holds."""
    return lambda *_: value


def same(value: Any) -> Any:
    """The one value of the pattern."""
    return value


def every(n: int | Decimal, unit: Unit, bare: bool = False) -> Every:
    return Every(Decimal(n), unit, bare)


def every_decimal(n: str, unit: Unit) -> Every:
    return Every(Decimal(n), unit)


def every_one(unit: Unit) -> Every:
    return Every(Decimal(1), unit)


def every_two(unit: Unit) -> Every:
    return Every(Decimal(2), unit)


def every_nth(order: int, unit: Unit) -> Every | No:
    """Every second hour is a rhythm; "every 4th day" is a rhythm for some and a date for others."""
    return No("ambiguous_nth_day", n=order) if unit == "day" else Every(Decimal(order), unit)


def day_rhythm(n: int, unit: Unit) -> Every | No:
    """French and Spanish idioms: 15 days are two weeks and 8 days are one, or not."""
    if unit == "day" and n in (8, 15):
        return No("fifteen_days" if n == 15 else "eight_days")
    return Every(Decimal(n), unit)


def every_nth_weekday(order: int, days: frozenset[int]) -> No:
    return No("ambiguous_nth_weekday", n=order, days=days)


def no_days(reason: str) -> Callable[[frozenset[int]], No]:
    """A refusal that needs the weekdays that were said."""
    return lambda days: No(reason, days=days)


def no_weeks(days: frozenset[int]) -> No:
    return No("every_n_weeks", n=2, days=days)


def no_unit(reason: str) -> Callable[[Unit], No]:
    return lambda unit: No(reason, unit=unit)


def hours_or_minutes(first: int, second: int) -> No:
    """Spanish "a las 8 y 20" is 8:20 or 8:00 and 20:00."""
    instead = (Clock((Time(first, second),)), Clock((Time(first), Time(second))))
    return No("ambiguous_minutes", instead=instead)


def no_zone(name: str) -> No:
    return No("zone_abbreviation", zone=name)


def every_and(n: int, unit: Unit, m: int, small: Unit) -> Every | None:
    """1 hour 30 minutes."""
    if unit not in SECONDS or small not in SECONDS or SECONDS[small] >= SECONDS[unit]:
        return None
    return Every(n * Decimal(SECONDS[unit] // SECONDS[small]) + m, small)


def every_and_half(n: int, unit: Unit) -> Every | None:
    """An hour and a half."""
    return Every(n + Decimal("0.5"), unit) if unit in SECONDS else None


def one_and_half(unit: Unit) -> Every | None:
    return every_and_half(1, unit)


def after(n: int, unit: Unit) -> After:
    return After(Decimal(n), unit)


def after_and(n: int, unit: Unit, m: int, small: Unit) -> After | None:
    """In 2 hours and 30 minutes."""
    both = every_and(n, unit, m, small)
    return None if both is None else After(both.n, both.unit)


def after_and_half(n: int, unit: Unit) -> After | None:
    """In an hour and a half."""
    return After(n + Decimal("0.5"), unit) if unit in SECONDS else None


def then(days: int, part: Part) -> tuple[Piece, ...]:
    """So many days from today, in that part of the day."""
    return (Ahead(days), PartOfDay(part))


def tens(tens: int, ones: int) -> int | None:
    """Twenty-five."""
    return tens + ones if 0 < ones < 10 else None


def time_of(hour: int, minute: int | None = None, *, form: Form = "clock", part: Part | None = None) -> Time:
    return Time(hour, minute or 0, 0, form, part)


def clock(text: str) -> Time:
    """`9:30` or `9:30:15`."""
    hour, minute, *second = (int(piece) for piece in text.split(":"))
    return Time(hour, minute, second[0] if second else 0)


def dotted(text: str) -> Time | None:
    """`9.30`: a time only with two digits behind the dot."""
    hour, _, minute = text.partition(".")
    return Time(int(hour[:4]), int(minute)) if len(minute) == 2 else None


def in_part(time: Time, part: Part) -> Time | None:
    """9 in the evening; None when the part of the day was already said."""
    return None if time.part else replace(time, part=part)


def each(part: Part) -> tuple[Piece, ...]:
    """Every morning is every day, in the morning."""
    return (Every(Decimal(1), "day"), PartOfDay(part))


def number_in_part(hour: int, part: Part) -> Time:
    return Time(hour, part=part)


def bare_hour(hour: int) -> Time:
    return Time(hour, form="bare")


def spoken(hour: Time, minutes: int) -> Time | None:
    """Half past eight, ten to nine: minutes are counted from a full hour, backwards when negative."""
    total = hour.hour * 60 + minutes
    if hour.hour == 0 and -60 < minutes < 0:  # ten to midnight
        total += 24 * 60
    if total < 0:
        return None
    return replace(hour, hour=total // 60, minute=total % 60, form="clock")


def union(sets: Iterable[frozenset[Any]]) -> frozenset[Any]:
    return frozenset().union(*sets)


def only(value: int) -> frozenset[int]:
    return frozenset({value})


def span(first: int, last: int, size: int, low: int) -> frozenset[int]:
    """From one to the other, over the end of the week or year if need be."""
    return frozenset((first - low + i) % size + low for i in range((last - first) % size + 1))


def day_span(first: int, last: int) -> frozenset[int]:
    return span(first, last, 7, 0)


def month_span(first: int, last: int) -> frozenset[int]:
    return span(first, last, 12, 1)


def date_number(value: int) -> frozenset[int] | None:
    """A day of the month, right or wrong; a year is none."""
    return only(value) if value < 100 else None


def date_span(first: int, last: int) -> frozenset[int] | None:
    return frozenset(range(first, last + 1)) if 0 < first < last <= 31 else None


Place = frozenset[int] | Literal["quarter", "year"] | None  # "of March", "of the month" (all months), "of the quarter"


def _in(place: Place) -> tuple[Piece, ...]:
    if place == "quarter":
        return (Every(Decimal(1), "quarter"),)
    return (Months(place),) if isinstance(place, frozenset) and place != ALL_MONTHS else ()


def dates_in(dates: frozenset[int], place: Place = None) -> tuple[Piece, ...] | No:
    """Days of a month, a quarter or a year: only the first and the last day of a year have a date in every year."""
    if place == "year":
        first_and_last = {frozenset({1}): (1, 1), frozenset({LAST}): (31, 12)}
        if dates not in first_and_last:
            return No("day_of_year")
        day, month = first_and_last[dates]
        return (Dates(frozenset({day})), Months(frozenset({month})))
    return (Dates(dates), *_in(place))


def months_then_dates(months: frozenset[int], dates: frozenset[int]) -> tuple[Piece, ...] | No:
    """December 25th: the month comes first."""
    return dates_in(dates, months)


def nth_in(orders: frozenset[int], days: frozenset[int], place: Place = None) -> tuple[Piece, ...] | No:
    """Orders by weekdays: the first and third Monday."""
    if place == "year":
        return No("day_of_year")
    if not all(order == LAST or 1 <= order <= 5 for order in orders):
        return No("nth_too_big")
    return (Nth(frozenset((day, order) for day in days for order in orders)), *_in(place))


def minutes(numbers: Iterable[int]) -> Minute:
    return Minute(frozenset(numbers))


def half_of(build: Callable[..., Any], *fixed: Any) -> Callable[..., Any]:
    """The builder with its first arguments given."""
    return lambda *values: build(*fixed, *values)


def day_month_year(day: int, month: int, year: int) -> On | None:
    return On(year, month, day) if 1000 <= year <= 9999 else None


def month_day_year(month: int, day: int, year: int) -> On | None:
    return day_month_year(day, month, year)


def two_months(first: int, last: int) -> Months:
    return Months(month_span(first, last))


def iso(date: str, time: str) -> tuple[Piece, ...]:
    """2027-01-01T09:00."""
    return (on_date(date), Clock((clock(time),)))


def on_date(text: str) -> On:
    year, month, day = (int(piece) for piece in text.split("-"))
    return On(year, month, day)


def flat(pieces: Sequence[Any]) -> list[Any]:
    """Rows may build one piece or a tuple of them."""
    return [one for piece in pieces for one in (piece if isinstance(piece, tuple) else (piece,))]


def nth_day(order: int) -> No:
    return No("ambiguous_nth_day", n=order)
