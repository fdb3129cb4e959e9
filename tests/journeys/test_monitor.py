"""A monitor's first day: a job reports, falls silent, and is found out; and what a restart does not do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
from tests.journeys.server import Person, Server, eventually, serving


async def report(url: str, body: bytes = b"") -> int:
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as answer:
        return answer.status


async def shown(person: Person, monitor: dict[str, Any], health: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        seen: dict[str, Any] = await person.ask("GET", f"/v1/monitors/{monitor['id']}")
        return seen if seen["health"] == health else None

    return await eventually(look, f"a monitor that is {health}")


async def test_a_job_falls_silent_and_is_found_out(person: Person) -> None:
    monitor = await person.ask(
        "POST",
        "/v1/monitors",
        {"name": "Backup", "schedule": "every 2 seconds", "grace_period_seconds": 1},
        status=201,
    )
    assert await report(monitor["ping_url"], b"1,204 files saved") == 200
    up = await shown(person, monitor, "up")

    # Nobody says anything any more.
    down = await shown(person, monitor, "down")
    assert down["reason"] == "silence"
    flips = (await person.ask("GET", f"/v1/monitors/{monitor['id']}/flips"))["items"]
    assert [flip["after"] for flip in flips] == ["down", "up"]
    assert flips[0]["lasted_ms"] == 3_000, "true instants: two seconds and one of grace after the ping"
    assert flips[0]["last_ping_at"] == up["last_ping_at"]

    assert await report(monitor["ping_url"]) == 200
    await shown(person, monitor, "up")


async def test_a_command_that_is_wrapped_reports_by_itself(person: Person, running: Server) -> None:
    monitor = await person.ask("POST", "/v1/monitors", {"name": "Wrapped", "schedule": "every hour"}, status=201)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "zerocron", "exec", monitor["ping_url"], "--", "sh", "-c", "echo disk full; exit 9"],
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout) == (9, b"disk full\n")
    end, start = (await person.ask("GET", f"/v1/monitors/{monitor['id']}/pings"))["items"]
    assert (start["kind"], end["kind"], end["exit_code"], end["body"]) == ("start", "fail", 9, "disk full\n")
    assert (await shown(person, monitor, "down"))["reason"] == "exit_code"


async def test_a_ping_that_was_answered_outlives_a_crash_which_blames_nobody(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        person = Person(server)
        monitor = await person.ask(
            "POST",
            "/v1/monitors",
            {"name": "Sensor", "schedule": "every 3 seconds", "grace_period_seconds": 0},
            status=201,
        )
        assert await report(monitor["ping_url"]) == 200
        server.kill()
        server.start()
        back = await person.ask("GET", f"/v1/monitors/{monitor['id']}")
        assert (back["pings"], back["health"]) == (1, "up")
        assert back["ping_token"] == monitor["ping_token"]
        assert await report(f"{server.url}/v1/ping/{monitor['ping_token']}") == 200
        await shown(person, monitor, "down")
