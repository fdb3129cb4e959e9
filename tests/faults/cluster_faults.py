"""The fault catalogue of PROMISES.md C for a cluster: each fault as a journey over two or three real nodes.

A journey injects its fault, heals it, waits until the cluster has settled, lets the checker judge, and then asserts
what the catalogue expects beside that. `test_cluster_faults.py` plays them with sessions five times shorter than the
product's; `cluster_long` also with the real ones. Times that belong to a session are multiplied by `Cluster.scale`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tests.faults.cluster import Cluster
from tests.faults.cluster import cluster as make_cluster
from tests.faults.world import Call, answer_ok, hold, moment, until
from tests.support.environment import ENVIRONMENT
from tests.support.postgres import PostgresServer
from tests.support.proxy import AnswerVerdict, RequestVerdict

from zerocron.app import EARLY_MS

Journey = Callable[[Cluster], Awaitable[None]]
LOOK_SECONDS = 0.15
LATENESS = (
    "SELECT runs.team_id, runs.scheduled_for, executions.started_at - runs.scheduled_for AS late "
    "FROM runs JOIN executions ON run_id = runs.id WHERE executions.attempt = 1"
)
"""By when the request began: a run's own row says it only when it has ended."""

HOURLY = "every 1 hour"


@dataclass(frozen=True, slots=True)
class Case:
    """A fault by its number in the catalogue. `own_postgres`: it hurts the server. `is_variant`: of another case with
    its number, for the long run only."""

    number: str
    name: str
    journey: Journey
    own_postgres: bool = False
    disk_mb: int = 0
    is_variant: bool = False


# --- what the journeys have in common


