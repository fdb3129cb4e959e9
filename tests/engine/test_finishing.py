"""The finish transaction: results in, settled runs out; the same for attempts whose node is lost; and twice is once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, update
from tests.engine.book import Book, failed, succeeded
from tests.storage.samples import HOUR, MINUTE, NOON, SESSION_ID, a_definition, a_job, a_run, a_trigger, an_id

from zerocron.core.model import (
    REDELIVERIES_MAX,
    Job,
    JobState,
    JobStatus,
    LastRun,
    OnLost,
    Overlap,
    RetryPolicy,
)
from zerocron.core.schedule import Schedule
from zerocron.engine.attempt import Started
from zerocron.engine.starting import LostRace
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import tables
from zerocron.storage.timetable.contract import job_member, run_member

HOURLY = Schedule("cron", "0 * * * *", None, None, "UTC")
THREE_TRIES = a_definition(retry=RetryPolicy(3, "exponential", 5))


async def started(book: Book, **given: Any) -> tuple[Job, Started]:
    """An hourly job whose run of noon is under way."""
    job = await book.keep(a_job(**{"schedule": HOURLY} | given))
    [run] = (await book.start(job)).runs
    return job, run


# results


async def test_a_success_ends_the_run_counts_and_frees_the_place(book: Book) -> None:
    job, run = await started(book)
    result = succeeded(run, duration_ms=40.5)
    finished = await book.finish(result, now=NOON + 50)
    ended = await book.run(run)
    assert ended == dataclasses.replace(run.run, status="succeeded", session_id=None, finished_at=NOON + 50)
    assert (await book.job(job)).state == JobState(
        NOON + HOUR,
        succeeded=1,
        duration_ms_total=40.5,
        last_run=LastRun(run.run.id, "succeeded", NOON, NOON + 50),
    )
    assert await book.executions(run) == [result.execution]
    assert (finished.put, finished.ended, finished.settled, finished.late) == ({}, ["succeeded"], 1, 0)


async def test_a_run_began_when_its_first_request_left_and_not_when_that_was_planned(book: Book) -> None:
    """A run is written down before it is sent. When the answer to that takes two seconds, it is two seconds late."""
    _, run = await started(book, definition=a_definition(retry=RetryPolicy(2, "fixed", 1)))
    assert (await book.run(run)).started_at == NOON
    await book.finish(failed(run, started_at=NOON + 2_000), now=NOON + 2_100)
    assert (await book.run(run)).started_at == NOON + 2_000
    [again] = (await book.start(await book.run(run), now=NOON + 9_000)).runs
    await book.finish(succeeded(again, started_at=NOON + 9_500), now=NOON + 9_600)
    assert (await book.run(run)).started_at == NOON + 2_000


async def test_a_failure_without_a_retry_ends_the_run(book: Book) -> None:
    job, run = await started(book)
    finished = await book.finish(failed(run))
    assert ((await book.run(run)).status, (await book.run(run)).reason) == ("failed", None)
    state = (await book.job(job)).state
    assert (state.failed, state.consecutive_failures, state.active_run_id) == (1, 1, None)
    assert finished.ended == ["failed"]


async def test_a_success_ends_a_series_of_failures(book: Book) -> None:
    job = await book.keep(a_job())
    for minute in range(3):
        now = NOON + minute * MINUTE
        [run] = (await book.start(job, now=now)).runs
        await book.finish(failed(run), now=now + 1)
    assert (await book.job(job)).state.consecutive_failures == 3
    [run] = (await book.start(job, now=NOON + 3 * MINUTE)).runs
    await book.finish(succeeded(run), now=NOON + 3 * MINUTE + 1)
    state = (await book.job(job)).state
    assert (state.succeeded, state.failed, state.consecutive_failures) == (1, 3, 0)


async def test_a_run_is_tried_again_until_its_attempts_are_used_up(book: Book) -> None:
    job, first = await started(book, definition=THREE_TRIES)
    finished = await book.finish(failed(first), now=NOON + 100)
    waiting = await book.run(first)
    assert waiting == dataclasses.replace(
        first.run, status="retrying", session_id=None, cause="retry", retry_at=NOON + 5_100
    )
    assert finished.put == {run_member(waiting.team_id, waiting.id): NOON + 5_100}
    assert finished.ended == []
    state = (await book.job(job)).state
    assert (state.active_run_id, state.failed, state.last_run) == (waiting.id, 0, None)

    [second] = (await book.start(waiting, now=NOON + 5_100)).runs
    await book.finish(failed(second), now=NOON + 5_200)
    assert (await book.run(first)).retry_at == NOON + 15_200

    [third] = (await book.start(waiting, now=NOON + 15_200)).runs
    finished = await book.finish(failed(third), now=NOON + 15_300)
    ended = await book.run(first)
    assert (ended.status, ended.reason, ended.attempt) == ("failed", "attempts_exhausted", 3)
    assert finished.put == {}
    assert [(item.attempt, item.cause) for item in await book.executions(first)] == [
        (1, "first"),
        (2, "retry"),
        (3, "retry"),
    ]
    assert (await book.job(job)).state.failed == 1


async def test_a_run_whose_retry_succeeds_has_succeeded(book: Book) -> None:
    job, first = await started(book, definition=THREE_TRIES)
    await book.finish(failed(first))
    [second] = (await book.start(first.run, now=NOON + 6_000)).runs
    await book.finish(succeeded(second), now=NOON + 6_100)
    assert ((await book.run(first)).status, (await book.run(first)).attempt) == ("succeeded", 2)
    assert (await book.job(job)).state.consecutive_failures == 0


async def test_a_retry_that_would_meet_the_next_slot_is_not_made(book: Book) -> None:
    _, run = await started(book, schedule=Schedule("cron", "*/5 * * * * *", None, None, "UTC"), definition=THREE_TRIES)
    await book.finish(failed(run), now=NOON + 100)
    assert ((await book.run(run)).status, (await book.run(run)).reason) == ("failed", "no_time_for_retry")


async def test_a_target_may_ask_for_more_time(book: Book) -> None:
    _, run = await started(book, definition=THREE_TRIES)
    await book.finish(failed(run, retry_after_ms=60_000), now=NOON + 100)
    assert (await book.run(run)).retry_at == NOON + 60_100


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DELETED])
async def test_a_job_stopped_while_a_run_is_under_way_keeps_its_status_and_gets_no_retry(
    book: Book, status: JobStatus
) -> None:
    job, run = await started(book, definition=THREE_TRIES)
    stopped = dataclasses.replace(await book.job(job), version=2, status=status)
    stopped.state.next_run_at = None
    assert await book.ledger.write(lambda connection: job_rows.update_definition(connection, stopped, seen_version=1))
    finished = await book.finish(failed(run))
    assert finished.put == {}
    ended = await book.run(run)
    assert (ended.status, ended.reason) == ("failed", f"job_{status}")
    kept = await book.job(job)
    assert (kept.status, kept.state.next_run_at, kept.state.active_run_id) == (status, None, None)


async def test_results_of_many_runs_are_recorded_in_one_transaction(book: Book) -> None:
    jobs = [await book.keep(a_job(schedule=HOURLY)) for _ in range(20)]
    batch = await book.start(*jobs)
    results = [succeeded(run) if number % 2 else failed(run) for number, run in enumerate(batch.runs)]
    finished = await book.finish(*results)
    assert sorted(finished.ended) == ["failed"] * 10 + ["succeeded"] * 10
    for result in results:
        assert await book.executions(result.run) == [result.execution]


async def test_results_of_two_runs_of_one_job_are_both_counted(book: Book) -> None:
    job = await book.keep(a_job(overlap=Overlap.ALLOW))
    first = (await book.start(job)).runs[0]
    second = (await book.start(job, now=NOON + MINUTE)).runs[0]
    await book.finish(failed(first), succeeded(second), now=NOON + MINUTE + 1)
    state = (await book.job(job)).state
    assert (state.succeeded, state.failed) == (1, 1)


async def test_the_last_run_is_the_one_that_ended_last(book: Book) -> None:
    job = await book.keep(a_job(overlap=Overlap.ALLOW))
    slow = (await book.start(job)).runs[0]
    quick = (await book.start(job, now=NOON + MINUTE)).runs[0]
    await book.finish(succeeded(quick), now=NOON + MINUTE + 1)
    await book.finish(failed(slow), now=NOON + MINUTE + 2)
    assert (await book.job(job)).state.last_run == LastRun(slow.run.id, "failed", NOON, NOON + MINUTE + 2)


# twice, late, and lost


async def test_finishing_again_with_the_same_results_changes_nothing(book: Book) -> None:
    """The answer to the commit was lost, so the transaction is repeated."""
    _, good = await started(book)
    _, bad = await started(book)
    _, again = await started(book, definition=THREE_TRIES)
    results = [succeeded(good), failed(bad), failed(again)]
    await book.finish(*results)
    before = await book.everything()
    finished = await book.finish(*results, now=NOON + 999)
    assert (finished.settled, finished.ended, finished.put, finished.late) == (0, [], {}, 3)
    assert await book.everything() == before


async def test_the_same_result_twice_in_a_batch_counts_once(book: Book) -> None:
    job, run = await started(book)
    await book.finish(succeeded(run), succeeded(run))
    assert (await book.job(job)).state.succeeded == 1
    assert len(await book.executions(run)) == 1


async def test_a_lost_attempt_is_recorded_and_sent_again(book: Book) -> None:
    job, run = await started(book)
    finished = await book.lose(now=NOON + 100)
    owed = await book.run(run)
    assert owed == dataclasses.replace(
        run.run, status="retrying", session_id=None, cause="node_lost", redeliveries=1, retry_at=NOON + 100
    )
    assert finished.put == {run_member(owed.team_id, owed.id): NOON + 100}
    [lost] = await book.executions(run)
    assert (lost.status, lost.error_kind, lost.cause, lost.session_id) == ("error", "node_lost", "first", SESSION_ID)
    assert (lost.started_at, lost.finished_at, lost.duration_ms, lost.response) == (NOON, NOON + 100, 100, None)
    state = (await book.job(job)).state
    assert (state.active_run_id, state.active_since) == (owed.id, NOON + 100), "slots that came due meanwhile wait"

    [second] = (await book.start(owed, now=NOON + 101)).runs
    assert (second.run.attempt, second.run.cause) == (2, "node_lost")
    await book.finish(succeeded(second))
    assert (await book.run(run)).status == "succeeded"
    assert [item.cause for item in await book.executions(run)] == ["first", "node_lost"]


async def test_a_run_is_sent_again_three_times_at_most(book: Book) -> None:
    job, run = await started(book)
    for loss in range(1, REDELIVERIES_MAX + 1):
        now = NOON + loss * 1_000
        await book.lose(now=now)
        owed = await book.run(run)
        assert (owed.status, owed.redeliveries) == ("retrying", loss)
        await book.start(owed, now=now + 1)
    finished = await book.lose(now=NOON + 9_000)
    ended = await book.run(run)
    assert (ended.status, ended.reason, ended.attempt) == ("failed", "redeliveries_exhausted", 4)
    assert finished.put == {}
    assert [item.error_kind for item in await book.executions(run)] == ["node_lost"] * 4
    assert (await book.job(job)).state.active_run_id is None


async def test_a_lost_attempt_does_not_use_up_a_retry(book: Book) -> None:
    _, run = await started(book, definition=a_definition(retry=RetryPolicy(2, "fixed", 1)))
    await book.lose(now=NOON + 10)
    [second] = (await book.start(run.run, now=NOON + 11)).runs
    await book.finish(failed(second), now=NOON + 20)
    assert (await book.run(run)).status == "retrying"
    [third] = (await book.start(run.run, now=NOON + 1_020)).runs
    await book.finish(failed(third), now=NOON + 1_030)
    assert ((await book.run(run)).status, (await book.run(run)).reason) == ("failed", "attempts_exhausted")


async def test_a_run_that_must_not_be_sent_twice_ends_as_lost(book: Book) -> None:
    job, run = await started(book, on_lost=OnLost.GIVE_UP)
    finished = await book.lose()
    ended = await book.run(run)
    assert (ended.status, ended.reason, ended.retry_at) == ("lost", "node_lost", None)
    assert (finished.put, finished.ended) == ({}, ["lost"])
    state = (await book.job(job)).state
    assert (state.failed, state.active_run_id) == (1, None)
    assert [item.error_kind for item in await book.executions(run)] == ["node_lost"]


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DELETED])
async def test_a_lost_run_of_a_stopped_job_is_cancelled(book: Book, status: JobStatus) -> None:
    job = a_job(status=status, next_run_at=None)
    run = a_run(job)
    job.state = JobState(None, run.id, NOON)
    await book.keep(job, run)
    await book.lose()
    ended = await book.run(run)
    assert (ended.status, ended.reason) == ("cancelled", f"job_{status}")
    state = (await book.job(job)).state
    assert (state.failed, state.active_run_id) == (0, None)


async def test_only_running_runs_of_that_session_are_lost_and_a_slice_at_a_time(book: Book) -> None:
    job = await book.keep(a_job(overlap=Overlap.ALLOW))
    mine = [a_run(job, NOON - number * MINUTE) for number in range(5)]
    others = [
        a_run(job, NOON + MINUTE, session_id=an_id()),
        a_run(job, NOON + 2 * MINUTE, status="retrying"),
        a_run(job, NOON + 3 * MINUTE, status="succeeded"),
        a_trigger(job),
    ]
    await book.ledger.write(lambda connection: run_rows.insert(connection, [*mine, *others]))
    assert [(await book.lose(limit=2)).settled for _ in range(4)] == [2, 2, 1, 0]
    assert {(await book.run(run)).status for run in mine} == {"retrying"}
    for run in others:
        assert await book.run(run) == run


async def test_a_late_result_is_kept_beside_the_lost_execution_and_changes_nothing_else(book: Book) -> None:
    job, run = await started(book)
    await book.lose(now=NOON + 100)
    before, state = await book.run(run), (await book.job(job)).state
    finished = await book.finish(succeeded(run, response_body="too late", finished_at=NOON + 300), now=NOON + 300)
    assert (finished.late, finished.settled, finished.put) == (1, 0, {})
    assert (await book.run(run), (await book.job(job)).state) == (before, state)
    [execution] = await book.executions(run)
    assert (execution.status, execution.error_kind) == ("error", "node_lost")
    assert (execution.response_body, execution.finished_at) == ("too late", NOON + 300)


async def test_a_late_result_does_not_end_the_attempt_that_took_over(book: Book) -> None:
    _, run = await started(book)
    await book.lose(now=NOON + 100)
    [second] = (await book.start(run.run, now=NOON + 101)).runs
    await book.finish(succeeded(run, response_body="too late"), now=NOON + 200)
    assert ((await book.run(run)).status, (await book.run(run)).attempt) == ("running", 2)
    await book.finish(failed(second), now=NOON + 300)
    assert (await book.run(run)).status == "failed"
    assert [item.response_body for item in await book.executions(run)] == ["too late", "ok"]


async def test_a_late_result_of_a_given_up_run_does_not_bring_it_back(book: Book) -> None:
    _, run = await started(book, on_lost=OnLost.GIVE_UP)
    await book.lose()
    await book.finish(succeeded(run))
    assert (await book.run(run)).status == "lost"


async def test_a_result_of_a_run_that_is_gone_is_no_error(book: Book) -> None:
    finished = await book.finish(succeeded(a_run(a_job())))
    assert (finished.late, finished.settled) == (1, 0)


async def test_an_attempt_lost_while_the_clock_was_set_back_took_no_time(book: Book) -> None:
    _, run = await started(book)
    await book.lose(now=NOON - HOUR)
    [lost] = await book.executions(run)
    assert lost.finished_at == lost.started_at == NOON
    assert lost.duration_ms == 0


# who comes next


async def test_the_end_of_a_run_wakes_the_one_that_waited_for_it(book: Book) -> None:
    job = a_job(overlap=Overlap.QUEUE, schedule=HOURLY, next_run_at=NOON + HOUR)
    active, waiting = a_run(job, NOON - HOUR), a_run(job, NOON, status="queued", retry_at=None, attempt=0)
    job.state = JobState(NOON + HOUR, active.id, NOON - HOUR, waiting.id)
    await book.keep(job, active, waiting)
    finished = await book.finish(succeeded(active), now=NOON + 5)
    assert finished.put == {run_member(waiting.team_id, waiting.id): NOON + 5}
    woken = await book.run(waiting)
    assert (woken.status, woken.retry_at) == ("queued", NOON + 5)
    assert (await book.job(job)).state.queued_run_id == waiting.id, "it keeps its place in the queue until it starts"


async def test_a_run_that_was_woken_already_is_not_woken_again(book: Book) -> None:
    job = a_job(overlap=Overlap.QUEUE, schedule=HOURLY, next_run_at=NOON + HOUR)
    active, waiting = a_run(job, NOON - HOUR), a_run(job, NOON, status="queued", retry_at=NOON + 1, attempt=0)
    job.state = JobState(NOON + HOUR, active.id, NOON - HOUR, waiting.id)
    await book.keep(job, active, waiting)
    assert (await book.finish(succeeded(active), now=NOON + 5)).put == {}
    assert (await book.run(waiting)).retry_at == NOON + 1


async def test_a_retry_keeps_the_place_and_wakes_nobody(book: Book) -> None:
    job = a_job(overlap=Overlap.QUEUE, schedule=HOURLY, next_run_at=NOON + HOUR, definition=THREE_TRIES)
    active, waiting = a_run(job, NOON - HOUR), a_run(job, NOON, status="queued", retry_at=None, attempt=0)
    job.state = JobState(NOON + HOUR, active.id, NOON - HOUR, waiting.id)
    await book.keep(job, active, waiting)
    result = dataclasses.replace(failed(active), retry=THREE_TRIES.retry)
    finished = await book.finish(result, now=NOON + 5)
    assert list(finished.put) == [run_member(active.team_id, active.id)]
    assert (await book.run(waiting)).retry_at is None


async def test_the_end_of_a_run_brings_back_a_slot_that_waited_for_it(book: Book) -> None:
    job = a_job()
    active = a_run(job, NOON - MINUTE)
    job.state = JobState(NOON, active.id, NOON)
    await book.keep(job, active)
    assert (await book.finish(succeeded(active), now=NOON + 9)).put == {job_member(job.team_id, job.id): NOON}


async def test_the_end_of_one_run_says_nothing_about_a_slot_to_come(book: Book) -> None:
    _, run = await started(book)
    assert (await book.finish(succeeded(run))).put == {}


async def test_a_run_that_does_not_hold_the_place_does_not_free_it(book: Book) -> None:
    """It was started while the job let its runs overlap."""
    job = a_job()
    holder, other = a_run(job, NOON - MINUTE), a_run(job, NOON - 2 * MINUTE)
    job.state = JobState(NOON + MINUTE, holder.id, NOON - MINUTE)
    await book.keep(job, holder, other)
    await book.finish(succeeded(other))
    assert (await book.job(job)).state.active_run_id == holder.id


# guards


def changed_meanwhile(change: Callable[[Connection], Any], real: Callable[..., Any]) -> Callable[..., Any]:
    def lock(connection: Connection, *args: Any, **kwargs: Any) -> Any:
        found = real(connection, *args, **kwargs)
        change(connection)
        return found

    return lock


async def test_a_job_that_changed_meanwhile_stops_the_whole_batch(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    job, run = await started(book)
    before = await book.everything()
    edit = update(tables.jobs).where(tables.jobs.c.id == job.id).values(version=2)
    changed = changed_meanwhile(lambda connection: connection.execute(edit), job_rows.lock)
    monkeypatch.setattr(job_rows, "lock", changed)
    with pytest.raises(LostRace):
        await book.finish(succeeded(run))
    assert await book.everything() == before


async def test_a_run_that_changed_meanwhile_stops_the_whole_batch(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run = await started(book)
    before = await book.everything()
    move = update(tables.runs).where(tables.runs.c.id == run.run.id).values(attempt=2)
    changed = changed_meanwhile(lambda connection: connection.execute(move), run_rows.of_ids)
    monkeypatch.setattr(run_rows, "of_ids", changed)
    with pytest.raises(LostRace):
        await book.finish(succeeded(run))
    assert await book.everything() == before
