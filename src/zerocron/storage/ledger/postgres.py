"""The ledger in PostgreSQL: for any number of nodes.

Owns the connections to the server, how each is set up, and what its failures mean. Keeps the contract of
`database.Ledger`. Must never contain a query on our tables, and must never repeat a transaction whose commit was sent.

The connections live in an event loop of their own, in a thread of their own. In the caller's loop every statement of
a transaction would wait for its turn behind whatever else that loop does; here a transaction is one hop there and one
back, however many statements it has. (Five statements beside a loop that always has 150 ms of work: 0.46 s, and 2.0 s
in that loop. Beside one that is busy nine tenths of the time: 32 ms at p99, and 56 ms. Beside an idle one: 2.4 ms, and
2.2 ms.)

What a failure means is decided by how far the transaction came:

    BEGIN fails on a connection from the pool      nothing happened: once more, on a new connection
    anything fails before COMMIT is sent           Unavailable: nothing happened
    PostgreSQL answers COMMIT with an error        Unavailable: it was rolled back
    COMMIT was sent and no answer came             Unclear: look the change up by its id
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError, DisconnectionError, NotSupportedError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.util import await_only, greenlet_spawn

from zerocron.core.errors import Invalid, Unavailable, Unclear
from zerocron.storage.ledger.database import Transaction

T = TypeVar("T")

CONNECTIONS_MAX = 10
"""Of one node. PostgreSQL's own limit (100 unless raised) is shared by all nodes."""

READERS_SHARE = 0.3
"""Of the connections, for `read`: lists that people ask for never keep the engine's writes waiting."""

POOL_WAIT_SECONDS = 5.0
"""How long a transaction waits for a connection that is free."""

CONNECT_SECONDS_MAX = 5.0

BEGIN_SECONDS_MAX = 3.0
"""BEGIN waits for nothing in the server. Without an answer by then the connection is dead and nobody told us."""

STATEMENT_SECONDS_MAX = 10.0
"""PostgreSQL ends a statement that takes longer; ours take milliseconds."""

ANSWER_SECONDS_MORE = 2.0
"""When PostgreSQL has not ended the statement itself by so much later, it or the network is gone."""

LOCK_SECONDS_MAX = 2.0
"""How long a statement waits for a row that another transaction holds."""

IDLE_IN_TRANSACTION_SECONDS_MAX = 10.0
"""A node that stops in the middle of a transaction holds its rows for no longer."""

CONNECTION_AGE_SECONDS_MAX = 1_800
"""Older connections are replaced: a server that moved is found in the end, and what the old ones cached is let go."""

MIGRATION_SECONDS_MAX = 600.0
"""For a migration, and for the wait until another node has done it."""

CLOSE_SECONDS_MAX = 2.0

STATEMENTS_KEPT = 500
"""Prepared statements a connection keeps: all that there are."""

MIGRATION_LOCK = int.from_bytes(b"0cron")
"""The key of the advisory lock under which the schema is migrated: any number, the same in all releases."""


