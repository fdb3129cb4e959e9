"""The catalogs of the pages, as texts."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
from babel.messages.pofile import read_po
from docs.words import file_of

FRENCH = sorted(path.stem for path in file_of("fr", "shared").parent.glob("*.po"))
FAULTS = re.compile(r"[ \u202f](?=[:;?!»])|«(?!\u00a0)|(?<![\u00a0«])»|\u00a0{2}|\w[;?!](?=\s|$)")
"""Blanks of French that a line may break at, and ones that are missing."""


def strings_of(language: str, area: str) -> Iterator[str]:
    for message in read_po(io.BytesIO(file_of(language, area).read_bytes()), locale=language):
        if message.id:
            yield from (message.string,) if isinstance(message.string, str) else message.string or ()


@pytest.mark.parametrize("area", FRENCH)
def test_french_has_its_blanks(area: str) -> None:
    """Before : ; ? ! » and after «, one that no line breaks at (U+00A0)."""
    assert [text for text in strings_of("fr", area) if FAULTS.search(text)] == []


@pytest.mark.parametrize(
    "text", ["Quoi ?", "Quoi?", "a\u202f: b", "« a\u00a0»", "«\u00a0a »", "«\u00a0a»", "a\u00a0\u00a0: b"]
)
def test_faults_of_blanks_are_found(text: str) -> None:
    assert FAULTS.search(text)
