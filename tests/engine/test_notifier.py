"""The outbox at work: real SQLite, time moved by hand, and a kind of channel that answers as it is told."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.house import House, answered
from tests.engine.test_timetable_away import Shaky
from tests.storage.samples import HOUR, MINUTE
from tests.support.channels import FakeKind

from zerocron.actions.channels import Channels, ChannelSpec
from zerocron.actions.secrets import Secrets
from zerocron.channels.contract import Accepted, Again, Delivery, Envelope, Refused, Ways
from zerocron.channels.sending import Outlets
from zerocron.core.alerting import JOB_DEFAULT, Notify
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.sealing import Keyring, new_master_key, read_master_keys
from zerocron.engine.notifier import Notifier
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger.alerts import AlertRow
from zerocron.storage.ledger.channels import ChannelRow
from zerocron.storage.timetable.contract import alert_member

URL = "https://example.com/hook"


class Post:
    """The channels of a house, and what was sent through them."""

    def __init__(self, house: House, kind: FakeKind, keyring: Keyring) -> None:
        self.house = house
        self.kind = kind
        self.keyring = keyring
        ways = Ways(house.target.send, house.clock.now)
        secrets = Secrets(ledger=house.ledger, clock=house.clock, keyring=keyring)
        self.channels = Channels(
            ledger=house.ledger, clock=house.clock, secrets=secrets, outlets=Outlets({"fake": kind}, ways)
        )

    async def channel(self, place: str = "drawer") -> ChannelRow:
        made, _ = await self.channels.create(DEFAULT_TEAM_ID, ChannelSpec(place, "fake", {"place": place}))
        return made

    async def fails(self, name: str = "sample", *, seconds: float = 61, **given: Any) -> None:
        """A job that is due every minute fails the next time."""
        self.house.target.on(URL, answered(500, b"out of paper"))
        if not await self.house.sql("SELECT 1 FROM jobs"):
            await self.house.create(url=URL, **given)
        await self.house.clock.advance(seconds)

    async def many_fail(self, number: int, url: str = URL, **given: Any) -> None:
        """So many jobs fail within one minute."""
        self.house.target.on(url, answered(500))
        for _ in range(number):
            await self.house.create(url=url, **given)
        await self.house.clock.advance(61)

    async def alerts(self, **wanted: Any) -> list[AlertRow]:
        """The oldest first."""
        found = await self.channels.alerts(DEFAULT_TEAM_ID, limit=200, **wanted)
        return [alert for alert, _, _ in found][::-1]

    async def status(self) -> list[str]:
        return [alert.status for alert in await self.alerts()]

    def notifier(self) -> Notifier:
        """Another node's."""
        house = self.house
        return Notifier(
            ledger=house.ledger,
            timetable=house.timetable,
            clock=house.clock,
            metrics=house.metrics,
            keyring=self.keyring,
            outlets=Outlets({"fake": self.kind}, Ways(house.target.send, house.clock.now)),
        )

    def count(self, status: str) -> float | None:
        return self.house.metrics.registry.get_sample_value("zerocron_alerts_total", {"status": status})


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    kind = FakeKind()
    keyring = read_master_keys(new_master_key(), source="test")
    async with House(tmp_path, kinds={"fake": kind}, keyring=keyring) as house:
        yield Post(house, kind, keyring)


async def test_a_failure_and_its_end_are_told(post: Post) -> None:
    await post.channel()
    await post.fails()
    await post.fails()
    ((place, envelope),) = post.kind.sent
    (notice,) = envelope.notices
    assert (place, notice.kind, notice.subject_name, notice.count) == ("drawer", "job.failed", "sample", 1)
    assert (notice.output, notice.schedule, notice.timezone) == ("out of paper", "every minute (UTC)", "UTC")
    assert "500" in (notice.reason or "")
    assert notice.slot is not None
    assert notice.next_at == notice.slot + MINUTE
    assert notice.run_id is not None

    post.house.target.on(URL, answered(200, b"done"))
    await post.house.clock.advance(60)
    assert post.kind.kinds() == ["job.failed", "job.recovered"]
    recovered = post.kind.sent[1][1].notices[0]
    assert recovered.since == notice.at
    failed, ended = await post.alerts()
    assert (failed.status, failed.tries, failed.detail, failed.next_attempt_at) == ("sent", 1, "put there", None)
    assert (ended.status, ended.event_id != failed.event_id) == ("sent", True)
    assert failed.finished_at is not None
    assert failed.finished_at - failed.created_at < 2_000
    assert post.count("sent") == 2


