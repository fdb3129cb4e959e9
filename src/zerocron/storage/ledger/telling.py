"""Puts what people are to be told into the outbox, in the transaction of the change that it is about.

Owns the way from a change (a run that ended, a monitor that flipped) to its alerts: what `core.alerting` decides is
written down here with the facts of the moment, one row for each channel. Whoever calls holds the rows of the jobs and
monitors, so that two nodes tell a thing once. Where there is nothing to tell it asks the ledger nothing. Must never
send anything, and never decide.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import orjson
import structlog
from sqlalchemy import Connection, Select, Table, select, update

from zerocron.core.alerting import (
    NOTHING,
    Event,
    Notify,
    Told,
    flipped,
    looked_at,
    notify_of_text,
    read_told,
    reminder_at,
    run_ended,
    unheard,
    wants,
    write_told,
)
from zerocron.core.ids import new_id
from zerocron.core.model import (
    REASON_TEXTS,
    EngineJob,
    Execution,
    Instant,
    JobStatus,
    Reason,
    Run,
    RunStatus,
    TriggeredBy,
)
from zerocron.core.monitor import FLIP_REASON_TEXTS, FlipReason, Health, MonitorStatus, Outage, Verdict, judge
from zerocron.core.monitor_schedule import describe_expected
from zerocron.core.notice import OUTPUT_CHARACTERS_MAX, REASON_CHARACTERS_MAX, EventKind, Notice
from zerocron.core.recent import Recent
from zerocron.core.schedule import Schedule
from zerocron.core.understanding import describe
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import channels as channel_rows
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.channels import ChannelRow
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, pack, packed
from zerocron.storage.ledger.monitor_tables import monitors
from zerocron.storage.ledger.monitors import FlipRow, Watched
from zerocron.storage.ledger.scheduled import schedule_columns
from zerocron.storage.ledger.tables import jobs
from zerocron.storage.timetable.contract import alert_member

log = structlog.get_logger(__name__)
_complained = Recent()

OUTAGE_TOLD_MS = 60_000
"""A shorter outage of the ping path is recorded and told to nobody: a server that is restarted has one."""

AFFECTED_LOOKED_AT_MAX = 2_000
"""So many monitors with a calendar are asked whether an outage touched them; those that are due first."""

LATE_LOOK_MS = 30_000
"""A monitor that is late, and whose lateness is told, is looked at again so much later."""

UNHEARD_LOOK_MS = 60_000
"""While a monitor is down and there is no channel to tell it by, it is looked at again so much later."""

DAMAGED_LOOK_MS = 300_000
LOOK_MAX = 200
SERVER = "0cron"

_EVENTS = uuid.uuid5(uuid.NAMESPACE_URL, "https://0cron.dev/event")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a notice says of its subject, besides what happened."""

    name: str
    language: str
    timezone: str
    schedule: str
    tags: tuple[str, ...]


@dataclass(slots=True)
class _Telling:
    """An event on its way to the channels that `notify` names; None: to all of the team. `notice` is made for those who
    have a channel: when ten thousand monitors fall silent and nobody is told, it would be much work for nothing."""

    team_id: str
    subject_id: str
    notify: Notify | None
    notice: Callable[[], Notice]


