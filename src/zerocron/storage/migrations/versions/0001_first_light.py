"""First light: jobs, runs, executions, sessions, keys"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_table(
        "executions",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("scheduled_for", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("session_id", sa.String(length=36), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.Column("timings", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("request_body", sa.Text(), nullable=True),
        sa.Column("response", sa.Text(), nullable=True),
        sa.Column("response_body", sa.Text(), nullable=True),
        sa.Column("error_kind", sa.String(length=32), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "scheduled_for", "attempt", name=op.f("pk_executions")),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("resource_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "operation", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"], unique=False)
    op.create_table(
        "job_versions",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "version", name=op.f("pk_job_versions")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("schedule", sa.String(length=1000), nullable=False),
        sa.Column("schedule_kind", sa.String(length=16), nullable=False),
        sa.Column("schedule_cron", sa.String(length=1000), nullable=True),
        sa.Column("schedule_every_ms", sa.BigInteger(), nullable=True),
        sa.Column("schedule_at", sa.BigInteger(), nullable=True),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("schedule_dst", sa.String(length=16), server_default=sa.text("'run_once'"), nullable=False),
        sa.Column("schedule_day_match", sa.String(length=16), server_default=sa.text("'either'"), nullable=False),
        sa.Column("language", sa.String(length=8), server_default=sa.text("'en'"), nullable=False),
        sa.Column("method", sa.String(length=32), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("timeout_seconds", sa.Double(), nullable=False),
        sa.Column("retry_attempts", sa.Integer(), nullable=False),
        sa.Column("retry_backoff", sa.String(length=32), nullable=False),
        sa.Column("retry_delay_seconds", sa.Double(), nullable=False),
        sa.Column("success", sa.Text(), nullable=False),
        sa.Column("overlap", sa.String(length=16), nullable=False),
        sa.Column("catchup", sa.String(length=16), nullable=False),
        sa.Column("catchup_window_seconds", sa.Integer(), nullable=False),
        sa.Column("on_lost", sa.String(length=16), nullable=False),
        sa.Column("notify", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("next_run_at", sa.BigInteger(), nullable=True),
        sa.Column("active_run_id", sa.String(length=36), nullable=True),
        sa.Column("active_since", sa.BigInteger(), nullable=True),
        sa.Column("queued_run_id", sa.String(length=36), nullable=True),
        sa.Column("succeeded", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("skipped", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("consecutive_failures", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("duration_ms_total", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_run_id", sa.String(length=36), nullable=True),
        sa.Column("last_run_status", sa.String(length=16), nullable=True),
        sa.Column("last_run_scheduled_for", sa.BigInteger(), nullable=True),
        sa.Column("last_run_finished_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("next_run_at IS NULL OR status = 'active'", name=op.f("ck_jobs_only_active_jobs_are_due")),
        sa.CheckConstraint("status IN ('active', 'paused', 'completed', 'deleted')", name=op.f("ck_jobs_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(
        "ix_jobs_next_run_at",
        "jobs",
        ["next_run_at", "id"],
        unique=False,
        sqlite_where=sa.text("next_run_at IS NOT NULL"),
        postgresql_where=sa.text("next_run_at IS NOT NULL"),
    )
    op.create_index("ix_jobs_team_id_created_at", "jobs", ["team_id", "created_at", "id"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("scheduled_for", sa.BigInteger(), nullable=False),
        sa.Column("trigger_key", sa.String(length=36), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("team_id", sa.String(length=36), nullable=False),
        sa.Column("job_version", sa.Integer(), nullable=False),
        sa.Column("triggered_by", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("redeliveries", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.BigInteger(), nullable=True),
        sa.Column("session_id", sa.String(length=36), nullable=True),
        sa.Column("attempt_started_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("scheduled_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NULL) = (status IN ('queued', 'running', 'retrying'))",
            name=op.f("ck_runs_final_runs_are_finished"),
        ),
        sa.CheckConstraint(
            "(status = 'running') = (session_id IS NOT NULL)", name=op.f("ck_runs_running_runs_have_a_session")
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'retrying', 'succeeded', 'failed', 'skipped', 'cancelled', 'lost')",
            name=op.f("ck_runs_status"),
        ),
        sa.PrimaryKeyConstraint("id", "scheduled_for", name=op.f("pk_runs")),
        sa.UniqueConstraint(
            "job_id", "scheduled_for", "trigger_key", name=op.f("uq_runs_job_id_scheduled_for_trigger_key")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_runs_job_id_open",
        "runs",
        ["job_id"],
        unique=False,
        sqlite_where=sa.text("status IN ('queued', 'running', 'retrying')"),
        postgresql_where=sa.text("status IN ('queued', 'running', 'retrying')"),
    )
    op.create_index(
        "ix_runs_retry_at",
        "runs",
        ["retry_at"],
        unique=False,
        sqlite_where=sa.text("retry_at IS NOT NULL"),
        postgresql_where=sa.text("retry_at IS NOT NULL"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("node", sa.String(length=200), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("renewed_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("end_reason", sa.String(length=16), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    op.create_table(
        "teams",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_teams")),
    )
