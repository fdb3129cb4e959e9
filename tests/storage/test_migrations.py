"""The migrations lead to exactly the shape of tables.py, and doing them again changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Inspector, MetaData, create_engine, inspect
from sqlalchemy.engine.interfaces import ReflectedIndex

from zerocron.storage import migrations
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.tables import metadata
from zerocron.storage.migrations import upgrade

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
        "columns": columns,
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
    inspector = inspect(migrated)
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
        assert (index["name"] or "").startswith(f"ix_{table}_{index['column_names'][0]}")


@pytest.mark.parametrize("table", TABLES)
def test_instants_have_64_bits_and_end_in_words_of_time(table: str) -> None:
    for column in metadata.tables[table].columns:
        if column.name.endswith(("_at", "_since", "_until")) or column.name == "scheduled_for":
            assert str(column.type) == "BIGINT", column
