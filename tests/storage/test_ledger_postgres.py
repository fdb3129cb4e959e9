"""What is promised of PostgreSQL beyond the contract: one migration at a time, a commit that is on the disk, and the
right word for every way in which a server or the network can fail."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from tests.storage.samples import a_job, a_run, postgres_ledger
from tests.support.people import house_over
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.proxy import Proxy

from zerocron.core.errors import Invalid, Unavailable, Unclear
from zerocron.core.model import Job
from zerocron.storage.ledger import facts, jobs, postgres, runs, sessions, sign_ins
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.migrations import upgrade

NOW_MS = 1_800_000_000_000

NOTHING_TO_MIGRATE: Callable[[Connection], None] = lambda _connection: None  # noqa: E731


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[PostgresLedger]:
    async with postgres_ledger(tmp_path) as it:
        yield it


@pytest.fixture
def database() -> Iterator[str]:
    """The name of a migrated database on the shared server."""
    name = postgres_server().database(migrated=True)
    yield name
    postgres_server().drop(name)


@pytest.fixture(scope="module")
def _server_to_hurt() -> Iterator[PostgresServer]:
    with PostgresServer() as it:
        yield it


@pytest.fixture
def server(_server_to_hurt: PostgresServer) -> Iterator[PostgresServer]:
    """One that may be stopped and killed; it runs again for the next test."""
    yield _server_to_hurt
    if not _server_to_hurt.runs:
        _server_to_hurt.start()


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresLedger]:
    ledger = await PostgresLedger.open(url, NOTHING_TO_MIGRATE, **options)
    try:
        yield ledger
    finally:
        await ledger.close()


@asynccontextmanager
async def through_a_proxy(database: str, **options: Any) -> AsyncIterator[tuple[PostgresLedger, Proxy]]:
    """The ledger has no connection yet."""
    server = postgres_server()
    async with (
        Proxy(server.host, server.port) as proxy,
        opened(server.url(database, port=proxy.port), **options) as ledger,
    ):
        yield ledger, proxy


async def put(ledger: PostgresLedger, value: str) -> None:
    await ledger.write(lambda connection: facts.put(connection, "name", value))


async def fact(ledger: PostgresLedger) -> str | None:
    return await ledger.read(lambda connection: facts.get(connection, "name"))


async def keep(ledger: PostgresLedger, *made: Job) -> None:
    def transaction(connection: Connection) -> None:
        for job in made:
            jobs.insert(connection, job)

    await ledger.write(transaction)


def run(connection: Connection, sql: str) -> None:
    connection.exec_driver_sql(sql)


def stored(database: str) -> list[str]:
    """What is really there, asked past the ledger and past every proxy."""
    return postgres_server().execute("SELECT value FROM facts WHERE name = 'name'", database)


async def use_every_connection(ledger: PostgresLedger) -> set[int]:
    """All writers meet in the middle of their transactions; the backends they speak to."""
    count = postgres.CONNECTIONS_MAX - round(postgres.CONNECTIONS_MAX * postgres.READERS_SHARE)
    arrived: list[int] = []

    def meet(connection: Connection) -> int:
        backend: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        arrived.append(backend)
        while len(arrived) < count:
            connection.exec_driver_sql("SELECT 1")
        return backend

    return set(await asyncio.gather(*(ledger.write(meet) for _ in range(count))))


# how a connection is set up


def setting(name: str) -> Callable[[Connection], str]:
    return lambda connection: str(connection.exec_driver_sql(f"SHOW {name}").scalar())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("statement_timeout", "10s"),
        ("lock_timeout", "2s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("timezone", "UTC"),
        ("application_name", "0cron"),
        ("jit", "off"),
        ("plan_cache_mode", "force_custom_plan"),
        ("random_page_cost", "1.1"),
    ],
)
async def test_every_connection_has_our_settings(ledger: PostgresLedger, name: str, value: str) -> None:
    assert await ledger.write(setting(name)) == value
    assert await ledger.read(setting(name)) == value


async def test_a_commit_is_on_the_disk_before_anybody_is_told_whatever_the_server_was_told(database: str) -> None:
    """PROMISES A7: `synchronous_commit` of a session wins over that of its database and role."""
    postgres_server().execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    assert postgres_server().execute("SHOW synchronous_commit", database) == ["off"]
    async with opened(postgres_server().url(database)) as ledger:
        assert await ledger.write(setting("synchronous_commit")) == "on"


async def test_what_was_committed_survives_a_kill_of_everything(server: PostgresServer) -> None:
    async with opened(server.url(server.database(migrated=True))) as ledger:
        await put(ledger, "committed")
        server.kill()
        with pytest.raises(Unavailable):
            await fact(ledger)
        server.start()
        assert await fact(ledger) == "committed"


async def test_writers_read_what_is_committed_and_readers_a_snapshot(ledger: PostgresLedger) -> None:
    assert await ledger.write(setting("transaction_isolation")) == "read committed"
    assert await ledger.read(setting("transaction_isolation")) == "repeatable read"


async def test_readers_cannot_write(ledger: PostgresLedger) -> None:
    with pytest.raises(Unavailable, match=r"^The database cannot be used now: it is read-only\.$"):
        await ledger.read(lambda connection: facts.put(connection, "name", "value"))
    assert await fact(ledger) is None


async def test_a_connection_asks_the_system_to_notice_a_server_that_is_gone(ledger: PostgresLedger) -> None:
    def options(connection: Connection) -> list[int]:
        driver: Any = connection.connection.driver_connection
        wire = driver._transport.get_extra_info("socket")
        return [
            wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
        ]

    assert await ledger.write(options) == [1, 30, 30_000]


# where the server is


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda url: url.replace("postgresql:", "mysql:"), "postgresql://"),
        (lambda _url: "postgresql", "postgresql://"),
        (lambda url: url.rpartition("/")[0], "no database"),
        (lambda url: url + "?sslmode=verify", "sslmode is one of"),
        (lambda url: url + "?sslrootcert=/nowhere.crt", "sslrootcert"),
        (lambda url: url + "?sslmode=verify-full", "a file that is not there"),
        (lambda url: url + "?pool_size=5", "'pool_size'"),
        (lambda url: url + "?sslmode", "not a URL"),
        (lambda url: url + "?channel_binding=require", "channel_binding=require"),
        (lambda url: url.replace("@", "@x@"), "%40"),
        (lambda url: url.replace(":5432", ":none"), "port"),
        (lambda url: url.replace(":5432", ":99999"), "port"),
        (lambda url: url.replace("pass", "pa/ss"), "%2F"),
        (lambda url: url.replace("pass", "pa#ss"), "%23"),
        (lambda url: url.replace("host", "[::1"), "not a URL"),
        (lambda _url: "postgresql:///db?host=a,b&port=1,2,3", "do not go together"),
        (lambda _url: "postgresql://user:pass@host:5432/db?ssl_min_protocol_version=9", "do not go together"),
    ],
)
async def test_a_url_that_makes_no_sense_is_refused_without_repeating_its_secrets(
    change: Callable[[str], str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where certificates could be
    with pytest.raises(Invalid) as raised:
        await PostgresLedger.open(change("postgresql://user:pass@host:5432/db"), NOTHING_TO_MIGRATE)
    assert fault in raised.value.message
    for secret in ("user:", "pass@", "pa/ss", "ss@", "host:", "5432"):
        assert secret not in raised.value.message.replace("postgresql://user:password@host:port/database", "")


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.replace("postgresql:", "postgres:"),
        lambda url: url.replace("postgresql:", "postgresql+asyncpg:"),
        lambda url: url + "?sslmode=prefer&connect_timeout=9&keepalives=1&application_name=x&channel_binding=prefer",
        lambda url: url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"),  # of two, the one that answers
        lambda url: url.replace("tests@", "tests:p%40ss%2Fw%3Ard@"),
        lambda url: url + "?options=-c%20work_mem%3D5MB",
    ],
)
async def test_a_url_may_be_written_as_people_write_it(database: str, change: Callable[[str], str]) -> None:
    async with opened(change(postgres_server().url(database))) as ledger:
        await put(ledger, "reached")
        assert await ledger.write(setting("application_name")) == "0cron"


def test_a_ledger_needs_one_connection_to_read_and_one_to_write() -> None:
    with pytest.raises(Invalid, match="two connections"):
        PostgresLedger("postgresql://host/db", connections_max=1)


async def test_two_connections_are_enough(database: str) -> None:
    async with opened(postgres_server().url(database), connections_max=2) as ledger:
        await asyncio.gather(*(put(ledger, str(number)) for number in range(9)), *(fact(ledger) for _ in range(9)))


async def test_a_ledger_takes_no_more_connections_than_it_may(database: str) -> None:
    async with opened(postgres_server().url(database), connections_max=4) as ledger:

        def how_many(connection: Connection) -> int:
            found: int = connection.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).scalar_one()
            return found

        counts = await asyncio.gather(*(way(how_many) for way in (ledger.write, ledger.read) for _ in range(40)))
    assert max(counts) == 4


async def test_nothing_is_left_when_it_is_closed(database: str) -> None:
    async with opened(postgres_server().url(database)) as ledger:
        await use_every_connection(ledger)
        assert [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
    with pytest.raises(Unavailable, match="closed"):
        await fact(ledger)
    # The server notices in its own time.
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND application_name = '0cron'"
    for _ in range(200):
        if postgres_server().execute(count) == ["0"]:
            return
    raise AssertionError("connections were left open")


# the schema


async def test_twenty_ledgers_opened_at_once_migrate_an_empty_database_once() -> None:
    server = postgres_server()
    database = server.database()
    migrations = 0

    def migrate(connection: Connection) -> None:
        nonlocal migrations
        migrations += connection.exec_driver_sql("SELECT to_regclass('jobs')").scalar() is None
        upgrade(connection)

    opening = [PostgresLedger.open(server.url(database), migrate) for _ in range(20)]
    ledgers = await asyncio.gather(*opening, return_exceptions=True)
    for ledger in ledgers:
        if isinstance(ledger, PostgresLedger):
            await ledger.close()
    assert [ledger for ledger in ledgers if not isinstance(ledger, PostgresLedger)] == []
    assert migrations == 1
    server.drop(database)


OPENER = """
import asyncio, sys
from zerocron.storage.ledger import facts
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.migrations import upgrade