class PostgresLedger:
    """The ledger of a cluster."""

    def __init__(self, url: str, *, connections_max: int = CONNECTIONS_MAX) -> None:
        """Connects to nothing yet. Raises Invalid when the URL makes no sense."""
        dsn = _dsn(url)
        if connections_max < 2:
            raise Invalid("The ledger needs two connections or more: one to read and one to write.")
        readers = max(1, round(connections_max * READERS_SHARE))
        self._dsn = dsn
        self._writers = _Pool(dsn, "BEGIN ISOLATION LEVEL READ COMMITTED", connections_max - readers)
        # A snapshot: two statements of one `read` see one state, as the contract says.
        self._readers = _Pool(dsn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", readers)
        self._thread = _LoopThread("ledger-postgres")
        self._closed = False

    @classmethod
    async def open(
        cls, url: str, migrate: Transaction[None], *, connections_max: int = CONNECTIONS_MAX
    ) -> PostgresLedger:
        """Bring the schema up to date, after or before other nodes that do the same, and hand out the ledger.

        `url` is postgresql://user:password@host:port/database with libpq's TLS parameters behind a question mark.
        Raises Invalid when it makes no sense, Unavailable when the server cannot be used.
        """
        ledger = cls(url, connections_max=connections_max)
        try:
            await ledger._in_thread(lambda: _migrate(ledger._dsn, migrate))
        except BaseException:
            await ledger.close()
            raise
        return ledger

    async def write(self, transaction: Transaction[T]) -> T:
        return await self._in_thread(lambda: self._writers.commit(transaction))

    async def read(self, transaction: Transaction[T]) -> T:
        return await self._in_thread(lambda: self._readers.look(transaction))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._thread.finish, self._dispose)

    async def _dispose(self) -> None:
        await self._writers.dispose()
        await self._readers.dispose()

    async def _in_thread(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._closed:
            raise Unavailable("The ledger is closed.")
        future = asyncio.wrap_future(self._thread.submit(work()))
        # A caller that is cancelled must not leave a commit behind whose outcome nobody waits for.
        return await asyncio.shield(future)


class _Pool:
    """Connections that are set up alike, and the transactions on them. Lives in the ledger's own loop."""

    def __init__(self, dsn: str, begin: str, connections: int) -> None:
        self._begin = begin
        self._generation = 0
        self._drivers: set[asyncpg.Connection[Any]] = set()
        self._engine = _engine(
            dsn,
            STATEMENT_SECONDS_MAX,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=POOL_WAIT_SECONDS,
            pool_recycle=CONNECTION_AGE_SECONDS_MAX,
            pool_use_lifo=True,
            pool_reset_on_return=None,  # `_rolled_back` and COMMIT have done it
        )
        event.listen(self._engine.sync_engine, "connect", self._note)
        event.listen(self._engine.sync_engine, "checkout", self._refuse_dead)

    async def commit(self, transaction: Transaction[T]) -> T:
        """Raises Unclear when the answer to COMMIT was lost, Unavailable when nothing happened."""
        return await self._attempt(lambda connection, driver: _committed(connection, driver, transaction))

    async def look(self, transaction: Transaction[T]) -> T:
        """Raises Unavailable."""
        return await self._attempt(lambda connection, driver: _seen(connection, driver, transaction))

    async def dispose(self) -> None:
        # All at once and not for long: the engine would wait for each of them, however silent its server is.
        await asyncio.gather(
            *(driver.close(timeout=CLOSE_SECONDS_MAX) for driver in self._drivers), return_exceptions=True
        )
        await self._engine.dispose()

    async def _attempt(self, work: Callable[[Connection, asyncpg.Connection[Any]], T]) -> T:
        with _failures_explained():
            try:
                return await greenlet_spawn(self._once, work)
            except _StaleConnection:
                return await greenlet_spawn(self._once, work, last=True)

    def _once(self, work: Callable[[Connection, asyncpg.Connection[Any]], T], *, last: bool = False) -> T:
        with self._engine.sync_engine.connect() as connection:
            driver = _driver(connection)
            try:
                await_only(driver.execute(self._begin, timeout=BEGIN_SECONDS_MAX))
            except Exception as error:
                self._distrust(connection)
                _drop(connection, driver)
                if last:
                    raise
                raise _StaleConnection from error
            try:
                return work(connection, driver)
            except DBAPIError as error:
                if _sqlstate(error) in _SERVER_LEAVES:
                    self._distrust(connection)
                raise

    def _note(self, connection: Any, record: Any) -> None:
        self._drivers = {driver for driver in self._drivers if not driver.is_closed()}
        self._drivers.add(connection.driver_connection)
        record.info["generation"] = self._generation

    def _refuse_dead(self, connection: Any, record: Any, _proxy: Any) -> None:
        """The pool makes a new connection in the place of the one it would have handed out."""
        if record.info["generation"] != self._generation or connection.driver_connection.is_closed():
            raise DisconnectionError

    def _distrust(self, connection: Connection) -> None:
        """This one is dead, and those that were made before that was found out may be, too."""
        if connection.info.get("generation") == self._generation:
            self._generation += 1


class _StaleConnection(Exception):
    """A connection from the pool turned out to be dead before anything was done with it."""


def _committed(connection: Connection, driver: asyncpg.Connection[Any], transaction: Transaction[T]) -> T:
    result = _done(connection, driver, transaction)
    if driver.is_closed():
        _drop(connection, driver)
        raise Unavailable(_NOT_NOW.format("the connection was lost"))
    try:
        ended: str = await_only(driver.execute("COMMIT"))
    except BaseException as error:
        _drop(connection, driver)
        if _is_refusal(error):
            raise
        raise Unclear(
            "The database's answer was lost: whether the change was made is not known. Look before trying again."
        ) from error
    if ended != "COMMIT":  # PostgreSQL ends a failed transaction so, without an error
        raise RuntimeError("a transaction went on after one of its statements had failed")
    return result


def _seen(connection: Connection, driver: asyncpg.Connection[Any], transaction: Transaction[T]) -> T:
    result = _done(connection, driver, transaction)
    try:
        await_only(driver.execute("COMMIT", timeout=BEGIN_SECONDS_MAX))
    except Exception:
        _drop(connection, driver)  # what was read was read
    return result


def _done(connection: Connection, driver: asyncpg.Connection[Any], transaction: Transaction[T]) -> T:
    """The transaction up to its end; rolled back when it raises."""
    try:
        return transaction(connection)
    except BaseException as error:
        # A connection that gave no answer is given up at once: asking it for anything more would wait again.
        if driver.is_closed() or isinstance(error, (OSError, asyncio.CancelledError)):
            _drop(connection, driver)
        else:
            try:
                await_only(driver.execute("ROLLBACK", timeout=BEGIN_SECONDS_MAX))
            except Exception:
                _drop(connection, driver)
        raise


def _drop(connection: Connection, driver: asyncpg.Connection[Any]) -> None:
    driver.terminate()
    connection.invalidate()


def _driver(connection: Connection) -> asyncpg.Connection[Any]:
    driver: asyncpg.Connection[Any] = connection.connection.driver_connection
    return driver


async def _migrate(dsn: str, migrate: Transaction[None]) -> None:
    """One of all nodes at a time; who comes later finds it done."""

    def whole(connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.exec_driver_sql("SET LOCAL application_name = '0cron migration'")  # no node ends it for its silence
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{MIGRATION_SECONDS_MAX}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        # Of a table it is not patient: everybody who uses the table would stand in line behind a migration that waits.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS_MAX}s'")
        migrate(connection)

    def once() -> None:
        with engine.sync_engine.connect() as connection:
            driver = _driver(connection)
            await_only(driver.execute("BEGIN ISOLATION LEVEL READ COMMITTED"))
            _committed(connection, driver, whole)

    engine = _engine(dsn, MIGRATION_SECONDS_MAX, poolclass=NullPool)
    try:
        with _failures_explained():
            await greenlet_spawn(once)
    finally:
        await engine.dispose()


def _engine(dsn: str, statement_seconds_max: float, **pool: Any) -> AsyncEngine:
    """AUTOCOMMIT, because BEGIN and COMMIT are ours: their answers decide what a failure means."""
    settings = {
        "application_name": "0cron",
        "statement_timeout": f"{statement_seconds_max}s",
        "lock_timeout": f"{LOCK_SECONDS_MAX}s",
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_SECONDS_MAX}s",
        # Said here it wins over what the server, the database or the role has: a commit is on the disk when we say so.
        "synchronous_commit": "on",
        "timezone": "UTC",
        "jit": "off",  # compiles for longer than our statements run
        # A plan kept from when the tables were empty would read them whole when they are not.
        "plan_cache_mode": "force_custom_plan",
        # What the hot statements touch is in memory, where an index costs what it costs here: with the 4.0 of spinning
        # disks, fifteen jobs among four thousand were found by reading them all (1.7 ms; 0.06 ms through the index).
        "random_page_cost": "1.1",
        # The server, too, finds out about nodes that are gone, and lets go of what they held.
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
        "tcp_user_timeout": "30000",
    }

    async def connect() -> asyncpg.Connection[Any]:
        try:
            driver = await asyncpg.connect(
                dsn,
                timeout=CONNECT_SECONDS_MAX,
                command_timeout=statement_seconds_max + ANSWER_SECONDS_MORE,
                server_settings=settings,
            )
        except ValueError as error:  # the driver's ClientConfigurationError is one, too
            raise _invalid("its parameters do not go together, or want a file that is not there") from error
        _keep_alive(driver)
        return driver

    return create_async_engine(
        "postgresql+asyncpg://",
        connect_args={"async_creator_fn": connect, "prepared_statement_cache_size": STATEMENTS_KEPT},
        isolation_level="AUTOCOMMIT",
        skip_autocommit_rollback=True,
        hide_parameters=True,
        **pool,
    )


def _keep_alive(driver: asyncpg.Connection[Any]) -> None:
    """Ask the system to notice a server that is gone, on connections that wait in the pool, too."""
    transport: asyncio.Transport = driver._transport
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000)):
        option = getattr(socket, name, None)  # not every system has them all
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


