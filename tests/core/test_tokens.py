"""API keys as text: what is one, and that a typing mistake never is."""

from __future__ import annotations

import hashlib
import re
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zerocron.core.tokens import Token, digest, new_token, read_token

ALPHABET = string.ascii_letters + string.digits + "_"
tokens = st.builds(
    Token,
    id=st.text(string.ascii_lowercase + string.digits, min_size=12, max_size=12),
    secret=st.text(string.ascii_letters + string.digits, min_size=32, max_size=32),
)


@given(tokens)
def test_a_token_is_read_back_from_its_text(token: Token) -> None:
    assert read_token(token.text) == token


def test_a_new_token_has_the_published_form() -> None:
    token = new_token()
    assert re.fullmatch(r"0c_[0-9a-z]{12}_[0-9A-Za-z]{38}", token.text)
    assert read_token(token.text) == token


def test_no_two_new_tokens_share_an_id_or_a_secret() -> None:
    made = [new_token() for _ in range(500)]
    assert len({token.id for token in made}) == len({token.secret for token in made}) == 500


def test_the_checksum_does_not_change_between_releases() -> None:
    """Keys outlive releases: this one was made by the first."""
    token = Token("abcdefghijkl", "0123456789ABCDEFGHIJKLMNOPQRSTUV")
    assert token.text == "0c_abcdefghijkl_0123456789ABCDEFGHIJKLMNOPQRSTUV" + "1ZFV81"


@given(token=tokens, position=st.integers(0, 53), letter=st.sampled_from(ALPHABET))
def test_one_wrong_letter_is_noticed(token: Token, position: int, letter: str) -> None:
    text = token.text
    assume(text[position] != letter)
    assert read_token(text[:position] + letter + text[position + 1 :]) is None


@given(token=tokens, position=st.integers(0, 52))
def test_two_letters_that_changed_places_are_noticed(token: Token, position: int) -> None:
    text = token.text
    assume(text[position] != text[position + 1])
    assert read_token(text[:position] + text[position + 1] + text[position] + text[position + 2 :]) is None


@given(token=tokens, position=st.integers(0, 53), letter=st.sampled_from(ALPHABET))
def test_a_letter_too_few_or_too_many_is_noticed(token: Token, position: int, letter: str) -> None:
    text = token.text
    assert read_token(text[:position] + text[position + 1 :]) is None
    assert read_token(text[:position] + letter + text[position:]) is None


@pytest.mark.parametrize("change", [str.upper, str.title, str.swapcase])
def test_capitals_matter(change: object) -> None:
    assert callable(change)
    assert read_token(change(Token("abcdefghijkl", "a" * 32).text)) is None


@given(st.text(max_size=80))
def test_no_other_text_is_a_token(text: str) -> None:
    assert read_token(text) is None


def test_a_line_break_behind_a_token_is_not_overlooked() -> None:
    assert read_token(new_token().text + "\n") is None


def test_only_the_digest_of_a_secret_is_kept() -> None:
    assert digest("secret") == hashlib.sha256(b"secret").hexdigest()
