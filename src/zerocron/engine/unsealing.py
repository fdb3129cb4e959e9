"""Reads and opens the secrets of attempts that are about to be sent.

Owns the way from a sealed row to a `Secret`, and when each was last used. Nothing that was opened is kept: a secret
that was changed is read anew by the next attempt, on every node. Must never log a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import structlog

from zerocron.clock import Clock
from zerocron.core.sealing import CannotOpen, DataKey, Keyring
from zerocron.core.secret import Secret
from zerocron.engine.reads import SharedReads, patiently
from zerocron.engine.rendering import NotSent, first_few
from zerocron.storage.ledger import secrets as secret_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow, SecretRow
from zerocron.storage.ledger.uses import Uses

log = structlog.get_logger(__name__)

KEYS_KEPT_MAX = 1_000

Sealed = tuple[SecretRow, DataKeyRow]


class Unsealer:
    """The secrets of all teams, for the executor."""

    def __init__(self, *, ledger: Ledger, clock: Clock, keyring: Keyring) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._keys: dict[str, DataKey] = {}
        self._reads = SharedReads(self._query)
        self._uses = Uses(ledger, secret_rows.save_last_used)

    async def secrets(self, team_id: str, names: frozenset[str]) -> Mapping[str, Secret]:
        """All of these secrets of the team, by name. Raises NotSent, Unavailable."""
        keys = frozenset((team_id, name) for name in names)
        found = await patiently(self._clock, partial(self._reads.get, keys))
        rows = {name: row for (_, name), row in found.items()}
        missing = names - rows.keys()
        if missing:
            raise NotSent(
                "secret_unknown",
                f"There is no secret {first_few(missing)}. Nothing was sent. Make it with: 0cron secrets set "
                f"{min(missing)}",
            )
        opened = {name: self._open(*row) for name, row in rows.items()}
        now = self._clock.now()
        self._uses.noted |= {secret.id: now for secret, _ in rows.values()}
        return opened

    async def save_use(self) -> float:
        """Write down when secrets were last used; returns the seconds until the next time."""
        return await self._uses.save()

    async def close(self) -> None:
        """Wait for the query under way; closing twice is no error."""
        await self._reads.close()

    def _open(self, secret: SecretRow, key: DataKeyRow) -> Secret:
        try:
            data_key = self._keys.get(key.id)
            if data_key is None:
                data_key = key.opened(self._keyring)
                if len(self._keys) >= KEYS_KEPT_MAX:
                    self._keys.clear()
                self._keys[key.id] = data_key
            value = data_key.open(secret.sealed, secret_id=secret.id, name=secret.name)
        except CannotOpen:
            log.error(
                "secret_not_opened",
                team_id=secret.team_id,
                name=secret.name,
                master_key_id=key.master_key_id,
                known=key.master_key_id in self._keyring,
            )
            raise NotSent(
                "secret_unavailable",
                f"The secret {secret.name} cannot be opened by this server, whose log has the details. Nothing was "
                "sent.",
            ) from None
        return Secret(secret.name, value, secret.allowed_hosts)

    async def _query(self, wanted: frozenset[tuple[str, str]]) -> dict[tuple[str, str], Sealed]:
        rows = await self._ledger.read(lambda connection: secret_rows.of_names(connection, wanted))
        return {(secret.team_id, secret.name): (secret, key) for secret, key in rows}
