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

from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Arrival, Pings, Taken
from zerocron.clock import SystemClock, a_turn
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


async def test_pings_that_come_while_others_still_come_share_their_commit(
    ledger: Ledger, pings: Pings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitors = [a_monitor() for _ in range(5)]
    await keep(ledger, *monitors)
    commits = 0
    write = ledger.write

    async def counted(transaction: Callable[[Connection], Any]) -> Any:
        nonlocal commits
        commits += 1
        return await write(transaction)

    monkeypatch.setattr(ledger, "write", counted)

    async def one_turn_later(first: int) -> list[Taken]:
        """Each comes at the turn of the event loop after the one before it."""
        coming = asyncio.create_task(take(pings, monitors[first]))
        await a_turn()
        later = await one_turn_later(first + 1) if first + 1 < len(monitors) else []
        return [await coming, *later]

    assert await one_turn_later(0) == [Taken.KEPT] * 5
    assert commits == 1
