"""/v1/runs and /v1/executions: the evidence, exactly."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest
from tests.api.support import NOWHERE, Client
from tests.support.target import Target


async def triggered(api: Client, url: str, ending: str, **fields: object) -> dict[str, Any]:
    job = await api.job(url=url, **fields)
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    return await api.run_that(run["id"], ending)


async def test_a_run_and_its_execution_say_everything(api: Client, target: Target) -> None:
    job = await api.job(
        url=f"{target.url}/echo?a=1", method="POST", body={"x": 1}, headers={"X-Team": "reporting"}, timeout=10
    )
    asked = (await api("POST", f"/v1/jobs/{job['id']}/trigger")).json
    run = await api.run_that(asked["id"], "succeeded")

    assert asked["status"] == "queued"
    assert asked["attempts"] == 0
    assert (run["job_id"], run["job_version"], run["triggered_by"]) == (job["id"], 1, "api")
    assert (run["attempts"], run["reason"], run["explanation"], run["retry_at"]) == (1, None, None, None)
    assert (run["count"], run["scheduled_until"]) == (1, None)
    assert run["scheduled_for"] == run["created_at"]
    assert 0 <= run["lateness_ms"] < 5_000
    times = [datetime.fromisoformat(run[name]) for name in ("created_at", "started_at", "finished_at")]
    assert times == sorted(times)

    (execution,) = run["executions"]
    assert execution["id"] == f"{run['id']}.1"
    assert (execution["attempt"], execution["cause"], execution["status"]) == (1, "first", "success")
    assert execution["error"] is None
    assert execution["timings_ms"].keys() == {"dns", "connect", "tls", "first_byte", "total"}
    assert execution["duration_ms"] == execution["timings_ms"]["total"]
    (received,) = target.requests
    assert execution["request"] == {
        "url": f"{target.url}/echo?a=1",
        "method": "POST",
        "headers": {
            "x-team": "reporting",
            "content-type": "application/json",
            "idempotency-key": run["id"],
            "x-0cron-run-id": run["id"],
            "x-0cron-attempt": "1",
            "x-0cron-scheduled-for": run["scheduled_for"],
            "x-0cron-job-id": job["id"],
            "x-0cron-job-version": "1",
        },
        "body": '{"x":1}',
    }
    sent = execution["request"]["headers"]
    assert {name: received.headers[name] for name in sent} == sent
    assert received.body == b'{"x":1}'
    answer = execution["response"]
    assert (answer["status"], answer["truncated"], answer["encoding"]) == (200, False, "utf-8")
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["body_bytes"] == len(answer["body"])

    assert await api.get(f"/v1/executions/{execution['id']}") == execution
    assert (await api.get(f"/v1/jobs/{job['id']}/executions"))["items"] == [execution]
    listed = (await api.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert listed == [{name: value for name, value in run.items() if name != "executions"}]


async def test_a_failure_says_why(api: Client, target: Target) -> None:
    by_rule = await triggered(api, f"{target.url}/status/503", "failed")
    by_word = await triggered(api, f"{target.url}/ok", "failed", success={"body_not_contains": "ok"})
    by_reset = await triggered(api, f"{target.url}/reset", "failed")
    by_time = await triggered(api, f"{target.url}/hang", "failed", timeout=1)

    def error(run: dict[str, Any]) -> tuple[str, str, str]:
        (execution,) = run["executions"]
        return execution["status"], execution["error"]["kind"], execution["error"]["message"]

    assert error(by_rule) == ("failed", "rule", "The status was 503; the job accepts 2xx.")
    assert error(by_word) == ("failed", "rule", "The body contains 'ok'.")
    assert error(by_reset)[:2] in (("error", "connection_reset"), ("error", "no_response"))
    assert error(by_time)[:2] == ("timeout", "timeout")
    assert by_time["executions"][0]["response"] is None


async def test_retries_are_executions_of_one_run(api: Client, target: Target) -> None:
    run = await triggered(api, f"{target.url}/fail-then-ok/2?key=k", "succeeded", retry={"attempts": 3, "delay": 0})

    executions = run["executions"]
    assert [(one["attempt"], one["cause"], one["status"]) for one in executions] == [
        (1, "first", "failed"),
        (2, "retry", "failed"),
        (3, "retry", "success"),
    ]
    assert run["attempts"] == 3
    assert len({request.headers["idempotency-key"] for request in target.requests}) == 1
    assert [request.headers["x-0cron-attempt"] for request in target.requests] == ["1", "2", "3"]


async def test_exhausted_retries_are_explained(api: Client, target: Target) -> None:
    run = await triggered(api, f"{target.url}/status/500", "failed", retry={"attempts": 2, "delay": 0})

    assert (run["reason"], run["explanation"]) == ("attempts_exhausted", "Every attempt failed.")


async def test_a_binary_answer_comes_as_base64(api: Client, target: Target) -> None:
    run = await triggered(api, f"{target.url}/binary", "succeeded")

    answer = run["executions"][0]["response"]
    assert answer["encoding"] == "base64"
    assert base64.b64decode(answer["body"]) == bytes(range(256)) * 4


async def test_a_long_body_is_in_the_execution_only(api: Client, target: Target) -> None:
    run = await triggered(api, f"{target.url}/huge/20000", "succeeded", method="POST", body="y" * 10_000)

    listed = run["executions"][0]
    whole = await api.get(f"/v1/executions/{listed['id']}")
    assert listed["response"]["body"] is None
    assert listed["request"]["body"] is None
    assert listed["response"]["body_bytes"] == 20_000
    assert whole["response"]["body"] == "x" * 20_000
    assert whole["request"]["body"] == "y" * 10_000


async def test_an_answer_is_data_and_nothing_else(api: Client, target: Target) -> None:
    """Canaries in what a target says come back as JSON."""
    canary = b"<script>alert(1)</script>"
    target.on(
        "/evil", lambda exchange: exchange.answer(200, canary, [("X-Evil", canary.decode()), ("Set-Cookie", "a=b")])
    )
    run = await triggered(api, f"{target.url}/evil", "succeeded")

    answer = await api("GET", f"/v1/executions/{run['executions'][0]['id']}")
    assert answer.headers["content-type"] == "application/json"
    assert "set-cookie" not in answer.headers
    assert answer.json["response"]["body"] == canary.decode()
    assert answer.json["response"]["headers"]["x-evil"] == canary.decode()


async def test_runs_can_be_narrowed_by_status(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/fail-then-ok/1?key=s")
    for ending in ("failed", "succeeded"):
        run = await api.post(f"/v1/jobs/{job['id']}/trigger")
        await api.run_that(run["id"], ending)

    for status in ("failed", "succeeded", "queued", "running", "retrying", "skipped", "cancelled", "lost"):
        found = await api.get(f"/v1/jobs/{job['id']}/runs", status=status)
        assert [run["status"] for run in found["items"]] == ([status] if status in ("failed", "succeeded") else [])
    assert (await api("GET", f"/v1/jobs/{job['id']}/runs?status=done")).problem(422, "status")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"/v1/runs/{NOWHERE}", "There is no such run."),
        ("/v1/runs/x", "There is no such run."),
        (f"/v1/executions/{NOWHERE}.1", "There is no such execution."),
        (f"/v1/executions/{NOWHERE}", "There is no such execution."),
        (f"/v1/executions/{NOWHERE}.", "There is no such execution."),
        (f"/v1/executions/{NOWHERE}.999999999999999999999", "There is no such execution."),
        (f"/v1/executions/{NOWHERE}.-1", "There is no such execution."),
        (f"/v1/executions/{NOWHERE}.１", "There is no such execution."),
        ("/v1/executions/.1", "There is no such execution."),
    ],
)
async def test_what_is_not_there(api: Client, path: str, words: str) -> None:
    assert (await api("GET", path)).problem(404) == words


async def test_a_private_address_is_refused_with_the_reason(api: Client) -> None:
    run = await triggered(api, "http://10.1.2.3/", "failed")

    error = run["executions"][0]["error"]
    assert error["kind"] == "address_refused"
    assert "ZEROCRON_OUTBOUND_ALLOW" in error["message"]
