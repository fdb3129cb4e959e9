"""Secrets that stay secret: sent where they belong, and found nowhere else, however the target repeats them."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.journeys.server import Person, Server, serving
from tests.support.canary import CANARY, LINES, spellings, traces
from tests.support.postgres import postgres_server
from tests.support.redis import redis_server
from tests.support.target import Exchange, Target

NEVER = "0 0 1 1 *"
EVERYTHING = {
    "schedule": NEVER,
    "method": "POST",
    "headers": {"Authorization": "Bearer ${secrets.KEY}"},
    "body": {"key": "${secrets.KEY}"},
}
DEBUG = {"ZEROCRON_LOG_LEVEL": "debug"}


def new_key() -> str:
    made = subprocess.run(
        [sys.executable, "-m", "zerocron", "secrets", "new-key"], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


# a target that tells everybody


def chunked(body: bytes, *, size: int = 7) -> bytes:
    """So small that every value is cut by a border of chunks."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def echo(spelt: str, *, zipped: bool) -> Callable[[Exchange], None]:
    def answer(exchange: Exchange) -> None:
        body = f"It was {spelt}, wasn't it?".encode()
        coding = b"Content-Encoding: gzip\r\n" if zipped else b""
        line = "".join(sign for sign in spelt if sign.isprintable()).encode()
        head = b"HTTP/1.1 200 OK\r\nX-Echo: " + line + b"\r\nTransfer-Encoding: chunked\r\n" + coding + b"\r\n"
        whole = head + chunked(gzip.compress(body) if zipped else body)
        exchange.raw(whole[:150])
        exchange.later(0.005, lambda: exchange.raw(whole[150:]))

    return answer


def latin_1(exchange: Exchange) -> None:
    body = CANARY.encode("latin-1")
    exchange.raw(b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n%s" % (body, len(body), body))


def cut_off(exchange: Exchange) -> None:
    said = f"It was {CANARY[:17]}".encode()
    exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + said)
    exchange.later(0.02, exchange.close)


def away(exchange: Exchange) -> None:
    exchange.answer(302, b"", [("Location", f"http://{spellings()['hex']}.test/{spellings()['url']}")])


def broken_gzip(exchange: Exchange) -> None:
    body = gzip.compress(f"{CANARY} ".encode() * 50)[:-9] + b"xxxxxxxxx"
    exchange.answer(200, body, [("Content-Encoding", "gzip")])


def reset(exchange: Exchange) -> None:
    exchange.raw(f"HTTP/1.1 200 {CANARY}\r\nX-Echo: {CANARY}\r\nX-Bro".encode())
    exchange.later(0.02, exchange.reset)


def garbage(exchange: Exchange) -> None:
    exchange.raw(f"{CANARY}\r\n\r\n".encode())


HOSTILE = {"latin-1": latin_1, "cut": cut_off, "gzip": broken_gzip, "reset": reset, "garbage": garbage, "away": away}


def jobs_of(target: Target) -> dict[str, dict[str, Any]]:
    """A job for each way in which a value might come back, by name."""
    jobs: dict[str, dict[str, Any]] = {}
    for number, (name, spelt) in enumerate(spellings().items()):
        target.on(f"/echo/{number}", echo(spelt, zipped=number % 2 == 0))
        jobs[name] = EVERYTHING | {"url": f"{target.url}/echo/{number}?key=${{secrets.KEY}}"}
    for number, (name, spelt) in enumerate(spellings(LINES).items()):
        target.on(f"/lines/{number}", echo(spelt, zipped=number % 2 == 0))
        jobs[f"lines {name}"] = {
            "schedule": NEVER,
            "method": "POST",
            "body": "${secrets.LINES}",
            "url": f"{target.url}/lines/{number}",
        }
    for name, handler in HOSTILE.items():
        target.on(f"/{name}", handler)
        jobs[name] = EVERYTHING | {"url": f"{target.url}/{name}?key=${{secrets.KEY}}"}
    jobs["all of it"] = EVERYTHING | {"url": f"{target.url}/echo?key=${{secrets.KEY}}"}
    jobs["its rule is broken"] = jobs["all of it"] | {"success": {"body_contains": "something else"}}
    jobs["no answer"] = EVERYTHING | {"url": "http://127.0.0.1:9/${secrets.KEY}"}
    jobs["an address that is refused"] = EVERYTHING | {"url": "http://10.0.0.1/${secrets.KEY}"}
    jobs["a line break in a header"] = jobs["all of it"] | {"headers": {"X": "${secrets.KEY}${secrets.LINES}"}}
    jobs["bound to another host"] = EVERYTHING | {"url": f"{target.url}/ok?${{secrets.BOUND}}"}
    jobs["unknown"] = jobs["all of it"] | {"body": "${secrets.KEY} ${secrets.UNKNOWN}"}
    return jobs


