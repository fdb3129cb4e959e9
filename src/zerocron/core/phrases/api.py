"""Reading: text in, one Reading or NotUnderstood out.

Owns the choice of the language and the wording of refusals. A language is found by who understands the phrase: a
reading wins over a refusal, a phrase without slips over a corrected one; two languages that read it differently are
refused. It must never know a word of any language: all text comes from the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from zerocron.core.errors import Invalid
from zerocron.core.schedule import DayMatch, check_timezone
from zerocron.core.schedule.cron_parse import compile_cron

from . import describe, fields, typos
from .draft import Idea, Instant, Interval, Raw, Refused
from .en import EN
from .es import ES
from .fields import Fields
from .fr import FR
from .grammar import Scan
from .language import Code, Language, Speech
from .meaning import flat
from .plan import Plan, plan
from .tokens import Token, Unreadable, tokenize

LANGUAGES: Final[dict[str, Language]] = {one.code: one for one in (EN, FR, ES)}
_MOST_SUGGESTIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """One schedule: exactly one of `cron`, `every_ms` and `at` is set."""

    language: Code
    cron: str | None
    every_ms: int | None
    at: int | None
    timezone: str | None
    corrections: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


class NotUnderstood(Invalid):
    """The phrase is no schedule: the message says why, the suggestions come near and can be read."""

    def __init__(
        self, message: str, *, suggestions: Sequence[str] = (), reason: str = "", language: Code = "en"
    ) -> None:
        super().__init__(message, field="schedule", suggestions=suggestions)
        self.reason = reason
        self.language: Code = language


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one language made of the tokens: a plan, or a refusal; `rank` orders attempts, the best is the highest."""

    language: Language
    rank: tuple[int, int]
    plan: Plan | None = None
    refused: Refused | None = None
    corrections: tuple[tuple[str, str], ...] = ()


def read(
    text: str, *, language: str | None = None, wording: str | None = None, timezone: str = "UTC", now: int
) -> Reading:
    """The schedule that the text means, or NotUnderstood; `now` is what "tomorrow" and "in 20 minutes" count from.

    The notes are in `wording`, or else in the language of the phrase.
    """
    tables = _tables(language)
    timezone = _known_zone(timezone, tables[0])
    if fields.looks_like_cron(text[:200]):
        return _read_cron(text, tables[0])
    try:
        tokens = tokenize(text)
    except Unreadable as unreadable:
        raise _not_understood(tables[0], Refused(unreadable.reason, unreadable.detail)) from None
    if refused := _uncertain_unit(tokens):
        raise _not_understood(tables[0], refused)
    attempts = [_attempt(table, tokens, timezone, now) for table in tables]
    best = max(attempt.rank for attempt in attempts)
    chosen = [attempt for attempt in attempts if attempt.rank == best]
    # Of equals that of the answer, then the one that knows most of the words, then the first in order.
    chosen.sort(key=lambda one: (one.language.code == wording, _kinship(one.language, tokens)), reverse=True)
    plans = [attempt.plan for attempt in chosen if attempt.plan is not None]
    if len({(one.what, one.zone) for one in plans}) > 1:
        refused = Refused("two_languages", ideas=[one.what for one in plans])
        raise _not_understood(chosen[0].language, refused, wording)
    if not plans:
        raise _all_refused([attempt for attempt in chosen if attempt.refused], wording)
    return _reading(chosen[0], plans[0], LANGUAGES.get(wording or "", chosen[0].language))


def describe_cron(cron: str, language: str, *, day_match: DayMatch = "either") -> str | None:
    """Words for what an expression means; None when words cannot say it exactly, or when it is not one.

    They say the times of the day and the days; what a change of the clocks does to them is not said.
    """
    try:
        meant = fields.of_cron(compile_cron(cron, day_match))
    except Invalid:
        return None
    return None if meant is None else describe.cron_words(meant, speech(language))


def describe_interval(every_ms: int, language: str) -> str:
    """Words for an interval."""
    return describe.interval_words(every_ms, speech(language))


