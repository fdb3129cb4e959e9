"""The sweep makes the timetable agree with the ledger, whatever was lost, and disturbs nobody's claim."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection
from tests.engine.book import Book, member
from tests.engine.house import WatchedLedger, answered
from tests.storage.samples import HOUR, MINUTE, NOON, a_job, a_run, a_trigger, an_id
from tests.support.clock import ManualClock

from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Definition, Job, JobState, Run
from zerocron.core.notice import EventKind, Notice
from zerocron.engine import sweep as sweep_module
from zerocron.engine.attempt import Result
from zerocron.engine.executor import Executor
from zerocron.engine.sessions import Session
from zerocron.engine.sweep import LOAD_MS, OVERDUE_MS, SWEEP_SECONDS, Sweep
from zerocron.metrics import Metrics
from zerocron.storage.ledger import alerts
from zerocron.storage.ledger.database import SqliteLedger
from zerocron.storage.timetable.contract import HIDE_MS, alert_member, job_member, run_member
from zerocron.storage.timetable.horizon import HORIZON_MS
from zerocron.storage.timetable.memory import MemoryTimetable


class Bench:
    def __init__(self, ledger: SqliteLedger) -> None:
        self.book = Book(ledger)
        self.ledger = WatchedLedger(ledger)
        self.clock = ManualClock(NOON, busy=lambda: self.ledger.at_work > 0)
        self.timetable: MemoryTimetable = MemoryTimetable()
        self.metrics = Metrics()
        shared: dict[str, Any] = {"clock": self.clock, "metrics": self.metrics}
        self.session = Session(ledger=self.ledger, timetable=self.timetable, node="test", version="0", **shared)
        executor = Executor(load=_never, send=_send, settle=_settle, capacity=5, **shared)
        self.sweep = Sweep(
            ledger=self.ledger,
            timetable=self.timetable,
            session=self.session,
            executor=executor,
            **shared,
        )

    async def job(self, *, due: int, **given: Any) -> Job:
        return await self.book.keep(a_job(next_run_at=due, **given))

    @property
    def due(self) -> dict[str, int]:
        return dict(self.timetable._due)

    def repaired(self) -> float | None:
        return self.metrics.registry.get_sample_value("zerocron_timetable_repaired_total")


async def _never(_run: Run) -> Definition:
    raise AssertionError("nothing is sent in these tests")


async def _send(_request: Request) -> Outcome:
    return answered()


async def _settle(_result: Result) -> None:
    pass


@pytest.fixture
def bench(ledger: SqliteLedger) -> Bench:
    return Bench(ledger)


async def test_at_its_start_it_brings_everything_up_to_the_horizon(bench: Bench) -> None:
    past = await bench.job(due=NOON - HOUR)
    near = await bench.job(due=NOON + HORIZON_MS)
    await bench.job(due=NOON + HORIZON_MS + 1)
    retry, later = a_run(past, status="retrying", retry_at=NOON + 5), a_run(past, NOON + 1, status="retrying")
    later.retry_at = NOON + HORIZON_MS + 1
    trigger = a_trigger(past, NOON - 1)
    await bench.book.keep(a_job(next_run_at=None), retry, later, trigger)
    assert await bench.sweep.tick() == SWEEP_SECONDS
    assert bench.due == {
        job_member(past.team_id, past.id): NOON - HOUR,
        job_member(near.team_id, near.id): NOON + HORIZON_MS,
        run_member(retry.team_id, retry.id): NOON + 5,
        run_member(trigger.team_id, trigger.id): NOON - 1,
    }
    assert bench.repaired() == 0, "an empty timetable at the start is no damage"


@pytest.mark.parametrize("step", ["_settle", "_measure_overdue"])
async def test_a_step_that_fails_keeps_no_other_from_its_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A timetable that nobody fills at the start is a node without jobs."""
    job = await bench.job(due=NOON + MINUTE)

    async def failing(_now: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bench.sweep, step, failing)
    with pytest.raises(ZeroDivisionError):
        await bench.sweep.tick()
    assert bench.due == {member(job): NOON + MINUTE}


