"""Who may use the API: every address under /v1 needs a key, and all refusals are one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from tests.api.support import JOB, NOWHERE, Answer, Client, exchange, scope_of

from zerocron.api.access import need_of
from zerocron.api.public import PUBLIC_ROUTES, is_public
from zerocron.app import Node
from zerocron.core.tokens import Token

PUBLIC = {
    "/docs",
    "/docs/style.css",
    "/docs/icon.svg",
    "/static/{name}",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
}


def routes(node: Node) -> Iterator[tuple[str, str]]:
    """(method, path) of every route there is, but for the pages: they ask these routes, as whoever looks may."""
    for route in iter_route_contexts(node.application.routes):
        if str(getattr(route, "name", "")).startswith("page "):
            continue
        for method in sorted(route.methods or ()):
            yield method, str(route.path)


def filled(path: str) -> str:
    return (
        path.replace("{job_id}", NOWHERE)
        .replace("{run_id}", NOWHERE)
        .replace("{key_id}", "abcdefghijkl")
        .replace("{name}", "API_KEY")
        .replace("{execution_id}", f"{NOWHERE}.1")
    )


async def wrong_keys(node: Node, api: Client) -> dict[str, str | None]:
    """Everything that is not a good `Authorization` header."""
    assert api.key is not None
    revoked, token = await node.keys.create(api.team_id, "revoked")
    await node.keys.revoke(api.team_id, revoked.id)
    _, other = await node.keys.create(api.team_id, "other")
    made_up = f"0c_{'a' * 12}_{'B' * 38}"
    return {
        "missing": None,
        "empty": "",
        "no scheme": api.key,
        "another scheme": f"Basic {api.key}",
        "only the scheme": "Bearer",
        "malformed": "Bearer 0c_nonsense",
        "not ours": "Bearer sk_live_1234567890",
        "a wrong checksum": f"Bearer {api.key[:-1]}{'0' if api.key[-1] != '0' else '1'}",
        "an unknown id": f"Bearer {made_up}",
        "another key's secret": f"Bearer {_signed(api.key[:15], other.secret)}",
        "an unknown id, well formed": f"Bearer {_signed('0c_zzzzzzzzzzzz', other.secret)}",
        "revoked": f"Bearer {token.text}",
        "in capitals": f"Bearer {api.key.upper()}",
        "with a blank in it": f"Bearer {api.key[:20]} {api.key[20:]}",
        "very long": f"Bearer {'a' * 7_000}",
        "not ASCII": "Bearer 0c_é",
    }


def _signed(beginning: str, secret: str) -> str:
    return Token(beginning.removeprefix("0c_"), secret).text


async def test_every_route_is_public_on_purpose_or_needs_a_key(node: Node) -> None:
    paths = {path for _, path in routes(node)}

    assert {path for path in paths if not path.startswith("/v1/")} == PUBLIC
    assert len([path for path in paths if path.startswith("/v1/")]) >= 11


async def test_the_routes_that_need_nobody_are_listed_and_marked(node: Node) -> None:
    marked = {
        (method, str(route.path))
        for route in iter_route_contexts(node.application.routes)
        for method in route.methods or ()
        if (need := need_of(getattr(route, "endpoint", None) or len)) is not None and need.is_public
    }

    assert marked == PUBLIC_ROUTES


async def test_all_wrong_keys_get_the_same_answer_everywhere(node: Node, api: Client) -> None:
    answers: dict[tuple[str, str, str], Answer] = {}
    keys = await wrong_keys(node, api)
    for method, path in routes(node):
        if not path.startswith("/v1/") or is_public(method, path):
            continue
        for reason, header in keys.items():
            headers = {} if header is None else {"Authorization": header}
            document = JOB if method in ("POST", "PATCH") else None
            answers[method, path, reason] = await api.with_key(None)(method, filled(path), document, headers=headers)

    assert len(answers) >= 16 * len(keys)
    wrong = {place: answer.status for place, answer in answers.items() if answer.status != 401}
    assert not wrong
    assert len({answer.body for answer in answers.values()}) == 1
    assert len({tuple(sorted(answer.headers.items())) for answer in answers.values()}) == 1
    one = next(iter(answers.values()))
    assert one.headers["www-authenticate"] == "Bearer"
    assert one.problem(401) == "Send a valid API key as 'Authorization: Bearer 0c_...'."


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/nothing-here", b""),
        ("DELETE", "/v1/jobs", b""),
        ("TRACE", "/v1/jobs", b""),
        ("OPTIONS", "/v1/jobs", b""),
        ("POST", "/v1/jobs", b"{not json"),
        ("POST", "/v1/jobs", b"[" * 5_000),
        ("GET", "/v1/jobs?unknown=1", b""),
    ],
)
async def test_without_a_key_nobody_learns_what_else_is_wrong(api: Client, method: str, path: str, body: bytes) -> None:
    (await api.with_key(None)(method, path, body=body)).problem(401)


async def test_a_key_is_never_taken_from_the_address(api: Client) -> None:
    for name in ("api_key", "key", "token", "access_token", "authorization"):
        (await api.with_key(None)("GET", f"/v1/jobs?{name}={api.key}")).problem(401)


async def test_two_authorization_headers_are_none(api: Client) -> None:
    scope = scope_of("GET", "/v1/jobs", "", {})
    good = (b"authorization", f"Bearer {api.key}".encode())
    scope["headers"] = [good, good]

    (await exchange(api.application, scope, [b""])).problem(401)


async def test_the_scheme_is_read_in_any_capitals(api: Client) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = await api.with_key(None)("GET", "/v1/jobs", headers={"Authorization": f"{scheme} {api.key}"})
        assert answer.status == 200


async def test_what_needs_no_key_does_not_look_at_it(node: Node, api: Client) -> None:
    statuses: dict[str, Any] = {}
    for path in PUBLIC - {"/static/{name}"}:
        answer = await api.with_key(None)("GET", path, headers={"Authorization": "Bearer nonsense"})
        statuses[path] = answer.status

    assert set(statuses.values()) == {200}, statuses
