"""Server-sent events: what changed is told to its team, in a word, and to nobody who may not hear it any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.support import Client, scope_of, until
from tests.storage.samples import NOON, sqlite_ledger
from tests.support.clock import ManualClock, wait_until
from tests.support.target import Target

from zerocron.actions import changes as hub
from zerocron.actions.changes import Changes, Listener
from zerocron.api import events as stream
from zerocron.app import Node
from zerocron.core.access import KEY_SCOPES, Actor, Bearer
from zerocron.core.errors import TooMany, Unauthorized
from zerocron.storage.ledger.database import SqliteLedger


class Listening:
    """A client that has opened /v1/events."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.is_over = False
        self.leave = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self._asked = False

    @property
    def told(self) -> list[dict[str, bool]]:
        blocks = [block for block in self.text.split("\n\n") if "event: change" in block]
        return [json.loads(block.split("data: ")[1]) for block in blocks]

    @property
    def last_id(self) -> str:
        return self.text.split("id: ")[-1].split("\n")[0]

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.text += message.get("body", b"").decode()
            self.is_over = not message.get("more_body", False)

    async def hears(self, word: str) -> None:
        async def look() -> bool:
            return word in self.text

        await until(look, word)

    async def has_ended(self, task: asyncio.Task[None]) -> None:
        async def look() -> bool:
            return task.done()

        await until(look, "the end of the stream")


@contextlib.asynccontextmanager
async def listening(
    api: Client, *, last_id: str = "", method: str = "GET"
) -> AsyncIterator[tuple[Listening, asyncio.Task[None]]]:
    headers = {"authorization": f"Bearer {api.key}"} | ({"last-event-id": last_id} if last_id else {})
    one = Listening()
    scope = scope_of(method, "/v1/events", "", headers)
    task = asyncio.create_task(api.application(scope, one.receive, one.send))
    try:
        yield one, task
    finally:
        one.leave.set()
        one.takes.set()
        await asyncio.wait([task], timeout=10)
        assert task.done()


async def test_what_changes_is_told_and_what_kind_it_is(node: Node, api: Client, target: Target) -> None:
    async with listening(api) as (one, _):
        await one.hears("event: hello")
        assert one.status == 200
        assert one.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-length" not in one.headers
        job = await api.job(url=f"{target.url}/ok")
        await one.hears("event: change")
        assert one.told[0] == {"jobs": True, "monitors": False, "alerts": False}
        heard = len(one.told)
        run = await api.post(f"/v1/jobs/{job['id']}/trigger")
        await api.run_that(run["id"], "succeeded")
        await wait_until(lambda: len(one.told) > heard, "the run is told")
        monitor = await api.monitor()
        await wait_until(lambda: one.told[-1]["monitors"], "the monitor is told")
        heard = len(one.told)
        assert (await api("POST", f"/v1/ping/{monitor['ping_token']}")).status == 200
        await wait_until(lambda: len(one.told) > heard, "the ping is told")
        await api.channel()
        await wait_until(lambda: one.told[-1]["alerts"], "the channel is told")
    assert node.changes.listeners == 0


async def test_nothing_of_another_team_is_told(api: Client, stranger: Client) -> None:
    async with listening(api) as (mine, _), listening(stranger) as (others, _):
        await mine.hears("event: hello")
        await others.hears("event: hello")
        await api.job()
        await api.monitor()
        await wait_until(lambda: any(one["monitors"] for one in mine.told), "the change is told to its team")
        await stranger.job()
        await others.hears("event: change")
        assert others.told == [{"jobs": True, "monitors": False, "alerts": False}]


async def test_who_comes_back_hears_what_changed_meanwhile(api: Client) -> None:
    async with listening(api) as (before, _):
        await before.hears("event: hello")
        seen = before.last_id
    await api.monitor()
    async with listening(api, last_id=seen) as (again, _):
        await again.hears("event: change")
        assert again.told == [{"jobs": False, "monitors": True, "alerts": False}]
        assert again.last_id != seen
    async with listening(api, last_id=again.last_id) as (up_to_date, _), listening(api, last_id="x") as (odd, _):
        await odd.hears("event: hello")
        assert up_to_date.told == []


async def test_a_revoked_key_is_cut_off(node: Node, api: Client) -> None:
    other = (await api("POST", "/v1/api-keys", {"name": "other"})).json
    async with listening(api.with_key(other["key"])) as (one, task), listening(api) as (mine, still):
        await one.hears("event: hello")
        await node.keys.revoke(api.team_id, other["id"])
        await one.has_ended(task)
        assert one.is_over
        assert not still.done()
        await api.job()
        await mine.hears("event: change")
        assert one.told == []


