"""Teams of people: who may give whom which role, who goes, who comes, and what is left of a team that is deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.api.browsers import PASSWORD, Browser
from tests.api.support import JOB, NOWHERE, Answer, Client, client_of, until
from tests.api.teams import join, make_team

from zerocron.app import Node
from zerocron.core.access import Role
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.storage.ledger import teams as team_rows


class Crew:
    """A team with one person of each role; addresses end with the team's id, so that tests share nobody."""

    def __init__(self, node: Node, api: Client) -> None:
        self.node, self.api = node, api
        self.ids: dict[Role, str] = {}
        self.browsers: dict[Role, Browser] = {}

    def address(self, name: str) -> str:
        return f"{name}@{self.api.team_id[:8]}.example"

    async def gather(self) -> None:
        await make_team(self.node, self.api.team_id)
        for role in Role:
            self.ids[role], self.browsers[role] = await self.enter(str(role), role)

    async def enter(self, name: str, role: Role, **given: Any) -> tuple[str, Browser]:
        return await join(self.node, self.api.team_id, self.address(name), role, **given)

    async def roles(self) -> dict[str, str]:
        return {one["person_id"]: one["role"] for one in (await self.api.get("/v1/members"))["items"]}

    async def told(self, action: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.api.get("/v1/audit", action=action))["items"]
        return found


@pytest.fixture
async def crew(node: Node, api: Client) -> Crew:
    made = Crew(node, api)
    await made.gather()
    return made


@pytest.mark.parametrize("giver", [Role.OWNER, Role.ADMIN])
@pytest.mark.parametrize("target", list(Role))
@pytest.mark.parametrize("role", list(Role))
async def test_nobody_grants_or_takes_a_role_above_their_own(crew: Crew, giver: Role, target: Role, role: Role) -> None:
    person_id, _ = await crew.enter("somebody", target)
    may = giver == Role.OWNER or Role.OWNER not in (target, role)

    answer = await crew.browsers[giver]("PATCH", f"/v1/members/{person_id}", {"role": role})

    assert answer.status == (204 if may or target == role else 403), answer.body
    assert (await crew.roles())[person_id] == (role if may else target)
    assert len(await crew.told("member.edit")) == (may and target != role)


@pytest.mark.parametrize("role", [Role.EDITOR, Role.VIEWER])
async def test_who_is_no_admin_changes_nobody_and_invites_nobody(crew: Crew, role: Role) -> None:
    browser, victim = crew.browsers[role], crew.ids[Role.VIEWER]
    before = await crew.roles()

    for method, path, document in (
        ("PATCH", f"/v1/members/{victim}", {"role": "viewer"}),
        ("PATCH", f"/v1/members/{crew.ids[role]}", {"role": "owner"}),
        ("DELETE", f"/v1/members/{victim}", None),
        ("POST", "/v1/invitations", {"email": "x@example.com", "role": "viewer"}),
        ("GET", "/v1/invitations", None),
        ("PATCH", "/v1/team", {"name": "Mine"}),
        ("DELETE", "/v1/team?name=Operations", None),
    ):
        (await browser(method, path, document)).problem(403)

    assert await crew.roles() == before
    assert len((await browser.get("/v1/members"))["items"]) == 4


async def test_members_are_changed_by_who_has_just_proved_who_they_are(crew: Crew) -> None:
    _, browser = await crew.enter("lazy", Role.OWNER, is_elevated=False)

    for method, path in (("PATCH", f"/v1/members/{crew.ids[Role.VIEWER]}"), ("DELETE", "/v1/team?name=Operations")):
        answer = await browser(method, path, {"role": "editor"} if method == "PATCH" else None)
        assert answer.problem(403)
        assert answer.json["code"] == "reauthenticate"


async def test_the_last_owner_stays(crew: Crew) -> None:
    owner = crew.browsers[Role.OWNER]
    own = f"/v1/members/{crew.ids[Role.OWNER]}"

    assert "last owner" in (await owner("PATCH", own, {"role": "admin"})).problem(409)
    assert "last owner" in (await owner("DELETE", own)).problem(409)
    assert "last owner" in (await owner("POST", "/v1/team/leave")).problem(409)

    await crew.enter("second", Role.OWNER)
    assert (await owner("POST", "/v1/team/leave")).status == 204
    assert list((await crew.roles()).values()).count("owner") == 1


