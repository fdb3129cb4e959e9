"""The tables of the ledger.

Owns the shape of the truth; the migrations lead to exactly this shape (a test compares them). Instants are BIGINT
milliseconds, ids are text, nested values are JSON text, so that one set of queries runs on SQLite and PostgreSQL
(decision 0004). History tables carry `scheduled_for` in their keys so that they can be partitioned by it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


ID = String(36).with_variant(String(36, collation="C"), "postgresql")
"""Compared byte by byte: an index in the order of a language is spoilt when the system's idea of that order changes."""


def _id(name: str = "id", *, nullable: bool = False) -> Column[str]:
    return Column(name, ID, nullable=nullable)


def _instant(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _counter(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _where(condition: str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    return {f"{dialect}_where": text(condition) for dialect in ("sqlite", "postgresql")}


# A limit of NULL is the server's, 0 is none. `history_bytes` is what the last count found, of a team with such a limit.
teams = Table(
    "teams",
    metadata,
    _id(),
    Column("name", String(200), nullable=False),
    _instant("created_at"),
    Column("jobs_max", Integer),
    Column("runs_per_minute_max", Integer),
    Column("history_bytes_max", BigInteger),
    Column("history_bytes", BigInteger),
    _instant("history_counted_at", nullable=True),
    _instant("deleted_at", nullable=True),
    PrimaryKeyConstraint("id"),
)

# `next_run_at` is the one cursor of a job's schedule: it only grows within a version, and moves in the transaction
# that accounts for the slots it passes. `active_run_id` holds the job's place under `overlap: skip` and `queue`;
# `crowded` is 1 while others run beside it, from before an edit forbade that.
# The row is also the lock of the job's runs: they change only while it is held.
jobs = Table(
    "jobs",
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
    Column("schedule_dst", String(16), nullable=False, server_default=text("'run_once'")),
    Column("schedule_day_match", String(16), nullable=False, server_default=text("'either'")),
    Column("language", String(8), nullable=False, server_default=text("'en'")),
    Column("method", String(32), nullable=False),
    Column("url", String(2000), nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", Text),
    Column("timeout_seconds", Double, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("overlap", String(16), nullable=False),
    Column("catchup", String(16), nullable=False),
    Column("catchup_window_seconds", Integer, nullable=False),
    Column("on_lost", String(16), nullable=False),
    Column("disable_after", Integer, nullable=False, server_default=text("0")),
    Column("notify", Text, nullable=False),
    Column("alert_state", Text, nullable=False, server_default=text("''")),
    Column("tags", Text, nullable=False),
    Column("warnings", Text, nullable=False),
    _instant("next_run_at", nullable=True),
    _id("active_run_id", nullable=True),
    _instant("active_since", nullable=True),
    _id("queued_run_id", nullable=True),
    Column("crowded", Integer, nullable=False, server_default=text("0")),
    _counter("succeeded"),
    _counter("failed"),
    _counter("skipped"),
    _counter("consecutive_failures"),
    Column("duration_ms_total", Double, nullable=False, server_default=text("0")),
    Column("status_reason", String(200)),
    _id("last_run_id", nullable=True),
    Column("last_run_status", String(16)),
    _instant("last_run_scheduled_for", nullable=True),
    _instant("last_run_finished_at", nullable=True),
    _instant("created_at"),
    _instant("updated_at"),
    PrimaryKeyConstraint("id"),
    CheckConstraint("status IN ('active', 'paused', 'disabled', 'completed', 'deleted')", name="status"),
    CheckConstraint("next_run_at IS NULL OR status = 'active'", name="only_active_jobs_are_due"),
    postgresql_with={"fillfactor": 80},  # a run changes its job twice, the second time on the same page
)
Index("ix_jobs_next_run_at", jobs.c.next_run_at, jobs.c.id, **_where("next_run_at IS NOT NULL"))
Index("ix_jobs_team_id_created_at", jobs.c.team_id, jobs.c.created_at, jobs.c.id)

# What a job was at each of its versions: a run keeps to the version it was created under, and the history of edits
# can be checked against the history of runs.
job_versions = Table(
    "job_versions",
    metadata,
    _id("job_id"),
    Column("version", Integer, nullable=False),
    _id("team_id"),
    Column("status", String(16), nullable=False),
    Column("schedule", Text, nullable=False),
    Column("definition", Text, nullable=False),
    _instant("created_at"),
    PrimaryKeyConstraint("job_id", "version"),
)

runs = Table(
    "runs",
    metadata,
    _id(),
    _instant("scheduled_for"),
    Column("trigger_key", String(36), nullable=False),
    _id("job_id"),
    _id("team_id"),
    Column("job_version", Integer, nullable=False),
    Column("triggered_by", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", String(32)),
    Column("attempt", Integer, nullable=False),
    Column("cause", String(16), nullable=False),
    Column("redeliveries", Integer, nullable=False),
    _instant("retry_at", nullable=True),
    _id("session_id", nullable=True),
    _instant("attempt_started_at", nullable=True),
    _instant("created_at"),
    _instant("started_at", nullable=True),
    _instant("finished_at", nullable=True),
    Column("count", BigInteger, nullable=False),
    _instant("scheduled_until", nullable=True),
    PrimaryKeyConstraint("id", "scheduled_for"),
    UniqueConstraint("job_id", "scheduled_for", "trigger_key"),
    CheckConstraint(
        "status IN ('queued', 'running', 'retrying', 'succeeded', 'failed', 'skipped', 'cancelled', 'lost')",
        name="status",
    ),
    CheckConstraint(
        "(finished_at IS NULL) = (status IN ('queued', 'running', 'retrying'))",
        name="final_runs_are_finished",
    ),
    CheckConstraint("(status = 'running') = (session_id IS NOT NULL)", name="running_runs_have_a_session"),
    sqlite_with_rowid=False,
)
RUN_IS_OPEN = text("runs.status IN ('queued', 'running', 'retrying')")
"""Put this into a query to use the index on open runs: SQLite recognises a partial index by its literal condition."""
Index("ix_runs_job_id_open", runs.c.job_id, **_where("status IN ('queued', 'running', 'retrying')"))
Index("ix_runs_retry_at", runs.c.retry_at, **_where("retry_at IS NOT NULL"))
RUN_IS_LOST = text("runs.status = 'lost'")
"""As RUN_IS_OPEN, for the index on lost runs: they are few, and no counter of a job tells them from failed ones."""
Index("ix_runs_team_id_lost", runs.c.team_id, runs.c.finished_at, **_where("status = 'lost'"))

executions = Table(
    "executions",
    metadata,
    _id("run_id"),
    _instant("scheduled_for"),
    Column("attempt", Integer, nullable=False),
    _id("job_id"),
    _id("team_id"),
    _id("session_id"),
    Column("cause", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    _instant("started_at"),
    _instant("finished_at"),
    Column("duration_ms", Double, nullable=False),
    Column("timings", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("request_body", Text),
    Column("response", Text),
    Column("response_body", Text),
    Column("error_kind", String(32)),
    Column("error_message", Text),
    PrimaryKeyConstraint("run_id", "scheduled_for", "attempt"),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    Column("node", String(200), nullable=False),
    Column("version", String(32), nullable=False),
    _instant("started_at"),
    _instant("renewed_at"),
    _instant("expires_at"),
    Column("clock_difference_ms", BigInteger),
    _instant("ended_at", nullable=True),
    Column("end_reason", String(16)),
    _instant("settled_at", nullable=True),
    PrimaryKeyConstraint("id"),
)
# Those that live, and those whose runs are still to be taken over: a handful among all that ever were.
Index("ix_sessions_expires_at", sessions.c.expires_at, **_where("settled_at IS NULL"))
Index("ix_sessions_started_at", sessions.c.started_at)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), nullable=False),
    _id("team_id"),
    Column("name", String(200), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    _instant("created_at"),
    _instant("last_used_at", nullable=True),
    _instant("revoked_at", nullable=True),
    Column("scopes", String(100), nullable=False, server_default=text("'read write trigger ping-admin admin'")),
    _instant("expires_at", nullable=True),
    _id("created_by", nullable=True),
    PrimaryKeyConstraint("id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _id("team_id"),
    Column("operation", String(64), nullable=False),
    Column("key", String(255), nullable=False),
    Column("request_hash", String(64), nullable=False),
    Column("resource_id", String(64), nullable=False),
    _instant("created_at"),
    PrimaryKeyConstraint("team_id", "operation", "key"),
)
Index("ix_idempotency_keys_created_at", idempotency_keys.c.created_at)

# With what requests are signed. The one that expires never is the team's; others are those it took the place of.
signing_keys = Table(
    "signing_keys",
    metadata,
    _id("team_id"),
    _id(),
    _id("data_key_id"),
    Column("sealed", Text, nullable=False),
    _instant("created_at"),
    _instant("expires_at", nullable=True),
    PrimaryKeyConstraint("team_id", "id"),
)
Index("ix_signing_keys_team_id", signing_keys.c.team_id, unique=True, **_where("expires_at IS NULL"))

# What seals the secrets of a team, itself sealed by a master key that is not in here. The newest generation seals;
# an older one is there only while a rotation is under way.
data_keys = Table(
    "data_keys",
    metadata,
    _id(),
    _id("team_id"),
    Column("generation", Integer, nullable=False),
    Column("master_key_id", String(16), nullable=False),
    Column("wrapped", String(200), nullable=False),
    _counter("uses"),
    _instant("created_at"),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("team_id", "generation"),
)

secrets = Table(
    "secrets",
    metadata,
    _id(),
    _id("team_id"),
    Column("name", String(64).with_variant(String(64, collation="C"), "postgresql"), nullable=False),
    _id("data_key_id"),
    Column("sealed", Text, nullable=False),
    Column("allowed_hosts", Text, nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    _instant("last_used_at", nullable=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("team_id", "name"),
)

# Facts about the ledger itself: the zone data its instants were computed with.
facts = Table(
    "facts",
    metadata,
    Column("name", String(64), nullable=False),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("name"),
)

from zerocron.storage.ledger import alert_tables as _alert_tables  # noqa: E402, F401 - they belong to the metadata
from zerocron.storage.ledger import hour_tables as _hour_tables  # noqa: E402, F401
from zerocron.storage.ledger import monitor_tables as _monitor_tables  # noqa: E402, F401
from zerocron.storage.ledger import people_tables as _people_tables  # noqa: E402, F401