async def everything_happens(person: Person, target: Target) -> dict[str, dict[str, Any]]:
    """Secrets are put, and every job runs; the executions by the names of the jobs."""
    for name, value, more in (
        ("KEY", CANARY, {}),
        ("LINES", LINES, {}),
        ("BOUND", CANARY, {"allowed_hosts": ["api.example.com"]}),
    ):
        await person.ask("PUT", f"/v1/secrets/{name}", {"value": value, **more})
    for mistake in ({"v": CANARY}, [CANARY], 1):  # these are answered, too
        await person.ask("PUT", "/v1/secrets/KEY", {"value": mistake}, status=422)
    await person.ask("PUT", f"/v1/secrets/{CANARY.encode().hex()}", {"value": CANARY}, status=422)
    runs = {
        name: await person.triggers(await person.creates(name=name, **job)) for name, job in jobs_of(target).items()
    }
    return {name: (await person.sees(run["id"], "succeeded", "failed"))["executions"][0] for name, run in runs.items()}


async def all_that_is_shown(person: Person) -> bytes:
    """Every answer of the API that could hold something of a job."""
    shown = [await person.ask("GET", "/v1/secrets")]
    for job in (await person.ask("GET", "/v1/jobs?limit=200"))["items"]:
        shown += [job, await person.ask("GET", f"/v1/jobs/{job['id']}/executions")]
        for run in await person.history(job):
            shown.append(await person.ask("GET", f"/v1/runs/{run['id']}"))
    return repr(shown).encode()


def metrics_of(server: Server) -> bytes:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        found: bytes = answer.read()
        return found


def check_what_was_sent(ended: Mapping[str, dict[str, Any]], target: Target) -> None:
    """The target got the value, so that there was something to hide; and nothing was sent that must not be."""
    sent = [request for request in target.requests if request.path.startswith("/echo?key=")]
    assert len(sent) == 2
    assert {request.path for request in sent} == {f"/echo?key={spellings()['url']}"}
    assert {request.headers["authorization"].encode("latin-1").decode() for request in sent} == {f"Bearer {CANARY}"}
    kinds = {name: (execution["error"] or {}).get("kind") for name, execution in ended.items()}
    assert kinds["a line break in a header"] == "secret_unusable"
    assert kinds["bound to another host"] == "secret_host_refused"
    assert kinds["unknown"] == "secret_unknown"
    assert kinds["its rule is broken"] == "rule"
    assert all(kinds[name] is None for name in spellings())
    assert {request.body for request in target.requests if request.path.startswith("/lines/")} == {LINES.encode()}
    for name in spellings(LINES):
        assert "[secret LINES]" in ended[f"lines {name}"]["response"]["body"], name
    for name in spellings():
        assert "[secret KEY]" in ended[name]["response"]["body"], name
        assert "[secret KEY]" in ended[name]["response"]["headers"]["x-echo"], name
        assert "[secret KEY]" in ended[name]["request"]["headers"]["authorization"]