class JobTelling:
    """What one transaction of the engine has to tell of the jobs it holds."""

    def __init__(self, connection: Connection, now: Instant) -> None:
        self._connection = connection
        self._now = now
        self._events: list[_Telling] = []
        self._told: dict[str, tuple[EngineJob, Told, Told]] = {}  # job, before, after

    def ended(self, job: EngineJob, run: Run, execution: Execution | None, *, disabled: bool = False) -> None:
        """A run of the job succeeded, failed or was lost, and is counted already. `disabled`: the job, by this one."""
        with _told_of_nobody(job.id):
            self._ended(job, run, execution, disabled)

    def _ended(self, job: EngineJob, run: Run, execution: Execution | None, disabled: bool) -> None:
        failed = run.status != RunStatus.SUCCEEDED
        if run.status == RunStatus.CANCELLED or job.status == JobStatus.DELETED:
            return
        if not failed and not job.alert_state and job.notify == "{}":
            return  # the hot path: nothing was told, and a success is not to be
        notify = notify_of_text(job.notify, "job")
        first, _, before = self._told.get(job.id, (job, NOTHING, read_told(job.alert_state)))
        after, events = run_ended(notify, before, failed=failed, now=self._now, disabled=disabled)
        if after != before:
            self._told[job.id] = (first, read_told(job.alert_state), after)
        for event in events:
            self._add(job, run, event, notify, **_outcome(job, run, execution, event))

    def began(self, job: EngineJob, run: Run) -> None:
        """The first request of a scheduled run is known to have been sent, at `started_at`."""
        if job.notify == "{}" or run.triggered_by != TriggeredBy.SCHEDULE or run.started_at is None:
            return
        with _told_of_nobody(job.id):
            notify = notify_of_text(job.notify, "job")
            late_ms = run.started_at - run.scheduled_for
            if late_ms > notify.late_after * 1000 and wants(notify, EventKind.JOB_LATE):
                reason = f"Its request began {late_ms / 1000:,.0f} seconds after its time."
                self._add(job, run, Event(EventKind.JOB_LATE), notify, reason=reason)

    def skipped(self, job: EngineJob, run: Run) -> None:
        """Slots of the job were recorded as not run."""
        if run.reason not in (Reason.MISSED, Reason.TEAM_LIMIT) or job.status == JobStatus.DELETED:
            return
        with _told_of_nobody(job.id):
            notify = notify_of_text(job.notify, "job")
            if wants(notify, EventKind.JOB_MISSED):
                reason = REASON_TEXTS[Reason(run.reason)]
                self._add(job, run, Event(EventKind.JOB_MISSED), notify, reason=reason, count=run.count)

    def write(self) -> dict[str, Instant]:
        """Write it all down; the members of the alerts, for the timetable."""
        if not self._events and not self._told:
            return {}
        due, heard = _write(self._connection, self._events, self._now, jobs)
        changed = []
        for job, before, after in self._told.values():
            told = after if job.id in heard else unheard(before, after)
            if told != before:
                changed.append([job.id, write_told(told)])
        if changed:
            rows = batch(self._connection.dialect.name, columns_of((jobs.c.id, jobs.c.alert_state)))
            statement = update(jobs).values(alert_state=rows.c.alert_state).where(jobs.c.id == rows.c.id)
            self._connection.execute(statement, pack(changed))
        return due

    def _add(self, job: EngineJob, run: Run, event: Event, notify: Notify, **facts: Any) -> None:
        notice = partial(
            Notice,
            event_id=_event_id(event.kind, run.id),
            kind=event.kind,
            team_id=job.team_id,
            at=self._now,
            subject_id=job.id,
            subject_name="",
            since=event.since,
            slot=run.scheduled_for,
            run_id=run.id,
            next_at=job.state.next_run_at if job.status == JobStatus.ACTIVE else None,
            reminder=event.reminder,
            **facts,
        )
        self._events.append(_Telling(job.team_id, job.id, notify, notice))


def _outcome(job: EngineJob, run: Run, execution: Execution | None, event: Event) -> dict[str, Any]:
    """What a notice says of how a run ended."""
    reason = output = None
    if event.kind == EventKind.JOB_DISABLED:
        reason = job.state.status_reason
    elif run.status != RunStatus.SUCCEEDED:
        reason = execution.error_message if execution is not None else None
        reason = reason or (REASON_TEXTS[Reason(run.reason)] if run.reason else None)
    if execution is not None and execution.response_body and (execution.response or {}).get("encoding") == "utf-8":
        output = execution.response_body[:OUTPUT_CHARACTERS_MAX]
    return {
        "reason": None if reason is None else reason[:REASON_CHARACTERS_MAX],
        "output": output,
        "count": max(1, job.state.consecutive_failures),
        "duration_ms": None if execution is None else round(execution.duration_ms),
    }


# ---- monitors --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Subject:
    """What is to be told of a monitor that is held, and what was and is known of its trouble."""

    notify: Notify
    before: Told
    told: Told


