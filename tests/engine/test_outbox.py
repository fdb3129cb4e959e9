"""The two transactions of the notifier by themselves, on both databases: what is taken, and what comes of it.

Hours pass here by naming another instant, so that a day of back-off is a loop of milliseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from tests.storage.conftest import LEDGERS
from tests.storage.samples import HOUR, MINUTE, NOON, an_id

from zerocron.channels.contract import Accepted, Again, Delivery, Refused
from zerocron.core.alerting import GAP_MS
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.notice import EventKind, Notice
from zerocron.engine.notifier import CHANNELS_AT_ONCE_MAX, EXPIRY_MS, SHOWN_MAX, Message, Taken, record, take
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger.alerts import AlertRow, New
from zerocron.storage.ledger.channels import ChannelRow
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import alert_member

DAY = 24 * HOUR
Reply = Callable[[Message], Delivery]


def refuse_all(_message: Message) -> Delivery:
    return Again("status 500")


def accept_all(_message: Message) -> Delivery:
    return Accepted("250 queued")


class Box:
    """An outbox, and instants at which somebody looks at it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.sent: list[tuple[Instant, Message]] = []

    async def channel(self) -> ChannelRow:
        channel_id = an_id()
        row = ChannelRow(
            channel_id, DEFAULT_TEAM_ID, "fake", "c", "active", None, "", an_id(), "", 0, 0, None, None, NOON, NOON
        )
        await self.ledger.write(lambda connection: channel_rows.insert(connection, row))
        return row

    async def tell(self, channel: ChannelRow, number: int = 1, *, at: Instant = NOON) -> list[str]:
        """So many events for a channel, a millisecond apart; the ids of their alerts."""
        ids = [an_id() for _ in range(number)]
        for index, alert_id in enumerate(ids):
            notice = Notice(an_id(), EventKind.JOB_FAILED, DEFAULT_TEAM_ID, at + index, an_id(), f"job {index}")
            new = New(alert_id, channel.id, notice, at + index)

            def insert(connection: Connection, new: New = new, now: Instant = at + index) -> None:
                alert_rows.insert(connection, [new], now)

            await self.ledger.write(insert)
        return ids

    async def take(self, now: Instant, places: int = 20) -> Taken:
        """What a node takes that looks at everything due, as the sweep does."""

        def transaction(connection: Connection) -> Taken:
            due = alert_rows.overdue(connection, before=now + 1, limit=1_000)
            return take(connection, [alert_member(one.team_id, one.id) for one in due], now, places)

        return await self.ledger.write(transaction)

    async def record(self, message: Message, delivery: Delivery, now: Instant) -> str | None:
        status, _ = await self.ledger.write(lambda connection: record(connection, message, delivery, now))
        return status

    async def live(self, start: Instant, end: Instant, reply: Reply) -> None:
        """Send what is due from `start` to `end`, looking whenever something is."""
        now = start
        while now <= end:
            for message in (await self.take(now)).messages:
                self.sent.append((now, message))
                await self.record(message, reply(message), now + 100)
            found = await self.ledger.read(lambda connection: alert_rows.overdue(connection, before=end + DAY, limit=1))
            if not found:
                return
            now = max(now + 200, found[0].at)

    async def alerts(self) -> list[AlertRow]:
        """The oldest first."""
        found = await self.ledger.read(
            lambda connection: alert_rows.page(
                connection, DEFAULT_TEAM_ID, status=None, channel_id=None, subject_id=None, before=None, limit=1_000
            )
        )
        return found[::-1]

    async def told(self) -> list[str]:
        return [notice.event_id for _, message in self.sent for notice in message.notices]


@pytest.fixture(params=sorted(LEDGERS))
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Box]:
    async with LEDGERS[request.param](tmp_path) as ledger:
        yield Box(ledger)


async def test_fifty_are_one_message(box: Box) -> None:
    channel = await box.channel()
    first, *others = await box.tell(channel, 50)
    taken = await box.take(NOON + 100)
    (message,) = taken.messages
    assert (message.alert.id, message.count, len(message.notices)) == (first, 50, SHOWN_MAX)
    assert [notice.at for notice in message.notices] == [NOON + index for index in range(SHOWN_MAX)]
    assert taken.folded == 49
    assert await box.record(message, Accepted("ok"), NOON + 300) == "sent"
    leader, *folded = await box.alerts()
    assert (leader.status, leader.detail, leader.finished_at) == ("sent", "ok", NOON + 300)
    assert {(one.status, one.digest_id, one.finished_at) for one in folded} == {("folded", first, NOON + 300)}
    assert [one.id for one in folded] == others


