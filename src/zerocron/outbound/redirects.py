"""What the next request of a chain of redirects is. Pure: answers in, requests out; nothing is sent or looked up here.

The rules, beyond RFC 9110 (303 turns into GET; 301 and 302 turn a POST into GET; 307 and 308 keep everything):

- An origin is scheme, host and port. Across origins go only headers that describe this client or this run; never a
  body, a credential, a signature, a header whose value holds a secret, or one that only its author understands. What
  was left behind does not come back when a later hop returns to the first origin: it was another party that sent us.
- A redirect that would need the body at another origin is refused, not followed without it: the target would take
  half a request for a whole one. So is one from https to http.
- A request with a secret that is bound to hosts is led to none but these, whatever of it would go there: the target
  knows the secret and may have put it into the new URL.
- Cookies that answers set live as long as the chain, go back to the very origin that set them, and make a URL that is
  asked a second time another request: that is how log-in pages work.
- The same request a second time is a loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urljoin

from zerocron.core.addresses import default_port
from zerocron.core.errors import Invalid
from zerocron.core.exchange import REDIRECTS_MAX, Request, Response
from zerocron.core.requests import split_url
from zerocron.core.secret import may_go_to

COOKIES_MAX = 50  # of one origin, the newest
COOKIE_CHARACTERS_MAX = 4_096

_FOLLOWED = frozenset((301, 302, 303, 307, 308))
_ACROSS_ORIGINS = frozenset(("accept", "accept-language", "idempotency-key", "user-agent"))
_ACROSS_ORIGINS_PREFIX = "x-0cron-"  # which run it is: promise 3 holds for every request of a run
_ABOUT_THE_BODY = ("content-", "digest", "repr-digest", "last-modified", "webhook-")  # beginnings of names
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_COOKIE_VALUE = re.compile(r"[\x21-\x3a\x3c-\x7e]*( +[\x21-\x3a\x3c-\x7e]+)*")
_ASCII = "".join(map(chr, range(0x80)))


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == default_port(self.scheme) else f":{self.port}")


def origin_of(url: str) -> Origin:
    """Raises Invalid for what may not be called."""
    split = split_url(url)
    return Origin(split.scheme, split.host.removesuffix("."), split.port or default_port(split.scheme))


@dataclass(frozen=True, slots=True)
class Leg:
    """One request of a chain."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


