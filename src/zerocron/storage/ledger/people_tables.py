"""The tables of people, of what they may do, and of what was done.

Owns their shape, as `tables.py` does for the rest. A token, a password and a recovery code are here as hashes only.
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
    UniqueConstraint,
)

from zerocron.storage.ledger.tables import _id, _instant, _where, metadata

# `totp_sealed` is the seed of a second factor, in use from `totp_confirmed_at` on; `totp_step` the last step of which a
# code was taken: each works once.
people = Table(
    "people",
    metadata,
    _id(),
    Column("email", String(254), nullable=False),
    Column("name", String(200), nullable=False),
    Column("status", String(16), nullable=False),
    Column("password_hash", String(200)),
    _instant("password_changed_at", nullable=True),
    _id("totp_data_key_id", nullable=True),
    Column("totp_sealed", Text),
    _instant("totp_confirmed_at", nullable=True),
    Column("totp_step", BigInteger),
    Column("language", String(8), nullable=False),
    Column("timezone", String(64), nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("email"),
    CheckConstraint("status IN ('active', 'disabled')", name="status"),
)

members = Table(
    "members",
    metadata,
    _id("team_id"),
    _id("person_id"),
    Column("role", String(16), nullable=False),
    _instant("created_at"),
    PrimaryKeyConstraint("team_id", "person_id"),
    CheckConstraint("role IN ('owner', 'admin', 'editor', 'viewer')", name="role"),
)
Index("ix_members_person_id", members.c.person_id)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    _id("person_id"),
    Column("code_hash", String(64), nullable=False),
    _instant("used_at", nullable=True),
    PrimaryKeyConstraint("person_id", "code_hash"),
)

# Who somebody is at an issuer of OpenID Connect.
identities = Table(
    "identities",
    metadata,
    Column("issuer", String(500), nullable=False),
    Column("subject", String(255), nullable=False),
    _id("person_id"),
    _instant("created_at"),
    PrimaryKeyConstraint("issuer", "subject"),
)
Index("ix_identities_person_id", identities.c.person_id)

# A browser in which somebody has signed in. `team_id` is the team that it looks at; `elevated_until` says how long
# what asks for a fresh proof of who one is may be done.
sign_ins = Table(
    "sign_ins",
    metadata,
    _id(),
    Column("token_hash", String(64), nullable=False),
    _id("person_id"),
    _id("team_id", nullable=True),
    Column("method", String(16), nullable=False),
    Column("address", String(45), nullable=False),
    Column("user_agent", String(300), nullable=False),
    _instant("created_at"),
    _instant("last_seen_at"),
    _instant("expires_at"),
    _instant("elevated_until", nullable=True),
    _instant("ended_at", nullable=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("token_hash"),
)
Index("ix_sign_ins_person_id", sign_ins.c.person_id)

# Links that work once: the first owner's, a new password's, an invitation's.
one_time_links = Table(
    "one_time_links",
    metadata,
    _id(),
    Column("kind", String(16), nullable=False),
    Column("token_hash", String(64), nullable=False),
    _id("team_id", nullable=True),
    _id("person_id", nullable=True),
    Column("email", String(254)),
    Column("role", String(16)),
    _id("created_by", nullable=True),
    _instant("created_at"),
    _instant("expires_at"),
    _instant("used_at", nullable=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("token_hash"),
    CheckConstraint("kind IN ('setup', 'reset', 'invitation')", name="kind"),
)
Index("ix_one_time_links_team_id", one_time_links.c.team_id, **_where("used_at IS NULL"))

# What people, keys and the server did. Rows are added and, when they are old, removed; none is ever changed: triggers,
# which the migration makes, refuse every UPDATE, and the DELETE of a row of the last 30 days.
audit_entries = Table(
    "audit_entries",
    metadata,
    _id(),
    _id("team_id", nullable=True),
    _instant("at"),
    Column("actor_kind", String(16), nullable=False),
    Column("actor_id", String(36), nullable=False),
    Column("actor_name", String(254), nullable=False),
    Column("address", String(45), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject_kind", String(32), nullable=False),
    Column("subject_id", String(64), nullable=False),
    Column("subject_name", String(254), nullable=False),
    Column("before", Text),
    Column("after", Text),
    PrimaryKeyConstraint("id"),
)
Index("ix_audit_entries_team_id_at", audit_entries.c.team_id, audit_entries.c.at, audit_entries.c.id)
Index(
    "ix_audit_entries_team_id_action_at",
    audit_entries.c.team_id,
    audit_entries.c.action,
    audit_entries.c.at,
    audit_entries.c.id,
)
Index(
    "ix_audit_entries_team_id_actor_id_at",
    audit_entries.c.team_id,
    audit_entries.c.actor_id,
    audit_entries.c.at,
    audit_entries.c.id,
)
Index("ix_audit_entries_subject_id_at", audit_entries.c.subject_id, audit_entries.c.at)

# How many runs a team with such a limit has started in a minute of the ledger's time, and how many slots were left out.
team_minutes = Table(
    "team_minutes",
    metadata,
    _id("team_id"),
    _instant("minute"),
    Column("runs", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    PrimaryKeyConstraint("team_id", "minute"),
)
