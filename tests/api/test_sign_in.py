"""Browsers at the gate: cookies, requests in somebody's name, and what a sign-in may do (D 46, 47, 49, 53)."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastapi.routing import iter_route_contexts
from sqlalchemy import select
from tests.api.browsers import HOST, PASSWORD, Browser, setup_token
from tests.api.support import JOB, NOWHERE, Client, client_of

from zerocron.api.access import need_of
from zerocron.api.gate import BOTH
from zerocron.app import Node, run_node
from zerocron.core.access import Role
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.core.origins import FOREIGN, SAFE_METHODS
from zerocron.settings import Settings
from zerocron.storage.ledger.people_tables import audit_entries

ADA = "ada@example.com"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owned(node: Node) -> Node:
    """The node of this file, with its owner."""
    await Browser(node.application)(
        "POST",
        "/v1/setup",
        {"token": await setup_token(node), "email": ADA, "name": "Ada", "password": PASSWORD},
    )
    return node


@pytest_asyncio.fixture(loop_scope="module")
async def browser(owned: Node) -> Browser:
    """Ada's, signed in."""
    it = Browser(owned.application)
    assert (await it.sign_in(ADA)).status == 200
    return it


def anew(browser: Browser, **changes: Any) -> Browser:
    return dataclasses.replace(browser, cookies={}, set_cookies=[], **changes)


# the cookie


async def test_over_tls_the_cookie_is_for_this_host_alone(browser: Browser) -> None:
    name, _, rest = browser.set_cookies[-1].partition("=")
    value, *attributes = rest.split("; ")
    assert name == "__Host-0cron"
    assert re.fullmatch(r"[0-9A-Za-z_-]{43}", value)
    assert sorted(attribute.lower() for attribute in attributes) == [
        "httponly",
        "max-age=7776000",
        "path=/",
        "samesite=lax",
        "secure",
    ]


async def test_on_a_lan_without_tls_it_works_and_says_so(browser: Browser) -> None:
    lan = anew(browser, scheme="http", address="192.168.1.20")
    assert (await lan.get("/v1/sign-in"))["is_secure"] is False
    answer = await lan("POST", "/v1/sign-in", {"email": ADA, "password": PASSWORD}, headers=ORIGIN_ALONE)
    assert (answer.status, answer.json["is_secure"]) == (200, False)
    assert lan.set_cookies[-1].startswith("0cron=")
    assert "secure" not in lan.set_cookies[-1].lower()
    assert (await lan.get("/v1/session"))["is_secure"] is False
    here = anew(browser, scheme="http", address="127.0.0.1")
    assert (await here.get("/v1/sign-in"))["is_secure"] is True


ORIGIN_ALONE = {"sec-fetch-site": None, "origin": f"http://{HOST}"}


async def test_the_cookie_of_the_other_kind_is_not_read(browser: Browser) -> None:
    """Whoever is on the network could have planted the plain one."""
    token = browser.cookies["__Host-0cron"]
    planted = anew(browser)
    planted.cookies["0cron"] = token
    (await planted("GET", "/v1/session")).problem(401)
    plain = anew(browser, scheme="http")
    plain.cookies["__Host-0cron"] = token
    (await plain("GET", "/v1/session")).problem(401)


async def test_a_server_behind_a_proxy_with_tls_knows_by_its_base_url(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, drain_seconds=0, base_url="https://0cron.example.org")
    async with run_node(settings) as node:
        proxied = Browser(node.application, scheme="http")
        headers = {"sec-fetch-site": None, "origin": "https://0cron.example.org", "host": "backend:8000"}
        document = {"token": await setup_token(node), "email": ADA, "name": "Ada", "password": PASSWORD}
        assert (await proxied("POST", "/v1/setup", document, headers=headers)).status == 201
        assert proxied.set_cookies[-1].startswith("__Host-0cron=")
        assert (await proxied.get("/v1/session"))["is_secure"] is True


async def test_signing_out_clears_the_cookie_and_the_token_is_worth_nothing(browser: Browser) -> None:
    token = browser.cookies["__Host-0cron"]
    answer = await browser("POST", "/v1/sign-out")
    assert (answer.status, answer.body) == (204, b"")
    assert browser.cookies == {}
    browser.cookies["__Host-0cron"] = token
    assert (await browser("GET", "/v1/session")).problem(401) == "This sign-in has ended. Sign in again."


