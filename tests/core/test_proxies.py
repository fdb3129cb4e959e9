"""What is believed of forwarded headers, and from whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerocron.core.errors import Invalid
from zerocron.core.proxies import HOPS_MAX, Origin, origin_of, parse_proxies

PROXY, OTHER_PROXY, CLIENT, FORGED = "10.0.0.1", "10.0.0.2", "203.0.113.7", "198.51.100.9"
TRUSTED = parse_proxies("10.0.0.0/24, fd00::/64")


def forwarded(*values: str, proto: str | None = None) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in values]
    return headers if proto is None else [*headers, (b"x-forwarded-proto", proto.encode("latin-1"))]


@pytest.mark.parametrize(
    ("peer", "values", "address"),
    [
        (PROXY, (), PROXY),
        (PROXY, (CLIENT,), CLIENT),
        (PROXY, (f"{FORGED}, {CLIENT}",), CLIENT),
        (PROXY, (f"{FORGED}, {CLIENT}, {OTHER_PROXY}",), CLIENT),
        (PROXY, (FORGED, CLIENT), CLIENT),
        (PROXY, (f"{FORGED},{CLIENT}", OTHER_PROXY), CLIENT),
        (PROXY, (OTHER_PROXY,), OTHER_PROXY),
        (PROXY, (f"{FORGED}, unknown, {OTHER_PROXY}",), OTHER_PROXY),
        (PROXY, (f"{FORGED}, ",), PROXY),
        (PROXY, (f"{CLIENT}:52110",), CLIENT),
        (PROXY, ("[2001:db8::7]:443",), "2001:db8::7"),
        (PROXY, ("2001:DB8:0::7",), "2001:db8::7"),
        (PROXY, (f"::ffff:{CLIENT}",), CLIENT),
        (PROXY, ("fe80::1%eth0",), "fe80::1"),
        ("fd00::1", (CLIENT,), CLIENT),
        ("::ffff:10.0.0.1", (CLIENT,), CLIENT),
        (CLIENT, (FORGED,), CLIENT),
        (CLIENT, (f"{FORGED}, {PROXY}",), CLIENT),
        ("", (FORGED,), ""),
        (PROXY, ("\xff",), PROXY),
    ],
)
def test_the_client_is_the_last_address_that_no_trusted_proxy_has(
    peer: str, values: tuple[str, ...], address: str
) -> None:
    assert origin_of(peer, forwarded(*values), TRUSTED).address == address


@pytest.mark.parametrize(
    ("proto", "scheme"),
    [("https", "https"), ("HTTP", "http"), ("http, https", "https"), ("javascript", None), ("", None), (None, None)],
)
def test_the_scheme_is_what_the_nearest_proxy_says(proto: str | None, scheme: str | None) -> None:
    assert origin_of(PROXY, forwarded(CLIENT, proto=proto), TRUSTED) == Origin(CLIENT, scheme, is_trusted=True)
    assert origin_of(CLIENT, forwarded(FORGED, proto=proto), TRUSTED) == Origin(CLIENT)


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=30), max_size=5), st.booleans())
def test_what_a_client_writes_never_counts_beyond_what_the_proxy_added(claims: list[str], is_split: bool) -> None:
    """Whatever stands to the left, the client is the address that the trusted proxy saw."""
    values = [*claims, CLIENT] if is_split else [", ".join([*claims, CLIENT])]
    assert origin_of(PROXY, forwarded(*values), TRUSTED).address == CLIENT
    assert origin_of(CLIENT, forwarded(*values), TRUSTED).address == CLIENT


def test_a_list_without_an_end_is_read_up_to_a_bound() -> None:
    long = ",".join([CLIENT] + [OTHER_PROXY] * 10 * HOPS_MAX)
    assert origin_of(PROXY, forwarded(long), TRUSTED).address == OTHER_PROXY
    assert origin_of(PROXY, forwarded(*long.split(",")), TRUSTED).address == OTHER_PROXY


@pytest.mark.parametrize("text", ["10.0.0.1/24", "proxy.example.com", "0.0.0.0/0", "::/0", "10.0.0.0/33"])
def test_networks_that_are_none_or_everybody_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="ZEROCRON_TRUSTED_PROXIES"):
        parse_proxies(text)


def test_addresses_and_networks_are_read() -> None:
    assert not parse_proxies("")
    assert parse_proxies("127.0.0.1, ::1,").has("127.0.0.1")
    assert not parse_proxies("127.0.0.1").has("127.0.0.2")
