"""A page for whoever may not do what it is for: it says so before they have typed anything."""

from __future__ import annotations

from datetime import datetime

from starlette.responses import Response

from zerocron.dashboard.visit import Visit


def unable(visit: Visit, permission: str) -> Response | None:
    """The page to show in place of one that needs the permission; None when the visitor has it."""
    if visit.signed is not None and visit.signed.may(permission):
        return None
    visit.status = 403
    return visit.page("shared/unable.html", permission=permission)


def unproved(visit: Visit) -> Response | None:
    """The question who they are, for a page whose act the API wants proof for; None when they proved it lately.

    It is asked first, because what was typed into a form that is refused for this is lost.
    """
    until = None if visit.signed is None else visit.signed.session["elevated_until"]
    if until is not None and datetime.fromisoformat(until.replace("Z", "+00:00")) > visit.site.now():
        return None
    return visit.page("shared/confirm.html", next=visit.here)