async def test_one_message_a_minute(box: Box) -> None:
    channel = await box.channel()
    await box.tell(channel)
    await box.live(NOON, NOON, accept_all)
    await box.tell(channel, 3, at=NOON + 1_000)
    assert (await box.take(NOON + 2_000)).messages == []
    assert (await box.take(NOON + GAP_MS - 1)).messages == []
    (message,) = (await box.take(NOON + GAP_MS)).messages
    assert message.count == 3


async def test_another_channel_waits_for_nobody(box: Box) -> None:
    one, other = await box.channel(), await box.channel()
    await box.tell(one)
    await box.tell(other)
    assert len((await box.take(NOON + 10)).messages) == 2


async def test_no_more_than_there_are_places(box: Box) -> None:
    for _ in range(3):
        await box.tell(await box.channel())
    taken = await box.take(NOON + 10, places=2)
    assert len(taken.messages) == 2
    assert sorted(taken.put.values())[0] == NOON + 1_010
    assert len((await box.take(NOON + 1_010)).messages) == 1


async def test_what_was_taken_is_not_taken_again_until_its_lease_is_over(box: Box) -> None:
    channel = await box.channel()
    (alert_id,) = await box.tell(channel)
    (first,) = (await box.take(NOON + 10)).messages
    assert (await box.take(NOON + 20)).messages == []
    assert (await box.take(NOON + GAP_MS)).messages == []
    (again,) = (await box.take(NOON + 10 + GAP_MS)).messages
    assert (again.alert.id, again.notices, again.tries) == (alert_id, first.notices, 2)
    assert await box.record(first, Again("too late"), NOON + GAP_MS + 50) is None, "somebody else has tried since"
    assert await box.record(first, Accepted(), NOON + GAP_MS + 60) == "sent", "what was accepted was accepted"
    assert await box.record(again, Accepted(), NOON + GAP_MS + 70) is None


async def test_a_message_that_was_tried_keeps_what_it_holds(box: Box) -> None:
    channel = await box.channel()
    await box.tell(channel, 2)
    (first,) = (await box.take(NOON + 10)).messages
    await box.record(first, Again("status 500"), NOON + 20)
    await box.tell(channel, 4, at=NOON + 30)
    box.sent.clear()
    await box.live(NOON + 30, NOON + HOUR, accept_all)
    assert [message.count for _, message in box.sent] == [4, 2], "what was never tried goes first"
    assert box.sent[1][1].notices == first.notices
    assert box.sent[1][0] - box.sent[0][0] >= GAP_MS


async def test_two_hours_without_a_way_out(box: Box) -> None:
    """C 51: everything arrives afterwards, each event once, and not as a storm."""
    channel = await box.channel()
    for minute in range(0, 110, 10):
        await box.tell(channel, 5, at=NOON + minute * MINUTE)
    await box.live(NOON, NOON + 2 * HOUR, refuse_all)
    tries = len(box.sent)
    assert 5 <= tries <= 40
    box.sent.clear()
    await box.live(NOON + 2 * HOUR, NOON + 4 * HOUR, accept_all)
    told = await box.told()
    assert len(told) == len(set(told))
    assert sum(message.count for _, message in box.sent) == 55
    assert len(box.sent) <= tries + 1
    times = [at for at, _ in box.sent]
    assert all(later - earlier >= GAP_MS for earlier, later in itertools.pairwise(times))
    assert {one.status for one in await box.alerts()} == {"sent", "folded"}


async def test_a_day_without_a_way_out(box: Box) -> None:
    channel = await box.channel()
    await box.tell(channel, 2)
    await box.live(NOON + 10, NOON + DAY - HOUR, refuse_all)
    assert {one.status for one in await box.alerts()} == {"pending", "folded"}
    await box.live(NOON + DAY - HOUR, NOON + DAY + 2 * HOUR, refuse_all)
    leader, folded = await box.alerts()
    reason = "It was not accepted within 24 hours; the last answer: status 500"
    assert (leader.status, leader.last_error) == (folded.status, folded.last_error) == ("dead", reason)
    assert leader.finished_at is not None
    assert leader.finished_at >= NOON + EXPIRY_MS
    waits = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(box.sent)]
    assert max(waits) <= HOUR + MINUTE
    assert 24 <= len(box.sent) <= 200


async def test_what_was_refused_once_does_not_wait_for_an_end_of_news(box: Box) -> None:
    channel = await box.channel()
    (first,) = await box.tell(channel)
    for minute in range(1, 60):
        await box.tell(channel, at=NOON + minute * MINUTE)

    def refuse_once(message: Message) -> Delivery:
        return Again("status 503") if message.alert.id == first and message.tries == 1 else Accepted()

    await box.live(NOON + 10, NOON + 50 * MINUTE, refuse_once)
    assert (await box.alerts())[0].status == "sent"


async def test_of_a_try_that_is_never_heard_of_there_is_an_end(box: Box) -> None:
    """Such as one whose process dies of it each time."""
    channel = await box.channel()
    await box.tell(channel)
    tries = 0
    for hour in range(40):
        tries += len((await box.take(NOON + 10 + hour * HOUR)).messages)
    assert 24 <= tries <= 27
    assert [alert.status for alert in await box.alerts()] == ["dead"]


