"""What people do to jobs while their slots come due: pause, resume, edit, delete, trigger, restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.engine.house import Answer, House, answered
from tests.storage.samples import DAY, HOUR, MINUTE, NOON

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.core.errors import Conflict
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, Job, Overlap, RetryPolicy
from zerocron.demo import SAMPLES, make_samples

pytestmark = pytest.mark.usefixtures("early_ms")

URL = "https://example.com/hook"
TEAM = DEFAULT_TEAM_ID

Verb = Callable[[Jobs, Job], Any]


async def pause(jobs: Jobs, job: Job) -> None:
    await jobs.pause(TEAM, job.id)


async def delete(jobs: Jobs, job: Job) -> None:
    await jobs.delete(TEAM, job.id)


def changed(**given: Any) -> Callable[[JobSpec], JobSpec]:
    return lambda spec: dataclasses.replace(spec, **given)


def slow(house: House, seconds: float, outcome: Outcome | None = None) -> Answer:
    async def answer(_request: Request) -> Outcome:
        await house.clock.sleep(seconds)
        return outcome or answered()

    return answer


# pause and delete


@pytest.mark.parametrize("verb", [pause, delete])
async def test_a_job_stopped_between_the_claim_and_the_start_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb
) -> None:
    """The member is claimed, and before its start transaction the call of a person returns."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        start = house.engine.scheduler._start
        stopped: list[int] = []

        async def too_late(members: Any) -> None:
            await verb(house.jobs, job)
            stopped.append(house.clock.now())
            await start(members)

        monkeypatch.setattr(house.engine.scheduler, "_start", too_late)
        await house.clock.advance(60)
        assert stopped == [NOON + 10_000 - house.early_ms]
        assert house.target.requests == []
        was_due = [] if house.early_ms else [("skipped", 1)]  # stopped before its instant, it never was a slot
        assert [(run.status, run.count) for run in await house.runs(job)] == was_due


@pytest.mark.parametrize("verb", [pause, delete])
async def test_a_job_stopped_while_a_retry_waits_sends_nothing_more(tmp_path: Path, verb: Verb) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create("* * * * *", retry=RetryPolicy(5, "fixed", 5))
        await house.clock.advance(62)
        await verb(house.jobs, job)
        assert [run.status for run in await house.runs(job)] == ["cancelled"], "as soon as the call has returned"
        await house.clock.advance(90)
        assert len(house.target.requests) == 1


@pytest.mark.parametrize(("verb", "reason"), [(pause, "job_paused"), (delete, "job_deleted")])
async def test_a_job_stopped_while_a_run_is_under_way_lets_it_end_and_starts_no_other(
    tmp_path: Path, verb: Verb, reason: str
) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 30, answered(500)))
        job = await house.create("* * * * *", retry=RetryPolicy(5, "fixed", 1))
        await house.clock.advance(65)
        await verb(house.jobs, job)
        await house.clock.advance(200)
        assert [(run.status, run.reason, run.attempt) for run in await house.runs(job)] == [("failed", reason, 1)]
        status = await house.sql("SELECT status, next_run_at, active_run_id FROM jobs")
        assert status == [("paused" if verb is pause else "deleted", None, None)]


async def test_a_completed_job_whose_run_waits_for_a_retry_is_paused_and_the_retry_cancelled(tmp_path: Path) -> None:
    """Its schedule has no slot left, and still something of it would be sent."""
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create("2027-01-15T12:00:10Z", retry=RetryPolicy(5, "fixed", 30))
        await house.clock.advance(12)
        assert (await house.job(job)).status == "completed"
        paused = await house.jobs.pause(TEAM, job.id)
        assert paused.status == "paused"
        assert [(run.status, run.reason) for run in await house.runs(job)] == [("cancelled", "job_paused")]
        await house.clock.advance(120)
        assert len(house.target.requests) == 1
        assert (await house.job(job)).state.active_run_id is None


async def test_a_completed_job_paused_while_its_run_is_under_way_lets_it_end_without_a_retry(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 30, answered(500)))
        job = await house.create("2027-01-15T12:00:10Z", retry=RetryPolicy(5, "fixed", 1))
        await house.clock.advance(15)
        await house.jobs.pause(TEAM, job.id)
        assert [run.status for run in await house.runs(job)] == ["running"]
        await house.clock.advance(120)
        assert [(run.status, run.reason, run.attempt) for run in await house.runs(job)] == [("failed", "job_paused", 1)]
        with pytest.raises(Conflict, match="no slot left"):
            await house.jobs.resume(TEAM, job.id)
        with pytest.raises(Conflict, match="paused"):
            await house.jobs.trigger(TEAM, job.id, triggered_by="manual")


