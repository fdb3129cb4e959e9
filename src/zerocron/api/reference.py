"""/, /docs and what they are made of: the pages for people. No script, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from zerocron.api.docs_page import front_page, reference_page

CACHED = {"Cache-Control": "max-age=300"}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def front(request: Request) -> HTMLResponse:
    """What answers here, and where to go on."""
    return HTMLResponse(front_page(request.app.version))


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
