"""The ping path: who is answered what, and when (PROMISES A10, D 26, 27, 70)."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection, text
from tests.api.support import Answer, Client
from tests.storage.samples import an_id, sqlite_ledger
from tests.storage.test_monitors_contract import a_monitor, keep

from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper, master_key_ids
from zerocron.actions.pings import BODY_BYTES_MAX, Pings, kind_of
from zerocron.actions.secrets import Secrets, check_master_keys
from zerocron.api import pings as ping_path
from zerocron.api.pings import QUERY_BYTES_MAX, READ_BYTES_MAX, PingPath
from zerocron.app import Node
from zerocron.clock import SystemClock
from zerocron.core.errors import Conflict, Unavailable, Unclear
from zerocron.core.instants import from_rfc3339
from zerocron.core.monitor import PingKind
from zerocron.core.sealing import DataKey, Keyring, new_master_key, read_master_keys
from zerocron.settings import Settings
from zerocron.storage.ledger import facts
from zerocron.storage.ledger import ping_tokens as token_rows

CASES = {
    case["id"]: case
    for case in map(
        json.loads, (Path(__file__).parents[1] / "core" / "heartbeat.jsonl").read_text("utf-8").splitlines()
    )
}


async def send(api: Client, token: str, rest: str = "", method: str = "GET", **given: Any) -> Answer:
    return await api.with_key(None)(method, f"/v1/ping/{token}{rest}", **given)


async def pings_of(api: Client, monitor: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/v1/monitors/{monitor['id']}/pings", limit=200))["items"]
    return found


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_each_method_counts(api: Client, method: str) -> None:
    monitor = await api.monitor()
    answer = await send(api, monitor["ping_token"], method=method)

    assert (answer.status, answer.body) == (200, b"" if method == "HEAD" else b"OK\n")
    assert answer.headers["content-length"] == "3"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert [one["method"] for one in await pings_of(api, monitor)] == [method]


async def test_hb_062_a_log_in_the_body_is_kept(api: Client) -> None:
    monitor = await api.monitor()
    answer = await send(api, monitor["ping_token"], method="POST", body=b"log text", headers={"User-Agent": "curl/8"})

    assert answer.status == 200
    (kept,) = await pings_of(api, monitor)
    assert (kept["kind"], kept["body"], kept["user_agent"]) == ("success", "log text", "curl/8")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_hb_063_other_methods_are_refused(api: Client, method: str) -> None:
    answer = await send(api, (await api.monitor())["ping_token"], method=method)

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_hb_064_where_only_post_counts_nothing_else_does(api: Client) -> None:
    monitor = await api.monitor(post_only=True)

    assert (await send(api, monitor["ping_token"], "/fail")).status == 405
    assert await pings_of(api, monitor) == []
    assert (await send(api, monitor["ping_token"], method="POST")).status == 200


async def test_hb_065_a_long_body_is_cut_and_counts(api: Client) -> None:
    given, expect = CASES["hb-065"]["given"], CASES["hb-065"]["expect"]
    monitor = await api.monitor()
    body = [b"a" * 30_000, b"a" * (given["body_bytes"] - 30_000)]

    assert (await send(api, monitor["ping_token"], method="POST", body=body)).status == expect["status"]
    (kept,) = await pings_of(api, monitor)
    assert len(kept["body"]) == expect["stored_bytes"] == BODY_BYTES_MAX
    assert kept["body_bytes"] == given["body_bytes"]


async def test_hb_066_a_huge_body_is_read_or_refused(api: Client) -> None:
    monitor = await api.monitor()
    part = b"x" * 1_000_000

    assert (await send(api, monitor["ping_token"], method="POST", body=[part] * 3)).status == 200
    assert (await send(api, monitor["ping_token"], method="POST", body=[part] * 5)).status == 413
    assert READ_BYTES_MAX == 4_000_000
    assert len(await pings_of(api, monitor)) == 1


BODIES = {
    "hb-068": (b"\xff\xfe caf\xe9", {}),
    "hb-070": (b"--broken", {"Content-Type": "multipart/form-data"}),
    "compressed": (b"\x1f\x8b\x08 not unpacked", {"Content-Encoding": "gzip"}),
    "json": (b'{"broken', {"Content-Type": "application/json"}),
    "NUL": (b"a\0b", {}),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_is_taken_as_it_is(api: Client, name: str) -> None:
    body, headers = BODIES[name]
    monitor = await api.monitor()

    assert (await send(api, monitor["ping_token"], method="POST", body=body, headers=headers)).status == 200
    (kept,) = await pings_of(api, monitor)
    assert kept["body"] == body.decode("utf-8", "replace").replace("\0", "\ufffd")


async def test_hb_071_072_unknown_tokens_get_one_answer(api: Client) -> None:
    token = (await api.monitor())["ping_token"]
    strangers = [secrets.token_hex(32), token.upper(), token[:-1], token + "0", "x", ""]
    answers = [await send(api, stranger) for stranger in strangers]

    assert {(answer.status, answer.body) for answer in answers} == {(404, b"not found\n")}
    assert (await send(api, token, "/")).status == 404
    assert (await send(api, token, "/unheard-of")).status == 404
    assert (await send(api, token, "/start/more")).status == 404


@pytest.mark.parametrize(("word", "status"), [("0", 200), ("255", 200), ("256", 400), ("1000", 400), ("-1", 404)])
async def test_hb_074_exit_codes(api: Client, word: str, status: int) -> None:
    assert (await send(api, (await api.monitor())["ping_token"], f"/{word}")).status == status


@pytest.mark.parametrize("rid", ["x", "7b0f3a52", "7b0f3a525d6e4c1a9c882f4b6d8e0a13", ""])
async def test_a_run_is_named_by_a_uuid(api: Client, rid: str) -> None:
    monitor = await api.monitor()

    assert (await send(api, monitor["ping_token"], query={"rid": rid})).status == 400
    assert await pings_of(api, monitor) == []


async def test_paused_and_live_get_the_same_answer(api: Client) -> None:
    live, paused = await api.monitor(), await api.monitor(resume_on_ping=False)
    await api.post(f"/v1/monitors/{paused['id']}/pause")
    one, two = await send(api, live["ping_token"]), await send(api, paused["ping_token"])

    assert (one.status, one.headers, one.body) == (two.status, two.headers, two.body)
    assert len(await pings_of(api, paused)) == 1


async def test_hb_079_pings_at_once_each_have_a_row(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.pings, "_per_second", 1_000)
    monitor = await api.monitor()
    answers = await asyncio.gather(*(send(api, monitor["ping_token"]) for _ in range(50)))

    assert {answer.status for answer in answers} == {200}
    kept = await pings_of(api, monitor)
    assert sorted(one["number"] for one in kept) == list(range(1, 51))
    seen = await api.get(f"/v1/monitors/{monitor['id']}")
    assert seen["last_ping_at"] == max(one["received_at"] for one in kept)


async def test_a_flood_of_one_token_is_told_to_slow_down(api: Client, settings: Settings) -> None:
    monitor = await api.monitor()
    burst = settings.pings_per_second * 2
    answers = [await send(api, monitor["ping_token"]) for _ in range(burst * 3)]

    refused = [answer for answer in answers if answer.status == 429]
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert (await api.get(f"/v1/monitors/{monitor['id']}"))["pings"] == len(answers) - len(refused)


async def test_a_flood_of_unknown_tokens_asks_the_ledger_nothing(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.pings._tokens, "_ledger", None)  # whoever asks it fails
    answers = [await send(api, secrets.token_hex(32)) for _ in range(300)]

    assert {answer.status for answer in answers} == {404}


async def test_what_is_not_durable_is_not_answered_ok(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = await api.monitor()

    for error in (Unavailable("The database at 10.0.0.1 is away."), Unclear("Nobody knows.")):

        async def away(_transaction: Any, error: Exception = error) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(node.pings._ledger, "write", away)
            answer = await send(api, monitor["ping_token"])
        assert (answer.status, answer.body, answer.headers["retry-after"]) == (503, b"not now\n", "5")
    assert (await send(api, monitor["ping_token"])).status == 200


@pytest.mark.parametrize("error", [Unavailable("The database is away."), ZeroDivisionError()])
async def test_a_thousand_refused_pings_are_a_line_of_the_log(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(node.pings, "_per_second", 1_000)
    monitor = await api.monitor()

    async def away(_transaction: Any) -> Any:
        raise error

    monkeypatch.setattr(node.pings._ledger, "write", away)
    with structlog.testing.capture_logs() as logs:
        for _ in range(50):
            assert (await send(api, monitor["ping_token"])).status in (500, 503)
    monkeypatch.undo()
    assert len([one for one in logs if one["event"].startswith("pings_")]) <= 2


async def test_one_ping_that_cannot_be_written_takes_no_other_with_it(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = await api.monitor(), await api.monitor()
    write = Pings._write_together

    async def picky(self: Pings, batch: Any, *, wait: bool) -> None:
        if any(item.arrival.monitor_id == bad["id"] for item in batch):
            raise ZeroDivisionError
        await write(self, batch, wait=wait)

    monkeypatch.setattr(Pings, "_write_together", picky)
    one, two = await asyncio.gather(send(api, good["ping_token"]), send(api, bad["ping_token"]))
    assert (one.status, two.status) == (200, 500)


class Sender:
    """Speaks to the ping path itself, and says what it was asked for."""

    def __init__(self, node: Node, messages: list[Any]) -> None:
        self._path = PingPath(node.pings)
        self._messages = messages
        self.asked = 0
        self.answered: list[int] = []

    async def __call__(self, token: str, query: bytes = b"") -> int:
        scope = {"type": "http", "method": "POST", "path": f"/v1/ping/{token}", "query_string": query, "headers": []}
        await self._path(scope, self._receive, self._send)
        return self.answered[-1]

    async def _receive(self) -> Any:
        self.asked += 1
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop(0)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.answered.append(message["status"])


async def test_nothing_is_read_for_an_unknown_token(node: Node) -> None:
    sender = Sender(node, [])
    assert await sender("0" * 64, b"x" * 100_000) == 404
    assert sender.asked == 0


async def test_a_query_has_a_kilobyte(api: Client, node: Node) -> None:
    token = (await api.monitor())["ping_token"]
    sender = Sender(node, [{"type": "http.request", "body": b""}])
    assert await sender(token, b"x" * (QUERY_BYTES_MAX + 1)) == 414
    assert sender.asked == 0
    assert await sender(token, b"x" * QUERY_BYTES_MAX) == 200


async def test_a_body_that_drips_is_given_up(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ping_path, "READ_SECONDS_MAX", 0.01)
    monitor = await api.monitor()
    sender = Sender(node, [{"type": "http.request", "body": b"x", "more_body": True}])
    assert await sender(monitor["ping_token"]) == 408
    assert await pings_of(api, monitor) == []


async def test_a_ping_came_when_all_of_it_was_there(api: Client, node: Node) -> None:
    monitor = await api.monitor()
    begun = node.pings.clock.now()
    sent = asyncio.Event()

    class Slow(Sender):
        async def _receive(self) -> Any:
            await sent.wait()
            return await super()._receive()

    sending = asyncio.create_task(Slow(node, [{"type": "http.request", "body": b"x"}])(monitor["ping_token"]))
    await node.pings.clock.sleep(0.01)
    sent.set()
    assert await sending == 200
    (kept,) = await pings_of(api, monitor)
    assert from_rfc3339(kept["received_at"]) > begun + 5


async def test_no_token_is_logged(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ping_path, "TOLD_SECONDS", 0)
    monitor = await api.monitor()

    async def broken(_transaction: Any) -> Any:
        raise ZeroDivisionError

    with structlog.testing.capture_logs() as logs, monkeypatch.context() as patch:
        patch.setattr(node.pings._ledger, "write", broken)
        assert (await send(api, monitor["ping_token"])).status == 500
    assert logs
    assert monitor["ping_token"] not in repr(logs)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("", (PingKind.SUCCESS, None)),
        ("0", (PingKind.SUCCESS, 0)),
        ("007", (PingKind.FAIL, 7)),
        ("log", (PingKind.LOG, None)),
        ("²", None),
        ("Start", None),
    ],
)
def test_what_stands_behind_a_token(word: str, kind: object) -> None:
    assert kind_of(word) == kind


def data_key(number: int) -> DataKey:
    return DataKey("key", "team", bytes((number, *range(1, 32))))


@pytest.mark.parametrize("with_master_key", [True, False])
def test_a_sealed_token_opens_with_its_key_for_its_monitor_only(with_master_key: bool) -> None:
    keys = (data_key(1), data_key(2)) if with_master_key else (None, None)
    keeper, other = TokenKeeper(b"k" * 32, keys[0]), TokenKeeper(b"l" * 32, keys[1])
    token = keeper.new()
    sealed = keeper.seal(token, "m")

    assert keeper.unseal(sealed, "m") == token
    assert token not in sealed
    assert keeper.digest(token) != other.digest(token)
    changed = sealed[:40] + ("0" if sealed[40] != "0" else "1") + sealed[41:]
    for opener, content, monitor_id in (
        (other, sealed, "m"),
        (keeper, sealed, "n"),
        (keeper, changed, "m"),
        (keeper, "", "m"),
    ):
        with pytest.raises(ValueError, match="sealed"):
            opener.unseal(content, monitor_id)


async def test_what_the_ledger_holds_opens_no_token(api: Client, node: Node) -> None:
    monitor = await api.monitor()

    def all_there_is(connection: Connection) -> tuple[str, str]:
        sealed = connection.scalar(text("SELECT token_sealed FROM monitors"))
        return str(sealed), str(facts.get(connection, "ping_token_key"))

    sealed, secret = await node.ledger.read(all_there_is)
    assert monitor["ping_token"] not in (sealed, secret)
    with pytest.raises(ValueError, match="sealed"):
        TokenKeeper(bytes.fromhex(secret)).unseal(sealed, monitor["id"])


async def test_tokens_from_before_there_was_a_master_key_are_sealed_anew(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        plain = await TokenKeeper.open(ledger, Keyring())
        made = [an_id() for _ in range(3)]
        tokens = {monitor_id: plain.new() for monitor_id in made}
        for monitor_id, token in tokens.items():
            monitor = a_monitor(
                id=monitor_id, token_hash=plain.digest(token), token_sealed=plain.seal(token, monitor_id)
            )
            await keep(ledger, monitor)
        await keep(ledger, a_monitor(token_sealed="0" * 160), a_monitor(token_sealed="damaged"))
        first, second = (read_master_keys(new_master_key(), source="test") for _ in range(2))
        keeper = await TokenKeeper.open(ledger, first)

        sealed = dict(await ledger.read(lambda connection: token_rows.sealed(connection, after="", limit=10)))
        for monitor_id, token in tokens.items():
            assert keeper.unseal(sealed[monitor_id], monitor_id) == token
            assert keeper.digest(token) == plain.digest(token)
            with pytest.raises(ValueError, match="sealed"):
                plain.unseal(sealed[monitor_id], monitor_id)
        again = await TokenKeeper.open(ledger, first)
        assert again.unseal(sealed[made[0]], made[0]) == tokens[made[0]]

        both = Keyring([second.newest, first.newest])
        assert await ledger.read(master_key_ids) == set(first.ids)
        await Secrets(ledger=ledger, clock=SystemClock(), keyring=both).rotate("test")
        assert await ledger.read(master_key_ids) == set(second.ids)
        rotated = await TokenKeeper.open(ledger, second)
        assert rotated.unseal(sealed[made[0]], made[0]) == tokens[made[0]]
        with pytest.raises(Conflict, match="master key"):
            await check_master_keys(ledger, first, "")


async def test_unknown_tokens_may_ask_the_ledger_of_a_cluster_now_and_then(node: Node) -> None:
    asked = 0

    class Counting:
        async def read(self, _transaction: Any) -> None:
            nonlocal asked
            asked += 1

    tokens = TokenDirectory(
        ledger=Counting(),  # type: ignore[arg-type]
        clock=node.pings.clock,
        keeper=TokenKeeper(b"k" * 32),
        exclusive=False,
    )
    for _ in range(1_000):
        assert await tokens.find(secrets.token_hex(32)) is None
    assert 1 <= asked <= 20
