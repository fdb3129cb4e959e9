"""What goes along with a question of a page to the API."""

from __future__ import annotations

import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from zerocron.dashboard.asking import READING, Answer, Api, Problem


async def brought(method: str, path: str) -> dict[bytes, bytes]:
    """The headers with which the API is asked for a page that another site led to."""
    found: dict[bytes, bytes] = {}

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        found.update(scope["headers"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    headers = [
        (b"cookie", b"0cron=x"),
        (b"sec-fetch-site", b"cross-site"),
        (b"origin", b"https://evil.example"),
        (b"authorization", b"Bearer 0c_x"),
    ]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    await Api(application, Request(scope)).ask(method, path, body={} if method == "POST" else None)
    return found


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/jobs"), ("POST", "/v1/requests/try"), ("GET", "/v1/jobs")])
async def test_where_a_browser_came_from_goes_along(method: str, path: str) -> None:
    headers = await brought(method, path)
    assert (headers[b"sec-fetch-site"], headers[b"origin"]) == (b"cross-site", b"https://evil.example")
    assert b"authorization" not in headers


@pytest.mark.parametrize("path", sorted(READING))
async def test_what_only_reads_is_asked_whatever_led_to_the_page(path: str) -> None:
    headers = await brought("POST", path)
    assert headers[b"sec-fetch-site"] == b"same-origin"
    assert b"origin" not in headers


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        ("retry.attempts: This is too much.", "This is too much."),
        ("The schedule: This is too much.", "The schedule: This is too much."),
        ("", ""),
    ],
)
def test_a_problem_says_no_names_of_fields(detail: str, told: str) -> None:
    errors = [{"field": "retry.attempts", "message": "This is too much."}, {"field": "url", "message": "No."}]

    assert Problem(Answer(422, {"detail": detail, "errors": errors})).detail == told
