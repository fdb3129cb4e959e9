"""A run as people see it: its attempts, its bodies as text, and how they leave."""

from __future__ import annotations

import base64
import html
import json
import re
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.support import HOSTILE, Pages

from zerocron.core.exchange import ERROR_KINDS
from zerocron.core.model import REASON_TEXTS, Reason
from zerocron.dashboard.curl import curl_command, quoted
from zerocron.dashboard.exchange import CHARACTERS_SHOWN_MAX, Shown, phases_of
from zerocron.dashboard.specimens.job_form import JOB, JOB_ID
from zerocron.dashboard.specimens.kinds import session
from zerocron.dashboard.specimens.runs import ANSWER, RUN_ID, SENT, answers_of, execution, run

HERE = f"/runs/{RUN_ID}"


def body_of(text: str, **changes: Any) -> dict[str, Any]:
    """An execution with that body as its answer."""
    return execution(1, response={**ANSWER, "body": text, "body_bytes": len(text.encode()), **changes})


# --- the page


async def test_a_run_shows_its_last_attempt_whole_and_another_when_asked() -> None:
    first = execution(1, status="failed", response={**ANSWER, "status": 503, "body": None, "body_bytes": 900_000})
    shown = run(first, execution(2))
    long = {**first, "response": {**first["response"], "body": "all of it"}}
    pages = Pages.over(answers_of(shown) | {f"GET /v1/executions/{first['id']}": long})
    assert "accepted" in (await pages.get(HERE)).html
    text = (await pages.get(f"{HERE}?attempt=1")).html
    assert "all of it" in text
    assert "accepted" not in text
    assert (await pages.get(f"{HERE}?attempt=99")).status == 200


async def test_attempts_stand_in_order_with_the_waits_between() -> None:
    second = execution(2, started_at="2027-03-10T08:00:10.353Z", finished_at="2027-03-10T08:00:11Z", cause="node_lost")
    text = (await Pages.over(answers_of(run(second, execution(1)))).get(HERE)).html
    assert re.findall(r"Attempt (\d)</a>", text) == ["1", "2"]
    assert "10 s later · sent again" in text


@pytest.mark.parametrize("reason", Reason)
async def test_every_reason_is_told_in_words_with_a_way_to_more(reason: Reason) -> None:
    pages = Pages.over(answers_of(run(status="skipped", reason=str(reason), count=12)))
    text = (await pages.get(HERE)).html
    assert html.escape(REASON_TEXTS[reason]).replace("&#x27;", "&#39;") in text
    assert f'href="/outcomes#{reason}"' in text
    assert f'href="/jobs/{JOB_ID}/explain?at=2027-03-10T08%3A00%3A00Z"' in text
    assert "12 slots" in text
    assert f'id="{reason}"' in (await pages.get("/outcomes")).html


@pytest.mark.parametrize("kind", [*ERROR_KINDS, "rule", "internal", "node_lost"])
async def test_every_kind_of_error_is_told_with_a_way_to_more(kind: str) -> None:
    failed = execution(1, status="error", error={"kind": kind, "message": "It was so."}, response=None)
    pages = Pages.over(answers_of(run(failed, status="failed")))
    text = (await pages.get(HERE)).html
    assert "It was so." in text
    assert f'href="/outcomes#{kind}"' in text
    assert f'id="{kind}"' in (await pages.get("/outcomes")).html


async def test_only_a_run_under_way_asks_for_itself_again() -> None:
    for status, is_live in {"running": True, "retrying": True, "queued": True, "succeeded": False}.items():
        text = (await Pages.over(answers_of(run(execution(1), status=status))).get(HERE, is_fragment=True)).html
        assert ("hx-get" in text) is is_live
        assert "<html" not in text


async def test_a_run_of_a_deleted_job_is_shown_and_cannot_be_run_again() -> None:
    gone = (404, {"title": "Not Found", "status": 404, "detail": "There is no such job."})
    answer = await Pages.over(answers_of(run(execution(1))) | {f"GET /v1/jobs/{JOB_ID}": gone}).get(HERE)
    assert answer.status == 200
    assert "/replay" not in answer.html


