"""From a Redis URL to clients that answer soon or fail soon.

Owns the URLs that are accepted and every option of redis-py: no retries of its own (they would run a script again
behind our back), short time-outs, a bound on connections. The only module that touches redis-py's loose types. Must
never put a URL or a password into a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from redis.asyncio import ConnectionPool, Redis, RedisCluster, Sentinel
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ReadOnlyError, RedisClusterException, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from zerocron.core.errors import Invalid
from zerocron.storage.timetable.scripts import Script

SOCKET_SECONDS = 0.5
"""The longest wait for a connection, and for each answer."""

SENTINEL_SECONDS = 0.2
"""Shorter, so that two sentinels of three may be away and the third is still asked in time."""

CONNECTIONS_MAX = 8
"""Calls under way at once; more wait in line. Redis works on one at a time anyway."""

UNREACHABLE = (RedisConnectionError, RedisTimeoutError, RedisClusterException, OSError, TimeoutError)
"""What is raised when there was no answer. Every other `RedisError` is an answer: a refusal."""

_FORMS = "redis://host:6379/0, rediss:// (TLS), unix:///path, redis+sentinel://host,host/name/0, redis+cluster://host"
_QUERY = {"db", "username", "password", "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password"}
_QUERY |= {"ssl_cert_reqs", "ssl_check_hostname", "ssl_min_version"}


class RedisClients:
    """One for commands; and for listening one or more to try in turn."""

    def __init__(
        self, commands: Redis | RedisCluster, listeners: Sequence[Redis], others: Sequence[Sentinel] = ()
    ) -> None:
        self._commands = commands
        self._listeners = listeners
        self._others = others
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)

    async def run(self, script: Script, keys: Sequence[str], words: Sequence[str | int]) -> Any:
        """What the script answers. Raises what redis-py raises; see `UNREACHABLE`."""
        async with self._places:
            execute = cast(Callable[..., Awaitable[Any]], self._commands.execute_command)
            try:
                return await execute("EVALSHA", script.sha, len(keys), *keys, *words)
            except NoScriptError:  # a new server, or its scripts were flushed: nothing was run
                return await execute("EVAL", script.text, len(keys), *keys, *words)
            except ReadOnlyError:
                await self._look_for_the_master()
                raise

    def pubsub(self, turn: int) -> PubSub:
        """Cluster nodes pass messages on to each other, so any of them will do."""
        return self._listeners[turn % len(self._listeners)].pubsub()

    async def info(self) -> Mapping[str, Any]:
        """What a server says of itself."""
        return cast(Mapping[str, Any], await cast(Callable[[], Awaitable[Any]], self._listeners[0].info)())

    async def aclose(self) -> None:
        clients = {id(client): client for client in (*self._listeners, self._commands, *self._others)}
        for client in clients.values():
            await client.aclose()

    async def _look_for_the_master(self) -> None:
        """A fail-over has made a replica of this server; behind the same name there may be another by now."""
        if isinstance(self._commands, Redis):
            await self._commands.connection_pool.disconnect(inuse_connections=False)


def connect(url: str) -> RedisClients:
    """Clients for a URL; nothing is sent yet. Raises Invalid."""
    try:
        parts = urlsplit(url)
        scheme, _, kind = parts.scheme.partition("+")
        if scheme not in ("redis", "rediss", "unix") or kind not in ("", "sentinel", "cluster"):
            raise ValueError("scheme")
        if scheme == "unix" and kind:
            raise ValueError("scheme")
        if not set(parse_qs(parts.query)) <= _QUERY:
            raise ValueError("query")
        if kind == "sentinel":
            return _through_sentinel(parts, scheme)
        if kind == "cluster":
            return _cluster(parts, scheme)
        return _single(url, parts)
    except (ValueError, TypeError):
        raise Invalid(f"The Redis URL is none of these: {_FORMS}.", field="redis_url") from None


def _single(url: str, parts: SplitResult) -> RedisClients:
    if parts.scheme == "unix":
        if not parts.path:
            raise ValueError("path")
    else:
        if not parts.hostname:
            raise ValueError("host")
        _database(parts.path)
    client = Redis.from_pool(ConnectionPool(**(_parsed(url) | _options(SOCKET_SECONDS)), max_connections=_POOL))
    return RedisClients(client, [client])


def _through_sentinel(parts: SplitResult, scheme: str) -> RedisClients:
    service, _, database = parts.path.lstrip("/").partition("/")
    hosts = _hosts(parts, 26379)
    if not service or not hosts:
        raise ValueError("service")
    options = _parsed(_base_url(parts, scheme, _database(database))) | _options(SOCKET_SECONDS)
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    asking = _options(SENTINEL_SECONDS) | ({"ssl": True, **_tls(options)} if "ssl" in options else {})
    sentinel = cast(Callable[..., Sentinel], Sentinel)(hosts, sentinel_kwargs=asking)
    client = cast(Redis, sentinel.master_for(service, max_connections=_POOL, **options))
    return RedisClients(client, [client], [sentinel])


def _cluster(parts: SplitResult, scheme: str) -> RedisClients:
    hosts = _hosts(parts, 6379)
    if not hosts or _database(parts.path):
        raise ValueError("host")
    options = _parsed(_base_url(parts, scheme, 0)) | _options(SOCKET_SECONDS)
    options.pop("db", None)
    connection = {"connection_class": options["connection_class"]} if "connection_class" in options else {}
    pools = [
        ConnectionPool(**(options | connection | {"host": host, "port": port}), max_connections=_POOL)
        for host, port in hosts
    ]
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    cluster = RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in hosts],
        require_full_coverage=False,  # a shard that is away must not stop the others
        max_connections=_POOL,
        **options,
    )
    return RedisClients(cluster, [Redis.from_pool(pool) for pool in pools])


_POOL = CONNECTIONS_MAX + 2
"""One for listening, and one to spare: a connection that is being given back is still counted."""


def _options(seconds: float) -> dict[str, Any]:
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
        "decode_responses": True,
        "encoding_errors": "surrogateescape",  # a member that is no text must not stop a claim
    }


def _parsed(url: str) -> dict[str, Any]:
    return dict(cast(Mapping[str, Any], parse_url(url)))


def _base_url(parts: SplitResult, scheme: str, database: int) -> str:
    """The URL of one server, for its user, password and TLS options; the host in it is not used."""
    user, at, _ = parts.netloc.rpartition("@")
    return f"{scheme}://{user}{at}host/{database}" + (f"?{parts.query}" if parts.query else "")


def _hosts(parts: SplitResult, default_port: int) -> list[tuple[str, int]]:
    hosts = [urlsplit("//" + host) for host in parts.netloc.rpartition("@")[2].split(",") if host]
    return [(host.hostname, host.port or default_port) for host in hosts if host.hostname]


def _database(path: str) -> int:
    text = path.strip("/")
    return int(text) if text else 0


def _tls(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name.startswith("ssl_")}


def kind_of(error: BaseException) -> str:
    """An error in one word, for logs: Redis' own (`OOM`, `READONLY`), or the name of what was raised."""
    word = str(error).partition(" ")[0] if isinstance(error, RedisError) else ""
    return word if word.isupper() else type(error).__name__
