"""/v1/schedules/preview: what a schedule means, and what to write instead of one that means nothing."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from tests.api.support import Client


async def preview(api: Client, schedule: str, **fields: Any) -> dict[str, Any]:
    answer = await api("POST", "/v1/schedules/preview", {"schedule": schedule, **fields})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


async def test_a_cron_expression(api: Client) -> None:
    found = await preview(api, "0 9 * * 1-5", timezone="Europe/Paris", after="2027-01-01T00:00:00Z", count=3)

    assert found == {
        "kind": "cron",
        "schedule_cron": "0 9 * * 1-5",
        "timezone": "Europe/Paris",
        "language": "en",
        "description": found["description"],
        "next": ["2027-01-01T08:00:00Z", "2027-01-04T08:00:00Z", "2027-01-05T08:00:00Z"],
        "warnings": [],
        "clock_changes": [],
    }
    assert "09:00" in found["description"]


async def test_an_interval_and_an_instant(api: Client) -> None:
    every = await preview(api, "every 90 minutes", after="2027-01-01T00:00:00Z", count=2)
    once = await preview(api, "2027-01-01 09:00", timezone="Asia/Tokyo", after="2026-12-01T00:00:00Z")

    assert (every["kind"], every["schedule_cron"]) == ("interval", None)
    assert every["next"] == ["2027-01-01T01:30:00Z", "2027-01-01T03:00:00Z"]
    assert (once["kind"], once["next"]) == ("once", ["2027-01-01T00:00:00Z"])


async def test_a_length_is_a_period_for_a_monitor_and_keeps_to_the_clock_for_a_job(api: Client) -> None:
    """Or the form of a monitor would show midnights for what counts from the last ping."""
    asked = {"timezone": "Europe/Paris", "after": "2027-01-01T10:00:00Z", "count": 2}
    job = await preview(api, "every day", **asked)
    monitor = await preview(api, "every day", **asked, subject="monitor")
    same = await preview(api, "every day at 2am", **asked, subject="monitor")

    assert (job["kind"], job["next"][0]) == ("cron", "2027-01-01T23:00:00Z")
    assert (monitor["kind"], monitor["next"]) == ("interval", ["2027-01-02T10:00:00Z", "2027-01-03T10:00:00Z"])
    assert monitor["description"] == "every day"
    assert (same["kind"], same["next"][0]) == ("cron", "2027-01-02T01:00:00Z")


async def test_plain_language_in_three_languages(api: Client) -> None:
    for text, language in (
        ("every weekday at 9am", "en"),
        ("chaque jour ouvré à 9h", "fr"),
        ("cada lunes a las 9", "es"),
    ):
        found = await preview(api, text)
        assert (found["kind"], found["language"]) == ("cron", language)
        assert found["schedule_cron"].startswith("0 9 * * 1")


async def test_the_days_on_which_the_clocks_decide_are_named(api: Client) -> None:
    found = await preview(api, "30 2 * * *", timezone="Europe/Paris", after="2027-01-01T00:00:00Z")

    assert [(change["at"], change["kind"]) for change in found["clock_changes"]][:2] == [
        ("2027-03-28T01:00:00Z", "gap"),
        ("2027-10-31T01:00:00Z", "repeat"),
    ]
    assert all(change["effect"].endswith(".") for change in found["clock_changes"])


async def test_without_an_instant_it_is_now_and_five(api: Client) -> None:
    found = await preview(api, "* * * * *")

    assert len(found["next"]) == 5
    times = [datetime.fromisoformat(text) for text in found["next"]]
    assert all((later - earlier).total_seconds() == 60 for earlier, later in pairwise(times))


async def test_nothing_is_created(api: Client) -> None:
    await preview(api, "* * * * * *")

    assert (await api.get("/v1/jobs"))["items"] == []


async def test_what_cannot_be_read_comes_with_suggestions_that_can(api: Client) -> None:
    for text in ("0 0 31 2 *", "every now and then", "* * * *"):
        answer = await api("POST", "/v1/schedules/preview", {"schedule": text})
        assert answer.problem(422, "schedule")
        for suggestion in answer.json.get("suggestions", []):
            await preview(api, suggestion)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"count": 0}, "count", "This has to be at least 1; this is 0."),
        ({"count": 101}, "count", "This has to be at most 100; this is 101."),
        ({"count": 1.5}, "count", "This has to be a whole number; this is 1.5."),
        ({"count": "5"}, "count", "This has to be a whole number; this is text."),
        ({"after": "tomorrow"}, "after", "Write 'after' as 2027-01-01T09:00:00Z."),
        ({"after": "2027-01-01"}, "after", "Write 'after' as 2027-01-01T09:00:00Z."),
        ({"after": "2027-01-01T00:00:00"}, "after", "Write 'after' as 2027-01-01T09:00:00Z."),
        ({"after": "2027-13-01T00:00:00Z"}, "after", "Write 'after' as 2027-01-01T09:00:00Z."),
        ({"after": "0001-01-01T00:00:00+23:59"}, "after", "Give an 'after' from 1970 on."),
        ({"after": "1969-12-31T23:59:59Z"}, "after", "Give an 'after' from 1970 on."),
        ({"after": "9" * 41}, "after", "At most 40 characters; this has 41."),
        ({"after": 5}, "after", "This has to be text; this is a number."),
        ({"timezone": "Nowhere"}, "timezone", "There is no time zone 'Nowhere'."),
        ({"language": "xx"}, "language", "This has to be "),
        ({"job_id": "x"}, "job_id", "There is no such field. Leave it out."),
    ],
)
async def test_the_bounds(api: Client, fields: dict[str, Any], field: str, words: str) -> None:
    answer = await api("POST", "/v1/schedules/preview", {"schedule": "* * * * *"} | fields)

    assert words in answer.problem(422, field)


async def test_the_edges_of_time(api: Client) -> None:
    first = await preview(api, "* * * * *", after="1970-01-01T00:00:00Z", count=1)
    last = await preview(api, "0 0 * * *", after="2499-12-30T00:00:00Z", count=100)

    assert first["next"] == ["1970-01-01T00:01:00Z"]
    assert last["next"] == ["2499-12-31T00:00:00Z"]
    beyond = await api("POST", "/v1/schedules/preview", {"schedule": "* * * * *", "after": "9999-12-31T23:59:59Z"})
    assert beyond.problem(422, "schedule")


@pytest.mark.parametrize(
    "schedule",
    [
        "0 0 30 2 *",
        "0 0 29 2 1",
        "59 59 23 31 12 6 2399",
        ",".join(["*/1"] * 300),
        "*" * 1_000,
        "0-59/1," * 140 + "* * * * *",
        "0 0 L-31 * *",
        "0 0 * * " + ",".join(f"{n % 7}#5" for n in range(200)),
        "every " + "9" * 900 + " minutes",
        "in " + "1 hour " * 120,
        "a" * 1_000,
        "every " * 160,
        "٣ * * * *",
        "0 0 29 2 *",
    ],
)
async def test_hostile_text_is_answered_quickly(api: Client, schedule: str) -> None:
    began = time.perf_counter()
    answer = await api("POST", "/v1/schedules/preview", {"schedule": schedule, "count": 100})
    took = time.perf_counter() - began

    assert answer.status in (200, 422)
    assert took < 10  # some hundredths; what is hostile takes minutes


async def test_what_nobody_can_read_is_refused_by_the_language_that_comes_nearest(api: Client) -> None:
    """In the words of the page, and with what can be said in the language that it was said in."""
    for text, language, words, suggestion in (
        ("tous les jours vers 9h", "en", "exact", "tous les jours à 9h"),
        ("every day around 9am", "fr", "exactes", "every day at 09:00"),
        ("blorgle", "fr", "Je ne comprends pas", ""),
        ("blorgle", "es", "No entiendo", ""),
    ):
        answer = await api("POST", "/v1/schedules/preview", {"schedule": text, "language": language})
        assert words in answer.problem(422, "schedule")
        assert not suggestion or suggestion in answer.json["suggestions"]
