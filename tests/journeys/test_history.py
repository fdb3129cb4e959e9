"""The proof: the history shows the request exactly as it went out and the answer exactly as it came."""

from __future__ import annotations

import json

from tests.journeys.server import Person
from tests.support.target import Target


async def test_history_shows_request_and_answer_exactly(person: Person, target: Target) -> None:
    answer_headers = [("Content-Type", "text/plain; charset=utf-8"), ("X-Receipt", "42"), ("X-Receipt", "43")]
    target.on("/orders", lambda exchange: exchange.answer(201, "créé ✓".encode(), answer_headers))
    job = await person.creates(
        name="Orders",
        schedule="0 0 1 1 *",
        url=f"{target.url}/orders?since=yesterday&x=%20y",
        method="PUT",
        headers={"X-Signature": "a=b; c"},
        body="naïve ☃ text",
    )

    run = await person.triggers(job)
    ended = await person.sees(run["id"], "succeeded")

    (seen,) = target.requests
    (execution,) = ended["executions"]
    request, answer = execution["request"], execution["response"]
    assert request["method"] == seen.method == "PUT"
    assert request["url"] == target.url + seen.path == f"{target.url}/orders?since=yesterday&x=%20y"
    assert request["body"].encode() == seen.body == "naïve ☃ text".encode()
    for name, value in request["headers"].items():
        assert seen.headers[name] == value
    added = seen.headers.keys() - request["headers"].keys()
    assert added <= {"host", "content-length", "user-agent", "accept", "accept-encoding", "connection"}

    assert answer["status"] == 201
    assert answer["body"] == "créé ✓"
    assert answer["headers"]["x-receipt"] == "42, 43"
    assert (answer["body_bytes"], answer["truncated"], answer["encoding"]) == (len("créé ✓".encode()), False, "utf-8")
    assert execution["timings_ms"]["total"] >= execution["timings_ms"]["first_byte"] > 0

    # The same evidence from every side.
    assert await person.ask("GET", f"/v1/executions/{execution['id']}") == execution
    listed = await person.ask("GET", f"/v1/jobs/{job['id']}/executions")
    assert json.dumps(listed["items"]) == json.dumps([execution])
