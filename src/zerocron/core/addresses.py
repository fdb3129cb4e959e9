"""Which addresses 0cron may call: the rules, and nothing that dials.

The theory. Names lie, so only the address that is about to be dialled is judged, and `zerocron.outbound` does that
where the socket is made. An address is refused unless it is plainly a public unicast one; an operator (never a tenant)
lifts a refusal with an allow rule, a network with or without ports. Python's `is_private` and `is_global` are not used:
they differ between releases and call NAT64, 6to4, site-local and multicast addresses global.

Four things come before or beside the table of networks:

1. An IPv6 address that carries an IPv4 one (mapped, compatible, translated, NAT64, 6to4, Teredo) is judged with it:
   every address of the chain must be permitted. A mapped address is dialled as IPv4, so it is judged as that alone.
2. The metadata services of clouds hand out credentials. No rule allows them, however wide or exact.
3. Some ports speak protocols that can be tricked by an HTTP request. A rule must name such a port to open it.
4. What this installation itself listens on is never a target, whatever the rules allow: a job that calls its own
   scheduler can go round for ever. Only the paths that the caller leaves open (pings) may be called, and, where the
   base URL has a path, what is not below it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NoReturn
from urllib.parse import unquote

from zerocron.core.errors import Invalid
from zerocron.core.requests import split_url

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SETTING = "ZEROCRON_OUTBOUND_ALLOW"

METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Google, Azure, DigitalOcean, OpenStack and most others
        "169.254.170.2",  # AWS: credentials of a container
        "169.254.170.23",  # AWS: credentials of a pod
        "fd00:ec2::254",  # AWS over IPv6
        "fd00:ec2::23",  # AWS: credentials of a pod, IPv6
        "fd20:ce::254",  # Google over IPv6
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure's platform address, formally public
        "192.0.0.192",  # Oracle
    )
)

BLOCKED_PORTS = {
    22: "SSH",
    23: "Telnet",
    25: "SMTP",
    465: "SMTP",
    587: "SMTP",
    2375: "Docker",
    3306: "MySQL",
    5432: "PostgreSQL",
    6379: "Redis",
    9200: "Elasticsearch",
    11211: "memcached",
}

# The first match names the reason. IPv4 is refused where a line matches; IPv6 also outside of PUBLIC_V6.
_REFUSED_V4 = tuple(
    (IPv4Network(network), rule)
    for network, rule in (
        ("0.0.0.0/8", "'this network'"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignment"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_REFUSED_V6 = tuple(
    (IPv6Network(network), rule)
    for network, rule in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard-only"),
        ("2001:db8::/32", "documentation"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "protocol assignment"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local (private)"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local (private)"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_V6 = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))  # NAT64 of a public IPv4 address is that address

_MAPPED = IPv6Network("::ffff:0:0/96")
_LOW_32_BITS = tuple(IPv6Network(text) for text in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_NOT_EMBEDDING = frozenset((IPv6Address("::"), IPv6Address("::1")))


@dataclass(frozen=True, slots=True)
class AllowRule:
    """A network an operator opens; `ports` is an inclusive range, or None for every port that is not a blocked one."""

    network: Network
    ports: tuple[int, int] | None = None

    def covers(self, address: Address, port: int) -> bool:
        if address.version != self.network.version or address not in self.network:
            return False
        if self.ports is None:
            return port not in BLOCKED_PORTS
        return self.ports[0] <= port <= self.ports[1]


@dataclass(frozen=True, slots=True)
class AllowList:
    """The operator's exceptions. An empty list is the default: public addresses only."""

    rules: tuple[AllowRule, ...] = ()

    def covers(self, address: Address, port: int) -> bool:
        return any(rule.covers(address, port) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an address may not be dialled. `message` is for the owner of the job: it names an address only if he did."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class OwnEndpoint:
    """Where this installation is reached: a listener (an address as it is bound) or its base URL (by name).

    A base URL is judged by name and not by what the name resolves to: that may be a proxy or a content network which
    serves others too. With a path it is ours below that `prefix` only: the rest of the host is somebody else's then.
    `open_paths` must match the whole path behind the prefix, without the query, of what may be called nevertheless.
    """

    host: str
    port: int
    open_paths: re.Pattern[str] | None = None
    prefix: str = ""

    @classmethod
    def of_url(cls, url: str, open_paths: re.Pattern[str] | None = None) -> OwnEndpoint:
        """Raises Invalid for a URL that could not be called anyway."""
        split = split_url(url)
        prefix = _plain_path(re.split("[?#]", split.rest, maxsplit=1)[0])
        return cls(split.host.removesuffix("."), split.port or default_port(split.scheme), open_paths, prefix)

    @property
    def is_listener(self) -> bool:
        return _address(self.host) is not None

    def holds(self, path: str) -> bool:
        """Whether a server would look for this path below the prefix, however it is spelt."""
        plain = _plain_path(path)
        return plain == self.prefix or plain.startswith(self.prefix + "/")

    def opens(self, path: str) -> bool:
        if self.open_paths is None or not path.startswith(self.prefix):
            return False
        return self.open_paths.fullmatch(path, len(self.prefix)) is not None


def _plain_path(path: str) -> str:
    """As servers read it: decoded, without `//`, `.` and `..`, and without a slash at its end; the root is empty."""
    plain = posixpath.normpath("/" + unquote(path).lstrip("/"))
    return "" if plain == "/" else plain


OWN_SERVER = Refusal(
    "own server",
    "The URL leads to this 0cron server itself. It is refused by the rule 'own server', because a job that calls its "
    f"own scheduler can go round for ever; {SETTING} cannot change that.",
)


def default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def own_endpoint_named(host: str, port: int, path: str, own: Collection[OwnEndpoint]) -> OwnEndpoint | None:
    """The endpoint that a URL with this host and path names."""
    return next((it for it in own if it.port == port and it.host == host.removesuffix(".") and it.holds(path)), None)


def own_endpoint_at(
    address: str, port: int, own: Collection[OwnEndpoint], is_this_machine: Callable[[Address], bool]
) -> OwnEndpoint | None:
    """The listener that this address leads to. `is_this_machine` is asked when one listens on every address."""
    candidates = [(it, bound) for it in own if it.port == port and (bound := _address(it.host)) is not None]
    if not candidates or (dialled := _address(address)) is None:
        return None
    for link in _chain(dialled):
        for endpoint, bound in candidates:
            if link == bound or link.is_unspecified:  # to dial 0.0.0.0 or :: is to dial this machine
                return endpoint
            if bound.is_unspecified and (link.is_loopback or is_this_machine(link)):
                return endpoint
    return None


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def refusal(
    address: str, port: int, allow: AllowList, *, written: bool = False, speaks_http: bool = True
) -> Refusal | None:
    """Judge an address as the kernel will get it. None means: dial. What cannot be read is refused.

    `written`: the address stands in the URL, so the message may name it; what a resolver said stays between us.
    `speaks_http` False: what is sent is the protocol of the port itself, so no port is refused for what it speaks.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return Refusal("unreadable", "The address of the target cannot be read, so it is not called.")
    if isinstance(parsed, IPv6Address) and parsed.scope_id is not None:
        return Refusal("zone", "The address of the target has a zone, so it is not called.")
    for link in _chain(parsed):
        if found := _judge(link, port, allow, written, speaks_http):
            return found
    return None


def _judge(address: Address, port: int, allow: AllowList, written: bool, speaks_http: bool) -> Refusal | None:
    if address in METADATA:
        return Refusal(
            "metadata",
            "The target is the metadata service of a cloud, which hands out credentials: 0cron never calls it, "
            f"and {SETTING} cannot change that.",
        )
    # A rule without ports covers every port but the blocked ones: that is what port 0 asks.
    if allow.covers(address, port) or (not speaks_http and allow.covers(address, 0)):
        return None
    host = f"[{address}]" if address.version == 6 else str(address)
    if found := _refused_network(address):
        rule, network = found
        example = host if written else network
        refused = f"The target's address is refused by the rule '{rule} addresses': 0cron calls public addresses only."
        if written:
            refused = (
                f"The target's address {address} is refused by the rule '{rule} addresses': "
                "0cron calls public addresses only."
            )
        mend = f"The operator of this server can allow it by adding its network to {SETTING}."
        if example:
            mend = (
                "The operator of this server can allow it by adding its network to "
                f"{SETTING}, for example {SETTING}={example}:{port}."
            )
        return Refusal(rule, f"{refused} {mend}")
    if speaks_http and port in BLOCKED_PORTS:
        return Refusal(
            f"port {port}",
            f"Port {port} ({BLOCKED_PORTS[port]}) is refused by the rule 'ports that do not speak HTTP'. "
            f"The operator of this server can allow it by naming network and port in {SETTING}, "
            f"for example {SETTING}={host if written else '198.51.100.7'}:{port}.",
        )
    return None


def _refused_network(address: Address) -> tuple[str, str | None] | None:
    """The name of the rule that refuses an address, and its network as an allow rule would write it."""
    if isinstance(address, IPv4Address):
        return next(((rule, str(network)) for network, rule in _REFUSED_V4 if address in network), None)
    for network, rule in _REFUSED_V6:
        if address in network:
            return rule, f"[{network}]"
    return None if any(address in network for network in _PUBLIC_V6) else ("not public", None)


def _chain(address: Address) -> Iterator[Address]:
    """The address, and every IPv4 address it carries."""
    if isinstance(address, IPv4Address):
        yield address
        return
    number = int(address)
    if address in _MAPPED:
        yield IPv4Address(number & 0xFFFFFFFF)
        return
    yield address
    if address in _NOT_EMBEDDING:
        return
    if any(address in network for network in _LOW_32_BITS):
        yield IPv4Address(number & 0xFFFFFFFF)
    elif address in _LOCAL_NAT64:  # RFC 6052 with a /48: bits 48-63, eight bits of zero, bits 72-87
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | (number >> 40 & 0xFFFF))
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFFFFFF)  # the server
        yield IPv4Address(~number & 0xFFFFFFFF)  # the client, stored inverted


_RULE_V4 = re.compile(r"(?P<network>[0-9]+(?:\.[0-9]+)+(?:/[0-9]+)?)(?::(?P<ports>.*))?")
_RULE_V6 = re.compile(r"\[(?P<address>[0-9A-Fa-f:.]+)(?P<in>/[0-9]+)?\](?P<out>/[0-9]+)?(?::(?P<ports>.*))?")
_RULE_V6_BARE = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:/[0-9]+)?")


def parse_allow(text: str) -> AllowList:
    """Read a list such as "127.0.0.0/8:8000-9000, 10.0.0.0/8, [fd00::]/8:443".

    Rules are separated by commas or blanks. A rule is a network or an address, with an optional port or range of ports;
    IPv6 takes brackets when ports follow, with the length of the prefix inside or behind them.
    """
    return AllowList(tuple(_parse_rule(item) for item in re.split(r"[,\s]+", text) if item))


def _parse_rule(item: str) -> AllowRule:
    if match := _RULE_V4.fullmatch(item):
        return AllowRule(_network(item, match["network"]), _ports(item, match["ports"]))
    if match := _RULE_V6.fullmatch(item):
        if match["in"] and match["out"]:
            _refuse_rule(item, "it has two prefix lengths")
        network = match["address"] + (match["in"] or match["out"] or "")
        return AllowRule(_network(item, network), _ports(item, match["ports"]))
    if _RULE_V6_BARE.fullmatch(item):
        return AllowRule(_network(item, item))
    _refuse_rule(item, "it is neither a network nor a network with ports")


def _network(item: str, text: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        if "has host bits set" in str(error):
            _refuse_rule(item, f"the network would be {ip_network(text, strict=False)}")
        _refuse_rule(item, "the network cannot be read")
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        _refuse_rule(item, "write an IPv4-mapped network as IPv4")
    return network


def _ports(item: str, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?", text):
        _refuse_rule(item, "ports are a number or a range such as 8000-9000")
    low, _, high = text.partition("-")
    first, last = int(low), int(high or low)
    if not 1 <= first <= last <= 65535:
        _refuse_rule(item, "ports go from 1 to 65535, the smaller first")
    return first, last


def _refuse_rule(item: str, reason: str) -> NoReturn:
    raise Invalid(
        f"{SETTING}: '{item}' is not a rule: {reason}. "
        "Write rules such as 10.0.0.0/8, 127.0.0.0/8:8000-9000 or [fd00::]/8:443, separated by commas."
    )
