"""/healthz, /readyz, /metrics: for those who run the server. No key is needed."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field

from zerocron.api.fields import Output
from zerocron.api.problems import RETRY_AFTER
from zerocron.api.services import Use
from zerocron.core.errors import NotFound, TimetableAway, Unavailable
from zerocron.storage.ledger import facts

router = APIRouter(tags=["operation"])


class HealthOut(Output):
    """The process answers."""

    status: Literal["ok"]
    version: str


class ReadyOut(Output):
    """Whether the node can do its work, and if not, what does not go."""

    status: Literal["ready", "not ready"]
    ledger: Literal["ok", "unavailable"]
    timetable: Literal["ok", "unavailable"] = Field(
        description="Whether Redis answers; without Redis always `ok`. It holds an index only: while it is away the "
        "node stays ready, and finds what is due in the ledger."
    )
    stalled_loops: list[str] = Field(description="Parts of the engine that have not gone round for too long.")


@router.get("/healthz", response_model=HealthOut)
async def show_health(services: Use) -> HealthOut:
    """Whether the process answers at all."""
    return HealthOut(status="ok", version=services.version)


@router.get(
    "/readyz", response_model=ReadyOut, responses={503: {"model": ReadyOut, "description": "It cannot do its work."}}
)
async def show_readiness(services: Use, response: Response) -> ReadyOut:
    """Whether this node can do its work: the ledger answers and every loop goes round."""
    stalled = services.stalled()
    ledger: Literal["ok", "unavailable"] = "ok"
    try:
        await services.ledger.read(lambda connection: facts.get(connection, "tzdata"))
    except Unavailable:
        ledger = "unavailable"
    timetable: Literal["ok", "unavailable"] = "ok"
    try:
        await services.timetable.size()
    except TimetableAway:
        timetable = "unavailable"
    if stalled or ledger != "ok":
        response.status_code = 503
        response.headers.update(RETRY_AFTER)
        return ReadyOut(status="not ready", ledger=ledger, timetable=timetable, stalled_loops=stalled)
    return ReadyOut(status="ready", ledger=ledger, timetable=timetable, stalled_loops=[])


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={404: {"description": "Metrics are switched off on this server."}},
)
async def show_metrics(services: Use) -> Response:
    """Metrics in Prometheus' text format."""
    if not services.serve_metrics:
        raise NotFound("Metrics are switched off on this server.")
    services.stalled()
    return Response(services.metrics.render(), media_type=CONTENT_TYPE_LATEST)