async def wait(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    await until(condition, what, seconds, every=LOOK_SECONDS)


async def pass_time(seconds: float) -> None:
    await moment(seconds)


async def many(
    cluster: Cluster, name: str, number: int, behaviour: Callable[[Call], None] = answer_ok, **how: Any
) -> list[str]:
    return [await cluster.job(f"{name}-{n}", behaviour, **how) for n in range(number)]


def soon(cluster: Cluster) -> str:
    """An instant for which a job can still be made by a node that dies or stops at its start."""
    return datetime.fromtimestamp(cluster.now_ms() // 1000 + 8, UTC).isoformat()


async def going_on(cluster: Cluster, jobs: list[str], more: int = 2, seconds: float = 60) -> None:
    """Each job has so many more successes."""
    before = successes(cluster)
    wanted = {job_id: before.get(job_id, 0) + more for job_id in jobs}

    def done() -> bool:
        now = successes(cluster)
        return all(now.get(job_id, 0) >= number for job_id, number in wanted.items())

    await wait(done, "going on", seconds)


def successes(cluster: Cluster) -> dict[str, int]:
    rows = cluster.rows("SELECT job_id, count(*) AS n FROM runs WHERE status = 'succeeded' GROUP BY job_id")
    return {row["job_id"]: row["n"] for row in rows}


async def clean(cluster: Cluster, *, lost: int | None = 0, duplicates: int | None = 0) -> None:
    """The checker has nothing to say; so many executions were lost and so many requests sent again (None: any)."""
    await cluster.assert_clean()
    if lost is not None:
        assert cluster.lost() == lost, f"{cluster.lost()} executions were lost"
    if duplicates is not None:
        assert cluster.duplicates() == duplicates, f"{cluster.duplicates()} requests were sent again"


def slowly(seconds: float) -> Callable[[Call], None]:
    return lambda call: call.later(seconds, call.answer)


def attempts(cluster: Cluster, run_id: str) -> list[str]:
    return [row["cause"] for row in cluster.executions(run_id)]


def requests(cluster: Cluster, run_id: str) -> list[Call]:
    return [call for call in cluster.calls if call.run_id == run_id]


def nodes_of(cluster: Cluster, since: int, until_: int) -> set[str]:
    """The nodes that began an execution in the window."""
    rows = cluster.rows(
        "SELECT DISTINCT node FROM sessions JOIN executions ON session_id = sessions.id "
        "WHERE executions.started_at BETWEEN ? AND ?",
        since,
        until_,
    )
    return {row["node"] for row in rows}


# --- 1 to 6: kill -9 at each step


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a run whose node died: requests at the target, the causes of its executions, its status."""

    requests: int
    causes: tuple[str, ...]
    status: str = "succeeded"


TWICE = ("first", "node_lost")
UNTOUCHED = Fate(1, ("first",))


def killed_at(stop_at: str, rerun: Fate, give_up: Fate, *, answered: tuple[str, ...] = ()) -> Journey:
    """n1 has two runs of one instant, and nothing else, when it dies: all that it leaves is at the stop point. At those
    of a finish both requests are at the target, which has answered the jobs named."""

    async def journey(cluster: Cluster) -> None:
        await cluster.start("n1", stop_at=stop_at)
        due = soon(cluster)
        jobs = {name: await cluster.job(name, hold, schedule=due, on_lost=name) for name in ("rerun", "give_up")}
        if answered:
            await wait(lambda: len(cluster.calls) == 2, "both requests")
            for name in answered:
                cluster.calls_of(f"/{name}")[0].answer()
        await cluster["n1"].died()
        for name in jobs:
            cluster.route(f"/{name}")
        await cluster.start("n2")
        others = await many(cluster, "other", 4)
        ids = tuple(jobs.values())
        ended = "SELECT count(finished_at) FROM runs WHERE job_id IN (?, ?)"
        await wait(lambda: cluster.one(ended, *ids) == 2, "the take-over", 60)
        await going_on(cluster, others, 2)
        await cluster.start("n1")
        await going_on(cluster, others, 1)
        await clean(cluster, lost=None, duplicates=None)
        for name, fate in (("rerun", rerun), ("give_up", give_up)):
            [run] = cluster.runs(jobs[name])
            seen = Fate(len(requests(cluster, run["id"])), tuple(attempts(cluster, run["id"])), run["status"])
            assert seen == fate, f"{name}: {seen}"

    return journey


def killed_under_load(stop_at: str) -> Journey:
    """The same beside a node that works on, and with requests in flight: what n1 leaves, and whether anything, is
    chance; what becomes of it is not."""

    async def journey(cluster: Cluster) -> None:
        await asyncio.gather(cluster.start("n1", stop_at=f"{stop_at}:3"), cluster.start("n2"))
        rerun = await many(cluster, "rerun", 4, catchup="all", node="n2")
        give_up = await many(cluster, "give-up", 4, catchup="all", on_lost="give_up", node="n2")
        await cluster["n1"].died()
        await going_on(cluster, rerun + give_up, 3)
        await wait(lambda: not cluster.unsettled(), "the take-over", 60)
        await going_on(cluster, rerun + give_up, 2)
        await cluster.start("n1")
        await going_on(cluster, rerun + give_up, 1)
        await clean(cluster, lost=None, duplicates=None)
        lost = cluster.rows("SELECT run_id, job_id FROM executions WHERE error_kind = 'node_lost'")
        assert cluster.duplicates() <= len(lost)
        for row in lost:
            run = cluster.rows("SELECT status FROM runs WHERE id = ?", row["run_id"])[0]
            seen = (tuple(attempts(cluster, row["run_id"])), run["status"])
            assert seen == ((TWICE, "succeeded") if row["job_id"] in rerun else (("first",), "lost"))

    return journey


async def killed_while_the_target_thinks(cluster: Cluster) -> None:
    """Two requests with one key, or one and the run is lost."""
    await cluster.start("n1")
    jobs = [await cluster.job(on_lost, hold, on_lost=on_lost) for on_lost in ("rerun", "give_up")]
    await wait(lambda: cluster.calls_of("/rerun") and cluster.calls_of("/give_up"), "the requests")
    await cluster.start("n2")
    again, once = cluster.calls_of("/rerun")[0], cluster.calls_of("/give_up")[0]
    cluster.route("/rerun")
    cluster.route("/give_up")
    since = cluster.now_ms()
    await cluster["n1"].kill()
    await wait(lambda: len(requests(cluster, again.run_id)) == 2, "the redelivery", 60)
    assert cluster.now_ms() - since <= 45_000
    await going_on(cluster, jobs)
    await clean(cluster, lost=2, duplicates=1)
    assert attempts(cluster, again.run_id) == ["first", "node_lost"]
    assert (attempts(cluster, once.run_id), len(requests(cluster, once.run_id))) == (["first"], 1)
    keys = {call.exchange.request.headers["idempotency-key"] for call in requests(cluster, again.run_id)}
    assert keys == {again.run_id}


# --- 8, 9, 11 to 13, 34, 35, 43, 46, 48: nodes


async def all_killed_for_ten_minutes(cluster: Cluster) -> None:
    """The policies, exactly; the ten minutes take no time because the ledger's clock jumps."""
    cluster.set_clock(-600_000)
    await cluster.start("n1", "n2")
    latest = await cluster.job("latest", catchup="latest")
    every = await cluster.job("all", catchup="all")
    none = await cluster.job("none", catchup="none")
    narrow = await cluster.job("narrow", catchup="all", catchup_window=20)
    jobs = [latest, every, none, narrow]
    await going_on(cluster, jobs, 1)
    await cluster["n1"].kill()
    await cluster["n2"].kill()
    gone_at = cluster.now_ms()
    cluster.set_clock(0)
    back_at = cluster.now_ms()  # what comes due after this may be late, too, behind the backlog
    await cluster.start("n1", "n2")
    await wait(lambda: not cluster.behind() and not cluster.unsettled(), "the end of the backlog", 60)
    await clean(cluster, lost=None, duplicates=None)
    for job_id, most in ((latest, 1), (none, 1), (every, 100), (narrow, 20)):
        runs = [run for run in cluster.runs(job_id) if gone_at < run["scheduled_for"] <= back_at]
        missed = cluster.missed(job_id, gone_at)
        late = [run for run in runs if run["status"] != "skipped" and run["created_at"] - run["scheduled_for"] > 5_000]
        assert missed >= 590 - most, f"{missed} were missed"
        assert len(late) <= most, f"{len(late)} ran late"


async def rolling_restarts_under_load(cluster: Cluster) -> None:
    """SIGTERM of one node after the other: nothing lost, nothing twice, nothing later than 5 s (the checker's I6)."""
    await cluster.start("n1", "n2", "n3")
    jobs = await many(cluster, "slow", 10, slowly(0.4)) + await many(cluster, "fast", 15, schedule="every 1 second")
    for name in ("n1", "n2", "n3"):
        await going_on(cluster, jobs, 1)
        seen = len(cluster.calls)
        await wait(lambda: len(cluster.calls) > seen + 5, "requests in flight")  # noqa: B023
        assert await cluster[name].stop() == 0
        await cluster.start(name)
    await going_on(cluster, jobs, 1)
    await clean(cluster)
    assert cluster.one("SELECT count(*) FROM runs WHERE status NOT IN ('succeeded', 'skipped')") == 0


async def paused_for_less_than_a_session(cluster: Cluster) -> None:
    """SIGSTOP for a third of the validity, while sending: nothing is lost."""
    await cluster.start("n1")
    jobs = await many(cluster, "slow", 5, slowly(0.5))
    await wait(lambda: len(cluster.calls) >= 5, "requests in flight")
    await cluster.start("n2")
    go_on = cluster["n1"].freeze()
    await pass_time(10 * cluster.scale)
    go_on()
    await going_on(cluster, jobs)
    await clean(cluster)


async def paused_before_sending(cluster: Cluster) -> None:
    """SIGSTOP for two validities between the commit and the request: another node sends it, the woken one does not."""
    await cluster.start("n1", stop_at="started:1:pause")
    await cluster.job("held", schedule=soon(cluster))
    go_on = await cluster["n1"].frozen()
    await cluster.start("n2")
    jobs = await many(cluster, "job", 3, node="n2")
    await pass_time(60 * cluster.scale)
    await wait(lambda: cluster.lost() and not cluster.unsettled(), "the take-over", 60)
    go_on()
    await going_on(cluster, jobs)
    await clean(cluster, lost=None)
    for row in cluster.rows("SELECT run_id FROM executions WHERE error_kind = 'node_lost'"):
        assert attempts(cluster, row["run_id"]) == ["first", "node_lost"]


async def paused_after_sending(cluster: Cluster) -> None:
    """SIGSTOP for two validities while the target thinks: two requests, and the late result changes nothing."""
    await cluster.start("n1")
    job_id = await cluster.job("job", hold, schedule=HOURLY, timeout=120)
    run_id = (await cluster.operate("trigger", job_id, node="n1"))["id"]
    await wait(lambda: cluster.calls, "the request")
    await cluster.start("n2")
    go_on = cluster["n1"].freeze()
    cluster.calls[0].answer(200, b"late")
    cluster.route("/job")
    await pass_time(60 * cluster.scale)
    await wait(lambda: cluster.one("SELECT status FROM runs WHERE id = ?", run_id) == "succeeded", "the redelivery")
    go_on()
    late = "SELECT count(*) FROM executions WHERE error_kind = 'node_lost' AND response_body = 'late'"
    await wait(lambda: cluster.one(late) == 1, "the late result")
    await clean(cluster, lost=1, duplicates=1)
    assert attempts(cluster, run_id) == ["first", "node_lost"]
    assert cluster.one("SELECT attempt FROM runs WHERE id = ?", run_id) == 2


def cut_off_from_postgres(*, silent: bool) -> Journey:
    """One node loses PostgreSQL for two validities and keeps Redis: it stops, another takes over, late results only."""

    async def journey(cluster: Cluster) -> None:
        await cluster.start("n1")
        held = await cluster.job("held", hold, schedule=HOURLY, timeout=120)
        run_id = (await cluster.operate("trigger", held, node="n1"))["id"]
        await wait(lambda: cluster.calls_of("/held"), "the request")
        await cluster.start("n2")
        jobs = await many(cluster, "job", 6)
        await going_on(cluster, jobs, 1)
        cluster.route("/held")
        async with cluster["n1"].cut(kind="cut_pg", silent=silent):
            since = cluster.now_ms()
            await pass_time(30 * cluster.scale)
            await wait(lambda: len(requests(cluster, run_id)) == 2, "the redelivery", 60)
            assert cluster.now_ms() - since <= 45_000
            await going_on(cluster, jobs)
            began = cluster.now_ms()
            await pass_time(15 * cluster.scale)
            assert nodes_of(cluster, began, cluster.now_ms()) == {"n2"}
        cluster.calls_of("/held")[0].answer(200, b"late")
        late = "SELECT count(*) FROM executions WHERE error_kind = 'node_lost' AND response_body = 'late'"
        await wait(lambda: cluster.one(late) == 1, "the late result")
        await going_on(cluster, jobs)
        await clean(cluster, lost=None, duplicates=None)
        assert attempts(cluster, run_id) == ["first", "node_lost"]

    return journey


async def cut_off_within_a_transaction(cluster: Cluster) -> None:
    """One node is not heard of any more in a transaction that holds jobs, where PostgreSQL's own time limits end
    nothing: between a statement that was prepared and its execution. The others go on without it."""
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 6)
    await going_on(cluster, jobs, 1)
    link, since = cluster["n1"].pg, cluster.now_ms()

    def fall_silent(chunk: bytes) -> RequestVerdict:
        if chunk.startswith(b"P") and b"UPDATE jobs" in chunk:
            link.silent = True
        return "pass"

    link.on_request = fall_silent
    await link.cut()  # so that statements are prepared anew
    await wait(lambda: link.silent, "a statement of n1", 60)
    link.on_request = lambda _chunk: "pass"
    async with cluster["n1"].cut(kind="cut_pg", silent=True):
        await going_on(cluster, jobs)
    cluster["n1"].note("cut_pg", since, cluster.now_ms())
    await going_on(cluster, jobs)
    await clean(cluster, lost=None, duplicates=None)
    assert "stalled_transactions_ended" in cluster["n2"].log()


def cut_off_from_redis(*, silent: bool) -> Journey:
    """One node loses Redis: it works from PostgreSQL, and nobody else notices."""

    async def journey(cluster: Cluster) -> None:
        await cluster.start("n1")
        jobs = await many(cluster, "job", 8)
        await going_on(cluster, jobs, 1)
        async with cluster["n1"].cut(kind="cut_redis", silent=silent):
            await going_on(cluster, jobs)
            await cluster.start("n2")
            await going_on(cluster, jobs)
        await going_on(cluster, jobs)
        await clean(cluster)
        assert "timetable_away" in cluster["n1"].log()
        assert "timetable_away" not in cluster["n2"].log()

    return journey


async def wrong_clocks_of_nodes(cluster: Cluster) -> None:
    """Ten minutes fast and ten minutes slow: no effect, because PostgreSQL's clock decides."""
    await cluster.add("n1", clock_offset_ms=600_000)
    await cluster.add("n2", clock_offset_ms=-600_000)
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 5) + await many(cluster, "every", 5, schedule="every 1 second")
    await going_on(cluster, jobs, 4)
    await clean(cluster)
    assert cluster.one(f"SELECT max(late) FROM ({LATENESS}) AS first") <= 5_000


