"""Texts of other people, made fit for a message: what must not act is taken out, what is too long is cut.

Owns the cleaning of names, reasons and outputs, and the cutting to a service's limits. Lengths are counted in UTF-16
units, the most that any of the services counts, so that a text that fits here fits there. Must never cut inside a
character as people see it, nor inside an escape. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

ELLIPSIS = "…"

# Colours and cursor movements of a terminal, which are in most outputs of jobs and mean nothing in a message.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])")
# Joiners that emoji and several scripts are written with; every other invisible sign goes.
_JOINERS = frozenset("\u200c\u200d")
_VARIATIONS = re.compile("[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\u200d]")


def units(text: str) -> int:
    """The length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


_NO_BREAK = "\u00a0"
"""The blank of French before a colon. No line breaks at it."""


def one_line(text: str, units_max: int) -> str:
    """A name or a sentence: one line, no invisible signs that turn the direction of what follows, not too long."""
    head = text[: 4 * units_max + 64]
    words = "".join(_visible(character, " ") for character in _TERMINAL.sub("", head)).split(" ")
    return cut(" ".join(filter(None, words)).strip(), units_max)


def many_lines(text: str, units_max: int) -> str:
    """An output: its lines and tabs as they are, without what a terminal or a reader would act on."""
    text = _TERMINAL.sub("", text[: 4 * units_max + 64]).replace("\r\n", "\n").replace("\r", "\n")
    kept = (character if character in "\n\t" else _visible(character, "") for character in text)
    lines = [line.rstrip() for line in "".join(kept).split("\n")]
    return cut("\n".join(lines).strip("\n"), units_max)


def _visible(character: str, blank: str) -> str:
    if character in _JOINERS:
        return character
    category = unicodedata.category(character)
    if category in ("Zl", "Zp", "Zs"):
        return character if character == _NO_BREAK else " "
    if category == "Cc":
        return blank
    return "" if category in ("Cf", "Cs", "Co") else character


def cut(text: str, units_max: int) -> str:
    """The text, or as much of its beginning as fits with an ellipsis behind it."""
    return cut_escaped(text, units_max, str)


def cut_escaped(text: str, units_max: int, escape: Callable[[str], str]) -> str:
    """The escaped text, cut so that no escape and no character is broken. `escape` works on each character alone."""
    whole = escape(text)
    if units(whole) <= units_max:
        return whole
    room = units_max - units(ELLIPSIS)
    kept = 0
    for character in text:
        room -= units(escape(character))
        if room < 0:
            break
        kept += 1
    while kept > 0 and _continues(text, kept):
        kept -= 1
    return escape(text[:kept].rstrip()) + ELLIPSIS if units_max > 0 else ""


def _continues(text: str, index: int) -> bool:
    """Whether the sign there belongs to the one before it."""
    if index >= len(text):
        return False
    here = text[index]
    return unicodedata.combining(here) != 0 or bool(_VARIATIONS.match(here)) or text[index - 1] == "\u200d"