async def test_a_completed_job_of_which_nothing_is_open_has_nothing_to_pause(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.clock.advance(15)
        with pytest.raises(Conflict, match="completed"):
            await house.jobs.pause(TEAM, job.id)
        assert (await house.job(job)).status == "completed"


async def test_a_completed_job_that_was_paused_goes_on_with_a_new_schedule(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500), answered())
        job = await house.create("2027-01-15T12:00:10Z", retry=RetryPolicy(5, "fixed", 30))
        await house.clock.advance(12)
        await house.jobs.pause(TEAM, job.id)
        await house.jobs.edit(TEAM, job.id, changed(schedule="* * * * *"))
        assert (await house.job(job)).status == "paused", "an edit resumes nothing"
        await house.jobs.resume(TEAM, job.id)
        await house.clock.advance(60)
        assert [run.status for run in await house.runs(job)] == ["cancelled", "succeeded"]


async def test_slots_of_a_pause_are_never_run_and_the_next_one_is(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 * * * *", catchup=Catchup.ALL)
        await house.clock.advance(5)
        house.clock.set(NOON + 55 * MINUTE)
        await house.jobs.pause(TEAM, job.id)
        house.clock.set(NOON + 2 * DAY + 55 * MINUTE)
        await house.clock.advance(5)
        resumed = await house.jobs.resume(TEAM, job.id)
        assert resumed.state.next_run_at == NOON + 2 * DAY + HOUR
        await house.clock.advance(4 * 60)
        assert house.target.requests == []
        await house.clock.advance(60)
        assert [run.scheduled_for for run in await house.runs(job)] == [NOON + 2 * DAY + HOUR]


async def test_a_pause_between_two_slots_loses_neither(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(70)
        await house.jobs.pause(TEAM, job.id)
        await house.clock.advance(18)
        await house.jobs.resume(TEAM, job.id)
        await house.clock.advance(40)
        assert [run.scheduled_for for run in await house.runs(job)] == [NOON + MINUTE, NOON + 2 * MINUTE]


async def test_a_backlog_that_is_given_up_by_a_pause_is_recorded(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 600))
        job = await house.create("* * * * *", catchup=Catchup.ALL)
        await house.crash()
        with structlog.testing.capture_logs():
            await house.restart(after=5 * 60 + 10)
        await house.clock.advance(1)
        await house.jobs.pause(TEAM, job.id)
        runs = await house.runs(job)
        assert [(run.status, run.reason, run.count) for run in runs] == [
            ("running", None, 1),
            ("skipped", "job_paused", 4),
        ]


# edits


async def test_another_zone_moves_the_next_slot_at_once(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 9 * * *")
        edited = await house.jobs.edit(TEAM, job.id, changed(timezone="Asia/Tokyo"))
        assert job.state.next_run_at == NOON + 21 * HOUR
        assert edited.state.next_run_at == NOON + 12 * HOUR


async def test_a_shorter_interval_makes_no_slot_of_the_past_a_missed_one(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 12 * * *")
        house.clock.set(NOON + 20 * HOUR + 30_000)
        await house.clock.advance(5)
        await house.jobs.edit(TEAM, job.id, changed(schedule="* * * * *"))
        await house.clock.advance(60)
        assert [(run.status, run.scheduled_for) for run in await house.runs(job)] == [
            ("succeeded", NOON + 20 * HOUR + MINUTE)
        ]


async def test_no_slot_of_the_old_schedule_runs_after_an_edit(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        await house.clock.advance(30)
        await house.jobs.edit(TEAM, job.id, changed(schedule="30 12 * * *", url="https://example.com/new"))
        await house.clock.advance(120)
        assert house.target.requests == []
        assert await house.runs(job) == []


async def test_editing_other_jobs_does_not_move_an_interval(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("every 3 days")
        other = await house.create("0 0 1 1 *")
        for minute in range(5):
            house.clock.set(NOON + minute * 12 * HOUR)
            await house.clock.advance(1)
            await house.jobs.edit(TEAM, other.id, changed(name=f"edited {minute}"))
        assert (await house.job(job)).state.next_run_at == NOON + 3 * DAY
        await house.jobs.edit(TEAM, job.id, changed(name="another name"))
        assert (await house.job(job)).state.next_run_at == NOON + 3 * DAY


# triggers


async def test_run_now_twice_within_a_second_goes_by_the_overlap_policy(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, slow(house, 20))
        outcomes = {}
        for overlap in (Overlap.SKIP, Overlap.ALLOW):
            job = await house.create("0 0 1 1 *", overlap=overlap)
            for _ in range(2):
                await house.jobs.trigger(TEAM, job.id, triggered_by="manual")
                await house.clock.advance(0.4)
            await house.clock.advance(30)
            outcomes[overlap.value] = sorted(run.status for run in await house.runs(job))
        assert outcomes == {"skip": ["skipped", "succeeded"], "allow": ["succeeded", "succeeded"]}


async def test_triggers_never_move_the_schedule(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("* * * * *")
        for _ in range(3):
            await house.jobs.trigger(TEAM, job.id, triggered_by="api")
            await house.clock.advance(19)
        await house.clock.advance(4)
        slots = [run.scheduled_for for run in await house.runs(job) if run.triggered_by == "schedule"]
        assert slots == [NOON + MINUTE]


# restarts


async def test_a_job_never_runs_before_its_first_slot_nor_because_of_a_restart(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.create("0 0 1 * *")
        for _ in range(3):
            await house.crash()
            await house.restart(after=10)
        await house.clock.advance(30)
        assert house.target.requests == []


async def test_a_job_that_never_ran_is_caught_up_like_any_other(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 13 * * *")
        await house.crash()
        house.clock.set(NOON + HOUR - 2_000)
        await house.restart(after=20)
        await house.clock.advance(2)
        [run] = await house.runs(job)
        assert (run.status, run.scheduled_for) == ("succeeded", NOON + HOUR)
        assert run.started_at is not None
        assert 17_000 < run.started_at - run.scheduled_for < 20_000, "how late it was is in its record"


async def test_restarts_reset_no_interval_and_forget_no_last_run(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        hourly = await house.create("every 1 hour")
        with_minutes = await house.create("15 * * * *")
        for half in range(1, 7):
            await house.crash()
            house.clock.set(NOON + half * HOUR // 2 + 1_000)
            await house.restart()
            await house.clock.advance(3)
        assert [run.scheduled_for for run in await house.runs(hourly)] == [NOON + hour * HOUR for hour in (1, 2, 3)]
        last = (await house.job(hourly)).state.last_run
        assert last is not None
        assert last.scheduled_for == NOON + 3 * HOUR
        ran = [run.scheduled_for % HOUR for run in await house.runs(with_minutes) if run.status == "succeeded"]
        assert ran == [15 * MINUTE] * 3, "jobs keep their phase"


async def test_sample_jobs_are_made_once_however_often_the_server_starts(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        for port in (8_001, 8_001, 8_002):
            await make_samples(house.jobs, port)
        rows = await house.sql("SELECT url FROM jobs")
        assert len(rows) == len(SAMPLES)
        assert all(":8002/" in url for (url,) in rows)


async def test_after_long_downtime_no_more_starts_at_once_than_configured(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=10) as house:
        at_once = most = 0

        async def answer(_request: Request) -> Outcome:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await house.clock.sleep(0.3)
            at_once -= 1
            return answered()

        house.target.on(URL, answer)
        jobs = [await house.create("0 * * * *") for _ in range(60)]
        await house.crash()
        house.clock.set(NOON + 12 * HOUR + 20 * MINUTE)
        await house.restart()
        await house.clock.advance(15)
        assert most == 10
        for job in jobs:
            runs = await house.runs(job)
            assert [(run.status, run.count) for run in runs] == [("skipped", 11), ("succeeded", 1)]


async def test_a_policy_of_none_starts_nothing_after_hours_and_says_how_much_was_missed(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("*/5 * * * *", catchup=Catchup.NONE)
        await house.crash()
        house.clock.set(NOON + 6 * HOUR + 2 * MINUTE)
        await house.restart()
        await house.clock.advance(5)
        assert house.target.requests == []
        assert [(run.reason, run.count) for run in await house.runs(job)] == [("missed", 72)]
        assert (await house.job(job)).state.next_run_at == NOON + 6 * HOUR + 5 * MINUTE


@pytest.mark.parametrize(
    ("schedule", "zone", "midnight"),
    [
        ("0 2 * * *", "Europe/Berlin", "2023-10-29T00:00+02:00"),
        ("30 1 * * *", "America/New_York", "2026-11-01T00:00-04:00"),
        ("30 1 * * *", "UTC", "2022-10-30T00:00+01:00"),
    ],
)
async def test_a_job_in_the_hour_that_comes_twice_runs_once_that_day(
    tmp_path: Path, schedule: str, zone: str, midnight: str
) -> None:
    begin = int(datetime.fromisoformat(midnight).timestamp()) * 1000
    async with House(tmp_path, now=begin - 10_000) as house:
        job = await house.create(schedule, timezone=zone)
        for quarter in range(4 * 25):  # the day has 25 hours
            house.clock.set(begin + quarter * 15 * MINUTE)
            await house.clock.advance(1.1)
        runs = await house.runs(job)
        assert [run.status for run in runs] == ["succeeded"]


async def test_the_scheduled_and_the_real_time_of_a_start_are_both_kept(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        await house.crash()
        await house.restart(after=17)
        await house.clock.advance(0.1)
        [run] = await house.runs(job)
        assert (run.scheduled_for, run.started_at) == (NOON + 10_000, NOON + 17_000)
