"""A job fails, its people are told; it is mended, the server is killed on the way, and that is owed to them, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.server import Person, Server, eventually
from tests.support.target import Target


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with a kind of channel that writes into a file."""
    it = Server(tmp_path / "data", module="tests.support.channels")
    it.start()
    yield it
    it.kill()


async def test_people_are_told_of_a_failure_and_of_its_end(server: Server, target: Target, tmp_path: Path) -> None:
    person, letters = Person(server), tmp_path / "letters"
    channel = {"kind": "fake", "name": "On call", "config": {"place": str(letters)}}
    made = await person.ask("POST", "/v1/channels", channel, status=201)
    assert (await person.ask("POST", f"/v1/channels/{made['id']}/test"))["accepted"]
    target.on("/job", lambda exchange: exchange.answer(500, b"no paper"))
    job = await person.creates(name="Print", schedule="0 0 1 1 *", url=f"{target.url}/job")

    async def told(*events: str) -> list[dict[str, Any]] | None:
        items: list[dict[str, Any]] = (await person.ask("GET", f"/v1/alerts?subject={job['id']}"))["items"]
        return items[::-1] if [item["event"] for item in items[::-1]] == list(events) else None

    async def sent() -> bool | None:
        return letters.read_text().splitlines() == ["channel.test", "job.failed"] or None

    await person.triggers(job)
    await eventually(sent, "a letter")
    for _ in range(2):  # more of the same is no news
        await person.sees((await person.triggers(job))["id"], "failed")
    (failed,) = await eventually(lambda: told("job.failed"), "one alert")
    assert failed["reason"] == "The status was 500; the job accepts 2xx."

    server.kill()
    server.start()
    target.on("/job", lambda exchange: exchange.answer(200, b"printed"))
    await person.sees((await person.triggers(job))["id"], "succeeded")
    failed, recovered = await eventually(lambda: told("job.failed", "job.recovered"), "the end of it")
    assert (failed["status"], failed["tries"], failed["channel_name"]) == ("sent", 1, "On call")
    assert recovered["status"] == "sent" or recovered["next_attempt_at"] > failed["finished_at"], "in its minute"
    assert letters.read_text().count("job.failed") == 1
