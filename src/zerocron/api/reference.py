"""/docs: the reference of the API, and what its page is made of. No script, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from zerocron.api.docs_page import reference_page

CACHED = {"Cache-Control": "max-age=300"}

router = APIRouter(include_in_schema=False)


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
