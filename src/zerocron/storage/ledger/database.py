"""The ledger: where a transaction begins and ends.

Owns the connection to the database, the one-writer rule of SQLite, and the lock that keeps a second process away from
the same file. A transaction is a plain function of a SQLAlchemy connection; the functions live beside this file, one
module per aggregate, and callers compose them. Must never contain a query of its own.

SQLite runs a transaction whole in its own thread: one hop to it and one back, however many statements it has. A driver
that hops per statement (aiosqlite) starved for seconds behind a busy event loop (decision 0005).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from zerocron.core.errors import Conflict, Unavailable

T = TypeVar("T")
Transaction = Callable[[Connection], T]

READERS = 3
"""Threads (and connections) for queries beside the one writer."""

BUSY_TIMEOUT_MS = 5_000
"""How long SQLite waits for another process that holds the file, such as a backup."""

CHECKPOINT_PAGES = 4_000
"""The write-ahead log is folded into the file after this many 4 kB pages; the default of 1,000 does it four times as
often, each time with a flush of the whole file, in the middle of a burst."""


class Ledger(Protocol):
    """What is true. Both databases keep this contract; `tests/storage/test_ledger_contract.py` is its definition."""

    async def write(self, transaction: Transaction[T]) -> T:
        """Run it in a transaction and commit durably; roll back and raise when it raises.

        Raises Unavailable when the database cannot be written.
        """
        ...

    async def read(self, transaction: Transaction[T]) -> T:
        """Run it on a snapshot. Raises Unavailable when the database cannot be read."""
        ...

    async def close(self) -> None:
        """Let the transactions under way end, then release every connection and lock. Closing twice is no error."""
        ...


class SqliteLedger:
    """The ledger in one file, for one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ledger-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="ledger-reader")
        self._write_engine = _sqlite_engine(path, connections=1, read_only=False)
        self._read_engine = _sqlite_engine(path, connections=READERS, read_only=True)
        self._closed = False

    @classmethod
    async def open(cls, path: Path, migrate: Transaction[None]) -> SqliteLedger:
        """Take the file, bring its schema up to date and hand out the ledger.

        Raises Conflict when another process has the file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        ledger = cls(path)
        ledger._lock.take()
        try:
            await ledger.write(migrate)
        except BaseException:
            await ledger.close()
            raise
        return ledger

    async def write(self, transaction: Transaction[T]) -> T:
        return await self._run(self._writer, self._write_engine, transaction)

    async def read(self, transaction: Transaction[T]) -> T:
        return await self._run(self._readers, self._read_engine, transaction)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for pool in (self._writer, self._readers):
            await asyncio.to_thread(pool.shutdown)
        self._read_engine.dispose()
        self._write_engine.dispose()
        self._lock.release()

    async def _run(self, pool: ThreadPoolExecutor, engine: Engine, transaction: Transaction[T]) -> T:
        def whole() -> T:
            with engine.begin() as connection:
                return transaction(connection)

        try:
            future = asyncio.get_running_loop().run_in_executor(pool, whole)
            # A caller that is cancelled must not leave a commit behind whose outcome nobody waits for.
            return await asyncio.shield(future)
        except OperationalError as error:
            raise Unavailable(f"The database cannot be used now: {_cause(error)}.") from error


def _cause(error: DBAPIError) -> str:
    return str(error.orig) if error.orig is not None else "unknown error"


def _sqlite_engine(path: Path, *, connections: int, read_only: bool) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA temp_store = MEMORY")
        if read_only:
            cursor.execute("PRAGMA query_only = ON")
        else:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = FULL")
            cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver would begin late and deferred: a transaction that reads first could then fail to write.
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


class FileLock:
    """An advisory lock on a file beside the database; the system releases it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def take(self) -> None:
        """Raises Conflict, naming the holder, when another process has it."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise Conflict(
                f"Another 0cron (process {holder}) already uses {self.path.parent}. "
                "Stop it first, or give this one its own --data-dir."
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give it back; no error when it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
