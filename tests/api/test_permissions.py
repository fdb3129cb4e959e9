"""Who may do what: every route, with every scope and every role, made from the route table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi.routing import APIRouter, iter_route_contexts
from tests.api.support import JOB, NOWHERE, Answer, Client
from tests.api.test_auth import filled
from tests.api.test_teams import everything_of, state_of
from tests.support.target import Target

from zerocron.api.access import Need, check, need_of, only_who_may
from zerocron.api.public import is_public
from zerocron.app import Node
from zerocron.core.access import KEY_SCOPES, PERMISSIONS, Actor, Bearer, Permission, Role
from zerocron.core.errors import Forbidden
from zerocron.core.model import DEFAULT_TEAM_ID
from zerocron.settings import Settings

EXPECTED = {
    "GET": Permission.READ,
    "POST": Permission.WRITE,
    "PUT": Permission.WRITE,
    "PATCH": Permission.WRITE,
    "DELETE": Permission.WRITE,
}
"""What a route needs unless it is named below."""

OTHERWISE = {
    "POST /v1/jobs/{job_id}/trigger": Need(Permission.TRIGGER),
    "POST /v1/monitors/{monitor_id}/rotate-token": Need(Permission.PING_ADMIN),
    "POST /v1/schedules/preview": Need(Permission.READ),
    "POST /v1/requests/try": Need(Permission.TRIGGER),
    "POST /v1/requests/curl": Need(Permission.READ),
    "GET /v1/system": Need(Permission.ADMIN, is_of_server=True),
    "PUT /v1/secrets/{name}": Need(Permission.WRITE, is_elevated=True),
    "DELETE /v1/secrets/{name}": Need(Permission.WRITE, is_elevated=True),
    "POST /v1/secrets/rotate": Need(Permission.ADMIN, is_elevated=True, is_of_server=True),
    "POST /v1/signing-key/rotate": Need(Permission.ADMIN, is_elevated=True),
    "GET /v1/api-keys": Need(Permission.ADMIN),
    "POST /v1/api-keys": Need(Permission.ADMIN, is_elevated=True),
    "DELETE /v1/api-keys/{key_id}": Need(Permission.ADMIN, is_elevated=True),
    "GET /v1/audit": Need(Permission.ADMIN),
    "GET /v1/teams": Need(None),
    "POST /v1/teams": Need(None),
    "POST /v1/team/leave": Need(None),
    "PATCH /v1/team": Need(Permission.ADMIN),
    "DELETE /v1/team": Need(Permission.OWNER, is_elevated=True),
    "PATCH /v1/members/{person_id}": Need(Permission.ADMIN, is_elevated=True),
    "DELETE /v1/members/{person_id}": Need(Permission.ADMIN, is_elevated=True),
    "GET /v1/invitations": Need(Permission.ADMIN),
    "POST /v1/invitations": Need(Permission.ADMIN, is_elevated=True),
    "DELETE /v1/invitations/{invitation_id}": Need(Permission.ADMIN, is_elevated=True),
    "GET /v1/audit.csv": Need(Permission.ADMIN),
}


OF_ONESELF = ("/v1/sign-out/", "/v1/session/", "/v1/me/")
"""What is one's own needs no permission of a team."""


STREAMS = ("/v1/events",)
"""What goes on for ever for who may hear it."""


@dataclass(frozen=True)
class Asked:
    """A route below `/v1/`, and what it needs."""

    method: str
    path: str
    need: Need

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def asked(node: Node) -> Iterator[Asked]:
    for route in iter_route_contexts(node.application.routes):
        for method in sorted(route.methods or ()):
            if str(route.path).startswith("/v1/"):
                need = need_of(route.endpoint) if route.endpoint is not None else None
                assert need is not None, f"{method} {route.path} has no mark"
                yield Asked(method, str(route.path), need)


