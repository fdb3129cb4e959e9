"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.spans import read_seconds, span


@pytest.mark.parametrize(
    ("seconds", "words"), [(30, "30 s"), (90, "90 s"), (120, "2 min"), (86_400, "1 d"), (0.5, "0.5 s"), (0, "0 s")]
)
def test_lengths_that_were_set(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("90s", 90),
        ("5m", 300),
        ("2H", 7200),
        (" 5 min ", 300),
        ("1 d", 86_400),
        ("1j", 86_400),
        ("250 ms", 0.25),
    ],
)
def test_lengths_that_are_read(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5x", "-1", "1e3", "nan", "1.2.3", "٣", "5  s", "1 min 5 s", "9" * 13])
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        read_seconds(text)


@given(st.integers(0, 10**11) | st.floats(0.001, 1_000))
def test_what_is_written_is_read_as_the_same(seconds: float) -> None:
    assert read_seconds(span(seconds)) == pytest.approx(seconds)
