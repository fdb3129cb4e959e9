"""The faults from the field: http_faults.jsonl, a copy of the project's shared file, played line by line.

Each line has a play: a function that makes a local server do what `server` says, sends, and returns the outcome. What
`expect` says in words of its own is checked by `judge`; what it says in words of that line, the play checks and names
in `@play`. A word that nobody checks fails the test. Seconds are SCALE of what the line says, so that all of it takes
seconds; the machine gets SLACK_SECONDS beyond that.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.outbound.helpers import LOCAL, USER_AGENT, Dialling, Names, request
from tests.support.target import Exchange, Handler, Target

from zerocron.core.bodies import as_text
from zerocron.core.errors import Invalid
from zerocron.core.exchange import PERMANENT_KINDS
from zerocron.core.model import SuccessRule
from zerocron.core.success import broken_rule
from zerocron.outbound import Outbound, Outcome, check_header, check_method, check_url, parse_allow, resolver
from zerocron.outbound.wire import wire_of

HERE = Path(__file__).parent
LINES: dict[str, dict[str, Any]] = {
    line["id"]: line
    for text in (HERE / "http_faults.jsonl").read_text(encoding="utf-8").splitlines()
    if text
    for line in [json.loads(text)]
}
SCALE = 0.05
SLACK_SECONDS = 1.0
CAP = 1_048_576
SECRET = "canary-7f3a"

LEFT_OUT = {
    "http-059": "what a notification says is the business of the channels",
    **dict.fromkeys(("http-108", "http-109"), "secrets are rendered into a request before it comes to this door"),
    **dict.fromkeys(
        ("http-111", "http-112", "http-114", "http-116", "http-118", "http-120"),
        "Retry-After is read by core.retry and obeyed by the engine",
    ),
    **dict.fromkeys(("http-121", "http-122", "http-123", "http-125"), "whether to try again is the engine's decision"),
    "http-124": "how often an alert is sent is the notifier's decision",
}
# In these lines the door's part is played here: one request, and an outcome that tells what a retry would be good for.
RETRIES_ELSEWHERE = {"http-015", "http-016", "http-062"}

# The words of the lines, and the kinds that we call so. What is finer here must be told apart (PROMISES, issue 4).
KINDS = {
    "connect_timeout": {"connect_timeout"},
    "dns_timeout": {"dns_timeout"},
    "no_response": {"no_response"},
    "protocol_error": {"protocol", "headers_too_large", "too_many_headers"},
    "timeout": {"timeout"},
    "tls_protocol": {"tls_protocol"},
    "tls_untrusted": {"tls_self_signed", "tls_untrusted"},
}


@dataclass(frozen=True, slots=True)
class Stage:
    target: Target
    outbound: Outbound
    given: dict[str, Any]
    monkeypatch: pytest.MonkeyPatch
    dialling: Callable[[str], Dialling]

    def on(self, path: str, handler: Handler, **how: bool) -> None:
        self.target.on(path, handler, **how)

    async def send(self, url: str = "/", *, outbound: Outbound | None = None, **how: Any) -> Outcome:
        """The line's request. A URL that begins with a slash is one of the target."""
        given = self.given
        how.setdefault("method", given.get("method", "GET"))
        how.setdefault("timeout", given.get("timeout_s", 100) * SCALE)
        headers = [(name, value.replace("${secrets.T}", SECRET)) for name, value in given.get("headers", {}).items()]
        how.setdefault("headers", headers)
        how.setdefault("secret_headers", {name.lower() for name, value in headers if SECRET in value})
        if isinstance(given.get("body"), str):
            how.setdefault("body", given["body"].encode())
        return await (outbound or self.outbound).send(request(self.target.url + url if url[0] == "/" else url, **how))

    def names(self, **table: str) -> None:
        self.monkeypatch.setattr(
            resolver, "getaddrinfo", Names({name.replace("_", "."): [address] for name, address in table.items()})
        )


Play = Callable[[Stage], Awaitable[Outcome | None]]
PLAYS: dict[str, tuple[Play, frozenset[str]]] = {}


