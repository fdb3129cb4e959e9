"""The OpenAPI document: valid, complete, with names that last."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel
from tests.api.browsers import is_for_browsers
from tests.api.support import Client
from tests.api.test_auth import routes

from zerocron.api.job_models import JobOut
from zerocron.api.public import is_public
from zerocron.api.runs import ExecutionOut, RunOut, RunWithExecutions
from zerocron.app import Node

OPERATIONS = {
    "create_job": "POST /v1/jobs",
    "list_jobs": "GET /v1/jobs",
    "show_job": "GET /v1/jobs/{job_id}",
    "edit_job": "PATCH /v1/jobs/{job_id}",
    "delete_job": "DELETE /v1/jobs/{job_id}",
    "pause_job": "POST /v1/jobs/{job_id}/pause",
    "resume_job": "POST /v1/jobs/{job_id}/resume",
    "trigger_job": "POST /v1/jobs/{job_id}/trigger",
    "show_overview": "GET /v1/overview",
    "listen_to_events": "GET /v1/events",
    "show_system": "GET /v1/system",
    "list_tags": "GET /v1/tags",
    "show_strips": "GET /v1/jobs/strips",
    "show_stats": "GET /v1/jobs/{job_id}/stats",
    "explain_job": "GET /v1/jobs/{job_id}/explain",
    "change_jobs": "POST /v1/jobs/bulk",
    "try_request": "POST /v1/requests/try",
    "read_curl": "POST /v1/requests/curl",
    "list_runs": "GET /v1/jobs/{job_id}/runs",
    "show_run": "GET /v1/runs/{run_id}",
    "list_executions": "GET /v1/jobs/{job_id}/executions",
    "show_execution": "GET /v1/executions/{execution_id}",
    "create_monitor": "POST /v1/monitors",
    "list_monitors": "GET /v1/monitors",
    "show_monitor": "GET /v1/monitors/{monitor_id}",
    "edit_monitor": "PATCH /v1/monitors/{monitor_id}",
    "delete_monitor": "DELETE /v1/monitors/{monitor_id}",
    "pause_monitor": "POST /v1/monitors/{monitor_id}/pause",
    "resume_monitor": "POST /v1/monitors/{monitor_id}/resume",
    "rotate_monitor_token": "POST /v1/monitors/{monitor_id}/rotate-token",
    "list_pings": "GET /v1/monitors/{monitor_id}/pings",
    "list_flips": "GET /v1/monitors/{monitor_id}/flips",
    "show_uptimes": "GET /v1/monitors/uptimes",
    "show_uptime": "GET /v1/monitors/{monitor_id}/uptime",
    "list_channel_kinds": "GET /v1/channel-kinds",
    "create_channel": "POST /v1/channels",
    "list_channels": "GET /v1/channels",
    "show_channel": "GET /v1/channels/{channel_id}",
    "edit_channel": "PATCH /v1/channels/{channel_id}",
    "delete_channel": "DELETE /v1/channels/{channel_id}",
    "pause_channel": "POST /v1/channels/{channel_id}/pause",
    "resume_channel": "POST /v1/channels/{channel_id}/resume",
    "send_test_message": "POST /v1/channels/{channel_id}/test",
    "list_alerts": "GET /v1/alerts",
    "preview_schedule": "POST /v1/schedules/preview",
    "put_secret": "PUT /v1/secrets/{name}",
    "list_secrets": "GET /v1/secrets",
    "delete_secret": "DELETE /v1/secrets/{name}",
    "rotate_secrets": "POST /v1/secrets/rotate",
    "show_signing_key": "GET /v1/signing-key",
    "rotate_signing_key": "POST /v1/signing-key/rotate",
    "create_api_key": "POST /v1/api-keys",
    "list_api_keys": "GET /v1/api-keys",
    "revoke_api_key": "DELETE /v1/api-keys/{key_id}",
    "list_audit_entries": "GET /v1/audit",
    "export_audit_entries": "GET /v1/audit.csv",
    "list_teams": "GET /v1/teams",
    "create_team": "POST /v1/teams",
    "show_team": "GET /v1/team",
    "edit_team": "PATCH /v1/team",
    "delete_team": "DELETE /v1/team",
    "leave_team": "POST /v1/team/leave",
    "list_members": "GET /v1/members",
    "edit_member": "PATCH /v1/members/{person_id}",
    "remove_member": "DELETE /v1/members/{person_id}",
    "list_invitations": "GET /v1/invitations",
    "create_invitation": "POST /v1/invitations",
    "withdraw_invitation": "DELETE /v1/invitations/{invitation_id}",
    "show_ways_in": "GET /v1/sign-in",
    "sign_in": "POST /v1/sign-in",
    "sign_out": "POST /v1/sign-out",
    "show_session": "GET /v1/session",
    "elevate_session": "POST /v1/session/elevate",
    "choose_team": "POST /v1/session/team",
    "edit_me": "PATCH /v1/me",
    "change_my_password": "PUT /v1/me/password",
    "begin_totp": "POST /v1/me/totp",
    "confirm_totp": "POST /v1/me/totp/confirm",
    "remove_totp": "DELETE /v1/me/totp",
    "renew_recovery_codes": "POST /v1/me/recovery-codes",
    "list_sign_ins": "GET /v1/me/sign-ins",
    "end_other_sign_ins": "DELETE /v1/me/sign-ins",
    "end_sign_in": "DELETE /v1/me/sign-ins/{sign_in_id}",
    "list_identities": "GET /v1/me/identities",
    "begin_linking": "POST /v1/me/identities",
    "remove_identity": "DELETE /v1/me/identities/{identity_id}",
    "set_up": "POST /v1/setup",
    "ask_for_reset": "POST /v1/password-resets",
    "use_reset": "POST /v1/password-resets/use",
    "look_at_invitation": "POST /v1/invitations/look",
    "accept_invitation": "POST /v1/invitations/accept",
    "show_health": "GET /healthz",
    "show_readiness": "GET /readyz",
    "show_metrics": "GET /metrics",
}
"""Clients are generated from these: a changed name breaks somebody's program."""


