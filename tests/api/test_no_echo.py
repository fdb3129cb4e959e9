"""A refusal repeats nothing that may be a secret, wherever in a request somebody put it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.support import CHANNEL, JOB, MONITOR, NOWHERE, Client

CANARY = "canary-31c7-value"
NUMBER = 918_273_645
TRACES = (CANARY, str(NUMBER), f"{NUMBER:,}")
MISPLACED: list[Any] = [
    CANARY,
    NUMBER,
    NUMBER + 0.5,
    [CANARY],
    [NUMBER],
    {"k": CANARY},
    {"k": NUMBER},
    [[CANARY]],
    [{"k": CANARY}],
]
"""A value where another one belongs."""

LEAST: dict[str, dict[str, Any]] = {
    "PUT /v1/secrets/{name}": {"value": "a good value"},
    "POST /v1/jobs": JOB,
    "PATCH /v1/jobs/{job_id}": {},
    "POST /v1/jobs/bulk": {"ids": [NOWHERE], "action": "pause"},
    "POST /v1/requests/try": {"url": JOB["url"]},
    "POST /v1/requests/curl": {"command": "curl https://example.com"},
    "POST /v1/monitors": MONITOR,
    "PATCH /v1/monitors/{monitor_id}": {},
    "POST /v1/monitors/{monitor_id}/pause": {},
    "POST /v1/channels": CHANNEL,
    "PATCH /v1/channels/{channel_id}": {},
    "POST /v1/api-keys": {"name": "a key"},
    "POST /v1/schedules/preview": {"schedule": "every hour"},
    "POST /v1/sign-in": {"email": "ada@example.com", "password": "a password"},
    "POST /v1/session/elevate": {"password": "a password"},
    "POST /v1/session/team": {"team_id": NOWHERE},
    "PATCH /v1/me": {},
    "PUT /v1/me/password": {"new_password": "a password"},
    "POST /v1/me/totp/confirm": {"code": "123456"},
    "POST /v1/teams": {"name": "x"},
    "PATCH /v1/team": {"name": "x"},
    "PATCH /v1/members/{person_id}": {"role": "viewer"},
    "POST /v1/invitations": {"email": "ada@example.com", "role": "viewer"},
    "POST /v1/setup": {"token": "x", "email": "ada@example.com", "name": "Ada", "password": "a password"},
    "POST /v1/password-resets": {"email": "ada@example.com"},
    "POST /v1/password-resets/use": {"token": "x", "new_password": "a password"},
    "POST /v1/invitations/look": {"token": "x"},
    "POST /v1/invitations/accept": {"token": "x"},
}
"""What is accepted, by route."""

FROM_OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}

REPEATED = {"schedule", "timezone"}
"""What is not understood of these is shown. Words are, too, where there is a choice of some, and numbers where a number
belongs."""


def resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema


def options(schema: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    schema = resolved(schema, schemas)
    return [resolved(option, schemas) for option in schema.get("anyOf", [schema])]


def places(
    schema: dict[str, Any], schemas: dict[str, Any], least: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], set[str]]]:
    """(a document with the value in some place, what kinds of values that place may repeat)."""
    for name, field in options(schema, schemas)[0]["properties"].items():
        if name in REPEATED:
            continue
        kinds = options(field, schemas)
        repeats = {"number"} if any(kind.get("type") in ("integer", "number") for kind in kinds) else set()
        repeats |= {"text"} if any("enum" in kind for kind in kinds) else set()
        for value in MISPLACED:
            may = repeats if isinstance(value, (int, float, str)) else set()
            if value == [CANARY] and any("enum" in options(kind.get("items", {}), schemas)[0] for kind in kinds):
                may = {"text"}
            yield least | {name: value}, may
        for kind in kinds:
            if "properties" in kind:
                for inner, may in places(kind, schemas, {}):
                    yield least | {name: inner}, may


@pytest.mark.parametrize("route", LEAST)
async def test_no_refusal_repeats_a_value(api: Client, route: str) -> None:
    method, _, pattern = route.partition(" ")
    job, monitor, channel = await api.job(), await api.monitor(), await api.channel()
    ids = {"job_id": job["id"], "monitor_id": monitor["id"], "channel_id": channel["id"], "person_id": NOWHERE}
    path = pattern.format(name="KEY", **ids)
    document = await api.get("/openapi.json")
    body = document["paths"][pattern][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    tried = [(value, set[str]()) for value in MISPLACED]
    tried += [(LEAST[route] | {CANARY: 1}, {"name"}), (LEAST[route] | {"other": CANARY}, set())]
    tried += places(body, document["components"]["schemas"], LEAST[route])
    refused = 0
    for given, repeats in tried:
        answer = await api(method, path, given, headers=FROM_OUR_PAGE)
        assert answer.status < 500, (given, answer.body)
        if answer.status < 400:
            continue  # it belongs there
        refused += 1
        said = answer.body.decode()
        found = {trace for trace in TRACES if trace in said}
        allowed = {CANARY} if repeats & {"text", "name"} else set()
        allowed |= set(TRACES[1:]) if "number" in repeats else set()
        if "{name}" in pattern:
            allowed = set()
        assert found <= allowed, (given, said)
    assert refused >= len(MISPLACED)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(CANARY),
        CANARY,
        f"value={CANARY}",
        f'{{"value": "{CANARY}", "value": "{CANARY}"}}',
        f'{{"value": "{CANARY}\\u0000"}}',
        f'{{"value": "{CANARY}\\ud800"}}',
        f'{{"{CANARY}": 1, "value": "good enough"}}',
        f'{{"value": {NUMBER}{"0" * 80}}}',
        f'{{"value": "{CANARY}"',
    ],
)
async def test_what_is_no_secret_at_all_is_not_repeated(api: Client, body: str) -> None:
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}):
        answer = await api("PUT", "/v1/secrets/KEY", body=body.encode(), headers=headers)
        assert answer.status in (415, 422)
        assert CANARY not in answer.body.decode()
        assert str(NUMBER) not in answer.body.decode()


async def test_every_route_that_takes_a_body_is_looked_at(api: Client) -> None:
    paths = (await api.get("/openapi.json"))["paths"]
    with_body = {
        f"{method.upper()} {path}"
        for path, ways in paths.items()
        for method, way in ways.items()
        if "requestBody" in way
    }
    assert with_body == LEAST.keys(), "give LEAST what the new route accepts"
