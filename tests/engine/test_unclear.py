"""The answer to a commit is lost: what was written is looked up by its id, and nothing is done twice or forgotten."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
import structlog
from tests.engine.house import House, answered
from tests.storage.samples import NOON

from zerocron.actions.jobs import JobSpec
from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.exchange import Outcome, Request
from zerocron.core.model import DEFAULT_TEAM_ID, Job, Overlap, RetryPolicy, Run
from zerocron.engine.finishing import Finished
from zerocron.engine.sessions import ORPHAN_MS
from zerocron.engine.starting import StartedBatch
from zerocron.storage.timetable.contract import job_member
from zerocron.storage.timetable.memory import MemoryTimetable

pytestmark = pytest.mark.usefixtures("early_ms")

URL = "https://example.com/hook"
Fate = Literal["committed", "rolled back"]
FATES: list[Fate] = ["committed", "rolled back"]


def loses(fate: Fate, which: type, *, times: int = 1) -> Callable[[object], Fate | None]:
    """The answer to the commit of the first transactions with such a result is lost."""
    left = times

    def lose(result: object) -> Fate | None:
        nonlocal left
        matters = isinstance(result, which) and not (isinstance(result, StartedBatch) and not result.runs)
        if not matters or left == 0:
            return None
        left -= 1
        return fate

    return lose


@pytest.mark.parametrize("fate", FATES)
async def test_a_start_is_looked_up_and_sent_once_and_on_time(tmp_path: Path, fate: Fate) -> None:
    async with House(tmp_path) as house:
        jobs = [await house.create("2027-01-15T12:00:10Z") for _ in range(5)]
        house.ledger.lose_answer = loses(fate, StartedBatch)
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(14)
        looked_up = [entry["committed"] for entry in logs if entry["event"] == "unclear_start_looked_up"]
        assert looked_up == [fate == "committed"]
        for job in jobs:
            [run] = await house.runs(job)
            assert (run.status, run.attempt, run.cause) == ("succeeded", 1, "first")
            assert (run.started_at or 0) - run.scheduled_for < 1_000
        assert len(house.target.requests) == 5
        await house.clock.advance(2 * ORPHAN_MS / 1000)
        assert len(house.target.requests) == 5, "and nobody takes them for lost"


@pytest.mark.parametrize("fate", FATES)
async def test_a_start_is_looked_up_when_the_ledger_is_back(tmp_path: Path, fate: Fate) -> None:
    """Minutes later: the sweep must not take a run for lost in the moment in which it is launched (C 25, C 26)."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        lose = loses(fate, StartedBatch)

        def lose_and_leave(result: object) -> Fate | None:
            found = lose(result)
            house.ledger.is_away = house.ledger.is_away or found is not None
            return found

        house.ledger.lose_answer = lose_and_leave
        with structlog.testing.capture_logs():
            await house.clock.advance(200)
            assert house.target.requests == []
            house.ledger.is_away = False
            await house.clock.advance(60)
        runs = [run for run in await house.runs(job) if run.status != "skipped"]
        assert [(run.status, run.attempt, run.redeliveries) for run in runs] == [("succeeded", 1, 0)]
        assert house.target.seen(URL) == [(runs[0].id, 1)]


async def test_a_run_whose_commit_is_being_looked_up_is_no_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        look = asyncio.Event()

        async def was_committed(_batch: StartedBatch, _session_id: str) -> bool:
            await look.wait()
            return True

        monkeypatch.setattr(house.engine.scheduler, "_was_committed", was_committed)
        house.ledger.lose_answer = loses("committed", StartedBatch)
        with structlog.testing.capture_logs() as logs:
            await house.clock.advance(10 + 3 * ORPHAN_MS / 1000)
            look.set()
            await house.clock.advance(60)
        assert [run.attempt for run in await house.runs(job)] == [1]
        assert "orphaned_runs_settled" not in [entry["event"] for entry in logs]
        assert len(house.target.requests) == 1


async def test_a_start_that_skipped_and_sent_nobody_on_the_way_is_simply_done_again(tmp_path: Path) -> None:
    async with House(tmp_path) as house:

        async def long(_request: Request) -> Outcome:
            await house.clock.sleep(25)
            return answered()

        house.target.on(URL, long)
        job = await house.create("*/10 * * * * *", overlap=Overlap.SKIP)
        await house.clock.advance(15)
        left = ["committed"]

        def lose(result: object) -> Fate | None:
            if isinstance(result, StartedBatch) and result.skipped and left:
                left.clear()
                return "committed"
            return None

        house.ledger.lose_answer = lose
        with structlog.testing.capture_logs():
            await house.clock.advance(25.5)
        runs = await house.runs(job)
        assert left == []
        assert [(run.scheduled_for - NOON, run.status, run.count) for run in runs] == [
            (10_000, "succeeded", 1),
            (20_000, "skipped", 1),
            (30_000, "skipped", 1),
            (40_000, "running", 1),
        ]


