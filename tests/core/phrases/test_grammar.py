"""The notation of patterns, and tables that would never work."""

from __future__ import annotations

import pytest

from zerocron.core.phrases import meaning as m
from zerocron.core.phrases.grammar import Grammar, Scan, Words, clause, compile_pattern, row
from zerocron.core.phrases.tokens import tokenize

WORDS = (Words("COLOUR", {1: "red", 2: "dark red"}, "{} => {}"), Words("SEP", {1: ", | and"}, "{} => {}"))


def _first(pattern: str, text: str) -> object:
    grammar = Grammar(WORDS, (row("CLAUSE", pattern, lambda *values: values),))
    found = Scan(grammar, tokenize(text)).find("CLAUSE", 0)
    return None if found is None else (found.end, found.value)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("the COLOUR", "the red", (2, (1,))),
        ("the COLOUR", "The  RÉD", (2, (1,))),
        ("the COLOUR", "the dark red", (3, (2,))),
        ("the COLOUR", "a red", None),
        ("[the] COLOUR [house]", "red house", (2, (1,))),
        ("(the|a|one of the) COLOUR", "one of the red", (4, (1,))),
        ("COLOUR [COLOUR]", "red", (1, (1, None))),
        ("COLOUR+", "red, dark red and red", (6, ((1, 2, 1),))),
        ("COLOUR+", "red, blue", (1, ((1,),))),
        ("COLOUR !house", "red house", None),
        ("COLOUR !house", "red", (1, (1,))),
        ("INT", "007", (1, (7,))),
        ("DIGITS", "007", (1, ("007",))),
        ("half-past", "half past", None),
        ("half-past", "half-past", (3, ())),
    ],
)
def test_the_notation(pattern: str, text: str, found: object) -> None:
    assert _first(pattern, text) == found


def test_the_longest_row_wins_then_the_first() -> None:
    rows = (
        clause("COLOUR+ car", m.same),
        clause("COLOUR+", m.give("short")),
        clause("red house", m.give("first")),
        clause("red [big] house", m.same),
    )
    found = Scan(Grammar(WORDS, rows), tokenize("red house")).find("CLAUSE", 0)
    assert found is not None
    assert found.value == "first"


def test_a_kind_that_needs_itself_does_not_match_for_ever() -> None:
    grammar = Grammar(WORDS, (clause("CLAUSE red", m.same), clause("COLOUR", m.same)))
    found = Scan(grammar, tokenize("red red")).find("CLAUSE", 0)
    assert found is not None
    assert found.end == 1


@pytest.mark.parametrize("pattern", ["[the", "the]", "(a|b", "a)", "(a]", "[a)", "a | b"])
def test_an_unbalanced_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="unbalanced"):
        compile_pattern(pattern)


def test_a_pattern_with_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no such kind"):
        Grammar(WORDS, (clause("the COLOR", m.same),))
