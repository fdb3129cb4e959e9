"""Channels, the outbox, and what is told of jobs, on both databases."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.engine.book import Book, failed, succeeded
from tests.storage.samples import DAY, MINUTE, NOON, OTHER_TEAM_ID, a_job, an_id

from zerocron.core.alerting import JOB_DEFAULT, Notify, write_notify
from zerocron.core.model import DEFAULT_TEAM_ID, Instant, Job, JobStatus, Run
from zerocron.core.monitor import Expectation, Watch
from zerocron.core.monitor import Monitor as AMonitor
from zerocron.core.notice import EventKind, Notice
from zerocron.core.schedule import Schedule
from zerocron.core.sealing import CannotOpen, DataKey, new_master_key, read_master_keys
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.alerts import AlertRow, New, read_notice, write_notice
from zerocron.storage.ledger.channels import ChannelRow
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.monitors import FlipRow
from zerocron.storage.ledger.telling import is_to_look, look, tell_flips
from zerocron.storage.timetable.contract import alert_member


def a_key(team_id: str = DEFAULT_TEAM_ID) -> DataKey:
    return read_master_keys(new_master_key(), source="test").newest.new_data_key(an_id(), team_id)[0]


def a_channel(**given: Any) -> ChannelRow:
    fields: dict[str, Any] = {
        "id": an_id(),
        "team_id": DEFAULT_TEAM_ID,
        "kind": "fake",
        "name": "c",
        "status": "active",
        "reason": None,
        "destination": "somewhere",
        "data_key_id": an_id(),
        "sealed": "",
        "failures": 0,
        "next_send_at": 0,
        "last_sent_at": None,
        "tested_at": None,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return ChannelRow(**fields | given)


async def keep(ledger: Ledger, **given: Any) -> ChannelRow:
    channel = a_channel(**given)
    await ledger.write(lambda connection: channel_rows.insert(connection, channel))
    return channel


async def alerts_of(ledger: Ledger, team_id: str = DEFAULT_TEAM_ID, **wanted: Any) -> list[AlertRow]:
    """The oldest first."""
    given = {"status": None, "channel_id": None, "subject_id": None, "before": None, "limit": 100} | wanted
    found = await ledger.read(lambda connection: alert_rows.page(connection, team_id, **given))
    return found[::-1]


class Life:
    """A job whose runs end as the test says, a minute apart."""

    def __init__(self, ledger: Ledger) -> None:
        self.book = Book(ledger)
        self.now: Instant = NOON

    async def begin(self, notify: Notify = JOB_DEFAULT, **given: Any) -> Job:
        self.job = await self.book.keep(a_job(notify=write_notify(notify, "job"), **given))
        return self.job

    async def run(self, *, well: bool) -> tuple[Run, dict[str, Instant]]:
        """The run, and the members that its end put into the timetable."""
        started = await self.book.start(self.job, now=self.now)
        result = succeeded(started.runs[0]) if well else failed(started.runs[0])
        finished = await self.book.finish(result, now=self.now + 100)
        self.now += MINUTE
        return started.runs[0].run, finished.put

    async def state(self) -> str:
        def look_up(connection: Connection) -> str:
            return str(connection.exec_driver_sql("SELECT alert_state FROM jobs").scalar_one())

        return await self.book.ledger.read(look_up)


def notice_of(alert: AlertRow) -> Notice:
    assert alert.notice is not None
    return alert.notice


async def test_a_failure_and_its_end_are_one_row_each_for_each_channel(ledger: Ledger) -> None:
    one, other = await keep(ledger), await keep(ledger, next_send_at=NOON + 5 * MINUTE)
    await keep(ledger, status="paused")
    await keep(ledger, team_id=OTHER_TEAM_ID)
    life = Life(ledger)
    await life.begin(name="nightly", tags=("a",))
    run, put = await life.run(well=False)
    found = await alerts_of(ledger)
    assert {alert.channel_id for alert in found} == {one.id, other.id}
    assert len({alert.event_id for alert in found}) == 1
    for alert in found:
        at = max(alert.created_at, NOON + 5 * MINUTE if alert.channel_id == other.id else 0)
        assert (alert.status, alert.tries, alert.next_attempt_at) == ("pending", 0, at)
        assert put[alert_member(alert.team_id, alert.id)] == at
    notice = notice_of(found[0])
    assert (notice.subject_name, notice.run_id, notice.slot, notice.tags) == ("nightly", run.id, NOON, ("a",))
    assert (notice.output, notice.reason) == ("ok", "The status was 500; the job accepts 2xx.")
    await life.run(well=False)
    assert len(await alerts_of(ledger)) == 2
    await life.run(well=True)
    assert [alert.kind for alert in await alerts_of(ledger)] == ["job.failed"] * 2 + ["job.recovered"] * 2
    assert await life.state() == ""


@pytest.mark.parametrize(
    "damage",
    [
        "alert_state = '{x'",
        "notify = '{x'",
        "tags = '{x'",
        "schedule_kind = 'once', schedule_cron = NULL, schedule_at = 1, timezone = 'Nowhere/Gone'",
        "schedule_cron = 'nonsense'",
    ],
)
@pytest.mark.parametrize("well", [True, False])
async def test_a_job_that_cannot_be_told_of_ends_its_run_all_the_same(ledger: Ledger, damage: str, well: bool) -> None:
    await keep(ledger)
    life = Life(ledger)
    job = await life.begin()
    [started] = (await life.book.start(job, now=NOON)).runs
    await ledger.write(lambda connection: connection.exec_driver_sql(f"UPDATE jobs SET {damage}").close())
    finished = await life.book.finish(succeeded(started) if well else failed(started), now=NOON + 100)
    assert (finished.settled, finished.late) == (1, 0)
    assert (await life.book.run(started)).status == ("succeeded" if well else "failed")


async def test_that_a_job_is_disabled_is_told_once_however_many_runs_were_under_way(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    job = await life.begin(overlap="allow", disable_after=1)
    runs = [(await life.book.start(job, now=NOON + minute * MINUTE)).runs[0] for minute in range(3)]
    await life.book.finish(failed(runs[0]), now=NOON + 3 * MINUTE)
    await life.book.finish(*map(failed, runs[1:]), now=NOON + 4 * MINUTE)
    assert [alert.kind for alert in await alerts_of(ledger)] == ["job.disabled"]


async def test_a_job_that_is_well_is_not_written_to(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    await life.begin(Notify(JOB_DEFAULT.on, after_failures=3))
    for _ in range(3):
        await life.run(well=True)
    assert (await alerts_of(ledger), await life.state()) == ([], "")


async def test_the_state_survives_between_runs(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    await life.begin(Notify(JOB_DEFAULT.on, after_failures=2, out_of=4))
    kinds = []
    for well in (False, True, False, True, True):
        await life.run(well=well)
        kinds.append([alert.kind for alert in await alerts_of(ledger)])
    assert kinds == [[], [], ["job.failed"], ["job.failed"], ["job.failed", "job.recovered"]]


async def test_a_result_that_is_recorded_twice_is_told_once(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    await life.begin()
    started = await life.book.start(life.job)
    for _ in range(2):
        await life.book.finish(failed(started.runs[0]))
    assert len(await alerts_of(ledger)) == 1


async def test_a_lost_run_and_a_disabled_job(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    await life.begin(on_lost="give_up", disable_after=1)
    await life.book.start(life.job)
    await life.book.lose()
    (alert,) = await alerts_of(ledger)
    assert (alert.kind, notice_of(alert).next_at) == ("job.disabled", None)
    assert (await life.book.job(life.job)).status == JobStatus.DISABLED


async def test_missed_slots_are_one_row(ledger: Ledger) -> None:
    await keep(ledger)
    life = Life(ledger)
    await life.begin()
    started = await life.book.start(life.job, now=NOON + 10 * MINUTE)
    (alert,) = await alerts_of(ledger)
    assert (alert.kind, notice_of(alert).count, notice_of(alert).slot) == ("job.missed", 10, NOON)
    assert alert_member(alert.team_id, alert.id) in started.put


async def test_what_is_told_of_a_monitor(ledger: Ledger) -> None:
    channel = await keep(ledger)
    every = Schedule("interval", None, 60 * MINUTE, NOON, "UTC")
    monitor = AMonitor(
        id=an_id(),
        team_id=DEFAULT_TEAM_ID,
        version=1,
        name="backup",
        schedule_text="every hour",
        expectation=Expectation(every),
        post_only=False,
        notify=write_notify(Notify(("down", "up", "late"), (channel.id,), remind_every=300), "monitor"),
        tags=(),
        warnings=(),
        language="en",
        token_hash=an_id(),
        token_sealed="",
        token_changed_at=NOON,
        watch=Watch(created_at=NOON, health="down", since=NOON),
        pings=0,
        flips=2,
        created_at=NOON,
        updated_at=NOON,
    )
    await ledger.write(lambda connection: monitor_rows.insert(connection, monitor))
    flip = FlipRow(monitor.id, 2, DEFAULT_TEAM_ID, NOON, NOON + 5, "up", "down", "silence", {"last_ping_at": 7})

    def in_turn(connection: Connection) -> list[Any]:
        held = monitor_rows.lock(connection, [monitor.id], wait=True)
        told: list[Any] = [tell_flips(connection, held, [flip], NOON + 5)]
        monitor_rows.save_watches(connection, [held[monitor.id]], [0])
        told += [is_to_look(connection, NOON + 300_004), is_to_look(connection, NOON + 300_005)]
        told += [look(connection, NOON + 300_005), look(connection, NOON + 300_006)]
        held = monitor_rows.lock(connection, [monitor.id], wait=True)
        held[monitor.id].alert_at = NOON + 300_007
        monitor_rows.save_watches(connection, [held[monitor.id]], [0])
        return [*told, look(connection, NOON + 300_007)]

    first, early, due, again, nothing, asked = await ledger.write(in_turn)
    assert len(first) == 1
    assert (early, due) == (False, True)
    assert (again[0], len(again[1]), nothing, asked) == (1, 1, (0, {}), (1, {}))
    down, reminder = await alerts_of(ledger, subject_id=monitor.id)
    assert (notice_of(down).reminder, notice_of(reminder).reminder, notice_of(down).since) == (False, True, 7)
    assert notice_of(down).subject_name == "backup"


@pytest.mark.parametrize("kind", list(EventKind))
async def test_a_notice_is_kept_as_it_is(kind: EventKind) -> None:
    notice = Notice(an_id(), kind, DEFAULT_TEAM_ID, NOON, an_id(), "Ünïcode \0", output="x" * 2_000, tags=("a", "b"))
    assert read_notice(write_notice(notice)) == notice


async def test_a_channel_and_its_configuration(ledger: Ledger) -> None:
    key = a_key()
    channel = a_channel(data_key_id=key.id)
    channel = dataclasses.replace(channel, sealed=channel_rows.seal(key, channel.id, {"url": "https://x.test/ü"}))
    await ledger.write(lambda connection: channel_rows.insert(connection, channel))
    found = await ledger.read(lambda connection: channel_rows.get(connection, DEFAULT_TEAM_ID, channel.id))
    assert found == channel
    assert channel_rows.opened(key, channel) == {"url": "https://x.test/ü"}
    with pytest.raises(CannotOpen):
        channel_rows.opened(key, dataclasses.replace(channel, id=an_id()))
    newer = a_key()
    resealed = await ledger.write(
        lambda connection: channel_rows.reseal(connection, DEFAULT_TEAM_ID, {key.id: key}, newer)
    )
    again = await ledger.read(lambda connection: channel_rows.get(connection, DEFAULT_TEAM_ID, channel.id))
    assert (resealed, again is not None) == (1, True)
    assert again is not None
    assert (again.data_key_id, channel_rows.opened(newer, again)) == (newer.id, {"url": "https://x.test/ü"})
    with pytest.raises(CannotOpen):
        await ledger.write(lambda connection: channel_rows.reseal(connection, DEFAULT_TEAM_ID, {}, a_key()))


async def test_another_teams_channel_is_not_there(ledger: Ledger) -> None:
    theirs, mine = await keep(ledger, team_id=OTHER_TEAM_ID), await keep(ledger)
    gone = await keep(ledger, status="deleted")

    def ask(connection: Connection) -> tuple[Any, ...]:
        return (
            channel_rows.get(connection, DEFAULT_TEAM_ID, theirs.id),
            channel_rows.get(connection, DEFAULT_TEAM_ID, gone.id, lock=True),
            channel_rows.missing(connection, DEFAULT_TEAM_ID, [mine.id, theirs.id, gone.id]),
            channel_rows.count(connection, DEFAULT_TEAM_ID),
            [one.id for one in channel_rows.page(connection, DEFAULT_TEAM_ID, before=None, limit=9)],
        )

    assert await ledger.write(ask) == (None, None, [theirs.id, gone.id], 1, [mine.id])


async def test_who_names_a_channel(ledger: Ledger) -> None:
    channel = await keep(ledger)
    book = Book(ledger)
    notify = write_notify(Notify(JOB_DEFAULT.on, (channel.id,)), "job")
    await book.keep(a_job(name="b", notify=notify))
    await book.keep(a_job(name="a", notify=notify))
    await book.keep(a_job(name="c"))
    await book.keep(a_job(name="gone", notify=notify, status="deleted", next_run_at=None))
    named = await ledger.read(lambda c: channel_rows.named_by(c, DEFAULT_TEAM_ID, channel.id, 9))
    assert named == [("job", "a"), ("job", "b")]
    assert await ledger.read(lambda c: channel_rows.named_by(c, OTHER_TEAM_ID, channel.id, 9)) == []


async def test_what_ended_long_ago_is_forgotten(ledger: Ledger) -> None:
    channel, gone = await keep(ledger), await keep(ledger, status="deleted")
    for number in range(3):
        notice = Notice(an_id(), EventKind.JOB_FAILED, DEFAULT_TEAM_ID, NOON, an_id(), "x")
        new = New(an_id(), (gone if number == 2 else channel).id, notice, NOON)

        def write(connection: Connection, new: New = new, number: int = number) -> None:
            alert_rows.insert(connection, [new], NOON)
            if number:
                assert alert_rows.accept(connection, new.id, NOON + number, "ok")
                assert not alert_rows.bury(connection, new.id, NOON, "it is sent already")
            channel_rows.remove_deleted(connection, gone.updated_at)

        await ledger.write(write)

    def forget(connection: Connection) -> list[int]:
        return [alert_rows.remove_finished(connection, NOON + DAY, 1) for _ in range(3)]

    removed = await ledger.write(forget)
    await ledger.write(lambda connection: channel_rows.remove_deleted(connection, gone.updated_at))
    assert await ledger.write(lambda connection: channel_rows.hold(connection, [gone.id])) != {}, "too young"
    await ledger.write(lambda connection: channel_rows.remove_deleted(connection, NOON + DAY))
    assert removed == [1, 1, 0]
    assert [alert.status for alert in await alerts_of(ledger)] == ["pending"]
    assert await ledger.write(lambda connection: channel_rows.hold(connection, [gone.id])) == {}


async def test_pages_of_alerts(ledger: Ledger) -> None:
    channel = await keep(ledger)
    for number in range(5):
        notice = Notice(an_id(), EventKind.JOB_FAILED, DEFAULT_TEAM_ID, NOON, an_id(), f"{number}")
        new = New(an_id(), channel.id, notice, NOON)
        await ledger.write(lambda connection, new=new: alert_rows.insert(connection, [new], NOON))  # type: ignore[misc]
    everything = await alerts_of(ledger)
    newest = everything[-1]
    older = await alerts_of(ledger, before=(newest.created_at, newest.id), limit=2)
    assert [alert.id for alert in older] == [alert.id for alert in everything[2:4]]
    assert await alerts_of(ledger, status="dead") == []
    assert await ledger.read(alert_rows.oldest_pending) == NOON
