"""What the routes work with: made by the application's joiner, found through the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import HTTPBearer

from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Bearer, Keys
from zerocron.clock import Clock
from zerocron.metrics import Metrics
from zerocron.storage.ledger.database import Ledger


@dataclass(frozen=True, slots=True)
class Services:
    """One of each. `stalled` names the engine's loops that do not go round."""

    ledger: Ledger
    jobs: Jobs
    keys: Keys
    clock: Clock
    metrics: Metrics
    stalled: Callable[[], list[str]]
    version: str
    serve_metrics: bool


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Use = Annotated[Services, Depends(services_of)]

# Only for the OpenAPI document: recognising the key is ours, so that every refusal has the same text.
_scheme = HTTPBearer(auto_error=False, description="An API key, `0c_...`.")


async def _bearer(
    services: Use,
    authorization: Annotated[str | None, Header(include_in_schema=False)] = None,
    _documented: Annotated[object, Security(_scheme)] = None,
) -> Bearer:
    return await services.keys.recognise(authorization)


Who = Annotated[Bearer, Depends(_bearer)]
OnceKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="A text of your own, new for each new request. Repeating a request with the same key returns "
        "what the first one made; keys are remembered for a day.",
    ),
]
