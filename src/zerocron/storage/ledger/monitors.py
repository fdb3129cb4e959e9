"""Monitors in the ledger, with their pings, their flips, and the outages in which no ping could be taken.

Owns every query on those tables. The row of a monitor is the lock of its pings and flips, which it numbers. Must never
decide anything: `core.monitor` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, TypeVar

import orjson
import structlog
from sqlalchemy import Column, Connection, Integer, Select, func, or_, select, update
from sqlalchemy.sql import ColumnElement, Insert, Update

from zerocron.core.model import Due, Instant
from zerocron.core.monitor import (
    Expectation,
    Flip,
    Health,
    Monitor,
    MonitorStatus,
    OpenRun,
    Outage,
    PingKind,
    Watch,
    outages_with_gap,
)
from zerocron.core.recent import Recent
from zerocron.core.schedule import Schedule
from zerocron.storage.ledger import facts, scheduled
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, insert_batch, lock_rows, pack, packed
from zerocron.storage.ledger.monitor_tables import flips, monitors, outages, pings
from zerocron.storage.ledger.scheduled import Place, in_order, oldest_due, schedule_columns, schedule_values

T = TypeVar("T")

log = structlog.get_logger(__name__)
_told = Recent()

EXPECTATIONS_KEPT = 10_000

CLOCK_STEP_MS = 1_000
"""By so much a clock is set back, and does not merely differ a little from that of another node."""


@dataclass(frozen=True, slots=True)
class PingRow:
    """A ping as it is kept. `body_bytes` is how much was sent, of which `body` may be the beginning."""

    monitor_id: str
    number: int
    team_id: str
    kind: str
    received_at: Instant
    rid: str | None
    exit_code: int | None
    duration_ms: int | None
    method: str
    source: str
    user_agent: str
    body: str | None
    body_bytes: int


@dataclass(frozen=True, slots=True)
class FlipRow:
    """A flip as it is kept; `noticed_at` is when it was found out."""

    monitor_id: str
    number: int
    team_id: str
    at: Instant
    noticed_at: Instant
    before: str
    after: str
    reason: str
    details: dict[str, Any]

    @property
    def id(self) -> str:
        """Names the event for whoever is told about it, however often."""
        return f"{self.monitor_id}.{self.number}"


_SCHEDULE = schedule_columns(monitors)
_RULE: tuple[Column[Any], ...] = (
    monitors.c.grace_ms,
    monitors.c.max_run_ms,
    monitors.c.min_run_ms,
    monitors.c.resume_on_ping,
)
_WATCH: tuple[Column[Any], ...] = (
    monitors.c.status,
    monitors.c.health,
    monitors.c.since,
    monitors.c.reason,
    monitors.c.anchor,
    monitors.c.failed_at,
    monitors.c.result_at,
    monitors.c.last_ping_at,
    monitors.c.last_ping_kind,
    monitors.c.runs,
    monitors.c.ended_runs,
    monitors.c.deadline_at,
    monitors.c.resume_at,
)
_COUNTS: tuple[Column[Any], ...] = (monitors.c.pings, monitors.c.flips)
_TOLD: tuple[Column[Any], ...] = (monitors.c.alert_state, monitors.c.alert_at)
_WATCHED: tuple[Column[Any], ...] = (
    monitors.c.id,
    monitors.c.team_id,
    monitors.c.post_only,
    monitors.c.notify,
    monitors.c.created_at,
    *_COUNTS,
    *_TOLD,
    *_SCHEDULE,
    *_RULE,
    *_WATCH,
)
_OWN: tuple[Column[Any], ...] = (
    monitors.c.version,
    monitors.c.name,
    monitors.c.schedule,
    monitors.c.tags,
    monitors.c.warnings,
    monitors.c.language,
    monitors.c.token_hash,
    monitors.c.token_sealed,
    monitors.c.token_changed_at,
    monitors.c.updated_at,
)
_N_SCHEDULE = len(_SCHEDULE)
_N_EXPECTATION = _N_SCHEDULE + len(_RULE)
_ALL = (*_OWN, *_WATCHED)
_PING: tuple[Column[Any], ...] = tuple(pings.c[field.name] for field in fields(PingRow))
_FLIP: tuple[Column[Any], ...] = (
    flips.c.monitor_id,
    flips.c.number,
    flips.c.team_id,
    flips.c.at,
    flips.c.noticed_at,
    flips.c.before,
    flips.c.after,
    flips.c.reason,
    flips.c.details,
)
_PULSE = "pings_taken_at"
_SAVED = "saved"
_alive = monitors.c.status != MonitorStatus.DELETED


@dataclass(slots=True)
class Watched:
    """The part of a monitor that pings and time change, and what people know of it: `alert_state` as
    `core.alerting.write_told` has it, `alert_at` when that is looked at again, `notify` as it is kept."""

    id: str
    team_id: str
    post_only: bool
    notify: str
    pings: int
    flips: int
    alert_state: str
    alert_at: Instant | None
    expectation: Expectation
    watch: Watch

    @property
    def number_and_team(self) -> tuple[str, int, str]:
        """The key of its newest ping, and its team."""
        return self.id, self.pings, self.team_id


def insert(connection: Connection, monitor: Monitor) -> None:
    connection.execute(
        monitors.insert(), _user_values(monitor) | _watch_values(monitor.watch) | {"created_at": monitor.created_at}
    )


def update_definition(connection: Connection, monitor: Monitor, *, seen_version: int) -> bool:
    """Write what a user changed and what that did; False when the monitor is no longer at `seen_version`."""
    statement = (
        update(monitors)
        .where(monitors.c.id == monitor.id, monitors.c.version == seen_version, _alive)
        .values(_user_values(monitor) | _watch_values(monitor.watch) | {"flips": monitor.flips})
    )
    return connection.execute(statement).rowcount == 1


def delete(connection: Connection, team_id: str, monitor_id: str, now: Instant) -> bool:
    """Forget all but the row itself, whose history retention removes; False when there is none."""
    statement = (
        update(monitors)
        .where(monitors.c.id == monitor_id, monitors.c.team_id == team_id, _alive)
        .values(
            status=MonitorStatus.DELETED,
            deadline_at=None,
            alert_at=None,
            token_sealed="",
            token_changed_at=now,
            updated_at=now,
            version=monitors.c.version + 1,
        )
    )
    return connection.execute(statement).rowcount == 1


def get(connection: Connection, team_id: str, monitor_id: str, *, lock: bool = False) -> Monitor | None:
    """The monitor, unless there is none, it is deleted, or it is another team's."""
    query = select(*_ALL).where(monitors.c.id == monitor_id, monitors.c.team_id == team_id, _alive)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _monitor(row)