async def main(url, node):
    sys.stdin.readline()
    ledger = await PostgresLedger.open(url, upgrade)
    await ledger.write(lambda connection: facts.put(connection, node, "here"))
    await ledger.close()

print("ready", flush=True)
asyncio.run(main(*sys.argv[1:]))
"""


def test_processes_that_start_at_once_migrate_an_empty_database_once() -> None:
    server = postgres_server()
    database = server.database()
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, server.url(database), f"node-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    try:
        for node in nodes:
            assert node.stdout is not None
            assert node.stdout.readline() == "ready\n"
        for node in nodes:
            assert node.stdin is not None
            node.stdin.write("go\n")
            node.stdin.flush()
        assert [node.wait(30) for node in nodes] == [0] * 4
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
    assert server.execute("SELECT count(*) FROM facts", database) == ["4"]
    assert server.execute("SELECT count(*) FROM alembic_version", database) == ["1"]
    server.drop(database)


async def test_a_migration_that_fails_leaves_the_database_as_it_was() -> None:
    server = postgres_server()
    database = server.database()

    def broken(connection: Connection) -> None:
        upgrade(connection)
        raise LookupError

    with pytest.raises(LookupError):
        await PostgresLedger.open(server.url(database), broken)
    assert server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database) == ["0"]
    ledger = await PostgresLedger.open(server.url(database), upgrade)
    await ledger.close()
    server.drop(database)


async def test_a_migration_does_not_make_a_whole_cluster_wait_for_a_table(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_SECONDS_MAX", 0.1)
    async with opened(postgres_server().url(database)) as other:

        def hold(connection: Connection) -> None:
            facts.put(connection, "name", "held")
            holding.set()
            while not go_on.wait(0.01):
                connection.exec_driver_sql("SELECT 1")

        holding, go_on = threading.Event(), threading.Event()
        writing = asyncio.create_task(other.write(hold))
        await asyncio.to_thread(holding.wait, 20)
        with pytest.raises(Unavailable, match="another transaction holds what this one needs"):
            await PostgresLedger.open(
                postgres_server().url(database),
                lambda connection: run(connection, "ALTER TABLE facts ADD COLUMN more text"),
            )
        go_on.set()
        await writing


async def test_statements_that_were_prepared_before_a_migration_of_another_node(
    ledger: PostgresLedger,
) -> None:
    """The one that finds out fails with nothing done; the next works."""
    await ledger.write(lambda connection: facts.put(connection, "name", "old"))
    assert await fact(ledger) == "old"
    await ledger.write(
        lambda connection: connection.exec_driver_sql("ALTER TABLE facts ALTER COLUMN value TYPE varchar(99)")
    )
    with pytest.raises(Unavailable, match="its tables have just changed"):
        await fact(ledger)
    assert await fact(ledger) == "old"


# what a failure is called

NOW = "The database cannot be used now: {}."


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("40001", "another transaction was in the way"),
        ("40P01", "another transaction was in the way"),
        ("53000", "it has no resources left"),
        ("53100", "its disk is full"),
        ("53200", "it has no memory left"),
        ("55P03", "another transaction holds what this one needs"),
        ("57014", "it took too long"),
        ("57P01", "it is starting or stopping"),
        ("58030", "it cannot read or write its files"),
        ("XX001", "it failed"),
        ("25006", "it is read-only"),
    ],
)
async def test_what_passes_by_itself_is_unavailable_in_words_that_tell_nothing_else(
    ledger: PostgresLedger, state: str, reason: str
) -> None:
    fail = f"DO $$ BEGIN RAISE 'secret of tests at 127.0.0.1' USING ERRCODE = '{state}'; END $$"

    def write(connection: Connection) -> None:
        facts.put(connection, "name", "value")
        run(connection, fail)

    for failing in (ledger.write(write), ledger.read(lambda connection: run(connection, fail))):
        with pytest.raises(Unavailable) as raised:
            await failing
        assert raised.value.message == NOW.format(reason)
        assert not isinstance(raised.value, Unclear)
    assert await fact(ledger) is None


async def test_what_a_transaction_gave_up_is_not_left_for_the_next_to_commit(database: str) -> None:
    async with opened(postgres_server().url(database), connections_max=2) as ledger:

        def give_up(connection: Connection) -> None:
            facts.put(connection, "name", "given up")
            raise LookupError

        with pytest.raises(LookupError):
            await ledger.write(give_up)
        await ledger.write(lambda connection: facts.put(connection, "other", "committed"))
        assert await fact(ledger) is None


async def test_what_is_our_own_mistake_is_not_called_unavailable(ledger: PostgresLedger) -> None:
    with pytest.raises(ProgrammingError):
        await ledger.write(lambda connection: connection.exec_driver_sql("SELECT * FROM nothing"))
    with pytest.raises(IntegrityError):
        await ledger.write(
            lambda connection: connection.exec_driver_sql("INSERT INTO facts VALUES ('a', 'b'), ('a', 'b')")
        )
    await put(ledger, "the connection is still good")


async def test_what_a_failure_tells_the_log_holds_no_values(ledger: PostgresLedger) -> None:
    with pytest.raises(DBAPIError) as raised:
        await ledger.write(lambda connection: facts.put(connection, "n" * 65, "canary"))
    assert "canary" not in str(raised.value)


async def test_a_transaction_that_goes_on_after_a_failure_is_not_taken_for_committed(ledger: PostgresLedger) -> None:
    """PostgreSQL answers its COMMIT with ROLLBACK, and no error."""

    def swallow(connection: Connection) -> None:
        facts.put(connection, "name", "value")
        with pytest.raises(ProgrammingError):
            connection.exec_driver_sql("SELECT * FROM nothing")

    with pytest.raises(RuntimeError, match="after one of its statements had failed"):
        await ledger.write(swallow)
    await put(ledger, "next")


async def test_a_commit_that_postgres_refuses_is_known_to_be_undone(ledger: PostgresLedger, database: str) -> None:
    """As when the disk is full: the answer came, and it was no."""
    await ledger.write(
        lambda connection: connection.exec_driver_sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$"
        )
    )
    await ledger.write(
        lambda connection: connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON facts DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    )
    with pytest.raises(Unavailable, match="its disk is full") as raised:
        await put(ledger, "value")
    assert not isinstance(raised.value, Unclear)
    assert await fact(ledger) is None


async def test_a_statement_may_not_take_for_ever(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS_MAX", 0.1)
    async with opened(postgres_server().url(database)) as ledger:
        with pytest.raises(Unavailable, match="it took too long"):
            await ledger.write(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(30)"))
        await put(ledger, "next")


async def test_a_transaction_may_not_stand_still_for_ever(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "IDLE_IN_TRANSACTION_SECONDS_MAX", 0.05)
    gone = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND state = 'idle in transaction'"

    def stand_still(connection: Connection) -> None:
        facts.put(connection, "name", "value")
        for _ in range(200):
            if postgres_server().execute(gone) == ["0"]:
                break
        facts.put(connection, "name", "too late")

    async with opened(postgres_server().url(database)) as ledger:
        with pytest.raises(Unavailable) as raised:
            await ledger.write(stand_still)
        assert not isinstance(raised.value, Unclear)
        assert await fact(ledger) is None
        await put(ledger, "next")


# rows that somebody else holds


@asynccontextmanager
async def held(ledger: PostgresLedger, job_id: str) -> AsyncIterator[None]:
    """Another session has the job's row."""
    holding, go_on = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        assert jobs.lock(connection, [job_id])
        holding.set()
        while not go_on.wait(0.01):
            connection.exec_driver_sql("SELECT 1")

    task = asyncio.create_task(ledger.write(hold))
    try:
        await asyncio.to_thread(holding.wait, 20)
        yield
    finally:
        go_on.set()
        await task


