"""The cases from the field: ssrf.jsonl, a copy of the project's shared file, line by line."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.outbound.helpers import USER_AGENT, Dialling, Names, request
from tests.support.target import Target

from zerocron.core.errors import Invalid
from zerocron.outbound import Outbound, check_url, parse_allow, resolver

LINES: dict[str, dict[str, Any]] = {
    line["id"]: line
    for text in (Path(__file__).parent / "ssrf.jsonl").read_text(encoding="utf-8").splitlines()
    if text
    for line in [json.loads(text)]
}

REDIRECTS = {case for case, line in LINES.items() if line["kind"] == "redirect"}
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

OTHERWISE = REDIRECTS | set(TOLD_ELSEWHERE)


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


@pytest.mark.parametrize("case", sorted(set(LINES) - OTHERWISE))
async def test_case(dialling: Callable[[str], Dialling], monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    line = LINES[case]
    monkeypatch.setattr(resolver, "getaddrinfo", dns_of(line))
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
        assert outcome.failure.kind in ("invalid_url", "address_refused", "dns_failed"), outcome.failure
        assert len(outbound.dialled) == 0


@pytest.mark.parametrize("body", [None, b"x"])
@pytest.mark.parametrize("case", sorted(REDIRECTS))
async def test_redirect_case(target: Target, monkeypatch: pytest.MonkeyPatch, case: str, body: bytes | None) -> None:
    """The first hop is public (here: this machine, allowed); nothing is dialled for the second."""
    given = LINES[case]["given"]
    names = {"public.example": ["127.0.0.1"], "internal.example": [given.get("redirect_dns", "10.0.0.1")]}
    monkeypatch.setattr(resolver, "getaddrinfo", Names(names))
    status = given.get("status", 302)
    target.on("/r", lambda exchange: exchange.answer(status, b"", [("Location", given["redirect_to"])]))
    dialled: list[str] = []

    class Watched(Outbound):
        def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
            sock = super()._open_socket(addr_info)
            dialled.append(str(addr_info[4][0]))
            return sock

    outbound = Watched(allow=parse_allow(f"127.0.0.1:{target.port}"), user_agent=USER_AGENT)
    await outbound.start()
    url = f"http://public.example:{target.port}/r"
    outcome = await outbound.send(request(url, method="POST" if body else "GET", body=body, redirects=5))
    await outbound.close()
    assert outcome.failure is not None
    assert outcome.failure.kind in ("address_refused", "redirect_invalid", "redirect_refused")
    assert (outcome.failure.kind == "redirect_refused") == (status == 307 and body is not None)
    assert "10.0.0.1" not in outcome.failure.message or "10.0.0.1" in given["redirect_to"]
    assert dialled == ["127.0.0.1"]
    assert len(target.requests) == 1


def test_every_line_is_accounted_for() -> None:
    assert set(LINES) >= OTHERWISE
    assert {"ssrf-097", "ssrf-098", "ssrf-099"} == REDIRECTS
    assert {case for case, line in LINES.items() if line.get("policy")} == set(POLICY)


async def test_two_parties_never_share_a_connection(
    dialling: Callable[[str], Dialling], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may call 127.0.0.1 and the other may not: each has its own pool, so the second meets the gate."""
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"short-ttl.example": ["127.0.0.1"]}))
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