def page(
    connection: Connection,
    team_id: str,
    *,
    status: str | None,
    health: str | None,
    tag: str | None,
    text: str | None,
    before: Place | None,
    limit: int,
    state: ColumnElement[bool] | None = None,
    sort: str = "-created_at",
) -> list[tuple[Any, Monitor]]:
    """(what it is sorted by, monitor) in that order, from the one after the place `before` on."""
    query = select(*_ALL).where(monitors.c.team_id == team_id, _alive)
    if state is not None:
        query = query.where(state)
    if status is not None:
        query = query.where(monitors.c.status == status)
    if health is not None:
        query = query.where(monitors.c.health == health, monitors.c.status == MonitorStatus.ACTIVE)
    if tag is not None:
        query = query.where(scheduled.has_tag(monitors.c.tags, tag))
    if text is not None:
        query = query.where(monitors.c.name.icontains(text, autoescape=True))
    rows = fetch(connection, in_order(query, monitors, sort, before, limit), {})
    return [(row[0], _monitor(row[1:])) for row in rows]


def some(
    connection: Connection, team_id: str, condition: ColumnElement[bool], order: ColumnElement[Any], limit: int
) -> list[Monitor]:
    """Monitors of the team that meet a condition, in an order."""
    query = select(*_ALL).where(monitors.c.team_id == team_id, _alive, condition).order_by(order, monitors.c.id)
    return [_monitor(row) for row in fetch(connection, query.limit(limit), {})]


