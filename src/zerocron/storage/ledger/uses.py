"""When things were last used: noted at each use, and written down from time to time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from zerocron.core.model import Instant
from zerocron.storage.ledger.database import Ledger

SAVE_SECONDS = 15.0


class Uses:
    """Those of one kind of thing, by its ids; `write` is its query."""

    def __init__(self, ledger: Ledger, write: Callable[[Connection, Mapping[str, Instant]], None]) -> None:
        self._ledger = ledger
        self._write = write
        self.noted: dict[str, Instant] = {}

    async def save(self) -> float:
        """Write down what was noted; returns the seconds until the next time."""
        noted, self.noted = self.noted, {}
        if noted:
            try:
                await self._ledger.write(lambda connection: self._write(connection, noted))
            except BaseException:
                self.noted = noted | self.noted  # for the next time
                raise
        return SAVE_SECONDS
