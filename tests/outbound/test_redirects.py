"""Redirects are followed only where the job asks for it, by rules that lose nothing in silence and leak nothing."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outbound.helpers import LOCAL, USER_AGENT, Names, failure_of, request, response_of
from tests.support.target import Exchange, Handler, Target

from zerocron.core.exchange import REDIRECTS_MAX, Response
from zerocron.outbound import Outbound, OwnEndpoint, door, parse_allow, resolver
from zerocron.outbound.redirects import Chain, NotFollowed, origin_of

GIVEN = [
    ("Authorization", "Bearer t"),
    ("Cookie", "a=b"),
    ("X-Api-Key", "k"),
    ("Content-Type", "text/plain"),
    ("webhook-signature", "v1,abc"),
    ("Accept", "text/x"),
    ("X-0cron-Run-Id", "r"),
    ("Idempotency-Key", "r"),
]


def away(status: int, to: str, *headers: tuple[str, str]) -> Handler:
    return lambda exchange: exchange.answer(status, b"moved", [("Location", to), *headers])


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (301, {"POST": "GET"}),
        (302, {"POST": "GET"}),
        (303, {"POST": "GET", "PUT": "GET", "DELETE": "GET"}),
        (307, {}),
        (308, {}),
    ],
)
async def test_method_and_body_at_the_same_origin(
    outbound: Outbound, target: Target, status: int, becomes: dict[str, str], method: str
) -> None:
    target.on("/a", away(status, "/ok"))
    body = b"x" if method in ("POST", "PUT") else None
    outcome = await outbound.send(
        request(target.url + "/a", method=method, body=body, headers=GIVEN, redirects=1, secret_headers=["x-api-key"])
    )
    assert response_of(outcome).status == 200
    first, second = target.requests
    kept = method not in becomes
    assert (first.method, second.method) == (method, becomes.get(method, method))
    assert second.body == (first.body if kept else b"")
    assert [(hop.method, hop.url, hop.status, hop.with_body) for hop in outcome.hops] == [
        (method, target.url + "/a", status, body is not None),
        (second.method, target.url + "/ok", 200, body is not None and kept),
    ]
    lost = set(first.headers) - set(second.headers) - {"content-length"}
    assert lost == (set() if kept or body is None else {"content-type", "webhook-signature"})


@pytest.mark.parametrize("status", [300, 304, 305, 306, 399, 200, 404])
async def test_other_answers_with_a_location_are_answers(outbound: Outbound, target: Target, status: int) -> None:
    target.on("/a", away(status, "/ok"))
    outcome = await outbound.send(request(target.url + "/a", redirects=5))
    assert response_of(outcome).status == status
    assert not outcome.hops


async def test_across_origins_only_what_describes_us_goes(outbound: Outbound, target: Target) -> None:
    async with Target() as other:
        target.on("/a", away(302, other.url + "/ok", ("Set-Cookie", "theirs=1")))
        outcome = await outbound.send(
            request(
                target.url + "/a",
                headers=[*GIVEN, ("User-Agent", "me"), ("Accept-Language", "secret")],
                redirects=1,
                secret_headers=["accept-language"],
            )
        )
        response_of(outcome)
        (second,) = other.requests
        assert set(second.headers) == {"host", "accept", "idempotency-key", "user-agent", "x-0cron-run-id"}
        assert second.headers["host"] == f"127.0.0.1:{other.port}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_body_never_goes_to_another_origin(outbound: Outbound, target: Target, status: int) -> None:
    async with Target() as other:
        target.on("/a", away(status, other.url + "/ok"))
        outcome = await outbound.send(request(target.url + "/a", method="PUT", body=b"x", redirects=5))
        failure = failure_of(outcome, "redirect_refused")
        assert other.url in failure.message
        assert failure.permanent
        assert (failure.status, [hop.status for hop in outcome.hops]) == (status, [status])
        assert not other.connections


async def test_what_was_left_behind_does_not_come_back(outbound: Outbound, target: Target) -> None:
    """Somebody else's redirect back to the first origin must not make use of the job's credentials there."""
    async with Target() as other:
        target.on("/a", away(302, other.url + "/b", ("Set-Cookie", "of-the-chain=1")))
        other.on("/b", away(302, target.url + "/ok"))
        response_of(await outbound.send(request(target.url + "/a", headers=GIVEN, redirects=5)))
        last = target.requests[-1].headers
        assert not {"authorization", "x-api-key", "webhook-signature"} & set(last)
        assert last["cookie"] == "of-the-chain=1"


async def test_cookies_of_the_chain(outbound: Outbound, target: Target) -> None:
    cookies = ("a=2; Path=/elsewhere", "b=3; Secure", "gone=1", "gone=; Max-Age=0", "no name", "=1", "c=d e")
    target.on("/a", away(302, "/ok", *(("Set-Cookie", cookie) for cookie in cookies)))
    response_of(
        await outbound.send(request(target.url + "/a", headers=[("Cookie", "a=1; mine=9"), ("X", "y")], redirects=1))
    )
    assert target.requests[1].headers["cookie"] == "mine=9; a=2; b=3; c=d e"


async def test_a_loop(outbound: Outbound, target: Target) -> None:
    target.on("/a", away(302, "/b"))
    target.on("/b", away(302, "/a#again"))
    outcome = await outbound.send(request(target.url + "/a", redirects=5))
    failure = failure_of(outcome, "redirect_loop")
    assert failure.status == 302
    assert [hop.url for hop in outcome.hops] == [target.url + "/a", target.url + "/b"]
    assert len(target.requests) == 2


@pytest.mark.parametrize("allowed", [1, 2, 5, 99])  # beyond the bound, the bound holds
async def test_too_many(outbound: Outbound, target: Target, allowed: int) -> None:
    target.on("/a", lambda exchange: away(302, f"/a?{len(target.requests)}")(exchange))
    outcome = await outbound.send(request(target.url + "/a", redirects=allowed))
    failure_of(outcome, "too_many_redirects")
    limit = min(allowed, REDIRECTS_MAX)
    assert len(target.requests) == len(outcome.hops) == limit + 1


@pytest.mark.parametrize(
    ("location", "lands"),
    [
        ("/ok", "/ok"),
        ("b", "/dir/b"),
        ("../ok?x=%2F#f", "/ok?x=%2F"),
        ("?q", "/dir/a?q"),
        ("é", "/dir/%C3%A9"),
        ("/x%20y;z=1", "/x%20y;z=1"),
        ("./../../ok", "/ok"),
    ],
)
async def test_relative_locations(outbound: Outbound, target: Target, location: str, lands: str) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location.encode() + b"\r\n\r\n")

    target.on("/dir/a", answer)
    outcome = await outbound.send(request(target.url + "/dir/a", redirects=1, timeout=2))
    if lands.startswith("/dir/a"):
        failure_of(outcome, "redirect_loop")
    assert target.requests[1].path == lands


@pytest.mark.parametrize(
    "location",
    [
        "http:/127.0.0.1/",
        "http:127.0.0.1",
        "https:",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user:pass@127.0.0.1/",
        "http://2130706433/",
        "http://127.1/",
        "http://[::1%25lo]/",
        "http://127.0.0.1:0/",
        "//",
        "///x",
        "\\\\127.0.0.1\\x",
        "/\\127.0.0.1/",
        "/a b",
        "/a\tb",
        "http://example.com:80:80/",
        "http://" + "a" * 2000,
    ],
)
async def test_locations_that_parsers_could_disagree_on(outbound: Outbound, target: Target, location: str) -> None:
    target.on("/a", away(302, location))
    outcome = await outbound.send(request(target.url + "/a", redirects=5))
    failure = failure_of(outcome, "redirect_invalid")
    assert (failure.status, failure.permanent) == (302, True)
    assert len(target.requests) == 1


async def test_two_locations(outbound: Outbound, target: Target) -> None:
    target.on("/same", away(302, "/ok", ("location", "/ok")))
    target.on("/two", away(302, "/ok", ("Location", "/other")))
    response_of(await outbound.send(request(target.url + "/same", redirects=1)))
    failure_of(await outbound.send(request(target.url + "/two", redirects=1)), "redirect_invalid")


async def test_all_hops_share_one_deadline(outbound: Outbound, target: Target) -> None:
    def slowly(exchange: Exchange) -> None:
        n = len(target.requests)
        exchange.later(0.2, lambda: away(302, f"/slow-hop?{n}")(exchange))

    target.on("/slow-hop", slowly)
    outcome = await outbound.send(request(target.url + "/slow-hop", redirects=5, timeout=0.5))
    assert "0.5 s" in failure_of(outcome, "timeout").message
    assert 490 <= outcome.timings.total < 1500
    assert [hop.status for hop in outcome.hops] == [302, 302, None]


async def test_a_hop_that_fails_is_told(outbound: Outbound, target: Target) -> None:
    target.on("/a", away(302, "/truncated"))
    outcome = await outbound.send(request(target.url + "/a", redirects=1))
    assert failure_of(outcome, "incomplete_body").status == 200
    assert [(hop.url, hop.status) for hop in outcome.hops] == [
        (target.url + "/a", 302),
        (target.url + "/truncated", 200),
    ]


@pytest.mark.parametrize(
    ("to", "rule"),
    [("http://10.0.0.1/", "private"), ("http://93.184.216.34:6379/", "port"), ("http://inside.test/", "private")],
)
async def test_every_hop_is_judged(
    outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch, to: str, rule: str
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"inside.test": ["10.20.30.40"]}))
    target.on("/a", away(302, to))
    outcome = await outbound.send(request(target.url + "/a", redirects=1))
    assert rule in failure_of(outcome, "address_refused").message.lower()
    assert "10.20.30.40" not in repr(outcome)


async def test_a_hop_to_ourselves_is_judged(target: Target) -> None:
    async with Target() as ours:
        own = OwnEndpoint("0.0.0.0", ours.port)
        outbound = Outbound(allow=parse_allow(LOCAL), own=[own], user_agent=USER_AGENT)
        await outbound.start()
        target.on("/a", away(302, ours.url + "/v1/jobs"))
        outcome = await outbound.send(request(target.url + "/a", redirects=1))
        await outbound.close()
        assert "own server" in failure_of(outcome, "address_refused").message
        assert not ours.connections


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    st.lists(
        st.tuples(
            st.sampled_from([301, 302, 303, 307, 308]),
            st.sampled_from(["http", "https"]),
            st.sampled_from(["a.test", "b.test", "a.test:8080"]),
            st.integers(0, 3),
            st.booleans(),
        ),
        max_size=6,
    ),
)
def test_no_chain_takes_body_or_credentials_away_from_home(method: str, answers: list[Any]) -> None:
    start = request("http://a.test/", method=method, headers=GIVEN, body=None if method == "GET" else b"x", redirects=5)
    chain, home, left_home = Chain(start, method), origin_of(start.url), False
    for status, scheme, host, path, cookie in answers:
        headers = [("Location", f"{scheme}://{host}/{path}"), *([("Set-Cookie", "s=1")] if cookie else [])]
        try:
            assert chain.follow(Response(status, tuple(headers), b"", 0, False, None))
        except NotFollowed:
            return
        left_home |= origin_of(chain.leg.url) != home
        names = {name.lower() for name, _ in chain.leg.headers}
        if left_home:
            assert chain.leg.body is None
            assert names <= {"accept", "idempotency-key", "x-0cron-run-id", "cookie"}
            assert dict(chain.leg.headers).get("Cookie", "s=1") == "s=1"
        if chain.leg.body is None and method != "GET":
            assert not {"content-type", "webhook-signature"} & names


async def test_cancelling_within_a_chain(outbound: Outbound, target: Target) -> None:
    target.on("/a", away(302, "/hang"))
    sending = asyncio.create_task(outbound.send(request(target.url + "/a", redirects=1, timeout=30)))
    await target.wait_for(lambda: len(target.requests) == 2)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await target.wait_for(lambda: not target.open)


async def test_what_is_over_follows_nobody(outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process stood still while the answer was under way: nothing is sent after the deadline."""
    stood_seconds = 0.0

    def redirect(exchange: Exchange) -> None:
        nonlocal stood_seconds
        stood_seconds = 9.0
        exchange.answer(302, b"", [("Location", "/ok")])

    monkeypatch.setattr(door, "perf_counter", lambda: perf_counter() + stood_seconds)
    target.on("/first", redirect)
    outcome = await outbound.send(request(target.url + "/first", timeout=8, redirects=3))
    assert "no time was left" in failure_of(outcome, "timeout").message
    assert [seen.path for seen in target.requests] == ["/first"]
    assert [hop.status for hop in outcome.hops] == [302]
