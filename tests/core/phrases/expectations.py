"""What an example must become, and how it is compared. Shared by the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from zerocron.core.phrases import NotUnderstood, Reading, fields, read
from zerocron.core.phrases.api import LANGUAGES
from zerocron.core.phrases.grammar import Words

NOW: Final = 1_795_953_600_000  # Sunday 2026-11-29 12:00 UTC
CODES: Final = tuple(LANGUAGES)


def sets(cron: str) -> fields.Fields:
    """What an expression means, however it is written."""
    parsed = fields.parse(cron)
    assert parsed is not None, f"{cron} is not an expression"
    return replace(parsed, wild=False)


def attempt(text: str, language: str | None = None, timezone: str = "UTC") -> Reading | NotUnderstood:
    """The reading, or the refusal as a value."""
    try:
        return read(text, language=language, timezone=timezone, now=NOW)
    except NotUnderstood as refusal:
        return refusal


def outcome(phrase: str, language: str | None) -> str:
    """What a phrase becomes, in the words of an expectation."""
    result = attempt(phrase, language)
    return f"no {result.reason}" if isinstance(result, NotUnderstood) else said(result)


def said(reading: Reading) -> str:
    zone = f" @ {reading.timezone}" if reading.timezone else ""
    if reading.cron is not None:
        return reading.cron + zone
    if reading.every_ms is not None:
        return f"every {reading.every_ms // 1000} s{zone}"
    assert reading.at is not None
    return f"at {datetime.fromtimestamp(reading.at / 1000, UTC):%Y-%m-%dT%H:%MZ}{zone}"


def same(got: str, wanted: str) -> bool:
    """Equal as schedules: expressions by their sets, all else as written."""
    got_cron, _, got_zone = got.partition(" @ ")
    cron, _, zone = wanted.partition(" @ ")
    if got.startswith(("no ", "every ", "at ")) or wanted.startswith(("no ", "every ", "at ")):
        return got == wanted
    return sets(got_cron) == sets(cron) and got_zone == zone


def word_examples(words: Words) -> list[tuple[str, str]]:
    """(phrase, expectation) for every spelling of a group of words."""
    found: list[tuple[str, str]] = []
    for value, spellings in words.spellings.items():
        template = words.example if isinstance(words.example, str) else words.example[value]
        phrase, wanted = template.split(" => ")
        found += [(phrase.format(s.strip()), wanted.format(value)) for s in spellings.split("|")]
    return found
