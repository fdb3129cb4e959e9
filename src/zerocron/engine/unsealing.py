"""Reads and opens the secrets of attempts that are about to be sent.

Owns the way from a sealed row to a `Secret`, and when each was last used. Nothing that was opened is kept: a secret
that was changed is read anew by the next attempt, on every node. Attempts that ask at the same time share one query, so
that a burst costs a few. Must never log a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import structlog

from zerocron.clock import Clock
from zerocron.core.errors import Unavailable
from zerocron.core.sealing import CannotOpen, DataKey, Keyring
from zerocron.core.secret import Secret
from zerocron.engine.rendering import NotSent
from zerocron.storage.ledger import secrets as secret_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.secrets import DataKeyRow, SecretRow
from zerocron.storage.ledger.uses import Uses

log = structlog.get_logger(__name__)

READ_TRIES = 5
READ_AGAIN_SECONDS = 1.0
READ_AT_ONCE_MAX = 200
KEYS_KEPT_MAX = 1_000

Sealed = tuple[SecretRow, DataKeyRow]


class _Asked(NamedTuple):
    team_id: str
    names: frozenset[str]
    found: asyncio.Future[list[Sealed]]


class Unsealer:
    """The secrets of all teams, for the executor."""

    def __init__(self, *, ledger: Ledger, clock: Clock, keyring: Keyring) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._keys: dict[str, DataKey] = {}
        self._asked: list[_Asked] = []
        self._reading: asyncio.Task[None] | None = None
        self._uses = Uses(ledger, secret_rows.save_last_used)

    async def secrets(self, team_id: str, names: frozenset[str]) -> Mapping[str, Secret]:
        """All of these secrets of the team, by name. Raises NotSent."""
        rows = {secret.name: (secret, key) for secret, key in await self._rows(team_id, names)}
        missing = sorted(names - rows.keys())
        if missing:
            raise NotSent(
                "secret_unknown",
                f"There is no secret {', '.join(missing)}. Nothing was sent. Make it with: 0cron secrets set "
                f"{missing[0]}",
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
        reading = self._reading
        if reading is not None:
            await asyncio.wait([reading])

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

    async def _rows(self, team_id: str, names: frozenset[str]) -> list[Sealed]:
        for _ in range(READ_TRIES - 1):
            try:
                return await self._read(team_id, names)
            except Unavailable:
                await self._clock.sleep(READ_AGAIN_SECONDS)
        try:
            return await self._read(team_id, names)
        except Unavailable:
            raise NotSent("secret_unavailable", "The secrets could not be read in time. Nothing was sent.") from None

    async def _read(self, team_id: str, names: frozenset[str]) -> list[Sealed]:
        """What a query finds that begins after this was called."""
        asked = _Asked(team_id, names, asyncio.get_running_loop().create_future())
        self._asked.append(asked)
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_for_all(), name="unsealer")
        return await asked.found

    async def _read_for_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked[:READ_AT_ONCE_MAX], self._asked[READ_AT_ONCE_MAX:]
            wanted = {(item.team_id, name) for item in asked for name in item.names}
            try:
                rows = await self._query(wanted)
            except Exception as error:
                for item in asked:
                    if not item.found.done():
                        item.found.set_exception(error)
                continue
            by_name = {(secret.team_id, secret.name): (secret, key) for secret, key in rows}
            for item in asked:
                if not item.found.done():  # its attempt may have been given up
                    keys = [(item.team_id, name) for name in item.names]
                    item.found.set_result([by_name[key] for key in keys if key in by_name])
        self._reading = None

    async def _query(self, wanted: Iterable[tuple[str, str]]) -> list[Sealed]:
        return await self._ledger.read(lambda connection: secret_rows.of_names(connection, wanted))
