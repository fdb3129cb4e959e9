"""/healthz, /readyz, /metrics: for those who run the server."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.api.support import Client, client_of

from zerocron import __version__
from zerocron.app import Node, run_node
from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.settings import Settings
from zerocron.storage.timetable.memory import MemoryTimetable


async def test_healthz_says_that_the_process_answers(api: Client) -> None:
    answer = await api.with_key(None)("GET", "/healthz")

    assert (answer.status, answer.json) == (200, {"status": "ok", "version": __version__})


async def test_readyz_says_that_it_can_do_its_work(api: Client) -> None:
    answer = await api.with_key(None)("GET", "/readyz")

    assert answer.status == 200
    assert answer.json == {"status": "ready", "ledger": "ok", "timetable": "ok", "stalled_loops": []}


async def test_readyz_without_the_ledger(api: Client, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_transaction: Any) -> None:
        raise Unavailable("The database cannot be used now: secret detail.")

    monkeypatch.setattr(node.ledger, "read", away)
    answer = await api.with_key(None)("GET", "/readyz")

    assert answer.status == 503
    assert answer.json == {"status": "not ready", "ledger": "unavailable", "timetable": "ok", "stalled_loops": []}
    assert answer.headers["retry-after"] == "5"


async def test_readyz_tells_that_redis_is_away_and_the_node_is_ready_all_the_same(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(MemoryTimetable):
        async def size(self) -> int:
            raise TimetableAway("secret detail")

    without = dataclasses.replace(node.application.state.services, timetable=Away())
    monkeypatch.setitem(node.application.state._state, "services", without)

    answer = await api.with_key(None)("GET", "/readyz")

    assert answer.status == 200
    assert answer.json == {"status": "ready", "ledger": "ok", "timetable": "unavailable", "stalled_loops": []}


async def test_readyz_with_a_loop_that_does_not_go_round(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = dataclasses.replace(node.application.state.services, stalled=lambda: ["sweep"])
    monkeypatch.setitem(node.application.state._state, "services", stuck)

    answer = await api.with_key(None)("GET", "/readyz")

    assert answer.status == 503
    assert answer.json == {"status": "not ready", "ledger": "ok", "timetable": "ok", "stalled_loops": ["sweep"]}


async def test_metrics_can_be_read_by_prometheus(api: Client) -> None:
    answer = await api.with_key(None)("GET", "/metrics")

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    families = {family.name for family in text_string_to_metric_families(answer.body.decode())}
    assert {"zerocron_runs", "zerocron_lateness_seconds", "zerocron_loop_age_seconds"} <= families
    assert "0c_" not in answer.body.decode()


async def test_metrics_can_be_closed(tmp_path: Path) -> None:
    async with run_node(Settings(data_dir=tmp_path, metrics=False, drain_seconds=0)) as node:
        api = await client_of(node, "team")
        answer = await api("GET", "/metrics")

    assert answer.problem(404) == "Metrics are switched off on this server."


async def test_a_query_is_passed_over_here(api: Client) -> None:
    """Watchers add what they like to get past caches."""
    assert (await api("GET", "/healthz?_=12345")).status == 200
