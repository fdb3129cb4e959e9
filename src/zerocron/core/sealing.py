"""Sealing: how the values of secrets are kept in the ledger, which alone reveals none of them.

Two layers of AES-256-GCM. A value is sealed with its team's data key; the data key is sealed with the master key, which
is never in the ledger or in its backups. Every sealing takes a new random 96-bit nonce. What a sealed text belongs to
(format, team, secret, name, key) is authenticated with it: moved to another row, it does not open. NIST SP 800-38D
allows 2^32 sealings with random nonces under one key; a data key counts its own and asks for a new one long before.

Pure but for the system's random numbers. Keys hide themselves in every text that is made of them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Iterable
from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from zerocron.core.errors import Invalid

FORMAT = 1
KEY_BYTES = 32
NONCE_BYTES = 12
USES_ALARM = 2**24
"""From so many sealings with one data key on, it is time for `0cron secrets rotate`; the log says so."""

USES_MAX = 2**31
"""A data key seals no more than this."""

MASTER_KEYS_MAX = 10
_TAG_BYTES = 16


class CannotOpen(Exception):
    """A sealed text is damaged, belongs elsewhere, or is sealed with another key. Nothing more is said of it."""

    def __init__(self) -> None:
        super().__init__("A sealed text cannot be opened.")


class _Key:
    """32 bytes that seal and open, and are shown to nobody."""

    __slots__ = ("_cipher", "id")

    def __init__(self, key_id: str, key: bytes) -> None:
        self.id = key_id
        self._cipher = AESGCM(key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A key is not copied or serialised.")

    def _seal(self, content: bytes, *belongs: str) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, content, _bound(self.id, belongs))
        return base64.b64encode(bytes((FORMAT,)) + nonce + sealed).decode()

    def _open(self, sealed: str, *belongs: str) -> bytes:
        try:
            raw = base64.b64decode(sealed, validate=True)
        except (ValueError, binascii.Error):
            raise CannotOpen from None
        if len(raw) < 1 + NONCE_BYTES + _TAG_BYTES or raw[0] != FORMAT:
            raise CannotOpen
        nonce, content = raw[1 : 1 + NONCE_BYTES], raw[1 + NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, content, _bound(self.id, belongs))
        except InvalidTag:
            raise CannotOpen from None


def _bound(key_id: str, belongs: tuple[str, ...]) -> bytes:
    """The additional data that is authenticated: a list in JSON, so that no two of them read the same."""
    return json.dumps([FORMAT, key_id, *belongs]).encode()


class DataKey(_Key):
    """Seals the values of one team."""

    __slots__ = ("team_id",)

    def __init__(self, key_id: str, team_id: str, key: bytes) -> None:
        super().__init__(key_id, key)
        self.team_id = team_id

    def seal(self, value: str, *, secret_id: str, name: str) -> str:
        return self._seal(value.encode(), "secret", self.team_id, secret_id, name)

    def open(self, sealed: str, *, secret_id: str, name: str) -> str:
        """Raises CannotOpen."""
        return self._open(sealed, "secret", self.team_id, secret_id, name).decode()


class MasterKey(_Key):
    """Seals data keys, and signs what browsers keep. Its id is computed from the key and says nothing about it."""

    __slots__ = ("_signing",)

    def __init__(self, key: bytes) -> None:
        super().__init__(hmac.digest(key, b"zerocron: id of a master key", "sha256").hex()[:16], key)
        self._signing = hmac.digest(key, b"zerocron: signs what browsers keep", "sha256")

    def sign(self, content: str, purpose: str) -> str:
        """By which the server knows its own words again. To be compared in constant time."""
        return hmac.digest(self._signing, json.dumps([purpose, content]).encode(), "sha256").hex()

    def new_data_key(self, key_id: str, team_id: str) -> tuple[DataKey, str]:
        """A new data key, and the same sealed for the ledger."""
        key = secrets.token_bytes(KEY_BYTES)
        return DataKey(key_id, team_id, key), self._seal(key, "data key", team_id, key_id)

    def open_data_key(self, sealed: str, *, key_id: str, team_id: str) -> DataKey:
        """Raises CannotOpen."""
        return DataKey(key_id, team_id, self._open(sealed, "data key", team_id, key_id))

    def take_over(self, other: MasterKey, sealed: str, *, key_id: str, team_id: str) -> str:
        """A data key that the other one sealed, sealed by this one. Raises CannotOpen."""
        return self._seal(other._open(sealed, "data key", team_id, key_id), "data key", team_id, key_id)

    def check_value(self) -> str:
        """What is left in the ledger, to know the key by later."""
        return self._seal(b"", "check value")

    def made(self, check_value: str) -> bool:
        try:
            self._open(check_value, "check value")
        except CannotOpen:
            return False
        return True


class Keyring:
    """The master keys of a node: the newest seals, all open. It may be empty."""

    def __init__(self, keys: Iterable[MasterKey] = ()) -> None:
        self._keys = {key.id: key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __contains__(self, key_id: object) -> bool:
        return key_id in self._keys

    def __repr__(self) -> str:
        return f"<Keyring {' '.join(self._keys)}>"

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def newest(self) -> MasterKey:
        return next(iter(self._keys.values()))

    @property
    def all(self) -> tuple[MasterKey, ...]:
        return tuple(self._keys.values())

    def get(self, key_id: str) -> MasterKey | None:
        return self._keys.get(key_id)

    def open_data_key(self, sealed: str, *, master_key_id: str, key_id: str, team_id: str) -> DataKey:
        """Raises CannotOpen, also when there is no such master key here."""
        return self._holder(master_key_id).open_data_key(sealed, key_id=key_id, team_id=team_id)

    def rewrap(self, sealed: str, *, master_key_id: str, key_id: str, team_id: str) -> str:
        """The same data key, sealed by the newest master key. Raises CannotOpen as `open_data_key` does."""
        return self.newest.take_over(self._holder(master_key_id), sealed, key_id=key_id, team_id=team_id)

    def _holder(self, master_key_id: str) -> MasterKey:
        master = self._keys.get(master_key_id)
        if master is None:
            raise CannotOpen
        return master


def new_master_key() -> str:
    """A new one, as it is written into a setting."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def read_master_keys(text: str, *, source: str) -> Keyring:
    """Keys in base64 or hex, separated by commas, the newest first. Raises Invalid, which names the source and shows
    nothing of what it holds."""
    parts = [part.strip() for part in text.split(",")]
    parts = [part for part in parts if part] or [""]
    if len(parts) > MASTER_KEYS_MAX:
        raise Invalid(f"{source}: there are at most {MASTER_KEYS_MAX} keys.", field=source)
    keys = []
    for number, part in enumerate(parts, 1):
        key = _read_key(part)
        which = "The key" if len(parts) == 1 else f"Key {number}"
        if key is None:
            raise Invalid(
                f"{source}: {which} is not {KEY_BYTES} bytes in base64 (44 characters) or hex (64 characters). "
                "Make one with: 0cron secrets new-key",
                field=source,
            )
        if len(set(key)) < KEY_BYTES // 4:
            raise Invalid(f"{source}: {which} is not random. Make one with: 0cron secrets new-key", field=source)
        keys.append(MasterKey(key))
    return Keyring(keys)


def _read_key(text: str) -> bytes | None:
    text = "".join(text.removeprefix("\ufeff").split())  # as files have it: blanks, line ends, the mark of some editors
    try:
        if len(text) == 2 * KEY_BYTES:
            key = bytes.fromhex(text)
        else:
            plain = text.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
            key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None
    return key if len(key) == KEY_BYTES else None
