"""Random cron expressions, each made together with what it must mean, and the places and times where clocks change."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import reject
from hypothesis import strategies as st
from tests.core.schedule.oracle import Meaning

from zerocron.core.errors import Invalid
from zerocron.core.schedule import DayMatch, DstPolicy, Parsed, Schedule, parse

Term = tuple[str, frozenset[int]]

WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


def _instant(zone: str, *wall: int) -> int:
    year, month, day, hour = wall
    return int(datetime(year, month, day, hour, tzinfo=ZoneInfo(zone)).timestamp()) // 60 * 60


# (zone, a UTC second some hours before something odd happens to its clocks)
ODD_TIMES = [
    (zone, _instant(zone, *wall))
    for zone, *wall in [
        ("UTC", 2027, 2, 27, 12),
        ("Europe/Paris", 2027, 3, 27, 12),
        ("Europe/Paris", 2026, 10, 24, 12),
        ("America/New_York", 2027, 3, 13, 12),
        ("America/New_York", 2027, 11, 6, 12),
        ("America/Sao_Paulo", 2018, 11, 3, 12),  # no midnight
        ("America/Sao_Paulo", 2018, 2, 17, 12),  # 23:00 twice
        ("America/Havana", 2027, 11, 6, 12),  # midnight twice
        ("America/St_Johns", 2007, 3, 10, 12),  # at 00:01
        ("America/Nuuk", 2027, 3, 27, 12),  # the last hour of a day
        ("Australia/Lord_Howe", 2026, 10, 3, 12),  # half an hour
        ("Australia/Lord_Howe", 2027, 4, 3, 12),
        ("Pacific/Chatham", 2026, 9, 26, 12),  # 02:45 to 03:45
        ("Antarctica/Troll", 2027, 3, 27, 12),  # two hours
        ("Antarctica/Troll", 2027, 10, 30, 12),
        ("Antarctica/Casey", 2009, 10, 17, 12),  # three hours ahead: still caught up
        ("Antarctica/Casey", 2010, 3, 4, 12),  # three hours back
        ("Pacific/Apia", 2011, 12, 28, 20),  # a whole day struck off
        ("Pacific/Kwajalein", 1993, 8, 20, 2),
        ("Africa/Juba", 2021, 1, 31, 12),
        ("Asia/Kathmandu", 2027, 6, 1, 12),
        ("America/Los_Angeles", 2185, 11, 5, 12),  # a fold over the seam of two cached stretches (see zones.py)
        ("America/Caracas", 2016, 4, 30, 12),  # half an hour for ever
    ]
]


def _term(low: int, high: int, names: dict[int, str]) -> st.SearchStrategy[Term]:
    def written(value: int) -> st.SearchStrategy[str]:
        forms = [str(value), f"{value:02}"]
        if value in names:
            forms += [names[value], names[value].lower()]
        return st.sampled_from(forms)

    value = st.integers(low, high)
    step = st.integers(1, high - low + 6)

    @st.composite
    def one(draw: st.DrawFn) -> Term:
        form = draw(st.sampled_from(["value", "value", "range", "range/step", "value/step", "*/step", "*"]))
        if form == "*":
            return "*", frozenset(range(low, high + 1))
        if form == "*/step":
            by = draw(step)
            return f"*/{by}", frozenset(range(low, high + 1)[::by])
        first = draw(value)
        text = draw(written(first))
        if form == "value":
            return text, frozenset({first})
        by = draw(step)
        if form == "value/step":
            return f"{text}/{by}", frozenset(range(first, high + 1)[::by])
        last = draw(value)
        text = f"{text}-{draw(written(last))}"
        walk = _walk(low, high, first, last)
        if form == "range/step":
            return f"{text}/{by}", frozenset(walk[::by])
        return text, frozenset(walk)

    return one()


def _walk(low: int, high: int, first: int, last: int) -> list[int]:
    """The values of first-last in order; a range that runs backwards starts again after the last value."""
    if first <= last:
        return list(range(first, last + 1))
    if high == 7:  # weekdays, with Sunday at both ends
        days = [first % 7]
        while days[-1] != last:
            days.append((days[-1] + 1) % 7)
        return days
    return [*range(first, high + 1), *range(low, last + 1)]


def field(low: int, high: int, names: dict[int, str] | None = None) -> st.SearchStrategy[Term]:
    """A list of one to three terms, and its values."""

    def joined(terms: list[Term]) -> Term:
        return ",".join(text for text, _ in terms), frozenset().union(*(values for _, values in terms))

    return st.lists(_term(low, high, names or {}), min_size=1, max_size=3).map(joined)


MINUTE = field(0, 59)
HOUR = field(0, 23)
DAY = field(1, 31)
MONTH = st.one_of(st.just(("*", frozenset(range(1, 13)))), field(1, 12, dict(enumerate(MONTHS, 1))))
WEEKDAY = field(0, 7, dict(enumerate(WEEKDAYS)))
ANY_DAY: Term = ("*", frozenset(range(1, 32)))
ANY_WEEKDAY: Term = ("*", frozenset(range(8)))


POLICIES: st.SearchStrategy[DstPolicy] = st.sampled_from(["run_once", "skip", "run_both"])


def attempt(
    text: str, timezone: str, now: int, *, dst: DstPolicy = "run_once", day_match: DayMatch = "either"
) -> Parsed | Invalid:
    """What the product makes of a text; anything but these two outcomes is a failure of the test that asked."""
    try:
        return parse(text, timezone=timezone, now=now, dst=dst, day_match=day_match)
    except Invalid as refusal:
        return refusal


@st.composite
def meanings(draw: st.DrawFn, *, with_seconds: bool = False) -> Meaning:
    minute, hour, month = draw(MINUTE), draw(HOUR), draw(MONTH)
    day = draw(st.one_of(st.just(ANY_DAY), DAY))
    weekday = draw(st.one_of(st.just(ANY_WEEKDAY), WEEKDAY))
    day_text, weekday_text = day[0], weekday[0]
    last_day = last_weekday = False
    nearest: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()
    special = draw(st.sampled_from(["", "", "", "L", "LW", "W", "#", "5L"]))
    if special == "L":
        day_text, last_day = f"{day_text},L", True
    elif special == "LW":
        day_text, last_weekday = f"{day_text},lw", True
    elif special == "W":
        wanted = draw(st.integers(1, 31))
        day_text, nearest = f"{wanted}W", frozenset({wanted})
        day = (day_text, frozenset())
    elif special == "#":
        which, n = draw(st.integers(0, 7)), draw(st.integers(1, 5))
        weekday_text, nth = f"{which}#{n}", frozenset({(which % 7, n)})
        weekday = (weekday_text, frozenset())
    elif special == "5L":
        which = draw(st.integers(0, 7))
        weekday_text, nth = f"{which}L", frozenset({(which % 7, 0)})
        weekday = (weekday_text, frozenset())
    fields = [minute[0], hour[0], day_text, month[0], weekday_text]
    seconds: Term = ("0", frozenset({0}))
    if with_seconds:
        seconds = draw(MINUTE)
        fields.insert(0, seconds[0])
    blank = draw(st.sampled_from([" ", "  ", "\t"]))
    return Meaning(
        text=blank.join(fields),
        seconds=seconds[1],
        minutes=minute[1],
        hours=hour[1],
        days=day[1],
        months=month[1],
        weekdays=frozenset(value % 7 for value in weekday[1]),
        last_day=last_day,
        last_weekday=last_weekday,
        nth=nth,
        nearest=nearest,
        both_days=day_text.startswith("*") or weekday_text.startswith("*"),
        rhythm=minute[0].startswith("*") or hour[0].startswith("*"),
        has_seconds=with_seconds,
    )


@st.composite
def fixed_times(draw: st.DrawFn, *, with_seconds: bool = False) -> Meaning:
    """At a few times of every day, mostly in the small hours: the schedules that clock changes are about."""
    minutes = draw(st.frozensets(st.sampled_from([0, 1, 15, 30, 45, 59]), min_size=1, max_size=4))
    hours = draw(st.frozensets(st.sampled_from([0, 0, 1, 2, 2, 3, 4, 12, 21, 22, 23]), min_size=1, max_size=4))
    seconds = draw(st.frozensets(st.sampled_from([0, 30, 59]), min_size=1)) if with_seconds else frozenset({0})
    fields = [minutes, hours] if not with_seconds else [seconds, minutes, hours]
    return Meaning(
        text=" ".join([*(",".join(map(str, sorted(values))) for values in fields), "* * *"]),
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days=ANY_DAY[1],
        months=frozenset(range(1, 13)),
        weekdays=frozenset(range(7)),
        rhythm=False,
        has_seconds=with_seconds,
    )


@st.composite
def asked(draw: st.DrawFn, meaning: Meaning) -> tuple[Meaning, DayMatch]:
    """The meaning under a policy for clock changes and a rule for the day fields, drawn."""
    day_match: DayMatch = draw(st.sampled_from(["either", "either", "both"]))
    meaning = replace(meaning, dst=draw(POLICIES), both_days=meaning.both_days or day_match == "both")
    return meaning, day_match


def compiled(meaning: Meaning, zone: str, now: int, day_match: DayMatch = "either") -> Schedule:
    """The schedule as the product reads it; expressions that never fire are none."""
    outcome = attempt(meaning.text, zone, now, dst=meaning.dst, day_match=day_match)
    if isinstance(outcome, Invalid):
        assert "never fire" in outcome.message
        reject()
    return outcome.schedule
