"""Limits of teams, on both databases: what is over them is refused or recorded, also when many ask at once."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text, update
from tests.engine.book import Book, failed, member
from tests.storage.conftest import LEDGERS
from tests.storage.samples import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    OTHER_TEAM_ID,
    SESSION_ID,
    a_definition,
    a_job,
    a_run,
    an_execution,
    an_id,
)
from tests.support.clock import ManualClock

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.app import EARLY_MS
from zerocron.core.errors import Conflict, TooMany
from zerocron.core.model import DEFAULT_TEAM_ID, Job, JobState, Overlap, RetryPolicy, Run
from zerocron.core.planning import SlotPlan, without_run
from zerocron.core.team_limits import NO_LIMITS, Limits
from zerocron.engine.starting import StartedBatch, start_batch
from zerocron.engine.team_history import SPAN_MS, TeamHistory, cut
from zerocron.engine.team_minutes import TOLD_MAX
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger import tables
from zerocron.storage.ledger.channels import ChannelRow
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.memory import MemoryTimetable

SPEC = JobSpec(name="sample", schedule="0 0 1 1 *", url="https://example.com/hook")


@pytest.fixture(params=sorted(LEDGERS))
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    async with LEDGERS[request.param](tmp_path) as it:
        yield it


async def limit(ledger: Ledger, team_id: str = DEFAULT_TEAM_ID, **given: Any) -> None:
    """Give a team limits of its own."""

    def transaction(connection: Connection) -> None:
        if connection.scalar(select(tables.teams.c.id).where(tables.teams.c.id == team_id)) is None:
            connection.execute(insert(tables.teams), {"id": team_id, "name": "other", "created_at": NOON})
        connection.execute(update(tables.teams).where(tables.teams.c.id == team_id).values(**given))

    await ledger.write(transaction)


async def used(ledger: Ledger, now: int = NOON, team_id: str = DEFAULT_TEAM_ID) -> limit_rows.Usage:
    return await ledger.read(lambda connection: limit_rows.usage(connection, team_id, now))


def jobs_on(ledger: Ledger, limits: Limits = NO_LIMITS, now: int = NOON) -> Jobs:
    return Jobs(ledger=ledger, timetable=MemoryTimetable(), clock=ManualClock(now), limits=limits)


# jobs


async def test_a_hundred_creations_at_once_do_not_pass_the_limit(ledger: Ledger) -> None:
    await limit(ledger, jobs_max=7)
    jobs = jobs_on(ledger)
    made = await asyncio.gather(*(jobs.create(DEFAULT_TEAM_ID, SPEC) for _ in range(100)), return_exceptions=True)
    refused = [one for one in made if isinstance(one, Conflict)]
    assert (len(made) - len(refused), len(refused)) == (7, 93)
    assert (await used(ledger)).jobs == 7
    assert refused[0].message == (
        "The team has as many jobs as it may: 7. Delete one that is no longer needed, or ask the operator of this "
        "server for more (0cron teams limits)."
    )


async def test_a_deleted_job_makes_room_and_a_repeated_request_needs_none(ledger: Ledger) -> None:
    await limit(ledger, jobs_max=1)
    jobs = jobs_on(ledger)
    job, _ = await jobs.create(DEFAULT_TEAM_ID, SPEC, "once")
    assert await jobs.create(DEFAULT_TEAM_ID, SPEC, "once") == (job, False)
    with pytest.raises(Conflict):
        await jobs.create(DEFAULT_TEAM_ID, SPEC, "twice")
    await jobs.delete(DEFAULT_TEAM_ID, job.id)
    await jobs.create(DEFAULT_TEAM_ID, SPEC, "twice")


@pytest.mark.parametrize(("own", "default", "allowed"), [(None, 1, 1), (2, 1, 2), (0, 1, 3), (None, None, 3)])
async def test_a_limit_of_the_team_wins_over_the_servers(
    ledger: Ledger, own: int | None, default: int | None, allowed: int
) -> None:
    await limit(ledger, jobs_max=own)
    jobs = jobs_on(ledger, Limits(jobs_max=default))
    made = [
        isinstance(one, tuple)
        for one in await asyncio.gather(*(jobs.create(DEFAULT_TEAM_ID, SPEC) for _ in range(3)), return_exceptions=True)
    ]
    assert sum(made) == allowed


# runs of a minute


async def start(
    book: Book, *jobs: Job | Run, now: int = NOON, default: int | None = None, early_ms: int = 0
) -> StartedBatch:
    names = [member(job) for job in jobs]
    await book.start()  # opens the session
    return await book.ledger.write(
        lambda connection: start_batch(
            connection,
            names,
            now=now,
            session_id=SESSION_ID,
            early_ms=early_ms,
            runs_per_minute_max=default,
        )
    )


async def outcomes(book: Book, jobs: list[Job]) -> Counter[tuple[str, str | None]]:
    return Counter([(run.status, run.reason) for job in jobs for run in await book.runs(job)])


@pytest.mark.parametrize(
    ("own", "default", "started"), [(3, None, 3), (None, 3, 3), (5, 3, 5), (0, 3, 8), (None, None, 8)]
)
async def test_slots_over_the_limit_are_recorded_as_skipped(
    ledger: Ledger, own: int | None, default: int | None, started: int
) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=own)
    jobs = [await book.keep(a_job()) for _ in range(8)]
    batch = await start(book, *jobs, default=default)
    assert (len(batch.runs), batch.skipped) == (started, 8 - started)
    left_out = {("skipped", "team_limit"): 8 - started} if started < 8 else {}
    assert await outcomes(book, jobs) == {("running", None): started} | left_out
    for job in jobs:
        assert (await book.job(job)).state.next_run_at == NOON + MINUTE
    assert (await used(ledger)).runs_this_minute == (started if (own or default) and own != 0 else 0)


async def test_the_next_minute_counts_anew_and_other_teams_for_themselves(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    await limit(ledger, OTHER_TEAM_ID, runs_per_minute_max=2)
    ours = [await book.keep(a_job(overlap=Overlap.ALLOW)) for _ in range(2)]
    theirs = [await book.keep(a_job(team_id=OTHER_TEAM_ID)) for _ in range(3)]
    assert Counter(one.run.team_id for one in (await start(book, *ours, *theirs)).runs) == {
        DEFAULT_TEAM_ID: 1,
        OTHER_TEAM_ID: 2,
    }
    assert len((await start(book, *ours, now=NOON + MINUTE)).runs) == 1


async def test_a_run_counts_in_the_minute_of_its_slot_not_of_its_commit(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    early, late = await book.keep(a_job()), await book.keep(a_job())
    assert len((await start(book, early, now=NOON - EARLY_MS, early_ms=EARLY_MS)).runs) == 1
    assert (await used(ledger, NOON - 1)).runs_this_minute == 0
    assert (await start(book, late, now=NOON + 1)).skipped == 1


async def test_retries_and_runs_sent_again_are_no_new_runs(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    job = await book.keep(a_job(definition=a_definition(retry=RetryPolicy(attempts=3, delay_seconds=1))))
    [first] = (await start(book, job)).runs
    await book.finish(failed(first))
    retry = await book.run(first)
    [again] = (await start(book, retry, now=retry.retry_at or 0)).runs
    assert again.run.attempt == 2
    await book.lose(now=NOON + 5_000)
    owed = await book.run(first)
    [sent_again] = (await start(book, owed, now=NOON + 5_000)).runs
    assert (sent_again.run.attempt, sent_again.run.cause) == (3, "node_lost")
    assert (await used(ledger)).runs_this_minute == 1


async def test_a_slot_that_is_left_out_ends_no_retry(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    job = a_job()
    waiting = a_run(job, NOON - MINUTE, status="retrying", retry_at=NOON + 10)
    job.state = JobState(NOON, waiting.id, NOON - MINUTE)
    await book.keep(job, waiting)
    other = await book.keep(a_job())
    await start(book, other, job)
    assert (await book.run(waiting)).status == "retrying"
    [again] = (await start(book, waiting, now=NOON + 10)).runs
    assert again.run.id == waiting.id


async def test_a_queued_slot_counts_once(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    job = a_job(overlap=Overlap.QUEUE)
    active = a_run(job, NOON - MINUTE)
    job.state = JobState(NOON, active.id, NOON - MINUTE)
    await book.keep(job, active)
    assert (await start(book, job)).skipped == 0
    assert (await used(ledger)).runs_this_minute == 1
    assert (await start(book, await book.keep(a_job()))).skipped == 1


def test_a_plan_without_its_run_still_accounts_for_every_slot() -> None:
    plan = without_run(SlotPlan(2, start=1, supersede=True), 1, "team_limit")  # type: ignore[arg-type]
    assert (plan.start, plan.queue, plan.supersede, plan.next_run_at) == (None, None, False, 2)
    assert [(skip.first, skip.last, skip.count, skip.reason) for skip in plan.skips] == [(1, 1, 1, "team_limit")]


async def test_two_nodes_together_do_not_pass_the_limit(ledger: Ledger) -> None:
    """Their transactions overlap on PostgreSQL; teams that meet in another order must not wait in a circle."""
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=25)
    await limit(ledger, OTHER_TEAM_ID, runs_per_minute_max=25)
    await book.start()
    batches = []
    for number in range(10):
        teams = (DEFAULT_TEAM_ID, OTHER_TEAM_ID) if number % 2 else (OTHER_TEAM_ID, DEFAULT_TEAM_ID)
        batches.append([await book.keep(a_job(team_id=team)) for team in teams for _ in range(5)])
    started = await asyncio.gather(*(start(book, *jobs) for jobs in batches))
    assert Counter(one.run.team_id for batch in started for one in batch.runs) == {
        DEFAULT_TEAM_ID: 25,
        OTHER_TEAM_ID: 25,
    }
    assert sum(batch.skipped for batch in started) == 50


def statements_of(connection: Connection, act: Any) -> list[str]:
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    act()
    event.remove(connection, "before_cursor_execute", note)
    return seen


@pytest.mark.parametrize(("own", "number"), [(None, 4), (100, 6)])
async def test_only_a_team_with_a_limit_pays_for_it(ledger: Ledger, own: int | None, number: int) -> None:
    """The session, the jobs, their cursors, the runs; and with a limit the minutes, held and written."""
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=own)
    jobs = [await book.keep(a_job()) for _ in range(5)]
    await book.start()
    names = [member(job) for job in jobs]
    made = await ledger.write(
        lambda connection: statements_of(
            connection, lambda: start_batch(connection, names, now=NOON, session_id=SESSION_ID)
        )
    )
    assert len(made) == number, made


async def test_a_trigger_over_the_limit_is_refused_until_the_next_minute(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=2)
    job = await book.keep(a_job(next_run_at=NOON + DAY))
    jobs = jobs_on(ledger, now=NOON + 15_500)
    first, _ = await jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api", idempotency_key="one")
    await jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api")
    with pytest.raises(TooMany) as refusal:
        await jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api")
    assert refusal.value.retry_after_seconds == 45
    again = await jobs.trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api", idempotency_key="one")
    assert again == (first, False)
    await jobs_on(ledger, now=NOON + MINUTE).trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api")


async def test_triggers_at_once_do_not_pass_the_limit(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=5)
    kept = [await book.keep(a_job(next_run_at=NOON + DAY, overlap=Overlap.ALLOW)) for _ in range(4)]
    jobs = jobs_on(ledger)
    made = await asyncio.gather(
        *(jobs.trigger(DEFAULT_TEAM_ID, kept[n % 4].id, triggered_by="api") for n in range(20)), return_exceptions=True
    )
    assert sum(isinstance(one, TooMany) for one in made) == 15
    assert (await used(ledger)).runs_this_minute == 5
    waiting = [run for job in kept for run in await book.runs(job)]
    assert len((await start(book, *waiting)).runs) == 5, "a trigger that was taken starts"
    assert (await used(ledger)).runs_this_minute == 5


async def test_people_are_told_of_the_first_slots_that_a_limit_leaves_out(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, runs_per_minute_max=1)
    row = ChannelRow(
        an_id(), DEFAULT_TEAM_ID, "fake", "c", "active", None, "", an_id(), "", 0, 0, None, None, NOON, NOON
    )
    await ledger.write(lambda connection: channel_rows.insert(connection, row))
    jobs = [await book.keep(a_job()) for _ in range(TOLD_MAX + 5)]
    assert (await start(book, *jobs)).skipped == TOLD_MAX + 4
    told = await ledger.read(lambda connection: connection.execute(text("SELECT kind, notice FROM alerts")).all())
    assert [kind for kind, _ in told] == ["job.missed"] * TOLD_MAX
    assert "as many runs in that minute as it may" in told[0][1]


# history


async def with_history(book: Book, slots: list[int], *, body: str = "x" * 1_000, **given: Any) -> Job:
    job = a_job(next_run_at=NOON + DAY, **given)
    made = [a_run(job, slot, status="succeeded") for slot in slots]
    await book.keep(job, *made)
    done = [an_execution(run, request={}, response=None, request_body=None, response_body=body) for run in made]
    await book.ledger.write(lambda connection: execution_rows.insert(connection, done))
    return job


SIZE = 1_000 + len("{}")


async def upkeep(ledger: Ledger, now: int = NOON, default: int | None = None) -> None:
    history = TeamHistory(ledger=ledger, clock=ManualClock(now), bytes_max=default)
    while not await history.tick():
        pass


async def slots_left(book: Book, job: Job) -> list[int]:
    return [run.scheduled_for for run in await book.runs(job)]


async def test_the_oldest_runs_go_until_a_history_fits(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerocron.engine.team_history.RUNS_PER_QUERY", 3)
    monkeypatch.setattr("zerocron.engine.team_history.JOBS_PER_QUERY", 1)
    book = Book(ledger)
    await limit(ledger, history_bytes_max=7 * SIZE)
    hours = [NOON - number * HOUR for number in range(5, 0, -1)]
    one, two = await with_history(book, hours), await with_history(book, hours)
    await upkeep(ledger)
    assert await slots_left(book, one) == await slots_left(book, two) == hours[-3:]
    assert (await used(ledger)).history_bytes == 6 * SIZE
    rest = await ledger.read(lambda connection: connection.scalar(text("SELECT count(*) FROM executions")))
    assert rest == 6


async def test_open_runs_and_other_teams_keep_theirs(ledger: Ledger) -> None:
    book = Book(ledger)
    await limit(ledger, history_bytes_max=1)
    await limit(ledger, OTHER_TEAM_ID, history_bytes_max=0)
    job = a_job(next_run_at=NOON + DAY)
    await book.keep(job, a_run(job, NOON - HOUR))
    theirs = await with_history(book, [NOON - HOUR], team_id=OTHER_TEAM_ID)
    await upkeep(ledger, default=1)
    assert await slots_left(book, job) == await slots_left(book, theirs) == [NOON - HOUR]


async def test_a_history_is_counted_once_an_hour_by_one_node(ledger: Ledger) -> None:
    book = Book(ledger)
    job = await with_history(book, [NOON - HOUR])
    await upkeep(ledger, default=SIZE)
    assert (await used(ledger)).history_bytes == SIZE
    await with_history(book, [NOON - HOUR])
    await upkeep(ledger, NOON + HOUR - 1, default=SIZE)
    assert await slots_left(book, job) == [NOON - HOUR]
    await upkeep(ledger, NOON + HOUR, default=SIZE)
    assert await slots_left(book, job) == []
    team = limit_rows.HistoryLimit(DEFAULT_TEAM_ID, SIZE, NOON)
    assert not await ledger.write(lambda connection: limit_rows.claim_count(connection, team, NOON + HOUR))


async def test_bytes_are_bytes_not_characters(ledger: Ledger) -> None:
    book = Book(ledger)
    await with_history(book, [NOON - HOUR], body="é€" * 10)
    await upkeep(ledger, default=1_000)
    assert (await used(ledger)).history_bytes == 50 + len("{}")


def test_a_cut_keeps_the_newest_spans_that_fit() -> None:
    sizes = Counter({0: 5, SPAN_MS: 3, 2 * SPAN_MS: 4})
    assert cut(sizes, 12) == (None, 12)
    assert cut(sizes, 11) == (SPAN_MS, 7)
    assert cut(sizes, 6) == (2 * SPAN_MS, 4)
    assert cut(sizes, 3) == (3 * SPAN_MS, 0)
    assert cut(Counter(), 1) == (None, 0)


# what an operator writes


async def test_limits_are_read_as_they_hold_and_as_they_are_written(ledger: Ledger) -> None:
    own = Limits(None, 5, 0)
    await ledger.write(lambda connection: limit_rows.save(connection, DEFAULT_TEAM_ID, own))
    defaults = Limits(9, 9, 9)
    assert await ledger.read(lambda it: limit_rows.own(it, DEFAULT_TEAM_ID)) == own
    assert await ledger.read(lambda it: limit_rows.of_team(it, DEFAULT_TEAM_ID, defaults)) == Limits(9, 5, None)
    assert await ledger.read(lambda it: limit_rows.of_team(it, OTHER_TEAM_ID, defaults)) == defaults
    assert await ledger.read(lambda it: limit_rows.own(it, OTHER_TEAM_ID)) == NO_LIMITS
    assert dataclasses.astuple(await used(ledger)) == (0, 0, None)


async def test_a_history_is_cut_also_after_a_count_by_a_clock_that_was_ahead(ledger: Ledger) -> None:
    book = Book(ledger)
    await with_history(book, [NOON - HOUR])
    await upkeep(ledger, NOON + 1_000 * HOUR, default=SIZE)
    assert (await used(ledger)).history_bytes == SIZE
    job = await with_history(book, [NOON - HOUR])
    await upkeep(ledger, NOON, default=SIZE)
    assert await slots_left(book, job) == []
    job = await with_history(book, [NOON - HOUR, NOON - 2 * HOUR])
    await upkeep(ledger, NOON + HOUR - 1, default=SIZE)
    assert len(await slots_left(book, job)) == 2, "counted once an hour again"


async def test_minutes_counted_by_a_clock_that_was_ahead_are_free_when_they_come(ledger: Ledger) -> None:
    ahead = NOON + 10 * MINUTE
    await limit(ledger, runs_per_minute_max=1)
    job = await Book(ledger).keep(a_job(next_run_at=NOON + DAY))
    await jobs_on(ledger, now=ahead).trigger(DEFAULT_TEAM_ID, job.id, triggered_by="api")
    assert (await used(ledger, ahead)).runs_this_minute == 1
    await upkeep(ledger, NOON)
    assert (await used(ledger, ahead)).runs_this_minute == 0


async def test_minutes_that_are_over_are_forgotten(ledger: Ledger) -> None:
    keys = [(DEFAULT_TEAM_ID, NOON - 2 * HOUR), (DEFAULT_TEAM_ID, NOON)]
    await ledger.write(lambda connection: limit_rows.hold_minutes(connection, keys))
    await upkeep(ledger)
    left = await ledger.read(lambda connection: connection.scalar(text("SELECT count(*) FROM team_minutes")))
    assert left == 1