def of_ids(connection: Connection, team_id: str, monitor_ids: Sequence[str]) -> list[Monitor]:
    """Those of the monitors that are the team's and not deleted."""
    return some(connection, team_id, monitors.c.id.in_(monitor_ids), monitors.c.id, len(monitor_ids))


def lock(connection: Connection, monitor_ids: Sequence[str], *, wait: bool) -> dict[str, Watched]:
    """Monitors that are not deleted, held until the transaction ends. `wait` for those that somebody else holds, in
    the order of their ids so that two never wait for each other; else they are left out."""
    query = _lock_statement(connection.dialect.name, wait=wait)
    return {row[0]: _watched(row) for row in fetch(connection, query, pack([[one] for one in monitor_ids]))}


@cache
def _lock_statement(dialect: str, *, wait: bool) -> Select[Any]:
    wanted = batch(dialect, {"id": monitors.c.id.type}, "wanted")
    query = select(*_WATCHED).where(monitors.c.id.in_(select(wanted.c.id)), _alive).order_by(monitors.c.id)
    return packed(dialect, query.with_for_update() if wait else lock_rows(query))


def save_watches(connection: Connection, changed: Sequence[Watched], seen_flips: Sequence[int]) -> int:
    """Write what pings and time did to monitors that are held, and what was told of it; how many rows it met.

    `seen_flips` has how many flips each had when it was read: the compare of the compare-and-set.
    """
    return connection.execute(_save_statement(connection.dialect.name), _watches(changed, seen_flips)).rowcount


def _watches(changed: Sequence[Watched], seen_flips: Sequence[int]) -> dict[str, str]:
    rows = [
        [one.id, seen, one.pings, one.flips, one.alert_state, one.alert_at, *_watch_values(one.watch).values()]
        for one, seen in zip(changed, seen_flips, strict=True)
    ]
    return pack(rows, _SAVED)


@cache
def _save_statement(dialect: str) -> Update:
    written = (*_COUNTS, *_TOLD, *_WATCH)
    columns = {"id": monitors.c.id.type, "seen_flips": Integer()} | columns_of(written)
    rows = batch(dialect, columns, "saved_rows", parameter=_SAVED)
    return (
        update(monitors)
        .values({column: rows.c[column.name] for column in written})
        .where(monitors.c.id == rows.c.id, monitors.c.flips == rows.c.seen_flips, _alive)
    )


def save_pings(
    connection: Connection, changed: Sequence[Watched], seen_flips: Sequence[int], new: Sequence[Sequence[Any]]
) -> None:
    """What pings did to monitors that are held, as `save_watches` has it, and the pings themselves: rows of values in
    the order of the fields of `PingRow`."""
    dialect = connection.dialect.name
    if dialect == "sqlite":
        save_watches(connection, changed, seen_flips)
        connection.execute(_insert_pings_statement(dialect), pack(new))
    else:  # one way to the server and back instead of two: a ping waits for it
        connection.execute(_save_pings_statement(dialect), _watches(changed, seen_flips) | pack(new))


@cache
def _insert_pings_statement(dialect: str) -> Insert:
    return insert_batch(dialect, _PING)


@cache
def _save_pings_statement(dialect: str) -> Insert:
    return _insert_pings_statement(dialect).add_cte(_save_statement(dialect).cte("saved"))


def insert_flips(connection: Connection, new: Sequence[FlipRow]) -> None:
    rows = [
        [*(getattr(flip, column.name) for column in _FLIP[:-1]), orjson.dumps(flip.details).decode()] for flip in new
    ]
    connection.execute(_insert_flips_statement(connection.dialect.name), pack(rows))


@cache
def _insert_flips_statement(dialect: str) -> Insert:
    return insert_batch(dialect, _FLIP)


def flip_row(watched: Watched, flip: Flip, now: Instant) -> FlipRow:
    """The next row of the monitor's history, which it numbers."""
    watched.flips += 1
    details = {
        "expected_at": flip.expected_at,
        "last_ping_at": flip.last_ping_at,
        "previous_since": flip.previous_since,
        "exit_code": flip.exit_code,
        "missed": flip.missed,
    }
    kept = {name: value for name, value in details.items() if value is not None}
    return FlipRow(watched.id, watched.flips, watched.team_id, flip.at, now, flip.before, flip.after, flip.reason, kept)


