"""A request before it becomes a job: sent once as a run would, and read from a curl command."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.api.support import Client, until
from tests.support.target import Target

from zerocron.app import Node
from zerocron.core.access import Permission
from zerocron.engine import trying
from zerocron.storage.ledger import audit


async def attempt(api: Client, **given: Any) -> dict[str, Any]:
    answer = await api("POST", "/v1/requests/try", given)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


async def acts(node: Node, api: Client) -> list[audit.Entry]:
    return await node.ledger.read(
        lambda connection: audit.page(connection, api.team_id, before=None, limit=9, action="request.try")
    )


async def test_it_is_sent_once_and_judged(node: Node, api: Client, target: Target) -> None:
    before = len(target.requests)
    seen = await attempt(api, url=f"{target.url}/ok", method="POST", body={"a": 1}, headers={"X-A": "b"})

    assert (seen["verdict"], seen["status"], seen["error"]) == ("succeeded", "success", None)
    assert seen["sentence"] == "The answer is a success."
    assert seen["request"]["headers"]["x-a"] == "b"
    assert seen["response"]["status"] == 200
    assert seen["timings_ms"]["total"] > 0
    assert len(target.requests) == before + 1
    assert (await api.get("/v1/jobs"))["items"] == []
    (await api("GET", f"/v1/runs/{seen['run_id']}")).problem(404)
    (entry,) = await acts(node, api)
    assert (entry.subject_kind, entry.subject_name) == ("request", "POST 127.0.0.1")
    assert entry.actor_name == "test"


async def test_the_rule_that_failed_is_told(api: Client, target: Target) -> None:
    seen = await attempt(api, url=f"{target.url}/status/500")
    assert (seen["verdict"], seen["error"]["kind"]) == ("failed", "rule")
    assert "500" in seen["sentence"]
    expected = await attempt(api, url=f"{target.url}/status/500", success={"status": ["500"]})
    assert expected["verdict"] == "succeeded"


async def test_what_a_job_would_refuse_is_refused(node: Node, api: Client, target: Target) -> None:
    for given, field in (
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "http://user:pw@example.com"}, "url"),
        ({"url": target.url, "method": "CONNECT"}, "method"),
        ({"url": target.url, "headers": {"Host": "x"}}, "headers.Host"),
        ({"url": target.url, "verify_tls": False}, "verify_tls"),
        ({"url": target.url, "sign": True}, "sign"),
        ({"url": target.url, "schedule": "* * * * *"}, "schedule"),
        ({}, "url"),
    ):
        assert (await api("POST", "/v1/requests/try", given)).problem(422, field), given
    assert await acts(node, api) == []


async def test_it_passes_the_same_guard(api: Client) -> None:
    seen = await attempt(api, url="http://169.254.169.254/latest")
    assert (seen["verdict"], seen["response"]) == ("failed", None)
    assert seen["error"]["kind"] == "address_refused"


async def test_secrets_are_filled_in_and_masked(api: Client, target: Target) -> None:
    value = "correct horse battery staple"
    assert (await api("PUT", "/v1/secrets/KEY", {"value": value})).status == 200
    answer = await api(
        "POST", "/v1/requests/try", {"url": f"{target.url}/echo", "headers": {"X-Key": "${secrets.KEY}"}}
    )
    assert answer.status == 200
    assert answer.json["verdict"] == "succeeded"
    assert value in str(target.requests[-1].headers)
    assert value.encode() not in answer.body
    unknown = await attempt(api, url=target.url, body="${secrets.NONE}")
    assert unknown["error"]["kind"] == "secret_unknown"
    await api.post("/v1/signing-key/rotate")
    signed = await attempt(api, url=f"{target.url}/ok", sign=True)
    assert "webhook-signature" in signed["request"]["headers"]


async def test_who_may_only_trigger_sends_no_secrets(
    node: Node, api: Client, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await api("PUT", "/v1/secrets/KEY", {"value": "correct horse battery staple"})).status == 200
    recognise = node.keys.recognise

    async def only_trigger(*arguments: Any) -> Any:
        return dataclasses.replace(await recognise(*arguments), permissions=frozenset({Permission.TRIGGER}))

    monkeypatch.setattr(node.keys, "recognise", only_trigger)
    before = len(target.requests)
    answer = await api("POST", "/v1/requests/try", {"url": f"{target.url}/ok", "body": "${secrets.KEY}"})
    assert "`write`" in answer.problem(403)
    assert len(target.requests) == before
    assert (await attempt(api, url=f"{target.url}/ok"))["verdict"] == "succeeded"


async def test_a_team_tries_few_at_once(api: Client, stranger: Client, target: Target) -> None:
    slow = {"url": f"{target.url}/hang", "timeout": 60}
    tasks = [asyncio.create_task(api("POST", "/v1/requests/try", slow)) for _ in range(trying.TEAM_MAX)]
    before = len(target.requests)

    async def all_sent() -> bool:
        return len([one for one in target.requests[before:] if one.path == "/hang"]) == trying.TEAM_MAX

    try:
        await until(all_sent, "the slow requests")
        answer = await api("POST", "/v1/requests/try", {"url": f"{target.url}/ok"})
        assert "already" in answer.problem(429)
        assert int(answer.headers["retry-after"]) >= 1
        assert (await attempt(stranger, url=f"{target.url}/ok"))["verdict"] == "succeeded"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert (await attempt(api, url=f"{target.url}/ok"))["verdict"] == "succeeded"


async def test_a_curl_command_becomes_a_request(api: Client) -> None:
    answer = await api("POST", "/v1/requests/curl", {"command": "curl -k -m 5 -d 'a=1' -o x https://example.com"})
    assert answer.status == 200
    assert answer.json["method"] == "POST"
    assert (answer.json["timeout"], answer.json["verify_tls"], answer.json["body"]) == (5, False, "a=1")
    assert any("-o x" in warning for warning in answer.json["warnings"])


async def test_what_is_no_curl_command(api: Client) -> None:
    for command in ("wget x", "curl -d @file https://example.com", "curl 'x", "curl " + "x" * 20_000, ""):
        answer = await api("POST", "/v1/requests/curl", {"command": command})
        assert answer.problem(422, "command"), command