async def test_a_row_that_another_holds_is_not_waited_for_longer_than_the_limit(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LOCK_SECONDS_MAX", 0.1)
    job = a_job()
    async with opened(postgres_server().url(database)) as ledger, opened(postgres_server().url(database)) as other:
        await ledger.write(lambda connection: jobs.insert(connection, job))
        async with held(other, job.id):
            edited = dataclasses.replace(job, version=2)
            with pytest.raises(Unavailable, match="another transaction holds what this one needs"):
                await ledger.write(lambda connection: jobs.update_definition(connection, edited, seen_version=1))
        assert await ledger.write(lambda connection: jobs.update_definition(connection, edited, seen_version=1))


async def test_the_engine_passes_over_rows_that_another_holds(ledger: PostgresLedger) -> None:
    one, two = a_job(), a_job()
    await keep(ledger, one, two)
    async with held(ledger, one.id):
        async with asyncio.timeout(postgres.LOCK_SECONDS_MAX / 2):
            assert set(await ledger.write(lambda connection: jobs.lock(connection, [one.id, two.id]))) == {two.id}
            assert await ledger.read(lambda connection: jobs.get(connection, one.team_id, one.id)) == one


async def test_who_writes_down_last_uses_waits_for_nobody_and_makes_nobody_wait(ledger: PostgresLedger) -> None:
    """A node has many rows to write, in an order of its own; who signs somebody out everywhere has, too."""
    async with house_over(ledger) as house:
        person = await house.person("bob@example.com")
        ids = [(await house.sign_in("bob@example.com")).session.bearer.sign_in_id or "" for _ in range(2)]
        holding, go_on = threading.Event(), threading.Event()
        held_id, free_id = ids

        def end(connection: Connection) -> int:
            assert sign_ins.end(connection, person.id, held_id, NOW_MS)
            holding.set()
            while not go_on.wait(0.01):
                connection.exec_driver_sql("SELECT 1")
            return sign_ins.end_all(connection, person.id, NOW_MS)

        later = house.clock.now() + 1
        ending = asyncio.create_task(ledger.write(end))
        try:
            await asyncio.to_thread(holding.wait, 20)
            async with asyncio.timeout(postgres.LOCK_SECONDS_MAX / 2):
                await ledger.write(lambda c: sign_ins.save_last_seen(c, {free_id: later, held_id: later}))
        finally:
            go_on.set()
        assert await ending == 1
        rows = [await ledger.read(lambda c, each=each: sign_ins.get(c, each)) for each in ids]  # type: ignore[misc]
        assert [None if row is None else row.last_seen_at == later for row in rows] == [False, True]


async def test_a_session_that_a_start_holds_may_be_renewed_and_ends_only_after_it(ledger: PostgresLedger) -> None:
    session = str(uuid.uuid4())
    await ledger.write(lambda connection: begin_session(connection, session))
    holding, go_on = threading.Event(), threading.Event()

    def start(connection: Connection) -> None:
        assert sessions.hold(connection, session)
        holding.set()
        while not go_on.wait(0.01):
            connection.exec_driver_sql("SELECT 1")

    def ends(how: str) -> Callable[[Connection], object]:
        return {
            "closed": lambda connection: sessions.end(connection, [session], now=NOW_MS, reason="closed"),
            "fenced": lambda connection: sessions.fence_expired(connection, NOW_MS + 60_000, validity_ms=30_000),
        }[how]

    starting = asyncio.create_task(ledger.write(start))
    try:
        await asyncio.to_thread(holding.wait, 20)
        assert await ledger.write(
            lambda connection: sessions.renew(connection, session, now=NOW_MS, expires_at=NOW_MS + 30_000)
        )
        for how in ("closed", "fenced"):
            with pytest.raises(Unavailable):  # it waits for the start, for as long as a statement may
                await ledger.write(ends(how))
    finally:
        go_on.set()
        await starting
    await ledger.write(ends("fenced"))
    assert not await ledger.write(lambda connection: sessions.hold(connection, session))


def begin_session(connection: Connection, session_id: str) -> None:
    sessions.insert(connection, session_id=session_id, node="n", version="0", now=NOW_MS, expires_at=NOW_MS + 30_000)


async def test_of_two_that_wait_for_each_other_one_is_unavailable(ledger: PostgresLedger) -> None:
    one, two = a_job(), a_job()
    await keep(ledger, one, two)
    has_first = {one.id: threading.Event(), two.id: threading.Event()}

    def cross(first: str, second: str) -> Callable[[Connection], None]:
        def transaction(connection: Connection) -> None:
            connection.exec_driver_sql("SET LOCAL deadlock_timeout = '10ms'")
            jobs.get(connection, one.team_id, first, lock=True)
            has_first[first].set()
            while not has_first[second].wait(0.01):
                connection.exec_driver_sql("SELECT 1")
            jobs.get(connection, one.team_id, second, lock=True)

        return transaction

    ends = await asyncio.gather(
        ledger.write(cross(one.id, two.id)), ledger.write(cross(two.id, one.id)), return_exceptions=True
    )
    failed = [end for end in ends if end is not None]
    assert [str(end) for end in failed] == [NOW.format("another transaction was in the way")]


# pools


async def test_when_all_writers_are_busy_one_more_waits_only_so_long_and_readers_do_not(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "POOL_WAIT_SECONDS", 0.1)
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def stay(connection: Connection) -> None:
        begun.release()
        while not go_on.wait(0.01):
            connection.exec_driver_sql("SELECT 1")

    async with opened(postgres_server().url(database), connections_max=3) as ledger:
        staying = [asyncio.create_task(ledger.write(stay)) for _ in range(2)]
        for _ in staying:
            assert await asyncio.to_thread(begun.acquire, timeout=20)
        assert await fact(ledger) is None
        with pytest.raises(Unavailable, match="all connections are in use"):
            await put(ledger, "one more")
        go_on.set()
        await asyncio.gather(*staying)
        await put(ledger, "now")


async def test_what_was_handed_in_is_done_even_if_its_caller_gives_up_before_its_turn(database: str) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def stay(connection: Connection) -> None:
        begun.set()
        while not go_on.wait(0.01):
            connection.exec_driver_sql("SELECT 1")

    async with opened(postgres_server().url(database), connections_max=2) as ledger:
        staying = asyncio.create_task(ledger.write(stay))
        await asyncio.to_thread(begun.wait, 20)
        queued = asyncio.create_task(put(ledger, "done"))
        await asyncio.wait([queued], timeout=0)
        queued.cancel()
        await asyncio.gather(queued, return_exceptions=True)
        go_on.set()
        await staying
    assert stored(database) == ["done"]


# the server goes and comes


async def test_a_restart_between_transactions_is_noticed_by_nobody(server: PostgresServer) -> None:
    async with opened(server.url(server.database(migrated=True))) as ledger:
        before = await use_every_connection(ledger)
        assert await fact(ledger) is None
        server.restart()
        after = await use_every_connection(ledger)
        assert not before & after
        assert await fact(ledger) is None


async def test_connections_that_were_terminated_are_replaced(ledger: PostgresLedger) -> None:
    before = await use_every_connection(ledger)
    [database] = await ledger.read(lambda c: c.exec_driver_sql("SELECT current_database()").scalars().all())
    assert postgres_server().terminate_backends(database) >= len(before)
    assert not before & await use_every_connection(ledger)


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
async def test_a_server_that_goes_in_the_middle_leaves_nothing_and_nothing_unclear(
    server: PostgresServer, mode: Any
) -> None:
    async with opened(server.url(server.database(migrated=True))) as ledger:
        calls = 0

        def transaction(connection: Connection) -> None:
            nonlocal calls
            calls += 1
            facts.put(connection, "name", "half")
            server.kill() if mode == "kill" else server.stop(mode)
            facts.put(connection, "name", "whole")

        with pytest.raises(Unavailable) as raised:
            await ledger.write(transaction)
        assert not isinstance(raised.value, Unclear)
        assert calls == 1, "what was begun is not begun again"
        server.start()
        assert await fact(ledger) is None
        await put(ledger, "again")


async def test_a_backend_that_is_terminated_before_the_commit_leaves_nothing(ledger: PostgresLedger) -> None:
    def transaction(connection: Connection) -> None:
        facts.put(connection, "name", "half")
        [database] = connection.exec_driver_sql("SELECT current_database()").scalars().all()
        postgres_server().terminate_backends(database)

    with pytest.raises(Unavailable):
        await ledger.write(transaction)
    assert await fact(ledger) is None


async def test_while_the_server_is_away_each_call_fails_at_once_and_none_after_it_is_back(
    server: PostgresServer,
) -> None:
    async with (
        Proxy(server.host, server.port) as proxy,
        opened(server.url(server.database(migrated=True), port=proxy.port)) as ledger,
    ):
        await put(ledger, "before")
        server.stop()
        await proxy.cut()
        asked = proxy.accepted
        for _ in range(10):
            with pytest.raises(Unavailable) as raised:
                async with asyncio.timeout(1):
                    await fact(ledger)
            assert raised.value.message in (NOW.format("it cannot be reached"), NOW.format("the connection was lost"))
        assert proxy.accepted - asked <= 20, "nobody knocks but who wants in"
        server.start()
        async with asyncio.timeout(1):
            assert await fact(ledger) == "before"
            await put(ledger, "after")


ERROR_OF_A_SERVER = b"SFATAL\0VFATAL\0C%s\0Msecret of user tests at 127.0.0.1\0\0"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("57P03", "it is starting or stopping"),
        ("53300", "it takes no more connections"),
        ("28P01", "it refuses the user or the password"),
        ("28000", "it refuses the user or the password"),
        ("3D000", "there is no such database"),
    ],
)
async def test_a_server_that_lets_nobody_in_is_unavailable_and_says_why(state: str, reason: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(4), "big")
        request = await reader.readexactly(length - 4)
        if request == (80877103).to_bytes(4, "big"):  # a wish for TLS
            writer.write(b"N")
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length - 4)
        body = ERROR_OF_A_SERVER % state.encode()
        writer.write(b"E" + (len(body) + 4).to_bytes(4, "big") + body)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable) as raised:
            await PostgresLedger.open(f"postgresql://tests@127.0.0.1:{port}/db", NOTHING_TO_MIGRATE)
    assert raised.value.message == NOW.format(reason)


