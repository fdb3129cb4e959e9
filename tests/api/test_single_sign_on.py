"""Signing in at an issuer of OpenID Connect, and by a trusted header: the whole way, and everything that must fail."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import pytest_asyncio
from sqlalchemy import Connection, text, update
from structlog.testing import capture_logs
from tests.api.browsers import HOST, PASSWORD, Browser, setup_token
from tests.api.support import Answer, exchange, scope_of
from tests.support.issuer import CLIENT_ID, CLIENT_SECRET, Issuer

from zerocron.actions.identities import IDENTITIES_MAX
from zerocron.api.services import Services
from zerocron.app import Node, run_node
from zerocron.core.access import Role
from zerocron.core.errors import Invalid, Unavailable
from zerocron.core.exchange import Failure, Outcome, Request, Timings
from zerocron.core.ids import new_id
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.single_sign_on import Refusal, UsedFlows
from zerocron.core.tokens import digest
from zerocron.settings import Settings, load
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people_tables import identities, one_time_links, people, sign_ins

OWNER = "owner@corp.example"
NETWORKS = itertools.cycle(range(1, 255))
"""A test comes from one of its own: each has so many tries."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_issuer() -> AsyncIterator[Issuer]:
    async with Issuer() as it:
        yield it


@pytest.fixture
def issuer(one_issuer: Issuer) -> Issuer:
    """Honest again."""
    one_issuer.reset()
    return one_issuer


def settings_with(issuer: Issuer, folder: Path) -> Settings:
    return Settings(
        data_dir=folder,
        drain_seconds=0,
        outbound_allow="127.0.0.0/8",
        base_url=f"https://{HOST}",
        trusted_proxies="10.0.0.1",
        trusted_header="Remote-Email",
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        oidc_name="Example",
        sign_up_domains="example.com",
    )


@pytest.fixture
def public(issuer: Issuer, tmp_path: Path) -> Settings:
    return settings_with(issuer, tmp_path)


@dataclass
class Door:
    """A server with its owner, an issuer beside it, and a browser in front."""

    node: Node
    issuer: Issuer
    browser: Browser

    async def begin(self, path: str = "/jobs", **query: str) -> str:
        """Where the browser is sent."""
        answer = await self.browser("GET", f"/auth/oidc/start?{urlencode({'next': path} | query)}")
        assert answer.status == 303, answer.body
        return answer.headers["location"]

    async def come_back(self, given: dict[str, str]) -> Answer:
        return await self.browser("GET", f"/auth/oidc/callback?{urlencode(given)}")

    async def sign_in(self, path: str = "/jobs", **claims: Any) -> Answer:
        """The whole way."""
        self.issuer.claims = claims
        return await self.come_back(self.issuer.grant(await self.begin(path)))

    async def session(self) -> Any:
        return await self.browser.get("/v1/session")

    async def rows(self, query: str) -> list[Any]:
        return await self.node.ledger.read(lambda connection: [tuple(row) for row in connection.execute(text(query))])


