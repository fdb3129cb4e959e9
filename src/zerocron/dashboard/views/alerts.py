"""The pages of alerts: what people were told, by which channel, and what came of it."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from zerocron.dashboard.routes import Page, page
from zerocron.dashboard.visit import Visit, lines_of

STATUSES = ("pending", "sent", "folded", "dead")
CHANNELS_SHOWN_MAX = 200


async def show_all(visit: Visit) -> Response:
    """GET /alerts."""
    asked = {name: visit.query.get(name, "") for name in ("status", "channel", "subject")}
    asked["status"] = asked["status"] if asked["status"] in STATUSES else ""
    query = {**asked, "cursor": visit.query.get("cursor", "")}
    if visit.is_fragment:
        alerts, cursor = await lines_of(visit.api, "/v1/alerts", query)
        return visit.page("alerts/rows.html", alerts=alerts, cursor=cursor, asked=asked)
    (alerts, cursor), (channels, _more) = await asyncio.gather(
        lines_of(visit.api, "/v1/alerts", query),
        lines_of(visit.api, "/v1/channels", {"limit": CHANNELS_SHOWN_MAX}),
    )
    return visit.page(
        "alerts/alerts.html",
        alerts=alerts,
        cursor=cursor,
        asked=asked,
        channels=channels,
        statuses=STATUSES,
    )


PAGES: tuple[Page, ...] = (page("/alerts", show_all),)
