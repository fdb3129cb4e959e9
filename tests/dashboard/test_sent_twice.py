"""A form that is sent twice makes one thing, and the page says so to a person: not of keys and requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.support import Pages

from zerocron.dashboard.specimens.channels import KINDS as CHANNEL_KINDS
from zerocron.dashboard.specimens.channels import SLACK
from zerocron.dashboard.specimens.jobs import JOB
from zerocron.dashboard.specimens.monitors import BACKUP
from zerocron.dashboard.specimens.secrets import PROVED
from zerocron.dashboard.visit import SENT_BEFORE

FORMS: list[tuple[str, str, str, Any, list[tuple[str, str]]]] = [
    ("job-new-preview", "/jobs/new", "/v1/jobs", JOB, [("name", "x"), ("schedule", "every hour"), ("url", "http://x")]),
    ("monitor-form", "/monitors/new", "/v1/monitors", BACKUP, [("name", "x"), ("schedule", "every hour")]),
    ("channels", "/channels/new", "/v1/channels", SLACK, [("kind", "slack"), ("name", "x")]),
]
KINDS = {"GET /v1/channel-kinds": CHANNEL_KINDS}


@pytest.mark.parametrize(("specimen", "path", "asked", "made", "typed"), FORMS)
@pytest.mark.parametrize(("is_replay", "done"), [(False, "created"), (True, "created_before")])
async def test_the_second_time_leads_to_what_the_first_one_made(
    specimen: str, path: str, asked: str, made: Any, typed: list[tuple[str, str]], is_replay: bool, done: str
) -> None:
    pages = Pages.of(specimen, **KINDS, **{f"POST {asked}": (201, made)})
    pages.api.is_replay = is_replay
    answer = await pages.post(path, [("once", "a"), *typed])

    assert answer.location == f"{path.removesuffix('/new')}/{made['id']}?done={done}"


async def test_the_page_says_that_there_are_not_two() -> None:
    told = (await Pages.of("job").get(f"/jobs/{JOB['id']}?done=created_before")).tree.one(role="status")

    assert told.text == "This form was sent before: here is what it made. It was not made a second time."


@pytest.mark.parametrize("code", SENT_BEFORE)
@pytest.mark.parametrize(
    ("specimen", "path", "asked", "typed"),
    [
        *((specimen, path, asked, typed) for specimen, path, asked, _made, typed in FORMS),
        ("keys", "/keys/new", "/v1/api-keys", [("name", "x"), ("scopes", "read")]),
        ("signing-key", "/settings/signing-key", "/v1/signing-key/rotate", []),
        ("job", f"/jobs/{JOB['id']}/trigger", f"/v1/jobs/{JOB['id']}/trigger", []),
    ],
)
async def test_what_the_api_says_of_its_key_is_said_of_the_form(
    specimen: str, path: str, asked: str, typed: list[tuple[str, str]], code: str
) -> None:
    refusal = {"title": "Conflict", "detail": "This Idempotency-Key is spent.", "code": code}
    answers = {f"POST {asked}": (409, refusal), "GET /v1/session": PROVED}
    shown = await Pages.of(specimen, **KINDS, **answers).post(path, [("once", "a"), *typed])

    assert shown.status == 409
    assert refusal["detail"] not in shown.tree.text
    assert SENT_BEFORE[code] in shown.tree.text
    assert ("once", "a") not in [pair for form in shown.tree.all("form") for pair in form.fields()]