async def set_up(node: Node, email: str = OWNER) -> None:
    document = {"token": await setup_token(node), "email": email, "name": "Owner", "password": PASSWORD}
    assert (await Browser(node.application)("POST", "/v1/setup", document)).status == 201


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_node(one_issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    async with run_node(settings_with(one_issuer, tmp_path_factory.mktemp("door"))) as node:
        await set_up(node)
        yield node


@pytest_asyncio.fixture(loop_scope="module")
async def door(one_node: Node, issuer: Issuer) -> Door:
    """The one server with nobody but its owner, and no memory of its issuer."""

    def clear(connection: Connection) -> None:
        connection.execute(people.delete().where(people.c.email != OWNER))
        for table in (identities, sign_ins, one_time_links):
            connection.execute(table.delete())

    await one_node.ledger.write(clear)
    services: Services = one_node.application.state.services
    asked = services.single_sign_on._issuer
    assert asked is not None
    asked._endpoints = asked._keys = None
    return Door(one_node, issuer, Browser(one_node.application, address=f"203.0.113.{next(NETWORKS)}"))


def refusal_of(answer: Answer) -> str:
    assert answer.status == 303, answer.body
    target = urlsplit(answer.headers["location"])
    assert (target.scheme, target.netloc, target.path) == ("", "", "/sign-in"), target
    return parse_qs(target.query)["refused"][0]


async def test_somebody_of_an_allowed_domain_comes_in_as_a_viewer_of_the_first_team(door: Door) -> None:
    answer = await door.sign_in("/jobs?state=failing")
    assert (answer.status, answer.headers["location"]) == (303, "/jobs?state=failing")
    session = await door.session()
    assert session["person"] | {"id": "", "created_at": ""} == {
        "id": "",
        "email": "ann@example.com",
        "name": "Ann",
        "language": "en",
        "timezone": "UTC",
        "has_password": False,
        "has_totp": False,
        "created_at": "",
    }
    assert (session["team"]["id"], session["team"]["role"], session["method"]) == (DEFAULT_TEAM_ID, "viewer", "oidc")
    assert session["elevated_until"] is None, "an issuer that does not say when proves nothing fresh"
    assert set(door.browser.cookies) == {"__Host-0cron"}, "what the browser kept meanwhile is gone"
    for cookie in door.browser.set_cookies:
        assert "HttpOnly" in cookie
        assert "Secure" in cookie
        assert "samesite=lax" in cookie.lower()


async def test_who_was_here_before_comes_in_by_the_identity_whatever_the_address_is_now(door: Door) -> None:
    await door.sign_in()
    person = (await door.session())["person"]["id"]
    await door.sign_in(email="other@elsewhere.example", email_verified=False)
    assert (await door.session())["person"]["id"] == person
    assert await door.rows("SELECT count(*) FROM people") == [(2,)]


async def test_an_account_with_the_same_verified_address_is_linked(door: Door) -> None:
    await door.sign_in(email="Owner@CORP.example", sub="owner-1")
    session = await door.session()
    assert (session["person"]["email"], session["team"]["role"]) == (OWNER, "owner")
    assert await door.rows("SELECT issuer, subject FROM identities") == [(door.issuer.url, "owner-1")]
    assert ("identity.bind",) in await door.rows("SELECT action FROM audit_entries")


@pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
async def test_an_address_that_is_not_verified_links_nothing_and_makes_nobody(door: Door, verified: Any) -> None:
    assert refusal_of(await door.sign_in(email=OWNER, email_verified=verified)) == Refusal.UNVERIFIED
    assert refusal_of(await door.sign_in(email_verified=verified)) == Refusal.UNVERIFIED
    assert await door.rows("SELECT count(*) FROM identities") == [(0,)]
    assert await door.rows("SELECT count(*) FROM people") == [(1,)]
    assert not door.browser.cookies


async def test_somebody_unknown_is_refused_unless_invited(door: Door) -> None:
    bob = {"email": "bob@elsewhere.example", "sub": "bob-1"}
    assert refusal_of(await door.sign_in(**bob)) == Refusal.UNKNOWN
    now = door.node.clock.now()
    until = now + 60_000
    link = Link(
        new_id(now), LinkKind.INVITATION, digest("x"), now, until, DEFAULT_TEAM_ID, email=bob["email"], role="editor"
    )
    await door.node.ledger.write(lambda connection: link_rows.insert(connection, link))
    assert (await door.sign_in(**bob)).headers["location"] == "/jobs"
    assert (await door.session())["team"]["role"] == Role.EDITOR
    used = await door.rows("SELECT used_at FROM one_time_links WHERE kind = 'invitation'")
    assert used[0][0] is not None


async def test_a_disabled_account_stays_out(door: Door) -> None:
    await door.sign_in()

    def disable(connection: Connection) -> None:
        connection.execute(update(people).where(people.c.email != OWNER).values(status="disabled"))

    await door.node.ledger.write(disable)
    assert refusal_of(await door.sign_in()) == Refusal.DISABLED


async def test_nobody_comes_in_before_the_first_owner(public: Settings, issuer: Issuer) -> None:
    async with run_node(public) as node:
        door = Door(node, issuer, Browser(node.application))
        assert refusal_of(await door.sign_in()) == Refusal.NOT_SET_UP
        assert (await door.browser.get("/v1/sign-in"))["setup_open"]


async def test_a_fresh_proof_at_the_issuer_is_one_here(door: Door) -> None:
    now = door.node.clock.now() // 1000
    await door.sign_in(auth_time=now - 3_600)
    assert (await door.session())["elevated_until"] is None
    url = await door.begin(prove="true")
    query = parse_qs(urlsplit(url).query)
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"])
    door.issuer.claims = {"auth_time": now}
    await door.come_back(door.issuer.grant(url))
    assert (await door.session())["elevated_until"] is not None


async def test_what_is_asked_of_the_issuer(door: Door) -> None:
    query = {name: values[0] for name, values in parse_qs(urlsplit(await door.begin()).query).items()}
    assert query["response_type"] == "code"
    assert query["client_id"] == CLIENT_ID
    assert query["redirect_uri"] == f"https://{HOST}/auth/oidc/callback"
    assert query["scope"] == "openid email profile"
    await door.sign_in()
    assert all(authorization.startswith("Basic ") for authorization in door.issuer.authorizations)
    assert door.issuer.asked.count("/keys") == 1


async def test_an_issuer_that_gives_the_address_only_on_demand_is_asked_for_it(
    public: Settings, issuer: Issuer
) -> None:
    issuer.userinfo = {"sub": "ann-17", "email": "ann@example.com", "email_verified": True}
    async with run_node(public) as node:
        await set_up(node)
        door = Door(node, issuer, Browser(node.application))
        assert (await door.sign_in(email=None, email_verified=None)).headers["location"] == "/jobs"
        issuer.userinfo["sub"] = "somebody else"
        assert refusal_of(await door.sign_in(email=None, email_verified=None)) == Refusal.ISSUER


async def test_a_new_key_of_the_issuer_is_found_and_keys_are_not_asked_for_without_end(door: Door) -> None:
    door.issuer.new_key()
    assert (await door.sign_in()).headers["location"] == "/jobs"
    door.issuer.new_key()
    for _ in range(3):  # within a minute
        assert refusal_of(await door.sign_in()) == Refusal.ISSUER
    assert door.issuer.asked.count("/keys") <= 2


# attacks


LIES: dict[str, dict[str, Any]] = {
    "another audience": {"aud": "another client"},
    "no audience": {"aud": None},
    "one audience of many, for another": {"aud": [CLIENT_ID, "other"], "azp": "other"},
    "many audiences, for nobody": {"aud": [CLIENT_ID, "other"]},
    "another issuer": {"iss": "https://evil.example"},
    "another nonce": {"nonce": "of another sign-in"},
    "no nonce": {"nonce": None},
    "expired": {"exp": 1_700_000_000},
    "without an end": {"exp": None},
    "from the future": {"iat": 99_999_999_999},
    "of nobody": {"sub": None},
    "of an empty subject": {"sub": ""},
    "of an endless subject": {"sub": "x" * 256},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_token_that_is_not_what_it_has_to_be_is_refused(door: Door, lie: str) -> None:
    with capture_logs() as lines:
        assert refusal_of(await door.sign_in(**LIES[lie])) == Refusal.ISSUER
    assert [line["reason"] for line in lines if line["event"] == "sign_in_refused"]
    assert await door.rows("SELECT count(*) FROM people") == [(1,)]
    assert not door.browser.cookies


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_a_token_that_anybody_could_have_made_is_refused(door: Door, algorithm: str) -> None:
    door.issuer.algorithm = algorithm
    assert refusal_of(await door.sign_in()) == Refusal.ISSUER


async def test_a_token_signed_by_somebody_else_under_the_same_key_id_is_refused(door: Door) -> None:
    await door.sign_in()
    shown, kid = door.issuer.shown, door.issuer.kid
    door.issuer.new_key()
    door.issuer.shown, door.issuer.kid = shown, kid
    assert refusal_of(await door.sign_in()) == Refusal.ISSUER


async def test_the_state_has_to_be_the_browsers_own(door: Door) -> None:
    given = door.issuer.grant(await door.begin())
    for state in ("another", "", "é"):
        assert refusal_of(await door.come_back(given | {"state": state})) == Refusal.EXPIRED
        await door.begin()
    assert refusal_of(await door.come_back({"code": given["code"]})) == Refusal.EXPIRED


async def test_an_answer_for_another_browser_is_refused(door: Door) -> None:
    """Somebody else's code and state do not sign this browser in to their account."""
    given = door.issuer.grant(await door.begin())
    victim = Browser(door.node.application)
    assert refusal_of(await Door(door.node, door.issuer, victim).come_back(given)) == Refusal.EXPIRED
    await Door(door.node, door.issuer, victim).begin()
    assert refusal_of(await Door(door.node, door.issuer, victim).come_back(given)) == Refusal.EXPIRED


async def test_a_code_works_once(door: Door) -> None:
    given = door.issuer.grant(await door.begin())
    kept = dict(door.browser.cookies)
    assert (await door.come_back(given)).headers["location"] == "/jobs"
    door.browser.cookies = kept
    services: Services = door.node.application.state.services
    services.single_sign_on._used_flows = UsedFlows()  # another node, which has not seen it
    assert refusal_of(await door.come_back(given)) == Refusal.ISSUER
    assert refusal_of(await door.come_back(given)) == Refusal.EXPIRED


async def test_a_flow_comes_back_once_whatever_its_second_answer_is(door: Door) -> None:
    url = await door.begin()
    kept = dict(door.browser.cookies)
    assert (await door.come_back(door.issuer.grant(url))).headers["location"] == "/jobs"
    asked = len(door.issuer.asked)
    door.browser.cookies = kept
    assert refusal_of(await door.come_back(door.issuer.grant(url))) == Refusal.EXPIRED
    assert len(door.issuer.asked) == asked, "the issuer was asked about a new code"


async def test_a_network_has_so_many_beginnings_and_answers(door: Door) -> None:
    for _ in range(29):
        url = await door.begin()
        assert refusal_of(await door.come_back(door.issuer.grant(url) | {"code": "x"})) == Refusal.ISSUER
    url = await door.begin()
    kept = dict(door.browser.cookies)
    assert refusal_of(await door.come_back(door.issuer.grant(url) | {"code": "x"})) == Refusal.ISSUER
    asked = len(door.issuer.asked)
    assert refusal_of(await door.browser("GET", "/auth/oidc/start")) == Refusal.TOO_MANY
    door.browser.cookies = kept
    assert refusal_of(await door.come_back(door.issuer.grant(url))) == Refusal.TOO_MANY
    assert len(door.issuer.asked) == asked
    elsewhere = Door(door.node, door.issuer, Browser(door.node.application, address="198.51.100.1"))
    assert (await elsewhere.sign_in()).headers["location"] == "/jobs"


@pytest.mark.parametrize("away", ["beginning", "token", "keys", "ledger"])
async def test_what_is_tried_while_the_issuer_or_the_server_is_away_costs_nothing(
    door: Door, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """Somebody goes on trying through an outage, twice as often as they may; when it is over they come in."""
    services: Services = door.node.application.state.services
    asked = services.single_sign_on._issuer
    assert asked is not None
    send, write = asked._send, door.node.ledger.write

    async def nobody_answers(request: Request) -> Outcome:
        parts = {"beginning": ".well-known", "token": "/token", "keys": "/keys"}
        if away in parts and parts[away] in request.url:
            return Outcome(None, Failure("unreachable", "Nobody answers."), Timings(None, None, None, None, 1.0))
        return await send(request)

    async def no_ledger(_transaction: Any) -> Any:
        raise Unavailable("The database cannot be used now.")

    monkeypatch.setattr(asked, "_send", nobody_answers)
    for _ in range(60):
        begun = await door.browser("GET", "/auth/oidc/start")
        if away == "beginning":
            assert refusal_of(begun) == Refusal.ISSUER
            continue
        assert begun.headers["location"].startswith(door.issuer.url), "it may be begun"
        with monkeypatch.context() as patch:
            if away == "ledger":
                patch.setattr(door.node.ledger, "write", no_ledger)
            back = await door.come_back(door.issuer.grant(begun.headers["location"]))
        assert back.status == 503 if away == "ledger" else refusal_of(back) == Refusal.ISSUER
    monkeypatch.setattr(asked, "_send", send)
    assert door.node.ledger.write == write
    assert (await door.sign_in()).headers["location"] == "/jobs"


async def test_an_office_signs_in_from_one_network(door: Door) -> None:
    for _ in range(31):
        assert (await door.sign_in()).headers["location"] == "/jobs"


@pytest.mark.parametrize(
    "spoil", [lambda it: it + "0", lambda it: "x" + it, lambda it: it.partition(".")[0], lambda _: "é.é"]
)
async def test_a_cookie_that_the_server_did_not_sign_is_refused(door: Door, spoil: Any) -> None:
    given = door.issuer.grant(await door.begin())
    [(name, kept)] = door.browser.cookies.items()
    assert name == "__Host-0cron-oidc"
    door.browser.cookies[name] = spoil(kept)
    assert refusal_of(await door.come_back(given)) == Refusal.EXPIRED


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "/\t/evil.example",
        "javascript:1",
        "",
        "/é",
        "/" * 2,
    ],
)
async def test_nobody_is_sent_to_another_site(door: Door, path: str) -> None:
    assert (await door.sign_in(path)).headers["location"] == "/"
    by_header = Browser(door.node.application, address="10.0.0.1")
    answer = await by_header("GET", f"/auth/header?{urlencode({'next': path})}", headers={"remote-email": OWNER})
    assert answer.headers["location"] == "/"


async def test_what_the_issuer_refuses_is_told(door: Door) -> None:
    given = door.issuer.grant(await door.begin())
    del given["code"]
    assert refusal_of(await door.come_back(given | {"error": "access_denied"})) == Refusal.DENIED
    given = door.issuer.grant(await door.begin())
    assert refusal_of(await door.come_back(given | {"iss": "https://evil.example"})) == Refusal.ISSUER


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "file:///etc/passwd"},
        {"jwks_uri": 7},
        {"authorization_endpoint": None},
    ],
)
async def test_an_issuer_that_says_nonsense_of_itself_is_not_used(door: Door, document: dict[str, Any]) -> None:
    door.issuer.discovery = document
    answer = await door.browser("GET", "/auth/oidc/start")
    assert refusal_of(answer) == Refusal.ISSUER


