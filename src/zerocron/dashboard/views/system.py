"""The page of whoever runs the server: what works, what does not, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from zerocron.dashboard.routes import Page, page
from zerocron.dashboard.visit import Visit

CLOCKS_HELD_MS = 5_000
"""Clocks that differ by more hold all starts (`zerocron.clock`)."""
CLOCKS_MIND_MS = 1_000
LATE_MS = 5_000
"""More than the promise has for all but the rarest run."""
WORKS = frozenset({"ok", "alive"})
ENDED = frozenset({"closed", "fenced"})
"""Nodes that were stopped, or whose runs others took over: history."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not as it should be: a name that the template has words for, and whom it is about."""

    name: str
    about: str = ""
    is_grave: bool = True


async def show(visit: Visit) -> Response:
    """GET /system."""
    system = await visit.api.get("/v1/system")
    nodes = [node for node in system["nodes"] if node["status"] not in ENDED]
    ended = [node for node in system["nodes"] if node["status"] in ENDED]
    troubles = list(troubles_of(system))
    return visit.page("system/system.html", system=system, nodes=nodes, ended=ended, troubles=troubles, works=WORKS)


def troubles_of(system: Mapping[str, Any]) -> Iterator[Trouble]:
    """What is wrong, the gravest first."""
    alive = [node for node in system["nodes"] if _works(node)]
    if not _works(system["ledger"]):
        yield Trouble("ledger")
    yield from (Trouble("clock", node["node"]) for node in alive if _off_ms(node) > CLOCKS_HELD_MS)
    yield from (Trouble("loop", loop["name"]) for loop in system["loops"] if not _works(loop))
    if not _works(system["timetable"]):
        yield Trouble("timetable")
    yield from (Trouble("node", node["node"]) for node in system["nodes"] if node["status"] == "silent")
    if system["lateness_ms"] is not None and system["lateness_ms"]["p99"] > LATE_MS:
        yield Trouble("late")
    for node in alive:
        if CLOCKS_MIND_MS < _off_ms(node) <= CLOCKS_HELD_MS:
            yield Trouble("clock_a_little", node["node"], is_grave=False)
    if len({node["version"] for node in alive}) > 1:
        yield Trouble("versions", is_grave=False)


def _works(part: Mapping[str, Any]) -> bool:
    return part["status"] in WORKS


def _off_ms(node: Mapping[str, Any]) -> float:
    return abs(float(node["clock_difference_ms"] or 0))


PAGES: tuple[Page, ...] = (page("/system", show),)