async def test_too_many_with_one_key_are_refused_and_places_come_back(
    node: Node, api: Client, stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LISTENERS_A_BEARER_MAX", 2)
    async with listening(api) as (one, _), listening(api) as (two, _):
        await one.hears("retry:")
        await two.hears("retry:")
        answer = await api("GET", "/v1/events")
        assert "at once" in answer.problem(429)
        assert int(answer.headers["retry-after"]) >= 1
        monkeypatch.setattr(hub, "LISTENERS_MAX", 2)
        assert "this server" in (await stranger("GET", "/v1/events")).problem(429)
    async with listening(api) as (three, _):
        await three.hears("event: hello")
    assert node.changes.listeners == 0


async def test_a_client_that_takes_nothing_is_let_go(node: Node, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(api) as (one, task):
        await one.hears("event: hello")
        monkeypatch.setattr(stream, "SLOW_SECONDS", 0.05)
        one.takes.clear()
        await api.job()
        await one.has_ended(task)
        assert node.changes.listeners == 0
        assert not one.is_over


async def test_silence_is_broken_by_comments(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "COMMENT_SECONDS", 0.05)
    async with listening(api) as (one, _):
        await one.hears(": nothing new")


async def test_asked_for_its_head_it_does_not_go_on(node: Node, api: Client) -> None:
    async with listening(api, method="HEAD") as (one, task):
        await one.has_ended(task)
        assert (one.status, one.text) == (200, "")


class Counting:
    """A ledger that counts how often it is asked."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger, self.reads = ledger, 0

    async def read(self, transaction: Any) -> Any:
        self.reads += 1
        return await self.ledger.read(transaction)


def a_bearer(team: str = "a", key: str = "k") -> Bearer:
    return Bearer(team, Actor("key", key, "test"), KEY_SCOPES, key_id=key)


async def still_good() -> Bearer:
    return a_bearer()


async def test_the_ledger_is_asked_once_a_second_and_only_while_somebody_listens(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        clock, counting = ManualClock(NOON), Counting(ledger)
        changes = Changes(ledger=counting, clock=clock)  # type: ignore[arg-type]
        await clock.advance(5)
        assert counting.reads == 0
        listeners = [changes.listen(a_bearer(), still_good) for _ in range(5)]
        await wait_until(lambda: clock.sleepers == 1, "a pause")
        assert counting.reads == 1
        for second in range(4):
            await clock.advance(0.9)
            assert counting.reads == 1 + second
            await clock.advance(0.1)
            await wait_until(lambda: clock.sleepers == 1, "a pause")
            assert counting.reads == 2 + second
        for listener in listeners:
            changes.leave(listener)
            changes.leave(listener)
        await clock.advance(1)
        asked = counting.reads
        await clock.advance(5)
        assert counting.reads == asked
        await changes.close()


async def test_the_end_of_the_server_ends_all_at_once(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        changes = Changes(ledger=ledger, clock=ManualClock(NOON))
        listener = changes.listen(a_bearer(), still_good)
        await changes.close()
        await changes.close()
        assert listener.woken.is_set()
        assert listener.is_over
        with pytest.raises(TooMany):
            changes.listen(a_bearer(), still_good)


@pytest.mark.parametrize("now", ["gone", "another team", "no right to read"])
async def test_who_may_not_listen_any_more_is_cut_off(tmp_path: Path, now: str) -> None:
    async def still() -> Bearer:
        if now == "gone":
            raise Unauthorized
        if now == "another team":
            return a_bearer("b")
        return Bearer("a", Actor("key", "k", "test"), frozenset(), key_id="k")

    async with sqlite_ledger(tmp_path) as ledger:
        clock = ManualClock(NOON)
        changes = Changes(ledger=ledger, clock=clock)
        doubtful, good = changes.listen(a_bearer(), still), changes.listen(a_bearer(), still_good)
        await wait_until(lambda: clock.sleepers == 1, "the first look")
        for _ in range(4):
            await clock.advance(1)
            await wait_until(lambda: clock.sleepers == 1, "a pause")
        assert doubtful.is_over
        assert not good.is_over
        await changes.close()


def test_what_was_not_taken_is_folded_into_one_word() -> None:
    listener = Listener(a_bearer(), still_good, None)
    listener.show(hub.State("1", "1", "1"))
    assert listener.take() == (hub.State("1", "1", "1"), frozenset())
    listener.show(hub.State("2", "1", "1"))
    listener.show(hub.State("3", "1", "2"))
    assert listener.take() == (hub.State("3", "1", "2"), frozenset({"jobs", "alerts"}))
    assert listener.take() is None
    listener.show(hub.State("3", "1", "2"))
    assert not listener.woken.is_set()
