"""What is counted beside the runs: once an hour by whoever comes first, and by every node for itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import structlog
from tests.engine.house import WatchedLedger
from tests.storage.samples import HOUR, NOON, a_job, keep_counted, sqlite_ledger
from tests.support.clock import ManualClock

from zerocron.app import _stop_and_save
from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.histogram import size_of
from zerocron.core.hours import Totals
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.engine.run import Loop
from zerocron.engine.tally import Lateness, Tally
from zerocron.metrics import Metrics
from zerocron.storage.ledger import hours
from zerocron.storage.ledger.database import SqliteLedger


class Away:
    """A ledger that cannot be used."""

    async def write(self, _transaction: object) -> None:
        raise Unavailable("The database cannot be used now.")

    read = write

    async def close(self) -> None: ...


async def test_two_nodes_note_the_counters_once_an_hour(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        clock = ManualClock(NOON + 30_000)
        first, second = (Tally(ledger=ledger, clock=clock, lateness=Lateness()) for _ in range(2))
        await first.tick()
        await ledger.write(lambda c: keep_counted(c, a_job(next_run_at=None), 4, 1, 0))
        await second.tick()
        await first.tick()
        assert await counters(ledger) == ([NOON], {})
        await clock.advance((HOUR - 30_000) / 1000)
        await second.tick()
        await first.tick()
        assert await counters(ledger) == ([NOON, NOON + HOUR], {NOON + HOUR: Totals(4, 1, 0)})


async def counters(ledger: SqliteLedger) -> object:
    return await ledger.read(lambda c: hours.counters_of(c, DEFAULT_TEAM_ID, 0))


async def test_it_comes_back_when_the_hour_begins(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        clock = ManualClock(NOON + HOUR - 4_000)
        tally = Tally(ledger=ledger, clock=clock, lateness=Lateness())
        assert await tally.tick() == 4
        await clock.advance(4)
        assert await tally.tick() == 15


async def test_lateness_is_written_down_once_and_for_all_teams(tmp_path: Path) -> None:
    async with sqlite_ledger(tmp_path) as ledger:
        lateness = Lateness()
        tally = Tally(ledger=ledger, clock=ManualClock(NOON), lateness=lateness)
        for team in ("a", "a", "b"):
            lateness.note(team, NOON + 1_000, 300)
        await tally.tick()
        await tally.tick()
        lateness.note("a", NOON + HOUR, 2)
        await tally.save()
        size = size_of(300)
        for team, count in (("a", 2), ("b", 1), (hours.EVERYBODY, 3)):
            found = await ledger.read(lambda c, team=team: hours.lateness_of(c, team, 0))  # type: ignore[misc]
            assert found[NOON] == {size: count}
        assert (await ledger.read(lambda c: hours.lateness_of(c, "a", 0)))[NOON + HOUR] == {size_of(2): 1}


async def test_what_could_not_be_written_is_kept(tmp_path: Path) -> None:
    lateness = Lateness()
    lateness.note("a", NOON, 5)
    clock = ManualClock(NOON)
    with pytest.raises(Unavailable):
        await Tally(ledger=Away(), clock=clock, lateness=lateness).save()  # type: ignore[arg-type]
    lateness.note("a", NOON, 5)
    async with sqlite_ledger(tmp_path) as ledger:
        await Tally(ledger=ledger, clock=clock, lateness=lateness).save()
        for team in ("a", hours.EVERYBODY):
            found = await ledger.read(lambda c, team=team: hours.lateness_of(c, team, 0))  # type: ignore[misc]
            assert found == {NOON: {5: 2}}


@pytest.mark.parametrize(("fate", "kept"), [("committed", {NOON: {5: 2}}), ("rolled back", {})])
async def test_what_was_perhaps_written_is_not_written_again_and_the_log_says_so(
    tmp_path: Path, fate: Literal["committed", "rolled back"], kept: object
) -> None:
    lateness = Lateness()
    async with sqlite_ledger(tmp_path) as inner:
        ledger = WatchedLedger(inner)
        tally = Tally(ledger=ledger, clock=ManualClock(NOON), lateness=lateness)
        for _ in range(2):
            lateness.note("a", NOON, 5)
        ledger.lose_answer = lambda _result: fate
        with structlog.testing.capture_logs() as logs, pytest.raises(Unclear):
            await tally.save()
        assert [(entry["event"], entry["requests"]) for entry in logs] == [("lateness_perhaps_not_counted", 2)]
        ledger.heal()
        await tally.save()
        for team in ("a", hours.EVERYBODY):
            assert await inner.read(lambda c, team=team: hours.lateness_of(c, team, 0)) == kept  # type: ignore[misc]


@pytest.mark.parametrize("error", [Unavailable("The database is away."), Unclear("Its answer was lost.")])
async def test_what_cannot_be_saved_at_the_end_is_told_and_the_stop_goes_on(error: Unavailable) -> None:
    async def save() -> float:
        raise error

    clock = ManualClock(NOON)
    loop = Loop("tally", save, clock=clock, metrics=Metrics())
    loop.start()
    with structlog.testing.capture_logs() as logs:
        await _stop_and_save(loop, save)
    assert [(entry["loop"], entry["reason"]) for entry in logs if entry["event"] == "not_saved_at_stop"] == [
        ("tally", error.message)
    ]