def pings_page(
    connection: Connection, monitor_id: str, *, kind: str | None, before: int | None, limit: int
) -> list[PingRow]:
    """Pings, newest first, from the one below the number `before` on."""
    query = select(*_PING).where(pings.c.monitor_id == monitor_id)
    if kind is not None:
        query = query.where(pings.c.kind == kind)
    if before is not None:
        query = query.where(pings.c.number < before)
    return [PingRow(*row) for row in fetch(connection, query.order_by(pings.c.number.desc()).limit(limit), {})]


def flips_page(connection: Connection, monitor_id: str, *, before: int | None, limit: int) -> list[FlipRow]:
    """Flips, newest first, from the one below the number `before` on."""
    query = select(*_FLIP).where(flips.c.monitor_id == monitor_id)
    if before is not None:
        query = query.where(flips.c.number < before)
    rows = fetch(connection, query.order_by(flips.c.number.desc()).limit(limit), {})
    return [_flip(row) for row in rows]


def overdue(connection: Connection, *, before: Instant, limit: int, without: Collection[str] = ()) -> list[Due]:
    """Monitors whose deadline is before the instant, the oldest first."""
    deadline = monitors.c.deadline_at
    return oldest_due(connection, deadline, deadline < before, limit=limit, without=without)


def due_page(connection: Connection, *, after: tuple[Instant, str], until: Instant, limit: int) -> list[Due]:
    """Monitors with deadlines up to `until` by (deadline_at, id), from the one after `after` on."""
    return scheduled.due_page(connection, monitors.c.deadline_at, after=after, until=until, limit=limit)


def existing(connection: Connection, monitor_ids: Sequence[str]) -> set[str]:
    """Which of the ids are monitors that are not deleted."""
    return scheduled.existing(connection, monitors, monitor_ids, _alive)


# outages


def outages_since(connection: Connection, since: Instant, limit: int = 1_000) -> list[Outage]:
    """Those that had not ended by `since`, oldest first; of very many the newest."""
    query = (
        select(outages.c.started_at, outages.c.ended_at)
        .where(outages.c.ended_at >= since)
        .order_by(outages.c.ended_at.desc())
        .limit(limit)
    )
    return [Outage(*row) for row in reversed(fetch(connection, query, {}))]


def known_outages(connection: Connection, since: Instant, now: Instant) -> list[Outage]:
    """The recorded ones, and the one that goes on."""
    return outages_with_gap(outages_since(connection, since), pulse_at(connection), now)


def pulse_at(connection: Connection) -> Instant | None:
    """When a node last said that it can take pings."""
    value = facts.get(connection, _PULSE)
    return None if value is None else int(value)


def pulse(connection: Connection, now: Instant, *, gap_ms: int) -> Outage | None:
    """Say that pings can be taken now. Silence before it for longer than `gap_ms` is recorded as an outage.

    A clock that was set back has made outages of time that is still to come: they are cut off.
    """
    last = pulse_at(connection)
    facts.put(connection, _PULSE, str(now))
    if last is not None and now < last - CLOCK_STEP_MS:
        _forget_future(connection, now)
    if last is None or now - last <= gap_ms:
        return None
    outage = Outage(last, now)
    insert_outage(connection, outage)
    return outage


def _forget_future(connection: Connection, now: Instant) -> None:
    """No outage lies ahead; whoever was put off because of one is looked at anew, which costs one look."""
    connection.execute(outages.delete().where(outages.c.started_at > now))
    if connection.execute(update(outages).where(outages.c.ended_at > now).values(ended_at=now)).rowcount:
        connection.execute(
            update(monitors)
            .where(monitors.c.status == MonitorStatus.ACTIVE, monitors.c.deadline_at > now)
            .values(deadline_at=now)
        )


