"""The few places where the two databases differ: what each is asked."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Dialect, select
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.sql import ClauseElement
from tests.storage.samples import NOON

from zerocron.storage.ledger.dialect import batch, columns_of, insert_batch, lock_rows, pack, pack_wide, packed
from zerocron.storage.ledger.tables import jobs, runs

DIALECTS: dict[str, Dialect] = {"sqlite": SQLiteDialect(), "postgresql": PGDialect()}  # type: ignore[no-untyped-call]


def sql(statement: ClauseElement, dialect: str) -> str:
    return " ".join(str(statement.compile(dialect=DIALECTS[dialect])).split())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_batch_is_one_parameter_whatever_its_size(dialect: str) -> None:
    rows = batch(dialect, columns_of((runs.c.id, runs.c.scheduled_for)))
    statement = select(rows.c.id, rows.c.scheduled_for).compile(dialect=DIALECTS[dialect])
    assert list(statement.params).count("rows") == 1
    assert json.loads(pack([["a", NOON], ["b", None]])["rows"]) == [["a", NOON], ["b", None]]


def test_numbers_of_a_batch_are_numbers_on_postgresql_too() -> None:
    rows = batch("postgresql", columns_of((runs.c.id, runs.c.scheduled_for, jobs.c.timeout_seconds)))
    text = sql(select(rows), "postgresql")
    assert "AS TEXT) AS id" in text
    assert "AS BIGINT) AS scheduled_for" in text
    assert "AS DOUBLE PRECISION) AS timeout_seconds" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_that_exist_are_left_alone_only_where_asked(dialect: str) -> None:
    columns = (runs.c.id, runs.c.scheduled_for)
    assert "ON CONFLICT" not in sql(insert_batch(dialect, columns), dialect)
    assert sql(insert_batch(dialect, columns, ignore_existing=True), dialect).endswith("ON CONFLICT DO NOTHING")


def test_wide_rows_are_an_array_for_each_column_on_postgresql_alone() -> None:
    columns = (runs.c.id, runs.c.scheduled_for, jobs.c.timeout_seconds)
    rows = [["a", NOON, 1.5], ["b", NOON, None]]
    statement = select(batch("postgresql", columns_of(columns), wide=True))
    text = sql(statement, "postgresql")
    assert "unnest(" in text
    assert "AS batch_columns(id, scheduled_for, timeout_seconds)" in text
    assert pack_wide("postgresql", rows) == {"rows_0": ("a", "b"), "rows_1": (NOON, NOON), "rows_2": (1.5, None)}
    assert set(statement.compile(dialect=DIALECTS["postgresql"]).params) == {"rows_0", "rows_1", "rows_2"}
    assert sql(select(batch("sqlite", columns_of(columns), wide=True)), "sqlite") == sql(
        select(batch("sqlite", columns_of(columns))), "sqlite"
    )
    assert pack_wide("sqlite", rows) == pack(rows)


def test_rows_are_held_on_postgresql_passing_over_those_of_others() -> None:
    query = lock_rows(select(runs.c.id))
    assert sql(query, "postgresql").endswith("FOR UPDATE SKIP LOCKED")
    assert "FOR UPDATE" not in sql(query, "sqlite")


def test_rows_come_as_one_text_on_sqlite_alone() -> None:
    query = select(runs.c.id, runs.c.status)
    assert packed("postgresql", query) is query
    assert "json_group_array(json_array(" in sql(packed("sqlite", query), "sqlite")
