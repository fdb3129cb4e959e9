"""Every event has its words in every language, and what a person is told is true and complete."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from tests.channels.specimens import AT, DOWN, FAILED, HOSTILE_NAMES, HOUR, SLOT, hostile, of

from zerocron.channels.text import units
from zerocron.channels.wording import (
    COLOURS,
    LINE_UNITS_MAX,
    SIGNS,
    TONES,
    Message,
    Tone,
    kept,
    length,
    moment,
    text_of,
    word,
)
from zerocron.channels.words import EN, LANGUAGES, Words
from zerocron.core.notice import EventKind, Notice

PLACEHOLDER = re.compile(r"\{[^}]*\}")
SUBJECTLESS = (EventKind.OUTAGE,)


def notice(kind: EventKind, language: str = "en", **changes: object) -> Notice:
    return replace(FAILED, kind=kind, language=language, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_a_word_for_everything(language: str) -> None:
    words = LANGUAGES[language]
    assert set(words.titles) == set(words.leads) == set(EventKind) == set(TONES)
    assert set(words.labels) == set(EN.labels)
    assert set(words.reminders) == set(EN.reminders)
    for field in fields(Words):
        assert getattr(words, field.name), f"{language} has nothing for {field.name}"
    for kind in EventKind:
        for mine, english in zip(
            (*words.titles[kind], words.leads[kind]), (*EN.titles[kind], EN.leads[kind]), strict=True
        ):
            assert sorted(PLACEHOLDER.findall(mine)) == sorted(PLACEHOLDER.findall(english)), (language, kind)
    assert set(SIGNS) == set(COLOURS) == set(Tone)


def test_no_language_borrows_a_sentence() -> None:
    """A row that was copied and never translated."""
    for kind in EventKind:
        titles = [words.titles[kind] for words in LANGUAGES.values()]
        assert len(set(titles)) == len(titles), kind
        leads = [words.leads[kind] for words in LANGUAGES.values() if words.leads[kind]]
        assert len(set(leads)) == len(leads), kind


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", EventKind)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("is_reminder", [False, True])
def test_every_message_is_whole(language: str, kind: EventKind, count: int, is_reminder: bool) -> None:
    full = notice(kind, language, count=count, reminder=is_reminder)
    bare = Notice("event", kind, "team", AT, "id", "nightly report", language, count=count, reminder=is_reminder)
    for each in (full, bare):
        message = word(of(each))
        text = text_of(message)
        assert not PLACEHOLDER.search(text.replace(FAILED.output or "", "")), text
        assert "None" not in text
        assert message.title == message.entries[0].title
        assert ("nightly report" in message.title) == (kind not in SUBJECTLESS)
        assert not re.search(r"  |\.\.", text.replace("    ", "")), text
        for label, value in message.entries[0].facts:
            assert label
            assert value


def test_a_failing_job_says_what_since_when_how_often_the_error_the_slot_the_output_and_where() -> None:
    text = text_of(word(of(FAILED)))
    for part in (
        "nightly report failed 3 times in a row",
        "The status was 500",
        "Since: Wednesday 13 January 2027, 08:00:02 Europe/Paris (07:00:02 UTC) – 2 d",
        "In a row: 3 times",
        "Scheduled for: Friday 15 January 2027, 08:00 Europe/Paris (07:00 UTC)",
        "disk full",
        "https://cron.example.com/jobs/0199b7f2-0000-7000-8000-00000000000a",
    ):
        assert part in text, part
    assert text.startswith("nightly report failed 3 times in a row\n\nThe status was 500")


def test_a_monitor_that_is_down_says_when_it_was_heard_last_and_which_slot_it_missed() -> None:
    message = word(of(DOWN))
    facts = dict(message.entries[0].facts)
    assert facts["Last sign of life"].startswith("Friday 15 January 2027, 07:00:12 Europe/Paris")
    assert facts["Last sign of life"].endswith("1 h 4 min")
    assert facts["Expected"].startswith("Friday 15 January 2027, 08:00")
    assert "Nothing was heard" not in message.entries[0].lead, "the reason says it already"
    assert "Nothing was heard for 1 h 4 min." in word(of(replace(DOWN, reason=None))).entries[0].lead


def test_a_recovery_says_how_long_it_lasted() -> None:
    up = replace(DOWN, kind=EventKind.MONITOR_UP, reason=None, at=AT, since=AT - 26 * HOUR)
    assert word(of(up)).entries[0].lead == "It was down for 1 d 2 h."
    assert word(of(replace(up, language="fr"))).entries[0].lead == "La panne a duré 1 j 2 h."


def test_a_reminder_says_that_it_is_one() -> None:
    message = word(of(replace(DOWN, reminder=True)))
    assert message.title == "db backup is still down"
    assert "told before" in message.entries[0].lead


def test_a_digest_says_how_many_and_which() -> None:
    up = replace(DOWN, kind=EventKind.MONITOR_UP)
    message = word(of(FAILED, DOWN, up, more=9))
    assert message.title == "12 events: nightly report failed 3 times in a row, db backup is down and 10 more"
    assert message.tone == Tone.BAD
    assert message.more == "9 more events are not shown."
    assert [entry.title for entry in message.entries] == [word(of(each)).title for each in (FAILED, DOWN, up)]
    assert word(of(up, up)).tone == Tone.GOOD
    two = word(of(FAILED, DOWN))
    assert (two.title, two.more) == (
        "2 events: nightly report failed 3 times in a row and db backup is down",
        None,
    )


def test_a_digest_counts_what_it_has_no_room_for() -> None:
    message = word(of(*[FAILED] * 40, more=1))
    assert message.title.startswith("41 events: ")
    shown = len(message.entries)
    assert message.more == f"{41 - shown} more events are not shown."
    assert kept(message, 1).more == "40 more events are not shown."
    assert word(of(FAILED, more=1)).more == "One more event is not shown."


def test_an_unknown_language_is_english_and_an_unknown_zone_utc() -> None:
    assert word(of(replace(FAILED, language="de"))).title == word(of(FAILED)).title
    assert moment(SLOT, "Mars/Olympus") == "Friday 15 January 2027, 07:00 UTC"


@pytest.mark.parametrize(
    ("zone", "language", "text"),
    [
        ("UTC", "en", "Friday 15 January 2027, 07:00 UTC"),
        ("Asia/Kathmandu", "en", "Friday 15 January 2027, 12:45 Asia/Kathmandu (07:00 UTC)"),
        ("Pacific/Honolulu", "en", "Thursday 14 January 2027, 21:00 Pacific/Honolulu (2027-01-15 07:00 UTC)"),
        ("Europe/Paris", "fr", "vendredi 15 janvier 2027, 08:00 Europe/Paris (07:00 UTC)"),
        ("Europe/Madrid", "es", "viernes 15 de enero de 2027, 08:00 Europe/Madrid (07:00 UTC)"),
    ],
)
def test_an_instant_is_on_the_subjects_clocks_with_utc_beside_it(zone: str, language: str, text: str) -> None:
    assert moment(SLOT, zone, language) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"),
        (840, "840 ms"),
        (1_845, "1.8 s"),
        (2_000, "2 s"),
        (12_999, "12 s"),
        (60_000, "1 min"),
        (125_000, "2 min 5 s"),
        (3 * HOUR + 20 * 60_000, "3 h 20 min"),
        (3 * HOUR + 20_000, "3 h"),
        (98 * HOUR, "4 d 2 h"),
        (3_000 * 24 * HOUR, "3000 d"),
    ],
)
def test_a_length_of_time_has_two_units(ms: int, text: str) -> None:
    assert length(ms) == text


def lines_of(message: Message) -> list[str]:
    texts = [message.title, message.more or ""]
    for entry in message.entries:
        texts += [entry.title, entry.lead, *(text for fact in entry.facts for text in fact)]
    return texts


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_every_text_of_a_message_is_one_clean_line(name: str) -> None:
    for envelope in (of(hostile(name)), of(hostile(name), hostile(name))):
        message = word(envelope)
        for text in lines_of(message):
            assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
            assert units(text) <= 1_200
        assert units(message.title) <= LINE_UNITS_MAX
        assert message.title.strip()


def test_a_name_of_nothing_visible_becomes_the_id() -> None:
    assert word(of(hostile("\n\r\t \u2028"))).title.startswith(FAILED.subject_id)


def test_no_link_without_a_base_url_or_a_page() -> None:
    assert word(of(FAILED, base_url="")).entries[0].url is None
    assert word(of(notice(EventKind.OUTAGE))).entries[0].url is None
