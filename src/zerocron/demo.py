"""`0cron serve --demo`: something to look at in the first minute.

Owns a small target on this machine and sample jobs that call it. A sample that is there by its name is not made
again; what a person changed about it stays, except for the port of the target.
"""

from __future__ import annotations

import asyncio
import dataclasses
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from zerocron.actions.jobs import Jobs, JobSpec
from zerocron.actions.monitors import Monitors, MonitorSpec
from zerocron.core.model import DEFAULT_TEAM_ID, RetryPolicy
from zerocron.serving import HttpServer, listen


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample job: where on the target it goes, and how."""

    path: str
    spec: JobSpec


SAMPLES = (
    Sample(
        "/hello",
        JobSpec(name="Demo: say hello", schedule="*/10 * * * * *", url="", tags=("demo",)),
    ),
    Sample(
        "/flaky",
        JobSpec(
            name="Demo: fails, then recovers by retrying",
            schedule="*/30 * * * * *",
            url="",
            method="POST",
            body='{"report": "daily"}',
            retry=RetryPolicy(attempts=3, backoff="exponential", delay_seconds=1),
            tags=("demo", "retry"),
        ),
    ),
    Sample(
        "/broken",
        JobSpec(name="Demo: always fails, so you can see why", schedule="* * * * *", url="", tags=("demo", "broken")),
    ),
    Sample(
        "/report",
        JobSpec(
            name="Demo: work, then report to the monitor",
            schedule="*/20 * * * * *",
            url="",
            method="POST",
            tags=("demo", "monitor"),
        ),
    ),
    Sample(
        "/hello",
        JobSpec(
            name="Demo: nightly backup at 02:30 in Paris",
            schedule="30 2 * * *",
            timezone="Europe/Paris",
            url="",
            tags=("demo", "backup"),
        ),
    ),
)


class DemoTarget:
    """A server on the loopback interface that answers, fails, or fails at first."""

    def __init__(self) -> None:
        listener = listen("127.0.0.1", 0)
        self.port: int = listener.getsockname()[1]
        self.ping_url: str | None = None
        application = Starlette(
            routes=[
                Route("/hello", _hello, methods=["GET", "POST"]),
                Route("/flaky", _flaky, methods=["GET", "POST"]),
                Route("/broken", _broken, methods=["GET", "POST"]),
                Route("/report", self._report, methods=["GET", "POST"]),
            ]
        )
        self._server = HttpServer(application, listener)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    async def _report(self, _request: Request) -> JSONResponse:
        """Does its work, as somebody's own job would, and pings the sample monitor."""
        if self.ping_url is None:
            return JSONResponse({"error": "There is no monitor yet."}, HTTPStatus.SERVICE_UNAVAILABLE)
        status = await asyncio.to_thread(_ping, self.ping_url)
        return JSONResponse({"message": f"Work done; the ping was answered {status}."})


def _ping(url: str) -> int:
    with urllib.request.urlopen(url, data=b"Work done.", timeout=5) as answer:
        status: int = answer.status
        return status


async def _hello(request: Request) -> JSONResponse:
    return JSONResponse(
        {
            "message": "Hello from the demo target.",
            "run": request.headers.get("x-0cron-run-id"),
            "scheduled_for": request.headers.get("x-0cron-scheduled-for"),
        }
    )


async def _flaky(request: Request) -> JSONResponse:
    """Fails the first two attempts of every run."""
    attempt = request.headers.get("x-0cron-attempt", "1")
    if attempt in ("1", "2"):
        return JSONResponse({"error": f"Attempt {attempt} fails on purpose."}, HTTPStatus.SERVICE_UNAVAILABLE)
    return JSONResponse({"message": f"Attempt {attempt} works."})


async def _broken(_request: Request) -> JSONResponse:
    return JSONResponse({"error": "This endpoint is broken on purpose."}, HTTPStatus.INTERNAL_SERVER_ERROR)


MONITOR = MonitorSpec(
    name="Demo: a job that reports every 20 seconds",
    schedule="every 20 seconds",
    grace_period_seconds=20,
    tags=("demo",),
)


async def make_monitor(monitors: Monitors, url: str) -> str:
    """Create the sample monitor if it is not there; its ping URL on the server at `url`. Pause the job that reports
    to it to see it go down."""
    listed, _ = await monitors.page(DEFAULT_TEAM_ID, tag="demo")
    found = [one for one in listed if one.monitor.name == MONITOR.name]
    seen = found[0] if found else (await monitors.create(DEFAULT_TEAM_ID, MONITOR))[0]
    return f"{url}/v1/ping/{seen.token}"


async def make_samples(jobs: Jobs, port: int) -> None:
    """Create the sample jobs that are not there, and point the others at the target's port of today."""
    known = {job.name: job for _, job in await jobs.page(DEFAULT_TEAM_ID, tag="demo", limit=200)}
    for sample in SAMPLES:
        url = f"http://127.0.0.1:{port}{sample.path}"
        job = known.get(sample.spec.name)
        if job is None:
            await jobs.create(DEFAULT_TEAM_ID, dataclasses.replace(sample.spec, url=url))
        else:
            await jobs.edit(DEFAULT_TEAM_ID, job.id, _pointed_at(url))


def _pointed_at(url: str) -> Callable[[JobSpec], JobSpec]:
    return lambda spec: dataclasses.replace(spec, url=url)
