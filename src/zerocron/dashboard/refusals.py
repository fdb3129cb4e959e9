"""Why an issuer or a proxy did not get somebody in: the address of the sign-in page has a name, this table its text."""

from __future__ import annotations

from collections.abc import Mapping

from zerocron.core.single_sign_on import Refusal
from zerocron.dashboard.notices import N_
from zerocron.dashboard.words import words_of

TEXTS: Mapping[str, str] = {
    Refusal.UNKNOWN: N_("Nobody with your address is known here. Ask an owner or admin of a team for an invitation."),
    Refusal.UNVERIFIED: N_("You were signed in there, but without an email address that is known to be yours."),
    Refusal.DISABLED: N_("Your account here is disabled. Ask an owner of your team."),
    Refusal.NO_TEAM: N_("You are in no team any more. Ask an owner or admin of one for an invitation."),
    Refusal.NOT_SET_UP: N_("This server has no owner yet. Whoever runs it has a link that makes the first one."),
    Refusal.EXPIRED: N_("This took too long, or began in another browser. Try again."),
    Refusal.DENIED: N_("You were not signed in there. Try again."),
    Refusal.ISSUER: N_(
        "The answer from there could not be used. Try again; if it stays so, tell whoever "
        "runs this server, whose log says why."
    ),
    Refusal.BUSY: N_("Too many people are signing in at this moment. Try again in a minute."),
    Refusal.NO_HEADER: N_("The proxy in front of this server did not say who you are. Sign in there first."),
}


def refusal_of(name: str | None, language: str) -> str:
    """The sentence; empty when there is none of that name."""
    text = TEXTS.get(name or "")
    return "" if text is None else words_of(language).gettext(text)
