"""The front door for a schedule as a person types it, and the words to say it back.

Owns the choice between the readers (core/schedule for expressions, core/phrases for plain language) and the one refusal
a person sees. It must never guess: a text is one schedule, with all that was assumed among the warnings, or it is
refused with what to write instead.

    an expression or an ISO instant    core/schedule decides alone
    a piece of a crontab               explained; only `TZ=<zone> <expression>` is a schedule
    anything else                      core/phrases; core/schedule words the refusal of what is nearly an expression
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from zerocron.core import phrases
from zerocron.core.errors import Invalid
from zerocron.core.instants import to_rfc3339
from zerocron.core.phrases import Code, NotUnderstood, Reading
from zerocron.core.schedule import DayMatch, DstPolicy, Parsed, Schedule, check_timezone, parse
from zerocron.core.schedule.cron_parse import compile_cron
from zerocron.core.schedule.crontab import Line, crontab_lines
from zerocron.core.schedule.describe import describe_cron
from zerocron.core.schedule.intervals import looks_like_moment
from zerocron.core.schedule.reading import LONGEST_TEXT, interval_remarks
from zerocron.core.schedule.repairs import visible
from zerocron.core.schedule.sentences import Refusal, Remark, refusal, say
from zerocron.core.schedule.zones import local_to_seconds, same_clocks, segment_at

DEFAULT_TIMEZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Understood:
    """A schedule, and what the person who typed it should know."""

    schedule: Schedule
    warnings: tuple[str, ...]  # corrections, then what was assumed, then what may surprise
    language: Code | None  # of a phrase; None for an expression or an ISO instant
    corrections: tuple[tuple[str, str], ...]  # slips: (as typed, as read); also among the warnings


@dataclass(frozen=True, slots=True)
class _Asked:
    """Everything but the text."""

    timezone: str
    is_timezone_given: bool
    now: int
    anchor: int | None
    language: str | None
    wording: str | None
    dst: DstPolicy
    day_match: DayMatch

    def spoken(self, found: Code | None) -> str:
        """The language to answer in, for a phrase in `found` (None: no phrase)."""
        return self.wording or self.language or found or "en"


def understand(
    text: str,
    *,
    timezone: str | None = None,
    now: int,
    anchor: int | None = None,
    language: str | None = None,
    wording: str | None = None,
    dst: DstPolicy = "run_once",
    day_match: DayMatch = "either",
) -> Understood:
    """The schedule that a text means. Invalid names the field, `schedule` or `timezone`, and what to give instead.

    `now` is what "tomorrow" and "in 20 minutes" count from; an interval is anchored at `anchor`, or at `now` without
    one. The zone is `timezone`, else the one that the text names, else UTC; a text that names another one than
    `timezone` is refused. Each suggestion of a refusal can be understood in the place of the field it is for.

    What is said about it, warnings and refusals, is in `wording`: without one, in the `language` that the text is read
    in, and that is whichever understands it where none is given (English, for an expression).
    """
    zone = DEFAULT_TIMEZONE if timezone is None else timezone
    asked = _Asked(zone, timezone is not None, now, anchor, language, wording, dst, day_match)
    try:
        if len(text) > LONGEST_TEXT:
            raise refusal("too_long", f"{LONGEST_TEXT:,}", f"{len(text):,}")
        check_timezone(asked.timezone)
        return _read(text, asked)
    except Invalid as refused:
        (fault,) = refused.fields
        suggestions = refused.suggestions
        if fault.field == "schedule":
            suggestions = _proved(suggestions, asked)
            if not suggestions and isinstance(refused, NotUnderstood):
                suggestions = _proved(phrases.LANGUAGES[refused.language].examples, asked)
        message = say(refused.remark, asked.spoken(None)) if isinstance(refused, Refusal) else refused.message
        raise Invalid(message, field=fault.field, suggestions=suggestions) from None


def _proved(suggestions: tuple[str, ...], asked: _Asked) -> tuple[str, ...]:
    """The suggestions that are themselves understood."""
    return tuple(suggestion for suggestion in suggestions if _is_understood(suggestion, asked))


def _is_understood(text: str, asked: _Asked) -> bool:
    try:
        _read(text, asked)
    except Invalid:
        return False
    return True


def _read(text: str, asked: _Asked) -> Understood:
    if lines := crontab_lines(text):
        return _read_crontab(lines, asked, is_one_line=len(text.strip().splitlines()) == 1)
    if phrases.looks_like_cron(text) or looks_like_moment(text):
        return _expression(text, asked.timezone, asked)
    try:
        reading = phrases.read(
            text, language=asked.language, wording=asked.wording, timezone=asked.timezone, now=asked.now
        )
    except NotUnderstood:
        if _is_nearly_an_expression(text):
            return _expression(text, asked.timezone, asked)
        raise
    try:
        return _phrase(reading, asked)
    except Refusal as refused:
        raise Invalid(
            say(refused.remark, asked.spoken(reading.language)), field=refused.field, suggestions=refused.suggestions
        ) from None


# ---- expressions -----------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"[\d*?/,#LW-]+", re.IGNORECASE)


def _expression(text: str, timezone: str, asked: _Asked) -> Understood:
    parsed = parse(
        text, timezone=timezone, now=asked.now, anchor=asked.anchor, dst=asked.dst, day_match=asked.day_match
    )
    warnings = tuple(say(remark, asked.spoken(None)) for remark in parsed.remarks)
    return Understood(parsed.schedule, warnings, None, ())


def _is_nearly_an_expression(text: str) -> bool:
    """Whether core/schedule knows better what is wrong: cron with a slip, or with look-alike letters."""
    cleaned = visible(text)
    words = cleaned.split()[:7]
    fields = [word for word in words[:5] if _FIELD.fullmatch(word)]
    return (
        cleaned.lstrip().startswith("@")
        or any("*" in word and _FIELD.fullmatch(word) for word in words)
        or (len(fields) >= 4 and words[:2] == fields[:2])
        or looks_like_moment(cleaned)
    )


# ---- pieces of a crontab ---------------------------------------------------------------------------------------------

_MOST_LINES_SHOWN = 3
_CALLS_A_URL = re.compile(r"\b(?:curl|wget)\b")


def _read_crontab(lines: tuple[Line, ...], asked: _Asked, *, is_one_line: bool) -> Understood:
    if len(lines) > 1:
        ideas = [line.alone for line in lines[:_MOST_LINES_SHOWN]]
        raise refusal("lines", str(len(lines)), suggestions=ideas)
    line = lines[0]
    zone = asked.timezone if line.zone is None else _zone(_zone_of(line), asked)
    try:
        understood = _expression(line.schedule, zone, asked)
    except Refusal as refused:
        remark = refused.remark
        if line.rest:
            remark = Remark("line_invalid", (Remark(_what_it_is(line)), remark))
        ideas = [replace(line, schedule=suggestion).alone for suggestion in refused.suggestions]
        raise Refusal(remark, suggestions=ideas) from None
    if line.rest:
        suggestion = replace(line, zone=_zone_behind(line) or line.zone).alone
        raise refusal("two_sentences", _explained(line, understood, asked), _advice(line), suggestions=(suggestion,))
    if not is_one_line:
        raise refusal("settings", line.alone, suggestions=(line.alone,))
    return understood


def _zone_of(line: Line) -> str:
    assert line.zone is not None
    try:
        return check_timezone(line.zone)
    except Refusal as refused:
        suggestions = [replace(line, zone=zone).alone for zone in refused.suggestions]
        raise Refusal(refused.remark, suggestions=suggestions) from None


def _zone_behind(line: Line) -> str | None:
    """`0 9 * * * Europe/Paris`: the one word behind an expression, when it is a zone."""
    try:
        return None if line.zone else check_timezone(line.rest.strip("()"))
    except Invalid:
        return None


def _what_it_is(line: Line) -> str:
    """The key of the sentence that says so."""
    if line.rest.startswith("#"):
        return "comment"
    return "zone_apart" if _zone_behind(line) else "command"


def _explained(line: Line, understood: Understood, asked: _Asked) -> Remark:
    """What the line is; and when it is due, for somebody who pastes what another has written."""
    what = _what_it_is(line)
    if what != "command":
        return Remark(what)
    due = Remark("due", (describe(understood.schedule, asked.spoken(None)),))
    return Remark("two_sentences", (Remark(what), due))


def _advice(line: Line) -> Remark:
    """What to give instead. The command is not repeated: it may hold a password."""
    if zone := _zone_behind(line):
        return Remark("alone_with_zone", (line.schedule, zone))
    return Remark("alone_with_url" if _CALLS_A_URL.search(line.rest) else "alone", (line.alone,))


# ---- phrases ---------------------------------------------------------------------------------------------------------


def _phrase(reading: Reading, asked: _Asked) -> Understood:
    zone = asked.timezone if reading.timezone is None else _zone(reading.timezone, asked)
    parsed = _schedule(reading, zone, asked)
    if parsed.schedule.next_after(asked.now) is None:
        raise refusal("nothing_to_come")
    language = asked.spoken(reading.language)
    corrected = [phrases.describe_correction(*pair, language) for pair in reading.corrections]
    said = [say(remark, language) for remark in parsed.remarks]
    warnings = dict.fromkeys([*corrected, *reading.notes, *said])
    return Understood(parsed.schedule, tuple(warnings), reading.language, reading.corrections)


def _schedule(reading: Reading, zone: str, asked: _Asked) -> Parsed:
    if reading.cron is not None:
        return parse(reading.cron, timezone=zone, now=asked.now, dst=asked.dst, day_match=asked.day_match)
    if reading.every_ms is None:
        return Parsed(Schedule("once", None, None, reading.at, zone, asked.dst, asked.day_match), ())
    anchor = asked.now if asked.anchor is None else asked.anchor
    schedule = Schedule("interval", None, reading.every_ms, anchor, zone, asked.dst, asked.day_match)
    return Parsed(schedule, interval_remarks(schedule))


def _zone(named: str, asked: _Asked) -> str:
    """The zone of a schedule whose text names one."""
    if not asked.is_timezone_given:
        return named
    if same_clocks(named, asked.timezone):
        return asked.timezone
    raise refusal("two_zones", named, asked.timezone, field="timezone", suggestions=(named,))


# ---- and back again --------------------------------------------------------------------------------------------------


def describe(schedule: Schedule, language: str = "en") -> str:
    """The schedule in words, from its meaning.

    Words that say it exactly, and can be understood again: the same times of the day on the same days, or the same
    instant. What they cannot say exactly is shown as the expression (in English with an explanation), and is not
    understood as anything else. The policy for clock changes is not said; `clock_changes` tells what it does.
    """
    if schedule.kind == "cron":
        return _describe_cron(schedule, language)
    if schedule.kind == "interval":
        return _describe_interval(schedule, language)
    assert schedule.at is not None
    second, ms = divmod(schedule.at, 1000)
    local = second + segment_at(schedule.timezone, second).offset
    is_first = local_to_seconds(schedule.timezone, local)[:1] == [second]
    if ms or not is_first:  # a fraction of a second, or the second of two times that look the same
        return to_rfc3339(schedule.at)
    return phrases.describe_instant(schedule.at, schedule.timezone, language)


def _describe_cron(schedule: Schedule, language: str) -> str:
    assert schedule.cron is not None
    words = phrases.describe_cron(schedule.cron, language, day_match=schedule.day_match)
    if words is None:
        if language not in phrases.LANGUAGES or language == "en":
            return f"{describe_cron(schedule.compiled())} ({schedule.cron}, {schedule.timezone})"
        words = schedule.cron
        if schedule.day_match == "both" and compile_cron(schedule.cron).either_day:
            words = phrases.speech(language).both_days.format(words)
    return f"{words} ({schedule.timezone})"


def _describe_interval(schedule: Schedule, language: str) -> str:
    """An interval of 15 minutes is not "every 15 minutes", which is cron: it counts from where it began."""
    assert schedule.every_ms
    assert schedule.at is not None
    words = phrases.describe_interval(schedule.every_ms, language)
    minutes, rest = divmod(schedule.every_ms, 60_000)
    if rest == 0 and (60 % minutes == 0 or (minutes % 60 == 0 and 1440 % minutes == 0)):
        return phrases.speech(language).counted_from.format(words, to_rfc3339(schedule.at))
    return words
