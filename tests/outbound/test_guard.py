"""No socket is made for an address that the rules refuse, by whatever way it came."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.outbound.helpers import USER_AGENT, Dialling, Names, failure_of, request, response_of
from tests.support.target import Target

from zerocron.outbound import Outbound, parse_allow, resolver

Make = Callable[[str], Dialling]
PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00::1]",
        "0.0.0.0",
    ],
)
async def test_a_literal_is_judged_although_nothing_is_looked_up(
    dialling: Make, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    names = Names({})
    monkeypatch.setattr(resolver, "getaddrinfo", names)
    outbound = dialling("")
    await outbound.start()
    failure_of(await outbound.send(request(f"http://{host}/")), "address_refused")
    assert not outbound.dialled
    assert not names.asked


@pytest.mark.parametrize("host", [PUBLIC, "[2606:4700::1111]", "[64:ff9b::808:808]", "[::ffff:8.8.8.8]"])
async def test_a_public_literal_is_dialled(dialling: Make, host: str) -> None:
    outbound = dialling("")
    await outbound.start()
    failure_of(await outbound.send(request(f"http://{host}/")), "connection_refused")
    assert len(outbound.dialled) == 1


async def test_the_refusal_names_the_rule_and_the_way_out_but_not_the_address(
    dialling: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"inside.test": ["10.20.30.40"]}))
    outbound = dialling("")
    await outbound.start()
    outcome = await outbound.send(request("http://inside.test:8080/"))
    message = failure_of(outcome, "address_refused").message
    assert "private" in message
    assert "ZEROCRON_OUTBOUND_ALLOW=10.0.0.0/8:8080" in message
    assert "10.20.30.40" not in repr(outcome)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://10.20.30.40:8080/", "ZEROCRON_OUTBOUND_ALLOW=10.20.30.40:8080"),
        ("http://[fd00::7]/", "ZEROCRON_OUTBOUND_ALLOW=[fd00::7]:80"),
        ("http://[::ffff:10.1.1.1]/", "ZEROCRON_OUTBOUND_ALLOW=10.1.1.1:80"),
        ("http://93.184.216.34:6379/", "ZEROCRON_OUTBOUND_ALLOW=93.184.216.34:6379"),
    ],
)
async def test_an_address_that_stands_in_the_url_may_be_named_and_the_advice_works(
    dialling: Make, url: str, words: str
) -> None:
    outbound = dialling("")
    await outbound.start()
    message = failure_of(await outbound.send(request(url)), "address_refused").message
    assert words + "." in message
    opened = dialling(words.partition("=")[2])
    await opened.start()
    failure_of(await opened.send(request(url)), "connection_refused")


async def test_of_mixed_answers_only_the_public_ones_are_tried(dialling: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = ["127.0.0.1", PUBLIC, "10.0.0.1", "2606:4700::1111", "fd00::1", "::ffff:127.0.0.1"]
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"mixed.test": mixed}))
    outbound = dialling("")
    await outbound.start()
    failure_of(await outbound.send(request("http://mixed.test/")), "connection_refused")
    assert set(outbound.dialled) == {PUBLIC, "2606:4700::1111"}


async def test_all_private_answers(dialling: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        resolver, "getaddrinfo", Names({"inside.test": ["10.0.0.1", "10.0.0.2", "fd00::1", "127.0.0.1"]})
    )
    outbound = dialling("")
    await outbound.start()
    failure_of(await outbound.send(request("http://inside.test/")), "address_refused")
    assert not outbound.dialled


async def test_a_thousand_answers(dialling: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [f"10.0.{n // 250}.{n % 250}" for n in range(1000)]
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"many.test": [*many, PUBLIC], "inside.test": many}))
    outbound = dialling("")
    await outbound.start()
    failure_of(await outbound.send(request("http://many.test/")), "connection_refused")
    assert set(outbound.dialled) == {PUBLIC}
    failure_of(await outbound.send(request("http://inside.test/")), "address_refused")
    assert set(outbound.dialled) == {PUBLIC}


async def test_the_gate_does_not_rely_on_the_resolver_s_order(dialling: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver puts permitted addresses first; with that out of the way, the gate alone decides."""
    monkeypatch.setattr(resolver, "getaddrinfo", Names({"mixed.test": ["127.0.0.1", PUBLIC]}))
    outbound = dialling("")
    await outbound.start()
    assert outbound._resolver is not None
    outbound._resolver._permits = lambda _address, _port: True
    outcome = await outbound.send(request("http://mixed.test/"))
    assert outcome.failure is not None
    assert set(outbound.dialled) == {PUBLIC}


