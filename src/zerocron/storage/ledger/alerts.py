"""The outbox in the ledger: every message that is owed to a channel, until it is sent or dead.

Owns every query on `alerts`. A row changes only from what it was seen as; who sends is settled by holding the channel.
Must never decide anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
from sqlalchemy import Connection, and_, func, or_, select, update

from zerocron.core.model import Due, Instant
from zerocron.core.notice import EventKind, Notice
from zerocron.storage.ledger import scheduled
from zerocron.storage.ledger.alert_tables import alerts
from zerocron.storage.ledger.dialect import fetch, insert_batch, pack_wide
from zerocron.storage.ledger.scheduled import newest_first, oldest_due

TEXT_CHARACTERS_MAX = 500
INSERTED_AT_ONCE_MAX = 1_000
"""Rows of one statement: a batch of failures times fifty channels would take longer than a statement may."""


class AlertStatus(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    FOLDED = "folded"  # told in the message of another alert, its digest
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class AlertRow:
    """A message owed to a channel. The fields are those of the table."""

    id: str
    team_id: str
    event_id: str
    channel_id: str
    kind: str
    subject_id: str
    notice: Notice | None  # None: not readable by this release
    status: str
    tries: int
    next_attempt_at: Instant | None
    digest_id: str | None
    detail: str | None
    last_error: str | None
    created_at: Instant
    finished_at: Instant | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the notifier needs to know of a pending alert to choose the next message."""

    id: str
    team_id: str
    channel_id: str
    tries: int
    next_attempt_at: Instant
    created_at: Instant


_ALERT = tuple(alerts.c[name] for name in AlertRow.__slots__)
_WAITING = tuple(alerts.c[name] for name in Waiting.__slots__)
_NEW = (
    alerts.c.id,
    alerts.c.team_id,
    alerts.c.event_id,
    alerts.c.channel_id,
    alerts.c.kind,
    alerts.c.subject_id,
    alerts.c.notice,
    alerts.c.status,
    alerts.c.tries,
    alerts.c.next_attempt_at,
    alerts.c.created_at,
)
_is_pending = alerts.c.next_attempt_at.is_not(None)


@dataclass(frozen=True, slots=True)
class New:
    """An alert to write down, due at `at`."""

    id: str
    channel_id: str
    notice: Notice
    at: Instant


def insert(connection: Connection, new: Sequence[New], now: Instant) -> None:
    """Write alerts down; one of an event that its channel was told of already is left out."""
    texts: dict[str, str] = {}
    rows = []
    for alert in new:
        notice = alert.notice
        text = texts.setdefault(notice.event_id, write_notice(notice))
        rows.append(
            [
                alert.id,
                notice.team_id,
                notice.event_id,
                alert.channel_id,
                str(notice.kind),
                notice.subject_id,
                text,
                str(AlertStatus.PENDING),
                0,
                alert.at,
                now,
            ]
        )
    dialect = connection.dialect.name
    for begin in range(0, len(rows), INSERTED_AT_ONCE_MAX):
        part = rows[begin : begin + INSERTED_AT_ONCE_MAX]
        connection.execute(insert_batch(dialect, _NEW, ignore_existing=True, wide=True), pack_wide(dialect, part))


def waiting(connection: Connection, alert_ids: Iterable[str]) -> list[Waiting]:
    """Those of the alerts that are pending."""
    query = select(*_WAITING).where(alerts.c.id.in_(list(alert_ids)), _is_pending)
    return [Waiting(*row) for row in fetch(connection, query, {})]


def next_of_channel(connection: Connection, channel_id: str, now: Instant, *, tried_first: bool) -> Waiting | None:
    """The oldest that is due of a channel among those that were tried, or that were not; else among the others."""
    of_kind = alerts.c.tries == 0 if tried_first else alerts.c.tries > 0
    query = (
        select(*_WAITING)
        .where(alerts.c.channel_id == channel_id, alerts.c.next_attempt_at <= now)
        .order_by(of_kind, alerts.c.created_at, alerts.c.id)
        .limit(1)
    )
    return next((Waiting(*row) for row in fetch(connection, query, {})), None)


