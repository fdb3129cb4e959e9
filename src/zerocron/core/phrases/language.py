"""What a language table is made of: its grammar, its messages, and the words it describes schedules with.

Owns the shape only. A new language is one file that builds a `Language` and one line in `api.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .grammar import Grammar, Row, Words

Code = Literal["en", "fr", "es"]


@dataclass(frozen=True, slots=True)
class Speech:
    """Words to describe a schedule with. Every template must be readable by the same table; a property test holds it.

    `rhythms` has two templates for each unit: one, and {} of them. `date_words` has 31 entries, the 1st first; `orders`
    has the words from the first to the fifth and the last.
    """

    weekdays: tuple[str, ...]  # Sunday first, as in "on Sunday"
    weekday_leads: tuple[str, ...]  # as in "every Sunday"
    months: tuple[str, ...]
    and_: str
    every_day: str
    every_weekdays: str  # "every {days}", leading
    on_weekdays: str  # "on {days}", behind a rhythm
    weekday_span: str  # "from {first} to {last}"
    dates: str  # "on {dates} of {months}"
    date_words: tuple[str, ...]
    last_day: str
    last_weekday: str
    of_month: str  # when no month is named
    of_months: str  # "of {months}"
    dates_of_months: str  # the same behind dates
    nth: str  # "on {orders} {days} {of}"
    orders: tuple[str, ...]  # first to fifth, then last
    nth_days: tuple[str, ...]
    in_months: str
    rhythms: Mapping[str, tuple[str, str]]
    at_minutes: tuple[str, str]  # one, several
    window: str
    at: str  # "at {times}"
    at_one: str  # before a time in the first hour, where a language says it otherwise
    each_time: bool  # whether "at" is said before each time
    hour_only: str  # a full hour
    hour_minute: str
    instant: str  # "on {date} {at} ({zone})"
    instant_date: str
    counted_from: str  # "{interval}, counted from {instant}", for an interval whose words alone would be read as cron
    both_days: str  # "{expression}, on days that both day fields match"
    first_day: str = "1"
    workdays: tuple[str, str] = ("", "")  # Monday to Friday, leading and behind a rhythm, where there is a clear word
    of_vowel: str = ""  # of_months before a vowel, where it changes
    long_days: tuple[int, ...] = ()  # numbers of days that mean something else in the language
    decimal_mark: str = "."


@dataclass(frozen=True, slots=True)
class Language:
    """One table: data to read with, and data to speak with."""

    code: Code
    words: tuple[Words, ...]
    rows: tuple[Row, ...]
    grammar: Grammar
    messages: Mapping[str, str]  # reasons of refusals
    notes: Mapping[str, str]  # what was assumed
    examples: tuple[str, ...]  # suggestions where there is no better one
    speech: Speech
    accents: str  # letters with accents that it writes


def language(
    code: Code,
    *,
    words: tuple[Words, ...],
    rows: tuple[Row, ...],
    messages: Mapping[str, str],
    notes: Mapping[str, str],
    examples: tuple[str, ...],
    speech: Speech,
    accents: str = "",
) -> Language:
    """A Language, compiled."""
    return Language(code, words, rows, Grammar(words, rows), messages, notes, examples, speech, accents)