def people() -> Iterator[tuple[str, Bearer]]:
    """Everybody there could be: each role, having proved who they are and not; each scope alone; nobody's."""
    for role, is_elevated in itertools.product(Role, (True, False)):
        actor = Actor("person", NOWHERE, "Ada")
        yield (
            f"{role}{'' if is_elevated else ', not proved'}",
            Bearer(NOWHERE, actor, PERMISSIONS[role], person_id=NOWHERE, is_elevated=is_elevated),
        )
    for scope in sorted(KEY_SCOPES):
        yield f"a key for {scope}", Bearer(NOWHERE, Actor("key", "k", "k"), frozenset([scope]), key_id="k")
    for role, is_elevated in itertools.product((Role.OWNER, Role.ADMIN, Role.EDITOR), (True, False)):
        actor = Actor("person", NOWHERE, "Grace")
        yield (
            f"{role} of the first team{'' if is_elevated else ', not proved'}",
            Bearer(DEFAULT_TEAM_ID, actor, PERMISSIONS[role], person_id=NOWHERE, is_elevated=is_elevated),
        )
    yield "a key for nothing", Bearer(NOWHERE, Actor("key", "k", "k"), frozenset(), key_id="k")


async def test_every_route_is_marked_and_guarded_by_the_application(node: Node) -> None:
    found = list(asked(node))

    assert len(found) >= 45
    for route in iter_route_contexts(node.application.routes):
        if str(route.path).startswith("/v1/"):
            guards = [part.call for part in route.dependant.dependencies]
            assert guards[0] is only_who_may, f"{route.path} asks something else first"


async def test_what_each_route_needs_is_what_it_is_thought_to_need(node: Node) -> None:
    for each in asked(node):
        if f"{each.path}/".startswith(OF_ONESELF):
            assert each.need.permission is None, str(each)
        elif not each.need.is_public:
            assert each.need == OTHERWISE.get(str(each), Need(EXPECTED[each.method])), str(each)
        assert each.need.is_public == is_public(each.method, each.path), str(each)
    assert OTHERWISE.keys() <= {str(each) for each in asked(node)}


