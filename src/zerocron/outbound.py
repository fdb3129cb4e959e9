"""The only door to other people's servers: address guard, deadlines, size caps, honest failures.

Rules of this file:

- `send` makes one request and never a second one. aiohttp would silently repeat an idempotent request whose kept-alive
  connection died; that switch is off, because a repeat without an execution row breaks the promise of section A.2.
- `send` never raises for what a target, a network or a resolver does: such things are a Failure with a stable kind.
  Cancellation passes through, and so do our own mistakes.
- Every address is judged where its socket is made (`_open_socket`), so names, literals and second answers of the
  resolver all pass the same gate and nothing is looked up between the judgement and the dial.
- A pool of connections belongs to one allow list: never share an Outbound between parties with different ones.
- Everything is bounded: time by `timeout_seconds`, head and body by the constants below, memory by reading in blocks.

Where the time goes is measured without aiohttp's TraceConfig, which adds a fifth to a kept-alive request: a probe
travels in a context variable, and the three places that matter (socket made, connection made, connection handed over)
leave their mark on it.

Some of this stands on private names of aiohttp: the switch `ClientSession._retry_connection`, `BaseConnector._factory`,
and what `_Protocol` and `_WireRequest` override. `start` refuses to run without the first two; for each there is a test
in tests/outbound that fails when it stops working, so an upgrade of aiohttp is safe when they pass.
"""

from __future__ import annotations

import asyncio
import errno
import io
import re
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import lru_cache
from socket import getaddrinfo
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError
from aiohttp.streams import StreamReader
from multidict import CIMultiDict
from yarl import URL

from zerocron.core.addresses import AllowList, Refusal, parse_allow, refusal
from zerocron.core.bodies import Body
from zerocron.core.errors import Invalid
from zerocron.core.exchange import ERROR_KINDS, Failure, Outcome, Request, Response, Timings
from zerocron.core.requests import check_header, check_method, check_url, split_url

__all__ = [
    "ERROR_KINDS",
    "AllowList",
    "Failure",
    "Outbound",
    "Outcome",
    "Request",
    "Response",
    "Timings",
    "check_header",
    "check_method",
    "check_url",
    "parse_allow",
]

HEADERS_MAX = 100  # kept of an answer; up to HEADERS_READ_MAX are read and the rest dropped
HEADERS_READ_MAX = 1_000
HEADER_BYTES_MAX = 64 * 1024
HEADER_FIELD_BYTES_MAX = 16 * 1024
INTERIM_ANSWERS_MAX = 50  # 1xx answers before the real one
ADDRESSES_MAX = 6  # tried of one name: aiohttp goes through what is left again after each failure, so tries grow as n^2
LOOKUPS_MAX = 32  # threads for name look-ups: a resolver that hangs must not hold up other names soon
DNS_CACHE_SECONDS = 10  # safe against rebinding, because the guard judges what is dialled and not what was looked up
# Servers close idle connections after 2 s (gunicorn), 5 s (Node, uvicorn, Apache) or more. A request that meets a
# closing connection fails, for it may have been carried out; so we let go first.
KEEPALIVE_SECONDS = 1.5
# For a target that stops reading: the kernel gives the connection up after this long with unacknowledged bytes.
UNACKNOWLEDGED_MILLISECONDS_MAX = 120_000
LARGE_BODY_BYTES = 256 * 1024  # written in slices; aiohttp refuses to write 1 MB at once


