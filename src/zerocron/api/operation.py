"""/healthz, /readyz, /metrics: for those who run the server. No key is needed."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from zerocron.api.fields import Output
from zerocron.api.services import Use
from zerocron.core.errors import NotFound, Unavailable
from zerocron.storage.ledger import facts

router = APIRouter(tags=["operation"])


class HealthOut(Output):
    status: str
    version: str


class ReadyOut(Output):
    status: str
    ledger: str
    stalled_loops: list[str]


@router.get("/healthz", response_model=HealthOut)
async def healthz(services: Use) -> HealthOut:
    """Whether the process answers at all."""
    return HealthOut(status="ok", version=services.version)


@router.get("/readyz", response_model=ReadyOut, responses={503: {"model": ReadyOut}})
async def readyz(services: Use, response: Response) -> ReadyOut:
    """Whether this node can do its work: the ledger answers and every loop goes round. 503 when not."""
    stalled = services.stalled()
    try:
        await services.ledger.read(lambda connection: facts.get(connection, "tzdata"))
        ledger = "ok"
    except Unavailable:
        ledger = "unavailable"
    ready = not stalled and ledger == "ok"
    response.status_code = 200 if ready else 503
    return ReadyOut(status="ready" if ready else "not ready", ledger=ledger, stalled_loops=stalled)


@router.get("/metrics", response_class=Response)
async def metrics(services: Use) -> Response:
    """Metrics in Prometheus' text format."""
    if not services.serve_metrics:
        raise NotFound("Metrics are switched off on this server.")
    services.stalled()
    return Response(services.metrics.render(), media_type=CONTENT_TYPE_LATEST)