async def test_the_matrix(node: Node, api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every route with everybody: who may passes the gate, who lacks something is told what, nobody else gets in."""
    wrong: list[str] = []
    seen = {"passed": 0, "lacking": 0, "not proved": 0, "unknown": 0, "elsewhere": 0}
    for who, bearer in people():

        async def recognise(_authorization: str, bearer: Bearer = bearer) -> Bearer:
            return bearer

        for each in asked(node):
            if each.need.is_public or (each.path in STREAMS and each.need.permission in bearer.permissions):
                continue
            place = filled(each.path)
            with monkeypatch.context() as patch:
                patch.setattr(node.keys, "recognise", recognise)
                answer = await api(each.method, place)
            expected, kind = _expected(each.need, bearer)
            seen[kind] += 1
            if each.need.permission is None and expected and answer.status == 403:
                assert "reauthenticate" not in answer.body.decode()  # a key is not let in, as nobody with a key is
            elif expected == (answer.status == 403) or answer.status == 401:
                wrong.append(f"{each} by {who}: {answer.status}, not {kind}")
            elif not expected:
                detail = answer.problem(403)
                assert str(each.need.permission) in detail or kind in ("not proved", "elsewhere"), detail
                assert ("first team" in detail) == (kind == "elsewhere"), detail
                assert answer.json.get("code") == ("reauthenticate" if kind == "not proved" else None)
    for each in asked(node):
        if not each.need.is_public:
            seen["unknown"] += 1
            (await api.with_key(None)(each.method, filled(each.path))).problem(401)

    assert not wrong
    assert seen.pop("elsewhere") == 2 * 5, "owners and admins of another team, proved or not, and its key"
    assert min(seen.values()) > 10, seen


def _expected(need: Need, bearer: Bearer) -> tuple[bool, str]:
    if need.permission is not None and need.permission not in bearer.permissions:
        return False, "lacking"
    if need.is_of_server and bearer.team_id != DEFAULT_TEAM_ID:
        return False, "elsewhere"
    if need.is_elevated and not bearer.is_elevated:
        return False, "not proved"
    return True, "passed"


async def test_a_refusal_tells_nothing_of_what_there_is(
    node: Node, api: Client, stranger: Client, target: Target
) -> None:
    """Its own id, another team's and one that nothing has: who may not, gets one and the same answer."""
    ids, foreign = await everything_of(node, api, target), await everything_of(node, stranger, target)
    _, token = await node.keys.create(api.team_id, "may nothing", scopes=frozenset())
    powerless = api.with_key(token.text)
    before = [await state_of(api, ids), await state_of(stranger, foreign)]
    tried = 0

    for each in asked(node):
        if each.need.permission is None:
            continue
        answers = [
            await powerless(each.method, place, document)
            for place in {each.path.format(**ids), each.path.format(**foreign), filled(each.path)}
            for document in (None, JOB, {"nonsense": 1})
        ]
        assert {answer.status for answer in answers} == {403}, str(each)
        assert len({answer.body for answer in answers}) == 1, str(each)
        tried += len(answers)

    assert tried > 200
    assert [await state_of(api, ids), await state_of(stranger, foreign)] == before


async def test_a_route_without_a_mark_answers_nobody(api: Client, node: Node) -> None:
    router = APIRouter()

    @router.get("/v1/forgotten")
    async def forgotten() -> str:
        return "an answer"

    before = list(node.application.router.routes)
    node.application.include_router(router)
    try:
        answer = await api("GET", "/v1/forgotten")
    finally:
        node.application.router.routes[:] = before

    assert answer.problem(403).startswith("Nobody may do this")


@pytest.mark.parametrize(
    ("permission", "bearer", "words"),
    [
        (
            Permission.WRITE,
            Bearer("t", Actor("key", "k", "k"), frozenset([Permission.READ]), key_id="k"),
            "This API key lacks the scope write. An owner or admin of the team can make one that has it, such as by "
            "`0cron keys create NAME --scope write`.",
        ),
        (
            Permission.OWNER,
            Bearer("t", Actor("key", "k", "k"), KEY_SCOPES, key_id="k"),
            "This needs the permission owner, which no API key has. An owner of the team can do it, signed in.",
        ),
        (
            Permission.WRITE,
            Bearer("t", Actor("person", "p", "p"), PERMISSIONS[Role.VIEWER], person_id="p"),
            "This needs the permission write, which an editor has. An owner or admin of the team can give you that "
            "role.",
        ),
        (
            Permission.OWNER,
            Bearer("t", Actor("person", "p", "p"), PERMISSIONS[Role.ADMIN], person_id="p"),
            "This needs the permission owner, which an owner has. An owner of the team can give you that role.",
        ),
    ],
)
def test_a_refusal_names_what_is_missing_and_who_can_give_it(
    permission: Permission, bearer: Bearer, words: str
) -> None:
    with pytest.raises(Forbidden) as refusal:
        check(Need(permission), bearer)
    assert refusal.value.message == words


async def test_a_key_cannot_make_one_that_may_more(api: Client, node: Node) -> None:
    _, token = await node.keys.create(api.team_id, "x", scopes=frozenset([Permission.ADMIN, Permission.READ]))
    limited = api.with_key(token.text)

    async def make(**fields: object) -> Answer:
        return await limited("POST", "/v1/api-keys", {"name": "y", **fields})

    assert "write, trigger, ping-admin" in (await make()).problem(403)
    assert "trigger" in (await make(scopes=["read", "trigger"])).problem(403)
    made = await make(scopes=["read"])
    assert made.status == 201
    reader = api.with_key(made.json["key"])
    assert (await reader("GET", "/v1/jobs")).status == 200
    (await reader("POST", "/v1/jobs", JOB)).problem(403)


async def test_who_may_not_change_ping_urls_does_not_see_them(node: Node, api: Client) -> None:
    monitor = await api.monitor()
    assert monitor["ping_url"]
    _, token = await node.keys.create(api.team_id, "x", scopes=frozenset([Permission.READ, Permission.WRITE]))
    editor = api.with_key(token.text)

    for answer in (
        await editor.get(f"/v1/monitors/{monitor['id']}"),
        (await editor.get("/v1/monitors"))["items"][0],
        await editor.post(f"/v1/monitors/{monitor['id']}/pause"),
        await editor.monitor(name="another"),
    ):
        assert answer["ping_url"] is answer["ping_token"] is None
        assert monitor["ping_token"] not in str(answer)
        assert not answer["warnings"]


async def test_the_local_key_may_all_that_keys_may(node: Node, settings: Settings, api: Client) -> None:
    local = api.with_key(settings.local_key_path.read_text().strip())
    (key,) = (await local.get("/v1/api-keys"))["items"]

    assert (key["name"], key["status"], key["expires_at"], key["created_by"]) == (
        "local command line",
        "active",
        None,
        None,
    )
    assert key["scopes"] == ["read", "write", "trigger", "ping-admin", "admin"]
