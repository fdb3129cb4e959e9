"""A fault run of a cluster: nodes as real processes over a PostgreSQL and a Redis of their own.

Every node reaches both through a proxy of its own, so that any link can be cut, slowed or made to lose answers. Owns
the servers, the proxies and the shift of the ledger's clock; whatever was done to a node or a server is in the fault
log, with its name and its window. PostgreSQL's clock is the machine's, unless `shift_ms` is set: then the database
answers `clock_timestamp()` that much wrong, and every log is kept in its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from tests.faults.checker import B_MS, HORIZON_MS, LOAD_MS, Violation, violations
from tests.faults.history import History, load
from tests.faults.world import NodeProcess, Scene, until, wall_ms
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.proxy import Proxy
from tests.support.redis import RedisServer

from zerocron.core.sealing import new_master_key

T = TypeVar("T")

VALIDITY_MS = 30_000
SCALE = 0.2
"""Of the nodes' sessions and time-outs in tests, see `node.py`: a session is valid for 6 s then."""

STALL_MS, STALL_LOOK_MS = 250, 50
"""Who sleeps for the latter and wakes up later than that by the former has seen the machine stand still: it is busy
with something else than this test, and what is late then says nothing about the nodes."""

PREFIX = "faults"
LOOK_SECONDS_MAX = 10.0

AUDIT = """
CREATE TABLE audit (seq bigserial PRIMARY KEY, kind text, id text, before bigint, after bigint, note text);
CREATE FUNCTION audit_cursor() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit (kind, id, before, after, note) VALUES ('cursor', NEW.id, OLD.next_run_at, NEW.next_run_at,
        CASE WHEN OLD.version = NEW.version THEN 'same' ELSE 'new version' END);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_cursor AFTER UPDATE ON jobs FOR EACH ROW
    WHEN (OLD.next_run_at IS DISTINCT FROM NEW.next_run_at) EXECUTE FUNCTION audit_cursor();
CREATE FUNCTION audit_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO audit (kind, id, note) VALUES ('run_deleted', OLD.id, OLD.status);
    ELSE
        INSERT INTO audit (kind, id, note) VALUES ('run_after_end', OLD.id, OLD.status || ' to ' || NEW.status);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_end AFTER UPDATE ON runs FOR EACH ROW
    WHEN (OLD.finished_at IS NOT NULL) EXECUTE FUNCTION audit_run();
CREATE TRIGGER audit_delete AFTER DELETE ON runs FOR EACH ROW EXECUTE FUNCTION audit_run();
CREATE TABLE shift (ms bigint NOT NULL);
INSERT INTO shift VALUES (0);
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM public.shift) * interval '1 millisecond' $$;
"""
"""What the tables cannot tell afterwards, as in `world.AUDIT`; and a clock that can be set, found before the server's
own because the database's search path names the catalog second."""


MASTER_KEY = new_master_key()
"""One for all nodes: channels are sealed with it."""


class Eyes:
    """Plain SQL from the test, past every proxy, on a connection and in a thread of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="eyes", daemon=True)
        self._thread.start()
        self._connection: asyncpg.Connection[Any] | None = None

    def rows(self, query: str, values: Iterable[Any] = ()) -> list[dict[str, Any]]:
        """Raises OSError or asyncpg's errors while PostgreSQL is away."""
        return self._wait(self._rows(query, tuple(values)))

    def execute(self, statements: str) -> None:
        self._wait(self._execute(statements))

    def close(self) -> None:
        self._wait(self._disconnect())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Awaitable[T]) -> T:
        async def whole() -> T:
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                return await work

        future: Future[T] = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        return future.result()

    async def _connected(self) -> asyncpg.Connection[Any]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self._url, timeout=LOOK_SECONDS_MAX)
        return self._connection

    async def _rows(self, query: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        try:
            return [dict(row) for row in await (await self._connected()).fetch(query, *values)]
        except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, ConnectionError, asyncpg.AdminShutdownError):
            await self._disconnect()
            return [dict(row) for row in await (await self._connected()).fetch(query, *values)]

    async def _execute(self, statements: str) -> None:
        await (await self._connected()).execute(statements)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


