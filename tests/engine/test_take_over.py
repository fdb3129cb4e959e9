"""Several nodes over one ledger: who may take over from whom, when, and what a node that was given up still does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Literal

import pytest
import structlog
from sqlalchemy import Connection
from tests.engine.book import Book, succeeded
from tests.engine.house import WatchedLedger, answered
from tests.storage.samples import HOUR, MINUTE, NOON, a_definition, a_job, a_run
from tests.support.clock import ManualClock

from zerocron.core.errors import Unavailable
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import Definition, Job, Run
from zerocron.engine.attempt import Result, Started
from zerocron.engine.executor import Executor
from zerocron.engine.sessions import (
    CLOCK_DIFFERENCE_MS_MAX,
    RENEW_SECONDS,
    SAFETY_MS,
    VALIDITY_MS,
    Session,
)
from zerocron.engine.starting import SessionEnded
from zerocron.metrics import Metrics
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.memory import MemoryTimetable

pytestmark = pytest.mark.usefixtures("early_ms")

STEADY_TICKS = int(VALIDITY_MS / 1_000 / RENEW_SECONDS)


class Cluster:
    """Nodes that share a ledger whose clock is `database`, each with its own way to it."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.book = Book(ledger)
        self.clock = ManualClock(NOON, busy=lambda: any(node.ledger.at_work for node in self.nodes))
        self.set_ms = 0  # how far the database's clock was set
        self.nodes: list[Node] = []
        self._inner = ledger
        monkeypatch.setattr(session_rows, "database_time", lambda _connection: self.clock.now() + self.set_ms)

    async def node(self, *, machine_ms: int = 0) -> Node:
        """One more node, opened; its machine's clock is that far ahead of the true time."""
        node = Node(self, self._inner, machine_ms)
        self.nodes.append(node)
        await node.session.open()
        return node

    async def tick(self, *nodes: Node, times: int = 1) -> None:
        """That many renewals of these nodes, as far apart as they are."""
        for _ in range(times):
            await self.clock.advance(RENEW_SECONDS)
            for node in nodes:
                await node.tick()

    async def running(self, node: Node, count: int = 1, **given: Any) -> list[Started]:
        jobs = [await self.book.keep(a_job(**{"next_run_at": NOON + self.book.early_ms} | given)) for _ in range(count)]
        return (await self.book.start(*jobs, session_id=node.session.id)).runs

    async def end_of(self, session_id: str) -> tuple[str | None, bool]:
        """(why it ended, whether it is settled)."""

        def look(connection: Connection) -> Any:
            statement = "SELECT end_reason, settled_at FROM sessions WHERE id = :id"
            return connection.exec_driver_sql(statement, {"id": session_id}).one()

        reason, settled_at = await self._inner.read(look)
        return reason, settled_at is not None

    async def attempts(self, runs: list[Started]) -> list[tuple[str, int]]:
        """(status, times it was redelivered) of each."""
        found = [await self.book.run(run) for run in runs]
        return [(run.status, run.redeliveries) for run in found]


class Node:
    def __init__(self, cluster: Cluster, ledger: Ledger, machine_ms: int) -> None:
        self.ledger = WatchedLedger(ledger)
        self.metrics = Metrics()
        self.sent: list[str] = []
        self.results: list[Result] = []
        self.session = Session(
            ledger=self.ledger,
            timetable=MemoryTimetable(),
            clock=cluster.clock,
            metrics=self.metrics,
            node="test",
            version="0",
            exclusive=False,
            machine_now=lambda: cluster.clock.now() + machine_ms,
        )
        self.executor = Executor(
            load=self._load,
            send=self._send,
            settle=self._settle,
            clock=cluster.clock,
            metrics=self.metrics,
            capacity=10,
            permit=self.session.permits,
        )

    async def tick(self) -> None:
        """As the loop does it: a failure is no end."""
        with structlog.testing.capture_logs(), contextlib.suppress(Unavailable):
            await self.session.tick()

    async def _load(self, _run: Run) -> Definition:
        return a_definition()

    async def _send(self, request: Request) -> Outcome:
        self.sent.append(dict(request.headers)["X-0cron-Run-Id"])
        return answered()

    async def _settle(self, result: Result) -> None:
        self.results.append(result)


