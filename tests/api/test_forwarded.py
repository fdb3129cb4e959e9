"""The client's address behind proxies (PROMISES.md D 45): a forged header changes nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.api.support import MONITOR, Client, client_of, exchange, scope_of

from zerocron.api.forwarded import Forwarded
from zerocron.app import Node, run_node
from zerocron.core.errors import Invalid
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.proxies import SIGNED_IN_AS, parse_proxies
from zerocron.serving import HttpServer, listen, url_of
from zerocron.settings import Settings, load

FORGED = {"x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https"}


async def source_of_a_ping(api: Client, path_to: str = "") -> tuple[str, str]:
    """(where a new monitor takes pings, its id)."""
    made = (await api("POST", "/v1/monitors", MONITOR)).json
    return f"{path_to}/v1/ping/{made['ping_token']}", made["id"]


async def sources(api: Client, monitor_id: str) -> list[str]:
    return [ping["source"] for ping in (await api("GET", f"/v1/monitors/{monitor_id}/pings")).json["items"]]


async def test_without_trusted_proxies_nobody_is_believed_not_even_this_machine(node: Node, api: Client) -> None:
    """The web server's own idea of it, which trusts 127.0.0.1, is switched off."""
    server = HttpServer(node.application, listen("127.0.0.1", 0))
    await server.start()
    try:
        url, monitor_id = await source_of_a_ping(api, url_of(server._listener))
        async with aiohttp.ClientSession() as client, client.get(url, headers=FORGED) as answer:
            assert answer.status == 200
            assert "Strict-Transport-Security" not in answer.headers
        assert await sources(api, monitor_id) == ["127.0.0.1"]
    finally:
        await server.stop()


@pytest.fixture
def behind(settings: Settings, tmp_path: Any) -> Settings:
    return dataclasses.replace(settings, data_dir=tmp_path, trusted_proxies="127.0.0.0/8")


async def test_a_trusted_proxy_is_believed_and_a_client_that_forges_is_not(behind: Settings) -> None:
    async with run_node(behind) as node:
        api = await client_of(node, DEFAULT_TEAM_ID)
        path, monitor_id = await source_of_a_ping(api)
        for peer, said in (
            ("127.0.0.9", "203.0.113.7"),
            ("127.0.0.9", "198.51.100.1, 203.0.113.8"),
            ("192.0.2.1", "203.0.113.9"),
        ):
            scope = scope_of("POST", path, "", FORGED | {"x-forwarded-for": said}) | {"client": (peer, 5)}
            assert (await exchange(node.application, scope, [b""])).status == 200
        assert await sources(api, monitor_id) == ["192.0.2.1", "203.0.113.8", "203.0.113.7"]
        over_tls = await api("GET", "/v1/jobs", headers=FORGED)
        assert "strict-transport-security" in over_tls.headers
        assert "strict-transport-security" not in (await api("GET", "/v1/jobs")).headers


async def test_a_ping_without_a_task_is_its_clients_too(behind: Settings) -> None:
    async with run_node(behind) as node:
        api = await client_of(node, DEFAULT_TEAM_ID)
        server = HttpServer(node.application, listen("127.0.0.1", 0))
        await server.start()
        url, monitor_id = await source_of_a_ping(api, url_of(server._listener))
        async with aiohttp.ClientSession() as client, client.get(url, headers=FORGED) as answer:
            assert answer.status == 200
        await server.stop()
        assert await sources(api, monitor_id) == ["203.0.113.7"]


@pytest.mark.parametrize(
    ("peer", "headers", "said"),
    [
        ("127.0.0.1", [(b"remote-email", b" ann@example.com ")], "ann@example.com"),
        ("192.0.2.1", [(b"remote-email", b"ann@example.com")], None),
        ("192.0.2.1", [(b"x-forwarded-for", b"127.0.0.1"), (b"remote-email", b"ann@example.com")], None),
        ("127.0.0.1", [(b"remote-email", b"ann@example.com"), (b"remote-email", b"bob@example.com")], ""),  # nobody
        ("127.0.0.1", [(b"remote-email", b"a" * 1_001)], ""),
        ("127.0.0.1", [], None),
    ],
)
def test_a_header_that_says_who_signed_in_counts_from_a_trusted_proxy_alone_and_goes_no_further(
    peer: str, headers: list[tuple[bytes, bytes]], said: str | None
) -> None:
    forwarded = Forwarded(parse_proxies("127.0.0.1"), "Remote-Email")
    scope = scope_of("GET", "/", "", {}) | {"client": (peer, 5), "headers": [*headers, (b"accept", b"*/*")]}
    seen = forwarded.applied(scope)
    assert seen.get(SIGNED_IN_AS) == said
    assert b"remote-email" not in dict(seen["headers"])
    assert dict(seen["headers"])[b"accept"] == b"*/*"


def test_nothing_is_touched_where_no_proxy_is_trusted() -> None:
    scope = scope_of("GET", "/", "", FORGED)
    assert Forwarded(parse_proxies("")).applied(scope) is scope


def test_a_connection_without_an_address_is_nobodys() -> None:
    scope = scope_of("GET", "/", "", FORGED) | {"client": None}
    assert Forwarded(parse_proxies("127.0.0.1")).applied(scope)["client"] is None


@pytest.mark.parametrize("name", ["Cookie", "authorization", "X-Forwarded-For", "a b", "é", "x" * 65])
def test_a_trusted_header_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(Invalid, match="ZEROCRON_TRUSTED_HEADER"):
        load(environment={"ZEROCRON_TRUSTED_HEADER": name, "ZEROCRON_TRUSTED_PROXIES": "10.0.0.1"})


def test_a_trusted_header_needs_trusted_proxies() -> None:
    with pytest.raises(Invalid, match="Name your proxies"):
        load(environment={"ZEROCRON_TRUSTED_HEADER": "Remote-Email"})


async def test_a_start_behind_an_unnamed_proxy_warns(behind: Settings) -> None:
    """PROMISES.md D 73."""
    public = dataclasses.replace(behind, base_url="https://cron.example.com")
    for proxies, warned in (("", True), ("127.0.0.1", False)):
        with capture_logs() as lines:
            async with run_node(dataclasses.replace(public, trusted_proxies=proxies)):
                pass
        assert ("no_trusted_proxies" in [line["event"] for line in lines]) == warned
