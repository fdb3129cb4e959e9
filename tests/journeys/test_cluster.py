"""A company's 0cron: several nodes over one PostgreSQL and one Redis, each started with the same command."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.journeys.server import Person, Server, eventually, serving
from tests.support.postgres import postgres_server
from tests.support.redis import redis_server
from tests.support.target import Target

Serving = contextlib.AbstractContextManager[Server]
Node = Callable[..., Serving]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Starts a node of a cluster of the test's own: `with node("one"): ...`; `redis=False` leaves Redis out."""
    postgres, redis = postgres_server(), redis_server()
    database = postgres.database()
    prefix = f"journey-{database}"

    def start(
        name: str, *arguments: str, redis: bool = True, **settings: str
    ) -> contextlib.AbstractContextManager[Server]:
        given = {"ZEROCRON_DATABASE_URL": postgres.url(database)} | settings
        if redis:
            given |= {"ZEROCRON_REDIS_URL": redis_url, "ZEROCRON_REDIS_PREFIX": prefix}
        return serving(tmp_path / name, *arguments, settings=given)

    redis_url = redis.url()
    yield start
    postgres.drop(database)


async def test_what_is_made_at_one_node_is_run_by_the_cluster_and_seen_at_the_other(node: Node, target: Target) -> None:
    with node("one") as one, node("two") as two:
        here, there = Person(one), Person(two)
        job = await here.creates(name="hello", schedule="* * * * * *", url=f"{target.url}/ok")
        await target.wait_for(lambda: len(target.requests) >= 3)
        await there.ask("POST", f"/v1/jobs/{job['id']}/pause")
        run_ids = [request.headers["x-0cron-run-id"] for request in target.requests]
        assert len(set(run_ids)) == len(run_ids), "two nodes, and every slot once"
        history = {run["id"]: run["status"] for run in await here.history(job)}
        assert history.keys() >= set(run_ids)


async def test_a_trigger_at_an_api_node_is_run_by_an_engine_node_at_once(node: Node, target: Target) -> None:
    with node("api", "--role", "api") as api, node("engine", "--role", "engine") as engine:
        person = Person(api)
        job = await person.creates(name="backup", schedule="0 0 1 1 *", url=f"{target.url}/ok")
        run = await person.triggers(job)
        await person.sees(run["id"], "succeeded")
        assert _status(f"{engine.url}/readyz") == 200
        assert _status(f"{engine.url}/metrics") == 200
        assert _status(f"{engine.url}/docs") == 404, "an engine node serves health and metrics only"


async def test_the_cluster_goes_on_when_a_node_stops(node: Node, target: Target) -> None:
    with node("two") as two:
        with node("one") as one:
            await Person(one).creates(name="hello", schedule="* * * * * *", url=f"{target.url}/ok")
            await target.wait_for(lambda: len(target.requests) >= 1)
            one.stop()
        seen = len(target.requests)
        await target.wait_for(lambda: len(target.requests) >= seen + 2)
        [job] = (await Person(two).ask("GET", "/v1/jobs"))["items"]
        assert all(run["status"] != "lost" for run in await Person(two).history(job))


async def test_postgresql_without_redis_is_for_one_engine_node(node: Node, target: Target, tmp_path: Path) -> None:
    with node("one", redis=False) as one:
        person = Person(one)
        job = await person.creates(name="hello", schedule="0 0 1 1 *", url=f"{target.url}/ok")
        await person.sees((await person.triggers(job))["id"], "succeeded")
        for redis in (False, True):
            refused = tmp_path / f"two-{redis}.log"
            with (
                pytest.raises(AssertionError, match="without it there can be only one engine"),
                node(refused.stem, redis=redis),
            ):
                pass
            assert "Set ZEROCRON_REDIS_URL=redis://... on every node." in refused.read_text()
        one.kill()
    with node("three") as three:  # the lock of a killed process is free again
        assert (await Person(three).ask("GET", f"/v1/jobs/{job['id']}"))["name"] == "hello"


async def test_a_restored_ledger_goes_on_from_now(node: Node, target: Target) -> None:
    """Stopped for a while, as after a restore: with --resume-from now nothing of the past is sent."""
    with node("one") as one:
        person = Person(one)
        job = await person.creates(name="hello", schedule="* * * * * *", url=f"{target.url}/ok")
        await target.wait_for(lambda: len(target.requests) >= 1)
        one.stop()
    before = len(target.requests)

    async def missed() -> bool | None:
        newest = max(request.headers["x-0cron-scheduled-for"] for request in target.requests)
        return True if _seconds_since(newest) > 4 else None

    await eventually(missed, "some seconds without a node")
    with node("two", "--resume-from", "now") as two:
        person = Person(two)
        await target.wait_for(lambda: len(target.requests) > before)
        await person.ask("POST", f"/v1/jobs/{job['id']}/pause")
        history = await person.history(job)
        # What was under way at the stop, which waits for nothing, is there too: cancelled.
        [restored] = [run for run in history if (run["status"], run["reason"]) == ("skipped", "restored")]
        assert restored["count"] >= 3


def _seconds_since(instant: str) -> float:
    from datetime import UTC, datetime

    return (datetime.now(UTC) - datetime.fromisoformat(instant)).total_seconds()  # noqa: TID251  outside of the product


def _status(url: str) -> int:
    try:
        with urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_the_doctor_looks_at_both_services_and_the_clocks(tmp_path: Path) -> None:
    postgres, redis = postgres_server(), redis_server()
    database = postgres.database()
    known = {"ZEROCRON_DATABASE_URL": postgres.url(database), "ZEROCRON_REDIS_URL": redis.url()}

    def command(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | known | {"ZEROCRON_DATA_DIR": str(tmp_path), "ZEROCRON_PORT": "0"} | settings  # noqa: TID251
        return subprocess.run(
            [sys.executable, "-m", "zerocron", *words], env=environment, capture_output=True, text=True, check=False
        )

    def checks(**settings: str) -> dict[str, str]:
        found = json.loads(command("doctor", "--json", **settings).stdout)
        return {check["check"]: check["status"] for check in found["checks"]}

    assert checks()["database"] == "FAIL", "no server has made the schema yet"
    assert command("migrate").stdout == "The schema is up to date.\n"
    assert {name: checks()[name] for name in ("database", "clock", "timetable")} == dict.fromkeys(
        ("database", "clock", "timetable"), "ok"
    )
    nowhere = "127.0.0.1:1"
    assert checks(ZEROCRON_REDIS_URL=f"redis://{nowhere}")["timetable"] == "FAIL"
    away = command("doctor", ZEROCRON_DATABASE_URL=f"postgresql://somebody:hush@{nowhere}/x")
    assert (away.returncode, "hush" in away.stdout + away.stderr, away.stderr) == (1, False, "")
    postgres.drop(database)
