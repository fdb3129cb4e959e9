"""The contract of monitors in the ledger, on both databases."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError
from tests.storage.samples import DAY, HOUR, MINUTE, NOON, OTHER_TEAM_ID, an_id

from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.monitor import (
    Expectation,
    Flip,
    Health,
    Monitor,
    MonitorStatus,
    OpenRun,
    Outage,
    Watch,
)
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import glances
from zerocron.storage.ledger import monitors as rows
from zerocron.storage.ledger import ping_tokens as token_rows
from zerocron.storage.ledger.database import Ledger

EVERY_HOUR = Schedule("interval", None, HOUR, NOON, "Europe/Paris")


def a_monitor(**given: Any) -> Monitor:
    monitor_id = given.get("id", an_id())
    fields: dict[str, Any] = {
        "id": monitor_id,
        "team_id": DEFAULT_TEAM_ID,
        "version": 1,
        "name": "sample",
        "schedule_text": "every hour",
        "expectation": Expectation(EVERY_HOUR, 60_000, 5_000, 1_000, False),
        "post_only": True,
        "notify": {},
        "tags": ("a", "ü"),
        "warnings": ("w",),
        "language": "en",
        "token_hash": f"hash of {monitor_id}",
        "token_sealed": "sealed",
        "token_changed_at": NOON,
        "watch": Watch(created_at=NOON, since=NOON),
        "pings": 0,
        "flips": 0,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Monitor(**fields | given)


async def keep(ledger: Ledger, *monitors: Monitor) -> None:
    for monitor in monitors:
        await ledger.write(lambda connection, monitor=monitor: rows.insert(connection, monitor))  # type: ignore[misc]


async def get(ledger: Ledger, monitor: Monitor) -> Monitor | None:
    return await ledger.read(lambda connection: rows.get(connection, monitor.team_id, monitor.id))


def with_deadline(at: int | None, **given: Any) -> Monitor:
    return a_monitor(watch=Watch(created_at=NOON, since=NOON, deadline_at=at), **given)


async def test_a_monitor_comes_back_as_it_was(ledger: Ledger) -> None:
    watch = Watch(
        created_at=NOON,
        status=MonitorStatus.PAUSED,
        health=Health.DOWN,
        since=NOON + 1,
        reason="fail",
        anchor=NOON + 2,
        failed_at=NOON + 3,
        result_at=NOON + 4,
        last_ping_at=NOON + 5,
        last_ping_kind="fail",
        runs={"": OpenRun(NOON), "b": OpenRun(NOON + 1, is_overdue=True)},
        ended_runs=["c"],
        deadline_at=NOON + 6,
        resume_at=NOON + 6,
    )
    one, other = a_monitor(watch=watch), a_monitor()
    await keep(ledger, one, other)

    assert await get(ledger, one) == one
    assert await get(ledger, other) == other
    assert await get(ledger, dataclasses.replace(one, team_id=OTHER_TEAM_ID)) is None


async def test_an_edit_needs_the_version_that_was_seen(ledger: Ledger) -> None:
    one = a_monitor()
    await keep(ledger, one)
    edited = dataclasses.replace(one, name="new", version=2, flips=1)

    assert await ledger.write(lambda c: rows.update_definition(c, edited, seen_version=1))
    assert not await ledger.write(lambda c: rows.update_definition(c, edited, seen_version=1))
    assert await get(ledger, one) == edited


async def test_pings_and_flips_are_numbered_and_written_with_the_watch(ledger: Ledger) -> None:
    one, other = a_monitor(), a_monitor()
    await keep(ledger, one, other)

    def transaction(connection: Any) -> int:
        held = rows.lock(connection, [one.id, other.id, an_id()], wait=True)
        assert held.keys() == {one.id, other.id}
        mine = held[one.id]
        mine.pings += 1
        mine.watch.health = Health.UP
        mine.watch.deadline_at = NOON + HOUR
        flip = Flip(NOON, "new", "up", "ping", NOON - 5, last_ping_at=NOON, exit_code=0)
        rows.insert_flips(connection, [rows.flip_row(mine, flip, NOON + 9)])
        values = [one.id, 1, one.team_id, "success", NOON, None, 0, 12, "POST", "::1", "curl", "a\nb", 3]
        rows.save_pings(connection, [mine], [0], [values])
        return rows.save_watches(connection, [mine], [0])  # the flips that it has seen are no longer those it has

    assert await ledger.write(transaction) == 0
    seen = await get(ledger, one)
    assert seen is not None
    assert (seen.pings, seen.flips, seen.watch.health, seen.watch.deadline_at) == (1, 1, "up", NOON + HOUR)
    (ping,) = await ledger.read(lambda c: rows.pings_page(c, one.id, kind=None, before=None, limit=9))
    assert (ping.number, ping.body, ping.duration_ms, ping.source) == (1, "a\nb", 12, "::1")
    (flip,) = await ledger.read(lambda c: rows.flips_page(c, one.id, before=None, limit=9))
    assert (flip.id, flip.at, flip.noticed_at, flip.after) == (f"{one.id}.1", NOON, NOON + 9, "up")
    assert flip.details == {"last_ping_at": NOON, "previous_since": NOON - 5, "exit_code": 0, "missed": 0}
    assert json.dumps(flip.details)
    assert await ledger.read(lambda c: rows.flips_page(c, other.id, before=None, limit=9)) == []


async def test_what_monitors_showed_is_read_for_many_at_once(ledger: Ledger) -> None:
    one, other, silent = (a_monitor() for _ in range(3))
    for each in (one, other, silent):
        await keep(ledger, each)

    def transaction(connection: Any) -> None:
        for each, ends in ((one, 4), (other, 2)):
            watched = rows.lock(connection, [each.id], wait=True)[each.id]
            for number in range(1, ends + 1):
                flip = Flip(NOON + number, "up", "down" if number % 2 else "up", "silence", NOON)
                rows.insert_flips(connection, [rows.flip_row(watched, flip, NOON + number)])

    await ledger.write(transaction)

    async def shown(*begins: tuple[str, int], limit: int = 9) -> Any:
        return await ledger.read(lambda connection: glances.shown_since(connection, list(begins), limit))

    assert await shown((one.id, NOON + 2), (other.id, NOON), (silent.id, NOON)) == {
        one.id: [(NOON + 2, "up"), (NOON + 3, "down"), (NOON + 4, "up")],
        other.id: [(NOON + 1, "down"), (NOON + 2, "up")],
        silent.id: [],
    }
    assert await shown((one.id, NOON + 9), (other.id, NOON + 1)) == {
        one.id: [(NOON + 4, "up")],
        other.id: [(NOON + 1, "down"), (NOON + 2, "up")],
    }
    assert await shown((one.id, NOON), (other.id, NOON), limit=2) == {
        one.id: [(NOON + 3, "down"), (NOON + 4, "up")],
        other.id: [(NOON + 1, "down"), (NOON + 2, "up")],
    }


async def test_who_flipped_first_keeps_others_from_it(ledger: Ledger) -> None:
    one = a_monitor()
    await keep(ledger, one)

    def transaction(connection: Any) -> int:
        mine = rows.lock(connection, [one.id], wait=False)[one.id]
        return rows.save_watches(connection, [mine], [7])

    assert await ledger.write(transaction) == 0


async def test_a_held_monitor_is_passed_over_or_waited_for(ledger: Ledger) -> None:
    one = a_monitor()
    await keep(ledger, one)
    counts = await asyncio.gather(
        *(ledger.write(lambda c: _count_one(c, one.id)) for _ in range(10)),
    )
    assert sorted(counts) == list(range(1, 11))


def _count_one(connection: Any, monitor_id: str) -> int:
    mine = rows.lock(connection, [monitor_id], wait=True)[monitor_id]
    mine.pings += 1
    rows.save_watches(connection, [mine], [0])
    return mine.pings


async def test_a_deleted_monitor_is_gone_for_everybody(ledger: Ledger) -> None:
    one = with_deadline(NOON)
    await keep(ledger, one)

    assert not await ledger.write(lambda c: rows.delete(c, OTHER_TEAM_ID, one.id, NOON))
    assert await ledger.write(lambda c: rows.delete(c, one.team_id, one.id, NOON + 1))
    assert not await ledger.write(lambda c: rows.delete(c, one.team_id, one.id, NOON))
    assert await get(ledger, one) is None
    assert await ledger.write(lambda c: rows.lock(c, [one.id], wait=True)) == {}
    assert await ledger.read(lambda c: token_rows.find(c, one.token_hash)) is None
    assert await ledger.read(lambda c: rows.overdue(c, before=NOON + DAY, limit=9)) == []
    assert await ledger.read(lambda c: rows.existing(c, [one.id])) == set()
    changes = await ledger.read(lambda c: token_rows.changed(c, after=(NOON, ""), limit=9))
    assert changes == [(NOON + 1, one.id, one.token_hash, False)]


async def test_deadlines_come_in_order(ledger: Ledger) -> None:
    late, early, none = with_deadline(NOON + 5), with_deadline(NOON), with_deadline(None)
    same = with_deadline(NOON, team_id=OTHER_TEAM_ID)
    await keep(ledger, late, early, none, same)

    due = await ledger.read(lambda c: rows.overdue(c, before=NOON + 5, limit=9))
    assert {one.id for one in due} == {early.id, same.id}
    others = await ledger.read(lambda c: rows.overdue(c, before=NOON + 6, limit=9, without=[OTHER_TEAM_ID]))
    assert [one.id for one in others] == [early.id, late.id]
    found, after = [], (0, "")
    while page := await ledger.read(lambda c, after=after: rows.due_page(c, after=after, until=NOON + 9, limit=1)):  # type: ignore[misc]
        found.append(page[0].id)
        after = (page[0].at, page[0].id)
    assert found == [*sorted([early.id, same.id]), late.id]


async def test_a_token_has_one_monitor(ledger: Ledger) -> None:
    one = a_monitor()
    await keep(ledger, one)

    assert await ledger.read(lambda c: token_rows.find(c, one.token_hash)) == one.id
    with pytest.raises(IntegrityError):
        await keep(ledger, a_monitor(token_hash=one.token_hash))


async def test_lists_filter_and_go_on(ledger: Ledger) -> None:
    one = a_monitor(name="Backup 50%", created_at=NOON + 1, watch=Watch(NOON + 1, health=Health.UP))
    other = a_monitor(tags=(), created_at=NOON, watch=Watch(NOON, status=MonitorStatus.PAUSED))
    await keep(ledger, one, other, a_monitor(team_id=OTHER_TEAM_ID))

    async def found(**query: Any) -> list[str]:
        asked: dict[str, Any] = {"status": None, "health": None, "tag": None, "text": None, "before": None, "limit": 9}
        page = await ledger.read(lambda c: rows.page(c, DEFAULT_TEAM_ID, **asked | query))
        return [monitor.id for _, monitor in page]

    assert await found() == [one.id, other.id]
    assert await found(before=(NOON + 1, one.id)) == [other.id]
    assert await found(status="paused") == [other.id]
    assert await found(health="up") == [one.id]
    assert await found(health="new") == []
    assert await found(tag="ü") == [one.id]
    assert await found(text="50%") == [one.id]


async def test_an_outage_is_known_while_it_lasts_and_afterwards(ledger: Ledger) -> None:
    assert await ledger.write(lambda c: rows.pulse(c, NOON, gap_ms=15_000)) is None
    assert await ledger.write(lambda c: rows.pulse(c, NOON + 15_000, gap_ms=15_000)) is None
    later = NOON + MINUTE
    assert await ledger.read(lambda c: rows.known_outages(c, NOON, later)) == [Outage(NOON + 15_000, later)]
    outage = Outage(NOON + 15_000, later)
    assert await ledger.write(lambda c: rows.pulse(c, later, gap_ms=15_000)) == outage
    await ledger.write(lambda c: rows.insert_outage(c, outage))  # two nodes come back at once
    assert await ledger.read(lambda c: rows.known_outages(c, NOON, later + 1)) == [outage]
    assert await ledger.read(lambda c: rows.known_outages(c, later + 1, later + 1)) == []
    await ledger.write(lambda c: rows.forget_outages(c, later + 1))
    assert await ledger.read(lambda c: rows.outages_since(c, 0)) == []


async def test_a_clock_that_was_set_back_is_no_outage(ledger: Ledger) -> None:
    await ledger.write(lambda c: rows.pulse(c, NOON + HOUR, gap_ms=15_000))
    assert await ledger.write(lambda c: rows.pulse(c, NOON, gap_ms=15_000)) is None
    assert await ledger.read(rows.pulse_at) == NOON


async def test_history_is_shortened_and_failures_stay(ledger: Ledger) -> None:
    one = a_monitor()
    await keep(ledger, one)
    kinds = ["fail", "fail", "success", "fail", "log", "fail", "success"]
    values = [
        [one.id, n, one.team_id, kind, NOON + n, None, None, None, "GET", "", "", None, 0]
        for n, kind in enumerate(kinds, 1)
    ]
    await ledger.write(lambda c: rows.save_pings(c, [], [], values))

    async def left_after(failures_kept: int, failures_since: int) -> list[int]:
        await ledger.write(
            lambda c: rows.shorten(
                c,
                one.id,
                pings_up_to=6,
                failures_kept=failures_kept,
                failures_since=failures_since,
                flips_up_to=0,
                limit=100,
            )
        )
        left = await ledger.read(lambda c: rows.pings_page(c, one.id, kind=None, before=None, limit=9))
        return [ping.number for ping in left]

    assert await left_after(9, 0) == [7, 6, 4, 2, 1]
    assert await left_after(3, 0) == [7, 6, 4, 2]
    assert await left_after(9, NOON + 4) == [7, 6, 4]
    assert await left_after(0, 0) == [7]
    assert await ledger.read(lambda c: rows.ids_page(c, "", 9)) == [(one.id, "active", 0, 0)]
    await ledger.write(lambda c: rows.remove(c, one.id))
    assert await get(ledger, one) is not None, "only deleted ones are removed"
    await ledger.write(lambda c: rows.delete(c, one.team_id, one.id, NOON))
    await ledger.write(lambda c: rows.remove(c, one.id))
    assert await ledger.read(lambda c: rows.ids_page(c, "", 9)) == []
