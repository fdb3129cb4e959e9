"""Channels in the ledger, their configurations sealed.

Owns every query on `channels`. The row of a channel is the lock of its messages: who holds it says which one is sent
next, and when. A configuration is here only as the data key of its team sealed it, bound to the channel. Must never
decide anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson
from sqlalchemy import Connection, and_, exists, func, select, update

from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, DataKey
from zerocron.storage.ledger.alert_tables import alerts, channels
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, lock_rows, pack_wide
from zerocron.storage.ledger.scheduled import has_tag, newest_first
from zerocron.storage.ledger.tables import jobs, metadata

_NAME = "channel"
"""What it is sealed as: no secret of a user can have such a name."""


class ChannelStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"  # by 0cron itself: it was refused for good
    DELETED = "deleted"  # kept for the history of what was sent


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel; `sealed` opens with the data key of that id only. The fields are those of the table."""

    id: str
    team_id: str
    kind: str
    name: str
    status: str
    reason: str | None
    destination: str
    data_key_id: str
    sealed: str
    failures: int
    next_send_at: Instant
    last_sent_at: Instant | None
    tested_at: Instant | None
    created_at: Instant
    updated_at: Instant


_CHANNEL = tuple(channels.c[name] for name in ChannelRow.__slots__)
_alive = channels.c.status != ChannelStatus.DELETED


def seal(key: DataKey, channel_id: str, config: Mapping[str, object]) -> str:
    """A configuration as it is kept."""
    return key.seal(orjson.dumps(config).decode(), secret_id=channel_id, name=_NAME)


def opened(key: DataKey, channel: ChannelRow) -> dict[str, Any]:
    """A configuration as it was given to `seal`. Raises CannotOpen."""
    config: dict[str, Any] = orjson.loads(key.open(channel.sealed, secret_id=channel.id, name=_NAME))
    return config


def insert(connection: Connection, channel: ChannelRow) -> None:
    connection.execute(channels.insert(), _values(channel))


def save(connection: Connection, channel: ChannelRow) -> None:
    """Write a channel that is held over the one of the same id."""
    connection.execute(update(channels).where(channels.c.id == channel.id).values(_values(channel)))


def get(connection: Connection, team_id: str, channel_id: str, *, lock: bool = False) -> ChannelRow | None:
    """The channel, unless there is none, it is deleted, or it is another team's."""
    query = select(*_CHANNEL).where(channels.c.id == channel_id, channels.c.team_id == team_id, _alive)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else ChannelRow(*row)


def page(connection: Connection, team_id: str, *, before: tuple[Instant, str] | None, limit: int) -> list[ChannelRow]:
    """Channels, newest first, from the one after `before` (created_at, id) on."""
    query = select(*_CHANNEL).where(channels.c.team_id == team_id, _alive)
    return [ChannelRow(*row) for row in fetch(connection, newest_first(query, channels, before, limit), {})]


def count(connection: Connection, team_id: str) -> int:
    query = select(func.count()).select_from(channels).where(channels.c.team_id == team_id, _alive)
    return connection.scalar(query) or 0


