"""What `0cron doctor` finds of PostgreSQL and Redis. It connects to both, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from zerocron.clock import SystemClock
from zerocron.core.errors import Unavailable
from zerocron.settings import Settings
from zerocron.storage.ledger.postgres import PostgresLedger
from zerocron.storage.ledger.sessions import database_time, live_clock_differences
from zerocron.storage.timetable.redis import RedisTimetable


@dataclass(frozen=True, slots=True)
class Away:
    """A service that could not be used, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What a look at PostgreSQL and Redis found. `redis_policy` None: no Redis is configured."""

    nodes: int | Away
    clock_ahead_ms: int
    redis_policy: str | Away | None


async def look_at_cluster(settings: Settings) -> ClusterState:
    """For `doctor`: connect to both services, change nothing. Raises Invalid for a URL that makes no sense."""
    nodes: int | Away
    ahead_ms = 0
    try:
        ledger = await PostgresLedger.open(settings.database_url, lambda _connection: None, connections_max=3)
    except Unavailable as error:
        nodes = Away(error.message)
    else:
        try:
            nodes, ahead_ms = await ledger.read(_living_nodes)
        except (Unavailable, DBAPIError):
            nodes = Away("Its schema is not there yet, or cannot be read; a server makes it when it starts.")
        finally:
            await ledger.close()
    redis_policy: str | Away | None = None
    if settings.redis_url:
        timetable = await RedisTimetable.open(settings.redis_url, prefix=settings.redis_prefix)
        try:
            await timetable.size()
            redis_policy = await timetable.eviction_policy()
        except Unavailable as error:
            redis_policy = Away(error.message)
        finally:
            await timetable.close()
    return ClusterState(nodes, ahead_ms, redis_policy)


def _living_nodes(connection: Connection) -> tuple[int, int]:
    now = database_time(connection) or 0
    return len(live_clock_differences(connection, now)), SystemClock().now() - now
