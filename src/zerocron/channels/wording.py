"""What a message says, before any service's form is put around it.

Owns the choice of words, facts and their order, and how instants and lengths of time are written for people: what
matters first, an instant on the clocks of the subject's zone with UTC beside it. A kind of channel takes a `Message`
and escapes every text in it: they are clean (one line, no control characters) but may hold any markup. Must never read
a clock: a notice brings its own instants. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from itertools import pairwise

from zerocron.channels.contract import Envelope
from zerocron.channels.text import many_lines, one_line
from zerocron.channels.words import EN, LANGUAGES, Words
from zerocron.core import phrases
from zerocron.core.errors import Invalid
from zerocron.core.model import Instant
from zerocron.core.notice import OUTPUT_CHARACTERS_MAX, REASON_CHARACTERS_MAX, EventKind, Notice
from zerocron.core.schedule.zones import check_timezone, segment_at

NAME_UNITS_MAX = 100
FACT_UNITS_MAX = 200
LINE_UNITS_MAX = 200
"""Of a title, such as a mail's subject."""

DIGEST_ENTRIES_MAX = 10
DIGEST_LEAD_UNITS_MAX = 150
DIGEST_TITLES_MAX = 2
"""Named in the title of a digest; the rest is counted."""


class Tone(StrEnum):
    """How bad it is, for colours and signs."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    PLAIN = "plain"


TONES = {
    EventKind.JOB_FAILED: Tone.BAD,
    EventKind.JOB_RECOVERED: Tone.GOOD,
    EventKind.JOB_DISABLED: Tone.BAD,
    EventKind.JOB_MISSED: Tone.WARNING,
    EventKind.JOB_SUCCEEDED: Tone.GOOD,
    EventKind.JOB_LATE: Tone.WARNING,
    EventKind.MONITOR_DOWN: Tone.BAD,
    EventKind.MONITOR_UP: Tone.GOOD,
    EventKind.MONITOR_LATE: Tone.WARNING,
    EventKind.CHANNEL_DISABLED: Tone.WARNING,
    EventKind.OUTAGE: Tone.WARNING,
    EventKind.TEST: Tone.PLAIN,
}
SIGNS = {Tone.BAD: "🔴", Tone.WARNING: "🟠", Tone.GOOD: "🟢", Tone.PLAIN: "🔵"}
COLOURS = {Tone.BAD: "#d1242f", Tone.WARNING: "#bf6a02", Tone.GOOD: "#1a7f37", Tone.PLAIN: "#0969da"}
_WORST_FIRST = (Tone.BAD, Tone.WARNING, Tone.PLAIN, Tone.GOOD)

# What `since` is called; everywhere else it is "since".
_SINCE = {
    EventKind.JOB_RECOVERED: "failing_since",
    EventKind.MONITOR_DOWN: "last_ping",
    EventKind.MONITOR_LATE: "last_ping",
    EventKind.MONITOR_UP: "down_since",
}
_BRIEF = frozenset(("since", "at", *_SINCE.values()))
_SAID_BY_REASON = frozenset((EventKind.JOB_MISSED, EventKind.MONITOR_DOWN, EventKind.MONITOR_LATE))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. `lead` is a sentence or more, or empty; `output` may have many lines; `url` is the subject's page."""

    tone: Tone
    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    output: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """What is said. With one entry its title is the message's; a digest tells of `total` events, and `more` how many
    of them it leaves out. `words` has the labels of what a channel adds itself."""

    language: str
    words: Words = field(repr=False)
    title: str
    tone: Tone
    entries: tuple[Entry, ...]
    total: int = 1

    @property
    def is_digest(self) -> bool:
        return self.total > 1

    @property
    def more(self) -> str | None:
        left = self.total - len(self.entries)
        return self.words.more[left > 1].format(count=left) if left else None


