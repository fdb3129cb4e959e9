"""Names to addresses: the system's resolver, in threads of our own.

uvloop has four threads for everything, and a name whose servers are silent takes one for half a minute. Must never
decide: what it finds is judged again where it is dialled.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from socket import getaddrinfo
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from zerocron.outbound.failures import SHORTAGE_ERRNOS

ADDRESSES_MAX = 6  # tried of one name: aiohttp goes through what is left again after each failure, so tries grow as n^2
LOOKUPS_MAX = 128  # at once: names whose servers are silent must not hold up other names soon
DNS_CACHE_SECONDS = 10  # safe against rebinding, because the guard judges what is dialled and not what was looked up


class Resolver(AbstractResolver):
    def __init__(self, permits: Callable[[str, int], bool]) -> None:
        self._permits = permits
        self._threads = ThreadPoolExecutor(LOOKUPS_MAX, thread_name_prefix="zerocron-dns")
        self._running: list[str] = []  # changed in the threads, one atomic operation at a time

    def is_looking_up(self, host: str) -> bool:
        """False while the look-up waits for a thread."""
        return host in self._running

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=found,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for found, address, _ in await self.addresses(host, port, family)
        ]
        # Only a kindness to what follows, the gate judges again: with one permitted address the others are not tried,
        # so that the failure told is the permitted one's.
        permitted = [entry for entry in addresses if self._permits(entry["host"], port)]
        return (permitted or addresses)[:ADDRESSES_MAX]

    async def addresses(
        self, host: str, port: int, family: socket.AddressFamily
    ) -> list[tuple[socket.AddressFamily, str, int]]:
        """All that the system says: family, address, port. Raises OSError."""
        loop = asyncio.get_running_loop()
        try:
            looking_up = loop.run_in_executor(self._threads, self._look_up, host, port, family)
        except RuntimeError:
            raise OSError(errno.EAGAIN, "no thread for a look-up") from None
        return [(found, str(address[0]), port) for found, _, _, _, address in await looking_up]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _look_up(self, host: str, port: int, family: int) -> list[Any]:
        self._running.append(host)
        try:
            return getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        except OSError:
            _raise_if_short()
            raise
        finally:
            self._running.remove(host)


def _raise_if_short() -> None:
    """Without a free descriptor getaddrinfo says this and that: no such name, silent servers, a busy device."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        if error.errno in SHORTAGE_ERRNOS:
            raise OSError(error.errno, "no descriptor for a look-up") from None
