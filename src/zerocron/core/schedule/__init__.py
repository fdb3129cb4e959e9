"""When a job is due: schedules, their words, and the instants they mean.

Pure: no clock, no event loop, no environment. An instant is an `int`, milliseconds since the Unix epoch, UTC.

    reading.py      text -> Schedule: the one front door, `parse`
    model.py        Schedule, Parsed: what the rest of the house holds
    cron_parse.py   a cron expression -> sets of values, compiled once
    cron_next.py    sets of values + a zone -> slots (next, count, latest)
    intervals.py    "every 90 minutes", "in 20 minutes", "2027-01-01 09:00"
    zones.py        time zones, from the pinned tzdata package only
    describe.py     a schedule in plain English
"""

from zerocron.core.schedule.model import Parsed, Schedule
from zerocron.core.schedule.reading import parse
from zerocron.core.schedule.zones import check_timezone, tzdata_version

__all__ = ["Parsed", "Schedule", "check_timezone", "parse", "tzdata_version"]
