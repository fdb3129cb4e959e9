"""`Idempotency-Key`: the same request twice is done once, also when fifty of them come at once."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid

import pytest
from tests.api.support import JOB, Answer, Client
from tests.support.target import Target

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.app import Node
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid
from zerocron.core.model import Instant
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.timetable.memory import MemoryTimetable


async def create(api: Client, key: str, **fields: object) -> Answer:
    return await api("POST", "/v1/jobs", JOB | fields, headers={"Idempotency-Key": key})


async def test_the_same_key_and_request_give_the_same_job(api: Client) -> None:
    first = await create(api, "one")
    second = await create(api, "one")

    assert (first.status, second.status) == (201, 201)
    assert second.json == first.json
    assert second.headers["location"] == first.headers["location"]
    assert "idempotent-replay" not in first.headers
    assert second.headers["idempotent-replay"] == "true"
    assert len((await api.get("/v1/jobs"))["items"]) == 1


async def test_the_same_job_written_in_another_order_is_the_same_request(api: Client) -> None:
    first = await create(api, "order", retry={"attempts": 2, "delay": 1})
    turned = dict(reversed(list((JOB | {"retry": {"delay": 1, "attempts": 2}}).items())))

    second = await api("POST", "/v1/jobs", turned, headers={"Idempotency-Key": "order"})

    assert second.json["id"] == first.json["id"]


async def test_the_same_key_for_another_request_is_refused(api: Client) -> None:
    await create(api, "one")

    answer = await create(api, "one", name="another")

    assert answer.problem(409) == (
        "This Idempotency-Key was used for a different request. Use a new key for a new request."
    )
    assert len((await api.get("/v1/jobs"))["items"]) == 1


async def test_fifty_at_once_make_one_job(api: Client) -> None:
    answers = await asyncio.gather(*(create(api, "rush") for _ in range(50)))

    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("idempotent-replay" not in answer.headers for answer in answers) == 1
    assert len((await api.get("/v1/jobs"))["items"]) == 1


async def test_fifty_triggers_at_once_make_one_run(api: Client, target: Target) -> None:
    job = await api.job(url=f"{target.url}/ok")

    async def trigger() -> Answer:
        return await api("POST", f"/v1/jobs/{job['id']}/trigger", headers={"Idempotency-Key": "rush"})

    answers = await asyncio.gather(*(trigger() for _ in range(50)))

    assert {answer.status for answer in answers} == {202}
    (run_id,) = {answer.json["id"] for answer in answers}
    await api.run_that(run_id, "succeeded")
    again = await trigger()
    assert again.headers["idempotent-replay"] == "true"
    assert (again.json["id"], again.json["status"]) == (run_id, "succeeded")
    assert len(target.requests) == 1
    assert len(await api.runs(job["id"])) == 1


async def test_a_refused_request_uses_up_no_key(api: Client) -> None:
    (await create(api, "mended", schedule="0 0 31 2 *")).problem(422)

    assert (await create(api, "mended")).status == 201


async def test_keys_belong_to_a_team_and_to_an_operation(api: Client, stranger: Client) -> None:
    mine, theirs = await create(api, "shared"), await create(stranger, "shared")
    assert mine.json["id"] != theirs.json["id"]

    path = f"/v1/jobs/{mine.json['id']}/trigger"
    run = await api("POST", path, headers={"Idempotency-Key": "shared"})
    assert run.status == 202
    key = await api("POST", "/v1/api-keys", {"name": "x"}, headers={"Idempotency-Key": "shared"})
    assert key.status == 201


async def test_a_key_for_another_jobs_trigger_is_refused(api: Client) -> None:
    first, second = await api.job(), await api.job()
    await api("POST", f"/v1/jobs/{first['id']}/trigger", headers={"Idempotency-Key": "t"})

    answer = await api("POST", f"/v1/jobs/{second['id']}/trigger", headers={"Idempotency-Key": "t"})

    assert "different request" in answer.problem(409)
    assert answer.json["code"] == "key_reused"


async def test_a_trigger_is_answered_again_after_a_pause(api: Client) -> None:
    job = await api.job()
    path = f"/v1/jobs/{job['id']}/trigger"
    run = await api("POST", path, headers={"Idempotency-Key": "t"})
    await api.post(f"/v1/jobs/{job['id']}/pause")

    again = await api("POST", path, headers={"Idempotency-Key": "t"})

    assert (again.status, again.json["id"]) == (202, run.json["id"])


async def test_what_a_key_made_may_be_gone(api: Client, node: Node) -> None:
    job = (await create(api, "gone")).json
    trigger = await api("POST", f"/v1/jobs/{job['id']}/trigger", headers={"Idempotency-Key": "gone"})
    await api.run_that(trigger.json["id"], "failed")
    await node.ledger.write(
        lambda connection: run_rows.delete_of_job(connection, job["id"], before=2**50, limit=10),
    )

    again = await api("POST", f"/v1/jobs/{job['id']}/trigger", headers={"Idempotency-Key": "gone"})
    assert again.problem(409) == "The run that this Idempotency-Key made is gone. Use a new key to make another."
    assert again.json["code"] == "made_and_gone"
    await api("DELETE", f"/v1/jobs/{job['id']}")
    assert (await create(api, "gone")).problem(409) == (
        "The job that this Idempotency-Key made is gone. Use a new key to make another."
    )


async def test_an_api_key_is_shown_only_once_also_to_who_repeats(api: Client) -> None:
    first = await api("POST", "/v1/api-keys", {"name": "x"}, headers={"Idempotency-Key": "k"})

    again = await api("POST", "/v1/api-keys", {"name": "x"}, headers={"Idempotency-Key": "k"})

    assert first.json["id"] in again.problem(409)
    assert again.json["code"] == "made_before"
    assert first.json["key"] not in again.body.decode()
    assert len([key for key in (await api.get("/v1/api-keys"))["items"] if key["name"] == "x"]) == 1


@pytest.mark.parametrize("key", ["", "a" * 256, "caf\xe9", "tab\there", "\x7f"])
async def test_a_key_that_is_none(api: Client, key: str) -> None:
    for path, document in (("/v1/jobs", JOB), ("/v1/api-keys", {"name": "x"})):
        answer = await api("POST", path, document, headers={"Idempotency-Key": key})
        assert answer.problem(422, "Idempotency-Key")
    assert (await api.get("/v1/jobs"))["items"] == []


@pytest.mark.parametrize("key", ["a" * 255, "with blanks", "'; DROP TABLE jobs", '"quoted"', "0"])
async def test_any_printable_text_is_a_key(api: Client, key: str) -> None:
    first = await create(api, key)

    assert (await create(api, key)).json["id"] == first.json["id"]


class MovedClock(SystemClock):
    """The time, some way off."""

    ahead_ms = 0

    def now(self) -> Instant:
        return super().now() + self.ahead_ms


async def test_a_repeated_request_is_answered_although_its_instant_is_past(node: Node) -> None:
    """A client whose answer was lost repeats "2 minutes from now" three minutes later: it is the same job."""
    clock = MovedClock()
    jobs = Jobs(ledger=node.ledger, timetable=MemoryTimetable(), clock=clock)
    team = str(uuid.uuid4())
    spec = JobSpec(name="once", schedule="2026-12-31T23:00:00Z", url="http://127.0.0.1:9/")
    clock.ahead_ms = 1_798_700_000_000 - SystemClock().now()  # 2026-12-31, early in the day
    first, is_new = await jobs.create(team, spec, "late")
    assert is_new
    clock.ahead_ms += 86_400_000

    again, is_new = await jobs.create(team, spec, "late")

    assert (again.id, is_new) == (first.id, False)
    with pytest.raises(Invalid, match="in the past"):
        await jobs.create(team, spec, "another key")
    with pytest.raises(Invalid, match="in the past"):
        await jobs.create(team, dataclasses.replace(spec, name="no key"))
    await jobs.delete(team, first.id)
