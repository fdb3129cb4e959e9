"""The first job: write it, and the request arrives at the right second, with headers that say what it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.journeys.server import Person
from tests.support.target import Target


async def test_a_job_fires_at_the_right_second(person: Person, target: Target) -> None:
    """Two seconds from now, once, and never before."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)  # noqa: TID251  a person's own watch

    job = await person.creates(
        name="Say hello",
        schedule=at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        url=f"{target.url}/ok",
        method="POST",
        headers={"X-Team": "reporting"},
        body={"report": "daily"},
    )
    assert job["status"] == "active"
    assert datetime.fromisoformat(job["next_run_at"]) == at

    await target.wait_for(lambda: len(target.requests) == 1)
    (request,) = target.requests
    late = request.wall_ms / 1000 - at.timestamp()
    assert 0 <= late < 1

    # What arrived is what was written, and names the run it belongs to.
    (run,) = await person.history(job)
    assert request.method == "POST"
    assert request.body == b'{"report":"daily"}'
    assert request.headers["x-team"] == "reporting"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("0cron/")
    assert request.headers["idempotency-key"] == request.headers["x-0cron-run-id"] == run["id"]
    assert request.headers["x-0cron-attempt"] == "1"
    assert request.headers["x-0cron-scheduled-for"] == run["scheduled_for"] == at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert request.headers["x-0cron-job-id"] == job["id"]
    assert request.headers["x-0cron-job-version"] == "1"

    # And the job, which had one slot, is done.
    ended = await person.sees(run["id"], "succeeded")
    assert ended["triggered_by"] == "schedule"
    assert ended["lateness_ms"] < 1_000
    done = await person.ask("GET", f"/v1/jobs/{job['id']}")
    assert (done["status"], done["next_run_at"]) == ("completed", None)
    assert done["stats"]["succeeded"] == 1
    assert done["last_run"]["id"] == run["id"]