async def test_each_channel_is_told_with_the_same_event(post: Post) -> None:
    await post.channel("drawer")
    await post.channel("shelf")
    await post.fails()
    assert sorted(place for place, _ in post.kind.sent) == ["drawer", "shelf"]
    one, other = await post.alerts()
    assert one.event_id == other.event_id
    assert one.id != other.id


async def test_only_the_channels_that_are_named(post: Post) -> None:
    await post.channel("drawer")
    shelf = await post.channel("shelf")
    await post.fails(notify=Notify(JOB_DEFAULT.on, channels=(shelf.id,)))
    assert [place for place, _ in post.kind.sent] == ["shelf"]


async def test_nobody_is_told_where_nobody_is_and_then_somebody_is(post: Post) -> None:
    await post.fails()
    assert await post.alerts() == []
    await post.channel()
    await post.fails()
    assert post.kind.kinds() == ["job.failed"]


async def test_it_is_tried_again_with_the_same_id_and_content(post: Post) -> None:
    await post.channel()
    post.kind.replies = [Again("status 500"), Again("status 500"), Accepted()]
    await post.fails()
    (alert,) = await post.alerts()
    assert (alert.status, alert.tries, alert.last_error) == ("pending", 1, "status 500") or alert.tries > 1
    await post.house.clock.advance(120)
    assert [envelope.attempt for _, envelope in post.kind.sent] == [1, 2, 3]
    assert len({envelope.alert_id for _, envelope in post.kind.sent}) == 1
    assert len({envelope.notices for _, envelope in post.kind.sent}) == 1
    assert await post.status() == ["sent"]


async def test_what_a_service_asks_to_wait_is_waited(post: Post) -> None:
    await post.channel()
    post.kind.replies = [Again("status 429", retry_after_ms=2 * MINUTE), Accepted()]
    await post.fails()
    await post.house.clock.advance(118)
    assert len(post.kind.sent) == 1
    await post.house.clock.advance(20)
    assert len(post.kind.sent) == 2


async def test_what_is_refused_is_not_tried_again(post: Post) -> None:
    channel = await post.channel()
    post.kind.replies = [Refused("status 400: too long")]
    await post.fails()
    await post.house.clock.advance(100)
    (alert,) = await post.alerts()
    assert (alert.status, alert.last_error) == ("dead", "status 400: too long")
    assert len(post.kind.sent) == 1
    assert (await post.channels.get(DEFAULT_TEAM_ID, channel.id)).status == "active"


async def test_a_channel_that_refuses_for_good_is_disabled_and_the_others_hear_of_it(post: Post) -> None:
    drawer = await post.channel("drawer")
    await post.channel("shelf")

    async def reply(envelope: Envelope) -> Delivery:
        place = post.kind.sent[-1][0]
        return Refused("status 410: gone", disables=True) if place == "drawer" else Accepted()

    post.kind.replies = [reply]
    await post.fails(seconds=150)
    seen = await post.channels.get(DEFAULT_TEAM_ID, drawer.id)
    assert (seen.status, seen.reason) == ("disabled", "status 410: gone")
    assert post.kind.kinds("drawer") == ["job.failed"]
    assert post.kind.kinds("shelf") == ["job.failed", "channel.disabled"]
    told = post.kind.sent[-1][1].notices[0]
    assert (told.subject_id, told.subject_name, told.reason) == (drawer.id, "drawer", "status 410: gone")
    assert await post.channels.alerts(DEFAULT_TEAM_ID, status="pending") == []


async def test_fifty_at_once_are_one_message_or_two(post: Post) -> None:
    await post.channel()
    await post.many_fail(50)
    await post.house.clock.advance(130)
    assert len(post.kind.sent) <= 2
    told = [notice for _, envelope in post.kind.sent for notice in envelope.notices]
    assert len(told) + sum(envelope.more for _, envelope in post.kind.sent) == 50
    digest = post.kind.sent[-1][1]
    assert len(digest.notices) <= 20
    assert list(digest.notices) == sorted(digest.notices, key=lambda notice: notice.at)
    alerts = await post.alerts()
    leaders = {alert.id for alert in alerts if alert.status == "sent"}
    assert {alert.digest_id for alert in alerts if alert.status == "folded"} <= leaders
    assert all(alert.finished_at for alert in alerts)
    assert post.count("folded") == 50 - len(leaders)