async def test_a_horizon_of_any_size_is_brought_in_pages(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "PAGE", 3)
    jobs = [await bench.job(due=NOON + number // 5) for number in range(10)]
    await bench.sweep.tick()
    assert bench.due.keys() == {job_member(job.team_id, job.id) for job in jobs}


async def test_what_comes_into_view_is_brought_later(bench: Bench) -> None:
    far = await bench.job(due=NOON + HORIZON_MS + 10_000)
    await bench.sweep.tick()
    await bench.clock.advance(LOAD_MS / 1000 - 0.001)
    await bench.sweep.tick()
    assert bench.due == {}
    await bench.clock.advance(0.001)
    await bench.sweep.tick()
    assert bench.due == {job_member(far.team_id, far.id): NOON + HORIZON_MS + 10_000}


async def test_a_timetable_that_was_erased_is_filled_with_what_is_overdue(bench: Bench) -> None:
    job = await bench.job(due=NOON + 1_000)
    retry = a_run(job, status="retrying", retry_at=NOON + 1_000)
    await bench.book.keep(a_job(next_run_at=None), retry)
    await bench.sweep.tick()
    await bench.timetable.clear()
    await bench.clock.advance(1 + OVERDUE_MS / 1000)
    await bench.sweep.tick()
    assert run_member(retry.team_id, retry.id) in bench.due
    await bench.clock.advance(0.001)
    await bench.sweep.tick()
    assert bench.due == {
        job_member(job.team_id, job.id): NOON + 1_000,
        run_member(retry.team_id, retry.id): NOON + 1_000,
    }
    assert bench.repaired() == 2


async def test_a_member_that_is_much_too_late_is_brought_forward(bench: Bench) -> None:
    job = await bench.job(due=NOON + 1_000)
    await bench.sweep.tick()
    await bench.timetable.put({job_member(job.team_id, job.id): NOON + HOUR})
    await bench.clock.advance(4)
    await bench.sweep.tick()
    assert bench.due == {job_member(job.team_id, job.id): NOON + 1_000}


async def test_a_member_that_somebody_works_on_is_left_alone(bench: Bench) -> None:
    job = await bench.job(due=NOON)
    await bench.sweep.tick()
    await bench.timetable.claim(NOON, 10)
    await bench.clock.advance(4)
    await bench.sweep.tick()
    assert bench.due == {job_member(job.team_id, job.id): NOON + HIDE_MS}
    assert bench.repaired() == 0


async def test_a_slot_that_waits_for_its_own_run_is_not_put_back_again_and_again(bench: Bench) -> None:
    job = a_job(next_run_at=NOON - MINUTE)
    active = a_run(job, NOON - 2 * MINUTE, session_id=bench.session.id, attempt_started_at=NOON)
    job.state = JobState(NOON - MINUTE, active.id, NOON)
    await bench.book.keep(job, active)
    await bench.sweep.tick()
    await bench.timetable.clear()
    for _ in range(5):
        await bench.clock.advance(SWEEP_SECONDS)
        await bench.sweep.tick()
    assert bench.due == {}
    assert bench.repaired() == 0


async def test_runs_of_this_node_that_nobody_executes_are_settled(bench: Bench) -> None:
    job = await bench.job(due=NOON + HOUR)
    run = a_run(job, NOON - HOUR, session_id=bench.session.id, attempt_started_at=NOON - HOUR)
    await bench.book.keep(a_job(next_run_at=None), run)
    await bench.sweep.tick()
    assert (await bench.book.run(run)).status == "retrying"
    assert run_member(run.team_id, run.id) in bench.due


async def test_after_the_clock_was_set_back_the_whole_horizon_is_brought_again(bench: Bench) -> None:
    await bench.sweep.tick()
    job = await bench.job(due=NOON - HOUR + 60_000)
    bench.clock.set(NOON - HOUR)
    await bench.sweep.tick()
    assert bench.due == {job_member(job.team_id, job.id): NOON - HOUR + 60_000}


async def test_after_the_clock_was_set_forward_nothing_between_is_forgotten(bench: Bench) -> None:
    job = await bench.job(due=NOON + 30 * MINUTE)
    await bench.sweep.tick()
    bench.clock.set(NOON + HOUR)
    await bench.sweep.tick()
    assert bench.due == {job_member(job.team_id, job.id): NOON + 30 * MINUTE}


async def test_the_size_of_the_timetable_is_published(bench: Bench) -> None:
    await bench.job(due=NOON)
    await bench.sweep.tick()
    await bench.sweep.tick()
    assert bench.metrics.registry.get_sample_value("zerocron_timetable_members") == 1


# several nodes, and a timetable that is away


class Shared(MemoryTimetable):
    """What a sweep may meet in a timetable that several nodes share."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = self.is_lost = False
        self.is_ours = True

    def _answer(self) -> None:
        if self.is_away:
            raise TimetableAway("The timetable does not answer.")

    async def lost(self, now: int) -> bool:
        self._answer()
        lost, self.is_lost = self.is_lost, False
        return lost

    async def on_duty(self, seconds: float) -> bool:
        self._answer()
        return self.is_ours

    async def restore(self, due: Mapping[str, int], *, now: int) -> int:
        self._answer()
        return await super().restore(due, now=now)


@pytest.fixture
def shared(bench: Bench) -> Shared:
    timetable = Shared()
    bench.timetable = bench.sweep._timetable = timetable
    return timetable


async def test_a_node_that_is_not_on_duty_repairs_nothing(bench: Bench, shared: Shared) -> None:
    shared.is_ours = False
    await bench.job(due=NOON - HOUR)
    for _ in range(10):
        assert await bench.sweep.tick() == SWEEP_SECONDS
        await bench.clock.advance(SWEEP_SECONDS)
    assert bench.due == {}


async def test_a_node_that_comes_on_duty_brings_everything(bench: Bench, shared: Shared) -> None:
    shared.is_ours = False
    jobs = [await bench.job(due=NOON - HOUR), await bench.job(due=NOON + MINUTE)]
    await bench.sweep.tick()
    shared.is_ours = True
    await bench.clock.advance(SWEEP_SECONDS)
    await bench.sweep.tick()
    assert bench.due == {member(job): job.state.next_run_at for job in jobs}


async def test_a_node_that_comes_on_duty_again_leaves_nothing_out(bench: Bench, shared: Shared) -> None:
    """Whoever was on duty meanwhile may have died before it brought what came into view."""
    await bench.sweep.tick()
    shared.is_ours = False
    far = await bench.job(due=NOON + 30 * MINUTE)
    await bench.clock.advance(29 * 60)
    await bench.sweep.tick()
    assert bench.due == {}
    shared.is_ours = True
    await bench.sweep.tick()
    assert bench.due == {member(far): NOON + 30 * MINUTE}


async def test_whoever_is_told_of_a_loss_brings_the_whole_horizon_on_duty_or_not(bench: Bench, shared: Shared) -> None:
    jobs = [await bench.job(due=NOON + seconds * 1_000) for seconds in (10, 60, 110)]
    await bench.sweep.tick()
    shared.is_ours = False
    await shared.clear()
    shared.is_lost = True
    await bench.clock.advance(SWEEP_SECONDS)
    await bench.sweep.tick()
    assert bench.due == {member(job): job.state.next_run_at for job in jobs}
    assert bench.metrics.registry.get_sample_value("zerocron_timetable_rebuilt_total") == 1
    assert bench.metrics.registry.get_sample_value("zerocron_timetable_members") == 3


@pytest.mark.parametrize("fails", ["timetable", "ledger"])
async def test_a_rebuilding_that_fails_half_way_is_done_again(
    bench: Bench, shared: Shared, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """A loss is told once: what was not brought then would come late, one after the other, for two minutes."""
    monkeypatch.setattr(sweep_module, "PAGE", 2)
    jobs = [await bench.job(due=NOON + seconds * 1_000) for seconds in range(10, 110, 10)]
    await bench.sweep.tick()
    await shared.clear()
    shared.is_lost = True
    restore = shared.restore

    async def failing(due: Mapping[str, int], *, now: int) -> int:
        if fails == "timetable":
            raise TimetableAway("The timetable does not answer.")
        bench.ledger.is_away = True
        return await restore(due, now=now)

    monkeypatch.setattr(shared, "restore", failing)
    await bench.clock.advance(SWEEP_SECONDS)
    with contextlib.suppress(Unavailable):  # of the ledger, which the loop tells
        await bench.sweep.tick()
    assert len(bench.due) < len(jobs)
    monkeypatch.setattr(shared, "restore", restore)
    bench.ledger.heal()
    await bench.clock.advance(SWEEP_SECONDS)
    await bench.sweep.tick()
    assert bench.due.keys() == {member(job) for job in jobs}


async def test_a_timetable_that_is_away_is_no_failure_and_is_told_once(bench: Bench, shared: Shared) -> None:
    job = await bench.job(due=NOON)
    shared.is_away = True
    with structlog.testing.capture_logs() as logs:
        for _ in range(5):
            assert await bench.sweep.tick() == SWEEP_SECONDS
            await bench.clock.advance(SWEEP_SECONDS)
    assert [entry["event"] for entry in logs] == ["timetable_not_swept"]
    shared.is_away = False
    await bench.sweep.tick()
    assert bench.due == {member(job): NOON}


async def test_orphans_are_settled_while_the_timetable_is_away(bench: Bench, shared: Shared) -> None:
    job = await bench.job(due=NOON + HOUR)
    run = a_run(job, NOON - HOUR, session_id=bench.session.id, attempt_started_at=NOON - HOUR)
    await bench.book.keep(a_job(next_run_at=None), run)
    shared.is_away = True
    with structlog.testing.capture_logs():
        await bench.sweep.tick()
    assert (await bench.book.run(run)).status == "retrying"


async def test_alerts_that_come_into_view_are_brought(bench: Bench) -> None:
    """Each is due by the ledger alone: the process that wrote it down is gone."""
    near, far = an_id(), an_id()

    def write(connection: Connection) -> None:
        for alert_id, due in ((near, NOON + 30_000), (far, NOON + HORIZON_MS + 1)):
            notice = Notice(an_id(), EventKind.JOB_FAILED, DEFAULT_TEAM_ID, NOON, an_id(), "job")
            alerts.insert(connection, [alerts.New(alert_id, an_id(), notice, due)], NOON)

    await bench.ledger.write(write)
    await bench.sweep.tick()
    assert bench.due == {alert_member(DEFAULT_TEAM_ID, near): NOON + 30_000}