def describe_instant(at: int, timezone: str, language: str) -> str:
    """Words for one instant, on the clocks of the zone."""
    return describe.instant_words(at, timezone, speech(language))


def describe_correction(typed: str, meant: str, language: str) -> str:
    """The note that shows a corrected slip."""
    return LANGUAGES.get(language, EN).notes["corrected"].format(typed, meant)


def speech(language: str) -> Speech:
    """The words of a language, of English for one without a table."""
    return LANGUAGES.get(language, EN).speech


def _all_refused(attempts: list[_Attempt], wording: str | None) -> NotUnderstood:
    """The refusal of the first language, with what the others that know the phrase would propose ("9h")."""
    refusals = [_not_understood(one.language, one.refused, wording) for one in attempts if one.refused is not None]
    first, *others = refusals
    if attempts[0].rank[0] > 0:
        mixed = [
            *first.suggestions[:2],
            *(s for other in others for s in other.suggestions[:1]),
            *first.suggestions[2:],
        ]
        first.suggestions = tuple(dict.fromkeys(mixed))[:_MOST_SUGGESTIONS]
    return first


# ---- steps ---------------------------------------------------------------------------------------------------------


def _tables(language: str | None) -> list[Language]:
    if language is None:
        return list(LANGUAGES.values())
    if language not in LANGUAGES:
        raise _not_understood(EN, Refused("unknown_language"))
    return [LANGUAGES[language]]


def _known_zone(timezone: str, table: Language) -> str:
    try:
        return check_timezone(timezone)
    except Invalid:
        raise _not_understood(table, Refused("unknown_zone", ascii(timezone[:60])[1:-1])) from None


def _read_cron(text: str, table: Language) -> Reading:
    parsed = fields.parse(text)
    if parsed is None or not parsed.possible():
        raise _not_understood(table, Refused("bad_cron"))
    return Reading(table.code, fields.normal(text), None, None, None, (), ())


def _uncertain_unit(tokens: list[Token]) -> Refused | None:
    """4M: cron users write months with a capital and minutes without, and slip."""
    for number, unit in pairwise(tokens):
        if unit.typed == "M" and number.kind == "int":
            n = int(number.text[:3])
            ideas: list[Idea] = (
                [Fields(minutes=frozenset(range(0, 60, n)), hours=fields.ALL_HOURS, wild=True)]
                if n and 60 % n == 0
                else []
            )
            if n and 12 % n == 0:
                ideas.append(Fields(dates=frozenset({1}), months=frozenset(range(1, 13, n))))
            return Refused("month_or_minute", ideas=ideas)
    return None


def _kinship(table: Language, tokens: list[Token]) -> int:
    """How many of the words are the language's own; a word with one of its accents counts twice."""
    words = [token for token in tokens if token.kind == "word"]
    known = sum(token.text in table.grammar.vocabulary for token in words)
    return known + sum(any(letter in table.accents for letter in token.typed.lower()) for token in words)


def _attempt(table: Language, tokens: list[Token], timezone: str, now: int) -> _Attempt:
    """Read as it is; if that fails on a word, read again with its slips mended."""
    first = _read_with(table, tokens, (), timezone, now)
    if first.rank[0] > 0:
        return first
    foreign = frozenset().union(*(other.grammar.vocabulary for other in LANGUAGES.values() if other is not table))
    mended = typos.corrected(tokens, table.grammar.vocabulary, foreign)
    if mended is None:
        return first
    second = _read_with(table, mended[0], mended[1], timezone, now)
    return second if second.rank[0] > 0 else first


def _read_with(
    table: Language, tokens: list[Token], corrections: tuple[tuple[str, str], ...], timezone: str, now: int
) -> _Attempt:
    """Rank: 4 read, 3 refused with a reason, 2 and 1 the same with slips, 0 lost at a word: the later the better."""
    phrase = Scan(table.grammar, tokens)
    pieces, lost = scan(phrase)
    slips = 2 if corrections else 0
    refusing = any(hasattr(piece, "reason") for piece in pieces)
    if lost < len(tokens) and not refusing:
        return _Attempt(table, (0, lost), refused=_lost(tokens, lost, phrase.furthest, pieces, timezone, now))
    try:
        return _Attempt(table, (4 - slips, 0), plan=plan(pieces, timezone, now), corrections=corrections)
    except Refused as refused:
        return _Attempt(table, (3 - slips, 0), refused=refused)


