"""The cases from the field: ssrf.jsonl, a copy of the project's shared file, line by line."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.outbound.helpers import Dialling, Names, request

from zerocron import outbound as module
from zerocron.core.errors import Invalid
from zerocron.outbound import check_url

LINES: dict[str, dict[str, Any]] = {
    line["id"]: line
    for text in (Path(__file__).parent / "ssrf.jsonl").read_text(encoding="utf-8").splitlines()
    if text
    for line in [json.loads(text)]
}

# Following redirects is a later issue: today a redirect is the answer, so the second hop is never made.
REDIRECTS = {"ssrf-097", "ssrf-098", "ssrf-099"}
# The test button of a channel is the business of the channels; they have no other door than this one.
CHANNEL_BUTTONS = {"ssrf-107"}
# A story of several look-ups or parties; each has a test of its own, named here.
TOLD_ELSEWHERE = {
    "ssrf-103": "test_guard.py: test_a_rebinding_name_never_gets_a_private_connection",
    "ssrf-104": "test_guard.py: test_a_rebinding_name_never_gets_a_private_connection",
    "ssrf-105": "below: test_two_parties_never_share_a_connection",
    "ssrf-108": "test_guard.py: test_a_proxy_in_the_environment_changes_nothing",
    "ssrf-120": "below: test_private_targets_work_where_the_operator_wants_them",
}
# Either answer is right if it is documented. Ours: NAT64 of a public address is dialled, octal literals are refused.
POLICY = {"ssrf-119": True, "ssrf-121": False}

LEFT_OUT = REDIRECTS | CHANNEL_BUTTONS | set(TOLD_ELSEWHERE)


def dns_of(line: dict[str, Any]) -> Callable[..., list[Any]]:
    host = line["given"]["url"].partition("//")[2].partition("/")[0]
    answer = line["given"].get("dns")
    if answer == "SERVFAIL":

        def fail(*_: object, **__: object) -> list[Any]:
            raise socket.gaierror(socket.EAI_AGAIN, "SERVFAIL")

        return fail
    if answer:
        return Names({host: [answer]})
    return Names({"localhost": ["::1", "127.0.0.1"], "foo.localhost": ["127.0.0.1"]})


@pytest.mark.parametrize("case", sorted(set(LINES) - LEFT_OUT))
async def test_case(dialling: Callable[[str], Dialling], monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    line = LINES[case]
    monkeypatch.setattr(module, "getaddrinfo", dns_of(line))
    url = line["given"]["url"]
    outbound = dialling("")
    await outbound.start()
    outcome = await outbound.send(request(url))
    assert outcome.failure is not None  # a dial that was allowed fails behind the gate
    if outcome.failure.kind == "invalid_url":
        with pytest.raises(Invalid):
            check_url(url)
    else:
        check_url(url)
    if POLICY.get(case, line["expect"]["allow"]):
        assert outcome.failure.kind == "connection_refused", outcome.failure
        assert len(outbound.dialled) == 1
    else:
        assert outcome.failure.kind in ("invalid_url", "address_refused", "dns"), outcome.failure
        assert len(outbound.dialled) == 0


def test_every_line_is_accounted_for() -> None:
    assert set(LINES) >= LEFT_OUT
    assert {case for case, line in LINES.items() if line.get("policy")} == set(POLICY)


async def test_two_parties_never_share_a_connection(
    dialling: Callable[[str], Dialling], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may call 127.0.0.1 and the other may not: each has its own pool, so the second meets the gate."""
    monkeypatch.setattr(module, "getaddrinfo", Names({"short-ttl.example": ["127.0.0.1"]}))
    owner, other = dialling("127.0.0.0/8"), dialling("")
    for outbound in (owner, other):
        await outbound.start()
        await outbound.send(request("http://short-ttl.example/"))
    assert owner.dialled == ["127.0.0.1"]
    assert not other.dialled


async def test_private_targets_work_where_the_operator_wants_them(dialling: Callable[[str], Dialling]) -> None:
    outbound = dialling("192.168.0.0/16")
    await outbound.start()
    await outbound.send(request(LINES["ssrf-120"]["given"]["url"]))
    assert outbound.dialled == ["192.168.1.10"]
