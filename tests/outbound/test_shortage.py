"""When this server runs short of something, the outcome says so: it is not the target's fault, and nothing was sent."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
from tests.outbound.helpers import LOCAL, USER_AGENT, Names, failure_of, request, response_of
from tests.support.target import Target

from zerocron.core.exchange import ERROR_KINDS, OWN_SHORTAGE_KINDS, PERMANENT_KINDS, TIMEOUT_KINDS
from zerocron.outbound import Outbound, parse_allow, resolver
from zerocron.outbound.failures import Scene
from zerocron.outbound.failures import failure_of as failure_of_error
from zerocron.outbound.probe import Probe


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[0] + 4, hard))
    try:
        while True:
            try:
                fillers.append(os.dup(0))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)


async def test_no_descriptor_left(outbound: Outbound, target: Target) -> None:
    """For an address, and for a name: there the system's resolver would say that it does not exist."""
    await outbound.send(request("http://localhost:1/"))  # the thread of the resolver is there before
    with no_descriptor_left():
        by_address = await outbound.send(request("http://127.0.0.2:1/"))
        by_name = await outbound.send(request("http://name.invalid/"))
    for outcome in (by_address, by_name):
        failure = failure_of(outcome, "local_resources")
        assert failure.own_shortage
        assert not failure.permanent
    response_of(await outbound.send(request(target.url + "/ok")))


@pytest.mark.parametrize(
    ("address", "number", "kind"),
    [
        ("127.0.0.1", errno.EADDRNOTAVAIL, "local_resources"),
        ("[::1]", errno.EADDRNOTAVAIL, "unreachable"),  # this machine has no IPv6
        ("127.0.0.1", errno.ENOBUFS, "local_resources"),
        ("127.0.0.1", errno.ENFILE, "local_resources"),
        ("127.0.0.1", errno.EHOSTUNREACH, "unreachable"),
        ("127.0.0.1", errno.ETIMEDOUT, "connect_timeout"),  # the kernel's own patience
        ("127.0.0.1", errno.ECONNRESET, "connection_reset"),
        ("127.0.0.1", errno.EPERM, "connection_failed"),
    ],
)
async def test_what_the_kernel_says(address: str, number: int, kind: str) -> None:
    failure_of(await _sent({address: number}, f"http://{address}:9/"), kind)


@pytest.mark.parametrize(
    ("ipv6", "ipv4", "kind"),
    [
        (errno.ENETUNREACH, errno.ECONNREFUSED, "connection_refused"),
        (errno.EADDRNOTAVAIL, errno.ECONNREFUSED, "connection_refused"),
        (errno.EADDRNOTAVAIL, errno.EHOSTUNREACH, "local_resources"),
        (errno.ECONNREFUSED, errno.EMFILE, "local_resources"),
    ],
)
async def test_addresses_that_fail_differently(
    monkeypatch: pytest.MonkeyPatch, ipv6: int, ipv4: int, kind: str
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"dual.test": ["::1", "127.0.0.1"]}))
    failure_of(await _sent({"[::1]": ipv6, "127.0.0.1": ipv4}, "http://dual.test:9/"), kind)


async def _sent(errors: dict[str, int], url: str) -> Any:
    class Broken(Outbound):
        def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
            super()._open_socket(addr_info).close()
            host = str(addr_info[4][0])
            number = errors[f"[{host}]" if ":" in host else host]
            raise OSError(number, os.strerror(number))

    outbound = Broken(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    outcome = await outbound.send(request(url))
    await outbound.close()
    return outcome


async def test_no_thread_can_be_started(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    failure_of(await outbound.send(request("http://name.test/")), "local_resources")


async def test_all_threads_hang(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that hangs is told from the one that waits behind it."""
    release = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        release.wait(20)
        return []

    monkeypatch.setattr(resolver, "LOOKUPS_MAX", 1)
    monkeypatch.setattr(resolver, "getaddrinfo", hang)
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    try:
        first, second = [
            asyncio.create_task(outbound.send(request(f"http://{name}.test/", timeout=0.3))) for name in ("a", "b")
        ]
        failure_of(await first, "dns_timeout")
        assert failure_of(await second, "local_resources").own_shortage
    finally:
        release.set()
        await outbound.close()


def test_what_is_said_of_kinds_is_said_of_kinds_that_exist() -> None:
    assert set(ERROR_KINDS) > TIMEOUT_KINDS | OWN_SHORTAGE_KINDS | PERMANENT_KINDS
    assert not OWN_SHORTAGE_KINDS & PERMANENT_KINDS
    assert all(len(kind) <= 32 for kind in ERROR_KINDS)  # the ledger's column


@pytest.mark.parametrize(("answering", "kind"), [(False, "connection_reset"), (True, "incomplete_body")])
def test_the_kernel_s_patience_is_not_the_job_s_time_out(answering: bool, kind: str) -> None:
    """A target that takes no bytes for two minutes; Python makes a TimeoutError of it."""
    probe = Probe("/", literal=True)
    probe.dialled_at = probe.connected_at = probe.ready_at = 1.0
    error = OSError(errno.ETIMEDOUT, "Connection timed out")
    assert isinstance(error, TimeoutError)
    assert failure_of_error(error, Scene(probe, 900, answering, looking_up=False)).kind == kind
