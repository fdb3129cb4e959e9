"""Server mode: sessions that are settled, jobs that may be disabled, delivery as one value, secrets, signing keys"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
_STATUS = "status IN ('active', 'paused', 'disabled', 'completed', 'deleted')"
_MOVED = ("retry_attempts", "retry_backoff", "retry_delay_seconds", "success")
_IDS = {
    "api_keys": ("team_id",),
    "executions": ("run_id", "job_id", "team_id", "session_id"),
    "idempotency_keys": ("team_id",),
    "job_versions": ("job_id", "team_id"),
    "jobs": ("id", "team_id", "active_run_id", "queued_run_id", "last_run_id"),
    "runs": ("id", "job_id", "team_id", "session_id"),
    "sessions": ("id",),
    "teams": ("id",),
}
_PAGE = 1_000


def upgrade() -> None:
    op.add_column("sessions", sa.Column("clock_difference_ms", sa.BigInteger(), nullable=True))
    op.add_column("sessions", sa.Column("settled_at", sa.BigInteger(), nullable=True))
    unsettled = sa.text("settled_at IS NULL")
    op.create_index(
        "ix_sessions_expires_at",
        "sessions",
        ["expires_at"],
        unique=False,
        sqlite_where=unsettled,
        postgresql_where=unsettled,
    )
    op.add_column("jobs", sa.Column("delivery", sa.Text(), nullable=True))
    op.add_column("jobs", sa.Column("disable_after", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("jobs", sa.Column("crowded", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("jobs", sa.Column("status_reason", sa.String(length=200), nullable=True))
    _move_delivery(op.get_bind())
    _change_jobs()
    _create_secrets()
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE jobs SET (fillfactor = 80)")
        for table, columns in _IDS.items():
            changes = ", ".join(f'ALTER COLUMN {column} TYPE VARCHAR(36) COLLATE "C"' for column in columns)
            op.execute(f"ALTER TABLE {table} {changes}")
        # Made anew with its table, the condition would be spelt in another way than in one that was always so.
        op.drop_index("ix_runs_job_id_open", "runs")
        is_open = sa.text("status IN ('queued', 'running', 'retrying')")
        op.create_index("ix_runs_job_id_open", "runs", ["job_id"], postgresql_where=is_open)


def _change_jobs() -> None:
    with op.batch_alter_table("jobs") as jobs:  # SQLite makes the table anew
        jobs.alter_column("delivery", existing_type=sa.Text(), nullable=False)
        for column in _MOVED:
            jobs.drop_column(column)
        jobs.drop_constraint(op.f("ck_jobs_status"), type_="check")
        jobs.create_check_constraint(op.f("ck_jobs_status"), _STATUS)


def _move_delivery(connection: sa.Connection) -> None:
    """What decided about retries and success goes into one value, in jobs and in what they were before."""
    jobs = sa.table("jobs", *map(sa.column, ("id", *_MOVED, "delivery")))
    after = ""
    query = sa.select(jobs.c.id, *(jobs.c[name] for name in _MOVED)).order_by(jobs.c.id).limit(_PAGE)
    while rows := connection.execute(query.where(jobs.c.id > after)).all():
        change = sa.update(jobs).where(jobs.c.id == sa.bindparam("job")).values(delivery=sa.bindparam("value"))
        connection.execute(
            change, [{"job": row[0], "value": _text(_delivery(list(row[1:4]), json.loads(row[4])))} for row in rows]
        )
        after = rows[-1][0]
    versions = sa.table("job_versions", *map(sa.column, ("job_id", "version", "definition")))
    key = sa.tuple_(versions.c.job_id, versions.c.version)
    seen = ("", 0)
    listed = sa.select(versions.c.job_id, versions.c.version, versions.c.definition)
    while rows := connection.execute(listed.where(key > seen).order_by(*key.clauses).limit(_PAGE)).all():
        change = (
            sa.update(versions)
            .where(versions.c.job_id == sa.bindparam("job"), versions.c.version == sa.bindparam("number"))
            .values(definition=sa.bindparam("value"))
        )
        connection.execute(
            change, [{"job": job, "number": number, "value": _definition(text)} for job, number, text in rows]
        )
        seen = (rows[-1][0], rows[-1][1])


def _definition(text: str) -> str:
    raw: dict[str, Any] = json.loads(text)
    retry, success = raw.pop("retry", None), raw.pop("success", None)
    return text if retry is None or success is None else _text(raw | {"delivery": _delivery(retry, success)})


def _delivery(retry: list[Any], success: list[Any]) -> dict[str, Any]:
    attempts, backoff, delay_seconds = retry
    status, contains, not_contains = success
    rule = {"status": status, "body_contains": contains, "body_not_contains": not_contains}
    return {
        "retry": {"attempts": attempts, "backoff": backoff, "delay_seconds": delay_seconds, "jitter": "none"},
        "success": {name: value for name, value in rule.items() if value is not None},
        "redirects": 0,
        "verify_tls": True,
        "sign": False,
    }


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _create_secrets() -> None:
    op.create_table(
        "data_keys",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("master_key_id", sa.String(length=16), nullable=False),
        sa.Column("wrapped", sa.String(length=200), nullable=False),
        sa.Column("uses", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_keys")),
        sa.UniqueConstraint("team_id", "generation", name=op.f("uq_data_keys_team_id_generation")),
    )
    op.create_table(
        "secrets",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column(
            "name",
            sa.String(length=64).with_variant(sa.String(length=64, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("data_key_id", _ID, nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("allowed_hosts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_secrets")),
        sa.UniqueConstraint("team_id", "name", name=op.f("uq_secrets_team_id_name")),
    )
    op.create_table(
        "signing_keys",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("id", _ID, nullable=False),
        sa.Column("data_key_id", _ID, nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("team_id", "id", name=op.f("pk_signing_keys")),
    )
    never = sa.text("expires_at IS NULL")
    op.create_index(
        "ix_signing_keys_team_id",
        "signing_keys",
        ["team_id"],
        unique=True,
        sqlite_where=never,
        postgresql_where=never,
    )