async def test_a_rebinding_name_never_gets_a_private_connection(
    dialling: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public for every odd look-up, private for every even one, and a cache that is always stale."""
    answers = [[PUBLIC] if n % 2 == 0 else ["127.0.0.1"] for n in range(1000)]
    names = Names({"rebind.test": answers})
    monkeypatch.setattr(resolver, "getaddrinfo", names)
    monkeypatch.setattr(resolver, "DNS_CACHE_SECONDS", -1)
    outbound = dialling("")
    await outbound.start()
    kinds = []
    for _ in range(1000):
        outcome = await outbound.send(request("http://rebind.test/"))
        assert outcome.failure is not None
        kinds.append(outcome.failure.kind)
    assert len(names.asked) == 1000  # one look-up per request: nothing is asked between the judgement and the dial
    assert kinds == ["connection_refused", "address_refused"] * 500
    assert set(outbound.dialled) == {PUBLIC}


@pytest.mark.parametrize("port", [22, 23, 25, 465, 587, 2375, 3306, 5432, 6379, 9200, 11211])
async def test_ports_that_do_not_speak_http(dialling: Make, port: int) -> None:
    closed, wide, named = dialling(""), dialling("0.0.0.0/0"), dialling(f"{PUBLIC}/32:{port}")
    for outbound in (closed, wide, named):
        await outbound.start()
    url = f"http://{PUBLIC}:{port}/"
    for outbound in (closed, wide):
        message = failure_of(await outbound.send(request(url)), "address_refused").message
        assert f"Port {port}" in message
        assert "ZEROCRON_OUTBOUND_ALLOW" in message
    failure_of(await named.send(request(url)), "connection_refused")


@pytest.mark.parametrize(
    ("host", "allow"),
    [
        ("169.254.169.254", "169.254.0.0/16"),
        ("169.254.169.254", "169.254.169.254/32:80"),
        ("100.100.100.200", "0.0.0.0/0"),
        ("168.63.129.16", "168.63.129.16"),
        ("192.0.0.192", "192.0.0.0/24:1-65535"),
        ("[fd00:ec2::254]", "fd00::/8"),
        ("[::ffff:169.254.169.254]", "0.0.0.0/0, ::/0"),
        ("[64:ff9b::a9fe:a9fe]", "64:ff9b::/96, 169.254.0.0/16"),
        ("[2002:a9fe:a9fe::1]", "2002::/16, 169.254.0.0/16"),
        ("[::169.254.169.254]", "::/0, 0.0.0.0/0"),
    ],
)
async def test_metadata_is_refused_inside_any_allow_rule(dialling: Make, host: str, allow: str) -> None:
    outbound = dialling(allow)
    await outbound.start()
    message = failure_of(await outbound.send(request(f"http://{host}/")), "address_refused").message
    assert "metadata" in message
    assert not outbound.dialled


async def test_an_allow_rule_opens_its_network_and_ports_only(target: Target) -> None:
    outbound = Outbound(allow=parse_allow(f"127.0.0.1/32:{target.port}"), user_agent=USER_AGENT)
    await outbound.start()
    response_of(await outbound.send(request(target.url + "/ok")))
    other = target.port + 1 if target.port < 65535 else target.port - 1
    failure_of(await outbound.send(request(f"http://127.0.0.1:{other}/")), "address_refused")
    failure_of(await outbound.send(request(f"http://127.0.0.2:{target.port}/")), "address_refused")
    await outbound.close()


async def test_localhost_by_name_is_refused_and_can_be_allowed(target: Target) -> None:
    closed = Outbound(allow=parse_allow(""), user_agent=USER_AGENT)
    opened = Outbound(allow=parse_allow("127.0.0.0/8, ::1"), user_agent=USER_AGENT)
    for outbound in (closed, opened):
        await outbound.start()
    url = f"http://localhost:{target.port}/ok"
    failure_of(await closed.send(request(url)), "address_refused")
    assert not target.requests
    assert target.connections == 0
    response_of(await opened.send(request(url)))
    for outbound in (closed, opened):
        await outbound.close()


async def test_a_redirect_inwards_is_not_followed(outbound: Outbound, target: Target) -> None:
    answer = response_of(await outbound.send(request(target.url + "/redirect?to=http://169.254.169.254/")))
    assert answer.status == 302
    assert len(target.requests) == 1


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"])
async def test_a_proxy_in_the_environment_changes_nothing(
    target: Target, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    async with Target() as proxy:
        monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
        outbound = Outbound(allow=parse_allow("127.0.0.0/8"), user_agent=USER_AGENT)
        await outbound.start()
        response_of(await outbound.send(request(target.url + "/ok")))
        await outbound.close()
        assert proxy.connections == 0
        assert len(target.requests) == 1


async def test_netrc_is_not_read(
    target: Target, outbound: Outbound, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(netrc))
    response_of(await outbound.send(request(target.url + "/ok")))
    assert "authorization" not in target.requests[0].headers
