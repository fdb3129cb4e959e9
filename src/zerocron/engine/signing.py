"""The keys with which requests are signed, for the executor.

Owns how long a node goes on with what it read: a rotation reaches it within `REMEMBERED_SECONDS`. Must never log a key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, Keyring
from zerocron.engine.rendering import NotSent
from zerocron.storage.ledger import signing as signing_rows
from zerocron.storage.ledger.database import Ledger

REMEMBERED_SECONDS = 5.0
REMEMBERED_MAX = 1_000
"""Teams whose keys are remembered."""

READ_TRIES = 5
READ_AGAIN_SECONDS = 1.0

_Keys = list[tuple[bytes, Instant | None]]


class Signer:
    """Signing keys by team."""

    def __init__(self, *, ledger: Ledger, clock: Clock, keyring: Keyring) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._remembered: OrderedDict[str, tuple[_Keys, float]] = OrderedDict()

    async def keys(self, team_id: str) -> Sequence[bytes]:
        """The team's keys that sign now, the newest first. Raises NotSent, and Unavailable."""
        found, read_at = self._remembered.get(team_id, ([], float("-inf")))
        if self._clock.monotonic() - read_at > REMEMBERED_SECONDS:
            found = await self._read(team_id, found)
            self._remembered[team_id] = (found, self._clock.monotonic())
            self._remembered.move_to_end(team_id)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        now = self._clock.now()
        keys = [key for key, expires_at in found if expires_at is None or expires_at > now]
        if not keys:
            raise NotSent("not_signed", "The job asks for signed requests, and there is no signing key.")
        return keys

    async def _read(self, team_id: str, known: _Keys) -> _Keys:
        """The team's keys, or those that are known while the ledger is away."""
        for _ in range(READ_TRIES - 1):
            try:
                return await self._look_up(team_id)
            except Unavailable:
                if known:
                    return known
                await self._clock.sleep(READ_AGAIN_SECONDS)
        return await self._look_up(team_id)

    async def _look_up(self, team_id: str) -> _Keys:
        now = self._clock.now()

        def transaction(connection: Connection) -> _Keys:
            rows = signing_rows.valid(connection, team_id, now)
            keys = signing_rows.opened(connection, rows, self._keyring) if rows else []
            return [(key, row.expires_at) for key, row in zip(keys, rows, strict=True)]

        try:
            return await self._ledger.read(transaction)
        except (CannotOpen, ValueError):
            raise NotSent("not_signed", "The signing key cannot be opened with this server's master key.") from None