async def test_the_token_is_in_the_cookie_and_nowhere_else(browser: Browser) -> None:
    token = browser.cookies["__Host-0cron"]
    answers = [await browser("GET", path) for path in ("/v1/session", "/v1/me/sign-ins")]
    answers.append(await anew(browser).sign_in(ADA))
    elevated = await browser("POST", "/v1/session/elevate", {"password": PASSWORD})
    assert browser.cookies["__Host-0cron"] != token
    for answer in (*answers, elevated):
        assert answer.status == 200
        assert answer.headers["cache-control"] == "no-store"
        for kept in (token, browser.cookies["__Host-0cron"]):
            assert kept not in answer.body.decode()


async def test_a_token_is_taken_from_the_cookie_alone(browser: Browser) -> None:
    token = browser.cookies.pop("__Host-0cron")
    for path in (f"/v1/session?token={token}", f"/v1/session?0cron={token}", f"/v1/session?__Host-0cron={token}"):
        (await browser("GET", path)).problem(401)
    for headers in ({"authorization": f"Bearer {token}"}, {"x-token": token}):
        (await browser("GET", "/v1/session", headers=headers)).problem(401)


@pytest.mark.parametrize("text", ["", "x", "a" * 43, "a" * 5_000, '"; $Path=/', "a" * 42 + "\u00e9"])
async def test_a_cookie_that_is_none_of_ours_opens_nothing(browser: Browser, text: str) -> None:
    stranger = anew(browser)
    stranger.cookies["__Host-0cron"] = text
    (await stranger("GET", "/v1/session")).problem(401)


async def test_other_cookies_are_passed_over(browser: Browser, owned: Node) -> None:
    browser.cookies = {"theme": "dark", "a": "b=c", **browser.cookies, "z": '"quoted"'}
    await browser.get("/v1/session")
    client = await client_of(owned, DEFAULT_TEAM_ID)
    assert (await client("GET", "/v1/jobs", headers={"Cookie": "theme=dark; 0cron=light"})).status == 200


# a key beside a cookie


async def test_a_request_shows_a_key_or_a_cookie(browser: Browser, owned: Node) -> None:
    client = await client_of(owned, DEFAULT_TEAM_ID)
    both = await browser("GET", "/v1/jobs", headers={"authorization": f"Bearer {client.key}"})
    assert both.problem(400) == BOTH
    wrong = await browser("GET", "/v1/jobs", headers={"authorization": "Bearer nonsense"})
    assert wrong.problem(400) == BOTH


async def test_what_a_proxy_in_front_asks_for_does_not_count(browser: Browser) -> None:
    assert (await browser("GET", "/v1/jobs", headers={"authorization": "Basic dXNlcjpwYXNz"})).status == 200


# requests in somebody's name


UNSAFE: list[tuple[str, str, Any]] = [
    ("POST", "/v1/jobs", JOB),
    ("PATCH", "/v1/me", {"name": "Eve"}),
    ("PUT", "/v1/me/password", {"current_password": PASSWORD, "new_password": "other words in a row"}),
    ("DELETE", "/v1/me/sign-ins", None),
    ("POST", "/v1/sign-out", None),
    ("POST", "/v1/session/team", {"team_id": DEFAULT_TEAM_ID}),
]
PUBLIC: list[tuple[str, str, Any]] = [
    ("POST", "/v1/sign-in", {"email": ADA, "password": PASSWORD}),
    ("POST", "/v1/setup", {"token": "x", "email": ADA, "name": "Ada", "password": PASSWORD}),
    ("POST", "/v1/password-resets", {"email": ADA}),
    ("POST", "/v1/password-resets/use", {"token": "x", "new_password": PASSWORD}),
    ("POST", "/v1/invitations/look", {"token": "x"}),
    ("POST", "/v1/invitations/accept", {"token": "x"}),
]
FROM_ELSEWHERE: list[dict[str, str | None]] = [
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": f"https://{HOST}"},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": None},
    {"sec-fetch-site": None, "origin": "null"},
    {"sec-fetch-site": None, "origin": "https://evil.example"},
    {"sec-fetch-site": None, "origin": f"https://{HOST}.evil.example"},
    {"sec-fetch-site": None, "referer": f"https://{HOST}/"},
]