def word(envelope: Envelope) -> Message:
    """The message of an envelope, in the language of its first notice."""
    first = envelope.notices[0]
    language = first.language if first.language in LANGUAGES else "en"
    if len(envelope.notices) == 1 and not envelope.more:
        entry = _entry(first, language, envelope.base_url)
        return Message(language, LANGUAGES[language], entry.title, entry.tone, (entry,))
    return _digest(envelope, language)


def text_of(message: Message) -> str:
    """All of a message as plain text: what a mail has beside its HTML, and `${text}` in a template."""
    parts = [message.title]
    for entry in message.entries:
        facts = [f"{label}{message.words.colon}{value}" for label, value in entry.facts]
        if message.is_digest:
            lines = [f"- {entry.title}", *(f"  {line}" for line in (entry.lead, *facts, entry.url) if line)]
            parts.append("\n".join(lines))
            continue
        output = (
            f"{message.words.output}{message.words.colon.rstrip()}\n{_indented(entry.output)}" if entry.output else ""
        )
        link = f"{message.words.open}{message.words.colon}{entry.url}" if entry.url else ""
        parts += [part for part in (entry.lead, "\n".join(facts), output, link) if part]
    if message.more:
        parts.append(message.more)
    return "\n\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def _digest(envelope: Envelope, language: str) -> Message:
    words = LANGUAGES[language]
    shown = envelope.notices[:DIGEST_ENTRIES_MAX]
    entries = tuple(_entry(notice, language, envelope.base_url, is_brief=True) for notice in shown)
    total = len(envelope.notices) + envelope.more
    named = [entry.title for entry in entries[:DIGEST_TITLES_MAX]]
    rest = total - len(named)
    named = [one_line(title, 70) for title in named]
    if rest:
        named.append(words.digest_rest.format(count=rest))
    titles = named[0] if len(named) == 1 else ", ".join(named[:-1]) + words.and_ + named[-1]
    title = one_line(words.digest.format(count=total, titles=titles), LINE_UNITS_MAX)
    tone = min((entry.tone for entry in entries), key=_WORST_FIRST.index)
    return Message(language, words, title, tone, entries, total)


def kept(message: Message, count: int) -> Message:
    """A digest with the first `count` entries, where a service has no room for all."""
    return replace(message, entries=message.entries[:count])


def _entry(notice: Notice, language: str, base_url: str, *, is_brief: bool = False) -> Entry:
    """`is_brief`: as one of many, only who, what and when."""
    words = LANGUAGES[language]
    output = many_lines(notice.output, OUTPUT_CHARACTERS_MAX) if notice.output and not is_brief else None
    lead = " ".join(_lead(notice, words))
    facts = [(key, value) for key, value in _facts(notice, language) if value and (key in _BRIEF or not is_brief)]
    return Entry(
        tone=TONES[notice.kind],
        title=_title(notice, words),
        lead=one_line(lead, DIGEST_LEAD_UNITS_MAX) if is_brief else lead,
        facts=tuple((words.labels[key], value) for key, value in facts),
        output=output or None,
        url=page_of(notice, base_url),
    )


def _title(notice: Notice, words: Words) -> str:
    one, many = words.titles[notice.kind]
    form = many if notice.count > 1 else one
    if notice.reminder:
        form = words.reminders.get(notice.kind, form)
    return one_line(form.format(name=name_of(notice), count=notice.count), LINE_UNITS_MAX)


def name_of(notice: Notice) -> str:
    """The name of the subject, clean; its id where nothing is left of it."""
    return one_line(notice.subject_name, NAME_UNITS_MAX) or one_line(notice.subject_id, NAME_UNITS_MAX) or "?"


def _lead(notice: Notice, words: Words) -> Iterator[str]:
    reason = one_line(notice.reason or "", REASON_CHARACTERS_MAX)
    if reason:
        yield reason if reason.endswith((".", "!", "?", "…")) else reason + "."
    sentence = words.leads[notice.kind]
    if sentence and not (reason and notice.kind in _SAID_BY_REASON):
        if notice.since is not None:
            yield sentence.format(duration=length(notice.at - notice.since, words))
        elif "{duration}" not in sentence:
            yield sentence
    if notice.reminder:
        yield words.again


