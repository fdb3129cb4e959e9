"""The list of jobs, and what is done with many of them at once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.support import Pages

from zerocron.dashboard.specimens.jobs import JOB
from zerocron.dashboard.specimens.kinds import page_of, session
from zerocron.dashboard.specimens.overview import job_id

PICKED = [("ids", f"active:{job_id(1)}"), ("ids", f"paused:{job_id(9)}")]
BULK = "POST /v1/jobs/bulk"
ALL_DONE = {"done": [job_id(1), job_id(9)], "refused": []}


async def test_filters_are_passed_on_and_shown() -> None:
    pages = Pages.of("jobs")
    shown = await pages.get("/jobs?q=till&status=active&state=passing&tag=mail&sort=name&unknown=1")

    (asked,) = pages.api.questions("/v1/jobs")
    assert asked.query == {"q": "till", "status": "active", "state": "passing", "tag": "mail", "sort": "name"}
    form = shown.tree.one("form", role="search")
    assert dict(form.fields()) == asked.query


async def test_a_row_shows_where_a_job_stands() -> None:
    tree = (await Pages.of("jobs").get("/jobs")).tree

    failing = tree.one(id=f"job-{job_id(2)}")
    assert failing.one("a", class_="name").get("href") == f"/jobs/{job_id(2)}"
    assert "failed" in failing.text
    assert "every 15 minutes from Monday to Friday" in failing.text
    assert failing.one("svg").get("aria-label") == "The newest 96 runs of the last 24 hours, 4 failed"
    assert "running" in tree.one(id=f"job-{job_id(1)}").text
    assert "disabled" in tree.one(id=f"job-{job_id(4)}").text
    assert "never ran" in tree.one(id=f"job-{job_id(11)}").text


async def test_more_is_the_next_page_and_appended_by_a_script() -> None:
    pages = Pages.of("jobs")
    more = (await pages.get("/jobs?tag=mail")).tree.one("a", rel="next")
    cursor = pages.api.answers["GET /v1/jobs"]["next_cursor"]

    assert more.get("href") == f"/jobs?tag=mail&cursor={cursor}&chunk=2"
    part = await pages.get(more.get("hx-get"), is_fragment=True)
    assert pages.api.questions("/v1/jobs")[-1].query == {"tag": "mail", "cursor": cursor}
    bodies = [each.get("id") for each in part.tree.children if not isinstance(each, str)]
    assert bodies == ["rows-2", "more-rows"]
    assert not (await pages.get(more.get("href"))).tree.all(id="rows-1")


async def test_a_page_of_the_table_refreshes_itself_alone() -> None:
    pages = Pages.of("jobs")
    rows = (await pages.get("/jobs?tag=mail&cursor=c&chunk=3")).tree.one(id="rows-3")

    part = await pages.get(rows.get("hx-get"), is_fragment=True)

    assert [each.get("id") for each in part.tree.children if not isinstance(each, str)] == ["rows-3"]
    assert pages.api.questions("/v1/jobs")[-1].query == {"tag": "mail", "cursor": "c"}


@pytest.mark.parametrize("chunk", ["x", "-1", "²", "9" * 20, ""])
async def test_a_page_number_that_is_none_is_the_first(chunk: str) -> None:
    assert (await Pages.of("jobs").get(f"/jobs?chunk={chunk}")).tree.all(id="rows-1")


async def test_a_viewer_cannot_choose() -> None:
    tree = (await Pages.of("jobs", **{"GET /v1/session": session(permissions=["read"])}).get("/jobs")).tree

    assert not tree.all("form", id="bulk")
    assert not tree.all("input", name="ids")


@pytest.mark.parametrize(
    ("action", "tags"), [("pause", []), ("resume", []), ("add_tags", ["night", "x"]), ("remove_tags", ["night", "x"])]
)
async def test_many_are_changed_at_once(action: str, tags: list[str]) -> None:
    pages = Pages.of("jobs", **{BULK: ALL_DONE})
    shown = await pages.post("/jobs/bulk", [*PICKED, PICKED[0], ("new_tag", " night, x ,"), ("action", action)])

    (sent,) = pages.api.sent()
    assert sent.body == {"ids": [job_id(1), job_id(9)], "action": action, "tags": tags}
    assert "2 jobs" in shown.tree.one(role="status").text


async def test_the_enter_key_stops_and_deletes_nothing() -> None:
    """It does what the first button of a form does."""
    bulk = (await Pages.of("jobs").get("/jobs")).tree.one("form", id="bulk")

    assert bulk.all("button")[0].get("value") == "add_tags"


async def test_filters_stay_when_many_are_changed() -> None:
    pages = Pages.of("jobs", **{BULK: ALL_DONE})
    bulk = (await pages.get("/jobs?q=till&sort=name")).tree.one("form", id="bulk")
    shown = await pages.post("/jobs/bulk", [*bulk.fields(), *PICKED, ("action", "pause")])

    assert pages.api.questions("/v1/jobs")[-1].query == {"q": "till", "sort": "name"}
    (here,) = [each for each in shown.tree.all("span") if each.get("data-here")]
    assert here.get("data-here") == "/jobs?q=till&sort=name"


async def test_pausing_is_undone_for_those_that_it_stopped() -> None:
    pages = Pages.of("jobs", **{BULK: ALL_DONE})
    shown = await pages.post("/jobs/bulk", [*PICKED, ("action", "pause")])

    undo = shown.tree.one(role="status").one("form")
    await pages.post(undo.get("action"), [*undo.fields(), ("action", undo.one("button").get("value"))])

    assert pages.api.sent()[-1].body == {"ids": [job_id(1)], "action": "resume", "tags": []}


@pytest.mark.parametrize("action", ["resume", "add_tags", "remove_tags"])
async def test_what_cannot_be_undone_does_not_say_so(action: str) -> None:
    pages = Pages.of("jobs", **{BULK: ALL_DONE})
    shown = await pages.post("/jobs/bulk", [*PICKED, ("new_tag", "x"), ("action", action)])

    assert not shown.tree.one(role="status").all("form")


async def test_those_that_were_refused_are_named_with_the_reason() -> None:
    tree = (await Pages.of("jobs-told").specimen("jobs-told")).tree

    assert tree.one(role="alert").text == (
        "One job was left as it is: Move the archive : The job is completed: its schedule has no slot left, "
        "so there is nothing to pause."
    )


async def test_deleting_many_asks_first() -> None:
    one = {**JOB, "id": job_id(1), "name": "Renew session cache"}
    pages = Pages.of("jobs", **{BULK: ALL_DONE, f"GET /v1/jobs/{job_id(1)}": one})
    asked = await pages.post("/jobs/bulk", [*PICKED, ("tag", "mail"), ("asked", ""), ("action", "delete")])

    assert not pages.api.sent()
    form = asked.tree.one("form", class_="card")
    assert "Renew session cache" in form.text
    assert job_id(9) in form.text  # which is gone already
    shown = await pages.post(form.get("action"), form.fields())
    assert pages.api.sent()[0].body == {"ids": [job_id(1), job_id(9)], "action": "delete", "tags": []}
    assert pages.api.questions("/v1/jobs")[-1].query == {"tag": "mail"}
    assert "2 jobs are deleted." in shown.tree.text


async def test_who_was_asked_by_a_script_is_not_asked_again() -> None:
    pages = Pages.of("jobs", **{BULK: ALL_DONE})
    await pages.post("/jobs/bulk", [*PICKED, ("asked", "yes"), ("action", "delete")])

    assert len(pages.api.sent()) == 1


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ([("action", "pause")], "Choose at least one job."),
        ([*PICKED], "Choose what to do with the jobs."),
        ([*PICKED, ("action", "explode")], "Choose what to do with the jobs."),
        ([*PICKED, ("action", "add_tags"), ("new_tag", "  ")], "Write the tag to add or to remove."),
        ([("ids", f"active:{n}") for n in range(201)] + [("action", "pause")], "Choose at most 200 jobs at once."),
    ],
)
async def test_what_cannot_be_done_is_said_without_asking(fields: list[tuple[str, str]], detail: str) -> None:
    pages = Pages.of("jobs")
    shown = await pages.post("/jobs/bulk", fields)

    assert shown.status == 422
    assert detail in shown.tree.one(role="alert").text
    assert not pages.api.sent()


async def test_what_the_api_refuses_is_said_above_the_list() -> None:
    pages = Pages.of("jobs-refused")
    shown = await pages.specimen("jobs-refused")

    assert shown.status == 422
    assert "at most 200 jobs at once" in shown.tree.one(role="alert").text
    assert shown.tree.all(id="rows-1")


async def test_nothing_found_and_nothing_there_are_told_apart() -> None:
    nothing: dict[str, Any] = {"GET /v1/jobs": page_of([])}

    assert "No job yet" in (await Pages.of("jobs", **nothing).get("/jobs")).tree.text
    found = (await Pages.of("jobs", **nothing).get("/jobs?q=x")).tree
    assert "No job is like that" in found.text
    assert found.one("input", id="q").get("value") == "x"


async def test_no_strips_are_asked_for_without_jobs() -> None:
    pages = Pages.of("jobs-none")
    await pages.get("/jobs")

    assert not pages.api.questions("/v1/jobs/strips")


async def test_a_filter_that_the_api_does_not_know_is_a_page_that_says_so() -> None:
    refusal = (422, {"title": "Unprocessable Content", "status": 422, "detail": "Give one of: active."})
    shown = await Pages.of("jobs", **{"GET /v1/jobs": refusal}).get("/jobs?status=x")

    assert shown.status == 422
    assert "Give one of: active." in shown.tree.text


async def test_coming_back_to_where_a_form_was_sent_shows_the_list() -> None:
    shown = await Pages.of("jobs").get("/jobs/bulk")

    assert (shown.status, shown.location) == (303, "/jobs")
