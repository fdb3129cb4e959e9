"""The signing key of a team: made by its first rotation, shown once, and what signed jobs need."""

from __future__ import annotations

import asyncio

from standardwebhooks.webhooks import Webhook
from tests.api.support import Answer, Client

from zerocron.app import Node
from zerocron.core.instants import from_rfc3339


async def test_there_is_no_key_until_one_is_made(api: Client) -> None:
    assert "POST /v1/signing-key/rotate" in (await api("GET", "/v1/signing-key")).problem(404)


async def test_a_key_is_shown_by_the_rotation_that_made_it_and_never_again(api: Client) -> None:
    made = await api.post("/v1/signing-key/rotate")
    assert set(made) == {"id", "created_at", "previous_expires_at", "key"}
    assert made["key"].startswith("whsec_")
    assert len(Webhook(made["key"])._whsecret) == 32
    assert made["previous_expires_at"] is None
    shown = await api.get("/v1/signing-key")
    assert shown == {name: value for name, value in made.items() if name != "key"}


async def test_after_a_rotation_the_key_before_signs_for_a_day(api: Client) -> None:
    first = await api.post("/v1/signing-key/rotate")
    second = await api.post("/v1/signing-key/rotate")
    assert second["key"] != first["key"]
    ends = from_rfc3339(second["previous_expires_at"]) - from_rfc3339(second["created_at"])
    assert ends == 86_400_000
    assert (await api.get("/v1/signing-key"))["id"] == second["id"]


async def test_only_so_many_keys_sign_at_the_same_time(api: Client) -> None:
    for _ in range(5):
        await api.post("/v1/signing-key/rotate")
    assert "within a day" in (await api("POST", "/v1/signing-key/rotate")).problem(409)


async def test_of_many_rotations_at_once_each_makes_a_key_or_says_that_it_did_not(api: Client) -> None:
    answers = await asyncio.gather(*(api("POST", "/v1/signing-key/rotate") for _ in range(8)))
    made = [answer.json["key"] for answer in answers if answer.status == 200]
    assert {answer.status for answer in answers} <= {200, 409}
    assert 1 <= len(set(made)) == len(made) <= 5


async def test_a_rotation_that_is_repeated_makes_no_second_key(api: Client) -> None:
    async def rotate(key: str) -> Answer:
        return await api("POST", "/v1/signing-key/rotate", headers={"Idempotency-Key": key})

    answers = await asyncio.gather(*(rotate("once") for _ in range(8)))
    [made] = [answer.json for answer in answers if answer.status == 200]
    for answer in answers:
        if answer.status != 200:
            assert f"made the signing key {made['id']} before" in answer.problem(409)
            assert made["key"] not in answer.body.decode()
    assert (await api.get("/v1/signing-key"))["id"] == made["id"]
    assert (await rotate("twice")).json["id"] != made["id"]


async def test_a_team_has_a_key_of_its_own(node: Node, api: Client) -> None:
    await api.post("/v1/signing-key/rotate")
    _, token = await node.keys.create("00000000-0000-7000-8000-00000000beef", "other")
    other = api.with_key(token.text)
    assert (await other("GET", "/v1/signing-key")).status == 404


async def test_a_job_may_ask_for_signed_requests_once_there_is_a_key(api: Client) -> None:
    job = await api.job()
    path = f"/v1/jobs/{job['id']}"
    assert "There is no signing key yet." in (await api("PATCH", path, {"sign": True})).problem(422, "sign")
    await api.post("/v1/signing-key/rotate")
    assert (await api("PATCH", path, {"sign": True})).json["sign"] is True
    assert (await api.job(sign=True))["sign"] is True


async def test_sealing_secrets_anew_keeps_the_signing_key(node: Node, api: Client) -> None:
    made = await api.post("/v1/signing-key/rotate")
    await api("PUT", "/v1/secrets/A_SECRET", {"value": "long enough to keep"})
    await node.secrets.rotate("test")
    assert node.engine is not None
    keys = await node.engine.executor._signing_keys(api.team_id)
    assert list(keys) == [Webhook(made["key"])._whsecret]
