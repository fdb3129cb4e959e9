"""Promise 8: once pause, delete or an edit has returned, nothing of the old order of things starts any more.

A job that runs every second beside the one under test is the metronome: when it has gone on for some beats, the other
had every occasion to do what it must not.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.api.support import Client, until
from tests.support.target import Target

EVERY_SECOND = "* * * * * *"
NEVER_MIND = {"schedule": "0 0 1 1 *"}


class Metronome:
    def __init__(self, api: Client, target: Target) -> None:
        self.api = api
        self.target = target

    async def start(self) -> Metronome:
        await self.api.job(name="metronome", schedule=EVERY_SECOND, url=f"{self.target.url}/ok?metronome")
        return self

    async def beats(self, count: int) -> None:
        """Wait for so many more beats."""
        wanted = self._beats() + count
        await self.target.wait_for(lambda: self._beats() >= wanted, timeout=60)

    def _beats(self) -> int:
        return sum(request.path == "/ok?metronome" for request in self.target.requests)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def calls(target: Target, path: str) -> int:
    return sum(request.path == path for request in target.requests)


async def waiting_for_a_retry(api: Client, target: Target, **fields: Any) -> tuple[str, str]:
    """(job, run) where the first attempt failed and the second is a minute away."""
    retry = {"attempts": 3, "delay": 60, "backoff": "fixed"}
    job = await api.job(**NEVER_MIND, url=f"{target.url}/status/500", retry=retry, **fields)
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    found = await api.run_that(run["id"], "retrying")
    assert found["retry_at"] is not None
    return job["id"], run["id"]


async def test_pause_cancels_a_waiting_retry_and_resume_does_not_bring_it_back(api: Client, target: Target) -> None:
    job_id, run_id = await waiting_for_a_retry(api, target)

    paused = await api.post(f"/v1/jobs/{job_id}/pause")
    after_pause = await api.get(f"/v1/runs/{run_id}")
    resumed = await api.post(f"/v1/jobs/{job_id}/resume")
    after_resume = await api.get(f"/v1/runs/{run_id}")

    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    assert (after_pause["status"], after_pause["reason"]) == ("cancelled", "job_paused")
    assert after_pause["retry_at"] is None
    assert after_pause["finished_at"] is not None
    assert len(after_pause["executions"]) == 1
    assert resumed["status"] == "active"
    assert after_resume == after_pause
    assert calls(target, "/status/500") == 1


async def test_delete_cancels_a_waiting_retry_and_keeps_the_history(api: Client, target: Target) -> None:
    job_id, run_id = await waiting_for_a_retry(api, target)

    assert (await api("DELETE", f"/v1/jobs/{job_id}")).status == 204

    run = await api.get(f"/v1/runs/{run_id}")
    assert (run["status"], run["reason"]) == ("cancelled", "job_deleted")
    execution = await api.get(f"/v1/executions/{run['executions'][0]['id']}")
    assert execution["response"]["status"] == 500
    assert (await api("GET", f"/v1/jobs/{job_id}/runs")).problem(404)


async def test_a_queued_run_is_cancelled_too(api: Client, target: Target) -> None:
    job = await api.job(**NEVER_MIND, url=f"{target.url}/hang", overlap="queue", timeout=30)
    first = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await target.wait_for(lambda: calls(target, "/hang") == 1)
    second = await api.post(f"/v1/jobs/{job['id']}/trigger")

    await api.post(f"/v1/jobs/{job['id']}/pause")

    assert (await api.get(f"/v1/runs/{second['id']}"))["status"] == "cancelled"
    assert (await api.get(f"/v1/runs/{first['id']}"))["status"] == "running"


async def test_nothing_starts_afterwards(api: Client, target: Target) -> None:
    metronome = await Metronome(api, target).start()
    paused = await api.job(schedule=EVERY_SECOND, url=f"{target.url}/ok?paused")
    deleted = await api.job(schedule=EVERY_SECOND, url=f"{target.url}/ok?deleted")
    await target.wait_for(lambda: calls(target, "/ok?paused") >= 1 and calls(target, "/ok?deleted") >= 1)

    await api.post(f"/v1/jobs/{paused['id']}/pause")
    assert (await api("DELETE", f"/v1/jobs/{deleted['id']}")).status == 204
    await metronome.beats(1)  # what was started before has arrived by now
    seen = calls(target, "/ok?paused"), calls(target, "/ok?deleted")
    await metronome.beats(2)

    assert (calls(target, "/ok?paused"), calls(target, "/ok?deleted")) == seen


async def test_a_request_under_way_goes_on(api: Client, target: Target) -> None:
    job = await api.job(**NEVER_MIND, url=f"{target.url}/slow/0.5")
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await target.wait_for(lambda: calls(target, "/slow/0.5") == 1)

    await api.post(f"/v1/jobs/{job['id']}/pause")

    assert (await api.get(f"/v1/runs/{run['id']}"))["status"] == "running"
    assert (await api.run_that(run["id"], "succeeded", "failed", "cancelled"))["status"] == "succeeded"


async def test_a_failure_under_way_is_not_retried_after_a_pause(api: Client, target: Target) -> None:
    target.on("/late-500", lambda exchange: exchange.later(0.3, lambda: exchange.answer(500)))
    job = await api.job(**NEVER_MIND, url=f"{target.url}/late-500", retry={"attempts": 3, "delay": 0})
    run = await api.post(f"/v1/jobs/{job['id']}/trigger")
    await target.wait_for(lambda: calls(target, "/late-500") == 1)

    await api.post(f"/v1/jobs/{job['id']}/pause")

    ended = await api.run_that(run["id"], "failed", "cancelled")
    assert ended["reason"] == "job_paused"
    assert ended["attempts"] == 1


async def test_an_edit_creates_no_slot_of_the_old_schedule(api: Client, target: Target) -> None:
    metronome = await Metronome(api, target).start()
    job = await api.job(schedule=EVERY_SECOND, url=f"{target.url}/ok?old")
    await target.wait_for(lambda: calls(target, "/ok?old") >= 1)

    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"schedule": "0 0 1 1 *"})).json
    await metronome.beats(2)

    assert edited["next_run_at"].endswith("-01-01T00:00:00Z")
    runs = await api.runs(job["id"])
    assert runs
    assert [run for run in runs if at(run["scheduled_for"]) > at(edited["updated_at"])] == []
    assert {run["job_version"] for run in runs} == {1}


async def test_an_edit_that_leaves_the_schedule_alone_leaves_the_cursor_alone(api: Client) -> None:
    job = await api.job(schedule="every 90 minutes")

    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"name": "new", "url": "http://127.0.0.1:9/new"})).json

    assert edited["version"] == 2
    assert edited["next_run_at"] == job["next_run_at"]


async def test_an_edit_of_a_paused_job_does_not_wake_it(api: Client) -> None:
    job = await api.job()
    await api.post(f"/v1/jobs/{job['id']}/pause")

    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"schedule": EVERY_SECOND})).json

    assert (edited["status"], edited["next_run_at"]) == ("paused", None)


async def test_an_edit_wakes_a_completed_job(api: Client, target: Target) -> None:
    job = await api.job(schedule="in 1 second", url=f"{target.url}/ok")

    async def completed() -> bool:
        return bool((await api.get(f"/v1/jobs/{job['id']}"))["status"] == "completed")

    await until(completed, "the end of the schedule")
    edited = (await api("PATCH", f"/v1/jobs/{job['id']}", {"schedule": "0 0 1 1 *"})).json
    assert (edited["status"], edited["next_run_at"] is None) == ("active", False)


async def test_paused_time_is_never_replayed(api: Client, target: Target) -> None:
    metronome = await Metronome(api, target).start()
    job = await api.job(schedule=EVERY_SECOND, url=f"{target.url}/ok?paused", catchup="all")
    await target.wait_for(lambda: calls(target, "/ok?paused") >= 1)

    paused = await api.post(f"/v1/jobs/{job['id']}/pause")
    await metronome.beats(2)
    before = calls(target, "/ok?paused")
    resumed = await api.post(f"/v1/jobs/{job['id']}/resume")
    await target.wait_for(lambda: calls(target, "/ok?paused") > before)

    assert at(resumed["next_run_at"]) > at(resumed["updated_at"])
    slots = [at(run["scheduled_for"]) for run in await api.runs(job["id"])]
    assert [slot for slot in slots if at(paused["updated_at"]) < slot <= at(resumed["updated_at"])] == []
    assert (await api.get(f"/v1/jobs/{job['id']}"))["stats"]["skipped"] == 0


async def test_pausing_and_resuming_twice_is_no_error_and_no_change(api: Client) -> None:
    job = await api.job()

    paused = await api.post(f"/v1/jobs/{job['id']}/pause")
    assert await api.post(f"/v1/jobs/{job['id']}/pause") == paused
    resumed = await api.post(f"/v1/jobs/{job['id']}/resume")
    assert await api.post(f"/v1/jobs/{job['id']}/resume") == resumed
    assert [job["version"], paused["version"], resumed["version"]] == [1, 2, 3]


async def test_a_paused_job_is_not_triggered(api: Client) -> None:
    job = await api.job()
    await api.post(f"/v1/jobs/{job['id']}/pause")

    answer = await api("POST", f"/v1/jobs/{job['id']}/trigger")

    assert answer.problem(409) == "The job is paused. Resume it before triggering it."
    assert await api.runs(job["id"]) == []


async def test_a_trigger_never_moves_the_schedule(api: Client, target: Target) -> None:
    job = await api.job(schedule="every 90 minutes", url=f"{target.url}/ok")

    answer = await api("POST", f"/v1/jobs/{job['id']}/trigger")
    run = await api.run_that(answer.json["id"], "succeeded")

    assert answer.status == 202
    assert answer.headers["location"] == f"/v1/runs/{run['id']}"
    assert (run["triggered_by"], run["count"], run["job_id"]) == ("api", 1, job["id"])
    after = await api.get(f"/v1/jobs/{job['id']}")
    assert after["next_run_at"] == job["next_run_at"]
    assert after["version"] == job["version"]
    assert after["stats"]["succeeded"] == 1
    assert after["last_run"]["id"] == run["id"]


async def test_triggers_beside_a_schedule_take_none_of_its_slots(api: Client, target: Target) -> None:
    metronome = await Metronome(api, target).start()
    job = await api.job(schedule=EVERY_SECOND, url=f"{target.url}/ok?both", overlap="allow")
    await target.wait_for(lambda: calls(target, "/ok?both") >= 1)
    for _ in range(3):
        await api.post(f"/v1/jobs/{job['id']}/trigger")
    await metronome.beats(2)
    await api.post(f"/v1/jobs/{job['id']}/pause")

    runs = await api.runs(job["id"])
    slots = sorted(run["scheduled_for"] for run in runs if run["triggered_by"] == "schedule")
    seconds = [int(slot[17:19]) for slot in slots]
    assert len([run for run in runs if run["triggered_by"] == "api"]) == 3
    assert all((later - earlier) % 60 == 1 for earlier, later in pairwise(seconds)), slots
