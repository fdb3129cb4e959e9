"""Bodies are read up to a cap, on the wire and decoded, whatever the target makes of it."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from tests.outbound.helpers import request, response_of
from tests.support.target import Exchange, Target, gzip_bomb

from zerocron.core.bodies import Body, as_text
from zerocron.outbound import Outbound

CAP = 1_048_576


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


def read(data: bytes, coding: str | None, *, cap: int = CAP, step: int = 1000) -> tuple[Body, bool]:
    """Feed in steps; the second is whether the end was reached."""
    body = Body(coding, cap)
    for start in range(0, len(data), step):
        if not body.feed(data[start : start + step]):
            return body, False
    body.end()
    return body, True


def gzipped(data: bytes) -> bytes:
    """The same at any time, because it is a part of the names of tests, and workers must agree on those."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        (None, b"hello"),
        ("identity", b"hello"),
        ("gzip", gzipped(b"hello")),
        ("X-GZIP", gzipped(b"hello")),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", raw_deflate(b"hello")),
        ("deflate, gzip", gzipped(zlib.compress(b"hello"))),
        ("gzip,gzip", gzipped(gzipped(b"hello"))),
        ("gzip", gzipped(b"he") + gzipped(b"llo")),
        ("gzip", gzipped(b"hello") + b"\x00\x00padding"),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_body_is_decoded(coding: str | None, packed: bytes, step: int) -> None:
    body, ended = read(packed, coding, step=step)
    assert ended
    assert (body.content, body.truncated, body.decode_error) == (b"hello", False, None)
    assert body.wire_bytes == len(packed)


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, br", "gzip, gzip, gzip, gzip", "klingon"])
def test_a_coding_we_do_not_know_is_left_alone(coding: str) -> None:
    body, _ = read(b"as it came", coding)
    assert (body.content, body.decode_error) == (b"as it came", None)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, deflate"])
@pytest.mark.parametrize("step", [1, 1000])
def test_a_wrong_label_does_not_cost_the_body(coding: str, step: int) -> None:
    body, ended = read(b"plain text, really", coding, step=step)
    assert ended
    assert body.content == b"plain text, really"
    assert body.decode_error is not None


def test_data_that_breaks_is_kept_up_to_there() -> None:
    packed = bytearray(gzip.compress(b"".join(b"%d," % n for n in range(100_000))))
    packed[len(packed) // 2] ^= 0xFF
    body, _ = read(bytes(packed), "gzip")
    assert body.content.startswith(b"0,1,2,")
    assert body.truncated
    assert body.decode_error is not None


def test_data_that_ends_early_is_kept_up_to_there() -> None:
    packed = gzip.compress(b"".join(b"%d," % n for n in range(10_000)))
    body, _ = read(packed[: len(packed) // 2], "gzip")
    assert body.content.startswith(b"0,1,2,")
    assert body.decode_error is not None
    assert "ends early" in body.decode_error


def test_an_empty_body_is_no_damaged_one() -> None:
    body, _ = read(b"", "gzip")
    assert (body.content, body.decode_error, body.truncated) == (b"", None, False)


@pytest.mark.parametrize(("size", "kept", "truncated"), [(99, 99, False), (100, 100, False), (101, 100, True)])
@pytest.mark.parametrize("coding", [None, "gzip"])
def test_the_cap_is_exact(size: int, kept: int, truncated: bool, coding: str | None) -> None:
    data = b"x" * size
    body, ended = read(gzip.compress(data) if coding else data, coding, cap=100, step=7)
    assert (len(body.content), body.truncated, ended) == (kept, truncated, not truncated)


def bombs() -> Iterator[tuple[str, str, bytes]]:
    zeros = bytes(20_000_000)
    yield "gzip", "gzip", gzip.compress(zeros)
    yield "deflate", "deflate", zlib.compress(zeros)
    yield "raw deflate", "deflate", raw_deflate(zeros)
    yield "nested", "gzip, gzip", gzip.compress(gzip.compress(zeros))
    yield "thrice", "gzip, gzip, gzip", gzip.compress(gzip.compress(gzip.compress(zeros)))


@pytest.mark.parametrize(("coding", "packed"), [pytest.param(*rest, id=name) for name, *rest in bombs()])
def test_a_bomb_stops_at_the_cap_and_uses_no_memory(coding: str, packed: bytes) -> None:
    tracemalloc.start()
    try:
        body, ended = read(packed, coding, step=65536)
        assert (len(body.content), body.truncated, ended) == (CAP, True, False)
        del body
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * CAP


def test_a_million_empty_members_are_not_worked_through() -> None:
    body, _ = read(gzip.compress(b"") * 50_000, "gzip", step=65536)
    assert body.decode_error is not None


def test_an_inner_bomb_that_decodes_to_nothing_stops_too() -> None:
    inner = gzip.compress(b"") * 100_000  # 2 MB of nothing
    body, ended = read(gzip.compress(inner), "gzip, gzip")
    assert not ended or body.decode_error is not None


def test_an_inner_stage_is_capped_although_nothing_comes_out_of_it() -> None:
    body, ended = read(gzip.compress(gzip.compress(b"") + bytes(2 * CAP)), "gzip, gzip")
    assert (body.content, body.truncated, ended) == (b"", True, False)


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode(), "text/plain; charset=iso-8859-1", "é"),  # valid UTF-8 is hardly ever anything else
        (b"\xe9", "text/plain; charset=iso-8859-1", "é"),
        (b"\xe9", 'Application/JSON; Charset="ISO-8859-1"', "é"),
        (b"\x80", "text/plain", "€"),
        (b"\x80", "application/octet-stream", None),
        (b"\x80\x01", "text/plain", None),
        (b"a\0b", "text/plain", None),
        ("é".encode("utf-16"), "text/plain; charset=utf-16", "é"),
        ("a".encode("utf-16"), "text/plain", None),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本"),
        ("中".encode("gbk"), "text/html; charset=gbk", "中"),
        (b"\xe9", "text/plain; charset=punycode", None),
        (b"\xe9", "text/plain; charset=unicode_escape", None),
        (b"\xe9", "text/plain; charset=hex", None),
        (b"", None, ""),
    ],
)
def test_a_body_as_text(content: bytes, content_type: str | None, text: str | None) -> None:
    assert as_text(content, content_type, truncated=False) == text


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "gb18030"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_half_a_character_at_the_cut_is_left_out(charset: str, cut: int) -> None:
    content = "ab😀".encode(charset)[:-cut]
    content_type = f"text/plain; charset={charset}"
    assert as_text(content, content_type, truncated=True) == "ab"
    assert as_text(content, content_type, truncated=False) is None


