"""What holds for every text and every schedule."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.core.phrases.expectations import CODES, NOW, attempt

from zerocron.core.phrases import (
    NotUnderstood,
    Reading,
    describe_cron,
    describe_instant,
    describe_interval,
    fields,
    read,
)
from zerocron.core.phrases.api import LANGUAGES
from zerocron.core.phrases.fields import ALL_DAYS, ALL_HOURS, ALL_MONTHS, ALL_WEEKDAYS, LAST, LAST_WEEKDAY, Fields
from zerocron.core.phrases.tokens import MAX_LENGTH

VOCABULARY: Final = sorted({word for one in LANGUAGES.values() for word in one.grammar.vocabulary})
CODE: Final = st.sampled_from(CODES)
WORDS: Final = st.one_of(
    st.sampled_from(VOCABULARY), st.integers(0, 70).map(str), st.sampled_from(["9:00", "9am", ",", "-", "2027-01-01"])
)


def _sound(result: Reading | NotUnderstood) -> None:
    """A reading is exactly one valid schedule; a refusal says why, and its suggestions can be read."""
    if isinstance(result, Reading):
        assert [result.cron, result.every_ms, result.at].count(None) == 2
        if result.cron is not None:
            parsed = fields.parse(result.cron)
            assert parsed is not None
            assert parsed.possible()
        return
    assert result.message
    assert 0 < len(result.suggestions) <= 3
    for suggestion in result.suggestions:
        assert isinstance(attempt(suggestion), Reading), suggestion


@given(st.text(max_size=80), st.sampled_from([None, *CODES]))
def test_any_text_is_read_or_refused(text: str, language: str | None) -> None:
    _sound(attempt(text, language))


@settings(max_examples=400)
@given(st.lists(WORDS, max_size=9).map(" ".join), st.sampled_from([None, *CODES]))
def test_any_words_in_any_order_are_read_or_refused(text: str, language: str | None) -> None:
    _sound(attempt(text, language))


@given(st.lists(WORDS, min_size=1, max_size=7).map(" ".join))
def test_accents_case_and_spaces_do_not_matter(text: str) -> None:
    plain, loud = attempt(text), attempt("  " + text.upper().replace(" ", "\u00a0 ") + "\n")
    assert isinstance(plain, Reading) == isinstance(loud, Reading) or " M" in text.upper()
    if isinstance(plain, Reading) and isinstance(loud, Reading):
        assert replace_corrections(plain) == replace_corrections(loud)


def replace_corrections(reading: Reading) -> Reading:
    return replace(reading, corrections=())


def _steps(text: str) -> int:
    """How many calls the reading of a text takes: a measure that no other process disturbs."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    attempt(text)  # what is read for the first time may load a zone
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        attempt(text)
    finally:
        sys.setprofile(before)
    return calls


PIECES: Final = (
    *(
        "x",
        "every day at 9am and ",
        "[",
        "and ",
        "9am and ",
        "every ",
        "mon, ",
        "le 1 et ",
        "\u0301",
        "aaaa bbbb ",
        "2 ",
    ),
    *("cada día a las 9 y ", "9:00 - ", "first and ", "in 2 hours ", "du lundi au "),
)


