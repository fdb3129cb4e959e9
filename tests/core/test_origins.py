"""Which requests may act with a browser's cookies (D 49)."""

from __future__ import annotations

import pytest

from zerocron.core.origins import is_same_origin

HOST = "cron.example.com:8443"
BASE = "https://0cron.example.org/cron"


def may(
    method: str = "POST",
    *,
    site: str | None = None,
    origin: str | None = None,
    host: str | None = HOST,
    own: tuple[str, ...] = (BASE,),
) -> bool:
    return is_same_origin(method, sec_fetch_site=site, origin=origin, host=host, own_origins=own)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_only_reads_may_come_from_anywhere(method: str) -> None:
    assert may(method)
    assert may(method, site="cross-site", origin="https://evil.example")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "get"])
def test_who_changes_something_says_where_the_request_comes_from(method: str) -> None:
    assert may(method, site="same-origin")
    assert not may(method)
    for site in ("cross-site", "same-site", "none", "", "Same-Origin"):
        assert not may(method, site=site)
        assert not may(method, site=site, origin=f"https://{HOST}"), "the browser's word about the site comes first"


@pytest.mark.parametrize(
    "origin",
    [
        f"https://{HOST}",
        f"http://{HOST}",
        f"https://{HOST.upper()}",
        "https://0cron.example.org",
        "https://0cron.example.org:443",
    ],
)
def test_without_that_word_the_origin_has_to_be_ours(origin: str) -> None:
    assert may(origin=origin)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "https://cron.example.com",
        "https://cron.example.com:8444",
        f"https://{HOST}.evil.example",
        f"https://evil.example/{HOST}",
        f"https://evil.example@{HOST}",
        f"https://sub.{HOST}",
        f"ftp://{HOST}",
        HOST,
        "http://0cron.example.org",
        "https://0cron.example.org:8443",
        "https://[::1",
        "https://cron.example.com:port",
    ],
)
def test_every_other_origin_is_a_stranger(origin: str) -> None:
    assert not may(origin=origin)


def test_without_a_host_nothing_is_ours_but_what_is_known() -> None:
    assert not may(origin=f"https://{HOST}", host=None)
    assert not may(origin="http://None", host=None)
    assert may(origin="https://0cron.example.org", host=None)
    assert not may(origin="https://0cron.example.org", host=HOST, own=())


def test_the_default_port_is_the_same_as_none() -> None:
    assert may(origin="https://a.example", host="a.example:443", own=())
    assert may(origin="http://a.example:80", host="a.example", own=())
    assert not may(origin="https://a.example", host="a.example:80", own=())
    assert may(origin="http://[::1]:8000", host="[::1]:8000", own=())
