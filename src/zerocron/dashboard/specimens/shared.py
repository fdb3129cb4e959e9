"""Specimens of what all areas share: errors, and being asked who one is."""

from __future__ import annotations

from zerocron.dashboard.specimens.kinds import Specimen

_GONE = {"title": "Not Found", "status": 404, "detail": "There is no such job."}
_AWAY = {
    "title": "Service Unavailable",
    "status": 503,
    "detail": "The database cannot be used now. The same request may succeed later.",
}
_BROKEN = {
    "title": "Internal Server Error",
    "status": 500,
    "detail": "0cron failed to handle this request. The server's log has the details under this error_id.",
    "error_id": "7f3a9c12",
}
_AGAIN = {
    "title": "Forbidden",
    "status": 403,
    "detail": "Prove first that it is you: give your password, or a code of your second factor, to POST "
    "/v1/session/elevate.",
    "code": "reauthenticate",
}

SPECIMENS = (
    Specimen("error-not-found", "Something that is not there", "/", {"GET /v1/overview": (404, _GONE)}),
    Specimen("error-away", "The ledger is away", "/", {"GET /v1/overview": (503, _AWAY)}),
    Specimen("error-broken", "A fault of ours", "/", {"GET /v1/overview": (500, _BROKEN)}),
    Specimen("confirm", "Who are you, again", "/", {"GET /v1/overview": (403, _AGAIN)}),
)
