"""Hears when another node has put an earlier member.

Owns the subscription: one connection that is made again for ever, with a growing pause, and that is asked for a sign of
life when it is silent. What is missed while it is away is found by the poll, so that nothing depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from zerocron.clock import Clock
from zerocron.storage.timetable.connection import UNREACHABLE, RedisClients, kind_of

log = structlog.get_logger(__name__)

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0
SILENCE_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 1.0


class Wakeups:
    """Calls `wake` for every message that is not from `claimer`, and after every gap, until its task is cancelled."""

    def __init__(
        self,
        clients: RedisClients,
        channels: Collection[str],
        claimer: str,
        *,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._clients = clients
        self._channels = channels
        self._claimer = claimer
        self._clock = clock
        self._wake = wake
        self._pause_seconds = PAUSE_SECONDS_MIN
        self._gap = False
        self.subscribed = asyncio.Event()

    async def run(self) -> None:
        turn = 0
        while True:
            try:
                async with self._clients.pubsub(turn) as pubsub:
                    await self._follow(pubsub)
            except (RedisError, *UNREACHABLE) as error:
                if not self._gap:
                    log.warning("redis_wakeups_lost", error=kind_of(error))
            self.subscribed.clear()
            self._gap = True
            await self._clock.sleep(self._pause_seconds)
            self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)
            turn += 1

    async def _follow(self, pubsub: PubSub) -> None:
        """Until the connection is lost, or silent for too long."""
        await pubsub.subscribe(*self._channels)
        for _ in self._channels:
            if await self._next(pubsub, ANSWER_SECONDS_MAX) is None:
                return
        self.subscribed.set()
        self._pause_seconds = PAUSE_SECONDS_MIN
        if self._gap:
            self._gap = False
            self._wake()
        while True:
            message = await self._next(pubsub, SILENCE_SECONDS_MAX)
            if message is None:
                await pubsub.ping()
                message = await self._next(pubsub, ANSWER_SECONDS_MAX)
            if message is None:
                return
            if message.get("type") == "message" and message.get("data") != self._claimer:
                self._wake()

    async def _next(self, pubsub: PubSub, seconds: float) -> dict[str, object] | None:
        message: dict[str, object] | None = await pubsub.get_message(timeout=seconds)
        return message
