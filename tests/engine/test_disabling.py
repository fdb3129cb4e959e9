"""A job that fails again and again is disabled where it asks for that: what starts no more, what is accounted for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.engine.book import Book, failed, succeeded
from tests.engine.house import House, answered
from tests.storage.samples import MINUTE, NOON, a_definition, a_job, a_run, a_trigger

from zerocron.core.errors import Conflict
from zerocron.core.model import JobStatus, OnLost, RetryPolicy, Run
from zerocron.storage.ledger import jobs as job_rows

URL = "https://example.com/hook"


async def fail(book: Book, job: object, minute: int) -> None:
    now = NOON + minute * MINUTE
    [run] = (await book.start(job, now=now)).runs  # type: ignore[arg-type]
    await book.finish(failed(run), now=now + 100)


async def test_the_last_of_so_many_failed_runs_in_a_row_disables_the_job(book: Book) -> None:
    job = await book.keep(a_job(disable_after=3))
    for minute in range(2):
        await fail(book, job, minute)
    assert (await book.job(job)).status == JobStatus.ACTIVE
    await fail(book, job, 2)
    found = await book.job(job)
    assert (found.status, found.version, found.state.next_run_at) == ("disabled", 2, None)
    assert found.state.status_reason == "The last 3 runs failed, and `disable_after` is 3."
    assert (await book.start(job, now=NOON + 10 * MINUTE)).runs == []


async def test_a_success_in_between_starts_the_count_anew(book: Book) -> None:
    job = await book.keep(a_job(disable_after=2))
    await fail(book, job, 0)
    [run] = (await book.start(job, now=NOON + MINUTE)).runs
    await book.finish(succeeded(run), now=NOON + MINUTE + 100)
    await fail(book, job, 2)
    assert (await book.job(job)).status == JobStatus.ACTIVE


async def test_without_a_bound_no_number_of_failures_disables(book: Book) -> None:
    job = await book.keep(a_job())
    for minute in range(5):
        await fail(book, job, minute)
    assert (await book.job(job)).status == JobStatus.ACTIVE


async def test_a_failed_attempt_that_is_tried_again_is_no_failed_run(book: Book) -> None:
    job = await book.keep(a_job(disable_after=1, definition=a_definition(retry=RetryPolicy(2, "fixed", 1))))
    [first] = (await book.start(job)).runs
    await book.finish(failed(first))
    assert (await book.job(job)).status == JobStatus.ACTIVE
    [second] = (await book.start(first.run, now=NOON + 2_000)).runs
    await book.finish(failed(second), now=NOON + 2_100)
    assert (await book.job(job)).status == JobStatus.DISABLED


async def test_a_lost_run_counts_too(book: Book) -> None:
    job = await book.keep(a_job(disable_after=1, on_lost=OnLost.GIVE_UP))
    await book.start(job)
    await book.lose()
    assert (await book.job(job)).status == JobStatus.DISABLED


async def test_slots_that_were_due_are_skipped_with_the_reason(book: Book) -> None:
    """The run took three minutes, and the slots that came due meanwhile had been waiting for a busy node."""
    job = await book.keep(a_job(disable_after=1))
    [run] = (await book.start(job)).runs
    await book.finish(failed(run), now=NOON + 3 * MINUTE + 500)
    skipped, ran = sorted(await book.runs(job), key=lambda one: one.status, reverse=True)
    assert (ran.status, ran.id) == ("failed", run.run.id)
    assert (skipped.status, skipped.reason, skipped.count) == ("skipped", "job_disabled", 3)
    assert (skipped.scheduled_for, skipped.scheduled_until) == (NOON + MINUTE, NOON + 3 * MINUTE)
    assert (await book.job(job)).state.skipped == 3


async def test_what_waits_behind_the_failed_run_is_cancelled(book: Book) -> None:
    job = a_job(disable_after=1, overlap="queue")
    running, queued = a_run(job), a_trigger(job)
    queued.retry_at = None
    job.state = dataclasses.replace(
        job.state, next_run_at=NOON + MINUTE, active_run_id=running.id, active_since=NOON, queued_run_id=queued.id
    )
    await book.keep(job, running, queued)
    await book.finish(failed(running))
    assert (await book.job(job)).status == JobStatus.DISABLED
    await book.start(queued, now=NOON + 200)
    ended: Run = await book.run(queued)
    assert (ended.status, ended.reason) == ("cancelled", "job_disabled")


async def test_a_job_that_was_paused_meanwhile_stays_paused(book: Book) -> None:
    job = await book.keep(a_job(disable_after=1))
    [run] = (await book.start(job)).runs
    paused = dataclasses.replace(await book.job(job), version=2, status=JobStatus.PAUSED)
    paused.state.next_run_at = None
    assert await book.ledger.write(lambda connection: job_rows.update_definition(connection, paused, seen_version=1))
    await book.finish(failed(run))
    found = await book.job(job)
    assert (found.status, found.state.status_reason) == ("paused", None)


async def test_recording_a_failure_twice_disables_once(book: Book) -> None:
    job = await book.keep(a_job(disable_after=1))
    [run] = (await book.start(job)).runs
    for _ in range(2):
        await book.finish(failed(run))
    assert (await book.job(job)).version == 2


async def test_a_disabled_job_is_resumed_and_counts_anew(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create("* * * * *", disable_after=2)
        await house.clock.advance(200)
        assert len(house.target.requests) == 2
        disabled = await house.job(job)
        assert (disabled.status, disabled.state.consecutive_failures) == ("disabled", 2)
        with pytest.raises(Conflict, match=r"disabled: The last 2 runs failed, and `disable_after` is 2\. Resume it"):
            await house.jobs.trigger(job.team_id, job.id, triggered_by="manual")
        edited = await house.jobs.edit(job.team_id, job.id, lambda spec: dataclasses.replace(spec, schedule="@hourly"))
        assert (edited.status, edited.state.next_run_at) == ("disabled", None), "an edit resumes nothing"
        assert edited.state.status_reason is not None

        await house.jobs.edit(job.team_id, job.id, lambda spec: dataclasses.replace(spec, schedule="* * * * *"))
        resumed = await house.jobs.resume(job.team_id, job.id)
        assert (resumed.status, resumed.state.status_reason) == ("active", None)
        await house.clock.advance(61)
        assert len(house.target.requests) == 3
        found = await house.job(job)
        assert (found.status, found.state.consecutive_failures) == ("active", 1)
        await house.clock.advance(61)
        assert (await house.job(job)).status == "disabled"

        paused = await house.jobs.pause(job.team_id, job.id)
        assert (paused.status, paused.state.status_reason) == ("paused", None)
