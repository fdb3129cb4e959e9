"""Jobs whose schedule is said in words: read, shown back, edited, refused."""

from __future__ import annotations

from tests.api.support import Client


async def test_a_job_can_be_made_in_three_languages_and_is_described_in_its_own(api: Client) -> None:
    for text, language, cron, words in (
        ("every weekday at 9am", "en", "0 9 * * 1-5", "every weekday at 09:00"),
        ("tous les lundis à 8h30", "fr", "30 8 * * 1", "chaque lundi à 8h30"),
        ("el primer día de cada mes a las 9:00", "es", "0 9 1 * *", "el 1 de cada mes a las 9:00"),
    ):
        job = await api.job(schedule=text)

        assert (job["schedule"], job["schedule_cron"], job["language"]) == (text, cron, language)
        assert job["description"].startswith(words)


async def test_a_zone_in_the_words_sets_the_zone(api: Client) -> None:
    job = await api.job(schedule="every day at 9am Paris time")

    assert (job["schedule_cron"], job["timezone"]) == ("0 9 * * *", "Europe/Paris")


async def test_a_zone_in_the_words_and_another_that_was_chosen_are_refused(api: Client) -> None:
    """UTC that nobody chose gives way; UTC that somebody chose does not."""
    body = {"schedule": "every day at 9am Paris time", "timezone": "UTC"}
    answer = await api("POST", "/v1/jobs", {"name": "nightly", "url": "https://example.com/", **body})
    assert answer.problem(422, "timezone")
    assert answer.json["suggestions"] == ["Europe/Paris"]
    assert (await api("POST", "/v1/schedules/preview", body)).problem(422, "timezone")
    job = await api.job(schedule="every day at 9am")
    assert (await api("PATCH", f"/v1/jobs/{job['id']}", body)).problem(422, "timezone")
    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"schedule": body["schedule"]})).json
    assert edited["timezone"] == "Europe/Paris"
    assert (await api("PATCH", f"/v1/jobs/{job['id']}", {"timezone": "UTC"})).problem(422, "timezone")


async def test_a_schedule_is_explained_in_the_language_of_its_words(api: Client) -> None:
    body = {"schedule": "tous les jours à 2h30", "timezone": "Europe/Paris", "after": "2027-01-01T00:00:00Z"}
    found = (await api("POST", "/v1/schedules/preview", body)).json
    assert found["clock_changes"][0]["effect"].startswith(
        "Les horloges avancent de 02:00 à 03:00\xa0: 02:30 n'existe pas"
    )
    found = (await api("POST", "/v1/schedules/preview", {"schedule": "0 9 13 * FRI", "language": "es"})).json
    assert found["warnings"][0].startswith("El día del mes y el día de la semana están restringidos")


async def test_a_monitor_is_described_as_a_job_is(api: Client) -> None:
    monitor = {"name": "backup", "schedule": "every weekday at 9am", "timezone": "Europe/Paris", "language": "fr"}
    made = (await api("POST", "/v1/monitors", monitor)).json
    assert made["description"] == "du lundi au vendredi à 9h (Europe/Paris)"


async def test_what_was_assumed_is_a_warning(api: Client) -> None:
    job = await api.job(schedule="evry weekday at 9am")

    assert job["warnings"] == ["Read 'evry' as 'every'."]


async def test_words_that_mean_two_things_are_refused_with_both(api: Client) -> None:
    body = {"name": "ambiguous", "schedule": "at 7", "url": "https://example.com/"}
    answer = await api("POST", "/v1/jobs", body)

    assert answer.problem(422, "schedule")
    assert answer.json["suggestions"] == ["every day at 07:00", "every day at 19:00"]


async def test_a_single_instant_in_words_runs_once(api: Client) -> None:
    job = await api.job(schedule="in 20 minutes")

    assert (job["schedule_kind"], job["schedule_cron"]) == ("once", None)
    assert job["next_run_at"] is not None


async def test_a_named_language_is_that_of_the_answer_and_does_not_forbid_another(api: Client) -> None:
    job = await api.job(schedule="every weekday at 9am", language="fr")

    assert job["schedule_cron"] == "0 9 * * 1-5"
    assert job["description"].startswith("du lundi au vendredi") or "jour" in job["description"]
    assert job["language"] == "fr"


async def test_the_clock_change_policy_and_the_day_matching_are_kept_and_can_be_edited(api: Client) -> None:
    job = await api.job(schedule="0 2 13 * 5", timezone="Europe/Paris", dst="skip", day_match="both")
    assert (job["dst"], job["day_match"]) == ("skip", "both")
    assert job["warnings"] == []

    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"day_match": "either"})).json

    assert (edited["dst"], edited["day_match"]) == ("skip", "either")
    assert edited["next_run_at"] < job["next_run_at"]
    assert any("EITHER" in warning for warning in edited["warnings"])


async def test_an_edit_of_something_else_leaves_the_words_and_the_cursor_alone(api: Client) -> None:
    job = await api.job(schedule="tous les lundis à 8h30")

    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"timeout": 5})).json

    assert edited["timeout"] == 5
    kept = ("schedule", "schedule_cron", "language", "description", "next_run_at")
    assert [edited[name] for name in kept] == [job[name] for name in kept]
