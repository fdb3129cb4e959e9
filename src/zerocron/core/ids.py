"""New identifiers that sort by the time they were made (UUIDv7, RFC 9562 5.7).

The random part comes from the system, the time from the caller: the core reads no clock.
"""

from __future__ import annotations

import secrets
from uuid import UUID

from zerocron.core.model import Instant


def new_id(now: Instant) -> str:
    """48 bits of milliseconds, then version, variant and 74 random bits."""
    random = secrets.randbits(74)
    value = (now & (2**48 - 1)) << 80 | 0x7 << 76 | (random >> 62) << 64 | 0b10 << 62 | (random & (2**62 - 1))
    return str(UUID(int=value))


def first_id(now: Instant) -> str:
    """No id that was made at that instant or later sorts before it, and every one that was made earlier does."""
    return str(UUID(int=(now & (2**48 - 1)) << 80))
