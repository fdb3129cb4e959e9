"""Errors: problem+json for everything, in words a person can act on, and nothing of ours inside."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog
from tests.api.support import JOB, NOWHERE, Client

from zerocron.app import Node
from zerocron.core.errors import Unavailable


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/jobs", "GET, HEAD, POST"),
        ("TRACE", "/v1/jobs", "GET, HEAD, POST"),
        ("OPTIONS", f"/v1/jobs/{NOWHERE}", "DELETE, GET, HEAD, PATCH"),
        ("GET", f"/v1/jobs/{NOWHERE}/pause", "POST"),
        ("POST", f"/v1/runs/{NOWHERE}", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("TRACE", "/", "GET, HEAD"),
        ("BREW", "/docs", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_taken(api: Client, method: str, path: str, allowed: str) -> None:
    answer = await api(method, path)

    assert answer.problem(405) == f"This address takes {allowed}, not {method}."
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", "/v2/jobs", "//v1/jobs", "/v1//jobs", "/v1/jobs/x/y/z"])
async def test_an_address_where_nothing_is(api: Client, path: str) -> None:
    assert "/openapi.json" in (await api("GET", path)).problem(404)


async def test_a_slash_at_the_end_is_another_address_and_no_redirect(api: Client) -> None:
    for path in ("/v1/jobs/", f"/v1/jobs/{NOWHERE}/", "/v1/api-keys/"):
        answer = await api("GET", path, headers={"Host": "evil.example"})
        assert answer.problem(404) == "There is nothing at this address. Leave out the slash at its end."
        assert "location" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/v1/jobs/%00", "/v1/jobs/a%00b", "/v1/runs/%00", "/v1/executions/%00.1", "/%00", "/v1/api-keys/%00"]
)
async def test_nul_in_an_address(api: Client, path: str) -> None:
    for method in ("GET", "DELETE", "POST"):
        assert "NUL" in (await api(method, path)).problem(404)


@pytest.mark.parametrize("name", ["q", "tag", "cursor", "status"])
async def test_nul_in_a_query(api: Client, name: str) -> None:
    assert (await api("GET", f"/v1/jobs?{name}=a%00b")).problem(
        422, name
    ) == "This holds a NUL character. Leave it out."


@pytest.mark.parametrize(
    "given", ["%ff", "%ed%a0%80", "%c0%80", "%F0%9F%92%A9", "%", "%zz", "%%", "a'\"b", "%27%20OR%201=1--", "%25", "_"]
)
async def test_any_bytes_in_an_address_are_just_a_name_that_is_not_there(api: Client, given: str) -> None:
    assert (await api("GET", f"/v1/jobs/{given}")).problem(404) == "There is no such job."
    assert (await api("GET", f"/v1/jobs?q={given}")).status == 200
    assert (await api("DELETE", f"/v1/api-keys/{given}")).problem(404) == "There is no such API key."


async def test_a_query_parameter_that_does_not_exist_is_refused_by_name(api: Client) -> None:
    answer = await api("GET", "/v1/jobs?stats=paused&limit=5&page=2")

    assert answer.problem(422, "stats") == (
        "There is no such query parameter. There are: cursor, limit, q, status, tag."
    )
    assert answer.problem(422, "page")
    assert answer.problem(422).startswith("stats: ")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/jobs"),
        ("GET", f"/v1/jobs/{NOWHERE}"),
        ("PATCH", f"/v1/jobs/{NOWHERE}"),
        ("DELETE", f"/v1/jobs/{NOWHERE}"),
        ("POST", f"/v1/jobs/{NOWHERE}/trigger"),
        ("GET", f"/v1/runs/{NOWHERE}"),
        ("POST", "/v1/schedules/preview"),
    ],
)
async def test_nor_is_it_where_there_is_none_at_all(api: Client, method: str, path: str) -> None:
    answer = await api(method, f"{path}?force=true", {} if method in ("POST", "PATCH") else None)

    assert answer.problem(422, "force") == "There is no such query parameter. This address takes none."


async def test_a_query_parameter_given_twice_is_refused(api: Client) -> None:
    answer = await api("GET", "/v1/jobs?limit=1&limit=2")

    assert answer.problem(422, "limit") == "This query parameter is given more than once. Give it once."


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("limit=0", "limit", "This has to be at least 1; this is 0."),
        ("limit=201", "limit", "This has to be at most 200; this is 201."),
        ("limit=10000", "limit", "This has to be at most 200; this is 10000."),
        ("limit=-1", "limit", "This has to be at least 1; this is -1."),
        ("limit=ten", "limit", "This has to be a whole number; this is 'ten'."),
        ("limit=1.5", "limit", "This has to be a whole number; this is '1.5'."),
        ("limit=", "limit", "This has to be a whole number; this is ''."),
        (f"limit={'9' * 5000}", "limit", None),
        ("status=gone", "status", "This has to be 'active', 'paused', 'disabled' or 'completed'; this is 'gone'."),
        (f"q={'a' * 201}", "q", "At most 200 characters; this has 201."),
        (f"tag={'a' * 51}", "tag", "At most 50 characters; this has 51."),
        (f"cursor={'a' * 501}", "cursor", "At most 500 characters; this has 501."),
    ],
)
async def test_the_bounds_of_query_parameters(api: Client, query: str, field: str, message: str | None) -> None:
    found = (await api("GET", f"/v1/jobs?{query}")).problem(422, field)

    assert len(found) < 150
    assert message is None or found == message


async def test_an_address_that_is_too_long(api: Client) -> None:
    for path in ("/v1/jobs?q=" + "a" * 9_000, "/v1/jobs/" + "a" * 9_000, "/" + "b" * 1_000_000):
        assert "8,192 bytes" in (await api("GET", path)).problem(414)


async def test_head_is_get_without_the_body(api: Client) -> None:
    await api.job()
    for path in ("/v1/jobs", "/healthz", "/docs", "/openapi.json", "/metrics"):
        head, whole = await api("HEAD", path), await api("GET", path)
        assert head.status == whole.status == 200
        assert head.body == b""
        assert head.headers["content-type"] == whole.headers["content-type"]
    assert (await api("HEAD", f"/v1/jobs/{NOWHERE}")).status == 404


async def test_the_host_header_is_never_believed(api: Client) -> None:
    for path in ("/", "/docs", "/openapi.json", "/v1/jobs", "/v1/jobs/", "/nothing"):
        answer = await api("GET", path, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
        assert b"evil.example" not in answer.body
        assert not any("evil.example" in value for value in answer.headers.values())
    made = await api("POST", "/v1/jobs", JOB, headers={"Host": "evil.example"})
    assert made.headers["location"] == f"/v1/jobs/{made.json['id']}"


async def test_a_fault_of_ours_is_told_by_an_id_and_nothing_else(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret detail of /etc/passwd")

    monkeypatch.setattr(node.jobs, "page", broken)
    with structlog.testing.capture_logs() as logged:
        answer = await api("GET", "/v1/jobs")

    document = answer.json
    assert answer.problem(500)
    assert "secret" not in answer.body.decode()
    assert "Traceback" not in answer.body.decode()
    assert answer.headers["x-error-id"] == document["error_id"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    (line,) = [line for line in logged if line["event"] == "request_failed"]
    assert line["error_id"] == document["error_id"]
    assert "authorization" not in json.dumps(line, default=str).lower()


async def test_a_database_that_is_away_is_told_with_when_to_come_back(
    api: Client, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise Unavailable("The database cannot be used now: disk full.")

    monkeypatch.setattr(node.jobs, "page", away)
    answer = await api("GET", "/v1/jobs")

    assert answer.problem(503) == "The database cannot be used now. The same request may succeed later."
    assert answer.headers["retry-after"] == "5"


async def test_every_answer_carries_the_security_headers(api: Client) -> None:
    answers = [
        await api("GET", "/v1/jobs"),
        await api("GET", "/docs"),
        await api("GET", "/"),
        await api("GET", "/nothing"),
        await api("POST", "/v1/jobs", body=b"{"),
        await api.with_key(None)("GET", "/v1/jobs"),
        await api("GET", "/" + "a" * 10_000),
        await api("TRACE", "/v1/jobs"),
    ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src" not in policy or "script-src 'self';" in policy
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "strict-transport-security" not in answer.headers
        assert "server" not in answer.headers


async def test_over_tls_the_browser_is_told_to_stay_there(api: Client) -> None:
    answer = await api("GET", "/docs", scheme="https")

    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert answer.headers["referrer-policy"] == "no-referrer"
