"""A request goes out exactly as it was given, and its answer comes back as it was sent."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest
from tests.outbound.helpers import USER_AGENT, Names, request, response_of
from tests.support.target import Exchange, Target

from zerocron.outbound import Outbound, guard, resolver
from zerocron.outbound.protocol import WRITE_BYTES


async def echoed(outbound: Outbound, target: Target, path: str = "/echo", **how: Any) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads(response_of(await outbound.send(request(target.url + path, **how))).body)
    return seen


async def test_a_plain_answer(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(target.url + "/ok"))
    answer = response_of(outcome)
    assert (answer.status, answer.body, answer.body_bytes, answer.truncated) == (200, b"ok", 2, False)
    assert answer.content_type == "text/plain"
    assert ("Content-Type", "text/plain") in answer.headers
    assert [(seen.method, seen.path) for seen in target.requests] == [("GET", "/ok")]


@pytest.mark.parametrize("status", [201, 204, 304, 404, 410, 429, 500, 503])
async def test_every_status_is_an_answer(outbound: Outbound, target: Target, status: int) -> None:
    assert response_of(await outbound.send(request(f"{target.url}/status/{status}"))).status == status


async def test_headers_are_sent_as_given_and_nothing_is_added(outbound: Outbound, target: Target) -> None:
    given = [("X-A", "1"), ("accept", "text/x"), ("x-a", "2"), ("X-A", "1"), ("Authorization", "Bearer t")]
    seen = await echoed(outbound, target, headers=given)
    assert [tuple(header) for header in seen["headers"]] == [
        ("Host", f"127.0.0.1:{target.port}"),
        ("User-Agent", USER_AGENT),
        *given,
    ]


async def test_a_user_agent_of_the_job_replaces_ours(outbound: Outbound, target: Target) -> None:
    seen = await echoed(outbound, target, headers=[("user-agent", "mine")])
    assert [value for name, value in seen["headers"] if name.lower() == "user-agent"] == ["mine"]


async def test_a_header_outside_of_ascii_goes_out_as_utf8(outbound: Outbound, target: Target) -> None:
    await outbound.send(request(target.url + "/ok", headers=[("X-Name", "Zoë")]))
    assert target.requests[0].headers["x-name"].encode("latin-1").decode() == "Zoë"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PURGE", "M-SEARCH"])
async def test_a_body_goes_out_with_its_length_and_no_guessed_type(
    outbound: Outbound, target: Target, method: str
) -> None:
    seen = await echoed(outbound, target, method=method, body=b'{"a": 1}')
    assert (seen["method"], seen["body"]) == (method, '{"a": 1}')
    assert ["Content-Length", "8"] in seen["headers"]
    assert "content-type" not in {name.lower() for name, _ in seen["headers"]}


async def test_a_post_without_a_body_says_so(outbound: Outbound, target: Target) -> None:
    assert ["Content-Length", "0"] in (await echoed(outbound, target, method="POST"))["headers"]


async def test_a_get_without_a_body_has_no_length(outbound: Outbound, target: Target) -> None:
    assert "Content-Length" not in dict((await echoed(outbound, target))["headers"])


async def test_a_large_body_arrives_whole(outbound: Outbound, target: Target) -> None:
    body = bytes(range(256)) * 8 * 1024
    response_of(await outbound.send(request(target.url + "/ok", method="POST", body=body)))
    assert target.requests[0].body == body


async def test_methods_are_sent_in_capitals(outbound: Outbound, target: Target) -> None:
    assert (await echoed(outbound, target, method="get"))["method"] == "GET"


async def test_head_does_not_wait_for_a_body(outbound: Outbound, target: Target) -> None:
    target.on("/head", lambda exchange: exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"))
    answer = response_of(await outbound.send(request(target.url + "/head", method="HEAD")))
    assert (answer.status, answer.body, answer.truncated) == (200, b"", False)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("/echo?q=a&b=%26", "/echo?q=a&b=%26"),
        ("/echo?x=%7e+%2F&x=", "/echo?x=%7e+%2F&x="),
        ("/echo/../echo/./", "/echo/../echo/./"),
        ("/echo?x#fragment", "/echo?x"),
        ("/echo?é=ü&t=${x}", "/echo?%C3%A9=%C3%BC&t=$%7Bx%7D"),
    ],
)
async def test_the_path_is_sent_byte_for_byte(outbound: Outbound, target: Target, written: str, sent: str) -> None:
    target.on("/echo/../echo/./", lambda exchange: exchange.answer(200))
    await outbound.send(request(target.url + written))
    assert target.requests[0].path == sent


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://127.0.0.1:{port}?a=1"])
async def test_a_url_without_a_path_asks_for_the_root(outbound: Outbound, target: Target, url: str) -> None:
    await outbound.send(request(url.format(port=target.port)))
    assert target.requests[0].path.startswith("/")


async def test_names_are_sent_in_their_ascii_form(
    outbound: Outbound, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"xn--bcher-kva.example": ["127.0.0.1"]}))
    response_of(await outbound.send(request(f"HTTP://Bücher.Example:{target.port}/ok")))
    assert target.requests[0].headers["host"] == f"xn--bcher-kva.example:{target.port}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_is_not_followed(outbound: Outbound, target: Target, status: int) -> None:
    target.on("/away", lambda exchange: exchange.answer(status, b"", [("Location", f"{target.url}/ok")]))
    answer = response_of(await outbound.send(request(target.url + "/away", method="POST", body=b"x")))
    assert answer.status == status
    assert ("Location", f"{target.url}/ok") in answer.headers
    assert len(target.requests) == 1


async def test_a_redirect_without_a_location_is_an_answer(outbound: Outbound, target: Target) -> None:
    assert response_of(await outbound.send(request(target.url + "/status/302"))).status == 302


async def test_cookies_are_never_kept(outbound: Outbound, target: Target) -> None:
    target.on("/cookie", lambda exchange: exchange.answer(200, b"", [("Set-Cookie", "a=b; Path=/")]))
    await outbound.send(request(target.url + "/cookie"))
    await outbound.send(request(target.url + "/ok"))
    assert "cookie" not in target.requests[1].headers


async def test_repeated_headers_of_an_answer_are_all_kept(outbound: Outbound, target: Target) -> None:
    twice = [("Set-Cookie", "a=1"), ("X-A", "1"), ("Set-Cookie", "b=2"), ("x-a", "2")]
    target.on("/twice", lambda exchange: exchange.answer(200, b"", twice))
    answer = response_of(await outbound.send(request(target.url + "/twice")))
    assert list(answer.headers[:4]) == twice


async def test_at_most_a_hundred_headers_are_kept(outbound: Outbound, target: Target) -> None:
    answer = response_of(await outbound.send(request(target.url + "/headers/300")))
    assert len(answer.headers) == 100
    assert answer.body == b"headers"


async def test_at_most_64_kb_of_headers_are_kept(outbound: Outbound, target: Target) -> None:
    big = [(f"X-{n}", "v" * 10_000) for n in range(20)]
    target.on("/big", lambda exchange: exchange.answer(200, b"", big))
    answer = response_of(await outbound.send(request(target.url + "/big")))
    assert 5 <= len(answer.headers) <= 6


async def test_header_values_of_other_alphabets_can_be_stored(outbound: Outbound, target: Target) -> None:
    odd = (
        b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\nContent-Type: \xff\r\nContent-Length: 0\r\n\r\n"
    )
    target.on("/odd", lambda exchange: exchange.raw(odd))
    answer = response_of(await outbound.send(request(target.url + "/odd")))
    assert dict(answer.headers)["X-Latin"] == "café"
    assert dict(answer.headers)["X-Utf"] == "café"
    assert answer.content_type == "ÿ"
    assert all(text.isprintable() for header in answer.headers for text in header)


async def test_bytes_come_back_as_bytes(outbound: Outbound, target: Target) -> None:
    assert response_of(await outbound.send(request(target.url + "/binary"))).body == bytes(range(256)) * 4


async def test_an_interim_answer_is_not_the_answer(outbound: Outbound, target: Target) -> None:
    def hint(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        exchange.answer(200, b"real")

    target.on("/hints", hint)
    for _ in range(2):
        answer = response_of(await outbound.send(request(target.url + "/hints")))
        assert (answer.status, answer.body) == (200, b"real")
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"


@pytest.mark.parametrize("status", ["000", "099", "600", "999"])
async def test_a_status_that_does_not_exist_is_an_answer(outbound: Outbound, target: Target, status: str) -> None:
    """And not one of those that come before it."""
    odd = f"HTTP/1.1 {status} What\r\nContent-Length: 2\r\n\r\nok".encode()
    target.on("/odd", lambda exchange: exchange.raw(odd))
    for _ in range(2):
        answer = response_of(await outbound.send(request(target.url + "/odd")))
        assert (answer.status, answer.body) == (int(status), b"ok")
    assert target.connections == 1


async def test_a_slow_answer_within_the_time_out(outbound: Outbound, target: Target) -> None:
    outcome = await outbound.send(request(target.url + "/slow/0.2"))
    assert response_of(outcome).body == b"slow"
    assert outcome.timings.first_byte is not None
    assert outcome.timings.first_byte >= 190


async def test_fail_then_ok(outbound: Outbound, target: Target) -> None:
    statuses = [
        response_of(await outbound.send(request(target.url + "/fail-then-ok/2?key=a"))).status for _ in range(4)
    ]
    assert statuses == [500, 500, 200, 200]


async def test_an_early_answer_to_an_unread_body_is_kept(outbound: Outbound, target: Target) -> None:
    """The target refuses after the head, while most of the body is still on its way."""

    def refuse(exchange: Exchange) -> None:
        exchange.answer(403, b"no", [("Connection", "close")])

    target.on("/upload", refuse, early=True)
    answer = response_of(await outbound.send(request(target.url + "/upload", method="POST", body=b"x" * 5_000_000)))
    assert (answer.status, answer.body) == (403, b"no")


async def test_what_is_left_of_a_body_does_not_mix_with_the_next_request(outbound: Outbound, target: Target) -> None:
    """The target has answered, and keeps the connection; most of the body is still on its way."""
    target.on("/upload", lambda exchange: exchange.answer(403, b"no"), early=True)
    answer = response_of(await outbound.send(request(target.url + "/upload", method="POST", body=b"x" * 5_000_000)))
    assert answer.status == 403
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"
    assert target.connections == 2


@pytest.mark.parametrize("size", [WRITE_BYTES, WRITE_BYTES + 1])
async def test_what_waits_in_our_own_buffer_keeps_the_connection_from_the_next_request(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The target has answered and reads no further: a request behind that would never go out."""
    open_socket = guard._socket

    def open_small_socket(*kind: int) -> socket.socket:
        sock = open_socket(*kind)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        return sock

    monkeypatch.setattr(guard, "_socket", open_small_socket)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if b"/upload" in head:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        writers.append(writer)

    writers: list[asyncio.StreamWriter] = []
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with await asyncio.start_server(answer, sock=listener):
        upload = request(url + "/upload", method="POST", body=b"x" * size)
        assert response_of(await outbound.send(upload)).body == b"ok"
        assert response_of(await outbound.send(request(url + "/next"))).body == b"ok"
        assert len(writers) == 2
        for writer in writers:
            writer.transport.abort()


@pytest.mark.parametrize("size", [WRITE_BYTES, WRITE_BYTES + 1, 10 * WRITE_BYTES + 7])
async def test_a_body_of_any_size_arrives_whole(outbound: Outbound, target: Target, size: int) -> None:
    body = bytes(n % 251 for n in range(size))
    for _ in range(2):
        response_of(await outbound.send(request(target.url + "/ok", method="POST", body=body)))
    assert [seen.body for seen in target.requests] == [body, body]
    assert target.connections == 1
