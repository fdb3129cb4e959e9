"""What people are told of monitors: real SQLite, time moved by hand, and a kind of channel that remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.house import House
from tests.engine.test_heartbeat import Ward
from tests.engine.test_notifier import Post
from tests.storage.samples import MINUTE
from tests.support.channels import FakeKind

from zerocron.actions.ping_tokens import TokenDirectory, TokenKeeper
from zerocron.actions.pings import Arrival, Taken
from zerocron.core.alerting import MONITOR_DEFAULT, Notify
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.monitor import GAP_MS, Ping, PingKind
from zerocron.core.notice import Notice
from zerocron.core.sealing import new_master_key, read_master_keys
from zerocron.engine.heartbeat import look_at
from zerocron.storage.timetable.contract import monitor_member


class Watchtower(Ward):
    """Monitors, and one channel that is told of them."""

    post: Post

    def told(self) -> list[str]:
        return [kind.removeprefix("monitor.") for kind in self.post.kind.kinds()]

    def notices(self) -> list[Notice]:
        return [notice for _, envelope in self.post.kind.sent for notice in envelope.notices]


@pytest.fixture
async def tower(tmp_path: Path) -> AsyncIterator[Watchtower]:
    kind = FakeKind()
    keyring = read_master_keys(new_master_key(), source="test")
    async with House(tmp_path, kinds={"fake": kind}, keyring=keyring) as house:
        keeper = await TokenKeeper.open(house.ledger, keyring)
        it = Watchtower(house, TokenDirectory(ledger=house.ledger, clock=house.clock, keeper=keeper, exclusive=True))
        it.post = Post(house, kind, keyring)
        await it.post.channel()
        await it.pings.pulse()
        it.pings.start()
        yield it
        house.ledger.heal()
        await it.pings.stop()


async def test_down_and_up_are_told_with_their_true_instants(tower: Watchtower) -> None:
    seen = await tower.monitor("every 5 minutes", 60, tags=("db",))
    begun = tower.house.clock.now()
    await tower.ping(seen)
    await tower.live(5 * 60 + 50)
    assert tower.told() == [], "a first ping is no news, and late is none by default"
    await tower.live(15)
    (down,) = tower.notices()
    assert (down.kind, down.subject_id, down.subject_name) == ("monitor.down", seen.monitor.id, "m")
    assert (down.at, down.since, down.slot) == (begun + 6 * MINUTE, begun, begun + 5 * MINUTE)
    assert (down.reason, down.schedule, down.tags) == (
        "No ping came when one was expected.",
        "every 5 minutes",
        ("db",),
    )
    await tower.live(120)
    assert tower.told() == ["down"], "once"
    await tower.ping(seen)
    await tower.live(65)
    assert tower.told() == ["down", "up"]
    up = tower.notices()[1]
    assert up.duration_ms == up.at - down.at


@pytest.mark.parametrize("recovers", [False, True])
async def test_a_down_that_no_channel_heard_is_told_to_the_first_that_comes_while_it_lasts(
    tower: Watchtower, recovers: bool
) -> None:
    await tower.house.sql("UPDATE channels SET status = 'paused'")
    seen = await tower.monitor("every 5 minutes", 60)
    await tower.ping(seen)
    await tower.live(6 * 60 + 5)
    if recovers:
        await tower.ping(seen)
    await tower.house.sql("UPDATE channels SET status = 'active'")
    await tower.live(130)
    assert tower.told() == ([] if recovers else ["down"])


async def test_what_the_job_said_is_told(tower: Watchtower) -> None:
    seen = await tower.monitor()
    await tower.ping(seen)
    arrival = Arrival(Ping(PingKind.FAIL, tower.house.clock.now(), exit_code=3), "POST", "", "", b"disk full\0", 10)
    assert await tower.pings.take(seen.monitor.id, arrival) == Taken.KEPT
    await tower.live(2)
    (down,) = tower.notices()
    assert (down.output, down.reason) == ("disk full\ufffd", "The job ended with an exit code other than 0.")


async def test_two_nodes_that_look_tell_once(tower: Watchtower) -> None:
    seen = await tower.monitor("every 5 minutes", 60)
    await tower.ping(seen)
    await tower.house.stop()
    now = tower.house.clock.now() + 10 * MINUTE
    member = monitor_member(DEFAULT_TEAM_ID, seen.monitor.id)
    await tower.house.sql("UPDATE facts SET value = :now WHERE name = 'pings_taken_at'", now=now)
    for _ in range(3):
        await tower.house.ledger.inner.write(lambda connection: look_at(connection, [member], now))
    (alert,) = await tower.post.alerts()
    assert alert.kind == "monitor.down"


async def test_silence_that_lasts_is_told_again_without_any_ping(tower: Watchtower) -> None:
    notify = Notify(MONITOR_DEFAULT.on, remind_every=300)
    seen = await tower.monitor("every 5 minutes", 60, notify=notify)
    await tower.ping(seen)
    await tower.live(6 * 60 + 5)
    assert [notice.reminder for notice in tower.notices()] == [False]
    await tower.live(2 * 300 + 10)
    assert [notice.reminder for notice in tower.notices()] == [False, True, True]
    assert len({notice.event_id for notice in tower.notices()}) == 3
    await tower.ping(seen)
    await tower.live(4 * 60)
    assert tower.told() == ["down", "down", "down", "up"]
    assert await tower.house.sql("SELECT alert_state, alert_at FROM monitors") == [("", None)]


async def test_who_asks_for_it_is_told_of_lateness_once_a_slot(tower: Watchtower) -> None:
    asked = await tower.monitor("every 5 minutes", 240, notify=Notify(("down", "up", "late")))
    await tower.monitor("every 5 minutes", 240)
    await tower.ping(asked)
    expected = tower.house.clock.now() + 5 * MINUTE
    await tower.live(5 * 60 + 10)
    (late,) = tower.notices()
    assert (late.kind, late.subject_id, late.slot) == ("monitor.late", asked.monitor.id, expected)
    assert late.next_at == expected + 4 * MINUTE
    await tower.live(100)
    assert tower.told() == ["late"]
    await tower.ping(asked)
    await tower.live(5 * 60 + 40)
    assert tower.told() == ["late", "late"]
    assert len({notice.event_id for notice in tower.notices()}) == 2


async def test_an_edit_that_asks_for_lateness_works_from_now_on(tower: Watchtower) -> None:
    seen = await tower.monitor("every 5 minutes", 240)
    await tower.ping(seen)
    await tower.live(10)

    def change(spec: object) -> object:
        import dataclasses

        return dataclasses.replace(spec, notify=Notify(("down", "up", "late")))  # type: ignore[type-var]

    await tower.monitors.edit(DEFAULT_TEAM_ID, seen.monitor.id, change)  # type: ignore[arg-type]
    await tower.live(5 * 60)
    assert tower.told() == ["late"]


async def test_whoever_pauses_a_monitor_knows(tower: Watchtower) -> None:
    seen = await tower.monitor("every 5 minutes", 60, notify=Notify(MONITOR_DEFAULT.on, remind_every=300))
    await tower.ping(seen)
    await tower.live(6 * 60 + 5)
    await tower.monitors.pause(DEFAULT_TEAM_ID, seen.monitor.id)
    await tower.live(400)
    await tower.monitors.resume(DEFAULT_TEAM_ID, seen.monitor.id)
    await tower.ping(seen)
    await tower.live(70)
    assert tower.told() == ["down"]


async def test_a_deleted_monitor_is_looked_at_no_more(tower: Watchtower) -> None:
    seen = await tower.monitor("every 5 minutes", 60, notify=Notify(MONITOR_DEFAULT.on, remind_every=300))
    await tower.ping(seen)
    await tower.live(6 * 60 + 5)
    await tower.monitors.delete(DEFAULT_TEAM_ID, seen.monitor.id)
    assert await tower.house.sql("SELECT alert_at FROM monitors") == [(None,)]


@pytest.mark.parametrize("schedule", ["every 5 minutes", "3 * * * *"])
async def test_an_outage_of_ours_is_one_note_to_who_was_affected(tower: Watchtower, schedule: str) -> None:
    seen = await tower.monitor(schedule, 60)
    await tower.ping(seen)
    await tower.live(120)
    begun = tower.house.clock.now()
    await tower.live(10 * 60, pulse=False)
    await tower.live(10)
    (note,) = tower.notices()
    assert note.kind == "server.outage"
    assert note.since is not None
    assert abs(note.since - begun) <= 5_000
    assert note.duration_ms is not None
    assert note.duration_ms > GAP_MS
    assert "no monitor is blamed" in (note.reason or "")
    assert await tower.shown(seen) == ["up"]


async def test_a_short_absence_and_one_that_touched_nobody_are_not_told(tower: Watchtower) -> None:
    seen = await tower.monitor("every hour", 60)
    await tower.ping(seen)
    await tower.live(20, pulse=False)
    await tower.live(10)
    await tower.live(10 * 60, pulse=False)
    await tower.live(10)
    assert tower.notices() == []