def tell_flips(
    connection: Connection,
    held: Mapping[str, Watched],
    flips: Sequence[FlipRow],
    now: Instant,
    outputs: Mapping[str, str | None] | None = None,
) -> dict[str, Instant]:
    """Tell of flips of monitors that are held, in their order; the members of the alerts. `outputs`: by monitor, what
    its job said. Whoever calls saves the monitors: `alert_state` and `alert_at` of those that flipped are set anew."""
    if not flips:
        return {}
    subjects = _subjects([held[monitor_id] for monitor_id in dict.fromkeys(flip.monitor_id for flip in flips)])
    events: list[_Telling] = []
    alert_at: dict[str, Instant | None] = {}
    for flip in flips:
        subject = subjects.get(flip.monitor_id)
        if subject is None:
            continue
        subject.told, found = flipped(subject.notify, subject.told, after=flip.after, at=flip.at, now=now)
        for event in found:
            output = (outputs or {}).get(flip.monitor_id)
            notice = partial(_flip_notice, flip, event, output)
            events.append(_Telling(flip.team_id, flip.monitor_id, subject.notify, notice))
        is_watched = flip.after == Health.UP and wants(subject.notify, EventKind.MONITOR_LATE)
        alert_at[flip.monitor_id] = now if is_watched else None
    due, heard = _write(connection, events, now, monitors)
    _note_told(held, subjects, heard, alert_at, now)
    return due


def is_to_look(connection: Connection, now: Instant) -> bool:
    """Whether `look` would find a monitor."""
    return connection.scalar(select(monitors.c.id).where(monitors.c.alert_at <= now).limit(1)) is not None


def look(connection: Connection, now: Instant) -> tuple[int, dict[str, Instant]]:
    """Tell of monitors that are late, and remind of those that are down: how many were looked at, and the members of
    the alerts."""
    query = select(monitors.c.id).where(monitors.c.alert_at <= now).order_by(monitors.c.alert_at).limit(LOOK_MAX)
    monitor_ids = [row[0] for row in fetch(connection, query, {})]
    if not monitor_ids:
        return 0, {}
    held = monitor_rows.lock(connection, monitor_ids, wait=False)
    subjects = _subjects(held.values())
    begun = [one.watch.anchor for one in held.values() if one.watch.anchor is not None]
    outages = monitor_rows.known_outages(connection, min(begun, default=now), now)
    events: list[_Telling] = []
    alert_at: dict[str, Instant | None] = {}
    for one in held.values():
        subject, watch = subjects.get(one.id), one.watch
        if subject is None:
            one.alert_at = now + DAMAGED_LOOK_MS
            continue
        is_active = watch.status == MonitorStatus.ACTIVE
        is_down = is_active and watch.health == Health.DOWN
        verdict = None
        if is_active and not is_down:
            with contextlib.suppress(Exception):  # a row that is damaged keeps nobody else from being told
                verdict = judge(one.expectation, watch, now, outages)
        late_for = verdict.expected_at if verdict is not None and verdict.health == Health.LATE else None
        subject.told, found = looked_at(subject.notify, subject.told, is_down=is_down, late_for=late_for, now=now)
        for event in found:
            notice = partial(_look_notice, one, event, verdict, now)
            events.append(_Telling(one.team_id, one.id, subject.notify, notice))
        alert_at[one.id] = reminder_at(subject.notify, subject.told) if is_down else None
        if verdict is not None and wants(subject.notify, EventKind.MONITOR_LATE) and verdict.expected_at is not None:
            is_overdue = verdict.expected_at < now
            alert_at[one.id] = now + LATE_LOOK_MS if is_overdue else verdict.expected_at + 1
    due, heard = _write(connection, events, now, monitors)
    _note_told(held, subjects, heard, alert_at, now)
    monitor_rows.save_watches(connection, list(held.values()), [one.flips for one in held.values()])
    return len(held), due


def _look_notice(one: Watched, event: Event, verdict: Verdict | None, now: Instant) -> Notice:
    is_late = event.kind == EventKind.MONITOR_LATE
    slot = verdict.expected_at if is_late and verdict is not None else None
    return Notice(
        event_id=_event_id(event.kind, f"{one.id}:{slot if is_late else now}"),
        kind=event.kind,
        team_id=one.team_id,
        at=now,
        subject_id=one.id,
        subject_name="",
        reason=FLIP_REASON_TEXTS[FlipReason.SILENCE if is_late else FlipReason(one.watch.reason or "silence")],
        since=one.watch.last_ping_at,
        slot=slot,
        next_at=verdict.down_at if verdict is not None else None,
        reminder=event.reminder,
    )


