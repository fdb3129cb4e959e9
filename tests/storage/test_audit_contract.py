"""Entries of the audit log: written, read by place, never changed, and removed only when they are old."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from sqlalchemy import Connection, delete, event, insert, text, update
from sqlalchemy.exc import DBAPIError
from tests.storage.samples import OTHER_TEAM_ID
from tests.support.clock import ManualClock

from zerocron.actions.audit import Audit
from zerocron.clock import SystemClock
from zerocron.core.access import SERVER, Actor
from zerocron.core.ids import first_id, new_id
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.engine.retention import Retention
from zerocron.storage.ledger import audit
from zerocron.storage.ledger.audit import Entry, Subject
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.people_tables import audit_entries

DAY = 86_400_000
NOW: Instant = SystemClock().now()
"""By the databases' own clocks, which the triggers look at."""

ADA = Actor("person", "019a2f11-8c03-7d64-9e52-3b70d1c8a4f5", "Ada", "203.0.113.7")


async def note(
    ledger: Ledger, at: Instant, name: str = "a job", *, team_id: str | None = DEFAULT_TEAM_ID, by: Actor = ADA
) -> None:
    def transaction(connection: Connection) -> None:
        audit.record(
            connection,
            team_id=team_id,
            at=at,
            by=by,
            action="job.edit",
            subject=Subject("job", f"id of {name}", name),
            before={"timeout": 30},
            after={"timeout": 60},
        )

    await ledger.write(transaction)


async def kept(ledger: Ledger, **filters: Any) -> list[Entry]:
    filters = {"before": None, "limit": 100, **filters}
    return await ledger.read(lambda connection: audit.page(connection, DEFAULT_TEAM_ID, **filters))


async def test_an_entry_comes_back_as_it_was_written(ledger: Ledger) -> None:
    await note(ledger, NOW)

    (entry,) = await kept(ledger)

    assert (entry.at, entry.team_id, entry.action) == (NOW, DEFAULT_TEAM_ID, "job.edit")
    assert (entry.actor_kind, entry.actor_id, entry.actor_name, entry.address) == (
        "person",
        ADA.id,
        "Ada",
        "203.0.113.7",
    )
    assert (entry.subject_kind, entry.subject_id, entry.subject_name) == ("job", "id of a job", "a job")
    assert (entry.before, entry.after) == ({"timeout": 30}, {"timeout": 60})


