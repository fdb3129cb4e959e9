"""What may be saved as a URL, a method or a header."""

from __future__ import annotations

import pytest

from zerocron.core.errors import Invalid
from zerocron.core.requests import split_url
from zerocron.outbound import check_header, check_method, check_url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://example.com/",
        "HTTPS://Example.COM/Path",
        "https://example.com./x",
        "https://example.com:8443/x?y=z&b=%26#fragment",
        "https://foo_bar.s3.amazonaws.com/x",
        "http://redis/",
        "http://10.example.com/",
        "http://example.com?query",
        "http://xn--bcher-kva.example/",
        "http://1.2.3.4.example/",
        "http://0x7f.example/",
        "http://127.0.0.1:8000/",
        "http://[::1]:8000/x",
        "http://[2001:db8::1]/",
        "https://example.com/${secrets.K}?t={x}",
        "https://example.com/é?ü",
        "http://" + "a" * 63 + ".example/",
        "http://example.com/" + "a" * 1981,
    ],
)
def test_an_acceptable_url_is_kept_as_it_is(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example:8443/Ä?x", "https://xn--bcher-kva.example:8443/Ä?x"),
        ("http://例え.jp/x", "http://xn--r8jz45g.jp/x"),
        ("http://straße.de/", "http://xn--strae-oqa.de/"),
        ("http://foo。example/", "http://foo.example/"),
    ],
)
def test_an_international_name_is_kept_in_its_ascii_form(url: str, kept: str) -> None:
    assert check_url(url) == kept
    assert check_url(kept) == kept


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/x",
        "http://",
        "http:///x",
        "http:/127.0.0.1/",
        "http:127.0.0.1/",
        "htp://example.com",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "ws://example.com/",
        " http://example.com/",
        "http://example.com/ ",
        "http://example.com/a b",
        "http://example.com/a\tb",
        "http://example.com/a\nb",
        "http://example.com/a\r\nX: y",
        "http://example.com/\x00",
        "http://example.com/\x7f",
        "http://example.com/\u2028",
        "http://example.com/\u00a0",
        "http://example.com/\ud800",
        "http://exam\u200bple.com/",
        "http://127.0.0.1\\@public.example/",
        "http:\\\\example.com",
        "http://user@example.com/",
        "http://a:b@example.com/",
        "http://@[::1]/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:99999/",
        "http://example.com:/",
        "http://example.com:80:80/",
        "http://example.com:８０/",
        "http://example.com:-1/",
        "http://example.com:+80/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0x/",
        "http://017700000001/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0177.1/",
        "http://127.000.000.001/",
        "http://127.0.0.1./",
        "http://127.0.0.256/",
        "http://1.2.3.4.5/",
        "http://example.123/",
        "http://①②⑦.⓪.⓪.①/",
        "http://１２７.０.０.１/",
        "http://127。0。0。1/",
        "http://١٢٧.0.0.1/",
        "http://[::1%lo]/",
        "http://[::1%25lo]/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://::1/",
        "http://[]/",
        "http://[v1.x]/",
        "http://[127.0.0.1]/",
        "http://[::1]x/",
        "http://℅/",
        "http://℅.example/",
        "http://127.0.0.1%00.public.example/",
        "http://exa%6dple.com/",
        "http://example..com/",
        "http://.example.com/",
        "http://example.com../",
        "http://./",
        "http://exa$mple.com/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://example.com/" + "a" * 1982,
        "http://" + "ü" * 64 + ".example/",
    ],
)
def test_a_url_that_parsers_could_disagree_on_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_url(url)
    assert [fault.field for fault in refused.value.fields] == ["url"]
    assert refused.value.message.endswith(".")


def test_the_host_that_will_be_dialled() -> None:
    split = split_url("HTTP://EXAMPLE.com:80/X?Y")
    assert (split.scheme, split.host, split.port, split.rest, split.literal) == (
        "http",
        "example.com",
        80,
        "/X?Y",
        False,
    )
    assert split_url("http://[::FFFF:127.0.0.1]/").host.startswith("::ffff:")
    assert split_url("http://127.0.0.1/").literal


@pytest.mark.parametrize(
    ("method", "kept"), [("GET", "GET"), ("get", "GET"), ("Purge", "PURGE"), ("M-SEARCH", "M-SEARCH")]
)
def test_a_method(method: str, kept: str) -> None:
    assert check_method(method) == kept


@pytest.mark.parametrize("method", ["", "GET ", "G E T", "GET / HTTP/1.1\r\nX: ", "GÉT", "CONNECT", "trace", "A" * 33])
def test_a_method_that_is_refused(method: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_method(method)
    assert refused.value.fields[0].field == "method"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer ${secrets.TOKEN}"),
        ("x-a", ""),
        ("X-Name", "Zoë"),
        ("Content-Type", "application/json; charset=utf-8"),
        ("Accept", "*/*"),
        ("!#$%&'*+-.^_`|~", "odd but a token"),
        ("Cookie", "a=b"),
        ("User-Agent", "mine"),
        ("Webhook", "not a prefix"),
        ("X-A", "v" * 8192),
    ],
)
def test_a_header(name: str, value: str) -> None:
    check_header(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", "v"),
        ("Bad Name", "v"),
        ("X-A:", "v"),
        ("X-Ä", "v"),
        ("X-A\r\nX-B", "v"),
        ("X-A", "line\nbreak"),
        ("X-A", "line\r\nbreak"),
        ("X-A", "nul\x00"),
        ("X-A", "bell\x07"),
        ("X-A", "tab\there"),
        ("X-A", "c1\x85"),
        ("X-A", "emoji 😀"),
        ("X-A", "v" * 8193),
        ("N" * 257, "v"),
        *(
            (name, "v")
            for name in (
                "Host",
                "host",
                "Content-Length",
                "Transfer-Encoding",
                "Connection",
                "Keep-Alive",
                "Upgrade",
                "TE",
                "Trailer",
                "Expect",
                "Proxy-Authorization",
                "proxy-connection",
                "X-0cron-Run-Id",
                "x-0CRON-anything",
                "webhook-id",
                "Webhook-Signature",
                "Idempotency-Key",
            )
        ),
    ],
)
def test_a_header_that_is_refused(name: str, value: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_header(name, value)
    assert refused.value.fields[0].field == "headers"
