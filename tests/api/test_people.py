"""Through the API: becoming the owner, a second factor, a new password, an invitation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pyotp
import pytest_asyncio
from tests.api.browsers import PASSWORD, Browser, setup_token

from zerocron.actions.one_time_links import new_link, new_reset_link
from zerocron.app import Node, run_node
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import Settings
from zerocron.storage.ledger.one_time_links import LinkKind

ADA = "ada@example.com"


@pytest_asyncio.fixture(loop_scope="module")
async def fresh(tmp_path: Path) -> AsyncIterator[Node]:
    """A node with nobody."""
    async with run_node(Settings(data_dir=tmp_path, drain_seconds=0)) as it:
        yield it


async def set_up(node: Node, **fields: Any) -> Browser:
    browser = Browser(node.application)
    document = {"token": await setup_token(node), "email": ADA, "name": "Ada", "password": PASSWORD}
    answer = await browser("POST", "/v1/setup", document | fields)
    assert answer.status == 201, answer.body
    return browser


async def test_the_first_owner_comes_by_the_link_and_nobody_after_them(fresh: Node) -> None:
    assert (await Browser(fresh.application).get("/v1/sign-in")) == {
        "password": True,
        "oidc": None,
        "trusted_header": False,
        "setup_open": True,
        "mail": False,
        "is_secure": True,
    }
    spare = await setup_token(fresh)
    ada = await set_up(fresh, language="fr", timezone="Europe/Paris")
    session = await ada.get("/v1/session")
    assert (session["method"], session["team"]["role"]) == ("setup", "owner")
    assert (session["person"]["language"], session["person"]["timezone"]) == ("fr", "Europe/Paris")
    eve = Browser(fresh.application)
    assert (await eve.get("/v1/sign-in"))["setup_open"] is False
    document = {"token": spare, "email": "eve@example.com", "name": "Eve", "password": PASSWORD}
    (await eve("POST", "/v1/setup", document)).problem(404)
    assert eve.cookies == {}


async def test_faults_of_the_first_owner_are_named_by_field(fresh: Node) -> None:
    browser = Browser(fresh.application)
    good = {"token": await setup_token(fresh), "email": ADA, "name": "Ada", "password": PASSWORD}
    for field, value in (
        ("email", "ada"),
        ("name", " "),
        ("password", "short"),
        ("password", "password1"),
        ("language", "de"),
        ("timezone", "Mars/Base"),
        ("role", "owner"),
        ("team_id", DEFAULT_TEAM_ID),
    ):
        (await browser("POST", "/v1/setup", {**good, field: value})).problem(422, field)
    assert (await browser("POST", "/v1/setup", good)).status == 201


async def test_a_second_factor_from_the_qr_code_to_the_recovery_code(fresh: Node) -> None:
    ada = await set_up(fresh)
    begun = (await ada("POST", "/v1/me/totp")).json
    assert begun["uri"].startswith("otpauth://totp/0cron:ada%40example.com?secret=" + begun["secret"])
    assert begun["qr_svg"].startswith("<svg")
    (await ada("POST", "/v1/me/totp/confirm", {"code": "000000"})).problem(422, "code")
    code = pyotp.TOTP(begun["secret"]).at(fresh.clock.now() // 1000)
    codes = (await ada("POST", "/v1/me/totp/confirm", {"code": code})).json["recovery_codes"]
    assert (len(codes), (await ada.get("/v1/session"))["person"]["has_totp"]) == (10, True)
    (await ada("POST", "/v1/me/totp")).problem(409)
    other = Browser(fresh.application)
    missing = await other.sign_in(ADA)
    assert missing.problem(401)
    assert missing.json["code"] == "code_needed"
    wrong = await other.sign_in(ADA, code=code)
    assert "code" not in wrong.json
    wrong.problem(401)
    assert (await other.sign_in(ADA, code=codes[0])).status == 200
    new = (await other("POST", "/v1/me/recovery-codes")).json["recovery_codes"]
    assert not set(new) & set(codes)
    assert (await other("DELETE", "/v1/me/totp")).status == 204
    (await other("DELETE", "/v1/me/totp")).problem(404)
    (await ada("GET", "/v1/session")).problem(401)
    assert (await Browser(fresh.application).sign_in(ADA)).status == 200


async def test_a_password_is_changed_and_a_lost_one_replaced(fresh: Node) -> None:
    ada = await set_up(fresh)
    other = Browser(fresh.application)
    await other.sign_in(ADA)
    change = {"current_password": PASSWORD, "new_password": "other words in a row"}
    assert (await ada("PUT", "/v1/me/password", change)).status == 204
    (await other("GET", "/v1/session")).problem(401)
    (await ada("PUT", "/v1/me/password", change)).problem(422, "current_password")
    for email in (ADA, "nobody@example.com", "nonsense"):
        answer = await other("POST", "/v1/password-resets", {"email": email})
        assert (answer.status, answer.body) == (202, b"null")
    path = await fresh.ledger.write(lambda c: new_reset_link(c, ADA, fresh.clock.now()))
    document = {"token": path.rpartition("/")[2], "new_password": PASSWORD}
    (await other("POST", "/v1/password-resets/use", {**document, "new_password": "x"})).problem(422, "new_password")
    stranger = Browser(fresh.application)
    assert (await stranger("POST", "/v1/password-resets/use", document)).status == 204
    (await other("POST", "/v1/password-resets/use", document)).problem(404)
    (await ada("GET", "/v1/session")).problem(401)
    assert stranger.cookies == {}, "who has the link is not signed in by it"
    assert (await other.sign_in(ADA)).status == 200


async def test_an_invitation_is_looked_at_and_accepted(fresh: Node) -> None:
    await set_up(fresh)

    async def invite(email: str) -> str:
        make = partial(
            new_link,
            kind=LinkKind.INVITATION,
            now=fresh.clock.now(),
            team_id=DEFAULT_TEAM_ID,
            email=email,
            role="viewer",
        )
        return (await fresh.ledger.write(make))[1]

    token = await invite("bob@example.com")
    bob = Browser(fresh.application)
    seen = (await bob("POST", "/v1/invitations/look", {"token": token})).json
    assert seen.pop("expires_at").endswith("Z")
    assert seen == {
        "team": "Team",
        "email": "bob@example.com",
        "role": "viewer",
        "has_account": False,
        "invited_by": None,
    }
    answer = await bob("POST", "/v1/invitations/accept", {"token": token, "name": "Bob", "password": PASSWORD})
    assert (answer.status, answer.json["permissions"], answer.json["method"]) == (200, ["read"], "invitation")
    (await bob("POST", "/v1/invitations/accept", {"token": token})).problem(404)
    again = await bob("POST", "/v1/invitations/accept", {"token": await invite("bob@example.com")})
    assert (again.status, again.json["method"]) == (200, "invitation"), "the cookie says who it is"
    (await bob("POST", "/v1/invitations/accept", {"token": await invite(ADA)})).problem(401)


async def test_who_has_the_mailbox_cannot_guess_the_second_factor_from_one_network_after_another(fresh: Node) -> None:
    ada = await set_up(fresh)
    begun = (await ada("POST", "/v1/me/totp")).json
    code = pyotp.TOTP(begun["secret"]).at(fresh.clock.now() // 1000)
    assert (await ada("POST", "/v1/me/totp/confirm", {"code": code})).status == 200
    path = await fresh.ledger.write(lambda c: new_reset_link(c, ADA, fresh.clock.now()))
    guess = {"token": path.rpartition("/")[2], "new_password": "other words in a row", "code": "000000"}
    tried = [
        await Browser(fresh.application, address=f"198.51.{number}.7")("POST", "/v1/password-resets/use", guess)
        for number in range(6)
    ]
    assert [answer.status for answer in tried] == [401] * 5 + [429]
