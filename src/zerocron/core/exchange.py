"""A request to somebody else's server and what came of it: the values that `zerocron.outbound` takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ERROR_KINDS = {
    "address_refused": "The rules of this server do not allow 0cron to call the target's address or port.",
    "connection_failed": "No connection to the target could be made (no route, unreachable, cut while connecting).",
    "connection_refused": "The target's machine refused the connection: nothing listens on that port.",
    "connection_reset": "The target broke the connection before the answer was complete.",
    "dns": "The target's name could not be resolved.",
    "headers_too_large": "A line of the head of the answer was longer than 0cron reads.",
    "incomplete_body": "The connection ended before the body of the answer was complete.",
    "invalid_request": "The request could not be put on the wire: its method or a header holds forbidden characters.",
    "invalid_url": "The URL is not one that 0cron calls.",
    "local_resources": "This 0cron server has run out of sockets or files; the target was not called.",
    "no_response": "The target closed the connection without sending an answer.",
    "protocol": "The target sent something that is not valid HTTP.",
    "timeout": "The request did not finish within its time-out.",
    "tls": "No secure connection could be made: the certificate or the TLS protocol was not acceptable.",
    "too_many_headers": "The answer had more headers than 0cron reads.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What to send.

    Headers go out in order and unchanged, outside of ASCII as UTF-8. Added are Host, Content-Length and, unless it is
    given, User-Agent; nothing else.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    body: bytes | None
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds, None where the phase did not happen or did not succeed.

    `dns`, `connect` and `tls` are the length of the phase: None with a pooled connection or after a failure, `dns` also
    with a literal address. `first_byte` (the head of the answer is there) and `total` count from the start of `send`.
    A wait for a free connection, if there was one, is part of `dns`.
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
    headers: tuple[tuple[str, str], ...]
    body: bytes
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exactly one of `response` and `failure` is set."""

    response: Response | None
    failure: Failure | None
    timings: Timings