@pytest.mark.parametrize("fate", FATES)
async def test_a_result_is_recorded_once(tmp_path: Path, fate: Fate) -> None:
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:00:10Z")
        house.ledger.lose_answer = loses(fate, Finished)
        with structlog.testing.capture_logs():
            await house.clock.advance(15)
        [run] = await house.runs(job)
        assert (run.status, run.attempt) == ("succeeded", 1)
        assert len(await house.executions(run)) == 1
        assert (await house.job(job)).state.succeeded == 1
        assert house.engine.executor.free == 50


@pytest.mark.parametrize("fate", FATES)
async def test_a_retry_is_made_once_and_in_time(tmp_path: Path, fate: Fate) -> None:
    async with House(tmp_path) as house:
        house.target.on(URL, answered(500), answered())
        job = await house.create("2027-01-15T12:00:10Z", retry=RetryPolicy(3, "fixed", 5))
        house.ledger.lose_answer = loses(fate, Finished)
        with structlog.testing.capture_logs():
            await house.clock.advance(30)
        [run] = await house.runs(job)
        assert (run.status, run.attempt) == ("succeeded", 2)
        first, second = await house.executions(run)
        assert (first.status, second.status) == ("failed", "success")
        assert 5_000 <= second.started_at - first.finished_at < 10_000, "at the latest the sweep brings it"


@pytest.mark.parametrize("fate", FATES)
async def test_a_job_is_made_once_for_its_key(tmp_path: Path, fate: Fate) -> None:
    async with House(tmp_path) as house:
        house.ledger.lose_answer = loses(fate, tuple)

        async def create() -> tuple[Job, bool]:
            spec = JobSpec("sample", "2027-01-15T12:00:10Z", URL)
            return await house.jobs.create(DEFAULT_TEAM_ID, spec, idempotency_key="one")

        if fate == "committed":
            made = await create()
        else:
            with pytest.raises(Unclear):
                await create()
            made = await create()
        again = await create()
        assert (made[1], again[1]) == (True, False)
        assert again[0].id == made[0].id
        assert await house.sql("SELECT count(*) FROM jobs") == [(1,)]
        await house.clock.advance(11)
        assert len(house.target.requests) == 1


@pytest.mark.parametrize("fate", FATES)
async def test_a_run_is_asked_for_once_for_its_key(tmp_path: Path, fate: Fate) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 0 1 1 *")

        async def trigger() -> tuple[Run, bool]:
            return await house.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api", idempotency_key="one")

        house.ledger.lose_answer = loses(fate, tuple)
        if fate == "committed":
            made = await trigger()
        else:
            with pytest.raises(Unclear):
                await trigger()
            made = await trigger()
        again = await trigger()
        assert (made[1], again[1], again[0].id) == (True, False, made[0].id)
        await house.clock.advance(1)
        assert house.target.seen(URL) == [(made[0].id, 1)], "it starts at once, not when the sweep finds it"


async def test_a_key_finds_what_it_made_even_if_nobody_could_look_it_up(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        job = await house.create("0 0 1 1 *")
        lose = loses("committed", tuple)

        def lose_and_leave(result: object) -> Fate | None:
            found = lose(result)
            house.ledger.is_away = found is not None
            return found

        house.ledger.lose_answer = lose_and_leave
        with pytest.raises(Unavailable):
            await house.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api", idempotency_key="one")
        house.ledger.heal()
        run, is_new = await house.jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api", idempotency_key="one")
        assert not is_new
        await house.clock.advance(6)
        assert house.target.seen(URL) == [(run.id, 1)], "the sweep finds it"
        assert await house.sql("SELECT count(*) FROM runs") == [(1,)]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("verb", ["pause", "delete", "edit"])
async def test_the_timetable_follows_a_change_of_a_job_whose_answer_is_lost(
    tmp_path: Path, fate: Fate, verb: str
) -> None:
    """A job that is gone left its member there until its slot, and one that was moved up was late (I21)."""
    async with House(tmp_path) as house:
        job = await house.create("2027-01-15T12:01:30Z", URL)
        team_id, member = job.team_id, job_member(job.team_id, job.id)
        sooner = partial(dataclasses.replace, schedule="2027-01-15T12:00:20Z")
        given = {"edit": [sooner]}.get(verb, [])
        house.ledger.lose_answer = loses(fate, Job if verb == "edit" else tuple)
        with pytest.raises(Unclear):
            await getattr(house.jobs, verb)(team_id, job.id, *given)
        await house.clock.advance(1)
        slot = job.state.next_run_at
        if fate == "committed":
            slot = NOON + 20_000 if verb == "edit" else None
        timetable = house.timetable
        assert isinstance(timetable, MemoryTimetable)
        assert timetable._due.get(member) == slot
        await house.clock.advance(120)
        assert [run.started_at for run in await house.runs(job)] == ([] if slot is None else [slot])
