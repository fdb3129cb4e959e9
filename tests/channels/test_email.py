"""Mail is handed to a real SMTP server: plainly, by STARTTLS, by TLS; and to servers that say no, or nothing."""

from __future__ import annotations

import asyncio
import email
import email.policy
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.channels.specimens import ALERT_ID, AT, FAILED, hostile, of

from zerocron.channels import email as kind_file
from zerocron.channels.contract import Accepted, Again, Delivery, Refused, Ways
from zerocron.channels.registry import KINDS
from zerocron.core.mail import Mail, read_mail
from zerocron.outbound import Outbound

CERTIFICATES = Path(__file__).parents[1] / "outbound" / "certificates"
PASSWORD = "s3cret p@ss/word"
SENDER = "0cron <0cron@example.com>"
EMAIL = KINDS["email"]


@dataclass
class Inbox:
    """What a server took, and what it says instead."""

    taken: list[Envelope] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)
    rcpt: str = ""
    data: str = "250 2.0.0 queued as 7F3"
    mail: str = ""

    async def handle_MAIL(self, _: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        if self.mail:
            return self.mail
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, _: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        if self.rcpt:
            return self.rcpt
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.taken.append(envelope)
        self.was_encrypted.append(
            server.transport is not None and server.transport.get_extra_info("sslcontext") is not None
        )
        return self.data


def authenticate(_: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword) -> AuthResult:
    return AuthResult(handled=False, success=data == LoginPassword(b"user@x", PASSWORD.encode()))


def certificate(name: str = "good") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem")
    return context


@asynccontextmanager
async def smtp(inbox: Inbox, *, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[int]:
    """A server on a free port."""
    loop = asyncio.get_running_loop()
    opened: list[SMTP] = []

    def make() -> SMTP:
        opened.append(SMTP(inbox, hostname="mx.example.com", loop=loop, **options))
        return opened[-1]

    server = await loop.create_server(make, "127.0.0.1", 0, ssl=tls)
    yield server.sockets[0].getsockname()[1]
    server.close()
    handlers = [one._handler_coroutine for one in opened if one._handler_coroutine is not None]
    for handler in handlers:
        handler.cancel()
    for one in opened:
        if one.transport is not None:
            cast(asyncio.WriteTransport, one.transport).abort()
    await asyncio.gather(*handlers, return_exceptions=True)
    await server.wait_closed()


Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scripted(conversation: Conversation) -> AsyncIterator[int]:
    """A server that does as it is told, and then closes."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def talk() -> None:
            try:
                await conversation(reader, writer)
            finally:
                writer.close()

        tasks.add(asyncio.get_running_loop().create_task(talk()))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await server.wait_closed()


async def deliver(outbound: Outbound, mail: Mail | None, to: str = "ops@example.com") -> Delivery:
    async def send(_: Any) -> Any:
        raise AssertionError("mail is no request")

    ways = Ways(send=send, now=lambda: AT, mail=mail, dial=outbound.dial)
    return await EMAIL.deliver(EMAIL.check({"to": to}), of(FAILED), ways)


def plain(port: int) -> Mail:
    return read_mail(f"smtp://127.0.0.1:{port}?security=none", SENDER)


async def test_a_mail_arrives_whole(outbound: Outbound) -> None:
    inbox = Inbox()
    async with smtp(inbox) as port:
        delivery = await deliver(outbound, plain(port))
    assert isinstance(delivery, Accepted)
    assert "queued as 7F3" in delivery.detail
    [taken] = inbox.taken
    assert (taken.mail_from, taken.rcpt_tos) == ("0cron@example.com", ["ops@example.com"])
    assert isinstance(taken.content, bytes)
    message = email.message_from_bytes(taken.content, policy=email.policy.default)
    assert message["Message-ID"] == f"<{ALERT_ID}@example.com>"
    assert message["Subject"] == "nightly report failed 3 times in a row"
    assert inbox.was_encrypted == [False]


async def test_starttls_and_a_password(outbound: Outbound) -> None:
    inbox = Inbox()
    options: dict[str, Any] = {
        "tls_context": certificate(),
        "require_starttls": True,
        "authenticator": authenticate,
        "auth_required": True,
    }
    async with smtp(inbox, **options) as port:
        mail = read_mail(f"smtp://user%40x:s3cret%20p%40ss%2Fword@localhost:{port}", SENDER)
        assert isinstance(await deliver(outbound, mail), Accepted)
    assert inbox.was_encrypted == [True]
    assert PASSWORD not in repr(mail)


async def test_tls_from_the_first_byte(outbound: Outbound) -> None:
    inbox = Inbox()
    async with smtp(inbox, tls=certificate()) as port:
        assert isinstance(await deliver(outbound, read_mail(f"smtps://localhost:{port}", SENDER)), Accepted)
    assert inbox.was_encrypted == [True]


@pytest.mark.parametrize("name", ["expired", "wrong-host", "self-signed"])
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_certificate_that_is_not_right(outbound: Outbound, name: str, scheme: str) -> None:
    inbox = Inbox()
    how: dict[str, Any] = {"tls": certificate(name)} if scheme == "smtps" else {"tls_context": certificate(name)}
    async with smtp(inbox, **how) as port:
        delivery = await deliver(outbound, read_mail(f"{scheme}://u:{'p' * 20}@localhost:{port}", SENDER))
    assert isinstance(delivery, Again)
    assert "TLS" in delivery.reason
    assert "ZEROCRON_MAIL_URL" in delivery.reason
    assert not inbox.taken


async def test_no_starttls_no_mail(outbound: Outbound) -> None:
    """A server, or somebody between, that does not offer STARTTLS gets neither the password nor the mail."""
    inbox = Inbox()
    async with smtp(inbox, authenticator=authenticate, auth_require_tls=False) as port:
        delivery = await deliver(outbound, read_mail(f"smtp://user%40x:pw@localhost:{port}", SENDER))
    assert isinstance(delivery, Again)
    assert "STARTTLS" in delivery.reason
    assert not inbox.taken


async def test_a_password_that_is_refused(outbound: Outbound) -> None:
    inbox = Inbox()
    async with smtp(inbox, tls=certificate(), authenticator=authenticate, auth_require_tls=False) as port:
        delivery = await deliver(outbound, read_mail(f"smtps://user%40x:wrong-s3cret@localhost:{port}", SENDER))
    assert isinstance(delivery, Again)
    assert "user name or password" in delivery.reason
    assert "ZEROCRON_MAIL_URL" in delivery.reason
    assert "wrong-s3cret" not in delivery.reason


@pytest.mark.parametrize(
    ("rcpt", "kind", "disables"),
    [
        ("450 4.2.1 try later", Again, None),
        ("452 4.2.2 mailbox full", Again, None),
        ("550 5.1.1 no such user", Refused, True),
        ("550 5.2.1 disabled", Refused, True),
        ("550 5.7.1 looks like spam", Refused, False),
        ("553 sorry", Refused, False),
    ],
)
async def test_an_address_that_is_not_taken(
    outbound: Outbound, rcpt: str, kind: type[Again | Refused], disables: bool | None
) -> None:
    async with smtp(Inbox(rcpt=rcpt)) as port:
        delivery = await deliver(outbound, plain(port))
    assert isinstance(delivery, kind)
    assert getattr(delivery, "disables", None) is disables
    assert rcpt.partition(" ")[2] in delivery.reason


@pytest.mark.parametrize(
    ("data", "kind"), [("451 4.3.0 greylisted", Again), ("421 closing", Again), ("554 5.6.0 too ugly", Refused)]
)
async def test_a_message_that_is_not_taken(outbound: Outbound, data: str, kind: type[Again | Refused]) -> None:
    async with smtp(Inbox(data=data)) as port:
        delivery = await deliver(outbound, plain(port))
    assert isinstance(delivery, kind)
    assert data in delivery.reason


async def test_a_sender_that_is_not_taken(outbound: Outbound) -> None:
    async with smtp(Inbox(mail="550 5.7.1 not your domain")) as port:
        delivery = await deliver(outbound, plain(port))
    assert isinstance(delivery, Again)
    assert "0cron@example.com: 550 5.7.1 not your domain" in delivery.reason
    assert "ZEROCRON_MAIL_URL" in delivery.reason


async def test_what_a_server_says_is_shown_without_the_password(outbound: Outbound) -> None:
    inbox = Inbox(data=f"554 you said {PASSWORD} and " + "x" * 300)
    async with smtp(inbox, tls=certificate(), authenticator=authenticate, auth_require_tls=False) as port:
        mail = read_mail(f"smtps://user%40x:s3cret%20p%40ss%2Fword@localhost:{port}", SENDER)
        delivery = await deliver(outbound, mail)
    assert isinstance(delivery, Refused)
    assert "you said" in delivery.reason
    assert PASSWORD not in delivery.reason
    assert len(delivery.reason) < 300


async def greet(writer: asyncio.StreamWriter, text: bytes = b"220 hello\r\n") -> None:
    writer.write(text)
    await writer.drain()


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.get_running_loop().create_future()


async def hang_behind_the_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await greet(writer)
    await reader.read()


async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


async def close_behind_the_greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await greet(writer)
    await reader.readline()


async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await greet(writer, b"421 4.7.0 too many connections\r\n")


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await greet(writer, b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await greet(writer, b"220-" + b"x" * 400 + b"\r\n")


@pytest.mark.parametrize(
    "conversation", [hang, hang_behind_the_greeting, close, close_behind_the_greeting, busy, speak_http, endless]
)
async def test_a_server_that_does_not_go_on(
    outbound: Outbound, monkeypatch: pytest.MonkeyPatch, conversation: Conversation
) -> None:
    is_slow = conversation in (hang, hang_behind_the_greeting, endless)
    monkeypatch.setattr(kind_file, "TALK_SECONDS", 0.3 if is_slow else 5.0)
    async with scripted(conversation) as port:
        delivery = await deliver(outbound, plain(port))
    assert isinstance(delivery, Again), delivery
    assert delivery.reason
    assert len(delivery.reason) < 300


async def test_no_server_at_all(outbound: Outbound) -> None:
    async with scripted(close) as port:
        pass
    delivery = await deliver(outbound, plain(port))
    assert delivery == Again(
        "The mail server was not reached: The target's machine refused the connection: nothing listens on that port."
    )


async def test_an_address_that_the_operator_did_not_name(outbound: Outbound) -> None:
    inbox = Inbox()
    async with smtp(inbox) as port:
        delivery = await deliver(outbound, replace(plain(port), allow=read_mail("smtp://x.example", SENDER).allow))
    assert isinstance(delivery, Again)
    assert "ZEROCRON_MAIL_URL" in delivery.reason
    assert "127.0.0.1" not in delivery.reason
    assert not inbox.taken


async def test_without_a_mail_server(outbound: Outbound) -> None:
    delivery = await deliver(outbound, None)
    assert isinstance(delivery, Again)
    assert "ZEROCRON_MAIL_URL" in delivery.reason


async def test_a_name_cannot_speak_smtp(outbound: Outbound) -> None:
    """Dots alone on a line, commands and line ends in a name stay text."""
    inbox = Inbox()
    notice = hostile("x\r\n.\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<other@example.com>\r\nDATA\r\n")
    notice = replace(notice, output="\n.\n\r\n.\r\nQUIT\n")

    async def send(_: Any) -> Any:
        raise AssertionError("mail is no request")

    async with smtp(inbox) as port:
        ways = Ways(send=send, now=lambda: AT, mail=plain(port), dial=outbound.dial)
        assert isinstance(await EMAIL.deliver({"to": "ops@example.com"}, of(notice), ways), Accepted)
    [taken] = inbox.taken
    assert taken.rcpt_tos == ["ops@example.com"]
