"""The migrations lead to exactly the shape of tables.py, and doing them again changes nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Inspector, MetaData, create_engine, inspect
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.exc import IntegrityError
from tests.engine.book import Book
from tests.storage.samples import MINUTE, NOON, a_job, a_run
from tests.support.postgres import postgres_server

from zerocron.core.model import DEFAULT_TEAM_ID, Definition, RetryPolicy, SuccessRule
from zerocron.storage import migrations
from zerocron.storage.ledger import jobs, runs, sessions
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.tables import metadata
from zerocron.storage.migrations import upgrade

T = TypeVar("T")
TABLES = sorted(metadata.tables)


def new_database(path: Path) -> Engine:
    return create_engine(f"sqlite:///{path}")


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[Connection]:
    """A database as the migrations make it."""
    engine = new_database(tmp_path / "migrated.db")
    with engine.begin() as connection:
        upgrade(connection)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.fixture
def declared(tmp_path: Path) -> Iterator[Connection]:
    """A database as tables.py says."""
    engine = new_database(tmp_path / "declared.db")
    metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def shape(inspector: Inspector, table: str) -> dict[str, Any]:
    """Everything about a table that the database can tell, its names included."""
    columns = [
        (column["name"], str(column["type"]), column["nullable"], column["default"])
        for column in inspector.get_columns(table)
    ]
    return {
        "columns": sorted(columns),  # a column that came later stands behind the others, and every query names its own
        "primary key": inspector.get_pk_constraint(table),
        "unique": sorted(inspector.get_unique_constraints(table), key=str),
        "checks": sorted(inspector.get_check_constraints(table), key=str),
        "indexes": sorted(map(_with_condition, inspector.get_indexes(table)), key=str),
        "foreign keys": inspector.get_foreign_keys(table),
        "options": inspector.get_table_options(table),
    }


def _with_condition(index: ReflectedIndex) -> dict[str, Any]:
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": options}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_same_shape_by_both_roads(migrated: Connection, declared: Connection, table: str) -> None:
    assert shape(inspect(migrated), table) == shape(inspect(declared), table)


def test_both_roads_lead_to_the_same_tables(migrated: Connection) -> None:
    assert sorted(inspect(migrated).get_table_names()) == sorted([*TABLES, "alembic_version"])


def test_alembic_finds_nothing_left_to_do(migrated: Connection) -> None:
    assert compare_metadata(MigrationContext.configure(migrated), metadata) == []


def test_alembic_would_notice_a_column_more() -> None:
    """The comparison above has teeth."""
    changed = MetaData()
    for table in metadata.tables.values():
        table.to_metadata(changed)
    changed.remove(changed.tables["facts"])
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        upgrade(connection)
        assert compare_metadata(MigrationContext.configure(connection), changed)
    engine.dispose()


def everything(connection: Connection) -> list[Any]:
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").all()
    version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
    return [*rows, *version]


def test_migrating_again_changes_nothing(migrated: Connection) -> None:
    before = everything(migrated)
    written: int = migrated.exec_driver_sql("SELECT total_changes()").scalar_one()
    upgrade(migrated)
    assert everything(migrated) == before
    assert migrated.exec_driver_sql("SELECT total_changes()").scalar_one() == written


async def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    """DDL is part of the transaction too."""

    def broken(connection: Connection) -> None:
        upgrade(connection)
        raise LookupError

    with pytest.raises(LookupError):
        await SqliteLedger.open(tmp_path / "new.db", broken)
    engine = new_database(tmp_path / "new.db")
    assert inspect(engine).get_table_names() == []
    engine.dispose()


async def in_postgres(migrate: Callable[[Connection], None], look: Callable[[Connection], T]) -> T:
    """What is seen in a new PostgreSQL database that was made in this way."""
    server = postgres_server()
    database = server.database()
    ledger = await PostgresLedger.open(server.url(database), migrate)
    try:
        return await ledger.read(look)
    finally:
        await ledger.close()
        server.drop(database)


def all_shapes(connection: Connection) -> dict[str, dict[str, Any]]:
    return {table: shape(inspect(connection), table) for table in inspect(connection).get_table_names()}


async def test_all_tables_have_the_same_shape_by_both_roads_on_postgresql() -> None:
    migrated = await in_postgres(upgrade, all_shapes)
    assert migrated.pop("alembic_version")
    assert migrated == await in_postgres(metadata.create_all, all_shapes)
    assert sorted(migrated) == TABLES
    partial = {
        index["name"]
        for found in migrated.values()
        for index in found["indexes"]
        if "postgresql_where" in index["dialect_options"]
    }
    assert partial == {
        index.name
        for table in metadata.tables.values()
        for index in table.indexes
        if index.dialect_options["postgresql"]["where"] is not None
    }


async def test_alembic_finds_nothing_left_to_do_on_postgresql() -> None:
    found = await in_postgres(
        upgrade, lambda connection: compare_metadata(MigrationContext.configure(connection), metadata)
    )
    assert found == []


async def test_migrating_again_changes_nothing_on_postgresql() -> None:
    def twice(connection: Connection) -> None:
        upgrade(connection)
        before = all_shapes(connection)
        upgrade(connection)
        assert all_shapes(connection) == before

    versions = await in_postgres(
        twice, lambda connection: connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
    )
    assert len(versions) == 1


async def test_names_follow_the_convention_on_postgresql() -> None:
    def look(connection: Connection) -> None:
        for table in TABLES:
            check_names(inspect(connection), table)

    await in_postgres(upgrade, look)


def test_there_is_one_line_of_revisions() -> None:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    revisions = list(scripts.walk_revisions())
    assert len(scripts.get_heads()) == len(scripts.get_bases()) == 1
    assert [revision.revision for revision in reversed(revisions)] == [
        f"{number:04}" for number in range(1, len(revisions) + 1)
    ]
    for revision in revisions:
        assert Path(revision.path).name.startswith(f"{revision.revision}_")
        assert not hasattr(revision.module, "downgrade"), "forward only"


@pytest.mark.parametrize("table", TABLES)
def test_names_follow_the_convention(migrated: Connection, table: str) -> None:
    check_names(inspect(migrated), table)


def check_names(inspector: Inspector, table: str) -> None:
    columns = {column["name"] for column in inspector.get_columns(table)}
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", table)
    for name in columns:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
    assert inspector.get_pk_constraint(table)["name"] == f"pk_{table}"
    for unique in inspector.get_unique_constraints(table):
        assert unique["name"] == f"uq_{table}_{'_'.join(unique['column_names'])}"
    for check in inspector.get_check_constraints(table):
        assert (check["name"] or "").startswith(f"ck_{table}_")
    for index in inspector.get_indexes(table):
        if "duplicates_constraint" in index:  # how PostgreSQL keeps a unique constraint
            continue
        assert (index["name"] or "").startswith(f"ix_{table}_{index['column_names'][0]}")


@pytest.mark.parametrize("table", TABLES)
def test_instants_have_64_bits_and_end_in_words_of_time(table: str) -> None:
    for column in metadata.tables[table].columns:
        if column.name.endswith(("_at", "_since", "_until")) or column.name == "scheduled_for":
            assert str(column.type) == "BIGINT", column


OLD_JOB: dict[str, Any] = {
    "id": "01a20000-0000-7000-8000-000000000001",
    "team_id": DEFAULT_TEAM_ID,
    "version": 2,
    "status": "active",
    "name": "Nightly report",
    "schedule": "* * * * *",
    "schedule_kind": "cron",
    "schedule_cron": "* * * * *",
    "timezone": "UTC",
    "method": "POST",
    "url": "https://example.com/hook",
    "headers": '[["X-Who","me"]]',
    "body": "{}",
    "timeout_seconds": 30.0,
    "retry_attempts": 3,
    "retry_backoff": "linear",
    "retry_delay_seconds": 2.5,
    "success": '[["2xx","404"],"ok",null]',
    "overlap": "skip",
    "catchup": "latest",
    "catchup_window_seconds": 86_400,
    "on_lost": "rerun",
    "notify": "{}",
    "tags": '["a"]',
    "warnings": "[]",
    "next_run_at": NOON,
    "succeeded": 7,
    "created_at": NOON - 9,
    "updated_at": NOON - 5,
}
"""A job as release 0.1.0 wrote it."""


def _old_version(number: int, url: str) -> dict[str, Any]:
    definition = {
        "method": "POST",
        "url": url,
        "headers": [["X-Who", "me"]],
        "body": "{}",
        "timeout_seconds": 30.0,
        "retry": [3, "linear", 2.5],
        "success": [["2xx", "404"], "ok", None],
    }
    return {
        "job_id": OLD_JOB["id"],
        "version": number,
        "team_id": DEFAULT_TEAM_ID,
        "status": "active",
        "schedule": "{}",
        "definition": json.dumps(definition),
        "created_at": NOON - 9,
    }


def _as_release_0_1_0_left_it(connection: Connection) -> None:
    """A job of two versions, a run that waits for its retry under the first, and the session of a killed process."""

    def add(into: str, row: dict[str, Any]) -> None:
        connection.execute(sa.table(into, *map(sa.column, row)).insert(), row)

    upgrade(connection, "0001")
    add("jobs", OLD_JOB)
    add("job_versions", _old_version(1, "https://example.com/before"))
    add("job_versions", _old_version(2, OLD_JOB["url"]))
    waiting = a_run(a_job(id=OLD_JOB["id"]), NOON - MINUTE, status="retrying", retry_at=NOON, job_version=1)
    runs.insert(connection, [waiting])
    session = {"id": "dead", "node": "n", "version": "0.1.0", "started_at": 0, "renewed_at": 0, "expires_at": 30_000}
    add("sessions", session)


async def test_a_ledger_of_release_0_1_0_goes_on_as_it_was(tmp_path: Path) -> None:
    """An upgrade keeps every job, what it was before, and the runs that wait; and the job runs."""
    before = await SqliteLedger.open(tmp_path / "zerocron.db", _as_release_0_1_0_left_it)
    await before.close()
    ledger = await SqliteLedger.open(tmp_path / "zerocron.db", upgrade)
    try:
        job = await ledger.read(lambda connection: jobs.get(connection, DEFAULT_TEAM_ID, OLD_JOB["id"]))
        assert job is not None
        wanted = Definition(
            "POST",
            "https://example.com/hook",
            (("X-Who", "me"),),
            "{}",
            30.0,
            RetryPolicy(3, "linear", 2.5),
            SuccessRule(("2xx", "404"), "ok"),
        )
        assert (job.definition, job.version, job.status, job.tags) == (wanted, 2, "active", ("a",))
        assert (job.state.succeeded, job.state.next_run_at, job.state.crowded, job.disable_after) == (7, NOON, 0, 0)
        kept = await ledger.read(lambda connection: jobs.definitions(connection, [(job.id, 1), (job.id, 2)]))
        assert kept == {
            (job.id, 1): dataclasses.replace(wanted, url="https://example.com/before"),
            (job.id, 2): wanted,
        }
        assert [run.id for run in await ledger.read(lambda c: runs.due(c, until=NOON, limit=9))]
        assert await ledger.read(lambda connection: sessions.unended_except(connection, "")) == ["dead"]
        started = await Book(ledger).start(job)
        assert [run.run.scheduled_for for run in started.runs] == [NOON]
        with pytest.raises(IntegrityError):
            await ledger.write(lambda c: c.exec_driver_sql("UPDATE jobs SET status = 'nonsense'").close())
    finally:
        await ledger.close()


def test_the_first_revision_is_as_it_was_released() -> None:
    """A migration that has been run somewhere is never edited: a ledger that has it would miss the difference."""
    text = (Path(migrations.__file__).parent / "versions" / "0001_first_light.py").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "4e39774ce7e7ca784a3049fc69d0a9316db42c81657b61ef9ba43d9d52b8a422"
