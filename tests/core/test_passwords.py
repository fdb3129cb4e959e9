"""Passwords: long enough, of whatever kind, and not what everybody tries first (ASVS 6.2)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.common_passwords import COMMON_WORDS
from zerocron.core.errors import Invalid
from zerocron.core.passwords import CHARACTERS_MAX, CHARACTERS_MIN, check_password, normalised

ABOUT = ("anna.smith@example.com", "Anna Smith")


@pytest.mark.parametrize(
    "password",
    [
        "four words in a row",
        "wjkqzpvx",
        "        x y z w v",
        "dragon7391#4823!5521",
        "пароль, которого нет",
        "日本語日記帳面倒臭",
        "🦊🐢🐙🦉🦔🐝🦋🐞",
        "x" * 20 + "abcdefg hij" + "y" * 33,
        "a1b2" * 3 + "zz" + "q" * (CHARACTERS_MAX - 14),
    ],
)
def test_what_is_long_enough_is_taken_as_it_is(password: str) -> None:
    assert check_password(password, about=ABOUT) == password


@pytest.mark.parametrize(
    "password",
    [
        "password",
        "Password1!",
        "P@ssw0rd2024",
        "p a s s w o r d",
        "letmein123",
        "trustno1",
        "Sunshine!!",
        "12345678",
        "87654321",
        "11112222",
        "qwertyuiop",
        "zxcvbnm,./",
        "1q2w3e4r",
        "abcdefgh",
        "aaaaaaaaaaaa",
        "monkeymonkey",
        "xkxkxkxk",
        "correct-horse-battery-staple",
        "ZeroCron2027",
    ],
)
def test_what_everybody_tries_first_is_refused(password: str) -> None:
    with pytest.raises(Invalid, match="first passwords that anybody tries") as refusal:
        check_password(password, field="new_password")
    assert [fault.field for fault in refusal.value.fields] == ["new_password"]


@pytest.mark.parametrize(
    "password", ["anna.smith@example.com", "AnnaSmith", "annasmith99", "anna smith", "anna-smith!"]
)
def test_what_is_known_of_its_owner_is_refused(password: str) -> None:
    with pytest.raises(Invalid, match="your own address or name"):
        check_password(password, about=ABOUT)
    check_password(password, about=("somebody.else@example.org", "Somebody"))


def test_its_bounds_are_told() -> None:
    for password, words in (("wjkqzpv", f"at least {CHARACTERS_MIN}"), ("wjkqzpv" * 40, f"at most {CHARACTERS_MAX}")):
        with pytest.raises(Invalid, match=words):
            check_password(password)


def test_the_same_letters_are_the_same_password_however_a_keyboard_writes_them() -> None:
    composed, decomposed = "z\u00fcrichse\u00e9", "zu\u0308richsee\u0301"
    assert composed != decomposed
    assert check_password(decomposed) == check_password(composed) == normalised(composed)


@given(st.text(max_size=300))
def test_it_is_taken_whole_or_refused(password: str) -> None:
    with contextlib.suppress(Invalid):
        taken = check_password(password, about=ABOUT)
        assert taken == normalised(password)
        assert CHARACTERS_MIN <= len(taken) <= CHARACTERS_MAX


def test_the_list_is_in_the_form_that_is_compared() -> None:
    assert len(COMMON_WORDS) > 500
    assert all(word == word.casefold() and word.isalnum() for word in COMMON_WORDS)
