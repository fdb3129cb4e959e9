"""What a reader decides: languages, corrections, zones, instants, notes, refusals with their readings."""

# ruff: noqa: E501  (a row is one line)

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.core.phrases.expectations import NOW, attempt, said, same

from zerocron.core.errors import Invalid
from zerocron.core.phrases import NotUnderstood, Reading, read
from zerocron.core.phrases import meaning as m
from zerocron.core.phrases.api import LANGUAGES
from zerocron.core.phrases.grammar import Grammar


def reading(text: str, language: str | None = None, timezone: str = "UTC") -> Reading:
    return read(text, language=language, timezone=timezone, now=NOW)


def refusal(text: str, language: str | None = None, timezone: str = "UTC") -> NotUnderstood:
    result = attempt(text, language, timezone)
    assert isinstance(result, NotUnderstood), result
    return result


# ---- languages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [("every day at 9am", "en"), ("tous les jours à 9h", "fr"), ("todos los días a las 9", "es"), ("15 min", "en")],
)
def test_the_language_is_the_one_that_understands(text: str, language: str) -> None:
    assert reading(text).language == language


def test_a_given_language_is_the_only_one_tried() -> None:
    assert refusal("every day at 9am", "fr").message.startswith("Je ne comprends pas")


def test_refusals_speak_the_language_of_the_phrase() -> None:
    assert refusal("cada dos viernes").message.startswith("Cron no tiene memoria")
    assert refusal("un vendredi sur deux").message.startswith("Cron n'a pas de mémoire")


def test_a_phrase_of_no_language_is_refused_in_english() -> None:
    assert refusal("qwertz").message == "I do not understand “qwertz” here."


def test_a_language_without_a_table_is_refused() -> None:
    assert refusal("jeden Tag um 9", "de").reason == "unknown_language"


def test_a_phrase_that_two_languages_know_is_refused_with_the_readings_of_both() -> None:
    assert refusal("9h").suggestions == ("every 8 hours", "every 12 hours", "tous les jours à 9h")


# ---- typing slips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cron", "correction"),
    [
        ("every wednsday at 9am", "0 9 * * 3", ("wednsday", "wednesday")),
        ("every Wendesday at 9am", "0 9 * * 3", ("Wendesday", "wednesday")),
        ("evry day at 9am", "0 9 * * *", ("evry", "every")),
        ("every day at middnight", "0 0 * * *", ("middnight", "midnight")),
        ("tous les mercerdis à 9h", "0 9 * * 3", ("mercerdis", "mercredis")),
        ("todos los viernnes a las 9", "0 9 * * 5", ("viernnes", "viernes")),
    ],
)
def test_one_wrong_letter_is_mended_and_shown(text: str, cron: str, correction: tuple[str, str]) -> None:
    result = reading(text)
    assert (result.cron, result.corrections) == (cron, (correction,))


@pytest.mark.parametrize(
    "text",
    [
        "every wedsnsdey at 9am",  # two letters
        "every day at fine",  # five or nine
        "evvery mondey at middnight",  # three words
        "every juny 5th",  # June or July
        "evry wek",  # too short to be sure
    ],
)
def test_an_unsure_slip_is_not_mended(text: str) -> None:
    assert refusal(text).suggestions


def test_a_phrase_without_slips_has_no_corrections() -> None:
    assert reading("every day at 9am").corrections == ()


# ---- zones -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("every weekday at 9am Paris time", "Europe/Paris"),
        ("every weekday at 9am, new york time", "America/New_York"),
        ("every weekday at 9am in EUROPE/PARIS", "Europe/Paris"),
        ("every weekday at 9am America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ("every weekday at 9am UTC", "UTC"),
        ("every weekday at 9am in canada/eastern", "Canada/Eastern"),
        ("every weekday at 9am", None),
    ],
)
def test_a_zone_at_the_end_is_kept(text: str, zone: str | None) -> None:
    assert reading(text).timezone == zone


