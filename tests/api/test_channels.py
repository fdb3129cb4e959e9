"""Channels and alerts through the API: what is written, what is shown, and what is not."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.api.support import CHANNEL, JOB, NOWHERE, Client, until
from tests.support.channels import FakeKind
from tests.support.target import Target

from zerocron.actions.channels import Channels
from zerocron.api.samples import ALERT
from zerocron.api.samples import CHANNEL as SAMPLE
from zerocron.channels.contract import Refused, Ways
from zerocron.channels.email import Email
from zerocron.channels.sending import Outlets

CANARY = "a token that nobody is shown"


@pytest.fixture
def place() -> str:
    """A place of this test's own, by which it knows its messages."""
    return str(uuid.uuid4())


async def test_a_channel_without_its_configuration(api: Client, place: str) -> None:
    made = await api.channel(name="On call", config={"place": place, "token": CANARY})
    assert made.keys() == SAMPLE.keys()
    assert (made["kind"], made["name"], made["status"]) == ("fake", "On call", "active")
    assert (made["destination"], made["failures"], made["last_sent_at"]) == (f"the {place}", 0, None)
    assert await api.get(f"/v1/channels/{made['id']}") == made
    assert (await api.get("/v1/channels"))["items"] == [made]
    everything = [await api("GET", "/v1/channels"), await api("GET", f"/v1/channels/{made['id']}")]
    assert not any(CANARY in answer.body.decode() for answer in everything)


async def test_nothing_of_a_configuration_is_in_the_ledger(api: Client, node: Any, place: str) -> None:
    await api.channel(config={"place": place, "token": CANARY})
    files = sorted(node.ledger.path.parent.glob("zerocron.db*"))
    assert files
    assert not any(CANARY.encode() in file.read_bytes() for file in files)


async def test_pages(api: Client) -> None:
    made = [await api.channel(name=f"c{number}") for number in range(5)]
    assert [one["id"] for one in await api.walk("/v1/channels", 2)] == [one["id"] for one in reversed(made)]


async def test_the_kinds_say_what_they_ask_for(api: Client) -> None:
    kind, _ = (await api.get("/v1/channel-kinds"))["items"]
    assert (kind["kind"], kind["label"]) == ("fake", "Fake")
    assert [(one["name"], one["required"], one["secret"]) for one in kind["fields"]] == [
        ("place", True, False),
        ("token", False, True),
    ]


async def test_an_idempotency_key_makes_one(api: Client) -> None:
    first = await api("POST", "/v1/channels", CHANNEL, headers={"Idempotency-Key": "k"})
    again = await api("POST", "/v1/channels", CHANNEL, headers={"Idempotency-Key": "k"})
    assert (first.json, first.headers["location"]) == (again.json, f"/v1/channels/{first.json['id']}")
    assert again.headers["idempotent-replay"] == "true"
    (await api("POST", "/v1/channels", CHANNEL | {"name": "x"}, headers={"Idempotency-Key": "k"})).problem(409)


async def test_an_edit(api: Client, place: str) -> None:
    made = await api.channel(config={"place": place, "token": CANARY})
    path = f"/v1/channels/{made['id']}"
    renamed = (await api("PATCH", path, {"name": "Second line"})).json
    assert (renamed["name"], renamed["destination"]) == ("Second line", f"the {place}")
    moved = (await api("PATCH", path, {"config": {"place": "shelf"}})).json
    assert (moved["name"], moved["destination"]) == ("Second line", "the shelf")
    assert (await api("PATCH", path, {})).json == moved


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"kind": "pigeon"}, "kind", "There is no such kind of channel on this server. There are: fake, webhook."),
        ({"config": {}}, "config.place", "Say where messages go."),
        ({"config": {"place": "x", "colour": "red"}}, "config.colour", "There is no such field"),
        ({"config": {"place": "x" * 20_000}}, "config", "at most 16,384 bytes"),
        ({"config": "x"}, "config", ""),
        ({"name": "\n"}, "name", "visible"),
        ({"status": "disabled"}, "status", "There is no such field"),
        ({"team_id": NOWHERE}, "team_id", "There is no such field"),
    ],
)
async def test_what_is_refused(api: Client, change: dict[str, Any], field: str, words: str) -> None:
    assert words in (await api("POST", "/v1/channels", CHANNEL | change)).problem(422, field)


async def test_a_refusal_does_not_repeat_the_configuration(api: Client) -> None:
    given = CHANNEL | {"config": {"place": "x", CANARY: 1, "deep": [CANARY]}, "kind": 5}
    answer = await api("POST", "/v1/channels", given)
    assert answer.status == 422
    assert f'"{CANARY}"' not in answer.body.decode().replace("config.", "")


async def test_a_test_message_goes_at_once(api: Client, fake: FakeKind, place: str) -> None:
    made = await api.channel(config={"place": place})
    path = f"/v1/channels/{made['id']}/test"
    assert await api.post(path) == {"accepted": True, "detail": "put there", "reason": None}
    assert fake.kinds(place) == ["channel.test"]
    assert "10 seconds" in (await api("POST", path)).problem(409)
    assert (await api.get("/v1/alerts"))["items"] == [], "a test is in no outbox"