# what a failure means

_NOT_NOW = "The database cannot be used now: {}."

_SERVER_LEAVES = frozenset({"25006", "57P01", "57P02", "57P03"})
"""After these the other connections are no good either: it stops, or is a standby now."""

_REASONS = {
    "08": "the connection was lost",
    "25006": "it is read-only",
    "25P03": "the transaction stood still for too long",
    "25P04": "the transaction took too long",
    "28": "it refuses the user or the password",
    "3D000": "there is no such database",
    "40": "another transaction was in the way",
    "53": "it has no resources left",
    "53100": "its disk is full",
    "53200": "it has no memory left",
    "53300": "it takes no more connections",
    "55P03": "another transaction holds what this one needs",
    "57": "it is starting or stopping",
    "57014": "it took too long",
    "58": "it cannot read or write its files",
    "XX": "it failed",
}
"""By SQLSTATE, or its class. What is not here is our own mistake, or an answer such as IntegrityError."""


@contextlib.contextmanager
def _failures_explained() -> Iterator[None]:
    """Everything that means "not now" becomes Unavailable, in words without an address, a name or a statement."""
    try:
        yield
    except (
        PoolTimeout,
        DBAPIError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
    ) as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise Unavailable(_NOT_NOW.format(reason)) from error


def _reason(error: Exception) -> str | None:
    if isinstance(error, PoolTimeout):
        return "all connections are in use"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, ssl.SSLError):
        return "no secure connection can be made to it"
    if isinstance(error, OSError):
        return "it cannot be reached"
    state = _sqlstate(error)
    if state is not None:
        return _REASONS.get(state) or _REASONS.get(state[:2])
    if isinstance(error, NotSupportedError):  # what the driver makes of a prepared statement that has become invalid
        return "its tables have just changed"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "none of its servers can be written to"
    if isinstance(error, DBAPIError) and not error.connection_invalidated:
        return None
    return "the connection was lost"


