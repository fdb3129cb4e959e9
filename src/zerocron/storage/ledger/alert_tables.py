"""The tables of channels and of the outbox: the ways out to people, and every message that is owed to one of them.

Owns their shape, as `tables` owns that of jobs.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from zerocron.storage.ledger.tables import _id, _instant, _where, metadata

# `sealed` is the configuration, as the data key sealed it; `destination` is what may be shown of it. The row is the
# lock of its messages: `next_send_at` is when the next one may be sent, `failures` how many in a row were not accepted.
channels = Table(
    "channels",
    metadata,
    _id(),
    _id("team_id"),
    Column("kind", String(32), nullable=False),
    Column("name", String(200), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", String(500)),
    Column("destination", String(500), nullable=False),
    _id("data_key_id"),
    Column("sealed", Text, nullable=False),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    _instant("next_send_at"),
    _instant("last_sent_at", nullable=True),
    _instant("tested_at", nullable=True),
    _instant("created_at"),
    _instant("updated_at"),
    PrimaryKeyConstraint("id"),
    CheckConstraint("status IN ('active', 'paused', 'disabled', 'deleted')", name="status"),
)
Index("ix_channels_team_id_created_at", channels.c.team_id, channels.c.created_at, channels.c.id)

# One message owed to one channel about one event. `notice` is JSON: the facts of the event. A `folded` one travels in
# the message of another, `digest_id`, and shares its fate: `finished_at` is when that was known.
alerts = Table(
    "alerts",
    metadata,
    _id(),
    _id("team_id"),
    _id("event_id"),
    _id("channel_id"),
    Column("kind", String(32), nullable=False),
    _id("subject_id"),
    Column("notice", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    _instant("next_attempt_at", nullable=True),
    _id("digest_id", nullable=True),
    Column("detail", String(500)),
    Column("last_error", String(500)),
    _instant("created_at"),
    _instant("finished_at", nullable=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("event_id", "channel_id"),
    CheckConstraint("status IN ('pending', 'sent', 'folded', 'dead')", name="status"),
    CheckConstraint("(next_attempt_at IS NOT NULL) = (status = 'pending')", name="pending_alerts_are_due"),
    CheckConstraint("digest_id IS NOT NULL OR status != 'folded'", name="folded_alerts_have_a_digest"),
)
Index("ix_alerts_next_attempt_at", alerts.c.next_attempt_at, alerts.c.id, **_where("next_attempt_at IS NOT NULL"))
Index("ix_alerts_created_at_pending", alerts.c.created_at, **_where("next_attempt_at IS NOT NULL"))
Index("ix_alerts_channel_id", alerts.c.channel_id, **_where("next_attempt_at IS NOT NULL"))
Index("ix_alerts_digest_id", alerts.c.digest_id, **_where("digest_id IS NOT NULL"))
Index("ix_alerts_team_id_created_at", alerts.c.team_id, alerts.c.created_at, alerts.c.id)
Index("ix_alerts_finished_at", alerts.c.finished_at, **_where("finished_at IS NOT NULL"))