def play(case: str, *checked: str) -> Callable[[Play], Play]:
    """Registers the play of a line; `checked` are the words of `expect` that it checks itself."""

    def register(function: Play) -> Play:
        assert case not in PLAYS
        PLAYS[case] = (function, frozenset(checked))
        return function

    return register


def verdict(outcome: Outcome) -> str:
    if outcome.failure is not None:
        return "blocked" if outcome.failure.kind == "address_refused" else "failure"
    assert outcome.response is not None
    return "success" if broken_rule(SuccessRule(), outcome.response.status, None) is None else "failure"


def judge(outcome: Outcome, expect: dict[str, Any], given: dict[str, Any]) -> set[str]:
    """Checks the words that many lines share, and returns them."""
    answer = outcome.response or (outcome.failure.response if outcome.failure else None)
    stored = len(answer.body) if answer is not None else 0
    checks: dict[str, Callable[[Any], bool]] = {
        "outcome": lambda it: verdict(outcome) in it.split(" or "),
        "status": lambda it: answer is not None and answer.status == it,
        "error": lambda it: outcome.failure is not None and outcome.failure.kind in KINDS[it],
        "ends_within_s": lambda it: outcome.timings.total / 1000 < it * SCALE + SLACK_SECONDS,
        "ends_within": lambda _: outcome.timings.total / 1000 < given.get("timeout_s", 100) * SCALE + SLACK_SECONDS,
        "partial_body_kept": lambda _: answer is not None and stored > 0 and answer.truncated,
        "stored_bytes": lambda it: stored == it,
        "stored_bytes_max": lambda it: 0 < stored <= it,
        "truncated": lambda it: answer is not None and answer.truncated == it,
        "decode_error_recorded": lambda _: answer is not None and answer.decode_error is not None,
    }
    for word in checks.keys() & expect.keys():
        assert checks[word](expect[word]), (word, expect[word], outcome)
    return set(checks.keys() & expect.keys())