def _sqlstate(error: BaseException) -> str | None:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return getattr(cause, "sqlstate", None)


def _is_refusal(error: BaseException) -> bool:
    """PostgreSQL rolled the transaction back and says so, rather than going down."""
    return isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", None) == "ERROR"


# where the server is

_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_FILES = ("passfile", "sslcert", "sslcrl", "sslkey", "sslrootcert")
_UNDERSTOOD = frozenset(
    {
        *_FILES,
        "dbname",
        "host",
        "options",
        "password",
        "port",
        "ssl_max_protocol_version",
        "ssl_min_protocol_version",
        "sslmode",
        "sslnegotiation",
        "sslpassword",
        "target_session_attrs",
        "user",
    }
)
"""What asyncpg takes from a URL and understands as libpq does. It would send anything else to the server."""

_OURS = frozenset({"application_name", "connect_timeout", "fallback_application_name", "tcp_user_timeout"})
"""What libpq knows, and what this ledger decides itself."""

_OPTIONAL = {"channel_binding": ("disable", "prefer"), "gssencmode": ("disable", "prefer", "allow")}
"""What asyncpg cannot do, and which of its values do not insist on it."""

_TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _dsn(url: str) -> str:
    """The URL as asyncpg takes it. Raises Invalid, and repeats nothing of it but the names of parameters."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _invalid("it is not a URL") from None
    if parts.scheme not in _SCHEMES:
        raise _invalid("it has to begin with postgresql://")
    _check_hosts(parts.netloc)
    for name, value in query.items():
        _check_parameter(name, value)
    if not (parts.path.strip("/") or query.get("dbname")):
        raise _invalid("it names no database: postgresql://user:password@host:port/database")
    kept = {name: value for name, value in query.items() if name in _UNDERSTOOD}
    if "," in parts.netloc:
        kept.setdefault("target_session_attrs", "read-write")  # of several servers, the one that can be written to
    return urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(kept), ""))


def _check_hosts(netloc: str) -> None:
    if netloc.count("@") > 1:
        raise _invalid("an @ in a user or password is written %40")
    for host in netloc.rpartition("@")[2].split(","):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise _invalid("its port is no number, or its password has a / # or ? that is not written %2F %23 or %3F")


def _check_parameter(name: str, value: str) -> None:
    if name in _OPTIONAL:
        if value not in _OPTIONAL[name]:
            raise _invalid(f"{name}={value} is not supported")
    elif name == "sslmode" and value not in _TLS_MODES:
        raise _invalid(f"sslmode is one of {', '.join(_TLS_MODES)}")
    elif name in _FILES:
        if not os.access(value, os.R_OK):
            raise _invalid(f"the file of {name} is not there, or cannot be read")
    elif name not in _UNDERSTOOD | _OURS and not name.startswith("keepalives"):
        raise _invalid(f"there is no parameter {name!r}")


def _invalid(fault: str) -> Invalid:
    return Invalid(f"The database URL cannot be used: {fault}.")


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one: a burst of 10,000 runs costs the process 7 % less than with Python's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._under_way: set[Future[Any]] = set()
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def finish(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let everything under way end, then do the last thing, then end the thread."""
        wait(list(self._under_way))
        self.submit(last()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def connect_alone(url: str) -> asyncpg.Connection[Any]:
    """A connection outside of the pool, in the caller's loop, for what lasts as long as the process (an advisory lock).

    Raises Invalid, Unavailable.
    """
    with _failures_explained():
        driver = await asyncpg.connect(
            _dsn(url),
            timeout=CONNECT_SECONDS_MAX,
            command_timeout=CONNECT_SECONDS_MAX,
            server_settings={"application_name": "0cron"},
        )
    _keep_alive(driver)
    return driver
