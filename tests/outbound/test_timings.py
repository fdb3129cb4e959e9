"""Where the time went, told with what it costs almost nothing to know."""

from __future__ import annotations

import pytest
from tests.outbound.helpers import Names, request, response_of
from tests.support.target import Target

from zerocron.outbound import Outbound, resolver


async def test_the_phases_of_a_first_request_by_name(
    outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"name.test": ["127.0.0.1"]}))
    outcome = await outbound.send(request(f"http://name.test:{target.port}/slow/0.05"))
    response_of(outcome)
    timings = outcome.timings
    assert timings.dns is not None
    assert timings.connect is not None
    assert timings.tls is None
    assert timings.first_byte is not None
    assert 0 < timings.dns < 1000
    assert 0 < timings.connect < 1000
    assert timings.dns + timings.connect + 45 <= timings.first_byte <= timings.total < 3000


async def test_a_literal_has_no_look_up(outbound: Outbound, target: Target) -> None:
    timings = (await outbound.send(request(target.url + "/ok"))).timings
    assert timings.dns is None
    assert timings.connect is not None


async def test_a_kept_connection_has_no_phases_but_the_answer(outbound: Outbound, target: Target) -> None:
    await outbound.send(request(target.url + "/ok"))
    timings = (await outbound.send(request(target.url + "/ok"))).timings
    assert (timings.dns, timings.connect, timings.tls) == (None, None, None)
    assert timings.first_byte is not None
    assert 0 < timings.first_byte <= timings.total


async def test_a_body_that_takes_its_time_counts_in_the_total_only(outbound: Outbound, target: Target) -> None:
    timings = (await outbound.send(request(target.url + "/drip", timeout=0.4))).timings
    assert timings.first_byte is not None
    assert timings.first_byte < 300 < timings.total
