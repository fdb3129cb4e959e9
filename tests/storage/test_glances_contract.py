"""What pages show of many jobs and runs at once, on both databases."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.storage.samples import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    OTHER_TEAM_ID,
    a_job,
    a_run,
    a_trigger,
    an_execution,
    an_id,
    keep_counted,
)

from zerocron.core.access import Actor
from zerocron.core.explain import Act, Attempt
from zerocron.core.hours import Totals
from zerocron.core.model import Job, JobStatus, Run, RunStatus
from zerocron.storage.ledger import audit, executions, glances, jobs, runs, sessions
from zerocron.storage.ledger.database import Ledger


async def keep(ledger: Ledger, *given: Job | Run) -> None:
    for one in given:
        if isinstance(one, Job):
            await ledger.write(lambda c, one=one: jobs.insert(c, one))  # type: ignore[misc]
        else:
            await ledger.write(lambda c, one=one: runs.insert(c, [one]))  # type: ignore[misc]


async def test_jobs_are_counted_by_kind_and_all_that_they_counted_together(ledger: Ledger) -> None:
    team = an_id()
    stopped: dict[str, Any] = {"next_run_at": None, "team_id": team}
    given = (
        (a_job(team_id=team), 5, 0, 0),
        (a_job(team_id=team), 1, 2, 3),
        (a_job(status=JobStatus.PAUSED, **stopped), 10, 0, 0),
        (a_job(status=JobStatus.DISABLED, **stopped), 0, 7, 0),
        (a_job(status=JobStatus.COMPLETED, **stopped), 1, 0, 0),
        (a_job(status=JobStatus.DELETED, **stopped), 100, 100, 100),
        (a_job(team_id=OTHER_TEAM_ID), 1_000, 0, 0),
    )
    for job, *counted in given:
        await ledger.write(lambda c, job=job, counted=counted: keep_counted(c, job, *counted))  # type: ignore[misc]
    await ledger.write(
        lambda c: c.exec_driver_sql(f"UPDATE jobs SET consecutive_failures = 2 WHERE id = '{given[1][0].id}'")
    )
    found = await ledger.read(lambda c: glances.job_counts(c, team))
    assert found == glances.JobCounts(2, 1, 1, 1, 1, Totals(117, 109, 103))
    none = await ledger.read(lambda c: glances.job_counts(c, an_id()))
    assert none == glances.JobCounts(0, 0, 0, 0, 0, Totals(0, 0, 0))


async def test_a_job_with_two_runs_under_way_runs_once(ledger: Ledger) -> None:
    team = an_id()
    job, other, waiting = a_job(team_id=team), a_job(team_id=team), a_job(team_id=team)
    await keep(ledger, job, other, waiting)
    await keep(ledger, a_run(job), a_run(job, NOON + 1), a_run(other), a_trigger(waiting), a_run(a_job()))
    assert await ledger.read(lambda c: glances.running_jobs(c, team)) == 2


async def test_strips_have_the_newest_of_each_job_oldest_first(ledger: Ledger) -> None:
    team = an_id()
    busy, calm = a_job(team_id=team), a_job(team_id=team)
    made = [a_run(busy, NOON + number * MINUTE, status=RunStatus.SUCCEEDED) for number in range(5)]
    await keep(ledger, *made, a_run(calm, NOON, status=RunStatus.FAILED), a_run(calm, NOON - DAY))
    found = await ledger.read(lambda c: glances.strips(c, team, [calm.id, busy.id, an_id()], NOON, 3))
    by_job = {job.id: [mark.scheduled_for for mark in found if mark.job_id == job.id] for job in (busy, calm)}
    assert by_job == {busy.id: [NOON + number * MINUTE for number in (2, 3, 4)], calm.id: [NOON]}
    assert await ledger.read(lambda c: glances.strips(c, OTHER_TEAM_ID, [busy.id], NOON, 3)) == []


async def test_versions_and_acts_around_an_instant(ledger: Ledger) -> None:
    job = a_job(created_at=NOON - DAY, updated_at=NOON - DAY)
    await keep(ledger, job)
    for number, at in enumerate((NOON - HOUR, NOON, NOON + HOUR), 2):
        edited = dataclasses.replace(job, version=number, updated_at=at, name=str(number))
        await ledger.write(
            lambda c, edited=edited: jobs.update_definition(c, edited, seen_version=edited.version - 1)  # type: ignore[misc]
        )
        await ledger.write(
            lambda c, at=at: audit.record(  # type: ignore[misc]
                c,
                team_id=job.team_id,
                at=at,
                by=Actor("person", "p", "Ada"),
                action="job.edit",
                subject=audit.Subject("job", job.id, job.name),
                before={"name": "x"},
                after={"name": "y"},
            )
        )
    found = await ledger.read(lambda c: glances.versions_around(c, job.id, NOON, 2))
    assert [(version.number, version.since) for version in found] == [(2, NOON - HOUR), (3, NOON), (4, NOON + HOUR)]
    assert {version.schedule for version in found} == {job.schedule}
    acts = await ledger.read(lambda c: glances.acts_around(c, job.team_id, job.id, NOON, 1))
    assert acts == [Act(at, "job.edit", "Ada", {"name": "x"}, {"name": "y"}) for at in (NOON, NOON + HOUR)]
    assert await ledger.read(lambda c: glances.acts_around(c, OTHER_TEAM_ID, job.id, NOON, 9)) == []


async def test_the_runs_and_attempts_of_an_instant(ledger: Ledger) -> None:
    job = a_job()
    own = a_run(job, NOON, status=RunStatus.FAILED)
    asked = a_trigger(job, NOON + 5)
    await keep(ledger, own, asked, a_run(job, NOON + MINUTE), a_run(job, NOON - MINUTE, status=RunStatus.SUCCEEDED))
    attempts = [
        an_execution(own, attempt=number, error_message=f"no {number}", status="failed") for number in (1, 2, 3)
    ]
    await ledger.write(lambda c: executions.insert(c, attempts))
    found = await ledger.read(lambda c: glances.runs_at(c, job.id, NOON, NOON + 999, 9))
    assert [run.id for run in found] == [own.id, asked.id]
    assert await ledger.read(lambda c: glances.attempts_of(c, own.id, 2)) == [
        Attempt(number, NOON, "failed", f"no {number}") for number in (2, 3)
    ]
    before = await ledger.read(lambda c: glances.slot_before(c, job.id, NOON))
    assert before is not None
    assert before.scheduled_for == NOON - MINUTE
    assert await ledger.read(lambda c: glances.oldest_slot(c, job.id)) == NOON - MINUTE
    assert await ledger.read(lambda c: glances.last_errors(c, [own.id, an_id()])) == {own.id: "no 3"}
    assert await ledger.read(lambda c: glances.last_errors(c, [])) == {}


async def test_what_changes_shows_in_the_version(ledger: Ledger) -> None:
    team = an_id()

    async def version() -> tuple[object, ...]:
        return await ledger.read(lambda c: glances.job_version(c, team))

    seen = [await version()]
    job = a_job(team_id=team)
    await keep(ledger, job)
    seen.append(await version())
    await keep(ledger, a_run(job))
    seen.append(await version())
    edited = dataclasses.replace(job, version=2, name="new", updated_at=NOON)
    await ledger.write(lambda c: jobs.update_definition(c, edited, seen_version=1))
    seen.append(await version())
    await keep(ledger, a_job(team_id=OTHER_TEAM_ID), a_run(a_job(team_id=OTHER_TEAM_ID), NOON + 7))
    assert await version() == seen[-1]
    assert len(set(map(repr, seen))) == 4


async def test_the_queue_and_the_nodes(ledger: Ledger) -> None:
    job = a_job(next_run_at=NOON)
    await keep(ledger, job, a_job(next_run_at=NOON + 1), a_run(job), a_trigger(job), a_trigger(job, NOON + 3))
    assert await ledger.read(lambda c: glances.queue(c, NOON)) == (1, 1, 2)
    for number in range(3):
        await ledger.write(
            lambda c, number=number: sessions.insert(  # type: ignore[misc]
                c, session_id=an_id(), node=str(number), version="1", now=NOON + number, expires_at=NOON
            )
        )
    assert [row.node for row in await ledger.read(lambda c: glances.nodes(c, 2))] == ["2", "1"]
    assert (await ledger.read(glances.database_version))[0].isdigit()


async def test_tags_are_counted_by_the_sets_that_jobs_have(ledger: Ledger) -> None:
    team = an_id()
    await keep(ledger, *(a_job(team_id=team, tags=tags) for tags in (("a", "b"), ("a", "b"), ("b",), ())))
    assert await ledger.read(lambda c: glances.tags(c, team)) == [(["a", "b"], 2), (["b"], 1)]
