"""History is kept by age and by count, in small bites, and an open run is never touched."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select
from tests.engine.book import Book
from tests.storage.samples import DAY, MINUTE, NOON, a_job, a_run, an_execution
from tests.support.clock import ManualClock

from zerocron.core.model import DEFAULT_TEAM_ID, Job, Run
from zerocron.engine import retention as retention_module
from zerocron.engine.retention import Retention
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people_tables import one_time_links
from zerocron.storage.ledger.sign_ins import SignIn


def keeping(ledger: SqliteLedger, *, days: int = 10, runs_per_job: int = 1_000) -> Retention:
    return Retention(ledger=ledger, clock=ManualClock(NOON), days=days, runs_per_job=runs_per_job)


async def with_history(book: Book, slots: list[int], **given: Any) -> tuple[Job, list[Run]]:
    job = await book.keep(a_job())
    runs = [a_run(job, slot, **{"status": "succeeded"} | given) for slot in slots]
    await book.ledger.write(lambda connection: run_rows.insert(connection, runs))
    await book.ledger.write(lambda connection: execution_rows.insert(connection, [an_execution(run) for run in runs]))
    return job, runs


async def left(book: Book, job: Job) -> list[int]:
    return [run.scheduled_for for run in await book.runs(job)]


async def test_runs_older_than_the_days_are_removed_with_their_executions(book: Book, ledger: SqliteLedger) -> None:
    limit = NOON - 10 * DAY
    job, runs = await with_history(book, [limit - DAY, limit - 1, limit, limit + 1, NOON])
    await keeping(ledger).tick()
    assert await left(book, job) == [limit, limit + 1, NOON]
    assert [len(await book.executions(run)) for run in runs] == [0, 0, 1, 1, 1]


async def test_a_job_keeps_its_newest_runs_up_to_a_number(book: Book, ledger: SqliteLedger) -> None:
    many, _ = await with_history(book, [NOON - number * MINUTE for number in range(12)])
    few, _ = await with_history(book, [NOON - number * MINUTE for number in range(10)])
    await keeping(ledger, runs_per_job=10).tick()
    assert await left(book, many) == [NOON - number * MINUTE for number in reversed(range(10))]
    assert len(await left(book, few)) == 10


@pytest.mark.parametrize("status", ["running", "retrying", "queued"])
async def test_an_open_run_stays_however_old_it_is(book: Book, ledger: SqliteLedger, status: str) -> None:
    job, _ = await with_history(book, [NOON - 100 * DAY], status=status)
    await keeping(ledger).tick()
    assert await left(book, job) == [NOON - 100 * DAY]


async def test_much_is_removed_in_small_transactions(
    book: Book, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_module, "RUNS_PER_TRANSACTION", 4)
    job, _ = await with_history(book, [NOON - 50 * DAY + number for number in range(18)])
    sizes: list[int] = []
    remove = retention_module.remove_runs

    def counted(*args: Any, **given: Any) -> int:
        sizes.append(remove(*args, **given))
        return sizes[-1]

    monkeypatch.setattr(retention_module, "remove_runs", counted)
    await keeping(ledger).tick()
    assert sizes == [4, 4, 4, 4, 2]
    assert await left(book, job) == []


async def test_jobs_are_looked_after_a_slice_a_tick_and_round_again(
    book: Book, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_module, "JOBS_PER_TICK", 2)
    old = NOON - 50 * DAY
    jobs = [(await with_history(book, [old]))[0] for _ in range(5)]
    retention = keeping(ledger)
    counts = []
    for _ in range(3):
        assert await retention.tick() == retention_module.TICK_SECONDS
        counts.append(sum([len(await left(book, job)) for job in jobs]))
    assert counts == [3, 1, 0]
    await book.ledger.write(lambda connection: run_rows.insert(connection, [a_run(jobs[0], old, status="failed")]))
    await retention.tick()
    assert await left(book, jobs[0]) == []


async def test_the_history_of_a_deleted_job_grows_old_too(book: Book, ledger: SqliteLedger) -> None:
    job = await book.keep(a_job(status="deleted", next_run_at=None))
    await book.ledger.write(
        lambda connection: run_rows.insert(connection, [a_run(job, NOON - 50 * DAY, status="succeeded")])
    )
    await keeping(ledger).tick()
    assert await left(book, job) == []


async def test_idempotency_keys_and_sessions_are_forgotten_in_time(ledger: SqliteLedger) -> None:
    def write(connection: Any) -> None:
        for key, age in (("old", DAY + 1), ("new", DAY)):
            key_rows.claim_idempotent(
                connection,
                team_id=DEFAULT_TEAM_ID,
                operation="make",
                key=key,
                request_hash="h",
                resource_id="r",
                now=NOON - age,
            )
        for name, age in (("old", 30 * DAY + 1), ("new", 30 * DAY)):
            session_rows.insert(connection, session_id=name, node="n", version="0", now=0, expires_at=0)
            session_rows.end(connection, [name], now=NOON - age, reason="closed")
            session_rows.mark_settled(connection, [name], NOON - age)
        session_rows.insert(connection, session_id="unsettled", node="n", version="0", now=0, expires_at=0)
        session_rows.end(connection, ["unsettled"], now=NOON - 99 * DAY, reason="fenced")

    await ledger.write(write)
    await keeping(ledger).tick()
    kept = await ledger.read(
        lambda connection: (
            connection.exec_driver_sql("SELECT key FROM idempotency_keys").scalars().all(),
            connection.exec_driver_sql("SELECT id FROM sessions ORDER BY id").scalars().all(),
        )
    )
    assert kept == (["new"], ["new", "unsettled"]), "whoever left runs behind is remembered until they are settled"


async def test_a_tick_without_jobs_is_no_error(ledger: SqliteLedger) -> None:
    assert await keeping(ledger).tick() == retention_module.TICK_SECONDS


async def test_sign_ins_that_ended_and_links_that_were_used_are_removed_later(ledger: SqliteLedger) -> None:
    def sign_in(number: int, expires_at: int, ended_at: int | None) -> SignIn:
        return SignIn(
            f"s{number}",
            f"t{number}",
            "p",
            None,
            "password",
            "",
            "",
            NOON - DAY,
            NOON - DAY,
            expires_at,
            None,
            ended_at,
        )

    limit = NOON - 90 * DAY
    sign_ins = [
        sign_in(1, NOON + DAY, None),
        sign_in(2, NOON + DAY, limit),
        sign_in(3, NOON + DAY, limit - 1),
        sign_in(4, limit - 1, None),
    ]
    links = [
        Link(f"l{number}", LinkKind.RESET, f"t{number}", NOON - 30 * DAY, NOON - age * DAY)
        for number, age in ((1, 7), (2, 8))
    ]

    def write(connection: Connection) -> None:
        for one in sign_ins:
            sign_in_rows.insert(connection, one)
        for link in links:
            link_rows.insert(connection, link)

    await ledger.write(write)
    await keeping(ledger).tick()
    kept = await ledger.read(lambda c: [sign_in_rows.get(c, one.id) is not None for one in sign_ins])
    assert kept == [True, True, False, False]
    hashes = select(one_time_links.c.token_hash)
    assert await ledger.read(lambda c: [row[0] for row in c.execute(hashes)]) == ["t1"]
