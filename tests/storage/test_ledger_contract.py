"""The contract of a ledger: what is written is there, what changed meanwhile is not overwritten, pages are complete.

An implementation is done when this passes for it; `conftest.LEDGERS` lists them. What is promised of one database
alone is in test_ledger_sqlite.py and test_ledger_postgres.py, and what their statements cost in test_ledger_plans.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError
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
    a_trigger,
    an_execution,
    an_id,
)

from zerocron.core.lifecycle import WAITING
from zerocron.core.model import (
    DEFAULT_TEAM_ID,
    EngineJob,
    Execution,
    Job,
    JobState,
    JobStatus,
    JsonRule,
    LastRun,
    Overlap,
    RetryPolicy,
    Run,
    RunStatus,
    SuccessRule,
)
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import executions, facts, jobs, keys, runs, sessions
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.tables import job_versions

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
fixture_is_shared = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def keep(ledger: Ledger, *things: Job | Run | Execution) -> None:
    """Put them all into the ledger in one transaction."""

    def transaction(connection: Connection) -> None:
        for thing in things:
            if isinstance(thing, Job):
                jobs.insert(connection, thing)
            elif isinstance(thing, Run):
                runs.insert(connection, [thing])
            else:
                executions.insert(connection, [thing])

    await ledger.write(transaction)


def stand_still(connection: Connection, *, until: threading.Event) -> None:
    """Within a transaction, and asking the database again and again: on PostgreSQL the others run meanwhile."""
    for _ in range(2_000):
        if until.wait(0.01):
            return
        connection.exec_driver_sql("SELECT 1")
    raise AssertionError("nobody went on")


async def job_of(ledger: Ledger, job_id: str) -> Job:
    job = await ledger.read(lambda connection: jobs.get(connection, DEFAULT_TEAM_ID, job_id))
    assert job is not None
    return job


async def run_of(ledger: Ledger, run_id: str) -> Run:
    run = await ledger.read(lambda connection: runs.get(connection, DEFAULT_TEAM_ID, run_id))
    assert run is not None
    return run


# transactions


async def test_what_a_transaction_returns_comes_back(ledger: Ledger) -> None:
    assert await ledger.write(lambda _connection: "written") == "written"
    assert await ledger.read(lambda _connection: "read") == "read"


async def test_a_transaction_that_raises_leaves_nothing_behind(ledger: Ledger) -> None:
    def transaction(connection: Connection) -> None:
        facts.put(connection, "name", "value")
        raise LookupError("in the middle")

    with pytest.raises(LookupError, match="in the middle"):
        await ledger.write(transaction)
    assert await ledger.read(lambda connection: facts.get(connection, "name")) is None
    await ledger.write(lambda connection: facts.put(connection, "name", "the next one works"))


async def test_a_reader_sees_one_state_throughout(ledger: Ledger) -> None:
    await ledger.write(lambda connection: facts.put(connection, "name", "before"))
    began, written = threading.Event(), threading.Event()

    def look_twice(connection: Connection) -> tuple[str | None, str | None]:
        first = facts.get(connection, "name")
        began.set()
        stand_still(connection, until=written)
        return first, facts.get(connection, "name")

    reading = asyncio.create_task(ledger.read(look_twice))
    await asyncio.to_thread(began.wait, 20)
    await ledger.write(lambda connection: facts.put(connection, "name", "after"))
    written.set()
    assert await reading == ("before", "before")
    assert await ledger.read(lambda connection: facts.get(connection, "name")) == "after"


async def test_a_caller_that_is_cancelled_does_not_undo_its_commit(ledger: Ledger) -> None:
    began, go_on = threading.Event(), threading.Event()

    def transaction(connection: Connection) -> None:
        facts.put(connection, "name", "kept")
        began.set()
        stand_still(connection, until=go_on)

    writing = asyncio.create_task(ledger.write(transaction))
    await asyncio.to_thread(began.wait, 20)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    go_on.set()
    await ledger.write(lambda connection: facts.put(connection, "other", "behind it"))
    assert await ledger.read(lambda connection: facts.get(connection, "name")) == "kept"


async def test_writers_who_hold_the_same_row_wait_for_each_other(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    await ledger.write(lambda connection: facts.put(connection, "count", "0"))

    def add_one(connection: Connection) -> None:
        jobs.get(connection, job.team_id, job.id, lock=True)
        facts.put(connection, "count", str(int(facts.get(connection, "count") or 0) + 1))

    await asyncio.gather(*(ledger.write(add_one) for _ in range(40)))
    assert await ledger.read(lambda connection: facts.get(connection, "count")) == "40"


async def test_of_two_writers_who_saw_the_same_job_one_wins(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)

    def rename(name: str) -> Callable[[Connection], bool]:
        renamed = dataclasses.replace(job, name=name, version=2)
        return lambda connection: jobs.update_definition(connection, renamed, seen_version=1)

    won = await asyncio.gather(ledger.write(rename("one")), ledger.write(rename("two")))
    assert sorted(won) == [False, True]
    assert (await job_of(ledger, job.id)).name == ("one" if won[0] else "two")


async def test_closing_waits_for_what_is_under_way_and_may_be_done_twice(ledger: Ledger) -> None:
    began, go_on = threading.Event(), threading.Event()

    def transaction(connection: Connection) -> str:
        facts.put(connection, "name", "kept")
        began.set()
        stand_still(connection, until=go_on)
        return "done"

    writing = asyncio.create_task(ledger.write(transaction))
    await asyncio.to_thread(began.wait, 20)
    closing = asyncio.create_task(ledger.close())
    go_on.set()
    assert await writing == "done"
    await closing
    await ledger.close()


# jobs

schedules = st.sampled_from(
    [
        Schedule("cron", "0 9 * * MON-FRI", None, None, "Europe/Paris", dst="skip", day_match="both"),
        Schedule("interval", None, 90 * MINUTE, NOON, "UTC"),
        Schedule("once", None, None, NOON, "Asia/Tokyo"),
    ]
)
definitions = st.builds(
    a_definition,
    method=st.sampled_from(["GET", "POST"]),
    url=texts,
    headers=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    body=st.none() | texts,
    timeout_seconds=st.sampled_from([0.1, 30.0, 900.0]),
    retry=st.builds(
        RetryPolicy, st.integers(1, 10), texts, st.sampled_from([0.0, 0.25, 5.0, 86_400.0]), st.sampled_from(["full"])
    ),
    success=st.builds(
        SuccessRule,
        status=st.lists(texts, max_size=2).map(tuple),
        body_contains=st.none() | texts,
        body_not_contains=st.none() | texts,
        body_matches=st.none() | texts,
        json=st.lists(st.builds(JsonRule, texts, texts), max_size=2).map(tuple),
        headers=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
        max_duration_ms=st.none() | st.integers(1, 900_000),
    ),
    redirects=st.integers(0, 5),
    verify_tls=st.booleans(),
    sign=st.booleans(),
)
written_jobs = st.builds(
    a_job,
    name=texts,
    schedule_text=texts,
    schedule=schedules,
    definition=definitions,
    overlap=st.sampled_from(["skip", "queue", "allow"]),
    catchup=st.sampled_from(["latest", "all", "none"]),
    catchup_window_seconds=st.integers(0, 2**31 - 1),
    on_lost=st.sampled_from(["rerun", "give_up"]),
    disable_after=st.integers(0, 1_000),
    notify=st.dictionaries(texts, texts, max_size=2),
    tags=st.lists(texts, max_size=3).map(tuple),
    warnings=st.lists(texts, max_size=2).map(tuple),
    next_run_at=st.integers(0, 2**53),
    language=st.sampled_from(["en", "fr", "es"]),
    created_at=st.integers(0, 2**53),
    updated_at=st.integers(0, 2**53),
)


@fixture_is_shared
@given(job=written_jobs)
async def test_a_job_comes_back_as_it_was_written(ledger: Ledger, job: Job) -> None:
    job = dataclasses.replace(job, id=an_id(), team_id=an_id())
    await keep(ledger, job)
    assert await ledger.read(lambda connection: jobs.get(connection, job.team_id, job.id)) == job
    page = await ledger.read(
        lambda connection: jobs.page(connection, job.team_id, status=None, tag=None, text=None, before=None, limit=10)
    )
    assert page == [(job.created_at, job)]
    locked = await ledger.write(lambda connection: jobs.lock(connection, [job.id], to_start=True))
    assert locked == {
        job.id: EngineJob(
            job.id,
            job.team_id,
            job.version,
            job.status,
            job.overlap,
            job.catchup,
            job.catchup_window_seconds,
            job.on_lost,
            job.disable_after,
            job.state,
            job.schedule,
            job.definition,
            job.definition.url,
            orjson.dumps(job.notify).decode(),
        )
    }
    kept = await ledger.read(lambda connection: jobs.definitions(connection, [(job.id, 1)]))
    assert kept == {(job.id, 1): job.definition}


async def test_jobs_are_locked_without_what_only_a_start_needs(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    locked = (await ledger.write(lambda connection: jobs.lock(connection, [job.id, an_id()])))[job.id]
    assert (locked.state, locked.schedule, locked.definition) == (job.state, None, None)


async def test_a_long_body_stays_behind_until_it_is_sent(ledger: Ledger) -> None:
    short = a_job(definition=a_definition(body="x" * jobs.STARTED_BODY_CHARACTERS_MAX))
    long = a_job(definition=a_definition(body="x" * (jobs.STARTED_BODY_CHARACTERS_MAX + 1)))
    empty = a_job(definition=a_definition(body=""))
    await keep(ledger, short, long, empty)
    wanted = [short.id, long.id, empty.id]
    locked = await ledger.write(lambda connection: jobs.lock(connection, wanted, to_start=True))
    assert locked[short.id].definition == short.definition
    assert locked[empty.id].definition == empty.definition
    assert locked[long.id].definition is None
    assert locked[long.id].schedule == long.schedule
    assert (await job_of(ledger, long.id)).definition == long.definition


async def test_lists_leave_longer_bodies_out(ledger: Ledger) -> None:
    team = an_id()
    long = a_job(team_id=team, definition=a_definition(body="x" * (jobs.LISTED_BODY_CHARACTERS_MAX + 1)))
    short = a_job(team_id=team, definition=a_definition(body="x" * jobs.LISTED_BODY_CHARACTERS_MAX))
    await keep(ledger, long, short)
    page = await ledger.read(
        lambda connection: jobs.page(connection, team, status=None, tag=None, text=None, before=None, limit=10)
    )
    assert [job.definition.body for _, job in page] == [short.definition.body, None]


async def test_another_teams_job_is_not_there(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    assert await ledger.read(lambda connection: jobs.get(connection, OTHER_TEAM_ID, job.id)) is None


async def test_a_deleted_job_is_seen_by_the_engine_alone(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    gone = dataclasses.replace(job, version=2, status=JobStatus.DELETED, state=JobState())
    assert await ledger.write(lambda connection: jobs.update_definition(connection, gone, seen_version=1))
    assert await ledger.read(lambda connection: jobs.get(connection, DEFAULT_TEAM_ID, job.id)) is None
    locked = await ledger.write(lambda connection: jobs.lock(connection, [job.id]))
    assert locked[job.id].status == JobStatus.DELETED
    again = dataclasses.replace(gone, version=3, status=JobStatus.ACTIVE)
    assert not await ledger.write(lambda connection: jobs.update_definition(connection, again, seen_version=2))


async def test_an_edit_keeps_the_counters_and_adds_a_version(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    counted = dataclasses.replace(
        job,
        state=JobState(
            NOON, "active", NOON, "queued", 1, 1, 2, 3, 4, 5.5, None, LastRun("last", "failed", NOON, NOON + 1)
        ),
    )
    await ledger.write(lambda connection: jobs.save_states(connection, [counted], {job.id: NOON}))
    edited = dataclasses.replace(job, version=2, name="new", definition=a_definition(url="https://example.com/2"))
    assert await ledger.write(lambda connection: jobs.update_definition(connection, edited, seen_version=1))
    found = await job_of(ledger, job.id)
    assert (found.name, found.version) == ("new", 2)
    assert found.state == dataclasses.replace(
        counted.state, active_run_id=None, active_since=None, queued_run_id=None, crowded=0, skipped=0
    ), "the cursor, the place and the skips are what an edit decides; the rest is the engine's"
    wanted = [(job.id, 1), (job.id, 2), (job.id, 3)]
    kept = await ledger.read(lambda connection: jobs.definitions(connection, wanted))
    assert kept == {(job.id, 1): job.definition, (job.id, 2): edited.definition}


async def test_a_job_that_is_disabled_gets_a_version_that_says_so_and_is_otherwise_the_same(ledger: Ledger) -> None:
    job = a_job(definition=a_definition(url="https://example.com/kept"), disable_after=3)
    await keep(ledger, job)

    def disable(connection: Connection) -> None:
        locked = jobs.lock(connection, [job.id])[job.id]
        locked.status, locked.state.next_run_at, locked.state.status_reason = JobStatus.DISABLED, None, "It failed."
        assert jobs.save_states(connection, [locked], {job.id: NOON}) == 1
        jobs.disable(connection, locked, now=NOON + 7)

    await ledger.write(disable)
    found = await job_of(ledger, job.id)
    assert (found.status, found.version, found.updated_at) == ("disabled", 2, NOON + 7)
    assert (found.state.next_run_at, found.state.status_reason) == (None, "It failed.")
    kept = await ledger.read(lambda connection: jobs.definitions(connection, [(job.id, 1), (job.id, 2)]))
    assert kept == {(job.id, 1): job.definition, (job.id, 2): job.definition}
    columns = (job_versions.c.version, job_versions.c.status, job_versions.c.created_at)
    query = select(*columns).where(job_versions.c.job_id == job.id).order_by(job_versions.c.version)
    rows = await ledger.read(lambda connection: [tuple(row) for row in connection.execute(query)])
    assert rows == [(1, "active", job.updated_at), (2, "disabled", NOON + 7)]


async def test_failures_can_be_forgotten(ledger: Ledger) -> None:
    job = a_job(state=JobState(NOON, consecutive_failures=7, failed=9))
    await keep(ledger, job)
    await ledger.write(lambda connection: jobs.save_states(connection, [job], {job.id: NOON}))
    await ledger.write(lambda connection: jobs.forget_failures(connection, job.id))
    state = (await job_of(ledger, job.id)).state
    assert (state.consecutive_failures, state.failed) == (0, 9)


async def test_executions_of_some_kinds_are_counted_by_run(ledger: Ledger) -> None:
    job = a_job()
    first, second, third = (a_run(job, NOON + minute * MINUTE) for minute in range(3))
    await keep(
        ledger,
        job,
        *(an_execution(first, attempt=attempt, error_kind="local_resources") for attempt in (1, 2)),
        an_execution(first, attempt=3, error_kind="timeout"),
        an_execution(second, attempt=1, error_kind="local_resources"),
        an_execution(third, attempt=1, error_kind="timeout"),
    )
    keys = [(run.id, run.scheduled_for) for run in (first, third)]
    counts = await ledger.read(lambda connection: executions.count_of_kinds(connection, keys, ["local_resources"]))
    assert counts == {first.id: 2}


async def test_an_edit_of_what_somebody_else_edited_is_refused(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    edited = dataclasses.replace(job, version=2, name="new")
    assert await ledger.write(lambda connection: jobs.update_definition(connection, edited, seen_version=1))
    late = dataclasses.replace(job, version=2, name="late")
    assert not await ledger.write(lambda connection: jobs.update_definition(connection, late, seen_version=1))
    assert (await job_of(ledger, job.id)).name == "new"


LAST = LastRun("l", "succeeded", NOON, NOON + 1)
STATE = JobState(NOON + MINUTE, "a", NOON, "q", 1, 11, 12, 13, 14, 15.5, "why", LAST)


async def test_the_engines_part_of_many_jobs_is_written_at_once(ledger: Ledger) -> None:
    kept = [a_job() for _ in range(5)]
    await keep(ledger, *kept)
    for number, job in enumerate(kept):
        job.state = dataclasses.replace(STATE, succeeded=number)
    seen = {job.id: NOON for job in kept}
    assert await ledger.write(lambda connection: jobs.save_states(connection, kept, seen)) == 5
    for job in kept:
        assert await job_of(ledger, job.id) == job


@pytest.mark.parametrize(("seen", "found"), [(NOON, None), (None, NOON), (NOON, NOON + 1), (NOON, NOON - 1)])
async def test_a_cursor_that_moved_is_not_overwritten(ledger: Ledger, seen: int | None, found: int | None) -> None:
    job = a_job(next_run_at=found)
    await keep(ledger, job)
    changed = dataclasses.replace(job, state=STATE)
    assert await ledger.write(lambda connection: jobs.save_states(connection, [changed], {job.id: seen})) == 0
    assert await job_of(ledger, job.id) == job


async def test_a_cursor_that_stood_still_may_be_at_nothing(ledger: Ledger) -> None:
    job = a_job(next_run_at=None)
    await keep(ledger, job)
    changed = dataclasses.replace(job, state=JobState(succeeded=1))
    assert await ledger.write(lambda connection: jobs.save_states(connection, [changed], {job.id: None})) == 1


async def test_a_job_of_another_version_is_not_overwritten(ledger: Ledger) -> None:
    job, other = a_job(), a_job()
    await keep(ledger, job, other)
    stale = dataclasses.replace(job, version=2, state=STATE)
    fresh = dataclasses.replace(other, state=STATE)
    seen = {job.id: NOON, other.id: NOON}
    assert await ledger.write(lambda connection: jobs.save_states(connection, [stale, fresh], seen)) == 1
    assert (await job_of(ledger, job.id)).state == job.state
    assert (await job_of(ledger, other.id)).state == STATE


async def test_a_job_is_completed_through_its_status(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, job)
    done = dataclasses.replace(job, status=JobStatus.COMPLETED, state=JobState())
    await ledger.write(lambda connection: jobs.save_states(connection, [done], {job.id: NOON}))
    assert (await job_of(ledger, job.id)).status == JobStatus.COMPLETED


@pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.DISABLED, JobStatus.COMPLETED, JobStatus.DELETED])
async def test_the_database_refuses_a_job_that_is_due_and_not_active(ledger: Ledger, status: JobStatus) -> None:
    with pytest.raises(IntegrityError):
        await keep(ledger, a_job(status=status, next_run_at=NOON))
    await keep(ledger, a_job(status=status, next_run_at=None))


async def test_the_database_refuses_a_status_that_does_not_exist(ledger: Ledger) -> None:
    with pytest.raises(IntegrityError):
        await keep(ledger, a_job(status="asleep", next_run_at=None))
    with pytest.raises(IntegrityError):
        await keep(ledger, a_run(a_job(), status="thinking"))


async def job_names(ledger: Ledger, team: str, **filters: Any) -> list[str]:
    """Names of all jobs of a team, read page by page."""
    names: list[str] = []
    before: tuple[int, str] | None = None
    while True:
        query: dict[str, Any] = {"status": None, "tag": None, "text": None, "before": before, "limit": 2} | filters
        page = await ledger.read(lambda connection, query=query: jobs.page(connection, team, **query))  # type: ignore[misc]
        names += [job.name for _, job in page]
        if len(page) < 2:
            return names
        before = (page[-1][0], page[-1][1].id)


async def test_jobs_are_listed_newest_first_and_every_one_once(ledger: Ledger) -> None:
    team = an_id()
    made = [a_job(team_id=team, name=str(number), created_at=NOON + number // 3) for number in range(7)]
    await keep(ledger, *made, a_job(name="of another team"))
    assert await job_names(ledger, team) == ["6", "5", "4", "3", "2", "1", "0"]


async def test_jobs_are_filtered_by_status_and_deleted_ones_never_listed(ledger: Ledger) -> None:
    team = an_id()
    await keep(
        ledger, *(a_job(team_id=team, name=status, status=status, next_run_at=None) for status in sorted(JobStatus))
    )
    assert await job_names(ledger, team, status="paused") == ["paused"]
    assert sorted(await job_names(ledger, team)) == ["active", "completed", "disabled", "paused"]


AWKWARD_TAGS = ["prod", "Prod", "pro", "production", "a%b", "a_b", 'say "hi"', "back\\slash", "é", "x,y", '","']


@pytest.mark.parametrize("tag", AWKWARD_TAGS)
async def test_jobs_are_filtered_by_exactly_one_tag(ledger: Ledger, tag: str) -> None:
    team = an_id()
    await keep(ledger, *(a_job(team_id=team, name=other, tags=("first", other)) for other in AWKWARD_TAGS))
    assert await job_names(ledger, team, tag=tag) == [tag]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("backup", ["Nightly Backup"]),
        ("BACKUP", ["Nightly Backup"]),
        ("example.com/hook", ["100% sure", "Nightly Backup", "a_b", "École"]),
        ("0%", ["100% sure"]),
        ("%", ["100% sure"]),
        ("_", ["a_b"]),
        ("École", ["École"]),
        ("ÉCOLE", ["École"]),
        ("nothing", []),
    ],
)
async def test_jobs_are_found_by_words_of_their_name_or_url(ledger: Ledger, text: str, found: list[str]) -> None:
    team = an_id()
    names = ["Nightly Backup", "100% sure", "a_b", "École"]
    await keep(ledger, *(a_job(team_id=team, name=name) for name in names))
    assert sorted(await job_names(ledger, team, text=text)) == found


async def test_overdue_jobs_are_those_due_before_the_instant_oldest_first(ledger: Ledger) -> None:
    late = [a_job(next_run_at=NOON - age) for age in (1, 3, 2)]
    await keep(ledger, *late, a_job(next_run_at=NOON), a_job(status="paused", next_run_at=None))
    overdue = await ledger.read(lambda connection: jobs.overdue(connection, before=NOON, limit=10))
    assert [(job.id, job.at) for job in overdue] == [
        (late[1].id, NOON - 3),
        (late[2].id, NOON - 2),
        (late[0].id, NOON - 1),
    ]
    assert {job.team_id for job in overdue} == {late[0].team_id}
    assert await ledger.read(lambda connection: jobs.overdue(connection, before=NOON, limit=2)) == overdue[:2]


@pytest.mark.parametrize(
    ("overlap", "state", "waits"),
    [
        (Overlap.SKIP, JobState(NOON, "active", NOON), True),
        (Overlap.QUEUE, JobState(NOON, "active", NOON + 1), True),
        (Overlap.SKIP, JobState(NOON, "active", NOON - 1), False),
        (Overlap.ALLOW, JobState(NOON, "active", NOON), False),
        (Overlap.QUEUE, JobState(NOON, None, None, "queued"), False),
        (Overlap.SKIP, JobState(NOON, None, NOON), False),
        (Overlap.SKIP, JobState(NOON, "active", None), False),
    ],
)
async def test_a_job_whose_slot_waits_for_its_own_run_is_not_overdue(
    ledger: Ledger, overlap: Overlap, state: JobState, waits: bool
) -> None:
    job = a_job(overlap=overlap)
    await keep(ledger, job)
    changed = dataclasses.replace(job, state=state)
    await ledger.write(lambda connection: jobs.save_states(connection, [changed], {job.id: NOON}))
    overdue = await ledger.read(lambda connection: jobs.overdue(connection, before=NOON + 1, limit=10))
    assert overdue == ([] if waits else [(job.team_id, job.id, NOON)])


async def test_due_jobs_are_paged_in_order_and_every_one_once(ledger: Ledger) -> None:
    made = [a_job(next_run_at=NOON + number // 4) for number in range(11)]
    await keep(ledger, *reversed(made), a_job(next_run_at=NOON + 100), a_job(status="paused", next_run_at=None))
    found: list[tuple[str, int]] = []
    after = (0, "")
    while True:
        page = await ledger.read(
            lambda connection, after=after: jobs.due_page(connection, after=after, until=NOON + 99, limit=3)  # type: ignore[misc]
        )
        if not page:
            break
        found += [(job.id, job.at) for job in page]
        after = (page[-1].at, page[-1].id)
    assert found == [(job.id, NOON + number // 4) for number, job in enumerate(made)]


async def test_ids_of_all_jobs_are_paged_deleted_ones_too(ledger: Ledger) -> None:
    made = [a_job(), a_job(status="deleted", next_run_at=None), a_job()]
    await keep(ledger, *made)
    first = await ledger.read(lambda connection: jobs.ids_page(connection, "", 2))
    rest = await ledger.read(lambda connection: jobs.ids_page(connection, first[-1], 2))
    assert [*first, *rest] == sorted(job.id for job in made)


async def test_cursors_of_cron_jobs_are_paged_soonest_first(ledger: Ledger) -> None:
    soon, later, last = a_job(next_run_at=NOON + 1), a_job(next_run_at=NOON + 2), a_job(next_run_at=NOON + 3)
    interval = a_job(next_run_at=NOON + 1, schedule=Schedule("interval", None, HOUR, NOON, "UTC"))
    await keep(ledger, last, later, soon, interval, a_job(next_run_at=NOON), a_job(status="paused", next_run_at=None))
    first = await ledger.read(lambda connection: jobs.cron_cursors(connection, after=(NOON + 1, ""), limit=2))
    after = first[-1].next_run_at, first[-1].job_id
    rest = await ledger.read(lambda connection: jobs.cron_cursors(connection, after=after, limit=2))
    assert [found.job_id for found in (*first, *rest)] == [soon.id, later.id, last.id]
    assert first[0] == jobs.Cursor(soon.team_id, soon.id, 1, NOON + 1, soon.schedule)


async def test_a_cursor_moves_only_from_where_it_was_seen(ledger: Ledger) -> None:
    moved, edited, fired = a_job(next_run_at=NOON + 1), a_job(next_run_at=NOON + 1), a_job(next_run_at=NOON + 2)
    await keep(ledger, moved, edited, fired)
    moves = [
        jobs.CursorMove(moved.team_id, moved.id, 1, NOON + 1, NOON + 9),
        jobs.CursorMove(edited.team_id, edited.id, 7, NOON + 1, NOON + 9),
        jobs.CursorMove(fired.team_id, fired.id, 1, NOON + 1, NOON + 9),
    ]
    assert await ledger.write(lambda connection: jobs.move_cursors(connection, moves)) == {moved.id}
    found = await ledger.write(lambda connection: jobs.lock(connection, [moved.id, edited.id, fired.id]))
    due = {job_id: job.state.next_run_at for job_id, job in found.items()}
    assert due == {moved.id: NOON + 9, edited.id: NOON + 1, fired.id: NOON + 2}


# runs

written_runs = st.builds(
    lambda **given: a_run(a_job(), **given),
    slot=st.integers(0, 2**53),
    trigger_key=texts.map(lambda text: text[:36]),
    triggered_by=st.sampled_from(["schedule", "manual", "api"]),
    status=st.sampled_from(RunStatus),
    reason=st.none() | st.sampled_from(["missed", "overlap"]),
    attempt=st.integers(0, 100),
    cause=st.sampled_from(["first", "retry", "node_lost"]),
    redeliveries=st.integers(0, 3),
    created_at=st.integers(0, 2**53),
    started_at=st.none() | st.integers(0, 2**53),
    count=st.integers(1, 2**40),
    scheduled_until=st.none() | st.integers(0, 2**53),
)


@fixture_is_shared
@given(run=written_runs)
async def test_a_run_comes_back_as_it_was_written(ledger: Ledger, run: Run) -> None:
    run = dataclasses.replace(run, id=an_id(), job_id=an_id())
    await keep(ledger, run)
    assert await run_of(ledger, run.id) == run
    assert await ledger.write(lambda connection: runs.of_ids(connection, [run.id, an_id()])) == {run.id: run}
    page = await ledger.read(
        lambda connection: runs.page_of_job(connection, run.job_id, status=None, before=None, limit=5)
    )
    assert page == [run]


async def test_another_teams_run_is_not_there(ledger: Ledger) -> None:
    run = a_run(a_job())
    await keep(ledger, run)
    assert await ledger.read(lambda connection: runs.get(connection, OTHER_TEAM_ID, run.id)) is None


async def test_a_slot_has_one_run(ledger: Ledger) -> None:
    job = a_job()
    await keep(ledger, a_run(job))
    with pytest.raises(IntegrityError):
        await keep(ledger, a_run(job, id=an_id()))
    await keep(ledger, a_run(job, NOON + MINUTE), a_trigger(job, NOON), a_trigger(job, NOON), a_run(a_job()))


async def test_of_several_new_runs_all_are_written_or_none(ledger: Ledger) -> None:
    job = a_job()
    first, same = a_run(job), a_run(job, id=an_id())
    with pytest.raises(IntegrityError):
        await ledger.write(lambda connection: runs.insert(connection, [first, same]))
    assert await ledger.read(lambda connection: runs.get(connection, DEFAULT_TEAM_ID, first.id)) is None
    several = [a_run(job, NOON + number * MINUTE) for number in range(3)]
    assert await ledger.write(lambda connection: runs.insert(connection, several)) == 3


@pytest.mark.parametrize(
    "impossible",
    [
        {"status": RunStatus.RUNNING, "session_id": None},
        {"status": RunStatus.RETRYING, "session_id": SESSION_ID},
        {"status": RunStatus.RUNNING, "finished_at": NOON},
        {"status": RunStatus.SUCCEEDED, "finished_at": None},
        {"status": RunStatus.QUEUED, "finished_at": NOON},
    ],
)
async def test_the_database_refuses_runs_that_cannot_be(ledger: Ledger, impossible: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        await keep(ledger, a_run(a_job(), **impossible))


def succeeded(run: Run) -> Run:
    return dataclasses.replace(run, status=RunStatus.SUCCEEDED, session_id=None, finished_at=NOON + 9)


async def test_a_run_moves_on_from_what_it_was_seen_as(ledger: Ledger) -> None:
    run = a_run(a_job())
    await keep(ledger, run)
    moved = dataclasses.replace(
        run,
        status=RunStatus.RETRYING,
        reason="superseded",
        attempt=2,
        cause="retry",
        redeliveries=1,
        retry_at=NOON + 7,
        session_id=None,
        attempt_started_at=NOON + 8,
        started_at=NOON + 1,
    )
    assert await ledger.write(lambda connection: runs.move(connection, [(moved, ("running", 1))])) == 1
    assert await run_of(ledger, run.id) == moved


@pytest.mark.parametrize("seen", [("running", 2), ("running", 0), ("retrying", 1), ("queued", 1)])
async def test_a_run_that_was_seen_otherwise_does_not_move(ledger: Ledger, seen: tuple[str, int]) -> None:
    run, other = a_run(a_job()), a_run(a_job())
    await keep(ledger, run, other)
    moves = [(succeeded(run), seen), (succeeded(other), ("running", 1))]
    assert await ledger.write(lambda connection: runs.move(connection, moves)) == 1
    assert await run_of(ledger, run.id) == run
    assert (await run_of(ledger, other.id)).status == RunStatus.SUCCEEDED


async def test_a_run_moves_once(ledger: Ledger) -> None:
    run = a_run(a_job())
    await keep(ledger, run)
    move = [(succeeded(run), ("running", 1))]
    assert await ledger.write(lambda connection: runs.move(connection, move)) == 1
    assert await ledger.write(lambda connection: runs.move(connection, move)) == 0


async def test_waiting_runs_of_a_job_are_its_queued_and_retrying_ones(ledger: Ledger) -> None:
    job = a_job()
    open_runs = [a_run(job, NOON + number, status=status) for number, status in enumerate(RunStatus)]
    await keep(ledger, *open_runs, a_run(a_job(), status=RunStatus.RETRYING))
    waiting = await ledger.write(lambda connection: runs.open_of_job(connection, job.id, WAITING))
    assert {run.status for run in waiting} == {RunStatus.QUEUED, RunStatus.RETRYING}
    assert {run.job_id for run in waiting} == {job.id}


async def test_running_runs_are_found_by_their_session(ledger: Ledger) -> None:
    job, other_session = a_job(), an_id()
    mine = [a_run(job, NOON + number) for number in range(3)]
    theirs = a_run(job, NOON + 10, session_id=other_session)
    await keep(ledger, *mine, theirs, *(a_run(job, NOON + 20, status=status) for status in ["succeeded"]))

    async def found(session_ids: list[str], limit: int = 10) -> set[str]:
        rows = await ledger.write(lambda connection: runs.running_of_sessions(connection, session_ids, limit=limit))
        return {run.id for run in rows}

    assert await found([SESSION_ID]) == {run.id for run in mine}
    assert await found([SESSION_ID, other_session]) == {run.id for run in [*mine, theirs]}
    assert await found([]) == set()
    assert len(await found([SESSION_ID], limit=2)) == 2


async def pages_of_runs(ledger: Ledger, job: Job, status: str | None = None) -> list[str]:
    found: list[str] = []
    before: tuple[int, str] | None = None
    while True:
        page = await ledger.read(
            lambda connection, before=before: runs.page_of_job(  # type: ignore[misc]
                connection, job.id, status=status, before=before, limit=3
            )
        )
        found += [run.id for run in page]
        if len(page) < 3:
            return found
        before = (page[-1].scheduled_for, page[-1].trigger_key)


async def test_runs_are_listed_latest_slot_first_and_every_one_once(ledger: Ledger) -> None:
    job = a_job()
    slots = [a_run(job, NOON + number * MINUTE) for number in range(4)]
    triggers = [a_trigger(job, NOON + MINUTE) for _ in range(4)]
    await keep(ledger, *slots, *triggers, a_run(a_job()))
    same = sorted(triggers, key=lambda run: run.trigger_key, reverse=True)
    assert await pages_of_runs(ledger, job) == [run.id for run in [slots[3], slots[2], *same, slots[1], slots[0]]]


async def test_runs_are_filtered_by_status(ledger: Ledger) -> None:
    job = a_job()
    made = [a_run(job, NOON + number, status=status) for number, status in enumerate(list(RunStatus) * 2)]
    await keep(ledger, *made)
    for status in RunStatus:
        wanted = [run.id for run in reversed(made) if run.status == status]
        assert await pages_of_runs(ledger, job, status) == wanted


async def test_due_runs_are_those_whose_time_has_come_oldest_first(ledger: Ledger) -> None:
    job = a_job()
    due = [a_run(job, NOON + age, status=RunStatus.RETRYING, retry_at=NOON - age) for age in (1, 3, 2)]
    later = a_run(job, NOON + 10, status=RunStatus.RETRYING, retry_at=NOON + 1)
    asleep = a_run(job, NOON + 11, status=RunStatus.QUEUED, retry_at=None)
    await keep(ledger, *due, later, asleep)
    found = await ledger.read(lambda connection: runs.due(connection, until=NOON, limit=10))
    assert [(run.id, run.at) for run in found] == [(due[1].id, NOON - 3), (due[2].id, NOON - 2), (due[0].id, NOON - 1)]
    assert {run.team_id for run in found} == {job.team_id}
    assert await ledger.read(lambda connection: runs.due(connection, until=NOON, limit=1)) == found[:1]


async def test_the_newest_recorded_slot_counts_skipped_ranges_and_no_triggers(ledger: Ledger) -> None:
    job = a_job()
    assert await ledger.read(lambda connection: runs.newest_slot(connection, job.id)) is None
    skipped = a_run(job, NOON, status=RunStatus.SKIPPED, count=5, scheduled_until=NOON + 4 * MINUTE)
    await keep(ledger, a_run(job, NOON - MINUTE), skipped, a_trigger(job, NOON + HOUR))
    assert await ledger.read(lambda connection: runs.newest_slot(connection, job.id)) == NOON + 4 * MINUTE


# what is kept of history


async def test_old_runs_are_removed_with_their_executions_and_open_ones_stay(ledger: Ledger) -> None:
    job = a_job()
    old = [a_run(job, NOON - DAY - number, status=RunStatus.SUCCEEDED) for number in range(3)]
    new = a_run(job, NOON - DAY + 1, status=RunStatus.SUCCEEDED)
    still_open = a_run(job, NOON - 2 * DAY)
    other = a_run(a_job(), NOON - 2 * DAY, status=RunStatus.SUCCEEDED)
    everything = [*old, new, still_open, other]
    await keep(ledger, *everything, *(an_execution(run) for run in everything))

    def remove(connection: Connection) -> list[tuple[str, int]]:
        removed = runs.delete_of_job(connection, job.id, before=NOON - DAY + 1, limit=2)
        if removed:
            executions.delete_of_runs(connection, removed)
        return removed

    first = await ledger.write(remove)
    second = await ledger.write(remove)
    assert (len(first), len(second)) == (2, 1)
    assert {run_id for run_id, _ in [*first, *second]} == {run.id for run in old}
    assert await ledger.write(remove) == []
    for run in everything:
        left = await ledger.read(lambda connection, run=run: executions.of_run(connection, run.id))  # type: ignore[misc]
        assert len(left) == (run not in old)
    assert await pages_of_runs(ledger, job) == [new.id, still_open.id]


async def test_the_oldest_runs_that_are_kept_are_found_by_count(ledger: Ledger) -> None:
    job, empty = a_job(), a_job()
    await keep(ledger, *(a_run(job, NOON + number) for number in range(5)))

    async def oldest_kept(count: int) -> int | None:
        ids = [empty.id, job.id]
        found = await ledger.read(lambda connection: runs.oldest_of_jobs(connection, ids, count))
        rows = {job_id: (oldest, kept) for job_id, oldest, kept in found}
        assert rows[empty.id] == (None, None)
        assert rows[job.id][0] == NOON
        return rows[job.id][1]

    assert [await oldest_kept(count) for count in (1, 2, 5, 6)] == [NOON + 4, NOON + 3, NOON, None]


# executions

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
written_executions = st.builds(
    lambda **given: an_execution(a_run(a_job()), **given),
    cause=st.sampled_from(["first", "retry", "node_lost"]),
    status=st.sampled_from(["success", "failed", "timeout", "error"]),
    finished_at=st.integers(0, 2**53),
    duration_ms=st.integers(0, 10**9).map(lambda micros: micros / 1000),
    timings=st.dictionaries(texts, st.none() | st.sampled_from([0.125, 1.0, 33.333]), max_size=3),
    request=st.dictionaries(texts, json_values, max_size=3),
    request_body=st.none() | texts,
    response=st.none() | st.dictionaries(texts, json_values, max_size=3),
    response_body=st.none() | texts,
    error_kind=st.none() | st.just("tls"),
    error_message=st.none() | texts,
)


@fixture_is_shared
@given(execution=written_executions)
async def test_an_execution_comes_back_as_it_was_written(ledger: Ledger, execution: Execution) -> None:
    execution = dataclasses.replace(execution, run_id=an_id())
    await keep(ledger, execution)
    found = await ledger.read(lambda connection: executions.get(connection, DEFAULT_TEAM_ID, execution.run_id, 1))
    assert found == execution
    assert await ledger.read(lambda connection: executions.of_run(connection, execution.run_id)) == [execution]


async def test_an_empty_batch_is_no_error(ledger: Ledger) -> None:
    await ledger.write(lambda connection: executions.insert(connection, []))
    assert await ledger.write(lambda connection: runs.insert(connection, [])) == 0
    assert await ledger.write(lambda connection: jobs.save_states(connection, [], {})) == 0
    assert await ledger.write(lambda connection: jobs.lock(connection, [])) == {}


async def test_an_execution_that_is_recorded_stays_as_it_is(ledger: Ledger) -> None:
    first = an_execution(a_run(a_job()))
    again = dataclasses.replace(first, status="failed", response_body="other")
    await keep(ledger, first, again)
    assert await ledger.read(lambda connection: executions.of_run(connection, first.run_id)) == [first]


async def test_another_teams_execution_is_not_there(ledger: Ledger) -> None:
    execution = an_execution(a_run(a_job()))
    await keep(ledger, execution)
    assert await ledger.read(lambda connection: executions.get(connection, OTHER_TEAM_ID, execution.run_id, 1)) is None
    assert (
        await ledger.read(lambda connection: executions.get(connection, DEFAULT_TEAM_ID, execution.run_id, 2)) is None
    )


async def test_executions_of_a_run_come_in_order_and_without_their_longer_bodies(ledger: Ledger) -> None:
    run = a_run(a_job())
    longest = executions.LISTED_BODY_CHARACTERS_MAX
    third = an_execution(run, attempt=3, request_body="r" * longest, response_body="é" * longest)
    first = an_execution(run, attempt=1, request_body="r" * (longest + 1), response_body="é" * (longest + 1))
    await keep(ledger, third, first)
    listed = await ledger.read(lambda connection: executions.of_run(connection, run.id))
    assert listed == [dataclasses.replace(first, request_body=None, response_body=None), third]
    whole = await ledger.read(lambda connection: executions.get(connection, DEFAULT_TEAM_ID, run.id, 1))
    assert whole == first


async def test_executions_of_a_job_are_listed_latest_slot_first_and_every_one_once(ledger: Ledger) -> None:
    job = a_job()
    slots = [a_run(job, NOON + number * MINUTE) for number in range(3)]
    triggers = [a_trigger(job, NOON + MINUTE) for _ in range(2)]
    made = [an_execution(run, attempt=attempt) for run in [*slots, *triggers] for attempt in (1, 2)]
    await keep(ledger, *slots, *triggers, *made, an_execution(a_run(a_job())))
    keys_of = {run.id: (run.scheduled_for, run.trigger_key) for run in [*slots, *triggers]}
    found: list[Execution] = []
    before: tuple[int, str, int] | None = None
    while True:
        page = await ledger.read(
            lambda connection, before=before: executions.page_of_job(connection, job.id, before=before, limit=3)  # type: ignore[misc]
        )
        found += [execution for _, execution in page]
        if len(page) < 3:
            break
        trigger_key, last = page[-1]
        before = (last.scheduled_for, trigger_key, last.attempt)
    assert found == sorted(made, key=lambda item: (*keys_of[item.run_id], item.attempt), reverse=True)


async def test_a_late_result_is_added_to_a_lost_execution_and_changes_no_verdict(ledger: Ledger) -> None:
    run = a_run(a_job())
    lost = an_execution(
        run, status="error", error_kind="node_lost", error_message="lost", response=None, response_body=None, timings={}
    )
    late = an_execution(run, finished_at=NOON + 99, duration_ms=99.0)
    await keep(ledger, lost)
    await ledger.write(lambda connection: executions.add_late_results(connection, [late]))
    [found] = await ledger.read(lambda connection: executions.of_run(connection, run.id))
    assert found == dataclasses.replace(
        lost,
        finished_at=NOON + 99,
        duration_ms=99.0,
        timings=late.timings,
        response=late.response,
        response_body=late.response_body,
    )


async def test_a_late_result_does_not_touch_an_execution_that_has_its_own(ledger: Ledger) -> None:
    run = a_run(a_job())
    recorded = an_execution(run)
    await keep(ledger, recorded)
    late = an_execution(run, response_body="late", finished_at=NOON + 99)
    never_recorded = an_execution(a_run(a_job()))
    await ledger.write(lambda connection: executions.add_late_results(connection, [late, never_recorded]))
    assert await ledger.read(lambda connection: executions.of_run(connection, run.id)) == [recorded]
    assert await ledger.read(lambda connection: executions.of_run(connection, never_recorded.run_id)) == []


# sessions


async def begin(ledger: Ledger, session_id: str, now: int = NOON) -> None:
    await ledger.write(
        lambda connection: sessions.insert(
            connection, session_id=session_id, node="host:1", version="1", now=now, expires_at=now + 30_000
        )
    )


async def unended(ledger: Ledger, but: str = "") -> set[str]:
    return set(await ledger.read(lambda connection: sessions.unended_except(connection, but)))


async def renewed(ledger: Ledger, session_id: str) -> bool:
    return await ledger.write(
        lambda connection: sessions.renew(connection, session_id, now=NOON, expires_at=NOON + 30_000)
    )


async def test_a_session_lives_until_it_is_ended_and_never_again(ledger: Ledger) -> None:
    one, two, three = an_id(), an_id(), an_id()
    for session_id in (one, two, three):
        await begin(ledger, session_id)
    assert await unended(ledger, but=one) == {two, three}
    assert await renewed(ledger, two)
    await ledger.write(lambda connection: sessions.end(connection, [two, three], now=NOON, reason="fenced"))
    await ledger.write(lambda connection: sessions.end(connection, [two], now=NOON + 1, reason="closed"))
    assert await unended(ledger) == {one}
    assert not await renewed(ledger, two)
    assert await unended(ledger) == {one}


async def test_a_session_that_never_was_is_not_renewed(ledger: Ledger) -> None:
    assert not await renewed(ledger, an_id())


async def test_sessions_that_were_settled_long_ago_are_forgotten(ledger: Ledger) -> None:
    lives, left_runs, old, new = an_id(), an_id(), an_id(), an_id()
    for session_id in (lives, left_runs, old, new):
        await begin(ledger, session_id, NOON - 100 * DAY)
    for session_id, age in ((left_runs, 90), (old, 31), (new, 29)):
        at = NOON - age * DAY
        await ledger.write(lambda connection, it=session_id, at=at: _end_session(connection, it, at))  # type: ignore[misc]
    await ledger.write(lambda connection: sessions.mark_settled(connection, [old], NOON - 31 * DAY))
    await ledger.write(lambda connection: sessions.mark_settled(connection, [new], NOON - 29 * DAY))
    await ledger.write(lambda connection: sessions.delete_settled_before(connection, NOON - 30 * DAY))
    assert await ledger.read(sessions.unsettled) == [left_runs]
    await begin(ledger, old)  # its id is free again
    with pytest.raises(IntegrityError):
        await begin(ledger, new)
    assert await unended(ledger) == {lives, old}


def _end_session(connection: Connection, session_id: str, now: int) -> None:
    sessions.end(connection, [session_id], now=now, reason="closed")


async def test_only_sessions_that_were_not_renewed_in_time_are_fenced(ledger: Ledger) -> None:
    expired, at_its_end, lives, closed, from_before = (an_id() for _ in range(5))
    ends = {expired: NOON - 1, at_its_end: NOON, lives: NOON + MINUTE, closed: NOON - 9, from_before: NOON + MINUTE + 1}
    for session_id, expires_at in ends.items():
        await ledger.write(
            lambda connection, it=session_id, expires_at=expires_at: sessions.insert(  # type: ignore[misc]
                connection, session_id=it, node="host:1", version="1", now=NOON - MINUTE, expires_at=expires_at
            )
        )
    await ledger.write(lambda connection: _end_session(connection, closed, NOON - 9))
    assert await ledger.write(lambda connection: sessions.fence_expired(connection, NOON, validity_ms=MINUTE)) == 2
    assert await ledger.write(lambda connection: sessions.fence_expired(connection, NOON, validity_ms=MINUTE)) == 0
    assert await unended(ledger) == {at_its_end, lives}
    assert set(await ledger.read(sessions.unsettled)) == {expired, closed, from_before}
    assert not await ledger.write(
        lambda connection: sessions.renew(connection, expired, now=NOON, expires_at=NOON + MINUTE)
    )
    await ledger.write(lambda connection: sessions.mark_settled(connection, [expired, from_before], NOON))
    assert await ledger.read(sessions.unsettled) == [closed]


async def test_a_session_is_held_until_it_has_ended(ledger: Ledger) -> None:
    session_id = an_id()
    assert not await ledger.write(lambda connection: sessions.hold(connection, session_id))
    await begin(ledger, session_id)
    assert await ledger.write(lambda connection: sessions.hold(connection, session_id))
    await ledger.write(lambda connection: _end_session(connection, session_id, NOON))
    assert not await ledger.write(lambda connection: sessions.hold(connection, session_id))


async def test_the_clocks_of_living_nodes_are_known(ledger: Ledger) -> None:
    for difference in (-7, 9_000):
        session_id = an_id()
        await begin(ledger, session_id)
        await ledger.write(
            lambda connection, it=session_id, difference=difference: sessions.renew(  # type: ignore[misc]
                connection, it, now=NOON, expires_at=NOON + MINUTE, clock_difference_ms=difference
            )
        )
    silent = an_id()
    await begin(ledger, silent, NOON - DAY)
    found = await ledger.read(lambda connection: sessions.live_clock_differences(connection, NOON))
    assert sorted(found) == [-7, 9_000]


# keys


def an_api_key(number: int = 0, **given: Any) -> keys.ApiKey:
    fields: dict[str, Any] = {
        "id": f"key{number:09}",
        "team_id": DEFAULT_TEAM_ID,
        "name": "laptop",
        "secret_hash": "0" * 64,
        "created_at": NOON,
    }
    return keys.ApiKey(**fields | given)


async def keep_keys(ledger: Ledger, made: Iterable[keys.ApiKey]) -> None:
    def transaction(connection: Connection) -> None:
        for key in made:
            keys.insert(connection, key)

    await ledger.write(transaction)


async def test_a_key_comes_back_as_it_was_written_revoked_or_not(ledger: Ledger) -> None:
    live, revoked = an_api_key(1), an_api_key(2, revoked_at=NOON + 1, last_used_at=NOON)
    await keep_keys(ledger, [live, revoked])
    assert await ledger.read(lambda connection: keys.find(connection, live.id)) == live
    assert await ledger.read(lambda connection: keys.find(connection, revoked.id)) == revoked
    assert await ledger.read(lambda connection: keys.find(connection, "nobody")) is None


async def test_keys_are_listed_by_id_without_revoked_and_other_teams_ones(ledger: Ledger) -> None:
    made = [an_api_key(number) for number in range(5)]
    await keep_keys(ledger, [*made, an_api_key(8, revoked_at=NOON), an_api_key(9, team_id=OTHER_TEAM_ID)])
    first = await ledger.read(lambda connection: keys.page(connection, DEFAULT_TEAM_ID, after="", limit=3))
    rest = await ledger.read(lambda connection: keys.page(connection, DEFAULT_TEAM_ID, after=first[-1].id, limit=3))
    assert [*first, *rest] == made


async def test_a_key_is_revoked_once_and_by_its_own_team(ledger: Ledger) -> None:
    key = an_api_key()
    await keep_keys(ledger, [key])

    async def revoke(team: str, key_id: str) -> bool:
        return await ledger.write(lambda connection: keys.revoke(connection, team, key_id, NOON + 5))

    assert not await revoke(OTHER_TEAM_ID, key.id)
    assert not await revoke(DEFAULT_TEAM_ID, "nobody")
    assert await revoke(DEFAULT_TEAM_ID, key.id)
    assert not await revoke(DEFAULT_TEAM_ID, key.id)
    found = await ledger.read(lambda connection: keys.find(connection, key.id))
    assert found is not None
    assert found.revoked_at == NOON + 5


async def test_the_last_use_of_several_keys_is_written_at_once(ledger: Ledger) -> None:
    made = [an_api_key(number) for number in range(3)]
    await keep_keys(ledger, made)
    used = {made[0].id: NOON + 1, made[2].id: NOON + 2, "nobody": NOON}
    await ledger.write(lambda connection: keys.save_last_used(connection, used))
    found = [await ledger.read(lambda connection, key=key: keys.find(connection, key.id)) for key in made]  # type: ignore[misc]
    assert [key and key.last_used_at for key in found] == [NOON + 1, None, NOON + 2]


# idempotency and facts


async def remember(ledger: Ledger, *, team: str = DEFAULT_TEAM_ID, operation: str = "make", key: str = "k") -> bool:
    return await ledger.write(
        lambda connection: keys.claim_idempotent(
            connection,
            team_id=team,
            operation=operation,
            key=key,
            request_hash="h",
            resource_id="thing",
            now=NOON,
        )
    )


async def test_an_idempotency_key_belongs_to_one_team_and_one_operation(ledger: Ledger) -> None:
    await remember(ledger)

    async def find(team: str, operation: str, key: str) -> tuple[str, str] | None:
        return await ledger.read(lambda connection: keys.find_idempotent(connection, team, operation, key))

    assert await find(DEFAULT_TEAM_ID, "make", "k") == ("h", "thing")
    assert await find(OTHER_TEAM_ID, "make", "k") is None
    assert await find(DEFAULT_TEAM_ID, "other", "k") is None
    assert await find(DEFAULT_TEAM_ID, "make", "K") is None
    assert await remember(ledger, team=OTHER_TEAM_ID)
    assert await remember(ledger, operation="other")
    assert await remember(ledger, key="K")


async def test_an_idempotency_key_is_noted_once(ledger: Ledger) -> None:
    assert await remember(ledger)
    assert not await remember(ledger)


async def test_of_many_who_note_a_key_at_once_one_is_first(ledger: Ledger) -> None:
    assert sum(await asyncio.gather(*(remember(ledger) for _ in range(8)))) == 1


async def test_old_idempotency_keys_are_forgotten(ledger: Ledger) -> None:
    await remember(ledger)
    await ledger.write(lambda connection: keys.forget_idempotent(connection, NOON))
    assert not await remember(ledger)
    await ledger.write(lambda connection: keys.forget_idempotent(connection, NOON + 1))
    assert await remember(ledger)


async def test_a_fact_is_what_was_put_last(ledger: Ledger) -> None:
    assert await ledger.read(lambda connection: facts.get(connection, "tzdata")) is None
    for value in ("2026a", "2026b"):
        await ledger.write(lambda connection, value=value: facts.put(connection, "tzdata", value))  # type: ignore[misc]
        assert await ledger.read(lambda connection: facts.get(connection, "tzdata")) == value
