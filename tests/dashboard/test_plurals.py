"""A text with a count has a form for one and a form for many, in every language."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from docs.words import DASHBOARD, clashes, file_of, templates
from tests.dashboard.support import Pages

from zerocron.dashboard.specimens.kinds import SESSION, session
from zerocron.dashboard.words import words_of

NO_COUNT = re.compile(
    r"browser|code|email|first|hour|id|kind|label|last|least|left|length|loop|most|name|node|number|outcomes|ratio|size"
    r"|system|team|time|used|version|when|zone"
)
"""What a text of one form may hold. A `number` names one of several; `most` and `least` are written with their unit."""

PLACEHOLDER = re.compile(r"%\((\w+)\)")
BESIDE = re.compile(r"(?:number\([^}]*\)|\| length) ?\}\}(?:</\w+>)? ?(?:<\w+[^>]*>)? ?\{\{ _\([^}]*\}\}")
"""A number with a word behind it that knows nothing of it."""

HTML = sorted((DASHBOARD / "templates").rglob("*.html"))


def texts() -> Iterator[str]:
    for catalog in templates().values():
        yield from (each.id for each in catalog if each.id and isinstance(each.id, str))


@pytest.mark.parametrize("text", sorted({text for text in texts() if PLACEHOLDER.search(text)}))
def test_a_text_with_a_count_has_two_forms(text: str) -> None:
    counts = [name for name in PLACEHOLDER.findall(text) if not NO_COUNT.fullmatch(name)]
    assert not counts, "say it by ngettext, or add the name to NO_COUNT"


@pytest.mark.parametrize("path", HTML, ids=lambda path: str(path.relative_to(DASHBOARD)))
def test_no_word_stands_beside_a_number_that_it_does_not_know(path: Path) -> None:
    assert BESIDE.findall(path.read_text(encoding="utf-8")) == []


def test_what_is_looked_for_would_be_found() -> None:
    assert BESIDE.search('<strong>{{ number(jobs.active) }}</strong> <span>{{ _("active") }}</span>')
    assert BESIDE.search('{{ jobs | length }} {{ _("jobs") }}')
    assert not NO_COUNT.fullmatch(PLACEHOLDER.findall("%(count)s jobs")[0])


@pytest.mark.parametrize("language", ["fr", "es"])
def test_both_forms_say_how_many(language: str) -> None:
    for area in templates():
        path = file_of(language, area)
        for message in read_po(io.BytesIO(path.read_bytes()), locale=language) if path.exists() else ():
            if message.pluralizable:
                one, many = list(message.id)
                said_one, *said_many = list(message.string or ())
                for said in said_many:
                    assert set(PLACEHOLDER.findall(said)) == set(PLACEHOLDER.findall(many)), message.id
                assert set(PLACEHOLDER.findall(said_one)) <= set(PLACEHOLDER.findall(many)), message.id
                assert "%(num)s" in said_one or "%(num)s" not in one, message.id


@pytest.mark.parametrize(
    ("language", "counted"),
    [
        ("fr", {0: "0 active", 1: "1 active", 2: "2 actives", 1_000_000: "1000000 actives"}),
        ("es", {0: "0 activas", 1: "1 activa", 2: "2 activas", 1_000_000: "1000000 activas"}),
        ("en", {0: "0 active", 1: "1 active", 2: "2 active"}),
    ],
)
def test_each_language_counts_in_its_own_way(language: str, counted: dict[int, str]) -> None:
    words = words_of(language)
    form = "%(num)s active"
    assert {n: words.ngettext(form, form, n) % {"num": n} for n in counted} == counted


@pytest.mark.parametrize(
    ("language", "shown"), [("en", "8,765 secrets"), ("fr", "8\u202f765 secrets"), ("es", "8.765 secretos")]
)
async def test_a_large_number_is_written_as_the_language_does(language: str, shown: str) -> None:
    looks = session(person={**SESSION["person"], "language": language})
    pages = Pages.of("secrets-rotate", **{"GET /v1/session": looks, "POST /v1/secrets/rotate": {"secrets": 8_765}})

    assert shown in (await pages.post("/secrets/rotate")).html


@pytest.mark.parametrize("language", ["fr", "es"])
def test_a_text_has_one_translation(language: str) -> None:
    """All areas are one catalog: of two, one of them was shown in both."""
    assert list(clashes(language)) == []
