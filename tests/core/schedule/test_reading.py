"""What people type: every accepted form, every clean refusal, and nothing else whatever the text."""

from __future__ import annotations

from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.core.schedule.oracle import Meaning
from tests.core.schedule.strategies import attempt, meanings

from zerocron.core.errors import Invalid
from zerocron.core.schedule import DstPolicy, Parsed, Schedule, parse

NOW = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 1000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def read(text: str, timezone: str = "UTC") -> Parsed:
    return parse(text, timezone=timezone, now=NOW)


def refused(text: str, timezone: str = "UTC") -> Invalid:
    with pytest.raises(Invalid) as refusal:
        read(text, timezone)
    assert [fault.field for fault in refusal.value.fields] == ["schedule"]
    return refusal.value


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


# --- cron ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  0  9 * *\tmon-fri \n", "0 9 * * MON-FRI"),
        ("0 9 1 jan ?", "0 9 1 JAN *"),
        ("0 0 12 ? * mon#2 2030", "0 0 12 * * MON#2 2030"),
        ("0\u00a09 * * *", "0 9 * * *"),  # a no-break space, as web pages have them
        ("@Daily", "0 0 * * *"),
        ("@YEARLY", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_an_expression_has_one_spelling(text: str, canonical: str) -> None:
    schedule = read(text).schedule
    assert schedule == Schedule("cron", canonical, None, None, "UTC")
    assert read(canonical).schedule == schedule


@settings(deadline=None)
@given(meanings())
def test_the_canonical_expression_means_the_same(meaning: Meaning) -> None:
    outcome = attempt(meaning.text, "UTC", NOW)
    if isinstance(outcome, Invalid):
        reject()
    assert read(str(outcome.schedule.cron)) == outcome


def test_equal_schedules_are_one_key() -> None:
    assert {read("0 9 * * mon").schedule: 1}[read(" 0 9  * * MON").schedule] == 1


@pytest.mark.parametrize(
    ("text", "timezone", "warning"),
    [
        ("0 9 1 * MON", "UTC", "EITHER"),
        ("0 9 */100,1-7 * MON", "UTC", "BOTH"),
        ("0 9 1 * */2", "UTC", "BOTH"),
        ("*/90 * * * *", "UTC", "every 90 minutes"),
        ("0 */25 * * *", "UTC", "every 25 hours"),
        ("*/7 * * * *", "UTC", "does not divide the hour"),
        ("*/7 * * * * *", "UTC", "does not divide the minute"),
        ("0 0 */2 * *", "UTC", "starts again on the 1st"),
        ("0 30 2 * * *", "Europe/Paris", "literally"),
        ("0 */30 2 * * *", "Europe/Paris", "literally"),
        ("every 1 day", "Europe/Paris", "shifts"),
        ("2027-01-01", "UTC", "00:00"),
        ("2027-10-31 02:30", "Europe/Paris", "twice"),
    ],
)
def test_a_schedule_that_may_surprise_is_taken_with_a_warning(text: str, timezone: str, warning: str) -> None:
    (found,) = read(text, timezone).warnings
    assert warning in found


@pytest.mark.parametrize(
    ("text", "timezone", "dst", "warning"),
    [
        ("*/15 * * * *", "Europe/Paris", "skip", "no effect"),
        ("*/30 2 * * *", "Europe/Paris", "run_both", "no effect"),
        ("0 */30 2 * * *", "Europe/Paris", "skip", "no effect"),
        ("*/30 9 * * *", "Europe/Paris", "skip", None),
        ("*/15 * * * *", "UTC", "skip", None),
        ("30 2 * * *", "Europe/Paris", "skip", None),
        ("0 30 2 * * *", "Europe/Paris", "skip", None),
        ("0 30 2 * * *", "Europe/Paris", "run_both", None),
    ],
)
def test_a_policy_that_changes_nothing_is_taken_with_a_warning(
    text: str, timezone: str, dst: DstPolicy, warning: str | None
) -> None:
    parsed = parse(text, timezone=timezone, now=NOW, dst=dst)
    assert parsed.schedule.dst == dst
    assert [bool(warning and warning in found) for found in parsed.warnings] == [True] * bool(warning)


def test_who_wants_both_day_fields_to_match_gets_no_warning_of_the_other_rule() -> None:
    for text in ("0 9 1 * MON", "0 9 1 * */2", "0 9 1 * MON#1"):
        parsed = parse(text, now=NOW, day_match="both")
        assert (parsed.warnings, parsed.schedule.day_match) == ((), "both")
    for text in ("0 9 30 2 MON", "0 9 8 1 MON#1", "0 9 1 * 5L"):
        with pytest.raises(Invalid, match="never fire"):
            parse(text, now=NOW, day_match="both")
        assert read(text).schedule.next_after(NOW)
    with pytest.raises(Invalid) as refusal:
        parse("0 9 13 * friday", now=NOW, day_match="both")
    assert refusal.value.suggestions == ("0 9 13 * FRI",)
    with pytest.raises(Invalid) as refusal:
        parse("0 9 30 2 monday", now=NOW, day_match="both")
    assert refusal.value.suggestions == ()


@pytest.mark.parametrize(
    ("text", "timezone"),
    [
        ("0 9 * * MON-FRI", "Europe/Paris"),
        ("*/15 8-18 * * *", "Europe/Paris"),
        ("0 0 9 * * MON-FRI", "Europe/Paris"),
        ("0 30 2 * * *", "Asia/Tokyo"),
        ("0 9 */1 * *", "UTC"),
        ("0 9-17/2 * * *", "UTC"),
        ("0 9 ? * MON", "UTC"),
        ("every 1 day", "UTC"),
        ("every 90 minutes", "Europe/Paris"),
        ("2027-10-31 12:30", "Europe/Paris"),
    ],
)
def test_a_plain_schedule_has_no_warnings(text: str, timezone: str) -> None:
    assert read(text, timezone).warnings == ()


@pytest.mark.parametrize(
    ("text", "part", "suggestion"),
    [
        ("0 9 * * monday", "Write MON.", "0 9 * * MON"),
        ("0 9 1 january-MARCH *", "Write JAN.", "0 9 1 JAN-MAR *"),
        ("0 24 * * *", "hour 0", "0 0 * * *"),
        ("0 9 * * * /usr/bin/backup --all", "'/USR/BIN/BACKUP'", "0 9 * * *"),
        ("0 9 * * * root /usr/bin/backup", "'ROOT'", "0 9 * * *"),
        ("0 9 * * *\n0 10 * * *", "one line", "0 9 * * *"),
        ("59 23 31 12 * 2027", "seven fields", "0 59 23 31 12 * 2027"),
        ("0 9 * * *\u200b", "zero width space", "0 9 * * *"),
        ("０ 9 * * 1\u20135", "fullwidth digit zero", "0 9 * * 1-5"),
        ("0 9 * * frı", "dotless", None),
        ("0 9 * * *\x00", "U+0000", "0 9 * * *"),
        ("0 0 31 4 *", "never fire", "0 0 L 4 *"),
        ("0 0 0 30 2 * 2030", "never fire", "0 0 0 L 2 * 2030"),
        ("0 0 31 2 */2", "never fire", None),
        ("@every 1h30m", "@every", "every 90 minutes"),
        ("@every 48h", "@every", "every 48 hours"),
        ("@every 1m1s", "@every", "every 61 seconds"),
        ("@every 0s", "@every", "every 90 minutes"),
        ("@every fortnight", "@every", "every 90 minutes"),
        ("@reboot", "nickname", "@daily"),
        ("", "needed", "every 90 minutes"),
        ("\t \n", "needed", "every 90 minutes"),
        ("hello", "5 fields", "every 90 minutes"),
        ("1,,2 * * * *", "empty item", None),
        ("0 0 L-3 * *", "'L-3'", None),
        ("0 0 32W * *", "'32'", None),
        ("0 0 * * MON#6", "'MON#6'", None),
        ("0 0 * * FOO#1", "'FOO#1'", None),
        ("*-5 * * * *", "'*-5'", None),
        ("0 0 1 MON *", "'MON'", None),
        ("? * * * *", "minute field", None),
        ("0 0 0 1 1 * 2030-2029", "backwards", None),
        ("0 0 0 1 1 * 1969", "year field", None),
        ("0 0 0 1 1 * 2020", "will not fire again", None),
        ("0 30 2 28 3 * 2027", "will not fire again", None),  # in Paris only: the clocks go forward over it
    ],
)
def test_a_refusal_says_what_to_do(text: str, part: str, suggestion: str | None) -> None:
    refusal = refused(text, "Europe/Paris")
    assert part in refusal.message
    if suggestion is not None:
        assert suggestion in refusal.suggestions
        read(suggestion)


# --- intervals and single instants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("every 90 minutes", 90 * MINUTE),
        ("Every  1 Minute", MINUTE),
        ("every minute", MINUTE),
        ("every second", SECOND),
        ("every hour", HOUR),
        ("every 45 seconds", 45 * SECOND),
        ("every 45s", 45 * SECOND),
        ("every 10 sec", 10 * SECOND),
        ("every 5 m", 5 * MINUTE),
        ("every 5min", 5 * MINUTE),
        ("every 2 h", 2 * HOUR),
        ("every 2 hrs", 2 * HOUR),
        ("every 3 d", 3 * DAY),
        ("every 2 weeks", 14 * DAY),
        ("every 366 days", 366 * DAY),
        ("every 0090 minutes", 90 * MINUTE),
    ],
)
def test_an_interval_counts_from_its_anchor(text: str, every: int) -> None:
    assert read(text).schedule == Schedule("interval", None, every, NOW, "UTC")
    anchored = parse(text, now=NOW, anchor=NOW - every // 2, timezone="UTC").schedule
    assert anchored.at == NOW - every // 2
    assert anchored.next_after(NOW) == NOW - every // 2 + every


@pytest.mark.parametrize(
    "text",
    [
        "every",
        "every day",
        "every 0 seconds",
        "every 367 days",
        "every 1.5 hours",
        "every -5 minutes",
        "every 5 fortnights",
        f"every {'9' * 900} minutes",
        f"every {'9' * 900} parsecs",
        "every other day",
        "every minutes 5",
        "in",
        "in 0 minutes",
        "in a while",
        f"in {'9' * 900} days",
    ],
)
def test_an_interval_out_of_bounds_or_out_of_words_is_refused(text: str) -> None:
    for suggestion in refused(text).suggestions:
        read(suggestion)


@pytest.mark.parametrize(
    ("text", "timezone", "at"),
    [
        ("2027-01-01 09:00", "UTC", "2027-01-01T09:00Z"),
        ("2027-01-01 09:00", "Europe/Paris", "2027-01-01T08:00Z"),
        ("2027-07-01T09:00:30", "Europe/Paris", "2027-07-01T07:00:30Z"),
        ("2027-01-01T09:00:00Z", "Europe/Paris", "2027-01-01T09:00Z"),
        ("2027-01-01t09:00:00z", "Europe/Paris", "2027-01-01T09:00Z"),
        ("2027-01-01 09:00+05:30", "Europe/Paris", "2027-01-01T03:30Z"),
        ("2027-01-01 09:00 -0800", "Europe/Paris", "2027-01-01T17:00Z"),
        ("2027-01-01T09:00+02", "UTC", "2027-01-01T07:00Z"),
        ("2027-01-01T09:00:00.5Z", "UTC", "2027-01-01T09:00:00.500Z"),
        ("2027-01-01T09:00:00.123999Z", "UTC", "2027-01-01T09:00:00.123Z"),
        ("2027-01-01", "America/New_York", "2027-01-01T05:00Z"),
        ("2027-10-31 02:30", "Europe/Paris", "2027-10-31T00:30Z"),  # twice on the wall clock: the first
        ("in 20 minutes", "Europe/Paris", "2026-11-29T12:20Z"),
        ("In 1 hour", "UTC", "2026-11-29T13:00Z"),
        ("in 2 days", "UTC", "2026-12-01T12:00Z"),
        ("in 400 days", "UTC", "2028-01-03T12:00Z"),
    ],
)
def test_a_single_instant(text: str, timezone: str, at: str) -> None:
    schedule = read(text, timezone).schedule
    assert schedule == Schedule("once", None, None, instant(at), timezone)
    assert schedule.next_after(NOW) == instant(at)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2026-11-29 12:00", "in the past"),  # now itself is too late
        ("2020-01-01T00:00:00Z", "in the past"),
        ("2027-02-29 09:00", "not a date"),
        ("2027-13-01 09:00", "not a date"),
        ("2027-01-01 24:00", "not a date"),
        ("2027-01-01 09:00:60", "not a date"),
        ("2027-01-01 09:00+24:00", "offset"),
        ("0000-01-01 09:00", "not a date"),
        ("1969-01-01 09:00", "1970"),
        ("2500-01-01 09:00", "1970 to 2499"),
        ("2027-01-01 9:00", "5 fields"),
        ("in 200000 days", "after the year 2499"),
        ("in 172800 days", "after the year 2499"),
    ],
)
def test_an_instant_that_cannot_be_is_refused(text: str, part: str) -> None:
    assert part in refused(text).message


