"""A bare connection passes the same gate as a request, whatever its port speaks."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.outbound.helpers import USER_AGENT, Names
from tests.support.target import Target

from zerocron.core.addresses import AllowList
from zerocron.core.exchange import Failure
from zerocron.outbound import Outbound, OwnEndpoint, dialling, parse_allow, resolver
from zerocron.outbound.guard import AddressRefused, Guard

LOOPBACK = parse_allow("127.0.0.0/8")
NONE = AllowList()


async def dialled(
    outbound: Outbound, host: str, port: int, allow: AllowList, timeout: float = 3.0
) -> socket.socket | Failure:
    return await outbound.dial(host, port, allow=allow, timeout_seconds=timeout)


async def refused(outbound: Outbound, host: str, port: int, allow: AllowList, kind: str) -> Failure:
    found = await dialled(outbound, host, port, allow)
    assert isinstance(found, Failure), found
    assert found.kind == kind
    assert found.message.endswith(".")
    return found


async def test_a_socket_that_is_connected(outbound: Outbound, target: Target) -> None:
    found = await dialled(outbound, "127.0.0.1", target.port, LOOPBACK)
    assert isinstance(found, socket.socket)
    with found:
        assert not found.getblocking()
        assert found.getpeername() == ("127.0.0.1", target.port)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(found, b"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await loop.sock_recv(found, 12)) == b"HTTP/1.1 200"


async def test_the_list_for_jobs_does_not_count(outbound: Outbound, target: Target) -> None:
    """`outbound` may call this machine for jobs; a bare connection has its own list."""
    failure = await refused(outbound, "127.0.0.1", target.port, NONE, "address_refused")
    assert "loopback" in failure.message
    assert not target.connections


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "fd00::1", "0.0.0.0"]
)
@pytest.mark.parametrize("port", [25, 587, 2525])
async def test_a_name_that_leads_to_an_address_which_is_not_public(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch, address: str, port: int
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"mail.test": [address]}))
    failure = await refused(outbound, "mail.test", port, NONE, "address_refused")
    assert address in ("::1", "0.0.0.0") or address not in failure.message, "what a name leads to stays between us"


async def test_no_rule_opens_a_metadata_service(outbound: Outbound) -> None:
    failure = await refused(outbound, "169.254.169.254", 25, parse_allow("0.0.0.0/0"), "address_refused")
    assert "metadata" in failure.message


@pytest.mark.parametrize(
    ("address", "port", "allow", "is_open"),
    [
        ("93.184.216.34", 25, "", True),
        ("10.1.2.3", 25, "10.0.0.0/8", True),
        ("10.1.2.3", 25, "10.0.0.0/8:25", True),
        ("10.1.2.3", 587, "10.0.0.0/8:25", False),
        ("10.1.2.3", 2525, "", False),
    ],
)
def test_mail_ports_are_open_to_mail_at_public_addresses_and_listed_ones(
    address: str, port: int, allow: str, is_open: bool
) -> None:
    gate = Guard(AllowList(), ())
    if is_open:
        gate.open_bare_socket(socket.AF_INET, address, port, parse_allow(allow)).close()
    else:
        with pytest.raises(AddressRefused):
            gate.open_bare_socket(socket.AF_INET, address, port, parse_allow(allow))


async def test_the_next_address_is_tried(outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"mail.test": ["10.0.0.1", "127.0.0.2", "127.0.0.1"]}))
    found = await dialled(outbound, "mail.test", target.port, LOOPBACK)
    assert isinstance(found, socket.socket)
    assert found.getpeername()[0] == "127.0.0.1"
    found.close()


async def test_what_goes_wrong_on_the_way(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:  # not listening
        bound.bind(("127.0.0.1", 0))
        await refused(outbound, "127.0.0.1", bound.getsockname()[1], LOOPBACK, "connection_refused")
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"empty.test": []}))
    await refused(outbound, "nowhere.test", 25, NONE, "dns_not_found")
    await refused(outbound, "empty.test", 25, NONE, "connection_failed")


async def test_it_ends_in_time(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(dialling, "_connect", never)
    found = await dialled(outbound, "127.0.0.1", 25, LOOPBACK, timeout=0.05)
    assert isinstance(found, Failure)
    assert found.kind == "connect_timeout"


async def test_this_server_itself_is_no_mail_server(target: Target) -> None:
    outbound = Outbound(allow=NONE, own=[OwnEndpoint("127.0.0.1", target.port)], user_agent=USER_AGENT)
    await outbound.start()
    failure = await refused(outbound, "127.0.0.1", target.port, LOOPBACK, "address_refused")
    assert "itself" in failure.message
    await outbound.close()