async def test_a_channel_takes_one_message_a_minute(post: Post) -> None:
    await post.channel()
    times: list[int] = []

    async def reply(_envelope: Envelope) -> Delivery:
        times.append(post.house.clock.now())
        return Accepted()

    post.kind.replies = [reply]
    for number in range(6):
        await post.many_fail(1, f"https://example.com/{number}", schedule="*/10 * * * * *")
    assert len(times) >= 4
    assert all(later - earlier >= MINUTE for earlier, later in itertools.pairwise(times))


async def test_a_service_that_hangs_is_given_up_after_twenty_seconds(post: Post) -> None:
    await post.channel()

    async def hang(_envelope: Envelope) -> Delivery:
        await asyncio.Event().wait()
        raise AssertionError

    post.kind.replies = [hang, Accepted()]
    await post.fails(seconds=62)
    (alert,) = await post.alerts()
    assert (alert.status, alert.tries) == ("pending", 1)
    await post.house.clock.advance(60)
    (alert,) = await post.alerts()
    assert (alert.status, alert.tries) == ("sent", 2)
    assert alert.last_error == "There was no answer within 20 seconds."


async def test_a_kind_that_breaks_is_tried_again_and_tells_nothing_inside(post: Post) -> None:
    await post.channel()

    async def breaks(_envelope: Envelope) -> Delivery:
        raise ZeroDivisionError("a secret of ours")

    post.kind.replies = [breaks, Accepted()]
    await post.fails(seconds=130)
    (alert,) = await post.alerts()
    assert alert.status == "sent"
    assert "secret" not in str(alert.last_error)


async def test_two_nodes_send_once(post: Post) -> None:
    await post.channel()
    release = asyncio.Event()

    async def slow(_envelope: Envelope) -> Delivery:
        await release.wait()
        return Accepted()

    post.kind.replies = [slow]
    others = [post.notifier() for _ in range(3)]
    await post.fails(seconds=61)
    (alert,) = await post.alerts()
    member = alert_member(alert.team_id, alert.id)
    assert sum([await other.take([member]) for other in others]) == 0
    release.set()
    await post.house.clock.advance(5)
    assert len(post.kind.sent) == 1
    assert await post.status() == ["sent"]
    for other in others:
        await other.stop()


async def test_a_node_that_dies_before_it_sends_is_made_good_for(post: Post) -> None:
    """The transaction that took the alert is committed, and nothing was sent."""
    await post.channel()
    hung = asyncio.Event()

    async def never(_envelope: Envelope) -> Delivery:
        await hung.wait()
        raise AssertionError

    post.kind.replies = [never, Accepted()]
    await post.fails(seconds=61)
    for task in post.house.engine.notifier._sending:
        task.cancel()
    await post.house.crash()
    first = post.kind.sent[0][1]
    await post.house.restart(after=1)
    await post.house.clock.advance(59)
    await post.house.clock.advance(5)
    again = post.kind.sent[-1][1]
    assert len(post.kind.sent) == 2
    assert (again.alert_id, again.notices, again.attempt) == (first.alert_id, first.notices, 2)
    assert await post.status() == ["sent"]


async def test_a_node_that_dies_after_it_sent_sends_the_same_again(post: Post) -> None:
    await post.channel()
    house = post.house

    async def die(_envelope: Envelope) -> Delivery:
        house.ledger.is_away = True  # nothing that came of it can be recorded
        return Accepted()

    post.kind.replies = [die, Accepted()]
    await post.fails(seconds=61)
    for task in house.engine.notifier._sending:
        task.cancel()
    await house.crash()
    house.ledger.heal()
    await house.restart(after=60)
    await house.clock.advance(5)
    one, other = (envelope for _, envelope in post.kind.sent)
    assert (one.alert_id, one.notices) == (other.alert_id, other.notices)
    assert await post.status() == ["sent"]


async def test_what_was_accepted_is_recorded_when_the_ledger_is_back(post: Post) -> None:
    await post.channel()
    house = post.house

    async def accept(_envelope: Envelope) -> Delivery:
        house.ledger.is_away = True
        return Accepted()

    post.kind.replies = [accept]
    await post.fails(seconds=61)
    await house.clock.advance(10)
    house.ledger.heal()
    await house.clock.advance(70)
    assert len(post.kind.sent) == 1
    assert await post.status() == ["sent"]


async def test_a_timetable_that_lost_it_is_made_good_for(post: Post) -> None:
    await post.channel()
    post.kind.replies = [Again("status 500"), Accepted()]
    await post.fails(seconds=61)
    await post.house.timetable.clear()
    await post.house.clock.advance(40)
    assert await post.status() == ["sent"]