class ClusterNode(NodeProcess):
    """A node, with the links by which it reaches PostgreSQL and Redis."""

    def __init__(self, cluster: Cluster, name: str, *, called: str | None = None, clock_offset_ms: int = 0) -> None:
        folder = cluster.folder / name
        folder.mkdir()
        super().__init__(folder, now_ms=cluster.now_ms, fault_log=cluster.fault_log, name=called or name)
        self.pg = Proxy(cluster.postgres.host, cluster.postgres.port)
        self.redis = Proxy(cluster.redis.host, cluster.redis.port)
        self.clock_log = folder / "clock.jsonl"
        self.options = ["--time-scale", str(cluster.scale), "--node-name", self.name]
        self.options += ["--clock-log", str(self.clock_log)]
        if clock_offset_ms:
            self.options += ["--clock-offset-ms", str(clock_offset_ms)]
        self._cluster = cluster
        self.note_down("absent", 0)

    async def connect(self, stack: contextlib.AsyncExitStack) -> None:
        await stack.enter_async_context(self.pg)
        await stack.enter_async_context(self.redis)
        self.environment = {
            "ZEROCRON_DATABASE_URL": self._cluster.postgres.url(self._cluster.database, port=self.pg.port),
            "ZEROCRON_REDIS_URL": f"redis://{self.redis.host}:{self.redis.port}/0",
            "ZEROCRON_REDIS_PREFIX": PREFIX,
            "ZEROCRON_ROLE": "all",
            "ZEROCRON_SECRET_KEY": MASTER_KEY,
        }

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @contextlib.asynccontextmanager
    async def cut(self, *, kind: str, silent: bool = False) -> AsyncIterator[None]:
        """Without PostgreSQL (`cut_pg`) or Redis (`cut_redis`): refused, or `silent`, as with a cut cable."""
        link = self.pg if kind == "cut_pg" else self.redis
        since = self._cluster.now_ms()
        if silent:
            link.silent = True
        else:
            link.refuse = True
            await link.cut()
        try:
            yield
        finally:
            link.refuse = True
            link.silent = False
            await _cut_all(link)  # what was swallowed on them is gone for ever
            link.refuse = False
            self.note(kind, since, self._cluster.now_ms())


