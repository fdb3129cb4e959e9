"""What a user may ask 0cron to send: the shape of URLs, methods and headers, judged when a job is saved.

Pure rules. Whether the address behind a URL may be dialled is decided later, when it is known: see
`zerocron.core.addresses`. What is accepted here is what is sent: no parser downstream may read the same URL as another
host, so everything that parsers are known to disagree on (user names, backslashes, blanks, short and octal IPv4 forms,
digits of other scripts, zones) is refused rather than interpreted.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import NoReturn

from yarl import URL

from zerocron.core.errors import Invalid

URL_CHARACTERS_MAX = 2_000
HOST_CHARACTERS_MAX = 253
METHOD_CHARACTERS_MAX = 32
HEADER_NAME_CHARACTERS_MAX = 256
HEADER_VALUE_CHARACTERS_MAX = 8_192

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff]*")

# Framing and hop-by-hop fields are ours or the connection's; the others prove to a target that the request is 0cron's.
_RESERVED_HEADERS = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "idempotency-key",
    )
)
_RESERVED_PREFIXES = ("proxy-", "x-0cron-", "webhook-")


@dataclass(frozen=True, slots=True)
class SplitUrl:
    """A URL that has passed. `host` is ASCII, lower-case and without brackets; `rest` is everything behind the port."""

    scheme: str
    host: str
    port: int | None
    rest: str
    literal: bool  # the host is an IP address, so nothing is looked up


def check_url(url: str) -> str:
    """The URL as it will be kept: an international name in its ASCII form, otherwise unchanged."""
    split = split_url(url)
    if url.isascii() or (match := _URL.fullmatch(url)) is None or match["authority"].isascii():
        return url
    port = "" if split.port is None else f":{split.port}"
    return f"{match['scheme']}://{split.host}{port}{match['rest']}"


def split_url(url: str) -> SplitUrl:
    """The parts of a URL that may be called; everything else raises Invalid."""
    if len(url) > URL_CHARACTERS_MAX:
        _refuse_url(f"A URL has at most {URL_CHARACTERS_MAX:,} characters; this one has {len(url):,}.")
    if "\\" in url or " " in url or not url.isprintable():
        _refuse_url("A URL holds no blanks, backslashes or control characters: write them percent-encoded.")
    match = _URL.fullmatch(url)
    if match is None:
        _refuse_url("A URL starts with http:// or https:// and a host, such as https://example.com/hook.")
    scheme = match["scheme"].lower()
    if scheme not in ("http", "https"):
        _refuse_url(f"0cron calls http:// and https:// only, not '{scheme}'.")
    authority = match["authority"]
    if "@" in authority:
        _refuse_url("A user name or password in the URL is not accepted: send an Authorization header.")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        _refuse_url("The host of the URL cannot be read; an IPv6 address is written in brackets, as in [2001:db8::1].")
    port = _port(parts["port"])
    host, literal = _host(parts["host"])
    return SplitUrl(scheme=scheme, host=host, port=port, rest=match["rest"], literal=literal)


@lru_cache(maxsize=4_096)
def host_of(url: str) -> str:
    """`host:port` of a URL that was checked: what a cap on requests in flight counts by."""
    parts = URL(url)
    return f"{parts.host}:{parts.port}"


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not 1 <= len(text) <= 5 or not 1 <= int(text) <= 65535:
        _refuse_url("A port is a number from 1 to 65535.")
    return int(text)


def _host(text: str) -> tuple[str, bool]:
    """The host in its ASCII form, and whether it is an IP address."""
    if not text:
        _refuse_url("The URL has no host.")
    if text.startswith("["):
        return _ipv6(text[1:-1]), True
    host = text.lower() if text.isascii() else _idna(text)
    if _looks_numeric(host):
        if host != text or not _canonical_ipv4(host):
            _refuse_url("An IPv4 address is written as four plain decimal numbers, such as 192.0.2.7.")
        return host, True
    labels = host.removesuffix(".").split(".")
    if len(host) > HOST_CHARACTERS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        _refuse_url("The host is not a valid name: labels of 1 to 63 letters, digits, '-' or '_', joined by dots.")
    return host, False


def _ipv6(text: str) -> str:
    if "%" in text:
        _refuse_url("An IPv6 address with a zone is not accepted.")
    try:
        return str(IPv6Address(text))
    except ValueError:
        _refuse_url("The IPv6 address in the URL cannot be read.")


def _looks_numeric(host: str) -> bool:
    """Somebody's parser would read it as an IPv4 address: the last label is a number (the rule of the WHATWG)."""
    return _NUMERIC_LABEL.fullmatch(host.removesuffix(".").rpartition(".")[2]) is not None


def _canonical_ipv4(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def _idna(text: str) -> str:
    # Compatibility forms first: a sign such as U+2105 becomes "c/o", which would end the host early.
    normal = unicodedata.normalize("NFKC", text)
    if not normal.isprintable() or any(sign in normal for sign in "/?#@:[]\\% "):
        _refuse_url("The host holds a character that is not allowed in names.")
    try:
        # yarl applies IDNA 2008 with the mappings of UTS 46, as browsers do.
        host = URL.build(scheme="http", host=text).raw_host
    except (ValueError, UnicodeError):
        host = None
    if host is None or not host.isascii():
        _refuse_url("The international name in the URL cannot be turned into its ASCII form.")
    return host.lower()


def _refuse_url(message: str) -> NoReturn:
    raise Invalid(message, field="url")


def check_method(method: str) -> str:
    """The method as it will be sent, in capitals."""
    if len(method) > METHOD_CHARACTERS_MAX or not _TOKEN.fullmatch(method):
        raise Invalid(
            f"A method is a word such as GET or POST, of at most {METHOD_CHARACTERS_MAX} characters.", field="method"
        )
    if method.upper() in ("CONNECT", "TRACE"):
        raise Invalid(f"The method {method.upper()} is not accepted: it is for proxies and debugging.", field="method")
    return method.upper()


def check_header(name: str, value: str) -> None:
    """A header that a user may set. Values outside of ASCII are sent as UTF-8."""
    if not _TOKEN.fullmatch(name):
        _refuse_header("A header name is made of letters, digits and !#$%&'*+-.^_`|~ without blanks.")
    if len(name) > HEADER_NAME_CHARACTERS_MAX or len(value) > HEADER_VALUE_CHARACTERS_MAX:
        _refuse_header(
            f"The header '{name[:40]}' is too long: a name has at most {HEADER_NAME_CHARACTERS_MAX} characters, "
            f"a value {HEADER_VALUE_CHARACTERS_MAX:,}."
        )
    folded = name.lower()
    if folded in _RESERVED_HEADERS or folded.startswith(_RESERVED_PREFIXES):
        _refuse_header(f"The header '{name}' is set by 0cron itself or belongs to the connection; leave it out.")
    if not _VALUE.fullmatch(value):
        _refuse_header(
            f"The value of the header '{name}' holds a line break, a control character or a letter outside of Latin-1."
        )


def _refuse_header(message: str) -> NoReturn:
    raise Invalid(message, field="headers")
