"""The n-th write of a journey fails, for every n; afterwards everything is accounted for.

Four ways to fail: refused (nothing is written), committed with the answer lost (of which the ledger may say that nobody
knows), and an error nobody expects. And the ledger away for a while. The journey has each kind of overlap, retries, a
job that gives up, triggers, an edit and a pause; it runs in virtual time (`virtual.py`) over real SQLite, and the
checker judges it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.checker import Violation
from tests.faults.stage import Stage, open_ledger, quiet
from tests.faults.virtual import Outage

from zerocron.actions.jobs import JobSpec
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, OnLost, Overlap, RetryPolicy, TriggeredBy
from zerocron.storage.ledger.database import SqliteLedger

pytestmark = pytest.mark.timeout(300)

SPECS = [
    JobSpec("plain", "every 8 seconds", "http://target.test/plain"),
    JobSpec("retried", "*/15 * * * * *", "http://target.test/retried", retry=RetryPolicy(3, "fixed", 2)),
    JobSpec("queued", "every 6 seconds", "http://target.test/queued", overlap=Overlap.QUEUE, catchup=Catchup.ALL),
    JobSpec("allowed", "every 9 seconds", "http://target.test/allowed", overlap=Overlap.ALLOW),
    JobSpec("careful", "every 11 seconds", "http://target.test/careful", on_lost=OnLost.GIVE_UP, catchup=Catchup.NONE),
]
ACTS = {
    "/plain": lambda _before, _attempt: (0.1, 200),
    "/retried": lambda _before, attempt: (0.1, 200 if attempt > 2 else 500),
    "/queued": lambda before, _attempt: (9 if before % 4 == 1 else 0.2, 200),
    "/allowed": lambda before, _attempt: (11 if before % 3 == 0 else 0.2, 200),
    "/careful": lambda before, _attempt: (0.1, 404 if before == 1 else 200),
}
SETTLE_SECONDS = 18
"""The longest that the loops take to come round to what failed; an attempt that nobody executes takes longer."""


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    with quiet():
        yield


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[SqliteLedger]:
    with open_ledger(tmp_path / "ledger") as ledger:
        yield ledger


def _play(inner: SqliteLedger, folder: Path, outage: Outage | None) -> tuple[Stage, list[Violation]]:
    folder.mkdir()
    stage = Stage(inner, folder, ACTS)

    async def journey() -> None:
        ids = [(await stage.operate("create", stage.jobs.create(DEFAULT_TEAM_ID, spec))).id for spec in SPECS]
        stage.ledger.writes, stage.ledger.outage = 0, outage
        await stage.start()
        for seconds, act in _verbs(stage, ids):
            await stage.clock.sleep(seconds)
            await act()
        stage.ledger.outage = None
        if stage.ledger.failed:
            await stage.clock.sleep(SETTLE_SECONDS)
        await stage.caught_up()
        await stage.stop()

    return stage, stage.play(journey)


def _verbs(stage: Stage, ids: list[str]) -> list[tuple[float, Callable[[], Awaitable[Any]]]]:
    """What people do, and how long after the thing before."""
    team, plain, retried, queued = DEFAULT_TEAM_ID, *ids[:3]

    def trigger(job_id: str) -> Awaitable[Any]:
        return stage.operate("trigger", stage.jobs.trigger(team, job_id, triggered_by=TriggeredBy.API), job_id)

    def edit(spec: JobSpec) -> JobSpec:
        return dataclasses.replace(spec, schedule="every 7 seconds")

    return [
        (7.3, lambda: trigger(queued)),
        (1.4, lambda: trigger(plain)),
        (2.1, lambda: stage.operate("edit", stage.jobs.edit(team, plain, edit), plain)),
        (10.2, lambda: stage.operate("pause", stage.jobs.pause(team, retried), retried)),
        (4.0, lambda: stage.operate("resume", stage.jobs.resume(team, retried), retried)),
    ]


def test_without_a_fault(inner: SqliteLedger, tmp_path: Path) -> None:
    """The journey has what it is meant to have, and is clean."""
    stage, found = _play(inner, tmp_path / "clean", None)
    assert not found, "\n".join(map(str, found))
    assert stage.ledger.writes > 40


@pytest.mark.parametrize("how", ["before", "after", "unclear", "error"])
def test_each_write_fails_once(inner: SqliteLedger, tmp_path: Path, how: Any) -> None:
    """For every n of the journey; the last one is the first that meets no write any more."""
    broken: list[str] = []
    number = 0
    while True:
        number += 1
        stage, found = _play(inner, tmp_path / f"write-{number}", Outage(how, number))
        if not stage.ledger.failed:
            break
        broken += [f"write {number}: {violation}" for violation in found]
    assert number > 40
    assert not broken, "\n".join(broken[:40])


@pytest.mark.parametrize("seconds", [3, 20])
def test_the_ledger_is_away_for_a_while(inner: SqliteLedger, tmp_path: Path, seconds: int) -> None:
    """No write succeeds for some seconds: what runs is recorded afterwards, and nothing is lost or sent twice."""
    broken: list[str] = []
    for begin in (4.9, 7.5, 8.9, 15):
        outage = Outage("before", between=(begin, begin + seconds))
        stage, found = _play(inner, tmp_path / f"away-{begin}", outage)
        assert stage.ledger.failed
        broken += [f"away from {begin}: {violation}" for violation in found]
    assert not broken, "\n".join(broken[:40])


def test_no_slot_overtakes_a_queued_one(inner: SqliteLedger, tmp_path: Path) -> None:
    """One run waits for its retry, one in the queue behind it, and a third slot comes due while nobody is there."""
    spec = JobSpec("job", "every 3 seconds", "http://target.test/job", overlap=Overlap.QUEUE)
    spec = dataclasses.replace(spec, retry=RetryPolicy(2, "fixed", 2))
    stage = Stage(inner, tmp_path, {"/job": lambda before, _: (0.1, 200) if before else (3.1, 500)})

    async def journey() -> None:
        await stage.operate("create", stage.jobs.create(DEFAULT_TEAM_ID, spec))
        await stage.start()
        await stage.clock.sleep(6.5)  # the first failed at 6.1 and is to be tried again at 8.1; the second waits
        await stage.stop()
        await stage.clock.sleep(2.8)  # the third is due at 9
        await stage.start()
        await stage.clock.sleep(8)
        await stage.stop()

    found = stage.play(journey)
    assert not found, "\n".join(map(str, found))