async def test_of_two_owners_who_leave_at_once_one_stays(crew: Crew) -> None:
    _, second = await crew.enter("second", Role.OWNER)

    answers = await asyncio.gather(
        crew.browsers[Role.OWNER]("POST", "/v1/team/leave"), second("POST", "/v1/team/leave")
    )

    assert sorted(answer.status for answer in answers) == [204, 409]
    assert list((await crew.roles()).values()).count("owner") == 1


async def test_who_is_taken_out_is_out_at_once_and_stays_in_other_teams(
    crew: Crew, node: Node, stranger: Client
) -> None:
    person_id, browser = await crew.enter("gone", Role.EDITOR)
    await make_team(node, stranger.team_id, "Another")
    _, elsewhere = await join(node, stranger.team_id, crew.address("gone"), Role.VIEWER)
    assert (await browser.get("/v1/jobs"))["items"] == []

    assert (await crew.browsers[Role.ADMIN]("DELETE", f"/v1/members/{person_id}")).status == 204

    (await browser("GET", "/v1/jobs")).problem(401)
    (await browser("GET", "/v1/session")).problem(401)
    assert (await elsewhere.get("/v1/jobs"))["items"] == []
    assert person_id not in await crew.roles()
    (told,) = await crew.told("member.remove")
    assert (told["subject"]["id"], told["before"], told["after"]) == (person_id, {"role": "editor"}, None)
    assert told["actor"]["id"] == crew.ids[Role.ADMIN]
    (await crew.browsers[Role.ADMIN]("DELETE", f"/v1/members/{person_id}")).problem(404)


async def test_a_role_that_was_taken_counts_from_the_next_request_on(crew: Crew) -> None:
    browser = crew.browsers[Role.EDITOR]
    job = (await browser("POST", "/v1/jobs", JOB)).json

    place = f"/v1/members/{crew.ids[Role.EDITOR]}"
    assert (await crew.browsers[Role.OWNER]("PATCH", place, {"role": "viewer"})).status == 204

    (await browser("POST", f"/v1/jobs/{job['id']}/trigger")).problem(403)
    assert (await browser.get(f"/v1/jobs/{job['id']}"))["name"] == JOB["name"]


async def test_members_are_listed_page_by_page(crew: Crew) -> None:
    found = await crew.api.walk("/v1/members", 3)

    assert [one["role"] for one in found] == ["owner", "admin", "editor", "viewer"]
    assert found[0]["email"] == crew.address("owner")
    assert found[0]["has_totp"] is False
    assert found[0]["last_seen_at"] is not None


async def test_an_invitation_makes_an_account_in_the_team_once(crew: Crew) -> None:
    email = crew.address("new")
    made = (await crew.browsers[Role.ADMIN]("POST", "/v1/invitations", {"email": email.upper(), "role": "editor"})).json

    assert (made["email"], made["role"], made["is_mailed"], made["invited_by"]) == (email, "editor", False, "Admin")
    token = made["url"].rpartition("/")[2]
    assert made["url"].endswith(f"/invitation/{token}")
    (listed,) = (await crew.api.get("/v1/invitations"))["items"]
    assert listed == {name: made[name] for name in listed}
    guest = Browser(crew.node.application)
    looked = (await guest("POST", "/v1/invitations/look", {"token": token})).json
    assert looked["invited_by"] == "Admin"
    assert (looked["team"], looked["email"], looked["role"]) == ("Operations", email, "editor")

    accepted = await guest(
        "POST", "/v1/invitations/accept", {"token": token, "name": "Grace", "password": f"{PASSWORD} of grace"}
    )

    assert accepted.status == 200, accepted.body
    assert accepted.json["team"]["id"] == crew.api.team_id
    assert (await guest("POST", "/v1/jobs", JOB)).status == 201
    assert (await crew.api.get("/v1/invitations"))["items"] == []
    (await Browser(crew.node.application)("POST", "/v1/invitations/look", {"token": token})).problem(404)
    (told,) = await crew.told("invitation.create")
    assert (told["subject"]["name"], told["after"]) == (email, {"role": "editor"})
    assert token not in str(await crew.api.get("/v1/audit", limit=200))


