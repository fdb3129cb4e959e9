"""The tables of monitors: what is expected, what came, and what that did.

Owns their shape, as `tables` owns that of jobs. Nothing that a plain ping changes is in an index: on PostgreSQL it
stays a change of one page (HOT), and `deadline_at` is moved by whoever looks at it, not by pings.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

from zerocron.storage.ledger.tables import _counter, _id, _instant, _where, metadata

# `pings` and `flips` number the rows of the other two tables. `token_hash` finds a monitor, `token_sealed` lets its
# owner see the token again. `runs` and `ended_runs` are JSON: those that overlap now, and the last that did.
monitors = Table(
    "monitors",
    metadata,
    _id(),
    _id("team_id"),
    Column("version", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("name", String(200), nullable=False),
    Column("schedule", String(1000), nullable=False),
    Column("schedule_kind", String(16), nullable=False),
    Column("schedule_cron", String(1000)),
    _instant("schedule_every_ms", nullable=True),
    _instant("schedule_at", nullable=True),
    Column("timezone", String(64), nullable=False),
    Column("schedule_dst", String(16), nullable=False),
    Column("schedule_day_match", String(16), nullable=False),
    Column("language", String(8), nullable=False),
    Column("grace_ms", BigInteger, nullable=False),
    Column("max_run_ms", BigInteger),
    Column("min_run_ms", BigInteger),
    Column("post_only", Integer, nullable=False),
    Column("resume_on_ping", Integer, nullable=False),
    Column("notify", Text, nullable=False),
    Column("alert_state", Text, nullable=False, server_default=text("''")),
    _instant("alert_at", nullable=True),
    Column("tags", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    Column("token_hash", String(64), nullable=False),
    Column("token_sealed", Text, nullable=False),
    _instant("token_changed_at"),
    Column("health", String(16), nullable=False),
    _instant("since"),
    Column("reason", String(16)),
    _instant("anchor", nullable=True),
    _instant("failed_at", nullable=True),
    _instant("result_at", nullable=True),
    _instant("last_ping_at", nullable=True),
    Column("last_ping_kind", String(16)),
    Column("runs", Text, nullable=False, server_default=text("'{}'")),
    Column("ended_runs", Text, nullable=False, server_default=text("'[]'")),
    _instant("deadline_at", nullable=True),
    _instant("resume_at", nullable=True),
    _counter("pings"),
    _counter("flips"),
    _instant("created_at"),
    _instant("updated_at"),
    PrimaryKeyConstraint("id"),
    CheckConstraint("status IN ('active', 'paused', 'deleted')", name="status"),
    CheckConstraint("health IN ('new', 'up', 'down')", name="health"),
    CheckConstraint("deadline_at IS NULL OR status != 'deleted'", name="deleted_monitors_are_not_watched"),
    postgresql_with={"fillfactor": 50},  # each ping is a new version of its row, on the same page
)
Index("ix_monitors_token_hash", monitors.c.token_hash, unique=True)
Index("ix_monitors_token_changed_at", monitors.c.token_changed_at)
Index("ix_monitors_deadline_at", monitors.c.deadline_at, monitors.c.id, **_where("deadline_at IS NOT NULL"))
Index("ix_monitors_alert_at", monitors.c.alert_at, monitors.c.id, **_where("alert_at IS NOT NULL"))
Index("ix_monitors_team_id_created_at", monitors.c.team_id, monitors.c.created_at, monitors.c.id)

# `number` counts the pings of a monitor from 1. `body` is text, whatever was sent; `body_bytes` is how much was sent.
pings = Table(
    "pings",
    metadata,
    _id("monitor_id"),
    Column("number", BigInteger, nullable=False),
    _id("team_id"),
    Column("kind", String(16), nullable=False),
    _instant("received_at"),
    Column("rid", String(36)),
    Column("exit_code", Integer),
    Column("duration_ms", BigInteger),
    Column("method", String(8), nullable=False),
    Column("source", String(64), nullable=False),
    Column("user_agent", String(200), nullable=False),
    Column("body", Text),
    Column("body_bytes", BigInteger, nullable=False),
    PrimaryKeyConstraint("monitor_id", "number"),
    sqlite_with_rowid=False,
)

# What the monitor showed changed at `at`, and that was noticed at `noticed_at`. `details` is JSON: what an alert says.
flips = Table(
    "flips",
    metadata,
    _id("monitor_id"),
    Column("number", BigInteger, nullable=False),
    _id("team_id"),
    _instant("at"),
    _instant("noticed_at"),
    Column("before", String(16), nullable=False),
    Column("after", String(16), nullable=False),
    Column("reason", String(16), nullable=False),
    Column("details", Text, nullable=False),
    PrimaryKeyConstraint("monitor_id", "number"),
    sqlite_with_rowid=False,
)

# Time in which no node could take pings: from the last sign that one could to the first sign after.
outages = Table(
    "outages",
    metadata,
    _instant("started_at"),
    _instant("ended_at"),
    PrimaryKeyConstraint("started_at"),
)
Index("ix_outages_ended_at", outages.c.ended_at)