async def two_nodes_with_one_name(cluster: Cluster) -> None:
    """Sessions are random ids: one of the two dies, and only its runs are taken over."""
    await cluster.add("n1", called="same")
    await cluster.add("n2", called="same")
    await cluster.start("n1")
    doomed = await cluster.job("doomed", hold, schedule=HOURLY, timeout=120)
    lost_run = (await cluster.operate("trigger", doomed, node="n1"))["id"]
    await wait(lambda: cluster.calls_of("/doomed"), "the request of n1")
    go_on = cluster["n1"].freeze()  # so that n2 takes the next one
    await cluster.start("n2")
    kept = await cluster.job("kept", hold, schedule=HOURLY, timeout=120, node="n2")
    kept_run = (await cluster.operate("trigger", kept, node="n2"))["id"]
    await wait(lambda: cluster.calls_of("/kept"), "the request of n2")
    go_on()
    cluster.route("/doomed")
    await cluster["n1"].kill()
    await wait(lambda: len(requests(cluster, lost_run)) == 2, "the redelivery", 60)
    cluster.calls_of("/kept")[0].answer()
    await wait(lambda: cluster.succeeded(kept) == 1, "the other's result")
    await clean(cluster, lost=1, duplicates=1)
    assert attempts(cluster, kept_run) == ["first"]


