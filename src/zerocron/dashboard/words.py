"""The languages of the pages: which one a visitor reads, and the words in it.

Owns the catalogs. English is in the templates and in what the API says; French and Spanish are in
`words/<language>/*.po`: what the API says in `said.po`, and one file for each area of pages, all of these together one
catalog (`python -m docs.words` renews them, and a test says which texts lack words).
"""

from __future__ import annotations

import gettext
import io
import re
from functools import cache
from importlib.resources import files

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from zerocron.dashboard.said import Sayer, schedule_pairs

LANGUAGES = {"en": "English", "fr": "Français", "es": "Español"}
DEFAULT = "en"
SAID = "said.po"
"""The sentences of the API, which are found by `said` and not by their whole text."""

_WANTED = re.compile(r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9]{1,8})*\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*")
_WANTED_MAX = 20


@cache
def words_of(language: str) -> gettext.NullTranslations:
    """The catalog of a language; English ones are the texts themselves."""
    if language == DEFAULT:
        return gettext.NullTranslations()
    whole = Catalog(locale=language)
    for file in sorted(files("zerocron.dashboard").joinpath("words", language).iterdir(), key=lambda it: it.name):
        if file.name.endswith(".po") and file.name != SAID:
            for message in read_po(io.BytesIO(file.read_bytes()), locale=language):
                if message.id and message.string:
                    whole.add(message.id, message.string, context=message.context)
    compiled = io.BytesIO()
    write_mo(compiled, whole)
    return gettext.GNUTranslations(io.BytesIO(compiled.getvalue()))


@cache
def _sayer_of(language: str) -> Sayer:
    file = files("zerocron.dashboard").joinpath("words", language, SAID)
    catalog = read_po(io.BytesIO(file.read_bytes()), locale=language)
    pairs = [(str(each.id), str(each.string)) for each in catalog if each.id and each.string]
    return Sayer(
        [*pairs, *schedule_pairs(language)], lambda text: format_decimal(text.replace(",", ""), locale=language)
    )


def said(language: str, text: str | None) -> str:
    """A sentence of the API in a language of ours; any other text as it is."""
    if not text or language == DEFAULT:
        return text or ""
    return _sayer_of(language).said(text)


def wanted_language(accept_language: str | None) -> str:
    """The best of ours for an Accept-Language header (RFC 9110, 12.5.4)."""
    best, best_quality = DEFAULT, 0.0
    for part in (accept_language or "")[:500].split(",")[:_WANTED_MAX]:
        match = _WANTED.fullmatch(part)
        if match is None:
            continue
        language, quality = match[1].lower(), float(match[2] or 1)
        if language in LANGUAGES and quality > best_quality:
            best, best_quality = language, quality
    return best