@pytest.mark.parametrize("piece", PIECES)
def test_a_phrase_twice_as_long_takes_about_twice_the_steps(piece: str) -> None:
    count = MAX_LENGTH // len(piece) // 2
    short, long = _steps(piece * count), _steps(piece * 2 * count)
    assert long <= 2.5 * short + 1_000


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_too_long_takes_no_more_steps_however_long_it_is(piece: str) -> None:
    assert _steps(piece * (100_000 // len(piece))) <= _steps(piece * (10_000 // len(piece))) + 100
    assert _steps(piece * (100_000 // len(piece))) < 1_000


# ---- describe, then read ---------------------------------------------------------------------------------------------

NTH: Final = st.frozensets(st.tuples(st.integers(0, 6), st.sampled_from([1, 2, 3, 4, 5, LAST])), min_size=1, max_size=3)
DATES: Final = st.one_of(
    st.just(ALL_DAYS),
    st.just(frozenset({LAST})),
    st.just(frozenset({LAST_WEEKDAY})),
    st.frozensets(st.one_of(st.integers(1, 31), st.just(LAST)), min_size=1, max_size=4),
)
MONTHS: Final = st.one_of(st.just(ALL_MONTHS), st.frozensets(st.integers(1, 12), min_size=1, max_size=5))
WEEKDAYS: Final = st.one_of(st.just(ALL_WEEKDAYS), st.frozensets(st.integers(0, 6), min_size=1))
STEPS: Final = st.sampled_from([1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30]).map(lambda n: frozenset(range(0, 60, n)))
MINUTES: Final = st.one_of(STEPS, st.frozensets(st.integers(0, 59), min_size=1, max_size=3))
RUNS: Final = st.tuples(st.integers(0, 23), st.integers(1, 23), st.integers(1, 6)).map(
    lambda run: frozenset((run[0] + k) % 24 for k in range(0, run[1], run[2]))
)
HOURS: Final = st.one_of(
    st.just(ALL_HOURS),
    RUNS,
    st.sampled_from([2, 3, 4, 6, 8, 12]).map(lambda n: frozenset(range(0, 24, n))),
    st.frozensets(st.integers(0, 23), min_size=1, max_size=3),
)
SECONDS: Final = st.one_of(
    st.just(frozenset({0})), st.just(frozenset({0})), st.integers(1, 59).map(lambda n: frozenset({n}))
)


@st.composite
def crons(draw: st.DrawFn) -> str:
    """Expressions of the kinds that words can say, and some that they cannot."""
    what = draw(st.sampled_from(["dates", "weekdays", "nth"]))
    made = Fields(draw(SECONDS), draw(MINUTES), draw(HOURS), months=draw(MONTHS), wild=draw(st.booleans()))
    if what == "dates":
        made = replace(made, dates=draw(DATES))
    elif what == "nth":
        made = replace(made, weekdays=frozenset(), nth=draw(NTH))
    else:
        made = replace(made, weekdays=draw(WEEKDAYS))
    return fields.write(made)


@settings(max_examples=400, deadline=None)
@given(crons(), CODE)
def test_what_is_described_reads_back_as_the_same_schedule(cron: str, code: str) -> None:
    words = describe_cron(cron, code)
    assume(words is not None)
    assert words is not None
    assert fields.parse(str(read(words, language=code, now=NOW).cron)) == fields.parse(cron), words
    detected = read(words, now=NOW)
    assert (detected.language, fields.parse(str(detected.cron))) == (code, fields.parse(cron)), words


@given(crons())
def test_canonical_text_means_what_it_was_written_from(cron: str) -> None:
    parsed = fields.parse(cron)
    assert parsed is not None
    assert fields.write(parsed) == cron


@given(st.integers(1, 366 * 86_400), CODE)
def test_an_interval_in_words_is_as_long(seconds: int, code: str) -> None:
    reading = read(describe_interval(seconds * 1000, code), language=code, now=NOW)
    if reading.every_ms is not None:
        assert reading.every_ms == seconds * 1000
    else:
        assert 86_400 % seconds == 0, "only a rhythm that divides the day is cron"


@given(st.integers(1500, 100_000).filter(lambda ms: ms % 1000), CODE)
def test_an_interval_of_fractions_of_a_second_in_words_is_as_long(ms: int, code: str) -> None:
    assert read(describe_interval(ms, code), language=code, now=NOW).every_ms == ms


@given(
    st.integers(NOW // 1000 + 1, NOW // 1000 + 10**9),
    CODE,
    st.sampled_from(["UTC", "Europe/Paris", "Asia/Tokyo", "America/New_York"]),
)
def test_an_instant_in_words_is_the_same_instant(second: int, code: str, zone: str) -> None:
    words = describe_instant(second * 1000, zone, code)
    reading = read(words, language=code, now=NOW)
    assert reading.timezone == zone
    if reading.at != second * 1000:  # a local time that comes twice: the first is read, and said
        assert len(reading.notes) == 1
        assert reading.at == (second - 3600) * 1000
