"""Mail, through the operator's own server (`zerocron.core.mail.Mail`); users give an address and nothing else.

Owns the form of a mail (a text part and an HTML part that say the same, without anything remote) and what SMTP's
replies mean. The socket comes from `ways.dial`, past the guard of addresses. Message-ID is made of the alert's id, so a
repeated delivery is recognisable. Must never send a password over a connection that is not what the operator set.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate
from functools import lru_cache
from typing import cast

import aiosmtplib

from zerocron.channels.configuration import texts
from zerocron.channels.contract import (
    SEND_TIMEOUT_SECONDS,
    Accepted,
    Again,
    ConfigField,
    Delivery,
    Envelope,
    Refused,
    Ways,
)
from zerocron.channels.email_html import html_of
from zerocron.channels.exchange import echo
from zerocron.channels.text import one_line
from zerocron.channels.wording import LINE_UNITS_MAX, Message, text_of, word
from zerocron.core.exchange import Failure
from zerocron.core.mail import URL_SETTING, Mail, check_address

QUIT_SECONDS = 1.0
TALK_SECONDS = SEND_TIMEOUT_SECONDS - QUIT_SECONDS
"""For all of it, from the look-up of the name to the server's word about the message."""

_POLICY = SMTP_POLICY.clone(cte_type="7bit")  # every server takes it, whatever it announces

# Enhanced status codes that say: there is no such mailbox, or it takes nothing any more.
_NO_MAILBOX = ("5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1")


class Email:
    name = "email"
    label = "Email"
    fields: tuple[ConfigField, ...] = (ConfigField("to", "The address that mails go to.", example="ops@example.com"),)

    def check(self, config: Mapping[str, object]) -> dict[str, object]:
        given = texts(config, self.fields)
        return {"to": check_address(given["to"], "config.to")}

    def destination(self, config: Mapping[str, object]) -> str:
        local, _, domain = str(config["to"]).rpartition("@")
        return f"{local[:1]}…@{domain}"

    async def deliver(self, config: Mapping[str, object], envelope: Envelope, ways: Ways) -> Delivery:
        if ways.mail is None:
            return NO_SERVER
        to = str(config["to"])
        return await hand_in(to, compose(ways.mail, to, envelope, ways.now()), ways)


NO_SERVER = Again(f"This server has no mail server: its operator sets {URL_SETTING}.")


async def hand_in(to: str, message: EmailMessage, ways: Ways) -> Delivery:
    """Give a mail to the operator's server, once. Raises nothing for what that or the network does."""
    mail = ways.mail
    if mail is None or ways.dial is None:
        return NO_SERVER
    client: aiosmtplib.SMTP | None = None
    try:
        async with asyncio.timeout(TALK_SECONDS):
            sock = await ways.dial(mail.host, mail.port, allow=mail.allow, timeout_seconds=TALK_SECONDS)
            if isinstance(sock, Failure):
                return Again(_not_reached(sock))
            client = _client(mail, sock)
            delivery = await _hand_over(client, mail, to, message.as_bytes())
    except TimeoutError:
        return Again(f"The mail server did not finish within {TALK_SECONDS:g} s.")
    else:
        with contextlib.suppress(aiosmtplib.SMTPException, OSError):  # it has been said what became of the mail
            await client.quit(timeout=QUIT_SECONDS)
        return delivery
    finally:
        if client is not None:
            _let_go(client)


def empty_mail(mail: Mail, to: str, subject: str, message_id: str, now: int) -> EmailMessage:
    """A mail that says who sends it and that no person did, and nothing else yet. `now` is its date, in ms."""
    it = EmailMessage(policy=_POLICY)
    it["From"] = Address(display_name=mail.sender_name, addr_spec=mail.sender)
    it["To"] = Address(addr_spec=to)
    it["Subject"] = one_line(subject, LINE_UNITS_MAX)
    it["Date"] = formatdate(now / 1000, usegmt=True)
    it["Message-ID"] = f"<{message_id}@{mail.sender.rpartition('@')[2]}>"
    it["Auto-Submitted"] = "auto-generated"  # RFC 3834: no vacation note comes back
    it["X-Auto-Response-Suppress"] = "All"
    return it


