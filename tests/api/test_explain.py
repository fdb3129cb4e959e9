"""GET /v1/jobs/{id}/explain on what really happened."""

from __future__ import annotations

from typing import Any

from tests.api.support import Client, until
from tests.storage.samples import DAY, HOUR, a_job, a_run, an_execution
from tests.support.target import Target

from zerocron.app import Node
from zerocron.core.instants import from_rfc3339, to_rfc3339
from zerocron.core.model import Reason, RunStatus, skipped_run
from zerocron.storage.ledger import executions, jobs, runs


async def why(api: Client, job_id: str, at: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.get(f"/v1/jobs/{job_id}/explain", at=at)
    return found


async def test_runs_that_a_person_asked_for(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/status/500")
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await api.run_that(run["id"], "failed")

    found = await why(api, job["id"], run["scheduled_for"])

    assert found["verdict"] == "ran"
    assert "failed. The status was 500" in found["sentence"]
    assert found["run"]["id"] == run["id"]
    assert any("Attempt 1 failed" in one["what"] for one in found["evidence"])


async def test_the_life_of_a_job_from_its_making_to_its_end(api: Client) -> None:
    job = await api.job(schedule="* * * * * *", url="http://127.0.0.1:9/")
    made_at = from_rfc3339(job["created_at"])

    async def ran() -> bool:
        return any(run["status"] == "failed" for run in await api.runs(job["id"]))

    await until(ran, "a run")
    paused = await api.post(f"/v1/jobs/{job['id']}/pause")
    soon = from_rfc3339(paused["updated_at"]) + 60_000
    newest = (await api.runs(job["id"]))[0]

    assert (await why(api, job["id"], newest["scheduled_for"]))["run"]["id"] == newest["id"]
    assert (await why(api, job["id"], to_rfc3339(made_at - HOUR)))["verdict"] == "no_job"
    in_pause = await why(api, job["id"], to_rfc3339(soon - soon % 1000))
    assert in_pause["verdict"] == "paused"
    assert "unless it is resumed" in in_pause["sentence"]
    await api.post(f"/v1/jobs/{job['id']}/resume")
    assert (await why(api, job["id"], to_rfc3339(soon - soon % 1000)))["verdict"] == "not_yet"
    await api("DELETE", f"/v1/jobs/{job['id']}")
    deleted = await why(api, job["id"], to_rfc3339(soon - soon % 1000))
    assert (deleted["verdict"], deleted["run"]) == ("no_job", None)


async def test_slots_that_were_missed_and_slots_that_never_were(node: Node, api: Client, stranger: Client) -> None:
    now = node.clock.now()
    hour = now - now % HOUR
    job = a_job(team_id=api.team_id, next_run_at=now + DAY, created_at=now - 2 * DAY)
    missed = skipped_run(job, hour - 10 * HOUR, hour - 8 * HOUR, 121, Reason.MISSED, now)
    ran = a_run(job, hour - 12 * HOUR, status=RunStatus.FAILED)

    def transaction(connection: Any) -> None:
        jobs.insert(connection, job)
        connection.exec_driver_sql(f"UPDATE job_versions SET created_at = {now - 2 * DAY} WHERE job_id = '{job.id}'")
        runs.insert(connection, [ran, missed])
        executions.insert(connection, [an_execution(ran, error_message="It was too slow.", status="failed")])

    await node.ledger.write(transaction)

    in_outage = await why(api, job.id, to_rfc3339(hour - 9 * HOUR))
    assert (in_outage["verdict"], in_outage["run"]["count"]) == ("missed", 121)
    no_slot = await why(api, job.id, to_rfc3339(hour - 9 * HOUR + 5_000))
    assert no_slot["verdict"] == "not_a_slot"
    assert no_slot["nearest_before"] == to_rfc3339(hour - 9 * HOUR)
    assert no_slot["nearest_after"] == to_rfc3339(hour - 9 * HOUR + 60_000)
    assert "too slow" in (await why(api, job.id, to_rfc3339(hour - 12 * HOUR)))["sentence"]
    assert (await why(api, job.id, to_rfc3339(hour - 13 * HOUR)))["verdict"] == "forgotten"
    (await stranger("GET", f"/v1/jobs/{job.id}/explain")).problem(404)


async def test_what_cannot_be_asked(api: Client) -> None:
    job = await api.job()

    for at in ("yesterday", "2027-01-01", "2027-01-01T09:00:00", "9999-01-01T00:00:00Z", "1960-01-01T00:00:00Z"):
        answer = await api("GET", f"/v1/jobs/{job['id']}/explain", query={"at": at})
        assert answer.problem(422, "at"), at
    assert (await api.get(f"/v1/jobs/{job['id']}/explain"))["verdict"] == "not_a_slot"
