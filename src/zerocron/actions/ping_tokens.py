"""Ping tokens: made, looked up, shown again.

Owns how a token is kept: a keyed hash finds its monitor, and a sealed form lets the owner see it again. The key is a
fact of the ledger until the house has a master key; `TokenKeeper` is the one place that knows. Must never log a token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from functools import partial

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.storage.ledger import facts
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger.database import Ledger

TOKEN = re.compile(r"[0-9a-f]{64}", re.ASCII)
REFRESH_SECONDS = 1.0
OVERLAP_MS = 30_000
"""Changes are read again from so long before the newest known one: a commit may come later than its instant says."""

PAGE = 5_000
LOOK_UPS_PER_SECOND = 5
"""Unknown tokens may ask the ledger so often: one that another node made this second is found, and a flood of made-up
ones costs nothing."""

_KEY = "ping_token_key"
_KEY_BYTES = 32


class TokenKeeper:
    """Hashes and seals tokens with keys derived from one secret."""

    def __init__(self, secret: bytes) -> None:
        self._find = hmac.digest(secret, b"ping token: find", "sha256")
        self._hide = hmac.digest(secret, b"ping token: hide", "sha256")
        self._prove = hmac.digest(secret, b"ping token: prove", "sha256")

    @classmethod
    async def open(cls, ledger: Ledger) -> TokenKeeper:
        """With the ledger's key, made when there is none. Of nodes that make one at once, all get the first."""

        def transaction(connection: Connection) -> str:
            found = facts.get(connection, _KEY)
            if found is None:
                facts.add(connection, _KEY, secrets.token_hex(_KEY_BYTES))
                found = facts.get(connection, _KEY) or ""
            return found

        return cls(bytes.fromhex(await ledger.write(transaction)))

    def new(self) -> str:
        """64 hexadecimal digits that nobody has."""
        return secrets.token_hex(32)

    def digest(self, token: str) -> str:
        """What a token is looked up by."""
        return hmac.digest(self._find, token.encode(), "sha256").hex()

    def seal(self, token: str, monitor_id: str) -> str:
        """A form that only this key opens, and only for this monitor."""
        nonce = secrets.token_bytes(16)
        hidden = _xor(bytes.fromhex(token), hmac.digest(self._hide, nonce, "sha256"))
        return (nonce + hidden + self._proof(nonce + hidden, monitor_id)).hex()

    def unseal(self, sealed: str, monitor_id: str) -> str:
        """Raises ValueError for what was not sealed with this key for this monitor."""
        raw = bytes.fromhex(sealed)
        nonce, hidden, proof = raw[:16], raw[16:48], raw[48:]
        if len(raw) != 80 or not hmac.compare_digest(proof, self._proof(nonce + hidden, monitor_id)):
            raise ValueError("the ping token was sealed with another key, or for another monitor")
        return _xor(hidden, hmac.digest(self._hide, nonce, "sha256")).hex()

    def _proof(self, text: bytes, monitor_id: str) -> bytes:
        return hmac.new(self._prove, text + monitor_id.encode(), hashlib.sha256).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


class TokenDirectory:
    """All good tokens in memory, by their hashes: 100,000 of them take some 30 MB.

    On an exclusive ledger it is complete. Of several nodes each learns within a second what the others changed, and
    asks the ledger about a few of the tokens that it does not know.
    """

    def __init__(self, *, ledger: Ledger, clock: Clock, keeper: TokenKeeper, exclusive: bool) -> None:
        self.keeper = keeper
        self._ledger = ledger
        self._clock = clock
        self._exclusive = exclusive
        self._monitors: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._newest: Instant = 0
        self._look_ups = float(LOOK_UPS_PER_SECOND)
        self._looked_up_at = clock.monotonic()

    def known(self, token: str) -> str | None:
        """The id of its monitor, from memory."""
        return self._monitors.get(self.keeper.digest(token))

    async def find(self, token: str) -> str | None:
        """The id of its monitor; at a bounded rate the ledger is asked for one that is unknown here."""
        digest = self.keeper.digest(token)
        known = self._monitors.get(digest)
        if known is not None or self._exclusive or not self._may_look_up():
            return known
        found = await self._ledger.read(lambda connection: monitor_rows.find_token(connection, digest))
        if found is not None:
            self.learn([(found, digest, True)])
        return found

    def learn(self, changes: Iterable[tuple[str, str, bool]]) -> None:
        """(monitor id, its token's hash, whether it is good): the one before it is good no more."""
        for monitor_id, digest, is_good in changes:
            earlier = self._hashes.pop(monitor_id, None)
            if earlier is not None:
                self._monitors.pop(earlier, None)
            if is_good:
                self._hashes[monitor_id] = digest
                self._monitors[digest] = monitor_id

    async def load(self) -> None:
        """Take in what has changed since the last time; all there is, the first time."""
        after = (self._newest - OVERLAP_MS, "")
        while True:
            changes = await self._ledger.read(partial(monitor_rows.tokens_changed, after=after, limit=PAGE))
            self.learn([(monitor_id, digest, is_good) for _, monitor_id, digest, is_good in changes])
            if changes:
                self._newest = max(self._newest, changes[-1][0])
            if len(changes) < PAGE:
                return
            after = (changes[-1][0], changes[-1][1])

    async def tick(self) -> float:
        """Keep up with other nodes; returns the seconds until the next time."""
        await self.load()
        return REFRESH_SECONDS

    def _may_look_up(self) -> bool:
        now = self._clock.monotonic()
        self._look_ups = min(LOOK_UPS_PER_SECOND, self._look_ups + (now - self._looked_up_at) * LOOK_UPS_PER_SECOND)
        self._looked_up_at = now
        if self._look_ups < 1:
            return False
        self._look_ups -= 1
        return True