def _flip_notice(flip: FlipRow, event: Event, output: str | None) -> Notice:
    details = flip.details
    is_down = event.kind == EventKind.MONITOR_DOWN
    return Notice(
        event_id=_event_id(event.kind, flip.id),
        kind=event.kind,
        team_id=flip.team_id,
        at=flip.at,
        subject_id=flip.monitor_id,
        subject_name="",
        reason=FLIP_REASON_TEXTS[FlipReason(flip.reason)],
        since=details.get("last_ping_at") if is_down else event.since,
        slot=details.get("expected_at"),
        count=max(1, details.get("missed", 1)),
        duration_ms=None if is_down or event.since is None else flip.at - event.since,
        output=output[:OUTPUT_CHARACTERS_MAX] if output else None,
    )


def _subjects(held: Iterable[Watched]) -> dict[str, _Subject]:
    subjects = {}
    for one in held:
        with _told_of_nobody(one.id):
            told = read_told(one.alert_state)
            subjects[one.id] = _Subject(notify_of_text(one.notify, "monitor"), told, told)
    return subjects


@contextlib.contextmanager
def _told_of_nobody(subject_id: str) -> Iterator[None]:
    """A row that is damaged is told of nobody; it keeps no run from ending, and no other from being told of."""
    try:
        yield
    except Exception:
        if _complained.is_new(subject_id):
            log.exception("not_told", subject_id=subject_id)


def _note_told(
    held: Mapping[str, Watched],
    subjects: Mapping[str, _Subject],
    heard: set[str],
    alert_at: Mapping[str, Instant | None],
    now: Instant,
) -> None:
    for monitor_id, subject in subjects.items():
        told = subject.told if monitor_id in heard else unheard(subject.before, subject.told)
        at = alert_at.get(monitor_id)
        if told != subject.told:
            at = now + UNHEARD_LOOK_MS
        one = held[monitor_id]
        one.alert_state = write_told(told)
        one.alert_at = reminder_at(subject.notify, told) if at is None else at


# ---- the server and its channels -------------------------------------------------------------------------------------


def tell_of_outage(connection: Connection, outage: Outage, now: Instant) -> dict[str, Instant]:
    """Tell each team with a monitor whose ping was expected in an outage that is over, once."""
    if outage.ended_at - outage.started_at < OUTAGE_TOLD_MS:
        return {}
    minutes = (outage.ended_at - outage.started_at) / 60_000

    def notice(team_id: str) -> Notice:
        return Notice(
            event_id=_event_id(EventKind.OUTAGE, f"{team_id}:{outage.started_at}"),
            kind=EventKind.OUTAGE,
            team_id=team_id,
            at=outage.ended_at,
            subject_id=team_id,
            subject_name=SERVER,
            reason=f"For {minutes:,.0f} min it could not take pings; no monitor is blamed for that time.",
            since=outage.started_at,
            duration_ms=outage.ended_at - outage.started_at,
        )

    teams = _affected_teams(connection, outage)
    return _write(connection, [_Telling(one, one, None, partial(notice, one)) for one in teams], now)[0]


def _affected_teams(connection: Connection, outage: Outage) -> list[str]:
    """Teams with a monitor that is up, and whose next ping was expected before the outage ended."""
    is_up = (monitors.c.status == MonitorStatus.ACTIVE, monitors.c.health == Health.UP, monitors.c.anchor.is_not(None))
    of_period = select(monitors.c.team_id).where(
        *is_up, monitors.c.anchor + monitors.c.schedule_every_ms <= outage.ended_at
    )
    teams = {row[0] for row in fetch(connection, of_period.distinct(), {})}
    others = (
        select(monitors.c.team_id, monitors.c.anchor, *schedule_columns(monitors))
        .where(*is_up, monitors.c.schedule_every_ms.is_(None), monitors.c.team_id.not_in(teams))
        .order_by(monitors.c.deadline_at)
        .limit(AFFECTED_LOOKED_AT_MAX)
    )
    for team_id, anchor, *schedule in fetch(connection, others, {}):
        if team_id not in teams:
            with contextlib.suppress(Exception):  # a row that is damaged hides no outage from the others
                expected = Schedule(*schedule).next_after(anchor)
                if expected is not None and expected <= outage.ended_at:
                    teams.add(team_id)
    return sorted(teams)