def compose(mail: Mail, to: str, envelope: Envelope, now: int) -> EmailMessage:
    """The mail. `now` is its date, in ms."""
    message = word(envelope)
    it = empty_mail(mail, to, message.title, envelope.alert_id, now)
    it["List-Unsubscribe"] = f"<{mail.unsubscribe or f'mailto:{mail.sender}?subject=unsubscribe'}>"
    it["X-0cron-Event"] = "digest" if message.is_digest else str(envelope.notices[0].kind)
    it.set_content(_text(message))
    it.add_alternative(html_of(message), subtype="html")
    return it


def _text(message: Message) -> str:
    return f"{text_of(message)}\n\n-- \n{message.words.footer}\n"


def _client(mail: Mail, sock: socket.socket) -> aiosmtplib.SMTP:
    return aiosmtplib.SMTP(
        hostname=mail.host,
        sock=sock,
        timeout=TALK_SECONDS,
        local_hostname=mail.sender.rpartition("@")[2],
        use_tls=mail.security == "tls",
        start_tls=mail.security == "starttls",
        tls_context=None if mail.security == "none" else tls_context(),
    )


async def _hand_over(client: aiosmtplib.SMTP, mail: Mail, to: str, raw: bytes) -> Delivery:
    try:
        await client.connect()
        if mail.username is not None:
            await client.login(mail.username, mail.password or "")
        _, said = await client.sendmail(mail.sender, [to], raw)
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        return judge(error, mail)
    return Accepted(echo(said, _secrets(mail)))


def _let_go(client: aiosmtplib.SMTP) -> None:
    """At once: to close TLS properly would wait for a server that may not answer."""
    if client.transport is not None:
        cast(asyncio.WriteTransport, client.transport).abort()
    client.close()


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Certificates are verified as those of targets are. Made once: reading the system's authorities takes 20 ms."""
    return ssl.create_default_context()


def _not_reached(failure: Failure) -> str:
    if failure.kind == "address_refused":
        return (
            "The mail server's address is refused, because it is not a public one. The operator of this server can "
            f"name its network in {URL_SETTING}, such as ...?allow=10.0.0.0/8."
        )
    return f"The mail server was not reached: {failure.message}"


def judge(error: Exception, mail: Mail) -> Again | Refused:
    """What an error of a conversation means. What only the operator can mend is told so, and tried again meanwhile."""
    operator = f" The operator of this server has to look at {URL_SETTING}."
    match error:
        case aiosmtplib.SMTPAuthenticationError():
            return Again(f"The mail server did not accept the user name or password ({error.code}).{operator}")
        case aiosmtplib.SMTPRecipientsRefused():
            return _recipient(error.recipients[0].code, echo(error.recipients[0].message, _secrets(mail)))
        case aiosmtplib.SMTPSenderRefused():
            words = echo(error.message, _secrets(mail))
            return Again(f"The mail server does not take mail from {mail.sender}: {error.code} {words}.{operator}")
        case aiosmtplib.SMTPDataError() if 500 <= error.code <= 599:
            return Refused(f"The mail server refused the message: {error.code} {echo(error.message, _secrets(mail))}")
        case aiosmtplib.SMTPResponseException():
            return Again(f"The mail server answered {error.code} {echo(error.message, _secrets(mail))}")
        case aiosmtplib.SMTPTimeoutError():
            return Again("The mail server did not answer in time.")
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return Again(f"TLS with the mail server failed: its certificate or the port is not as it should be.{operator}")
    if type(error) in (aiosmtplib.SMTPException, aiosmtplib.SMTPNotSupported):
        return Again(f"The mail server does not offer what is set up (STARTTLS, or a way to log in).{operator}")
    return Again("The mail server broke the connection.")


def _recipient(code: int, words: str) -> Again | Refused:
    reason = f"The mail server does not take mail for this address: {code} {words}"
    if not 500 <= code <= 599:
        return Again(reason)
    return Refused(reason, disables=words.startswith(tuple(f"{status} " for status in _NO_MAILBOX)))


def _secrets(mail: Mail) -> tuple[str, ...]:
    return tuple(secret for secret in (mail.password, mail.username) if secret)