async def test_a_test_says_why_it_was_refused(api: Client, fake: FakeKind) -> None:
    made = await api.channel()
    fake.replies = [Refused("status 404: no such hook", disables=True)]
    try:
        answer = await api.post(f"/v1/channels/{made['id']}/test")
    finally:
        fake.replies = []
    assert answer == {"accepted": False, "detail": None, "reason": "status 404: no such hook"}
    assert (await api.get(f"/v1/channels/{made['id']}"))["status"] == "active", "only asked, not relied on"


async def test_a_rotation_of_keys_takes_channels_along(api: Client, first_team: Client, place: str) -> None:
    made = await api.channel(config={"place": place})
    await first_team.post("/v1/secrets/rotate")
    assert (await api.post(f"/v1/channels/{made['id']}/test"))["accepted"]


async def test_pause_and_resume(api: Client) -> None:
    made = await api.channel()
    for _ in range(2):
        assert (await api.post(f"/v1/channels/{made['id']}/pause"))["status"] == "paused"
    for _ in range(2):
        assert (await api.post(f"/v1/channels/{made['id']}/resume"))["status"] == "active"


@pytest.mark.parametrize("name", ["channel", "subject"])
@pytest.mark.parametrize("given", ["x", "", "On call", "0" * 36])
async def test_alerts_are_asked_for_by_ids(api: Client, name: str, given: str) -> None:
    answer = await api("GET", f"/v1/alerts?{urlencode({name: given})}")
    assert "has to be an id" in answer.problem(422, name)


async def test_a_failure_is_told_and_seen_in_the_outbox(
    api: Client, fake: FakeKind, target: Target, place: str
) -> None:
    channel = await api.channel(name="On call", config={"place": place})
    job = await api.job(url=f"{target.url}/status/500", notify={"channels": [channel["id"]]})
    await api.post(f"/v1/jobs/{job['id']}/trigger")

    async def told() -> bool:
        items = (await api.get("/v1/alerts"))["items"]
        return bool(items) and items[0]["status"] == "sent"

    await until(told, "an alert that is sent")
    (alert,) = (await api.get("/v1/alerts", subject=job["id"], channel=channel["id"], status="sent"))["items"]
    assert alert.keys() == ALERT.keys()
    assert (alert["event"], alert["subject_name"], alert["channel_name"]) == ("job.failed", "a job", "On call")
    assert (alert["channel_kind"], alert["tries"], alert["detail"]) == ("fake", 1, "put there")
    assert (alert["next_attempt_at"], alert["digest_id"], alert["last_error"]) == (None, None, None)
    assert fake.kinds(place) == ["job.failed"]
    for nothing in ({"status": "dead"}, {"channel": NOWHERE}, {"subject": NOWHERE}):
        assert (await api.get("/v1/alerts", **nothing))["items"] == []
    assert (await api.get(f"/v1/channels/{channel['id']}"))["last_sent_at"] == alert["finished_at"]


async def test_a_channel_that_something_names_is_not_deleted(api: Client) -> None:
    named, other = await api.channel(), await api.channel()
    job = await api.job(name="nightly", notify={"channels": [named["id"]]})
    monitor = await api.monitor(name="backup", notify={"channels": [named["id"]]})
    assert job["notify"]["channels"] == monitor["notify"]["channels"] == [named["id"]]
    path = f"/v1/channels/{named['id']}"
    said = (await api("DELETE", path)).problem(409)
    assert said.startswith('It is named by the job "nightly", the monitor "backup", which would fall silent.')
    await api("PATCH", f"/v1/jobs/{job['id']}", {"notify": {"channels": [other["id"]]}})
    await api("PATCH", f"/v1/monitors/{monitor['id']}", {"notify": {"channels": None}})
    assert (await api("DELETE", path)).status == 204
    (await api("DELETE", path)).problem(404)
    (await api("GET", path)).problem(404)


async def test_notify_is_merged(api: Client) -> None:
    job = await api.job(notify={"on": ["succeeded", "failed"], "after_failures": 3})
    assert (job["notify"]["on"], job["notify"]["after_failures"]) == (["failed", "succeeded"], 3)
    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"notify": {"remind_every": 600}})).json
    assert edited["notify"] == job["notify"] | {"remind_every": 600}
    assert edited["version"] == 2
    back = (await api("PATCH", f"/v1/jobs/{job['id']}", {"notify": {"remind_every": None}})).json
    assert back["notify"] == job["notify"]


async def test_another_teams_channel_cannot_be_named(api: Client, stranger: Client) -> None:
    theirs = await stranger.channel()
    answer = await api("POST", "/v1/jobs", JOB | {"notify": {"channels": [theirs["id"]]}})
    assert answer.problem(422, "notify.channels").startswith(f"There is no channel '{theirs['id']}'.")


@pytest.mark.parametrize(
    ("kind", "has_server", "is_warned"), [("email", False, True), ("email", True, False), ("fake", False, False)]
)
def test_a_channel_of_mail_on_a_server_without_a_mail_server_says_that_nothing_is_sent(
    kind: str, has_server: bool, is_warned: bool
) -> None:
    nothing: Any = None
    server: Any = object() if has_server else None
    outlets = Outlets({"email": Email(), "fake": FakeKind()}, Ways(nothing, lambda: 0, server))
    channels = Channels(ledger=nothing, clock=nothing, secrets=nothing, outlets=outlets)
    row: Any = SimpleNamespace(kind=kind)
    assert ("ZEROCRON_MAIL_URL" in (channels.warning(row) or "")) is is_warned
