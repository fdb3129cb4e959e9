"""The door itself: the pool of connections, and the way of a request through the other files of this room."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection
from functools import lru_cache
from time import perf_counter
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from zerocron.core.addresses import AllowList, OwnEndpoint
from zerocron.core.errors import Invalid
from zerocron.core.exchange import Failure, Hop, Outcome, Request, Timings
from zerocron.core.requests import check_method
from zerocron.outbound import dialling, resolver
from zerocron.outbound import probe as probes
from zerocron.outbound.failures import TROUBLE, Scene, failure_of, no_time_to_follow
from zerocron.outbound.guard import Guard
from zerocron.outbound.probe import Probe
from zerocron.outbound.protocol import Protocol
from zerocron.outbound.reading import Reading
from zerocron.outbound.redirects import Chain, NotFollowed, origin_of
from zerocron.outbound.resolver import Resolver
from zerocron.outbound.wire import Wire, wire_of

# Servers close idle connections after 2 s (gunicorn), 5 s (Node, uvicorn, Apache) or more. A request that meets a
# closing connection fails, for it may have been carried out; so we let go first.
KEEPALIVE_SECONDS = 1.5


class Outbound:
    def __init__(
        self,
        *,
        allow: AllowList,
        own: Collection[OwnEndpoint] = (),
        body_bytes_max: int = 1_048_576,
        connections_max: int = 1000,
        user_agent: str,
    ) -> None:
        self._guard = Guard(allow, own)
        self._body_bytes_max = body_bytes_max
        self._connections_max = connections_max
        self._user_agent = user_agent
        self._pool: _Pool | None = None
        self._resolver: Resolver | None = None
        self._unverified: ssl.SSLContext | None = None

    async def start(self) -> None:
        """Open the pool. Certificates are verified against the system's, or against SSL_CERT_FILE or SSL_CERT_DIR."""
        loop = asyncio.get_running_loop()
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        self._unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._unverified.check_hostname = False
        self._unverified.verify_mode = ssl.CERT_NONE
        self._unverified.set_alpn_protocols(["http/1.1"])
        self._resolver = Resolver(self._guard.permits)
        self._pool = _Pool(
            loop=loop,
            ssl=context,
            resolver=self._resolver,
            ttl_dns_cache=resolver.DNS_CACHE_SECONDS,
            keepalive_timeout=KEEPALIVE_SECONDS,
            limit=self._connections_max,
            limit_per_host=0,
            socket_factory=self._open_socket,
        )
        if not hasattr(self._pool, "_factory"):
            raise RuntimeError("This aiohttp makes its connections in another way; see zerocron.outbound.")
        self._pool._factory = lambda: Protocol(loop, self._body_bytes_max)  # type: ignore[assignment]

    async def close(self) -> None:
        """Close every connection. A request in flight fails; a look-up that hangs is left to end by itself."""
        pool, names = self._pool, self._resolver
        self._pool = self._resolver = None
        if pool is not None:
            await pool.close()
        if names is not None:
            await names.close()

    async def send(self, request: Request) -> Outcome:
        """Send one request, once, and read its answer; follow its redirects if it asks for that."""
        pool = self._pool
        if pool is None:
            raise RuntimeError("Outbound is not started.")
        began = perf_counter()
        try:
            wire = wire_of(request.method, request.url, request.headers, request.body, self._user_agent)
        except Invalid as invalid:
            kind = "invalid_url" if invalid.fields[0].field == "url" else "invalid_request"
            return _unsent(kind, invalid.message, began)
        left = request.timeout_seconds
        outcome = await self._exchange(pool, wire, request, began, left, verify=request.verify_tls)
        if request.redirects <= 0 or outcome.response is None:
            return outcome
        return await self._follow(pool, request, outcome, began)

    async def dial(self, host: str, port: int, *, allow: AllowList, timeout_seconds: float) -> socket.socket | Failure:
        """Connect to a server that does not speak HTTP: a connected, non-blocking socket, which is the caller's.

        For servers that the operator has named, never for users': any port may be dialled. Addresses are judged as
        those of `send` are, with `allow` in place of the list for jobs. Trouble on the way is a Failure, never raised.
        """
        if self._resolver is None:
            raise RuntimeError("Outbound is not started.")
        return await dialling.dial(self._resolver, self._guard, host, port, allow, timeout_seconds)

    async def _follow(self, pool: _Pool, request: Request, outcome: Outcome, began: float) -> Outcome:
        """From the first answer to the last one of the chain, within the one deadline."""
        chain = Chain(request, check_method(request.method))
        home = origin_of(request.url)
        hops: list[Hop] = []
        while (answer := outcome.response) is not None:
            leg = chain.leg
            hop = Hop(leg.method, leg.url, answer.status, leg.body is not None)
            try:
                if not chain.follow(answer):
                    break
            except NotFollowed as end:
                failure = Failure(end.kind, end.message, answer.status, answer)
                return Outcome(None, failure, outcome.timings, (*hops, hop))
            hops.append(hop)
            leg = chain.leg
            try:
                wire = wire_of(leg.method, leg.url, leg.headers, leg.body, self._user_agent)
            except Invalid as invalid:
                return _unsent("redirect_invalid", invalid.message, began, tuple(hops))
            verify = request.verify_tls or origin_of(leg.url) != home
            left = began + request.timeout_seconds - perf_counter()
            if left <= 0:  # on a kept connection it would be written before the deadline is noticed
                return Outcome(None, no_time_to_follow(request.timeout_seconds), outcome.timings, tuple(hops))
            outcome = await self._exchange(pool, wire, request, began, left, verify=verify)
        if not hops:
            return outcome
        status = outcome.response.status if outcome.response else outcome.failure.status if outcome.failure else None
        hops.append(Hop(chain.leg.method, chain.leg.url, status, chain.leg.body is not None))
        return Outcome(outcome.response, outcome.failure, outcome.timings, tuple(hops))

    async def _exchange(
        self, pool: _Pool, wire: Wire, request: Request, began: float, left: float, *, verify: bool
    ) -> Outcome:
        """One request and its answer, within the seconds that are left of the whole's time, which `began` then."""
        if refused := self._guard.judge_name(wire.url):
            return _unsent("address_refused", refused.message, began)
        probe = Probe(wire.url.raw_path, wire.literal)
        token = probes.current.set(probe)
        reading = Reading(self._body_bytes_max)
        failure: Failure | None = None
        try:
            async with asyncio.timeout(left):
                await _talk(
                    await pool.connection(wire.origin, None if verify else self._unverified), wire, probe, reading
                )
        except TROUBLE as error:
            looking_up = self._resolver is not None and self._resolver.is_looking_up(wire.url.raw_host or "")
            scene = Scene(probe, request.timeout_seconds, reading.head_at is not None, looking_up)
            failure = failure_of(error, scene)
        finally:
            probes.current.reset(token)

        timings = _timings(probe, began, reading.head_at, wire)
        response = reading.response()
        if failure is None:
            return Outcome(response, None, timings)
        if response is not None:
            failure = Failure(failure.kind, failure.message, response.status, response)
        return Outcome(None, failure, timings)

    def _open_socket(self, addr_info: aiohttp.AddrInfoType) -> socket.socket:
        return self._guard.open_socket(addr_info)


