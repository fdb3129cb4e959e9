"""How instants, lengths of time and numbers are written for one reader: in their language and their time zone.

Owns the filters of the templates. Instants come as the API writes them (RFC 3339, UTC).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_datetime, format_skeleton, format_time, format_timedelta
from babel.numbers import format_decimal, format_percent
from markupsafe import Markup, escape

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def read_instant(text: str) -> datetime:
    """An instant of the API."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Telling:
    """The filters, for one reader. `now` is when the page is made."""

    language: str
    zone: ZoneInfo
    now: datetime

    def when(self, text: str | None, form: str = "short") -> Markup:
        """An instant as a `<time>`: local to the reader, with UTC for whoever points at it.

        `form`: `short` (today without its date), `full` (date, seconds and zone), `ago` (how long it is from now; a
        script keeps it true), `clock` (hours, minutes and seconds), `minute` (hours and minutes).
        """
        if not text:
            return Markup("—")
        at = read_instant(text)
        local = at.astimezone(self.zone)
        forms = {"full": self._full, "ago": self._ago, "clock": self._clock, "minute": self._minute}
        shown = forms.get(form, self._short)(local)
        utc = at.strftime("%Y-%m-%d %H:%M:%S UTC")
        title = utc if form == "full" else f"{self._full(local)} · {utc}"
        live = Markup(' data-live="ago"') if form == "ago" else ""
        return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(at.isoformat(), title, live, shown)

    def _full(self, local: datetime) -> str:
        name = local.tzname() or ""
        return f"{format_datetime(local, 'medium', locale=self.language)} {name}".strip()

    def _clock(self, local: datetime) -> str:
        return format_time(local, "medium", locale=self.language)

    def _minute(self, local: datetime) -> str:
        return format_time(local, "short", locale=self.language)

    def _short(self, local: datetime) -> str:
        today = self.now.astimezone(self.zone)
        if local.date() == today.date():
            return self._clock(local)
        day = format_skeleton("MMMd" if local.year == today.year else "yMMMd", local, locale=self.language)
        return f"{day}, {format_time(local, 'short', locale=self.language)}"

    def _ago(self, local: datetime) -> str:
        return format_timedelta(local - self.now, add_direction=True, locale=self.language, threshold=1.2)

    def length(self, seconds: float | None) -> str:
        """A length of time in its two largest units: 1 h 5 min."""
        if seconds is None:
            return "—"
        if seconds < 1:
            return f"{self.number(round(seconds * 1_000))} ms"
        if seconds < MINUTE:
            return f"{self.number(round(seconds, 1))} s"
        parts = []
        left = round(seconds)
        for size, unit in ((DAY, "d" if self.language == "en" else "j" if self.language == "fr" else "d"), (HOUR, "h")):
            if left >= size:
                parts.append(f"{left // size} {unit}")
                left %= size
        if left >= MINUTE:
            parts.append(f"{left // MINUTE} min")
            left %= MINUTE
        if left:
            parts.append(f"{left} s")
        return " ".join(parts[:2])

    def milliseconds(self, value: float | None) -> str:
        """A measured length of time."""
        if value is None:
            return "—"
        if value < 10:
            return f"{self.number(round(value, 1))} ms"
        return self.length(value / 1_000)

    def number(self, value: float | None) -> str:
        return "—" if value is None else format_decimal(value, locale=self.language)

    def percent(self, ratio: float | None) -> str:
        """A ratio; 100 % only when nothing is missing."""
        if ratio is None:
            return "—"
        if ratio >= 1:
            return format_percent(1.0, locale=self.language)
        pattern = Locale.parse(self.language).percent_formats[None].pattern.replace("#,##0", "#,##0.##")
        return format_percent(min(ratio, 0.9999), format=pattern, locale=self.language)

    def size(self, count: int | None) -> str:
        """Bytes, in units of 1,000."""
        if count is None:
            return "—"
        byte = "o" if self.language == "fr" else "B"
        value, unit = float(count), byte
        for unit in (byte, f"k{byte}", f"M{byte}", f"G{byte}", f"T{byte}"):  # noqa: B007 - the last one is used
            if value < 1_000:
                break
            value /= 1_000
        return f"{self.number(round(value, 1))} {unit}"

    def until(self, text: str | None) -> Markup:
        """A countdown to an instant, which a script keeps going."""
        if not text:
            return Markup("—")
        at = read_instant(text)
        left = max(timedelta(0), at - self.now)
        return Markup('<time datetime="{}" data-live="until" title="{}">{}</time>').format(
            at.isoformat(), escape(self._full(at.astimezone(self.zone))), self.length(math.ceil(left.total_seconds()))
        )
