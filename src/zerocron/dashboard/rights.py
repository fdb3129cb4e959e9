"""A page for whoever may not do what it is for: it says so before they have typed anything."""

from __future__ import annotations

from starlette.responses import Response

from zerocron.dashboard.visit import Visit


def unable(visit: Visit, permission: str) -> Response | None:
    """The page to show in place of one that needs the permission; None when the visitor has it."""
    if visit.signed is not None and visit.signed.may(permission):
        return None
    visit.status = 403
    return visit.page("shared/unable.html", permission=permission)