async def test_a_server_without_tls_is_not_used_where_tls_was_asked_for(database: str) -> None:
    with pytest.raises(Unavailable, match=r"^The database cannot be used now: .*\.$") as raised:
        await PostgresLedger.open(f"{postgres_server().url(database)}?sslmode=require", NOTHING_TO_MIGRATE)
    assert "127.0.0.1" not in raised.value.message


async def test_a_port_nobody_listens_on_is_unavailable() -> None:
    with pytest.raises(Unavailable, match=r"^The database cannot be used now: it cannot be reached\.$"):
        await PostgresLedger.open("postgresql://user:pass@127.0.0.1:1/db", NOTHING_TO_MIGRATE)


# the wire is cut


def once(of: bytes, verdict: Any) -> Callable[[bytes], Any]:
    """The verdict on the first chunk that has these bytes; all others pass."""
    pending = True

    def judge(chunk: bytes) -> Any:
        nonlocal pending
        if pending and of in chunk:
            pending = False
            return verdict
        return "pass"

    return judge


@pytest.mark.parametrize(("verdict", "there"), [("cut", []), ("cut_after", ["value"])])
async def test_a_commit_whose_answer_is_lost_is_unclear_and_a_look_tells_the_truth(
    database: str, verdict: str, there: list[str]
) -> None:
    async with through_a_proxy(database) as (ledger, proxy):
        proxy.on_request = once(b"COMMIT\0", verdict)
        with pytest.raises(Unclear):
            await put(ledger, "value")
        assert stored(database) == there
        assert await fact(ledger) == (there[0] if there else None)
        await put(ledger, "next")


