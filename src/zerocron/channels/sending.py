"""One attempt to send a message, whatever the kind does.

Owns the time limit of an attempt and what becomes of a kind that fails in a way it should not. Must never try twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from zerocron.channels.contract import SEND_TIMEOUT_SECONDS, Again, Delivery, Envelope, Kind, Ways
from zerocron.clock import Clock

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outlets:
    """What messages are sent with. `base_url` is where people reach this server, empty where that is not known."""

    kinds: Mapping[str, Kind]
    ways: Ways
    base_url: str = ""


async def deliver(kind: Kind, config: Mapping[str, object], envelope: Envelope, ways: Ways, clock: Clock) -> Delivery:
    """What came of it, within SEND_TIMEOUT_SECONDS. Raises nothing but CancelledError."""
    sending = asyncio.create_task(_attempt(kind, config, envelope, ways))
    limit = asyncio.create_task(clock.sleep(SEND_TIMEOUT_SECONDS))
    both: tuple[asyncio.Task[object], ...] = (sending, limit)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            return sending.result()
        return Again(f"There was no answer within {SEND_TIMEOUT_SECONDS:.0f} seconds.")
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _attempt(kind: Kind, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
    try:
        return await kind.deliver(config, envelope, ways)
    except Exception:
        log.exception("channel_failed", kind=kind.name, alert=envelope.alert_id)
        return Again("The message could not be made or sent; the server's log has the details.")
