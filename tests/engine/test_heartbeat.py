"""Silence, judged by the engine: real SQLite, time moved by hand (heartbeat.jsonl where it needs an engine)."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import structlog
from tests.engine.house import House, answered, at_once
from tests.storage.samples import HOUR, MINUTE, NOON

from zerocron.actions.monitors import Monitors, MonitorSpec, Seen
from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Arrival, Pings, Taken
from zerocron.core.errors import Unavailable, Unclear
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.monitor import GAP_MS, JUDGED_AFTER_MS, Ping, PingKind
from zerocron.core.sealing import Keyring
from zerocron.engine.heartbeat import look_at
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.monitors import FlipRow
from zerocron.storage.timetable.contract import monitor_member

TESTS = Path(__file__).parents[1]
CASES = [json.loads(line) for line in (TESTS / "core" / "heartbeat.jsonl").read_text("utf-8").splitlines()]
SECOND = 1_000


class Ward:
    """The monitors of a house, and the pings that come for them."""

    def __init__(self, house: House, tokens: TokenDirectory) -> None:
        self.house = house
        self.monitors = Monitors(ledger=house.ledger, timetable=house.timetable, clock=house.clock, tokens=tokens)
        self.pings = Pings(
            ledger=house.ledger,
            timetable=house.timetable,
            clock=house.clock,
            tokens=tokens,
            per_second=1_000,
            exclusive=True,
        )

    async def monitor(self, schedule: str = "every hour", grace: int = 60, **given: Any) -> Seen:
        spec = MonitorSpec(name="m", schedule=schedule, grace_period_seconds=grace, **given)
        seen, _ = await self.monitors.create(DEFAULT_TEAM_ID, spec)
        return seen

    async def ping(self, seen: Seen, kind: str = PingKind.SUCCESS) -> None:
        arrival = Arrival(Ping(kind, self.house.clock.now()), "GET", "", "", b"", 0)
        assert await self.pings.take(seen.monitor.id, arrival) == Taken.KEPT

    async def flips(self, seen: Seen) -> list[FlipRow]:
        """The oldest first."""
        return (await self.monitors.flips(DEFAULT_TEAM_ID, seen.monitor.id, limit=1_000))[::-1]

    async def shown(self, seen: Seen) -> list[str]:
        return [flip.after for flip in await self.flips(seen)]

    async def live(self, seconds: float, *, pulse: bool = True) -> None:
        """Let time pass; a node that can take pings says so meanwhile."""
        while seconds > 0:
            step = min(seconds, 5.0)
            await self.house.clock.advance(step)
            seconds -= step
            if pulse:
                await self.pings.pulse()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with House(tmp_path) as it:
        yield it


@pytest.fixture
async def ward(house: House) -> AsyncIterator[Ward]:
    keeper = await TokenKeeper.open(house.ledger, Keyring())
    tokens = TokenDirectory(ledger=house.ledger, clock=house.clock, keeper=keeper, exclusive=True)
    it = Ward(house, tokens)
    await it.pings.pulse()
    it.pings.start()
    yield it
    house.ledger.heal()
    await it.pings.stop()


async def test_silence_is_told_at_its_true_instant_and_once(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 60)
    await ward.ping(seen)
    begun = ward.house.clock.now()
    await ward.live(5 * 60 + 59)
    assert await ward.shown(seen) == ["up"]
    await ward.live(5 * 60)

    _, down = await ward.flips(seen)
    assert (down.before, down.after, down.reason) == ("up", "down", "silence")
    assert down.at == begun + 6 * MINUTE
    assert JUDGED_AFTER_MS - 50 <= down.noticed_at - down.at <= 1_500
    assert down.details == {
        "expected_at": begun + 5 * MINUTE,
        "last_ping_at": begun,
        "previous_since": begun,
        "missed": 1,
    }
    await ward.ping(seen)
    assert await ward.shown(seen) == ["up", "down", "up"]


async def test_pings_move_the_deadline_without_a_word_to_the_timetable(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 60)
    await ward.ping(seen)
    due = dict(ward.house.timetable._due)  # type: ignore[attr-defined]
    for _ in range(20):
        await ward.ping(seen)
        await ward.live(1)
    assert dict(ward.house.timetable._due) == due  # type: ignore[attr-defined]
    for _ in range(8):
        await ward.live(60)
        await ward.ping(seen)
    assert await ward.shown(seen) == ["up"]


async def test_a_new_monitor_says_nothing_however_long(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.live(400)
    assert await ward.shown(seen) == []


async def test_a_start_that_does_not_end_is_told(ward: Ward) -> None:
    seen = await ward.monitor("every day", 60, max_duration_seconds=120)
    await ward.ping(seen)
    await ward.live(10)
    await ward.ping(seen, PingKind.START)
    started = ward.house.clock.now()
    await ward.live(200)
    assert [(flip.at, flip.reason) for flip in await ward.flips(seen)][1:] == [(started + 120 * SECOND, "too_long")]


async def test_hb_049_ten_nodes_that_look_at_once_flip_once(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.ping(seen)
    await ward.house.stop()
    now = ward.house.clock.now() + 10 * MINUTE
    member = monitor_member(DEFAULT_TEAM_ID, seen.monitor.id)
    ledger = ward.house.ledger
    await ledger.write(lambda connection: monitor_rows.pulse(connection, now, gap_ms=10**12))
    looked = await asyncio.gather(*(ledger.write(lambda c: look_at(c, [member], now)) for _ in range(10)))

    assert sum(len(one.flips) for one in looked) == 1
    assert len({flip.id for one in looked for flip in one.flips}) == 1
    assert await ward.shown(seen) == ["up", "down"]


async def test_hb_051_053_a_flip_outlives_its_process_with_its_id(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.ping(seen)
    await ward.live(301)
    first = await ward.flips(seen)
    await ward.house.crash()
    await ward.house.restart(after=1)
    await ward.live(60)

    assert await ward.flips(seen) == first
    assert [flip.id for flip in first] == [f"{seen.monitor.id}.1", f"{seen.monitor.id}.2"]


async def test_hb_054_a_ledger_that_comes_back_is_used_again(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 60)
    await ward.ping(seen)
    ward.house.ledger.is_away = True
    await ward.house.clock.advance(10)
    with pytest.raises(Unavailable):
        await ward.ping(seen)
    ward.house.ledger.heal()
    await ward.live(400)
    assert await ward.shown(seen) == ["up", "down"]


async def test_hb_081_after_an_outage_nobody_is_blamed_within_the_first_grace(ward: Ward) -> None:
    monitors = [await ward.monitor("every 5 minutes", 60) for _ in range(30)]
    for seen in monitors:
        await ward.ping(seen)
    await ward.live(30)
    await ward.house.crash()
    await ward.house.restart(after=2 * 3_600)
    await ward.pings.pulse()
    await ward.live(60)
    assert [await ward.shown(seen) for seen in monitors] == [["up"]] * 30
    back = ward.house.clock.now() - 60 * SECOND
    await ward.live(310)
    downs = [(await ward.flips(seen))[-1] for seen in monitors]
    assert {flip.after for flip in downs} == {"down"}
    assert min(flip.at for flip in downs) >= back + 6 * MINUTE - 5_000


async def test_while_nobody_can_take_pings_nobody_goes_down(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 60)
    await ward.ping(seen)
    await ward.live(400, pulse=False)
    assert await ward.shown(seen) == ["up"]
    assert GAP_MS < 60_000


async def test_hb_082_a_clock_set_forward_and_back_blames_nobody(ward: Ward) -> None:
    seen = await ward.monitor("every hour", 60)
    await ward.ping(seen)
    await ward.live(30)
    clock = ward.house.clock
    clock.set(clock.now() + 3 * HOUR)
    await ward.live(60)
    clock.set(clock.now() - 3 * HOUR)
    await ward.live(60)
    await ward.ping(seen)
    assert await ward.shown(seen) == ["up"]
    assert (await ward.monitors.get(DEFAULT_TEAM_ID, seen.monitor.id)).monitor.watch.last_ping_at == clock.now()


async def test_a_clock_set_forward_and_back_does_not_keep_silence_from_being_noticed(ward: Ward) -> None:
    monitors = [await ward.monitor("every 5 minutes", 60), await ward.monitor("*/5 * * * *", 60)]
    for seen in monitors:
        await ward.ping(seen)
    await ward.live(30)
    clock = ward.house.clock
    clock.set(clock.now() + 3 * HOUR)
    await ward.live(60)
    await ward.ping(monitors[0])
    clock.set(clock.now() - 3 * HOUR)
    back = clock.now()
    await ward.live(60)
    assert [await ward.shown(seen) for seen in monitors] == [["up"]] * 2
    assert await ward.house.sql(f"SELECT count(*) FROM outages WHERE ended_at > {back + 10_000}") == [(0,)]
    await ward.live(600)
    for seen in monitors:
        down = (await ward.flips(seen))[-1]
        assert down.after == "down"
        assert down.at <= back + 12 * MINUTE


async def test_hb_083_a_backlog_of_deadlines_is_told_once_and_in_order(ward: Ward) -> None:
    monitors = [await ward.monitor(f"every {minutes} minutes", 0) for minutes in (9, 5, 7)]
    for seen in monitors:
        await ward.ping(seen)
    begun = ward.house.clock.now()
    await ward.house.crash()
    for _ in range(120):  # others take pings meanwhile, and nobody looks
        ward.house.clock.set(ward.house.clock.now() + 5_000)
        await ward.pings.pulse()
    await ward.house.restart()
    await ward.live(30)
    downs = [(await ward.flips(seen))[1:] for seen in monitors]
    assert [[(flip.after, flip.at) for flip in flips] for flips in downs] == [
        [("down", begun + minutes * MINUTE)] for minutes in (9, 5, 7)
    ]


async def test_a_ping_that_waits_for_its_commit_counts_from_when_it_came(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, silent = await ward.monitor("every 5 minutes", 0), await ward.monitor("every 4 minutes", 0)
    for one in (seen, silent):
        await ward.ping(one)
    ward.house.engine.heartbeat.pings_owed_since = lambda: ward.pings.owed_since
    write, goes_on = Pings._write_together, asyncio.Event()

    async def slow(self: Pings, batch: Any, *, wait: bool) -> None:
        await goes_on.wait()
        await write(self, batch, wait=wait)

    await ward.live(299)
    monkeypatch.setattr(Pings, "_write_together", slow)
    ping = asyncio.create_task(ward.ping(seen))
    await ward.live(10)
    assert await ward.shown(silent) == ["up", "down"], "whose deadline was before that ping is judged"
    goes_on.set()
    await ping
    await ward.live(10)
    assert await ward.shown(seen) == ["up"]
    assert ward.pings.owed_since is None


@pytest.mark.parametrize(("grace", "refused_after"), [(0, 299), (60, 330), (400, 650)])
async def test_a_ping_that_was_refused_is_not_held_against_its_monitor(
    ward: Ward, grace: int, refused_after: int
) -> None:
    """An outage of a few seconds leaves no gap in the pulse."""
    seen = await ward.monitor("every 5 minutes", grace)
    await ward.ping(seen)
    ward.house.engine.heartbeat.pings_owed_since = lambda: ward.pings.owed_since
    await ward.live(refused_after)
    ward.house.ledger.is_away = True
    with pytest.raises(Unavailable):
        await ward.ping(seen)
    refused_at = ward.house.clock.now()
    await ward.house.clock.advance(4)
    with pytest.raises(Unavailable):
        await ward.pings.pulse()
    failed_at = ward.house.clock.now()
    ward.house.ledger.heal()
    await ward.live(60)
    assert await ward.shown(seen) == ["up"]
    assert await ward.house.sql("SELECT started_at, ended_at FROM outages") == [(refused_at, failed_at)]
    down_at = (await ward.monitors.get(DEFAULT_TEAM_ID, seen.monitor.id)).verdict.down_at
    assert down_at is not None
    assert 0 <= down_at - refused_at - (300 + grace) * SECOND <= failed_at - refused_at


async def test_the_first_ping_after_an_outage_blames_nobody_for_the_one_that_was_refused(ward: Ward) -> None:
    """It looks back itself, before the pulse has recorded anything."""
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.ping(seen)
    await ward.live(299)
    ward.house.ledger.is_away = True
    with pytest.raises(Unavailable):
        await ward.ping(seen)
    ward.house.ledger.heal()
    ward.house.clock.set(ward.house.clock.now() + 3_000)
    await ward.ping(seen)
    assert await ward.shown(seen) == ["up"]


async def test_pings_that_others_were_refused_speak_for_who_could_not_even_connect(ward: Ward) -> None:
    seen, other = await ward.monitor("every 5 minutes", 0), await ward.monitor("every hour", 0)
    for one in (seen, other):
        await ward.ping(one)
    await ward.live(299)
    ward.house.ledger.is_away = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            await ward.ping(other)
        ward.house.clock.set(ward.house.clock.now() + 1_500)
    ward.house.ledger.heal()
    await ward.ping(seen)
    assert await ward.shown(seen) == ["up"]


async def test_a_timetable_that_lost_a_deadline_costs_seconds(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.ping(seen)
    await ward.live(299)
    await ward.house.timetable.clear()
    await ward.live(10)
    assert await ward.shown(seen) == ["up", "down"]


async def test_deadlines_are_looked_at_while_every_place_is_taken(tmp_path: Path) -> None:
    async with House(tmp_path, capacity=1) as house:
        keeper = await TokenKeeper.open(house.ledger, Keyring())
        tokens = TokenDirectory(ledger=house.ledger, clock=house.clock, keeper=keeper, exclusive=True)
        ward = Ward(house, tokens)
        await ward.pings.pulse()
        ward.pings.start()
        stuck = asyncio.Event()

        async def hangs(request: Any) -> Any:
            await stuck.wait()
            return await at_once(answered())(request)

        house.target.on("https://example.com/hook", hangs)
        await house.create("* * * * *", timeout_seconds=900)
        seen = await ward.monitor("every 5 minutes", 0)
        await ward.ping(seen)
        await ward.live(310)
        assert await ward.shown(seen) == ["up", "down"]
        stuck.set()
        await ward.pings.stop()


DAMAGE = {
    "its zone is gone": "UPDATE monitors SET timezone = 'Nowhere/Land' WHERE id = '{}'",
    "its schedule makes no sense": "UPDATE monitors SET schedule_cron = '99 nonsense' WHERE id = '{}'",
    "its schedule is empty": "UPDATE monitors SET schedule_cron = NULL WHERE id = '{}'",
    "its runs are no JSON": "UPDATE monitors SET runs = '{{broken' WHERE id = '{}'",
    "its runs are something else": "UPDATE monitors SET runs = '[1]', ended_runs = '7' WHERE id = '{}'",
    "its next flip is there already": "INSERT INTO flips SELECT monitor_id, number + 1, team_id, at, noticed_at,"
    " before, after, reason, details FROM flips WHERE monitor_id = '{}'",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_monitor_that_cannot_be_judged_keeps_nobody_else_from_it(ward: Ward, damage: str) -> None:
    others = [await ward.monitor("every 5 minutes", 0) for _ in range(3)]
    bad = await ward.monitor("* * * * *", 0)
    for seen in (*others, bad):
        await ward.ping(seen)
    await ward.house.sql(DAMAGE[damage].format(bad.monitor.id))
    with structlog.testing.capture_logs() as logs:
        await ward.live(310)

    assert [await ward.shown(seen) for seen in others] == [["up", "down"]] * 3
    assert ward.house.engine.stalled() == []
    complaints = [one for one in logs if one["event"] in ("monitor_not_judged", "monitor_damaged")]
    assert 1 <= len(complaints) <= 2, "what is wrong with it is told once, of each thing"
    await ward.monitors.page(DEFAULT_TEAM_ID)
    await ward.ping(others[0])
    assert (await ward.shown(others[0]))[-1] == "up"


async def test_jobs_are_brought_into_the_timetable_whatever_a_monitor_looks_like(ward: Ward) -> None:
    bad = await ward.monitor("* * * * *", 0)
    await ward.ping(bad)
    await ward.house.sql(DAMAGE["its zone is gone"].format(bad.monitor.id))
    await ward.house.create("2 12 * * *")
    await ward.house.crash()
    await ward.house.restart(after=90)
    await ward.live(60)
    assert len(ward.house.target.requests) == 1


async def test_one_damaged_monitor_does_not_hide_the_others_of_its_team(ward: Ward) -> None:
    good = await ward.monitor("every 5 minutes", 0)
    for damage in DAMAGE.values():
        bad = await ward.monitor("* * * * *", 0)
        await ward.ping(bad)
        await ward.house.sql(damage.format(bad.monitor.id))
    await ward.house.sql(f"UPDATE monitors SET tags = 'x', token_sealed = 'x' WHERE id = '{bad.monitor.id}'")
    with structlog.testing.capture_logs():
        page, _ = await ward.monitors.page(DEFAULT_TEAM_ID)
    assert len(page) == 1 + len(DAMAGE)
    assert {seen.monitor.id: seen.token for seen in page}[good.monitor.id] == good.token


async def test_a_ping_of_a_damaged_monitor_fails_alone_and_in_one_commit(ward: Ward) -> None:
    good, bad = await ward.monitor("every 5 minutes", 0), await ward.monitor("* * * * *", 0)
    await ward.ping(bad)
    await ward.house.sql(DAMAGE["its zone is gone"].format(bad.monitor.id))
    await ward.house.sql(f"UPDATE monitors SET deadline_at = 1, health = 'up' WHERE id = '{bad.monitor.id}'")
    now = ward.house.clock.now()
    writes = ward.house.ledger.writes
    with structlog.testing.capture_logs():
        taken = await asyncio.gather(
            *(
                ward.pings.take(seen.monitor.id, Arrival(Ping("success", now), "GET", "", "", b"", 0))
                for seen in (bad, good)
            )
        )
    assert taken == [Taken.FAILED, Taken.KEPT]
    assert ward.house.ledger.writes == writes + 1


@pytest.mark.parametrize("name", ["sweep", "heartbeat"])
async def test_a_loop_that_fails_for_ever_is_told_as_stalled(
    house: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def failing() -> float:
        raise ZeroDivisionError

    loop = next(loop for loop in house.engine.loops if loop.name == name)
    with structlog.testing.capture_logs():
        monkeypatch.setattr(loop, "_tick", failing)
        await house.clock.advance(50)
        assert house.engine.stalled() == []
        await house.clock.advance(20)
        assert house.engine.stalled() == [name]


async def test_a_pause_until_an_instant_ends_then(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 60)
    await ward.ping(seen)
    until = ward.house.clock.now() + 7 * MINUTE
    await ward.monitors.pause(DEFAULT_TEAM_ID, seen.monitor.id, until)
    await ward.live(7 * 60 + 5)

    flips = await ward.flips(seen)
    assert [(flip.after, flip.reason) for flip in flips] == [("up", "ping"), ("paused", "paused"), ("up", "resumed")]
    assert flips[-1].at == until
    await ward.live(361)
    assert (await ward.flips(seen))[-1].at == until + 6 * MINUTE


async def test_a_deleted_monitor_is_looked_at_no_more(ward: Ward) -> None:
    seen = await ward.monitor("every 5 minutes", 0)
    await ward.ping(seen)
    await ward.monitors.delete(DEFAULT_TEAM_ID, seen.monitor.id)
    await ward.live(600)
    assert await ward.house.sql("SELECT count(*) FROM flips WHERE after = 'down'") == [(0,)]
    assert await ward.house.timetable.size() == 0


async def test_history_is_kept_short_and_failures_longer(ward: Ward) -> None:
    seen = await ward.monitor("every hour", 60)
    await ward.ping(seen, PingKind.FAIL)
    for _ in range(1_200):
        await ward.ping(seen)
    await ward.live(30)

    numbers = [row[0] for row in await ward.house.sql("SELECT number FROM pings ORDER BY number")]
    assert numbers == [1, *range(202, 1_202)]
    await ward.monitors.delete(DEFAULT_TEAM_ID, seen.monitor.id)
    await ward.live(30)
    for table in ("pings", "flips", "monitors"):
        assert await ward.house.sql(f"SELECT count(*) FROM {table}") == [(0,)]


def test_now_is_noon() -> None:
    assert NOON % HOUR == 0


# every line of heartbeat.jsonl has its place

CORE, API, HERE = "core/test_monitor.py", "api/test_pings.py", "engine/test_heartbeat.py"
SLOT = "test_the_expected_slot_and_the_end_of_its_grace"
ELSEWHERE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("hb-007", "hb-008", "hb-013", "hb-014", "hb-015", "hb-021", "hb-022", "hb-024"), (CORE, SLOT)),
    "hb-040": ("api/test_monitors.py", "test_pause_resume_and_a_pause_that_ends_itself"),
    "hb-053": (HERE, "test_hb_051_053_a_flip_outlives_its_process_with_its_id"),
    "hb-067": (API, "test_each_method_counts"),
    "hb-068": (API, "test_a_body_is_taken_as_it_is"),
    "hb-070": (API, "test_a_body_is_taken_as_it_is"),
    "hb-072": (API, "test_hb_071_072_unknown_tokens_get_one_answer"),
    "hb-078": (API, "test_a_flood_of_one_token_is_told_to_slow_down"),
}
"""Lines whose test does not carry their number in its name."""


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("name", [case["id"] for case in CASES])
def test_every_line_has_a_test(name: str) -> None:
    if name in ELSEWHERE:
        path, test = ELSEWHERE[name]
        assert test in names_in(path)
        return
    prefix = f"test_{name.replace('-', '_')}_"
    assert any(test.startswith(prefix) for path in (CORE, API, HERE) for test in names_in(path)), name


@pytest.mark.parametrize("fate", ["committed", "rolled back"])
@pytest.mark.parametrize("verb", ["delete", "pause"])
async def test_the_timetable_follows_a_change_of_a_monitor_whose_answer_is_lost(
    ward: Ward, verb: str, fate: Literal["committed", "rolled back"]
) -> None:
    house = ward.house
    seen = await ward.monitor("every minute", 10)
    await ward.ping(seen)
    await ward.live(1)
    member, due = monitor_member(DEFAULT_TEAM_ID, seen.monitor.id), dict(house.timetable._due)  # type: ignore[attr-defined]
    assert member in due
    lost = [fate]
    house.ledger.lose_answer = lambda _result: lost.pop() if lost else None
    with pytest.raises(Unclear):
        await getattr(ward.monitors, verb)(DEFAULT_TEAM_ID, seen.monitor.id)
    await ward.live(1)
    now_due = dict(house.timetable._due)  # type: ignore[attr-defined]
    assert now_due.get(member) == (None if fate == "committed" else due[member])