@pytest.mark.parametrize("statement", [b"UPDATE facts", b"INSERT INTO facts"])
@pytest.mark.parametrize("verdict", ["cut", "cut_after"])
async def test_a_connection_that_is_cut_before_the_commit_leaves_nothing_and_nothing_unclear(
    database: str, statement: bytes, verdict: str
) -> None:
    async with through_a_proxy(database) as (ledger, proxy):
        proxy.on_request = once(statement, verdict)
        with pytest.raises(Unavailable) as raised:
            await put(ledger, "value")
        assert not isinstance(raised.value, Unclear)
        assert stored(database) == []
        await put(ledger, "next")
        assert stored(database) == ["next"]


async def test_a_connection_that_is_cut_after_the_answer_is_noticed_by_nobody(database: str) -> None:
    async with through_a_proxy(database) as (ledger, proxy):
        await put(ledger, "value")
        await use_every_connection(ledger)
        await proxy.cut()
        await put(ledger, "next")
        assert stored(database) == ["next"]


@pytest.mark.parametrize("verdict", ["cut", "cut_after", "drop"])
async def test_a_connection_that_turns_out_to_be_dead_is_replaced_before_anything_is_done(
    database: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "BEGIN_SECONDS_MAX", 0.2)
    async with through_a_proxy(database) as (ledger, proxy):
        before = await use_every_connection(ledger)
        calls = 0

        def transaction(connection: Connection) -> int:
            nonlocal calls
            calls += 1
            facts.put(connection, "name", "value")
            backend: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            return backend

        proxy.on_request = once(b"BEGIN", verdict)
        assert await ledger.write(transaction) not in before
        assert calls == 1
        assert not before & await use_every_connection(ledger), "the others were as old"


