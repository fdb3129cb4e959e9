"""What the routes work with: made by the application's joiner, found through the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Header, Request, Response

from zerocron.actions.changes import Changes
from zerocron.actions.channels import Channels
from zerocron.actions.entrance import Entrance
from zerocron.actions.explaining import Explaining
from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Keys
from zerocron.actions.monitors import Monitors
from zerocron.actions.overview import Overview
from zerocron.actions.pings import Pings
from zerocron.actions.secrets import Secrets
from zerocron.actions.sign_ins import Visitor
from zerocron.actions.signing import Signing
from zerocron.actions.single_sign_on import SingleSignOn
from zerocron.clock import Clock
from zerocron.core.access import Bearer
from zerocron.core.team_limits import Limits
from zerocron.engine.trying import Trying
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import Timetable

BEARER = "zerocron.bearer"
"""Where in the scope the gate leaves who makes the request. A route that it did not guard fails for want of it."""

STILL = "zerocron.still"
"""Where in the scope the gate leaves how to ask again who makes it: an answer may take longer than a key is good."""

IS_HEAD = "zerocron.is_head"
"""Where in the scope the gate leaves whether the body of the answer is thrown away."""


@dataclass(frozen=True, slots=True)
class Services:
    """One of each. `stalled` names the engine's loops that do not go round, `loops` all and whether they do;
    `base_url` is where people reach this server, empty where it is not known; `limits` are of teams that have none of
    their own."""

    ledger: Ledger
    timetable: Timetable
    jobs: Jobs
    keys: Keys
    secrets: Secrets
    signing: Signing
    clock: Clock
    metrics: Metrics
    stalled: Callable[[], list[str]]
    version: str
    serve_metrics: bool
    monitors: Monitors
    channels: Channels
    pings: Pings
    base_url: str
    limits: Limits
    entrance: Entrance
    overview: Overview
    changes: Changes
    explaining: Explaining
    trying: Trying
    loops: Callable[[], list[tuple[str, bool]]]
    ledger_kind: Literal["sqlite", "postgresql"]
    timetable_kind: Literal["memory", "redis"]
    single_sign_on: SingleSignOn


async def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Use = Annotated[Services, Depends(services_of)]


async def _bearer(request: Request) -> Bearer:
    found: Bearer = request.scope[BEARER]
    return found


async def _visitor(request: Request) -> Visitor:
    return Visitor(request.client.host if request.client else "", request.headers.get("user-agent", ""))


Who = Annotated[Bearer, Depends(_bearer)]
FromWhere = Annotated[Visitor, Depends(_visitor)]
OnceKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="A text of your own, new for each new request. Repeating a request with the same key returns "
        "what the first one made, with the header `Idempotent-Replay: true`; keys are remembered for a day.",
        examples=["nightly-report-2027-01-01"],
    ),
]
KEY_REUSED = "The `Idempotency-Key` was used for another request, or what it made is gone."


def note_replay(response: Response, *, is_new: bool) -> None:
    """Say that this answer is about something that was made before."""
    if not is_new:
        response.headers["Idempotent-Replay"] = "true"