class NotFollowed(Exception):
    """The chain ends here, as a failure."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Chain:
    """The requests of one send: feed it the answer to each, and it says what comes next."""

    def __init__(self, request: Request, method: str) -> None:
        self._left = min(request.redirects, REDIRECTS_MAX)
        self._allowed = self._left
        self._secret_headers = request.secret_headers
        self._allowed_hosts = request.allowed_hosts
        self._given = tuple(request.headers)  # without what the cookies of the chain add
        self._cookies: dict[Origin, dict[str, str]] = {}
        self._seen: set[Leg] = set()
        self.leg = Leg(method, request.url, self._given, request.body)

    def follow(self, answer: Response) -> bool:
        """Whether there is a next request, which is then `leg`. Raises NotFollowed."""
        if answer.status not in _FOLLOWED:
            return False
        locations = {value.strip() for name, value in answer.headers if name.lower() == "location"}
        if not any(locations):
            return False
        here = origin_of(self.leg.url)
        url, there = _destination(locations, self.leg.url)
        self._keep_cookies(here, answer)
        method = _method(self.leg.method, answer.status)
        body = self.leg.body if method == self.leg.method else None
        if here.scheme == "https" and there.scheme == "http":
            raise NotFollowed(
                "redirect_refused", f"The target redirected from https to plain http ({there}), which is not followed."
            )
        if body is not None and there != here:
            raise NotFollowed(
                "redirect_refused",
                f"The target redirected the request with its body to {there}; 0cron sends a body only to the origin "
                "that the job names. If that is right, put the new URL into the job.",
            )
        if not all(may_go_to(there.host, hosts) for hosts in self._allowed_hosts):
            raise NotFollowed(
                "secret_host_refused",
                f"The target redirected to {there}, and a secret of the request is bound to other hosts; that is not "
                "followed.",
            )
        if body is None and self.leg.body is not None:
            self._given = tuple(header for header in self._given if not _is_about_the_body(header[0]))
        if there != here:
            self._given = tuple(header for header in self._given if self._goes_across(header[0]))
        self._seen.add(self.leg)
        self.leg = Leg(method, url, _with_cookies(self._given, self._cookies.get(there, {})), body)
        if self.leg in self._seen:
            raise NotFollowed("redirect_loop", f"The target's redirects go round in circles, by way of {there}.")
        if self._left <= 0:
            raise NotFollowed("too_many_redirects", f"The target redirected more than {self._allowed} times.")
        self._left -= 1
        return True

    def _goes_across(self, name: str) -> bool:
        name = name.lower()
        safe = name in _ACROSS_ORIGINS or name.startswith(_ACROSS_ORIGINS_PREFIX)
        return safe and name not in self._secret_headers

    def _keep_cookies(self, origin: Origin, answer: Response) -> None:
        jar = self._cookies.setdefault(origin, {})
        for name, value in answer.headers:
            if name.lower() == "set-cookie":
                _keep_cookie(jar, value)


def _destination(locations: set[str], base: str) -> tuple[str, Origin]:
    """Where a Location leads: the URL without its fragment, and its origin."""
    location = locations.pop()
    if locations:
        raise NotFollowed("redirect_invalid", "The target redirected to several places at once.")
    location = quote(location, safe=_ASCII).partition("#")[0]
    try:
        if " " in location or "\\" in location or not location.isprintable():
            raise Invalid("It holds blanks, backslashes or control characters.")
        if location.startswith("//"):
            location = base.partition("//")[0] + location
        elif not _SCHEME.match(location):  # urljoin alone would read "http:host" as a path, and "//" as nothing
            location = urljoin(base.partition("#")[0], location)
        return location, origin_of(location)
    except (Invalid, ValueError) as error:
        reason = error.message if isinstance(error, Invalid) else "It cannot be read."
        message = f"The target redirected to a URL that 0cron does not call. {reason}"
        raise NotFollowed("redirect_invalid", message) from None


def _method(method: str, status: int) -> str:
    if status == 303:
        return "HEAD" if method == "HEAD" else "GET"
    return "GET" if status in (301, 302) and method == "POST" else method


def _is_about_the_body(name: str) -> bool:
    return name.lower().startswith(_ABOUT_THE_BODY)


def _keep_cookie(jar: dict[str, str], line: str) -> None:
    """Name and value are all we need: the chain is over long before an expiry, and a path is no border."""
    pair, *attributes = line.split(";")
    name, _, value = (part.strip() for part in pair.partition("="))
    if not _COOKIE_NAME.fullmatch(name) or not _COOKIE_VALUE.fullmatch(value) or len(pair) > COOKIE_CHARACTERS_MAX:
        return
    jar.pop(name, None)
    if not any(re.fullmatch(r"\s*max-age\s*=\s*(0|-\d+)\s*", attribute, re.IGNORECASE) for attribute in attributes):
        jar[name] = value
    while len(jar) > COOKIES_MAX:
        del jar[next(iter(jar))]


def _with_cookies(headers: tuple[tuple[str, str], ...], jar: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The jar's cookies, beside or in place of those that the job sends itself."""
    if not jar:
        return headers
    pairs = [
        pair.strip() for name, value in headers if name.lower() == "cookie" for pair in value.split(";") if pair.strip()
    ]
    kept = [pair for pair in pairs if pair.partition("=")[0].strip() not in jar]
    cookie = "; ".join(kept + [f"{name}={value}" for name, value in jar.items()])
    return (*(header for header in headers if header[0].lower() != "cookie"), ("Cookie", cookie))
