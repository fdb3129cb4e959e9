"""Letters: what they say in each language, and that what others wrote does nothing in them."""

from __future__ import annotations

import email
import email.policy

import pytest
from tests.channels.specimens import AT
from tests.channels.test_email import Inbox, smtp

from zerocron.channels.contract import Accepted, Again, Refused, Ways
from zerocron.channels.letters import Letter, invitation_letter, post, reset_letter
from zerocron.core.mail import read_mail
from zerocron.core.people import LANGUAGES
from zerocron.outbound import Outbound

BASE = "https://cron.example.com"
PATH = "/reset/Xn2r5u8x_A-D4GbKePhVmYq3t6w9z0C1F7J2NcRfUjX"


def a_reset(language: str = "en") -> Letter:
    return reset_letter("an-id", "ada@example.com", base_url=BASE, path=PATH, language=language)


def an_invitation(language: str = "en", team: str = "Operations", inviter: str = "Bob") -> Letter:
    return invitation_letter(
        "an-id", "ada@example.com", base_url=BASE, path=PATH, language=language, team=team, inviter=inviter
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_the_link_on_a_line_of_its_own(language: str) -> None:
    subjects = set()
    for letter in (a_reset(language), an_invitation(language)):
        assert letter.text.splitlines().count(BASE + PATH) == 1
        assert "{" not in letter.text + letter.subject
        assert "0cron" in letter.subject
        subjects.add(letter.subject)
    assert len(subjects) == 2
    if language != "en":
        assert a_reset(language).text != a_reset("en").text
    assert a_reset("tlh") == a_reset("en")


def test_a_letter_shows_its_link_to_nobody_but_its_reader() -> None:
    assert PATH not in repr(a_reset())


def test_names_of_others_are_short_and_on_one_line() -> None:
    letter = an_invitation(
        team="Ops\n\nClick https://evil.example now " + "x" * 500, inviter="Bob\r\nBcc: eve@example.com"
    )
    assert "\n" not in letter.subject
    assert "\r" not in letter.text
    assert not any(line.startswith(("Click", "Bcc", "https://evil")) for line in letter.text.splitlines())
    assert len(letter.subject) < 120


async def test_a_letter_is_handed_to_the_operators_server(outbound: Outbound) -> None:
    inbox = Inbox()
    async with smtp(inbox) as port:
        mail = read_mail(f"smtp://127.0.0.1:{port}?security=none", "0cron <0cron@example.com>")
        ways = Ways(outbound.send, lambda: AT, mail=mail, dial=outbound.dial)
        assert isinstance(await post(a_reset("fr"), ways), Accepted)
        inbox.rcpt = "550 5.1.1 no such user"
        assert isinstance(await post(a_reset(), ways), Refused)
    [taken] = inbox.taken
    assert taken.rcpt_tos == ["ada@example.com"]
    assert isinstance(taken.content, bytes)
    message = email.message_from_bytes(taken.content, policy=email.policy.default)
    assert message["Subject"] == "Un nouveau mot de passe pour 0cron"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "List-Unsubscribe" not in message
    body = message.get_body()
    assert body is not None
    assert BASE + PATH in body.get_content()
    assert message.get_content_type() == "text/plain"


async def test_without_a_mail_server_nothing_is_sent(outbound: Outbound) -> None:
    assert isinstance(await post(a_reset(), Ways(outbound.send, lambda: AT)), Again)
