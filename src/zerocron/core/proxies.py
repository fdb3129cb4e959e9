"""Who a request really comes from, where proxies stand in between.

Owns what is believed of `X-Forwarded-For` and `X-Forwarded-Proto`. Anybody can send them: they count only as far as
they were written by a proxy that the operator trusts. Each proxy adds the address that it saw at the right, so the
list is read from there: past every trusted proxy, up to the first address that is none of them. That one is the client,
whatever it claims further left. `Forwarded` (RFC 7239) is not read: two headers that may disagree are one too many, and
proxies that write it write these as well. Must never do I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from zerocron.core.errors import Invalid

SETTING = "ZEROCRON_TRUSTED_PROXIES"
HOPS_MAX = 50
"""Of a list of forwarded addresses so many are looked at, from the right."""

Header = tuple[bytes, bytes]
"""Name in lower case, and value, as ASGI has them."""

FORWARDED_FOR = b"x-forwarded-for"
FORWARDED_PROTO = b"x-forwarded-proto"


@dataclass(frozen=True, slots=True)
class Origin:
    """`scheme` None: as the connection has it. `is_trusted`: the connection is a trusted proxy's."""

    address: str
    scheme: str | None = None
    is_trusted: bool = False


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The networks whose proxies are believed."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.networks)

    def has(self, address: str) -> bool:
        found = _address(address)
        return found is not None and any(found in network for network in self.networks)


def parse_proxies(text: str) -> TrustedProxies:
    """Networks or addresses, separated by commas. Raises Invalid."""
    networks = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ip_network(item))
        except ValueError as error:
            raise Invalid(f"{SETTING}: {item!r} is no network: {error}.", field=SETTING) from None
        if networks[-1].prefixlen == 0:
            raise Invalid(
                f"{SETTING}: {item} is everybody, and everybody can forge these headers. Name your proxies.",
                field=SETTING,
            )
    return TrustedProxies(tuple(networks))


def origin_of(peer: str, headers: Iterable[Header], trusted: TrustedProxies) -> Origin:
    """Where a request comes from that arrived on a connection from `peer`."""
    if not trusted.has(peer):
        return Origin(peer)
    forwarded_for: list[bytes] = []
    proto = b""
    for name, value in headers:
        if name == FORWARDED_FOR:
            forwarded_for.append(value)
        elif name == FORWARDED_PROTO:
            proto = value
    address = peer
    for hop in _from_the_right(forwarded_for):
        found = _address(hop)
        if found is None:
            break  # who wrote this is believed, but has not said from whom it came
        address = str(found)
        if not trusted.has(address):
            break
    scheme = proto.rpartition(b",")[2].strip().lower().decode("latin-1")
    return Origin(address, scheme if scheme in ("http", "https") else None, is_trusted=True)


def _from_the_right(values: Sequence[bytes]) -> Iterator[str]:
    """The last of several headers was written last."""
    left = HOPS_MAX
    for value in reversed(values):
        for hop in reversed(value.rsplit(b",", left)[-left:]):
            if left == 0:
                return
            left -= 1
            yield hop.strip().decode("latin-1")


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, also with a port, as some proxies write it; one form for each. None for what is none."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            found = IPv6Address(int(found))
        return found.ipv4_mapped or found
    return found
