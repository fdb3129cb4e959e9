"""The API's sentences, said in the language of whoever reads a page."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from babel.messages.pofile import read_po
from docs.sentences import of_source, sentences
from docs.words import file_of
from tests.dashboard.support import Element, Pages

from zerocron.core.curl import parse
from zerocron.core.model import JsonRule, SuccessRule
from zerocron.core.success import broken_rule
from zerocron.dashboard.said import LOOKS_MAX, PLACE, TEXT_CHARACTERS_MAX, Sayer
from zerocron.dashboard.specimens import SPECIMENS
from zerocron.dashboard.specimens.kinds import SESSION
from zerocron.dashboard.words import said

SAYER = Sayer(
    [
        ("A team has at most {0} channels. Delete one.", "Une équipe a au plus {0} canaux. Supprimez-en un."),
        ("This field is needed.", "Ce champ est nécessaire."),
        ("The job is disabled: {0} Resume it.", "La tâche est désactivée : {0} Reprenez-la."),
        ("There is no {0}.", "Il n'y a pas de {0}."),
        ("{1} came before {0}.", "{0} est venu après {1}."),
        ("; this is {0}", " ; ceci est {0}"),
        ("{0} and {1}", "{0} et {1}"),
        ("Use {0}.", "Mettez {0}."),
        ("It is wrong ({0}).{1}", "C'est faux ({0}).{1}"),
        ("5 of them", "cinq"),
        ("This is needed: {0}", "Il faut ceci : {0}"),
        ("A name. Any will do.", "Un nom. N'importe lequel."),
        ("It is named by {0}, which would fall silent.", "Il est nommé par {0}."),
        ('the job "{0}"', "la tâche « {0} »"),
        ("{0} and others", "{0} et d'autres"),
    ],
    lambda text: text.replace(",", " "),
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A team has at most 20 channels. Delete one.", "Une équipe a au plus 20 canaux. Supprimez-en un."),
        ("A team has at most 1,000 channels. Delete one.", "Une équipe a au plus 1 000 canaux. Supprimez-en un."),
        ("url: This field is needed.", "url: Ce champ est nécessaire."),
        ("There is no x. This field is needed.", "Il n'y a pas de x. Ce champ est nécessaire."),
        ("The job is disabled: There is no y. Resume it.", "La tâche est désactivée : Il n'y a pas de y. Reprenez-la."),
        ("a came before b.", "b est venu après a."),
        ("There is no {0} {1}.", "Il n'y a pas de {0} {1}."),
        ("There is no x and y.", "Il n'y a pas de x et y."),
        ("There is no 'x and y'.", "Il n'y a pas de 'x and y'."),
        ('There is no "the job "a"".', 'Il n\'y a pas de "the job "a"".'),
        ('It is named by the job "a and b", which would fall silent.', "Il est nommé par la tâche « a and b »."),
        (
            'It is named by the job "a", the job "b" and others, which would fall silent.',
            "Il est nommé par la tâche « a », la tâche « b » et d'autres.",
        ),
        ("It is wrong (5 of them). There is no x.", "C'est faux (5 of them). Il n'y a pas de x."),
        (
            "config.name: This is needed: A name. Any will do. There is no x.",
            "config.name: Il faut ceci : Un nom. N'importe lequel. Il n'y a pas de x.",
        ),
        ("Use 5.", "Mettez 5."),
        ("Use it as one likes.", "Use it as one likes."),
        ("Bread and butter", "Bread and butter"),
        ("Nobody knows this one.", "Nobody knows this one."),
        ("", ""),
    ],
)
def test_a_sentence_is_found_by_its_text(text: str, told: str) -> None:
    assert SAYER.said(text) == told


def test_a_value_is_text_and_no_markup() -> None:
    assert SAYER.said("There is no <b>{1}\\1</b>.") == "Il n'y a pas de <b>{1}\\1</b>."


@pytest.mark.parametrize(
    "part", ["There is no ", "a came before b. ", "; this is ", ". ", "x: ", "was x: " + "a" * 3_800]
)
def test_any_text_is_quick(part: str) -> None:
    begun = time.perf_counter()
    for count in (TEXT_CHARACTERS_MAX // len(part), 100_000):
        said("fr", part * count)

    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize("number", ["1,000" + ",000" * 9, "1,000" * 80, "1,000.12345", "-1,000.5", "1,00"])
def test_a_number_of_somebody_else_stays_to_the_letter(number: str) -> None:
    """It took the page down, or was rounded until a failed rule looked like a kept one."""
    told = said("fr", f"The header X-Count was {number}; the job expects 1.")

    assert number in told
    assert told.startswith("L'en-tête X-Count")


@pytest.mark.parametrize("language", ["fr", "es"])
@pytest.mark.parametrize("text", ["1,000", "paused", "The last run failed.", "It is wrong; 1,000", "1,000, 2,000"])
def test_what_somebody_wrote_stays_to_the_letter_in_every_sentence(language: str, text: str) -> None:
    """Also what is a number, or words of ours."""
    header = SuccessRule(headers=(("X-Total", text),))
    json = SuccessRule(json=(JsonRule("$.total", orjson.dumps(text).decode()),))
    command = f"curl https://example.com -H '{text}' -H '{text};x:' -H 'A B {text}:1' --quote '{text}' ; {text}"
    sentences = [
        broken_rule(header, 200, "", [("X-Total", text[1:])]),
        broken_rule(json, 200, orjson.dumps({"total": f"{text}!"}).decode()),
        broken_rule(SuccessRule(body_contains=text), 200, f"{text[1:]}"),
        broken_rule(SuccessRule(body_not_contains=text), 200, text),
        f"“{text}” paused the job.",
        *parse(command).warnings,
        *parse(f"curl https://example.com '{text}'").warnings,
    ]

    assert len(sentences) >= 9
    for sentence in sentences:
        assert sentence is not None
        told = said(language, sentence)
        assert told != sentence, "it is said in the language"
        assert text in told, sentence


@pytest.mark.parametrize(
    ("others", "told"), [(LOOKS_MAX // 10, "C'est faux. And so on."), (LOOKS_MAX, "It is wrong. And so on.")]
)
def test_what_is_like_too_many_sentences_is_left_as_it_is(others: int, told: str) -> None:
    """Anybody can make texts of parts of ours; they must cost no more than ours do."""
    sayer = Sayer([("It is wrong.", "C'est faux."), *((f"{{0}} it is {number}.", "") for number in range(others))])

    assert sayer.said("It is wrong. And so on.") == told


def test_sentences_are_taken_from_the_source() -> None:
    found = of_source(
        '"""A module. It says nothing."""\nimport x\n'
        "NO = 'There is no such thing.'\n"
        "def f(a, b):\n"
        "    log.info('This is for the log.')\n"
        "    if a: raise NotFound(f'There is no {a} of {b:,}' ' there.')\n"
        "    raise Conflict(f'Leave {a}{b} out.', field='short')\n"
    )

    assert found == ["There is no such thing.", "There is no {0} of {1} there.", "Leave {0} out."]


@pytest.mark.parametrize("language", ["fr", "es"])
def test_words_have_the_places_of_their_sentence(language: str) -> None:
    catalog = read_po(io.BytesIO(file_of(language, "said").read_bytes()), locale=language)
    pairs = [(str(each.id), str(each.string)) for each in catalog if each.id and each.string]

    assert [pair for pair in pairs if set(PLACE.findall(pair[0])) != set(PLACE.findall(pair[1]))] == []
    assert {str(each.id) for each in catalog if each.id} == set(sentences())


@pytest.mark.parametrize("language", ["fr", "es"])
def test_no_sentence_is_taken_for_another(language: str) -> None:
    catalog = read_po(io.BytesIO(file_of(language, "said").read_bytes()), locale=language)
    told = [(_with_values(str(each.id)), _with_values(str(each.string))) for each in catalog if each.id]

    assert [text for text, words in told if text.endswith((".", "?", "!")) and said(language, text) != words] == []


def _with_values(sentence: str) -> str:
    return PLACE.sub(lambda place: f"value{place[1]}", sentence)


OTHERS = {
    "name": "people's",
    "subject_name": "people's",
    "schedule": "as it was typed",
    "description": "of a schedule, in the language that it was typed in",
    "suggestions": "of a schedule, to be typed",
    "user_agent": "a browser's",
}
"""The fields of answers whose texts stay in their language, and whose they are. What targets answer is literal."""

LITERAL = frozenset(("code", "pre", "kbd", "textarea", "option", "script", "style"))
READ_ALOUD = ("title", "aria-label", "placeholder", "data-label", "alt")
_CUT = re.compile(r"(?<=[.?!:;]) ")
_A_WORD = re.compile(r"(?<![\w/.$-])[A-Za-z][a-z']+(?![\w/.@=-])|\b[aI]\b")


def of_others(told: Any, field: str = "") -> Iterator[str]:
    """The texts in an answer that are not the API's own."""
    if isinstance(told, dict):
        for name, each in told.items():
            yield from of_others(each, name)
    elif isinstance(told, (list, tuple)):
        for each in told:
            yield from of_others(each, field)
    elif isinstance(told, str) and field in OTHERS:
        yield told


