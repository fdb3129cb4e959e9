"""Schedules in the words of three languages, from their meaning."""

# ruff: noqa: E501  (a row is one line)

from __future__ import annotations

import pytest
from tests.core.phrases.expectations import NOW

from zerocron.core.phrases import describe_cron, describe_instant, describe_interval, fields, read
from zerocron.core.schedule.cron_parse import compile_cron

SAID = [
    ("0 9 * * *", "every day at 09:00", "tous les jours à 9h", "todos los días a las 9:00"),
    ("30 9 * * 1-5", "every weekday at 09:30", "du lundi au vendredi à 9h30", "de lunes a viernes a las 9:30"),
    ("30 9 * * MON-FRI", "every weekday at 09:30", "du lundi au vendredi à 9h30", "de lunes a viernes a las 9:30"),
    ("0 0 * * 0,6", "every Saturday and Sunday at 00:00", "chaque samedi et dimanche à 0h", "cada sábado y domingo a las 0:00"),
    ("0 1,13 * * 5", "every Friday at 01:00 and 13:00", "chaque vendredi à 1h et 13h", "cada viernes a la 1:00 y a las 13:00"),
    ("*/15 * * * *", "every 15 minutes", "toutes les 15 minutes", "cada 15 minutos"),
    ("* * * * *", "every minute", "toutes les minutes", "cada minuto"),
    ("0 * * * *", "every hour", "toutes les heures", "cada hora"),
    ("15 */2 * * *", "every 2 hours at minute 15", "toutes les 2 heures à la minute 15", "cada 2 horas en el minuto 15"),
    ("5,35 * * * *", "every hour at minutes 5 and 35", "toutes les heures aux minutes 5 et 35", "cada hora en los minutos 5 y 35"),
    (
        "*/15 9-16 * * 1-5",
        "every 15 minutes from 09:00 to 16:45 on weekdays",
        "toutes les 15 minutes de 9h à 16h45 du lundi au vendredi",
        "cada 15 minutos de 9:00 a 16:45 de lunes a viernes",
    ),
    (
        "*/30 22-1 * * *",
        "every 30 minutes from 22:00 to 01:30",
        "toutes les 30 minutes de 22h à 1h30",
        "cada 30 minutos de 22:00 a 1:30",
    ),
    ("0 8-20/2 * * *", "every 2 hours from 08:00 to 20:00", "toutes les 2 heures de 8h à 20h", "cada 2 horas de 8:00 a 20:00"),
    (
        "30 7 1,15 * *",
        "on the 1st and the 15th of the month at 07:30",
        "le 1er et le 15 du mois à 7h30",
        "el 1 y el 15 de cada mes a las 7:30",
    ),
    ("0 0 L * *", "on the last day of the month at 00:00", "le dernier jour du mois à 0h", "el último día de cada mes a las 0:00"),
    ("0 17 LW * *", "on the last weekday of the month at 17:00", "le dernier jour ouvrable du mois à 17h", "el último día laborable de cada mes a las 17:00"),
    ("0 9 * * 2#2", "on the second Tuesday of the month at 09:00", "le deuxième mardi du mois à 9h", "el segundo martes de cada mes a las 9:00"),
    ("0 9 * * 5L", "on the last Friday of the month at 09:00", "le dernier vendredi du mois à 9h", "el último viernes de cada mes a las 9:00"),
    ("0 8 25 12 *", "on the 25th of December at 08:00", "le 25 décembre à 8h", "el 25 de diciembre a las 8:00"),
    ("0 9 * 4,5 1#1", "on the first Monday of April and May at 09:00", "le premier lundi d'avril et mai à 9h", "el primer lunes de abril y mayo a las 9:00"),
    ("0 9 * * 1-4", "from Monday to Thursday at 09:00", "du lundi au jeudi à 9h", "de lunes a jueves a las 9:00"),
    ("0 8 * 3 1", "every Monday in March at 08:00", "chaque lundi en mars à 8h", "cada lunes en marzo a las 8:00"),
    ("30 0 9 * * *", "every day at 09:00:30", "tous les jours à 09:00:30", "todos los días a las 09:00:30"),
    ("@daily", "every day at 00:00", "tous les jours à 0h", "todos los días a las 0:00"),
]  # fmt: skip


