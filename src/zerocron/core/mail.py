"""The mail server that 0cron hands its messages to: how an operator writes it, and what an address is.

Owns the reading of `ZEROCRON_MAIL_URL` and `ZEROCRON_MAIL_FROM`. Must never show a password: the `Mail` hides it, and
no error repeats the URL. Pure; `zerocron.channels.email` speaks to the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from zerocron.core.addresses import AllowList, parse_allow
from zerocron.core.errors import Invalid
from zerocron.core.requests import SplitUrl, check_url, split_url

URL_SETTING, FROM_SETTING = "ZEROCRON_MAIL_URL", "ZEROCRON_MAIL_FROM"
EXAMPLE = "smtp://user:password@mail.example.com:587"

ADDRESS_CHARACTERS_MAX = 254  # RFC 5321, less the brackets around a path
LOCAL_PART_CHARACTERS_MAX = 64
NAME_CHARACTERS_MAX = 100

Security = Literal["starttls", "tls", "none"]
_SECURITIES: tuple[Security, ...] = ("starttls", "tls", "none")
_PORTS: dict[Security, int] = {"starttls": 587, "tls": 465, "none": 25}
_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_SENDER = re.compile(r"(?:(?P<name>[^<>]*)<(?P<address>[^<>]+)>|(?P<plain>[^<>\s]+))")
_LOOPBACK = "127.0.0.0/8, [::1]"


@dataclass(frozen=True, slots=True)
class Mail:
    """An operator's mail server.

    `sender_name` may be empty. `unsubscribe`: what List-Unsubscribe names, a mailto: or https: URL. `allow`: the
    networks that are not public at which the server may be; jobs may not call these because of it.
    """

    host: str
    port: int
    security: Security
    sender: str
    sender_name: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    unsubscribe: str = ""
    allow: AllowList = field(default_factory=AllowList)


def check_address(text: str, field: str) -> str:
    """One mail address, its domain in lower-case ASCII. Raises Invalid, with `field`."""
    local, at, domain = text.strip().rpartition("@")
    if not at or len(local) > LOCAL_PART_CHARACTERS_MAX or not _LOCAL_PART.fullmatch(local):
        raise Invalid(
            "Write one plain mail address, such as ops@example.com: no name around it, no list, no blanks; what stands "
            "before the @ is ASCII.",
            field=field,
        )
    try:
        split = split_url(f"https://{domain}/")
    except Invalid:
        split = None
    if split is None or split.literal or split.port is not None or split.rest != "/" or "." not in split.host:
        raise Invalid("What stands behind the @ is no domain that mail can be sent to.", field=field)
    address = f"{local}@{split.host.removesuffix('.')}"
    if len(address) > ADDRESS_CHARACTERS_MAX:
        raise Invalid(f"A mail address has at most {ADDRESS_CHARACTERS_MAX} characters.", field=field)
    return address


def read_mail(url: str, sender: str) -> Mail:
    """The server behind `smtp://` (STARTTLS) or `smtps://` (TLS from the first byte). Raises Invalid.

    Options, as a query: `security` (starttls, tls, none), `allow` (networks, as in ZEROCRON_OUTBOUND_ALLOW) and
    `unsubscribe` (a mailto: or https: URL). User name and password are percent-encoded.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        _refuse(f"it cannot be read; write it as in {EXAMPLE}, with signs in the password percent-encoded")
    if parts.scheme not in ("smtp", "smtps") or parts.path not in ("", "/") or parts.fragment:
        _refuse(f"it begins with smtp:// or smtps:// and has no path, as in {EXAMPLE}")
    server = _host(parts.netloc.rpartition("@")[2])
    security = _security(parts.scheme, options.pop("security", None))
    allow = options.pop("allow", "")
    unsubscribe = options.pop("unsubscribe", "")
    if options:
        _refuse("its options are security, allow and unsubscribe")
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if (username is None) != (password is None):
        _refuse("a user name and a password come together; percent-encode signs such as @ : / in them")
    if username is not None and security == "none" and not _is_this_machine(server):
        _refuse("with security=none the password would cross the network in the clear; use starttls or tls")
    name, address = _sender(sender)
    return Mail(
        host=server.host,
        port=port or _PORTS[security],
        security=security,
        sender=address,
        sender_name=name,
        username=username,
        password=password,
        unsubscribe=_unsubscribe(unsubscribe, address),
        allow=_allow(server, allow),
    )


def _host(authority: str) -> SplitUrl:
    try:
        return split_url(f"https://{authority}/")
    except Invalid:
        _refuse(f"its host or port cannot be read; write it as in {EXAMPLE}")


def _security(scheme: str, text: str | None) -> Security:
    if text is None:
        return "tls" if scheme == "smtps" else "starttls"
    if text not in _SECURITIES or (scheme == "smtps" and text != "tls"):
        _refuse("security is starttls, tls or none, and with smtps:// always tls")
    return text


def _is_this_machine(server: SplitUrl) -> bool:
    return server.host in ("localhost", "::1") or (server.literal and server.host.startswith("127."))


def _allow(server: SplitUrl, text: str) -> AllowList:
    """An address that the operator wrote is allowed by that; a name may lead to public addresses and those listed."""
    if server.host == "localhost":
        text += f", {_LOOPBACK}"
    elif server.literal:
        text += f", [{server.host}]" if ":" in server.host else f", {server.host}"
    try:
        return parse_allow(text)
    except Invalid:
        _refuse("allow is a list of networks, such as allow=10.0.0.0/8")


def _unsubscribe(text: str, sender: str) -> str:
    if not text:
        return f"mailto:{sender}?subject=unsubscribe"
    if text.startswith("mailto:") and text.isascii() and text.isprintable() and not set(text) & set(" <>"):
        check_address(text.removeprefix("mailto:").partition("?")[0], URL_SETTING)
        return text
    try:
        if not text.startswith("https://") or set(text) & set("<>"):
            raise Invalid("not https")
        return check_url(text)
    except Invalid:
        _refuse("unsubscribe is a mailto: or https: URL, percent-encoded")


def _sender(text: str) -> tuple[str, str]:
    """Name and address of `ops@example.com` or `0cron <ops@example.com>`."""
    found = _SENDER.fullmatch(text.strip())
    name = (found["name"] or "").strip().strip('"') if found else ""
    if found is None or not text.isprintable() or len(name) > NAME_CHARACTERS_MAX:
        raise Invalid(
            f"{FROM_SETTING}: write the sender's address, such as 0cron@example.com or '0cron <0cron@example.com>'.",
            field=FROM_SETTING,
        )
    try:
        return name, check_address(found["plain"] or found["address"], FROM_SETTING)
    except Invalid as error:
        raise Invalid(f"{FROM_SETTING}: {error.message}", field=FROM_SETTING) from None


def _refuse(reason: str) -> NoReturn:
    raise Invalid(f"{URL_SETTING}: {reason}.", field=URL_SETTING)
