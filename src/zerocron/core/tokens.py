"""API keys as text: `0c_<id>_<secret><checksum>`.

Owns the form. The id finds the key, the secret (32 characters of base 62, 190 bits) proves it, and the checksum (CRC-32
in six characters) lets a typing mistake or a scanner's guess be refused without asking the ledger. Must never store
anything: what is kept is `digest(secret)`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from dataclasses import dataclass

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"0c_(?P<id>[0-9a-z]{12})_(?P<secret>[0-9A-Za-z]{32})(?P<checksum>[0-9A-Za-z]{6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Token:
    """A key in the clear: shown once, when it is made."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        body = f"0c_{self.id}_{self.secret}"
        return body + _checksum(body)


def new_token() -> Token:
    """A key nobody has."""
    return Token(
        id="".join(secrets.choice(_ID_ALPHABET) for _ in range(12)),
        secret="".join(secrets.choice(_ALPHABET) for _ in range(32)),
    )


def read_token(text: str) -> Token | None:
    """The parts of a key, or None when it is not one of ours."""
    match = _FORM.fullmatch(text)
    if match is None or _checksum(text[: match.start("checksum")]) != match["checksum"]:
        return None
    return Token(match["id"], match["secret"])


def digest(secret: str) -> str:
    """What is kept of a secret. It has 190 random bits, so a plain SHA-256 cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _checksum(body: str) -> str:
    value, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        value, index = divmod(value, len(_ALPHABET))
        text = _ALPHABET[index] + text
    return text
