"""The audit log: who did what, in the transaction that did it; never a secret; nothing that another team did."""

from __future__ import annotations

import csv
import io
import sqlite3
from typing import Any

import pytest
from tests.api.support import CHANNEL, JOB, NOWHERE, Client
from tests.support.target import Target

from zerocron.actions.jobs import JobSpec
from zerocron.api import audit as audit_api
from zerocron.app import Node
from zerocron.core.access import Actor
from zerocron.core.auditing import HIDDEN
from zerocron.core.instants import from_rfc3339
from zerocron.settings import Settings

CANARY = "canary-7f3a9c1e55"


async def log_of(api: Client, **query: Any) -> list[dict[str, Any]]:
    """Oldest first, without what made the test's own key."""
    items: list[dict[str, Any]] = (await api.get("/v1/audit", limit=200, **query))["items"]
    return [entry for entry in reversed(items) if entry["actor"]["kind"] != "server"]


async def test_the_life_of_a_job_is_told_with_the_fields_that_changed(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/ok", name="nightly", tags=["a"], retry={"attempts": 2})
    place = f"/v1/jobs/{job['id']}"
    await api("PATCH", place, {"name": "daily", "timeout": 60, "retry": {"attempts": 3}, "tags": ["a", "b"]})
    await api("PATCH", place, {"name": "daily"})  # as it is
    run = await api.post(f"{place}/trigger")
    await api.post(f"{place}/pause")
    await api.post(f"{place}/pause")  # it is paused
    await api.post(f"{place}/resume")
    await api("DELETE", place)

    found = await log_of(api, subject_id=job["id"])

    assert [entry["action"] for entry in found] == [
        "job.create",
        "job.edit",
        "job.trigger",
        "job.pause",
        "job.resume",
        "job.delete",
    ]
    created, edited, triggered, paused, resumed, deleted = found
    assert created["before"] is None
    assert created["after"] == {
        "name": "nightly",
        "schedule": "0 0 1 1 *",
        "url": f"{target.url}/ok",
        "retry.attempts": 2,
        "tags": ["a"],
    }
    assert edited["before"] == {"name": "nightly", "timeout": 30.0, "retry.attempts": 2, "tags": ["a"]}
    assert edited["after"] == {"name": "daily", "timeout": 60.0, "retry.attempts": 3, "tags": ["a", "b"]}
    assert triggered["after"] == {"run_id": run["id"]}
    assert (paused["before"], paused["after"]) == ({"status": "active"}, {"status": "paused"})
    assert (resumed["before"], resumed["after"]) == ({"status": "paused"}, {"status": "active"})
    assert (deleted["before"], deleted["after"]) == ({"status": "active"}, {"status": "deleted"})
    assert edited["subject"] == {"kind": "job", "id": job["id"], "name": "daily"}
    (own,) = (await api.get("/v1/api-keys"))["items"]
    for entry in found:
        assert entry["actor"] == {"kind": "key", "id": own["id"], "name": "test"}
        assert entry["address"] == "127.0.0.1"
    times = [from_rfc3339(entry["at"]) for entry in found]
    assert times == sorted(times)


async def test_what_may_be_a_credential_is_told_by_name_alone(api: Client, settings: Settings) -> None:
    job = await api.job(headers={"Authorization": f"Bearer {CANARY}", "X-Team": "reporting"}, body=f"key={CANARY}")
    place = f"/v1/jobs/{job['id']}"
    await api("PATCH", place, {"headers": {"Authorization": f"Bearer {CANARY}2", "X-Team": "reporting"}})
    await api("PATCH", place, {"headers": {}, "body": None})
    await api("PUT", "/v1/secrets/STRIPE", {"value": CANARY, "allowed_hosts": ["api.example.com"]})
    await api("PUT", "/v1/secrets/STRIPE", {"value": f"{CANARY}2"})
    await api("DELETE", "/v1/secrets/STRIPE")
    channel = await api.channel(config={"place": CANARY})
    await api("PATCH", f"/v1/channels/{channel['id']}", {"config": {"place": f"{CANARY}2"}})
    monitor = await api.monitor()
    rotated = await api.post(f"/v1/monitors/{monitor['id']}/rotate-token")
    signing = (await api("POST", "/v1/signing-key/rotate")).json["key"]
    key = (await api("POST", "/v1/api-keys", {"name": "x"})).json["key"]

    _, changed, cleared, put, again, deleted, made, configured, *_ = await log_of(api)

    assert changed["before"] == changed["after"] == {"headers.Authorization": HIDDEN}
    assert cleared["before"] == {"headers.Authorization": HIDDEN, "headers.X-Team": HIDDEN, "body": HIDDEN}
    assert cleared["after"] == {"body": None}
    assert put["subject"] == {"kind": "secret", "id": "STRIPE", "name": "STRIPE"}
    assert (put["before"], put["after"]) == (None, {"value": HIDDEN, "allowed_hosts": ["api.example.com"]})
    assert again["before"] == again["after"] == {"value": HIDDEN}
    assert deleted["action"] == "secret.delete"
    assert made["after"] == {"kind": "fake", "config": HIDDEN}
    assert configured["before"] == configured["after"] == {"config": HIDDEN}
    told = str(sqlite3.connect(settings.database_path).execute("SELECT * FROM audit_entries").fetchall())
    table = (await api("GET", "/v1/audit.csv")).body.decode()
    for secret in (CANARY, monitor["ping_token"], rotated["ping_token"], signing, key, key[-38:]):
        assert secret not in told
        assert secret not in table


async def test_everything_that_is_done_is_told(api: Client, first_team: Client, node: Node) -> None:
    monitor = await api.monitor()
    place = f"/v1/monitors/{monitor['id']}"
    await api("PATCH", place, {"grace_period_seconds": 600})
    await api("POST", f"{place}/pause", {"until": "2027-01-02T09:00:00Z"})
    await api.post(f"{place}/resume")
    await api.post(f"{place}/rotate-token")
    await api("DELETE", place)
    channel = await api.channel()
    await api("PATCH", f"/v1/channels/{channel['id']}", {"name": "another"})
    for verb in ("test", "pause", "resume"):
        await api.post(f"/v1/channels/{channel['id']}/{verb}")
    await api("DELETE", f"/v1/channels/{channel['id']}")
    await api("PUT", "/v1/secrets/A", {"value": "long enough"})
    await first_team.post("/v1/secrets/rotate")
    await api.post("/v1/signing-key/rotate")
    key = (await api("POST", "/v1/api-keys", {"name": "x", "scopes": ["read"]})).json
    await api("DELETE", f"/v1/api-keys/{key['id']}")

    found = await log_of(api)

    assert [entry["action"] for entry in found] == [
        "monitor.create",
        "monitor.edit",
        "monitor.pause",
        "monitor.resume",
        "monitor.rotate-token",
        "monitor.delete",
        "channel.create",
        "channel.edit",
        "channel.test",
        "channel.pause",
        "channel.resume",
        "channel.delete",
        "secret.put",
        "signing_key.rotate",
        "api_key.create",
        "api_key.revoke",
    ]
    (rotated,) = await log_of(first_team)
    assert (rotated["action"], rotated["actor"]["name"]) == ("secret.rotate", "test"), "told in the first team"
    by_action = {entry["action"]: entry for entry in found}
    assert by_action["monitor.create"]["after"] == {"name": "a monitor", "schedule": "every hour"}
    assert by_action["monitor.edit"]["before"] == {"grace_period_seconds": 300}
    assert by_action["monitor.pause"]["after"] == {"status": "paused", "paused_until": "2027-01-02T09:00:00Z"}
    assert by_action["channel.edit"]["after"] == {"name": "another"}
    assert by_action["api_key.create"]["after"] == {"scopes": ["read"], "expires_at": None}


async def test_what_is_not_done_is_not_told(api: Client) -> None:
    job = await api.job()
    await api("POST", "/v1/jobs", {"name": "x", "schedule": "nonsense", "url": "http://127.0.0.1:9/"})
    for method, path in (("POST", f"/v1/jobs/{NOWHERE}/pause"), ("DELETE", f"/v1/monitors/{NOWHERE}")):
        (await api(method, path)).problem(404)
    await api("POST", "/v1/jobs", job | {"id": "x"})
    once = {"Idempotency-Key": "one"}
    for _ in range(2):
        await api("POST", "/v1/channels", CHANNEL, headers=once)

    assert [entry["action"] for entry in await log_of(api)] == ["job.create", "channel.create"]


async def test_an_act_and_its_entry_are_one(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entry cannot be written, the thing is not done."""
    job = await api.job()

    def fails(*_given: Any, **_named: Any) -> None:
        raise RuntimeError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("zerocron.storage.ledger.audit.record", fails)
        (await api("DELETE", f"/v1/jobs/{job['id']}")).problem(500)

    assert (await api.get(f"/v1/jobs/{job['id']}"))["status"] == "active"


async def test_another_teams_entries_are_not_there(api: Client, stranger: Client) -> None:
    job = await api.job()

    assert await log_of(stranger) == []
    assert (await stranger.get("/v1/audit", subject_id=job["id"]))["items"] == []
    assert job["id"] not in (await stranger("GET", "/v1/audit.csv")).body.decode()


async def test_it_is_read_page_by_page_and_filtered(api: Client) -> None:
    jobs = [await api.job(name=f"job {number}") for number in range(7)]
    await api.post(f"/v1/jobs/{jobs[0]['id']}/pause")

    everything = await api.walk("/v1/audit", 3)

    assert len({entry["id"] for entry in everything}) == len(everything) == 9
    assert [entry["subject"]["name"] for entry in everything if entry["action"] == "job.create"] == [
        f"job {number}" for number in reversed(range(7))
    ]
    assert len(await log_of(api, action="job.create")) == 7
    assert len(await log_of(api, action="job.pause", subject_id=jobs[0]["id"])) == 1
    assert await log_of(api, action="job.nothing") == []
    assert (await api("GET", "/v1/audit?cursor=x")).problem(422, "cursor")


async def test_the_table_holds_every_entry_and_no_formula(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_api, "CSV_PAGE", 2)
    names = ['=HYPERLINK("http://evil")', "+1", "-1", "@SUM(A1)", "＝1", 'a "quoted", name', "plain"]
    by = Actor("key", "k", "=cmd|' /C calc'!A0", "127.0.0.1")
    for name in names:
        await node.jobs.create(
            api.team_id,
            JobSpec(name, JOB["schedule"], JOB["url"]),
            by=by,
        )

    answer = await api("GET", "/v1/audit.csv")

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="0cron-audit.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert rows[0].keys() == set(audit_api.CSV_COLUMNS)
    told = [row["subject_name"] for row in rows if row["action"] == "job.create"]
    assert told == [name if name in names[-2:] else f"'{name}" for name in reversed(names)]
    assert {row["actor_name"] for row in rows if row["action"] == "job.create"} == {"'=cmd|' /C calc'!A0"}
    assert len(rows) == len(names) + 1
    some = (await api("GET", "/v1/audit.csv?action=api_key.create")).body.decode()
    assert len(list(csv.DictReader(io.StringIO(some)))) == 1