def test_a_suggestion_keeps_the_zone_of_the_phrase() -> None:
    assert refusal("every day at 18:15 and 20:45 Paris time").suggestions == (
        "every day at 18:15 Europe/Paris",
        "every day at 20:45 Europe/Paris",
    )


def test_an_abbreviation_is_refused_with_the_zone_it_may_mean() -> None:
    assert refusal("every weekday at 9am EST").suggestions == ("every weekday at 09:00 America/New_York",)


def test_an_unknown_zone_is_refused() -> None:
    assert refusal("every day at 9am in Europe/Atlantis").suggestions == ("every day at 09:00",)
    assert refusal("every day at 9am", timezone="Europe/Atlantis").reason == "unknown_zone"


# ---- once ------------------------------------------------------------------------------------------------------------


def test_an_instant_is_placed_in_the_zone() -> None:
    at = reading("on 3 March 2027 at 10:00", timezone="Asia/Tokyo").at
    assert at == int(datetime(2027, 3, 3, 1, tzinfo=UTC).timestamp() * 1000)
    assert reading("on 3 March 2027 at 10:00 Tokyo time").at == at


def test_tomorrow_is_tomorrow_in_the_zone() -> None:
    assert said(reading("tomorrow at 9am", timezone="Pacific/Auckland")) == "at 2026-11-30T20:00Z"


def test_a_local_time_that_does_not_exist_is_refused() -> None:
    assert refusal("on 28 March 2027 at 2:30", timezone="Europe/Paris").reason == "no_such_local_time"


def test_of_a_local_time_that_comes_twice_the_first_is_used_and_said() -> None:
    result = reading("on 31 October 2027 at 2:30", timezone="Europe/Paris")
    assert said(result) == "at 2027-10-31T00:30Z"
    assert result.notes == ("The clocks of Europe/Paris show this time twice that day: the first is used.",)


@pytest.mark.parametrize(
    "text",
    [
        "today at 9am",
        "yesterday",
        "mar 2 2012",
        "on 30 February 2027",
        "in 0 minutes",
        "in 99999999999 weeks",
        "in 2 months",
        "on 3 March 9999",
        "in 20 minutes at 9am",
        "tomorrow at 9am and 5pm",
        "tomorrow every hour",
        "tomorrow morning",
        "tonight",
        "2027-13-01",
    ],
)
def test_what_is_no_instant_to_come_is_refused(text: str) -> None:
    assert refusal(text).suggestions


# ---- notes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("daily", "No time was given: 00:00 is used."),
        ("noon", "No day was given: every day is used."),
        ("every day at 5", "The hour is read as 05:00."),
        ("every 90 minutes", "Cron cannot say this exactly; it is an interval, counted from the start of the job."),
        ("every 15 minutes between 9am and 5pm", "The last run of each window is at 16:45."),
        ("every other month on the 4th at noon", "The months are January, March, May, July, September and November."),
        ("on the 31st at noon", "Months without a day 31 are skipped."),
        ("every feb 29 at noon", "29 February comes in leap years only."),
        ("1h", "Read as a rhythm: “every” was added."),
        ("every 12 hours starting at 7pm", "The rhythm goes on all day; the time only sets where it begins."),
    ],
)
def test_what_is_assumed_is_said(text: str, note: str) -> None:
    assert reading(text).notes == (note,)


def test_an_exact_phrase_has_no_notes() -> None:
    assert reading("every weekday at 9am").notes == ()


