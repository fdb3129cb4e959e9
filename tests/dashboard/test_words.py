"""The words of pages and messages, as texts."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from babel.messages.pofile import read_po
from docs.words import file_of

from zerocron.channels.letters import invitation_letter, reset_letter
from zerocron.channels.words import LANGUAGES as MESSAGES
from zerocron.core.phrases import LANGUAGES as PHRASES
from zerocron.core.schedule.sentences import SENTENCES

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


def texts_in(table: object) -> Iterator[str]:
    """All strings of a table, however it is nested."""
    if isinstance(table, str):
        yield table
    elif isinstance(table, Mapping):
        yield from (text for value in table.values() for text in texts_in(value))
    elif isinstance(table, tuple):
        yield from (text for value in table for text in texts_in(value))
    elif dataclasses.is_dataclass(table):
        yield from (text for field in dataclasses.fields(table) for text in texts_in(getattr(table, field.name)))


LETTER: Any = {"base_url": "https://0cron.example", "path": "/x", "language": "fr"}


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(PHRASES["fr"].messages, id="refusals of phrases"),
        pytest.param(PHRASES["fr"].notes, id="notes of phrases"),
        pytest.param(SENTENCES["fr"], id="sentences about schedules"),
        pytest.param(MESSAGES["fr"], id="messages"),
        pytest.param(invitation_letter("id", "to", team="A", inviter="B", **LETTER), id="an invitation"),
        pytest.param(reset_letter("id", "to", **LETTER), id="a letter for a new password"),
    ],
)
def test_french_has_its_blanks_where_words_are_not_in_catalogs(table: object) -> None:
    texts = list(texts_in(table))
    assert len(texts) > 3
    assert [text for text in texts if FAULTS.search(text)] == []


@pytest.mark.parametrize(
    "text", ["Quoi ?", "Quoi?", "a\u202f: b", "« a\u00a0»", "«\u00a0a »", "«\u00a0a»", "a\u00a0\u00a0: b"]
)
def test_faults_of_blanks_are_found(text: str) -> None:
    assert FAULTS.search(text)