async def test_a_value_is_in_no_file_no_log_no_metric_and_no_answer(tmp_path: Path, target: Target) -> None:
    with serving(tmp_path / "data", settings=DEBUG) as server:
        person = Person(server)
        ended = await everything_happens(person, target)
        check_what_was_sent(ended, target)
        await person.ask("POST", "/v1/secrets/rotate")
        shown = await all_that_is_shown(person) + metrics_of(server)
        assert traces(shown) == []
        kept = {file.name: file.read_bytes() for file in server.data_dir.iterdir()}
        assert {"zerocron.db", "zerocron.db-wal", "secret-key"} <= kept.keys()
        assert {name: found for name, content in kept.items() if (found := traces(content))} == {}
        server.stop()
    assert {file.name: found for file in server.data_dir.iterdir() if (found := traces(file.read_bytes()))} == {}
    said = server.log.read_bytes()
    assert b"secret_put" in said
    assert traces(said) == []
    assert traces(b"... " + repr(CANARY).encode()) != [], "it would have been found"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., contextlib.AbstractContextManager[Server]]]:
    """Starts nodes over one PostgreSQL and one Redis; `cluster.database` is its name."""
    postgres, redis = postgres_server(), redis_server()
    database = postgres.database()
    shared = {
        "ZEROCRON_DATABASE_URL": postgres.url(database),
        "ZEROCRON_REDIS_URL": redis.url(),
        "ZEROCRON_REDIS_PREFIX": f"secrets-{database}",
    }

    def start(name: str, **settings: str) -> contextlib.AbstractContextManager[Server]:
        return serving(tmp_path / name, settings=shared | settings)

    start.database = database  # type: ignore[attr-defined]
    yield start
    postgres.drop(database)


def dump_of(database: str) -> bytes:
    """Every row of every table, as text."""
    postgres = postgres_server()
    tables = postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database)
    assert {"secrets", "executions", "facts"} <= set(tables)
    return "\n".join(
        line for table in tables for line in postgres.execute(f"COPY {table} TO STDOUT", database)
    ).encode()


def redis_dump(database: str) -> bytes:
    redis = redis_server()
    keys = redis.command("KEYS", f"*{database}*")
    assert keys
    parts = [redis.command("ZRANGE", key, 0, -1) for key in keys if redis.command("TYPE", key) == "zset"]
    return repr([keys, parts]).encode()


async def test_a_cluster_shares_secrets_and_shows_none(cluster: Any, target: Target) -> None:
    key = new_key()
    with (
        cluster("one", ZEROCRON_SECRET_KEY=key, **DEBUG) as one,
        cluster("two", ZEROCRON_SECRET_KEY=key, **DEBUG) as two,
    ):
        ended = await everything_happens(Person(one), target)
        check_what_was_sent(ended, target)
        shown = await all_that_is_shown(Person(two)) + metrics_of(one) + metrics_of(two)
        dump = dump_of(cluster.database)
        assert traces(shown) == []
        assert traces(dump) == []
        assert traces(redis_dump(cluster.database)) == []
        assert key.encode() not in dump
        await Person(two).ask("PUT", "/v1/secrets/KEY", {"value": "another value"})
        job = await Person(one).creates(name="next", schedule=NEVER, url=f"{target.url}/ok?${{secrets.KEY}}")
        run = await Person(one).triggers(job)
        await Person(one).sees(run["id"], "succeeded")
        assert target.requests[-1].path == "/ok?another%20value", "whichever node ran it"
    for server in (one, two):
        said = server.log.read_bytes()
        assert traces(said) == []
        assert key.encode() not in said


# master keys


def test_a_cluster_that_keeps_no_secrets_needs_no_key(cluster: Any) -> None:
    with cluster("one") as one:
        person = Person(one)
        refused = asyncio.run(person.ask("PUT", "/v1/secrets/KEY", {"value": CANARY}, status=409))
        assert "`0cron secrets new-key`" in refused["detail"]
        assert "ZEROCRON_SECRET_KEY on every node" in refused["detail"]
        assert not (one.data_dir / "secret-key").exists()
    key = new_key()
    with cluster("two", ZEROCRON_SECRET_KEY=key) as two:
        asyncio.run(Person(two).ask("PUT", "/v1/secrets/KEY", {"value": CANARY}))
    for name, settings, words in (
        ("none", {}, "this node has none"),
        ("wrong", {"ZEROCRON_SECRET_KEY": new_key()}, "sealed with another master key"),
        ("bad", {"ZEROCRON_SECRET_KEY": "hunter2"}, "0cron secrets new-key"),
    ):
        with pytest.raises(AssertionError, match=words), cluster(name, **settings):
            pass