async def verbs_race_the_due_instant(cluster: Cluster) -> None:
    """Edit, pause, delete and trigger through one node within milliseconds of the second, while both start runs."""
    await cluster.start("n1", "n2")
    pick = random.Random("race")
    jobs: list[tuple[str, str]] = []

    async def make(verb: str, number: str) -> None:
        overlap = pick.choice(("skip", "queue", "allow"))
        jobs.append((verb, await cluster.job(f"{verb}-{number}", overlap=overlap)))

    for verb in ("edit", "pause", "delete", "trigger"):
        for number in range(5):
            await make(verb, str(number))
    for schedule in ("every 1 second", "*/2 * * * * *", "* * * * * *", "every 2 seconds"):
        second = (cluster.now_ms() // 1_000 + 1) * 1_000
        races = [
            _race(
                cluster, verb, job_id, schedule, second + pick.randint(-EARLY_MS, EARLY_MS), pick.choice(("n1", "n2"))
            )
            for verb, job_id in jobs
        ]
        await asyncio.gather(*races)
        jobs = [(verb, job_id) for verb, job_id in jobs if verb != "delete"]
        for number in range(5):
            await make("delete", f"{second}-{number}")
    await pass_time(1.2)
    await clean(cluster)


async def _race(cluster: Cluster, verb: str, job_id: str, schedule: str, at: int, node: str) -> None:
    await moment(max(0, at - cluster.now_ms()) / 1000)
    await cluster.operate(verb, job_id, {"schedule": schedule} if verb == "edit" else None, node=node)
    if verb == "pause":
        await cluster.operate("resume", job_id, node="n2" if node == "n1" else "n1")


# --- 16 to 24: Redis


async def load(cluster: Cluster, number: int = 10) -> list[str]:
    await cluster.start("n1", "n2")
    retry = {"attempts": 2, "backoff": "fixed", "delay": 1}
    jobs = await many(cluster, "job", number)
    await cluster.job("retried", lambda call: call.answer(500 if call.attempt == 1 else 200), retry=retry)
    await cluster.job("far", schedule="0 0 1 1 *")
    await going_on(cluster, jobs, 1)
    return jobs


async def redis_killed_and_empty(cluster: Cluster) -> None:
    """Away for a while, and back without a single member: late by at most 10 s, and whole again."""
    jobs = await load(cluster)
    with cluster.fault("redis"):
        cluster.redis.kill()
        await going_on(cluster, jobs)
        await asyncio.to_thread(cluster.redis.start)
    await going_on(cluster, jobs)
    await clean(cluster)


async def redis_killed_with_an_old_log(cluster: Cluster) -> None:
    """With AOF everysec: members as they were a moment before are back, and PostgreSQL refuses them."""
    cluster.redis.stop()
    await asyncio.to_thread(lambda: cluster.redis.start(appendonly="yes", appendfsync="everysec"))
    jobs = await load(cluster)
    for _ in range(2):
        with cluster.fault("redis"):
            cluster.redis.kill()
            await asyncio.to_thread(cluster.redis.start)
        await going_on(cluster, jobs)
    await clean(cluster)


async def redis_from_an_old_copy(cluster: Cluster) -> None:
    """Restarted from a snapshot of long ago, with members that are gone and instants that are past."""
    jobs = await load(cluster)
    gone = await many(cluster, "gone", 3)
    await going_on(cluster, gone, 1)
    copy = cluster.folder / "old.rdb"
    cluster.redis.save_to(copy)
    for job_id in gone:
        await cluster.operate("delete", job_id)
    await going_on(cluster, jobs, 3)
    with cluster.fault("redis"):
        cluster.redis.kill()
        await asyncio.to_thread(lambda: cluster.redis.start(rdb=copy))
    await going_on(cluster, jobs)
    await clean(cluster)


async def redis_flushed_mid_burst(cluster: Cluster) -> None:
    """FLUSHALL and SCRIPT FLUSH right when everything is due."""
    jobs = await load(cluster, 25)
    for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FLUSHALL",)):
        await moment((1_000 - cluster.now_ms() % 1_000 + 5) / 1000)
        with cluster.fault("redis"):
            cluster.redis.command(*words)
        await going_on(cluster, jobs)
    await clean(cluster)


async def redis_out_of_memory(cluster: Cluster) -> None:
    """Full, so that every put fails; then evicting what it likes. The sweep takes over."""
    jobs = await load(cluster)
    with cluster.fault("redis"):
        cluster.redis.command("CONFIG", "SET", "maxmemory", 1)
        await going_on(cluster, jobs)
    cluster.redis.command("CONFIG", "SET", "maxmemory", 0)
    await going_on(cluster, jobs, 1)
    with cluster.fault("redis"):
        cluster.redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        cluster.redis.command("CONFIG", "SET", "maxmemory", 1)
        await going_on(cluster, jobs)
        cluster.redis.command("CONFIG", "SET", "maxmemory", 0)
    await going_on(cluster, jobs)
    await clean(cluster)
    assert "redis_out_of_memory" in cluster.node_log()


def redis_slow(how: Literal["delay", "pause"]) -> Journey:
    """An answer takes 2 s, or Redis stands still: nodes work from PostgreSQL, and the API does not wait."""

    async def journey(cluster: Cluster) -> None:
        jobs = await load(cluster)
        with cluster.fault("redis"):
            if how == "pause":
                cluster.redis.pause()
            for node in cluster.nodes.values():
                node.redis.delay_seconds = 1.0 if how == "delay" else 0.0
            try:
                await going_on(cluster, jobs)
                longest = 0.0
                for number in range(4):
                    begun = asyncio.get_running_loop().time()
                    assert await cluster.operate("trigger", jobs[number]) is not None
                    longest = max(longest, asyncio.get_running_loop().time() - begun)
                    await pass_time(0.5)
            finally:
                for node in cluster.nodes.values():
                    node.redis.delay_seconds = 0.0
                if how == "pause":
                    cluster.redis.resume()
        await going_on(cluster, jobs)
        await clean(cluster)
        assert longest < 2, f"an API call took {longest:.2f} s"

    return journey


async def redis_answers_lost(cluster: Cluster) -> None:
    """Redis runs a claim and its answer is lost: the same batch is handed out again, and nothing is stranded."""
    jobs = await load(cluster)
    seen = 0

    def lose_every_third(chunk: bytes) -> RequestVerdict:
        nonlocal seen
        if b":claim:" not in chunk:
            return "pass"
        seen += 1
        return "cut_after" if seen % 3 == 0 else "pass"

    with cluster.fault("redis"):
        for node in cluster.nodes.values():
            node.redis.on_request = lose_every_third
        await going_on(cluster, jobs, 6)
        for node in cluster.nodes.values():
            node.redis.on_request = lambda _chunk: "pass"
    await going_on(cluster, jobs)
    await clean(cluster)
    assert seen > 10


# --- 25 to 31: PostgreSQL


def postgres_restarted(mode: Literal["fast", "immediate"]) -> Journey:
    """With requests in flight: nothing starts meanwhile, what runs is recorded afterwards, nothing is lost."""

    async def journey(cluster: Cluster) -> None:
        await cluster.start("n1", "n2")
        jobs = await many(cluster, "slow", 8, slowly(0.6)) + await many(cluster, "fast", 8)
        await going_on(cluster, jobs, 1)
        for _ in range(2):
            seen = len(cluster.calls)
            await wait(lambda: len(cluster.calls) > seen + 8, "requests in flight")  # noqa: B023
            with cluster.fault("pg"):
                await asyncio.to_thread(cluster.postgres.restart, mode)
            await going_on(cluster, jobs)
        await clean(cluster)

    return journey


async def postgres_away_for_longer_than_a_session(cluster: Cluster) -> None:
    """Requests in flight, and no PostgreSQL for one and a half validities: every one is recorded, none is lost."""
    await cluster.start("n1", "n2")
    held = await many(cluster, "held", 20, hold, schedule=HOURLY, timeout=120)
    jobs = await many(cluster, "job", 5)
    await going_on(cluster, jobs, 1)
    for job_id in held:
        assert await cluster.operate("trigger", job_id) is not None
    await wait(lambda: sum(call.exchange.request.path.startswith("/held") for call in cluster.calls) == 20, "requests")
    with cluster.fault("pg"):
        await asyncio.to_thread(cluster.postgres.stop, "fast")
        await pass_time(45 * cluster.scale)
        for call in cluster.calls:
            if call.exchange.request.path.startswith("/held"):
                call.answer()
        await pass_time(1)
        await asyncio.to_thread(cluster.postgres.start)
    await wait(lambda: all(cluster.succeeded(job_id) == 1 for job_id in held), "the records", 60)
    await going_on(cluster, jobs)
    await pass_time(35 * cluster.scale)  # as long as it takes until somebody may take over
    await clean(cluster)


def commits_cut(verdict: Literal["cut", "cut_after"]) -> Journey:
    """The connection goes before PostgreSQL has read COMMIT, or when it has done it: at starts, finishes, API calls."""

    async def journey(cluster: Cluster) -> None:
        await cluster.start("n1", "n2")
        jobs = await many(cluster, "job", 8) + await many(cluster, "give-up", 4, on_lost="give_up")
        await going_on(cluster, jobs, 1)
        pick, hits = random.Random(verdict), 0

        def on_commit(chunk: bytes) -> RequestVerdict:
            nonlocal hits
            if b"COMMIT" not in chunk or pick.random() > 0.08:
                return "pass"
            hits += 1
            return verdict

        with cluster.fault("pg_slow"):
            for node in cluster.nodes.values():
                node.pg.on_request = on_commit
            for number in range(10):
                await cluster.operate("trigger", pick.choice(jobs), key=f"trigger-{number}")
                await pass_time(0.5)
            for node in cluster.nodes.values():
                node.pg.on_request = lambda _chunk: "pass"
        await going_on(cluster, jobs)
        await clean(cluster)
        assert hits > 5

    return journey


async def answers_to_commits_swallowed(cluster: Cluster) -> None:
    """PostgreSQL has committed, and its answer never comes: the connection stays open and silent."""
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 8)
    await going_on(cluster, jobs, 1)
    hits = 0

    def swallow(chunk: bytes) -> AnswerVerdict:
        nonlocal hits
        if b"COMMIT\0" not in chunk or hits >= 4:
            return "pass"
        hits += 1
        return "drop"

    with cluster.fault("pg_slow"):
        cluster["n1"].pg.on_answer = swallow
        await wait(lambda: hits == 4, "lost answers", 60)
        await pass_time(15 * cluster.scale)
    await going_on(cluster, jobs)
    await clean(cluster)


