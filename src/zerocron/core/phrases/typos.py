"""Typing slips: a word one letter away from exactly one known word is read as that word, and the correction is shown.

Owns the distance. It must never change a number, a short word, or a word that could be two others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .tokens import Token

SHORTEST: Final = 4  # letters; shorter words are one letter away from too many others
MOST: Final = 2  # slips in one phrase; with more it is another language or none

Correction = tuple[str, str]


def corrected(
    tokens: list[Token], known: frozenset[str], foreign: frozenset[str]
) -> tuple[list[Token], tuple[Correction, ...]] | None:
    """The tokens with their slips mended, or None when there is nothing to mend or it cannot be done surely.

    A `foreign` word is rightly spelt, in another language: it is no slip.
    """
    unknown = {t.text for t in tokens if t.kind == "word" and t.text not in known}
    if not 0 < len(unknown) <= MOST or unknown & foreign:
        return None
    mended: dict[str, str] = {}
    for word in unknown:
        near = [w for w in known if len(w) >= SHORTEST - 1 and one_slip(word, w)] if len(word) >= SHORTEST else []
        if len(near) > 1:  # "mondey": the plural of a word is no rival of the word
            near = [w for w in near if not (w.endswith("s") and w[:-1] in near)]
        if len(near) != 1:
            return None
        mended[word] = near[0]
    fixed = [replace(t, text=mended.get(t.text, t.text)) if t.kind == "word" else t for t in tokens]
    shown = {t.typed: mended[t.text] for t in tokens if t.text in mended and t.kind == "word"}
    return fixed, tuple(shown.items())


def one_slip(a: str, b: str) -> bool:
    """One letter too many, too few, wrong, or two neighbours swapped."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    rest_a, rest_b = a[start:], b[start:]
    if len(a) == len(b):
        swapped = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
        return rest_a[1:] == rest_b[1:] or swapped
    longer, shorter = (rest_a, rest_b) if len(a) > len(b) else (rest_b, rest_a)
    return longer[1:] == shorter
