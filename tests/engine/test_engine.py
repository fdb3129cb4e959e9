"""The engine as a whole: on time, whatever fails, is lost, hangs or is stopped. Time is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
from sqlalchemy import Connection
from tests.engine.house import Answer, House, WatchedLedger, answered
from tests.storage.samples import HOUR, MINUTE, NOON, a_definition, a_job, an_id

from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, Overlap, RetryPolicy
from zerocron.engine.scheduler import SET_ASIDE_MS
from zerocron.engine.sessions import ORPHAN_MS
from zerocron.engine.starting import StartedBatch, start_batch
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger.database import Transaction
from zerocron.storage.timetable.contract import (
    HIDE_MS,
    Claim,
    alert_member,
    job_member,
    monitor_member,
    run_member,
)
from zerocron.storage.timetable.memory import MemoryTimetable

T = TypeVar("T")
URL = "https://example.com/hook"
OTHER = "https://example.com/other"
EVERY_10_S = "*/10 * * * * *"


def slow(house: House, seconds: float, outcome: Outcome | None = None) -> Answer:
    async def answer(_request: Request) -> Outcome:
        await house.clock.sleep(seconds)
        return outcome or answered()

    return answer


def away() -> None:
    raise Unavailable("The database cannot be used now.")


# on time


async def test_a_slot_is_sent_at_its_second_and_recorded(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(59.9)
        assert house.target.requests == []
        await house.clock.until(lambda: house.target.requests, "the request", within=0.2)
        await house.clock.advance(0.1)
        [run] = await house.runs(job)
        assert (run.status, run.scheduled_for, run.started_at) == ("succeeded", NOON + MINUTE, NOON + MINUTE)
        [execution] = await house.executions(run)
        assert execution.response_body == "ok"


async def test_slot_after_slot_is_sent_each_once_and_in_order(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create(EVERY_10_S)
        await house.clock.advance(300.1)
        runs = await house.runs(job)
        assert [run.scheduled_for for run in runs] == [NOON + number * 10_000 for number in range(1, 31)]
        assert {run.started_at and run.started_at - run.scheduled_for for run in runs} == {0}
        assert house.target.seen(URL) == [(run.id, 1) for run in runs]


async def test_who_waits_is_woken_by_a_run_that_is_asked_for_now(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 0 1 1 *")
        await house.clock.advance(10.3)
        await house.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="manual")
        await house.clock.rest()
        assert len(house.target.requests) == 1, "without any time passing"


async def test_who_waits_for_a_later_slot_is_woken_by_an_earlier_one(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.create("in 800 seconds")
        await house.create("2027-01-15T12:00:01Z", url=OTHER)
        await house.clock.advance(0.999)
        assert house.target.requests == []
        await house.clock.advance(0.001)
        assert len(house.target.seen(OTHER)) == 1


async def test_a_far_slot_keeps_nobody_busy_and_delays_nobody(tmp_path: Path) -> None:
    """The delay to it has more than 31 bits of milliseconds: elsewhere it fired at once, or looped."""
    async with House(tmp_path) as house:
        for schedule in ("0 0 1 1 *", "0 0 29 2 *", "2099-01-01 00:00"):
            await house.create(schedule)
        await house.create(EVERY_10_S, url=OTHER)
        ticks = 0
        tick = house.engine.scheduler.tick

        async def counted() -> float:
            nonlocal ticks
            ticks += 1
            return await tick()

        house.engine._claiming._tick = counted
        await house.clock.advance(300)
        assert house.target.seen(URL) == []
        assert len(house.target.seen(OTHER)) == 30
        assert ticks < 300 + 3 * 30 + 20


async def test_jobs_that_come_due_together_all_run_once_and_soon(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=500) as house:
        count = 600

        def fill(connection: Connection) -> None:
            for _ in range(count):
                job_rows.insert(connection, a_job(next_run_at=NOON + MINUTE))

        await house.crash()
        await house.ledger.inner.write(fill)
        await house.restart()
        await house.clock.advance(61)
        started = await house.sql("SELECT status, started_at - scheduled_for FROM runs")
        assert len(started) == count
        assert {status for status, _ in started} == {"succeeded"}
        assert max(late for _, late in started) < 1_000
        assert len({name for name, _ in house.target.seen(URL)}) == len(house.target.requests) == count


async def test_no_more_than_the_capacity_is_in_flight_and_all_get_their_turn(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=3) as house:
        at_once = most = 0

        async def answer(_request: Request) -> Outcome:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await house.clock.sleep(2)
            at_once -= 1
            return answered()

        house.target.on(URL, answer)
        jobs = [await house.create("2027-01-15T12:00:01Z") for _ in range(10)]
        await house.clock.advance(12)
        assert most == 3
        assert [[run.status for run in await house.runs(job)] for job in jobs] == [["succeeded"]] * 10


async def test_slow_targets_do_not_hold_up_the_others(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=30) as house:
        house.target.on(OTHER, slow(house, 600))
        for _ in range(20):
            await house.create("2027-01-15T12:00:01Z", url=OTHER)
        healthy = [await house.create("2027-01-15T12:00:01Z") for _ in range(60)]
        await house.clock.advance(6)
        for job in healthy:
            [run] = await house.runs(job)
            assert run.status == "succeeded"
            assert run.started_at is not None
            assert run.started_at - run.scheduled_for < 5_000


# retries and overlaps


async def test_a_failed_attempt_is_tried_again_after_its_wait(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500), answered(503, headers={"Retry-After": "20"}), answered())
        job = await house.create("2027-01-15T12:00:01Z", retry=RetryPolicy(5, "fixed", 5))
        await house.clock.advance(60)
        [run] = await house.runs(job)
        assert (run.status, run.attempt) == ("succeeded", 3)
        begun = [execution.started_at for execution in await house.executions(run)]
        waits = [later - earlier for earlier, later in pairwise(begun)]
        assert waits == [pytest.approx(5_000, abs=100), pytest.approx(20_000, abs=100)]


async def test_a_retry_without_delay_runs_at_once_and_is_bounded(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create("2027-01-15T12:00:01Z", retry=RetryPolicy(10, "fixed", 0))
        await house.clock.advance(5)
        [run] = await house.runs(job)
        assert (run.status, run.reason, run.attempt) == ("failed", "attempts_exhausted", 10)
        assert house.engine.executor.free == 50


async def test_retries_of_one_slot_never_run_beside_the_next(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 2, answered(500)))
        job = await house.create(EVERY_10_S, retry=RetryPolicy(5, "fixed", 3))
        await house.clock.advance(65)
        runs = await house.runs(job)
        finished = [run for run in runs if run.finished_at is not None]
        assert [run.reason for run in finished] == ["no_time_for_retry"] * 5
        assert [run.attempt for run in finished] == [2] * 5
        assert len(runs) == 6


@pytest.mark.parametrize(
    ("overlap", "statuses"),
    [
        (Overlap.SKIP, ["succeeded", "skipped", "skipped", "running", "skipped"]),
        (Overlap.QUEUE, ["succeeded", "running", "skipped", "queued", "skipped"]),
        (Overlap.ALLOW, ["succeeded", "succeeded", "running", "running", "running"]),
    ],
)
async def test_a_run_longer_than_its_schedule_goes_by_the_overlap_policy(
    tmp_path: Path, overlap: Overlap, statuses: list[str]
) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 25))
        job = await house.create(EVERY_10_S, overlap=overlap)
        await house.clock.advance(50.05)
        assert [run.status for run in await house.runs(job)] == statuses


# what fails


async def test_a_start_that_raises_once_stops_nothing_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        faults = [LookupError("once")]

        def faulty(*args: Any, **given: Any) -> StartedBatch:
            if faults:
                raise faults.pop()
            return start_batch(*args, **given)

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", faulty)
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(120.1)
        assert not faults
        assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["member_set_aside"]
        assert house.metrics.registry.get_sample_value("zerocron_loop_errors_total", {"loop": "scheduler"}) == 1
        runs = await house.runs(job)
        assert [(run.status, run.scheduled_for) for run in runs] == [
            ("succeeded", NOON + MINUTE),
            ("succeeded", NOON + 2 * MINUTE),
        ]


async def test_a_timetable_that_raises_stops_nothing(tmp_path: Path) -> None:
    class Failing(MemoryTimetable):
        left = 3

        async def claim(self, now: int, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
            if now >= NOON + 10_000 and self.left:
                self.left -= 1
                raise ConnectionError("a fault of the index")
            return await super().claim(now, limit, hide_ms, without=without)

    async with House(tmp_path, timetable=Failing()) as house:
        job = await house.create(EVERY_10_S)
        with structlog.testing.capture_logs():
            await house.clock.advance(30.1)
        assert [run.scheduled_for for run in await house.runs(job)] == [NOON + 10_000, NOON + 20_000, NOON + 30_000]


async def test_a_sweep_that_raises_stops_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create(EVERY_10_S)
        overdue = house.engine.sweep._restore_overdue
        calls = 0

        async def failing(now: int) -> int:
            nonlocal calls
            calls += 1
            if calls < 4:
                raise LookupError("in the sweep")
            return await overdue(now)

        house.engine.sweep._restore_overdue = failing  # type: ignore[method-assign]
        with structlog.testing.capture_logs():
            await house.clock.advance(30.1)
        assert calls > 8
        assert len(await house.runs(job)) == 3


async def test_a_poisoned_member_is_set_aside_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:
        good = [await house.create(EVERY_10_S) for _ in range(3)]
        poison = await house.create(EVERY_10_S, url=OTHER)
        tries = 0

        def poisoned(connection: Connection, members: list[str], **given: object) -> object:
            nonlocal tries
            if job_member(poison.team_id, poison.id) in members and house.clock.now() < NOON + 45_000:
                tries += len(members) == 1
                raise LookupError("a row that cannot be read")
            return start_batch(connection, members, **given)  # type: ignore[arg-type]

        monkeypatch.setattr("zerocron.engine.scheduler.start_batch", poisoned)
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(40.1)
        for job in good:
            assert [run.scheduled_for for run in await house.runs(job)] == [
                NOON + second * 1_000 for second in (10, 20, 30, 40)
            ]
        assert await house.runs(poison) == []
        asides = [entry for entry in logs if entry["event"] == "member_set_aside"]
        assert {entry["member"] for entry in asides} == {job_member(poison.team_id, poison.id)}
        assert [entry["again_in_seconds"] for entry in asides] == [0.25, 0.5, 1, 2, 4, 8, 10, 10]
        assert tries == 8, "ever more seldom"
        await house.clock.advance(20)
        assert [run.status for run in await house.runs(poison)][-1] == "succeeded"


async def test_a_timetable_that_was_erased_costs_seconds_and_no_run(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create(EVERY_10_S)
        house.target.on(OTHER, answered(500), answered())
        retried = await house.create("2027-01-15T12:00:01Z", url=OTHER, retry=RetryPolicy(2, "fixed", 8))
        await house.clock.advance(5)
        await house.timetable.clear()
        await house.clock.advance(10)
        runs = await house.runs(job)
        assert [run.status for run in runs] == ["succeeded"]
        assert runs[0].started_at is not None
        assert runs[0].started_at - runs[0].scheduled_for < 5_000
        [run] = await house.runs(retried)
        assert (run.status, run.attempt) == ("succeeded", 2)


async def test_a_timetable_erased_again_and_again_doubles_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create(EVERY_10_S)
        for _ in range(30):
            await house.clock.advance(2.5)
            await house.timetable.clear()
        await house.clock.advance(12)
        runs = await house.runs(job)
        assert {run.status for run in runs} == {"succeeded"}
        assert [run.scheduled_for for run in runs] == [NOON + number * 10_000 for number in range(1, 9)]
        assert len(house.target.requests) == 8


async def test_a_job_that_another_process_wrote_is_picked_up(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        soon, later = a_job(next_run_at=NOON + MINUTE), a_job(next_run_at=NOON + 3 * MINUTE)
        await house.clock.advance(2)

        def insert(connection: Connection) -> None:
            job_rows.insert(connection, soon)
            job_rows.insert(connection, later)

        await house.ledger.inner.write(insert)
        await house.clock.advance(3 * 60 + 1)
        first = [(await house.runs(job))[0] for job in (soon, later)]
        late = [(run.started_at or 0) - run.scheduled_for for run in first]
        assert late == [pytest.approx(3_000, abs=1_500), 0], "by the sweep; once it comes into view, on time"


async def test_a_start_whose_answer_was_lost_is_settled_and_sent_once(tmp_path: Path) -> None:
    """The run is committed as running and nobody executes it: no second run of the slot, one request in the end."""

    class LosesOneAnswer(WatchedLedger):
        lost = False

        async def write(self, transaction: Transaction[T]) -> T:
            result = await super().write(transaction)
            if isinstance(result, StartedBatch) and not self.lost:
                self.lost = True
                away()
            return result

    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        house.engine.scheduler._ledger = LosesOneAnswer(house.ledger)
        with structlog.testing.capture_logs():
            await house.clock.advance(20)
            assert house.target.requests == []
            assert [run.status for run in await house.runs(job)] == ["running"]
            await house.clock.advance(ORPHAN_MS / 1000 + 20)
        [run] = await house.runs(job)
        assert (run.status, run.attempt, run.cause) == ("succeeded", 2, "node_lost")
        assert house.target.seen(URL) == [(run.id, 2)]


async def test_while_the_ledger_is_away_nothing_starts_and_afterwards_everything_is_accounted_for(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.target.on(OTHER, slow(house, 30))
        job = await house.create("* * * * *", catchup=Catchup.ALL)
        under_way = await house.create("2027-01-15T12:00:50Z", url=OTHER)
        await house.clock.advance(55)
        with structlog.testing.capture_logs():
            house.ledger.before_write = away
            await house.clock.advance(300)
            assert house.target.seen(URL) == []
            house.ledger.before_write = lambda: None
            await house.clock.advance(15)
        runs = await house.runs(job)
        assert [run.scheduled_for for run in runs] == [NOON + minute * MINUTE for minute in range(1, 7)]
        assert {run.status for run in runs} == {"succeeded"}
        [run] = await house.runs(under_way)
        assert (run.status, run.attempt) == ("succeeded", 1), "its result waited for the ledger; it is not sent again"
        assert len(house.target.seen(OTHER)) == 1


async def test_an_outage_ends_no_loop_and_is_told_to_whoever_asks(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        with structlog.testing.capture_logs():
            house.ledger.before_write = away
            await house.clock.advance(595)
            assert house.engine.stalled()
            house.ledger.before_write = lambda: None
            await house.clock.advance(15)
        assert house.engine.stalled() == []
        assert sum(run.count for run in await house.runs(job)) == 10


async def test_a_node_whose_session_was_fenced_starts_nothing_until_it_has_a_new_one(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:06Z")
        later = await house.create("2027-01-15T12:00:11Z", url=OTHER)
        fenced = house.engine.session.id
        await house.clock.advance(5.5)  # the renewal at 5 s is past, the next one comes at 10 s
        with structlog.testing.capture_logs() as logs:
            await house.sql("UPDATE sessions SET ended_at = 1, end_reason = 'fenced'")
            await house.clock.advance(4)
            assert house.target.requests == []
            assert await house.runs(job) == []
            await house.clock.advance(10)
        events = [entry["event"] for entry in logs]
        assert events.count("start_refused") == 1, "having been told once, it does not try again and again"
        assert events.count("session_fenced") == 1
        assert [run.status for run in [*await house.runs(job), *await house.runs(later)]] == ["succeeded"] * 2
        assert (await house.runs(job))[0].started_at == pytest.approx(NOON + 10_000, abs=100), "as soon as it may"
        assert house.engine.session.id != fenced
        assert house.engine.stalled() == []


async def test_without_a_valid_session_the_scheduler_waits_even_when_it_is_woken(tmp_path: Path) -> None:
    """Woken by a put that it may not act on, it once went round without ever letting anything else run."""
    async with House(tmp_path) as house:
        scheduler = house.engine.scheduler
        house.engine.session._renewed_at = None
        house.timetable.earlier.set()
        seconds = await scheduler.tick()
        assert seconds > 0
        pausing = asyncio.create_task(scheduler.pause(seconds))
        await house.clock.rest()
        assert not pausing.done()
        pausing.cancel()
        await asyncio.gather(pausing, return_exceptions=True)


@pytest.mark.parametrize("kind", [job_member, run_member, monitor_member, alert_member])
@pytest.mark.parametrize("part", [job_member, monitor_member, alert_member])
async def test_what_was_claimed_and_not_looked_at_is_due_again_whichever_part_failed(
    tmp_path: Path, kind: Callable[[str, str], str], part: Callable[[str, str], str]
) -> None:
    """It would stay hidden for ten seconds otherwise."""
    async with House(tmp_path) as house:
        first, beside = part(DEFAULT_TEAM_ID, an_id()), kind(DEFAULT_TEAM_ID, an_id())
        house.ledger.is_away = True
        assert isinstance(house.timetable, MemoryTimetable)
        await house.timetable.put({first: NOON, beside: NOON})
        with suppress(Unavailable):
            await house.engine.scheduler.tick()
        again = await house.timetable.claim(NOON + SET_ASIDE_MS, 10)
        assert sorted(again.members) == sorted([first, beside])


async def test_a_ledger_that_is_away_at_the_start_may_come_later(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create(EVERY_10_S)
        await house.stop()
        house.engine = house._engine()
        house.ledger.before_write = away
        with pytest.raises(Unavailable):
            await house.engine.start()
        assert house.engine.stalled() == [loop.name for loop in house.engine.loops]
        await house.clock.advance(30)
        house.ledger.before_write = lambda: None
        await house.engine.start()
        await house.clock.advance(20.1)
        assert [run.status for run in await house.runs(job)][-2:] == ["succeeded", "succeeded"]


async def test_a_loop_that_hangs_is_named_within_two_minutes(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        hanging = asyncio.Event()

        async def hang(now: int, limit: int, hide_ms: int = HIDE_MS, *, without: Collection[str] = ()) -> Claim:
            await hanging.wait()
            return Claim([], None)

        assert isinstance(house.timetable, MemoryTimetable)
        house.timetable.claim = hang  # type: ignore[method-assign]
        await house.clock.advance(50)
        assert house.engine.stalled() == []
        await house.clock.advance(70)
        assert house.engine.stalled() == ["scheduler"]
        age = house.metrics.registry.get_sample_value("zerocron_loop_age_seconds", {"loop": "scheduler"})
        assert age is not None
        assert age > 60
        hanging.set()
        await house.clock.advance(5)
        assert house.engine.stalled() == []


# clocks


async def test_a_clock_that_is_set_back_repeats_nothing_and_stops_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(150)
        house.clock.set(NOON + 10_000)
        await house.clock.advance(100)
        assert [run.scheduled_for for run in await house.runs(job)] == [NOON + MINUTE, NOON + 2 * MINUTE]
        asked, _ = await house.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="manual")
        await house.clock.advance(0.1)
        assert [run.status for run in await house.runs(job) if run.id == asked.id] == ["succeeded"]
        await house.clock.advance(120)
        slots = [run.scheduled_for for run in await house.runs(job) if run.trigger_key == ""]
        assert slots == [NOON + minute * MINUTE for minute in (1, 2, 3)]


async def test_a_clock_that_is_set_back_while_a_request_is_under_way_records_it_soundly(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 20))
        job = await house.create("2027-01-15T12:00:10Z")
        await house.clock.advance(15)
        house.clock.set(NOON - HOUR)
        await house.clock.advance(20)
        [run] = await house.runs(job)
        assert run.status == "succeeded"
        [execution] = await house.executions(run)
        assert execution.finished_at >= execution.started_at


async def test_a_second_that_comes_twice_runs_once(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * * *")
        for _ in range(20):
            await house.clock.advance(1)
            house.clock.set(house.clock.now() - 300)  # a clock that is slowed down in steps
        slots = [run.scheduled_for for run in await house.runs(job)]
        assert slots == sorted(set(slots))
        assert len(house.target.requests) == len(slots)


async def test_a_clock_that_is_set_forward_is_downtime_and_no_storm(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(61)
        house.clock.set(NOON + HOUR + 30_000)
        await house.clock.advance(5)
        runs = await house.runs(job)
        assert [(run.status, run.scheduled_for, run.count) for run in runs] == [
            ("succeeded", NOON + MINUTE, 1),
            ("skipped", NOON + 2 * MINUTE, 58),
            ("succeeded", NOON + HOUR, 1),
        ]


async def test_a_machine_that_slept_notices_at_once_when_it_wakes(tmp_path: Path) -> None:
    """The monotonic clock stands still in the sleep of a machine, and every timer with it."""
    async with House(tmp_path) as house:
        job = await house.create("0 * * * *")
        await house.clock.advance(10)
        house.clock.set(NOON + 2 * HOUR + 10 * MINUTE)
        await house.clock.advance(2.5)
        assert [run.status for run in await house.runs(job)] == ["skipped", "succeeded"]


# stopping


async def test_stopping_lets_requests_under_way_end(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 3))
        job = await house.create("2027-01-15T12:00:10Z")
        other = await house.create("2027-01-15T12:00:12Z", url=OTHER)
        await house.clock.advance(11)
        await house.stop(drain_seconds=30)
        [run] = await house.runs(job)
        assert (run.status, run.attempt) == ("succeeded", 1)
        assert await house.runs(other) == [], "nothing new starts while it stops"
        assert await house.sql("SELECT end_reason FROM sessions") == [("closed",)]
        await house.stop()


async def test_stopping_gives_up_what_does_not_end_and_the_next_process_takes_it_over(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 600), answered())
        job = await house.create("2027-01-15T12:00:10Z")
        once = await house.create("2027-01-15T12:00:10Z", url=OTHER, on_lost="give_up")
        house.target.on(OTHER, slow(house, 600), answered())
        await house.clock.advance(11)
        with structlog.testing.capture_logs():
            await house.stop(drain_seconds=0.01)
        [run] = await house.runs(job)
        assert (run.status, run.cause) == ("retrying", "node_lost")
        await house.restart(after=60)
        await house.clock.advance(1)
        [run] = await house.runs(job)
        assert (run.status, run.attempt) == ("succeeded", 2)
        assert house.target.seen(URL) == [(run.id, 1), (run.id, 2)]
        [given_up] = await house.runs(once)
        assert (given_up.status, given_up.reason) == ("lost", "node_lost")
        assert len(house.target.seen(OTHER)) == 1


async def test_a_second_signal_ends_the_wait(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 600))
        await house.create("2027-01-15T12:00:10Z")
        await house.clock.advance(11)
        force = asyncio.Event()
        with structlog.testing.capture_logs():
            stopping = asyncio.create_task(house.engine.stop(3_600, force))
            await house.clock.advance(1)
            assert not stopping.done()
            force.set()
            await house.clock.advance(1)
        assert stopping.done()
        assert house.engine.executor.in_flight == frozenset()


async def test_an_answer_that_came_just_before_the_stop_is_recorded(tmp_path: Path) -> None:
    """Its request was answered and its result waits for company: it must not be sent again."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.clock.until(lambda: house.target.requests, "the request")
        assert [run.status for run in await house.runs(job)] == ["running"]
        with structlog.testing.capture_logs():
            await house.stop(drain_seconds=0)
        assert [(run.status, run.attempt) for run in await house.runs(job)] == [("succeeded", 1)]