async def test_the_issuer_is_called_through_the_guarded_door(public: Settings, issuer: Issuer) -> None:
    async with run_node(dataclasses.replace(public, outbound_allow="")) as node:
        answer = await Browser(node.application)("GET", "/auth/oidc/start")
        assert refusal_of(answer) == Refusal.ISSUER
        assert issuer.asked == []


async def test_no_secret_of_a_sign_in_is_in_the_log(door: Door) -> None:
    with capture_logs() as lines:
        given = door.issuer.grant(await door.begin())
        kept = dict(door.browser.cookies)
        await door.come_back(given)
        door.browser.cookies = kept
        await door.come_back(given)
    told = str(lines)
    for secret in (given["code"], given["state"], CLIENT_SECRET, *kept.values(), *door.browser.cookies.values()):
        assert secret not in told


async def test_without_an_issuer_the_door_is_closed(public: Settings) -> None:
    closed = dataclasses.replace(
        public, oidc_issuer="", oidc_client_id="", oidc_client_secret="", trusted_header="", trusted_proxies=""
    )
    async with run_node(closed) as node:
        browser = Browser(node.application, address="10.0.0.1")
        shown = await browser.get("/v1/sign-in")
        assert (shown["oidc"], shown["trusted_header"]) == (None, False)
        assert refusal_of(await browser("GET", "/auth/oidc/start")) == Refusal.ISSUER
        assert refusal_of(await browser("GET", "/auth/oidc/callback?code=1&state=2")) == Refusal.ISSUER
        answer = await browser("GET", "/auth/header", headers={"remote-email": OWNER})
        assert refusal_of(answer) == Refusal.NO_HEADER