async def test_who_may_not_trigger_has_no_button_for_it() -> None:
    answers = answers_of(run(execution(1)))
    assert f'action="{HERE}/replay"' in (await Pages.over(answers).get(HERE)).html
    viewer = {"GET /v1/session": session(permissions=["read"])}
    assert "/replay" not in (await Pages.over(answers | viewer).get(HERE)).html


async def test_running_again_triggers_the_job_and_goes_to_the_new_run() -> None:
    made = (202, {**run(), "id": "another"})
    pages = Pages.over(answers_of(run(execution(1))) | {f"POST /v1/jobs/{JOB_ID}/trigger": made})
    answer = await pages.post(f"{HERE}/replay")
    assert (answer.status, answer.headers["location"]) == (303, "/runs/another?done=triggered")


async def test_why_it_cannot_be_run_again_is_told_on_the_run() -> None:
    paused = (409, {"title": "Conflict", "status": 409, "detail": "The job is paused."})
    answer = await Pages.over(answers_of(run(execution(1))) | {f"POST /v1/jobs/{JOB_ID}/trigger": paused}).post(
        f"{HERE}/replay"
    )
    assert answer.status == 409
    assert "The job is paused." in answer.html
    assert "accepted" in answer.html


async def test_nothing_that_a_target_sent_becomes_markup() -> None:
    hostile = {
        **body_of(HOSTILE),
        "request": {**SENT, "url": HOSTILE, "method": HOSTILE, "headers": {HOSTILE: HOSTILE}, "body": HOSTILE},
        "hops": [{"method": HOSTILE, "url": HOSTILE, "status": 301, "with_body": True}],
        "error": {"kind": HOSTILE, "message": HOSTILE},
    }
    hostile["response"] |= {"headers": {HOSTILE: HOSTILE}}
    shown = run(hostile, status="failed", explanation=HOSTILE, reason="missed")
    pages = Pages.over(answers_of(shown) | {f"GET /v1/jobs/{JOB_ID}": {**JOB, "name": HOSTILE}})
    for path in (HERE, f"{HERE}?raw=1"):
        text = (await pages.get(path)).html
        assert text.count("alert(1)") > 10
        assert "<script>alert" not in text
        assert "{{7*7}}" in text


# --- bodies


async def test_a_body_leaves_as_a_file_that_no_browser_makes_a_page_of() -> None:
    page = body_of("<script>alert(1)</script>é", headers={"content-type": "text/html"})
    pages = Pages.over(answers_of(run(page)))
    answer = await pages.get(f"/executions/{page['id']}/body")
    assert answer.content == "<script>alert(1)</script>é".encode()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="response-{page["id"]}.txt"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    sent = await pages.get(f"/executions/{page['id']}/body?part=request")
    assert sent.content == SENT["body"].encode()


async def test_bytes_leave_as_they_came() -> None:
    raw = bytes(range(256))
    page = body_of(base64.b64encode(raw).decode(), encoding="base64")
    answer = await Pages.over(answers_of(run(page))).get(f"/executions/{page['id']}/body")
    assert answer.content == raw
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].endswith('.bin"')


@pytest.mark.parametrize("query", ["part=error", "part=headers", "part=../request"])
async def test_only_bodies_leave(query: str) -> None:
    page = execution(1)
    assert (await Pages.over(answers_of(run(page))).get(f"/executions/{page['id']}/body?{query}")).status == 404


async def test_a_body_that_is_not_there_is_no_file() -> None:
    page = execution(1, response=None)
    assert (await Pages.over(answers_of(run(page))).get(f"/executions/{page['id']}/body")).status == 404


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_laid_out_and_stays_what_it_is(value: Any) -> None:
    text = json.dumps(value)
    shown = Shown.of(body_of(text)).response
    assert shown is not None
    assert json.loads(shown.text) == value
    assert shown.is_json is isinstance(value, (dict, list))


