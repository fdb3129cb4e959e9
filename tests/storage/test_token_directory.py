"""What a node knows of the tokens that other nodes made, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.storage.samples import DAY, HOUR, NOON, postgres_ledger
from tests.storage.test_monitors_contract import a_monitor, keep
from tests.support.clock import ManualClock

from zerocron.actions.monitors import Monitors, MonitorSpec
from zerocron.actions.ping_tokens import OVERLAP_MS, TokenDirectory, TokenKeeper
from zerocron.clock import SystemClock
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.storage.ledger import monitors as rows
from zerocron.storage.ledger import ping_tokens as token_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.memory import MemoryTimetable

KEEPER = TokenKeeper(b"k" * 32)


def token_of(number: int) -> str:
    return f"{number:064x}"


async def make(ledger: Ledger, number: int, changed_at: int) -> str:
    """The id of a monitor with that token."""
    one = a_monitor(token_hash=KEEPER.digest(token_of(number)), token_changed_at=changed_at)
    await keep(ledger, one)
    return one.id


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def tokens(ledger: Ledger, clock: ManualClock) -> TokenDirectory:
    return TokenDirectory(ledger=ledger, clock=clock, keeper=KEEPER, exclusive=False)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many there were since it was asked last."""
    seen: list[Any] = []
    read = token_rows.changed

    def counted(*arguments: Any, **named: Any) -> Any:
        found = read(*arguments, **named)
        seen.extend(found)
        return found

    def count() -> int:
        number = len(seen)
        seen.clear()
        return number

    monkeypatch.setattr(token_rows, "changed", counted)
    return count


async def test_what_changed_long_ago_is_read_once(
    ledger: Ledger, tokens: TokenDirectory, clock: ManualClock, rows_read: Callable[[], int]
) -> None:
    made = [await make(ledger, number, NOON - number) for number in range(3)]
    await tokens.load()
    assert [tokens.known(token_of(number)) for number in range(3)] == made
    assert rows_read() == 3
    clock.set(NOON + OVERLAP_MS + 1)
    await tokens.load()
    rows_read()
    await tokens.load()
    assert rows_read() == 0, "an import is read again every second until somebody makes one more"


async def test_a_commit_that_comes_later_than_its_instant_is_learned(
    ledger: Ledger, tokens: TokenDirectory, clock: ManualClock
) -> None:
    await make(ledger, 1, NOON)
    await tokens.load()
    late = await make(ledger, 2, NOON - OVERLAP_MS + 1_000)
    await tokens.load()
    assert tokens.known(token_of(2)) == late


@pytest.mark.parametrize("back_ms", [1_000, HOUR, DAY])
async def test_a_clock_that_is_set_back_hides_no_change(
    ledger: Ledger, tokens: TokenDirectory, clock: ManualClock, back_ms: int
) -> None:
    await make(ledger, 1, NOON)
    await tokens.load()
    clock.set(NOON - back_ms)
    made = await make(ledger, 2, NOON - back_ms)
    await tokens.load()
    assert tokens.known(token_of(2)) == made
    await ledger.write(lambda c: rows.delete(c, a_monitor().team_id, made, NOON - back_ms))
    await tokens.load()
    assert tokens.known(token_of(2)) is None


async def test_a_node_that_stood_still_before_its_change_hides_it_from_no_other(tmp_path: Path) -> None:
    """Between a look at its clock and its transaction it lost ten minutes."""
    async with postgres_ledger(tmp_path) as ledger:
        behind = ManualClock(SystemClock().now() - 10 * 60_000)
        own = TokenDirectory(ledger=ledger, clock=behind, keeper=KEEPER, exclusive=False)
        other = TokenDirectory(ledger=ledger, clock=SystemClock(), keeper=KEEPER, exclusive=False)
        verbs = Monitors(ledger=ledger, timetable=MemoryTimetable(), clock=behind, tokens=own)
        await other.load()

        made, _ = await verbs.create(DEFAULT_TEAM_ID, MonitorSpec("one", "every hour"))
        await other.load()
        assert other.known(made.token) == made.monitor.id
        rotated = await verbs.rotate_token(DEFAULT_TEAM_ID, made.monitor.id)
        await other.load()
        assert (other.known(made.token), other.known(rotated.token)) == (None, made.monitor.id)
        await verbs.delete(DEFAULT_TEAM_ID, made.monitor.id)
        await other.load()
        assert other.known(rotated.token) is None
