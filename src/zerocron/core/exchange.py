"""A request to somebody else's server and what came of it: the values that `zerocron.outbound` takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

REDIRECTS_MAX = 5

ERROR_KINDS = {
    "address_refused": "The rules of this server do not allow 0cron to call the target's address or port.",
    "called_off": "The job was paused, disabled or deleted just before this attempt; nothing was sent.",
    "connect_timeout": "The target did not accept the connection in time: it drops packets, or is too busy.",
    "connection_failed": "No connection to the target could be made, for a reason that has no kind of its own.",
    "connection_refused": "The target's machine refused the connection: nothing listens on that port.",
    "connection_reset": "The target broke the connection before it answered.",
    "dns_failed": "The name servers could not say whether the target's name exists; this may pass.",
    "dns_not_found": "The target's name does not exist, or has no address.",
    "dns_timeout": "The target's name was not resolved in time.",
    "headers_too_large": "The head of the answer, or a line of it, was longer than 0cron reads.",
    "incomplete_body": "The connection ended before the body of the answer was complete.",
    "invalid_request": "The request could not be put on the wire: its method or a header holds forbidden characters.",
    "invalid_url": "The URL is not one that 0cron calls.",
    "local_resources": "This 0cron server has run out of connections, ports, files or threads, or its database "
    "did not say in time what to send; nothing was sent.",
    "no_response": "The target closed the connection without sending an answer.",
    "not_signed": "The job asks for signed requests, and there was no key to sign with; nothing was sent.",
    "protocol": "The target sent something that is not valid HTTP.",
    "redirect_invalid": "The target redirected to something that is not a URL which 0cron calls.",
    "redirect_loop": "The target's redirects came back to a request that had been made already.",
    "redirect_refused": "The redirect led from https to http, or would have sent a body to another origin.",
    "secret_host_refused": "A secret of the request is bound to other hosts than the one that it would have gone to.",
    "secret_unavailable": "A secret of the job, or the key that signs, does not open on this server; nothing was sent.",
    "secret_unknown": "The job names a secret that does not exist; nothing was sent.",
    "secret_unusable": "The value of a secret does not fit where the job puts it; nothing was sent.",
    "timeout": "The request did not finish within its time-out.",
    "tls_certificate": "The target's certificate is not acceptable, for a reason that has no kind of its own.",
    "tls_expired": "The target's certificate has expired.",
    "tls_handshake": "The TLS handshake with the target failed or was broken off.",
    "tls_protocol": "The target does not speak TLS on this port, or no version of it that 0cron accepts.",
    "tls_self_signed": "The target's certificate is self-signed.",
    "tls_untrusted": "The target's certificate was issued by an authority that this server does not know.",
    "tls_wrong_host": "The target's certificate is for another host.",
    "too_many_headers": "The answer had more headers than 0cron reads.",
    "too_many_redirects": "The target redirected more often than the job allows.",
    "unreachable": "There is no way to the target's address: its network or machine cannot be reached.",
}

OWN_KINDS = {
    "rule": "An answer came, and the job's success rule does not accept it. The message says which rule.",
    "node_lost": "The process that ran it stopped before the result was recorded; the request may have been sent.",
    "internal": "0cron itself failed while executing this attempt. That is a bug; the server's log has the details.",
}
"""What can be wrong with an attempt beside: no failure of the exchange itself."""

# What else a kind tells. The target has no part in an own shortage: it was not called, so the attempt may be made again
# without counting, and whoever starts work should pause. A permanent failure comes back however often one tries.
TIMEOUT_KINDS = frozenset(("connect_timeout", "dns_timeout", "timeout"))
OWN_SHORTAGE_KINDS = frozenset(("local_resources",))
PERMANENT_KINDS = frozenset(
    (
        "address_refused",
        "invalid_request",
        "invalid_url",
        "not_signed",
        "redirect_invalid",
        "redirect_loop",
        "redirect_refused",
        "secret_host_refused",
        "secret_unknown",
        "secret_unusable",
        "too_many_redirects",
    )
)


@dataclass(frozen=True, slots=True)
class Request:
    """What to send.

    Headers go out in order and unchanged, outside of ASCII as UTF-8. Added are Host, Content-Length and, unless it is
    given, User-Agent; nothing else.

    `redirects`: how many to follow, 0 to REDIRECTS_MAX; with 0 a redirect is the answer. `secret_headers`: lower-case
    names of headers whose values hold secrets; these never go to another origin, not even those that otherwise may.
    `allowed_hosts`: for each secret of the request that is bound, the hosts it may go to (`core.secret.may_go_to`); a
    redirect to any other one is not followed.
    `verify_tls` False accepts any certificate from the origin of `url`, and from no other one.
    """

    method: str
    url: str = field(repr=False)  # this and the two below may hold secrets
    headers: Sequence[tuple[str, str]] = field(repr=False)
    body: bytes | None = field(repr=False)
    timeout_seconds: float
    redirects: int = 0
    secret_headers: frozenset[str] = frozenset()
    allowed_hosts: tuple[tuple[str, ...], ...] = ()
    verify_tls: bool = True


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds, None where the phase did not happen or did not succeed.

    `dns`, `connect` and `tls` are the length of the phase: None with a pooled connection or after a failure, `dns` also
    with a literal address. `first_byte` (the head of the answer is there) and `total` count from the start of `send`.
    After redirects the phases are those of the last request.
    """

    dns: float | None
    connect: float | None
    tls: float | None
    first_byte: float | None
    total: float


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, within the caps. `truncated`: `body` is less than what the target sent or meant to send."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(repr=False)  # this and the body may echo secrets
    body: bytes = field(repr=False)
    body_bytes: int  # on the wire, up to where reading stopped
    truncated: bool
    content_type: str | None
    decode_error: str | None = None  # the body is not what its Content-Encoding says; it is kept as it could be read


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer to judge. `kind` is one of ERROR_KINDS; `response` is what had come of an answer."""

    kind: str
    message: str
    status: int | None = None
    response: Response | None = None

    @property
    def timed_out(self) -> bool:
        return self.kind in TIMEOUT_KINDS

    @property
    def own_shortage(self) -> bool:
        """This server ran short of something; nothing was sent, and nothing is said about the target."""
        return self.kind in OWN_SHORTAGE_KINDS

    @property
    def permanent(self) -> bool:
        """The same request would fail the same way again, so a retry is of no use."""
        return self.kind in PERMANENT_KINDS


@dataclass(frozen=True, slots=True)
class Hop:
    """One request of a chain of redirects. `status` None: it got no answer."""

    method: str
    url: str = field(repr=False)
    status: int | None
    with_body: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exactly one of `response` and `failure` is set.

    `hops`: every request that was made, in order, when redirects were followed; empty when there was only the first.
    """

    response: Response | None
    failure: Failure | None
    timings: Timings
    hops: tuple[Hop, ...] = ()
