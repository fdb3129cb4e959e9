"""People: who they are, how they sign in, what they may do, and what was done"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")

_FIRST_TEAM_ID = "00000000-0000-7000-8000-000000000001"


def _open_rows(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=False, sqlite_where=where, postgresql_where=where)


# The audit log is added to. Nobody changes an entry, and nobody removes one that is young, whatever a query says.
_REFUSE_CHANGE = "RAISE(ABORT, 'entries of the audit log are never changed')"
_REFUSE_REMOVAL = "RAISE(ABORT, 'entries of the audit log are kept for 30 days at least')"
_APPEND_ONLY = {
    "sqlite": (
        f"CREATE TRIGGER audit_entries_change BEFORE UPDATE ON audit_entries BEGIN SELECT {_REFUSE_CHANGE}; END",
        "CREATE TRIGGER audit_entries_removal BEFORE DELETE ON audit_entries "
        "WHEN OLD.at > (CAST(strftime('%s', 'now') AS INTEGER) - 2592000) * 1000 "
        f"BEGIN SELECT {_REFUSE_REMOVAL}; END",
    ),
    "postgresql": (
        """
        CREATE FUNCTION audit_entries_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                IF OLD.at <= (extract(epoch FROM clock_timestamp()) - 2592000) * 1000 THEN
                    RETURN OLD;
                END IF;
                RAISE EXCEPTION 'entries of the audit log are kept for 30 days at least';
            END IF;
            RAISE EXCEPTION 'entries of the audit log are never changed';
        END
        $$
        """,
        "CREATE TRIGGER audit_entries_change BEFORE UPDATE OR DELETE ON audit_entries "
        "FOR EACH ROW EXECUTE FUNCTION audit_entries_refuse()",
        "CREATE TRIGGER audit_entries_removal BEFORE TRUNCATE ON audit_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_entries_refuse()",
    ),
}


def _keep_first_team() -> None:
    """The team that everything has belonged to until now gets the row that others refer to."""
    clock = {
        "sqlite": "CAST(strftime('%s', 'now') AS INTEGER) * 1000",
        "postgresql": "(extract(epoch FROM now()) * 1000)::bigint",
    }[op.get_bind().dialect.name]
    op.execute(
        f"INSERT INTO teams (id, name, created_at) SELECT '{_FIRST_TEAM_ID}', 'Team', {clock} "
        f"WHERE NOT EXISTS (SELECT 1 FROM teams WHERE id = '{_FIRST_TEAM_ID}')"
    )


def upgrade() -> None:
    for name, kind in (
        ("jobs_max", sa.Integer()),
        ("runs_per_minute_max", sa.Integer()),
        ("history_bytes_max", sa.BigInteger()),
        ("history_bytes", sa.BigInteger()),
        ("history_counted_at", sa.BigInteger()),
        ("deleted_at", sa.BigInteger()),
    ):
        op.add_column("teams", sa.Column(name, kind, nullable=True))
    _keep_first_team()
    scopes = sa.text("'read write trigger ping-admin admin'")
    op.add_column("api_keys", sa.Column("scopes", sa.String(length=100), server_default=scopes, nullable=False))
    op.add_column("api_keys", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("api_keys", sa.Column("created_by", _ID, nullable=True))
    op.create_table(
        "people",
        sa.Column("id", _ID, nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=True),
        sa.Column("password_changed_at", sa.BigInteger(), nullable=True),
        sa.Column("totp_data_key_id", _ID, nullable=True),
        sa.Column("totp_sealed", sa.Text(), nullable=True),
        sa.Column("totp_confirmed_at", sa.BigInteger(), nullable=True),
        sa.Column("totp_step", sa.BigInteger(), nullable=True),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'disabled')", name=op.f("ck_people_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("email", name=op.f("uq_people_email")),
    )
    op.create_table(
        "members",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("person_id", _ID, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('owner', 'admin', 'editor', 'viewer')", name=op.f("ck_members_role")),
        sa.PrimaryKeyConstraint("team_id", "person_id", name=op.f("pk_members")),
    )
    op.create_index("ix_members_person_id", "members", ["person_id"], unique=False)
    op.create_table(
        "recovery_codes",
        sa.Column("person_id", _ID, nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("person_id", "code_hash", name=op.f("pk_recovery_codes")),
    )
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("person_id", _ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identities")),
    )
    op.create_index("ix_identities_person_id", "identities", ["person_id"], unique=False)
    op.create_table(
        "sign_ins",
        sa.Column("id", _ID, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person_id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=True),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("address", sa.String(length=45), nullable=False),
        sa.Column("user_agent", sa.String(length=300), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("elevated_until", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_ins")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sign_ins_token_hash")),
    )
    op.create_index("ix_sign_ins_person_id", "sign_ins", ["person_id"], unique=False)
    op.create_table(
        "one_time_links",
        sa.Column("id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("team_id", _ID, nullable=True),
        sa.Column("person_id", _ID, nullable=True),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=True),
        sa.Column("created_by", _ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('setup', 'reset', 'invitation')", name=op.f("ck_one_time_links_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_one_time_links")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_one_time_links_token_hash")),
    )
    _open_rows("ix_one_time_links_team_id", "one_time_links", ["team_id"], "used_at IS NULL")
    op.create_table(
        "audit_entries",
        sa.Column("id", _ID, nullable=False),
        sa.Column("team_id", _ID, nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("actor_id", sa.String(length=36), nullable=False),
        sa.Column("actor_name", sa.String(length=254), nullable=False),
        sa.Column("address", sa.String(length=45), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("subject_kind", sa.String(length=32), nullable=False),
        sa.Column("subject_id", sa.String(length=64), nullable=False),
        sa.Column("subject_name", sa.String(length=254), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index("ix_audit_entries_subject_id_at", "audit_entries", ["subject_id", "at"], unique=False)
    op.create_index(
        "ix_audit_entries_team_id_action_at", "audit_entries", ["team_id", "action", "at", "id"], unique=False
    )
    op.create_index("ix_audit_entries_team_id_at", "audit_entries", ["team_id", "at", "id"], unique=False)
    op.create_table(
        "team_minutes",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "minute", name=op.f("pk_team_minutes")),
    )
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)
    _count_by_the_hour()


def _count_by_the_hour() -> None:
    op.create_table(
        "team_hours",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("succeeded", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "hour", name=op.f("pk_team_hours")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "lateness_hours",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "hour", "size", name=op.f("pk_lateness_hours")),
        sqlite_with_rowid=False,
    )
    _open_rows("ix_runs_team_id_lost", "runs", ["team_id", "finished_at"], "status = 'lost'")
    op.create_index("ix_sessions_started_at", "sessions", ["started_at"], unique=False)
    _open_rows("ix_alerts_created_at_pending", "alerts", ["created_at"], "next_attempt_at IS NOT NULL")
