"""The API as one ASGI application: routes, gate, errors, and the document that describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI
from starlette.types import Receive, Scope, Send

from zerocron.api import (
    alerts,
    audit,
    bulk,
    channels,
    events,
    explain,
    jobs,
    keys,
    me,
    monitors,
    operation,
    overview,
    problems,
    reference,
    requests,
    runs,
    schedules,
    secrets,
    setup,
    sign_in,
    signing,
    single_sign_on,
    system,
    teams,
)
from zerocron.api.access import only_who_may
from zerocron.api.forwarded import Forwarded
from zerocron.api.gate import Gate
from zerocron.api.openapi import document
from zerocron.api.pings import PATH as PING_PATH
from zerocron.api.pings import PingPath
from zerocron.api.services import Services
from zerocron.api.strictness import only_what_is_known
from zerocron.serving import Answer

_MODULES = (
    overview,
    events,
    explain,
    requests,
    system,
    bulk,
    jobs,
    runs,
    monitors,
    channels,
    alerts,
    schedules,
    secrets,
    signing,
    keys,
    teams,
    audit,
    sign_in,
    me,
    setup,
)
"""In the order of the reference."""


class Application(FastAPI):
    """FastAPI with our document; pings go past all of it, which would cost more than they do."""

    ping_path: PingPath | None = None
    forwarded: Forwarded | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.forwarded is not None and scope["type"] == "http":
            scope = self.forwarded.applied(scope)
        if self.ping_path is not None and scope["type"] == "http" and scope["path"].startswith(PING_PATH):
            await self.ping_path(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def prompt(self, scope: Scope, answer: Callable[[Answer], None]) -> bool:
        """As `serving.Prompt` has it: of all requests, pings."""
        if self.ping_path is None or not scope["path"].startswith(PING_PATH):
            return False
        return self.ping_path.prompt(scope if self.forwarded is None else self.forwarded.applied(scope), answer)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = document(self)
        return self.openapi_schema


def create_application(
    services: Services, *, only_operation: bool = False, forwarded: Forwarded | None = None
) -> FastAPI:
    """The application over these services. `only_operation` leaves out all but health and metrics; `forwarded` is what
    is believed of proxies, None where there are none."""
    app = Application(
        title="0cron",
        version=services.version,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a redirect would be built from whatever the Host header says
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(only_who_may)],
    )
    app.state.services = services
    app.forwarded = forwarded
    problems.install(app)
    app.add_middleware(Gate, services=services)
    if not only_operation:
        app.ping_path = PingPath(services.pings)
    app.include_router(operation.router)
    if not only_operation:
        for module in _MODULES:
            app.include_router(module.router, dependencies=[Depends(only_what_is_known)])
        app.include_router(reference.router)
        app.include_router(single_sign_on.router)
    return app
