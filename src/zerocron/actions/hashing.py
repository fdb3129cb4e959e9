"""Hashes of passwords: argon2id, in threads of its own, so that the event loop never waits for one.

Owns the parameters (OWASP's: 19 MiB, two passes, one lane) and how much of it goes on at once: each hash takes its
memory and a core for some 30 ms, so a few threads work and the others wait in line, and a line that is too long is
answered so. Must never log a password.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from zerocron.core.limits import too_many
from zerocron.core.passwords import CHARACTERS_MAX, normalised

T = TypeVar("T")

MEMORY_KIB = 19_456
PASSES = 2
LANES = 1
THREADS = 2
WAITING_MAX = 200
"""More than this many take longer than anybody waits."""

_HASHER = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)
NOBODYS = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5J3Mgc2FsdCEhIQ$K6RjQTNAUcPT3TzRJy0/p36jizVQUrGVgAOPHTpCV50"
"""What the password of somebody who is not there is compared with: the same work, and never the right answer."""


class Hashing:
    """The threads of one node."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="hashing")
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """The hash of a password that was checked (`core.passwords`). Raises TooMany."""
        return await self._run(lambda: _HASHER.hash(normalised(password)))

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Whether it is the password of that hash; None stands for somebody who has none, at the same cost. Raises
        TooMany."""
        text = normalised(password)[: CHARACTERS_MAX + 1]  # one that is too long is nobody's
        return await self._run(lambda: _verified(password_hash or NOBODYS, text)) and password_hash is not None

    def is_outdated(self, password_hash: str) -> bool:
        """Whether it was made with other parameters than those of today."""
        try:
            return _HASHER.check_needs_rehash(password_hash)
        except InvalidHashError:
            return True

    async def close(self) -> None:
        """Let the hashes under way end. Closing twice is no error."""
        await asyncio.to_thread(self._pool.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= WAITING_MAX:
            raise too_many(1)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1


def _verified(password_hash: str, text: str) -> bool:
    try:
        return _HASHER.verify(password_hash, text)
    except (VerificationError, InvalidHashError):
        return False
