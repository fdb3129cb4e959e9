"""How an operator names the mail server: what is meant is taken, the rest refused, and no password is shown."""

from __future__ import annotations

import pytest

from zerocron.core.addresses import refusal
from zerocron.core.errors import Invalid
from zerocron.core.mail import Mail, read_mail

SENDER = "0cron@example.com"


@pytest.mark.parametrize(
    ("url", "host", "port", "security", "username", "password"),
    [
        ("smtp://mail.example.com", "mail.example.com", 587, "starttls", None, None),
        ("smtp://u:p@mail.example.com:2525", "mail.example.com", 2525, "starttls", "u", "p"),
        ("smtps://u:p@mail.example.com", "mail.example.com", 465, "tls", "u", "p"),
        ("smtp://mail.example.com/?security=tls", "mail.example.com", 465, "tls", None, None),
        ("smtp://mail?security=none", "mail", 25, "none", None, None),
        ("smtp://a%40b:p%3A%2F%40%20@mail.example.com", "mail.example.com", 587, "starttls", "a@b", "p:/@ "),
        ("smtp://u:p@localhost?security=none", "localhost", 25, "none", "u", "p"),
        ("smtp://u:p@[::1]:26?security=none", "::1", 26, "none", "u", "p"),
    ],
)
def test_what_is_meant(
    url: str, host: str, port: int, security: str, username: str | None, password: str | None
) -> None:
    mail = read_mail(url, SENDER)
    assert (mail.host, mail.port, mail.security) == (host, port, security)
    assert (mail.username, mail.password) == (username, password)
    assert mail.sender == SENDER


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "http://mail.example.com",
        "smtp://",
        "smtp://mail.example.com/path",
        "smtp://mail.example.com#x",
        "smtp://mail.example.com:0x1",
        "smtp://mail.example.com:99999",
        "smtp://s3cret@mail.example.com",
        "smtp://:s3cret@mail.example.com",
        "smtp://u:s3cret@mail.example.com?security=none",
        "smtp://mail.example.com?security=ssl",
        "smtps://mail.example.com?security=starttls",
        "smtp://mail.example.com?verify=no",
        "smtp://mail.example.com?security",
        "smtp://mail.example.com?allow=s3cret",
        "smtp://mail.example.com?unsubscribe=http://example.com",
        "smtp://mail.example.com?unsubscribe=javascript:x",
        "smtp://mail.example.com?unsubscribe=mailto:x%0d%0aBcc:y@example.com",
        "smtp://mail.example.com?unsubscribe=https://example.com/>,<x",
        "smtp://mail.exam ple.com",
        "smtp://[::1",
    ],
)
def test_what_means_nothing(url: str) -> None:
    with pytest.raises(Invalid) as error:
        read_mail(url, SENDER)
    assert error.value.message.startswith("ZEROCRON_MAIL_URL: ")
    assert error.value.fields[0].field == "ZEROCRON_MAIL_URL"
    assert "s3cret" not in error.value.message


def test_a_password_hides_itself() -> None:
    assert "s3cret" not in repr(read_mail("smtp://u:s3cret@mail.example.com", SENDER))


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("ops@example.com", "", "ops@example.com"),
        ("0cron <ops@example.com>", "0cron", "ops@example.com"),
        ('"Ops, Team" <ops@Example.com>', "Ops, Team", "ops@example.com"),
        ("Équipe <ops@bücher.example>", "Équipe", "ops@xn--bcher-kva.example"),
    ],
)
def test_a_sender(text: str, name: str, address: str) -> None:
    mail = read_mail("smtp://mail.example.com", text)
    assert (mail.sender_name, mail.sender) == (name, address)


@pytest.mark.parametrize(
    "text",
    ["", "ops", "ops@localhost", "a@b.example, c@d.example", "x\r\nBcc: y <a@b.example>", "<>", "a <b> c@d.example"],
)
def test_no_sender(text: str) -> None:
    with pytest.raises(Invalid, match="ZEROCRON_MAIL_FROM: "):
        read_mail("smtp://mail.example.com", text)


def allows(mail: Mail, address: str) -> bool:
    return refusal(address, mail.port, mail.allow, speaks_http=False) is None


def test_an_address_that_the_operator_wrote_is_allowed_and_a_name_leads_to_public_ones() -> None:
    assert allows(read_mail("smtp://127.0.0.1", SENDER), "127.0.0.1")
    assert not allows(read_mail("smtp://127.0.0.1", SENDER), "127.0.0.2")
    assert allows(read_mail("smtp://localhost", SENDER), "127.0.0.1")
    assert allows(read_mail("smtp://[fd00::1]", SENDER), "fd00::1")
    named = read_mail("smtp://mail.internal", SENDER)
    assert allows(named, "93.184.216.34")
    assert not allows(named, "10.0.0.1")
    assert allows(read_mail("smtp://mail.internal?allow=10.0.0.0/8", SENDER), "10.0.0.1")
    assert not allows(read_mail("smtp://mail.internal?allow=0.0.0.0/0", SENDER), "169.254.169.254")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("", "mailto:0cron@example.com?subject=unsubscribe"),
        ("?unsubscribe=mailto:stop%40example.com", "mailto:stop@example.com"),
        ("?unsubscribe=https%3A%2F%2Fexample.com%2Fstop%3Fx%3D1", "https://example.com/stop?x=1"),
    ],
)
def test_how_one_unsubscribes(option: str, value: str) -> None:
    assert read_mail(f"smtp://mail.example.com{option}", SENDER).unsubscribe == value
