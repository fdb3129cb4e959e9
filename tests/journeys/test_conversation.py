"""Target and scheduler talk: redirects followed, retries refused, requests that can be told genuine."""

from __future__ import annotations

from standardwebhooks.webhooks import Webhook
from tests.journeys.server import Person, Server, eventually
from tests.support.target import Target

NEVER = "0 0 1 1 *"


async def test_a_target_ends_the_retries_of_a_run(person: Person, target: Target) -> None:
    target.on("/final", lambda exchange: exchange.answer(489, b"this will never work"))
    job = await person.creates(
        name="Final", schedule=NEVER, url=f"{target.url}/final", retry={"attempts": 5, "delay": 0}
    )

    ended = await person.sees((await person.triggers(job))["id"], "failed", "succeeded")

    assert (ended["status"], ended["reason"], ended["attempts"]) == ("failed", "retry_refused", 1)
    assert "asked for no further attempt" in ended["explanation"]
    assert len(target.requests) == 1


async def test_redirects_are_followed_as_far_as_the_job_allows_and_the_way_is_shown(
    person: Person, target: Target
) -> None:
    target.on("/old", lambda exchange: exchange.answer(301, b"", [("Location", "/new")]))
    target.on("/new", lambda exchange: exchange.answer(200, b"moved here"))
    job = await person.creates(name="Moved", schedule=NEVER, url=f"{target.url}/old", redirects=1)

    ended = await person.sees((await person.triggers(job))["id"], "failed", "succeeded")

    assert ended["status"] == "succeeded"
    [execution] = ended["executions"]
    assert execution["response"]["body"] == "moved here"
    assert execution["hops"] == [
        {"method": "GET", "url": f"{target.url}/old", "status": 301, "with_body": False},
        {"method": "GET", "url": f"{target.url}/new", "status": 200, "with_body": False},
    ]

    strict = await person.creates(name="Strict", schedule=NEVER, url=f"{target.url}/old")
    ended = await person.sees((await person.triggers(strict))["id"], "failed", "succeeded")
    assert (ended["status"], ended["executions"][0]["hops"]) == ("failed", [])
    assert ended["executions"][0]["error"]["message"] == "The status was 301; the job accepts 2xx."


async def test_a_receiver_can_tell_that_a_request_is_genuine(person: Person, target: Target) -> None:
    first = await person.ask("POST", "/v1/signing-key/rotate")
    job = await person.creates(
        name="Signed", schedule=NEVER, url=f"{target.url}/ok", method="POST", body={"report": "é"}, sign=True
    )
    run = await person.sees((await person.triggers(job))["id"], "succeeded", "failed")
    [request] = target.requests
    assert Webhook(first["key"]).verify(request.body, request.headers) == {"report": "é"}
    assert request.headers["webhook-id"] == run["id"]
    sent = run["executions"][0]["request"]["headers"]
    assert sent["webhook-signature"] == request.headers["webhook-signature"], "what is shown is what was sent"

    second = await person.ask("POST", "/v1/signing-key/rotate")

    async def both() -> bool | None:
        await person.sees((await person.triggers(job))["id"], "succeeded", "failed")
        return target.requests[-1].headers["webhook-signature"].count("v1,") == 2 or None

    await eventually(both, "a request with both signatures")
    for key in (first["key"], second["key"]):
        Webhook(key).verify(target.requests[-1].body, target.requests[-1].headers)


async def test_a_job_that_keeps_failing_is_disabled_and_comes_back_when_asked(person: Person, target: Target) -> None:
    target.on("/down", lambda exchange: exchange.answer(500))
    job = await person.creates(name="Doomed", schedule="* * * * * *", url=f"{target.url}/down", disable_after=2)
    path = f"/v1/jobs/{job['id']}"

    async def disabled() -> dict[str, object] | None:
        found: dict[str, object] = await person.ask("GET", path)
        return found if found["status"] == "disabled" else None

    found = await eventually(disabled, "a disabled job")
    assert found["status_reason"] == "The last 2 runs failed, and `disable_after` is 2."
    assert found["next_run_at"] is None
    assert [item["id"] for item in (await person.ask("GET", "/v1/jobs?status=disabled"))["items"]] == [job["id"]]
    await person.ask("POST", f"{path}/trigger", status=409)

    target.on("/down", lambda exchange: exchange.answer(200))
    resumed = await person.ask("POST", f"{path}/resume")
    assert (resumed["status"], resumed["status_reason"]) == ("active", None)
    await person.ask("DELETE", path, status=204)


async def test_a_job_cannot_call_its_own_scheduler(running: Server, person: Person) -> None:
    job = await person.creates(name="Loop", schedule=NEVER, url=f"{running.url}/healthz")
    ended = await person.sees((await person.triggers(job))["id"], "succeeded", "failed")
    assert ended["executions"][0]["error"]["kind"] == "address_refused"
    assert "own server" in ended["executions"][0]["error"]["message"]
