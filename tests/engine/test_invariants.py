"""Whatever happens in whatever order: the engine's transactions and people's verbs against what must always hold.

A random story of starts, results, lost nodes, pauses, edits, triggers, erased timetables and jobs that another
transaction holds is played on a ledger in memory.
After every step the ledger must be sound; at the end everything must come to rest with every slot accounted for once.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import StaticPool
from tests.engine.book import failed, succeeded
from tests.storage.samples import NOON, an_id
from tests.support.clock import ManualClock

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.core.errors import Conflict
from zerocron.core.model import (
    DEFAULT_TEAM_ID,
    REDELIVERIES_MAX,
    Catchup,
    EngineJob,
    Job,
    OnLost,
    Overlap,
    RetryPolicy,
    Run,
)
from zerocron.engine.attempt import Started
from zerocron.engine.finishing import finish_batch, take_over_batch
from zerocron.engine.starting import SessionEnded, start_batch
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import sessions as session_rows
from zerocron.storage.ledger.database import Transaction
from zerocron.storage.ledger.tables import metadata
from zerocron.storage.timetable.contract import job_member, run_member
from zerocron.storage.timetable.horizon import put_near
from zerocron.storage.timetable.memory import MemoryTimetable

T = TypeVar("T")
lock = job_rows.lock
OVERLAPS = (Overlap.ALLOW, Overlap.ALLOW, Overlap.SKIP, Overlap.QUEUE)
"""Half of the time runs overlap, so that an edit to one of the others has something to forbid."""

SCHEDULES = ("* * * * * *", "*/7 * * * * *", "* * * * *", "every 5 seconds")


class DirectLedger:
    """A ledger in memory that runs its transactions where they are asked for: fast, and no thread."""

    def __init__(self) -> None:
        self._engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        metadata.create_all(self._engine)

    async def write(self, transaction: Transaction[T]) -> T:
        with self._engine.begin() as connection:
            return transaction(connection)

    read = write

    async def close(self) -> None:
        self._engine.dispose()


class OverlapMachine(RuleBasedStateMachine):
    """One node, a job or two, and edits of whether their runs may overlap."""

    def __init__(self) -> None:
        super().__init__()
        # The same story must happen in the same way each time it is told, and members are claimed in the order of ids.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("zerocron.core.ids.secrets.randbits", Random(1).getrandbits)
        self.runner = asyncio.Runner()
        self.ledger = DirectLedger()
        self.clock = ManualClock(NOON)
        self.timetable = MemoryTimetable()
        self.jobs = Jobs(ledger=self.ledger, timetable=self.timetable, clock=self.clock)
        self.made: list[Job] = []
        self.in_flight: dict[tuple[str, int], Started] = {}
        self.given_up: list[Started] = []
        self.dead: list[str] = []  # sessions whose runs are to be taken over
        self.held: str | None = None  # a job that another transaction holds
        self.loose: set[str] = set()  # jobs whose runs may, or once might, overlap
        self.patch.setattr(job_rows, "lock", self.lock)
        self.open_session()
        self.first: dict[str, int | None] = {}  # where the account of an active job begins
        self.closed: dict[str, list[int]] = {}  # slots of the times when it was active before

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def rows(self, statement: str, **parameters: Any) -> list[Any]:
        return self.do(self.ledger.read(lambda connection: list(connection.execute(text(statement), parameters))))

    def lock(self, connection: Connection, job_ids: Sequence[str], *, to_start: bool = False) -> dict[str, EngineJob]:
        return lock(connection, [job_id for job_id in job_ids if job_id != self.held], to_start=to_start)

    def open_session(self) -> None:
        self.session_id, now = an_id(), self.clock.now()
        self.do(
            self.ledger.write(
                lambda connection: session_rows.insert(
                    connection, session_id=self.session_id, node="n", version="0", now=now, expires_at=now + 30_000
                )
            )
        )

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            self.do(self.ledger.close())
            self.runner.close()
            self.patch.undo()

    # what may happen

    @initialize(
        policies=st.lists(
            st.tuples(
                st.sampled_from(SCHEDULES),
                st.sampled_from(OVERLAPS),
                st.sampled_from(Catchup),
                st.sampled_from(OnLost),
                st.builds(RetryPolicy, st.integers(1, 3), st.just("fixed"), st.sampled_from([0.0, 1.0, 4.0])),
            ),
            min_size=1,
            max_size=2,
        )
    )
    def begin(self, policies: list[tuple[str, Overlap, Catchup, OnLost, RetryPolicy]]) -> None:
        for schedule, overlap, catchup, on_lost, retry in policies:
            spec = JobSpec(
                "sample",
                schedule,
                "https://example.com/",
                overlap=overlap,
                catchup=catchup,
                on_lost=on_lost,
                retry=retry,
                catchup_window_seconds=3_600,
            )
            job, _ = self.do(self.jobs.create(DEFAULT_TEAM_ID, spec))
            self.made.append(job)
            self.first[job.id] = job.state.next_run_at
            self.closed[job.id] = []
            if overlap == Overlap.ALLOW:
                self.loose.add(job.id)

    @rule(ms=st.sampled_from([1, 400, 1_000, 3_000, 7_000, 40_000, 200_000]))
    def time_passes(self, ms: int) -> None:
        self.clock.set(self.clock.now() + ms)

    @rule(ms=st.sampled_from([0, 1_000, 1_000, 7_000]))
    def a_moment_later_a_tick_claims_and_starts(self, ms: int) -> None:
        self.time_passes(ms)
        self.a_tick_claims_and_starts(6)

    @rule(limit=st.integers(1, 6))
    def a_tick_claims_and_starts(self, limit: int) -> None:
        now = self.clock.now()
        members = list(self.do(self.timetable.claim(now, limit)).members)
        if not members:
            return
        batch = self.do(
            self.ledger.write(lambda connection: start_batch(connection, members, now=now, session_id=self.session_id))
        )
        for started in batch.runs:
            self.in_flight[started.run.id, started.run.attempt] = started
            assert started.run.job_id != self.held
        self.nothing_started_beside_another(batch.runs)
        self.do(self.timetable.drop(batch.drop))
        self.do(put_near(self.timetable, batch.put, now))

    @rule(data=st.data(), good=st.booleans())
    def results_come_back(self, data: st.DataObject, good: bool) -> None:
        if not self.in_flight:
            return
        keys = data.draw(st.lists(st.sampled_from(sorted(self.in_flight)), min_size=1, max_size=4, unique=True))
        self.finish([self.in_flight.pop(key) for key in keys], good=good)

    def finish(self, ended: list[Started], *, good: bool) -> None:
        now = self.clock.now()
        results = [succeeded(started) if good else failed(started) for started in ended]
        finished = self.do(self.ledger.write(lambda connection: finish_batch(connection, results, now=now)))
        for started in ended:
            assert (started.run.id in finished.busy) == (started.run.job_id == self.held)
            if started.run.id in finished.busy:
                self.in_flight[started.run.id, started.run.attempt] = started
        again = self.do(self.ledger.write(lambda connection: finish_batch(connection, results, now=now)))
        assert (again.settled, again.put) == (0, {})
        self.do(put_near(self.timetable, finished.put, now))

    @rule(erased=st.booleans())
    def the_node_is_lost_and_another_begins(self, erased: bool) -> None:
        now, session_id = self.clock.now(), self.session_id
        if erased:
            self.do(self.timetable.clear())
        self.given_up += self.in_flight.values()
        self.in_flight.clear()
        self.do(
            self.ledger.write(lambda connection: session_rows.end(connection, [session_id], now=now, reason="fenced"))
        )
        with pytest.raises(SessionEnded):
            self.do(self.ledger.write(lambda connection: start_batch(connection, [], now=now, session_id=session_id)))
        self.dead.append(session_id)
        self.open_session()
        self.what_the_dead_left_is_taken_over()

    @rule()
    def what_the_dead_left_is_taken_over(self) -> None:
        now = self.clock.now()
        finished = self.do(
            self.ledger.write(lambda connection: take_over_batch(connection, self.dead, now=now, limit=1_000))
        )
        if not finished.busy:
            self.dead.clear()
        self.do(put_near(self.timetable, finished.put, now))

    @rule()
    def the_sweep_goes_round(self) -> None:
        now = self.clock.now()
        jobs = self.do(self.ledger.read(lambda connection: job_rows.overdue(connection, before=now + 1, limit=99)))
        runs = self.do(self.ledger.read(lambda connection: run_rows.due(connection, until=now, limit=99)))
        due = {job_member(job.team_id, job.id): job.at for job in jobs}
        due |= {run_member(run.team_id, run.id): run.at for run in runs}
        self.do(self.timetable.restore(due, now=now))

    @rule(data=st.data(), overlap=st.sampled_from(OVERLAPS))
    def somebody_edits_the_overlap(self, data: st.DataObject, overlap: Overlap) -> None:
        if not self.made:
            return
        self.edit(data.draw(st.sampled_from(self.made)), overlap)

    def edit(self, job: Job, overlap: Overlap) -> None:
        self.do(self.jobs.edit(DEFAULT_TEAM_ID, job.id, lambda spec: dataclasses.replace(spec, overlap=overlap)))
        if overlap == Overlap.ALLOW:
            self.loose.add(job.id)

    @rule(data=st.data(), overlap=st.sampled_from([Overlap.SKIP, Overlap.QUEUE]))
    def some_begin_beside_each_other_and_an_edit_forbids_it(self, data: st.DataObject, overlap: Overlap) -> None:
        """Left to chance, this would be rare."""
        running = [job for job in self.made if self.first[job.id] is not None]
        if not running:
            return
        job = data.draw(st.sampled_from(running))
        self.edit(job, Overlap.ALLOW)
        for _ in range(2):
            self.do(self.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="manual"))
            self.clock.set(self.clock.now() + 1)
        self.a_tick_claims_and_starts(200)
        self.edit(job, overlap)

    # what must hold

    def nothing_started_beside_another(self, batch: list[Started]) -> None:
        """Promise 6, whatever was allowed before."""
        for started in batch:
            job = self.do(self.jobs.get(DEFAULT_TEAM_ID, started.run.job_id))
            if job.overlap != Overlap.ALLOW:
                running = self.rows("SELECT id FROM runs WHERE status = 'running' AND job_id = :id", id=job.id)
                assert [row[0] for row in running] == [started.run.id]

    def slots_of(self, job: Job, until: int) -> list[int]:
        first = self.first[job.id]
        if first is None:
            return []
        return job.schedule.latest_between(first - 1, until, 1_000_000)

    @invariant()
    def the_ledger_is_sound(self) -> None:
        for job in self.made:
            now = self.do(self.jobs.get(DEFAULT_TEAM_ID, job.id))
            runs = self.do(self.all_runs(job))
            self.slots_are_accounted_for(now, runs)
            self.places_are_kept(now, runs)
            self.counters_agree(now, runs)

    def places_are_kept_in_all_jobs(self) -> None:
        for job in self.made:
            self.places_are_kept(self.do(self.jobs.get(DEFAULT_TEAM_ID, job.id)), self.do(self.all_runs(job)))

    async def all_runs(self, job: Job) -> list[Run]:
        return await self.ledger.read(
            lambda connection: run_rows.page_of_job(connection, job.id, status=None, before=None, limit=100_000)
        )

    def slots_are_accounted_for(self, job: Job, runs: list[Run]) -> None:
        cursor = job.state.next_run_at
        assert (cursor is None) == (self.first[job.id] is None)
        expected = list(self.closed[job.id])
        if cursor is not None:
            expected += self.slots_of(job, cursor - 1)
        accounted = Counter(run.scheduled_for for run in runs if run.trigger_key == "" and run.status != "skipped")
        for run in runs:
            if run.trigger_key == "" and run.status == "skipped":
                last = run.scheduled_until or run.scheduled_for
                inside = job.schedule.latest_between(run.scheduled_for - 1, last, 1_000_000)
                assert len(inside) == run.count
                accounted.update(inside)
        assert accounted == Counter(expected)

    def places_are_kept(self, job: Job, runs: list[Run]) -> None:
        by_id = {run.id: run for run in runs}
        state = job.state
        running = [run.id for run in runs if run.status == "running"]
        if job.overlap != Overlap.ALLOW:
            assert not running or state.active_run_id in running
            assert len(running) <= 1 or state.crowded
            if state.active_run_id is not None:
                assert by_id[state.active_run_id].status in ("running", "retrying")
        if job.id not in self.loose:
            assert not state.crowded
            assert len(running) <= 1
            assert all(run.id == state.active_run_id for run in runs if run.status == "retrying")
            slots = sorted((run for run in runs if run.trigger_key == ""), key=lambda run: run.scheduled_for)
            begun = [run.started_at for run in slots if run.started_at is not None]
            assert begun == sorted(begun), "runs of slots start in the order of the slots"
        if state.queued_run_id is not None:
            assert by_id[state.queued_run_id].status == "queued"
        for run in runs:
            if run.status == "queued" and run.retry_at is None:
                assert state.queued_run_id == run.id, "it waits for nobody"
                assert state.active_run_id is not None, "nobody will wake it"

    def counters_agree(self, job: Job, runs: list[Run]) -> None:
        statuses = Counter(run.status for run in runs)
        assert job.state.succeeded == statuses["succeeded"]
        assert job.state.failed == statuses["failed"] + statuses["lost"]
        assert job.state.skipped == sum(run.count for run in runs if run.status == "skipped")
        for run in runs:
            assert run.redeliveries <= REDELIVERIES_MAX
            assert run.attempt <= job.definition.retry.attempts + run.redeliveries + (
                run.reason == "redeliveries_exhausted"
            )

    def come_to_rest(self) -> None:
        """All goes well from now on: what is due is worked off, in bounded steps, and nothing is stuck or left behind.

        Time stands still but for retries that are waited for.
        """
        self.held = None
        self.what_the_dead_left_is_taken_over()
        for _ in range(2_000):
            for key in sorted(self.in_flight)[:1]:
                self.finish([self.in_flight.pop(key)], good=True)
                self.places_are_kept_in_all_jobs()
            self.do(self.timetable.clear())
            self.the_sweep_goes_round()
            self.a_tick_claims_and_starts(200)
            if not self.in_flight:
                retries = [row[0] for row in self.rows("SELECT min(retry_at) FROM runs") if row[0] is not None]
                if not retries and not self.due_jobs():
                    break
                self.clock.set(max([self.clock.now(), *retries]))
        self.the_ledger_is_sound()
        assert self.due_jobs() == []
        assert self.rows("SELECT id, status FROM runs WHERE status IN ('queued', 'running', 'retrying')") == []
        numbers = self.rows("SELECT run_id, count(*), max(attempt) FROM executions GROUP BY run_id")
        assert all(count == highest for _, count, highest in numbers), "attempts are numbered without gaps"

    def due_jobs(self) -> list[Any]:
        return self.rows("SELECT id FROM jobs WHERE next_run_at <= :now", now=self.clock.now())


class EngineMachine(OverlapMachine):
    """And everything else that fate has."""

    @rule()
    def a_late_result_comes_back(self) -> None:
        if self.given_up:
            self.finish([self.given_up.pop()], good=True)

    @rule(data=st.data())
    def another_transaction_holds_a_job_or_none(self, data: st.DataObject) -> None:
        self.held = data.draw(st.sampled_from([None, *(job.id for job in self.made)]))

    @rule(data=st.data())
    def somebody_triggers(self, data: st.DataObject) -> None:
        if not self.made:
            return
        job = data.draw(st.sampled_from(self.made))
        try:
            self.do(self.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="manual"))
        except Conflict:
            assert self.first[job.id] is None, "only a paused job refuses"

    @rule(data=st.data())
    def somebody_pauses_or_resumes(self, data: st.DataObject) -> None:
        if not self.made:
            return
        job = data.draw(st.sampled_from(self.made))
        if self.first[job.id] is not None:
            self.closed[job.id] += self.slots_of(job, self.clock.now())
            self.first[job.id] = None
            self.do(self.jobs.pause(DEFAULT_TEAM_ID, job.id))
        else:
            resumed = self.do(self.jobs.resume(DEFAULT_TEAM_ID, job.id))
            self.first[job.id] = resumed.state.next_run_at


# A story that fails is shown as it was found: making it shorter takes minutes, and is worth it only for who mends it.
def stories(count: int) -> settings:
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=count, stateful_step_count=40, deadline=None, phases=phases)


def test_whatever_happens_no_slot_is_lost_or_doubled_and_everything_comes_to_rest() -> None:
    run_state_machine_as_test(EngineMachine, settings=stories(30))


def test_however_the_overlap_is_edited_no_run_starts_beside_another_that_may_not() -> None:
    run_state_machine_as_test(OverlapMachine, settings=stories(30))
