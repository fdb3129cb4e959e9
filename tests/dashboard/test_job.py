"""The page of a job, what can be done there, and why it did or did not run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.dashboard.support import Pages

from zerocron.core.model import REASON_TEXTS
from zerocron.dashboard.specimens.jobs import JOB
from zerocron.dashboard.specimens.kinds import page_of, session
from zerocron.dashboard.specimens.overview import at, job_id
from zerocron.dashboard.words import said

PATH = f"/jobs/{JOB['id']}"
API = f"/v1/jobs/{JOB['id']}"
PREVIEW = "/v1/schedules/preview"
READER = {"GET /v1/session": session(permissions=["read"])}


def reader_of(language: str, timezone: str = "Europe/Paris") -> dict[str, Any]:
    person = {**session()["person"], "language": language, "timezone": timezone}
    return {"GET /v1/session": session(person=person)}


async def test_the_next_runs_are_counted_from_the_next_one() -> None:
    """An interval counts from the creation of its job: asked for from now on, it would give other instants."""
    pages = Pages.of("job")
    tree = (await pages.get(PATH)).tree

    (asked,) = [each for each in pages.api.asked if each.path == PREVIEW]
    assert asked.body == {
        "schedule": JOB["schedule"],
        "timezone": "Europe/Paris",
        "language": "en",
        "dst": "run_once",
        "day_match": "either",
        "after": JOB["next_run_at"],
        "count": 4,
    }
    items = tree.one("section", aria_labelledby="next-runs").all("li")
    assert [each.all("time")[-1].text for each in items][:2] == ["3:45:00 PM", "4:00:00 PM"]
    assert len(items) == 5


async def test_one_instant_has_one_next_run() -> None:
    pages = Pages.of("job", **{f"GET {API}": {**JOB, "schedule_kind": "once", "schedule_cron": None}})
    tree = (await pages.get(PATH)).tree

    assert len(tree.one("section", aria_labelledby="next-runs").all("li")) == 1
    assert not pages.api.questions(PREVIEW)


async def test_a_preview_that_fails_takes_no_page_away() -> None:
    pages = Pages.of("job", **{f"POST {PREVIEW}": (422, {"title": "x", "detail": "y"})}, **reader_of("fr"))
    shown = await pages.get(PATH)

    assert shown.status == 200
    assert len(shown.tree.one("section", aria_labelledby="next-runs").all("li")) == 1
    assert JOB["description"] in shown.tree.text


async def test_the_schedule_is_said_in_the_readers_language() -> None:
    told = {**Pages.of("job").api.answers[f"POST {PREVIEW}"], "description": "toutes les 15 minutes en semaine"}
    pages = Pages.of("job", **{f"POST {PREVIEW}": told}, **reader_of("fr"))
    tree = (await pages.get(PATH)).tree

    assert tree.one("p", class_="lead").text == "toutes les 15 minutes en semaine"
    assert {"schedule": JOB["schedule_cron"], "timezone": "Europe/Paris", "language": "fr", "count": 1} in [
        each.body for each in pages.api.questions(PREVIEW)
    ]


async def test_secrets_are_shown_by_name() -> None:
    sent = (await Pages.of("job").get(PATH)).tree.one("section", aria_labelledby="sent")

    assert [each.text for each in sent.all("mark")] == ["${secrets.PRICES_TOKEN}", "${secrets.SUPPLIER_KEY}"]
    assert [each.text for each in sent.all("a")] == ["PRICES_TOKEN", "SUPPLIER_KEY"]


async def test_retries_are_told_with_their_waits() -> None:
    rules = (await Pages.of("job").get(PATH)).tree.one("section", aria_labelledby="rules")

    assert "tried up to 4 times, with waits of 10 s , 20 s , 40 s" in rules.text
    assert "$.errors is 0" in rules.text


@pytest.mark.parametrize(
    ("equals", "shown"), [(True, "true"), (False, "false"), (None, "null"), (0, "0"), (1, "1"), ("x", "x")]
)
async def test_a_value_of_a_rule_is_shown_as_json_has_it(equals: Any, shown: str) -> None:
    success = {**JOB["success"], "json": [{"path": "$.a", "equals": equals}]}
    rules = (await Pages.of("job", **{f"GET {API}": {**JOB, "success": success}}).get(PATH)).tree.one(
        "section", aria_labelledby="rules"
    )

    assert f"$.a is {shown}" in rules.text


@pytest.mark.parametrize(
    ("notify", "told"),
    [
        ({"channels": []}, "Nobody."),
        ({"on": []}, "Nobody."),
        ({"channels": None}, "all channels of the team"),
        ({"channels": [job_id(80)]}, "On call"),
        ({"channels": [job_id(81)]}, job_id(81)),
        ({"after_failures": 3, "out_of": 5}, "when 3 of the last 5 runs failed"),
    ],
)
async def test_who_is_told(notify: dict[str, Any], told: str) -> None:
    pages = Pages.of("job", **{f"GET {API}": {**JOB, "notify": {**JOB["notify"], **notify}}})

    assert told in (await pages.get(PATH)).tree.one("section", aria_labelledby="told").text


async def test_the_chart_has_its_points_for_a_script_and_is_drawn_without_one() -> None:
    pages = Pages.of("job")
    figures = (await pages.get(f"{PATH}?days=30")).tree.one(id="figures")

    (box,) = [each for each in figures.all("div") if each.get("data-points")]
    points = json.loads(box.get("data-points"))
    assert len(points) == len(box.one("svg").all("rect")) == 160
    assert points[-1][1:3] == [10_913, "failed"]
    assert pages.api.questions(f"{API}/stats")[0].query == {"days": "30"}
    assert figures.one("a", aria_current="true").text == "30 days"


@pytest.mark.parametrize("days", ["8", "x", ""])
async def test_a_period_that_is_none_is_a_week(days: str) -> None:
    pages = Pages.of("job")
    await pages.get(f"{PATH}?days={days}")

    assert pages.api.questions(f"{API}/stats")[0].query == {"days": "7"}


async def test_a_run_tells_how_it_went_and_leads_to_its_page() -> None:
    tree = (await Pages.of("job").get(PATH)).tree
    rows = tree.one(id="rows-1").all("tr")

    assert [cell.text for cell in rows[1].all("td")[2:]] == ["6 ms", "4", "1 min 25 s"]
    assert rows[1].one("a", class_="name").get("href").startswith("/runs/")
    assert "14 slots" in rows[6].text
    assert f"{PATH}/explain?at=" in rows[6].one("td", class_="outcome").one("a").get("href")
    assert "run by hand" in rows[2].text


async def test_runs_are_filtered_and_go_on() -> None:
    pages = Pages.of("job")
    pages.api.answers[f"GET {API}/runs"] = {**pages.api.answers[f"GET {API}/runs"], "next_cursor": "c"}
    tree = (await pages.get(f"{PATH}?status=failed")).tree

    assert pages.api.questions(f"{API}/runs")[-1].query == {"status": "failed"}
    more = tree.one("a", rel="next")
    part = await pages.get(more.get("hx-get"), is_fragment=True)
    assert pages.api.questions(f"{API}/runs")[-1].query == {"status": "failed", "cursor": "c"}
    assert part.tree.all(id="rows-2")


@pytest.mark.parametrize(("part", "id"), [("now", "now"), ("figures", "figures"), ("rows", "rows-1")])
async def test_what_refreshes_itself_is_a_part_of_the_page(part: str, id: str) -> None:
    pages = Pages.of("job")
    address = (await pages.get(PATH)).tree.one(id=id).get("hx-get")
    assert f"part={part}" in address

    shown = await pages.get(address, is_fragment=True)

    assert [each.get("id") for each in shown.tree.children if not isinstance(each, str)] == [id]


def buttons(tree: Any) -> set[str]:
    return {
        each.text for each in tree.one(id="now").all() if each.tag in ("a", "button") and "button" in each.get("class")
    }


@pytest.mark.parametrize(
    ("status", "permissions", "offered"),
    [
        ("active", ["read", "write", "trigger"], {"Run now", "Pause", "Edit", "Clone", "Delete"}),
        ("paused", ["read", "write", "trigger"], {"Resume", "Edit", "Clone", "Delete"}),
        ("disabled", ["read", "write", "trigger"], {"Resume", "Edit", "Clone", "Delete"}),
        ("completed", ["read", "write", "trigger"], {"Run now", "Edit", "Clone", "Delete"}),
        ("active", ["read", "trigger"], {"Run now"}),
        ("active", ["read"], set()),
    ],
)
async def test_only_what_can_be_done_is_offered(status: str, permissions: list[str], offered: set[str]) -> None:
    answers = {f"GET {API}": {**JOB, "status": status}, "GET /v1/session": session(permissions=permissions)}

    assert buttons((await Pages.of("job", **answers).get(PATH)).tree) == offered


@pytest.mark.parametrize(("what", "done"), [("trigger", "triggered"), ("pause", "paused"), ("resume", "resumed")])
async def test_what_is_done_is_told_on_the_page(what: str, done: str) -> None:
    pages = Pages.of("job", **{f"POST {API}/{what}": JOB})
    shown = await pages.post(f"{PATH}/{what}")

    assert (shown.status, shown.location) == (303, f"{PATH}?done={done}")
    assert [(each.method, each.path, each.body) for each in pages.api.sent()] == [("POST", f"{API}/{what}", None)]


@pytest.mark.parametrize(("runs", "state"), [(["retrying", "failed"], "running"), (["failed"], "failing")])
async def test_its_head_says_how_it_is(runs: list[str], state: str) -> None:
    pages = Pages.of("job")
    made = {each["status"]: each for each in pages.api.answers[f"GET {API}/runs"]["items"]}
    pages.api.answers[f"GET {API}/runs"] = page_of([made[status] for status in runs])

    assert (await pages.get(PATH)).tree.one("h1").one("span", class_="badge").text == state


async def test_what_is_refused_is_said_on_the_page() -> None:
    shown = await Pages.of("job-trigger-refused").specimen("job-trigger-refused")

    assert shown.status == 409
    assert "Resume it before triggering it." in shown.tree.one(role="alert").text


async def test_deleting_asks_once() -> None:
    pages = Pages.of("job", **{f"DELETE {API}": None})
    button = [each for each in (await pages.get(PATH)).tree.one(id="now").all("form") if each.get("data-ask")]
    assert [each.get("action") for each in button] == [f"{PATH}/delete"]

    asked = await pages.post(button[0].get("action"), button[0].fields())
    assert not [each for each in pages.api.sent() if each.method == "DELETE"]
    form = asked.tree.one("form", class_="card")
    done = await pages.post(form.get("action"), form.fields())

    assert [each.path for each in pages.api.sent() if each.method == "DELETE"] == [API]
    assert done.location == "/jobs?done=deleted"


@pytest.mark.parametrize("what", ["trigger", "pause", "resume", "delete"])
async def test_coming_back_to_where_a_form_was_sent_shows_the_job(what: str) -> None:
    assert (await Pages.of("job").get(f"{PATH}/{what}")).location == PATH


async def test_a_job_that_is_not_there() -> None:
    assert (await Pages.of("job").get(f"/jobs/{job_id(99)}")).status == 404
    assert (await Pages.of("job").post(f"/jobs/{job_id(99)}/pause")).status == 404


@pytest.mark.parametrize("language", ["fr", "es"])
def test_every_reason_has_words(language: str) -> None:
    for text in REASON_TEXTS.values():
        assert said(language, text) != text


# --- explain


async def test_why_it_did_not_run() -> None:
    pages = Pages.of("job-explain")
    tree = (await pages.specimen("job-explain")).tree

    assert pages.api.questions(f"{API}/explain")[0].query == {"at": at(minutes=47, seconds=7)}
    assert tree.one(id="verdict").text.startswith("It did not run. The previous run was still running")
    assert len(tree.one("ol", class_="explained-by").all("li")) == 3
    assert dict(tree.one("form", class_="explain-form").fields()) == {"date": "2027-03-10", "time": "14:45:00"}


@pytest.mark.parametrize(
    ("zone", "date", "time", "instant"),
    [
        ("Europe/Paris", "2027-03-10", "14:45", "2027-03-10T13:45:00Z"),
        ("Europe/Paris", "2027-07-10", "14:45:30", "2027-07-10T12:45:30Z"),
        ("Europe/Paris", "2027-10-31", "02:30", "2027-10-31T00:30:00Z"),
        ("Europe/Paris", "2027-03-28", "02:30", "2027-03-28T01:30:00Z"),
        ("America/New_York", "2027-01-01", "", "2027-01-01T05:00:00Z"),
        ("Pacific/Auckland", "1970-01-02", "00:00", "1970-01-01T12:00:00Z"),
    ],
)
async def test_a_local_time_leads_to_its_instant(zone: str, date: str, time: str, instant: str) -> None:
    pages = Pages.of("job", **reader_of("en", zone))
    shown = await pages.get(f"{PATH}/explain?date={date}&time={time}")

    assert (shown.status, shown.location) == (303, f"{PATH}/explain?at={instant}")


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("x", "09:00"),
        ("", "09:00"),
        ("2027-02-30", "09:00"),
        ("2027-01-01", "25:00"),
        ("0001-01-01", "00:00"),
        ("9999-12-31", "23:59"),
        ("2027-01-01", "09:00%2B02:00"),
        ("2027-01-01", "'\"<b>"),
    ],
)
async def test_a_time_that_is_none_is_said_beside_its_field(date: str, time: str) -> None:
    pages = Pages.of("job")
    shown = await pages.get(f"{PATH}/explain?date={date}&time={time}")

    assert shown.status == 422
    assert "Give a date such as 2027-01-31" in shown.tree.one(id="date-error").text
    assert shown.tree.one("input", id="date").get("aria-describedby").split() == ["date-error"]
    assert not pages.api.questions(f"{API}/explain")


async def test_an_instant_that_the_api_refuses_is_said() -> None:
    refusal = {"title": "x", "detail": "Write it as 2027-01-01T09:00:00Z.", "errors": []}
    pages = Pages.of("job", **{f"GET {API}/explain": (422, refusal)})
    shown = await pages.get(f"{PATH}/explain?at=yesterday")

    assert shown.status == 422
    assert "Write it as 2027-01-01T09:00:00Z." in shown.tree.one(role="alert").text


async def test_without_an_instant_it_asks_for_one() -> None:
    pages = Pages.of("job")
    shown = await pages.get(f"{PATH}/explain")

    assert dict(shown.tree.one("form", class_="explain-form").fields()) == {"date": "2027-03-10", "time": "15:32:07"}
    assert not pages.api.questions(f"{API}/explain")
