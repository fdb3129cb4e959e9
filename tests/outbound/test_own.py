"""0cron does not call itself: not its listeners by any address, not its base URL; pings where they are left open."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.outbound.helpers import USER_AGENT, Names, failure_of, request, response_of
from tests.support.target import Target

from zerocron.core.addresses import own_endpoint_at
from zerocron.core.errors import Invalid
from zerocron.outbound import Outbound, OwnEndpoint, parse_allow, resolver

PINGS = re.compile(r"/ok/[0-9a-f]+")


@asynccontextmanager
async def door(own: Sequence[OwnEndpoint], allow: str = "0.0.0.0/0, ::/0") -> AsyncIterator[Outbound]:
    it = Outbound(allow=parse_allow(allow), own=own, user_agent=USER_AGENT)
    await it.start()
    yield it
    await it.close()


@pytest.mark.parametrize(
    ("bound", "dialled", "is_own"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "::", True),
        ("0.0.0.0", "127.9.9.9", True),
        ("0.0.0.0", "192.0.2.1", True),
        ("0.0.0.0", "192.0.2.2", False),
        ("::", "127.0.0.1", True),
        ("::", "::1", True),
        ("::", "192.0.2.1", True),
        ("::1", "127.0.0.1", False),
        ("192.0.2.1", "64:ff9b::c000:201", True),
        ("cron.example", "192.0.2.1", False),
    ],
)
def test_which_address_leads_to_a_listener(bound: str, dialled: str, is_own: bool) -> None:
    own = [OwnEndpoint("10.9.9.9", 1), OwnEndpoint(bound, 8000)]
    found = own_endpoint_at(dialled, 8000, own, lambda address: str(address) == "192.0.2.1")
    assert (found is not None) == is_own
    assert own_endpoint_at(dialled, 8001, own, lambda _: True) is None


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("host", ["127.0.0.1", "own.test", "0.0.0.0", "[::ffff:127.0.0.1]"])
async def test_a_listener_is_refused_although_an_allow_rule_covers_it(
    target: Target, monkeypatch: pytest.MonkeyPatch, bound: str, host: str
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"own.test": ["127.0.0.1"]}))
    async with door([OwnEndpoint(bound, target.port)]) as outbound:
        message = failure_of(await outbound.send(request(f"http://{host}:{target.port}/ok")), "address_refused").message
        assert "own server" in message
        assert "ZEROCRON_OUTBOUND_ALLOW cannot" in message
    assert not target.connections


async def test_an_address_of_this_machine_other_than_loopback(target: Target) -> None:
    """A listener on every address is reached by all of them; the kernel says which they are."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing; it only asks which address would be the sender's
            here = sock.getsockname()[0]
        except OSError:
            here = "127.0.0.1"
    async with door([OwnEndpoint("0.0.0.0", target.port)]) as outbound:
        failure = failure_of(await outbound.send(request(f"http://{here}:{target.port}/ok")), "address_refused")
        assert "own server" in failure.message


async def test_another_port_of_this_machine_is_no_own_listener(target: Target) -> None:
    async with door([OwnEndpoint("0.0.0.0", target.port - 1)]) as outbound:
        response_of(await outbound.send(request(target.url + "/ok")))


@pytest.mark.parametrize("bound", ["0.0.0.0", "127.0.0.1"])
async def test_who_may_not_call_an_address_is_not_told_that_it_is_ours(target: Target, bound: str) -> None:
    async with door([OwnEndpoint(bound, target.port)], allow="") as outbound:
        message = failure_of(await outbound.send(request(target.url + "/ok")), "address_refused").message
        assert "own" not in message
        assert "loopback" in message


@pytest.mark.parametrize(
    ("base", "url", "is_own"),
    [
        ("https://cron.example", "https://CRON.example/x", True),
        ("https://cron.example", "https://cron.example.:443/x", True),
        ("https://cron.example/", "https://cron.example", True),
        ("https://cron.example/cron", "https://cron.example/", False),
        ("https://cron.example/cron", "https://cron.example/other/cron", False),
        ("https://cron.example/cron", "https://cron.example/cronologue", False),
        ("https://cron.example/cron", "https://cron.example/cron/../other", False),
        ("https://cron.example/cron", "https://cron.example/v1/ping/0a", False),
        ("https://cron.example/cron", "https://cron.example/cron", True),
        ("https://cron.example/cron", "https://cron.example/cron?x", True),
        ("https://cron.example/cron/", "https://cron.example/cron/v1/jobs", True),
        ("https://cron.example/cron", "https://cron.example//cron//v1/jobs", True),
        ("https://cron.example/cron", "https://cron.example/other/../cron/v1/jobs", True),
        ("https://cron.example/cron", "https://cron.example/other/%2e%2e/cr%6fn/v1/jobs", True),
        ("https://cron.example/a/cron?x#y", "https://cron.example/a/./cron/v1", True),
        ("https://cron.example/cron", "https://other.example/cron", False),
        ("https://cron.example", "http://cron.example/", False),
        ("http://cron.example:8000", "http://cron.example:8000/", True),
        ("https://cron.example", "https://other.example/", False),
    ],
)
async def test_the_base_url_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, base: str, url: str, is_own: bool
) -> None:
    names = Names({})
    monkeypatch.setattr(resolver, "getaddrinfo", names)
    async with door([OwnEndpoint.of_url(base)]) as outbound:
        outcome = await outbound.send(request(url))
        failure_of(outcome, "address_refused" if is_own else "dns_not_found")
        assert bool(names.asked) != is_own


def test_a_base_url_that_cannot_be_called() -> None:
    with pytest.raises(Invalid):
        OwnEndpoint.of_url("ftp://cron.example")


@pytest.mark.parametrize("slash", ["", "/"])
async def test_below_a_path_pings_may_be_called_and_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, slash: str
) -> None:
    """And beside it whatever else the host serves."""
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"cron.test": ["127.0.0.1"]}))
    base = f"http://cron.test:{target.port}"
    async with door([OwnEndpoint.of_url(f"{base}/cron{slash}", PINGS)]) as outbound:
        for path in ("/cron/ok/0a1b", "/ok", "/ok/0a1b"):
            await outbound.send(request(base + path))
        for path in (
            "/cron/v1/jobs",
            "/cron/ok/0a1b/../../v1",
            "/cron//ok/0a1b",
            "/x/../cron/ok/0a1b",
            "/cron/cron/ok/0a",
        ):
            failure_of(await outbound.send(request(base + path)), "address_refused")
    assert [seen.path for seen in target.requests] == ["/cron/ok/0a1b", "/ok", "/ok/0a1b"]


async def test_open_paths_may_be_called_and_open_nothing_else(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above all not by the connection that is kept alive after a ping."""
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"own.test": ["127.0.0.1"], "cron.test": ["127.0.0.1"]}))
    own = [
        OwnEndpoint("127.0.0.1", target.port, PINGS),
        OwnEndpoint.of_url(f"http://cron.test:{target.port}", PINGS),
    ]
    async with door(own) as outbound:
        for host in ("127.0.0.1", "own.test", "cron.test"):
            base = f"http://{host}:{target.port}"
            for _ in range(2):
                response_of(await outbound.send(request(base + "/ok/0a1b?x=1")))
                for path in ("/v1/jobs", "/ok/", "/ok/0a/../../v1/jobs", "/ok/0a%2f..", "/ok/0a/x", "/?/ok/0a"):
                    failure_of(await outbound.send(request(base + path)), "address_refused")
    assert {seen.path for seen in target.requests} == {"/ok/0a1b?x=1"}
    assert target.connections == len(target.requests) == 6  # none was kept