class AddressRefused(OSError):
    """The guard said no. An OSError, so that the next address of the name is tried."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(errno.EACCES, "address refused")
        self.refusal = refusal


class _Probe:
    """One request's luggage: the headers on the way out, and the marks it leaves behind.

    The marks are of `perf_counter`: uvloop's own clock moves in whole milliseconds, once per turn.
    """

    __slots__ = ("connected_at", "dialled_at", "headers", "ready_at", "refusal", "transport")

    def __init__(self, headers: list[tuple[str, str]]) -> None:
        self.headers = headers
        self.dialled_at: float | None = None
        self.connected_at: float | None = None
        self.ready_at: float | None = None
        self.refusal: Refusal | None = None
        self.transport: asyncio.Transport | None = None


_probe: ContextVar[_Probe | None] = ContextVar("zerocron_outbound_probe", default=None)


class Outbound:
    def __init__(
        self, *, allow: AllowList, body_bytes_max: int = 1_048_576, connections_max: int = 1000, user_agent: str
    ) -> None:
        self._allow = allow
        self._body_bytes_max = body_bytes_max
        self._connections_max = connections_max
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._resolver: _Resolver | None = None

    async def start(self) -> None:
        """Open the pool. Certificates are verified against the system's, or against SSL_CERT_FILE or SSL_CERT_DIR."""
        loop = asyncio.get_running_loop()
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        self._resolver = _Resolver(self._allow)
        connector = aiohttp.TCPConnector(
            ssl=context,
            resolver=self._resolver,
            ttl_dns_cache=DNS_CACHE_SECONDS,
            keepalive_timeout=KEEPALIVE_SECONDS,
            limit=self._connections_max,
            limit_per_host=0,
            socket_factory=self._open_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_WireRequest,
            max_line_size=HEADER_FIELD_BYTES_MAX,
            max_field_size=HEADER_FIELD_BYTES_MAX,
            max_headers=HEADERS_READ_MAX,
        )
        if not hasattr(connector, "_factory") or not hasattr(self._session, "_retry_connection"):
            raise RuntimeError("This aiohttp has no switch for its silent second request; see zerocron.outbound.")
        connector._factory = lambda: _Protocol(loop)  # type: ignore[assignment]
        self._session._retry_connection = False

    async def close(self) -> None:
        """Close every connection. A request in flight fails; a look-up that hangs is left to end by itself."""
        session, resolver = self._session, self._resolver
        self._session = self._resolver = None
        if session is not None:
            await session.close()
        if resolver is not None:
            await resolver.close()

    async def send(self, request: Request) -> Outcome:
        """Send one request, once, and read its answer."""
        session = self._session
        if session is None:
            raise RuntimeError("Outbound is not started.")
        began = perf_counter()
        try:
            wire = _wire(request, self._user_agent)
        except Invalid as invalid:
            kind = "invalid_url" if invalid.fields[0].field == "url" else "invalid_request"
            return Outcome(
                None, Failure(kind, invalid.message), Timings(None, None, None, None, (perf_counter() - began) * 1000)
            )

        probe = _Probe(wire.headers)
        token = _probe.set(probe)
        reading = _Reading(self._body_bytes_max)
        failure: Failure | None = None
        try:
            await reading.run(session, wire, _timeout(request.timeout_seconds))
        except _TROUBLE as error:
            failure = _failure(error, probe, request, answering=reading.head_at is not None)
        finally:
            _probe.reset(token)
            if not reading.complete:
                reading.abandon(probe.transport)

        timings = _timings(probe, began, reading.head_at, perf_counter(), wire)
        response = reading.response()
        if failure is None:
            return Outcome(response, None, timings)
        if response is not None:
            failure = Failure(failure.kind, failure.message, response.status, response)
        return Outcome(None, failure, timings)

    def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
        """The gate: aiohttp calls this for every address it is about to dial, literals included."""
        family, kind, proto, _, address = addr_info
        probe = _probe.get()
        if found := refusal(str(address[0]), int(address[1]), self._allow):
            if probe is not None:
                probe.refusal = found
            raise AddressRefused(found)
        if probe is not None and probe.dialled_at is None:
            probe.dialled_at = perf_counter()
        sock = socket.socket(family, kind, proto)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MILLISECONDS_MAX)
        return sock


# What targets, networks and resolvers cause. RuntimeError is what aiohttp and uvloop say of a connection that is gone.
_TROUBLE = (TimeoutError, OSError, aiohttp.ClientError, HttpProcessingError, ValueError, RuntimeError)


