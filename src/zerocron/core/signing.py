"""Signatures by which a target knows that a request is ours and is as we sent it (Standard Webhooks 1.0.0).

Owns the form of a signing key (`whsec_` and 24 to 64 bytes in base64) and of the three headers. What is signed is
`id.timestamp.body`, the body byte for byte as it goes out. Pure: random bytes and the time are given.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
KEY_BYTES = 32
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64
OVERLAP_MS = 86_400_000
"""For so long after a rotation requests are signed with the key before, too, so that no receiver is surprised."""


def key_text(key: bytes) -> str:
    """A key as people and receivers write it. Raises ValueError for a length that the standard does not allow."""
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError("a signing key has 24 to 64 bytes")
    return PREFIX + base64.b64encode(key).decode()


def read_key(text: str) -> bytes:
    """The key that `key_text` wrote. Raises ValueError, which shows nothing of it."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not text.startswith(PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError("this is not a signing key")
    return key


def signed_headers(
    keys: Sequence[bytes], *, message_id: str, timestamp_seconds: int, body: bytes | None
) -> list[tuple[str, str]]:
    """The headers of a signed request: one signature for each key, the newest first. `message_id` holds no dot."""
    content = b".".join((message_id.encode(), str(timestamp_seconds).encode(), body or b""))
    signatures = [base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys]
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp_seconds)),
        ("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)),
    ]
