"""Ping tokens: made, looked up, shown again.

Owns how a token is kept: a keyed hash finds its monitor, and a sealed form lets the owner see it again. The hash's key
is a fact of the ledger, which is enough: nobody guesses 256 bits. What opens a sealed token is not in the ledger, but
sealed by the master key. Must never log a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import orjson
import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, DataKey, Keyring
from zerocron.storage.ledger import facts
from zerocron.storage.ledger import ping_tokens as token_rows
from zerocron.storage.ledger.database import Ledger

log = structlog.get_logger(__name__)

TOKEN = re.compile(r"[0-9a-f]{64}", re.ASCII)
REFRESH_SECONDS = 1.0
OVERLAP_MS = 30_000
"""What changed so long before the last look is read again. A commit comes later than its instant (`token_rows.date`),
and by less than this, since PostgreSQL ends a transaction in which its node stands still. (Not one that waits for a
synchronous standby: what commits there after a longer wait is learnt when its new token is used.)"""

PAGE = 5_000
LOOK_UPS_PER_SECOND = 5
"""Unknown tokens may ask the ledger so often: one that another node made this second is found, and a flood of made-up
ones costs nothing."""

RESEALED_AT_ONCE = 1_000
_FIND_FACT = "ping_token_key"
_SEAL_FACT = "ping_token_data_key"
_KEY_BYTES = 32
_NAME = "ping token"
"""What a sealed token belongs to, beside its monitor. No secret is called so, and no team `_OWNER`."""

_OWNER = "ping tokens"


class TokenKeeper:
    """Finds and seals tokens. With a data key, which the master key opens, tokens are sealed as secrets are. A ledger
    of nodes without a master key seals them with what it holds itself, which hides them from the eye only."""

    def __init__(self, secret: bytes, data_key: DataKey | None = None) -> None:
        self._find = hmac.digest(secret, b"ping token: find", "sha256")
        self._hide = hmac.digest(secret, b"ping token: hide", "sha256")
        self._prove = hmac.digest(secret, b"ping token: prove", "sha256")
        self._data_key = data_key

    @classmethod
    async def open(cls, ledger: Ledger, keyring: Keyring) -> TokenKeeper:
        """With the ledger's keys, made when there are none. Of nodes that make some at once, all get the first.

        Once there is a master key, what was sealed without one is sealed anew. Raises CannotOpen for a data key of
        another master key, which `check_master_keys` has ruled out.
        """

        def transaction(connection: Connection) -> tuple[str, DataKey | None]:
            secret = _fact(connection, _FIND_FACT, lambda: secrets.token_hex(_KEY_BYTES))
            if not keyring:
                return secret, None
            kept = _Wrapped.read(_fact(connection, _SEAL_FACT, lambda: _Wrapped.made(keyring).text))
            return secret, kept.opened(keyring)

        secret, data_key = await ledger.write(transaction)
        keeper = cls(bytes.fromhex(secret), data_key)
        if data_key is not None:
            await keeper._reseal(ledger)
        return keeper

    async def _reseal(self, ledger: Ledger) -> None:
        """What was sealed while there was no master key. A row that cannot be opened stays as it is."""
        after, resealed = "", 0
        while page := await ledger.read(partial(token_rows.sealed, after=after, limit=RESEALED_AT_ONCE)):
            old = [(monitor_id, sealed) for monitor_id, sealed in page if _is_plain(sealed)]
            rows = []
            for monitor_id, sealed in old:
                with contextlib.suppress(ValueError):
                    rows.append([monitor_id, sealed, self.seal(self.unseal(sealed, monitor_id), monitor_id)])
            if rows:
                await ledger.write(partial(token_rows.reseal, rows=rows))
            resealed += len(rows)
            after = page[-1][0]
        if resealed:
            log.info("ping_tokens_resealed", tokens=resealed)

    def new(self) -> str:
        """64 hexadecimal digits that nobody has."""
        return secrets.token_hex(32)

    def digest(self, token: str) -> str:
        """What a token is looked up by."""
        return hmac.digest(self._find, token.encode(), "sha256").hex()

    def seal(self, token: str, monitor_id: str) -> str:
        """A form that only this key opens, and only for this monitor."""
        if self._data_key is not None:
            return self._data_key.seal(token, secret_id=monitor_id, name=_NAME)
        nonce = secrets.token_bytes(16)
        hidden = _xor(bytes.fromhex(token), hmac.digest(self._hide, nonce, "sha256"))
        return (nonce + hidden + self._proof(nonce + hidden, monitor_id)).hex()

    def unseal(self, sealed: str, monitor_id: str) -> str:
        """Raises ValueError for what was not sealed with this key for this monitor."""
        if self._data_key is not None and not _is_plain(sealed):
            with contextlib.suppress(CannotOpen):
                return self._data_key.open(sealed, secret_id=monitor_id, name=_NAME)
        elif _is_plain(sealed):
            raw = bytes.fromhex(sealed)
            nonce, hidden, proof = raw[:16], raw[16:48], raw[48:]
            if hmac.compare_digest(proof, self._proof(nonce + hidden, monitor_id)):
                return _xor(hidden, hmac.digest(self._hide, nonce, "sha256")).hex()
        raise ValueError("the ping token was sealed with another key, or for another monitor")

    def _proof(self, text: bytes, monitor_id: str) -> bytes:
        return hmac.new(self._prove, text + monitor_id.encode(), hashlib.sha256).digest()


class _Wrapped(NamedTuple):
    """The data key of ping tokens as it is kept: sealed by the master key of that id."""

    key_id: str
    master_key_id: str
    wrapped: str

    @classmethod
    def made(cls, keyring: Keyring) -> _Wrapped:
        key_id = secrets.token_hex(16)
        return cls(key_id, keyring.newest.id, keyring.newest.new_data_key(key_id, _OWNER)[1])

    @classmethod
    def read(cls, text: str) -> _Wrapped:
        return cls(*orjson.loads(text))

    @property
    def text(self) -> str:
        return orjson.dumps(list(self)).decode()

    def opened(self, keyring: Keyring) -> DataKey:
        return keyring.open_data_key(self.wrapped, master_key_id=self.master_key_id, key_id=self.key_id, team_id=_OWNER)


def master_key_ids(connection: Connection) -> set[str]:
    """The master key that ping tokens need, if any."""
    kept = facts.get(connection, _SEAL_FACT)
    return set() if kept is None else {_Wrapped.read(kept).master_key_id}


def rewrap(connection: Connection, keyring: Keyring) -> None:
    """Let the newest master key open the data key of ping tokens. The key itself stays: running nodes have it."""
    kept = facts.get(connection, _SEAL_FACT)
    if kept is None:
        return
    before = _Wrapped.read(kept)
    wrapped = keyring.rewrap(before.wrapped, master_key_id=before.master_key_id, key_id=before.key_id, team_id=_OWNER)
    facts.put(connection, _SEAL_FACT, _Wrapped(before.key_id, keyring.newest.id, wrapped).text)


def _fact(connection: Connection, name: str, make: Callable[[], str]) -> str:
    found = facts.get(connection, name)
    if found is None:
        facts.add(connection, name, make())
        found = facts.get(connection, name) or ""
    return found


def _is_plain(sealed: str) -> bool:
    """Whether it was sealed with what the ledger holds itself."""
    return _PLAIN.fullmatch(sealed) is not None


_PLAIN = re.compile(r"[0-9a-f]{160}", re.ASCII)


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
        self._looked_at: Instant | None = None
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
        found = await self._ledger.read(lambda connection: token_rows.find(connection, digest))
        if found is not None:
            self.learn([(found, digest, True)])
        return found

    def learn(self, changes: Iterable[tuple[str, str, bool]]) -> None:
        """(monitor id, its token's hash, whether it is good): the one before it is good no more."""
        for monitor_id, digest, is_good in changes:
            earlier = self._hashes.get(monitor_id)
            if is_good and earlier == digest:
                continue
            self._hashes.pop(monitor_id, None)
            if earlier is not None:
                self._monitors.pop(earlier, None)
            if is_good:
                self._hashes[monitor_id] = digest
                self._monitors[digest] = monitor_id

    async def load(self) -> None:
        """Take in what has changed since the last time; all there is, the first time."""
        now = self._clock.now()
        # The earlier of the two, since the ledger's clock may have been set back.
        after = (0 if self._looked_at is None else min(self._looked_at, now) - OVERLAP_MS, "")
        while True:
            changes = await self._ledger.read(partial(token_rows.changed, after=after, limit=PAGE))
            self.learn([(monitor_id, digest, is_good) for _, monitor_id, digest, is_good in changes])
            if len(changes) < PAGE:
                break
            after = (changes[-1][0], changes[-1][1])
        self._looked_at = now

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