@pytest.mark.parametrize(
    ("text", "timezone", "instead"),
    [
        ("2027-03-28 02:30", "Europe/Paris", "2027-03-28 03:00"),
        ("2027-03-28 02:00:01", "Europe/Paris", "2027-03-28 03:00"),
        ("2027-10-03 02:10", "Australia/Lord_Howe", "2027-10-03 02:30"),
    ],
)
def test_a_local_time_that_does_not_exist_is_refused_with_the_next_one(text: str, timezone: str, instead: str) -> None:
    refusal = refused(text, timezone)
    assert refusal.suggestions == (instead,)
    read(instead, timezone)


def test_the_zone_is_checked_first() -> None:
    with pytest.raises(Invalid) as refusal:
        parse("nonsense", timezone="CEST", now=NOW)
    assert refusal.value.fields[0].field == "timezone"


# --- whatever the text -----------------------------------------------------------------------------------------------

ALPHABET = (
    "0123456789*/,-?#LW@:.+ \t\n\r\x00abcdefghijklmnopqrstuvwxyzMONFEB\u200b\u00a0\u0131\u017f\uff15\u0665\ud800\u202e"
)


@settings(max_examples=250, deadline=None)
@given(st.one_of(st.text(), st.text(ALPHABET), st.lists(st.text(ALPHABET, max_size=6), max_size=9).map(" ".join)))
def test_any_text_is_a_schedule_or_a_clean_refusal(text: str) -> None:
    outcome = attempt(text, "Europe/Paris", NOW)
    if isinstance(outcome, Invalid):
        assert [fault.field for fault in outcome.fields] == ["schedule"]
        assert outcome.message.isascii()
        for suggestion in outcome.suggestions:
            read(suggestion, "Europe/Paris")
        return
    schedule = outcome.schedule
    slot = schedule.next_after(NOW)
    assert slot is not None
    assert slot > NOW
    assert schedule.describe()


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "* " * 50_000,
        "\u200b" * 100_000,
        "9" * 5_000,
        "\u200b" * 1_000,
        "\ud800" * 1_000,
        f"{'9' * 900} * * * *",
        f"*/{'9' * 900} * * * *",
        f"{'0' * 900} * * * *",
        "," * 1_000,
        "1-" * 500,
        "*/1," * 240 + "* * * * *",
        "1-59/1," * 120 + "0 * * * *",
        "@" * 1_000,
        "january " * 125,
        "\n" * 998 + "xx",
        "0 0 31 2 *\n" * 90,
        "every " * 166,
        "0 0 30 2 *",
        "0 0 0 29 2 1 1971,2499",
        "0 0 */31 2 MON#2",
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_hostile_text_is_answered_at_once(text: str) -> None:
    began = process_time()
    outcome = attempt(text, "Europe/Paris", NOW)
    assert process_time() - began < 0.05
    assert isinstance(outcome, Parsed) or len(outcome.message) < 300