class _Wire(NamedTuple):
    """A request in aiohttp's terms."""

    method: str
    url: URL
    literal: bool  # the host is an address
    headers: list[tuple[str, str]]
    data: bytes | io.BytesIO | None


def _wire(request: Request, user_agent: str) -> _Wire:
    url, literal = _wire_url(request.url)
    headers = list(request.headers)
    if not any(name.lower() == "user-agent" for name, _ in headers):
        headers.insert(0, ("User-Agent", user_agent))
    body = request.body
    data = io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body
    return _Wire(_wire_method(request.method), url, literal, headers, data)


class _Reading:
    """An answer as it comes in, so that a failure can show what there was of it."""

    __slots__ = ("_answer", "_body", "_body_bytes_max", "complete", "head_at")

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._answer: aiohttp.ClientResponse | None = None
        self._body: Body | None = None
        self.head_at: float | None = None
        self.complete = False

    async def run(self, session: aiohttp.ClientSession, wire: _Wire, timeout: aiohttp.ClientTimeout) -> None:
        answer = self._answer = await session.request(
            wire.method, wire.url, data=wire.data, allow_redirects=False, timeout=timeout
        )
        self.head_at = perf_counter()
        body = self._body = Body(answer.headers.get("Content-Encoding"), self._body_bytes_max)
        if answer.status == 101:
            raise HttpProcessingError(code=101, message="The target switched to another protocol without being asked.")
        read = answer.content.readany
        while chunk := await read():
            if not body.feed(chunk):
                return
        body.end()
        self.complete = True

    def abandon(self, transport: asyncio.Transport | None) -> None:
        """Let go of the connection at once: close() would wait for a target that does not read."""
        if self._answer is not None:
            self._answer.close()
        if transport is not None:
            transport.abort()

    def response(self) -> Response | None:
        if self._answer is None or self._body is None:
            return None
        content_type = self._answer.headers.get("Content-Type")
        return Response(
            status=self._answer.status,
            headers=_kept_headers(self._answer.raw_headers),
            body=self._body.content,
            body_bytes=self._body.wire_bytes,
            truncated=self._body.truncated or not self.complete,
            content_type=None if content_type is None else _text(content_type.encode("utf-8", "surrogateescape")),
            decode_error=self._body.decode_error,
        )


class _WireRequest(aiohttp.ClientRequest):
    """A request with exactly the headers it was given.

    They come in the probe: on the session's own way aiohttp merges "X-A" with "x-a", and adds Accept, Accept-Encoding
    and Content-Type.
    """

    _SKIPPED: CIMultiDict[None] = CIMultiDict({"Content-Type": None})

    def update_headers(self, headers: object) -> None:
        probe = _probe.get()
        given = () if probe is None else probe.headers
        self.headers = CIMultiDict([("Host", self.url.host_port_subcomponent or ""), *given])

    def update_auto_headers(self, skip_auto_headers: object) -> None:
        self._skip_auto_headers = self._SKIPPED