async def test_the_page_knows_the_ways_in(door: Door) -> None:
    shown = await door.browser.get("/v1/sign-in")
    assert (shown["oidc"], shown["trusted_header"]) == ({"name": "Example"}, True)


async def test_many_come_in_at_once(door: Door) -> None:
    async def one(number: int) -> str:
        mine = Door(door.node, door.issuer, Browser(door.node.application))
        return (await mine.come_back(door.issuer.grant(await mine.begin(f"/{number}")))).headers["location"]

    door.issuer.claims = {}
    await door.sign_in()
    assert await asyncio.gather(*(one(number) for number in range(5))) == [f"/{number}" for number in range(5)]
    assert await door.rows("SELECT count(*) FROM people") == [(2,)]


# proving again who one is, and linking who one is there


def path_of(answer: Answer) -> tuple[str, dict[str, str]]:
    """Where on this server the browser is sent to."""
    assert answer.status == 303, answer.body
    target = urlsplit(answer.headers["location"])
    assert (target.scheme, target.netloc) == ("", ""), target
    return target.path, {name: values[0] for name, values in parse_qs(target.query).items()}


async def owner_at(door: Door, browser: Browser | None = None) -> Door:
    """The owner, signed in by the password, who has just proved who they are."""
    there = Door(door.node, door.issuer, browser or door.browser)
    assert (await there.browser.sign_in(OWNER)).status == 200
    return there


