"""What is asked of the timetable in Redis beyond the contract: that nothing that happens to Redis, or to the way there,
costs more than lateness, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import rule, run_state_machine_as_test
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs
from tests.storage.conftest import redis_timetables
from tests.storage.test_timetable_contract import NOW, TimetableMachine, nodes
from tests.support.proxy import Proxy, RequestVerdict
from tests.support.redis import RedisSentinel, RedisServer, free_port, redis_server

from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid, TimetableAway
from zerocron.storage.timetable import scripts, wakeups
from zerocron.storage.timetable.breaker import PAUSE_SECONDS_MAX, Breaker
from zerocron.storage.timetable.connection import RedisClients, connect
from zerocron.storage.timetable.contract import HIDE_MS
from zerocron.storage.timetable.redis import BATCH, CALL_SECONDS_MAX, PATIENCE_MS, RedisTimetable
from zerocron.storage.timetable.scripts import Script

_prefixes = (f"faults-{number}" for number in count())
SOON_SECONDS = 5 * CALL_SECONDS_MAX
"""A deadline for what would otherwise wait for ever; how short a call is, its own bound sees to."""


@asynccontextmanager
async def opened(url: str, prefix: str = "", *, shards: int = 1) -> AsyncIterator[RedisTimetable]:
    timetable = await RedisTimetable.open(url, prefix=prefix or next(_prefixes), shards=shards)
    try:
        yield timetable
    finally:
        await timetable.close()


@asynccontextmanager
async def several(url: str, number: int) -> AsyncIterator[list[RedisTimetable]]:
    """So many nodes of one timetable."""
    prefix = next(_prefixes)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened(url, prefix)) for _ in range(number)]


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One that a test may hurt."""
    with RedisServer() as it:
        yield it


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """The way to the shared server."""
    async with Proxy(redis_server().host, redis_server().port) as it:
        yield it


def url_of(proxy: Proxy) -> str:
    return f"redis://{proxy.host}:{proxy.port}/0"


async def eventually(check: Callable[[], Awaitable[bool]], seconds: float = 40) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await SystemClock().sleep(0.02)


async def claimed(timetable: RedisTimetable, now: int = NOW, limit: int = 200) -> list[str]:
    return list((await timetable.claim(now, limit)).members)


async def works(timetable: RedisTimetable) -> bool:
    try:
        await timetable.claim(NOW - 1, 0)
    except TimetableAway:
        return False
    return True


async def fails(timetable: RedisTimetable) -> bool:
    return not await works(timetable)


@contextmanager
def asked(timetable: RedisTimetable) -> Iterator[list[str]]:
    """The names of the scripts that are tried meanwhile, answered or not."""
    run, names = timetable._clients.run, list[str]()

    async def noted(script: Script, keys: Sequence[str], words: Sequence[str | int]) -> Any:
        names.append(script.name)
        return await run(script, keys, words)

    timetable._clients.run = noted  # type: ignore[method-assign]
    try:
        yield names
    finally:
        timetable._clients.run = run  # type: ignore[method-assign]


async def is_away(timetable: RedisTimetable) -> None:
    """Every call ends, the first one with its time-out; during the breaker's pause no other asks at all. What need not
    raise does not."""
    async with asyncio.timeout(SOON_SECONDS):
        with pytest.raises(TimetableAway):
            await timetable.claim(NOW, 10)
    breaker = timetable._shards[0].breaker
    breaker._refuses_until += 3600  # the pause lasts as long as these calls, however busy the machine is
    with asked(timetable) as scripts_asked:
        await timetable.put({"j:t:away": NOW})
        await timetable.drop(["j:t:away"])
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: timetable.restore({"j:t:away": NOW}, now=NOW),
            lambda: timetable.lost(NOW),
            lambda: timetable.on_duty(5),
            timetable.size,
            timetable.clear,
        ]
        for call in calls:
            with pytest.raises(TimetableAway):
                await call()
    assert scripts_asked == []
    breaker._refuses_until -= 3600


# servers that are away, slow or unwilling


