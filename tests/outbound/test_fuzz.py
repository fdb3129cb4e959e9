"""Whatever is written into a URL, nothing is dialled outside of the rules; whatever is written into a request, it is
one request; whatever is answered, it ends well; however a request ends, its connection goes back."""

from __future__ import annotations

import asyncio
import random
from ipaddress import ip_address, ip_network

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.outbound.helpers import LOCAL, USER_AGENT, Dialling, Names, request, response_of
from tests.support.target import Exchange, Target

from zerocron.core.errors import Invalid
from zerocron.core.exchange import ERROR_KINDS
from zerocron.outbound import Outbound, parse_allow, resolver
from zerocron.outbound.protocol import WRITE_BYTES
from zerocron.outbound.wire import wire_of

# Written down once more, on purpose: the test must not borrow the list that it tests.
INSIDE = [
    ip_network(text)
    for text in """0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 168.63.129.16/32 ::/64 ::ffff:0:0:0/96
    64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10
    ff00::/8""".split()  # noqa: SIM905  a table of networks
]

INSIDE_IPV4 = st.sampled_from([network for network in INSIDE if network.version == 4]).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(ip_address)
)
IPV4 = st.one_of(INSIDE_IPV4, st.integers(0, 2**32 - 1).map(ip_address))
IPV6 = st.one_of(
    st.integers(0, 2**128 - 1).map(lambda number: ip_address(number | 1 << 127)),
    st.integers(0, 2**128 - 1).map(lambda number: ip_address(0x2 << 124 | number >> 4)),
    IPV4.map(lambda address: ip_address(f"::ffff:{address}")),
    IPV4.map(lambda address: ip_address(f"64:ff9b::{address}")),
    IPV4.map(lambda address: ip_address(f"::{address}")),
    IPV4.map(lambda address: ip_address(0x2002 << 112 | int(address) << 80)),
    st.sampled_from(["::", "::1", "fd00:ec2::254", "fe80::1", "2606:4700::1111"]).map(ip_address),
)
SPELLINGS = st.one_of(
    IPV4.map(str),
    IPV4.map(lambda address: str(int(address))),
    IPV4.map(lambda address: hex(int(address))),
    IPV4.map(lambda address: ".".join(f"0{int(part):o}" for part in str(address).split("."))),
    IPV4.map(lambda address: str(address).translate(str.maketrans("0123456789.", "０１２３４５６７８９。"))),
    IPV6.map(lambda address: f"[{address}]"),
    IPV6.map(lambda address: f"[{address.exploded}]"),
    st.sampled_from(["name.test", "localhost", "LOCALHOST.", "name。test", "ⓝame.test", "metadata"]),
    st.text(max_size=20),
)
URLS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "http:/", "//", "", "http:\\\\", "http://x@", "ftp://"]),
    SPELLINGS,
    st.sampled_from(["", ".", "%00", "\t", "#@10.0.0.1", "@10.0.0.1", "\\@public.example"]),
    st.sampled_from(["", ":80", ":8080", ":0", ":", ":6379"]),
    st.sampled_from(["", "/", "/x?y", "?@127.0.0.1/", "#@127.0.0.1"]),
)


@settings(max_examples=250, deadline=None)
@given(URLS, st.lists(st.one_of(IPV4, IPV6).map(str), min_size=1, max_size=4))
def test_no_url_whatsoever_leads_inside(url: str, answers: list[str]) -> None:
    """The resolver answers every name with whatever it likes, too."""

    async def dialled() -> list[str]:
        outbound = Dialling(allow=parse_allow(""), user_agent=USER_AGENT)
        outbound.dialled = []
        await outbound.start()
        outcome = await outbound.send(request(url, redirects=5))
        await outbound.close()
        assert outcome.failure is not None
        return outbound.dialled

    class Everything(dict[str, list[str]]):
        def get(self, _host: str, _default: object = None) -> list[str]:
            return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolver, "getaddrinfo", Names(Everything()))
        for text in asyncio.run(dialled()):
            address = ip_address(text)
            embedded = getattr(address, "ipv4_mapped", None)
            if embedded is None and address.version == 6 and address in ip_network("64:ff9b::/96"):
                embedded = ip_address(int(address) & 0xFFFFFFFF)
            judged = embedded or address
            assert not any(judged.version == network.version and judged in network for network in INSIDE), text


NAMES = st.one_of(
    st.sampled_from(["X-A", "x-a", "Accept"]), st.sampled_from(["", "a b", "x:", "X\r\nY"]), st.text(max_size=4)
)
TEXT = st.one_of(
    st.text(max_size=8), st.sampled_from(["x\r\nX: y", "x\n y", "x\ry", "\t", "\0", "\x85", "\u2028", "\ud800"])
)


