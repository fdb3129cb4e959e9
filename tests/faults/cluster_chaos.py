"""A seeded random journey of a cluster: every fault of the catalogue that random can hit, while people use the API.

The same seed makes the same faults one after the other, or two at once; when they take effect depends on the machine.
`test_cluster_random.py` plays a short one, `python -m tests.faults.cluster_long` many.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import asyncpg
from tests.faults.chaos import STOP_POINTS, Traffic
from tests.faults.cluster import Cluster, ClusterNode
from tests.faults.world import moment, until
from tests.support.proxy import Proxy, RequestVerdict

Fault = Callable[[str, random.Random], Awaitable[None]]

TOGETHER = 0.3
"""How often a second fault begins before the first is over."""


class ClusterChaos(Traffic):
    """One journey over a cluster whose PostgreSQL is its own."""

    def __init__(self, cluster: Cluster, seed: int, *, nodes: int = 3, jobs: int = 15) -> None:
        super().__init__(cluster, seed, jobs=jobs)
        self.cluster = cluster
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.injected: Counter[str] = Counter()
        self.seed = seed
        self.plan = random.Random(f"faults {seed}")  # which; each fault draws its own details
        self.planned = 0
        self._busy: set[str] = set()  # nodes and servers that something is being done to

    async def play(self, seconds: float) -> None:
        """Faults and calls for so long, then a cluster that is left alone."""
        cluster = self.cluster
        await cluster.start(*self.names)
        for _ in range(self.size):
            await self.create()
        end = cluster.now_ms() + seconds * 1000
        people = asyncio.create_task(self._people())
        try:
            while cluster.now_ms() < end:
                await moment(self.plan.uniform(0.2, 1.5))
                faults = [self._next_fault()]
                if self.plan.random() < TOGETHER:
                    faults.append(self._next_fault())
                await asyncio.gather(*faults)
        finally:
            people.cancel()
            await asyncio.gather(people, return_exceptions=True)
        await self._heal()

    async def _heal(self) -> None:
        cluster = self.cluster
        for name in self.names:
            await self._revive(cluster[name])
        self.healthy = True  # or a backlog of `catchup: all` would take minutes
        await moment(2.5)
        await until(lambda: not cluster.behind() and not cluster.unsettled(), "being settled", 90, every=0.2)

    async def _people(self) -> None:
        while True:
            await moment(self.behave.uniform(0.1, 0.6))
            # A call whose record could not be finished stays an unclear one.
            with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                await self.behave.choice(self.verbs)()

    async def _next_fault(self) -> None:
        name, (where, fault) = self.plan.choice(list(self._faults().items()))
        place = where or self.plan.choice(self.names)
        self.planned += 1
        pick = random.Random(f"fault {self.planned} of {self.seed}")
        if place in self._busy:
            return
        self._busy.add(place)
        self.injected[name] += 1
        try:
            await fault(place, pick)
        finally:
            self._busy.discard(place)

    def _faults(self) -> dict[str, tuple[str, Fault]]:
        """By name, as they are counted: where (empty: at one of the nodes), and what."""
        return {
            "node killed": ("", self.kill),
            "node killed at a step": ("", self.die_at_a_step),
            "node stopped": ("", self.terminate),
            "node paused": ("", self.pause_it),
            "node cut off from PostgreSQL": ("", self.cut_pg),
            "node cut off from Redis": ("", self.cut_redis),
            "Redis killed, back empty": ("redis", self.redis_restart),
            "Redis flushed": ("redis", self.redis_flush),
            "Redis stands still": ("redis", self.redis_pause),
            "Redis out of memory": ("redis", self.redis_full),
            "Redis slow": ("redis", self.redis_slow),
            "PostgreSQL restarted or away": ("pg", self.pg_restart),
            "backends terminated": ("pg", self.pg_backends),
            "PostgreSQL slow": ("pg", self.pg_slow),
            "connections cut around COMMIT": ("pg", self.pg_commits),
        }

    # --- of one node

    async def kill(self, name: str, pick: random.Random) -> None:
        node = self.cluster[name]
        if node.is_up():
            await node.kill()
        await moment(pick.uniform(0, 2))
        await self._revive(node)

    async def die_at_a_step(self, name: str, pick: random.Random) -> None:
        """Stop it, and start one that is to die at a step of a run's life."""
        node = self.cluster[name]
        if node.is_up():
            await self._stop(node)
        where = f"{pick.choice(STOP_POINTS)}:{pick.randint(1, 6)}"
        await self._start(node, stop_at=where)
        with contextlib.suppress(AssertionError):
            await until(lambda: not node.is_up(), "its death", 10, every=0.1)
        await self._revive(node)

    async def terminate(self, name: str, _pick: random.Random) -> None:
        node = self.cluster[name]
        if node.is_up():
            await self._stop(node)
        await self._start(node)

    async def pause_it(self, name: str, pick: random.Random) -> None:
        node = self.cluster[name]
        if not node.is_up():
            return
        go_on = node.freeze()
        await moment(self._silence(pick))
        go_on()

    async def cut_pg(self, name: str, pick: random.Random) -> None:
        async with self.cluster[name].cut(kind="cut_pg", silent=pick.random() < 0.5):
            await moment(self._silence(pick))

    async def cut_redis(self, name: str, pick: random.Random) -> None:
        async with self.cluster[name].cut(kind="cut_redis", silent=pick.random() < 0.5):
            await moment(pick.uniform(0.5, 6))

    def _silence(self, pick: random.Random) -> float:
        """Much shorter than a session is valid, or much longer: what is in between may end either way."""
        validity = self.cluster.validity_ms / 1000
        return validity * pick.choice((pick.uniform(0.05, 0.35), 1.6))

    async def _stop(self, node: ClusterNode) -> None:
        # A stop may be forced: with PostgreSQL away there is nobody to tell.
        code = await node.stop(60, kind="forced_stop")
        if code != 0:
            node.died_meanwhile()

    async def _start(self, node: ClusterNode, stop_at: str | None = None) -> None:
        """Again, until it has found PostgreSQL."""
        while True:
            try:
                await node.start(stop_at=stop_at)
            except AssertionError:
                assert node.process is None or node.process.poll() is not None, f"{node.name} hangs at its start"
                node.process = None
                await moment(0.5)
            else:
                return

    async def _revive(self, node: ClusterNode) -> None:
        if node.is_up():
            return
        if node.process is not None:
            await node.died()
        await self._start(node)

    # --- of Redis

    async def redis_restart(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("redis"):
            self.cluster.redis.kill()
            await moment(pick.uniform(0, 4))
            await asyncio.to_thread(self.cluster.redis.start)

    async def redis_flush(self, _place: str, _pick: random.Random) -> None:
        with self.cluster.fault("redis"):
            self.cluster.redis.command("FLUSHALL")
            self.cluster.redis.command("SCRIPT", "FLUSH")

    async def redis_pause(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("redis"):
            self.cluster.redis.pause()
            await moment(pick.uniform(0.5, 5))
            self.cluster.redis.resume()

    async def redis_full(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("redis"):
            policy = pick.choice(("noeviction", "allkeys-lru"))
            self.cluster.redis.command("CONFIG", "SET", "maxmemory-policy", policy)
            self.cluster.redis.command("CONFIG", "SET", "maxmemory", 1)
            await moment(pick.uniform(1, 5))
            self.cluster.redis.command("CONFIG", "SET", "maxmemory", 0)

    async def redis_slow(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("redis"):
            await self._delayed([node.redis for node in self.cluster.nodes.values()], pick)

    async def _delayed(self, links: list[Proxy], pick: random.Random) -> None:
        seconds = pick.uniform(0.05, 1)
        for link in links:
            link.delay_seconds = seconds
        await moment(pick.uniform(1, 4))
        for link in links:
            link.delay_seconds = 0.0

    # --- of PostgreSQL

    async def pg_restart(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("pg"):
            await asyncio.to_thread(self.cluster.postgres.stop, pick.choice(("fast", "immediate")))
            await moment(pick.choice((0.0, 1.0, self.cluster.validity_ms * 1.4 / 1000)))
            await asyncio.to_thread(self.cluster.postgres.start)

    async def pg_backends(self, _place: str, _pick: random.Random) -> None:
        query = (
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3) AS few"
        )
        with self.cluster.fault("pg_slow"):
            for _ in range(5):
                self.cluster.rows(query)
                await moment(0.2)

    async def pg_slow(self, _place: str, pick: random.Random) -> None:
        with self.cluster.fault("pg_slow"):
            await self._delayed([node.pg for node in self.cluster.nodes.values()], pick)

    async def pg_commits(self, _place: str, pick: random.Random) -> None:
        """Connections go before or after PostgreSQL has read COMMIT."""

        def on_request(chunk: bytes) -> RequestVerdict:
            if b"COMMIT" not in chunk or pick.random() > 0.1:
                return "pass"
            return "cut" if pick.random() < 0.5 else "cut_after"

        with self.cluster.fault("pg_slow"):
            for node in self.cluster.nodes.values():
                node.pg.on_request = on_request
            await moment(pick.uniform(1, 4))
            for node in self.cluster.nodes.values():
                node.pg.on_request = lambda _chunk: "pass"
