"""/v1/secrets: values go in, are used, and never come out, whatever is asked and whatever the target says."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import Any

import pytest
from tests.api.support import Client
from tests.support.target import Exchange, Target

from zerocron.settings import Settings

CANARY = "canary-31c7-value"
SHOWN = {"name", "allowed_hosts", "created_at", "updated_at", "last_used_at"}


async def put(api: Client, name: str, value: str = CANARY, **more: Any) -> dict[str, Any]:
    answer = await api("PUT", f"/v1/secrets/{name}", {"value": value, **more})
    assert answer.status == 200, answer.body
    assert value not in answer.body.decode()
    made: dict[str, Any] = answer.json
    return made


async def run(api: Client, **job: Any) -> dict[str, Any]:
    made = await api.job(**job)
    triggered = await api.post(f"/v1/jobs/{made['id']}/trigger")
    return await api.run_that(triggered["id"], "succeeded", "failed")


async def test_a_secret_is_put_listed_and_deleted(api: Client) -> None:
    made = await put(api, "STRIPE_KEY", allowed_hosts=["API.stripe.com", "*.example.com"])
    assert made.keys() == SHOWN
    assert made["allowed_hosts"] == ["api.stripe.com", "*.example.com"]
    assert made["created_at"] == made["updated_at"]
    assert made["last_used_at"] is None
    await put(api, "A_KEY")
    page = await api.get("/v1/secrets")
    assert [secret["name"] for secret in page["items"]] == ["A_KEY", "STRIPE_KEY"]
    assert page["next_cursor"] is None
    assert all(secret.keys() == SHOWN for secret in page["items"])
    assert (await api("DELETE", "/v1/secrets/A_KEY")).status == 204
    assert (await api("DELETE", "/v1/secrets/A_KEY")).problem(404) == "There is no such secret."
    assert [secret["name"] for secret in (await api.get("/v1/secrets"))["items"]] == ["STRIPE_KEY"]


async def test_nothing_tells_how_long_a_value_is(api: Client) -> None:
    short = await put(api, "SHORT", "12345678")
    long = await put(api, "LONG", "x" * 16_384)
    instants = {"created_at", "updated_at", "name"}
    assert {key: short[key] for key in short.keys() - instants} == {key: long[key] for key in long.keys() - instants}


async def test_hosts_stay_when_only_the_value_changes(api: Client) -> None:
    await put(api, "K", allowed_hosts=["api.example.com"])
    assert (await put(api, "K", "another value"))["allowed_hosts"] == ["api.example.com"]
    assert (await put(api, "K", "another value", allowed_hosts=None))["allowed_hosts"] == ["api.example.com"]
    assert (await put(api, "K", "another value", allowed_hosts=[]))["allowed_hosts"] == []


async def test_secrets_come_in_pages(api: Client) -> None:
    names = [f"K_{number:02}" for number in range(7)]
    for name in reversed(names):
        await put(api, name)
    assert [secret["name"] for secret in await api.walk("/v1/secrets", 3)] == names


@pytest.mark.parametrize(
    ("document", "field", "words"),
    [
        ({}, "value", "This field is needed."),
        ({"value": "short"}, "value", "at least 8 characters"),
        ({"value": ""}, "value", "at least 8 characters"),
        ({"value": "x" * 16_385}, "value", "at most 16,384 bytes"),
        ({"value": "1234567\0"}, "value", "NUL character"),
        ({"value": None}, "value", "Give the value as text."),
        ({"value": 123456789}, "value", "Give the value as text."),
        ({"value": [CANARY]}, "value", "Give the value as text."),
        ({"value": {"k": CANARY}}, "value", "Give the value as text."),
        ({"value": CANARY, "extra": 1}, None, "There are the fields value and allowed_hosts"),
        ({"value": CANARY, "allowed_hosts": ["https://a.example/"]}, "allowed_hosts", "An allowed host is"),
        ({"value": CANARY, "allowed_hosts": "a.example"}, "allowed_hosts", "This has to be a list"),
        ({"value": CANARY, "allowed_hosts": ["a.example"] * 21}, "allowed_hosts", "At most 20"),
        ({"value": CANARY, "allowed_hosts": [""]}, "allowed_hosts.0", "cannot be empty"),
    ],
)
async def test_what_is_no_secret_is_refused_without_repeating_it(
    api: Client, document: dict[str, Any], field: str | None, words: str
) -> None:
    answer = await api("PUT", "/v1/secrets/K", document)
    assert words in answer.problem(422, field)
    body = answer.body.decode()
    assert not [part for part in (CANARY, "123456789", "123,456,789", "16,385") if part in body]
    assert (await api.get("/v1/secrets"))["items"] == []


@pytest.mark.parametrize("name", ["lower", "1A", "A-B", "A" * 65, "A.B", "%C3%89", "A%0A", "A%20"])
async def test_a_name_is_written_in_capitals(api: Client, name: str) -> None:
    for method, document in (("PUT", {"value": CANARY}), ("DELETE", None)):
        assert "Write it in capitals" in (await api(method, f"/v1/secrets/{name}", document)).problem(422, "name")


async def test_a_value_may_hold_anything_that_text_holds(api: Client, target: Target) -> None:
    value = '{"type": "service", "key": "-----BEGIN\\n\\u00e9☃\\n-----"}\r\n'
    await put(api, "JSON_KEY", value)
    ended = await run(api, url=f"{target.url}/echo", method="POST", body={"key": "${secrets.JSON_KEY}"})
    assert ended["status"] == "succeeded"
    assert json.loads(target.requests[-1].body) == {"key": value}


async def test_a_job_uses_secrets_and_shows_their_places(api: Client, target: Target) -> None:
    await put(api, "KEY", "a b/c&d=1é-value")
    job = await api.job(
        url=f"{target.url}/echo/${{secrets.KEY}}?k=${{secrets.KEY}}",
        method="POST",
        headers={"Authorization": "Bearer ${secrets.KEY}"},
        body="plain ${secrets.KEY}",
    )
    assert job["warnings"] == []
    assert job["url"].endswith("/echo/${secrets.KEY}?k=${secrets.KEY}")
    assert job["headers"] == {"Authorization": "Bearer ${secrets.KEY}"}
    run_id = (await api.post(f"/v1/jobs/{job['id']}/trigger"))["id"]
    ended = await api.run_that(run_id, "succeeded", "failed")
    [received] = target.requests
    assert received.path == "/echo/a%20b%2Fc%26d%3D1%C3%A9-value?k=a%20b%2Fc%26d%3D1%C3%A9-value"
    assert received.headers["authorization"].encode("latin-1").decode() == "Bearer a b/c&d=1é-value"
    assert received.body.decode() == "plain a b/c&d=1é-value"
    [execution] = ended["executions"]
    assert execution["request"]["url"].endswith("/echo/[secret KEY]?k=[secret KEY]")
    assert execution["request"]["headers"]["authorization"] == "Bearer [secret KEY]"
    assert execution["request"]["body"] == "plain [secret KEY]"
    for path in (f"/v1/jobs/{job['id']}", f"/v1/runs/{run_id}", f"/v1/jobs/{job['id']}/executions"):
        assert "-value" not in json.dumps(await api.get(path))


async def test_a_changed_secret_is_used_by_the_next_execution(api: Client, target: Target) -> None:
    await put(api, "KEY", "the first value")
    job = await api.job(url=f"{target.url}/ok?key=${{secrets.KEY}}")
    for value in ("the first value", "the second value", "the third value"):
        await put(api, "KEY", value)
        triggered = await api.post(f"/v1/jobs/{job['id']}/trigger")
        await api.run_that(triggered["id"], "succeeded")
        assert target.requests[-1].path == f"/ok?key={value.replace(' ', '%20')}"


async def test_an_unknown_secret_fails_the_run_before_anything_is_sent(api: Client, target: Target) -> None:
    ended = await run(api, url=f"{target.url}/ok?${{secrets.NOT_THERE}}", retry={"attempts": 3, "delay": 0})
    assert (ended["status"], len(ended["executions"])) == ("failed", 1), "trying again would not help"
    [execution] = ended["executions"]
    assert execution["error"]["kind"] == "secret_unknown"
    assert "There is no secret NOT_THERE." in execution["error"]["message"]
    assert target.requests == []


async def test_a_secret_that_is_bound_goes_nowhere_else(api: Client, target: Target) -> None:
    await put(api, "KEY", allowed_hosts=["api.example.com"])
    ended = await run(api, url=f"{target.url}/ok?${{secrets.KEY}}")
    assert ended["executions"][0]["error"]["kind"] == "secret_host_refused"
    assert target.requests == []
    await put(api, "KEY", allowed_hosts=["api.example.com", "127.0.0.1"])
    assert (await run(api, url=f"{target.url}/ok?${{secrets.KEY}}"))["status"] == "succeeded"


async def test_a_secret_cannot_say_who_is_called(api: Client) -> None:
    for url in ("https://${secrets.HOST}/", "https://a.example:${secrets.PORT}/"):
        answer = await api("POST", "/v1/jobs", {"name": "x", "schedule": "0 0 1 1 *", "url": url})
        assert "A secret stands in the path or query" in answer.problem(422, "url")


async def test_a_request_names_so_many_secrets_and_no_more(api: Client) -> None:
    def body(count: int) -> str:
        return " ".join(f"${{secrets.KEY_{number}}}" for number in range(count))

    job = {"name": "x", "schedule": "0 0 1 1 *", "url": "https://a.example/"}
    assert (await api("POST", "/v1/jobs", {**job, "body": body(50)})).status == 201
    assert "at most 50 secrets" in (await api("POST", "/v1/jobs", {**job, "body": body(51)})).problem(422, "body")


async def test_what_looks_like_a_placeholder_is_warned_of(api: Client) -> None:
    job = await api.job(
        url="http://127.0.0.1:9/?${secret.X}", headers={"A": "${secrets.lower}"}, body="${{ secrets.X }}"
    )
    assert [warning.partition(" is not")[0] for warning in job["warnings"]] == [
        "${secret.X}",
        "${secrets.lower}",
        "${{ secrets.X }}",
    ]
    mended = await api("PATCH", f"/v1/jobs/{job['id']}", {"url": "http://127.0.0.1:9/?${secrets.X}", "headers": {}})
    assert [warning.partition(" is not")[0] for warning in mended.json["warnings"]] == ["${{ secrets.X }}"]


async def test_a_team_uses_its_own_secrets_only(api: Client, stranger: Client, target: Target) -> None:
    await put(api, "KEY")
    ended = await run(stranger, url=f"{target.url}/ok?${{secrets.KEY}}")
    assert ended["executions"][0]["error"]["kind"] == "secret_unknown"
    assert (await stranger.get("/v1/secrets"))["items"] == []
    await put(stranger, "KEY", "of the stranger")
    await run(api, url=f"{target.url}/ok?${{secrets.KEY}}")
    assert target.requests[-1].path == f"/ok?{CANARY}"


async def test_a_rotation_changes_nothing_that_can_be_seen(
    api: Client, first_team: Client, target: Target, settings: Settings
) -> None:
    await put(api, "KEY")
    before = await api.get("/v1/secrets")
    with sqlite3.connect(settings.database_path) as database:
        old = {row[0] for row in database.execute("SELECT data_key_id FROM secrets")}
    rotated = await first_team("POST", "/v1/secrets/rotate")
    assert rotated.status == 200
    assert rotated.json["secrets"] >= 1
    with sqlite3.connect(settings.database_path) as database:
        assert old.isdisjoint(row[0] for row in database.execute("SELECT data_key_id FROM secrets"))
        assert old.isdisjoint(row[0] for row in database.execute("SELECT id FROM data_keys"))
    assert await api.get("/v1/secrets") == before
    await run(api, url=f"{target.url}/ok?${{secrets.KEY}}")
    assert target.requests[-1].path == f"/ok?{CANARY}"


async def test_another_teams_admin_seals_nothing_anew_and_learns_nothing(api: Client, settings: Settings) -> None:
    await put(api, "KEY")

    def keys() -> list[Any]:
        with sqlite3.connect(settings.database_path) as database:
            return database.execute("SELECT id FROM data_keys ORDER BY id").fetchall()

    before = keys()
    refused = await api("POST", "/v1/secrets/rotate")
    assert "for the owners and admins of its first team" in refused.problem(403)
    assert keys() == before
    assert [each for each in (await api.get("/v1/audit"))["items"] if each["action"] == "secret.rotate"] == []


async def test_runs_go_on_during_rotations(api: Client, first_team: Client, target: Target) -> None:
    await put(api, "KEY")
    job = await api.job(url=f"{target.url}/ok?${{secrets.KEY}}", overlap="allow")
    runs = []
    for _ in range(10):
        triggered, rotated = await asyncio.gather(
            api("POST", f"/v1/jobs/{job['id']}/trigger"), first_team("POST", "/v1/secrets/rotate")
        )
        assert (triggered.status, rotated.status) == (202, 200)
        runs.append(triggered.json["id"])
    for run_id in runs:
        await api.run_that(run_id, "succeeded")
    assert {request.path for request in target.requests} == {f"/ok?{CANARY}"}


async def test_the_document_says_that_a_value_is_written_only(api: Client) -> None:
    schemas = (await api.get("/openapi.json"))["components"]["schemas"]
    value = schemas["SecretInput"]["properties"]["value"]
    assert (value["format"], value["writeOnly"], value["type"]) == ("password", True, "string")
    assert "value" not in schemas["Secret"]["properties"]


async def test_a_redirect_cannot_take_a_secret_away(api: Client, target: Target) -> None:
    """The answer is the redirect; its Location, in which the target repeats the value, is masked."""

    def away(exchange: Exchange) -> None:
        exchange.answer(302, b"", [("Location", f"http://other.test{exchange.request.path}")])

    target.on("/away", away)
    await put(api, "KEY")
    ended = await run(api, url=f"{target.url}/away?${{secrets.KEY}}")
    [execution] = ended["executions"]
    assert execution["response"]["headers"]["location"] == "http://other.test/away?[secret KEY]"
