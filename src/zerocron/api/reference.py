"""/, /docs, where links in alerts lead, and what these pages are made of. No script, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from zerocron.api.docs_page import front_page, reference_page, signpost_page
from zerocron.core.errors import NotFound
from zerocron.core.model import is_uuid

CACHED = {"Cache-Control": "max-age=300"}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def front(request: Request) -> HTMLResponse:
    """What answers here, and where to go on."""
    return HTMLResponse(front_page(request.app.version))


@router.get("/jobs/{identity}")
async def job_signpost(identity: str) -> HTMLResponse:
    """Where links in alerts lead."""
    return _signpost("job", identity)


@router.get("/monitors/{identity}")
async def monitor_signpost(identity: str) -> HTMLResponse:
    """Where links in alerts lead."""
    return _signpost("monitor", identity)


def _signpost(noun: str, identity: str) -> HTMLResponse:
    """The same for those that exist and those that do not: whether one does is for its team to know."""
    if not is_uuid(identity):
        raise NotFound(f"That is no id of a {noun}.")
    return HTMLResponse(signpost_page(noun, identity))


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The reference of the API: the OpenAPI document, to read."""
    state = request.app.state
    if not hasattr(state, "reference"):
        state.reference = reference_page(request.app.openapi())
    return HTMLResponse(state.reference)


@router.get("/docs/style.css")
async def style() -> Response:
    return Response(_resource("docs.css"), media_type="text/css", headers=CACHED)


@router.get("/docs/icon.svg")
async def icon() -> Response:
    return Response(_resource("icon.svg"), media_type="image/svg+xml", headers=CACHED)


@cache
def _resource(name: str) -> bytes:
    return files("zerocron.api").joinpath(name).read_bytes()