async def test_entries_are_read_newest_first_from_any_place_on(ledger: Ledger) -> None:
    for number in range(7):
        await note(ledger, NOW + number // 2, f"job {number}")
    await note(ledger, NOW, "of another team", team_id=OTHER_TEAM_ID)
    await note(ledger, NOW, "of no team", team_id=None)

    first = await kept(ledger, limit=4)
    rest = await kept(ledger, before=(first[-1].at, first[-1].id))

    assert [entry.at for entry in first + rest] == [NOW + 3, *[NOW + 2] * 2, *[NOW + 1] * 2, *[NOW] * 2]
    assert {entry.subject_name for entry in first + rest} == {f"job {number}" for number in range(7)}
    assert [entry.subject_name for entry in await kept(ledger, subject_id="id of job 3")] == ["job 3"]
    assert len(await kept(ledger, action="job.edit")) == 7
    assert await kept(ledger, action="job.pause") == []


async def test_what_one_actor_did_is_read_alone(ledger: Ledger) -> None:
    for number, actor in enumerate((ADA, SERVER, Actor("key", "k3v9q0x2m1za", "deploy"), ADA)):
        await note(ledger, NOW + number, f"job {number}", by=actor)
    verbs = Audit(ledger=ledger)

    async def names(actor_id: str | None, **filters: Any) -> list[str]:
        found = await verbs.page(DEFAULT_TEAM_ID, actor_id=actor_id, **filters)
        return [entry.subject_name for entry in found]

    assert await names(ADA.id) == ["job 3", "job 0"]
    assert await names(ADA.id, limit=1, before=(NOW + 3, "")) == ["job 0"]
    assert await names(ADA.id, action="job.pause") == []
    assert await names("k3v9q0x2m1za") == ["job 2"]
    assert await names("server") == ["job 1"]
    assert len(await names(None)) == 4


async def test_a_long_field_is_left_out_and_the_entry_is_kept(ledger: Ledger) -> None:
    def transaction(connection: Connection) -> None:
        after = {"url": "u" * 30_000, "name": "n"}
        subject = Subject("job", "x" * 100, "y" * 300)
        audit.record(
            connection, team_id=DEFAULT_TEAM_ID, at=NOW, by=SERVER, action="job.edit", subject=subject, after=after
        )

    await ledger.write(transaction)
    (entry,) = await kept(ledger)

    assert entry.after == {"url": "(too long to be kept here)", "name": "n"}
    assert (len(entry.subject_id), len(entry.subject_name)) == (64, 254)


@pytest.mark.parametrize(
    "statement",
    [
        update(audit_entries).values(actor_name="somebody else"),
        update(audit_entries).values(at=0),
        delete(audit_entries),
        delete(audit_entries).where(audit_entries.c.actor_name == "Ada"),
    ],
    ids=["the actor", "the instant, so that it looks old", "all", "one's own"],
)
async def test_the_database_refuses_to_change_an_entry_or_to_remove_a_young_one(ledger: Ledger, statement: Any) -> None:
    await note(ledger, NOW - 29 * DAY, "young")
    before = await kept(ledger)

    with pytest.raises(DBAPIError, match="entries of the audit log are"):
        await ledger.write(lambda connection: connection.execute(statement))

    assert await kept(ledger) == before


async def test_postgresql_refuses_to_empty_the_table(ledger: Ledger) -> None:
    await note(ledger, NOW)
    is_sqlite = await ledger.read(lambda connection: connection.dialect.name == "sqlite")
    statement = text("DELETE FROM audit_entries" if is_sqlite else "TRUNCATE audit_entries")

    with pytest.raises(DBAPIError, match="entries of the audit log are"):
        await ledger.write(lambda connection: connection.execute(statement))


async def test_what_is_old_is_removed_and_nothing_else(ledger: Ledger) -> None:
    for days in (400, 366, 364, 31, 1):
        await note(ledger, NOW - days * DAY, f"{days} days old")

    retention = Retention(ledger=ledger, clock=ManualClock(NOW), days=90, runs_per_job=100, audit_days=365)
    await retention.tick()

    assert [entry.subject_name for entry in await kept(ledger)] == ["1 days old", "31 days old", "364 days old"]


async def test_old_entries_are_removed_in_slices(ledger: Ledger) -> None:
    for number in range(5):
        await note(ledger, NOW - 400 * DAY + number)

    removed = [
        await ledger.write(lambda connection: audit.remove_old(connection, NOW - 365 * DAY, 2)) for _ in range(4)
    ]

    assert removed == [2, 2, 1, 0]


async def test_an_entry_with_a_wrong_time_in_its_id_is_judged_by_its_instant(ledger: Ledger) -> None:
    """A clock that was set back makes an id that looks old."""
    await note(ledger, NOW)
    (entry,) = await kept(ledger)
    row = dataclasses.asdict(dataclasses.replace(entry, before=None, after=None))
    old = row | {"id": new_id(NOW - 500 * DAY)}
    await ledger.write(lambda connection: connection.execute(insert(audit_entries).values(old)))

    assert await ledger.write(lambda connection: audit.remove_old(connection, NOW - 365 * DAY, 10)) == 0
    assert old["id"] < first_id(NOW - 365 * DAY)


async def test_what_one_actor_did_is_found_by_an_index(ledger: Ledger) -> None:
    """However much others did: who did little, or nothing, cost a look at every entry of the team."""
    entry = {
        **{column.name: "x" for column in audit_entries.columns},
        "team_id": DEFAULT_TEAM_ID,
        "actor_id": ADA.id,
    }
    entries = [{**entry, "id": new_id(NOW + number), "at": NOW + number} for number in range(3_000)]
    plans: list[str] = []

    def transaction(connection: Connection) -> None:
        connection.execute(insert(audit_entries), entries)
        connection.execute(text("ANALYZE audit_entries"))

        def explain(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
            if not statement.startswith("EXPLAIN"):
                verb = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
                plans.extend(str(row) for row in connection.exec_driver_sql(f"{verb} {statement}", parameters))

        event.listen(connection, "before_cursor_execute", explain)
        audit.page(connection, DEFAULT_TEAM_ID, before=None, limit=50, actor_id="somebody else")
        event.remove(connection, "before_cursor_execute", explain)

    await ledger.write(transaction)
    assert any("ix_audit_entries_team_id_actor_id_at" in plan for plan in plans), plans
