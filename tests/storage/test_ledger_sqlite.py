"""What is promised of SQLite beyond the contract: one process at a time, the disk before a yes, read-only readers."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.storage.samples import sqlite_ledger
from tests.support.clock import moment

from zerocron.core.errors import Conflict, Unavailable
from zerocron.storage.ledger import database, facts
from zerocron.storage.ledger.database import FileLock, SqliteLedger
from zerocron.storage.migrations import upgrade

HOLDER = """
import asyncio, pathlib, sys
from zerocron.storage.ledger import facts
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.migrations import upgrade

async def hold(path):
    ledger = await SqliteLedger.open(path, upgrade)
    await ledger.write(lambda connection: facts.put(connection, "committed", "yes"))
    print("holding", flush=True)
    sys.stdin.read()

asyncio.run(hold(pathlib.Path(sys.argv[1])))
"""


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the ledger, until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holding\n"
            yield process
        finally:
            process.kill()


async def test_a_second_process_is_refused_by_name_until_the_first_is_gone_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "zerocron.db"
    with another_process(path) as process:
        with pytest.raises(Conflict, match=rf"process {process.pid}\b.*{tmp_path}.*--data-dir"):
            await SqliteLedger.open(path, upgrade)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        ledger = await SqliteLedger.open(path, upgrade)
    assert await ledger.read(lambda connection: facts.get(connection, "committed")) == "yes"
    await ledger.close()


async def test_the_lock_is_given_back_when_the_ledger_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "zerocron.db"
    first = await SqliteLedger.open(path, upgrade)
    with pytest.raises(Conflict, match=f"process {os.getpid()}"):
        await SqliteLedger.open(path, upgrade)
    await first.close()
    second = await SqliteLedger.open(path, upgrade)
    await second.close()


async def test_two_ledgers_opened_at_once_in_one_process_are_both_migrated(tmp_path: Path) -> None:
    """Alembic keeps what it works on in module globals, and each ledger migrates in a thread of its own."""
    begun = threading.Barrier(2, timeout=20)

    def migrate(connection: Connection) -> None:
        begun.wait()
        upgrade(connection)

    paths = [tmp_path / "one" / "zerocron.db", tmp_path / "two" / "zerocron.db"]
    ledgers = await asyncio.gather(*(SqliteLedger.open(path, migrate) for path in paths))
    for ledger, path in zip(ledgers, paths, strict=True):
        await ledger.write(lambda connection, path=path: facts.put(connection, "path", str(path)))  # type: ignore[misc]
    for ledger, path in zip(ledgers, paths, strict=True):
        assert await ledger.read(lambda connection: facts.get(connection, "path")) == str(path)
        await ledger.close()


async def test_a_migration_that_fails_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "zerocron.db"

    def broken(_connection: Connection) -> None:
        raise LookupError("no such revision")

    with pytest.raises(LookupError):
        await SqliteLedger.open(path, broken)
    ledger = await SqliteLedger.open(path, upgrade)
    await ledger.close()


def test_a_lock_whose_holder_cannot_be_read_is_still_a_lock(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.take()
    lock.path.write_bytes(b"")
    with pytest.raises(Conflict, match="process unknown"):
        FileLock(lock.path).take()
    lock.release()
    lock.release()
    FileLock(lock.path).release()


def test_the_lock_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.take()
    assert lock.path.stat().st_mode & 0o777 == 0o600
    assert lock.path.read_text() == str(os.getpid())
    lock.release()


@pytest.mark.parametrize("folder", ["with space", "50%25", "what?mode=ro", "a#b", "ünïcode"])
async def test_a_folder_of_any_name_may_hold_the_ledger(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "zerocron.db"
    ledger = await SqliteLedger.open(path, upgrade)
    await ledger.close()
    assert path.is_file()


def pragma(connection: Connection, name: str) -> object:
    return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


async def test_a_commit_is_on_the_disk_before_anybody_is_told(sqlite: SqliteLedger) -> None:
    def settings(connection: Connection) -> dict[str, object]:
        return {name: pragma(connection, name) for name in ("journal_mode", "synchronous", "busy_timeout")}

    assert await sqlite.write(settings) == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 5_000}


async def test_a_commit_is_in_the_files_that_a_power_cut_would_leave(sqlite: SqliteLedger, tmp_path: Path) -> None:
    await sqlite.write(lambda connection: facts.put(connection, "committed", "yes"))
    left = tmp_path / "left"
    shutil.copytree(tmp_path, left)
    with closing(sqlite3.connect(left / "zerocron.db")) as connection:
        assert connection.execute("SELECT value FROM facts WHERE name = 'committed'").fetchone() == ("yes",)


async def test_readers_cannot_write(sqlite: SqliteLedger) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        await sqlite.read(lambda connection: facts.put(connection, "name", "value"))
    assert await sqlite.read(lambda connection: pragma(connection, "query_only")) == 1
    assert await sqlite.read(lambda connection: facts.get(connection, "name")) is None


async def test_readers_do_not_wait_for_the_writer_nor_for_each_other(sqlite: SqliteLedger) -> None:
    """All of them meet in the middle of their transactions."""
    meeting = threading.Barrier(database.READERS + 1, timeout=20)

    def meet(connection: Connection) -> None:
        facts.get(connection, "name")
        meeting.wait()

    await asyncio.gather(sqlite.write(meet), *(sqlite.read(meet) for _ in range(database.READERS)))


async def test_a_writer_holds_the_file_from_its_first_statement_on(sqlite: SqliteLedger) -> None:
    """It reads, decides and writes: begun as a reader it could find at its end that it may not write."""

    def intrude(connection: Connection) -> str:
        facts.get(connection, "name")
        with closing(sqlite3.connect(sqlite.path, timeout=0)) as other, pytest.raises(sqlite3.Error, match="locked"):
            other.execute("INSERT INTO facts VALUES ('name', 'intruder')")
        facts.put(connection, "name", "mine")
        return "committed"

    assert await sqlite.write(intrude) == "committed"


async def test_what_was_handed_in_is_done_even_if_its_caller_gives_up_before_its_turn(sqlite: SqliteLedger) -> None:
    began, go_on = threading.Event(), threading.Event()

    def block(_connection: Connection) -> None:
        began.set()
        assert go_on.wait(20)

    blocking = asyncio.create_task(sqlite.write(block))
    await asyncio.to_thread(began.wait, 20)
    queued = asyncio.create_task(sqlite.write(lambda connection: facts.put(connection, "name", "done")))
    await asyncio.wait([queued], timeout=0)
    queued.cancel()
    await asyncio.gather(queued, return_exceptions=True)
    await moment()
    go_on.set()
    await blocking
    await sqlite.write(lambda connection: facts.put(connection, "other", "behind it"))
    assert await sqlite.read(lambda connection: facts.get(connection, "name")) == "done"


async def test_a_file_that_somebody_else_holds_is_unavailable_and_then_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 20)
    async with sqlite_ledger(tmp_path) as ledger:
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as backup:
            backup.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match=r"^The database cannot be used now: database is locked\.$"):
                await ledger.write(lambda connection: facts.put(connection, "name", "value"))
            backup.execute("ROLLBACK")
        await ledger.write(lambda connection: facts.put(connection, "name", "value"))


async def test_the_log_is_folded_into_the_file_beside_the_writer(
    sqlite: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CHECKPOINT_COMMITS", 1)
    await sqlite.write(lambda connection: facts.put(connection, "name", "value"))
    assert sqlite._checkpoint is not None
    await asyncio.wrap_future(sqlite._checkpoint)
    with closing(sqlite3.connect(f"file:{sqlite.path}?immutable=1", uri=True)) as file_alone:
        assert file_alone.execute("SELECT value FROM facts WHERE name = 'name'").fetchone() == ("value",)


async def test_closing_ends_every_thread(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        await asyncio.gather(*(ledger.read(lambda connection: pragma(connection, "query_only")) for _ in range(9)))
        assert [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