@pytest.fixture
def cluster(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(ledger, monkeypatch)


# taking over


async def test_a_node_that_fell_silent_is_taken_over_after_its_session_has_expired(cluster: Cluster) -> None:
    silent, other = await cluster.node(), await cluster.node()
    runs = await cluster.running(silent, 3)
    await cluster.tick(other, times=STEADY_TICKS)
    assert await cluster.end_of(silent.session.id) == (None, False), "not before its validity is over"
    await cluster.tick(other)
    assert await cluster.end_of(silent.session.id) == ("fenced", True)
    assert await cluster.attempts(runs) == [("retrying", 1)] * 3
    assert await cluster.end_of(other.session.id) == (None, False)
    assert other.metrics.registry.get_sample_value("zerocron_sessions_fenced_total") == 1
    assert other.metrics.registry.get_sample_value("zerocron_lost_runs_total") == 3


async def test_a_node_that_has_just_begun_takes_nothing_over(cluster: Cluster) -> None:
    """It does not know whether the ledger was away before it came."""
    silent = await cluster.node()
    runs = await cluster.running(silent)
    await cluster.clock.advance(10 * 60)
    new = await cluster.node()
    await cluster.tick(new, times=STEADY_TICKS - 1)
    assert await cluster.end_of(silent.session.id) == (None, False)
    assert await cluster.attempts(runs) == [("running", 0)]
    await cluster.tick(new)
    assert await cluster.end_of(silent.session.id) == ("fenced", True)


async def test_a_gap_in_its_own_renewals_makes_a_node_begin_anew(cluster: Cluster) -> None:
    silent, other = await cluster.node(), await cluster.node()
    await cluster.tick(other, times=4)
    await cluster.clock.advance(15)
    await cluster.tick(other, times=STEADY_TICKS)
    assert await cluster.end_of(silent.session.id) == (None, False)
    await cluster.tick(other)
    assert await cluster.end_of(silent.session.id) == ("fenced", True)


async def test_after_an_outage_of_the_ledger_nobody_is_taken_over(cluster: Cluster) -> None:
    """PROMISES.md C 25 and 26: everybody's session looks expired, and everybody lives."""
    nodes = [await cluster.node() for _ in range(3)]
    runs = [await cluster.running(node, 2) for node in nodes]
    await cluster.tick(*nodes, times=STEADY_TICKS + 2)
    for node in nodes:
        node.ledger.is_away = True
    await cluster.tick(*nodes, times=60)
    assert not any(node.session.is_valid() for node in nodes)
    nodes[0].ledger.is_away = False
    await cluster.tick(*nodes, times=5)  # the others get through to it only 25 s later
    for node in nodes:
        node.ledger.is_away = False
    await cluster.tick(*nodes, times=2 * STEADY_TICKS)
    for node, started in zip(nodes, runs, strict=True):
        assert await cluster.end_of(node.session.id) == (None, False)
        assert node.session.is_valid()
        assert await cluster.attempts(started) == [("running", 0)] * 2


async def test_one_that_does_not_come_back_after_the_outage_is_taken_over(cluster: Cluster) -> None:
    dead, other = await cluster.node(), await cluster.node()
    runs = await cluster.running(dead)
    other.ledger.is_away = True
    await cluster.tick(other, times=20)
    other.ledger.is_away = False
    await cluster.tick(other, times=STEADY_TICKS)
    assert await cluster.attempts(runs) == [("running", 0)]
    await cluster.tick(other)
    assert await cluster.attempts(runs) == [("retrying", 1)]


async def test_what_a_closed_session_left_is_taken_over_at_once(cluster: Cluster) -> None:
    stopped, other = await cluster.node(), await cluster.node()
    await cluster.tick(stopped, other, times=STEADY_TICKS + 1)
    runs = await cluster.running(stopped, next_run_at=NOON)
    session_id = stopped.session.id
    await other.ledger.write(
        lambda connection: session_rows.end(connection, [session_id], now=cluster.clock.now(), reason="closed")
    )
    await other.tick()
    assert await cluster.end_of(session_id) == ("closed", True)
    assert await cluster.attempts(runs) == [("retrying", 1)]


async def test_closing_leaves_nothing_to_be_taken_over(cluster: Cluster) -> None:
    stopped, _ = await cluster.node(), await cluster.node()
    runs = await cluster.running(stopped, 2)
    with structlog.testing.capture_logs():
        await stopped.session.close()
    assert await cluster.end_of(stopped.session.id) == ("closed", True)
    assert await cluster.attempts(runs) == [("retrying", 1)] * 2


async def test_two_nodes_that_take_over_at_once_settle_each_run_once(cluster: Cluster) -> None:
    dead, *others = [await cluster.node() for _ in range(4)]
    runs = await cluster.running(dead, 20)
    await cluster.tick(*others, times=STEADY_TICKS)
    await cluster.clock.advance(RENEW_SECONDS)
    with structlog.testing.capture_logs():
        await asyncio.gather(*(node.session.tick() for node in others))
    assert await cluster.attempts(runs) == [("retrying", 1)] * 20
    for run in runs:
        assert len(await cluster.book.executions(run)) == 1
    lost = [node.metrics.registry.get_sample_value("zerocron_lost_runs_total") or 0 for node in others]
    assert sum(lost) == 20


async def test_a_forward_step_of_the_ledgers_clock_ends_no_living_session(cluster: Cluster) -> None:
    """PROMISES.md C 44. Whoever renews first after the step sees all others expired."""
    nodes = [await cluster.node() for _ in range(3)]
    runs = [await cluster.running(node) for node in nodes]
    await cluster.tick(*nodes, times=STEADY_TICKS + 2)
    cluster.set_ms = HOUR
    await cluster.tick(*nodes, times=2 * STEADY_TICKS)
    for node, started in zip(nodes, runs, strict=True):
        assert await cluster.end_of(node.session.id) == (None, False)
        assert await cluster.attempts(started) == [("running", 0)]


async def test_one_that_died_before_the_step_is_taken_over_after_it(cluster: Cluster) -> None:
    dead, other = await cluster.node(), await cluster.node()
    runs = await cluster.running(dead)
    await cluster.tick(other, times=2)
    cluster.set_ms = HOUR
    await cluster.tick(other, times=STEADY_TICKS + 2)
    assert await cluster.attempts(runs) == [("retrying", 1)]


# a node that was given up


async def test_a_fenced_node_starts_nothing_under_its_old_session(cluster: Cluster) -> None:
    node = await cluster.node()
    job = await cluster.book.keep(a_job())
    session_id = node.session.id
    await node.ledger.write(lambda connection: session_rows.end(connection, [session_id], now=NOON, reason="fenced"))
    with pytest.raises(SessionEnded) as ended:
        await cluster.book.start(job, session_id=session_id)
    assert ended.value.session_id == session_id
    assert await cluster.book.runs(job) == []
    node.session.lose(session_id)
    assert not node.session.is_valid()
    await cluster.tick(node)
    assert node.session.is_valid()
    assert node.session.id != session_id


async def test_news_about_an_old_session_do_not_touch_the_new_one(cluster: Cluster) -> None:
    node = await cluster.node()
    old = node.session.id
    await node.ledger.write(lambda connection: session_rows.end(connection, [old], now=NOON, reason="fenced"))
    await cluster.tick(node)
    node.session.lose(old)
    assert node.session.is_valid()
    with structlog.testing.capture_logs():
        await node.session.close()
    assert (await cluster.end_of(node.session.id))[0] == "closed"


async def test_a_new_session_whose_answer_was_lost_is_found_again(cluster: Cluster) -> None:
    node = await cluster.node()
    await node.ledger.write(
        lambda connection: session_rows.end(connection, [node.session.id], now=NOON, reason="fenced")
    )
    answers: list[Literal["committed"] | None] = [None, "committed"]
    node.ledger.lose_answer = lambda _result: answers.pop(0) if answers else None
    await cluster.tick(node)
    assert not node.session.is_valid()
    opened = node.session.id
    await cluster.tick(node)
    assert node.session.id == opened
    assert node.session.is_valid()


# permits


async def held_back(cluster: Cluster) -> tuple[Node, Job, Started]:
    """A run whose start was committed just before the ledger went away for minutes."""
    node = await cluster.node()
    job = await cluster.book.keep(a_job())
    await cluster.clock.advance(1)
    [started] = (await cluster.book.start(job, now=cluster.clock.now(), session_id=node.session.id)).runs
    node.ledger.is_away = True
    await cluster.tick(node, times=6)
    assert not node.session.is_valid()
    node.executor.launch(started)
    await cluster.tick(node, times=30)
    assert node.sent == []
    assert node.executor.in_flight == {started.run.id}, "it keeps its place"
    return node, job, started


async def test_an_attempt_that_was_held_back_is_sent_once_when_the_ledger_is_back(cluster: Cluster) -> None:
    node, _, started = await held_back(cluster)
    node.ledger.is_away = False
    await cluster.tick(node, times=4)
    assert node.sent == [started.run.id]
    assert [result.run.attempt for result in node.results] == [1]
    assert (await cluster.book.finish(*node.results)).settled == 1


async def test_an_attempt_whose_session_was_given_up_meanwhile_is_never_sent(cluster: Cluster) -> None:
    node, _, started = await held_back(cluster)
    other = await cluster.node()
    await cluster.tick(other, times=STEADY_TICKS + 1)
    assert await cluster.attempts([started]) == [("retrying", 1)]
    node.ledger.is_away = False
    await cluster.tick(node, other, times=4)
    assert node.session.is_valid(), "it goes on under a new one"
    assert (node.sent, node.results) == ([], [])
    assert node.executor.in_flight == frozenset()


async def test_an_attempt_is_held_back_by_a_session_that_is_about_to_expire(cluster: Cluster) -> None:
    node = await cluster.node()
    [started] = await cluster.running(node)
    await cluster.clock.advance((VALIDITY_MS - SAFETY_MS) / 1_000)
    node.executor.launch(started)
    await cluster.clock.advance(1)
    assert node.sent == []
    await node.tick()
    await cluster.clock.rest()
    assert node.sent == [started.run.id]


async def test_a_run_of_an_earlier_session_is_not_sent(cluster: Cluster) -> None:
    node = await cluster.node()
    assert not await node.session.permits(a_run(a_job(), session_id="another"))
    assert await node.session.permits(a_run(a_job(), session_id=node.session.id))


async def test_closing_lets_go_of_what_was_held_back(cluster: Cluster) -> None:
    node, _, started = await held_back(cluster)
    node.ledger.is_away = False
    with structlog.testing.capture_logs():
        await node.session.close()
        await cluster.clock.rest()
    assert node.sent == []
    assert node.executor.in_flight == frozenset()
    assert await cluster.attempts([started]) == [("retrying", 1)]


async def test_a_late_result_of_a_node_that_was_given_up_is_kept_and_changes_nothing(cluster: Cluster) -> None:
    silent, other = await cluster.node(), await cluster.node()
    [run] = await cluster.running(silent)
    await cluster.tick(other, times=STEADY_TICKS + 1)
    finished = await cluster.book.finish(succeeded(run), now=cluster.clock.now())
    assert (finished.late, finished.settled) == (1, 0)
    assert await cluster.attempts([run]) == [("retrying", 1)]


# whose clock is wrong


@pytest.mark.parametrize(
    ("ahead_ms", "agree"),
    [
        ([0, 0, 0], True),
        ([0, 0, HOUR], True),
        ([-HOUR, 0, HOUR], True),
        ([HOUR, HOUR, 0], False),
        ([-HOUR, -HOUR, 0], False),
        ([CLOCK_DIFFERENCE_MS_MAX] * 3, True),
        ([CLOCK_DIFFERENCE_MS_MAX + 1] * 3, False),
        ([-CLOCK_DIFFERENCE_MS_MAX - 1] * 4, False),
        ([HOUR], True),
        ([HOUR, HOUR], True),
    ],
)
async def test_starts_are_held_when_most_machines_say_that_the_ledgers_clock_is_wrong(
    cluster: Cluster, ahead_ms: list[int], agree: bool
) -> None:
    """Three or more of them: two cannot tell whose clock it is."""
    nodes = [await cluster.node(machine_ms=ahead) for ahead in ahead_ms]
    await cluster.tick(*nodes, times=2)
    assert [node.session.is_valid() for node in nodes] == [agree] * len(nodes)


async def test_starts_go_on_when_the_clock_was_put_right(cluster: Cluster) -> None:
    nodes = [await cluster.node() for _ in range(3)]
    await cluster.tick(*nodes, times=STEADY_TICKS + 1)
    cluster.set_ms = -MINUTE
    await cluster.tick(*nodes, times=2)
    assert not any(node.session.is_valid() for node in nodes)
    cluster.set_ms = 0
    await cluster.tick(*nodes, times=2)
    assert all(node.session.is_valid() for node in nodes)


async def test_dead_nodes_have_no_vote(cluster: Cluster) -> None:
    dead = [await cluster.node(machine_ms=HOUR) for _ in range(2)]
    living = await cluster.node()
    await cluster.tick(*dead, living)
    await cluster.tick(living, times=STEADY_TICKS + 2)
    assert living.session.is_valid()
