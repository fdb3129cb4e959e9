"""/, /docs and its style sheet: the pages for people. No script, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from zerocron.api.docs_page import front_page, reference_page

STYLE_PATH = "/docs/style.css"

router = APIRouter(include_in_schema=False)


@router.get("/")
async def front(request: Request) -> HTMLResponse:
    """What answers here, and where to go on."""
    return HTMLResponse(front_page(request.app.version))


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The reference of the API: the OpenAPI document, to read."""
    return HTMLResponse(reference_page(request.app.openapi()))


@router.get(STYLE_PATH)
async def style() -> Response:
    return Response(_style(), media_type="text/css", headers={"Cache-Control": "max-age=300"})


@cache
def _style() -> bytes:
    return files("zerocron.api").joinpath("docs.css").read_bytes()