async def _cut_all(link: Proxy) -> None:
    """Connections that waited for a silent proxy come up while it is being cut, and are cut, too."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await link.cut()
                return


class Cluster(Scene):
    """Made by `cluster()`; after the run, `verdict()` says what the checker found."""

    def __init__(
        self, folder: Path, *, postgres: PostgresServer, database: str, redis: RedisServer, scale: float
    ) -> None:
        super().__init__(folder)
        self.postgres = postgres
        self.redis = redis
        self.scale = scale
        self.database = database
        self.url = postgres.url(self.database)
        self.eyes = Eyes(self.url)
        self.eyes.execute(AUDIT)
        self.nodes: dict[str, ClusterNode] = {}
        self.own_environment: dict[str, str] = {}
        self._stack = contextlib.AsyncExitStack()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._note_stalls, name="stalls", daemon=True)
        self._watch.start()

    @property
    def validity_ms(self) -> int:
        return round(VALIDITY_MS * self.scale)

    def set_clock(self, shift_ms: int) -> None:
        """Make the ledger's clock wrong by so much, as of now."""
        self.eyes.execute(f"UPDATE shift SET ms = {shift_ms}")
        self.shift_ms = shift_ms

    # --- the nodes

    async def add(self, name: str, *, called: str | None = None, clock_offset_ms: int = 0) -> ClusterNode:
        """A node that is not started yet."""
        node = ClusterNode(self, name, called=called, clock_offset_ms=clock_offset_ms)
        await node.connect(self._stack)
        node.environment |= self.own_environment
        self.nodes[name] = node
        return node

    async def start(self, *names: str, **how: Any) -> None:
        """Start nodes, side by side; those not named before are made."""
        for name in names:
            if name not in self.nodes:
                await self.add(name)
        await asyncio.gather(*(self.nodes[name].start(**how) for name in names))

    def __getitem__(self, name: str) -> ClusterNode:
        return self.nodes[name]

    def address(self, node: str | None) -> tuple[str, str]:
        chosen = self.nodes[node] if node else next((one for one in self.nodes.values() if one.is_up()), None)
        if chosen is None:
            raise OSError("no node is up")
        return chosen.url, chosen.key

    def node_log(self) -> str:
        return "\n".join(f"{name}: {line}" for name, node in self.nodes.items() for line in node.log().splitlines())

    # --- faults of the servers

    @contextlib.contextmanager
    def fault(self, kind: str) -> Iterator[None]:
        """Write down that something was wrong for everybody."""
        since = self.now_ms()
        try:
            yield
        finally:
            self.fault_log.write(kind=kind, **{"from": since, "to": self.now_ms()})

    def _note_stalls(self) -> None:
        """In a thread of its own: the loop of this test has other things to do."""
        while not self._ended.is_set():
            begun = wall_ms()  # not the ledger's time, which a test may set meanwhile
            self._ended.wait(STALL_LOOK_MS / 1000)
            slept_ms, now = wall_ms() - begun, self.now_ms()
            if slept_ms > STALL_LOOK_MS + STALL_MS:
                self.fault_log.write(kind="stall", **{"from": now - slept_ms, "to": now})

    # --- the ledger

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        parts = query.split("?")
        numbered = "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]
        return self.eyes.rows(numbered, values)

    def open_runs(self) -> int:
        """How many runs are running or due: what a settled cluster has few of."""
        return int(
            self.one(
                "SELECT count(*) FROM runs WHERE status = 'running' AND attempt_started_at < ?", self.now_ms() - 500
            )
        )

    def lost(self) -> int:
        return int(self.one("SELECT count(*) FROM executions WHERE error_kind = 'node_lost'"))

    def duplicates(self) -> int:
        """Requests beyond the first of a run that was not retried, as the target saw them."""
        retried = {row["run_id"] for row in self.rows("SELECT run_id FROM executions WHERE cause = 'retry'")}
        seen = [call.run_id for call in self.calls if call.run_id not in retried]
        return len(seen) - len(set(seen))

    # --- the end

    def index(self) -> dict[str, float]:
        """What the timetable holds, member -> instant, with plain Redis commands."""
        found: dict[str, float] = {}
        for key in self.redis.command("KEYS", f"{PREFIX}:{{*}}:lane:*"):
            words = self.redis.command("ZRANGE", key, 0, -1, "WITHSCORES")
            pairs = (
                words
                if words and isinstance(words[0], (list, tuple))
                else list(zip(words[::2], words[1::2], strict=True))
            )
            found |= {str(member): float(score) for member, score in pairs}
        return found

    def history(self, *, with_index: bool = False) -> History:
        for node in self.nodes.values():
            node.close_log()
        return load(
            self.url,
            target_log=self.target_log.path,
            fault_log=self.fault_log.path,
            op_log=self.op_log.path,
            inbox_log=self.inbox_log.path,
            validity_ms=self.validity_ms,
            index=self.index() if with_index else None,
            clock_logs={name: node.clock_log for name, node in self.nodes.items()},
        )

    async def settle(self, patience: float = 30) -> None:
        """Wait until nothing is overdue, no run of a dead node is left, and the timetable says what the ledger says.
        I21 gives it 30 s; what does not come is for the checker to tell."""
        with contextlib.suppress(AssertionError):
            await until(lambda: not self.behind() and not self.unsettled(), "being settled", patience)
            if any(node.process is not None for node in self.nodes.values()):
                await until(lambda: not self.astray(), "a timetable that agrees with the ledger", patience)

    def astray(self) -> bool:
        """Whether a member is missing in the timetable, or elsewhere than at its instant in the ledger."""
        due = {
            f"{row['kind']}:{row['team_id']}:{row['id']}": row["at"]
            for row in self.rows(
                "SELECT 'j' AS kind, team_id, id, next_run_at AS at FROM jobs WHERE next_run_at IS NOT NULL "
                "UNION ALL SELECT 'r', team_id, id, retry_at FROM runs WHERE retry_at IS NOT NULL "
                "UNION ALL SELECT 'a', team_id, id, next_attempt_at FROM alerts WHERE next_attempt_at IS NOT NULL"
            )
        }
        index, near = self.index(), self.now_ms() + HORIZON_MS - LOAD_MS - B_MS
        return any(member not in index for member, at in due.items() if at <= near) or any(
            due.get(member) != score for member, score in index.items()
        )

    def unsettled(self) -> int:
        """Sessions that ended, or were not renewed for a while, and have runs left."""
        return int(
            self.one(
                "SELECT count(*) FROM sessions AS s WHERE (ended_at IS NOT NULL OR renewed_at < ?) AND EXISTS "
                "(SELECT FROM runs WHERE status = 'running' AND session_id = s.id)",
                self.now_ms() - self.validity_ms * 2 // 5,
            )
        )

    async def verdict(self, *, patience: float = 30) -> list[Violation]:
        await self.settle(patience)
        running = [node for node in self.nodes.values() if node.process is not None]
        codes = await asyncio.gather(*(node.stop() for node in running))
        assert not any(codes), self.node_log()[-4000:]
        found = await asyncio.to_thread(lambda: violations(self.history(with_index=True)))
        query = "SELECT pid FROM pg_stat_activity WHERE datname = ? AND pid <> pg_backend_pid()"
        try:
            await until(lambda: not self.rows(query, self.database), "the end of all connections", 5)
        except AssertionError:
            found.append(Violation("I25", f"{len(self.rows(query, self.database))} connections outlived their nodes"))
        return found

    async def close(self) -> None:
        self._ended.set()
        self._watch.join()
        for node in self.nodes.values():
            node.reap()
        await self._stack.aclose()
        await self.leave()
        self.eyes.close()