def tell_of_channel(connection: Connection, channel: ChannelRow, reason: str, now: Instant) -> dict[str, Instant]:
    """Tell the team's other channels that this one, which is disabled already, was refused for good."""
    notice = Notice(
        event_id=_event_id(EventKind.CHANNEL_DISABLED, f"{channel.id}:{now}"),
        kind=EventKind.CHANNEL_DISABLED,
        team_id=channel.team_id,
        at=now,
        subject_id=channel.id,
        subject_name=channel.name,
        reason=reason[:REASON_CHARACTERS_MAX],
    )
    return _write(connection, [_Telling(channel.team_id, channel.id, None, lambda: notice)], now)[0]


def _write(
    connection: Connection, events: Sequence[_Telling], now: Instant, subjects: Table | None = None
) -> tuple[dict[str, Instant], set[str]]:
    """(the members of the alerts, the subjects that some channel is told of). `subjects`: the table of those that have
    a name and a schedule."""
    if not events:
        return {}, set()
    ready = channel_rows.active_of_teams(connection, {one.team_id for one in events})
    told = []
    for one in events:
        open_to = ready.get(one.team_id, {})
        named = None if one.notify is None else one.notify.channels
        targets = open_to if named is None else {key: open_to[key] for key in named if key in open_to}
        if targets:
            told.append((one, targets))
    if not told:
        return {}, set()
    heard = {one.subject_id for one, _ in told}
    facts = {} if subjects is None else _facts_of(connection, subjects, heard)
    new, due = [], {}
    for one, targets in told:
        notice = _completed(one.notice(), facts.get(one.subject_id))
        for channel_id, next_send_at in targets.items():
            alert = alert_rows.New(new_id(now), channel_id, notice, max(now, next_send_at))
            new.append(alert)
            due[alert_member(one.team_id, alert.id)] = alert.at
    alert_rows.insert(connection, new, now)
    return due, heard


def _facts_of(connection: Connection, table: Table, subject_ids: Iterable[str]) -> dict[str, _Facts]:
    """By id, of those jobs or monitors that are there."""
    query = _facts_statement(connection.dialect.name, table)
    words_of = describe if table is jobs else describe_expected
    facts = {}
    for subject_id, name, language, tags, *schedule in fetch(connection, query, pack([[one] for one in subject_ids])):
        words, zone = "", "UTC"
        labels: tuple[str, ...] = ()
        with contextlib.suppress(Exception):
            labels = tuple(orjson.loads(tags))
        with contextlib.suppress(Exception):  # a schedule that is damaged, or whose zone is gone, has no words
            made = Schedule(*schedule)
            zone = made.timezone
            words = words_of(made, language)
        facts[subject_id] = _Facts(name, language, zone, words, labels)
    return facts


@cache
def _facts_statement(dialect: str, table: Table) -> Select[Any]:
    wanted = batch(dialect, {"id": table.c.id.type}, "wanted")
    query = select(table.c.id, table.c.name, table.c.language, table.c.tags, *schedule_columns(table))
    return packed(dialect, query.where(table.c.id.in_(select(wanted.c.id))))


def _completed(notice: Notice, facts: _Facts | None) -> Notice:
    if facts is None:
        return notice
    given = {name: getattr(notice, name) for name in Notice.__slots__}
    given |= {
        "subject_name": facts.name,
        "language": facts.language,
        "timezone": facts.timezone,
        "schedule": facts.schedule,
        "tags": facts.tags,
    }
    return Notice(**given)


def _event_id(kind: EventKind, what: str) -> str:
    """The same for the same event, however often it is written down."""
    return str(uuid.uuid5(_EVENTS, f"{kind}:{what}"))