class _Pool(aiohttp.TCPConnector):
    """Connections by origin. Only those it gives out are used: nothing of aiohttp's sends by itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._origins = lru_cache(maxsize=4096)(self._origin)

    async def connection(self, origin: URL, context: ssl.SSLContext | None) -> Connection:
        """`context` None: the pool's own. Raises what aiohttp does."""
        try:
            return await self.connect(self._origins(origin, context), [], _NO_LIMITS)
        except asyncio.CancelledError:
            # A pool that is closed cancels what its connections wait for; that is no order to whoever sends.
            if self.closed and (task := asyncio.current_task()) is not None and not task.cancelling():
                raise aiohttp.ClientConnectionError("The pool was closed") from None
            self._release_waiter()  # aiohttp forgets that it woke this one, and there may be room for another
            raise

    def _origin(self, origin: URL, context: ssl.SSLContext | None) -> ClientRequest:
        """What the pool asks of a request: where it goes, and how it is to be verified."""
        return ClientRequest("GET", origin, loop=self._loop, ssl=context or True)

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        """The pool has room for one more connection."""
        if (probe := probes.current.get()) is not None:
            probe.placed_at = perf_counter()
        return await super()._create_connection(req, traces, timeout)


_NO_LIMITS = aiohttp.ClientTimeout()  # the one deadline is `_exchange`'s


async def _talk(connection: Connection, wire: Wire, probe: Probe, reading: Reading) -> None:
    """Send and read, and give the connection back if another request may follow on it. Raises what aiohttp does."""
    protocol = cast(Protocol, connection.protocol)
    sending: asyncio.Task[None] | None = None
    try:
        sending = protocol.send(wire, probe)
        await reading.run(protocol)
    finally:
        if reading.complete and (sending is None or sending.done()) and protocol.has_sent_all:
            connection.release()
        else:
            if sending is not None:
                sending.cancel()
            protocol.abort()  # close() would wait for a target that does not read
            connection.close()


def _unsent(kind: str, message: str, began: float, hops: tuple[Hop, ...] = ()) -> Outcome:
    total = (perf_counter() - began) * 1000
    return Outcome(None, Failure(kind, message), Timings(None, None, None, None, total), hops)


def _timings(probe: Probe, began: float, head_at: float | None, wire: Wire) -> Timings:
    placed, dialled, connected, ready = probe.placed_at, probe.dialled_at, probe.connected_at, probe.ready_at
    dns = connect = tls = None
    if dialled is not None:
        dns = None if wire.literal or placed is None else (dialled - placed) * 1000
        if connected is not None:
            connect = (connected - dialled) * 1000
            if ready is not None and wire.url.scheme == "https":
                tls = (ready - connected) * 1000
    first_byte = None if head_at is None else (head_at - began) * 1000
    return Timings(dns, connect, tls, first_byte, (perf_counter() - began) * 1000)
