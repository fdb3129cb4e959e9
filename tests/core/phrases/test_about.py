"""What is not meant exactly is refused for that, in the words that say so, with the exact thing as a suggestion."""

from __future__ import annotations

import pytest

from zerocron.core.errors import Invalid
from zerocron.core.phrases import LANGUAGES, Code
from zerocron.core.understanding import understand

NOW = 1_900_000_000_000

TIMES: list[tuple[Code, str, str]] = [
    ("en", "every day around 7am", "every day at 07:00"),
    ("en", "monday about 7am", "every Monday at 07:00"),
    ("en", "roughly 7am every monday", "every Monday at 07:00"),
    ("en", "every day at approximately 9:30", "every day at 09:30"),
    ("en", "more or less at noon every day", "every day at 12:00"),
    ("fr", "lundi vers 7h", "chaque lundi à 7h"),
    ("fr", "tous les lundis vers 7h", "chaque lundi à 7h"),
    ("fr", "vers 7h", "tous les jours à 7h"),
    ("fr", "le 1er du mois à environ 8h", "le 1er du mois à 8h"),
    ("fr", "tous les jours autour de 7h", "tous les jours à 7h"),
    ("fr", "lundi aux alentours de midi", "chaque lundi à 12h"),
    ("fr", "à peu près à 9h tous les jours", "tous les jours à 9h"),
    ("es", "los lunes sobre las 7", "cada lunes a las 7:00"),
    ("es", "lunes hacia las 7", "cada lunes a las 7:00"),
    ("es", "todos los días alrededor de las 9", "todos los días a las 9:00"),
    ("es", "a eso de las 9 todos los días", "todos los días a las 9:00"),
    ("es", "más o menos a las 9 cada día", "todos los días a las 9:00"),
    ("es", "sobre las 7", "todos los días a las 7:00"),
]
RHYTHMS: list[tuple[Code, str, str]] = [
    ("en", "about every 5 minutes", "every 5 minutes"),
    ("en", "around every 5 minutes", "every 5 minutes"),
    ("en", "every roughly 5 minutes", "every 5 minutes"),
    ("en", "approximately hourly", "every hour"),
    ("en", "every 5 minutes, more or less", "every 5 minutes"),
    ("en", "every 5 minutes or so", "every 5 minutes"),
    ("en", "every day at 9am give or take", "every day at 09:00"),
    ("en", "every day at 9ish", "every day at 09:00"),
    ("fr", "environ toutes les 5 minutes", "toutes les 5 minutes"),
    ("fr", "toutes les 5 minutes environ", "toutes les 5 minutes"),
    ("fr", "toutes les environ 5 minutes", "toutes les 5 minutes"),
    ("fr", "à peu près toutes les 5 minutes", "toutes les 5 minutes"),
    ("fr", "approximativement toutes les heures", "toutes les heures"),
    ("es", "aproximadamente cada 5 minutos", "cada 5 minutos"),
    ("es", "cada 5 minutos más o menos", "cada 5 minutos"),
    ("es", "cada unos 5 minutos", "cada 5 minutos"),
    ("es", "alrededor de cada 5 minutos", "cada 5 minutos"),
]
CASES = [(*each, "about") for each in TIMES] + [(*each, "loose") for each in RHYTHMS]


@pytest.mark.parametrize("told", [None, "the language"])
@pytest.mark.parametrize(("language", "text", "exact", "reason"), CASES)
def test_what_is_not_exact_is_refused_for_it(
    language: Code, text: str, exact: str, reason: str, told: str | None
) -> None:
    with pytest.raises(Invalid) as refused:
        understand(text, now=NOW, language=language if told else None)

    assert refused.value.message == LANGUAGES[language].messages[reason]
    assert refused.value.suggestions[0] == exact


@pytest.mark.parametrize(("language", "text"), [("en", "in about 20 minutes"), ("fr", "dans environ 20 minutes")])
def test_a_wait_is_refused_like_a_rhythm(language: Code, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        understand(text, now=NOW, language=language)

    assert refused.value.message == LANGUAGES[language].messages["loose"]
    assert len(refused.value.suggestions) == 1


@pytest.mark.parametrize(("language", "text", "exact"), [each for each in TIMES + RHYTHMS if " " in each[1]])
def test_what_is_suggested_is_understood(language: Code, text: str, exact: str) -> None:
    assert understand(exact, now=NOW, language=language).schedule.cron
