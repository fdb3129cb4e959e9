"""The API as one ASGI application: routes, gate, errors."""

from __future__ import annotations

from fastapi import FastAPI

from zerocron.api import jobs, keys, operation, problems, runs, schedules
from zerocron.api.gate import Gate
from zerocron.api.services import Services

DESCRIPTION = """
0cron calls HTTP endpoints on schedule and keeps a record of every slot.

Send your API key as `Authorization: Bearer 0c_...`. Errors are `application/problem+json` (RFC 9457) and say what to
do. Lists take `limit` and `cursor`; instants are RFC 3339 in UTC; durations are seconds unless a name ends in `_ms`.
"""


def create_application(services: Services) -> FastAPI:
    """The application over these services."""
    app = FastAPI(
        title="0cron",
        version=services.version,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.services = services
    problems.install(app)
    app.add_middleware(Gate)
    for module in (jobs, runs, schedules, keys, operation):
        app.include_router(module.router)
    return app