@pytest.mark.parametrize("headers", FROM_ELSEWHERE)
@pytest.mark.parametrize(("method", "path", "document"), UNSAFE + PUBLIC)
async def test_nothing_is_done_for_a_page_of_another_site(
    browser: Browser, method: str, path: str, document: Any, headers: dict[str, str | None]
) -> None:
    before = len(browser.set_cookies)
    assert (await browser(method, path, document, headers=headers)).problem(403) == FOREIGN
    assert len(browser.set_cookies) == before
    session = await browser.get("/v1/session")
    assert session["person"]["name"] == "Ada"


async def test_no_route_at_all_does_anything_for_a_page_of_another_site(browser: Browser) -> None:
    """Made from the route table: of the API, and of the pages, some of which act without it (`/appearance`)."""
    taken = []
    before = len(browser.set_cookies)
    count = 0
    for route in iter_route_contexts(browser.application.routes):
        for method in sorted((route.methods or set()) - SAFE_METHODS):
            path = re.sub(r"\{\w+\}", "x", str(route.path))
            for headers in (
                {"sec-fetch-site": "cross-site"},
                {"sec-fetch-site": None, "origin": "https://evil.example"},
            ):
                answer = await browser(method, path, body=b"theme=dark&next=/", headers=headers)
                count += 1
                if answer.status != 403 or FOREIGN.encode() not in answer.body:
                    taken.append((method, path, answer.status))
    assert count > 100
    assert taken == []
    assert len(browser.set_cookies) == before


async def test_who_only_reads_may_come_by_a_link_from_elsewhere(browser: Browser) -> None:
    for headers in FROM_ELSEWHERE:
        assert (await browser("GET", "/v1/session", headers=headers)).status == 200
        assert (await browser("HEAD", "/v1/session", headers=headers)).status == 200


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"])
@pytest.mark.parametrize(("method", "path", "document"), [UNSAFE[0], UNSAFE[1], PUBLIC[0]])
async def test_a_browser_calls_its_body_json(
    browser: Browser, method: str, path: str, document: Any, kind: str | None
) -> None:
    answer = await browser(method, path, document, headers={"content-type": kind})
    assert answer.problem(415) == "Send JSON, with the header 'Content-Type: application/json'."
    assert (await browser.get("/v1/session"))["person"]["name"] == "Ada"


async def test_json_may_name_its_encoding(browser: Browser) -> None:
    answer = await browser("PATCH", "/v1/me", {}, headers={"content-type": "Application/JSON; charset=utf-8"})
    assert answer.status == 200


async def test_where_a_browser_says_only_its_origin_that_has_to_be_ours(browser: Browser) -> None:
    headers: dict[str, str | None] = {"sec-fetch-site": None, "origin": f"https://{HOST}"}
    assert (await browser("PATCH", "/v1/me", {}, headers=headers)).status == 200


async def test_a_program_with_a_key_says_nothing_of_the_kind(owned: Node) -> None:
    client = await client_of(owned, DEFAULT_TEAM_ID)
    answer = await client("POST", "/v1/jobs", JOB, headers={"Origin": "https://evil.example", "Content-Type": "x"})
    assert answer.status == 201


# what a sign-in may do


async def test_a_session_says_who_is_there_and_what_they_may(browser: Browser, owned: Node) -> None:
    session = await browser.get("/v1/session")
    assert session["person"].items() >= {"email": ADA, "name": "Ada", "has_password": True, "has_totp": False}.items()
    assert session["team"] == {"id": DEFAULT_TEAM_ID, "name": "Team", "role": "owner"}
    assert session["teams"] == [session["team"]]
    assert session["permissions"] == ["read", "write", "trigger", "ping-admin", "admin", "owner"]
    assert (session["method"], session["is_secure"]) == ("password", True)
    assert session["elevated_until"] is not None
    client = await client_of(owned, DEFAULT_TEAM_ID)
    key = await client.get("/v1/session")
    assert (key["person"], key["method"], key["teams"]) == (None, "key", [])
    assert key["team"] == {"id": DEFAULT_TEAM_ID, "name": "Team", "role": None}


async def test_the_same_routes_answer_a_cookie_as_a_key(browser: Browser) -> None:
    made = await browser("POST", "/v1/jobs", JOB)
    assert made.status == 201
    assert (await browser.get(f"/v1/jobs/{made.json['id']}"))["name"] == JOB["name"]


