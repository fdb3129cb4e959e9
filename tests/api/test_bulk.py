"""POST /v1/jobs/bulk: every job by the verb it has anyway, and an account of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.api.support import NOWHERE, Client

from zerocron.app import Node
from zerocron.core.errors import Unavailable


async def bulk(api: Client, ids: Sequence[str], action: str, *tags: str) -> dict[str, Any]:
    answer = await api("POST", "/v1/jobs/bulk", {"ids": ids, "action": action, "tags": tags})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


async def test_pause_resume_and_delete(api: Client) -> None:
    jobs = [(await api.job())["id"] for _ in range(3)]

    for action, status in (("pause", "paused"), ("pause", "paused"), ("resume", "active")):
        assert await bulk(api, [*jobs, jobs[0]], action) == {"done": jobs, "refused": []}
        assert {(await api.get(f"/v1/jobs/{job}"))["status"] for job in jobs} == {status}
    assert (await bulk(api, jobs[:2], "delete"))["done"] == jobs[:2]
    assert [job["id"] for job in (await api.get("/v1/jobs"))["items"]] == [jobs[2]]


async def test_tags_are_added_and_removed(api: Client) -> None:
    jobs = [(await api.job(tags=["a", "b"]))["id"], (await api.job())["id"]]

    await bulk(api, jobs, "add_tags", "b", "c")
    assert [(await api.get(f"/v1/jobs/{job}"))["tags"] for job in jobs] == [["a", "b", "c"], ["b", "c"]]
    await bulk(api, jobs, "remove_tags", "b", "x")
    assert [(await api.get(f"/v1/jobs/{job}"))["tags"] for job in jobs] == [["a", "c"], ["c"]]


async def test_what_is_refused_keeps_no_other_from_its_turn(api: Client, stranger: Client) -> None:
    theirs = await stranger.job()
    full = await api.job(tags=[f"tag {number}" for number in range(20)])
    mine = await api.job()

    seen = await bulk(api, [NOWHERE, theirs["id"], "nonsense", full["id"], mine["id"]], "add_tags", "new")

    assert seen["done"] == [mine["id"]]
    details = {one["id"]: one["detail"] for one in seen["refused"]}
    assert [details[job] for job in (NOWHERE, theirs["id"], "nonsense")] == ["There is no such job."] * 3
    assert "21 tags" in details[full["id"]]
    assert (await stranger.get(f"/v1/jobs/{theirs['id']}"))["tags"] == []
    deleted = await bulk(api, [theirs["id"]], "delete")
    assert deleted["done"] == []
    assert (await stranger.get(f"/v1/jobs/{theirs['id']}"))["status"] == "active"


async def test_a_ledger_that_goes_away_in_the_middle(node: Node, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [(await api.job())["id"] for _ in range(3)]
    pause = node.jobs.pause

    async def pause_one(team_id: str, job_id: str, **more: Any) -> Any:
        if job_id != jobs[0]:
            raise Unavailable("gone")
        return await pause(team_id, job_id, **more)

    monkeypatch.setattr(node.jobs, "pause", pause_one)
    seen = await bulk(api, jobs, "pause")

    assert seen["done"] == jobs[:1]
    assert [one["id"] for one in seen["refused"]] == jobs[1:]
    assert "Look whether" in seen["refused"][0]["detail"]
    assert "not tried" in seen["refused"][1]["detail"]


async def test_what_is_no_request(api: Client) -> None:
    job = (await api.job())["id"]
    for document, field in (
        ({"ids": [], "action": "pause"}, "ids"),
        ({"ids": [job] * 201, "action": "pause"}, "ids"),
        ({"ids": [job], "action": "trigger"}, "action"),
        ({"ids": [job], "action": "add_tags"}, "tags"),
        ({"ids": [job], "action": "pause", "tags": ["a"]}, "tags"),
        ({"ids": ["x" * 37], "action": "pause"}, "ids.0"),
    ):
        assert (await api("POST", "/v1/jobs/bulk", document)).problem(422, field)
