"""Letters: mails to one person about themselves, such as a link for a new password.

Owns their words, in three languages, and their form: plain text with one link on a line of its own. They go through the
operator's mail server as the mails of channels do. What others wrote (the name of a team) is cleaned and short, so that
it says nothing of its own. Must never be logged: a letter holds a link that lets its reader in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zerocron.channels.contract import Delivery, Ways
from zerocron.channels.email import NO_SERVER, empty_mail, hand_in
from zerocron.channels.text import one_line

NAME_UNITS_MAX = 60


@dataclass(frozen=True, slots=True)
class Letter:
    """`id`: the same however often it is sent. `to`: an address that was checked."""

    id: str
    to: str
    subject: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Words:
    reset_subject: str
    reset: str
    invitation_subject: str
    invitation: str


_WORDS: Mapping[str, _Words] = {
    "en": _Words(
        "A new password for 0cron",
        "Somebody, and we hope it was you, asked for a new password for your account at {server}.\n\n"
        "Set it here, within an hour:\n\n{url}\n\n"
        "If it was not you, do nothing: your password stays as it is.\n",
        "Invitation to {team} on 0cron",
        "{inviter} invites you to the team {team} at {server}.\n\n"
        "Accept it here, within seven days:\n\n{url}\n\n"
        "If you do not know what this is about, do nothing.\n",
    ),
    "fr": _Words(
        "Un nouveau mot de passe pour 0cron",
        "Quelqu'un, vous-même nous l'espérons, a demandé un nouveau mot de passe pour votre compte sur {server}.\n\n"
        "Choisissez-le ici, dans l'heure :\n\n{url}\n\n"
        "Si ce n'était pas vous, ne faites rien : votre mot de passe reste inchangé.\n",
        "Invitation à rejoindre {team} sur 0cron",
        "{inviter} vous invite à rejoindre l'équipe {team} sur {server}.\n\n"
        "Acceptez ici, sous sept jours :\n\n{url}\n\n"
        "Si vous ne savez pas de quoi il s'agit, ne faites rien.\n",
    ),
    "es": _Words(
        "Una nueva contraseña para 0cron",
        "Alguien, esperamos que usted, ha pedido una nueva contraseña para su cuenta en {server}.\n\n"
        "Elíjala aquí, antes de una hora:\n\n{url}\n\n"
        "Si no fue usted, no haga nada: su contraseña no cambia.\n",
        "Invitación al equipo {team} en 0cron",
        "{inviter} le invita al equipo {team} en {server}.\n\n"
        "Acepte aquí, antes de siete días:\n\n{url}\n\n"
        "Si no sabe de qué se trata, no haga nada.\n",
    ),
}


def reset_letter(letter_id: str, to: str, *, base_url: str, path: str, language: str) -> Letter:
    """To a person who asked for a new password. `path`: of the link, below `base_url`."""
    words = _WORDS.get(language, _WORDS["en"])
    text = words.reset.format(server=base_url, url=base_url + path)
    return Letter(letter_id, to, words.reset_subject, text)


def invitation_letter(
    letter_id: str, to: str, *, base_url: str, path: str, language: str, team: str, inviter: str
) -> Letter:
    """To somebody who is invited to a team. `inviter`: the name of who does."""
    words = _WORDS.get(language, _WORDS["en"])
    team, inviter = one_line(team, NAME_UNITS_MAX), one_line(inviter, NAME_UNITS_MAX)
    text = words.invitation.format(team=team, inviter=inviter, server=base_url, url=base_url + path)
    return Letter(letter_id, to, words.invitation_subject.format(team=team), text)


async def post(letter: Letter, ways: Ways) -> Delivery:
    """Make one attempt. Raises nothing for what a mail server or the network does."""
    if ways.mail is None:
        return NO_SERVER
    message = empty_mail(ways.mail, letter.to, letter.subject, letter.id, ways.now())
    message.set_content(letter.text)
    return await hand_in(letter.to, message, ways)