async def test_a_paused_channel_is_told_nothing(post: Post) -> None:
    channel = await post.channel()
    post.kind.replies = [Again("status 500", retry_after_ms=HOUR)]
    await post.fails()
    await post.channels.pause(DEFAULT_TEAM_ID, channel.id)
    (alert,) = await post.alerts()
    assert (alert.status, alert.last_error) == ("dead", "The channel was paused.")
    post.kind.sent.clear()
    await post.many_fail(1, "https://example.com/more")
    assert post.kind.sent == []
    await post.channels.resume(DEFAULT_TEAM_ID, channel.id)
    post.kind.replies = [Accepted()]
    await post.house.clock.advance(70)
    assert post.kind.kinds() == ["job.failed"], "the one that nobody heard of, at its next failure"


async def test_missed_slots_are_one_message(post: Post) -> None:
    await post.channel()
    await post.house.create(schedule="*/5 * * * *", url=URL)
    await post.house.stop()
    await post.house.restart(after=3600)
    await post.house.clock.advance(5)
    (notice,) = post.kind.sent[0][1].notices
    assert (notice.kind, notice.count) == ("job.missed", 11)


async def test_a_disabled_job_is_told(post: Post) -> None:
    await post.channel()
    await post.fails(disable_after=2)
    assert post.kind.kinds() == ["job.failed"]
    await post.fails()
    assert post.kind.kinds() == ["job.failed", "job.disabled"]
    told = post.kind.sent[1][1].notices[0]
    assert told.reason == "The last 2 runs failed, and `disable_after` is 2."
    assert told.next_at is None


async def test_a_run_that_begins_late_is_told_to_who_asked(post: Post) -> None:
    await post.channel()
    notify = Notify(("late",), late_after=30)
    job = await post.house.create(schedule="*/5 * * * *", url=URL, notify=notify)
    await post.house.create(schedule="*/5 * * * *", url=URL)
    await post.house.stop()
    await post.house.restart(after=5 * 60 + 40)
    await post.house.clock.advance(5)
    late = [notice for _, envelope in post.kind.sent for notice in envelope.notices if notice.kind == "job.late"]
    assert [notice.subject_id for notice in late] == [job.id]
    assert "40 seconds" in (late[0].reason or "")


async def test_successes_of_jobs_that_are_well_cost_the_ledger_nothing(post: Post) -> None:
    """A batch without anything to tell has not one statement more than it would have without alerts."""
    from sqlalchemy import event

    await post.channel()
    for _ in range(20):
        await post.house.create(url=URL)
    engine = post.house.ledger.inner._write_engine  # type: ignore[attr-defined]
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    await post.house.clock.advance(61)
    event.remove(engine, "before_cursor_execute", note)
    assert any("INSERT INTO executions" in statement for statement in seen)
    told = [statement for statement in seen if "channels" in statement or "alerts" in statement]
    assert [statement for statement in told if not statement.startswith("DELETE")] == []  # which are retention's
    assert not [statement for statement in seen if "alert_state=" in statement.replace(" ", "")]


async def test_the_oldest_that_waits_is_measured(post: Post) -> None:
    await post.channel()
    post.kind.replies = [Again("status 500", retry_after_ms=HOUR)]
    await post.fails(seconds=200)
    age = post.house.metrics.registry.get_sample_value("zerocron_alerts_oldest_pending_seconds")
    assert age is not None
    assert 120 < age < 140


async def test_what_ended_is_kept_for_a_month(post: Post) -> None:
    channel = await post.channel()
    await post.fails()
    await post.channels.delete(DEFAULT_TEAM_ID, channel.id)
    old = await post.house.ledger.write(
        lambda connection: alert_rows.remove_finished(connection, post.house.clock.now() - 60_000, 10)
    )
    assert old == 0
    await post.house.sql("UPDATE alerts SET finished_at = finished_at - 31 * 86400000")
    await post.house.sql("UPDATE channels SET updated_at = updated_at - 86400000")
    await post.house.clock.advance(30)
    assert await post.alerts() == []
    assert await post.house.sql("SELECT id FROM channels") == []


async def test_without_a_timetable_alerts_go_out_from_the_ledger(tmp_path: Path) -> None:
    kind, keyring = FakeKind(), read_master_keys(new_master_key(), source="test")
    shaky = Shaky()
    async with House(tmp_path, kinds={"fake": kind}, keyring=keyring, timetable=shaky) as house:
        post = Post(house, kind, keyring)
        await post.channel()
        shaky.is_away = True
        await post.fails(seconds=62)
        assert kind.kinds() == ["job.failed"]
        assert await post.status() == ["sent"]
