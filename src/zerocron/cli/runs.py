"""Runs: listed, followed, waited for, and shown with every attempt (`0cron jobs runs`, `0cron runs show`).

Following is polling once a second: what ended since the last look is printed, in the order of its slots, each run once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Annotated, Literal

import typer

from zerocron.cli import options as o
from zerocron.cli.client import Client
from zerocron.cli.program import program
from zerocron.cli.run_text import follow_heading, follow_line, print_page, print_run
from zerocron.cli.show import Json, note, print_json, say
from zerocron.cli.times import instant
from zerocron.clock import SystemClock
from zerocron.core.errors import NotFound, Unavailable
from zerocron.core.model import is_uuid

POLL_SECONDS = 1.0
WAIT_POLL_SECONDS = 0.2
AWAY_SECONDS_MAX = 60.0
"""How long following goes on without an answer, over a restart of the server."""

FOLLOW_PAGE = 50
FOLLOW_RUNS_MAX = 1_000
"""The most runs that one look goes back."""

REMEMBERED_MAX = 20_000

Status = Literal["queued", "running", "retrying", "succeeded", "failed", "skipped", "cancelled", "lost"]
UNFINISHED = ("queued", "running", "retrying")

app = typer.Typer(help="Look at what happened.")


@app.command()
@o.with_server
def show(
    client: Client,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="As `jobs runs` lists it.", show_default=False)],
    as_json: o.AsJson = False,
) -> None:
    """Show one run with its attempts: what was sent, what came back, how long it took, why it failed."""
    run_id = run_id.lower()
    if not is_uuid(run_id):
        missing = NotFound(f"{run_id!r} is not the id of a run.")
        missing.add_note(f"`{program()} jobs runs JOB` lists them.")
        raise missing
    run = client.get(f"/v1/runs/{run_id}")
    if as_json:
        print_json(run)
        return
    try:
        job = client.get(f"/v1/jobs/{run['job_id']}")
    except NotFound:
        job = {"name": "(deleted)", "retry": None}
    print_run(run, job)


def print_runs(client: Client, job: Json, *, status: str | None, limit: int, as_json: bool) -> None:
    """The runs of a job, latest first."""
    page = client.pages(f"/v1/jobs/{job['id']}/runs", limit=limit, status=status)
    if as_json:
        print_json(page)
    elif not page["items"]:
        say(f'No run of "{job["name"]}" {f"is {status}" if status else "is there yet"}.')
    else:
        executions = client.pages(f"/v1/jobs/{job['id']}/executions", limit=4 * len(page["items"]))["items"]
        print_page(page["items"], executions)
        if page["next_cursor"] is not None:
            note(f"\nThere are more than these {len(page['items'])}: --limit N shows N.")


def wait_for_end(client: Client, run_id: str) -> Json:
    """The run with its executions, once it is over."""
    while True:
        run = client.get(f"/v1/runs/{run_id}")
        if run["status"] not in UNFINISHED:
            return run
        _pause(WAIT_POLL_SECONDS)


def follow(client: Client, job: Json, *, status: str | None, limit: int, as_json: bool) -> None:
    """Print the latest runs, then each one as it ends, until Ctrl-C."""
    follower = Follower(client, job["id"], status)
    if not as_json:
        say(follow_heading(), style="bold")
    for run in follower.start(limit):
        _print_line(client, run, as_json)
    clock = SystemClock()
    answered_at = clock.monotonic()
    away = False
    while True:
        _pause(POLL_SECONDS)
        try:
            for run in follower.look():
                _print_line(client, run, as_json)
            answered_at, away = clock.monotonic(), False
        except Unavailable as error:
            if clock.monotonic() - answered_at > AWAY_SECONDS_MAX:
                raise
            if not away:
                note(f"{error.message} Trying again for {AWAY_SECONDS_MAX:.0f} seconds.")
            away = True


class Follower:
    """What ended since the last look."""

    def __init__(self, client: Client, job_id: str, status: str | None) -> None:
        self._client = client
        self._path = f"/v1/jobs/{job_id}/runs"
        self._status = status
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._open: dict[str, None] = {}

    def start(self, limit: int) -> list[Json]:
        """The newest runs that are over, oldest first; all that are there now count as seen."""
        page = self._client.pages(self._path, limit=max(limit, FOLLOW_PAGE))["items"]
        return self._new(page)[-limit:]

    def look(self) -> list[Json]:
        """Runs that ended since, by their slots."""
        seen: list[Json] = []
        cursor: str | None = None
        while len(seen) < FOLLOW_RUNS_MAX:
            page = self._client.get(self._path, limit=FOLLOW_PAGE, cursor=cursor)
            seen += page["items"]
            cursor = page["next_cursor"]
            if cursor is None or any(self._knows(run["id"]) for run in page["items"]):
                break
        listed = {run["id"] for run in seen}
        older = [run_id for run_id in self._open if run_id not in listed]
        seen += [self._client.get(f"/v1/runs/{run_id}") for run_id in older[:FOLLOW_PAGE]]
        return self._new(seen)

    def _knows(self, run_id: str) -> bool:
        return run_id in self._ended or run_id in self._open

    def _new(self, seen: list[Json]) -> list[Json]:
        fresh: list[Json] = []
        for run in sorted(seen, key=lambda run: (instant(run["scheduled_for"]), run["id"])):
            if run["status"] in UNFINISHED:
                self._open[run["id"]] = None
            elif run["id"] not in self._ended:
                self._open.pop(run["id"], None)
                self._ended[run["id"]] = None
                fresh.append(run)
        while len(self._ended) > REMEMBERED_MAX:
            self._ended.popitem(last=False)
        return [run for run in fresh if self._status in (None, run["status"])]


def _print_line(client: Client, run: Json, as_json: bool) -> None:
    if as_json:
        print_json({name: value for name, value in run.items() if name != "executions"}, line=True)
        return
    if "executions" not in run and run["attempts"]:
        run = client.get(f"/v1/runs/{run['id']}")
    say(follow_line(run))


def _pause(seconds: float) -> None:
    asyncio.run(SystemClock().sleep(seconds))