# ---- windows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("every hour between 9am and 5pm", "0 9-17 * * *"),
        ("every hour between 9:30 and 17:00", "30 9-16 * * *"),
        ("every 15 minutes between 19:00 and 19:59", "*/15 19 * * *"),
        ("every 30 minutes between 10pm and 2am", "*/30 0,1,22,23 * * *"),
        ("every hour from 2 to 5pm", "no ambiguous_window"),
        ("every hour from 9 to 5pm", "0 9-17 * * *"),
        ("every hour from 9am to 5", "0 9-17 * * *"),
        ("every hour between 9 and 17", "0 9-17 * * *"),
        ("every hour between 9 and 5", "no ambiguous_window"),
        ("every hour between 9 and 11", "0 9-11 * * *"),
        ("every hour between 9am and 9am", "no window_empty"),
        ("every hour between 10pm and 2am on fridays", "no window_midnight"),
        ("every 30 seconds between 9am and 5pm", "no not_exact"),
        ("between 9am and 5pm", "no window_alone"),
        ("between 9 and 5", "no window_alone"),
        ("every 5 minutes between 16:20 and 18:40", "no window_edge"),
    ],
)
def test_a_window(text: str, cron: str) -> None:
    result = attempt(text)
    assert (f"no {result.reason}" if isinstance(result, NotUnderstood) else result.cron) == cron


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "suggestions"),
    [
        ("at 7", ("every day at 07:00", "every day at 19:00")),
        ("every other friday at 5pm", ("on the second Friday of the month at 17:00", "every Friday at 17:00", "every 14 days")),
        ("every other friday at 25:00", ("on the second Friday of the month at 09:00", "every Friday at 09:00", "every 14 days")),
        ("every 4th day", ("on the 4th of the month at 00:00", "every 4 days")),
        ("every 45 minutes on weekdays", ("every 30 minutes on weekdays", "every hour on weekdays")),
        ("every monday at 9am and friday at 5pm", ("every Monday at 09:00", "every Friday at 17:00")),
        ("every 2 seconds on monday", ("every minute on Monday", "*/2 * * * * 1")),
        ("every other day at noon", ("every day at 12:00", "every Monday, Wednesday and Friday at 12:00", "every 2 days")),
        ("every 5 months", ("on the 1st of January, May and September at 00:00", "on the 1st of January and July at 00:00")),
        ("every 999 days at noon", ("every day at 12:00", "every Monday, Wednesday and Friday at 12:00")),
        ("every 45 hours on mondays", ("every day at 09:00", "every 15 minutes", "every Monday at 09:00")),
        ("every 45 minutes on days 1-15", ("*/30 * 1-15 * *", "0 * 1-15 * *")),
        ("every february 30", ("on the 29th of February at 00:00", "on the last day of February at 00:00")),
        ("every day at 8 and 10pm", ("every day at 08:00 and 22:00", "every day at 20:00 and 22:00")),
        ("every day at 24:00", ("every day at 00:00",)),
        ("every 30 minutes during business hours", ("every 30 minutes from 09:00 to 16:30 on weekdays",)),
        ("every 4M", ("every 4 minutes", "on the 1st of January, May and September at 00:00",)),
        ("every day at 9am; DROP TABLE jobs", ("every day at 09:00", "every 15 minutes", "every Monday at 09:00")),
        ("twice a week", ("every Monday and Thursday at 09:00",)),
        ("a las 8 y 20", ("todos los días a las 8:20", "todos los días a las 8:00 y a las 20:00")),
        ("tous les quinze jours", ("tous les 14 jours", "toutes les 360 heures")),
    ],
)  # fmt: skip
def test_a_refusal_proposes_what_comes_near(text: str, suggestions: tuple[str, ...]) -> None:
    assert refusal(text).suggestions == suggestions


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("every 9M", "no month_or_minute"),
        ("every 0M", "no month_or_minute"),
        ("every 5 minutes every 2 hours", "no stacked"),
        ("every 2 months in march", "no stacked"),
        ("every month in march on the 5th", "0 0 5 3 *"),
        ("twice a day at 8am, 9am and 10pm", "no count_mismatch"),
        ("three times an hour", "no which_times"),
        ("seven times an hour", "no which_times"),
        ("twice a month", "no which_times"),
        ("0 times a day", "no which_times"),
        ("twice at 8am and 8pm", "no which_times"),
        ("6th monday of the month", "no nth_too_big"),
        ("first monday of the year", "no day_of_year"),
        ("yearly on the 15th", "no day_of_year"),
        ("yearly on the first monday", "no day_of_year"),
        ("yearly on march 5 at 9am", "0 9 5 3 *"),
        ("every 30 minutes and 1 hour", "no stacked"),
        ("half past 8:30 every day", "no unknown_word"),
        ("every day at 90 minutes to 1", "no unknown_word"),
        ("every day at 10 minutes to midnight", "50 23 * * *"),
        ("every hour at minute 75", "no bad_time"),
        ("every 24 hours at minute 5", "5 0 * * *"),
        ("every 24 hours", "0 0 * * *"),
        ("every 0.5 seconds", "no bad_number"),
        ("every 400 days", "no bad_number"),
        ("every 15 minutes starting at 9:10", "no start_unclear"),
        ("every 2 hours starting at 9am", "no start_unclear"),
        ("every 4 hours starting at 1am", "0 1-21/4 * * *"),
        ("weekdays except weekdays", "no nothing_left"),
        ("every monday and first friday of the month", "no date_and_day"),
        ("first friday of the month and the 13th", "no date_and_day"),
        ("on the 15th except mondays", "no date_and_day"),
        ("on mondays and february 30", "no date_and_day"),
        ("at minute 5", "no minute_alone"),
        ("at minute 75", "no minute_alone"),
        ("every other day at 18:15 and 20:45", "no every_n_days"),
        ("in january", "no which_day_of_month"),
        ("every day in january", "0 0 * 1 *"),
        ("at 30", "no bad_time"),
        ("every day at 13pm", "no bad_time"),
        ("every hour between 25:00 and 26:00", "no bad_time"),
        ("every day at 15:00 in the morning", "no part_conflict"),
        ("every morning at 5pm", "no part_conflict"),
        ("every 15 minutes in the morning", "no rhythm_and_time"),
        ("every 20 hours during business hours", "no business_hours"),
        ("every 20 seconds during business hours", "no business_hours"),
        ("every quarter on the 1st and last day", "no two_schedules"),
        ("every quarter on the 15th", "0 0 15 1,4,7,10 *"),
        ("every quarter on the last friday", "0 0 * 3,6,9,12 5L"),
        ("every monday at 9am on the 1st at 5pm", "no two_schedules"),
        ("every 30 minutes and 10 hours", "no stacked"),
        ("every day at 9.3", "no unknown_word"),
        ("every hour from 9 in the morning to 5 in the afternoon", "0 9-17 * * *"),
    ],
)  # fmt: skip
def test_a_turn_of_phrase(text: str, wanted: str) -> None:
    result = attempt(text)
    got = f"no {result.reason}" if isinstance(result, NotUnderstood) else said(result)
    assert same(got, wanted), got


