"""What a channel may be told: hosts are pinned, forms are checked, and no message repeats what was given."""

from __future__ import annotations

import pytest

from zerocron.channels.contract import ConfigField
from zerocron.channels.registry import KINDS
from zerocron.core.errors import Invalid

SLACK = "https://hooks.slack.com/services/T0123ABCD/B0456EFGH/s3cretS3cretS3cret"
DISCORD = "https://discord.com/api/webhooks/123456789012345678/s3cret_S3cret-S3cretS3cret"
TOKEN = "123456789:s3cret_s3cret-s3cret_s3cret_s3cret0"
KEY = "whsec_" + "c2VjcmV0" * 5 + "c2Vj"
GOOD: dict[str, dict[str, object]] = {
    "email": {"to": "ops@example.com"},
    "slack": {"url": SLACK},
    "discord": {"url": DISCORD},
    "telegram": {"token": TOKEN, "chat_id": "-1001234567890"},
    "webhook": {"url": "https://example.com/s3cret?token=s3cret"},
    "apprise": {"url": "json://user:s3cret@example.com/path"},
}


def refused(kind: str, config: dict[str, object]) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        KINDS[kind].check(config)
    assert "s3cret" not in error.value.message
    return {fault.field: fault.message for fault in error.value.fields}


def test_the_registry_names_each_kind_as_it_calls_itself() -> None:
    assert {name: kind.name for name, kind in KINDS.items()} == {name: name for name in KINDS}
    assert set(GOOD) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_configuration_is_kept_and_passes_again(kind: str) -> None:
    kept = KINDS[kind].check(GOOD[kind])
    assert KINDS[kind].check(kept) == kept
    assert kept == GOOD[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_destination_is_recognised_and_tells_no_secret(kind: str) -> None:
    shown = KINDS[kind].destination(KINDS[kind].check(GOOD[kind]))
    assert shown
    assert "s3cret" not in shown.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_named(kind: str) -> None:
    required = {f"config.{field.name}" for field in KINDS[kind].fields if field.required}
    assert refused(kind, {}).keys() == required
    assert refused(kind, dict.fromkeys(GOOD[kind], " ")).keys() == required
    assert refused(kind, {**GOOD[kind], "nonsense": "x"}).keys() == {"config.nonsense"}
    for field in KINDS[kind].fields:
        assert refused(kind, {**GOOD[kind], field.name: ["x"]}).keys() == {f"config.{field.name}"}
        assert refused(kind, {**GOOD[kind], field.name: "x" * 100_000}).keys() == {f"config.{field.name}"}


@pytest.mark.parametrize("kind", KINDS)
def test_fields_say_what_they_are_for(kind: str) -> None:
    for field in KINDS[kind].fields:
        assert isinstance(field, ConfigField)
        assert field.help.endswith("."), field
    assert any(field.required for field in KINDS[kind].fields)


def moved(url: str, host: str) -> list[str]:
    """The URL with its host replaced by what parsers of others might take for it."""
    rest = url.removeprefix(f"https://{host}")
    return [
        f"http://{host}{rest}",
        f"HTTPS://{host}.evil.example{rest}",
        f"https://evil.example{rest}",
        f"https://evil{host}{rest}",
        f"https://evil.{host}{rest}",
        f"https://{host}@evil.example{rest}",
        f"https://user:s3cret@{host}{rest}",
        f"https://evil.example#{host}{rest}",
        f"https://evil.example\\@{host}{rest}",
        f"https://{host}\\.evil.example{rest}",
        f"https://{host}:8443{rest}",
        f"https://{host}:443{rest}",
        f"https://{host}.{rest}",
        f"https://{host.replace('o', 'о')}{rest}",  # Cyrillic
        f"https://{host.replace('.', '。')}.evil.example{rest}",
        f"https://xn--{host}{rest}",
        f"https://127.0.0.1{rest}",
        f"https://[::1]{rest}",
        f"https://{host}/..{rest}",
        f"https://{host}/%2e%2e{rest}",
        f"{url}/../../evil",
        f"{url}#x",
        f"{url}?x=y",
        f"{url}\r\nHost: evil.example",
        f"{url}\x00",
        f"{url}\n\n{url}",
        f"//{host}{rest}",
        f"{host}{rest}",
        f"https:/{host}{rest}",
        f"javascript://{host}{rest}",
        "https://" + "x" * 3_000,
    ]


@pytest.mark.parametrize("url", moved(SLACK, "hooks.slack.com"))
def test_slack_is_pinned(url: str) -> None:
    assert refused("slack", {"url": url}).keys() == {"config.url"}


@pytest.mark.parametrize("url", moved(DISCORD, "discord.com"))
def test_discord_is_pinned(url: str) -> None:
    assert refused("discord", {"url": url}).keys() == {"config.url"}


@pytest.mark.parametrize(
    "url",
    [
        DISCORD.replace("discord.com", "discordapp.com"),
        DISCORD.replace("discord.com", "ptb.discord.com"),
        DISCORD.replace("discord.com", "canary.discord.com"),
        DISCORD.replace("/api/", "/api/v10/"),
        DISCORD + "?thread_id=123456789012345678",
        f"  {DISCORD}\n",
    ],
)
def test_the_other_forms_of_discords_urls(url: str) -> None:
    assert KINDS["discord"].check({"url": url}) == {"url": url.strip()}


@pytest.mark.parametrize(
    "token",
    ["", "s3cret", "123456789:short", f"{TOKEN}/../x", f"{TOKEN}?x", f"x{TOKEN}", TOKEN.replace(":", "/"), "é" + TOKEN],
)
def test_a_telegram_token_cannot_leave_its_place_in_the_url(token: str) -> None:
    assert refused("telegram", {"token": token, "chat_id": "1"}).keys() == {"config.token"}


@pytest.mark.parametrize("chat", ["ops", "@x", "@o p s", "1.5", "--1", "@opsroom\n", "１２３", "12 34"])
def test_a_telegram_chat_is_a_number_or_a_name(chat: str) -> None:
    if chat.strip() != chat:
        assert KINDS["telegram"].check({"token": TOKEN, "chat_id": chat})["chat_id"] == chat.strip()
    else:
        assert refused("telegram", {"token": TOKEN, "chat_id": chat}).keys() == {"config.chat_id"}


def test_numbers_may_come_as_numbers() -> None:
    kept = KINDS["telegram"].check({"token": TOKEN, "chat_id": -100, "topic_id": 7})
    assert kept == {"token": TOKEN, "chat_id": "-100", "topic_id": "7"}
    assert KINDS["telegram"].destination(kept) == "-100, topic 7"
    assert refused("telegram", {"token": TOKEN, "chat_id": True}).keys() == {"config.chat_id"}
    assert refused("telegram", {"token": TOKEN, "chat_id": "1", "topic_id": "-7"}).keys() == {"config.topic_id"}


@pytest.mark.parametrize(
    "address",
    [
        "ops",
        "@example.com",
        "ops@",
        "ops@localhost",
        "ops@127.0.0.1",
        "ops@[127.0.0.1]",
        "Ops <ops@example.com>",
        "a@example.com, b@example.com",
        "a@example.com b@example.com",
        "ops@example.com\r\nBcc: x@example.com",
        "ops@example.com\nRCPT TO:<x@example.com>",
        "ops\r\n@example.com",
        '"o p s"@example.com',
        "ops@exa mple.com",
        "ops@example.com:25",
        "ops@example.com/x",
        "ops@a@example.com",
        "ops..x@example.com",
        ".ops@example.com",
        "öps@example.com",
        "x" * 65 + "@example.com",
        "ops@" + ".".join(["x" * 60] * 5),
        "<ops@example.com>",
        "ops@example.com>",
        "ops@example..com",
    ],
)
def test_a_mail_address_is_one_and_plain(address: str) -> None:
    assert refused("email", {"to": address}).keys() == {"config.to"}


def test_a_mail_address_is_kept_in_its_ascii_form() -> None:
    assert KINDS["email"].check({"to": " Ops+0cron@Bücher.Example. "}) == {"to": "Ops+0cron@xn--bcher-kva.example"}
    assert KINDS["email"].destination({"to": "ops@example.com"}) == "o…@example.com"


@pytest.mark.parametrize(
    "url", ["ftp://example.com", "https://user:s3cret@example.com", "https://", "example.com", "https://2130706433/"]
)
def test_a_webhook_is_a_url_that_0cron_calls(url: str) -> None:
    assert refused("webhook", {"url": url}).keys() == {"config.url"}


def test_a_webhook_at_a_private_address_is_judged_when_it_is_called() -> None:
    assert KINDS["webhook"].check({"url": "http://10.0.0.1:8080/x"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "s3cret"),
        ("key", "whsec_s3cret"),
        ("key", f"{KEY} {KEY} {KEY}"),
        ("key", KEY.removeprefix("whsec_")),
        ("headers", "s3cret"),
        ("headers", "Host: s3cret"),
        ("headers", "webhook-signature: s3cret"),
        ("headers", "X-0cron-Event: s3cret"),
        ("headers", "Proxy-Authorization: s3cret"),
        ("headers", "Content-Length: 3"),
        ("headers", "X-A: 1\nx-a: 2"),
        ("headers", "\n".join(f"X-{n}: 1" for n in range(21))),
        ("headers", "X A: s3cret"),
        ("headers", "X-A: s3cret\x00"),
        ("template", "not json"),
        ("template", '{"a": ${title}}'),
        ("template", '{"a": "${secrets.KEY}"}'),
        ("template", '{"a": "${nothing}"}'),
        ("template", '{"a": "${title"}'),
        ("template", '["${title}"' + ', "${title}"' * 50 + "]"),
        ("template", '{"' + "x" * 10_000 + '": 1}'),
    ],
)
def test_what_a_webhook_is_given_beside_its_url(field: str, value: str) -> None:
    assert refused("webhook", {"url": "https://example.com", field: value}).keys() == {f"config.{field}"}


def test_a_whole_webhook() -> None:
    config = {
        "url": "https://example.com/x",
        "key": f"{KEY} {KEY}",
        "headers": "Authorization: Bearer s3cret\nContent-Type: application/json",
        "template": '{"text": "${title}: ${text}", "count": ${count}, "of": "${total}"}',
    }
    assert KINDS["webhook"].check(config) == config


@pytest.mark.parametrize(
    "url", ["syslog://localhost", "dbus://x", "Windows://x", "macosx://x", "plain text", "x", "://x", "json://"]
)
def test_apprise_takes_services_it_knows_and_nothing_of_this_machine(url: str) -> None:
    assert refused("apprise", {"url": url}).keys() == {"config.url"}
