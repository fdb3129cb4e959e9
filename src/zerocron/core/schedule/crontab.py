"""Lines pasted from a crontab: the schedule in them, and what stands around it.

Owns the shape of such a line. It must never judge the schedule (cron_parse.py does) nor look at the command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zerocron.core.schedule.cron_parse import FULL_NAMES

_MOST_LINES = 200
_NAMES = "|".join([*FULL_NAMES, *dict.fromkeys(FULL_NAMES.values())])
_TIME = r"[\d*?][\d*?,/-]*(?<!,)"  # a second, a minute or an hour
_DAY = rf"(?!#)(?:[\d*?,/#LW-]|{_NAMES})+(?<!,)(?!\S)"
_LINE = re.compile(
    rf"(?:(?:CRON_)?TZ=(?P<zone>\S+)\s+)?"
    rf"(?P<schedule>@(?!every\b)[a-z]+|{_TIME}\s+{_TIME}(?:\s+{_DAY}){{3,5}})"
    rf"(?:\s+(?!{_TIME}(?:\s|$))(?P<rest>\S.*))?",  # more fields than a schedule has are no command
    re.IGNORECASE,
)
_SETTING = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `TZ=<zone> <schedule> <rest>`."""

    zone: str | None
    schedule: str
    rest: str  # a user and a command, a comment; empty when there is nothing

    @property
    def alone(self) -> str:
        """The line without its rest."""
        return f"TZ={self.zone} {self.schedule}" if self.zone else self.schedule


def crontab_lines(text: str) -> tuple[Line, ...]:
    """The schedules of a text that is a piece of a crontab; none when it is not, or is just one bare expression."""
    lines = [stripped for line in text.splitlines()[:_MOST_LINES] if (stripped := line.strip())]
    zone: str | None = None
    found: list[Line] = []
    for line in lines:
        if line.startswith("#"):
            continue
        if match := _LINE.fullmatch(line):
            schedule = " ".join(match["schedule"].split())
            found.append(Line(match["zone"] or zone, schedule, match["rest"] or ""))
        elif match := _SETTING.fullmatch(line):
            if match["name"] in ("TZ", "CRON_TZ"):
                zone = match["value"].strip("\"' ") or None
        else:
            return ()
    bare = len(lines) == 1 and len(found) == 1 and not (found[0].zone or found[0].rest)
    return () if bare else tuple(found)
