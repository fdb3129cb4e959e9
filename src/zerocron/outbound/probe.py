"""The marks that one request leaves on its way through aiohttp.

A probe travels in a context variable, since the pool hands nothing of ours on to where sockets are made. The places
that matter (a place in the pool, socket made, connection made, connection handed over) mark it.
"""

from __future__ import annotations

from contextvars import ContextVar

from zerocron.core.addresses import Refusal


class Probe:
    """One request's luggage: what it needs on the way out, and what was seen there.

    The marks are of `perf_counter`: uvloop's own clock moves in whole milliseconds, once per turn.
    """

    __slots__ = (
        "connected_at",
        "dialled_at",
        "dialled_ipv4",
        "literal",
        "path",
        "placed_at",
        "ready_at",
        "refusal",
        "single_use",
    )

    def __init__(self, path: str, literal: bool) -> None:
        self.path = path
        self.literal = literal  # the host is an address
        self.placed_at: float | None = None  # the pool had room
        self.dialled_at: float | None = None
        self.dialled_ipv4 = False
        self.connected_at: float | None = None
        self.ready_at: float | None = None
        self.refusal: Refusal | None = None
        self.single_use = False  # the connection must not serve another request


current: ContextVar[Probe | None] = ContextVar("zerocron_outbound_probe", default=None)
