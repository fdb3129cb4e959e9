"""Specimens of the area `alerts`: each state that an alert can be in."""

from __future__ import annotations

from zerocron.dashboard.specimens.channels import ALERTS, ALL
from zerocron.dashboard.specimens.kinds import Specimen, page_of

_CHANNELS = {"GET /v1/channels": ALL}

SPECIMENS: tuple[Specimen, ...] = (
    Specimen("alerts", "Alerts", "/alerts", {"GET /v1/alerts": ALERTS, **_CHANNELS}),
    Specimen(
        "alerts-subject",
        "Alerts about one monitor",
        "/alerts?subject=01a2f3b0-0000-7000-8000-000000000003",
        {"GET /v1/alerts": ALERTS, **_CHANNELS},
    ),
    Specimen("alerts-empty", "No alert yet", "/alerts", {"GET /v1/alerts": page_of([]), **_CHANNELS}),
    Specimen("alerts-none", "No alert like that", "/alerts?status=dead", {"GET /v1/alerts": page_of([]), **_CHANNELS}),
)
