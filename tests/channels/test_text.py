"""What is cut stays whole characters and whole escapes, and nothing invisible gets through."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.channels import discord, slack, telegram
from zerocron.channels.text import cut, cut_escaped, many_lines, one_line, units

FAMILY = "👩\u200d👩\u200d👧\u200d👦"
ESCAPES: dict[str, Callable[[str], str]] = {
    "html": html.escape,
    "slack": slack.escape,
    "discord": discord.escape,
    "telegram": telegram.escape,
}


@pytest.mark.parametrize(
    ("text", "units_max", "shown"),
    [
        ("short", 5, "short"),
        ("shorter", 5, "shor…"),
        ("a b", 2, "a…"),
        ("ab cd", 4, "ab…"),
        ("e\u0301" * 3, 5, "e\u0301e\u0301…"),
        ("e\u0301" * 3, 4, "e\u0301…"),
        (FAMILY * 2, 15, FAMILY + "…"),
        (FAMILY * 2, 10, "…"),
        ("👍🏽!!", 4, "…"),
        ("❤️!!", 3, "❤️…"),
        ("x", 0, ""),
    ],
)
def test_a_text_is_cut_between_characters_as_people_see_them(text: str, units_max: int, shown: str) -> None:
    assert cut(text, units_max) == shown
    assert units(shown) <= max(units_max, 0)


@pytest.mark.parametrize("name", ESCAPES)
@given(text=st.text(alphabet="a&<>\"'@`*_\\é👍|[]~", max_size=60), units_max=st.integers(1, 80))
def test_a_cut_never_breaks_an_escape(name: str, text: str, units_max: int) -> None:
    escape = ESCAPES[name]
    shown = cut_escaped(text, units_max, escape)
    assert units(shown) <= units_max
    prefixes = {escape(text[:end].rstrip()) + "…" for end in range(len(text))} | {escape(text)}
    assert shown in prefixes


def test_what_terminals_and_readers_act_on_is_taken_out() -> None:
    assert one_line("a\x1b[31;1mred\x1b[0m\x1b]0;title\x07 b\r\n\tc\u202ed\u200be\x00", 50) == "ared b cde"
    assert one_line("\ud800\ufeff\u2066x\u2069", 50) == "x"
    assert many_lines("\n\n1\r\n2\r3\tx \u202e\x07\n\n", 50) == "1\n2\n3\tx"
    assert one_line("\u00a0 \u3000a\u00a0: b\u00a0", 50) == "a\u00a0: b", "as French has it"
    assert one_line(FAMILY + " می\u200cخواهم", 50) == FAMILY + " می\u200cخواهم"


def test_a_huge_text_is_not_read_to_its_end() -> None:
    assert one_line("x" * 10_000_000, 20) == "x" * 19 + "…"
    assert one_line(" " * 1_000 + "late", 20) == "", "beyond what is looked at"
    assert many_lines("x\n" * 5_000_000, 20).endswith("…")


@given(st.text(max_size=200))
def test_a_line_is_one(text: str) -> None:
    line = one_line(text, 100)
    assert not re.search(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e]", line)
    assert units(line) <= 100
