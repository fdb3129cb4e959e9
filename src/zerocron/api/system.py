"""/v1/system: how the installation is, for those who run it."""

from __future__ import annotations

import contextlib
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from zerocron.api.access import needs
from zerocron.api.fields import InstantText, Output, instant
from zerocron.api.services import Services, Use, Who
from zerocron.core.access import Permission
from zerocron.core.errors import TimetableAway, Unavailable
from zerocron.core.histogram import percentile
from zerocron.core.hours import hours_back
from zerocron.core.model import Instant
from zerocron.core.schedule import tzdata_version
from zerocron.storage.ledger import glances, hours
from zerocron.storage.ledger.glances import NodeRow

SESSIONS_LOOKED_AT = 50
router = APIRouter(prefix="/v1", tags=["overview"])


class NodeOut(Output):
    """A process that runs jobs."""

    node: str = Field(description="The name of its machine and its process.")
    version: str
    started_at: InstantText
    renewed_at: InstantText = Field(description="When it last said that it is alive; it does so every 5 s.")
    clock_difference_ms: int | None = Field(description="By how much its machine's clock is ahead of the ledger's.")
    status: Literal["ok", "silent"] = Field(
        description="`silent`: it has not renewed its session in time, and others are about to take its runs over."
    )


class EndedNodeOut(Output):
    """A process that ran jobs."""

    node: str
    version: str
    started_at: InstantText
    ended_at: InstantText
    reason: Literal["closed", "fenced"] = Field(
        description="`closed`: it stopped in order; `fenced`: it fell silent, and others took its runs over."
    )


class LedgerOut(Output):
    """The database."""

    kind: Literal["sqlite", "postgresql"]
    version: str | None = Field(description="Of the database; null while it is away.")
    status: Literal["ok", "away"]


class TimetableOut(Output):
    """The index of what is due."""

    kind: Literal["memory", "redis"]
    status: Literal["ok", "away"]
    size: int | None = Field(description="How many members it has; null while it is away.")


class QueueOut(Output):
    """Work of all teams, each counted up to 10,000."""

    due: int = Field(description="Jobs whose slot is due and not begun.")
    running: int
    waiting: int = Field(description="Runs that wait for their turn or their next attempt.")


class SystemLatenessOut(Output):
    """Milliseconds from a slot to its first request, of all teams in this hour and the one before."""

    p50: int
    p99: int


class LoopOut(Output):
    """A part of this node that goes round and round."""

    name: str
    status: Literal["ok", "stalled"]


class SystemOut(Output):
    """The installation, seen from the node that answers."""

    version: str
    tzdata: str = Field(description="Of its time zone data.")
    nodes: list[NodeOut] = Field(description="Those with an engine that have not ended, the newest first.")
    ended_nodes: list[EndedNodeOut] = Field(description=f"Of the last {SESSIONS_LOOKED_AT} those that have.")
    ledger: LedgerOut
    timetable: TimetableOut
    queue: QueueOut | None = Field(description="Null while the ledger is away.")
    lateness_ms: SystemLatenessOut | None
    loops: list[LoopOut] = Field(description="Of the node that answers.")


@router.get("/system", response_model=SystemOut)
@needs(Permission.ADMIN, of_server=True)
async def show_system(_who: Who, services: Use) -> SystemOut:
    """How the installation is: nodes and their clocks, ledger, timetable, queue, lateness, loops.

    It is about all teams, so it is for admins, and keys, of the server's first team.

    It is 200 also while the ledger is away, for as long as you are known; what is not known then is null or empty.
    """
    now = services.clock.now()
    nodes: list[NodeRow] = []
    queue: tuple[int, int, int] | None = None
    lateness: dict[int, int] = {}
    ledger_version: str | None = None
    with contextlib.suppress(Unavailable):  # the answer tells
        nodes, queue, lateness, ledger_version = await services.ledger.read(
            lambda connection: (
                glances.nodes(connection, SESSIONS_LOOKED_AT),
                glances.queue(connection, now),
                _summed(hours.lateness_of(connection, hours.EVERYBODY, hours_back(now, 2)[0])),
                glances.database_version(connection),
            )
        )
    p50, p99 = percentile(lateness, 50), percentile(lateness, 99)
    return SystemOut(
        version=services.version,
        tzdata=tzdata_version(),
        nodes=[_node(row, now) for row in nodes if row.ended_at is None],
        ended_nodes=[_ended(row, row.ended_at) for row in nodes if row.ended_at is not None],
        ledger=LedgerOut(kind=services.ledger_kind, version=ledger_version, status="away" if queue is None else "ok"),
        timetable=await _timetable(services),
        queue=None if queue is None else QueueOut(due=queue[0], running=queue[1], waiting=queue[2]),
        lateness_ms=None if p50 is None or p99 is None else SystemLatenessOut(p50=p50, p99=p99),
        loops=[LoopOut(name=name, status="ok" if is_fine else "stalled") for name, is_fine in services.loops()],
    )


async def _timetable(services: Services) -> TimetableOut:
    try:
        size = await services.timetable.size()
    except TimetableAway:
        return TimetableOut(kind=services.timetable_kind, status="away", size=None)
    return TimetableOut(kind=services.timetable_kind, status="ok", size=size)


def _summed(by_hour: dict[Instant, dict[int, int]]) -> dict[int, int]:
    summed: dict[int, int] = {}
    for counts in by_hour.values():
        for size, requests in counts.items():
            summed[size] = summed.get(size, 0) + requests
    return summed


def _node(row: NodeRow, now: Instant) -> NodeOut:
    return NodeOut(
        node=row.node,
        version=row.version,
        started_at=instant(row.started_at),
        renewed_at=instant(row.renewed_at),
        clock_difference_ms=row.clock_difference_ms,
        status="ok" if row.expires_at > now else "silent",
    )


def _ended(row: NodeRow, at: Instant) -> EndedNodeOut:
    return EndedNodeOut(
        node=row.node,
        version=row.version,
        started_at=instant(row.started_at),
        ended_at=instant(at),
        reason="fenced" if row.end_reason == "fenced" else "closed",
    )
