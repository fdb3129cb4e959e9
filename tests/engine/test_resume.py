"""`0cron serve --resume-from now`: nothing of what was due or under way before a restore is sent (PROMISES.md D 76)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from tests.engine.house import House, answered
from tests.storage.samples import HOUR, MINUTE, NOON

from zerocron.actions import resume
from zerocron.core.errors import Conflict
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, Overlap, RetryPolicy

URL = "https://example.com/hook"
OTHER = "https://example.com/other"


async def restored(house: House, *, after: float) -> None:
    """The node is gone, and that much later its ledger is put back and resumed from now."""
    await house.crash()
    await house.clock.advance(after)
    with structlog.testing.capture_logs():
        await resume.from_now(house.ledger, house.clock, exclusive=False)
        await house.restart()


async def test_no_slot_that_was_due_is_sent_and_each_is_recorded_as_skipped(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        jobs = [await house.create("* * * * *", catchup=catchup) for catchup in Catchup]
        await restored(house, after=30 * 60 + 10)
        await house.clock.advance(60)
        for job in jobs:
            left_out, run = await house.runs(job)
            assert (left_out.status, left_out.reason, left_out.count) == ("skipped", "restored", 30)
            assert (left_out.scheduled_for, left_out.scheduled_until) == (NOON + MINUTE, NOON + 30 * MINUTE)
            assert (run.status, run.scheduled_for) == ("succeeded", NOON + 31 * MINUTE)
            assert (await house.job(job)).state.skipped == 30
        assert len(house.target.requests) == len(jobs)


async def test_a_job_whose_only_slot_was_due_is_completed(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:05:00Z")
        await restored(house, after=600)
        await house.clock.advance(60)
        assert [(run.status, run.reason) for run in await house.runs(job)] == [("skipped", "restored")]
        assert (await house.job(job)).status == "completed"
        assert house.target.requests == []


async def test_a_slot_to_come_is_left_alone(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 * * * *")
        before = await house.sql("SELECT * FROM jobs")
        await restored(house, after=600)
        assert await house.sql("SELECT * FROM jobs") == before
        assert await house.runs(job) == []
        assert (await house.job(job)).state.next_run_at == NOON + HOUR


async def test_what_was_under_way_or_waiting_is_cancelled_and_not_sent_again(tmp_path: Path) -> None:
    async with House(tmp_path) as house:

        async def long(_request: Request) -> Outcome:
            await house.clock.sleep(3_600)
            return answered()

        house.target.on(URL, long)
        house.target.on(OTHER, answered(500))
        running = await house.create("*/10 * * * * *", overlap=Overlap.QUEUE)
        retried = await house.create("2027-01-15T12:00:05Z", OTHER, retry=RetryPolicy(9, "fixed", 600))
        await house.clock.advance(25)
        assert {run.status for run in await house.runs(running)} == {"running", "queued"}
        sent = len(house.target.requests)
        await restored(house, after=60)
        await house.clock.advance(4.5)
        assert len(house.target.requests) == sent
        ended = [run for run in [*await house.runs(running), *await house.runs(retried)] if run.status != "skipped"]
        assert {(run.status, run.reason) for run in ended} == {("cancelled", "restored")}
        assert len(ended) == 3
        assert all(run.finished_at for run in ended)
        house.target.on(URL, answered())
        await house.clock.advance(20)
        assert (await house.runs(running))[-1].status == "succeeded", "its place is free"
        [run] = await house.runs(retried)
        assert run.attempt == 1


async def test_a_run_whose_job_is_gone_is_cancelled_and_keeps_nobody(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500))
        job = await house.create("2027-01-15T12:00:05Z", retry=RetryPolicy(9, "fixed", 600))
        await house.clock.advance(25)
        await house.sql("DELETE FROM jobs WHERE id = :id", id=job.id)
        await restored(house, after=60)
        [run] = await house.runs(job)
        assert (run.status, run.reason) == ("cancelled", "restored")


async def test_a_paused_job_stays_paused_and_a_trigger_works_again(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        paused, active = await house.create("* * * * *"), await house.create("0 0 1 1 *", OTHER)
        await house.jobs.pause(DEFAULT_TEAM_ID, paused.id)
        await restored(house, after=600)
        assert (await house.job(paused)).status == "paused"
        assert await house.runs(paused) == []
        await house.jobs.trigger(DEFAULT_TEAM_ID, active.id, triggered_by="manual")
        await house.clock.advance(1)
        assert [run.status for run in await house.runs(active)] == ["succeeded"]


async def test_it_is_refused_while_a_node_runs(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.create("* * * * *")
        before = await house.sql("SELECT * FROM jobs")
        with pytest.raises(Conflict, match="Stop them all"):
            await resume.from_now(house.ledger, house.clock, exclusive=False)
        assert await house.sql("SELECT * FROM jobs") == before
        assert await house.sql("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(1,)]


async def test_it_may_be_interrupted_anywhere_and_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "PAGE", 2)
    async with House(tmp_path) as house:
        jobs = [await house.create("* * * * *") for _ in range(5)]
        await house.crash()
        await house.clock.advance(10 * 60 + 1)
        interrupted = 0
        with structlog.testing.capture_logs():
            for allowed in range(1, 30):
                house.ledger.before_write = fails_after(allowed)
                try:
                    await resume.from_now(house.ledger, house.clock, exclusive=False)
                    break
                except KeyError:
                    interrupted += 1
            house.ledger.heal()
            await house.restart()
        assert interrupted > 2
        for job in jobs:
            assert [(run.status, run.count) for run in await house.runs(job)] == [("skipped", 10)]


def fails_after(allowed: int) -> Callable[[], None]:
    left = allowed

    def before_write() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyError("interrupted")

    return before_write


async def test_more_jobs_than_a_page_are_all_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "PAGE", 3)
    async with House(tmp_path) as house:
        for _ in range(10):
            await house.create("* * * * *")
        await restored(house, after=90)
        assert await house.sql("SELECT count(*) FROM runs WHERE status = 'skipped'") == [(10,)]
        assert house.target.requests == []
