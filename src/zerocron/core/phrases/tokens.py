"""Text to tokens: folding, cutting, and refusing what no schedule contains.

Owns the alphabet. After this file accents, case and typographic spaces no longer exist, and every token is a word, a
number, a clock (`9:30`), a date (`2027-03-01`), a zone (`Asia/Tokyo`) or one mark. It must never know a word of any
language, and never repair a character it does not know: a hidden or foreign character is a reason to refuse.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

MAX_LENGTH: Final = 500  # characters; the longest sensible phrase has about 150

ZONE_AREAS: Final = (
    "africa|america|antarctica|arctic|asia|atlantic|australia|europe|indian|pacific|etc|us|brazil|canada|chile|mexico"
)

_TOKEN = re.compile(
    rf"""
    (?P<date>\d{{4}}-\d{{2}}-\d{{2}}(?!\d))
  | (?P<clock>\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:]))
  | (?P<decimal>\d+\.\d+)
  | (?P<int>\d+)
  | (?P<zone>\b(?:{ZONE_AREAS})/[a-z0-9_+/-]*[a-z0-9])
  | (?P<word>[a-z]+)
  | (?P<mark>[,()/&:+-])
    """,
    re.VERBOSE,
)
_SPACES = frozenset(" \t\n\r\u00a0\u202f\u2009\u2007\u2003\u2002\u200a\u3000")
_REPLACED = str.maketrans({"’": "'", "‘": "'", "`": "'", "–": "-", "—": "-", "‑": "-", "−": "-"})


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a phrase: `text` is folded, `typed` is what the person wrote."""

    kind: str
    text: str
    typed: str


class Unreadable(Exception):
    """The text holds something that belongs to no schedule; `reason` is a key of the tables' MESSAGES."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def fold(text: str) -> str:
    """Lower case without accents: `À` and `a` are one letter, `ª` and `º` become letters."""
    spread = unicodedata.normalize("NFKD", text.translate(_REPLACED))
    return "".join(c for c in spread if not unicodedata.combining(c)).lower()


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, or Unreadable. Brackets and full stops only separate; an apostrophe splits words."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("too_long", str(MAX_LENGTH))
    for char in text:
        if unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn", "Cs") and char not in _SPACES:
            raise Unreadable("hidden_character", f"U+{ord(char):04X}")
    flat, typed = _flatten(text)
    tokens: list[Token] = []
    at = 0
    while at < len(flat):
        if flat[at] in " '.":
            at += 1
            continue
        found = _TOKEN.match(flat, at)
        if found is None:
            raise Unreadable("foreign_character", f"U+{ord(typed[at]):04X}")
        kind = found.lastgroup or "mark"
        tokens.append(Token(kind, found.group(), typed[at : found.end()]))
        at = found.end()
    if not tokens:
        raise Unreadable("empty")
    return [t for t in tokens if t.text not in "()"]


def _flatten(text: str) -> tuple[str, str]:
    """Folded text and, letter for letter beside it, the typed text (folding may change the length of one letter)."""
    flat: list[str] = []
    typed: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        folded = " " if char in _SPACES else fold(char)
        for position, piece in enumerate(folded):
            flat.append(piece)
            typed.append(char if position == 0 else "")
    return "".join(flat), "".join(typed) if len(flat) == sum(len(c) for c in typed) else "".join(flat)
