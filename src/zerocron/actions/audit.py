"""The audit log as people read it.

Owns reading alone: entries are written by the verbs themselves, in the transaction of what they tell.
"""

from __future__ import annotations

from zerocron.core.access import SERVER
from zerocron.core.model import Instant
from zerocron.storage.ledger import audit as audit_rows
from zerocron.storage.ledger.audit import Entry
from zerocron.storage.ledger.database import Ledger

OF_SERVER = SERVER.kind
"""The `actor_id` of what 0cron does of itself, which has no id. No person and no key has such a one."""


class Audit:
    """What was done in a team. What was done in another is not there."""

    def __init__(self, *, ledger: Ledger) -> None:
        self._ledger = ledger

    async def page(
        self,
        team_id: str,
        *,
        subject_id: str | None = None,
        action: str | None = None,
        actor_id: str | None = None,
        before: tuple[Instant, str] | None = None,
        limit: int = 50,
    ) -> list[Entry]:
        """Newest first."""
        by = SERVER.id if actor_id == OF_SERVER else actor_id
        return await self._ledger.read(
            lambda connection: audit_rows.page(
                connection, team_id, subject_id=subject_id, action=action, actor_id=by, before=before, limit=limit
            )
        )