async def test_a_transaction_is_begun_twice_and_no_more(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "BEGIN_SECONDS_MAX", 0.2)
    async with through_a_proxy(database) as (ledger, proxy):
        begun = 0

        def cut_every_begin(chunk: bytes) -> Any:
            nonlocal begun
            begun += b"BEGIN" in chunk
            return "cut" if b"BEGIN" in chunk else "pass"

        proxy.on_request = cut_every_begin
        with pytest.raises(Unavailable) as raised:
            await put(ledger, "value")
        assert not isinstance(raised.value, Unclear)
        assert begun == 2


async def test_what_was_read_was_read_even_if_the_end_of_its_transaction_is_lost(database: str) -> None:
    async with through_a_proxy(database) as (ledger, proxy):
        await put(ledger, "value")
        proxy.on_request = once(b"COMMIT\0", "cut")
        assert await fact(ledger) == "value"


@pytest.mark.parametrize(
    ("statement", "outcome"), [(b"INSERT INTO facts", Unavailable), (b"COMMIT\0", Unclear)], ids=["before", "commit"]
)
async def test_a_wire_that_falls_silent_holds_nobody_for_ever(
    database: str,
    statement: bytes,
    outcome: type[Unavailable],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No reset, no end: bytes vanish. Neither the transaction nor closing the ledger may wait for them."""
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS_MAX", 0.2)
    monkeypatch.setattr(postgres, "ANSWER_SECONDS_MORE", 0.1)
    monkeypatch.setattr(postgres, "BEGIN_SECONDS_MAX", 0.2)
    monkeypatch.setattr(postgres, "CONNECT_SECONDS_MAX", 0.2)
    monkeypatch.setattr(postgres, "CLOSE_SECONDS_MAX", 0.2)

    async with asyncio.timeout(10):
        async with through_a_proxy(database) as (ledger, proxy):
            await use_every_connection(ledger)

            def fall_silent(chunk: bytes) -> Any:
                if statement in chunk:
                    proxy.silent = True
                    return "drop"
                return "pass"

            proxy.on_request = fall_silent
            with pytest.raises(Unavailable) as raised:
                await put(ledger, "value")
            assert type(raised.value) is outcome
            with pytest.raises(Unavailable, match="it does not answer"):
                await fact(ledger)
            await ledger.close()
            proxy.silent = False
    assert stored(database) == []
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"], "nothing was left pending"


async def test_closing_waits_for_no_server_that_is_silent(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres, "CLOSE_SECONDS_MAX", 0.2)
    async with through_a_proxy(database) as (ledger, proxy):
        await use_every_connection(ledger)
        proxy.silent = True
        async with asyncio.timeout(2):
            await ledger.close()
        proxy.silent = False
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"], "nothing was left pending"


async def test_a_slow_wire_is_slow_and_nothing_worse(database: str) -> None:
    async with through_a_proxy(database) as (ledger, proxy):
        proxy.delay_seconds = 0.02
        await put(ledger, "value")
        assert await fact(ledger) == "value"


async def test_an_unclear_insert_of_runs_is_found_by_their_ids(database: str) -> None:
    """DESIGN: a commit whose answer was lost is looked up by id, never repeated blindly."""
    run = a_run(a_job())
    async with through_a_proxy(database) as (ledger, proxy):
        proxy.on_request = once(b"COMMIT\0", "cut_after")
        with pytest.raises(Unclear):
            await ledger.write(lambda connection: runs.insert(connection, [run]))
        assert await ledger.read(lambda connection: runs.get(connection, run.team_id, run.id)) == run
        with pytest.raises(IntegrityError):
            await ledger.write(lambda connection: runs.insert(connection, [run]))


# the server of the tests

KILLED = """
import sys
from tests.support.postgres import PostgresServer
with PostgresServer() as server:
    print(server.folder, flush=True)
    sys.stdin.read()
"""


def test_a_server_does_not_outlive_tests_that_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        folder = Path(tests.stdout.readline().strip())
        server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        tests.kill()
    pause = threading.Event()
    for _ in range(2_000):
        if not folder.exists() and not Path(f"/proc/{server}").exists():
            return
        pause.wait(0.01)
    raise AssertionError("the server is still there")


async def test_a_node_that_stands_still_between_preparing_and_executing_does_not_keep_its_rows(
    ledger: PostgresLedger,
) -> None:
    """There the server's own time limits end nothing, however long it lasts."""
    job = a_job()
    await keep(ledger, job)
    still = await asyncpg.connect(ledger._dsn, server_settings={"application_name": "0cron"})
    other = await asyncpg.connect(ledger._dsn, server_settings={"application_name": "psql"})
    try:
        for connection in (still, other):
            await connection.execute("BEGIN")
        await still.execute(f"SELECT 1 FROM jobs WHERE id = '{job.id}' FOR UPDATE")
        for connection in (still, other):
            await connection.prepare("SELECT 1 FROM jobs WHERE id = $1")  # and no more is heard of it

        async def ended() -> int:
            return await ledger.write(lambda connection: sessions.end_stalled(connection, seconds=0.3))

        assert await ledger.write(sessions.end_stalled) == 0, "it may still go on"
        deadline = asyncio.get_running_loop().time() + 20
        while not await ended():
            assert asyncio.get_running_loop().time() < deadline
        await ledger.write(lambda connection: run(connection, f"UPDATE jobs SET name = 'free' WHERE id = '{job.id}'"))
        assert not other.is_closed()
        assert await other.fetchval("SELECT 1") == 1, "it is none of ours"
    finally:
        still.terminate()
        other.terminate()