async def backends_terminated(cluster: Cluster) -> None:
    """pg_terminate_backend at random, again and again: retried, and API calls are ok, failed or unclear, never half."""
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 10)
    await going_on(cluster, jobs, 1)
    query = (
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) AS few"
    )
    with cluster.fault("pg_slow"):
        for number in range(30):
            cluster.rows(query)
            await cluster.operate("trigger", random.choice(jobs), key=f"trigger-{number}")
            await pass_time(0.15)
    await going_on(cluster, jobs)
    await clean(cluster)


async def disk_full(cluster: Cluster) -> None:
    """No room for another row: writes are refused with 503, nothing is sent without its row, and it recovers."""
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 10)
    await going_on(cluster, jobs, 1)
    disk = cluster.postgres.folder / "small"
    filler = disk / "filler"
    refused = 0
    with cluster.fault("pg"):
        _fill(filler)
        for number in range(400):
            body = {
                "name": f"filler-{number}",
                "schedule": HOURLY,
                "url": cluster.route("/filler"),
                "body": "x" * 6_000,
            }
            try:
                status, _ = await cluster.call("POST", "/v1/jobs", body)
            except (OSError, TimeoutError):
                continue
            if status == 503:
                refused += 1
                if refused > 5:
                    break
        await pass_time(4)
        sent = len(cluster.calls)
        await pass_time(2)
        assert len(cluster.calls) == sent, "something was sent while no row could be written"
        filler.unlink()
    assert refused, "no write was refused"
    await going_on(cluster, jobs)
    await clean(cluster)


