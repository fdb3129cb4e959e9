"""What one actor did is found by an index: it was picked out of all that the team's audit log holds"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_audit_entries_team_id_actor_id_at", "audit_entries", ["team_id", "actor_id", "at", "id"], unique=False
    )