def test_a_phrase_that_two_languages_read_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No phrase known today does; a table to come may."""
    english = LANGUAGES["en"]
    rows = tuple(
        replace(row, build=lambda _n, _u: m.every(7, "hour")) if row.pattern == "(every|each) NUM UNIT" else row
        for row in english.rows
    )
    other = replace(LANGUAGES["fr"], grammar=Grammar(english.words, rows))
    monkeypatch.setitem(LANGUAGES, "fr", other)
    assert refusal("every 6 hours").suggestions == ("every 6 hours", "every 7 hours")
    assert reading("every hour").language == "en"


def test_a_refusal_is_invalid_input_of_the_field_schedule() -> None:
    error = refusal("at sunrise")
    assert isinstance(error, Invalid)
    assert [(fault.field, fault.message) for fault in error.fields] == [("schedule", error.message)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("every day at 9am\0", "There is an invisible character (U+0000) in the text; type it again without."),
        ("every day at \u202e9am", "There is an invisible character (U+202E) in the text; type it again without."),
        ("<script>alert(1)</script>", "The character U+003C does not belong in a schedule."),
        ("кожен день о 9", "The character U+043A does not belong in a schedule."),
        ("x" * 501, "This is longer than 500 characters; no schedule needs that."),
        ("  ", "Say when: for example “every day at 9:00”."),
    ],
)
def test_a_message_never_repeats_what_could_do_harm(text: str, message: str) -> None:
    assert refusal(text).message == message


# ---- expressions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5"),
        (" 0  9 * * mon-fri ", "0 9 * * MON-FRI"),
        ("@daily", "0 0 * * *"),
        ("0 0 ? * 5L", "0 0 * * 5L"),
        ("*/2 * * * * 1", "*/2 * * * * 1"),
        ("0 0 L * *", "0 0 L * *"),
    ],
)
def test_a_pasted_expression_is_kept(text: str, cron: str) -> None:
    assert reading(text).cron == cron


@pytest.mark.parametrize("text", ["mon, tue, wed, thu, fri", "Mon, Wed, Tue, Fri, Thu", "mon, tue, wed, thu, fri, fri"])
def test_a_list_of_days_is_no_expression(text: str) -> None:
    assert reading(text).cron == "0 0 * * 1-5"


@pytest.mark.parametrize(
    "text",
    ["*/0 */15 * * *", "0 0 30 2 *", "60 * * * *", "@often", "0 0 * * 8", "0 0 * * L", "0 0 * * 1#6", "0 0 15W * *"],
)
def test_a_wrong_expression_is_refused(text: str) -> None:
    assert refusal(text).reason == "bad_cron"


@pytest.mark.parametrize(
    ("phrase", "message"),
    [
        ("every dya at 9am", "I do not understand “dya” here."),
        ("at half nine", "I do not understand “nine” here."),
        ("every day at 9am foo", "I do not understand “foo” here."),
        ("tous les diaz à 9h", "Je ne comprends pas « diaz » ici."),
        ("lance la sauvegarde tous les jours à 2h", "Je ne comprends pas « lance » ici."),
        ("haz la copia todos los días a las 2", "No entiendo «haz» aquí."),
        ("à 25h", "L'heure 25 n'existe pas."),
        (
            "a partir de mañana todos los días a las 9:00",
            "Un horario no tiene principio ni fin; pause o borre la tarea.",
        ),
    ],
)
def test_a_refusal_names_the_word_in_the_language_that_the_phrase_is_most_like(phrase: str, message: str) -> None:
    refusal = attempt(phrase)
    assert isinstance(refusal, NotUnderstood)
    assert refusal.message == message


@pytest.mark.parametrize(
    ("phrase", "suggestions"),
    [
        ("every day at 0930", ("every day at 09:30",)),
        ("every day at 13pm", ("every day at 13:00",)),
        ("tomorrow morning", ("on 30 November 2026 at 08:00 (UTC)", "on 30 November 2026 at 09:00 (UTC)")),
        ("bimonthly at 9am", ("on the 1st and the 15th of the month at 09:00",)),
        ("semestral", ("el 1 de enero y julio a las 0:00", "el 1 de enero a las 0:00")),
        ("cada quincena", ("cada 14 días", "el 1 y el 15 de cada mes a las 0:00")),
        ("dos veces al día", ("cada 12 horas", "todos los días a las 9:00 y a las 18:00")),
        ("deux fois par jour", ("toutes les 12 heures", "tous les jours à 9h et 18h")),
        ("twice a day", ("every 12 hours", "every day at 09:00 and 18:00")),
    ],
)
def test_what_is_proposed_is_what_may_have_been_meant(phrase: str, suggestions: tuple[str, ...]) -> None:
    refusal = attempt(phrase)
    assert isinstance(refusal, NotUnderstood)
    assert refusal.suggestions[: len(suggestions)] == suggestions
