"""Alerts: channels, the outbox, and what was told of jobs and monitors"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def _index_where(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=False, sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("alert_state", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.add_column("monitors", sa.Column("alert_state", sa.Text(), server_default=sa.text("''"), nullable=False))
    op.add_column("monitors", sa.Column("alert_at", sa.BigInteger(), nullable=True))
    _index_where("ix_monitors_alert_at", "monitors", ["alert_at", "id"], "alert_at IS NOT NULL")
    op.create_table(
        "channels",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("destination", sa.String(length=500), nullable=False),
        sa.Column("data_key_id", _ID, nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_send_at", sa.BigInteger(), nullable=False),
        sa.Column("last_sent_at", sa.BigInteger(), nullable=True),
        sa.Column("tested_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'paused', 'disabled', 'deleted')", name=op.f("ck_channels_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channels")),
    )
    op.create_index("ix_channels_team_id_created_at", "channels", ["team_id", "created_at", "id"], unique=False)
    op.create_table(
        "alerts",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("event_id", _ID, nullable=False),
        sa.Column("channel_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject_id", _ID, nullable=False),
        sa.Column("notice", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("digest_id", _ID, nullable=True),
        sa.Column("detail", sa.String(length=500), nullable=True),
        sa.Column("last_error", sa.String(length=500), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("status IN ('pending', 'sent', 'folded', 'dead')", name=op.f("ck_alerts_status")),
        sa.CheckConstraint(
            "(next_attempt_at IS NOT NULL) = (status = 'pending')", name=op.f("ck_alerts_pending_alerts_are_due")
        ),
        sa.CheckConstraint(
            "digest_id IS NOT NULL OR status != 'folded'", name=op.f("ck_alerts_folded_alerts_have_a_digest")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
        sa.UniqueConstraint("event_id", "channel_id", name=op.f("uq_alerts_event_id_channel_id")),
    )
    _index_where("ix_alerts_next_attempt_at", "alerts", ["next_attempt_at", "id"], "next_attempt_at IS NOT NULL")
    _index_where("ix_alerts_channel_id", "alerts", ["channel_id"], "next_attempt_at IS NOT NULL")
    _index_where("ix_alerts_digest_id", "alerts", ["digest_id"], "digest_id IS NOT NULL")
    op.create_index("ix_alerts_team_id_created_at", "alerts", ["team_id", "created_at", "id"], unique=False)
    _index_where("ix_alerts_finished_at", "alerts", ["finished_at"], "finished_at IS NOT NULL")