@pytest.mark.parametrize("case", sorted(set(LINES) - set(LEFT_OUT)))
async def test_case(
    case: str,
    target: Target,
    outbound: Outbound,
    dialling: Callable[[str], Dialling],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = LINES[case]
    function, checked = PLAYS[case]
    outcome = await function(Stage(target, outbound, line["given"], monkeypatch, dialling))
    if outcome is not None:
        shared = {word: value for word, value in line["expect"].items() if word not in checked}
        checked |= judge(outcome, shared, line["given"])
        if outcome.failure is not None:
            assert outcome.failure.message.endswith(".")
            if not outcome.failure.kind.startswith("redirect_"):  # these name what the target wrote
                assert "127.0.0.1" not in outcome.failure.message
    assert checked >= set(line["expect"]), set(line["expect"]) - checked


def test_every_line_is_accounted_for() -> None:
    assert set(PLAYS) | set(LEFT_OUT) == set(LINES)
    assert not set(PLAYS) & set(LEFT_OUT)
    assert set(PLAYS) >= RETRIES_ELSEWHERE


# What the plays are made of.


def raw(*pieces: bytes, close: bool = False, every: float = 0.02) -> Handler:
    """Sends pieces one after the other, at most one every so many seconds."""

    def answer(exchange: Exchange) -> None:
        left = list(pieces)

        def more() -> None:
            if left:
                exchange.raw(left.pop(0))
                exchange.later(every, more)
            elif close:
                exchange.close()

        more()

    return answer


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def drip(first: bytes, drop: bytes) -> Handler:
    """Then one drop every second of the line, without end."""

    def answer(exchange: Exchange) -> None:
        exchange.raw(first)

        def more() -> None:
            exchange.raw(drop)
            exchange.later(1 * SCALE, more)

        more()

    return answer


def away(status: int, to: str) -> Handler:
    return lambda exchange: exchange.answer(status, b"", [("Location", to)])


def ok(exchange: Exchange) -> None:
    exchange.answer(200, b"ok")


def tls_target(certificate: str, seen: list[str | None] | None = None) -> Target:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(HERE / "certificates" / f"{certificate}.pem")
    if seen is not None:
        context.sni_callback = lambda _socket, name, _context: seen.append(name)
    return Target(tls=context)


@asynccontextmanager
async def door() -> AsyncIterator[Outbound]:
    """One that is made now, for what it reads of its surroundings when it starts."""
    it = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await it.start()
    yield it
    await it.close()


def refused(url: str) -> bool:
    with pytest.raises(Invalid):
        check_url(url)
    return True


# Redirects.


@play("http-002")
async def cookie_dance(stage: Stage) -> Outcome:
    def a(exchange: Exchange) -> None:
        if exchange.request.headers.get("cookie") == "seen=1":
            ok(exchange)
        else:
            exchange.answer(302, b"", [("Location", "/b"), ("Set-Cookie", "seen=1; Path=/; HttpOnly")])

    stage.on("/a", a)
    stage.on("/b", away(302, "/a"))
    outcome = await stage.send("/a", redirects=5)
    await stage.send("/b", redirects=0)
    assert "cookie" not in stage.target.requests[-1].headers  # they end with the chain
    return outcome


@play("http-003", "must_not", "history_shows")
async def post_turned_into_get(stage: Stage) -> Outcome:
    stage.on("/", away(302, "/done"))
    stage.on("/done", ok)
    outcome = await stage.send(redirects=3)
    assert [(hop.method, hop.status, hop.with_body) for hop in outcome.hops] == [
        ("POST", 302, True),
        ("GET", 200, False),
    ]
    assert stage.target.requests[1].body == b""
    return outcome


@play("http-004", "must_not")
async def post_to_https(stage: Stage) -> Outcome:
    async with tls_target("good") as secure:
        secure.on("/", ok)
        stage.on("/", away(301, f"https://localhost:{secure.port}/"))
        outcome = await stage.send(body=b"x", redirects=3)
        assert [(hop.method, hop.status) for hop in outcome.hops] == [("POST", 301), ("GET", 200)]
        assert outcome.hops[1].url == f"https://localhost:{secure.port}/"
    return outcome


@play("http-006", "if_followed")
async def see_other(stage: Stage) -> Outcome:
    stage.on("/", away(303, "/b"))
    stage.on("/b", ok)
    outcome = await stage.send(body=b"x", headers=[("Content-Type", "text/plain")], redirects=1)
    second = stage.target.requests[1]
    assert (second.method, second.body) == ("GET", b"")
    assert not {"content-type", "content-length"} & set(second.headers)
    return outcome


async def _without_credentials(stage: Stage, location: str) -> Outcome:
    async with Target() as other:
        other.on("/x", ok)
        stage.names(other_example="127.0.0.1")
        stage.on("/", away(302, location.format(port=other.port)))
        given = [(name, value.replace("${secrets.T}", SECRET)) for name, value in stage.given["headers"].items()]
        outcome = await stage.send(headers=[*given, ("Cookie", "session=1")], redirects=3)
        assert verdict(outcome) == "success"
        assert stage.target.requests[0].headers["cookie"] == "session=1"
        (second,) = other.requests
        assert set(second.headers) == {"host", "user-agent"}
        assert SECRET not in str(second)
    return outcome


@play("http-007", "second_request_lacks")
async def authorization_stays(stage: Stage) -> Outcome:
    return await _without_credentials(stage, "http://other.example:{port}/x")


@play("http-008", "second_request_lacks")
async def api_key_stays(stage: Stage) -> Outcome:
    return await _without_credentials(stage, "http://other.example:{port}/x")


@play("http-009", "second_request_lacks")
async def protocol_relative(stage: Stage) -> Outcome:
    return await _without_credentials(stage, "//other.example:{port}/x")


@play("http-010", "second_request_lacks")
async def downgrade(stage: Stage) -> Outcome:
    async with tls_target("good") as secure:
        secure.on("/", away(302, stage.target.url + "/x"))
        outcome = await stage.send(secure.url + "/", redirects=3)
    assert outcome.failure is not None
    assert outcome.failure.kind == "redirect_refused"
    assert not stage.target.requests
    return outcome


@play("http-012", "connects_to_target")
async def redirect_to_metadata(stage: Stage) -> Outcome:
    stage.on("/", away(302, "http://169.254.169.254/"))
    outcome = await stage.send(redirects=3)
    assert [hop.status for hop in outcome.hops] == [302, None]
    return outcome


@play("http-014", "shows_location")
async def not_followed(stage: Stage) -> Outcome:
    stage.on("/", away(302, "/dashboard"))
    outcome = await stage.send()
    assert outcome.response is not None
    assert ("Location", "/dashboard") in outcome.response.headers
    return outcome


@play("http-015", "requests_sent")
async def always_307(stage: Stage) -> Outcome:
    stage.on("/", away(307, "/"))
    outcome = await stage.send(body=b"x")
    assert len(stage.target.requests) == 1
    looping = await stage.send(body=b"x", redirects=5)
    assert looping.failure is not None
    assert looping.failure.permanent
    return outcome


@play("http-016", "requests_sent")
async def accepted_and_302(stage: Stage) -> Outcome:
    stage.on("/", away(302, "/status"))
    outcome = await stage.send()
    assert len(stage.target.requests) == 1
    return outcome


@play("http-017", "must_not")
async def no_location(stage: Stage) -> Outcome:
    stage.on("/", lambda exchange: exchange.answer(302))
    outcome = await stage.send(redirects=3)
    assert not outcome.hops
    return outcome


# Time.


@contextmanager
def deaf_listener() -> Iterator[int]:
    """A port whose queue is full: the kernel drops the packets that ask for one more connection."""
    fillers: list[socket.socket] = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        try:
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


@play("http-019")
async def dropped_syn(stage: Stage) -> Outcome:
    with deaf_listener() as port:
        return await stage.send(f"http://127.0.0.1:{port}/", timeout=stage.given["connect_timeout_s"] * SCALE)


@play("http-021")
async def slow_body(stage: Stage) -> Outcome:
    stage.on("/", drip(head("Content-Length: 300"), b"."))
    return await stage.send()


@play("http-022")
async def slow_head(stage: Stage) -> Outcome:
    stage.on("/", drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"))
    return await stage.send()


@play("http-023")
async def all_phases_count(stage: Stage) -> Outcome:
    def slowly(*_: object, **__: object) -> list[Any]:
        threading.Event().wait(5 * SCALE)  # in a thread of the resolver
        return Names({"slow.test": ["127.0.0.1"]})("slow.test", stage.target.port)

    stage.monkeypatch.setattr(resolver, "getaddrinfo", slowly)
    stage.on("/", lambda exchange: exchange.later(29 * SCALE, lambda: ok(exchange)))
    outcome = await stage.send(f"http://slow.test:{stage.target.port}/")
    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"
    return outcome


@play("http-024")
async def handshake_hangs(stage: Stage) -> Outcome:
    return await stage.send(f"https://127.0.0.1:{stage.target.port}/")


@play("http-025")
async def deaf_target(stage: Stage) -> Outcome:
    def stop_reading(exchange: Exchange) -> None:
        assert exchange.connection.transport is not None
        exchange.connection.transport.pause_reading()

    stage.on("/", stop_reading, early=True)
    return await stage.send(method="POST", body=b"x" * 5_000_000)


@play("http-026")
async def open_end(stage: Stage) -> Outcome:
    stage.on("/", raw(head(), b"all of it"))
    return await stage.send()


# Size.


def bomb(coding: int) -> bytes:
    """About 1 MB that inflates to 1 GB, made of one block repeated."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, coding)
    beginning = squeezer.compress(b"\0") + squeezer.flush(zlib.Z_FULL_FLUSH)
    block = squeezer.compress(bytes(16_000_000)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    return beginning + block * 64


def packed(data: bytes, coding: str) -> Handler:
    return lambda exchange: exchange.answer(200, data, [("Content-Encoding", coding)])


@play("http-030", "service_alive")
async def gzip_bomb(stage: Stage) -> Outcome:
    stage.on("/", packed(bomb(31), "gzip"))
    outcome = await stage.send()
    assert verdict(await stage.send("/ok")) == "success"
    return outcome


@play("http-031")
async def deflate_bomb(stage: Stage) -> Outcome:
    stage.on("/", packed(bomb(15), "deflate"))
    await stage.send()
    stage.on("/", packed(bomb(-15), "deflate"))
    return await stage.send()


@play("http-033")
async def nested_bomb(stage: Stage) -> Outcome:
    stage.on("/", packed(gzip.compress(bomb(31)), "gzip, gzip"))
    return await stage.send()


@play("http-035")
async def one_too_many(stage: Stage) -> Outcome:
    return await stage.send("/huge/1048577")


@play("http-036", "must_not")
async def cut_in_a_character(stage: Stage) -> None:
    for shift in range(4):
        body = b"a" * shift + "😀".encode() * (CAP // 4)
        stage.on("/", lambda exchange, body=body: exchange.answer(200, body + b"aaaa"))  # type: ignore[misc]
        answer = (await stage.send()).response
        assert answer is not None
        text = as_text(answer.body, "text/plain", truncated=answer.truncated)
        assert text is not None
        assert text.strip("a") == "😀" * (CAP // 4 - (shift > 0))


@play("http-037", "stops_reading")
async def endless(stage: Stage) -> Outcome:
    outcome = await stage.send("/huge/100000000000")
    await stage.target.wait_for(lambda: not stage.target.open)
    return outcome


@play("http-038", "must_not")
async def mislabelled(stage: Stage) -> Outcome:
    stage.on("/", packed(b"plain", "gzip"))
    return await stage.send()


# Framing.


@play("http-041")
async def bad_chunk(stage: Stage) -> Outcome:
    stage.on("/", raw(head("Transfer-Encoding: chunked") + b"5\r\nhello\r\nzz\r\nworld\r\n"))
    return await stage.send()


@play("http-042", "stored_body", "connection_reused")
async def long_body(stage: Stage) -> Outcome:
    stage.on("/", raw(head("Content-Length: 4") + b"body" + b"x" * 396))
    outcome = await stage.send()
    assert outcome.response is not None
    assert outcome.response.body == b"body"
    await stage.send("/ok")
    assert stage.target.connections == 2
    return outcome


@play("http-043", "must_not")
async def two_framings(stage: Stage) -> None:
    both = head("Content-Length: 3", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n"
    stage.on("/", raw(both + head("Content-Length: 5") + b"stray"))
    await stage.send()
    answer = (await stage.send("/ok")).response
    assert answer is not None
    assert answer.body == b"ok"


@play("http-044", "first", "second")
async def body_of_a_204(stage: Stage) -> None:
    stage.on("/", raw(head("Content-Length: 4", status="204 No Content") + b"body"))
    first, second = await stage.send(), await stage.send("/ok")
    assert (verdict(first), verdict(second)) == ("success", "success")
    assert first.response is not None
    assert (first.response.status, first.response.body) == (204, b"")
    assert second.response is not None
    assert second.response.body == b"ok"


@play("http-046")
async def head_request(stage: Stage) -> Outcome:
    stage.on("/", raw(head("Content-Length: 500")))
    return await stage.send()


@play("http-047")
async def early_hints(stage: Stage) -> Outcome:
    stage.on("/", raw(head("Link: </a>", status="103 Early Hints"), head("Content-Length: 2") + b"ok"))
    return await stage.send()


@play("http-048", "second")
async def early_hints_twice(stage: Stage) -> None:
    for body in (b"first", b"second"):
        stage.on("/", raw(head(status="103 Early Hints") + head(f"Content-Length: {len(body)}") + body))
        answer = (await stage.send()).response
        assert answer is not None
        assert answer.body == body
    assert stage.target.connections == 1


@play("http-049")
async def endless_hints(stage: Stage) -> Outcome:
    stage.on("/", drip(b"", head(status="103 Early Hints") * 3))
    return await stage.send()


@play("http-051")
async def switching(stage: Stage) -> Outcome:
    stage.on("/", raw(head("Upgrade: websocket", "Connection: Upgrade", status="101 Switching Protocols") + b"frames"))
    return await stage.send()


@play("http-052")
async def early_refusal(stage: Stage) -> Outcome:
    stage.on("/", lambda exchange: exchange.answer(403, b"no", [("Connection", "close")]), early=True)
    return await stage.send(method="POST", body=b"x" * 5_000_000)


# Text.


async def _text(stage: Stage, body: bytes, content_type: str) -> tuple[Outcome, str | None]:
    stage.on("/", lambda exchange: exchange.answer(200, body, [("Content-Type", content_type)]))
    outcome = await stage.send()
    assert outcome.response is not None
    assert outcome.response.body == body
    return outcome, as_text(outcome.response.body, outcome.response.content_type, truncated=False)


@play("http-053", "must_not")
async def latin_1(stage: Stage) -> Outcome:
    outcome, text = await _text(stage, b"21 \xb0C", "text/plain")
    assert text == "21 °C"
    return outcome


@play("http-055")
async def strange_charset(stage: Stage) -> Outcome:
    outcome, text = await _text(stage, "é".encode(), "text/html; charset=utf-8,gbk")
    assert text == "é"
    assert (await _text(stage, b"\xe9", "text/html; charset=klingon"))[1] is None
    return outcome


@play("http-056")
async def odd_utf_16(stage: Stage) -> Outcome:
    outcome, text = await _text(stage, "hé".encode("utf-16") + b"\xd8", "text/plain; charset=utf-16")
    assert text is None
    return outcome


@play("http-057", "stored")
async def nul_in_the_body(stage: Stage) -> Outcome:
    outcome, text = await _text(stage, b"a\0b", "text/plain")
    assert text is None  # so it is stored as base64
    return outcome


@play("http-058", "stored", "must_not")
async def odd_header_values(stage: Stage) -> None:
    stage.on("/", raw(head("X-A: a\x00b", "Content-Length: 0")))
    failed = await stage.send()
    assert failed.failure is not None
    assert failed.failure.kind == "protocol"
    stage.on("/", raw(head("X-A: \xe9\xff", "Content-Length: 0")))
    answer = (await stage.send()).response
    assert answer is not None
    assert ("X-A", "éÿ") in answer.headers


# Connections and heads.


@play("http-062", "retry")
async def silent_close(stage: Stage) -> Outcome:
    stage.on("/", lambda exchange: exchange.close())
    outcome = await stage.send()
    assert outcome.failure is not None
    assert not outcome.failure.permanent
    assert "no_response" not in PERMANENT_KINDS
    return outcome


@play("http-063", "requests_seen_by_server")
async def closed_while_idle(stage: Stage) -> Outcome:
    await stage.send("/ok", method="GET")
    for connection in stage.target.open:
        assert connection.transport is not None
        connection.transport.close()
    await stage.target.wait_for(lambda: not stage.target.open)
    stage.target.requests.clear()
    outcome = await stage.send("/ok", body=b"x")
    assert len(stage.target.requests) == 1
    return outcome


@play("http-064", "service_alive")
async def one_long_header(stage: Stage) -> Outcome:
    stage.on("/", lambda exchange: exchange.answer(200, b"", [("X-Long", "v" * 100_000)]))
    outcome = await stage.send()
    assert verdict(await stage.send("/ok")) == "success"
    return outcome


@play("http-065", "service_alive")
async def many_headers(stage: Stage) -> Outcome:
    outcome = await stage.send("/headers/10000")
    assert verdict(await stage.send("/ok")) == "success"
    return outcome


@play("http-066", "stored_headers")
async def repeated_headers(stage: Stage) -> Outcome:
    twice = [("Set-Cookie", "a=1"), ("X-A", "1"), ("Set-Cookie", "b=2"), ("X-A", "2")]
    stage.on("/", lambda exchange: exchange.answer(200, b"", twice))
    outcome = await stage.send()
    assert outcome.response is not None
    assert list(outcome.response.headers[:4]) == twice
    return outcome


def _header_play(case: str) -> None:
    @play(case, "outcome", "or", "must_not", "documented", "ssrf_check_uses")
    async def headers(stage: Stage) -> None:
        ((name, value),) = stage.given["header"].items()
        with pytest.raises(Invalid) as refusal:
            check_header(name, value)
        assert refusal.value.fields[0].field == "headers"
        outcome = await stage.send("/ok", headers=[(name, value)])  # as if it had been saved by an older version
        if "😀" in value:
            assert stage.target.requests[0].headers["x-a"].encode("latin-1").decode() == value
        else:
            assert outcome.failure is not None
            assert outcome.failure.kind == "invalid_request"
            assert not stage.target.requests


for _case in ("http-071", "http-073", "http-074", "http-075", "http-076", "http-077", "http-078"):
    _header_play(_case)


@play("http-080", "sent_header")
async def empty_post(stage: Stage) -> Outcome:
    outcome = await stage.send("/ok")
    assert ("Content-Length", "0") in stage.target.requests[0].raw_headers
    return outcome


@play("http-081", "sent", "or")
async def lower_case(stage: Stage) -> Outcome:
    assert check_method("get") == "GET"
    outcome = await stage.send("/ok")
    assert stage.target.requests[0].method == "GET"
    return outcome


@play("http-082", "outcome")
async def injected_method(stage: Stage) -> None:
    with pytest.raises(Invalid):
        check_method(stage.given["method"])
    failed = (await stage.send("/ok")).failure
    assert failed is not None
    assert failed.kind == "invalid_request"
    assert not stage.target.requests


# URLs.


def _refused_url(case: str) -> None:
    @play(case, "outcome", "http_status", "or", "sent_path", "sent_header", "logs_and_notifications_lack")
    async def url(stage: Stage) -> None:
        assert refused(stage.given["url"])
        outcome = await stage.outbound.send(request(stage.given["url"]))
        assert outcome.failure is not None
        assert outcome.failure.kind == "invalid_url"
        assert "p%40ss" not in outcome.failure.message


for _case in ("084", "089", "090", "093", "094", "095", "097", "098", "099", "100", "103"):
    _refused_url(f"http-{_case}")


def _accepted_url(case: str) -> None:
    @play(case, "outcome", "host_sent", "sent_path", "sent_query")
    async def url(stage: Stage) -> None:
        expect = LINES[case]["expect"]
        wire = wire_of("GET", check_url(stage.given["url"]), (), None, USER_AGENT)
        sent = {"host_sent": wire.url.host_port_subcomponent, "sent_path": wire.url.raw_path}
        sent["sent_query"] = wire.url.raw_query_string
        for word in sent.keys() & expect.keys():
            assert sent[word] == expect[word]


for _case in ("086", "087", "104", "105", "106"):
    _accepted_url(f"http-{_case}")


@play("http-092", "outcome", "sni")
async def trailing_dot(stage: Stage) -> Outcome:
    assert check_url(stage.given["url"])
    seen: list[str | None] = []
    stage.monkeypatch.setattr(resolver, "getaddrinfo", Names({"localhost.": ["127.0.0.1"]}))
    async with tls_target("good", seen) as secure:
        outcome = await stage.send(f"https://localhost.:{secure.port}/ok")
    assert seen == ["localhost"]
    return outcome


# Names.


@play("http-127", "event_loop_blocked")
async def silent_resolver(stage: Stage) -> Outcome:
    release = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        release.wait(20)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    stage.monkeypatch.setattr(resolver, "getaddrinfo", hang)
    try:
        hanging = asyncio.create_task(stage.send("http://silent.test/", timeout=0.5))
        assert verdict(await stage.send("/ok")) == "success"
        assert not hanging.done()
        return await hanging
    finally:
        release.set()


@play("http-128")
async def dead_ipv6(stage: Stage) -> Outcome:
    class NoIpv6(Outbound):
        def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
            if addr_info[0] == socket.AF_INET6:
                raise OSError(errno.ENETUNREACH, "Network is unreachable")
            return super()._open_socket(addr_info)

    stage.monkeypatch.setattr(resolver, "getaddrinfo", Names({"dual.test": ["::1", "127.0.0.1"]}))
    outbound = NoIpv6(allow=parse_allow(LOCAL), user_agent=USER_AGENT)
    await outbound.start()
    outcome = await stage.send(f"http://dual.test:{stage.target.port}/ok", outbound=outbound)
    await outbound.close()
    return outcome


@play("http-129", "connects_to", "must_not", "outcome")
async def rebinding(stage: Stage) -> None:
    names = Names({"rebind.test": [["93.184.216.34"], ["10.0.0.1"]]})
    stage.monkeypatch.setattr(resolver, "getaddrinfo", names)
    stage.monkeypatch.setattr(resolver, "DNS_CACHE_SECONDS", -1)
    outbound = stage.dialling("")
    await outbound.start()
    first, second = [await stage.send("http://rebind.test/", outbound=outbound) for _ in range(2)]
    assert outbound.dialled == ["93.184.216.34"]
    assert first.failure is not None
    assert first.failure.kind == "connection_refused"  # what stands behind the gate of this test
    assert verdict(second) == "blocked"


# TLS.


@play("http-131")
async def self_signed(stage: Stage) -> Outcome:
    async with tls_target("self-signed") as secure:
        return await stage.send(f"https://localhost:{secure.port}/ok")


@play("http-135")
async def plain_on_tls_port(stage: Stage) -> Outcome:
    stage.target.blurts = head("Content-Length: 0", "Connection: close", status="400 Bad Request")
    return await stage.send(f"https://127.0.0.1:{stage.target.port}/")


@play("http-136")
async def unverified(stage: Stage) -> Outcome:
    async with tls_target("self-signed") as secure:
        return await stage.send(f"https://localhost:{secure.port}/ok", verify_tls=False)


@play("http-137", "sni", "certificate_checked_against")
async def name_and_address(stage: Stage) -> Outcome:
    """The address that was judged is dialled; the name goes into the handshake and is what the certificate is for."""
    seen: list[str | None] = []
    stage.names(other_example="127.0.0.1", another_example="127.0.0.1")
    async with tls_target("wrong-host", seen) as secure:
        outcome = await stage.send(f"https://other.example:{secure.port}/ok")
        wrong = await stage.send(f"https://another.example:{secure.port}/ok")
    assert verdict(outcome) == "success"
    assert wrong.failure is not None
    assert wrong.failure.kind == "tls_wrong_host"
    assert seen == ["other.example", "another.example"]
    return outcome


@play("http-138")
async def verified_by_default(stage: Stage) -> Outcome | None:
    return await self_signed(stage)


# The environment.


@play("http-139", "request_goes_through_proxy", "or")
async def ambient_proxy(stage: Stage) -> Outcome:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        stage.monkeypatch.setenv(variable, stage.given["env"]["HTTPS_PROXY"])
    async with door() as outbound, tls_target("good") as secure:
        outcome = await stage.send(f"https://localhost:{secure.port}/ok", outbound=outbound)
        assert verdict(outcome) == "success"
        assert verdict(await stage.send("/ok", outbound=outbound)) == "success"
    return outcome


@play("http-141", "service_starts")
async def odd_no_proxy(stage: Stage) -> Outcome:
    stage.monkeypatch.setenv("NO_PROXY", stage.given["env"]["NO_PROXY"])
    async with door() as outbound:
        outcome = await stage.send("/ok", outbound=outbound)
        assert verdict(outcome) == "success"
    return outcome


@play("http-142", "default_user_agent")
async def user_agent(stage: Stage) -> None:
    def picky(exchange: Exchange) -> None:
        exchange.answer(200 if exchange.request.headers["user-agent"].startswith("0cron/") else 400)

    stage.on("/", picky)
    assert verdict(await stage.send()) == "success"
