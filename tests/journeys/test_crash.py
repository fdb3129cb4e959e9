"""kill -9 in the middle of a request: after the restart every run has an end, and the target can tell what happened."""

from __future__ import annotations

from tests.journeys.server import Person, Server
from tests.support.target import Exchange, Target


async def test_a_run_survives_the_death_of_the_server(mortal: Server, target: Target) -> None:
    """At least once by default; at most once for a job that asks for it. Nothing is sent twice without saying so."""
    person = Person(mortal)
    target.on("/hangs-once", lambda exchange: exchange.answer(200) if _attempt(exchange) > 1 else None)
    schedule = {"schedule": "0 0 1 1 *", "timeout": 60}
    again = await person.creates(name="again", url=f"{target.url}/hangs-once?again", **schedule)
    once = await person.creates(name="once", url=f"{target.url}/hang?once", on_lost="give_up", **schedule)
    retrying = await person.creates(
        name="retrying",
        url=f"{target.url}/fail-then-ok/1?key=crash",
        retry={"attempts": 2, "delay": 2, "backoff": "fixed"},
        **schedule,
    )
    runs = {job["name"]: await person.triggers(job) for job in (again, once, retrying)}
    await target.wait_for(lambda: len(target.requests) == 3)
    await person.sees(runs["retrying"]["id"], "retrying")

    mortal.kill()
    mortal.start()

    # The one that may be sent again is, as a second execution under the same key.
    ended = await person.sees(runs["again"]["id"], "succeeded")
    assert [execution["cause"] for execution in ended["executions"]] == ["first", "node_lost"]
    assert ended["executions"][0]["error"]["kind"] == "node_lost"
    sent = [request for request in target.requests if request.path == "/hangs-once?again"]
    assert [request.headers["x-0cron-attempt"] for request in sent] == ["1", "2"]
    assert len({request.headers["idempotency-key"] for request in sent}) == 1

    # The one that must not be is given up, and says that nobody knows.
    lost = await person.sees(runs["once"]["id"], "lost")
    assert lost["reason"] == "node_lost"
    assert "may have been sent" in lost["explanation"]
    assert len([request for request in target.requests if request.path == "/hang?once"]) == 1

    # And a retry that was waiting comes when it is due, as if nothing had happened.
    retried = await person.sees(runs["retrying"]["id"], "succeeded")
    assert [execution["cause"] for execution in retried["executions"]] == ["first", "retry"]
    assert retried["finished_at"] >= retried["executions"][0]["finished_at"]


def _attempt(exchange: Exchange) -> int:
    return int(exchange.request.headers["x-0cron-attempt"])


async def test_what_was_answered_with_success_is_still_there(mortal: Server, target: Target) -> None:
    """Promise 7: a 2xx is sent after the commit."""
    person = Person(mortal)
    job = await person.creates(name="kept", schedule="0 0 1 1 *", url=f"{target.url}/ok")
    await person.ask("POST", f"/v1/jobs/{job['id']}/pause")
    mortal.kill()
    mortal.start()

    found = await person.ask("GET", f"/v1/jobs/{job['id']}")

    assert (found["name"], found["status"], found["version"]) == ("kept", "paused", 2)
