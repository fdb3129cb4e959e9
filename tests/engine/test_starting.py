"""The start transaction: due members in, committed runs out, and nothing by halves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, update
from sqlalchemy.exc import IntegrityError
from tests.engine.book import Book, failed, member
from tests.storage.samples import DAY, HOUR, MINUTE, NOON, SESSION_ID, a_definition, a_job, a_run, a_trigger, an_id

from zerocron.core.model import (
    DEFAULT_TEAM_ID,
    Catchup,
    JobState,
    JobStatus,
    LastRun,
    Overlap,
    Reason,
    RetryPolicy,
    Run,
    run_id_of,
)
from zerocron.core.schedule import Schedule
from zerocron.engine.starting import LostRace, StartedBatch, start_batch
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import tables
from zerocron.storage.timetable.contract import job_member, run_member

ONCE = Schedule("once", None, None, NOON, "UTC")


def busy(active: Run, *, since: int = NOON - 10_000, queued: Run | None = None, next_run_at: int = NOON) -> JobState:
    """The state of a job whose place is taken."""
    return JobState(next_run_at, active.id, since, queued.id if queued else None)


def nothing_started(batch: StartedBatch) -> bool:
    return batch.runs == []


# slots


async def test_a_due_slot_becomes_a_running_run_and_the_cursor_moves_with_it(book: Book) -> None:
    job = await book.keep(a_job(definition=a_definition(body="hi")))
    batch = await book.start(job, now=NOON + 7)
    [started] = batch.runs
    assert started.definition == job.definition
    assert started.run == Run(
        id=run_id_of(job.id, NOON),
        scheduled_for=NOON,
        trigger_key="",
        job_id=job.id,
        team_id=job.team_id,
        job_version=1,
        triggered_by="schedule",
        status="running",
        attempt=1,
        cause="first",
        session_id=SESSION_ID,
        created_at=NOON + 7,
        started_at=NOON + 7,
        attempt_started_at=NOON + 7,
    )
    assert await book.runs(job) == [started.run]
    assert (await book.job(job)).state == JobState(NOON + MINUTE, started.run.id, NOON + 7)
    assert (batch.put, batch.drop, batch.skipped) == ({job_member(job.team_id, job.id): NOON + MINUTE}, [], 0)


async def test_many_jobs_start_in_one_transaction(book: Book) -> None:
    jobs = [await book.keep(a_job()) for _ in range(30)]
    batch = await book.start(*jobs)
    assert {started.run.job_id for started in batch.runs} == {job.id for job in jobs}
    assert len(batch.put) == 30


async def test_a_member_that_comes_early_is_put_back(book: Book) -> None:
    job = await book.keep(a_job(next_run_at=NOON + 1))
    before = await book.everything()
    batch = await book.start(job)
    assert nothing_started(batch)
    assert batch.put == {job_member(job.team_id, job.id): NOON + 1}
    assert await book.everything() == before


async def test_a_slot_that_was_started_already_is_not_started_again(book: Book) -> None:
    job = await book.keep(a_job())
    await book.start(job)
    batch = await book.start(job)
    assert nothing_started(batch)
    assert len(await book.runs(job)) == 1


async def test_a_member_given_twice_in_a_batch_starts_once(book: Book) -> None:
    job = await book.keep(a_job())
    assert len((await book.start(job, job)).runs) == 1


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DELETED, JobStatus.COMPLETED])
async def test_a_job_stopped_between_claim_and_start_sends_nothing(book: Book, status: JobStatus) -> None:
    job = await book.keep(a_job(status=status, next_run_at=None))
    before = await book.everything()
    batch = await book.start(job)
    assert nothing_started(batch)
    assert batch.drop == [job_member(job.team_id, job.id)]
    assert await book.everything() == before


async def test_members_that_mean_nothing_are_dropped_and_disturb_nobody(book: Book) -> None:
    job = await book.keep(a_job())
    unknown = [job_member(DEFAULT_TEAM_ID, an_id()), run_member(DEFAULT_TEAM_ID, an_id()), "m:monitor", "nonsense"]
    batch = await book.start(*unknown, job)
    assert [started.run.job_id for started in batch.runs] == [job.id]
    assert set(batch.drop) == set(unknown)


async def test_a_long_body_is_left_in_the_ledger(book: Book) -> None:
    body = "x" * (job_rows.STARTED_BODY_CHARACTERS_MAX + 1)
    job = await book.keep(a_job(definition=a_definition(body=body)))
    [started] = (await book.start(job)).runs
    assert started.definition is None


async def test_the_last_slot_completes_the_job(book: Book) -> None:
    job = await book.keep(a_job(schedule=ONCE))
    batch = await book.start(job)
    assert len(batch.runs) == 1
    assert (batch.put, batch.drop) == ({}, [job_member(job.team_id, job.id)])
    kept = await book.job(job)
    assert (kept.status, kept.state.next_run_at) == (JobStatus.COMPLETED, None)


async def test_several_slots_are_worked_off_one_a_batch(book: Book) -> None:
    job = await book.keep(a_job(schedule=Schedule("cron", "* * * * * *", None, None, "UTC"), overlap=Overlap.ALLOW))
    for second in range(4):
        batch = await book.start(job, now=NOON + 3_000)
        assert [started.run.scheduled_for for started in batch.runs] == [NOON + second * 1_000]
    assert nothing_started(await book.start(job, now=NOON + 3_000))


# catching up


@pytest.mark.parametrize(
    ("catchup", "first_run", "skipped"),
    [(Catchup.LATEST, NOON + 10 * MINUTE, 10), (Catchup.ALL, NOON, 0), (Catchup.NONE, NOON + 10 * MINUTE, 10)],
)
async def test_missed_slots_go_by_the_catch_up_policy_and_are_all_recorded(
    book: Book, catchup: Catchup, first_run: int, skipped: int
) -> None:
    job = await book.keep(a_job(catchup=catchup, overlap=Overlap.ALLOW))
    now = NOON + 10 * MINUTE + 30_000
    batch = await book.start(job, now=now)
    assert [started.run.scheduled_for for started in batch.runs] == [first_run]
    assert batch.skipped == (await book.job(job)).state.skipped == skipped
    if skipped:
        left_out = (await book.runs(job))[0]
        assert left_out == dataclasses.replace(
            left_out,
            id=run_id_of(job.id, NOON),
            scheduled_for=NOON,
            status="skipped",
            reason="missed",
            count=skipped,
            scheduled_until=NOON + 9 * MINUTE,
            attempt=0,
            started_at=None,
            finished_at=now,
            session_id=None,
        )


async def test_nothing_runs_when_all_that_was_missed_is_too_old(book: Book) -> None:
    job = await book.keep(a_job(catchup=Catchup.NONE, schedule=Schedule("cron", "0 * * * *", None, None, "UTC")))
    batch = await book.start(job, now=NOON + 3 * HOUR + MINUTE + 1)
    assert nothing_started(batch)
    assert batch.put == {job_member(job.team_id, job.id): NOON + 4 * HOUR}
    [left_out] = await book.runs(job)
    assert (left_out.status, left_out.reason, left_out.count) == ("skipped", "missed", 4)


async def test_a_missed_single_instant_out_of_its_window_completes_the_job(book: Book) -> None:
    job = await book.keep(a_job(schedule=ONCE, catchup_window_seconds=60))
    batch = await book.start(job, now=NOON + DAY)
    assert nothing_started(batch)
    assert (await book.job(job)).status == JobStatus.COMPLETED
    [left_out] = await book.runs(job)
    assert (left_out.reason, left_out.count, left_out.scheduled_until) == ("missed", 1, None)


# overlapping


async def test_a_slot_that_meets_a_running_run_is_recorded_as_skipped(book: Book) -> None:
    job = a_job()
    active = a_run(job, NOON - MINUTE)
    job.state = busy(active)
    await book.keep(job, active)
    batch = await book.start(job)
    assert nothing_started(batch)
    assert batch.skipped == 1
    [_, left_out] = await book.runs(job)
    assert (left_out.status, left_out.reason, left_out.count) == ("skipped", "overlap", 1)
    assert (await book.job(job)).state == dataclasses.replace(job.state, next_run_at=NOON + MINUTE, skipped=1)


async def test_under_queue_one_slot_waits_and_the_next_finds_the_queue_full(book: Book) -> None:
    job = a_job(overlap=Overlap.QUEUE)
    active = a_run(job, NOON - MINUTE)
    job.state = busy(active)
    await book.keep(job, active)
    assert nothing_started(await book.start(job))
    assert nothing_started(await book.start(job, now=NOON + MINUTE))
    [_, waiting, left_out] = await book.runs(job)
    assert (waiting.status, waiting.retry_at, waiting.attempt) == ("queued", None, 0)
    assert (left_out.status, left_out.reason) == ("skipped", "queue_full")
    assert (await book.job(job)).state.queued_run_id == waiting.id


async def test_under_allow_runs_overlap_and_nobody_holds_the_place(book: Book) -> None:
    job = await book.keep(a_job(overlap=Overlap.ALLOW))
    await book.start(job)
    await book.start(job, now=NOON + MINUTE)
    assert [run.status for run in await book.runs(job)] == ["running", "running"]
    assert (await book.job(job)).state.active_run_id is None


async def test_a_slot_ends_a_run_that_waits_for_its_retry(book: Book) -> None:
    job = a_job()
    retrying = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON + 1, cause="retry", attempt=2)
    job.state = busy(retrying)
    await book.keep(job, retrying)
    batch = await book.start(job, now=NOON + 3)
    assert [started.run.scheduled_for for started in batch.runs] == [NOON]
    assert batch.drop == [run_member(retrying.team_id, retrying.id)]
    ended = await book.run(retrying)
    assert (ended.status, ended.reason, ended.retry_at, ended.finished_at) == ("failed", "superseded", None, NOON + 3)
    state = (await book.job(job)).state
    assert (state.failed, state.consecutive_failures) == (1, 1)
    assert state.last_run == LastRun(retrying.id, "failed", NOON - MINUTE, NOON + 3)
    assert (state.active_run_id, state.active_since) == (batch.runs[0].run.id, NOON + 3)


async def test_a_slot_does_not_end_a_run_that_is_owed_because_its_node_was_lost(book: Book) -> None:
    job = a_job()
    owed = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON - 5, cause="node_lost", redeliveries=1)
    job.state = busy(owed)
    await book.keep(job, owed)
    before = await book.everything()
    batch = await book.start(job)
    assert nothing_started(batch)
    assert batch.drop == [job_member(job.team_id, job.id)]
    assert await book.everything() == before


async def test_a_slot_due_before_the_active_run_began_waits_for_its_end(book: Book) -> None:
    job = a_job()
    active = a_run(job, NOON - MINUTE)
    job.state = busy(active, since=NOON + 1)
    await book.keep(job, active)
    before = await book.everything()
    batch = await book.start(job, now=NOON + 2)
    assert nothing_started(batch)
    assert batch.drop == [job_member(job.team_id, job.id)]
    assert await book.everything() == before
    finished = await book.finish(failed(active), now=NOON + 9)
    assert finished.put == {job_member(job.team_id, job.id): NOON}
    assert [started.run.scheduled_for for started in (await book.start(job, now=NOON + 9)).runs] == [NOON]


# retries


async def retrying(book: Book, *, retry_at: int = NOON + 5_000, **given: Any) -> tuple[Any, Run]:
    job = a_job(next_run_at=NOON + MINUTE, definition=a_definition(retry=RetryPolicy(3, "fixed", 5)), **given)
    run = a_run(job, NOON, status="retrying", retry_at=retry_at, cause="retry")
    if job.overlap != Overlap.ALLOW:
        job.state = busy(run, since=NOON, next_run_at=NOON + MINUTE)
    await book.keep(job, run)
    return job, run


@pytest.mark.parametrize("overlap", Overlap)
async def test_a_retry_starts_as_the_next_attempt_of_the_same_run(book: Book, overlap: Overlap) -> None:
    job, run = await retrying(book, overlap=overlap)
    batch = await book.start(run, now=NOON + 5_001)
    [started] = batch.runs
    assert started.definition == job.definition
    assert started.run == dataclasses.replace(
        run,
        status="running",
        attempt=2,
        retry_at=None,
        session_id=SESSION_ID,
        attempt_started_at=NOON + 5_001,
    )
    assert await book.run(run) == started.run
    assert (batch.put, batch.drop) == ({}, [run_member(run.team_id, run.id)])
    state = (await book.job(job)).state
    assert state == job.state, "a retry moves neither the cursor nor the beginning of the run"


async def test_a_retry_that_comes_early_is_put_back(book: Book) -> None:
    _, run = await retrying(book)
    before = await book.everything()
    batch = await book.start(run, now=NOON + 4_999)
    assert nothing_started(batch)
    assert batch.put == {run_member(run.team_id, run.id): NOON + 5_000}
    assert await book.everything() == before


@pytest.mark.parametrize("status", ["running", "succeeded", "failed", "skipped", "cancelled", "lost"])
async def test_a_run_that_waits_for_nothing_is_dropped(book: Book, status: str) -> None:
    job = a_job()
    run = a_run(job, status=status)
    await book.keep(job, run)
    before = await book.everything()
    batch = await book.start(run)
    assert nothing_started(batch)
    assert batch.drop == [run_member(run.team_id, run.id)]
    assert await book.everything() == before


async def test_a_retry_keeps_to_the_version_it_was_created_under(book: Book) -> None:
    job, run = await retrying(book)
    edited = dataclasses.replace(job, version=2, definition=a_definition(url="https://example.com/new"))
    assert await book.ledger.write(lambda connection: job_rows.update_definition(connection, edited, seen_version=1))
    [started] = (await book.start(run, now=NOON + 5_000)).runs
    assert (started.run.job_version, started.definition) == (1, None)
    kept = await book.ledger.read(lambda connection: job_rows.definitions(connection, [(job.id, 1)]))
    assert kept[job.id, 1] == job.definition


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DELETED])
async def test_a_waiting_run_of_a_stopped_job_is_cancelled_and_says_why(book: Book, status: JobStatus) -> None:
    """Pause and delete cancel them at once; this is for one that came to wait in the same moment."""
    job = a_job(status=status, next_run_at=None)
    run = a_run(job, NOON, status="retrying", retry_at=NOON, cause="retry")
    job.state = JobState(None, run.id, NOON)
    await book.keep(job, run)
    assert nothing_started(await book.start(run, now=NOON + 1))
    ended = await book.run(run)
    assert (ended.status, ended.finished_at, ended.retry_at) == ("cancelled", NOON + 1, None)
    assert ended.reason == {"paused": Reason.JOB_PAUSED, "deleted": Reason.JOB_DELETED}[status]
    assert (await book.job(job)).state.active_run_id is None


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
async def test_a_retry_that_is_claimed_together_with_the_next_slot_gives_way(book: Book, overlap: Overlap) -> None:
    """The node was late and finds both due: a retry never consumes the next slot (promise 9)."""
    job, run = await retrying(book, retry_at=NOON + MINUTE - 10, overlap=overlap)
    batch = await book.start(run, job, now=NOON + MINUTE + 5)
    assert [started.run.scheduled_for for started in batch.runs] == [NOON + MINUTE]
    assert ((await book.run(run)).status, (await book.run(run)).reason) == ("failed", "superseded")


async def test_a_retry_goes_on_when_the_slots_that_are_due_are_too_old_to_run(book: Book) -> None:
    job, run = await retrying(book, catchup=Catchup.NONE, schedule=Schedule("cron", "0 * * * *", None, None, "UTC"))
    late = NOON + 2 * HOUR + 10 * MINUTE
    [started] = (await book.start(run, now=late)).runs
    assert (started.run.id, started.run.attempt) == (run.id, 2)
    assert [(left.reason, left.count) for left in await book.runs(job) if left.status == "skipped"] == [("missed", 2)]


async def test_a_retry_goes_on_before_the_slots_of_a_backlog(book: Book) -> None:
    job = a_job(definition=a_definition(retry=RetryPolicy(3, "fixed", 5)))
    run = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON + 2, cause="retry")
    job.state = busy(run, since=NOON + 1)
    await book.keep(job, run)
    [started] = (await book.start(run, job, now=NOON + 3)).runs
    assert (started.run.id, started.run.attempt) == (run.id, 2)
    assert (await book.job(job)).state.next_run_at == NOON


async def test_a_run_that_is_sent_again_goes_before_slots_that_came_due_meanwhile_and_they_wait(book: Book) -> None:
    job = a_job()
    owed = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON - 1, cause="node_lost", redeliveries=1)
    job.state = busy(owed, since=NOON - 1)
    await book.keep(job, owed)
    batch = await book.start(owed, job, now=NOON + 3)
    assert [started.run.id for started in batch.runs] == [owed.id]
    assert (await book.job(job)).state.next_run_at == NOON
    assert [run.status for run in await book.runs(job)] == ["running"]
    finished = await book.finish(failed(batch.runs[0]), now=NOON + 50)
    assert finished.put == {job_member(job.team_id, job.id): NOON}


async def test_a_retry_gives_way_to_a_due_slot_that_was_not_claimed_with_it(book: Book) -> None:
    _, run = await retrying(book, retry_at=NOON + MINUTE - 10)
    batch = await book.start(run, now=NOON + MINUTE + 5)
    assert [started.run.scheduled_for for started in batch.runs] == [NOON + MINUTE]
    assert (await book.run(run)).reason == "superseded"


# runs that people asked for


async def test_a_manual_trigger_starts_and_does_not_move_the_schedule(book: Book) -> None:
    job = a_job(next_run_at=NOON + MINUTE)
    run = a_trigger(job, NOON)
    await book.keep(job, run)
    [started] = (await book.start(run, now=NOON + 2)).runs
    assert (started.run.attempt, started.run.cause, started.run.started_at) == (1, "first", NOON + 2)
    assert (await book.job(job)).state == JobState(NOON + MINUTE, run.id, NOON + 2)


async def test_a_completed_job_may_still_be_triggered(book: Book) -> None:
    job = a_job(status=JobStatus.COMPLETED, next_run_at=None)
    run = a_trigger(job)
    await book.keep(job, run)
    assert len((await book.start(run)).runs) == 1
    assert (await book.job(job)).status == JobStatus.COMPLETED


async def test_of_two_triggers_at_once_one_runs_and_the_other_goes_by_the_overlap_policy(book: Book) -> None:
    outcomes = {}
    for overlap in Overlap:
        job = a_job(next_run_at=NOON + MINUTE, overlap=overlap)
        first, second, third = a_trigger(job), a_trigger(job), a_trigger(job)
        await book.keep(job, first, second, third)
        batch = await book.start(first, second, third)
        outcomes[overlap.value] = [
            ((await book.run(run)).status, (await book.run(run)).reason) for run in (first, second, third)
        ]
        assert set(batch.drop) == {run_member(run.team_id, run.id) for run in (first, second, third)}
    assert outcomes == {
        "skip": [("running", None), ("skipped", "overlap"), ("skipped", "overlap")],
        "queue": [("running", None), ("queued", None), ("skipped", "queue_full")],
        "allow": [("running", None), ("running", None), ("running", None)],
    }


async def test_a_trigger_that_is_skipped_is_counted(book: Book) -> None:
    job = a_job(next_run_at=NOON + MINUTE)
    active, run = a_run(job, NOON - MINUTE), a_trigger(job)
    job.state = busy(active, next_run_at=NOON + MINUTE)
    await book.keep(job, active, run)
    batch = await book.start(run, now=NOON + 4)
    assert (batch.skipped, (await book.job(job)).state.skipped) == (1, 1)
    assert (await book.run(run)).finished_at == NOON + 4


async def test_a_slot_due_in_the_moment_of_a_trigger_waits_for_it(book: Book) -> None:
    job = a_job()
    run = a_trigger(job, NOON)
    await book.keep(job, run)
    batch = await book.start(job, run, now=NOON + 1)
    assert [started.run.id for started in batch.runs] == [run.id]
    assert (await book.job(job)).state.next_run_at == NOON
    finished = await book.finish(failed(batch.runs[0]))
    assert finished.put == {job_member(job.team_id, job.id): NOON}


async def test_a_queued_run_that_was_woken_takes_the_place(book: Book) -> None:
    job = a_job(overlap=Overlap.QUEUE)
    active = a_run(job, NOON - MINUTE)
    job.state = busy(active)
    await book.keep(job, active)
    await book.start(job)
    finished = await book.finish(failed(active), now=NOON + 200)
    waiting = (await book.runs(job))[1]
    assert finished.put == {run_member(waiting.team_id, waiting.id): NOON + 200}
    [started] = (await book.start(waiting, now=NOON + 201)).runs
    assert (started.run.id, started.run.status, started.run.attempt) == (waiting.id, "running", 1)
    state = (await book.job(job)).state
    assert (state.active_run_id, state.active_since, state.queued_run_id) == (waiting.id, NOON + 201, None)


# guards


def changed_meanwhile(
    change: Callable[[Connection], Any], real: Callable[..., Any], *, after: int = 1
) -> Callable[..., Any]:
    """As if another node had written between this one's (`after`th) reading and its writing."""
    calls = 0

    def read(connection: Connection, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        found = real(connection, *args, **kwargs)
        if calls == after:
            change(connection)
        return found

    return read


async def test_a_job_that_changed_meanwhile_stops_the_whole_batch(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    job, other = await book.keep(a_job()), await book.keep(a_job())
    before = await book.everything()
    edit = update(tables.jobs).where(tables.jobs.c.id == other.id).values(version=2)
    monkeypatch.setattr(job_rows, "lock", changed_meanwhile(lambda connection: connection.execute(edit), job_rows.lock))
    with pytest.raises(LostRace):
        await book.start(job, other)
    assert await book.everything() == before


async def test_a_run_that_changed_meanwhile_stops_the_whole_batch(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run = await retrying(book)
    job = await book.keep(a_job())
    before = await book.everything()
    move = update(tables.runs).where(tables.runs.c.id == run.id).values(attempt=7)
    changed = changed_meanwhile(lambda connection: connection.execute(move), run_rows.of_ids, after=2)
    monkeypatch.setattr(run_rows, "of_ids", changed)
    with pytest.raises(LostRace):
        await book.start(run, job, now=NOON + 5_000)
    assert await book.everything() == before


async def test_a_slot_that_has_a_run_already_is_never_started_even_if_the_cursor_says_so(book: Book) -> None:
    """The cursor alone is not trusted: the ledger refuses a second run of the slot."""
    job = a_job()
    await book.keep(job, a_run(job, NOON, status="succeeded"))
    before = await book.everything()
    with pytest.raises(IntegrityError):
        await book.start(job)
    assert await book.everything() == before


async def test_a_crash_inside_the_transaction_leaves_nothing(book: Book) -> None:
    job = await book.keep(a_job())
    await book.start()  # opens the session
    before = await book.everything()

    def crash(name: str) -> None:
        raise KeyboardInterrupt(name)

    def transaction(connection: Connection) -> StartedBatch:
        return start_batch(connection, [member(job)], now=NOON, session_id=SESSION_ID, stop_point=crash)

    with pytest.raises(KeyboardInterrupt, match="inside-start"):
        await book.ledger.write(transaction)
    assert await book.everything() == before
