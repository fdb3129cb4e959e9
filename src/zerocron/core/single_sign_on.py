"""Signing in by somebody else's word: an issuer of OpenID Connect, or a proxy in front.

Owns the reasons for which somebody is not let in; where a browser may be sent afterwards; and what it keeps
while it is at the issuer. Must never look anything up.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections import OrderedDict
from dataclasses import asdict, dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from zerocron.core.errors import Invalid
from zerocron.core.mail import check_address
from zerocron.core.model import Instant
from zerocron.core.sealing import Keyring
from zerocron.core.tokens import digest

DOMAINS_SETTING = "ZEROCRON_SIGN_UP_DOMAINS"
FLOW_SECONDS_MAX = 600
"""How long somebody may take at the issuer."""

FLOWS_REMEMBERED_MAX = 20_000

PATH_CHARACTERS_MAX = 1_000
_FLOW = "sign-in at an issuer"


class Purpose(StrEnum):
    """Why a browser goes to the issuer: to come in, to prove again who one is, or to link who one is there."""

    SIGN_IN = "sign-in"
    PROOF = "proof"
    LINK = "link"


class Refusal(StrEnum):
    """Why somebody was not let in, or got nothing of what they went for; pages have a sentence for each."""

    UNKNOWN = "unknown"
    UNVERIFIED = "unverified"
    DISABLED = "disabled"
    NO_TEAM = "no_team"
    NOT_SET_UP = "not_set_up"
    EXPIRED = "expired"
    DENIED = "denied"
    ISSUER = "issuer"
    BUSY = "busy"
    TOO_MANY = "too_many"
    NO_HEADER = "no_header"
    SOMEBODY_ELSE = "somebody_else"
    TAKEN = "taken"
    NO_PROOF = "no_proof"
    TOO_MANY_LINKED = "too_many_linked"


class SignInRefused(Exception):
    """Somebody was not let in. `why` is for the log, and holds no secret. `retry_after_seconds`: of TOO_MANY."""

    def __init__(self, refusal: Refusal, why: str = "", *, retry_after_seconds: int = 0) -> None:
        super().__init__(f"{refusal}: {why}" if why else str(refusal))
        self.refusal = refusal
        self.why = why
        self.retry_after_seconds = retry_after_seconds


class NotNow(SignInRefused):
    """The issuer or we could not; it is nothing that who came in has done."""


def safe_path(text: str | None) -> str:
    """A path of this server to go on to; the first page instead of anything that may lead elsewhere."""
    if not text or len(text) > PATH_CHARACTERS_MAX or not text.isascii() or not text.isprintable():
        return "/"
    if not text.startswith("/") or text.startswith("//") or "\\" in text or " " in text:
        return "/"
    return text


def parse_domains(text: str) -> frozenset[str]:
    """Domains of addresses, separated by commas. Raises Invalid."""
    domains = set()
    for item in filter(None, (part.strip().lower() for part in text.split(","))):
        try:
            domains.add(check_address(f"somebody@{item}", DOMAINS_SETTING).rpartition("@")[2])
        except Invalid:
            raise Invalid(
                f"{DOMAINS_SETTING}: {item!r} is no domain, such as example.com.", field=DOMAINS_SETTING
            ) from None
    return frozenset(domains)


def check_issuer(url: str, setting: str) -> str:
    """The issuer's URL, by which it must call itself, too. Raises Invalid."""
    parts = urlsplit(url)
    is_url = parts.scheme in ("https", "http") and parts.hostname and url.isascii() and url.isprintable()
    if not is_url or parts.query or parts.fragment or "@" in parts.netloc or len(url) > 500:
        raise Invalid(f"{setting}: an issuer is a URL such as https://accounts.example.com.", field=setting)
    return url


@dataclass(frozen=True, slots=True)
class Flow:
    """What a browser keeps in a cookie between the two halves of a sign-in at an issuer, signed by the server.

    `sign_in_id`: for which sign-in here a proof or a link is, empty for coming in. What one began in it does nothing in
    another.
    """

    state: str
    nonce: str
    verifier: str
    path: str
    purpose: Purpose
    sign_in_id: str
    expires_at: Instant

    def signed(self, keys: Keyring) -> str:
        """For the cookie."""
        content = base64.urlsafe_b64encode(json.dumps(asdict(self), separators=(",", ":")).encode()).decode()
        return f"{content}.{keys.newest.sign(content, _FLOW)}"


def read_flow(cookie: str | None, keys: Keyring, now: Instant) -> Flow:
    """Raises SignInRefused for a cookie that is not there, is not ours, or is too old."""
    content, dot, signature = (cookie or "").partition(".")
    if not dot or not any(
        hmac.compare_digest(key.sign(content, _FLOW).encode(), signature.encode()) for key in keys.all
    ):
        raise SignInRefused(Refusal.EXPIRED, "there is no cookie of ours")
    try:
        kept = json.loads(base64.urlsafe_b64decode(content))
        flow = Flow(**kept | {"purpose": Purpose(kept.get("purpose"))})
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise SignInRefused(Refusal.EXPIRED, "the cookie is another release's") from None
    if not now < flow.expires_at <= now + FLOW_SECONDS_MAX * 1000:
        raise SignInRefused(Refusal.EXPIRED, "it took too long")
    return flow


class UsedFlows:
    """Which flows have come back, until they expire, so that each of them does so once.

    Of one node: another one, or one that was restarted, does not know of it, and only a code that was used before is
    refused there, by the issuer. In bounded memory: beyond `FLOWS_REMEMBERED_MAX` the one that was used longest ago is
    forgotten.
    """

    def __init__(self) -> None:
        self._used: OrderedDict[str, Instant] = OrderedDict()

    def __len__(self) -> int:
        return len(self._used)

    def use(self, flow: Flow, now: Instant) -> None:
        """Raises SignInRefused for one that was used before."""
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)
        key = digest(flow.state)
        if key in self._used:
            raise SignInRefused(Refusal.EXPIRED, "it came back before")
        self._used[key] = now + FLOW_SECONDS_MAX * 1000  # not flow.expires_at: so they stand in the order of their ends
        if len(self._used) > FLOWS_REMEMBERED_MAX:
            self._used.popitem(last=False)
