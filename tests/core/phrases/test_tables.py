"""Each row of each table carries examples; here they run. A row without one, or that decides none, is red."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.core.phrases.expectations import CODES, outcome, same, word_examples

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
