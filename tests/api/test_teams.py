"""Another team's things are not there: every route with an id, taken from the route table."""

from __future__ import annotations

from typing import Any

from tests.api.support import Client
from tests.api.test_auth import routes
from tests.support.target import Target

from zerocron.app import Node


async def everything_of(api: Client, target: Target) -> dict[str, str]:
    job = await api.job(url=f"{target.url}/ok", tags=["mine"])
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await api.run_that(run["id"], "succeeded")
    key = (await api("POST", "/v1/api-keys", {"name": "mine"})).json
    assert (await api("PUT", "/v1/secrets/OF_TEAM_A", {"value": "the value of team A"})).status == 200
    monitor = await api.monitor(tags=["mine"])
    channel = await api.channel()
    return {
        "job_id": job["id"],
        "run_id": run["id"],
        "execution_id": f"{run['id']}.1",
        "key_id": key["id"],
        "name": "OF_TEAM_A",
        "monitor_id": monitor["id"],
        "channel_id": channel["id"],
    }


async def state_of(api: Client, ids: dict[str, str]) -> list[Any]:
    keys = [key["id"] for key in (await api.get("/v1/api-keys"))["items"]]
    paths = (
        f"/v1/jobs/{ids['job_id']}",
        f"/v1/runs/{ids['run_id']}",
        f"/v1/monitors/{ids['monitor_id']}",
        f"/v1/channels/{ids['channel_id']}",
        "/v1/secrets",
    )
    return [*[await api.get(path) for path in paths], keys]


async def test_every_id_of_another_team_is_404_and_nothing_changes(
    node: Node, api: Client, stranger: Client, target: Target
) -> None:
    ids = await everything_of(api, target)
    before = await state_of(api, ids)
    tried = 0

    for method, path in routes(node):
        if "{" not in path or not path.startswith("/v1/") or method == "PUT" or path.startswith("/v1/me/"):
            # What is put under a name of one's own choice is one's own; /v1/me has no teams.
            continue
        document = {"name": "taken"} if method == "PATCH" else None
        answer = await stranger(method, path.format(**ids), document)
        assert answer.problem(404).startswith("There is no such "), (method, path)
        assert not any(found in answer.body.decode() for found in ids.values())
        tried += 1

    assert tried >= 20
    assert await state_of(api, ids) == before


async def test_lists_hold_what_is_ones_own(api: Client, stranger: Client, target: Target) -> None:
    await everything_of(api, target)

    assert (await stranger.get("/v1/jobs"))["items"] == []
    assert (await stranger.get("/v1/jobs", tag="mine"))["items"] == []
    assert (await stranger.get("/v1/monitors"))["items"] == []
    assert [key["name"] for key in (await stranger.get("/v1/api-keys"))["items"]] == ["test"]


async def test_a_team_cannot_be_chosen(api: Client, stranger: Client) -> None:
    answer = await stranger("POST", "/v1/api-keys", {"name": "x", "team_id": api.team_id})

    assert answer.problem(422, "team_id") == "There is no such field. Leave it out."
    assert (await stranger("GET", f"/v1/jobs?team_id={api.team_id}")).problem(422, "team_id")
    assert (await stranger("GET", "/v1/jobs", headers={"X-Team-Id": api.team_id})).json["items"] == []
