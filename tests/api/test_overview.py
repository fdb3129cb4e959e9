"""A team at a glance: counts, what needs somebody, strips, statistics, tags, and lists in any order."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from tests.api.support import NOWHERE, Client, until
from tests.storage.samples import DAY, HOUR, MINUTE, a_definition, a_job, a_run, an_execution, keep_counted
from tests.support.target import Target

from zerocron.actions.overview import POINTS_MAX, RUNS_COUNTED_MAX
from zerocron.app import Node
from zerocron.core.instants import to_rfc3339
from zerocron.core.model import Job, JobStatus, Run, RunStatus
from zerocron.storage.ledger import executions, runs


def now_of(node: Node) -> int:
    return node.clock.now()


async def keep(node: Node, job: Job, made: Sequence[Run], **counted: int) -> None:
    """A job that is due in a year, and its runs."""

    def transaction(connection: Any) -> None:
        keep_counted(connection, job, counted.get("succeeded", 0), counted.get("failed", 0), counted.get("skipped", 0))
        runs.insert(connection, made)

    await node.ledger.write(transaction)


async def test_an_empty_team(api: Client) -> None:
    seen = await api.get("/v1/overview")

    assert seen["jobs"] == dict.fromkeys(("active", "paused", "disabled", "completed", "failing", "running"), 0)
    assert seen["monitors"] == dict.fromkeys(("new", "up", "late", "down", "paused"), 0)
    assert seen["attention"] == seen["upcoming"] == []
    assert len(seen["hours"]) == 24
    assert seen["hours"][-1]["from"] <= seen["now"]
    assert {hour["succeeded"] for hour in seen["hours"]} == {0}


async def test_what_runs_and_what_is_next(api: Client, stranger: Client, target: Target) -> None:
    soon = await api.job(name="soon", schedule="in 20 minutes")
    await api.job(name="later")
    paused = await api.job(name="paused")
    await api.post(f"/v1/jobs/{paused['id']}/pause")
    slow = await api.job(name="slow", url=f"{target.url}/hang", timeout=60)
    await api.run_that((await api.post(f"/v1/jobs/{slow['id']}/trigger"))["id"], "running")

    seen = await api.get("/v1/overview")

    assert (seen["jobs"]["active"], seen["jobs"]["paused"], seen["jobs"]["running"]) == (3, 1, 1)
    assert seen["upcoming"][0] == {"job_id": soon["id"], "name": "soon", "at": soon["next_run_at"]}
    assert len(seen["upcoming"]) == 3
    assert [job["id"] for job in (await api.get("/v1/jobs", state="running"))["items"]] == [slow["id"]]
    assert (await stranger.get("/v1/overview"))["jobs"]["running"] == 0


async def test_a_failing_job_needs_somebody_until_it_succeeds(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/status/500")
    for _ in range(2):
        await api.run_that((await api.post(f"/v1/jobs/{job['id']}/trigger"))["id"], "failed")
    first = (await api.runs(job["id"]))[-1]

    seen = await api.get("/v1/overview")

    (attention,) = seen["attention"]
    assert (attention["kind"], attention["id"], attention["state"]) == ("job", job["id"], "failing")
    assert attention["since"] == first["scheduled_for"]
    assert "500" in attention["detail"]
    assert seen["jobs"]["failing"] == 1
    assert sum(hour["failed"] for hour in seen["hours"]) == 2
    assert [one["id"] for one in (await api.get("/v1/jobs", state="failing"))["items"]] == [job["id"]]
    assert (await api.get("/v1/jobs", state="passing"))["items"] == []

    await api("PATCH", f"/v1/jobs/{job['id']}", {"url": f"{target.url}/ok"})
    await api.run_that((await api.post(f"/v1/jobs/{job['id']}/trigger"))["id"], "succeeded")
    seen = await api.get("/v1/overview")
    assert seen["attention"] == []
    assert (sum(hour["succeeded"] for hour in seen["hours"]), seen["jobs"]["failing"]) == (1, 0)
    assert [one["id"] for one in (await api.get("/v1/jobs", state="passing"))["items"]] == [job["id"]]


async def test_the_most_urgent_comes_first(node: Node, api: Client, target: Target) -> None:
    down = await api.monitor(name="down")
    assert (await api("POST", f"/v1/ping/{down['ping_token']}/fail")).status == 200
    failing = await api.job(name="failing", url=f"{target.url}/status/500")
    disabled = await api.job(name="disabled", url=f"{target.url}/status/500", disable_after=1)
    for job in (failing, disabled):
        await api.run_that((await api.post(f"/v1/jobs/{job['id']}/trigger"))["id"], "failed")
    await late_monitor(node, api)

    seen = await api.get("/v1/overview")

    assert [one["state"] for one in seen["attention"]] == ["down", "disabled", "failing", "late"]
    assert seen["attention"][1]["detail"].endswith("`disable_after` is 1.")
    assert seen["monitors"] == {"new": 0, "up": 0, "late": 1, "down": 1, "paused": 0}
    assert seen["jobs"]["disabled"] == 1


async def late_monitor(node: Node, api: Client, name: str = "late") -> dict[str, Any]:
    """A monitor whose ping was expected some minutes ago."""
    made = await api.monitor(name=name, schedule="every hour", grace_period_seconds=3_600)
    assert (await api("POST", f"/v1/ping/{made['ping_token']}")).status == 200
    at = now_of(node) - HOUR - 5 * MINUTE

    def transaction(connection: Any) -> None:
        changed = f"anchor = {at}, deadline_at = {at + 2 * HOUR}"
        connection.exec_driver_sql(f"UPDATE monitors SET {changed} WHERE id = '{made['id']}'")

    await node.ledger.write(transaction)
    return made


async def test_monitors_by_what_they_show(node: Node, api: Client) -> None:
    late = await late_monitor(node, api, "B")
    new, up, paused = [await api.monitor(name=name) for name in ("c", "a", "D")]
    assert (await api("POST", f"/v1/ping/{up['ping_token']}")).status == 200
    await api.post(f"/v1/monitors/{paused['id']}/pause")

    async def ids(**query: Any) -> list[str]:
        return [one["id"] for one in (await api.get("/v1/monitors", **query))["items"]]

    for state, made in (("late", late), ("new", new), ("up", up), ("paused", paused)):
        assert await ids(state=state) == [made["id"]], state
    assert await ids(state="down") == []
    assert await ids(sort="name") == [one["id"] for one in (up, late, new, paused)]
    assert await ids(sort="-name") == [one["id"] for one in (paused, new, late, up)]
    assert await ids(sort="created_at") == [one["id"] for one in (late, new, up, paused)]
    pages: list[str] = []
    query: dict[str, Any] = {"sort": "name", "limit": 1}
    while len(pages) < 9:
        page = await api.get("/v1/monitors", **query)
        pages += [one["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert pages == await ids(sort="name")


async def test_jobs_in_any_order_page_by_page(api: Client) -> None:
    names = ["beta", "Alpha", "alpha", "Gamma", "delta", "Éclair"]
    made = {name: await api.job(name=name, schedule=f"in {20 + index} minutes") for index, name in enumerate(names)}
    await api.post(f"/v1/jobs/{made['Gamma']['id']}/pause")

    async def walk(sort: str) -> list[str]:
        found: list[str] = []
        query: dict[str, Any] = {"sort": sort, "limit": 2}
        while True:
            page = await api.get("/v1/jobs", **query)
            found += [job["name"] for job in page["items"]]
            if page["next_cursor"] is None:
                return found
            query["cursor"] = page["next_cursor"]

    assert await walk("created_at") == names
    assert await walk("-created_at") == names[::-1]
    by_name = await walk("name")
    assert [name.lower() for name in by_name[:5]] == ["alpha", "alpha", "beta", "delta", "gamma"]
    assert await walk("-name") == by_name[::-1]
    assert await walk("next_run_at") == [*(name for name in names if name != "Gamma"), "Gamma"]
    assert (await walk("updated"))[0] == "Gamma"
    assert (await api("GET", "/v1/jobs?sort=url")).problem(422, "sort")


async def test_a_cursor_of_another_order_is_refused(api: Client) -> None:
    for _ in range(2):
        await api.job()
    by_name = (await api.get("/v1/jobs", sort="name", limit=1))["next_cursor"]

    assert (await api("GET", "/v1/jobs", query={"cursor": by_name})).problem(422, "cursor")


async def test_strips_hold_the_last_day(node: Node, api: Client, stranger: Client) -> None:
    now = now_of(node)
    job = a_job(team_id=api.team_id, next_run_at=None, status=JobStatus.PAUSED)
    made = [a_run(job, now - minutes * MINUTE, status=RunStatus.SUCCEEDED) for minutes in range(1, 150)]
    skipped = a_run(job, now, status=RunStatus.SKIPPED, started_at=None, attempt_started_at=None, count=3)
    await keep(node, job, [*made, skipped, a_run(job, now - DAY - HOUR, status=RunStatus.FAILED)])
    other = await api.job()

    strips = (await api.get("/v1/jobs/strips", ids=f"{job.id},{other['id']},{NOWHERE},nonsense"))["items"]

    assert [strip["job_id"] for strip in strips] == [job.id, other["id"], NOWHERE]
    marks = strips[0]["marks"]
    assert len(marks) == 100
    assert marks[-1] == {
        "run_id": skipped.id,
        "scheduled_for": to_rfc3339(now),
        "status": "skipped",
        "count": 3,
    }
    assert marks[0]["scheduled_for"] == to_rfc3339(now - 99 * MINUTE)
    assert strips[1]["marks"] == strips[2]["marks"] == []
    assert (await stranger.get("/v1/jobs/strips", ids=job.id))["items"][0]["marks"] == []
    assert (await api("GET", "/v1/jobs/strips")).problem(422, "ids")
    assert (await api("GET", "/v1/jobs/strips", query={"ids": ",".join(["a"] * 101)})).problem(422, "ids")


async def test_strips_leave_out_what_is_older_than_a_day(node: Node, api: Client) -> None:
    now = now_of(node)
    job = a_job(team_id=api.team_id, next_run_at=None, status=JobStatus.PAUSED)
    await keep(node, job, [a_run(job, now - hours * HOUR, status=RunStatus.FAILED) for hours in (1, 23, 25)])

    (strip,) = (await api.get("/v1/jobs/strips", ids=job.id))["items"]

    assert [mark["scheduled_for"] for mark in strip["marks"]] == [to_rfc3339(now - hours * HOUR) for hours in (23, 1)]


async def test_statistics_of_a_job(node: Node, api: Client) -> None:
    now = now_of(node)
    job = a_job(team_id=api.team_id, next_run_at=None, status=JobStatus.PAUSED, definition=a_definition())
    made = []
    for number in range(1, 11):
        slot = now - number * HOUR
        ended = {"started_at": slot + 4, "attempt_started_at": slot + 4, "finished_at": slot + 4 + number * 10}
        made.append(a_run(job, slot, status=RunStatus.FAILED if number == 3 else RunStatus.SUCCEEDED, **ended))
    made.append(
        a_run(job, now - 11 * HOUR, status=RunStatus.SKIPPED, started_at=None, attempt_started_at=None, count=5)
    )
    made.append(a_run(job, now - 12 * HOUR, status=RunStatus.LOST, finished_at=now - 11 * HOUR))
    made.append(a_run(job, now - 10 * DAY, status=RunStatus.FAILED))
    await keep(node, job, made)

    week = await api.get(f"/v1/jobs/{job.id}/stats")
    month = await api.get(f"/v1/jobs/{job.id}/stats", days=30)

    assert (week["succeeded"], week["failed"], week["skipped"], week["lost"]) == (9, 1, 5, 1)
    assert week["success_rate"] == round(9 / 11, 6)
    assert week["duration_ms"] == {"p50": 60, "p95": HOUR, "max": HOUR}
    assert week["lateness_ms"] == {"p50": 4, "p99": 4, "max": 4}
    assert [point["duration_ms"] for point in week["points"]][-1] == 10
    assert len(week["points"]) == 11
    assert week["is_complete"] is True
    assert month["failed"] == 2
    assert (await api("GET", f"/v1/jobs/{job.id}/stats?days=8")).problem(422, "days")


async def test_statistics_of_very_many_runs_say_so(node: Node, api: Client) -> None:
    now = now_of(node)
    job = a_job(team_id=api.team_id, next_run_at=None, status=JobStatus.PAUSED)
    many = RUNS_COUNTED_MAX + 10
    slow = 1_000
    made = [
        a_run(
            job,
            now - number * 1_000,
            status=RunStatus.FAILED if number == slow else RunStatus.SUCCEEDED,
        )
        for number in range(many)
    ]
    await keep(node, job, made)

    seen = await api.get(f"/v1/jobs/{job.id}/stats", days=90)

    assert (seen["succeeded"], seen["failed"], seen["is_complete"]) == (RUNS_COUNTED_MAX - 1, 1, False)
    assert seen["since"] == to_rfc3339(now - (RUNS_COUNTED_MAX - 1) * 1_000)
    assert len(seen["points"]) == POINTS_MAX
    assert sum(point["status"] == "failed" for point in seen["points"]) == 1
    assert [point["at"] for point in seen["points"]] == sorted(point["at"] for point in seen["points"])


async def test_a_job_that_never_ran_has_no_statistics(api: Client) -> None:
    seen = await api.get(f"/v1/jobs/{(await api.job())['id']}/stats")

    assert seen["duration_ms"] is seen["lateness_ms"] is seen["success_rate"] is None
    assert seen["points"] == []


async def test_tags_are_counted(api: Client, stranger: Client) -> None:
    for tags in (["a", "b"], ["b", "a"], ["b"], []):
        await api.job(tags=tags)
    gone = await api.job(tags=["gone"])
    await api("DELETE", f"/v1/jobs/{gone['id']}")

    assert (await api.get("/v1/tags"))["items"] == [{"tag": "b", "jobs": 3}, {"tag": "a", "jobs": 2}]
    assert (await stranger.get("/v1/tags"))["items"] == []


async def test_hours_have_what_was_counted_and_how_late_it_was(node: Node, api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/ok")
    await api.run_that((await api.post(f"/v1/jobs/{job['id']}/trigger"))["id"], "succeeded")
    assert node.engine is not None
    await node.engine.tally.save()

    async def counted() -> bool:
        hours = (await api.get("/v1/overview"))["hours"]
        are_late = [hour["lateness_ms_p99"] for hour in hours if hour["lateness_ms_p99"] is not None]
        return bool(sum(hour["succeeded"] for hour in hours) == len(are_late) == 1)

    await until(counted, "the run in its hour")
    last = (await api.get("/v1/overview"))["hours"][-1]
    assert last["is_counted"] is True


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.LOST])
async def test_the_last_error_is_told(node: Node, api: Client, status: RunStatus) -> None:
    now = now_of(node)
    job = a_job(team_id=api.team_id, next_run_at=now + DAY)
    run = a_run(job, now - HOUR, status=status, finished_at=now)
    await keep(node, job, [run])

    def transaction(connection: Any) -> None:
        executions.insert(connection, [dataclasses.replace(an_execution(run), error_message="It went wrong.")])
        columns = f"consecutive_failures = 1, last_run_id = '{run.id}', last_run_finished_at = {now}"
        connection.exec_driver_sql(f"UPDATE jobs SET {columns} WHERE id = '{job.id}'")

    await node.ledger.write(transaction)
    (attention,) = (await api.get("/v1/overview"))["attention"]
    assert attention["detail"] == "It went wrong."
    assert attention["since"] == to_rfc3339(now - HOUR)