async def test_the_wrong_key_refuses_to_start_and_sends_nothing(mortal: Server, target: Target) -> None:
    person = Person(mortal)
    file = mortal.data_dir / "secret-key"
    assert file.stat().st_mode & 0o777 == 0o600
    await person.ask("PUT", "/v1/secrets/KEY", {"value": CANARY})
    await person.creates(name="every second", schedule="* * * * * *", url=f"{target.url}/ok?${{secrets.KEY}}")
    await target.wait_for(lambda: len(target.requests) >= 1)
    mortal.kill()
    right = file.read_text()
    seen = len(target.requests)
    for wrong, words in (
        (new_key(), "sealed with another master key"),
        (None, "Put back the file"),
        ("", "is not 32 bytes"),
    ):
        file.unlink(missing_ok=True)
        if wrong is not None:
            file.write_text(wrong)
        with pytest.raises(AssertionError, match=words), serving(mortal.data_dir):
            pass
        assert wrong is not None or not file.exists(), "a lost key is not replaced by another one"
    assert len(target.requests) == seen, "nothing is sent with an empty secret"
    file.write_text(right)
    mortal.start()
    await target.wait_for(lambda: len(target.requests) > seen)
    assert {request.path for request in target.requests} == {f"/ok?{spellings()['url']}"}


async def test_a_master_key_is_changed_by_two_at_a_time(tmp_path: Path, target: Target) -> None:
    old, new = new_key(), new_key()
    with serving(tmp_path / "data", settings={"ZEROCRON_SECRET_KEY": old}) as server:
        assert not (server.data_dir / "secret-key").exists()
        await Person(server).ask("PUT", "/v1/secrets/KEY", {"value": CANARY})
    for keys, rotate in ((f"{new},{old}", True), (new, False)):
        with serving(tmp_path / "data", settings={"ZEROCRON_SECRET_KEY": keys}) as server:
            person = Person(server)
            job = await person.creates(name="it", schedule=NEVER, url=f"{target.url}/ok?${{secrets.KEY}}")
            await person.sees((await person.triggers(job))["id"], "succeeded")
            if rotate:
                assert (await person.ask("POST", "/v1/secrets/rotate"))["secrets"] == 1
    with (
        pytest.raises(AssertionError, match="sealed with another master key"),
        serving(tmp_path / "data", settings={"ZEROCRON_SECRET_KEY": old}),
    ):
        pass
    assert {request.path for request in target.requests} == {f"/ok?{spellings()['url']}"}


@pytest.mark.parametrize("stop_at", ["inside-rotate", "between-teams"])
async def test_a_kill_in_the_middle_of_a_rotation_loses_nothing(tmp_path: Path, target: Target, stop_at: str) -> None:
    old, new = new_key(), new_key()
    data = tmp_path / "data"
    both = {"ZEROCRON_SECRET_KEY": f"{new},{old}"}
    with serving(data, settings={"ZEROCRON_SECRET_KEY": old}) as server:
        person = Person(server)
        for number in range(20):
            await person.ask("PUT", f"/v1/secrets/KEY_{number}", {"value": f"{CANARY} {number}"})
        job = await person.creates(
            name="it", schedule=NEVER, url=f"{target.url}/ok", method="POST", body="${secrets.KEY_0}|${secrets.KEY_19}"
        )
    with (
        serving(data, settings=both | {"ZEROCRON_STOP_AT": stop_at}) as server,
        pytest.raises(aiohttp.ClientError, match="disconnected"),
    ):
        await Person(server).ask("POST", "/v1/secrets/rotate")
    with serving(data, settings=both) as server:
        person = Person(server)
        await person.sees((await person.triggers(job))["id"], "succeeded")
        assert (await person.ask("POST", "/v1/secrets/rotate"))["secrets"] == 20
    with serving(data, settings={"ZEROCRON_SECRET_KEY": new}) as server:
        person = Person(server)
        await person.sees((await person.triggers(job))["id"], "succeeded")
    assert {request.body.decode() for request in target.requests} == {f"{CANARY} 0|{CANARY} 19"}
