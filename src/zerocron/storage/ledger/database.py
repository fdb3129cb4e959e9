"""The ledger: where a transaction begins and ends.

Owns the connection to the database, the one-writer rule of SQLite, and the lock that keeps a second process away from
the same file. A transaction is a plain function of a SQLAlchemy connection; the functions live beside this file, one
module per aggregate, and callers compose them. Must never contain a query of its own.

SQLite runs a transaction whole in its own thread: one hop to it and one back, however many statements it has. A driver
that hops per statement (aiosqlite) starved for seconds behind a busy event loop (decision 0005).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from zerocron.core.errors import Conflict, Unavailable

T = TypeVar("T")
Transaction = Callable[[Connection], T]

READERS = 3
"""Threads (and connections) for queries beside the one writer."""

BUSY_TIMEOUT_MS = 5_000
"""How long SQLite waits for another process that holds the file, such as a backup."""

CHECKPOINT_COMMITS = 500
"""After this many commits the write-ahead log is folded into the file, by a thread of its own and without keeping the
writer from its work. SQLite itself would do it within a commit, and every run behind that commit would be late."""

CHECKPOINT_PAGES_MAX = 32_768
"""At this size of the log (128 MB) a commit does it after all: the thread could not keep up, and a disk is finite."""


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
        self._checkpointer = ThreadPoolExecutor(1, thread_name_prefix="ledger-checkpoint")
        self._checkpoint: Future[None] | None = None
        self._commits = 0
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

    @classmethod
    def beside(cls, path: Path) -> SqliteLedger:
        """The file of a server that runs, for one small transaction of a command: SQLite itself keeps the two apart.

        It takes no lock and migrates nothing. Not for anything that a server remembers, such as jobs.
        """
        return cls(path)

    async def write(self, transaction: Transaction[T]) -> T:
        result = await self._run(self._writer, self._write_engine, transaction)
        self._commits += 1
        if self._commits >= CHECKPOINT_COMMITS and (self._checkpoint is None or self._checkpoint.done()):
            self._commits = 0
            self._checkpoint = self._checkpointer.submit(_fold_log, self.path)
        return result

    async def read(self, transaction: Transaction[T]) -> T:
        return await self._run(self._readers, self._read_engine, transaction)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for pool in (self._writer, self._readers, self._checkpointer):
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


def _fold_log(path: Path) -> None:
    """Copy what the log holds into the file, as far as nobody is in the way."""
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as connection, contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _cause(error: DBAPIError) -> str:
    return str(error.orig) if error.orig is not None else "unknown error"


def _sqlite_engine(path: Path, *, connections: int, read_only: bool) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),  # as text, a "?" or "%" in the path would mean something
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
            cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES_MAX}")
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