async def test_a_server_that_is_stopped_is_done_without_and_taken_up_again_by_itself(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        await timetable.put({"j:t:a": NOW})
        server.stop()
        with capture_logs() as logs:
            await is_away(timetable)
            await is_away(timetable)
        assert [log["event"] for log in logs if log["event"] == "redis_away"] == ["redis_away"]
        server.start()
        await eventually(lambda: works(timetable))
        await timetable.put({"j:t:b": NOW})
        assert await claimed(timetable) == ["j:t:b"], "it came back empty"


async def test_a_server_that_stands_still_costs_one_timeout(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        await timetable.put({"j:t:a": NOW})
        server.pause()
        await is_away(timetable)
        server.resume()
        await eventually(lambda: works(timetable))
        assert await claimed(timetable, NOW + HIDE_MS) == ["j:t:a"]


async def test_a_server_that_takes_two_seconds_is_as_good_as_away(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        proxy.delay_seconds = 2
        await is_away(timetable)
        proxy.delay_seconds = 0
        await eventually(lambda: works(timetable))


async def test_many_slow_answers_cost_no_more_than_one_timeout(server: RedisServer) -> None:
    """To select a database, to be told that the script is unknown, to send it: each alone would be quick enough."""
    async with Proxy(server.host, server.port) as proxy, opened(url_of(proxy).replace("/0", "/1")) as timetable:
        proxy.delay_seconds = 0.22
        await proxy.cut()
        async with asyncio.timeout(SOON_SECONDS):
            with pytest.raises(TimetableAway):
                await timetable.claim(NOW, 1)


async def test_a_cut_cable_costs_one_timeout(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        proxy.silent = True
        await is_away(timetable)
        proxy.silent = False
        await eventually(lambda: works(timetable))


async def test_a_way_that_refuses_connections_is_noticed_at_once(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        proxy.refuse = True
        await proxy.cut()
        with capture_logs() as logs, asked(timetable) as scripts_asked, pytest.raises(TimetableAway):
            await timetable.claim(NOW, 10)
        assert scripts_asked == ["claim"] * 2, "once more, and no third time"
        [away] = [log for log in logs if log["event"] == "redis_away"]
        assert away["error"] == "ConnectionError", "told by the refusal and not by a time-out"
        proxy.refuse = False
        await eventually(lambda: works(timetable))


async def test_a_broken_connection_alone_is_not_noticed(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        for _ in range(3):
            await timetable.put({"j:t:a": NOW})
            await proxy.cut()
            assert await claimed(timetable) == ["j:t:a"]


async def test_a_server_that_is_busy_with_a_script_is_done_without(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "busy-reply-threshold", "1")
    async with opened(server.url()) as timetable:
        with socket.create_connection((server.host, server.port)) as other:
            other.sendall(b'EVAL "while true do end" 0\r\n')
            await eventually(lambda: fails(timetable))  # once the script has begun
            async with asyncio.timeout(SOON_SECONDS):
                with pytest.raises(TimetableAway):
                    await timetable.claim(NOW, 10)
                await timetable.put({"j:t:a": NOW})
            server.command("SCRIPT", "KILL")
        await eventually(lambda: works(timetable))


async def test_a_replica_is_refused_and_costs_nobody_time(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        server.command("REPLICAOF", redis_server().host, redis_server().port)
        with capture_logs() as logs, asked(timetable) as scripts_asked:
            for _ in range(3):
                with pytest.raises(TimetableAway):
                    await timetable.restore({"j:t:a": NOW}, now=NOW)
                await timetable.put({"j:t:a": NOW})
        assert scripts_asked == ["restore", "put"] * 3, "a refusal is an answer: nobody waits, and no call is spared"
        server.command("REPLICAOF", "NO", "ONE")
        assert [log["event"] for log in logs] == ["redis_refused"] * 2, "once for each script"
        await timetable.put({"j:t:b": NOW})
        assert "j:t:b" in await claimed(timetable)


async def test_a_server_without_memory_still_gives_what_is_due(server: RedisServer) -> None:
    async with several(server.url(), 2) as (timetable, other):
        assert await timetable.lost(NOW)
        await timetable.put({f"j:t:{number}": NOW for number in range(150)})
        server.command("CONFIG", "SET", "maxmemory", "1")
        assert len(await claimed(timetable, limit=100)) == 100
        for _ in range(2):
            assert not await timetable.lost(NOW)
        assert await timetable.on_duty(5)
        assert not await other.on_duty(5)
        with capture_logs() as logs:
            for number in range(3):
                await timetable.put({f"j:t:next{number}": NOW})
            with pytest.raises(TimetableAway):
                await timetable.restore({"j:t:lost": NOW}, now=NOW)
        alarms = [(log["event"], log["script"]) for log in logs if log["log_level"] == "error"]
        assert alarms == [("redis_out_of_memory", "put"), ("redis_out_of_memory", "restore")], "once an outage"
        await timetable.drop(["j:t:0"])
        assert len(await claimed(timetable)) == 50
        server.command("CONFIG", "SET", "maxmemory", "0")
        await timetable.put({"j:t:again": NOW})
        assert await claimed(timetable) == ["j:t:again"]


async def test_opening_works_while_the_server_is_away(server: RedisServer) -> None:
    server.stop()
    with capture_logs() as logs:
        async with opened(server.url()) as timetable:
            assert "redis_not_inspected" in [log["event"] for log in logs]
            server.start()
            await eventually(lambda: works(timetable))
            await eventually(lambda: _returned(timetable._wakeups.subscribed.is_set()))


async def _returned(value: bool) -> bool:
    return value


async def test_opening_warns_about_a_server_that_evicts(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with capture_logs() as logs:
        async with opened(server.url()) as timetable:
            assert await timetable.eviction_policy() == "allkeys-lru"
    assert [(log["event"], log["policy"]) for log in logs] == [("redis_may_evict", "allkeys-lru")]


async def test_opening_warns_about_a_server_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    async def old(_clients: RedisClients) -> dict[str, str]:
        return {"redis_version": "6.0.16", "maxmemory_policy": "noeviction"}

    monkeypatch.setattr(RedisClients, "info", old)
    with capture_logs() as logs:
        async with opened(redis_server().url()):
            pass
    assert [(log["event"], log["version"]) for log in logs] == [("redis_too_old", "6.0.16")]


async def test_opening_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_clients: RedisClients) -> dict[str, str]:
        raise ZeroDivisionError

    monkeypatch.setattr(RedisClients, "info", broken)
    with pytest.raises(ZeroDivisionError):  # the task that listens is ended, or the check behind each test complains
        await RedisTimetable.open(redis_server().url())


async def test_a_server_that_is_away_has_no_policy_to_tell(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        server.stop()
        with pytest.raises(TimetableAway):
            await timetable.eviction_policy()


async def test_a_good_server_is_opened_without_a_word() -> None:
    with capture_logs() as logs:
        async with opened(redis_server().unix_url()) as timetable:
            assert await timetable.eviction_policy() == "noeviction"
    assert logs == []


async def test_what_redis_did_not_take_is_put_when_it_does_again(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        assert await timetable.lost(NOW)
        assert not await timetable.lost(NOW)
        server.command("CONFIG", "SET", "maxmemory", "1")
        await timetable.put({"j:t:a": NOW, "j:t:b": NOW, "j:t:c": NOW + 5})
        with pytest.raises(TimetableAway):
            await timetable.lost(NOW)
        await timetable.drop(["j:t:b"])
        server.command("CONFIG", "SET", "maxmemory", "0")
        await timetable.put({"j:t:c": NOW + 100_000})
        assert not await timetable.lost(NOW), "no member but these is missing"
        assert await claimed(timetable) == ["j:t:a"], "dropped and put again since: the others"
        assert await timetable.size() == 2


async def test_the_next_slot_of_what_was_claimed_is_put_although_the_claim_still_hides_it(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        assert await timetable.lost(NOW)
        await timetable.put({"j:t:a": NOW})
        assert await claimed(timetable) == ["j:t:a"]
        server.command("CONFIG", "SET", "maxmemory", "1")
        await timetable.put({"j:t:a": NOW + 500})
        server.command("CONFIG", "SET", "maxmemory", "0")
        assert not await timetable.lost(NOW + 600)
        assert await claimed(timetable, NOW + 600) == ["j:t:a"]


async def test_when_redis_did_not_take_more_than_is_remembered_all_is_to_be_restored(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zerocron.storage.timetable.redis.OWED_MAX", 2)
    async with opened(server.url()) as timetable:
        assert await timetable.lost(NOW)
        server.command("CONFIG", "SET", "maxmemory", "1")
        await timetable.put({f"j:t:{number}": NOW for number in range(3)})
        server.command("CONFIG", "SET", "maxmemory", "0")
        assert await timetable.lost(NOW)
        assert not await timetable.lost(NOW)


async def test_a_user_who_may_do_little_else_is_enough(server: RedisServer) -> None:
    prefix = next(_prefixes)
    rules = ["on", ">secret", f"~{prefix}:*", "resetchannels", "+@all", "-@admin", "-@dangerous", "-info"]
    server.command("ACL", "SETUSER", "zerocron", *rules)
    url = f"redis://zerocron:secret@{server.host}:{server.port}/0"
    async with opened(url, prefix) as timetable:
        await timetable.put({"j:t:a": NOW})
        assert timetable.earlier.is_set()
        assert await claimed(timetable) == ["j:t:a"]
        assert await timetable.lost(NOW)
        assert await timetable.on_duty(5)
        assert await timetable.eviction_policy() == ""


# answers that are lost


def cut_after_once(script: Script, times: int = 1) -> Callable[[bytes], RequestVerdict]:
    left = [times]

    def judge(chunk: bytes) -> RequestVerdict:
        if script.sha.encode() in chunk and left[0]:
            left[0] -= 1
            return "cut_after"
        return "pass"

    return judge


async def test_a_claim_whose_answer_is_lost_gives_the_same_members_when_repeated(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        due = {f"j:{number % 3}:{number}": NOW - number for number in range(30)}
        await timetable.put(due)
        await claimed(timetable, NOW - 100)  # the script is known
        proxy.on_request = cut_after_once(scripts.CLAIM)
        first = await claimed(timetable, limit=12)
        assert len(first) == 12
        assert len(await claimed(timetable)) == 18, "none is stranded"
        assert await claimed(timetable) == []


async def test_a_claim_that_was_given_up_is_taken_back_by_the_next(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        await timetable.put({"j:t:a": NOW - 5, "j:t:b": NOW - 4, "j:t:c": NOW - 3, "j:t:d": NOW - 2})
        await claimed(timetable, NOW - 100)
        proxy.on_request = cut_after_once(scripts.CLAIM, times=2)
        with pytest.raises(TimetableAway):
            await timetable.claim(NOW, 4)
        async with opened(url_of(proxy), timetable_prefix(timetable)) as other:
            assert await claimed(other) == [], "the claim was made, only its answer was lost"
            await other.put({"j:t:b": NOW + 50})
            await other.drop(["j:t:c"])
        await eventually(lambda: works(timetable))
        assert await claimed(timetable, limit=1) == ["j:t:a"]
        assert await claimed(timetable) == ["j:t:d"], "what was put or dropped since stays as it is"
        assert await claimed(timetable, NOW + 50) == ["j:t:b"]


def timetable_prefix(timetable: RedisTimetable) -> str:
    return timetable._shards[0].lanes.partition(":")[0]


async def test_a_claim_that_arrives_after_a_younger_one_does_nothing() -> None:
    async with opened(redis_server().url()) as timetable:
        await timetable.put({"j:t:a": NOW, "j:t:b": NOW})
        assert await claimed(timetable, limit=1) == ["j:t:a"]
        timetable._numbers = count(1)  # as a request that was given up and lay in a buffer
        assert await claimed(timetable) == []
        timetable._numbers = count(10)
        assert await claimed(timetable) == ["j:t:b"]
        timetable._numbers, timetable._shards[0].claim_answered = count(5), 2  # the younger one was not heard either
        assert await claimed(timetable) == []
        timetable._numbers, timetable._shards[0].claim_answered = count(11), 2
        assert await claimed(timetable) == ["j:t:b"]


async def test_a_claim_that_arrives_after_a_younger_one_that_found_nothing_does_nothing() -> None:
    async with opened(redis_server().url()) as timetable:
        assert await timetable.lost(NOW)
        timetable._numbers = count(10)
        assert await claimed(timetable) == []
        await timetable.put({"j:t:a": NOW})
        timetable._numbers = count(5)  # as a request that was given up and lay in a buffer
        assert await claimed(timetable) == []
        timetable._numbers = count(11)
        assert await claimed(timetable) == ["j:t:a"]


async def test_a_claim_that_was_not_heard_is_taken_back_although_the_next_was_overtaken() -> None:
    async with opened(redis_server().url()) as timetable:
        assert await timetable.lost(NOW)
        await timetable.put({"j:t:a": NOW})
        timetable._numbers = count(5)
        assert await claimed(timetable) == ["j:t:a"]
        timetable._shards[0].claim_answered = 2  # its answer was lost
        timetable._numbers = count(7)
        assert not await timetable.lost(NOW)
        timetable._numbers = count(6)  # the repetition, which `lost` overtook
        first = await claimed(timetable)
        timetable._numbers = count(8)
        assert first + await claimed(timetable) == ["j:t:a"]


@pytest.mark.parametrize("script", [scripts.PUT, scripts.RESTORE, scripts.DROP, scripts.DUTY], ids=lambda it: it.name)
async def test_other_calls_may_be_repeated(proxy: Proxy, script: Script) -> None:
    async with opened(url_of(proxy)) as timetable:
        for verdict in (None, cut_after_once(script)):
            if verdict:
                proxy.on_request = verdict
            await timetable.put({"j:t:a": NOW, "j:t:b": NOW})
            await timetable.restore({"j:t:c": NOW}, now=NOW)
            await timetable.drop(["j:t:b"])
            assert await timetable.on_duty(5)
            assert await timetable.size() == 2


async def test_scripts_that_were_flushed_are_sent_again(server: RedisServer) -> None:
    async with opened(server.url()) as timetable:
        for _ in range(2):
            await timetable.put({"j:t:a": NOW})
            assert await timetable.restore({"j:t:b": NOW}, now=NOW) == 1
            assert sorted(await claimed(timetable)) == ["j:t:a", "j:t:b"]
            await timetable.drop(["j:t:a", "j:t:b"])
            assert await timetable.size() == 0
            await timetable.lost(NOW)
            await timetable.on_duty(5)
            await timetable.clear()
            server.command("SCRIPT", "FLUSH")


class MachineWithLostAnswers(TimetableMachine):
    """The same promises when a node does not hear what became of its claim: at the next one it finds the members."""

    make = staticmethod(redis_timetables)

    def __init__(self) -> None:
        super().__init__()
        self.unheard: dict[int, dict[str, tuple[int, int]]] = {}  # node -> member -> due before, hidden until

    def _lose(self, node: int, answers: int) -> list[list[str]]:
        """Let the next answers to that node's claims be lost; gives the list that they will be kept in."""
        timetable = self.nodes[node]
        assert isinstance(timetable, RedisTimetable)
        timetable._shards[0].breaker = Breaker(SystemClock().monotonic)
        run, kept = timetable._clients.run, list[list[str]]()

        async def unheard(script: Script, keys: Sequence[str], words: Sequence[str | int]) -> Any:
            answer = await run(script, keys, words)
            kept.append(answer[1:])
            if len(kept) == answers:
                timetable._clients.run = run  # type: ignore[method-assign]
            raise RedisConnectionError

        timetable._clients.run = unheard  # type: ignore[method-assign]
        return kept

    def _hear(self, node: int) -> None:
        for member, (due, hidden_until) in self.unheard.pop(node, {}).items():
            if self.model.get(member) == hidden_until:  # one put for that very instant comes early, and does no harm
                self.model[member] = due
                self.hidden.pop(member, None)

    def claim(self, node: int, limit: int, hide_ms: int, without: set[str]) -> None:
        self._hear(node)
        super().claim(node, limit, hide_ms, without)

    @rule(node=nodes)
    def claim_and_hear_it_the_second_time(self, node: int) -> None:
        self._hear(node)
        self._lose(node, 1)
        super().claim(node, 3, HIDE_MS, set())

    @rule(node=nodes)
    def claim_and_never_hear(self, node: int) -> None:
        self._hear(node)
        kept = self._lose(node, 2)
        with pytest.raises(TimetableAway):
            self.do(self.nodes[node].claim(self.now, 3))
        assert kept[0] == kept[1], "the repetition finds the same"
        timetable = self.nodes[node]
        assert isinstance(timetable, RedisTimetable)
        timetable._shards[0].breaker = Breaker(SystemClock().monotonic)
        until = self.now + HIDE_MS
        self._check_shares(kept[1], 3, set())
        self.unheard[node] = {member: (self.model[member], until) for member in kept[1]}
        for member in kept[1]:
            self.model[member] = self.hidden[member] = until


def test_lost_answers_change_nothing() -> None:
    run_state_machine_as_test(
        MachineWithLostAnswers, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )


# an index that is lost


async def told(timetables: Sequence[RedisTimetable], now: int = NOW) -> list[int]:
    """Which nodes are told, when all ask at once."""
    answers = await asyncio.gather(*(timetable.lost(now) for timetable in timetables))
    return [number for number, answer in enumerate(answers) if answer]


async def settled(timetables: Sequence[RedisTimetable]) -> None:
    """A new index: somebody is told, and confirms."""
    assert len(await told(timetables)) == 1
    assert await told(timetables) == []


async def test_one_node_is_told_that_a_new_index_is_empty() -> None:
    async with several(redis_server().url(), 3) as timetables:
        await settled(timetables)
        assert await told(timetables, NOW + 10 * PATIENCE_MS) == []


async def test_an_erased_index_is_told_to_one_node_each_time(server: RedisServer) -> None:
    async with several(server.url(), 3) as timetables:
        await settled(timetables)
        for step in range(1, 4):
            server.command("FLUSHALL")
            assert len(await told(timetables, NOW + step)) == 1
            assert await told(timetables, NOW + step) == []


async def test_nodes_that_ask_at_different_times_learn_that_another_was_told(server: RedisServer) -> None:
    async with several(server.url(), 3) as (first, second, third):
        await settled([first, second, third])
        server.command("FLUSHALL")
        assert await second.lost(NOW + 2_000)
        assert not await first.lost(NOW + 3_000)
        assert not await second.lost(NOW + 4_000)
        assert not await third.lost(NOW + 60_000)


async def test_who_does_not_come_back_from_restoring_is_replaced(server: RedisServer) -> None:
    async with several(server.url(), 3) as (first, second, third):
        assert await first.lost(NOW)
        assert not await second.lost(NOW + PATIENCE_MS - 1)
        assert await second.lost(NOW + PATIENCE_MS)
        assert not await third.lost(NOW + PATIENCE_MS + 1)
        assert not await second.lost(NOW + PATIENCE_MS + 2)
        assert not await third.lost(NOW + 10 * PATIENCE_MS)


async def test_who_was_told_and_did_not_hear_it_is_told_again(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        proxy.on_answer = lambda chunk: "cut" if chunk.startswith(b"*2\r\n:") else "pass"
        with pytest.raises(TimetableAway):
            await timetable.lost(NOW)
        proxy.on_answer = lambda _chunk: "pass"
        await eventually(lambda: works(timetable))
        assert await timetable.lost(NOW + 1)
        assert not await timetable.lost(NOW + 2)


async def test_a_restart_from_an_old_copy_is_told_to_one_node(server: RedisServer, tmp_path: Path) -> None:
    async with several(server.url(), 3) as timetables:
        await settled(timetables)
        server.save_to(tmp_path / "old.rdb")
        assert await told(timetables, NOW + 3_600_000) == []
        server.restart(rdb=tmp_path / "old.rdb")
        # Who does not see it, because it claims first, must not hide it from the others.
        for timetable in timetables:
            await eventually(lambda timetable=timetable: works(timetable))  # type: ignore[misc]
        assert len(await told(timetables, NOW + 3_601_000)) == 1
        assert await told(timetables, NOW + 3_602_000) == []


async def test_a_copy_from_an_earlier_life_of_the_index_is_told_to_one_node(
    server: RedisServer, tmp_path: Path
) -> None:
    async with several(server.url(), 3) as timetables:
        await settled(timetables)
        server.save_to(tmp_path / "old.rdb")
        server.command("FLUSHALL")
        assert len(await told(timetables, NOW + 1_000)) == 1
        assert await told(timetables, NOW + 2_000) == []
        server.restart(rdb=tmp_path / "old.rdb")
        for timetable in timetables:
            await eventually(lambda timetable=timetable: works(timetable))  # type: ignore[misc]
        assert len(await told(timetables, NOW + 3_000)) == 1
        assert await told(timetables, NOW + 4_000) == []


async def test_a_copy_from_before_a_node_came_is_seen_by_it(server: RedisServer, tmp_path: Path) -> None:
    async with opened(server.url(), "p") as first, opened(server.url(), "p") as second:
        await settled([first])
        server.save_to(tmp_path / "old.rdb")
        assert not await second.lost(NOW)
        server.restart(rdb=tmp_path / "old.rdb")
        await eventually(lambda: works(second))
        assert await second.lost(NOW + 1_000)
        await eventually(lambda: works(first))
        assert not await first.lost(NOW + 2_000)


async def test_a_fail_over_to_a_replica_that_lagged_is_told_to_one_node(server: RedisServer) -> None:
    async with Proxy(server.host, server.port) as proxy, several(url_of(proxy), 2) as timetables:
        with RedisServer() as replica:
            await settled(timetables)
            replica.replicate(server)
            replica.command("REPLICAOF", "NO", "ONE")
            assert await told(timetables, NOW + 1_000) == []
            proxy.target = (replica.host, replica.port)
            await proxy.cut()
            assert len(await told(timetables, NOW + 2_000)) == 1
            assert await told(timetables, NOW + 3_000) == []


async def test_a_replica_that_missed_only_a_claim_is_seen_as_well(server: RedisServer) -> None:
    async with Proxy(server.host, server.port) as proxy, opened(url_of(proxy)) as timetable:
        with RedisServer() as replica:
            await settled([timetable])
            replica.replicate(server)
            replica.command("REPLICAOF", "NO", "ONE")
            await timetable.claim(NOW, 10)
            proxy.target = (replica.host, replica.port)
            await proxy.cut()
            await timetable.claim(NOW, 10)
            assert await timetable.lost(NOW + 2_000)


async def test_a_fail_over_to_a_replica_that_has_everything_is_not_noticed(server: RedisServer) -> None:
    async with Proxy(server.host, server.port) as proxy, several(url_of(proxy), 2) as timetables:
        with RedisServer() as replica:
            await settled(timetables)
            await timetables[0].put({"j:t:a": NOW})
            replica.replicate(server)
            replica.command("REPLICAOF", "NO", "ONE")
            proxy.target = (replica.host, replica.port)
            await proxy.cut()
            assert await told(timetables, NOW + 1_000) == []
            assert await claimed(timetables[1]) == ["j:t:a"]


# keys of another type


async def test_a_lane_of_another_type_goes_and_stops_no_other() -> None:
    async with opened(redis_server().url()) as timetable:
        bad = timetable._shards[0].lanes.removesuffix("lanes") + "lane:bad"
        await timetable.put({"j:bad:a": NOW - 1, "j:good:a": NOW})
        redis_server().command("SET", bad, "garbage")
        assert await timetable.size() == 1
        assert await claimed(timetable) == ["j:good:a"]
        assert redis_server().command("EXISTS", bad) == 0
        for call in ("put", "restore", "drop"):
            redis_server().command("SET", bad, "garbage")
            if call == "put":
                await timetable.put({"j:bad:a": NOW, "j:good:a": NOW})
            elif call == "restore":
                assert await timetable.restore({"j:bad:a": NOW, "j:good:b": NOW}, now=NOW) == 2
            else:
                await timetable.drop(["j:bad:a", "j:good:a"])
            assert redis_server().command("TYPE", bad) == ("none" if call == "drop" else "zset")


@pytest.mark.parametrize("key", ["lanes", "epoch", "duty"])
async def test_a_list_of_lanes_of_another_type_is_an_index_that_is_away_until_it_is_cleared(key: str) -> None:
    async with opened(redis_server().url()) as timetable:
        redis_server().command("RPUSH", getattr(timetable._shards[0], key), "garbage")
        assert await timetable.on_duty(5)
        if key == "lanes":
            with pytest.raises(TimetableAway):
                await timetable.claim(NOW, 1)
            await timetable.put({"j:t:a": NOW})
        assert await timetable.lost(NOW)
        await timetable.clear()
        await timetable.put({"j:t:a": NOW})
        assert await claimed(timetable) == ["j:t:a"]


async def test_a_lane_that_is_listed_wrongly_is_listed_rightly_by_the_next_call_for_it() -> None:
    async with opened(redis_server().url()) as timetable:
        lanes = timetable._shards[0].lanes
        await timetable.put({"j:t:a": NOW, "j:t:b": NOW + 20})
        redis_server().command("ZADD", lanes, NOW - 50, "t", NOW - 60, "gone")
        claim = await timetable.claim(NOW - 1, 10)
        assert (list(claim.members), claim.next_due) == ([], NOW)
        redis_server().command("DEL", lanes)  # as an eviction may do
        assert await claimed(timetable) == []
        assert await timetable.restore({"j:t:a": NOW, "j:t:b": NOW + 20}, now=NOW) == 0, "they are there"
        assert await claimed(timetable) == ["j:t:a"]


async def test_no_key_is_left_behind_by_a_node_for_ever() -> None:
    async with opened(redis_server().url()) as timetable:
        await timetable.lost(NOW)
        await timetable.put({"j:t:a": NOW})
        await timetable.claim(NOW, 1)
        await timetable.on_duty(5)
        tag = timetable._shards[0].lanes.removesuffix("lanes")
        for_ever = {key for key in redis_server().command("KEYS", tag + "*") if redis_server().command("PTTL", key) < 0}
        assert for_ever == {tag + "lanes", tag + "lane:t", tag + "epoch"}


# shards, and clusters


async def test_two_shards_are_one_timetable() -> None:
    async with opened(redis_server().url(), shards=2) as timetable:
        due = {f"j:{number % 5}:{number}": NOW - number for number in range(700)}
        await timetable.put(due)
        sizes = [redis_server().command("ZCARD", f"{s.lanes.removesuffix('lanes')}lane:0") for s in timetable._shards]
        assert min(sizes) > 20
        assert await timetable.size() == 700
        assert await timetable.restore(due, now=NOW) == 0
        seen: list[str] = []
        while members := await claimed(timetable):
            assert len(members) <= 200
            seen += members
        assert sorted(seen) == sorted(due)
        assert (await timetable.claim(NOW, 10)).next_due == NOW + HIDE_MS
        await timetable.drop(due)
        assert await timetable.size() == 0
        assert await timetable.lost(NOW)
        assert not await timetable.lost(NOW)
        await timetable.put(due)
        await timetable.clear()
        assert await timetable.size() == 0


async def test_claims_begin_with_another_shard_each_time() -> None:
    async with opened(redis_server().url(), shards=2) as timetable:
        await timetable.put({f"j:t:{number}": NOW for number in range(40)})
        shards = [timetable._shard_of((await claimed(timetable, limit=1))[0]) for _ in range(4)]
        assert shards in ([0, 1, 0, 1], [1, 0, 1, 0])


async def test_a_shard_that_is_away_costs_its_own_members_only() -> None:
    async with opened(redis_server().url(), shards=2) as timetable:
        due = {f"j:t:{number}": NOW for number in range(40)}
        await timetable.put(due)
        timetable._shards[1].breaker.failed()
        members = await claimed(timetable)
        assert set(members) == {member for member in due if timetable._shard_of(member) == 0}
        timetable._shards[1].breaker.failed()
        with pytest.raises(TimetableAway):
            await timetable.claim(NOW, 10)
        timetable._shards[1].breaker.failed()
        assert await timetable.lost(NOW), "what the other shard tells is not forgotten"


async def test_a_great_number_of_members_is_put_in_bounded_batches() -> None:
    async with opened(redis_server().url()) as timetable:
        due = {f"j:{number % 3}:{number}": NOW for number in range(2 * BATCH + 1)}
        sent: list[int] = []
        run = timetable._clients.run

        async def counted(script: Script, keys: Sequence[str], words: Sequence[str | int]) -> Any:
            sent.append(sum(str(word) in due for word in words))
            return await run(script, keys, words)

        timetable._clients.run = counted  # type: ignore[method-assign]
        await timetable.put(due)
        assert sent == [BATCH, BATCH, 1]


async def test_a_redis_cluster_holds_it() -> None:
    with RedisServer() as cluster:
        cluster.stop()
        cluster.start(cluster_enabled="yes", cluster_port=free_port())
        cluster.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        cluster.command("CLUSTER", "SET-CONFIG-EPOCH", 1)

        async def has_formed() -> bool:
            return "cluster_state:ok" in str(cluster.command("CLUSTER", "INFO"))

        await eventually(has_formed)
        async with AsyncExitStack() as stack:
            url = f"redis+cluster://{cluster.host}:{cluster.port}"
            here, there = [await stack.enter_async_context(opened(url, "c", shards=3)) for _ in range(2)]
            due = {f"j:{number % 5}:{number}": NOW - number for number in range(100)}
            await here.put(due)
            await asyncio.wait_for(there.earlier.wait(), 5)
            assert sorted(await claimed(there)) == sorted(due)
            assert await here.lost(NOW)
            assert not await there.lost(NOW)
            assert await here.on_duty(5)
            assert not await there.on_duty(5)
            await here.drop(due)
            assert await there.size() == 0
            cluster.kill()
            await is_away(here)


async def test_sentinels_lead_to_the_master_and_after_a_fail_over_to_the_next(server: RedisServer) -> None:
    with RedisServer() as replica:
        replica.replicate(server)
        with RedisSentinel(server) as sentinel:
            # The first of the two is not there.
            url = f"redis+sentinel://{sentinel.host}:{free_port()},{sentinel.host}:{sentinel.port}/mymaster/0"
            async with opened(url) as timetable:
                await settled([timetable])
                await timetable.put({"j:t:a": NOW})
                await eventually(lambda: _returned(bool(replica.command("KEYS", "*:lane:t"))))
                await eventually(lambda: _returned(sentinel.command("SENTINEL", "REPLICAS", "mymaster") != []))
                server.kill()
                await eventually(lambda: works(timetable), seconds=30)
                assert await claimed(timetable) == ["j:t:a"]


# being woken


async def test_a_node_is_woken_again_after_its_connection_was_cut(proxy: Proxy) -> None:
    async with opened(redis_server().url()) as here, opened(url_of(proxy), timetable_prefix(here)) as there:
        there._wakeups.subscribed.clear()
        await proxy.cut()
        await asyncio.wait_for(there.earlier.wait(), 5)  # what was put meanwhile was not heard
        await asyncio.wait_for(there._wakeups.subscribed.wait(), 5)
        there.earlier.clear()
        await here.put({"j:t:a": NOW})
        await asyncio.wait_for(there.earlier.wait(), 5)


async def test_a_line_on_which_nobody_answers_is_given_up(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "SILENCE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(wakeups, "ANSWER_SECONDS_MAX", 0.3)
    async with opened(redis_server().url()) as here, opened(url_of(proxy), timetable_prefix(here)) as there:
        asked = 0

        def count_pings(chunk: bytes) -> RequestVerdict:
            nonlocal asked
            asked += b"PING" in chunk
            return "pass"

        proxy.on_request = count_pings
        await eventually(lambda: _returned(asked > 3))
        assert there._wakeups.subscribed.is_set(), "a line that is only quiet is kept"
        proxy.silent = True
        await eventually(lambda: _returned(not there._wakeups.subscribed.is_set()))
        proxy.silent = False
        await asyncio.wait_for(there._wakeups.subscribed.wait(), 10)
        await asyncio.wait_for(there.earlier.wait(), 5)
        there.earlier.clear()
        await here.put({"j:t:a": NOW})
        await asyncio.wait_for(there.earlier.wait(), 5)


async def test_a_server_that_does_not_confirm_is_asked_again(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "ANSWER_SECONDS_MAX", 0.05)
    ignored = 0

    def ignore_twice(chunk: bytes) -> RequestVerdict:
        nonlocal ignored
        if b"SUBSCRIBE" in chunk and ignored < 2:
            ignored += 1
            return "drop"
        return "pass"

    proxy.on_request = ignore_twice
    async with opened(url_of(proxy)) as timetable:
        await asyncio.wait_for(timetable._wakeups.subscribed.wait(), 10)
        assert ignored == 2


async def test_a_node_is_not_woken_by_its_own_message() -> None:
    async with opened(redis_server().url()) as here, opened(redis_server().url(), timetable_prefix(here)) as there:
        woken: list[None] = []
        heard: list[object] = []
        listen = here._wakeups._next

        async def overhear(pubsub: PubSub, seconds: float) -> dict[str, object] | None:
            message = await listen(pubsub, seconds)
            heard.append(message and message["data"])
            return message

        here._wakeups._wake = lambda: woken.append(None)
        here._wakeups._next = overhear  # type: ignore[method-assign]
        await here.put({"j:t:a": NOW})
        await there.put({"j:t:b": NOW - 10})  # messages come in the order in which they were sent
        await eventually(lambda: _returned(there._claimer in heard))
        assert len(woken) == 1


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis",
        "http://host",
        "redis://",
        "redis://:secret@host:port/0",
        "redis://:secret@host:99999/0",
        "redis://:secret@host/zero",
        "redis://:secret@host/0?retry=5",
        "redis://:secret@host/0?db=x",
        "unix://",
        "redis+sentinel://:secret@host:26379",
        "redis+sentinel://:secret@/mymaster/0",
        "redis+sentinel://:secret@host/mymaster/x",
        "redis+cluster://:secret@host/1",
        "redis+cluster://",
        "unix+sentinel://host/name",
        "redis+magic://:secret@host",
    ],
)
def test_a_url_that_makes_no_sense_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(Invalid) as refusal:
        connect(url)
    assert "secret" not in refusal.value.message
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "redis://host",
        "redis://user:p%40ss@host:6380/3",
        "redis://[::1]:6380",
        "rediss://:secret@host/0?ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=2",
        "redis+sentinel://one:26379,two,[::1]:26380/mymaster/0",
        "rediss+sentinel://user:secret@one/mymaster",
        "redis+cluster://:secret@one:7000,two",
        "rediss+cluster://one:7000",
    ],
)
async def test_a_url_of_each_kind_is_accepted(url: str) -> None:
    await connect(url).aclose()


@pytest.mark.parametrize(("prefix", "shards"), [("", 1), ("a{b}", 1), ("a", 0), ("a", 65)])
async def test_a_prefix_or_a_number_that_makes_no_sense_is_refused(prefix: str, shards: int) -> None:
    with pytest.raises(Invalid):
        await RedisTimetable.open(redis_server().url(), prefix=prefix, shards=shards)


# the breaker


def test_the_breaker_pauses_for_longer_each_time_and_lets_one_call_try() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    assert breaker.admits()
    assert breaker.admits()
    breaker.failed()
    breaker.failed()  # the other one that was under way counts for nothing
    for pause in (0.2, 0.4, 0.8, 1.6, PAUSE_SECONDS_MAX, PAUSE_SECONDS_MAX):
        now[0] += pause - 0.01
        assert not breaker.admits()
        now[0] += 0.02
        assert breaker.admits()
        assert not breaker.admits(), "one at a time"
        breaker.failed()
    now[0] += PAUSE_SECONDS_MAX
    assert breaker.admits()
    breaker.abandoned()
    assert breaker.admits()
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.admits()
    breaker.failed()
    now[0] += 0.21
    assert breaker.admits(), "a new outage begins with a short pause"


async def test_a_call_that_its_caller_gives_up_says_nothing_about_the_server(proxy: Proxy) -> None:
    async with opened(url_of(proxy)) as timetable:
        await timetable.put({"j:t:a": NOW})
        proxy.silent = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await timetable.claim(NOW, 1)
        proxy.silent = False
        assert await claimed(timetable, NOW) == ["j:t:a"]