async def begin_linking(door: Door) -> str:
    answer = await door.browser("POST", "/v1/me/identities")
    assert answer.status == 200, answer.body
    return str(answer.json["url"])


async def link(door: Door, **claims: Any) -> Answer:
    """The whole way."""
    url = await begin_linking(door)
    door.issuer.claims = claims
    return await door.come_back(door.issuer.grant(url))


async def subjects(door: Door) -> list[str]:
    return [each["subject"] for each in (await door.browser.get("/v1/me/identities"))["items"]]


async def grow_old(door: Door) -> None:
    """The proof is no longer fresh."""
    await door.node.ledger.write(lambda connection: connection.execute(update(sign_ins).values(elevated_until=0)))
    door.node.application.state.services.entrance.sign_ins.forget((await door.session())["person"]["id"])


async def test_who_is_signed_in_links_who_they_are_there_whatever_the_address_is(door: Door) -> None:
    boss = f"boss-{uuid.uuid4()}"  # other tests of this server link somebody, too
    await owner_at(door)
    url = await begin_linking(door)
    query = parse_qs(urlsplit(url).query)
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"]), "not whoever is signed in there by chance"
    door.issuer.claims = {"sub": boss, "email": "private@elsewhere.example", "email_verified": False}
    before = dict(door.browser.cookies)
    back = await door.come_back(door.issuer.grant(url))
    assert path_of(back) == ("/account", {"done": "linked"})
    assert door.browser.cookies["__Host-0cron"] == before["__Host-0cron"], "the sign-in is the same"
    [shown] = (await door.browser.get("/v1/me/identities"))["items"]
    assert (shown["issuer"], shown["subject"]) == (door.issuer.url, boss)
    assert (shown["is_in_use"], shown["is_last_way_in"]) == (True, False)
    [(actor, address)] = await door.rows(
        "SELECT actor_name, address FROM audit_entries WHERE action = 'identity.bind' AND team_id IS NOT NULL"
        f" AND after LIKE '%{boss}%'"
    )
    assert (actor, address) == ("Owner", door.browser.address)

    elsewhere = Door(door.node, door.issuer, Browser(door.node.application, address=door.browser.address))
    await elsewhere.sign_in(sub=boss, email=None)
    assert (await elsewhere.session())["person"]["email"] == OWNER
    assert path_of(await link(door, sub=boss)) == ("/account", {"done": "linked"}), "it is theirs already"
    assert await subjects(door) == [boss]


async def test_linking_takes_a_fresh_proof_and_a_page_of_ours(door: Door) -> None:
    (await door.browser("POST", "/v1/me/identities")).problem(401)
    await owner_at(door)
    for site in ("cross-site", "same-site", "none"):
        (await door.browser("POST", "/v1/me/identities", headers={"sec-fetch-site": site})).problem(403)
    for query in ("link=true", "purpose=link", "prove=true&purpose=link"):
        url = (await door.browser("GET", f"/auth/oidc/start?{query}")).headers["location"]
        door.issuer.claims = {"sub": "eve"}
        await door.come_back(door.issuer.grant(url))
        await owner_at(door)
        assert await subjects(door) == [], "nobody is led to it by a link"
    await grow_old(door)
    refused = await door.browser("POST", "/v1/me/identities")
    assert refused.json["code"] == "reauthenticate"
    assert "__Host-0cron-oidc" not in door.browser.cookies


async def test_an_identity_of_somebody_else_is_not_linked(door: Door) -> None:
    await door.sign_in()
    ann = (await door.session())["person"]["id"]
    await owner_at(door)
    assert path_of(await link(door)) == ("/sign-in", {"refused": Refusal.TAKEN})
    assert await subjects(door) == []
    assert await door.rows("SELECT person_id FROM identities") == [(ann,)]


