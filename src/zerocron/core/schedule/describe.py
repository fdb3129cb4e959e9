"""A schedule in plain English, from its meaning and not from its text.

Owns wording only. It must never decide when something runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from zerocron.core.schedule.cron_parse import LAST, MONTHS, WEEKDAYS, Cron
from zerocron.core.schedule.zones import segment_at

_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_UNITS = (
    (604_800_000, "week"),
    (86_400_000, "day"),
    (3_600_000, "hour"),
    (60_000, "minute"),
    (1_000, "second"),
    (1, "millisecond"),
)
_FEW = 6  # times of day that are still listed one by one


def describe_interval(every_ms: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if every_ms % size == 0)
    return f"every {unit}" if every_ms == size else f"every {every_ms // size} {unit}s"


def describe_instant(at: int, zone: str) -> str:
    second, ms = divmod(at, 1000)
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second + segment_at(zone, second).offset)
    text = local.strftime("%Y-%m-%d %H:%M")
    if local.second or ms:
        text += local.strftime(":%S") + (f".{ms:03}" if ms else "")
    return f"{text} ({zone})"


def describe_cron(cron: Cron) -> str:
    often, times = _times(cron)
    days = _days(cron)
    if not often:
        text = f"{days} at {times}"
    elif days == "every day":
        text = times
    else:
        text = f"{times}, {days}"
    if len(cron.months) < 12:
        text += f" in {_listed([MONTHS[month - 1] for month in cron.months])}"
    if cron.years is not None:
        years = [str(year) for year in cron.years]
        text += f" in {_listed(years)}" if len(years) <= 5 else f" in {', '.join(years[:5])} and so on"
    return text


def _times(cron: Cron) -> tuple[bool, str]:
    """(whether it is a frequency rather than a few times of day, its words)"""
    seconds, minutes, hours = cron.seconds, cron.minutes, cron.hours
    number = len(hours) * len(minutes) * len(seconds)
    if number <= _FEW or (number == len(hours) <= 2 * _FEW and not _even(hours, 24)):
        clock = "{:02}:{:02}" if seconds == (0,) else "{:02}:{:02}:{:02}"
        return False, _listed([clock.format(h, m, s) for h in hours for m in minutes for s in seconds])
    if len(seconds) > 1:
        text = _repeated(seconds, 60, "second")
        if len(minutes) < 60:
            text += f" of {_named(minutes, 'minute')}"
    elif len(minutes) > 1:
        text = _repeated(minutes, 60, "minute")
    else:
        text = _repeated(hours, 24, "hour") + (f" at minute {minutes[0]}" if minutes[0] else "")
    if seconds[0] and len(seconds) == 1:
        text += f" at second {seconds[0]}"
    if len(hours) < 24 and (len(minutes) > 1 or len(seconds) > 1):
        text += _within(hours, minutes)
    return True, text


def _repeated(values: tuple[int, ...], whole: int, unit: str) -> str:
    """ "every 15 minutes" for values evenly spread over the whole, else "at minute 1, 5 and 9"."""
    if len(values) == whole:
        return f"every {unit}"
    if step := _even(values, whole):
        return f"every {step} {unit}s" + (f" from {unit} {values[0]}" if values[0] else "")
    return f"at {_named(values, unit)}"


def _even(values: tuple[int, ...], whole: int) -> int:
    """The step of values spread evenly over the whole; 0 when they are not."""
    step = whole // len(values)
    return step if len(values) * step == whole and values == tuple(range(values[0], whole, step)) else 0


def _named(values: tuple[int, ...], unit: str) -> str:
    """ "minute 5", "minutes 0 to 10 and 50 to 59": three in a row or more are written as a range."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words = []
    for run in runs:
        words += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(value) for value in run]
    return f"{unit}{'s' if len(values) > 1 else ''} {_listed(words)}"


def _within(hours: tuple[int, ...], minutes: tuple[int, ...]) -> str:
    if hours == tuple(range(hours[0], hours[-1] + 1)):
        return f" from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[-1]:02}"
    return f" in {_named(hours, 'hour')}"


def _days(cron: Cron) -> str:
    of_month, of_week = _of_month(cron), _of_week(cron)
    if cron.either_day:
        return f"{of_month} or {of_week}"
    if of_month and of_week:
        return f"{of_week} falling {of_month}"
    return of_month or of_week or "every day"


def _of_month(cron: Cron) -> str:
    """Words for the day of month field; empty when it allows every day."""
    days, nearest, last_day, last_weekday = cron.of_month
    if len(days) == 31:
        return "on any day of the month" if cron.either_day else ""
    parts = [_named(days, "day")] if days else []
    parts += [f"the weekday nearest day {day}" for day in nearest]
    parts += ["the last weekday"] * last_weekday + ["the last day"] * last_day
    return f"on {_listed(parts)} of the month"


def _of_week(cron: Cron) -> str:
    """Words for the day of week field; empty when it allows every day."""
    days, nth = cron.of_week
    if len(days) == 7:
        return "on any day of the week" if cron.either_day else ""
    parts = []
    if days == (1, 2, 3, 4, 5):
        parts.append("every weekday")
    elif days:
        monday_first = sorted(days, key=lambda day: (day - 1) % 7)
        parts.append(f"every {_listed([WEEKDAYS[day] for day in monday_first])}")
    if nth:
        names = [f"the {_ORDINALS[n]} {WEEKDAYS[day]}" for day, n in nth]
        parts.append(f"on {_listed(names)} of the month")
    return " or ".join(parts)


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