def names(connection: Connection, channel_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """(name, kind) of channels, deleted ones too, by id."""
    query = select(channels.c.id, channels.c.name, channels.c.kind).where(channels.c.id.in_(set(channel_ids)))
    return {row[0]: (row[1], row[2]) for row in fetch(connection, query, {})}


def missing(connection: Connection, team_id: str, channel_ids: Sequence[str]) -> list[str]:
    """Which of the ids are no channels of the team. Those that are stay so until the transaction ends."""
    query = select(channels.c.id).where(channels.c.id.in_(channel_ids), channels.c.team_id == team_id, _alive)
    found = {row[0] for row in connection.execute(query.order_by(channels.c.id).with_for_update(read=True))}
    return [channel_id for channel_id in channel_ids if channel_id not in found]


def active_of_teams(connection: Connection, team_ids: Iterable[str]) -> dict[str, dict[str, Instant]]:
    """By team, the channels that are told, each with the instant from which it takes the next message."""
    query = (
        select(channels.c.team_id, channels.c.id, channels.c.next_send_at)
        .where(channels.c.team_id.in_(set(team_ids)), channels.c.status == ChannelStatus.ACTIVE)
        .order_by(channels.c.created_at, channels.c.id)
    )
    found: dict[str, dict[str, Instant]] = {}
    for team_id, channel_id, next_send_at in fetch(connection, query, {}):
        found.setdefault(team_id, {})[channel_id] = next_send_at
    return found


def hold(connection: Connection, channel_ids: Iterable[str]) -> dict[str, ChannelRow]:
    """Channels, deleted ones too, held until the transaction ends; those that somebody else holds are left out."""
    query = lock_rows(select(*_CHANNEL).where(channels.c.id.in_(set(channel_ids))).order_by(channels.c.id))
    return {row[0]: ChannelRow(*row) for row in connection.execute(query)}


def wait_for(connection: Connection, channel_id: str) -> ChannelRow | None:
    """A channel, deleted ones too, held after whoever holds it now has let go."""
    row = connection.execute(select(*_CHANNEL).where(channels.c.id == channel_id).with_for_update()).first()
    return None if row is None else ChannelRow(*row)


def note_sending(connection: Connection, channel_id: str, *, next_send_at: Instant) -> None:
    connection.execute(update(channels).where(channels.c.id == channel_id).values(next_send_at=next_send_at))


def note_accepted(connection: Connection, channel_id: str, now: Instant) -> None:
    connection.execute(update(channels).where(channels.c.id == channel_id).values(failures=0, last_sent_at=now))


def note_failed(connection: Connection, channel_id: str, *, next_send_at: Instant) -> None:
    statement = update(channels).where(channels.c.id == channel_id)
    connection.execute(statement.values(failures=channels.c.failures + 1, next_send_at=next_send_at))


def disable(connection: Connection, channel_id: str, reason: str, now: Instant) -> None:
    """Nothing is sent by it any more, until somebody resumes it."""
    statement = update(channels).where(channels.c.id == channel_id)
    connection.execute(statement.values(status=ChannelStatus.DISABLED, reason=reason, updated_at=now))


def note_test(connection: Connection, channel_id: str, now: Instant, *, before: Instant) -> bool:
    """Whether the last test was before that instant; then this one is the last."""
    statement = (
        update(channels)
        .where(channels.c.id == channel_id, func.coalesce(channels.c.tested_at, 0) < before)
        .values(tested_at=now)
    )
    return connection.execute(statement).rowcount == 1


def named_by(connection: Connection, team_id: str, channel_id: str, limit: int) -> list[tuple[str, str]]:
    """(`job` or `monitor`, its name) of what tells this channel by its id."""
    found: list[tuple[str, str]] = []
    for noun, table in (("job", jobs), ("monitor", metadata.tables["monitors"])):
        query = (
            select(table.c.name)
            .where(table.c.team_id == team_id, table.c.status != "deleted", has_tag(table.c.notify, channel_id))
            .order_by(table.c.name)
            .limit(limit)
        )
        found += [(noun, row[0]) for row in fetch(connection, query, {})]
    return found


def reseal(connection: Connection, team_id: str, opened_keys: Mapping[str, DataKey], key: DataKey) -> int:
    """Seal the configurations of a team with another data key; how many there were. Raises CannotOpen."""
    of_team = select(*_CHANNEL).where(channels.c.team_id == team_id, _alive).order_by(channels.c.id)
    kept = [ChannelRow(*row) for row in connection.execute(of_team.with_for_update())]
    values = []
    for channel in kept:
        old = opened_keys.get(channel.data_key_id)
        if old is None:
            raise CannotOpen
        values.append([channel.id, seal(key, channel.id, opened(old, channel))])
    if not values:
        return 0
    dialect = connection.dialect.name
    rows = batch(dialect, columns_of((channels.c.id, channels.c.sealed)), wide=True)
    statement = update(channels).values(sealed=rows.c.sealed, data_key_id=key.id).where(channels.c.id == rows.c.id)
    return connection.execute(statement, pack_wide(dialect, values)).rowcount


def remove_deleted(connection: Connection, before: Instant) -> None:
    """Forget channels that were deleted before the instant, and of which no alert is kept. Not younger ones: a
    transaction that saw one alive may be about to write an alert down."""
    is_told_of = exists().where(alerts.c.channel_id == channels.c.id)
    is_old = and_(channels.c.status == ChannelStatus.DELETED, channels.c.updated_at < before)
    connection.execute(channels.delete().where(is_old, ~is_told_of))


def _values(channel: ChannelRow) -> dict[str, Any]:
    return {name: getattr(channel, name) for name in ChannelRow.__slots__}
