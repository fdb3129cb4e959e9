"""GET /v1/system: how the installation is, and nothing that helps to break into it."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from tests.api.support import Client
from tests.storage.samples import HOUR
from tests.support.target import Target

from zerocron import __version__
from zerocron.app import Node
from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.settings import Settings
from zerocron.storage.ledger import sessions


async def test_a_node_that_works(node: Node, first_team: Client, settings: Settings, target: Target) -> None:
    job = await first_team.job(url=f"{target.url}/ok")
    await first_team.run_that((await first_team.post(f"/v1/jobs/{job['id']}/trigger"))["id"], "succeeded")
    assert node.engine is not None
    await node.engine.tally.save()

    answer = await first_team("GET", "/v1/system")
    seen = answer.json

    assert seen["version"] == __version__
    assert seen["tzdata"]
    (one,) = (one for one in seen["nodes"] if one["node"] != "silent")  # another test leaves that one
    assert one["version"] == __version__
    assert one["status"] == "ok"
    assert seen["ledger"] == {"kind": "sqlite", "status": "ok", "version": sqlite3.sqlite_version}
    assert seen["timetable"]["kind"] == "memory"
    assert seen["timetable"]["status"] == "ok"
    assert seen["queue"].keys() == {"due", "running", "waiting"}
    assert seen["lateness_ms"]["p50"] <= seen["lateness_ms"]["p99"]
    loops = {loop["name"]: loop["status"] for loop in seen["loops"]}
    assert loops.keys() >= {"scheduler", "sweep", "session", "heartbeat", "notifier", "retention", "pulse", "tally"}
    assert set(loops.values()) == {"ok"}
    for private in (str(settings.data_dir), "://", "127.0.0.1"):
        assert private not in answer.body.decode()


async def test_nodes_that_ended_and_nodes_that_fell_silent(node: Node, first_team: Client) -> None:
    now = node.clock.now()

    def transaction(connection: Any) -> None:
        for name, at in (("closed", now - HOUR), ("fenced", now - HOUR), ("silent", now - 60_000)):
            sessions.insert(connection, session_id=f"s-{name}", node=name, version="1", now=at, expires_at=at + 30_000)
        for name in ("closed", "fenced"):
            sessions.end(connection, [f"s-{name}"], now=now, reason=name)
        sessions.mark_settled(connection, ["s-closed", "s-fenced"], now)

    await node.ledger.write(transaction)
    seen = await first_team.get("/v1/system")
    ended = {one["node"]: one["reason"] for one in seen["ended_nodes"]}
    assert {name: ended[name] for name in ("closed", "fenced")} == {"closed": "closed", "fenced": "fenced"}
    silent = [one["status"] for one in seen["nodes"] if one["node"] == "silent"]
    assert silent == ["silent"] or ended["silent"] == "fenced", "somebody may have fenced it already"


async def test_what_is_away_is_told(node: Node, first_team: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    services = node.application.state.services

    async def no_answer(*_: Any) -> Any:
        raise TimetableAway("gone")

    monkeypatch.setattr(services.timetable, "size", no_answer)
    assert (await first_team.get("/v1/system"))["timetable"] == {"kind": "memory", "status": "away", "size": None}
    read = node.ledger.read

    async def no_nodes(transaction: Any) -> Any:
        if "show_system" in transaction.__qualname__:
            raise Unavailable("gone")
        return await read(transaction)

    monkeypatch.setattr(node.ledger, "read", no_nodes)
    seen = await first_team.get("/v1/system")
    assert seen["ledger"]["status"] == "away"
    assert (seen["nodes"], seen["queue"], seen["lateness_ms"]) == ([], None, None)


async def test_a_loop_that_stands_still_is_told(
    node: Node, first_team: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert node.engine is not None
    monkeypatch.setattr(node.engine, "stalled", lambda: ["sweep", "executor"])
    loops = {loop["name"]: loop["status"] for loop in (await first_team.get("/v1/system"))["loops"]}
    assert (loops["sweep"], loops["executor"], loops["session"]) == ("stalled", "stalled", "ok")


async def test_it_is_nothing_for_admins_of_other_teams(api: Client) -> None:
    assert "first team" in (await api("GET", "/v1/system")).problem(403)