@pytest.mark.parametrize("text", ['{"a": 1.10, "b": 1e400}', '{"a": 12345678901234567890123}'])
def test_numbers_are_shown_as_they_were_written(text: str) -> None:
    shown = Shown.of(body_of(text)).response
    assert shown is not None
    assert re.sub(r"\s", "", shown.text) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, "{not json}", "{"])
def test_what_would_be_shown_as_something_else_is_shown_as_it_came(text: str) -> None:
    shown = Shown.of(body_of(text)).response
    assert shown is not None
    assert shown.text == text[:CHARACTERS_SHOWN_MAX]
    assert not shown.is_json


def test_a_long_body_is_cut_and_says_so() -> None:
    shown = Shown.of(body_of("x" * 100_000)).response
    assert shown is not None
    assert (len(shown.text), shown.is_cut, shown.bytes) == (CHARACTERS_SHOWN_MAX, True, 100_000)


# --- timings


TIMES = st.none() | st.floats(0, 10_000)


@given(st.fixed_dictionaries(dict.fromkeys(("dns", "connect", "tls", "first_byte", "total"), TIMES)))
def test_phases_follow_each_other_within_the_whole(timings: dict[str, float | None]) -> None:
    shown = Shown.of(execution(1, timings_ms=timings, duration_ms=0.0))
    at = 0.0
    for phase in phases_of(timings):
        assert phase.start_ms == pytest.approx(at)
        assert phase.length_ms >= 0
        at = phase.start_ms + phase.length_ms
        assert at <= shown.total_ms + 1e-6


def test_the_wait_is_what_is_left_until_the_first_byte() -> None:
    phases = phases_of({"dns": 8.0, "connect": 20.0, "tls": None, "first_byte": 100.0, "total": 130.0})
    assert [(phase.name, phase.start_ms, phase.length_ms) for phase in phases] == [
        ("dns", 0, 8),
        ("connect", 8, 20),
        ("wait", 28, 72),
        ("body", 100, 30),
    ]


# --- as a command


WORDS = [
    "plain", "", "two words", "it's", "$(id)", "`id`", "$HOME", "!!", "=ls", "~", "*", "a\\b", "a\\'b", "\n", "a\nb",
    "-n", "é☃", "\x1b[201~\n id\n", "\r", "\x9b31m", "a\x01' \\x", "${secrets.STRIPE_KEY}", HOSTILE, ";id", "|id", "#",
]  # fmt: skip


def test_a_shell_takes_each_word_as_it_is() -> None:
    command = "printf '%s\\0' " + " ".join(map(quoted, WORDS))
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == WORDS


def test_a_terminal_gets_no_control_characters() -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "".join(map(quoted, [*WORDS, "\0"])))


def test_a_request_is_a_command() -> None:
    sent = {
        "method": "POST",
        "url": "https://a.example/x?q=[1]",
        "headers": {"host": "a.example", "content-length": "2", "x-a": "Bearer ${secrets.KEY}", "x-empty": ""},
        "body": "it's",
    }
    assert curl_command(sent).replace(" \\\n ", "").split("  ")[0] == (
        "curl 'https://a.example/x?q=[1]' -X POST --globoff -H 'x-a: Bearer ${secrets.KEY}' -H 'x-empty;' "
        "--data-raw 'it'\\''s'"
    )
    assert (
        curl_command({"method": "GET", "url": "https://a.example", "headers": {}, "body": None})
        == "curl https://a.example"
    )
    assert "--head" in curl_command({"method": "HEAD", "url": "https://a.example", "headers": {}, "body": None})


@pytest.mark.parametrize("path", [f"/runs/{RUN_ID}", "/outcomes"])
async def test_one_is_among_the_jobs_there(path: str) -> None:
    tree = (await Pages.of("run-retried").get(path)).tree

    assert [each.text for each in tree.all("a", aria_current="page")] == ["Jobs"]
