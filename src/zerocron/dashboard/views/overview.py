"""The overview: what fails, what is late, what runs next."""

from __future__ import annotations

from starlette.responses import Response

from zerocron.dashboard.routes import Page, page
from zerocron.dashboard.visit import Visit


async def show(visit: Visit) -> Response:
    """GET /."""
    return visit.page("overview/overview.html", overview=await visit.api.get("/v1/overview"))


PAGES: tuple[Page, ...] = (page("/", show),)
