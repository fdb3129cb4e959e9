"""A monitor whose row somebody holds keeps nobody else's pings waiting (PROMISES C 29), on PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.storage.samples import postgres_ledger
from tests.storage.test_monitors_contract import a_monitor, keep

from zerocron.actions import pings as actions
from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Arrival, Pings, Taken
from zerocron.clock import SystemClock
from zerocron.core.errors import Unavailable
from zerocron.core.monitor import Monitor, Ping, PingKind
from zerocron.storage.ledger import monitors as rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.memory import MemoryTimetable

CLOCK = SystemClock()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with postgres_ledger(tmp_path) as it:
        yield it


@pytest.fixture
async def pings(ledger: Ledger) -> AsyncIterator[Pings]:
    tokens = TokenDirectory(ledger=ledger, clock=CLOCK, keeper=TokenKeeper(b"k" * 32), exclusive=False)
    it = Pings(
        ledger=ledger, timetable=MemoryTimetable(), clock=CLOCK, tokens=tokens, per_second=1_000, exclusive=False
    )
    it.start()
    yield it
    await it.stop()


class Holder:
    """Somebody who holds a monitor's row until told to let go."""

    def __init__(self, ledger: Ledger, monitor: Monitor) -> None:
        self._ledger = ledger
        self._monitor = monitor
        self._has, self._let_go = asyncio.Event(), threading.Event()

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def hold(connection: Connection) -> None:
            rows.lock(connection, [self._monitor.id], wait=True)
            loop.call_soon_threadsafe(self._has.set)
            while not self._let_go.is_set():
                connection.exec_driver_sql("SELECT pg_sleep(0.01)")

        self._task = asyncio.create_task(self._ledger.write(hold))
        await self._has.wait()

    async def __aexit__(self, *_: object) -> None:
        self._let_go.set()
        await self._task


async def take(pings: Pings, monitor: Monitor, kind: str = PingKind.SUCCESS) -> Taken:
    return await pings.take(monitor.id, Arrival(Ping(kind, CLOCK.now()), "POST", "", "", b"", 0))


async def kinds(ledger: Ledger, monitor: Monitor) -> list[str]:
    """The oldest first."""
    found = await ledger.read(
        lambda connection: rows.pings_page(connection, monitor.id, kind=None, before=None, limit=9)
    )
    return [ping.kind for ping in found][::-1]


async def test_others_are_answered_while_one_is_held_and_its_own_keep_their_order(ledger: Ledger, pings: Pings) -> None:
    held, free = a_monitor(), a_monitor()
    await keep(ledger, held, free)
    async with Holder(ledger, held):
        waiting = [asyncio.create_task(take(pings, held, kind)) for kind in (PingKind.START, PingKind.LOG)]
        assert await take(pings, free) == Taken.KEPT
        waiting.append(asyncio.create_task(take(pings, held)))
        assert await take(pings, free) == Taken.KEPT
        assert not any(task.done() for task in waiting)
        assert pings.owed_since is not None
    assert await asyncio.gather(*waiting) == [Taken.KEPT] * 3
    assert await kinds(ledger, held) == ["start", "log", "success"]
    assert await kinds(ledger, free) == ["success", "success"]
    assert pings.owed_since is None


async def test_who_holds_one_for_too_long_costs_its_pings_and_no_verdict_of_others(
    ledger: Ledger, pings: Pings
) -> None:
    held = a_monitor()
    await keep(ledger, held)
    assert await take(pings, held) == Taken.KEPT
    async with Holder(ledger, held):
        with pytest.raises(Unavailable):
            await take(pings, held)
        await pings.pulse()
    await pings.pulse()
    assert await ledger.read(lambda connection: rows.outages_since(connection, 0)) == []


async def test_a_monitor_that_is_gone_is_unknown(ledger: Ledger, pings: Pings) -> None:
    gone = a_monitor()
    await keep(ledger, gone)
    await ledger.write(lambda connection: rows.delete(connection, gone.team_id, gone.id, CLOCK.now()))
    assert await take(pings, gone) == Taken.UNKNOWN


async def test_a_stop_waits_for_what_is_in_hand_and_takes_nothing_more(ledger: Ledger, pings: Pings) -> None:
    held, free = a_monitor(), a_monitor()
    await keep(ledger, held, free)
    async with Holder(ledger, held):
        waiting = [asyncio.create_task(take(pings, one)) for one in (held, free, held)]
        assert await waiting[1] == Taken.KEPT
        stopping = asyncio.create_task(pings.stop())
    await stopping
    assert [await task for task in waiting] == [Taken.KEPT] * 3
    with pytest.raises(Unavailable):
        await take(pings, free)


@pytest.fixture
def commits(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry a commit."""
    made: list[int] = []
    write = ledger.write

    async def counted(transaction: Callable[[Connection], Any]) -> Any:
        made.append(len(made))
        return await write(transaction)

    monkeypatch.setattr(ledger, "write", counted)
    return made


async def test_who_has_been_answered_and_comes_again_shares_the_commit_of_the_others_who_do(
    ledger: Ledger, pings: Pings, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first one back would be written alone, and all others wait for it."""
    monkeypatch.setattr(actions, "GATHER_SECONDS_MAX", 20.0)  # it is their number that ends the wait
    monkeypatch.setattr(actions, "GATHER_STEP_SECONDS", 20.0)
    monitors = [a_monitor() for _ in range(5)]
    await keep(ledger, *monitors)
    commits.clear()

    async def sender(number: int) -> list[Taken]:
        """Sends again as soon as it is answered, a little later than the one before it."""
        answers = []
        for _ in range(4):
            answers.append(await take(pings, monitors[number]))
            await CLOCK.sleep(number * 0.002)
        return answers

    assert await asyncio.gather(*map(sender, range(5))) == [[Taken.KEPT] * 4] * 5
    assert len(commits) == 4


async def test_nobody_waits_long_for_those_who_do_not_come_again(ledger: Ledger, pings: Pings) -> None:
    monitors = [a_monitor() for _ in range(5)]
    await keep(ledger, *monitors)
    await asyncio.gather(*(take(pings, monitor) for monitor in monitors))
    begun = CLOCK.monotonic()
    assert await take(pings, monitors[0]) == Taken.KEPT
    assert CLOCK.monotonic() - begun < 2  # and not for as long as it takes the others