def begin(connection: Connection, alert_id: str, *, tries: int, again_at: Instant) -> bool:
    """Count a try of a pending alert that was seen with so many; it is due again then, should nothing be heard of it.
    False when it is no longer as it was seen."""
    statement = update(alerts).where(alerts.c.id == alert_id, alerts.c.tries == tries, _is_pending)
    return connection.execute(statement.values(tries=tries + 1, next_attempt_at=again_at)).rowcount == 1


def fold(connection: Connection, channel_id: str, digest_id: str, now: Instant) -> int:
    """Let all that is due of a channel and was never tried travel with one of them; how many do."""
    statement = update(alerts).where(
        alerts.c.channel_id == channel_id,
        alerts.c.next_attempt_at <= now,
        alerts.c.tries == 0,
        alerts.c.id != digest_id,
    )
    values = {"status": AlertStatus.FOLDED, "digest_id": digest_id, "next_attempt_at": None}
    return connection.execute(statement.values(values)).rowcount


def message(connection: Connection, alert_id: str, limit: int) -> tuple[list[Notice], int, Instant]:
    """(the notices of a message, the oldest first, at most so many; how many there are; when the last one was made).

    Those that this release cannot read are only counted."""
    of_message = or_(alerts.c.id == alert_id, alerts.c.digest_id == alert_id)
    query = select(alerts.c.notice).where(of_message).order_by(alerts.c.created_at, alerts.c.id).limit(limit)
    read = (readable(row[0]) for row in fetch(connection, query, {}))
    notices = [notice for notice in read if notice is not None]
    total, newest = connection.execute(select(func.count(), func.max(alerts.c.created_at)).where(of_message)).one()
    return notices, total, newest


def postpone(connection: Connection, channel_id: str, until: Instant) -> None:
    """Let nothing of a channel be due before the instant."""
    connection.execute(
        update(alerts)
        .where(alerts.c.channel_id == channel_id, alerts.c.next_attempt_at < until)
        .values(next_attempt_at=until)
    )


def bring_forward(connection: Connection, channel_id: str, to: Instant) -> None:
    """Let what waits for a channel that is held be due at the instant, if it would be later."""
    connection.execute(
        update(alerts)
        .where(alerts.c.channel_id == channel_id, alerts.c.next_attempt_at > to)
        .values(next_attempt_at=to)
    )


def accept(connection: Connection, alert_id: str, now: Instant, detail: str) -> bool:
    """A pending alert was taken by its channel, whoever sent it; False when that was known, or it was dead."""
    return _finish(connection, alert_id, now, {"status": AlertStatus.SENT, "detail": line(detail) or None})


def bury(connection: Connection, alert_id: str, now: Instant, reason: str) -> bool:
    """A pending alert is not sent any more; False when it is not pending."""
    return _finish(connection, alert_id, now, {"status": AlertStatus.DEAD, "last_error": line(reason)})


def _finish(connection: Connection, alert_id: str, now: Instant, values: dict[str, Any]) -> bool:
    """End an alert, and those that travel with it: of a message that died, all of them did."""
    ended = values | {"next_attempt_at": None, "finished_at": now}
    if connection.execute(update(alerts).where(alerts.c.id == alert_id, _is_pending).values(ended)).rowcount == 0:
        return False
    shared = {"finished_at": now}
    if values["status"] == AlertStatus.DEAD:
        shared |= values
    connection.execute(
        update(alerts).where(alerts.c.digest_id == alert_id, alerts.c.finished_at.is_(None)).values(shared)
    )
    return True


def try_again(connection: Connection, alert_id: str, *, tries: int, at: Instant, reason: str) -> bool:
    """Note that a try was not accepted; False when somebody else has tried since, or it is no longer pending."""
    statement = update(alerts).where(alerts.c.id == alert_id, alerts.c.tries == tries, _is_pending)
    return connection.execute(statement.values(next_attempt_at=at, last_error=line(reason))).rowcount == 1