async def test_the_audit_log_knows_the_address(browser: Browser, owned: Node) -> None:
    await browser("PATCH", "/v1/me", {"timezone": "Europe/Paris"})
    query = select(audit_entries.c.address, audit_entries.c.before, audit_entries.c.after).where(
        audit_entries.c.action == "person.edit"
    )
    rows = await owned.ledger.read(lambda connection: [tuple(row) for row in connection.execute(query)])
    assert (browser.address, '{"timezone":"UTC"}', '{"timezone":"Europe/Paris"}') in rows
    await browser("PATCH", "/v1/me", {"timezone": "UTC"})


async def test_ones_sign_ins_are_listed_and_ended(browser: Browser) -> None:
    other = anew(browser, address="198.51.100.4")
    await other.sign_in(ADA)
    items = (await browser.get("/v1/me/sign-ins?limit=200"))["items"]
    [current] = [item for item in items if item["is_current"]]
    assert current["user_agent"] == "Testfox/1.0"
    [theirs] = [item for item in items if item["address"] == "198.51.100.4"]
    assert (await browser("DELETE", f"/v1/me/sign-ins/{theirs['id']}")).status == 204
    (await other("GET", "/v1/session")).problem(401)
    assert (await browser("DELETE", f"/v1/me/sign-ins/{theirs['id']}")).problem(404).startswith("There is no such")
    await other.sign_in(ADA)
    assert (await browser("DELETE", "/v1/me/sign-ins")).status == 204
    (await other("GET", "/v1/session")).problem(401)
    assert len((await browser.get("/v1/me/sign-ins"))["items"]) == 1


async def test_what_asks_for_a_fresh_proof_is_marked_so(owned: Node) -> None:
    elevated = {
        (method, str(route.path))
        for route in iter_route_contexts(owned.application.routes)
        for method in route.methods or ()
        if (need := need_of(getattr(route, "endpoint", None) or len)) is not None and need.is_elevated
    }
    assert elevated >= {
        ("PUT", "/v1/me/password"),
        ("POST", "/v1/me/totp"),
        ("POST", "/v1/me/totp/confirm"),
        ("DELETE", "/v1/me/totp"),
        ("POST", "/v1/me/recovery-codes"),
    }


async def test_too_many_tries_are_told_when_to_come_back(owned: Node) -> None:
    guesser = Browser(owned.application, address="2001:db8::1")
    answers = [await guesser.sign_in("nobody@example.com", "a guess of mine") for _ in range(21)]
    assert {answer.status for answer in answers[:20]} == {401}
    assert answers[20].problem(429).startswith("There were too many attempts. Try again in ")
    assert 100 < int(answers[20].headers["retry-after"]) <= 180


async def test_a_forged_header_changes_no_limit(owned: Node) -> None:
    """The address is that of the connection (D 45), unless the operator names a proxy."""
    statuses = set()
    for number in range(21):
        guesser = Browser(owned.application, address="2001:db8:0:1::1")
        forged = dict.fromkeys(("x-forwarded-for", "x-real-ip", "forwarded"), f"198.51.100.{number}")
        document = {"email": "no-one@example.com", "password": "a guess of mine"}
        statuses.add((await guesser("POST", "/v1/sign-in", document, headers=forged)).status)
    assert statuses == {401, 429}


async def test_what_is_refused_repeats_no_password(owned: Node) -> None:
    guesser = Browser(owned.application, address="198.51.100.77")
    for document in (
        {"email": ADA, "password": ["canary-1f2e"]},
        {"email": ADA, "password": {"canary-1f2e": 1}},
        {"email": ["canary-1f2e"], "password": "canary-1f2e"},
        {"email": ADA, "password": "canary-1f2e" * 100},
        {"email": ADA, "password": "canary-1f2e", "code": "canary-1f2e" * 100},
        {"email": ADA, "password": "canary-1f2e", "code": 1},
    ):
        answer = await guesser("POST", "/v1/sign-in", document)
        assert answer.status == 422, document
        assert "canary" not in answer.body.decode()


async def test_a_person_of_another_team_sees_nothing_of_this_one(browser: Browser, owned: Node, api: Client) -> None:
    """The cookie stands for one team, as a key does."""
    theirs = await api.job()
    assert (await browser("GET", f"/v1/jobs/{theirs['id']}")).problem(404).startswith("There is no such")
    (await browser("POST", "/v1/session/team", {"team_id": api.team_id})).problem(404)
    (await browser("POST", "/v1/session/team", {"team_id": NOWHERE})).problem(404)
    assert Role.OWNER in (await browser.get("/v1/session"))["team"]["role"]