@pytest.mark.parametrize(("cron", "english", "french", "spanish"), SAID, ids=[row[0] for row in SAID])
def test_an_expression_in_words(cron: str, english: str, french: str, spanish: str) -> None:
    assert describe_cron(cron, "en") == english
    assert describe_cron(cron, "fr") == french
    assert describe_cron(cron, "es") == spanish


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 13 * 5",  # the date or the weekday: no words for that
        "0 0 */2 * 1",
        "*/7 * * * *",  # starts again each hour
        "*/15 9,12,15 * * *",
        "0 */5 * * *",
        "*/30 22-1 * * 5",  # over midnight on one day
        "* * * * * *",
        "*/10 * * * * *",
        "1,2 0 0 * * *",
        "0 0 15W * *",
        "0 0 * * 1#1,5L",
        "0 0 1 1 * * 2027",
        "1-40 9 * * *",
        "0 0 30 2 *",
        "nonsense",
        "60 * * * *",
        "0 0 * * 1#6",
        "",
    ],
)
def test_what_words_cannot_say_exactly_is_not_said(cron: str) -> None:
    assert [describe_cron(cron, code) for code in ("en", "fr", "es")] == [None, None, None]


def test_an_interval_in_words() -> None:
    said = [describe_interval(ms, code) for ms in (5_400_000, 1_209_600_000) for code in ("en", "fr", "es")]
    assert said == [
        "every 90 minutes",
        "toutes les 90 minutes",
        "cada 90 minutos",
        "every 14 days",
        "tous les 14 jours",
        "cada 14 días",
    ]


def test_fifteen_days_are_said_in_hours_where_they_mean_two_weeks() -> None:
    ms = 15 * 86_400_000
    assert describe_interval(ms, "en") == "every 15 days"
    assert describe_interval(ms, "fr") == "toutes les 360 heures"
    assert describe_interval(ms, "es") == "cada 360 horas"


def test_an_instant_in_words_names_its_zone() -> None:
    at = read("2027-03-01 09:00", language="en", timezone="Europe/Paris", now=NOW).at
    assert at is not None
    assert describe_instant(at, "Europe/Paris", "en") == "on 1 March 2027 at 09:00 (Europe/Paris)"
    assert describe_instant(at, "UTC", "fr") == "le 1er mars 2027 à 8h (UTC)"
    assert describe_instant(at, "Asia/Tokyo", "es") == "el 1 de marzo de 2027 a las 17:00 (Asia/Tokyo)"


def test_an_unknown_language_is_described_in_english() -> None:
    assert describe_cron("0 9 * * *", "de") == "every day at 09:00"


@pytest.mark.parametrize(
    ("cron", "either", "both"),
    [
        ("0 9 1-31 * 1", "every day at 09:00", "every Monday at 09:00"),  # any day of the month, or a Monday
        ("0 9 1 * 0-6", "every day at 09:00", "on the 1st of the month at 09:00"),
        ("0 9 1,* * MON#1", "every day at 09:00", "on the first Monday of the month at 09:00"),
        ("0 9 1-31,L * *", "every day at 09:00", "every day at 09:00"),
        ("0 9 * * 1-7,5L", "every day at 09:00", "every day at 09:00"),
        ("0 9 13 * 5", None, None),
        ("0 9 1-31 * 1,*", "every day at 09:00", "every day at 09:00"),
        ("0 9 * * 5/2", "every Friday and Sunday at 09:00", "every Friday and Sunday at 09:00"),
        ("0 9 * * 1/3", "every Monday, Thursday and Sunday at 09:00", "every Monday, Thursday and Sunday at 09:00"),
    ],
)
def test_words_follow_the_rule_for_the_two_day_fields(cron: str, either: str | None, both: str | None) -> None:
    assert describe_cron(cron, "en") == either
    assert describe_cron(cron, "en", day_match="both") == both


@pytest.mark.parametrize("cron", ["0 9 * * 5/2", "0 9 * * 1/3", "0 9 * * 0-7/2", "0 9 * * 5-7", "0 9 * * 7/2"])
def test_both_readers_of_expressions_agree_on_sunday(cron: str) -> None:
    parsed = fields.parse(cron)
    assert parsed is not None
    assert parsed.weekdays == set(compile_cron(cron).of_week.days)