def bury_channel(connection: Connection, channel_id: str, now: Instant, reason: str) -> int:
    """Nothing that waits for a channel that is held is sent any more; how many messages waited."""
    ended = {
        "status": AlertStatus.DEAD,
        "last_error": line(reason),
        "next_attempt_at": None,
        "finished_at": now,
    }
    of_channel = alerts.c.channel_id == channel_id
    buried = connection.execute(update(alerts).where(of_channel, _is_pending).values(ended)).rowcount
    travelling = (alerts.c.digest_id.is_not(None), alerts.c.finished_at.is_(None))
    connection.execute(update(alerts).where(of_channel, *travelling).values(ended))
    return buried


def page(
    connection: Connection,
    team_id: str,
    *,
    status: str | None,
    channel_id: str | None,
    subject_id: str | None,
    before: tuple[Instant, str] | None,
    limit: int,
) -> list[AlertRow]:
    """Alerts, newest first, from the one after `before` (created_at, id) on."""
    query = select(*_ALERT).where(alerts.c.team_id == team_id)
    for column, wanted in (
        (alerts.c.status, status),
        (alerts.c.channel_id, channel_id),
        (alerts.c.subject_id, subject_id),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    return [_alert(row) for row in fetch(connection, newest_first(query, alerts, before, limit), {})]


def overdue(connection: Connection, *, before: Instant, limit: int, without: Collection[str] = ()) -> list[Due]:
    """Pending alerts due before the instant, the oldest first."""
    due_at = alerts.c.next_attempt_at
    return oldest_due(connection, due_at, due_at < before, limit=limit, without=without)


def due_page(connection: Connection, *, after: tuple[Instant, str], until: Instant, limit: int) -> list[Due]:
    """Alerts due up to `until` by (next_attempt_at, id), from the one after `after` on."""
    return scheduled.due_page(connection, alerts.c.next_attempt_at, after=after, until=until, limit=limit)


def oldest_pending(connection: Connection) -> Instant | None:
    """When the oldest alert was written that is not sent yet."""
    found: Instant | None = connection.scalar(select(func.min(alerts.c.created_at)).where(_is_pending))
    return found


def remove_finished(connection: Connection, before: Instant, limit: int) -> int:
    """Forget alerts that ended before the instant; how many."""
    old = (
        select(alerts.c.id)
        .where(and_(alerts.c.finished_at.is_not(None), alerts.c.finished_at < before))
        .order_by(alerts.c.finished_at)
        .limit(limit)
    )
    return connection.execute(alerts.delete().where(alerts.c.id.in_(old))).rowcount


def line(text: str) -> str:
    """A text of somebody else's, as one line that a database takes."""
    return " ".join(text.replace("\0", "\ufffd").split())[:TEXT_CHARACTERS_MAX]


def write_notice(notice: Notice) -> str:
    """JSON text; what is as by default is left out."""
    given = {
        field.name: part
        for field in dataclasses.fields(notice)
        if (part := getattr(notice, field.name)) != field.default
    }
    return orjson.dumps(given).decode()


def read_notice(text: str) -> Notice:
    """`write_notice` read back, also with fields of a newer release. Raises ValueError, KeyError, TypeError."""
    given = orjson.loads(text)
    kept = {field.name: given[field.name] for field in dataclasses.fields(Notice) if field.name in given}
    kept |= {"kind": EventKind(kept["kind"]), "tags": tuple(kept.get("tags", ()))}
    return Notice(**kept)


def readable(text: str) -> Notice | None:
    """`read_notice`; None when it is damaged, or about a kind of event that this release does not know."""
    try:
        return read_notice(text)
    except (ValueError, KeyError, TypeError):
        return None


def _alert(row: Sequence[Any]) -> AlertRow:
    fields = dict(zip(AlertRow.__slots__, row, strict=True))
    return AlertRow(**fields | {"notice": readable(fields["notice"])})
