"""What people type into the one box: read by whoever knows it, refused once, and said back."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any, get_args

import pytest
from docs.schedules_page import schedules_page
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.core.phrases.expectations import CODES, NOW, sets
from tests.core.phrases.test_properties import WORDS, crons
from tests.core.schedule.oracle import Meaning
from tests.core.schedule.strategies import ODD_TIMES, asked, attempt, fixed_times, meanings

from zerocron.core.errors import Invalid
from zerocron.core.phrases import describe_cron
from zerocron.core.schedule import DayMatch, DstPolicy, Schedule
from zerocron.core.schedule.zones import same_clocks
from zerocron.core.understanding import Understood, describe, understand

HERE = Path(__file__).parent


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def refused(text: str, **given_with: Any) -> Invalid:
    with pytest.raises(Invalid) as refusal:
        understand(text, now=NOW, **given_with)
    return refusal.value


def check_refusal(refusal: Invalid, text: str, **given_with: Any) -> None:
    """One field, and each suggestion is understood in its place."""
    (fault,) = refusal.fields
    assert fault.field in ("schedule", "timezone")
    assert fault.message == refusal.message != ""
    for suggestion in refusal.suggestions:
        if fault.field == "schedule":
            understand(suggestion, now=NOW, **given_with)
        else:
            outcome = outcome_of(text, **{**given_with, "timezone": suggestion})
            assert isinstance(outcome, Understood) or outcome.fields[0].field == "schedule"


def outcome_of(text: str, **given_with: Any) -> Understood | Invalid:
    try:
        return understand(text, now=NOW, **given_with)
    except Invalid as refusal:
        return refusal


# ---- who reads what --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines("schedule/cron_next.jsonl")])
def test_an_expression_from_the_field_is_read_as_one(case: dict[str, Any]) -> None:
    now = instant(case["after"])
    wanted = attempt(case["expr"], case["tz"], now)
    if isinstance(wanted, Invalid):
        with pytest.raises(Invalid) as refusal:
            understand(case["expr"], timezone=case["tz"], now=now)
        assert refusal.value.fields[0].field == wanted.fields[0].field
        return
    found = understand(case["expr"], timezone=case["tz"], now=now)
    assert found == Understood(wanted.schedule, wanted.warnings, None, ())


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in lines("phrases/phrases.jsonl")])
def test_a_phrase_from_the_field_is_read_as_one(case: dict[str, Any]) -> None:
    outcome = outcome_of(case["text"])
    if isinstance(outcome, Invalid):
        assert case.get("reject") or case.get("reject_also_ok"), outcome.message
        check_refusal(outcome, case["text"])
        return
    schedule = outcome.schedule
    if case.get("reject"):
        assert schedule.cron is None
        return
    assert schedule.cron is not None
    assert sets(schedule.cron) in [sets(cron) for cron in (case["cron"], *case.get("also_ok", []))]
    assert schedule.timezone == case.get("tz", "UTC")


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("every 15 minutes", Schedule("cron", "*/15 * * * *", None, None, "UTC")),
        ("every 90 minutes", Schedule("interval", None, 5_400_000, NOW, "UTC")),
        ("2027-01-01 09:00", Schedule("once", None, None, instant("2027-01-01T09:00Z"), "UTC")),
        ("2027-01-01 9:00", Schedule("once", None, None, instant("2027-01-01T09:00Z"), "UTC")),
        ("2027-01-01T09:00+02:00", Schedule("once", None, None, instant("2027-01-01T07:00Z"), "UTC")),
        ("in 20 minutes", Schedule("once", None, None, NOW + 1_200_000, "UTC")),
        ("0 0 12 ? * MON#2 2030", Schedule("cron", "0 0 12 * * MON#2 2030", None, None, "UTC")),
        ("0 0 15W * *", Schedule("cron", "0 0 15W * *", None, None, "UTC")),
        ("@Daily", Schedule("cron", "0 0 * * *", None, None, "UTC")),
        ("mon, tue, wed, thu, fri", Schedule("cron", "0 0 * * 1-5", None, None, "UTC")),
        ("*/1," * 200 + "5 * * * *", Schedule("cron", "*/1," * 200 + "5 * * * *", None, None, "UTC")),
        ("CRON_TZ=Europe/Paris 0 5 * * 1", Schedule("cron", "0 5 * * 1", None, None, "Europe/Paris")),
        ("TZ=Asia/Tokyo @daily", Schedule("cron", "0 0 * * *", None, None, "Asia/Tokyo")),
    ],
)
def test_each_kind_of_text_has_its_reader(text: str, schedule: Schedule) -> None:
    assert understand(text, now=NOW).schedule == schedule


def test_everything_that_was_assumed_is_a_warning() -> None:
    found = understand("evry day 31 of the month", timezone="Europe/Paris", now=NOW)
    assert found.corrections == (("evry", "every"),)
    assert found.warnings[0] == "Read 'evry' as 'every'."
    assert "Months without a day 31 are skipped." in found.warnings
    assert understand("every 2 days", timezone="Europe/Paris", now=NOW).warnings == (
        "Cron cannot say this exactly; it is an interval, counted from the start of the job.",
        "An interval counts real time: the local time of its runs shifts when the clocks change. For a fixed local "
        "time write a cron expression such as '0 9 * * *'.",
    )
    assert understand("tous les mercerdis à 9h", now=NOW).warnings == ("« mercerdis » est lu comme « mercredis ».",)
    assert understand("todos los viernnes a las 9:00", now=NOW).warnings == ("«viernnes» se lee como «viernes».",)


def test_the_language_is_that_of_the_phrase() -> None:
    assert understand("tous les jours à 9h", now=NOW).language == "fr"
    assert understand("15 min", language="en", now=NOW).language == "en"
    assert understand("0 9 * * *", language="es", now=NOW).language is None
    assert refused("every day at 9am", language="es").suggestions[0] == "todos los días a las 9:00"
    assert "English (en)" in refused("jeden Tag", language="de").message


def test_an_interval_begins_at_its_anchor() -> None:
    assert understand("every 90 minutes", now=NOW, anchor=NOW - 5_000).schedule.at == NOW - 5_000
    assert refused("every 90 minutes", anchor=10**17).message == "Nothing that this schedule names is still to come."


def test_the_policies_become_part_of_the_schedule() -> None:
    for text in ("0 9 * * *", "every day at 9am", "every 90 minutes", "2027-01-01 09:00", "tomorrow at 9am"):
        schedule = understand(text, now=NOW, dst="skip", day_match="both").schedule
        assert (schedule.dst, schedule.day_match) == ("skip", "both")


# ---- time zones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "timezone", "zone"),
    [
        ("every day at 9am Paris time", None, "Europe/Paris"),
        ("every day at 9am UTC", "Etc/UTC", "Etc/UTC"),
        ("every day at 9am Paris time", "Europe/Paris", "Europe/Paris"),
        ("every day at 9am in Delhi", "Asia/Calcutta", "Asia/Calcutta"),  # two names of one zone
        ("every day at 9am", "Europe/Paris", "Europe/Paris"),
        ("every 90 minutes Paris time", None, "Europe/Paris"),
        ("TZ=Europe/Paris 0 9 * * *", "Europe/Paris", "Europe/Paris"),
        ("2027-01-01T09:00Z", "Europe/Paris", "Europe/Paris"),
    ],
)
def test_a_zone_in_the_text_is_the_zone(text: str, timezone: str | None, zone: str) -> None:
    assert understand(text, timezone=timezone, now=NOW).schedule.timezone == zone


@pytest.mark.parametrize("timezone", ["America/New_York", "UTC"])
@pytest.mark.parametrize(
    "text", ["every day at 9am Paris time", "TZ=Europe/Paris 0 9 * * *", "TZ=Europe/Paris 0 9 * * * x"]
)
def test_two_different_zones_are_a_contradiction(text: str, timezone: str) -> None:
    """UTC too, where somebody chose it."""
    refusal = refused(text, timezone=timezone)
    assert (refusal.fields[0].field, refusal.suggestions) == ("timezone", ("Europe/Paris",))
    assert "Europe/Paris" in refusal.message
    assert timezone in refusal.message


def test_the_zone_is_checked_first() -> None:
    refusal = refused("nonsense", timezone="CEST")
    assert refusal.fields[0].field == "timezone"
    assert refusal.suggestions == ("Europe/Paris", "Europe/Berlin")


# ---- pieces of a crontab ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("0 5 * * 1 root /usr/bin/backup.sh", "0 5 * * 1"),
        ("30 2 * * * /opt/x >> /var/log/x 2>&1", "30 2 * * *"),
        ("*/5\t*\t*\t*\t*\tphp artisan schedule:run", "*/5 * * * *"),
        ("0 5 * * mon root /usr/bin/backup.sh", "0 5 * * mon"),
        ("0 5 * * monday root /usr/bin/backup.sh", "0 5 * * MON"),
        ("0 24 * * * /usr/bin/backup.sh", "0 0 * * *"),
        ("@daily /usr/bin/x", "@daily"),
        ("@reboot /usr/bin/x", "@daily"),
        ("TZ=Europe/Paris 0 5 * * 1 /x", "TZ=Europe/Paris 0 5 * * 1"),
        ("CRON_TZ=Europe/Paris 0 24 * * 1 /x", "TZ=Europe/Paris 0 0 * * 1"),
        ("SHELL=/bin/sh\nCRON_TZ='Europe/Paris'\n# daily\n0 5 * * 1 root /x\n", "TZ=Europe/Paris 0 5 * * 1"),
        ("0 0 5 * * 1 /quartz/like", "0 0 5 * * 1"),
    ],
)
def test_a_whole_line_of_a_crontab_is_explained(text: str, suggestion: str) -> None:
    refusal = refused(text)
    assert refusal.message.startswith(
        "This is a whole line of a crontab. 0cron cannot run the command in it: it calls URLs."
    )
    assert refusal.suggestions[0] == suggestion
    check_refusal(refusal, text)


def test_a_command_that_fetches_a_url_is_told_where_the_url_goes_and_not_repeated() -> None:
    refusal = refused("0 5 * * 1 curl -u me:secret https://example.org/run")
    assert "is the URL of the job" in refusal.message
    assert "secret" not in refusal.message


@pytest.mark.parametrize(
    ("text", "part", "suggestions"),
    [
        ("0 9 * * * # daily backup", "no comment", ("0 9 * * *",)),
        ("# daily\n0 9 * * *", "one line", ("0 9 * * *",)),
        ("TZ=Europe/Paris\n0 9 * * *", "one line", ("TZ=Europe/Paris 0 9 * * *",)),
        ("MAILTO=me\nTZ=\n0 9 * * *", "one line", ("0 9 * * *",)),
        ("0 9 * * 1-5 Europe/Paris", "Europe/Paris as the timezone", ("TZ=Europe/Paris 0 9 * * 1-5",)),
        ("0 9 15W * * (Europe/Paris)", "Europe/Paris as the timezone", ("TZ=Europe/Paris 0 9 15W * *",)),
        ("0 5 * * 1 a\n0 6 * * 1 b\n\n@daily c\n0 8 * * 1 d", "4 lines", ("0 5 * * 1", "0 6 * * 1", "@daily")),
        ("TZ=Europe/Pari 0 9 * * *", "'Europe/Pari'", ("TZ=Europe/Paris 0 9 * * *",)),
        ("TZ=Europe/Paris 0 24 * * *", "hour 0", ("TZ=Europe/Paris 0 0 * * *",)),
        ("0 9 * * * * * *", "has 8", ("0 9 * * MON-FRI",)),
        ("# nothing", "U+0023", ("every day at 09:00",)),
    ],
)
def test_other_pieces_of_a_crontab_are_explained(text: str, part: str, suggestions: tuple[str, ...]) -> None:
    refusal = refused(text)
    assert part in refusal.message
    assert refusal.suggestions[: len(suggestions)] == suggestions
    check_refusal(refusal, text)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part", "suggestion"),
    [
        ("0 9 * * monday", "Write MON.", "0 9 * * MON"),
        ("0 9 1 1 monday", "Write MON.", "0 9 1 1 MON"),
        ("0 24 * * *", "hour 0", "0 0 * * *"),
        ("０ 9 * * 1–5", "fullwidth", "0 9 * * 1-5"),
        ("0 9 * * *\u200b", "zero width space", "0 9 * * *"),
        ("@every 1h30m", "@every", "every 90 minutes"),
        ("* * *", "5 fields", "*/15 * * * *"),
        ("2027-02-30 09:00", "not a date", None),
        ("2027-01-01\u200b 09:00", "zero width", None),
        ("twice a day", "At which times", "every day at 09:00 and 18:00"),
        ("dos veces al día", "A qué horas", "cada 12 horas"),
        ("every 4M", "months or minutes", "every 4 minutes"),
        ("at 7", "morning or in the evening", "every day at 07:00"),
        ("hello", "hello", "every day at 09:00"),
        ("", "Say when", "every day at 09:00"),
        ("every 1 week", "day of the week", "every 7 days"),
        ("1,,2 * * * *", "empty item", None),
    ],
)
def test_a_refusal_is_that_of_the_reader_who_knows_better(text: str, part: str, suggestion: str | None) -> None:
    refusal = refused(text)
    assert part in refusal.message
    assert suggestion in refusal.suggestions if suggestion else not refusal.suggestions
    check_refusal(refusal, text)


def test_suggestions_suit_the_rule_for_days_and_the_language() -> None:
    assert refused("0 0 30 2 MON", day_match="both").suggestions == ()
    assert understand("0 0 30 2 MON", now=NOW).schedule.day_match == "either"
    assert refused("* * *", language="fr").suggestions == ("0 9 * * MON-FRI", "*/15 * * * *")
    zone_of_another = refused("every day at 18:15 and 20:45 Paris time", timezone="Asia/Tokyo")
    assert zone_of_another.suggestions == ("every day at 09:00", "every 15 minutes", "every Monday at 09:00")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(WORDS, max_size=8).map(" ".join),
        st.lists(
            st.sampled_from(["*", "0", "9", "*/5", "1-5", "MON", "TZ=Asia/Tokyo", "#", "@daily", "\n", "root", "L"])
        ).map(" ".join),
    ),
    st.sampled_from([None, *CODES]),
    st.sampled_from(["UTC", "Europe/Paris"]),
)
def test_any_text_is_understood_or_refused_once(text: str, language: str | None, timezone: str) -> None:
    outcome = outcome_of(text, language=language, timezone=timezone)
    if isinstance(outcome, Invalid):
        check_refusal(outcome, text, language=language, timezone=timezone)
        return
    assert (outcome.schedule.next_after(NOW) or 0) > NOW
    for code in CODES:
        assert describe(outcome.schedule, code)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "0 5 * * 1 " * 10_000,
        "\n" * 100_000,
        "x" * 1_000,
        "* " * 500,
        "0 5 * * " + "L" * 992,
        "0 5 * * " + "mon," * 248,
        "0 5 * * " + "monday" * 165,
        "0 5 * * 1 x\n" * 80,
        "A=b\n" * 250,
        "TZ=" + "x" * 990 + " 0 9 * * *",
        "every day at 9am and " * 40,
        "aaaa bbbb " * 50,
        "\ud800" * 1_000,
        "9" * 1_000,
        "@" * 1_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_text_is_answered_at_once(text: str) -> None:
    costs = []
    for _ in range(3):  # the first run may load a zone, another may be disturbed
        began = process_time()
        outcome = outcome_of(text, timezone="Europe/Paris")
        costs.append(process_time() - began)
        assert isinstance(outcome, Understood) or len(outcome.message) < 400
    assert min(costs) < 0.05


# ---- and back again --------------------------------------------------------------------------------------------------


def meaning_of(schedule: Schedule) -> tuple[object, ...]:
    """What words must say again of a cron schedule: its times and days, and whether they are a rhythm."""
    cron = schedule.compiled()
    return cron.seconds, cron.minutes, cron.hours, cron.months, cron.day_masks, cron.years, cron.rhythm


ZONES = sorted({zone for zone, _ in ODD_TIMES} | {"Etc/GMT+5", "Canada/Eastern", "Brazil/East", "Asia/Kolkata"})


@settings(max_examples=300, deadline=None)
@given(crons(), st.sampled_from(CODES), st.sampled_from(ZONES))
def test_a_description_in_words_is_understood_as_the_same_schedule(cron: str, code: str, zone: str) -> None:
    assume(describe_cron(cron, code) is not None)
    schedule = Schedule("cron", cron, None, None, zone)
    words = describe(schedule, code)
    found = understand(words, now=NOW)
    assert (found.language, found.schedule.timezone) == (code, zone), words
    assert meaning_of(found.schedule) == meaning_of(schedule), words


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(meanings(), fixed_times(), meanings(with_seconds=True)).flatmap(asked),
    st.sampled_from(CODES),
)
def test_a_description_of_anything_is_understood_as_nothing_else(
    asked_for: tuple[Meaning, DayMatch], code: str
) -> None:
    outcome = attempt(asked_for[0].text, "Europe/Paris", NOW, day_match=asked_for[1])
    if isinstance(outcome, Invalid):
        return
    words = describe(outcome.schedule, code)
    found = outcome_of(words)
    if isinstance(found, Understood):
        assert found.schedule.kind == "cron", words
        assert meaning_of(found.schedule) == meaning_of(outcome.schedule), words


@given(st.integers(1, 366 * 86_400), st.sampled_from(CODES))
def test_an_interval_in_words_is_understood_as_the_same_interval_or_not_at_all(seconds: int, code: str) -> None:
    schedule = Schedule("interval", None, seconds * 1000, NOW, "UTC")
    found = outcome_of(describe(schedule, code))
    if isinstance(found, Understood):
        assert found.schedule == schedule
    else:
        assert 86_400 % seconds == 0, "only where the words alone would be cron"


@given(
    st.integers(NOW + 1, NOW + 10**13),
    st.sampled_from([1, 1000, 60_000]),
    st.sampled_from(CODES),
    st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
)
def test_an_instant_in_words_is_understood_as_the_same_instant(at: int, step: int, code: str, zone: str) -> None:
    schedule = Schedule("once", None, None, at // step * step + step, zone)
    found = understand(describe(schedule, code), now=NOW)
    assert found.schedule.at == schedule.at


@pytest.mark.parametrize(
    ("schedule", "english", "french", "spanish"),
    [
        (
            Schedule("cron", "0 9 * * 1-5", None, None, "Europe/Paris"),
            "every weekday at 09:00 (Europe/Paris)",
            "du lundi au vendredi à 9h (Europe/Paris)",
            "de lunes a viernes a las 9:00 (Europe/Paris)",
        ),
        (
            Schedule("cron", "0 9 15W * *", None, None, "UTC"),
            "on the weekday nearest day 15 of the month at 09:00 (0 9 15W * *, UTC)",
            "0 9 15W * * (UTC)",
            "0 9 15W * * (UTC)",
        ),
        (
            Schedule("cron", "0 9 13 * FRI", None, None, "UTC"),
            "on day 13 of the month or every Friday at 09:00 (0 9 13 * FRI, UTC)",
            "0 9 13 * FRI (UTC)",
            "0 9 13 * FRI (UTC)",
        ),
        (
            Schedule("cron", "0 9 13 * FRI", None, None, "UTC", day_match="both"),
            "every Friday falling on day 13 of the month at 09:00 (0 9 13 * FRI, UTC)",
            "0 9 13 * FRI, les jours où les deux champs de jour conviennent (UTC)",
            "0 9 13 * FRI, los días en que valen los dos campos de día (UTC)",
        ),
        (
            Schedule("cron", "0 9 15W * *", None, None, "UTC", day_match="both"),
            "on the weekday nearest day 15 of the month at 09:00 (0 9 15W * *, UTC)",
            "0 9 15W * * (UTC)",
            "0 9 15W * * (UTC)",
        ),
        (
            Schedule("interval", None, 5_400_000, NOW, "UTC"),
            "every 90 minutes",
            "toutes les 90 minutes",
            "cada 90 minutos",
        ),
        (
            Schedule("interval", None, 900_000, NOW, "UTC"),
            "every 15 minutes, counted from 2026-11-29T12:00:00Z",
            "toutes les 15 minutes, à compter de 2026-11-29T12:00:00Z",
            "cada 15 minutos, a contar desde 2026-11-29T12:00:00Z",
        ),
        (
            Schedule("once", None, None, instant("2027-10-31T00:30Z"), "Europe/Paris"),
            "on 31 October 2027 at 02:30 (Europe/Paris)",
            "le 31 octobre 2027 à 2h30 (Europe/Paris)",
            "el 31 de octubre de 2027 a las 2:30 (Europe/Paris)",
        ),
        (Schedule("once", None, None, instant("2027-10-31T01:30Z"), "Europe/Paris"), *["2027-10-31T01:30:00Z"] * 3),
        (Schedule("once", None, None, instant("2027-10-31T09:30Z") + 5, "UTC"), *["2027-10-31T09:30:00.005Z"] * 3),
    ],
)
def test_what_words_can_say_and_what_they_show(schedule: Schedule, english: str, french: str, spanish: str) -> None:
    assert [describe(schedule, code) for code in ("en", "fr", "es")] == [english, french, spanish]
    assert describe(schedule) == describe(schedule, "de") == english


def test_names_of_one_zone_are_the_same_clocks() -> None:
    assert same_clocks("UTC", "UTC")
    assert same_clocks("Asia/Calcutta", "Asia/Kolkata")
    assert not same_clocks("Europe/Paris", "Europe/London")


# ---- the page for users ----------------------------------------------------------------------------------------------


def test_the_page_is_made_and_tells_of_every_policy_and_language() -> None:
    page = schedules_page()
    assert page.startswith("<!-- Made by `make docs`; do not edit. -->\n\n# Schedules\n")
    assert page == schedules_page()
    for policy in (*get_args(DstPolicy), *get_args(DayMatch)):
        assert f"| `{policy}` |" in page
    for phrase in ("every weekday at 9am Paris time", "le 1er et le 15 du mois à 7h30", "cada media hora", "@weekly"):
        assert f"| `{phrase}` |" in page
    cells = [line.split("|")[3].strip() for line in page.splitlines() if line.startswith("| `0 30 2 * * *`")]
    assert cells == ["not at all", "not at all", "03:00 (+2 h)"]
    assert max(map(len, re.sub(r"^\|.*\n", "", page, flags=re.MULTILINE).splitlines())) <= 160
