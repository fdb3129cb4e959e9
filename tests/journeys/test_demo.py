"""`0cron serve --demo`: something to look at in the first minute, with nothing set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.journeys.server import Person, eventually, serving


async def test_the_demo_serves_sample_runs(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--demo") as server:
        person = Person(server)
        jobs = {job["name"]: job for job in (await person.ask("GET", "/v1/jobs?tag=demo"))["items"]}
        hello = jobs["Demo: say hello"]
        flaky = jobs["Demo: fails, then recovers by retrying"]
        broken = jobs["Demo: always fails, so you can see why"]
        assert len(jobs) == 5

        # One recovers by retrying, one never does, and both say why.
        async def failure() -> dict[str, Any] | None:
            run = await person.sees((await person.triggers(broken))["id"], "failed", "skipped")
            return run if run["status"] == "failed" else None  # skipped: its own slot was running

        failed = await eventually(failure, "a failure")

        async def recovery() -> dict[str, Any] | None:
            run = await person.sees((await person.triggers(flaky))["id"], "succeeded", "failed", "skipped")
            # Its retries take three seconds: they end early when its own next slot comes before them, and a trigger
            # that meets the retries of a slot is skipped.
            assert run["status"] == "succeeded" or run["reason"] in ("no_time_for_retry", "superseded", "overlap"), run
            return run if run["status"] == "succeeded" else None

        recovered = await eventually(recovery, "a recovery")
        assert [execution["status"] for execution in recovered["executions"]] == ["failed", "failed", "success"]
        assert failed["executions"][0]["error"]["message"] == "The status was 500; the job accepts 2xx."

        # And without anybody doing anything, a request goes out every ten seconds.
        async def first_hello() -> dict[str, Any] | None:
            ended = [run for run in await person.history(hello) if run["status"] == "succeeded"]
            return ended[0] if ended else None

        run = await eventually(first_hello, "the first hello")
        assert run["triggered_by"] == "schedule"
        assert run["scheduled_for"][18] == "0"
        execution = (await person.ask("GET", f"/v1/runs/{run['id']}"))["executions"][0]
        assert "Hello from the demo target." in execution["response"]["body"]

        # A job of somebody else's reports to the sample monitor.
        await person.triggers(jobs["Demo: work, then report to the monitor"])

        async def reported() -> dict[str, Any] | None:
            (monitor,) = (await person.ask("GET", "/v1/monitors?tag=demo"))["items"]
            return monitor if monitor["health"] == "up" else None

        monitor = await eventually(reported, "a report")
        assert monitor["name"] == "Demo: a job that reports every 20 seconds"

        # Started again, it makes no second set of samples, and leaves alone what a person changed.
        await person.ask("PATCH", f"/v1/jobs/{hello['id']}", {"name": "Demo: say hello", "timeout": 7})
        server.stop()
        server.start("--demo")
        again = {job["name"]: job for job in (await person.ask("GET", "/v1/jobs?tag=demo"))["items"]}
        assert again.keys() == jobs.keys()
        assert again["Demo: say hello"]["timeout"] == 7

        async def work() -> dict[str, Any] | None:
            run = await person.sees((await person.triggers(hello))["id"], "succeeded", "failed", "skipped")
            assert run["status"] != "failed", run
            return run if run["status"] == "succeeded" else None

        await eventually(work, "a hello")