def insert_outage(connection: Connection, outage: Outage) -> None:
    """Record it. Of two that began at the same instant the longer one counts."""
    started_at, ended_at = outage
    connection.execute(
        update(outages)
        .where(outages.c.started_at == started_at, outages.c.ended_at < ended_at)
        .values(ended_at=ended_at)
    )
    columns = (outages.c.started_at, outages.c.ended_at)
    connection.execute(insert_batch(connection.dialect.name, columns, ignore_existing=True), pack([list(outage)]))


def forget_outages(connection: Connection, before: Instant) -> None:
    connection.execute(outages.delete().where(outages.c.ended_at < before))


# retention


def ids_page(connection: Connection, after: str, limit: int) -> list[tuple[str, str, int, int]]:
    """(id, status, pings, flips) of all monitors, deleted ones too, by id."""
    query = (
        select(monitors.c.id, monitors.c.status, monitors.c.pings, monitors.c.flips)
        .where(monitors.c.id > after)
        .order_by(monitors.c.id)
        .limit(limit)
    )
    return [(row[0], row[1], row[2], row[3]) for row in fetch(connection, query, {})]


def shorten(
    connection: Connection,
    monitor_id: str,
    *,
    pings_up_to: int,
    failures_kept: int,
    failures_since: Instant,
    flips_up_to: int,
    limit: int,
) -> int:
    """Remove pings up to a number, but not the newest `failures_kept` failures that are not older than
    `failures_since`; and flips up to a number. Returns how many pings it removed, at most `limit`."""
    one_too_many = (
        select(pings.c.number)
        .where(pings.c.monitor_id == monitor_id, pings.c.kind == PingKind.FAIL)
        .order_by(pings.c.number.desc())
        .offset(failures_kept)
        .limit(1)
    )
    old = (
        select(pings.c.number)
        .where(
            pings.c.monitor_id == monitor_id,
            pings.c.number <= pings_up_to,
            or_(
                pings.c.kind != PingKind.FAIL,
                pings.c.received_at < failures_since,
                pings.c.number <= func.coalesce(one_too_many.scalar_subquery(), 0),
            ),
        )
        .order_by(pings.c.number)
        .limit(limit)
    )
    removed = connection.execute(
        pings.delete().where(pings.c.monitor_id == monitor_id, pings.c.number.in_(old))
    ).rowcount
    connection.execute(flips.delete().where(flips.c.monitor_id == monitor_id, flips.c.number <= flips_up_to))
    return removed


def remove(connection: Connection, monitor_id: str) -> None:
    """The row of a deleted monitor, once its history is gone."""
    connection.execute(monitors.delete().where(monitors.c.id == monitor_id, monitors.c.status == MonitorStatus.DELETED))


# values and rows


def _user_values(monitor: Monitor) -> dict[str, Any]:
    expectation = monitor.expectation
    return {
        "id": monitor.id,
        "team_id": monitor.team_id,
        "version": monitor.version,
        "name": monitor.name,
        "schedule": monitor.schedule_text,
        **schedule_values(expectation.schedule),
        "language": monitor.language,
        "grace_ms": expectation.grace_ms,
        "max_run_ms": expectation.max_run_ms,
        "min_run_ms": expectation.min_run_ms,
        "resume_on_ping": int(expectation.resume_on_ping),
        "post_only": int(monitor.post_only),
        "notify": orjson.dumps(monitor.notify).decode(),
        "tags": orjson.dumps(monitor.tags).decode(),
        "warnings": orjson.dumps(monitor.warnings).decode(),
        "token_hash": monitor.token_hash,
        "token_sealed": monitor.token_sealed,
        "token_changed_at": monitor.token_changed_at,
        "updated_at": monitor.updated_at,
    }


def _watch_values(watch: Watch) -> dict[str, Any]:
    """In the order of `_WATCH`."""
    runs = "{}"
    if watch.runs:
        runs = orjson.dumps({key: [run.started_at, int(run.is_overdue)] for key, run in watch.runs.items()}).decode()
    return {
        "status": watch.status,
        "health": watch.health,
        "since": watch.since,
        "reason": watch.reason,
        "anchor": watch.anchor,
        "failed_at": watch.failed_at,
        "result_at": watch.result_at,
        "last_ping_at": watch.last_ping_at,
        "last_ping_kind": watch.last_ping_kind,
        "runs": runs,
        "ended_runs": "[]" if not watch.ended_runs else orjson.dumps(watch.ended_runs).decode(),
        "deadline_at": watch.deadline_at,
        "resume_at": watch.resume_at,
    }