async def test_an_invitation_can_be_withdrawn_and_a_newer_one_takes_its_place(crew: Crew) -> None:
    invite = {"email": crew.address("new"), "role": "viewer"}
    first, second = [(await crew.api("POST", "/v1/invitations", invite)).json for _ in range(2)]
    guest = Browser(crew.node.application)

    (await guest("POST", "/v1/invitations/look", {"token": first["url"].rpartition("/")[2]})).problem(404)
    (await crew.api("DELETE", f"/v1/invitations/{first['id']}")).problem(404)
    assert (await crew.api("DELETE", f"/v1/invitations/{second['id']}")).status == 204
    (await guest("POST", "/v1/invitations/look", {"token": second["url"].rpartition("/")[2]})).problem(404)
    assert len(await crew.told("invitation.withdraw")) == 1


async def test_who_is_invited_and_by_whom(crew: Crew) -> None:
    admin = crew.browsers[Role.ADMIN]

    assert "owner" in (await admin("POST", "/v1/invitations", {"email": "x@y.example", "role": "owner"})).problem(403)
    there = {"email": crew.address("viewer"), "role": "editor"}
    assert "is in the team already" in (await admin("POST", "/v1/invitations", there)).problem(409)
    assert (await admin("POST", "/v1/invitations", {"email": "no address", "role": "viewer"})).problem(422, "email")
    assert (await admin("POST", "/v1/invitations", {"email": "x@y.example", "role": "king"})).problem(422, "role")