class _Protocol(ResponseHandler):
    """The client's end of a connection.

    aiohttp's parser forgets an answer whose bytes arrive together with something invalid, such as a body longer than
    its Content-Length, and lets the reader of a body with broken chunks wait for ever. So it gets the head by itself,
    and a reader is told. What arrives when nothing is due ends the connection: it must never be taken for the answer
    to a later request.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._head_due = False
        self._interim = 0
        if (probe := _probe.get()) is not None:
            probe.connected_at = perf_counter()

    def set_response_params(self, **params: Any) -> None:
        """The connection is handed to a request, which is about to be written."""
        self._head_due = True
        self._interim = 0
        if (probe := _probe.get()) is not None:
            probe.transport = self.transport
            probe.ready_at = perf_counter()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """From the socket; or from aiohttp itself, with no bytes, to go on parsing after a pause."""
        if not data:
            pass
        elif self._head_due:
            cut = data.find(b"\r\n\r\n") + 4
            if 4 <= cut < len(data):
                super().data_received(data[:cut])
                data = data[cut:]
        elif self._payload is not None and self._payload.is_eof():
            if self.transport is not None:
                self.transport.close()
            return
        super().data_received(data)
        if self._exception is not None and (payload := self._payload) is not None and not payload.is_eof():
            # In a moment, for the reader shall first get what came before the fault.
            self._loop.call_soon(payload.set_exception, aiohttp.ClientPayloadError("Invalid body"))

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """The parser has read a head."""
        if data[0].code >= 200 or data[0].code == 101:
            self._head_due = False
        else:
            self._interim += 1
            if self._interim > INTERIM_ANSWERS_MAX:
                self._buffer.clear()
                self.set_exception(HttpProcessingError(code=400, message="Too many interim answers"))
                if self.transport is not None:
                    self.transport.close()
                return
        super().feed_data(data, size)


class _Resolver(AbstractResolver):
    """The system's resolver in threads of our own: uvloop has four for everything, and a name that hangs takes one."""

    def __init__(self, allow: AllowList) -> None:
        self._allow = allow
        self._threads = ThreadPoolExecutor(LOOKUPS_MAX, thread_name_prefix="zerocron-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        addresses = [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=family, proto=proto, flags=socket.AI_NUMERICHOST
            )
            for family, _, proto, _, address in found
        ]
        # Only a kindness to what follows, the gate judges again: with one permitted address the others are not tried,
        # so that the failure told is the permitted one's.
        permitted = [entry for entry in addresses if refusal(entry["host"], port, self._allow) is None]
        return (permitted or addresses)[:ADDRESSES_MAX]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: int) -> list[Any]:
    return getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)


# What a query or path may hold on the wire as it is. The rest (other scripts, and signs that RFC 3986 leaves out) is
# percent-encoded; nothing that is already encoded changes.
_WIRE_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"<>^`{|}')


@lru_cache(maxsize=4096)
def _wire_url(url: str) -> tuple[URL, bool]:
    """The URL as it is sent, and whether its host is an address."""
    split = split_url(url)
    rest = quote(split.rest.partition("#")[0], safe=_WIRE_CHARACTERS)
    path, _, query = rest.partition("?")
    host = f"[{split.host}]" if ":" in split.host else split.host
    port = "" if split.port is None else f":{split.port}"
    return URL(f"{split.scheme}://{host}{port}{path or '/'}{'?' if query else ''}{query}", encoded=True), split.literal


_wire_method = lru_cache(maxsize=256)(check_method)


@lru_cache(maxsize=256)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    # aiohttp takes zero for "none", and by default rounds deadlines beyond 5 s up to a whole second.
    return aiohttp.ClientTimeout(total=max(seconds, 0.001), ceil_threshold=float("inf"))