def scan(phrase: Scan) -> tuple[list[Any], int]:
    """The pieces of the phrase, and the first token that no row takes."""
    at, pieces = 0, []
    loose = False  # a separator waits for what follows it
    while at < len(phrase.tokens):
        if found := phrase.find("CLAUSE", at):
            pieces.append(found.value)
            at, loose = found.end, False
        elif filler := phrase.find("FILLER", at):
            at = filler.end
        elif pieces and not loose and (mark := phrase.find("SEP", at)):
            # "y el 15": the article that a list may repeat belongs to what follows, if that begins a new piece
            at, loose = (at + 1 if phrase.find("CLAUSE", at + 1) else mark.end), True
        else:
            break
    return flat(pieces), at - loose if at == len(phrase.tokens) else at


def _lost(tokens: list[Token], at: int, furthest: int, pieces: list[Any], timezone: str, now: int) -> Refused:
    """The word where understanding ends, and what came before it if that is a schedule.

    No row takes the token `at`; the word to blame is the `furthest` one that any row looked at: "dya" in "every dya".
    """
    ideas: list[Idea] = []
    try:
        if pieces:
            ideas.append(plan(pieces, timezone, now).what)
    except Refused as refused:
        ideas.extend(refused.ideas)
    if at == len(tokens) - 1 and tokens[at].kind in ("word", "mark") and pieces:
        return Refused("incomplete" if tokens[at].kind == "mark" else "unknown_word", tokens[at].typed[:30], ideas)
    blamed = tokens[furthest] if at < furthest < len(tokens) and tokens[furthest].kind == "word" else tokens[at]
    return Refused("unknown_word", blamed.typed[:30], ideas)


def _reading(attempt: _Attempt, plan: Plan, wording: Language) -> Reading:
    what = plan.what
    return Reading(
        language=attempt.language.code,
        cron=fields.write(what) if isinstance(what, Fields) else None,
        every_ms=what.ms if isinstance(what, Interval) else None,
        at=what.ms if isinstance(what, Instant) else None,
        timezone=plan.zone,
        corrections=attempt.corrections,
        notes=tuple(_note(wording, key, detail) for key, detail in plan.notes),
    )


def _note(table: Language, key: str, detail: str) -> str:
    if key == "months_are":
        detail = describe.joined([table.speech.months[int(n) - 1] for n in detail.split(",")], table.speech)
    return table.notes[key].format(detail)


def _not_understood(table: Language, refused: Refused, wording: str | None = None) -> NotUnderstood:
    """Its suggestions are in the language of the table, its message in `wording` if there is such a language."""
    suggestions = [words for idea in refused.ideas if (words := _idea(table, idea, refused.zone))]
    detail = refused.zone if refused.reason == "zone_abbreviation" else refused.detail
    message = LANGUAGES.get(wording or "", table).messages[refused.reason].format(detail)
    unique = tuple(dict.fromkeys(suggestions)) or table.examples
    return NotUnderstood(message, suggestions=unique[:_MOST_SUGGESTIONS], reason=refused.reason, language=table.code)


def _idea(table: Language, idea: Idea, zone: str | None) -> str | None:
    """An idea in words, or as an expression where words cannot say it (an expression cannot name a zone)."""
    if isinstance(idea, Raw):
        return idea.cron
    if isinstance(idea, Interval):
        return describe.interval_words(idea.ms, table.speech)
    if isinstance(idea, Instant):
        return describe.instant_words(idea.ms, zone or "UTC", table.speech)
    if not idea.possible():
        return None
    words = describe.cron_words(idea, table.speech)
    if words is None:
        return fields.write(idea)
    return f"{words} {zone}" if zone else words
