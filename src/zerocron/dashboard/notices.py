"""What a page says was just done: its address has a name, this table its text. Nothing an address holds is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerocron.dashboard.words import words_of

if TYPE_CHECKING:
    from zerocron.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class Notice:
    """A text, and where what was done can be undone (a POST), if it can."""

    text: str
    undo: str = ""


def N_(text: str) -> str:
    """Marks a text for the catalogs; it is translated when it is shown."""
    return text


TEXTS: Mapping[str, str] = {
    "saved": N_("Saved."),
    "created": N_("Created."),
    "created_before": N_("This form was sent before: here is what it made. It was not made a second time."),
    "deleted": N_("Deleted."),
    "paused": N_("Paused."),
    "resumed": N_("Resumed."),
    "triggered": N_("Started. It is shown here in a moment."),
    "triggered_before": N_("This was started already; it was not started a second time."),
    "sent": N_("Sent."),
    "revoked": N_("Revoked."),
    "signed_out": N_("You are signed out."),
    "password_changed": N_("Your password is changed. Other browsers are signed out."),
    "reset_sent": N_("If there is such a person, a link is on its way to their mail."),
    "password_reset": N_("Your password is changed. Sign in with it."),
    "invited": N_("The invitation is on its way."),
    "withdrawn": N_("Withdrawn: its link does not work any more."),
    "joined": N_("Welcome: you are in the team."),
    "team_made": N_("The team is there, and you look at it now."),
    "left": N_("Done: they are not in the team any more."),
    "left_team": N_("You are not in the team any more. Sign in to look at another one."),
    "team_deleted": N_("The team is deleted. Sign in to look at another one."),
    "linked": N_("Linked: you come in by it from now on."),
    "unlinked": N_("It is taken off. Other browsers are signed out."),
    "ended": N_("Signed out there."),
    "ended_others": N_("Signed out everywhere but here."),
    "second_factor_off": N_("The second factor is off. Other browsers are signed out."),
}
UNDO: Mapping[str, str] = {"paused": "resume", "resumed": "pause"}
"""What takes back what was done to the job or monitor on whose page the notice is."""


def notice_of(visit: Visit) -> Notice | None:
    """The notice that the address of a page asks for."""
    name = visit.query.get("done", "")
    text = TEXTS.get(name)
    if text is None:
        return None
    subject = visit.request.url.path
    can_undo = name in UNDO and subject.startswith(("/jobs/", "/monitors/"))
    return Notice(words_of(visit.language).gettext(text), f"{subject}/{UNDO[name]}" if can_undo else "")
