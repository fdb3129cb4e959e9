"""When a job is due: schedules, their words, and the instants they mean.

Pure: no clock, no event loop, no environment. An instant is an `int`, milliseconds since the Unix epoch, UTC.

    reading.py      text -> Schedule: `parse`, for expressions (core/understanding.py is the door for what people type)
    model.py        Schedule, Parsed: what the rest of the house holds
    cron_parse.py   a cron expression -> sets of values, compiled once
    cron_next.py    sets of values + a zone + a policy for clock changes -> slots (next, count, latest)
    clock_changes.py  the days on which that policy matters
    intervals.py    "every 90 minutes", "in 20 minutes", "2027-01-01 09:00"
    zones.py        time zones, from the pinned tzdata package only
    describe.py     a schedule in plain English
    sentences.py    warnings and refusals, in three languages
"""

from zerocron.core.schedule.clock_changes import ClockChange, clock_changes
from zerocron.core.schedule.cron_next import DstPolicy
from zerocron.core.schedule.cron_parse import DayMatch
from zerocron.core.schedule.model import Parsed, Schedule
from zerocron.core.schedule.reading import parse
from zerocron.core.schedule.zones import check_timezone, tzdata_version

__all__ = [
    "ClockChange",
    "DayMatch",
    "DstPolicy",
    "Parsed",
    "Schedule",
    "check_timezone",
    "clock_changes",
    "parse",
    "tzdata_version",
]
