"""What each service's answers mean, told by a server that answers as it does, through the real way out."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError
from tests.channels.specimens import ALERT_ID, AT, DOWN, FAILED, of
from tests.support.target import Exchange, Target

from zerocron.channels import exchange
from zerocron.channels.contract import Accepted, Again, Delivery, Refused, Ways
from zerocron.channels.registry import KINDS
from zerocron.clock import SystemClock
from zerocron.core.addresses import AllowList
from zerocron.core.signing import key_text
from zerocron.outbound import Outbound

WaysTo = Callable[[str], Ways]
SECRET = "S3cretS3cretS3cretS3cretS3cretS3cret"
KEY, OLD_KEY = key_text(b"n" * 32), key_text(b"o" * 32)


@dataclass(frozen=True)
class Service:
    kind: str
    origin: str
    config: Mapping[str, object]
    path: str
    good: tuple[int, bytes]

    def __str__(self) -> str:
        return self.kind


SERVICES = (
    Service(
        "slack",
        "https://hooks.slack.com",
        {"url": f"https://hooks.slack.com/services/T0123ABCD/B0456EFGH/{SECRET}"},
        f"/services/T0123ABCD/B0456EFGH/{SECRET}",
        (200, b"ok"),
    ),
    Service(
        "discord",
        "https://discord.com",
        {"url": f"https://discord.com/api/webhooks/123456789012345678/{SECRET}"},
        f"/api/webhooks/123456789012345678/{SECRET}",
        (200, b'{"id": "987654321098765432", "type": 0, "content": ""}'),
    ),
    Service(
        "telegram",
        "https://api.telegram.org",
        {"token": f"123456789:{SECRET}", "chat_id": "-1001234567890"},
        f"/bot123456789:{SECRET}/sendMessage",
        (200, b'{"ok": true, "result": {"message_id": 42, "chat": {"id": -1001234567890}}}'),
    ),
    Service(
        "webhook",
        "https://example.com",
        {"url": f"https://example.com/hooks/{SECRET}?token={SECRET[::-1]}", "key": KEY},
        f"/hooks/{SECRET}",
        (204, b""),
    ),
)
BY_KIND = {service.kind: service for service in SERVICES}
every_service = pytest.mark.parametrize("service", SERVICES, ids=str)


async def deliver(service: Service, ways_to: WaysTo, **changes: object) -> Delivery:
    kind = KINDS[service.kind]
    config = kind.check({**service.config, **changes})
    return await kind.deliver(config, of(FAILED), ways_to(service.origin))


async def answered(
    service: Service,
    ways_to: WaysTo,
    target: Target,
    status: int,
    body: bytes | dict[str, Any] = b"",
    headers: Mapping[str, str] | None = None,
) -> Delivery:
    raw = json.dumps(body).encode() if isinstance(body, dict) else body
    target.on(service.path, lambda it: it.answer(status, raw, (headers or {}).items()))
    return await deliver(service, ways_to)


@every_service
async def test_success(service: Service, ways_to: WaysTo, target: Target) -> None:
    delivery = await answered(service, ways_to, target, *service.good)
    assert isinstance(delivery, Accepted), delivery
    [request] = target.requests
    assert request.method == "POST"
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert "nightly report" in str(json.loads(request.body))


@every_service
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520])
async def test_trouble_that_passes(service: Service, ways_to: WaysTo, target: Target, status: int) -> None:
    delivery = await answered(service, ways_to, target, status, b"slow down", {"Retry-After": "120"})
    assert isinstance(delivery, Again)
    assert delivery.retry_after_ms == 120_000
    assert str(status) in delivery.reason


@every_service
@pytest.mark.parametrize(
    ("hint", "waits"), [("999999999", 3_600_000), ("-5", None), ("soon", None), ("Fri, 01 Jan 2021 00:00:00 GMT", 0)]
)
async def test_a_hint_is_bounded(
    service: Service, ways_to: WaysTo, target: Target, hint: str, waits: int | None
) -> None:
    delivery = await answered(service, ways_to, target, 503, b"", {"Retry-After": hint})
    assert isinstance(delivery, Again)
    assert delivery.retry_after_ms == waits


@every_service
@pytest.mark.parametrize("status", [301, 302, 307])
async def test_a_redirect_is_not_followed_and_no_success(
    service: Service, ways_to: WaysTo, target: Target, status: int
) -> None:
    delivery = await answered(service, ways_to, target, status, b"", {"Location": f"{target.url}/ok"})
    assert isinstance(delivery, Again)
    assert len(target.requests) == 1


def said_and_gone(it: Exchange, data: bytes) -> None:
    it.raw(data)
    it.close()


@every_service
@pytest.mark.parametrize("how", ["hang", "close", "reset", "half", "garbage"])
async def test_no_answer(
    service: Service, ways_to: WaysTo, target: Target, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(exchange, "SEND_TIMEOUT_SECONDS", 0.2 if how == "hang" else 5.0)
    acts: dict[str, Callable[[Exchange], None]] = {
        "hang": lambda it: None,
        "close": lambda it: it.close(),
        "reset": lambda it: it.reset(),
        "half": lambda it: said_and_gone(it, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),
        "garbage": lambda it: said_and_gone(it, b"SSH-2.0-OpenSSH_9\r\n"),
    }
    target.on(service.path, acts[how])
    delivery = await deliver(service, ways_to)
    assert isinstance(delivery, Again), delivery
    assert delivery.retry_after_ms is None
    assert SECRET not in delivery.reason
    assert "127.0.0.1" not in delivery.reason


@every_service
@pytest.mark.parametrize("status", [200, 418, 500])
async def test_what_a_server_says_is_shown_short_and_without_the_secret(
    service: Service, ways_to: WaysTo, target: Target, status: int
) -> None:
    hidden = base64.b64encode(SECRET.encode()).decode()
    said = f"no\r\nsuch hook {SECRET} {SECRET[::-1]} {hidden} {KEY} https://x{service.path} " + "x" * 50_000
    delivery = await answered(service, ways_to, target, status, said.encode())
    shown = delivery.detail if isinstance(delivery, Accepted) else delivery.reason
    assert len(shown) < 300
    assert "\n" not in shown
    assert SECRET not in shown
    assert hidden not in shown
    if service.kind == "webhook":
        assert SECRET[::-1] not in shown
        assert KEY not in shown


@every_service
async def test_an_address_that_is_refused(service: Service, target: Target) -> None:
    """Without an allow list the same target is not dialled: the guard stands in the way of every kind."""
    outbound = Outbound(allow=AllowList(), user_agent="0cron/test")
    await outbound.start()

    async def send(request: Any) -> Any:
        return await outbound.send(replace(request, url=target.url + service.path))

    kind = KINDS[service.kind]
    delivery = await kind.deliver(kind.check(service.config), of(FAILED), Ways(send=send, now=lambda: AT))
    await outbound.close()
    assert isinstance(delivery, Again), "the operator may allow it within the day"
    assert not target.connections


# ---- Slack -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "disables"),
    [
        (404, b"no_service", True),
        (404, b"channel_not_found", True),
        (410, b"channel_is_archived", True),
        (403, b"invalid_token", True),
        (403, b"action_prohibited", True),
        (400, b"invalid_blocks", False),
        (413, b"", False),
    ],
)
async def test_slack_refuses(ways_to: WaysTo, target: Target, status: int, body: bytes, disables: bool) -> None:
    delivery = await answered(BY_KIND["slack"], ways_to, target, status, body)
    assert isinstance(delivery, Refused)
    assert delivery.disables is disables
    assert body.decode() in delivery.reason


# ---- Discord ---------------------------------------------------------------------------------------------------------


async def test_discord_is_asked_to_wait_for_the_message(ways_to: WaysTo, target: Target) -> None:
    service = BY_KIND["discord"]
    delivery = await answered(service, ways_to, target, *service.good)
    assert delivery == Accepted("200 as 987654321098765432")
    assert target.requests[0].path.endswith("?wait=true")
    threaded = f"{service.config['url']}?thread_id=123456789012345678"
    assert isinstance(await deliver(service, ways_to, url=threaded), Accepted)
    assert target.requests[1].path.endswith("?thread_id=123456789012345678&wait=true")


@pytest.mark.parametrize(
    ("status", "body", "disables"),
    [
        (404, {"message": "Unknown Webhook", "code": 10015}, True),
        (404, {"message": "Unknown Channel", "code": 10003}, True),
        (401, {"message": "Invalid Webhook Token", "code": 50027}, True),
        (400, {"message": "Invalid Form Body", "code": 50035}, False),
    ],
)
async def test_discord_refuses(
    ways_to: WaysTo, target: Target, status: int, body: dict[str, Any], disables: bool
) -> None:
    delivery = await answered(BY_KIND["discord"], ways_to, target, status, body)
    assert isinstance(delivery, Refused)
    assert delivery.disables is disables
    assert f"{body['message']}, code {body['code']}" in delivery.reason


@pytest.mark.parametrize(
    ("hint", "waits"), [(0.653, 653), (64, 64_000), (1e12, 3_600_000), (-1, None), ("1", None), (True, None)]
)
async def test_discord_says_how_long_to_wait(ways_to: WaysTo, target: Target, hint: Any, waits: int | None) -> None:
    body = {"message": "You are being rate limited.", "retry_after": hint, "global": False}
    delivery = await answered(BY_KIND["discord"], ways_to, target, 429, body)
    assert isinstance(delivery, Again)
    assert delivery.retry_after_ms == waits


async def test_the_network_before_discord_refuses_for_a_while(ways_to: WaysTo, target: Target) -> None:
    delivery = await answered(BY_KIND["discord"], ways_to, target, 403, b"error code: 1010")
    assert isinstance(delivery, Again)


# ---- Telegram --------------------------------------------------------------------------------------------------------


async def test_what_telegram_is_sent(ways_to: WaysTo, target: Target) -> None:
    service = BY_KIND["telegram"]
    assert await answered(service, ways_to, target, *service.good) == Accepted("200 message 42")
    await deliver(service, ways_to, topic_id="7")
    first, second = (json.loads(request.body) for request in target.requests)
    assert first["chat_id"] == "-1001234567890"
    assert first["parse_mode"] == "HTML"
    assert first["link_preview_options"] == {"is_disabled": True}
    assert "message_thread_id" not in first
    assert second["message_thread_id"] == 7


def telegram(code: int, description: str, **parameters: int) -> dict[str, Any]:
    found: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return {**found, "parameters": parameters} if parameters else found


@pytest.mark.parametrize(
    ("status", "description", "disables"),
    [
        (401, "Unauthorized", True),
        (404, "Not Found", True),
        (403, "Forbidden: bot was blocked by the user", True),
        (403, "Forbidden: bot was kicked from the supergroup chat", True),
        (400, "Bad Request: chat not found", True),
        (400, "Bad Request: can't parse entities", False),
    ],
)
async def test_telegram_refuses(ways_to: WaysTo, target: Target, status: int, description: str, disables: bool) -> None:
    delivery = await answered(BY_KIND["telegram"], ways_to, target, status, telegram(status, description))
    assert isinstance(delivery, Refused)
    assert delivery.disables is disables
    assert description in delivery.reason


async def test_telegram_says_how_long_to_wait(ways_to: WaysTo, target: Target) -> None:
    body = telegram(429, "Too Many Requests: retry after 31", retry_after=31)
    delivery = await answered(BY_KIND["telegram"], ways_to, target, 429, body)
    assert isinstance(delivery, Again)
    assert delivery.retry_after_ms == 31_000


async def test_a_telegram_group_that_moved_says_where_to(ways_to: WaysTo, target: Target) -> None:
    body = telegram(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1009)
    delivery = await answered(BY_KIND["telegram"], ways_to, target, 400, body)
    assert isinstance(delivery, Refused)
    assert "-1009" in delivery.reason


async def test_telegram_has_to_say_ok(ways_to: WaysTo, target: Target) -> None:
    delivery = await answered(BY_KIND["telegram"], ways_to, target, 200, b"<html>a proxy</html>")
    assert isinstance(delivery, Again)


# ---- webhook ---------------------------------------------------------------------------------------------------------


async def sent(ways_to: WaysTo, target: Target, **config: object) -> tuple[dict[str, str], bytes]:
    service = BY_KIND["webhook"]
    target.on(service.path, lambda it: it.answer(200, b"thanks"))
    ways = replace(ways_to(service.origin), now=SystemClock().now)
    kind = KINDS["webhook"]
    assert await kind.deliver(kind.check({**service.config, **config}), of(FAILED), ways) == Accepted("200 thanks")
    return target.requests[-1].headers, target.requests[-1].body


async def test_a_webhook_is_verified_by_the_standards_own_package(ways_to: WaysTo, target: Target) -> None:
    headers, body = await sent(ways_to, target)
    assert Verifier(KEY).verify(body, headers) == json.loads(body)
    assert headers["webhook-id"] == ALERT_ID
    with pytest.raises(WebhookVerificationError):
        Verifier(OLD_KEY).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(KEY).verify(body + b" ", headers)


async def test_during_a_rotation_both_keys_verify(ways_to: WaysTo, target: Target) -> None:
    headers, body = await sent(ways_to, target, key=f"{KEY} {OLD_KEY}")
    assert Verifier(KEY).verify(body, headers) == Verifier(OLD_KEY).verify(body, headers)


async def test_without_a_key_nothing_pretends_to_be_signed(ways_to: WaysTo, target: Target) -> None:
    headers, _ = await sent(ways_to, target, key="")
    assert headers["webhook-id"] == ALERT_ID
    assert "webhook-signature" not in headers


async def test_a_template_and_headers_of_ones_own(ways_to: WaysTo, target: Target) -> None:
    headers, body = await sent(
        ways_to,
        target,
        template='{"text": "${title}", "n": ${count}}',
        headers="Authorization: Bearer abc\ncontent-type: application/vnd.x+json",
    )
    assert json.loads(body) == {"text": "nightly report failed 3 times in a row", "n": 3}
    assert headers["authorization"] == "Bearer abc"
    assert headers["content-type"] == "application/vnd.x+json"
    assert Verifier(KEY).verify(body, headers)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 489, 505])
async def test_a_webhook_is_tried_again_whatever_it_answers(ways_to: WaysTo, target: Target, status: int) -> None:
    delivery = await answered(BY_KIND["webhook"], ways_to, target, status, b"deploying")
    assert isinstance(delivery, Again)
    assert "deploying" in delivery.reason


async def test_a_webhook_that_is_gone_says_410(ways_to: WaysTo, target: Target) -> None:
    delivery = await answered(BY_KIND["webhook"], ways_to, target, 410, b"")
    assert isinstance(delivery, Refused)
    assert delivery.disables


# ---- Apprise ---------------------------------------------------------------------------------------------------------

loads_all_of_apprise = pytest.mark.filterwarnings("ignore::DeprecationWarning")


async def by_apprise(url: str, *, allowed: bool = True) -> Delivery:
    async def send(_: Any) -> Any:
        raise AssertionError("Apprise dials by itself")

    kind = KINDS["apprise"]
    ways = Ways(send=send, now=lambda: AT, apprise_allowed=allowed)
    return await kind.deliver(kind.check({"url": url}), of(FAILED, DOWN), ways)


async def test_apprise_needs_the_operators_word(target: Target) -> None:
    delivery = await by_apprise(f"json://127.0.0.1:{target.port}/ok", allowed=False)
    assert isinstance(delivery, Refused)
    assert "ZEROCRON_APPRISE" in delivery.reason
    assert not target.connections


@loads_all_of_apprise
async def test_apprise_sends(target: Target) -> None:
    target.on("/alerts", lambda it: it.answer(200, b"{}"))
    assert await by_apprise(f"json://127.0.0.1:{target.port}/alerts") == Accepted("by Apprise")
    body = json.loads(target.requests[0].body)
    assert body["title"].startswith("2 events: nightly report failed")
    assert "db backup is down" in body["message"]
    assert body["type"] == "failure"


@loads_all_of_apprise
async def test_apprise_fails(target: Target) -> None:
    target.on("/alerts", lambda it: it.answer(500, b"{}"))
    assert isinstance(await by_apprise(f"json://127.0.0.1:{target.port}/alerts"), Again)
    unknown = await by_apprise("nonsense://x")
    assert isinstance(unknown, Refused)
