"""Each row of each table carries examples; here they run. A row without one, or that decides none, is red."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.core.phrases.expectations import CODES, attempt, outcome, same, word_examples

from zerocron.core.phrases import NotUnderstood
from zerocron.core.phrases import meaning as m
from zerocron.core.phrases.api import LANGUAGES, scan
from zerocron.core.phrases.grammar import Grammar, Row, Scan, Words
from zerocron.core.phrases.language import Language
from zerocron.core.phrases.tokens import Token, tokenize


def _row_examples() -> Iterator[tuple[str, str, str]]:
    for code in CODES:
        for row in LANGUAGES[code].rows:
            for example in row.examples:
                phrase, wanted = example.split(" => ")
                yield code, phrase, wanted


def _word_examples() -> Iterator[tuple[str, str, str]]:
    for code in CODES:
        for words in LANGUAGES[code].words:
            for phrase, wanted in word_examples(words):
                yield code, phrase, wanted


@pytest.mark.parametrize(("code", "phrase", "wanted"), list(_row_examples()))
def test_the_example_of_a_row(code: str, phrase: str, wanted: str) -> None:
    assert same(outcome(phrase, code), wanted), outcome(phrase, code)


@pytest.mark.parametrize(("code", "phrase", "wanted"), list(_word_examples()))
def test_every_spelling_of_a_word(code: str, phrase: str, wanted: str) -> None:
    got = outcome(phrase, code)
    if "{}" not in wanted:
        assert same(got, wanted), got


@pytest.mark.parametrize("code", CODES)
def test_every_row_has_an_example_that_needs_it(code: str) -> None:
    """The mutation check: take a row away, or let it mean nothing, and one of its own examples turns red."""
    language = LANGUAGES[code]
    useless = [row.pattern for row in language.rows if not _needed(language.grammar, row)]
    assert not useless, "\n".join(useless)


def _needed(grammar: Grammar, row: Row) -> bool:
    """Whether some example of the row is matched differently without it."""
    rows = grammar.rows[row.kind]
    without = [entry for entry in rows if entry[1] is not row]
    for example in row.examples:
        tokens = tokenize(example.split(" => ")[0])
        before = _pieces(grammar, tokens)
        grammar.rows[row.kind] = without
        try:
            after = _pieces(grammar, tokens)
        finally:
            grammar.rows[row.kind] = rows
        if before != after:
            return True
    return False


def _pieces(grammar: Grammar, tokens: list[Token]) -> str:
    return repr(scan(Scan(grammar, tokens)))


def _red(code: str) -> list[str]:
    examples = [example for row in LANGUAGES[code].rows for example in row.examples]
    pairs = [tuple(example.split(" => ")) for example in examples]
    pairs += [pair for words in LANGUAGES[code].words for pair in word_examples(words)]
    return [phrase for phrase, wanted in pairs if not same(outcome(phrase, code), wanted)]


def _with(words: tuple[Words, ...], rows: tuple[Row, ...]) -> Language:
    return replace(LANGUAGES["en"], words=words, rows=rows, grammar=Grammar(words, rows))


def test_a_wrong_row_turns_an_example_red(monkeypatch: pytest.MonkeyPatch) -> None:
    english = LANGUAGES["en"]
    rows = tuple(
        replace(row, build=lambda hour: m.spoken(hour, 20)) if row.pattern == "quarter past HOUR" else row
        for row in english.rows
    )
    monkeypatch.setitem(LANGUAGES, "en", _with(english.words, rows))
    assert _red("en") == ["quarter past 8 every day"]


def test_a_wrong_word_turns_an_example_red(monkeypatch: pytest.MonkeyPatch) -> None:
    english = LANGUAGES["en"]
    assert _red("en") == []
    days = english.words[0]
    swapped = {**days.spellings, 3: days.spellings[4], 4: days.spellings[3]}
    words = (replace(days, spellings=swapped), *english.words[1:])
    monkeypatch.setitem(LANGUAGES, "en", _with(words, english.rows))
    assert "7pm every thursday" in _red("en")


NO_MEANING = ("SEP", "FILLER", "EVERY", "THE_HOUR")  # it only matters that these words are there


def _wrong(value: Any) -> Any:
    """Another value of the same kind: the next number, the next days, another reason."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | Decimal):
        return value + 1
    if isinstance(value, str):
        return {"quarter": "year", "morning": "evening", "am": "pm"}.get(value, "morning" if value != "hour" else "day")
    if isinstance(value, frozenset):
        return frozenset(_wrong(one) for one in value)
    if isinstance(value, tuple):
        return tuple(_wrong(one) for one in value)
    if isinstance(value, m.No):
        return replace(value, reason="past" if value.reason != "past" else "vague")
    if isinstance(value, m.Zone):
        return m.Zone("Asia/Tokyo" if "tokyo" not in value.name.lower() else "Europe/Paris")
    if isinstance(value, m.PartOfDay):
        return m.PartOfDay("morning" if value.part != "morning" else "evening")
    first = next(name for name in value.__slots__ if getattr(value, name) is not None)
    return replace(value, **{first: _wrong(getattr(value, first))})


