"""The plan: one draft becomes cron fields, an interval or an instant, exactly, or is refused with what comes near.

Owns every judgement about meaning: which hour "8 in the evening" is, what a window's last run is, what cron can say.
It must never guess without a note and never know a language: reasons, notes and ideas are values that api.py words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from . import meaning as m
from . import zones
from .draft import (
    Draft,
    Idea,
    Instant,
    Interval,
    Raw,
    Refused,
    SaidTwice,
    gather,
    hours_of,
    minutes_of,
    rhythm,
    simple_ideas,
    weekdays,
)
from .fields import (
    ALL_DAYS,
    ALL_HOURS,
    ALL_MINUTES,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    LAST,
    LAST_WEEKDAY,
    LONGEST_MONTH,
    Fields,
    write,
)
from .instants import moment
from .refusals import ideas_for
from .times import exact, half_known, part_hours, resolve, window_times

LONGEST_INTERVAL_S: Final = 366 * 86_400
_SEPARABLE: Final = ("bounded", "exception", "holiday", "loose", "random", "zone", "zone_abbreviation", "zone_offset")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the phrase means, the zone it named, and what was assumed (keys of NOTES with their detail)."""

    what: Fields | Interval | Instant
    zone: str | None
    notes: tuple[tuple[str, str], ...]


def plan(pieces: Sequence[Any], timezone: str, now: int) -> Plan:
    """One plan, or Refused."""
    zone = _zone(pieces, timezone, now)
    for at, piece in enumerate(pieces):
        if isinstance(piece, m.No):
            ideas = _instead(pieces, at, piece, zone or timezone, now) or ideas_for(piece, pieces)
            raise Refused(piece.reason, ideas=ideas, zone=piece.zone or zone)
    try:
        draft = gather(pieces)
    except SaidTwice as twice:
        raise Refused("two_schedules", ideas=_halves(pieces, twice.at, timezone, now), zone=zone) from None
    notes: list[tuple[str, str]] = []
    try:
        what = _decide(draft, notes, zone or timezone, now)
    except Refused as refused:
        refused.zone = refused.zone or zone
        raise
    return Plan(what, zone, tuple(dict.fromkeys(notes)))


def _zone(pieces: Sequence[Any], timezone: str, now: int) -> str | None:
    """The IANA name of the zone that was said."""
    said = next((piece.name for piece in pieces if isinstance(piece, m.Zone)), None)
    if said is None:
        return None
    known = zones.iana(said)
    if known is None:
        rest = [piece for piece in pieces if not isinstance(piece, m.Zone)]
        raise Refused("unknown_zone", said, _rest(rest, len(rest), m.No("zone"), timezone, now))
    return known


def _instead(pieces: Sequence[Any], at: int, no: m.No, timezone: str, now: int) -> list[Idea]:
    """The phrase with what may have been meant in the place of the refused words, or without them."""
    ideas: list[Idea] = []
    for piece in no.instead:
        try:
            ideas.append(_decide(gather(_without_no([*pieces[:at], piece, *pieces[at + 1 :]])), [], timezone, now))
        except Refused as refused:
            ideas += refused.ideas
        except SaidTwice:
            continue
    return ideas or _rest(pieces, at, no, timezone, now)


def _rest(pieces: Sequence[Any], at: int, no: m.No, timezone: str, now: int) -> list[Idea]:
    """The phrase without the refused words; words behind them may belong to them, except behind a zone or "about"."""
    rest = [*pieces[:at], *(pieces[at + 1 :] if no.reason.startswith(("zone", "loose")) else ())]
    try:
        return [_decide(gather(_without_no(rest)), [], timezone, now)] if no.reason in _SEPARABLE else []
    except (Refused, SaidTwice):
        return []


def _without_no(pieces: Sequence[Any]) -> list[Any]:
    return [piece for piece in pieces if not isinstance(piece, m.No)]


def _halves(pieces: Sequence[Any], at: int, timezone: str, now: int) -> list[Idea]:
    """Each half of a double phrase, when it is a schedule by itself."""
    ideas: list[Idea] = []
    for half in (pieces[:at], pieces[at:]):
        try:
            ideas.append(_decide(gather(half), [], timezone, now))
        except (Refused, SaidTwice):
            continue
    return ideas


def _decide(draft: Draft, notes: list[tuple[str, str]], timezone: str, now: int) -> Fields | Interval | Instant:
    if draft.moment is not None:
        return moment(draft, draft.moment, notes, timezone, now)
    every = rhythm(draft)
    if every is not None and every.unit in ("second", "minute", "hour"):
        return _often(draft, every, notes)
    return _calendar(draft, every, notes)


