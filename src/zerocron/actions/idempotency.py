"""Doing a thing once: for one `Idempotency-Key`, and when the answer to a commit is lost.

Owns both rules. The same key with the same request gives the same thing again; with another request it is refused. The
key is noted first of all in the transaction that makes the thing, so that of two at once one makes it and the other
finds it. Keys are forgotten after a day.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from sqlalchemy import Connection

from zerocron.core.errors import Conflict, Invalid, Unclear
from zerocron.core.model import Instant
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger.database import Ledger, Transaction

T = TypeVar("T")

KEY_CHARACTERS_MAX = 255


@dataclass(frozen=True, slots=True)
class Once:
    """One key for one operation of one team. `key` None means: no promise asked for. `team_id`: of what belongs to no
    team yet, the person's."""

    team_id: str
    operation: str
    key: str | None
    request_hash: str

    @classmethod
    def of(cls, team_id: str, operation: str, key: str | None, request: Any) -> Once:
        """Raises Invalid for a key that is empty, too long, or not printable ASCII."""
        if key is not None and not (0 < len(key) <= KEY_CHARACTERS_MAX and key.isascii() and key.isprintable()):
            raise Invalid(
                f"An Idempotency-Key is 1 to {KEY_CHARACTERS_MAX} printable ASCII characters.",
                field="Idempotency-Key",
            )
        digest = hashlib.sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return cls(team_id, operation, key, digest)

    def earlier(self, connection: Connection) -> str | None:
        """The id of what this key made before. Raises Conflict when that was asked for in other words."""
        if self.key is None:
            return None
        found = key_rows.find_idempotent(connection, self.team_id, self.operation, self.key)
        if found is None:
            return None
        request_hash, resource_id = found
        if request_hash != self.request_hash:
            raise Conflict(
                "This Idempotency-Key was used for a different request. Use a new key for a new request.",
                code="key_reused",
            )
        return resource_id

    def claim(self, connection: Connection, resource_id: str, now: Instant) -> str | None:
        """Note what is being made, in the transaction that makes it; or the id of what this key made before.

        Raises Conflict when that was asked for in other words.
        """
        if self.key is None or key_rows.claim_idempotent(
            connection,
            team_id=self.team_id,
            operation=self.operation,
            key=self.key,
            request_hash=self.request_hash,
            resource_id=resource_id,
            now=now,
        ):
            return None
        return self.earlier(connection)


def still_there(found: T | None, noun: str) -> T:
    """What an idempotency key made, unless that is gone: a second one must not be made for the same key."""
    if found is None:
        raise Conflict(
            f"The {noun} that this Idempotency-Key made is gone. Use a new key to make another.", code="made_and_gone"
        )
    return found


async def make(ledger: Ledger, transaction: Transaction[T], look_up: Transaction[T | None]) -> T:
    """Make a thing; when the answer to the commit is lost, see whether it is there. Raises Unclear if it is not."""
    try:
        return await ledger.write(transaction)
    except Unclear:
        made = await ledger.read(look_up)
        if made is None:
            raise
        return made
