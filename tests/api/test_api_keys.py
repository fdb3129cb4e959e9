"""/v1/api-keys: shown once, kept as a hash, revoked at once, last use written down."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

import pytest
from tests.api.support import Client, until

from zerocron.actions.keys import Keys
from zerocron.app import Node
from zerocron.clock import SystemClock
from zerocron.core.errors import Unavailable
from zerocron.settings import Settings

FORM = re.compile(r"0c_([0-9a-z]{12})_([0-9A-Za-z]{32})([0-9A-Za-z]{6})")


async def test_a_key_opens_the_api(api: Client) -> None:
    answer = await api("POST", "/v1/api-keys", {"name": "deploy script"})

    made = answer.json
    assert answer.status == 201
    key = made.pop("key")
    (listed,) = [one for one in (await api.get("/v1/api-keys"))["items"] if one["id"] == made["id"]]
    assert listed == made
    assert made["name"] == "deploy script"
    match = FORM.fullmatch(key)
    assert match is not None
    assert match[1] == made["id"]
    assert (await api.with_key(key)("GET", "/v1/jobs")).status == 200


async def test_keys_differ_in_every_part(api: Client) -> None:
    made = [(await api("POST", "/v1/api-keys", {"name": "x"})).json["key"] for _ in range(20)]

    parts = [FORM.fullmatch(key).groups() for key in made]  # type: ignore[union-attr]
    assert len({part for key in parts for part in key}) == 60


async def test_the_secret_is_shown_once_and_stored_nowhere(api: Client, settings: Settings) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    secret = made["key"].rpartition("_")[2]

    assert secret not in (await api("GET", "/v1/api-keys")).body.decode()
    dump = "\n".join(sqlite3.connect(settings.database_path).iterdump())
    assert made["id"] in dump
    assert secret[:32] not in dump
    assert api.key is not None
    assert api.key.rpartition("_")[2][:32] not in dump


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "This cannot be empty."),
        (" ", "at least one visible character"),
        ("a" * 201, "At most 200 characters; this has 201."),
        ("a\nb", "no line breaks"),
        (None, "This has to be text; this is null."),
        (1, "This has to be text; this is a number."),
    ],
)
async def test_the_bounds_of_a_name(api: Client, name: Any, words: str) -> None:
    assert words in (await api("POST", "/v1/api-keys", {"name": name})).problem(422, "name")


async def test_a_revoked_key_opens_nothing_at_once(api: Client) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    other = api.with_key(made["key"])
    assert (await other("GET", "/v1/jobs")).status == 200  # it is remembered now

    assert (await api("DELETE", f"/v1/api-keys/{made['id']}")).status == 204

    (await other("GET", "/v1/jobs")).problem(401)
    (await other("POST", "/v1/api-keys", {"name": "y"})).problem(401)
    assert made["id"] not in [key["id"] for key in (await api.get("/v1/api-keys"))["items"]]
    assert (await api("DELETE", f"/v1/api-keys/{made['id']}")).problem(404) == "There is no such API key."


async def test_a_key_revoked_on_another_node_opens_nothing_within_a_second(api: Client, node: Node) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    other = api.with_key(made["key"])
    assert (await other("GET", "/v1/jobs")).status == 200

    await Keys(ledger=node.ledger, clock=SystemClock()).revoke(api.team_id, made["id"])

    async def refused() -> bool:
        return (await other("GET", "/v1/jobs")).status == 401

    await until(refused, "the refusal", seconds=1.5)


async def test_a_key_may_revoke_itself(api: Client) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x", "scopes": ["admin"]})).json
    itself = api.with_key(made["key"])

    assert (await itself("DELETE", f"/v1/api-keys/{made['id']}")).status == 204
    (await itself("GET", "/v1/jobs")).problem(401)


async def test_the_last_use_is_written_down(api: Client, node: Node, settings: Settings) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    assert made["last_used_at"] is None

    async def last_use() -> str | None:
        listed = (await api.get("/v1/api-keys", limit=200))["items"]
        found: str | None = next(key["last_used_at"] for key in listed if key["id"] == made["id"])
        return found

    assert await last_use() is None
    await api.with_key(made["key"])("GET", "/v1/jobs")
    used = await last_use()
    assert used is not None
    assert used >= made["created_at"]

    await node.keys.save_use()
    assert await last_use() == used
    query = "SELECT last_used_at FROM api_keys WHERE id = ?"
    (stored,) = sqlite3.connect(settings.database_path).execute(query, [made["id"]]).fetchone()
    assert stored is not None


async def test_a_refused_key_leaves_no_trace_of_use(api: Client, node: Node) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    wrong = made["key"][:-1] + ("0" if made["key"][-1] != "0" else "1")
    (await api.with_key(wrong)("GET", "/v1/jobs")).problem(401)
    await node.keys.save_use()

    listed = (await api.get("/v1/api-keys", limit=200))["items"]
    assert next(key["last_used_at"] for key in listed if key["id"] == made["id"]) is None


async def test_a_use_is_not_forgotten_when_it_cannot_be_written(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await api("POST", "/v1/api-keys", {"name": "x"})).json
    await api.with_key(made["key"])("GET", "/v1/jobs")

    async def away(_transaction: Any) -> None:
        raise Unavailable("The database cannot be used now.")

    with monkeypatch.context() as patch:
        patch.setattr(node.ledger, "write", away)
        with pytest.raises(Unavailable):
            await node.keys.save_use()
    await node.keys.save_use()

    listed = (await api.get("/v1/api-keys", limit=200))["items"]
    assert next(key["last_used_at"] for key in listed if key["id"] == made["id"]) is not None
