"""/v1/jobs: a job is what was written, with defaults, and stays so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.api.support import JOB, NOWHERE, Client, until

from zerocron.app import Node

SUCCESS: dict[str, Any] = {
    "status": ["2xx"],
    "body_contains": None,
    "body_not_contains": None,
    "body_matches": None,
    "json": [],
    "headers": {},
    "max_duration_ms": None,
}


async def test_a_job_has_every_field_with_its_default(api: Client) -> None:
    answer = await api("POST", "/v1/jobs", {"name": "Nightly", "schedule": "0 0 1 1 *", "url": "https://example.com/x"})

    job = answer.json
    assert answer.status == 201
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert "idempotent-replay" not in answer.headers
    moving = {name: job.pop(name) for name in ("id", "next_run_at", "created_at", "updated_at")}
    assert moving["created_at"] == moving["updated_at"]
    assert moving["next_run_at"].endswith("-01-01T00:00:00Z")
    assert job == {
        "version": 1,
        "name": "Nightly",
        "schedule": "0 0 1 1 *",
        "schedule_kind": "cron",
        "schedule_cron": "0 0 1 1 *",
        "description": job["description"],
        "timezone": "UTC",
        "language": "en",
        "dst": "run_once",
        "day_match": "either",
        "status": "active",
        "status_reason": None,
        "url": "https://example.com/x",
        "method": "GET",
        "headers": {},
        "body": None,
        "timeout": 30,
        "retry": {"attempts": 1, "backoff": "exponential", "delay": 5, "jitter": "none"},
        "overlap": "skip",
        "catchup": "latest",
        "catchup_window": 86_400,
        "on_lost": "rerun",
        "disable_after": 0,
        "redirects": 0,
        "verify_tls": True,
        "sign": False,
        "success": SUCCESS,
        "notify": {
            "channels": None,
            "on": ["failed", "recovered", "disabled", "missed"],
            "after_failures": 1,
            "out_of": None,
            "remind_every": None,
            "late_after": 60,
        },
        "tags": [],
        "last_run": None,
        "stats": {
            "succeeded": 0,
            "failed": 0,
            "skipped": 0,
            "consecutive_failures": 0,
            "average_duration_ms": None,
        },
        "warnings": [],
    }


async def test_an_object_as_body_is_sent_as_json_and_text_as_it_is(api: Client) -> None:
    assert (await api.job(body={"a": [1, 2.5, None, "é"]}))["body"] == '{"a":[1,2.5,null,"é"]}'
    assert (await api.job(body='{"a": 1}'))["body"] == '{"a": 1}'
    assert (await api.job(body=[]))["body"] == "[]"


async def test_tags_are_kept_once_each(api: Client) -> None:
    assert (await api.job(tags=["b", "a", "b"]))["tags"] == ["b", "a"]


async def test_what_is_shown_is_what_was_made(api: Client) -> None:
    job = await api.job(headers={"X-A": "1"}, tags=["x"], body="hello")

    assert await api.get(f"/v1/jobs/{job['id']}") == job
    assert (await api.get("/v1/jobs"))["items"] == [job]


@pytest.mark.parametrize("job_id", [NOWHERE, NOWHERE.upper(), "x", "0", "null", "a" * 5_000, NOWHERE + "0", "{job_id}"])
async def test_a_job_that_is_not_there(api: Client, job_id: str) -> None:
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/trigger"),
        ("GET", "/runs"),
        ("GET", "/executions"),
    ):
        answer = await api(method, f"/v1/jobs/{job_id}{path}", {} if method == "PATCH" else None)
        assert answer.problem(404) == "There is no such job."


async def test_an_edit_changes_what_it_names_and_nothing_else(api: Client) -> None:
    job = await api.job(retry={"attempts": 3, "delay": 7}, success={"body_contains": "ok"}, tags=["x"])

    answer = await api(
        "PATCH",
        f"/v1/jobs/{job['id']}",
        {"name": "new", "retry": {"attempts": 5}, "success": {"status": ["404"]}, "overlap": "queue", "timeout": 5},
    )

    changed = answer.json
    assert answer.status == 200
    assert changed["version"] == 2
    assert changed["retry"] == {"attempts": 5, "backoff": "exponential", "delay": 7, "jitter": "none"}
    assert changed["success"] == SUCCESS | {"status": ["404"], "body_contains": "ok"}
    assert (changed["name"], changed["overlap"], changed["timeout"]) == ("new", "queue", 5)
    same = set(job) - {"version", "name", "retry", "success", "overlap", "timeout", "updated_at"}
    assert {name: changed[name] for name in same} == {name: job[name] for name in same}


async def test_an_edit_may_take_away_what_may_be_nothing(api: Client) -> None:
    job = await api.job(body="x", success={"body_contains": "a", "body_not_contains": "b"}, headers={"X-A": "1"})

    changed = (
        await api(
            "PATCH",
            f"/v1/jobs/{job['id']}",
            {"body": None, "success": {"body_contains": None}, "headers": {}},
        )
    ).json

    assert changed["body"] is None
    assert changed["headers"] == {}
    assert changed["success"] == SUCCESS | {"body_not_contains": "b"}


RULES = {
    "status": ["2xx", "404"],
    "body_contains": "a",
    "body_not_contains": "b",
    "body_matches": "(?i)A+",
    "json": [{"path": "$.a[0]", "equals": value} for value in ("x", 1, 1.5, True, None)],
    "headers": {"X-State": "done"},
    "max_duration_ms": 1_500,
}


async def test_every_rule_of_success_is_shown_as_it_was_written_and_can_be_taken_away(api: Client) -> None:
    job = await api.job(success=RULES)
    assert job["success"] == RULES
    for name in ("body_contains", "body_not_contains", "body_matches", "max_duration_ms"):
        await api("PATCH", f"/v1/jobs/{job['id']}", {"success": {name: None}})
    changed = (await api("PATCH", f"/v1/jobs/{job['id']}", {"success": {"json": [], "headers": {}}})).json
    assert changed["success"] == SUCCESS | {"status": ["2xx", "404"]}


async def test_an_edit_tells_one_from_true(api: Client) -> None:
    job = await api.job(success={"json": [{"path": "$.a", "equals": 1}]})
    rules = [{"path": "$.a", "equals": True}]
    changed = (await api("PATCH", f"/v1/jobs/{job['id']}", {"success": {"json": rules}})).json
    assert changed["success"]["json"][0]["equals"] is True


async def test_how_a_request_is_delivered_can_be_set_and_changed(api: Client) -> None:
    job = await api.job(redirects=5, disable_after=3, retry={"jitter": "full"})
    assert (job["redirects"], job["disable_after"], job["retry"]["jitter"]) == (5, 3, "full")
    change = {"redirects": 0, "disable_after": 0, "retry": {"jitter": "none"}}
    changed = (await api("PATCH", f"/v1/jobs/{job['id']}", change)).json
    assert (changed["redirects"], changed["disable_after"], changed["retry"]["jitter"]) == (0, 0, "none")


async def test_certificates_are_verified_unless_the_operator_lets_jobs_decide(node: Node, api: Client) -> None:
    refused = "This server does not let jobs switch the verification of certificates off."
    assert refused in (await api("POST", "/v1/jobs", JOB | {"verify_tls": False})).problem(422, "verify_tls")
    job = await api.job()
    assert refused in (await api("PATCH", f"/v1/jobs/{job['id']}", {"verify_tls": False})).problem(422, "verify_tls")
    node.jobs._allow_insecure_tls = True
    try:
        loose = (await api("PATCH", f"/v1/jobs/{job['id']}", {"verify_tls": False})).json
    finally:
        node.jobs._allow_insecure_tls = False
    assert loose["verify_tls"] is False
    assert [warning.partition(":")[0] for warning in loose["warnings"]] == ["Certificates are not verified"]
    renamed = (await api("PATCH", f"/v1/jobs/{job['id']}", {"name": "b"})).json
    assert renamed["warnings"] == loose["warnings"], "what was allowed once is no obstacle to another edit"
    strict = (await api("PATCH", f"/v1/jobs/{job['id']}", {"verify_tls": True})).json
    assert (strict["verify_tls"], strict["warnings"]) == (True, [])


@pytest.mark.parametrize(
    "change", [{}, {"name": "a job"}, {"retry": {}}, {"success": {"status": ["2xx"]}}, {"notify": {}}]
)
async def test_an_edit_that_changes_nothing_makes_no_version(api: Client, change: dict[str, object]) -> None:
    job = await api.job()

    assert (await api("PATCH", f"/v1/jobs/{job['id']}", change)).json == job


async def test_an_edit_of_the_time_zone_moves_the_next_slot(api: Client) -> None:
    job = await api.job(schedule="0 12 1 6 *")

    changed = (await api("PATCH", f"/v1/jobs/{job['id']}", {"timezone": "Asia/Tokyo"})).json

    assert job["next_run_at"][11:] == "12:00:00Z"
    assert changed["next_run_at"][11:] == "03:00:00Z"
    assert changed["timezone"] == "Asia/Tokyo"


async def test_a_deleted_job_is_gone(api: Client) -> None:
    job = await api.job()

    deleted = await api("DELETE", f"/v1/jobs/{job['id']}")

    assert (deleted.status, deleted.body) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await api(method, f"/v1/jobs/{job['id']}")).problem(404) == "There is no such job."
    assert (await api.get("/v1/jobs"))["items"] == []


async def test_lists_can_be_narrowed(api: Client) -> None:
    red = await api.job(name="Red report", tags=["red", "both"], url="https://one.example/x")
    blue = await api.job(name="blue 100% _x_", tags=["blue", "both"], url="https://two.example/x")
    await api.post(f"/v1/jobs/{blue['id']}/pause")

    async def ids(**query: str) -> list[str]:
        return [job["id"] for job in (await api.get("/v1/jobs", **query))["items"]]

    assert await ids() == [blue["id"], red["id"]]
    assert await ids(status="active") == [red["id"]]
    assert await ids(status="paused") == [blue["id"]]
    assert await ids(status="completed") == []
    assert await ids(tag="red") == [red["id"]]
    assert await ids(tag="both") == [blue["id"], red["id"]]
    assert await ids(tag="bo") == []
    assert await ids(q="REPORT") == [red["id"]]
    assert await ids(q="two.example") == [blue["id"]]
    assert await ids(q="100%") == [blue["id"]]
    assert await ids(q="_x_") == [blue["id"]]
    assert await ids(q="%") == [blue["id"]]
    assert await ids(q="' OR 1=1 --") == []
    assert await ids(q="x", status="active", tag="both") == [red["id"]]


async def test_names_are_data_and_nothing_else(api: Client) -> None:
    """Stored canaries: they come back as they went in, as JSON that no browser takes for a page."""
    for name in (
        "<script>alert(1)</script>",
        "'; DROP TABLE jobs; --",
        "{{7*7}}",
        "${secrets.X}",
        "=cmd|' /C calc'!A0",
    ):
        job = await api.job(name=name, tags=[name[:50]])
        answer = await api("GET", f"/v1/jobs/{job['id']}")
        assert answer.json["name"] == name
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await api.get("/v1/jobs", tag=name[:50]))["items"] == [job]


async def test_the_same_job_twice_is_two_jobs(api: Client) -> None:
    first, second = await api.job(), await api.job()

    assert first["id"] != second["id"]
    assert first["id"] < second["id"]  # ids sort by time


async def test_a_job_for_one_instant_is_completed_afterwards(api: Client) -> None:
    job = await api.job(schedule="in 1 second", url="http://127.0.0.1:9/")
    found = {}

    async def look() -> bool:
        found.update(await api.get(f"/v1/jobs/{job['id']}"))
        return bool(found["status"] == "completed" and found["last_run"])

    await until(look, "a completed job whose run has ended")
    assert found["next_run_at"] is None
    assert "no slot left" in (await api("POST", f"/v1/jobs/{job['id']}/resume")).problem(409)
    assert "completed" in (await api("POST", f"/v1/jobs/{job['id']}/pause")).problem(409)
    assert (await api("POST", f"/v1/jobs/{job['id']}/trigger")).status == 202


async def test_the_example_of_the_reference_is_accepted(api: Client) -> None:
    schemas = json.loads((await api("GET", "/openapi.json")).body)["components"]["schemas"]

    for example in schemas["JobInput"]["examples"]:
        made = await api.job(**example)
        for change in schemas["JobChange"]["examples"]:
            assert (await api("PATCH", f"/v1/jobs/{made['id']}", change)).status == 200
    assert JOB.keys() <= schemas["JobInput"]["properties"].keys()