# crashing


async def test_a_crash_after_the_commit_and_before_the_request_loses_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        held = asyncio.Event()

        async def hold(_request: Request) -> Outcome:
            await held.wait()
            return answered()

        house.target.on(URL, hold, answered())
        await house.clock.advance(11)
        await house.crash()
        assert [run.status for run in await house.runs(job)] == ["running"]
        with structlog.testing.capture_logs():
            await house.restart(after=20)
            await house.clock.advance(1)
        [run] = await house.runs(job)
        assert (run.status, run.attempt, run.cause) == ("succeeded", 2, "node_lost")
        executions = await house.executions(run)
        assert [(item.attempt, item.error_kind) for item in executions] == [(1, "node_lost"), (2, None)]


@pytest.mark.parametrize(
    ("catchup", "ran", "skipped"),
    [(Catchup.LATEST, [10], 9), (Catchup.ALL, list(range(1, 11)), 0), (Catchup.NONE, [10], 9)],
)
async def test_downtime_goes_by_the_catch_up_policy_and_leaves_no_gap(
    tmp_path: Path, catchup: Catchup, ran: list[int], skipped: int
) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *", catchup=catchup)
        await house.clock.advance(5)
        await house.crash()
        with structlog.testing.capture_logs():
            await house.restart(after=10 * 60 + 10)
            await house.clock.advance(5)
        runs = await house.runs(job)
        assert [run.scheduled_for for run in runs if run.status == "succeeded"] == [
            NOON + minute * MINUTE for minute in ran
        ]
        assert sum(run.count for run in runs if run.status == "skipped") == skipped
        assert (await house.job(job)).state.next_run_at == NOON + 11 * MINUTE


async def test_a_crash_in_the_middle_of_catching_up_repeats_and_forgets_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 0.2))
        job = await house.create("* * * * *", catchup=Catchup.ALL)
        await house.crash()
        with structlog.testing.capture_logs():
            await house.restart(after=30 * 60 + 10)
            await house.clock.advance(2)
            await house.crash()
            await house.restart(after=1)
            await house.clock.advance(20)
        runs = await house.runs(job)
        assert [run.scheduled_for for run in runs] == [NOON + minute * MINUTE for minute in range(1, 31)]
        assert {run.status for run in runs} == {"succeeded"}
        assert sum(run.attempt for run in runs) == 31, "one was under way when it crashed"


async def test_definitions_that_are_long_are_sent_whole(tmp_path: Path) -> None:
    body = "x" * (job_rows.STARTED_BODY_CHARACTERS_MAX + 1)
    assert a_definition(body=body).body == body
    async with House(tmp_path) as house:
        await house.create("2027-01-15T12:00:10Z", method="POST", body=body)
        await house.clock.advance(11)
        [request] = house.target.requests
        assert request.body == body.encode()
