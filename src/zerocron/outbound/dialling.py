"""A bare connection for what is not HTTP: the operator's mail server. The same resolver and gate, one deadline."""

from __future__ import annotations

import asyncio
import socket

from zerocron.core.addresses import AllowList
from zerocron.core.exchange import ERROR_KINDS, Failure
from zerocron.outbound.failures import connection_failure, lookup_failure
from zerocron.outbound.guard import AddressRefused, Guard
from zerocron.outbound.resolver import Resolver


async def dial(
    resolver: Resolver, guard: Guard, host: str, port: int, allow: AllowList, timeout_seconds: float
) -> socket.socket | Failure:
    """See `zerocron.outbound.Outbound.dial`."""
    looking_up = True
    try:
        async with asyncio.timeout(timeout_seconds):
            try:
                found = await resolver.addresses(host, port, socket.AF_UNSPEC)
            except OSError as error:
                return lookup_failure(error)
            looking_up = False
            return await _connect(guard, found, allow)
    except TimeoutError:
        kind = "dns_timeout" if looking_up else "connect_timeout"
        return Failure(kind, ERROR_KINDS[kind])


async def _connect(
    guard: Guard, found: list[tuple[socket.AddressFamily, str, int]], allow: AllowList
) -> socket.socket | Failure:
    """To the first address that answers. A refusal is told only where no address was permitted."""
    refused: AddressRefused | None = None
    failed: OSError | None = None
    for family, address, port in found:
        try:
            sock = guard.open_bare_socket(family, address, port, allow)
        except AddressRefused as error:
            refused = error
            continue
        except OSError as error:
            failed = error
            continue
        try:
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    if failed is None and refused is not None and refused.found is not None:
        return Failure("address_refused", refused.found.message)
    return connection_failure(failed or OSError("a name without addresses"))