class Heard:
    """What a parser of somebody else's makes of a request."""

    def __init__(self, said: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.messages = 0
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(said)
        self.method = parser.get_method()

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.messages += 1


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(["GET", "post", "DELETE", "GET / HTTP/1.1\r\nX:", "G\n"]),
    st.sampled_from(["", "a?b=c#d", "é"]) | TEXT,
    st.lists(st.tuples(NAMES, TEXT), max_size=3),
    st.none() | st.binary(max_size=8),
)
def test_whatever_is_asked_is_one_request_that_says_so(
    method: str, path: str, headers: list[tuple[str, str]], body: bytes | None
) -> None:
    try:
        wire = wire_of(method, f"http://name.test/{path}", headers, body, USER_AGENT)
    except Invalid:
        return
    heard = Heard(wire.head + wire.body)
    assert (heard.messages, heard.method, heard.body) == (1, method.upper().encode(), body or b"")
    given_headers = [(name.encode(), value.strip(" \t").encode()) for name, value in headers]
    ours = [
        (b"Host", b"name.test"),
        (b"User-Agent", USER_AGENT.encode()),
        (b"Content-Length", b"%d" % len(body or b"")),
    ]
    assert [(name, value.strip(b" \t")) for name, value in heard.headers if (name, value) not in ours] == [
        header for header in given_headers if header not in ours
    ]


ENDS = (
    "/ok",
    "/status/204",
    "/huge/3000000",
    "/slow/0.02",
    "/hang",
    "/drip",
    "/reset",
    "/truncated",
    "/early",
    "/switch",
)


@pytest.mark.parametrize("seed", range(2))
async def test_however_a_request_ends_its_connection_goes_back(target: Target, seed: int) -> None:
    """Cancelled at any moment, too, and with more requests than there are connections."""
    chance = random.Random(seed)
    target.on("/early", lambda exchange: exchange.answer(403, b"no", [("Connection", "close")]), early=True)
    target.on("/switch", lambda exchange: exchange.raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"))
    outbound = Outbound(allow=parse_allow(LOCAL), user_agent=USER_AGENT, connections_max=5)
    await outbound.start()
    loop = asyncio.get_running_loop()

    async def one() -> None:
        body = chance.choice([None, b"", b"x" * WRITE_BYTES, b"x" * 500_000])
        asked = request(
            target.url + chance.choice(ENDS),
            method=chance.choice(["GET", "HEAD"]) if body is None else "POST",
            body=body,
            timeout=chance.choice([0.02, 0.2]),
        )
        sending = asyncio.create_task(outbound.send(asked))
        if chance.random() < 0.3:
            loop.call_later(chance.random() * 0.03, sending.cancel)
        await asyncio.wait([sending])
        assert sending.cancelled() or sending.exception() is None

    for _ in range(10):
        await asyncio.gather(*(one() for _ in range(8)))
    pool = outbound._pool
    assert pool is not None
    assert not pool._acquired
    assert not pool._waiters
    assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"
    await outbound.close()


LINES = (
    *("HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 103 Hint\r\n", "HTTP/1.1 204 No", "HTTP/9 "),
    *("HTTP/1.1 101 Switch", "HTTP/1.1 302 Found\r\nLocation: /x", "Location: //", "Location: \xff"),
    *("Content-Length: 5", "Content-Length: 99", "Content-Length: -1", "Transfer-Encoding: chunked"),
    *("Content-Encoding: gzip", "Connection: close", "Content-Type: text/plain; charset=\xfe", "X", "", "\r\n"),
    *("5\r\nhello", "0\r\n", "zz"),
)
PIECES = (*(f"{line}\r\n".encode("latin-1") for line in LINES), b"hello", b"\x1f\x8b\x08\x00", b"\0", b"\n")


@pytest.mark.parametrize("seed", range(8))
async def test_no_answer_whatsoever_does_harm(outbound: Outbound, target: Target, seed: int) -> None:
    """Random bytes and random framing, cut at random places: every request ends in time with an outcome that has a
    kind, and the next one gets its own answer.
    """
    chance = random.Random(seed)

    def babble(exchange: Exchange) -> None:
        said = b"".join(
            chance.choice(PIECES) if chance.random() < 0.9 else chance.randbytes(chance.randrange(40))
            for _ in range(chance.randrange(1, 14))
        )
        if chance.random() < 0.6:
            said = b"HTTP/1.1 200 OK\r\n" + said
        cut = chance.randrange(len(said) + 1)
        exchange.raw(said[:cut])
        end = chance.choice([exchange.close, exchange.reset, None])

        def finish() -> None:
            exchange.raw(said[cut:])
            if end is not None:
                end()

        exchange.later(0.001, finish)

    target.on("/x", babble)
    for _ in range(40):
        outcome = await outbound.send(request(target.url + "/x", timeout=0.1, redirects=chance.choice([0, 0, 5])))
        assert outcome.timings.total < 1_500
        if outcome.failure is not None:
            assert outcome.failure.kind in ERROR_KINDS
            assert outcome.failure.kind not in ("internal", "invalid_request", "local_resources")
        assert response_of(await outbound.send(request(target.url + "/ok"))).body == b"ok"
