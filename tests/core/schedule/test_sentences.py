"""Everything the package says is said in three languages, completely, and nothing of a template is left over."""

from __future__ import annotations

import re
import string
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

import zerocron.core
from zerocron.core.errors import Invalid
from zerocron.core.phrases import Code
from zerocron.core.schedule import DstPolicy, Schedule, clock_changes
from zerocron.core.schedule.sentences import SENTENCES, UNITS, Remark, Unit, say
from zerocron.core.understanding import understand

LANGUAGES = get_args(Code)
OTHERS = [code for code in LANGUAGES if code != "en"]
ALIKE = {"two_sentences"}  # nothing but places
NOW = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 1000


def _places(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_sentence_is_there_in_every_language() -> None:
    assert set(SENTENCES) == set(UNITS) == set(LANGUAGES)
    for code in OTHERS:
        assert list(SENTENCES[code]) == list(SENTENCES["en"])
        assert set(UNITS[code]) == set(get_args(Unit))


@pytest.mark.parametrize("key", SENTENCES["en"])
def test_a_sentence_says_the_same_in_every_language(key: str) -> None:
    """The values are those of the English one; the words for a unit are each language's own choice."""
    numbered = [{place for place in _places(SENTENCES[code][key]) if place.isdigit()} for code in LANGUAGES]
    assert numbered == [numbered[0]] * len(LANGUAGES)
    values = tuple(f"<{n}>" for n in range(len(numbered[0])))
    said = [say(Remark(key, values, unit), code) for code in LANGUAGES for unit in get_args(Unit)]
    for words in said:
        assert not re.search(r"[{}]|\s\s|^\s|\s$", words)
        assert all(value in words for value in values)
    assert len({SENTENCES[code][key] for code in LANGUAGES}) == len(LANGUAGES) or key in ALIKE


def test_every_sentence_is_used() -> None:
    folder = Path(zerocron.core.__file__).parent
    files = [file for file in folder.rglob("*.py") if file.name != "sentences.py"]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    composed = re.compile(r"(one|many)_(lost|covered|moved|first|both)")
    assert [key for key in SENTENCES["en"] if f'"{key}"' not in source and not composed.fullmatch(key)] == []


def test_a_language_without_a_table_is_spoken_to_in_english() -> None:
    assert say(Remark("step_zero"), "de") == "A step must be at least 1."


@pytest.mark.parametrize("dst", get_args(DstPolicy))
@pytest.mark.parametrize("cron", ["30 2 * * *", "0,30 2 * * *", "0 2,3 * * *", "0-59 2 * * *", "0,30 2,3 * * *"])
def test_changes_of_the_clocks_are_told_in_every_language(cron: str, dst: DstPolicy) -> None:
    schedule = Schedule("cron", cron, None, None, "Europe/Paris", dst)
    told = {code: clock_changes(schedule, after=NOW, language=code) for code in LANGUAGES}
    for code in OTHERS:
        assert [change.at for change in told[code]] == [change.at for change in told["en"]]
        for change, english in zip(told[code], told["en"], strict=True):
            assert re.findall(r"\d\d:\d\d", change.effect) == re.findall(r"\d\d:\d\d", english.effect)
            assert not re.search(r"\b(the|clocks|and|more|runs?)\b|[{}]", change.effect)


def test_a_nightly_job_in_french_and_spanish() -> None:
    nightly = Schedule("cron", "30 2 * * *", None, None, "Europe/Paris")
    french, spanish = (clock_changes(nightly, after=NOW, years=1, language=code)[0].effect for code in OTHERS)
    assert french == (
        "Les horloges avancent de 02:00 à 03:00 : 02:30 n'existe pas ; le passage a lieu à 03:00 à la place."
    )
    assert spanish == "Los relojes se adelantan de 02:00 a 03:00: 02:30 no existe; se ejecuta a las 03:00 en su lugar."


@pytest.mark.parametrize(
    ("text", "language", "warning"),
    [
        ("0 9 13 * FRI", "fr", "Le jour du mois et le jour de la semaine sont tous deux restreints"),
        ("0 9 13 * FRI", "es", "El día del mes y el día de la semana están restringidos"),
        ("*/7 * * * *", "fr", "*/7 ne divise pas exactement : le compte repart à minute 0 de chaque heure."),
        ("*/7 * * * *", "es", "*/7 no divide exactamente: vuelve a empezar en minuto 0 de cada hora."),
        ("tous les 2 jours", None, "Un intervalle compte le temps réel"),
        ("cada 2 días", None, "Un intervalo cuenta el tiempo real"),
    ],
)
def test_a_warning_is_in_the_language_of_the_answer(text: str, language: str | None, warning: str) -> None:
    found = understand(text, language=language, timezone="Europe/Paris", now=NOW)
    assert any(said.startswith(warning) for said in found.warnings), found.warnings


def test_a_phrase_of_one_language_is_answered_in_another() -> None:
    found = understand("every mondey at 9", wording="es", now=NOW)
    assert found.language == "en"
    assert found.warnings == ("«mondey» se lee como «monday».", "La hora se lee como 09:00.")


@pytest.mark.parametrize(
    ("text", "timezone", "french", "spanish"),
    [
        ("0 25 * * *", "UTC", "Le champ heure ne peut pas", "El campo hora no puede"),
        ("0 9 30 2 *", "UTC", "'0 9 30 2 *' ne se déclenchera jamais", "'0 9 30 2 *' no se ejecutará nunca"),
        ("@reboot", "UTC", "'@reboot' n'est pas un surnom", "'@reboot' no es un apodo"),
        ("0 9 * * * root /bin/x", "UTC", "C'est une ligne entière", "Es una línea entera"),
        ("2020-01-01 09:00", "UTC", "'2020-01-01 09:00' est passé", "'2020-01-01 09:00' ya pasó"),
        ("x" * 2000, "UTC", "Un horaire a au plus 1,000", "Un horario tiene como mucho 1,000"),
        ("0 9 * * *", "Europe/Pari", "Le fuseau horaire 'Europe/Pari' n'existe", "No existe la zona horaria"),
        ("TZ=Asia/Tokyo 0 9 * * *", "Europe/Paris", "L'horaire nomme le fuseau", "El horario nombra la zona"),
    ],
)
def test_a_refusal_is_in_the_language_of_the_answer(text: str, timezone: str, french: str, spanish: str) -> None:
    for code, words in zip(OTHERS, (french, spanish), strict=True):
        with pytest.raises(Invalid) as refused:
            understand(text, language=code, timezone=timezone, now=NOW)
        assert refused.value.message.startswith(words)
        assert refused.value.fields[0].message == refused.value.message