async def test_of_two_who_link_one_identity_at_once_one_has_it(door: Door) -> None:
    await owner_at(door)
    ann = Door(door.node, door.issuer, Browser(door.node.application, address=door.browser.address))
    await ann.sign_in(auth_time=door.node.clock.now() // 1000)
    urls = [await begin_linking(one) for one in (door, ann)]
    door.issuer.claims = {"sub": "shared"}
    backs = await asyncio.gather(
        *(one.come_back(door.issuer.grant(url)) for one, url in zip((door, ann), urls, strict=True))
    )
    assert sorted(path_of(back)[1].popitem() for back in backs) == [("done", "linked"), ("refused", "taken")]


async def test_what_one_began_does_nothing_in_the_sign_in_of_another(door: Door) -> None:
    """Of another person, of the same one elsewhere, or once they are signed out: the cookie of the flow is carried."""
    await door.sign_in()
    ann = dict(door.browser.cookies)
    other_browser = await owner_at(door, Browser(door.node.application))
    await owner_at(door)
    for cookies in (ann, dict(other_browser.browser.cookies), {}):
        await owner_at(door)
        url = await begin_linking(door)
        kept = door.browser.cookies["__Host-0cron-oidc"]
        door.browser.cookies = cookies | {"__Host-0cron-oidc": kept}
        door.issuer.claims = {"sub": "eve"}
        asked = len(door.issuer.asked)
        back = await door.come_back(door.issuer.grant(url))
        assert path_of(back) == ("/sign-in", {"refused": Refusal.EXPIRED})
        assert len(door.issuer.asked) == asked, "the code was not even used"
        assert await door.rows("SELECT subject FROM identities WHERE subject = 'eve'") == []


async def test_a_sign_in_that_ended_meanwhile_links_nothing(door: Door) -> None:
    await owner_at(door)
    url = await begin_linking(door)
    kept = dict(door.browser.cookies)
    assert (await door.browser("POST", "/v1/sign-out")).status == 204
    door.browser.cookies = kept
    door.issuer.claims = {"sub": "eve"}
    assert path_of(await door.come_back(door.issuer.grant(url))) == ("/sign-in", {"refused": Refusal.EXPIRED})
    assert await door.rows("SELECT subject FROM identities WHERE subject = 'eve'") == []


async def test_a_linking_comes_back_once_and_an_answer_to_something_else_is_none_to_it(door: Door) -> None:
    await owner_at(door)
    url = await begin_linking(door)
    kept = door.browser.cookies["__Host-0cron-oidc"]
    door.issuer.claims = {"sub": "mine"}
    await door.come_back(door.issuer.grant(url))
    door.browser.cookies["__Host-0cron-oidc"] = kept
    door.issuer.claims = {"sub": "eve"}
    assert path_of(await door.come_back(door.issuer.grant(url))) == ("/sign-in", {"refused": Refusal.EXPIRED})

    stranger = Door(door.node, door.issuer, Browser(door.node.application, address="198.51.100.77"))
    theirs = door.issuer.grant(await stranger.begin())  # somebody who comes in, and gives the victim their answer
    await begin_linking(door)
    assert path_of(await door.come_back(theirs)) == ("/sign-in", {"refused": Refusal.EXPIRED})
    assert await subjects(door) == ["mine"]


async def test_one_links_so_many(door: Door) -> None:
    await owner_at(door)
    for number in range(IDENTITIES_MAX):
        assert path_of(await link(door, sub=f"me {number}"))[1] == {"done": "linked"}
    assert path_of(await link(door, sub="one more"))[1] == {"refused": Refusal.TOO_MANY_LINKED}
    assert path_of(await link(door, sub="me 3"))[1] == {"done": "linked"}
    assert len(await subjects(door)) == IDENTITIES_MAX


async def test_an_issuer_that_is_away_is_told_and_nothing_is_begun(door: Door) -> None:
    await owner_at(door)
    door.issuer.discovery = {"issuer": "https://evil.example"}
    answer = await door.browser("POST", "/v1/me/identities")
    assert answer.problem(409).startswith("The issuer cannot be used now")
    assert "__Host-0cron-oidc" not in door.browser.cookies


async def test_one_begins_so_often(door: Door) -> None:
    await owner_at(door)
    for _ in range(30):
        await begin_linking(door)
    refused = await door.browser("POST", "/v1/me/identities")
    assert refused.problem(429).startswith("There were too many attempts. Try again in ")
    assert 1 <= int(refused.headers["retry-after"]) <= 30


async def test_an_identity_is_taken_off_and_whoever_came_in_by_it_is_out(door: Door) -> None:
    await owner_at(door)
    await link(door, sub="boss")
    [shown] = (await door.browser.get("/v1/me/identities"))["items"]
    thief = Door(door.node, door.issuer, Browser(door.node.application))
    await thief.sign_in(sub="boss", email=None)
    place = f"/v1/me/identities/{shown['id']}"
    await grow_old(door)
    assert (await door.browser("DELETE", place)).json["code"] == "reauthenticate"
    await door.browser("POST", "/v1/session/elevate", {"password": PASSWORD})
    assert (await door.browser("DELETE", place)).status == 204
    assert await subjects(door) == []
    (await thief.browser("GET", "/v1/session")).problem(401)
    assert refusal_of(await thief.sign_in(sub="boss", email=None)) == Refusal.UNVERIFIED
    assert (await door.browser("DELETE", place)).problem(404) == "There is no such identity."
    removed = await door.rows("SELECT before FROM audit_entries WHERE action = 'identity.remove'")
    assert "boss" in removed[-1][0]


async def test_nobody_takes_off_the_last_way_in_nor_what_is_somebody_elses(door: Door) -> None:
    await door.sign_in(auth_time=door.node.clock.now() // 1000)
    await link(door, sub="ann-18")
    items = (await door.browser.get("/v1/me/identities"))["items"]
    assert [each["is_last_way_in"] for each in items] == [False, False]
    owner = await owner_at(door, Browser(door.node.application))
    place = f"/v1/me/identities/{items[0]['id']}"
    (await owner.browser("DELETE", place)).problem(404)
    both = await asyncio.gather(*(door.browser("DELETE", f"/v1/me/identities/{each['id']}") for each in items))
    assert sorted(answer.status for answer in both) == [204, 409], "of two at once one stays"
    [left] = (await door.browser.get("/v1/me/identities"))["items"]
    assert left["is_last_way_in"]
    assert (await door.browser("DELETE", f"/v1/me/identities/{left['id']}")).problem(409).startswith("This is the only")
    document = {"current_password": None, "new_password": PASSWORD}
    assert (await door.browser("PUT", "/v1/me/password", document)).status == 204
    assert (await door.browser("DELETE", f"/v1/me/identities/{left['id']}")).status == 204


async def test_an_identity_at_an_issuer_of_former_days_is_no_way_in(door: Door) -> None:
    await door.sign_in(auth_time=door.node.clock.now() // 1000)
    ann = (await door.session())["person"]["id"]
    old = {"issuer": "https://old.example", "subject": "ann", "person_id": ann, "created_at": 1}
    await door.node.ledger.write(lambda connection: connection.execute(identities.insert(), old))
    shown = {each["issuer"]: each for each in (await door.browser.get("/v1/me/identities"))["items"]}
    assert [shown["https://old.example"][name] for name in ("is_in_use", "is_last_way_in")] == [False, False]
    assert shown[door.issuer.url]["is_last_way_in"]


async def test_a_key_has_no_identities(door: Door) -> None:
    await owner_at(door)
    key = (await door.browser("POST", "/v1/api-keys", {"name": "k"})).json["key"]
    program = Browser(door.node.application)
    headers = {"authorization": f"Bearer {key}", "sec-fetch-site": None}
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "/x")):
        answer = await program(method, f"/v1/me/identities{path}", headers=headers)
        assert "an API key is none" in answer.problem(403)


async def test_who_has_no_password_proves_at_the_issuer_who_they_are_and_sets_one(door: Door) -> None:
    await door.sign_in()
    ann = await door.session()
    document = {"current_password": None, "new_password": PASSWORD}
    assert (await door.browser("PUT", "/v1/me/password", document)).json["code"] == "reauthenticate"
    url = await door.begin("/account/password", prove="true")
    before = dict(door.browser.cookies)
    door.issuer.claims = {"auth_time": door.node.clock.now() // 1000}
    assert path_of(await door.come_back(door.issuer.grant(url))) == ("/account/password", {})
    assert door.browser.cookies["__Host-0cron"] != before["__Host-0cron"], "another token opens it from now on"
    session = await door.session()
    assert (session["person"], session["elevated_until"] is not None) == (ann["person"], True)
    assert await door.rows("SELECT count(*) FROM sign_ins") == [(1,)], "it is the same sign-in"
    assert (await door.browser("PUT", "/v1/me/password", document)).status == 204
    proved = await door.rows(
        "SELECT after FROM audit_entries WHERE action = 'sign-in.elevate' ORDER BY id DESC LIMIT 1"
    )
    assert proved == [('{"method":"oidc"}',)]


@pytest.mark.parametrize(
    ("claims", "refusal"),
    [
        ({}, Refusal.NO_PROOF),
        ({"auth_time": -3_600}, Refusal.NO_PROOF),
        ({"sub": "somebody else", "auth_time": 0}, Refusal.SOMEBODY_ELSE),
        ({"sub": "owner-1", "email": OWNER, "auth_time": 0}, Refusal.SOMEBODY_ELSE),
    ],
)
async def test_what_proves_nothing_is_told_and_changes_nothing(
    door: Door, claims: dict[str, Any], refusal: Refusal
) -> None:
    """An issuer that does not say when, or said it an hour ago; somebody who is nobody here; an account of here."""
    owner = Door(door.node, door.issuer, Browser(door.node.application))
    await owner.sign_in(email=OWNER, sub="owner-1")
    await door.sign_in()
    before = dict(door.browser.cookies)
    url = await door.begin("/keys/new", prove="true")
    given = dict(claims)
    if "auth_time" in given:
        given["auth_time"] += door.node.clock.now() // 1000
    door.issuer.claims = given
    back = await door.come_back(door.issuer.grant(url))
    assert path_of(back) == ("/confirm", {"refused": refusal, "next": "/keys/new"})
    assert door.browser.cookies == before, "nobody is signed in as somebody else by it"
    session = await door.session()
    assert (session["person"]["email"], session["elevated_until"]) == ("ann@example.com", None)


async def test_a_proof_that_another_sign_in_began_proves_nothing(door: Door) -> None:
    await door.sign_in()
    url = await door.begin(prove="true")
    kept = door.browser.cookies["__Host-0cron-oidc"]
    elsewhere = Door(door.node, door.issuer, Browser(door.node.application))
    await elsewhere.sign_in()
    elsewhere.browser.cookies["__Host-0cron-oidc"] = kept
    door.issuer.claims = {"auth_time": door.node.clock.now() // 1000}
    back = await elsewhere.come_back(door.issuer.grant(url))
    assert path_of(back)[1]["refused"] == Refusal.EXPIRED
    assert (await elsewhere.session())["elevated_until"] is None


async def test_nobody_proves_anything_who_is_not_signed_in(door: Door) -> None:
    answer = await door.browser("GET", "/auth/oidc/start?prove=true&next=/jobs")
    assert path_of(answer) == ("/confirm", {"refused": Refusal.EXPIRED, "next": "/jobs"})
    assert not door.browser.cookies


# the trusted header


async def by_header(door: Door, email: str, address: str = "10.0.0.1") -> Answer:
    door.browser.address = address
    return await door.browser("GET", "/auth/header?next=/jobs", headers={"remote-email": email})


async def test_who_the_trusted_proxy_names_comes_in(door: Door) -> None:
    assert (await by_header(door, OWNER)).headers["location"] == "/jobs"
    session = await door.session()
    assert (session["person"]["email"], session["method"]) == (OWNER, "trusted-header")
    assert session["elevated_until"] is None, "nobody proved anything at this moment"


@pytest.mark.parametrize(
    ("mode", "target"),
    [
        ("no-cors", "image"),
        ("cors", "empty"),
        ("no-cors", "empty"),
        ("no-cors", "script"),
        ("navigate", "iframe"),
        ("navigate", "object"),
        ("websocket", "websocket"),
        ("", ""),
    ],
)
async def test_a_page_of_another_site_opens_no_sign_in_by_what_it_holds(door: Door, mode: str, target: str) -> None:
    door.browser.address = "10.0.0.1"
    said = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": target, "remote-email": OWNER}
    for way in ("/auth/header", "/auth/oidc/start", "/auth/oidc/callback?code=x&state=y"):
        answer = await door.browser("GET", way, headers=said)
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
        assert not door.browser.set_cookies
    assert await door.rows("SELECT count(*) FROM sign_ins") == [(0,)]
    gone_there = said | {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert (await door.browser("GET", "/auth/header", headers=gone_there)).headers["location"] == "/"


async def test_a_header_that_came_twice_is_nobodys(door: Door) -> None:
    scope = scope_of("GET", "/auth/header", "", {"host": HOST, "remote-email": OWNER}, "https")
    scope["client"] = ("10.0.0.1", 50_000)
    assert (await exchange(door.node.application, dict(scope), [b""])).headers["location"] == "/"
    for second in (OWNER, "ann@example.com", ""):
        twice = {**scope, "headers": [*scope["headers"], (b"remote-email", second.encode())]}
        assert refusal_of(await exchange(door.node.application, twice, [b""])) == Refusal.NO_HEADER


async def test_the_same_header_of_anybody_else_means_nothing(door: Door) -> None:
    assert refusal_of(await by_header(door, OWNER, address="203.0.113.7")) == Refusal.NO_HEADER
    answer = await door.browser("GET", "/auth/header", headers={"remote-email": OWNER, "x-forwarded-for": "10.0.0.1"})
    assert refusal_of(answer) == Refusal.NO_HEADER


async def test_the_proxys_people_come_in_by_the_same_rule(door: Door) -> None:
    assert refusal_of(await by_header(door, "bob@elsewhere.example")) == Refusal.UNKNOWN
    assert refusal_of(await by_header(door, "no address")) == Refusal.NO_HEADER
    await by_header(door, "ann@example.com")
    assert (await door.session())["team"]["role"] == Role.VIEWER


async def test_a_cookie_of_one_is_not_taken_from_another_whom_the_proxy_names(door: Door) -> None:
    await by_header(door, OWNER)
    same = await door.browser("GET", "/v1/session", headers={"remote-email": OWNER.upper()})
    other = await door.browser("GET", "/v1/session", headers={"remote-email": "ann@example.com"})
    assert (same.status, other.status) == (200, 401)


# settings


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OIDC_ISSUER": "accounts.example.com"}, "an issuer is a URL"),
        ({"OIDC_ISSUER": "https://a:b@accounts.example.com"}, "an issuer is a URL"),
        ({"OIDC_ISSUER": "https://accounts.example.com?x=1"}, "an issuer is a URL"),
        ({"OIDC_ISSUER": "https://accounts.example.com"}, "OIDC_CLIENT_ID"),
        ({"OIDC_ISSUER": "https://accounts.example.com", "OIDC_CLIENT_ID": "x"}, "BASE_URL"),
        ({"OIDC_CLIENT_ID": "x"}, "a client without an issuer"),
        ({"OIDC_CLIENT_SECRET": "hush"}, "a client without an issuer"),
        ({"SIGN_UP_DOMAINS": "example.com, @"}, "is no domain"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(environment: dict[str, str], words: str) -> None:
    with pytest.raises(Invalid, match=words) as refusal:
        load(environment={f"ZEROCRON_{name}": value for name, value in environment.items()})
    assert "hush" not in refusal.value.message
