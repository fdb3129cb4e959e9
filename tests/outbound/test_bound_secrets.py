"""A request with a secret that is bound to hosts is led to no other one by a redirect."""

from __future__ import annotations

import dataclasses

import pytest
from tests.outbound.helpers import Names, failure_of, request, response_of
from tests.support.target import Target

from zerocron.outbound import Outbound, resolver

HOSTS = {"api.test": ["127.0.0.1"], "evil.test": ["127.0.0.1"], "files.api.test": ["127.0.0.1"]}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names(HOSTS))


@pytest.mark.parametrize("place", ["//evil.test:{port}/ok", "http://evil.test:{port}/ok?leaked=value"])
async def test_another_host_is_not_called(outbound: Outbound, target: Target, place: str) -> None:
    location = place.format(port=target.port)
    target.on("/a", lambda exchange: exchange.answer(302, b"", [("Location", location)]))
    sent = dataclasses.replace(
        request(f"http://api.test:{target.port}/a", redirects=3), allowed_hosts=(("api.test",), ("*.test",))
    )
    failure = failure_of(await outbound.send(sent), "secret_host_refused")
    assert failure.status == 302
    assert failure.permanent
    assert "leaked" not in failure.message
    assert [received.path for received in target.requests] == ["/a"]


async def test_a_later_hop_is_judged_like_the_first(outbound: Outbound, target: Target) -> None:
    target.on("/a", lambda exchange: exchange.answer(302, b"", [("Location", "/b")]))
    target.on("/b", lambda exchange: exchange.answer(302, b"", [("Location", f"http://evil.test:{target.port}/ok")]))
    sent = dataclasses.replace(request(f"http://api.test:{target.port}/a", redirects=3), allowed_hosts=(("api.test",),))
    outcome = await outbound.send(sent)
    failure_of(outcome, "secret_host_refused")
    assert [(hop.url.rpartition("/")[2], hop.status) for hop in outcome.hops] == [("a", 302), ("b", 302)]


async def test_hosts_that_are_allowed_and_requests_without_bounds_go_on(outbound: Outbound, target: Target) -> None:
    target.on(
        "/a", lambda exchange: exchange.answer(302, b"", [("Location", f"http://files.api.test:{target.port}/ok")])
    )
    url = f"http://api.test:{target.port}/a"
    for hosts in ((("api.test", "*.api.test"),), ()):
        sent = dataclasses.replace(request(url, redirects=3), allowed_hosts=hosts)
        assert response_of(await outbound.send(sent)).status == 200
