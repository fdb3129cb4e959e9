"""API keys: made, listed, revoked, recognised.

Owns who a bearer of a key is. A found key is remembered for a second, so that a busy client costs no query a request
and a revoked key is refused within that second on every node. Must never keep or log a secret.
"""

from __future__ import annotations

import dataclasses
import hmac
from collections import OrderedDict

from sqlalchemy import Connection

from zerocron.actions.idempotency import Once, make
from zerocron.clock import Clock
from zerocron.core.access import KEY_SCOPES, Actor, Bearer
from zerocron.core.errors import Conflict, NotFound, Unauthorized
from zerocron.core.tokens import Token, digest, new_token, read_token
from zerocron.storage.ledger import keys as key_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.keys import ApiKey
from zerocron.storage.ledger.uses import Uses

REMEMBERED_SECONDS = 1.0
REMEMBERED_MAX = 10_000


class Keys:
    """Verbs on API keys."""

    def __init__(self, *, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._remembered: OrderedDict[str, tuple[ApiKey | None, float]] = OrderedDict()
        self._uses = Uses(ledger, key_rows.save_last_used)

    async def create(self, team_id: str, name: str, idempotency_key: str | None = None) -> tuple[ApiKey, Token]:
        """A new key, and its token, which nobody can see again.

        Raises Conflict when this idempotency key made one before: its token cannot be shown a second time.
        """
        now = self._clock.now()
        token = new_token()
        key = ApiKey(token.id, team_id, name, digest(token.secret), now)
        once = Once.of(team_id, "keys.create", idempotency_key, {"name": name})

        def transaction(connection: Connection) -> ApiKey:
            earlier = once.claim(connection, key.id, now)
            if earlier is not None:
                raise Conflict(
                    f"This Idempotency-Key made the API key {earlier} before, and a key is shown only once. "
                    "Revoke that one and ask with a new Idempotency-Key."
                )
            key_rows.insert(connection, key)
            return key

        await make(self._ledger, transaction, lambda connection: key_rows.find(connection, key.id))
        self._remembered.pop(token.id, None)
        return key, token

    async def page(self, team_id: str, *, after: str, limit: int) -> list[ApiKey]:
        """The team's keys that are not revoked, by id."""
        found = await self._ledger.read(lambda connection: key_rows.page(connection, team_id, after=after, limit=limit))
        return [dataclasses.replace(key, last_used_at=self._uses.noted.get(key.id, key.last_used_at)) for key in found]

    async def revoke(self, team_id: str, key_id: str) -> None:
        """From now on (on other nodes within a second) the key opens nothing. Raises NotFound."""
        now = self._clock.now()
        if not await self._ledger.write(lambda connection: key_rows.revoke(connection, team_id, key_id, now)):
            raise NotFound("There is no such API key.")
        self._remembered.pop(key_id, None)

    async def recognise(self, authorization: str | None) -> Bearer:
        """Who sent this `Authorization` header. Raises Unauthorized, with one text for every reason."""
        scheme, _, text = (authorization or "").partition(" ")
        token = read_token(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise Unauthorized
        key = await self._find(token.id)
        expected = key.secret_hash if key is not None else digest("")
        matches = hmac.compare_digest(digest(token.secret), expected)
        if key is None or not matches or key.revoked_at is not None:
            raise Unauthorized
        self._uses.noted[key.id] = self._clock.now()
        return Bearer(key.team_id, Actor("key", key.id, key.name), KEY_SCOPES, key_id=key.id)

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
