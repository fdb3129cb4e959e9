"""The gate: which addresses a socket may be made for. The rules are in `zerocron.core.addresses`; here they act."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection
from time import perf_counter

import aiohttp
from yarl import URL

from zerocron.core.addresses import (
    OWN_SERVER,
    Address,
    AllowList,
    OwnEndpoint,
    Refusal,
    own_endpoint_at,
    own_endpoint_named,
    refusal,
)
from zerocron.outbound import probe as probes

# For a target that stops reading: the kernel gives the connection up after this long with unacknowledged bytes.
UNACKNOWLEDGED_MILLISECONDS_MAX = 120_000


class AddressRefused(OSError):
    """The guard said no. An OSError, so that the next address of the name is tried."""

    def __init__(self, found: Refusal) -> None:
        super().__init__(errno.EACCES, "address refused")
        self.found = found


class Guard:
    def __init__(self, allow: AllowList, own: Collection[OwnEndpoint]) -> None:
        self.allow = allow
        self._listeners = tuple(it for it in own if it.is_listener)
        self._base_urls = tuple(it for it in own if not it.is_listener)

    def permits(self, address: str, port: int) -> bool:
        """A first opinion, for the resolver: own listeners are left to the gate."""
        return refusal(address, port, self.allow) is None

    def judge_name(self, url: URL) -> Refusal | None:
        """Whether the URL names this installation; asked for every request, for a kept connection passes no gate."""
        if not self._base_urls:
            return None
        endpoint = own_endpoint_named(url.raw_host or "", url.port or 0, url.raw_path, self._base_urls)
        return None if endpoint is None or endpoint.opens(url.raw_path) else OWN_SERVER

    def open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
        """aiohttp calls this for every address it is about to dial, literals included."""
        family, kind, proto, _, address = addr_info
        probe = probes.current.get()
        if found := self._judge(str(address[0]), int(address[1]), probe):
            if probe is not None:
                probe.refusal = found
            raise AddressRefused(found)
        if probe is not None:
            probe.dialled_at = probe.dialled_at or perf_counter()
            probe.dialled_ipv4 |= family == socket.AF_INET
        return _socket(family, kind, proto)

    def open_bare_socket(
        self, family: socket.AddressFamily, address: str, port: int, allow: AllowList
    ) -> socket.socket:
        """For what is not HTTP, with an allow list of its own: no port is refused for what it speaks, ours are."""
        found = refusal(address, port, allow, speaks_http=False)
        if found is None and own_endpoint_at(address, port, self._listeners, _is_this_machine):
            found = OWN_SERVER
        if found is not None:
            raise AddressRefused(found)
        sock = _socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setblocking(False)
        return sock

    def _judge(self, address: str, port: int, probe: probes.Probe | None) -> Refusal | None:
        # Own listeners come last: to say "own" of an address that is refused anyway would tell strangers where we are.
        if found := refusal(address, port, self.allow, written=probe is not None and probe.literal):
            return found
        endpoint = own_endpoint_at(address, port, self._listeners, _is_this_machine) if self._listeners else None
        if endpoint is None:
            return None
        if probe is None or not endpoint.opens(probe.path):
            return OWN_SERVER
        probe.single_use = True  # kept alive, it would serve another path without passing here
        return None


def _socket(family: int, kind: int, proto: int) -> socket.socket:
    sock = socket.socket(family, kind, proto)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MILLISECONDS_MAX)
    return sock


def _is_this_machine(address: Address) -> bool:
    """The kernel lets only its own addresses be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((str(address), 0))
        except OSError:
            return False
    return True
