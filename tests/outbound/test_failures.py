"""Whatever a target, a network or a resolver does, `send` returns, in time, with a kind and a sentence."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import aiohttp
import pytest
from tests.outbound.helpers import LOCAL, USER_AGENT, Names, failure_of, request, response_of, until
from tests.support.target import Exchange, Target

from zerocron.outbound import ERROR_KINDS, Outbound, parse_allow, resolver


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


async def test_a_target_that_never_answers(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(target.url + "/hang", timeout=0.3))
    assert "0.3 s" in failure_of(outcome, "timeout").message
    assert 290 <= outcome.timings.total < 1500  # uvloop's timers are of whole milliseconds
    assert outcome.timings.first_byte is None
    await target.wait_for(lambda: not target.open)


async def test_a_drip_ends_with_the_total_and_what_came_is_kept(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(target.url + "/drip", timeout=0.7))
    failure = failure_of(outcome, "timeout")
    assert 690 <= outcome.timings.total < 1700
    assert failure.status == 200
    assert failure.response is not None
    assert failure.response.body == b"." * failure.response.body_bytes
    assert 2 <= failure.response.body_bytes <= 4
    assert failure.response.truncated


async def test_no_time_at_all(outbound: Outbound, target: Target) -> None:
    """Zero is not "without a limit"."""
    failure_of(await outbound.send(request(target.url + "/hang", timeout=0)), "connect_timeout")


async def test_a_slow_head(outbound: Outbound, target: Target) -> None:
    def drip(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nX-")
        exchange.later(0.05, lambda: letter(exchange))

    def letter(exchange: Exchange) -> None:
        exchange.raw(b"a")
        exchange.later(0.05, lambda: letter(exchange))

    target.on("/slow-head", drip)
    failure_of(await outbound.send(request(target.url + "/slow-head", timeout=0.3)), "timeout")


async def test_a_body_without_length_that_does_not_end(outbound: Outbound, target: Target) -> None:
    target.on("/open", lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\n\r\nso far"))
    failure = failure_of(await outbound.send(request(target.url + "/open", timeout=0.3)), "timeout")
    assert failure.response is not None
    assert (failure.status, failure.response.body) == (200, b"so far")


async def test_a_body_that_ends_with_the_connection_is_complete(outbound: Outbound, target: Target) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        exchange.close()

    target.on("/until-close", answer)
    assert response_of(await outbound.send(request(target.url + "/until-close"))).body == b"all of it"


async def test_a_target_that_does_not_take_the_body(target: Target) -> None:
    """Neither the request nor the connection outlives the time-out, although bytes are still waiting to be sent."""
    sockets: list[socket.socket] = []

    class Watched(Outbound):
        def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
            sockets.append(super()._open_socket(addr_info))
            return sockets[-1]

    def stop_reading(exchange: Exchange) -> None:
        assert exchange.connection.transport is not None
        exchange.connection.transport.pause_reading()

    outbound = Watched(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    target.on("/deaf", stop_reading, early=True)
    body = b"x" * 20_000_000
    outcome = await outbound.send(request(target.url + "/deaf", method="POST", body=body, timeout=0.4))
    failure_of(outcome, "timeout")
    assert outcome.timings.total < 1500
    await until(lambda: [sock.fileno() for sock in sockets] == [-1])
    await outbound.close()


async def test_a_reset(outbound: Outbound, target: Target) -> None:
    failure_of(await outbound.send(request(target.url + "/reset")), "connection_reset")


async def test_a_reset_within_the_body(outbound: Outbound, target: Target) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        exchange.later(0.05, exchange.reset)

    target.on("/cut", cut)
    failure = failure_of(await outbound.send(request(target.url + "/cut")), "incomplete_body")
    assert failure.response is not None
    assert failure.response.body == b"half"


async def test_a_truncated_body_is_no_success(outbound: Outbound, target: Target) -> None:
    failure = failure_of(await outbound.send(request(target.url + "/truncated")), "incomplete_body")
    assert failure.status == 200
    assert failure.response is not None
    assert failure.response.body == b"only this"
    assert failure.response.content_type == "text/plain"
    assert failure.response.truncated


async def test_chunks_that_end_early(outbound: Outbound, target: Target) -> None:
    def cut(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        exchange.later(0.02, exchange.close)

    target.on("/cut", cut)
    failure = failure_of(await outbound.send(request(target.url + "/cut")), "incomplete_body")
    assert failure.response is not None
    assert failure.response.body == b"hello"


async def test_broken_chunks(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(target.url + "/chunk-broken"))
    failure = failure_of(outcome, "protocol")
    assert failure.status == 200
    assert failure.response is not None
    assert failure.response.body == b"hello"
    assert outcome.timings.total < 2000


async def test_chunks_that_break_later(outbound: Outbound, target: Target) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        exchange.later(0.05, lambda: exchange.raw(b"zz\r\n"))

    target.on("/later", answer)
    failure = failure_of(await outbound.send(request(target.url + "/later", timeout=3)), "protocol")
    assert failure.response is not None
    assert failure.response.body == b"hello"


async def test_garbage(outbound: Outbound, target: Target) -> None:
    failure_of(await outbound.send(request(target.url + "/garbage")), "protocol")


async def test_no_answer_at_all(outbound: Outbound, target: Target) -> None:
    target.on("/bye", lambda exchange: exchange.close())
    failure_of(await outbound.send(request(target.url + "/bye")), "no_response")


async def test_half_a_head(outbound: Outbound, target: Target) -> None:
    def half(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Le")
        exchange.close()

    target.on("/half", half)
    failure_of(await outbound.send(request(target.url + "/half")), "no_response")


async def test_more_headers_than_are_read(outbound: Outbound, target: Target) -> None:
    failure_of(await outbound.send(request(target.url + "/headers/10000")), "too_many_headers")


async def test_a_header_of_100_kb(outbound: Outbound, target: Target) -> None:
    target.on("/long", lambda exchange: exchange.answer(200, b"", [("X-Long", "v" * 100_000)]))
    failure_of(await outbound.send(request(target.url + "/long")), "headers_too_large")


async def test_a_nul_in_a_header(outbound: Outbound, target: Target) -> None:
    target.on("/nul", lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 0\r\n\r\n"))
    failure_of(await outbound.send(request(target.url + "/nul")), "protocol")


async def test_a_change_of_protocol_that_nobody_asked_for(outbound: Outbound, target: Target) -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nframes"
    target.on("/switch", lambda exchange: exchange.raw(switch))
    assert failure_of(await outbound.send(request(target.url + "/switch")), "protocol").status == 101
    await target.wait_for(lambda: not target.open)


@pytest.mark.parametrize("at_once", [True, False])
async def test_interim_answers_without_end(outbound: Outbound, target: Target, at_once: bool) -> None:
    def hint(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" * (1000 if at_once else 1))
        exchange.later(0, lambda: hint(exchange))

    target.on("/hints", hint)
    outcome = await outbound.send(request(target.url + "/hints", timeout=5))
    failure_of(outcome, "protocol")
    assert outcome.timings.total < 4000


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (HEAD + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nhello", "protocol"),
        (HEAD + b"Content-Length: +5\r\n\r\nhello", "protocol"),
        (HEAD + b"Content-Length: -5\r\n\r\nhello", "protocol"),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nhello", "protocol"),
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "protocol"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nhello", "protocol"),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\nhello", "protocol"),
        (HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "protocol"),
        (b"HTTP/2 200 OK\r\nContent-Length: 5\r\n\r\nhello", "protocol"),
        (b"HTTP/1.1 99 Low\r\nContent-Length: 5\r\n\r\nhello", "protocol"),
        (b"<html>hello", "protocol"),
        (HEAD + b"Content-Length: 9\r\n\r\nhello", "incomplete_body"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nhello", "incomplete_body"),
        (HEAD + b"Content-Length: 5\r\n\r\nhello", None),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", None),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", None),
        (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 5\r\n\r\nhello", None),
        (HEAD + b"Transfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-T: t\r\n\r\n", None),
    ],
)
async def test_framing(outbound: Outbound, target: Target, answer: bytes, kind: str | None) -> None:
    """What cannot be a whole answer is no success, and what it leaves behind harms nobody."""

    def say(exchange: Exchange) -> None:
        exchange.raw(answer)
        exchange.later(0.02, exchange.close)

    target.on("/x", say)
    outcome = await outbound.send(request(target.url + "/x"))
    if kind is None:
        assert response_of(outcome).body == b"hello"
    else:
        failure_of(outcome, kind)
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"


@pytest.mark.parametrize(
    ("first", "piece", "kind"),
    [
        (HEAD, b"X-T: " + b"v" * 8000 + b"\r\n", "headers_too_large"),  # each within its bound, and 8 MB together
        (HEAD, b"a: b\r\n" * 2000, "too_many_headers"),
        (b"HTTP/1.1 200 ", b"v" * 65536, "headers_too_large"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;a=", b"v" * 65536, "protocol"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536, "protocol"),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
            b"X-T: " + b"v" * 8000 + b"\r\n",
            "protocol",
        ),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 10_000, None),
    ],
)
async def test_endless_framing(
    outbound: Outbound, target: Target, first: bytes, piece: bytes, kind: str | None
) -> None:
    """It ends by its size, long before the time-out, and one byte a chunk is a body like another."""

    def say(exchange: Exchange) -> None:
        exchange.raw(first)
        more(exchange)

    def more(exchange: Exchange) -> None:
        transport = exchange.connection.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() < 1_000_000:
            exchange.raw(piece)
        exchange.later(0, lambda: more(exchange))

    target.on("/x", say)
    outcome = await outbound.send(request(target.url + "/x", timeout=20))
    if kind is None:
        assert response_of(outcome).truncated
    else:
        failure_of(outcome, kind)
    assert outcome.timings.total < 8_000
    await target.wait_for(lambda: not target.open)


async def test_both_kinds_of_framing_at_once(outbound: Outbound, target: Target) -> None:
    """Whatever is made of it, the next request gets its own answer."""
    both = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    target.on("/both", lambda exchange: exchange.raw(both))
    await outbound.send(request(target.url + "/both"))
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"


async def test_nothing_listens(outbound: Outbound) -> None:
    failure_of(await outbound.send(request(f"http://127.0.0.1:{free_port()}/")), "connection_refused")


async def test_nothing_listens_on_any_address_of_a_name(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"many.test": [f"127.0.0.{n}" for n in range(1, 30)]}))
    failure_of(await outbound.send(request(f"http://many.test:{free_port()}/")), "connection_refused")


async def test_one_dead_address_does_not_matter(
    outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"two.test": ["::1", "127.0.0.1"]}))
    assert response_of(await outbound.send(request(f"http://two.test:{target.port}/ok"))).status == 200


async def test_a_name_that_does_not_exist(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({}))
    outcome = await outbound.send(request("http://nowhere.test/"))
    assert "does not exist" in failure_of(outcome, "dns_not_found").message
    assert outcome.timings.dns is None


async def test_a_resolver_that_fails(outbound: Outbound, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(resolver, "getaddrinfo", fail)
    assert "may pass" in failure_of(await outbound.send(request("http://later.test/")), "dns_failed").message


async def test_a_resolver_that_hangs(outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request ends in time, and other names are looked up meanwhile."""
    import threading

    release = threading.Event()
    names = Names({"quick.test": ["127.0.0.1"]})

    def hang(host: str, port: int, *rest: object, **more: object) -> list[Any]:
        if host.startswith("hang"):
            release.wait(10)
        return names(host, port)

    monkeypatch.setattr(resolver, "getaddrinfo", hang)
    try:
        hanging = [outbound.send(request(f"http://hang{n}.test/", timeout=0.5)) for n in range(20)]
        quick = outbound.send(request(f"http://quick.test:{target.port}/ok", timeout=5))
        *outcomes, last = await asyncio.gather(*hanging, quick)
        assert response_of(last).status == 200
        for outcome in outcomes:
            failure = failure_of(outcome, "dns_timeout")
            assert "0.5 s" in failure.message
            assert failure.timed_out
            assert outcome.timings.total < 1500
    finally:
        release.set()


