"""Certificates are verified, and what is wrong with one is told apart. See certificates/make.sh."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from tests.outbound.helpers import LOCAL, USER_AGENT, Names, failure_of, request, response_of
from tests.support.target import Target

from zerocron.outbound import Outbound, parse_allow, resolver

CERTIFICATES = Path(__file__).parent / "certificates"


def served(name: str) -> Target:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem")
    return Target(tls=context)


async def test_a_good_certificate(outbound: Outbound) -> None:
    async with served("good") as target:
        first = await outbound.send(request(f"https://localhost:{target.port}/ok"))
        second = await outbound.send(request(f"https://localhost:{target.port}/ok"))
        by_address = await outbound.send(request(f"{target.url}/ok"))
    assert response_of(first).body == response_of(by_address).body == b"ok"
    assert first.timings.connect is not None
    assert first.timings.tls is not None
    assert first.timings.tls > 0
    assert response_of(second).body == b"ok"
    assert second.timings.tls is None


async def test_a_trailing_dot_is_not_part_of_the_name_in_the_certificate(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"localhost.": ["127.0.0.1"]}))
    async with served("good") as target:
        response_of(await outbound.send(request(f"https://localhost.:{target.port}/ok")))


@pytest.mark.parametrize(
    ("certificate", "kind", "words"),
    [
        ("expired", "tls_expired", "expired"),
        ("wrong-host", "tls_wrong_host", "another host name"),
        ("self-signed", "tls_self_signed", "self-signed"),
    ],
)
async def test_a_bad_certificate(outbound: Outbound, certificate: str, kind: str, words: str) -> None:
    async with served(certificate) as target:
        outcome = await outbound.send(request(f"https://localhost:{target.port}/ok"))
        assert words in failure_of(outcome, kind).message
        assert not target.requests


async def test_a_certificate_for_another_address(outbound: Outbound) -> None:
    async with served("wrong-host") as target:
        failure = failure_of(await outbound.send(request(f"{target.url}/ok")), "tls_wrong_host")
        assert "another address" in failure.message


async def test_an_unknown_authority_is_not_trusted_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    async with served("good") as target:
        failure = failure_of(await outbound.send(request(f"https://localhost:{target.port}/ok")), "tls_untrusted")
        assert "authority" in failure.message
        assert not target.requests
    await outbound.close()


async def test_plain_http_where_tls_is_expected(outbound: Outbound, target: Target) -> None:
    target.blurts = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    failure = failure_of(await outbound.send(request(f"https://127.0.0.1:{target.port}/")), "tls_protocol")
    assert "does not speak TLS" in failure.message


async def test_tls_where_plain_http_is_expected(outbound: Outbound) -> None:
    async with served("good") as target:
        outcome = await outbound.send(request(f"http://127.0.0.1:{target.port}/ok"))
        assert outcome.failure is not None
        assert outcome.failure.kind in ("protocol", "no_response", "connection_reset")


async def test_a_connection_that_breaks_in_the_handshake(outbound: Outbound, target: Target) -> None:
    target.blurts = b""
    failure_of(await outbound.send(request(f"https://127.0.0.1:{target.port}/")), "tls_handshake")


async def test_a_handshake_that_never_ends(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(f"https://127.0.0.1:{target.port}/", timeout=0.3))
    assert "handshake" in failure_of(outcome, "timeout").message
    assert outcome.timings.total < 1500
    await target.wait_for(lambda: not target.open)


async def test_time_outs_and_caps_hold_over_tls(outbound: Outbound) -> None:
    async with served("good") as target:
        base = f"https://localhost:{target.port}"
        failure_of(await outbound.send(request(base + "/hang", timeout=0.3)), "timeout")
        assert failure_of(await outbound.send(request(base + "/drip", timeout=0.3)), "timeout").status == 200
        assert response_of(await outbound.send(request(base + "/huge/5000000"))).truncated
        failure_of(await outbound.send(request(base + "/truncated")), "incomplete_body")
        await target.wait_for(lambda: not target.open)


async def test_without_verification_any_certificate_will_do_but_only_where_the_job_points(outbound: Outbound) -> None:
    async with served("self-signed") as target, served("expired") as other:
        base = f"https://localhost:{target.port}"
        target.on("/here", lambda exchange: exchange.answer(302, b"", [("Location", "/ok")]))
        target.on("/there", lambda exchange: exchange.answer(302, b"", [("Location", other.url + "/ok")]))
        response_of(await outbound.send(request(base + "/here", redirects=1, verify_tls=False)))
        elsewhere = await outbound.send(request(base + "/there", redirects=1, verify_tls=False))
        failure_of(elsewhere, "tls_expired")
        assert not other.requests
        failure_of(
            await outbound.send(request(base + "/ok")), "tls_self_signed"
        )  # not over a connection kept from above
