"""How many requests are in flight: for a team, to a host, and while the ledger is slow. No bound delays the others.

A bound that is reached leaves what is due where it is; it never skips a slot by itself and never sends one twice.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection
from tests.engine.house import House, answered
from tests.storage.samples import NOON, OTHER_TEAM_ID, a_definition, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Definition, RetryPolicy, Run
from zerocron.core.requests import host_of
from zerocron.core.schedule import Schedule
from zerocron.engine.attempt import Result, Started
from zerocron.engine.executor import PLACES_MIN, SLOW_SECONDS, Executor
from zerocron.metrics import Metrics
from zerocron.storage.ledger import jobs as job_rows

SLOW = "https://slow.example.com/hook"
FAST = "https://fast.example.com/hook"
SECOND_1 = "2027-01-15T12:00:01Z"


class InFlight:
    """A target that answers when it is told to, and counts how many wait."""

    def __init__(self) -> None:
        self.waiting = self.most = 0
        self.gate = asyncio.Event()

    async def __call__(self, _request: Request) -> Outcome:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self.gate.wait()
        self.waiting -= 1
        return answered()


def deferred(house: House, reason: str) -> float:
    return house.metrics.registry.get_sample_value("zerocron_claims_deferred_total", {"reason": reason}) or 0.0


# teams


async def test_hanging_requests_of_one_team_do_not_delay_another(tmp_path: Path) -> None:
    """PROMISES.md D 23: 500 hanging targets of one team, and the others are on time."""
    async with House(tmp_path, capacity=500, team_max=0) as house:
        hanging = InFlight()
        house.target.on(SLOW, hanging)

        def fill(connection: Connection) -> None:
            for _ in range(500):
                once = Schedule("once", None, None, NOON + 1_000, "UTC")
                job_rows.insert(
                    connection, a_job(next_run_at=once.at, schedule=once, definition=a_definition(url=SLOW))
                )

        await house.crash()
        await house.ledger.inner.write(fill)
        await house.restart()
        others = [await house.create("*/2 * * * * *", FAST, team_id=OTHER_TEAM_ID) for _ in range(5)]
        await house.clock.advance(20.5)
        assert hanging.most == 450, "nine tenths of the places"
        for job in others:
            runs = await house.runs(job)
            assert [run.scheduled_for for run in runs] == [NOON + second * 1_000 for second in range(2, 21, 2)]
            assert {run.status for run in runs} == {"succeeded"}
        assert max(await house.lateness(*others)) < 1_000
        assert deferred(house, "team") > 0
        hanging.gate.set()
        await house.clock.advance(10)
        statuses = await house.sql(
            "SELECT status, count(*), max(attempt) FROM runs WHERE team_id = :id GROUP BY 1", id=DEFAULT_TEAM_ID
        )
        assert statuses == [("succeeded", 500, 1)], "and the others of the full team follow, each once"


async def test_a_team_never_has_more_in_flight_than_it_may(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=50, team_max=7) as house:
        ours, theirs = InFlight(), InFlight()
        house.target.on(SLOW, ours)
        house.target.on(FAST, theirs)
        for _ in range(20):
            await house.create(SECOND_1, SLOW)
            await house.create(SECOND_1, FAST, team_id=OTHER_TEAM_ID)
        await house.clock.advance(3)
        assert (ours.waiting, theirs.waiting) == (7, 7)
        ours.gate.set()
        await house.clock.advance(3)
        assert (ours.most, theirs.most) == (7, 7)
        assert await house.sql("SELECT count(*) FROM runs WHERE status = 'succeeded'") == [(20,)]


async def test_retries_of_a_full_team_wait_too(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=50, team_max=2) as house:
        hanging = InFlight()
        house.target.on(SLOW, answered(500), hanging)
        retried = await house.create(SECOND_1, SLOW, retry=RetryPolicy(2, "fixed", 2))
        house.target.on(FAST, hanging)
        await house.clock.advance(2)
        for _ in range(4):
            await house.create("2027-01-15T12:00:03Z", FAST)
        await house.clock.advance(8)
        assert hanging.most == 2
        hanging.gate.set()
        await house.clock.advance(3)
        [run] = await house.runs(retried)
        assert (run.status, run.attempt) == ("succeeded", 2)


# hosts


async def test_a_host_never_gets_more_at_once_than_it_may_and_others_are_on_time(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=50, host_max=3) as house:
        slow = InFlight()
        house.target.on(SLOW, slow)
        jobs = [await house.create(SECOND_1, SLOW) for _ in range(10)]
        others = [await house.create(SECOND_1, f"https://host-{number}.example.com/") for number in range(10)]
        await house.clock.advance(4)
        assert slow.waiting == 3
        late = await house.lateness(*others)
        assert (len(late), max(late) < 1_000) == (10, True)
        assert deferred(house, "host") > 0
        slow.gate.set()
        await house.clock.advance(4)
        assert slow.most == 3
        assert [[(run.status, run.attempt) for run in await house.runs(job)] for job in jobs] == [
            [("succeeded", 1)]
        ] * 10


async def test_a_slot_its_host_had_no_room_for_is_not_skipped(tmp_path: Path) -> None:
    """Not even when it is so late that it counts as missed: the newest is run, as after any downtime."""
    async with House(tmp_path, host_max=1) as house:
        slow = InFlight()
        house.target.on(SLOW, slow)
        await house.create(SECOND_1, SLOW)
        waiting = await house.create("2027-01-15T12:00:02Z", SLOW)
        await house.clock.advance(60)
        assert await house.runs(waiting) == []
        slow.gate.set()
        await house.clock.advance(1)
        assert [(run.status, run.count) for run in await house.runs(waiting)] == [("succeeded", 1)]


async def test_a_retry_and_a_trigger_wait_for_their_host_and_are_not_given_up(tmp_path: Path) -> None:
    async with House(tmp_path, host_max=1) as house:
        hanging = InFlight()
        house.target.on(FAST, answered(500), hanging)
        retried = await house.create(SECOND_1, FAST, retry=RetryPolicy(2, "fixed", 2))
        await house.clock.advance(2)
        await house.create("2027-01-15T12:00:03Z", FAST)
        asked_of = await house.create("0 0 1 1 *", FAST)
        await house.clock.advance(1.5)
        await house.jobs.trigger(DEFAULT_TEAM_ID, asked_of.id, triggered_by="manual")
        await house.clock.advance(10)
        assert hanging.most == 1
        assert (await house.runs(retried))[0].status == "retrying"
        assert (await house.runs(asked_of))[0].status == "queued"
        hanging.gate.set()
        await house.clock.advance(3)
        assert [(await house.runs(job))[0].status for job in (retried, asked_of)] == ["succeeded"] * 2
        assert hanging.most == 1


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?b", "example.com:443"),
        ("http://example.com/", "example.com:80"),
        ("http://EXAMPLE.com:8080/x", "example.com:8080"),
        ("http://[::1]:9/", "::1:9"),
    ],
)
def test_a_host_is_its_name_and_port(url: str, host: str) -> None:
    assert host_of(url) == host


# a slow ledger


def an_executor(capacity: int = 1_000, **given: Any) -> tuple[Executor, Metrics]:
    async def never(_value: Any) -> Any:
        raise AssertionError("nothing is sent in these tests")

    metrics = Metrics()
    clock = ManualClock(NOON)
    return Executor(
        load=never, send=never, settle=never, clock=clock, metrics=metrics, capacity=capacity, **given
    ), metrics


def test_a_slow_ledger_is_given_less_and_less_to_do_and_a_quick_one_more_again() -> None:
    executor, metrics = an_executor()
    seen = []
    for _ in range(6):
        executor.ledger_took(SLOW_SECONDS + 0.001)
        seen.append(executor.free)
    assert seen == [500, 250, 125, 62, PLACES_MIN, PLACES_MIN]
    assert metrics.registry.get_sample_value("zerocron_places") == PLACES_MIN
    executor.ledger_took(SLOW_SECONDS)
    assert executor.free == PLACES_MIN + 50
    for _ in range(30):
        executor.ledger_took(0.01)
    assert executor.free == 1_000
    assert metrics.registry.get_sample_value("zerocron_places") == 1_000


def test_places_shrink_to_no_fewer_than_a_small_node_has() -> None:
    executor, _ = an_executor(capacity=3)
    executor.ledger_took(float("inf"))
    assert executor.free == 3
    executor.ledger_took(0.0)
    assert executor.free == 3


async def test_an_outage_shrinks_the_places_and_they_grow_again(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=200) as house:
        job = await house.create("* * * * * *")
        await house.clock.advance(3)
        with structlog.testing.capture_logs():
            house.ledger.before_write = lambda: setattr(house.ledger, "is_away", True)
            await house.clock.advance(20)
            assert house.engine.executor.free == PLACES_MIN
            house.ledger.heal()
            await house.clock.advance(60.5)
        assert house.engine.executor.free == 200
        assert (await house.runs(job))[-1].status == "succeeded"


@pytest.mark.parametrize(("capacity", "given", "room"), [(1_000, 0, 900), (10, 0, 9), (1, 0, 1), (1_000, 40, 40)])
def test_a_team_has_nine_tenths_of_the_places_unless_told_otherwise(capacity: int, given: int, room: int) -> None:
    executor, _ = an_executor(capacity=capacity, team_max=given)
    assert executor.team_room() == ([], room)


async def test_the_room_of_teams_and_hosts_is_what_is_not_in_flight() -> None:
    gate = asyncio.Event()

    async def send(_request: Request) -> Outcome:
        await gate.wait()
        return answered()

    async def settle(_result: Result) -> None:
        pass

    async def load(_run: Run) -> Definition:
        raise AssertionError("definitions come along")

    clock = ManualClock(NOON)
    executor = Executor(
        load=load, send=send, settle=settle, clock=clock, metrics=Metrics(), capacity=10, team_max=3, host_max=2
    )
    for team_id, count in ((DEFAULT_TEAM_ID, 3), (OTHER_TEAM_ID, 1)):
        for _ in range(count):
            job = a_job(team_id=team_id)
            executor.launch(Started(a_run(job), a_definition(), host_of(a_definition().url)))
    assert executor.team_room() == ([DEFAULT_TEAM_ID], 2)
    assert executor.host_room("https://example.com/other") == -2
    assert executor.host_room("https://example.org/") == 2
    gate.set()
    await clock.rest()
    assert executor.team_room() == ([], 3)
    assert executor.host_room("https://example.com/other") == 2
    assert an_executor()[0].host_room("https://example.com/") is None