async def test_nobody_is_flooded_with_invitations(crew: Crew) -> None:
    invite = {"email": crew.address("victim"), "role": "viewer"}
    answers = [await crew.api("POST", "/v1/invitations", invite) for _ in range(4)]

    assert [answer.status for answer in answers] == [201, 201, 201, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_a_person_makes_a_team_and_a_key_makes_none(crew: Crew) -> None:
    browser = crew.browsers[Role.VIEWER]

    made = (await browser("POST", "/v1/teams", {"name": "Of my own"})).json

    assert made["role"] == "owner"
    assert [(one["name"], one["role"]) for one in (await browser.get("/v1/teams"))["items"]] == [
        ("Operations", "viewer"),
        ("Of my own", "owner"),
    ]
    session = (await browser("POST", "/v1/session/team", {"team_id": made["id"]})).json
    assert session["team"]["id"] == made["id"]
    assert (await browser.get("/v1/team"))["name"] == "Of my own"
    assert "key" in (await crew.api("POST", "/v1/teams", {"name": "x"})).problem(403)
    assert (await crew.api.get("/v1/teams"))["items"] == [{"id": crew.api.team_id, "name": "Operations", "role": None}]


async def test_a_team_that_is_asked_for_twice_is_made_once_whatever_team_one_looks_at(crew: Crew) -> None:
    browser, other = crew.browsers[Role.VIEWER], crew.browsers[Role.EDITOR]
    key = {"idempotency-key": "a form"}

    async def ask(who: Browser, name: str = "Of my own") -> Answer:
        return await who("POST", "/v1/teams", {"name": name}, headers=key)

    at_once = await asyncio.gather(*(ask(browser) for _ in range(5)))
    [made] = {answer.json["id"] for answer in at_once}
    assert sorted(answer.headers.get("idempotent-replay", "") for answer in at_once) == ["", *["true"] * 4]
    assert (await browser("POST", "/v1/session/team", {"team_id": made})).status == 200
    assert (await ask(browser)).json == {"id": made, "name": "Of my own", "role": "owner"}
    assert "different request" in (await ask(browser, "Another")).problem(409)
    assert (await ask(other)).json["id"] != made, "a key is a person's"
    assert len((await browser.get("/v1/teams"))["items"]) == 2
    assert (await browser("DELETE", "/v1/team?name=Of%20my%20own")).status == 204
    _, again = await crew.enter("viewer", Role.VIEWER)
    assert "gone" in (await ask(again)).problem(409)


async def test_an_invitation_that_is_asked_for_twice_is_made_once_and_its_link_is_shown_once(crew: Crew) -> None:
    invite = {"email": crew.address("new"), "role": "viewer"}
    admin = crew.browsers[Role.ADMIN]

    async def ask(document: Any = invite, key: str = "a form") -> Answer:
        return await admin("POST", "/v1/invitations", document, headers={"idempotency-key": key})

    answers = await asyncio.gather(*(ask() for _ in range(3)))
    [made] = [answer.json for answer in answers if answer.status == 201]
    assert {answer.problem(409) for answer in answers if answer.status != 201} == {
        "This Idempotency-Key made an invitation before, and a link is shown only once. Ask with a new "
        "Idempotency-Key: a newer invitation takes the place of that one."
    }
    assert [one["id"] for one in (await admin.get("/v1/invitations"))["items"]] == [made["id"]]
    guest = Browser(crew.node.application)
    look = {"token": made["url"].rpartition("/")[2]}
    assert (await guest("POST", "/v1/invitations/look", look)).status == 200, "the link that was shown still works"
    assert "different request" in (await ask(invite | {"role": "editor"})).problem(409)
    for _ in range(5):  # an address gets three mails an hour: what makes nothing costs none of them
        await ask()
    assert (await ask(key="another form")).status == 201
    assert "gone" in (await ask()).problem(409), "a newer one took its place"


async def test_a_team_is_shown_with_what_it_has_and_renamed(crew: Crew) -> None:
    await crew.api.job()

    shown = await crew.api.get("/v1/team")
    assert (shown["name"], shown["usage"]["jobs"], shown["limits"]["jobs_max"]) == ("Operations", 1, None)
    assert (await crew.browsers[Role.ADMIN]("PATCH", "/v1/team", {"name": "Ops"})).json["name"] == "Ops"
    (told,) = await crew.told("team.edit")
    assert (told["before"], told["after"]) == ({"name": "Operations"}, {"name": "Ops"})


async def test_of_a_deleted_team_nothing_goes_on(crew: Crew, node: Node) -> None:
    owner = crew.browsers[Role.OWNER]
    job, monitor = await crew.api.job(), await crew.api.monitor()
    await crew.api.channel()
    await crew.api("PUT", "/v1/secrets/A", {"value": "long enough"})
    invited = (await crew.api("POST", "/v1/invitations", {"email": crew.address("x"), "role": "viewer"})).json

    assert (await owner("DELETE", "/v1/team?name=operations")).problem(422, "name")
    assert (await owner("DELETE", "/v1/team")).problem(422, "name")
    assert (await crew.api.get(f"/v1/jobs/{job['id']}"))["status"] == "active"
    assert (await owner("DELETE", "/v1/team?name=Operations")).status == 204

    (await owner("GET", "/v1/session")).problem(401)
    (await crew.api("GET", "/v1/jobs")).problem(401)
    assert (await crew.api("GET", f"/v1/ping/{monitor['ping_token']}")).status == 404
    token = invited["url"].rpartition("/")[2]
    (await Browser(node.application)("POST", "/v1/invitations/look", {"token": token})).problem(404)
    assert await node.ledger.read(team_rows.unfinished) is None
    later = await client_of(node, crew.api.team_id)  # what the team had is gone, and its log is not
    for path in ("/v1/jobs", "/v1/monitors", "/v1/channels", "/v1/secrets"):
        assert (await later.get(path))["items"] == []
    actions = [entry["action"] for entry in (await later.get("/v1/audit", limit=200))["items"]]
    assert {"team.delete", "job.delete", "monitor.delete", "channel.delete", "secret.delete"} <= set(actions)


async def test_a_deletion_that_was_interrupted_goes_on(crew: Crew, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    teams = node.application.state.services.teams
    jobs = [await crew.api.job() for _ in range(3)]

    async def killed(*_given: object) -> bool:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(teams, "_empty", killed)
        (await crew.browsers[Role.OWNER]("DELETE", "/v1/team?name=Operations")).problem(500)
    later = await client_of(node, crew.api.team_id)
    assert len((await later.get("/v1/jobs"))["items"]) == len(jobs)

    async def done() -> bool:
        await teams.finish()
        left: list[Any] = (await later.get("/v1/jobs"))["items"]
        return not left

    await until(done, "the rest of the deletion")


async def test_the_first_team_cannot_be_deleted(node: Node) -> None:
    _, owner = await join(node, DEFAULT_TEAM_ID, "first@owner.example", Role.OWNER)
    name = (await owner.get("/v1/team"))["name"]

    assert "first team" in (await owner("DELETE", f"/v1/team?name={name}")).problem(409)
    assert (await owner.get("/v1/team"))["id"] == DEFAULT_TEAM_ID


async def test_a_key_of_an_admin_manages_members_below_an_owner(crew: Crew) -> None:
    assert (await crew.api("PATCH", f"/v1/members/{crew.ids[Role.EDITOR]}", {"role": "admin"})).status == 204
    (await crew.api("PATCH", f"/v1/members/{crew.ids[Role.OWNER]}", {"role": "viewer"})).problem(403)
    (await crew.api("DELETE", f"/v1/members/{crew.ids[Role.OWNER]}")).problem(403)
    (await crew.api("DELETE", f"/v1/members/{NOWHERE}")).problem(404)