def _kept_headers(raw: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    kept: list[tuple[str, str]] = []
    room = HEADER_BYTES_MAX
    for name, value in raw[:HEADERS_MAX]:
        room -= len(name) + len(value)
        if room < 0:
            break
        kept.append((_text(name), _text(value)))
    return tuple(kept)


_UNSTORABLE = re.compile("[\x00\r\n]")


def _text(value: bytes) -> str:
    """UTF-8 where it is that, else Latin-1, which every byte is; without what databases and logs choke on."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return text if text.isprintable() else _UNSTORABLE.sub(" ", text)


def _timings(probe: _Probe, began: float, head_at: float | None, ended: float, wire: _Wire) -> Timings:
    dialled, connected, ready = probe.dialled_at, probe.connected_at, probe.ready_at
    dns = connect = tls = None
    if dialled is not None:
        dns = None if wire.literal else (dialled - began) * 1000
        if connected is not None:
            connect = (connected - dialled) * 1000
            if ready is not None and wire.url.scheme == "https":
                tls = (ready - connected) * 1000
    first_byte = None if head_at is None else (head_at - began) * 1000
    return Timings(dns, connect, tls, first_byte, (ended - began) * 1000)


def _failure(error: Exception, probe: _Probe, request: Request, *, answering: bool) -> Failure:
    """Tell what went wrong, in words that hold no address and no text of a library."""
    if isinstance(error, TimeoutError):
        phase = _phase(probe, answering)
        return Failure("timeout", f"The request did not finish within {request.timeout_seconds:g} s: {phase}.")
    if probe.refusal is not None and probe.dialled_at is None:
        return Failure("address_refused", probe.refusal.message)
    if isinstance(error, HttpProcessingError) and error.code == 101:
        return Failure("protocol", error.message)
    kind = _kind(error, probe, answering)
    detail = _tls_detail(error) if kind == "tls" else _dns_detail(error) if kind == "dns" else None
    return Failure(kind, detail or ERROR_KINDS[kind])


def _phase(probe: _Probe, answering: bool) -> str:
    if answering:
        return "the target had begun to answer, but the body did not end"
    if probe.ready_at is not None:
        return "the target was reached, but did not answer"
    if probe.connected_at is not None:
        return "the TLS handshake did not end"
    if probe.dialled_at is not None:
        return "the target did not accept the connection"
    return "its name was not resolved, or no connection was free"


_LOCAL_ERRNOS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL))
_RESET_ERRNOS = frozenset((errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED))


def _kind(error: Exception, probe: _Probe, answering: bool) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return "tls"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientConnectorError():
            return _connect_kind(error.os_error, probe)
        case aiohttp.ServerDisconnectedError():
            return "no_response"
        case aiohttp.ClientPayloadError():
            return _payload_kind(error)
        case aiohttp.ClientResponseError():
            return _head_kind(error.message)
        case aiohttp.InvalidURL():
            return "invalid_url"
        case HttpProcessingError():
            return "protocol"
        case OSError() | RuntimeError():  # a RuntimeError is aiohttp's or uvloop's word for a connection that has gone
            return "incomplete_body" if answering else "connection_reset"
        case ValueError():
            return "protocol" if answering else "invalid_request"
    return "connection_failed"


def _connect_kind(error: OSError, probe: _Probe) -> str:
    if error.errno in _LOCAL_ERRNOS:
        return "local_resources"
    if error.errno == errno.ECONNREFUSED:
        return "connection_refused"
    if probe.connected_at is not None:  # the connection stood, so it broke during the handshake
        return "tls"
    return "connection_reset" if error.errno in _RESET_ERRNOS else "connection_failed"


def _payload_kind(error: aiohttp.ClientPayloadError) -> str:
    cause = error.__cause__
    if isinstance(cause, ContentLengthError | TransferEncodingError | OSError):
        return "incomplete_body"
    return "protocol"


def _head_kind(message: str) -> str:
    if "Too many headers" in message:
        return "too_many_headers"
    return "headers_too_large" if "Got more than" in message else "protocol"


# OpenSSL's X509_V_ERR numbers.
_CERTIFICATE_FAULTS = {
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is self-signed",
    19: "its chain ends in a self-signed certificate that this server does not trust",
    20: "it was issued by an authority that this server does not know, or its chain is incomplete",
    21: "its chain is incomplete",
    23: "it has been revoked",
    62: "it is for another host name",
    64: "it is for another address",
}


def _tls_detail(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        fault = _CERTIFICATE_FAULTS.get(cause.verify_code, "it cannot be verified")
        return f"The target's certificate is not acceptable: {fault}."
    if isinstance(cause, ssl.SSLError):
        if cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"):
            return "The target does not speak TLS on this port; perhaps the URL should start with http://."
        reason = (cause.reason or "no reason given").replace("_", " ").lower()
        return f"The TLS handshake with the target failed ({reason})."
    return "The target broke the connection during the TLS handshake."


def _dns_detail(error: Exception) -> str:
    cause = getattr(error, "os_error", None)
    code = cause.errno if isinstance(cause, socket.gaierror) else None
    if code in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
        return "The target's name does not exist, or has no address."
    if code == socket.EAI_AGAIN:
        return "The resolver did not answer for the target's name; this may pass."
    return ERROR_KINDS["dns"]
