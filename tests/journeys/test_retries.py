"""A target that fails at first: the attempts come at growing intervals, under one key, until one succeeds."""

from __future__ import annotations

from itertools import pairwise

from tests.journeys.server import Person
from tests.support.target import Target


async def test_failures_are_retried_with_growing_waits(person: Person, target: Target) -> None:
    job = await person.creates(
        name="Flaky",
        schedule="0 0 1 1 *",
        url=f"{target.url}/fail-then-ok/3?key=journey",
        retry={"attempts": 5, "backoff": "exponential", "delay": 0.2},
    )

    run = await person.triggers(job)
    ended = await person.sees(run["id"], "succeeded", "failed")

    assert ended["status"] == "succeeded"
    assert ended["attempts"] == 4
    assert [execution["status"] for execution in ended["executions"]] == ["failed", "failed", "failed", "success"]
    assert [execution["cause"] for execution in ended["executions"]] == ["first", "retry", "retry", "retry"]
    assert ended["executions"][0]["error"]["message"] == "The status was 500; the job accepts 2xx."

    # Seen from the target: 0.2, 0.4 and 0.8 seconds apart, and recognisable as one and the same.
    times = [request.received_at for request in target.requests]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert all(wait >= least for wait, least in zip(waits, (0.2, 0.4, 0.8), strict=True)), waits
    assert all(wait < least + 1 for wait, least in zip(waits, (0.2, 0.4, 0.8), strict=True)), waits
    assert {request.headers["idempotency-key"] for request in target.requests} == {run["id"]}
    assert [request.headers["x-0cron-attempt"] for request in target.requests] == ["1", "2", "3", "4"]

    # One run, whatever it took.
    stats = (await person.ask("GET", f"/v1/jobs/{job['id']}"))["stats"]
    assert (stats["succeeded"], stats["failed"]) == (1, 0)


async def test_a_target_may_say_when_to_come_back(person: Person, target: Target) -> None:
    target.on("/busy", lambda exchange: exchange.answer(503, b"busy", [("Retry-After", "1")]))
    job = await person.creates(
        name="Busy", schedule="0 0 1 1 *", url=f"{target.url}/busy", retry={"attempts": 2, "delay": 0}
    )

    run = await person.triggers(job)
    ended = await person.sees(run["id"], "failed")

    first, second = target.requests
    assert 1 <= second.received_at - first.received_at < 3
    assert ended["reason"] == "attempts_exhausted"