async def test_what_this_release_cannot_read_keeps_no_other_waiting(box: Box) -> None:
    channel = await box.channel()
    strange, _ = await box.tell(channel, 2)

    def damage(connection: Connection) -> None:
        statement = "UPDATE alerts SET notice = :text, kind = 'job.teleported' WHERE id = :id"
        connection.execute(text(statement), {"id": strange, "text": '{"kind": "job.teleported"}'})

    await box.ledger.write(damage)
    await box.live(NOON + 10, NOON + 10 * MINUTE, accept_all)
    assert len(await box.told()) == 1
    assert {alert.notice is None for alert in await box.alerts()} == {True, False}


async def test_a_transaction_takes_few_channels_and_the_others_come_soon(box: Box) -> None:
    for _ in range(5):
        await box.tell(await box.channel(), 3)
    taken = await box.take(NOON + 10)
    assert len(taken.messages) == CHANNELS_AT_ONCE_MAX
    await box.live(NOON + 10, NOON + MINUTE, accept_all)
    assert len(await box.told()) == 3 * (5 - CHANNELS_AT_ONCE_MAX)


async def test_what_could_not_be_tried_for_a_day_is_tried(box: Box) -> None:
    channel = await box.channel()
    await box.tell(channel)
    (message,) = (await box.take(NOON + 2 * DAY)).messages
    assert await box.record(message, Accepted(), NOON + 2 * DAY) == "sent"


@pytest.mark.parametrize(("asked", "waited"), [(20 * MINUTE, 20 * MINUTE), (10 * DAY, HOUR), (None, 0)])
async def test_what_a_service_asks_for_is_waited_up_to_an_hour(box: Box, asked: int | None, waited: int) -> None:
    channel = await box.channel()
    await box.tell(channel)
    (message,) = (await box.take(NOON + 10)).messages
    await box.record(message, Again("status 429", asked), NOON + 20)
    (alert,) = await box.alerts()
    assert alert.next_attempt_at is not None
    assert waited <= alert.next_attempt_at - (NOON + 20) <= waited + 14_000


async def test_the_first_wait_is_another_one_for_each(box: Box) -> None:
    waits = set()
    for _ in range(10):
        channel = await box.channel()
        await box.tell(channel)
        (message,) = (await box.take(NOON + 10)).messages
        await box.record(message, Again("status 500"), NOON + 20)
        waits.add((await box.alerts())[-1].next_attempt_at)
    assert len(waits) > 5


async def test_refused_for_good_ends_what_waits_and_tells_the_others(box: Box) -> None:
    channel, other = await box.channel(), await box.channel()
    await box.tell(channel, 2)
    (message,) = (await box.take(NOON + 10)).messages
    (later,) = await box.tell(channel, at=NOON + 20)
    assert await box.record(message, Refused("status 410\n gone", disables=True), NOON + 30) == "dead"
    found = {one.id: one for one in await box.alerts()}
    assert (found[later].status, found[later].last_error) == ("dead", "The channel is disabled: status 410 gone")
    (told,) = [one for one in found.values() if one.channel_id == other.id]
    assert (told.kind, told.subject_id, told.status) == ("channel.disabled", channel.id, "pending")
    assert {one.status for one in found.values() if one.channel_id == channel.id} == {"dead"}
    seen = await box.ledger.read(lambda connection: channel_rows.get(connection, DEFAULT_TEAM_ID, channel.id))
    assert seen is not None
    assert (seen.status, seen.reason) == ("disabled", "status 410 gone")


async def test_a_channel_that_is_stopped_meanwhile_ends_what_waits(box: Box) -> None:
    """The alert was written by a transaction that read the channel before it was paused."""
    channel = await box.channel()
    await box.tell(channel)
    await box.ledger.write(lambda c: c.execute(text("UPDATE channels SET status = 'paused'")).close())
    taken = await box.take(NOON + 10)
    assert (taken.messages, taken.dead) == ([], 1)
    (alert,) = await box.alerts()
    assert (alert.status, alert.last_error) == ("dead", "The channel was paused.")


async def test_an_event_is_told_to_a_channel_once(box: Box) -> None:
    channel = await box.channel()
    notice = Notice(an_id(), EventKind.JOB_FAILED, DEFAULT_TEAM_ID, NOON, an_id(), "job", output="a\0b", tags=("x",))
    for _ in range(2):
        new = New(an_id(), channel.id, notice, NOON)

        def insert(connection: Connection, new: New = new) -> None:
            alert_rows.insert(connection, [new], NOON)

        await box.ledger.write(insert)
    (alert,) = await box.alerts()
    assert alert.notice == notice
