"""API keys: made, listed, revoked, recognised.

Owns who a bearer of a key is. A found key is remembered for a second, so that a busy client costs no query a request
and a revoked key is refused within that second on every node. Must never keep or log a secret.
"""

from __future__ import annotations

import dataclasses
import hmac
from collections import OrderedDict
from collections.abc import Mapping

from sqlalchemy import Connection

from zerocron.actions.idempotency import Once, make
from zerocron.clock import Clock
from zerocron.core.access import DEFAULT_SCOPES, SERVER, Actor, Bearer, Permission, in_order
from zerocron.core.errors import Conflict, Invalid, NotFound, Unauthorized
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Instant
from zerocron.core.tokens import Token, digest, new_token, read_token
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.keys import ApiKey
from zerocron.storage.ledger.uses import Uses

REMEMBERED_SECONDS = 1.0
REMEMBERED_MAX = 10_000

EXPIRY_MS_MAX = 366 * 86_400_000
"""A key that expires does so within a year; one that is to last longer has no expiry, on purpose."""


class Keys:
    """Verbs on API keys. `by`: who asked for it, for the audit log."""

    def __init__(self, *, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._remembered: OrderedDict[str, tuple[ApiKey | None, float]] = OrderedDict()
        self._uses = Uses(ledger, key_rows.save_last_used)

    async def create(
        self,
        team_id: str,
        name: str,
        idempotency_key: str | None = None,
        *,
        scopes: frozenset[Permission] = DEFAULT_SCOPES,
        expires_at: Instant | None = None,
        by: Actor = SERVER,
    ) -> tuple[ApiKey, Token]:
        """A new key, and its token, which nobody can see again. `expires_at` None: it is good until it is revoked.

        Raises Invalid, and Conflict when this idempotency key made one before: its token cannot be shown a second time.
        """
        now = self._clock.now()
        if expires_at is not None and not now < expires_at <= now + EXPIRY_MS_MAX:
            raise Invalid("Give an instant that is still to come, within a year; or null.", field="expires_at")
        token = new_token()
        key = ApiKey(
            token.id,
            team_id,
            name,
            digest(token.secret),
            now,
            scopes=scopes,
            expires_at=expires_at,
            created_by=by.id if by.kind == "person" else None,
            created_by_name=by.name if by.kind == "person" else None,
        )
        told = {"scopes": in_order(scopes), "expires_at": None if expires_at is None else to_rfc3339(expires_at)}
        once = Once.of(team_id, "keys.create", idempotency_key, {"name": name, **told})

        def transaction(connection: Connection) -> ApiKey:
            earlier = once.claim(connection, key.id, now)
            if earlier is not None:
                raise Conflict(
                    f"This Idempotency-Key made the API key {earlier} before, and a key is shown only once. "
                    "Revoke that one and ask with a new Idempotency-Key.",
                    code="made_before",
                )
            key_rows.insert(connection, key)
            _record(connection, team_id, "create", key.id, name, by, now, after=told)
            return key

        await make(self._ledger, transaction, lambda connection: key_rows.find(connection, key.id))
        self._remembered.pop(token.id, None)
        return key, token

    async def page(self, team_id: str, *, after: str, limit: int) -> list[ApiKey]:
        """The team's keys that are not revoked, by id."""
        found = await self._ledger.read(lambda connection: key_rows.page(connection, team_id, after=after, limit=limit))
        return [dataclasses.replace(key, last_used_at=self._uses.noted.get(key.id, key.last_used_at)) for key in found]

    async def revoke(self, team_id: str, key_id: str, *, by: Actor = SERVER) -> None:
        """From now on (on other nodes within a second) the key opens nothing. Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            name = key_rows.revoke(connection, team_id, key_id, now)
            if name is None:
                raise NotFound("There is no such API key.")
            _record(connection, team_id, "revoke", key_id, name, by, now)

        await self._ledger.write(transaction)
        self._remembered.pop(key_id, None)

    def forget(self, team_id: str) -> None:
        """What was revoked of the keys of a team counts here from the next request on."""
        gone = [key_id for key_id, (key, _) in self._remembered.items() if key is not None and key.team_id == team_id]
        for key_id in gone:
            del self._remembered[key_id]

    async def recognise(self, authorization: str | None) -> Bearer:
        """Who sent this `Authorization` header. Raises Unauthorized, with one text for every reason."""
        scheme, _, text = (authorization or "").partition(" ")
        token = read_token(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise Unauthorized
        key = await self._find(token.id)
        expected = key.secret_hash if key is not None else digest("")
        matches = hmac.compare_digest(digest(token.secret), expected)
        now = self._clock.now()
        if key is None or not matches or key.revoked_at is not None or key.has_expired(now):
            raise Unauthorized
        self._uses.noted[key.id] = now
        return Bearer(key.team_id, Actor("key", key.id, key.name), key.scopes, key_id=key.id)

    async def save_use(self) -> float:
        """Write down when keys were last used; returns the seconds until the next time."""
        return await self._uses.save()

    async def _find(self, key_id: str) -> ApiKey | None:
        remembered = self._remembered.get(key_id)
        now = self._clock.monotonic()
        if remembered is not None and now - remembered[1] < REMEMBERED_SECONDS:
            return remembered[0]
        key = await self._ledger.read(lambda connection: key_rows.find(connection, key_id))
        self._remembered[key_id] = (key, now)
        self._remembered.move_to_end(key_id)
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return key


def _record(
    connection: Connection,
    team_id: str,
    verb: str,
    key_id: str,
    name: str,
    by: Actor,
    at: Instant,
    *,
    after: Mapping[str, object] | None = None,
) -> None:
    audit.record(
        connection,
        team_id=team_id,
        at=at,
        by=by,
        action=f"api_key.{verb}",
        subject=audit.Subject("api_key", key_id, name),
        after=after,
    )
