"""The key with which a team's requests are signed: looked at, and rotated.

Owns the life of a key: the first rotation makes one, each further one makes another, and the one before goes on signing
beside it for a day. A key is shown once, by the rotation that made it. Must never log one.
"""

from __future__ import annotations

import secrets as random
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from zerocron.actions.idempotency import Once, make
from zerocron.actions.secrets import Secrets
from zerocron.clock import Clock
from zerocron.core.access import SERVER, Actor
from zerocron.core.errors import Conflict, NotFound
from zerocron.core.ids import new_id
from zerocron.core.model import Instant
from zerocron.core.signing import KEY_BYTES, OVERLAP_MS, key_text
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import signing as signing_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.signing import SigningKeyRow

log = structlog.get_logger(__name__)

NO_KEY = "There is no signing key yet. Make one with POST /v1/signing-key/rotate, or `0cron signing rotate`."


KEYS_MAX = 5
"""A request carries a signature for each."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What is told of a team's key. `previous_expires_at`: until when the one before signs, too."""

    id: str
    created_at: Instant
    previous_expires_at: Instant | None = None


class Signing:
    """Verbs on the signing key of a team."""

    def __init__(self, *, ledger: Ledger, clock: Clock, secrets: Secrets) -> None:
        self._ledger = ledger
        self._clock = clock
        self._secrets = secrets

    async def show(self, team_id: str) -> SigningKey:
        """Raises NotFound."""
        now = self._clock.now()
        rows = await self._ledger.read(lambda connection: signing_rows.valid(connection, team_id, now))
        if not rows:
            raise NotFound(NO_KEY)
        return _told(next(row for row in rows if row.expires_at is None), rows)

    async def rotate(
        self, team_id: str, idempotency_key: str | None = None, *, by: Actor = SERVER
    ) -> tuple[SigningKey, str]:
        """A new key, and its text, which nobody can see again. `by`: who asked for it, for the audit log.

        Raises Conflict when the server has no master key, somebody else rotated at the same moment, or this idempotency
        key made one before: that cannot be shown a second time.
        """
        self._secrets.need_keys()
        now = self._clock.now()
        text = key_text(random.token_bytes(KEY_BYTES))
        key_id = new_id(now)
        once = Once.of(team_id, "signing.rotate", idempotency_key, {})

        def transaction(connection: Connection) -> list[SigningKeyRow]:
            earlier = once.claim(connection, key_id, now)
            if earlier is not None:
                raise Conflict(
                    f"This Idempotency-Key made the signing key {earlier} before, and a key is shown only once. Rotate "
                    "again with a new Idempotency-Key if you do not have it.",
                    code="made_before",
                )
            data_key, _ = self._secrets.sealing_key(connection, team_id, now)
            signing_rows.remove_expired(connection, team_id, now)
            if len(signing_rows.valid(connection, team_id, now)) >= KEYS_MAX:
                raise Conflict(
                    f"The signing key was rotated {KEYS_MAX - 1} times within a day; all of them sign. Wait."
                )
            signing_rows.expire(connection, team_id, now + OVERLAP_MS)
            sealed = signing_rows.seal(data_key, key_id, text)
            signing_rows.insert(connection, SigningKeyRow(team_id, key_id, data_key.id, sealed, now))
            audit.record(
                connection,
                team_id=team_id,
                at=now,
                by=by,
                action="signing_key.rotate",
                subject=audit.Subject("signing_key", key_id, "signing key"),
            )
            return signing_rows.valid(connection, team_id, now)

        def look_up(connection: Connection) -> list[SigningKeyRow] | None:
            kept = signing_rows.valid(connection, team_id, now)
            return kept if any(row.id == key_id for row in kept) else None

        try:
            rows = await make(self._ledger, transaction, look_up)
        except IntegrityError:
            raise Conflict("Somebody else rotated the signing key at the same moment. Look at it first.") from None
        log.info("signing_key_rotated", team_id=team_id, key_id=key_id, by=by.id)
        return _told(next(row for row in rows if row.id == key_id), rows), text


def _told(current: SigningKeyRow, rows: list[SigningKeyRow]) -> SigningKey:
    ends = [row.expires_at for row in rows if row.expires_at is not None and row.id != current.id]
    return SigningKey(current.id, current.created_at, max(ends, default=None))