def _watched(row: Sequence[Any]) -> Watched:
    monitor_id, team_id, post_only, notify, created_at, ping_count, flip_count, alert_state, alert_at, *rest = row
    return Watched(
        id=monitor_id,
        team_id=team_id,
        post_only=bool(post_only),
        notify=notify,
        pings=ping_count,
        flips=flip_count,
        alert_state=alert_state,
        alert_at=alert_at,
        expectation=_expectation(*rest[:_N_EXPECTATION]),
        watch=_watch(monitor_id, created_at, rest[_N_EXPECTATION:]),
    )


@lru_cache(EXPECTATIONS_KEPT)
def _expectation(*values: Any) -> Expectation:
    """Of `_SCHEDULE` and `_RULE`, which seldom change; each is read at every ping. Beyond `EXPECTATIONS_KEPT`
    they are made anew."""
    grace_ms, max_run_ms, min_run_ms, resume_on_ping = values[_N_SCHEDULE:]
    return Expectation(Schedule(*values[:_N_SCHEDULE]), grace_ms, max_run_ms, min_run_ms, bool(resume_on_ping))


def _watch(monitor_id: str, created_at: Instant, values: Sequence[Any]) -> Watch:
    (
        status,
        health,
        since,
        reason,
        anchor,
        failed_at,
        result_at,
        last_at,
        last_kind,
        runs,
        ended,
        deadline,
        resume_at,
    ) = values
    watch = Watch(created_at, status, Health(health), since, reason, anchor, failed_at, result_at, last_at, last_kind)
    if runs != "{}":
        watch.runs = _read(monitor_id, "runs", runs, _open_runs, {})
    if ended != "[]":
        watch.ended_runs = _read(monitor_id, "ended_runs", ended, _texts, [])
    watch.deadline_at, watch.resume_at = deadline, resume_at
    return watch


def _read(monitor_id: str, column: str, text: str, read: Callable[[Any], T], otherwise: T) -> T:
    """What a column of JSON holds. A damaged one is told once and counts as empty: one row must not take those with it
    that are read beside it, and with its next change it is whole again."""
    try:
        return read(orjson.loads(text))
    except (ValueError, TypeError, AttributeError):
        if _told.is_new(monitor_id, column, text):
            log.error("monitor_damaged", monitor=monitor_id, column=column, hint="What it held is taken as empty.")
        return otherwise


def _open_runs(value: Any) -> dict[str, OpenRun]:
    return {str(key): OpenRun(int(at), bool(overdue)) for key, (at, overdue) in value.items()}


def _texts(value: Any) -> list[str]:
    return [str(one) for one in [*value]]


def _flip(row: Sequence[Any]) -> FlipRow:
    monitor_id, number, team_id, at, noticed_at, before, after, reason, details = row
    told: dict[str, Any] = _read(monitor_id, "details", details, dict, {})
    return FlipRow(monitor_id, number, team_id, at, noticed_at, before, after, reason, told)


def _monitor(row: Sequence[Any]) -> Monitor:
    own, watched = row[: len(_OWN)], _watched(row[len(_OWN) :])
    version, name, text, tags, warnings, language, token_hash, token_sealed, token_changed_at, updated_at = own
    return Monitor(
        id=watched.id,
        team_id=watched.team_id,
        version=version,
        name=name,
        schedule_text=text,
        expectation=watched.expectation,
        post_only=watched.post_only,
        notify=_read(watched.id, "notify", watched.notify, dict, {}),
        tags=tuple(_read(watched.id, "tags", tags, _texts, [])),
        warnings=tuple(_read(watched.id, "warnings", warnings, _texts, [])),
        language=language,
        token_hash=token_hash,
        token_sealed=token_sealed,
        token_changed_at=token_changed_at,
        watch=watched.watch,
        pings=watched.pings,
        flips=watched.flips,
        created_at=watched.watch.created_at,
        updated_at=updated_at,
    )