# ---- several times a day -------------------------------------------------------------------------------------------


def _often(draft: Draft, every: m.Every, notes: list[tuple[str, str]]) -> Fields | Interval:
    """Every N seconds, minutes or hours: cron where it is exact, else an interval where nothing else is asked."""
    base = _days(draft)
    if draft.clock or draft.part:
        times = [Fields(minutes=frozenset({t.minute}), hours=frozenset({t.hour})) for t in draft.times if t.exists]
        raise Refused("rhythm_and_time", ideas=[*simple_ideas(every, base), *times[:1]])
    seconds = every.n * m.SECONDS[every.unit]
    minutes, rest = divmod(seconds, 60)
    whole = int(minutes) if rest == 0 else 0
    if draft.window:
        if not whole:
            raise Refused("not_exact", ideas=simple_ideas(every, base))
        return _in_window(draft.window, whole, base, notes)
    if whole and whole < 60 and 60 % whole == 0 and not draft.minute and not draft.start:
        fields = replace(base, minutes=minutes_of(whole), hours=ALL_HOURS, wild=True)
    elif whole and whole % 60 == 0 and 1440 % whole == 0:
        fields = _hours(draft, whole // 60, base, notes)
    else:
        return _interval(draft, every, base, notes)
    if every.bare:
        notes.append(("no_every", ""))
    return fields


def _hours(draft: Draft, step: int, base: Fields, notes: list[tuple[str, str]]) -> Fields:
    """Every N hours that divide the day, at a minute or from an hour on."""
    minutes, hour = (draft.minute.minutes if draft.minute else frozenset({0})), 0
    if draft.start:
        time = resolve(draft.start.time, None, notes)
        minutes, hour = frozenset({time.minute}), time.hour
        if step < 12 and hour >= step:
            raise Refused("start_unclear", ideas=_from_start(time, step, base))
        notes.append(("start_is_phase", ""))
    if max(minutes) > 59 or (draft.start and draft.minute):
        raise Refused("bad_time", f"{max(minutes)}")
    hours = frozenset((hour + step * k) % 24 for k in range(24 // step))
    if step == 24 and not draft.start and minutes == {0}:
        notes.append(("no_time", ""))
    return replace(base, minutes=minutes, hours=hours, wild=hours == hours_of(step * 60))


def _from_start(time: m.Time, step: int, base: Fields) -> list[Idea]:
    """From that hour to the end of each day, and all day long."""
    minutes = frozenset({time.minute})
    return [
        replace(base, minutes=minutes, hours=frozenset(range(time.hour, 24, step))),
        replace(base, minutes=minutes, hours=frozenset(range(time.hour % step, 24, step))),
    ]


def _interval(draft: Draft, every: m.Every, base: Fields, notes: list[tuple[str, str]]) -> Interval:
    """A rhythm cron cannot say: an interval, if nothing else is asked of it."""
    seconds = every.n * m.SECONDS[every.unit]
    if seconds < 1 or seconds > LONGEST_INTERVAL_S or seconds * 1000 % 1:
        raise Refused("bad_number")
    if draft.start and seconds < 3600 and 3600 % seconds == 0:
        raise Refused("start_unclear", ideas=_minutes_from_start(draft.start, int(seconds) // 60, base))
    if draft.restricted or draft.minute or draft.start or every.bare or draft.part or draft.clock:
        ideas: list[Idea] = [*simple_ideas(every, base)]
        if seconds < 60 and 60 % seconds == 0:
            each = frozenset(range(0, 60, int(seconds)))
            fast = replace(base, seconds=each, minutes=ALL_MINUTES, hours=ALL_HOURS, wild=True)
            ideas.append(Raw(write(fast)))
        if not draft.restricted:
            ideas.append(Interval(int(seconds * 1000)))
        raise Refused("bare_interval" if every.bare else "not_exact", ideas=ideas)
    notes.append(("interval", ""))
    return Interval(int(seconds * 1000))


def _minutes_from_start(start: m.Start, step: int, base: Fields) -> list[Idea]:
    time = resolve(start.time, None, [])
    rest = [_whole_hours(time.hour, 23, step, base)] if step and time.minute == 0 and time.hour else []
    return [*rest, *simple_ideas(m.every(step, "minute"), base)]


def _in_window(window: m.Window, step: int, base: Fields, notes: list[tuple[str, str]]) -> Fields:
    """A rhythm between two times of each day. The last run is named when it is not the end of the window."""
    start, end = window_times(window, notes)
    length = (end.hour * 60 + end.minute - start.hour * 60 - start.minute) % 1440
    if length == 0:
        raise Refused("window_empty", ideas=simple_ideas(m.every(step, "minute"), base))
    wraps = (end.hour, end.minute) < (start.hour, start.minute)
    if wraps and (base.weekdays, base.dates, base.months, base.nth) != (
        ALL_WEEKDAYS,
        ALL_DAYS,
        ALL_MONTHS,
        frozenset(),
    ):
        raise Refused("window_midnight", ideas=simple_ideas(m.every(step, "minute"), base))
    if step % 60 == 0:
        runs = range(0, length + 1, step)
        fields = replace(
            base,
            minutes=frozenset({start.minute}),
            hours=frozenset((start.hour + run // 60) % 24 for run in runs),
        )
    else:
        fields = _minutes_in_window(start, end, step, base)
    last = max((h - start.hour) % 24 * 60 + max(fields.minutes) for h in fields.hours) + start.hour * 60
    if last % 1440 != end.hour * 60 + end.minute:
        notes.append(("last_run", f"{last // 60 % 24:02}:{last % 60:02}"))
    return fields


def _minutes_in_window(start: m.Time, end: m.Time, step: int, base: Fields) -> Fields:
    """Minutes fill whole hours, so the window must begin on the hour and end on one or at an hour's last run."""
    near = [n for n in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60) if n <= step][-1]
    full = end.minute == 0 or end.minute + near >= 60
    last = end.hour if end.minute else end.hour - 1
    if near != step or start.minute or not full:
        inner = (start.hour + (start.minute > 0), (end.hour if full and end.minute else end.hour - 1) % 24)
        outer = (start.hour, end.hour if end.minute else (end.hour - 1) % 24)
        raise Refused(
            "not_exact" if near != step else "window_edge",
            ideas=[_whole_hours(first, final, near, base) for first, final in dict.fromkeys((outer, inner))],
        )
    return _whole_hours(start.hour, last, step, base)


def _whole_hours(first: int, last: int, step: int, base: Fields) -> Fields:
    return replace(base, minutes=minutes_of(step), hours=m.span(first, last, 24, 0), wild=step < 60)


# ---- days ----------------------------------------------------------------------------------------------------------


def _days(draft: Draft) -> Fields:
    """The days part of the fields: weekdays, or dates, or n-th weekdays, in months."""
    said = [place for place in (draft.days, draft.dates, draft.nth) if place]
    months = draft.months.months if draft.months else ALL_MONTHS
    if len(said) > 1 or (draft.without and (draft.dates or draft.nth)):
        raise Refused("date_and_day", ideas=_either(draft, months))
    if draft.nth:
        return Fields(weekdays=frozenset(), nth=draft.nth.pairs, months=months)
    left = weekdays(draft)
    if not left:
        raise Refused("nothing_left")
    fields = Fields(weekdays=left, dates=draft.dates.dates if draft.dates else ALL_DAYS, months=months)
    if not fields.possible() or any(d > 31 or d == 0 for d in fields.dates):
        raise Refused("bad_date", ideas=_near_dates(fields))
    return fields


def _either(draft: Draft, months: frozenset[int]) -> list[Idea]:
    """Each of two day conditions alone, at the time that was said."""
    time = draft.times[0] if draft.times and draft.times[0].exists else m.Time(0)
    base = Fields(minutes=frozenset({time.minute}), hours=frozenset({time.hour}), months=months)
    ideas: list[Idea] = []
    if draft.days:
        ideas.append(replace(base, weekdays=draft.days.days))
    if draft.dates and all(d <= 31 and d for d in draft.dates.dates):
        ideas.append(replace(base, dates=draft.dates.dates))
    if draft.nth:
        ideas.append(replace(base, weekdays=frozenset(), nth=draft.nth.pairs))
    return ideas


def _near_dates(fields: Fields) -> list[Idea]:
    longest = max(LONGEST_MONTH[month - 1] for month in fields.months)
    return [replace(fields, dates=frozenset({longest})), replace(fields, dates=frozenset({LAST}))]


def _calendar(draft: Draft, every: m.Every | None, notes: list[tuple[str, str]]) -> Fields | Interval:
    """A time on some days."""
    if draft.window:
        base = _days(draft)
        raise Refused("window_alone", ideas=_window_ideas(draft.window, base))
    if draft.minute or draft.start:
        raise Refused("bounded" if draft.start else "minute_alone", ideas=_minute_ideas(draft))
    if every is not None and every.n != 1 and every.unit in ("day", "week"):
        return _every_n_days(draft, every, notes)
    draft = _with_defaults(draft, every, notes)
    base = _days(draft)
    if any(d > 28 for d in base.dates) and base.dates != ALL_DAYS:
        _note_short_months(base, notes)
    if every is None and not draft.restricted:
        _needs_recurrence(draft, notes)
    if draft.months and not (every or draft.days or draft.dates or draft.nth or draft.without):
        first = replace(base, hours=frozenset({9}))
        raise Refused("which_day_of_month", ideas=[first, replace(first, dates=frozenset({1}))])
    return _at_times(draft, base, notes)


def _note_short_months(base: Fields, notes: list[tuple[str, str]]) -> None:
    longest = max(base.dates)
    if any(longest > LONGEST_MONTH[month - 1] for month in base.months):
        notes.append(("short_months", str(longest)))
    elif base.months == {2}:
        notes.append(("leap_day", ""))


def _window_ideas(window: m.Window, base: Fields) -> list[Idea]:
    try:
        start, end = window_times(window, [])
        return [_in_window(m.Window(start, end), step, base, []) for step in (60, 15)]
    except Refused as refused:
        return list(refused.ideas)


def _minute_ideas(draft: Draft) -> list[Idea]:
    if draft.minute and max(draft.minute.minutes) < 60:
        return [Fields(minutes=draft.minute.minutes, hours=ALL_HOURS, wild=True)]
    return []


def _every_n_days(draft: Draft, every: m.Every, notes: list[tuple[str, str]]) -> Interval:
    """Cron has no memory: every other day is an interval, and only when nothing else is asked."""
    if draft.clock or draft.restricted or draft.part:
        base = replace(_days(draft), hours=frozenset({0}))
        try:
            timed = _at_times(draft, base, []) if draft.clock else base
        except Refused:
            timed = base
        reason = "every_n_days" if every.unit == "day" else "every_n_weeks"
        seconds = int(every.n * m.SECONDS[every.unit])
        intervals = [Interval(seconds * 1000)] if 0 < seconds <= LONGEST_INTERVAL_S else []
        raise Refused(reason, ideas=[timed, *_alternate_days(timed), *intervals])
    return _interval(draft, every, replace(_days(draft)), notes)


def _alternate_days(timed: Fields) -> list[Idea]:
    free = timed.weekdays == ALL_WEEKDAYS and timed.dates == ALL_DAYS
    return [replace(timed, weekdays=frozenset({1, 3, 5}))] if free else []


def _with_defaults(draft: Draft, every: m.Every | None, notes: list[tuple[str, str]]) -> Draft:
    """What a rhythm of days, weeks, months or years adds where the phrase is silent."""
    if every is None or every.unit == "day":
        return draft
    if every.unit == "week":
        if not draft.days:
            nine = Fields(hours=frozenset({9}))
            ideas = [replace(nine, weekdays=frozenset({d})) for d in (1, 0)]
            raise Refused("which_day", ideas=[*ideas, Interval(604_800_000)])
        return draft
    months = _months_of(draft, every)
    if every.unit == "year":
        if draft.dates and not draft.months:
            raise Refused("day_of_year", ideas=[Fields(dates=frozenset({1}), months=frozenset({1}))])
        if draft.nth and not draft.months:
            raise Refused("day_of_year", ideas=[replace(_days(draft), months=frozenset({1}))])
    elif months != ALL_MONTHS:
        notes.append(("months_are", ",".join(map(str, sorted(months)))))
    clear = draft.dates or draft.nth or draft.days
    return replace(
        draft,
        months=m.Months(months) if months != ALL_MONTHS else draft.months,
        dates=draft.dates if clear else m.Dates(frozenset({1})),
    )


def _months_of(draft: Draft, every: m.Every) -> frozenset[int]:
    """Every N months as months of the year; a last day of a quarter falls in the quarter's last month."""
    if every.unit == "year":
        if every.n != 1:
            raise Refused("every_n_years", ideas=[Fields(dates=frozenset({1}), months=frozenset({1}))])
        return draft.months.months if draft.months else frozenset({1})
    step = every.n * (3 if every.unit == "quarter" else 1)
    if step % 1 or step > 12 or 12 % int(step):
        near = [n for n in (1, 2, 3, 4, 6, 12) if n < step][-1:] + [n for n in (1, 2, 3, 4, 6, 12) if n > step][:1]
        ideas = [Fields(dates=frozenset({1}), months=frozenset(range(1, 13, n))) for n in near]
        raise Refused("every_n_months", ideas=ideas)
    if draft.months:
        if step != 1:
            raise Refused("stacked")
        return draft.months.months
    orders = set(draft.dates.dates) if draft.dates else {order for _, order in draft.nth.pairs} if draft.nth else set()
    ends = orders & {LAST, LAST_WEEKDAY} if every.unit == "quarter" else set()
    if ends and ends != orders:
        raise Refused("two_schedules")  # the first day in its first month, the last day in its last
    at_end = bool(ends)
    return frozenset(range(int(step) if at_end else 1, 13, int(step)))


def _needs_recurrence(draft: Draft, notes: list[tuple[str, str]]) -> None:
    """A time alone: exact times mean every day, and a note says so; "at 7" could be many things."""
    if not draft.times:
        likely = part_hours(draft.part) if draft.part else ()
        raise Refused("which_hour" if likely else "no_schedule", ideas=[Fields(hours=frozenset({h})) for h in likely])
    if len(draft.times) == 1 and not exact(draft.times[0]) and not draft.part:
        hour = draft.times[0].hour
        if hour > 24:
            raise Refused("bad_time", f"{hour}")
        hours = [hour, hour + 12] if hour < 12 and draft.times[0].form == "bare" else [hour % 24]
        raise Refused("ambiguous_time", ideas=[Fields(hours=frozenset({h})) for h in hours])
    notes.append(("no_day", ""))


# ---- times ---------------------------------------------------------------------------------------------------------


def _at_times(draft: Draft, base: Fields, notes: list[tuple[str, str]]) -> Fields:
    """The times on those days, if one line of cron says exactly these."""
    if not draft.times:
        if draft.part:
            raise Refused("which_hour", ideas=[replace(base, hours=frozenset({h})) for h in part_hours(draft.part)])
        notes.append(("no_time", ""))
        return base
    if any(t.part for t in draft.times) and any(half_known(t) for t in draft.times):
        raise Refused("ambiguous_time", ideas=_both_halves(draft, base))
    if near := _near_times(draft, base):
        raise Refused("bad_time", near[0], near[1])
    times = {resolve(t, draft.part.part if draft.part else None, notes) for t in draft.times}
    parts = [frozenset(values) for values in zip(*((t.second, t.minute, t.hour) for t in times), strict=True)]
    if len(set(product(*parts))) != len(times):
        alone = sorted((t.hour, t.minute, t.second) for t in times)
        raise Refused("not_one_line", ideas=[_once(base, *time) for time in alone[:3]])
    return replace(base, seconds=parts[0], minutes=parts[1], hours=parts[2])


def _both_halves(draft: Draft, base: Fields) -> list[Idea]:
    """ "8 and 10pm" with the bare hours in the morning, and in the evening."""
    ideas: list[Idea] = []
    halves: tuple[m.Part, ...] = ("am", "pm")
    for part in halves:
        times = tuple(replace(t, part=part) if half_known(t) else t for t in draft.times)
        try:
            ideas.append(_at_times(replace(draft, clock=m.Clock(times)), base, []))
        except Refused:
            continue
    return ideas


def _near_times(draft: Draft, base: Fields) -> tuple[str, list[Idea]] | None:
    """For the first time that no clock shows: how it was said, and its full hour (24:00 is 00:00)."""
    for time in draft.times:
        if not time.exists:
            if time.form != "clock" and time.hour > 99 and time.hour // 100 < 24 and time.hour % 100 < 60:  # 0930
                return f"{time.hour:04}", [_once(base, time.hour // 100, time.hour % 100, 0)]
            hours = [time.hour % 24] if time.hour <= 24 else []
            return f"{time.hour}:{time.minute:02}", [_once(base, hour, 0, 0) for hour in hours]
        if time.part in ("am", "pm") and time.hour > 12:
            return f"{time.hour}:{time.minute:02} {time.part}", [_once(base, time.hour, time.minute, time.second)]
    return None


def _once(base: Fields, hour: int, minute: int, second: int) -> Fields:
    return replace(base, seconds=frozenset({second}), minutes=frozenset({minute}), hours=frozenset({hour}))