@pytest.fixture
def document(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.application.openapi()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


async def test_what_the_gate_refuses_is_documented_for_every_route_that_it_may_refuse(
    api: Client, document: dict[str, Any]
) -> None:
    for method, path, operation in operations(document):
        if not path.startswith("/v1/") or method == "GET":
            continue
        place = re.sub(r"\{\w+\}", "x", path)
        for headers, status in (({"Content-Encoding": "gzip"}, 415), ({"Content-Length": "9999999"}, 413)):
            answer = await api(method, place, headers={"Sec-Fetch-Site": "same-origin", **headers})
            answer.problem(status)
            assert operation["responses"][str(status)]["content"].keys() == {"application/problem+json"}
        if "requestBody" in operation:
            assert operation["requestBody"]["content"].keys() == {"application/json"}
            assert "Content-Type" in operation["requestBody"]["description"]


async def test_it_is_served_as_it_is(api: Client, document: dict[str, Any]) -> None:
    answer = await api.with_key(None)("GET", "/openapi.json")

    assert answer.status == 200
    assert answer.json == document
    assert document["openapi"].startswith("3.1")


async def test_the_names_of_the_operations_last(document: dict[str, Any]) -> None:
    found = {operation["operationId"]: f"{method} {path}" for method, path, operation in operations(document)}

    assert OPERATIONS.items() <= found.items()


async def test_every_route_is_in_it(node: Node, document: dict[str, Any]) -> None:
    documented = {(method, path) for method, path, _ in operations(document)}

    undocumented = {path for _, path in set(routes(node)) - documented}
    pages = {"/auth/oidc/start", "/auth/oidc/callback", "/auth/header"}  # which browsers pass through
    assert undocumented == pages | {"/docs", "/docs/style.css", "/docs/icon.svg", "/openapi.json", "/static/{name}"}


async def test_every_operation_is_described(document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"].strip().endswith((".", "`")), where
        assert set(operation["tags"]) <= tags, where
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", operation["operationId"]), where
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (where, parameter["name"])


async def test_every_error_is_documented_as_a_problem(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        where = f"{method} {path}"
        codes = set(operation["responses"])
        assert "500" in codes, where
        if path.startswith("/v1/"):
            assert {"422", "503"} <= codes, where
            assert is_public(method, path) or "401" in codes, where
            is_personal = is_for_browsers(path) or operation["operationId"] == "create_team"
            schemes: list[dict[str, list[str]]] = [{"signIn": []}] if is_personal else [{"apiKey": []}, {"signIn": []}]
            assert operation["security"] == ([] if is_public(method, path) else schemes), where
        else:
            assert "security" not in operation, where
        assert ("404" in codes) or ("{" not in path), where
        assert ("413" in codes) or ("requestBody" not in operation), where
        for code, response in operation["responses"].items():
            assert response["description"], (where, code)
            if code[0] in "45" and (path, code) != ("/readyz", "503"):
                assert response["content"] == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                }, (where, code)


async def test_headers_are_documented(document: dict[str, Any]) -> None:
    for name in ("create_job", "trigger_job", "create_api_key"):
        method, path = OPERATIONS[name].split()
        parameters = document["paths"][path][method.lower()]["parameters"]
        assert "Idempotency-Key" in [one["name"] for one in parameters if one["in"] == "header"]
    created = document["paths"]["/v1/jobs"]["post"]["responses"]["201"]["headers"]
    assert created.keys() == {"Location", "Idempotent-Replay"}
    assert document["paths"]["/v1/jobs"]["get"]["responses"]["503"]["headers"].keys() == {"Retry-After"}
    schemes = document["components"]["securitySchemes"]
    assert schemes["apiKey"]["scheme"] == "bearer"
    assert (schemes["signIn"]["in"], schemes["signIn"]["name"]) == ("cookie", "__Host-0cron")


async def test_every_field_of_an_input_is_bounded(document: dict[str, Any]) -> None:
    """Text, lists, objects and numbers: nothing a client writes is without an end."""
    schemas = document["components"]["schemas"]
    loose = {"body"}  # text, or any JSON; bounded by bytes
    for name, schema in schemas.items():
        if not name.endswith(("Input", "JobChange", "RetryChange", "SuccessChange")):
            continue
        assert schema["additionalProperties"] is False, name
        for field, given in schema["properties"].items():
            for option in given.get("anyOf", [given]):
                if field in loose:
                    continue
                bounded = {
                    "string": "maxLength" in option or "enum" in option or "const" in option,
                    "array": "maxItems" in option,
                    "object": "maxProperties" in option,
                    "integer": {"minimum", "maximum"} <= option.keys(),
                    "number": {"minimum", "maximum"} <= option.keys(),
                }.get(option.get("type", ""), True)
                assert bounded, (name, field, option)


async def test_the_shapes_are_valid_schemas_and_all_in_use(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    text = str(document)
    for name, schema in schemas.items():
        jsonschema_rs.meta.validate(schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"})
        assert f"'#/components/schemas/{name}'" in text, name
    for reference in re.findall(r"'#/components/schemas/(\w+)'", text):
        assert reference in schemas
    assert "HTTPValidationError" not in text


async def test_the_examples_are_true(document: dict[str, Any]) -> None:
    shapes: dict[str, type[BaseModel]] = {
        "Job": JobOut,
        "Run": RunOut,
        "RunWithExecutions": RunWithExecutions,
        "Execution": ExecutionOut,
    }
    for name, model in shapes.items():
        for example in document["components"]["schemas"][name]["examples"]:
            assert model.model_validate(example).model_dump(mode="json", by_alias=True) == example


async def test_a_validator_accepts_it(document: dict[str, Any]) -> None:
    """With openapi-spec-validator where it is installed; the tests above hold without it."""
    if importlib.util.find_spec("openapi_spec_validator") is not None:
        importlib.import_module("openapi_spec_validator").validate(document)
