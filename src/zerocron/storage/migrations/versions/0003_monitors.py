"""Monitors: what is expected, pings, flips, outages"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "flips",
        sa.Column("monitor_id", _ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("noticed_at", sa.BigInteger(), nullable=False),
        sa.Column("before", sa.String(length=16), nullable=False),
        sa.Column("after", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "number", name=op.f("pk_flips")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "monitors",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("schedule", sa.String(length=1000), nullable=False),
        sa.Column("schedule_kind", sa.String(length=16), nullable=False),
        sa.Column("schedule_cron", sa.String(length=1000), nullable=True),
        sa.Column("schedule_every_ms", sa.BigInteger(), nullable=True),
        sa.Column("schedule_at", sa.BigInteger(), nullable=True),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("schedule_dst", sa.String(length=16), nullable=False),
        sa.Column("schedule_day_match", sa.String(length=16), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("grace_ms", sa.BigInteger(), nullable=False),
        sa.Column("max_run_ms", sa.BigInteger(), nullable=True),
        sa.Column("min_run_ms", sa.BigInteger(), nullable=True),
        sa.Column("post_only", sa.Integer(), nullable=False),
        sa.Column("resume_on_ping", sa.Integer(), nullable=False),
        sa.Column("notify", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("token_sealed", sa.Text(), nullable=False),
        sa.Column("token_changed_at", sa.BigInteger(), nullable=False),
        sa.Column("health", sa.String(length=16), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=True),
        sa.Column("anchor", sa.BigInteger(), nullable=True),
        sa.Column("failed_at", sa.BigInteger(), nullable=True),
        sa.Column("result_at", sa.BigInteger(), nullable=True),
        sa.Column("last_ping_at", sa.BigInteger(), nullable=True),
        sa.Column("last_ping_kind", sa.String(length=16), nullable=True),
        sa.Column("runs", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("ended_runs", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("resume_at", sa.BigInteger(), nullable=True),
        sa.Column("pings", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("flips", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "deadline_at IS NULL OR status != 'deleted'", name=op.f("ck_monitors_deleted_monitors_are_not_watched")
        ),
        sa.CheckConstraint("health IN ('new', 'up', 'down')", name=op.f("ck_monitors_health")),
        sa.CheckConstraint("status IN ('active', 'paused', 'deleted')", name=op.f("ck_monitors_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_monitors")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index("ix_monitors_token_hash", "monitors", ["token_hash"], unique=True)
    op.create_index("ix_monitors_token_changed_at", "monitors", ["token_changed_at"], unique=False)
    op.create_index(
        "ix_monitors_deadline_at",
        "monitors",
        ["deadline_at", "id"],
        unique=False,
        sqlite_where=sa.text("deadline_at IS NOT NULL"),
        postgresql_where=sa.text("deadline_at IS NOT NULL"),
    )
    op.create_index("ix_monitors_team_id_created_at", "monitors", ["team_id", "created_at", "id"], unique=False)
    op.create_table(
        "outages",
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("started_at", name=op.f("pk_outages")),
    )
    op.create_index("ix_outages_ended_at", "outages", ["ended_at"], unique=False)
    op.create_table(
        "pings",
        sa.Column("monitor_id", _ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("rid", sa.String(length=36), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("method", sa.String(length=8), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("user_agent", sa.String(length=200), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "number", name=op.f("pk_pings")),
        sqlite_with_rowid=False,
    )
