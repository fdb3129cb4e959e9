"""Lists: page by page, each item once, whatever is created meanwhile."""

from __future__ import annotations

import base64
import json

import pytest
from tests.api.support import JOB, Client, until
from tests.support.target import Target

from zerocron.core.instants import from_rfc3339


async def test_walking_jobs_while_new_ones_are_made(api: Client) -> None:
    before = [await api.job(name=f"job {n}") for n in range(23)]
    made = 0

    async def make_one_more() -> None:
        nonlocal made
        made += 1
        await api.job(name=f"meanwhile {made}")

    for limit in (1, 4, 7, 200):
        seen = [job["id"] for job in await api.walk("/v1/jobs", limit, make_one_more)]
        assert len(seen) == len(set(seen))
        assert set(seen) >= {job["id"] for job in before}
        assert seen == sorted(seen, reverse=True)  # newest first
    assert made > 30


async def test_walking_jobs_while_those_not_yet_seen_are_deleted(api: Client) -> None:
    jobs = [await api.job() for _ in range(10)]
    first = await api.get("/v1/jobs", limit=4)
    for job in jobs[2:8]:  # among them the row of the cursor
        await api("DELETE", f"/v1/jobs/{job['id']}")

    second = await api.get("/v1/jobs", limit=4, cursor=first["next_cursor"])

    assert [job["id"] for job in second["items"]] == [jobs[1]["id"], jobs[0]["id"]]
    assert second["next_cursor"] is None


async def test_walking_runs_and_executions_while_new_ones_happen(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/ok", overlap="allow")

    async def trigger() -> None:
        await api.post(f"/v1/jobs/{job['id']}/trigger")

    for _ in range(12):
        await trigger()

    async def all_done() -> bool:
        return all(run["status"] == "succeeded" for run in await api.runs(job["id"]))

    await until(all_done, "the end of the runs")
    known = {run["id"] for run in await api.runs(job["id"])}
    assert len(known) == 12
    runs = await api.walk(f"/v1/jobs/{job['id']}/runs", 3, trigger)
    executions = await api.walk(f"/v1/jobs/{job['id']}/executions", 5, trigger)

    for ids in ([run["id"] for run in runs], [execution["run_id"] for execution in executions]):
        assert len(ids) == len(set(ids))
        assert set(ids) >= known
    slots = [from_rfc3339(run["scheduled_for"]) for run in runs]
    assert slots == sorted(slots, reverse=True)


async def test_executions_of_one_run_over_several_pages(api: Client, target: Target) -> None:
    retry = {"attempts": 5, "delay": 0, "backoff": "fixed"}
    job = await api.job(url=f"{target.url}/status/500", retry=retry)
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await api.run_that(run["id"], "failed")

    found = await api.walk(f"/v1/jobs/{job['id']}/executions", 2)

    assert [execution["attempt"] for execution in found] == [5, 4, 3, 2, 1]


async def test_walking_api_keys_while_new_ones_are_made(api: Client) -> None:
    for n in range(9):
        await api("POST", "/v1/api-keys", {"name": f"key {n}"})
    known = {key["id"] for key in (await api.get("/v1/api-keys", limit=200))["items"]}

    async def make_one_more() -> None:
        await api("POST", "/v1/api-keys", {"name": "meanwhile"})

    seen = [key["id"] for key in await api.walk("/v1/api-keys", 2, make_one_more)]

    assert len(seen) == len(set(seen))
    assert set(seen) >= known


async def test_filters_hold_on_every_page(api: Client) -> None:
    for n in range(12):
        await api.job(tags=["even" if n % 2 == 0 else "odd"])

    first = await api.get("/v1/jobs", tag="even", limit=4)
    second = await api.get("/v1/jobs", tag="even", limit=4, cursor=first["next_cursor"])

    assert [job["tags"] for job in first["items"] + second["items"]] == [["even"]] * 6
    assert second["next_cursor"] is None


async def test_a_full_last_page_says_that_it_is_the_last(api: Client) -> None:
    for _ in range(3):
        await api.job()

    assert (await api.get("/v1/jobs", limit=3))["next_cursor"] is None
    assert (await api.get("/v1/jobs", limit=2))["next_cursor"] is not None


async def test_an_empty_list(api: Client) -> None:
    assert await api.get("/v1/jobs") == {"items": [], "next_cursor": None}


def forged(*key: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "é",
        "====",
        "",
        forged(),
        forged(1),
        forged(1, 2),
        forged("a", "b"),
        forged(1, "a", 3),
        forged(None, "a"),
        forged(True, "a"),
        forged(1.5, "a"),
        forged(2**63, "a"),
        forged(-(2**60), "a"),
        forged(1, "a\0b"),
        forged(1, ["a"]),
        forged([[]] * 50),
        base64.urlsafe_b64encode(b'[1,"\\ud800"]').decode().rstrip("="),
        base64.urlsafe_b64encode(b"[" * 300).decode().rstrip("="),
    ],
)
async def test_a_cursor_that_no_list_returned(api: Client, cursor: str) -> None:
    job = await api.job()
    for path in ("/v1/jobs", f"/v1/jobs/{job['id']}/runs", f"/v1/jobs/{job['id']}/executions", "/v1/api-keys"):
        answer = await api("GET", path, query={"cursor": cursor})
        if answer.status != 200:  # what is one list's may happen to fit another's
            assert "Leave it out to start at the first page." in answer.problem(422, "cursor")
    assert (await api("GET", "/v1/jobs", query={"cursor": cursor})).status == 422


async def test_a_made_up_cursor_shows_nothing_of_another_team(api: Client, stranger: Client) -> None:
    theirs = await stranger.job()

    found = await api.get("/v1/jobs", cursor=forged(2**52, "zzzz"))

    assert found["items"] == []
    assert (await stranger.get("/v1/jobs"))["items"] == [theirs]
    assert JOB["name"] == theirs["name"]