def texts_of(element: Element) -> Iterator[str]:
    """What is read on a page, but for what is shown letter by letter."""
    if element.tag in LITERAL:
        return
    yield from (element.get(name) for name in READ_ALOUD if element.get(name))
    for each in element.children:
        if isinstance(each, Element):
            yield from texts_of(each)
        else:
            yield each


async def left_in_english(name: str, language: str, **answers: Any) -> set[str]:
    """What of a page is the same for readers of that language and of English, and has three words or more."""
    others = sorted({*of_others(SPECIMENS[name].answers), *(text for _, text in SPECIMENS[name].form or ())}, key=len)
    found = []
    for reader in ("en", language):
        tree = (await Pages.of(name, **answers).specimen(name, reader)).tree
        parts = set()
        for text in texts_of(tree):
            rest = " ".join(text.split())
            for each in reversed(others):
                rest = rest.replace(each, "") if " " in each else rest
            parts |= {part for part in _CUT.split(rest) if len(_A_WORD.findall(part)) > 2}
        found.append(parts)
    return found[0] & found[1]


@pytest.mark.parametrize("name", [name for name in SPECIMENS if not name.endswith("-hostile")])
@pytest.mark.parametrize("language", ["fr", "es"])
async def test_a_page_says_nothing_in_english_to_others(name: str, language: str) -> None:
    """Hostile specimens are left out: in them all texts are others'."""
    assert await left_in_english(name, language) == set()


async def test_english_on_a_page_would_be_found() -> None:
    overview = SPECIMENS["overview"].answers["GET /v1/overview"]
    odd = {**overview["attention"][0], "detail": "Nobody has words for this. The status was 502; the job accepts 2xx."}

    found = await left_in_english("overview", "fr", **{"GET /v1/overview": {**overview, "attention": [odd]}})

    assert found == {"Nobody has words for this."}


async def test_what_the_site_itself_refuses_is_said_as_well() -> None:
    session = {**SESSION, "person": {**SESSION["person"], "language": "fr"}}

    shown = await Pages.over({"GET /v1/session": session}).post("/jobs/new", headers={"sec-fetch-site": "cross-site"})

    assert shown.status == 403
    assert "Ceci ne vient pas d'une page de ce serveur" in shown.tree.one("main").text
    assert shown.tree.one("title").text == "Interdit · 0cron"