def _fill(file: Path) -> None:
    with file.open("wb") as hole, contextlib.suppress(OSError):
        while True:
            hole.write(b"\0" * 65_536)
            hole.flush()


async def postgres_slow(cluster: Cluster) -> None:
    """Every statement takes half a second more: late and in order, and nothing piles up."""
    await cluster.start("n1", "n2")
    jobs = await many(cluster, "job", 10)
    await going_on(cluster, jobs, 1)
    with cluster.fault("pg_slow"):
        for node in cluster.nodes.values():
            node.pg.delay_seconds = 0.25
        await going_on(cluster, jobs, 1, 60)
        for node in cluster.nodes.values():
            node.pg.delay_seconds = 0
    await going_on(cluster, jobs)
    await clean(cluster)


def one_team_owns_nearly_all(jobs: int) -> Journey:
    """So many due in one second, nearly all of one team: the hundred of ten others need not wait for it."""

    async def journey(cluster: Cluster) -> None:
        await _one_team_owns_nearly_all(cluster, jobs)

    return journey


async def _one_team_owns_nearly_all(cluster: Cluster, jobs: int) -> None:
    await cluster.start("n1", "n2")
    await cluster.job("burst", schedule="in 10 minutes")
    for number in range(1, jobs):
        cluster.route(f"/clone-{number}")
    for name in ("n1", "n2"):
        assert await cluster[name].stop() == 0
    due = cluster.now_ms() + 12_000
    cluster.eyes.execute(_CLONE.format(due=due, name="burst", clones=jobs - 1, own=jobs - 101))
    await cluster.start("n1", "n2")
    await wait(lambda: cluster.one("SELECT count(*) FROM runs WHERE status = 'succeeded'") == jobs, "all runs", 60)
    query = (
        f"SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY late) FROM ({LATENESS}) AS first "
        "WHERE scheduled_for = ? AND team_id <> (SELECT team_id FROM jobs WHERE name = 'burst')"
    )
    late = cluster.one(query, due)
    await clean(cluster)
    assert late <= 2_000, f"p99 of the small teams: {late} ms"


