"""What is counted by the hour: noted once, added up by everybody, on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.storage.samples import HOUR, NOON, OTHER_TEAM_ID, a_job, a_run, an_id, keep_counted

from zerocron.core.hours import Totals
from zerocron.core.model import DEFAULT_TEAM_ID, JobStatus, RunStatus
from zerocron.storage.ledger import hours, runs
from zerocron.storage.ledger.database import Ledger


async def keep(ledger: Ledger, team_id: str, succeeded: int, failed: int, skipped: int, **given: object) -> None:
    job = replace(a_job(team_id=team_id, next_run_at=None), id=an_id(), **given)  # type: ignore[arg-type]
    await ledger.write(lambda connection: keep_counted(connection, job, succeeded, failed, skipped))


async def test_the_first_to_look_notes_how_far_the_counters_have_come(ledger: Ledger) -> None:
    await keep(ledger, DEFAULT_TEAM_ID, 1, 2, 3)
    await keep(ledger, DEFAULT_TEAM_ID, 10, 20, 30, status=JobStatus.DELETED)
    await keep(ledger, OTHER_TEAM_ID, 5, 0, 0)
    assert not await ledger.read(lambda c: hours.is_taken(c, NOON))
    await ledger.write(lambda c: hours.take(c, NOON))
    await keep(ledger, DEFAULT_TEAM_ID, 100, 0, 0)
    await ledger.write(lambda c: hours.take(c, NOON))
    assert await ledger.read(lambda c: hours.is_taken(c, NOON))
    await ledger.write(lambda c: hours.take(c, NOON + HOUR))
    assert await ledger.read(lambda c: hours.counters_of(c, DEFAULT_TEAM_ID, NOON)) == (
        [NOON, NOON + HOUR],
        {NOON: Totals(11, 22, 33), NOON + HOUR: Totals(111, 22, 33)},
    )
    assert await ledger.read(lambda c: hours.counters_of(c, OTHER_TEAM_ID, NOON + 1)) == (
        [NOON + HOUR],
        {NOON + HOUR: Totals(5, 0, 0)},
    )


async def test_a_ledger_without_jobs_is_looked_at_too(ledger: Ledger) -> None:
    await ledger.write(lambda c: hours.take(c, NOON))
    assert await ledger.read(lambda c: hours.counters_of(c, DEFAULT_TEAM_ID, 0)) == ([NOON], {})


async def test_what_many_nodes_counted_adds_up(ledger: Ledger) -> None:
    counted = {(team, NOON, size): 1 + size for team in (DEFAULT_TEAM_ID, OTHER_TEAM_ID) for size in range(5)}
    backwards = dict(reversed(counted.items()))
    await asyncio.gather(
        *(ledger.write(lambda c, one=one: hours.add_lateness(c, one)) for one in [counted, backwards] * 5)  # type: ignore[misc]
    )
    await ledger.write(lambda c: hours.add_lateness(c, {(DEFAULT_TEAM_ID, NOON + HOUR, 7): 3}))
    assert await ledger.read(lambda c: hours.lateness_of(c, DEFAULT_TEAM_ID, NOON)) == {
        NOON: {size: 10 * (1 + size) for size in range(5)},
        NOON + HOUR: {7: 3},
    }
    assert await ledger.read(lambda c: hours.lateness_of(c, OTHER_TEAM_ID, NOON + 1)) == {}


async def test_lost_runs_are_found_by_their_team_and_time(ledger: Ledger) -> None:
    job, other = a_job(), a_job(team_id=OTHER_TEAM_ID)
    made = [
        a_run(job, NOON, status=RunStatus.LOST, finished_at=NOON + 5),
        a_run(job, NOON + 1, status=RunStatus.LOST, finished_at=NOON - 5),
        a_run(job, NOON + 2, status=RunStatus.FAILED),
        a_run(other, NOON, status=RunStatus.LOST, finished_at=NOON + 6),
    ]
    await ledger.write(lambda c: runs.insert(c, made))
    assert await ledger.read(lambda c: hours.lost_since(c, DEFAULT_TEAM_ID, NOON)) == [NOON + 5]


async def test_old_notes_are_forgotten(ledger: Ledger) -> None:
    for at in (NOON, NOON + HOUR):
        await ledger.write(lambda c, at=at: hours.take(c, at))  # type: ignore[misc]
        await ledger.write(lambda c, at=at: hours.add_lateness(c, {("", at, 1): 1}))  # type: ignore[misc]
    await ledger.write(lambda c: hours.forget(c, NOON + HOUR))
    assert await ledger.read(lambda c: hours.counters_of(c, DEFAULT_TEAM_ID, 0)) == ([NOON + HOUR], {})
    assert set(await ledger.read(lambda c: hours.lateness_of(c, "", 0))) == {NOON + HOUR}
