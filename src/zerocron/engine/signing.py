"""The keys with which requests are signed, for the executor.

Owns how long a node goes on with what it read: a rotation reaches it within `REMEMBERED_SECONDS`. Must never log a key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, Keyring
from zerocron.engine.reads import SharedReads, patiently
from zerocron.engine.rendering import NotSent
from zerocron.storage.ledger import signing as signing_rows
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

REMEMBERED_SECONDS = 5.0
REMEMBERED_MAX = 1_000
"""Teams whose keys are remembered."""

_Keys = list[tuple[bytes, Instant | None]]
"""Each with the instant from which on it signs no more."""


class Signer:
    """Signing keys by team."""

    def __init__(self, *, ledger: Ledger, clock: Clock, keyring: Keyring) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._remembered: OrderedDict[str, tuple[_Keys, float]] = OrderedDict()
        self._reads: SharedReads[str, _Keys | None] = SharedReads(self._query)

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

    async def close(self) -> None:
        """Wait for the query under way; closing twice is no error."""
        await self._reads.close()

    async def _read(self, team_id: str, known: _Keys) -> _Keys:
        """The team's keys, or those that are known while the ledger is away."""
        read = partial(self._reads.get, frozenset([team_id]))
        try:
            found = await (read() if known else patiently(self._clock, read))
        except Unavailable:
            if not known:
                raise
            return known
        keys = found[team_id]
        if keys is None:
            log.error("signing_key_not_opened", team_id=team_id)
            raise NotSent("secret_unavailable", "The signing key cannot be opened with this server's master key.")
        return keys

    async def _query(self, team_ids: frozenset[str]) -> dict[str, _Keys | None]:
        now = self._clock.now()
        return await self._ledger.read(
            lambda connection: {team_id: self._opened(connection, team_id, now) for team_id in team_ids}
        )

    def _opened(self, connection: Connection, team_id: str, now: Instant) -> _Keys | None:
        """None: they do not open, which is no reason to keep the keys of others from them."""
        rows = signing_rows.valid(connection, team_id, now)
        try:
            keys = signing_rows.opened(connection, rows, self._keyring) if rows else []
        except (CannotOpen, ValueError):
            return None
        return [(key, row.expires_at) for key, row in zip(keys, rows, strict=True)]