_CLONE = """
INSERT INTO teams (id, name, created_at) SELECT 'team-' || n, 'team-' || n, 0 FROM generate_series(1, 10) AS n;
UPDATE jobs SET schedule_at = {due}, next_run_at = {due} WHERE name = '{name}';
DELETE FROM audit;
UPDATE job_versions SET schedule = jsonb_set(schedule::jsonb, '{{at}}', '{due}')::text;
CREATE TEMPORARY TABLE clones AS SELECT jobs.*, n FROM jobs, generate_series(1, {clones}) AS n WHERE name = '{name}';
UPDATE clones SET id = gen_random_uuid()::text, name = 'clone-' || n, url = replace(url, '{name}', 'clone-' || n),
    team_id = CASE WHEN n <= {own} THEN team_id ELSE 'team-' || (n % 10 + 1) END;
INSERT INTO job_versions (job_id, version, team_id, status, schedule, definition, created_at)
    SELECT clones.id, v.version, clones.team_id, v.status, v.schedule, replace(v.definition, '{name}', clones.name),
    v.created_at FROM clones, job_versions AS v;
ALTER TABLE clones DROP COLUMN n;
INSERT INTO jobs SELECT * FROM clones;
"""


# --- the table


CASES = [
    Case("1", "killed after the claim", killed_at("claimed", UNTOUCHED, UNTOUCHED)),
    Case("1", "killed after a claim, under load", killed_under_load("claimed"), is_variant=True),
    Case("2", "killed inside the start transaction", killed_at("inside-start", UNTOUCHED, UNTOUCHED)),
    Case("2", "killed inside a start transaction, under load", killed_under_load("inside-start"), is_variant=True),
    Case("3", "killed after the start commit", killed_at("started", Fate(1, TWICE), Fate(0, ("first",), "lost"))),
    Case("3", "killed after a start commit, under load", killed_under_load("started"), is_variant=True),
    Case("4", "killed while the target thinks", killed_while_the_target_thinks),
    Case(
        "5",
        "killed before the finish commit",
        killed_at("before-finish", Fate(2, TWICE), Fate(1, ("first",), "lost"), answered=("rerun", "give_up")),
    ),
    Case("5", "killed before a finish commit, under load", killed_under_load("before-finish"), is_variant=True),
    Case(
        "6",
        "killed after the finish commit",
        killed_at("after-finish", UNTOUCHED, Fate(1, ("first",), "lost"), answered=("rerun",)),
    ),
    Case("6", "killed after a finish commit, under load", killed_under_load("after-finish"), is_variant=True),
    Case("8", "all killed for ten minutes", all_killed_for_ten_minutes),
    Case("9", "rolling restarts under load", rolling_restarts_under_load),
    Case("11", "paused for less than a session", paused_for_less_than_a_session),
    Case("12", "paused before sending", paused_before_sending),
    Case("13", "paused after sending", paused_after_sending),
    Case("16", "Redis killed, back empty", redis_killed_and_empty),
    Case("17", "Redis killed, back with an old log", redis_killed_with_an_old_log),
    Case("18", "Redis back from an old copy", redis_from_an_old_copy),
    Case("19", "Redis flushed mid-burst", redis_flushed_mid_burst),
    Case("21", "Redis out of memory", redis_out_of_memory),
    Case("22", "Redis slow", redis_slow("delay"), is_variant=True),
    Case("22", "Redis stands still", redis_slow("pause")),
    Case("23", "answers of Redis lost", redis_answers_lost),
    Case("25", "PostgreSQL restarted (fast)", postgres_restarted("fast"), own_postgres=True, is_variant=True),
    Case("25", "PostgreSQL restarted (immediate)", postgres_restarted("immediate"), own_postgres=True),
    Case("26", "PostgreSQL away for longer", postgres_away_for_longer_than_a_session, own_postgres=True),
    Case("27", "cut before COMMIT", commits_cut("cut"), is_variant=True),
    Case("27", "cut after COMMIT", commits_cut("cut_after")),
    Case("27", "answers to COMMIT swallowed", answers_to_commits_swallowed),
    Case("28", "backends terminated", backends_terminated),
    Case("30", "disk full", disk_full, own_postgres=True, disk_mb=24),
    Case("31", "PostgreSQL slow", postgres_slow),
    Case("34", "cut off from PostgreSQL", cut_off_from_postgres(silent=False), is_variant=True),
    Case("34", "cut off from PostgreSQL, silently", cut_off_from_postgres(silent=True)),
    Case("34", "cut off from PostgreSQL within a transaction", cut_off_within_a_transaction),
    Case("35", "cut off from Redis", cut_off_from_redis(silent=False), is_variant=True),
    Case("35", "cut off from Redis, silently", cut_off_from_redis(silent=True)),
    Case("43", "wrong clocks of nodes", wrong_clocks_of_nodes),
    Case("46", "two nodes with one name", two_nodes_with_one_name),
    Case("48", "verbs race the due instant", verbs_race_the_due_instant),
    Case("49", "one team owns nearly all", one_team_owns_nearly_all(2_000)),
    Case("49", "one team owns nearly all of 5,000", one_team_owns_nearly_all(5_000), is_variant=True),
]


