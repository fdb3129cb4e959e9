"""Every page and state with sample data, for whoever changes a style and for tests. Served in development only.

A specimen is an address of the dashboard and what the API would answer: the views are the real ones, and know nothing.
"""

from __future__ import annotations

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from zerocron.dashboard.specimens import (
    account,
    alerts,
    channels,
    job_form,
    jobs,
    monitors,
    overview,
    runs,
    secrets,
    shared,
    sign_in,
    system,
    team,
)
from zerocron.dashboard.specimens.kinds import NOW, SESSION, Specimen

__all__ = ["NOW", "SPECIMENS", "Specimen", "canned"]

_MODULES = (overview, jobs, job_form, runs, monitors, channels, alerts, secrets, sign_in, account, team, system, shared)

SPECIMENS: dict[str, Specimen] = {each.name: each for module in _MODULES for each in module.SPECIMENS}


def canned(specimen: Specimen, language: str = "en") -> ASGIApp:
    """The API as it is in a specimen, for somebody who reads that language. What it does not tell is not there."""
    answers = {"GET /v1/session": SESSION} | dict(specimen.answers)
    session = answers["GET /v1/session"]
    if not isinstance(session, tuple):
        answers["GET /v1/session"] = {**session, "person": {**session["person"], "language": language}}

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        key = f"{scope['method']} {scope['path']}"
        found = answers.get(key)
        status, data = found if isinstance(found, tuple) else (200, found)
        if found is None:
            status, data = 404, {"title": "Not Found", "status": 404, "detail": f"The specimen does not tell: {key}"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps(data)})

    return application
