"""A node's session: by what it may start runs, and what becomes of the runs of those that ended."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
from tests.engine.book import Book, succeeded
from tests.engine.house import WatchedLedger
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run, an_id
from tests.support.clock import ManualClock

from zerocron.core.errors import Unavailable
from zerocron.core.model import JobState
from zerocron.engine import sessions
from zerocron.engine.sessions import ORPHAN_MS, RENEW_SECONDS, SAFETY_MS, VALIDITY_MS, Session
from zerocron.metrics import Metrics
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.contract import job_member, run_member
from zerocron.storage.timetable.memory import MemoryTimetable


class Bench:
    def __init__(self, ledger: SqliteLedger) -> None:
        self.book = Book(ledger)
        self.ledger = WatchedLedger(ledger)
        self.clock = ManualClock(NOON, busy=lambda: self.ledger.at_work > 0)
        self.timetable = MemoryTimetable()
        self.metrics = Metrics()

    def session(self, *, exclusive: bool = True) -> Session:
        return Session(
            ledger=self.ledger,
            timetable=self.timetable,
            clock=self.clock,
            metrics=self.metrics,
            node="test",
            version="0",
            exclusive=exclusive,
        )

    async def rows(self) -> dict[str, tuple[Any, ...]]:
        rows = await self.ledger.inner.read(
            lambda connection: connection.exec_driver_sql(
                "SELECT id, renewed_at, expires_at, ended_at, end_reason FROM sessions"
            ).all()
        )
        return {row[0]: tuple(row[1:]) for row in rows}

    async def due(self) -> dict[str, int]:
        return dict(self.timetable._due)


@pytest.fixture
def bench(ledger: SqliteLedger) -> Bench:
    return Bench(ledger)


async def test_a_session_is_valid_from_its_beginning_to_shortly_before_its_end(bench: Bench) -> None:
    session = bench.session()
    assert not session.is_valid()
    await session.open()
    assert session.is_valid()
    assert await bench.rows() == {session.id: (NOON, NOON + VALIDITY_MS, None, None)}
    await bench.clock.advance((VALIDITY_MS - SAFETY_MS) / 1000 - 0.001)
    assert session.is_valid()
    await bench.clock.advance(0.001)
    assert not session.is_valid()


async def test_renewing_in_time_keeps_it_valid(bench: Bench) -> None:
    session = bench.session()
    await session.open()
    for _ in range(20):
        await bench.clock.advance(RENEW_SECONDS)
        assert await session.tick() == RENEW_SECONDS
        assert session.is_valid()
    assert (await bench.rows())[session.id][:2] == (NOON + 100_000, NOON + 100_000 + VALIDITY_MS)


async def test_validity_is_counted_from_before_the_renewal_was_sent(bench: Bench) -> None:
    """The answer took ten seconds: others have counted since the row was written."""
    session = bench.session()
    await session.open()
    await bench.clock.advance(5)

    def slow() -> None:
        bench.clock._seconds += 10

    bench.ledger.before_write = slow
    await session.renew()
    bench.ledger.before_write = lambda: None
    await bench.clock.advance(14.9)
    assert session.is_valid()
    await bench.clock.advance(0.1)
    assert not session.is_valid()


async def test_a_wall_clock_that_is_set_does_not_touch_validity(bench: Bench) -> None:
    session = bench.session()
    await session.open()
    bench.clock.set(NOON + 10 * MINUTE)
    assert session.is_valid()
    bench.clock.set(NOON - 10 * MINUTE)
    await bench.clock.advance(26)
    assert not session.is_valid()


async def test_a_ledger_that_was_away_makes_it_invalid_and_its_return_valid_again(bench: Bench) -> None:
    session = bench.session()
    await session.open()

    def away() -> None:
        raise Unavailable("The database cannot be used now.")

    bench.ledger.before_write = away
    for _ in range(6):
        await bench.clock.advance(RENEW_SECONDS)
        with pytest.raises(Unavailable):
            await session.renew()
    assert not session.is_valid()
    bench.ledger.before_write = lambda: None
    await session.renew()
    assert session.is_valid()


async def test_a_fenced_session_never_becomes_valid_again_and_its_node_goes_on_under_a_new_one(bench: Bench) -> None:
    session = bench.session()
    await session.open()
    fenced = session.id
    await bench.ledger.write(lambda connection: session_rows.end(connection, [fenced], now=NOON, reason="fenced"))
    await bench.clock.advance(RENEW_SECONDS)
    assert await session.tick() == RENEW_SECONDS
    assert session.id != fenced
    assert session.is_valid()
    rows = await bench.rows()
    assert rows[fenced] == (NOON, NOON + VALIDITY_MS, NOON, "fenced")
    assert rows[session.id] == (NOON + 5_000, NOON + 5_000 + VALIDITY_MS, None, None)


async def test_a_new_session_fences_the_others_and_settles_what_they_left(bench: Bench) -> None:
    dead = bench.session()
    await dead.open()
    jobs = [await bench.book.keep(a_job(on_lost=on_lost)) for on_lost in ("rerun", "give_up", "rerun")]
    runs = (await bench.book.start(*jobs, session_id=dead.id)).runs
    await bench.book.finish(succeeded(runs[2]))
    await bench.clock.advance(60)
    new = bench.session()
    assert await new.open() == 2
    assert [(await bench.book.run(run)).status for run in runs] == ["retrying", "lost", "succeeded"]
    assert await bench.due() == {
        run_member(runs[0].run.team_id, runs[0].run.id): NOON + 60_000,
        job_member(jobs[1].team_id, jobs[1].id): NOON + MINUTE,  # its place is free, and its next slot is due
    }
    rows = await bench.rows()
    assert rows[dead.id][2:] == (NOON + 60_000, "fenced")
    assert rows[new.id][2:] == (None, None)
    assert bench.metrics.registry.get_sample_value("zerocron_runs_total", {"status": "lost"}) == 1


async def test_a_role_that_may_not_end_others_transactions_takes_over_and_says_so_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_connection: object) -> int:
        raise PermissionError("must be a member of the role")

    monkeypatch.setattr(session_rows, "end_stalled", refused)
    dead = bench.session()
    await dead.open()
    [run] = (await bench.book.start(await bench.book.keep(a_job()), session_id=dead.id)).runs
    new = bench.session(exclusive=False)
    await new.open()
    with structlog.testing.capture_logs() as logs:
        for _ in range(8):
            await bench.clock.advance(RENEW_SECONDS)
            await new.tick()
    assert [entry["event"] for entry in logs].count("stalled_transactions_not_ended") == 1
    assert (await bench.book.run(run)).status == "retrying"


async def test_what_many_dead_sessions_left_is_settled_in_slices(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TAKE_OVER_BATCH", 3)
    for _ in range(2):
        dead = bench.session()
        await dead.open()
    jobs = [await bench.book.keep(a_job()) for _ in range(10)]
    await bench.book.start(*jobs, session_id=dead.id)
    assert await bench.session().open() == 10


async def test_a_first_session_finds_nothing_to_settle(bench: Bench) -> None:
    assert await bench.session().open() == 0


async def test_closing_settles_the_sessions_own_runs_and_may_be_done_twice(bench: Bench) -> None:
    session = bench.session()
    await session.open()
    [run] = (await bench.book.start(await bench.book.keep(a_job()), session_id=session.id)).runs
    await session.close()
    await session.close()
    assert not session.is_valid()
    assert ((await bench.book.run(run)).status, (await bench.book.run(run)).cause) == ("retrying", "node_lost")
    assert (await bench.rows())[session.id][2:] == (NOON, "closed")


async def test_a_session_that_never_opened_may_be_closed(bench: Bench) -> None:
    await bench.session().close()
    assert await bench.rows() == {}


async def test_runs_nobody_executes_are_settled_after_a_while_and_no_others(bench: Bench) -> None:
    """The answer to their start was lost: the ledger says running, and no task knows of them."""
    session = bench.session()
    await session.open()
    job = await bench.book.keep(a_job(overlap="allow", next_run_at=NOON + HOUR))
    minutes = [NOON - number * MINUTE for number in range(4)]
    orphan, executed, young, other = (
        a_run(job, slot, session_id=session.id, attempt_started_at=NOON) for slot in minutes
    )
    young.attempt_started_at = NOON + 1
    other.session_id = an_id()
    await bench.ledger.write(lambda connection: run_rows.insert(connection, [orphan, executed, young, other]))
    in_hand = frozenset({executed.id})
    bench.clock.set(NOON + ORPHAN_MS)
    assert await session.settle_orphans(lambda: in_hand) == 0
    bench.clock.set(NOON + ORPHAN_MS + 1)
    assert await session.settle_orphans(lambda: in_hand) == 1
    assert [(await bench.book.run(run)).status for run in (orphan, executed, young, other)] == [
        "retrying",
        "running",
        "running",
        "running",
    ]
    assert await bench.due() == {run_member(orphan.team_id, orphan.id): NOON + ORPHAN_MS + 1}


async def test_the_place_of_a_lost_run_is_kept_for_it(bench: Bench) -> None:
    dead = bench.session()
    await dead.open()
    job = await bench.book.keep(a_job())
    [run] = (await bench.book.start(job, session_id=dead.id)).runs
    await bench.clock.advance(90)
    await bench.session().open()
    assert (await bench.book.job(job)).state == JobState(NOON + MINUTE, run.run.id, NOON + 90_000)