@contextlib.asynccontextmanager
async def scene_of(case: Case, folder: Path, *, scale: float) -> AsyncIterator[Cluster]:
    """The cluster that a case asks for."""
    async with make_cluster(folder, own_postgres=case.own_postgres, scale=scale) as it:
        if case.disk_mb:
            with small_disk(it.postgres, case.disk_mb, it.database):
                yield it
        else:
            yield it


def may_mount() -> bool:
    """Whether this process may make a small disk: root with the right to mount."""
    probe = subprocess.run(["unshare", "--mount", "true"], env=ENVIRONMENT, capture_output=True, check=False)
    return probe.returncode == 0


@contextlib.contextmanager
def small_disk(server: PostgresServer, megabytes: int, database: str) -> Any:
    """A disk of its own for the tables, so that it fills up while the write-ahead log still has room."""
    folder = server.folder / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(folder)]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    try:
        tables = folder / "tables"
        tables.mkdir()
        shutil.chown(tables, (server.folder / "data").owner())
        server.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
        for table in ("jobs", "job_versions", "runs", "executions"):
            server.execute(f"ALTER TABLE {table} SET TABLESPACE small", database)
        yield
    finally:
        (folder / "filler").unlink(missing_ok=True)
        if server._process is not None:
            server.stop("immediate")
        subprocess.run(["umount", "--lazy", str(folder)], env=ENVIRONMENT, check=True, capture_output=True)