@contextlib.asynccontextmanager
async def cluster(
    folder: Path, *, own_postgres: bool = False, scale: float = SCALE, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """Servers, a migrated ledger with the audit in it, and a listening target; no node yet.

    `own_postgres`: one that the test may hurt, with fsync on; else the one that tests share. `settings` are its own.
    Whatever happens, nothing is left running.
    """
    async with contextlib.AsyncExitStack() as stack:
        postgres = PostgresServer(fsync=True, settings=settings) if own_postgres else postgres_server()
        if own_postgres:
            stack.callback(postgres.close)
        # In a thread, because other clusters live in this loop, whose proxies must not stand still.
        database = await asyncio.to_thread(_prepare, folder, postgres, own_postgres)
        if not own_postgres:
            stack.push_async_callback(asyncio.to_thread, postgres.drop, database)
        redis = RedisServer()
        stack.callback(redis.close)
        await asyncio.to_thread(redis.start)
        it = Cluster(folder, postgres=postgres, database=database, redis=redis, scale=scale)
        stack.push_async_callback(it.close)
        await it.target.start()
        yield it


_preparing = threading.Lock()


def _prepare(folder: Path, postgres: PostgresServer, is_own: bool) -> str:
    """An empty ledger, whose database prefers our `clock_timestamp` to the server's; its name."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_own:
        postgres.start()
    with _preparing:
        name = postgres.database(migrated=True)
    postgres.execute(f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
    return name


__all__ = ["AUDIT", "SCALE", "VALIDITY_MS", "Cluster", "ClusterNode", "cluster"]
