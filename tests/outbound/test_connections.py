"""Connections are kept for a moment, never make a request go out twice, and never mix up answers."""

from __future__ import annotations

import asyncio

import pytest
from tests.outbound.helpers import LOCAL, USER_AGENT, failure_of, request, response_of, until
from tests.support.target import Target
from yarl import URL

from zerocron.outbound import Outbound, door, parse_allow


async def test_a_connection_is_used_again(outbound: Outbound, target: Target) -> None:
    first = await outbound.send(request(target.url + "/ok"))
    second = await outbound.send(request(target.url + "/ok"))
    assert target.connections == 1
    assert first.timings.connect is not None
    assert second.timings.connect is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST"])
async def test_a_connection_that_dies_under_a_request_gets_no_second_one(
    outbound: Outbound, target: Target, method: str
) -> None:
    """aiohttp would send an idempotent request again, behind our back."""
    path = "/close-after-keepalive"
    target.on("/first", lambda exchange: exchange.answer(200))
    response_of(await outbound.send(request(target.url + "/first")))
    failure_of(await outbound.send(request(target.url + path, method=method)), "no_response")
    assert [seen.path for seen in target.requests] == ["/first", path]
    assert target.connections == 1


async def test_a_connection_closed_while_idle_is_not_used(outbound: Outbound, target: Target) -> None:
    await outbound.send(request(target.url + "/ok"))
    for connection in target.open:
        assert connection.transport is not None
        connection.transport.close()
    await target.wait_for(lambda: not target.open)
    response_of(await outbound.send(request(target.url + "/ok", method="POST", body=b"x")))
    assert [seen.method for seen in target.requests] == ["GET", "POST"]


async def test_idle_connections_are_let_go(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before servers do it: a request that meets a closing connection fails."""
    monkeypatch.setattr(door, "KEEPALIVE_SECONDS", 0.1)
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    await outbound.send(request(target.url + "/ok"))
    await target.wait_for(lambda: not target.open)
    await outbound.close()


async def test_a_body_longer_than_its_length_is_cut_there(outbound: Outbound, target: Target) -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + b"body" + b"x" * 396
    target.on("/long", lambda exchange: exchange.raw(long))
    for path in ("/long", "/long", "/ok"):
        answer = response_of(await outbound.send(request(target.url + path)))
        assert answer.body == (b"ok" if path == "/ok" else b"body")
    assert target.connections == 3


async def test_a_body_where_there_may_be_none(outbound: Outbound, target: Target) -> None:
    target.on("/none", lambda exchange: exchange.raw(b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody"))
    first = response_of(await outbound.send(request(target.url + "/none")))
    assert (first.status, first.body) == (204, b"")
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"


async def test_an_answer_nobody_asked_for_is_not_given_to_the_next(outbound: Outbound, target: Target) -> None:
    """A whole answer that comes while the connection is idle."""
    await outbound.send(request(target.url + "/ok"))
    (connection,) = target.open
    assert connection.transport is not None
    connection.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
    await target.wait_for(lambda: not target.open, timeout=1.0)  # well before it would be let go as idle
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"


async def test_no_more_than_the_limit_at_once(target: Target) -> None:
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT, connections_max=3)
    await outbound.start()
    sending = [asyncio.create_task(outbound.send(request(target.url + "/slow/0.1"))) for _ in range(9)]
    await target.wait_for(lambda: len(target.requests) == 3)
    assert len(target.open) == 3
    assert {response_of(outcome).status for outcome in await asyncio.gather(*sending)} == {200}
    await outbound.close()


async def test_waiting_for_a_connection_counts_against_the_time_out(target: Target) -> None:
    """And it is our shortage, not the target's fault."""
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT, connections_max=1)
    await outbound.start()
    hanging = asyncio.create_task(outbound.send(request(target.url + "/hang", timeout=0.6)))
    await target.wait_for(lambda: bool(target.requests))
    outcome = await outbound.send(request(target.url + "/ok", timeout=0.2))
    failure = failure_of(outcome, "local_resources")
    assert "No connection" in failure.message
    assert failure.own_shortage
    failure_of(await hanging, "timeout")
    await outbound.close()


async def test_who_gives_up_as_a_connection_becomes_free_leaves_it_to_the_next(target: Target) -> None:
    """In the same turn of the loop; else the next would wait in vain, with nobody left to give anything back."""
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT, connections_max=1)
    await outbound.start()
    pool = outbound._pool
    assert pool is not None
    origin = URL(target.url)
    held = await pool.connection(origin, None)
    first, second = (asyncio.create_task(pool.connection(origin, None)) for _ in range(2))
    await until(lambda: sum(map(len, pool._waiters.values())) == 2)
    held.release()
    first.cancel()
    async with asyncio.timeout(5):
        (await second).release()
    await asyncio.wait([first])
    assert first.cancelled()
    await outbound.close()


async def test_one_host_may_take_what_there_is(outbound: Outbound, target: Target) -> None:
    sending = [asyncio.create_task(outbound.send(request(target.url + "/slow/0.3"))) for _ in range(200)]
    await target.wait_for(lambda: len(target.open) == 200)
    assert {response_of(outcome).status for outcome in await asyncio.gather(*sending)} == {200}


async def test_nothing_is_left_open(target: Target) -> None:
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    paths = ("/ok", "/hang", "/drip", "/huge/5000000", "/truncated", "/chunk-broken", "/reset", "/garbage")
    await asyncio.gather(*(outbound.send(request(target.url + path, timeout=0.4)) for path in paths))
    await outbound.close()
    await target.wait_for(lambda: not target.open)


async def test_closing_ends_every_request_in_flight_as_a_failure(target: Target) -> None:
    """At once, and nobody is cancelled by it: one waits for its answer, two are amid it, one waits for a connection."""
    heads = {"/length": b"Content-Length: 9\r\n\r\nhalf", "/chunks": b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"}
    for path, rest in heads.items():
        target.on(path, lambda exchange, rest=rest: exchange.raw(b"HTTP/1.1 200 OK\r\n" + rest))  # type: ignore[misc]
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT, connections_max=3)
    await outbound.start()
    paths = ("/hang", *heads)
    sending = [asyncio.create_task(outbound.send(request(target.url + path, timeout=60))) for path in paths]
    await target.wait_for(lambda: len(target.requests) == 3)
    sending.append(asyncio.create_task(outbound.send(request(target.url + "/ok", timeout=60))))
    assert outbound._pool is not None
    pool = outbound._pool
    await until(lambda: bool(pool._waiters) and sum(it._payload is not None for it in pool._acquired) == 2)
    await outbound.close()
    async with asyncio.timeout(5):
        kinds = [outcome.failure and outcome.failure.kind for outcome in await asyncio.gather(*sending)]
    assert kinds == ["no_response", "incomplete_body", "incomplete_body", "connection_failed"]


async def test_starting_and_closing_twice_is_harmless() -> None:
    outbound = Outbound(allow=parse_allow(""), user_agent=USER_AGENT)
    await outbound.close()
    await outbound.start()
    await outbound.close()
    await outbound.close()


async def test_an_aiohttp_that_makes_connections_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import aiohttp

    class Other(aiohttp.TCPConnector):
        def __getattribute__(self, name: str) -> object:
            if name == "_factory":
                raise AttributeError(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(door, "_Pool", Other)
    outbound = Outbound(allow=parse_allow(""), user_agent=USER_AGENT)
    with pytest.raises(RuntimeError, match="another way"):
        await outbound.start()
    await outbound.close()