def _facts(notice: Notice, language: str) -> Iterator[tuple[str, str]]:
    """Label and value, the most telling first."""
    words = LANGUAGES[language]
    is_monitor = notice.kind.startswith("monitor.")
    if notice.since is not None:
        ago = notice.at - notice.since
        since = moment(notice.since, notice.timezone, language)
        yield _SINCE.get(notice.kind, "since"), since + (f" – {length(ago, words)}" if ago >= 1000 else "")
    if notice.slot is not None:
        yield "expected" if is_monitor else "slot", moment(notice.slot, notice.timezone, language)
    yield "at", moment(notice.at, notice.timezone, language)
    if notice.count > 1:
        is_missed = is_monitor or notice.kind == EventKind.JOB_MISSED
        yield "missed" if is_missed else "count", words.times.format(count=notice.count)
    if notice.duration_ms is not None:
        yield "took", length(notice.duration_ms, words)
    if notice.next_at is not None:
        yield "next_ping" if is_monitor else "next", moment(notice.next_at, notice.timezone, language)
    if notice.schedule:
        yield "schedule", one_line(notice.schedule, FACT_UNITS_MAX)
    if notice.tags:
        yield "tags", one_line(", ".join(notice.tags), FACT_UNITS_MAX)


def page_of(notice: Notice, base_url: str) -> str | None:
    """Where one looks at the subject; None where there is no such page, or the server does not know its own URL."""
    noun = notice.kind.partition(".")[0]
    if not base_url or noun not in ("job", "monitor"):
        return None
    return f"{base_url.rstrip('/')}/{noun}s/{notice.subject_id}"


def moment(at: Instant, zone: str, language: str = "en") -> str:
    """`Friday 15 January 2027, 09:00 Europe/Paris (08:00 UTC)`; seconds where there are some."""
    try:
        offset = segment_at(check_timezone(zone), at // 1000).offset
    except Invalid:  # zone data of another node has names that ours lacks
        zone, offset = "UTC", 0
    utc = _EPOCH + timedelta(milliseconds=at)
    local = utc.astimezone(timezone(timedelta(seconds=offset)))
    text = f"{_date(local, language)}, {_clock(local)} {zone}"
    if not offset:
        return text
    return f"{text} ({_clock(utc)} UTC)" if utc.date() == local.date() else f"{text} ({utc:%Y-%m-%d} {_clock(utc)} UTC)"


def _date(local: datetime, language: str) -> str:
    speech = phrases.speech(language)
    weekday = speech.weekdays[(local.weekday() + 1) % 7]
    day = speech.first_day if local.day == 1 else str(local.day)
    date = speech.instant_date.format(day=day, month=speech.months[local.month - 1], year=local.year)
    return f"{weekday} {date.partition(' ')[2]}"  # without "on"


def _clock(when: datetime) -> str:
    return when.strftime("%H:%M:%S" if when.second else "%H:%M")


def length(ms: int, words: Words = EN) -> str:
    """`840 ms`, `1.8 s`, `12 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`: the two largest units."""
    if ms < 1000:
        return f"{max(ms, 0)} ms"
    if ms < 10_000:
        return f"{ms // 100 / 10:g} s".replace(".", words.decimal_mark)
    seconds = ms // 1000
    sizes = ((86_400, words.day_unit), (3_600, "h"), (60, "min"), (1, "s"))
    for (size, unit), (smaller, small) in pairwise(sizes):
        if seconds >= size:
            whole, left = divmod(seconds, size)
            return f"{whole} {unit}" + (f" {left // smaller} {small}" if left // smaller else "")
    return f"{seconds} s"