def _is_red(code: str, examples: Iterable[tuple[str, str]]) -> bool:
    """Whether an example is no longer as it should be; a 13th month or a 32nd day may also fail outright."""
    try:
        return any(not same(outcome(phrase, code), wanted) for phrase, wanted in examples)
    except (AssertionError, IndexError, KeyError, TypeError, ValueError):
        return True


@pytest.mark.parametrize("code", CODES)
def test_every_row_that_means_something_else_turns_an_example_of_its_own_red(code: str) -> None:
    grammar = LANGUAGES[code].grammar
    silent = []
    for rows in grammar.rows.values():
        for place, (items, row) in enumerate(rows):
            rows[place] = (items, replace(row, build=_wrongly(row.build)))
            try:
                red = _is_red(code, [_pair(example) for example in row.examples])
            finally:
                rows[place] = (items, row)
            only_refused = all(" => no " in example for example in row.examples)  # the value is for suggestions alone
            if not red and not only_refused and row.kind not in NO_MEANING:
                silent.append(row.pattern)
    assert not silent, "\n".join(silent)


def _wrongly(build: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*values: Any) -> Any:
        built = build(*values)
        return None if built is None else _wrong(built)

    return wrong


def _pair(example: str) -> tuple[str, str]:
    phrase, wanted = example.split(" => ")
    return phrase, wanted


@pytest.mark.parametrize("code", CODES)
def test_every_word_that_means_something_else_turns_its_example_red(code: str) -> None:
    lexicon = LANGUAGES[code].grammar.lexicon
    silent = []
    for words in LANGUAGES[code].words:
        for value, spellings in words.spellings.items():
            for spelling in spellings.split("|"):
                key = tuple(token.text for token in tokenize(spelling))
                one = replace(words, spellings={value: spelling})
                entries = lexicon[words.kind]
                kept = dict(entries)
                if words.kind in NO_MEANING:
                    del entries[key]
                else:
                    entries[key] = _wrong_word(words.kind, value)
                try:
                    red = _is_red(code, word_examples(one))
                finally:
                    entries.clear()
                    entries.update(kept)
                if not red and words.kind != "ABBREVIATION":
                    silent.append(f"{words.kind}: {spelling}")
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize("code", CODES)
def test_an_abbreviation_proposes_its_zone(code: str) -> None:
    for words in LANGUAGES[code].words:
        if words.kind == "ABBREVIATION":
            for zone, spellings in words.spellings.items():
                for phrase, _ in word_examples(replace(words, spellings={zone: spellings})):
                    refusal = attempt(phrase, code)
                    assert isinstance(refusal, NotUnderstood)
                    assert refusal.suggestions[0].endswith(zone), phrase


def _wrong_word(kind: str, value: Any) -> Any:
    if kind == "UNIT":
        return "hour" if value != "hour" else "day"
    if kind == "CITY":
        return "Asia/Tokyo" if value != "Asia/Tokyo" else "Europe/Paris"
    return _wrong(value)


@pytest.mark.parametrize("code", CODES)
def test_a_language_has_words_for_every_reason_and_note(code: str) -> None:
    english, other = LANGUAGES["en"], LANGUAGES[code]
    only_elsewhere = {"fifteen_days", "eight_days", "ambiguous_minutes"}
    assert set(english.messages) - set(other.messages) == set()
    assert set(other.messages) - set(english.messages) <= only_elsewhere
    assert set(english.notes) == set(other.notes)
    for key, text in other.notes.items():
        holes = [hole for _, hole, _, _ in string.Formatter().parse(text) if hole is not None]
        assert holes == [h for _, h, _, _ in string.Formatter().parse(english.notes[key]) if h is not None], key


@pytest.mark.parametrize("code", CODES)
def test_the_suggestions_of_last_resort_can_be_read(code: str) -> None:
    for example in LANGUAGES[code].examples:
        assert not outcome(example, code).startswith("no ")