async def test_a_body_beyond_the_cap_is_cut_and_not_drained(outbound: Outbound, target: Target) -> None:
    answer = response_of(await outbound.send(request(target.url + "/huge/1000000000")))
    assert (answer.status, len(answer.body), answer.truncated) == (200, CAP, True)
    assert CAP < answer.body_bytes < 4 * CAP
    await target.wait_for(lambda: not target.open)


@pytest.mark.parametrize(("size", "truncated"), [(CAP, False), (CAP + 1, True)])
async def test_the_cap_on_the_wire_is_exact(outbound: Outbound, target: Target, size: int, truncated: bool) -> None:
    answer = response_of(await outbound.send(request(f"{target.url}/huge/{size}")))
    assert (len(answer.body), answer.truncated) == (CAP, truncated)


async def test_endless_chunks(outbound: Outbound, target: Target) -> None:
    def chunks(exchange: Exchange) -> None:
        exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        more(exchange)

    def more(exchange: Exchange) -> None:
        exchange.raw(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        exchange.later(0, lambda: more(exchange))

    target.on("/endless", chunks)
    answer = response_of(await outbound.send(request(target.url + "/endless")))
    assert (len(answer.body), answer.truncated) == (CAP, True)


async def test_a_gzip_bomb_over_the_wire(outbound: Outbound, target: Target) -> None:
    """200 kB that become 200 MB: the cap is kept, and not more than 8 MB are used on the way."""
    gzip_bomb()
    tracemalloc.start()
    try:
        answer = response_of(await outbound.send(request(target.url + "/gzip-bomb")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(answer.body), answer.truncated) == (CAP, True)
    assert answer.body_bytes < 300_000
    assert peak < 8 * CAP


async def test_a_compressed_answer_is_kept_decoded(outbound: Outbound, target: Target) -> None:
    packed = gzip.compress(b"hello " * 1000)
    target.on("/packed", lambda exchange: exchange.answer(200, packed, [("Content-Encoding", "gzip")]))
    answer = response_of(await outbound.send(request(target.url + "/packed")))
    assert (answer.body, answer.body_bytes, answer.truncated) == (b"hello " * 1000, len(packed), False)


async def test_a_mislabelled_answer_keeps_its_status(outbound: Outbound, target: Target) -> None:
    target.on("/wrong", lambda exchange: exchange.answer(200, b"plain", [("Content-Encoding", "gzip")]))
    answer = response_of(await outbound.send(request(target.url + "/wrong")))
    assert (answer.status, answer.body) == (200, b"plain")
    assert answer.decode_error is not None