async def test_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = await _with_dial_error(OSError(errno.ENETUNREACH, "Network is unreachable"))
    assert failure == "unreachable"


async def test_no_file_descriptor_left() -> None:
    assert await _with_dial_error(OSError(errno.EMFILE, "Too many open files")) == "local_resources"


async def _with_dial_error(error: OSError) -> str:
    class Broken(Outbound):
        def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
            raise error

    outbound = Broken(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    try:
        outcome = await outbound.send(request("http://127.0.0.1:9/"))
        assert outcome.failure is not None
        return outcome.failure.kind
    finally:
        await outbound.close()


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({"method": "GET / HTTP/1.1\r\nX:"}, "invalid_request"),
        ({"method": "CONNECT"}, "invalid_request"),
        ({"headers": [("X-A", "a\r\nX-B: b")]}, "invalid_request"),
        ({"headers": [("X-A\r\nX-B", "b")]}, "invalid_request"),
    ],
)
async def test_what_cannot_be_put_on_the_wire_is_not_sent(
    outbound: Outbound, target: Target, how: dict[str, Any], kind: str
) -> None:
    failure_of(await outbound.send(request(target.url + "/ok", **how)), kind)
    assert not target.requests


async def test_a_url_that_a_secret_has_spoilt(outbound: Outbound) -> None:
    failure_of(await outbound.send(request("http://user:pass@127.0.0.1/")), "invalid_url")


async def test_closing_ends_what_is_in_flight(target: Target) -> None:
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    sending = asyncio.create_task(outbound.send(request(target.url + "/hang", timeout=30)))
    await target.wait_for(lambda: bool(target.requests))
    await outbound.close()
    outcome = await asyncio.wait_for(sending, 3)
    assert outcome.failure is not None
    with pytest.raises(RuntimeError, match="not started"):
        await outbound.send(request(target.url + "/ok"))


async def test_cancelling_passes_through_and_drops_the_connection(outbound: Outbound, target: Target) -> None:
    for path in ("/hang", "/drip"):
        sending = asyncio.create_task(outbound.send(request(target.url + path, timeout=30)))
        await target.wait_for(lambda: bool(target.requests))
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await target.wait_for(lambda: not target.open)
        target.requests.clear()


def test_every_kind_is_explained() -> None:
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in ERROR_KINDS.values())
    assert list(ERROR_KINDS) == sorted(ERROR_KINDS)
