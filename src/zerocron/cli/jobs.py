"""`0cron jobs ...`: what a person asks of jobs. `runs` lists and follows what came of one."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import runs, times
from zerocron.cli.client import Client, find_server
from zerocron.cli.errors import FAILED
from zerocron.cli.names import find_job
from zerocron.cli.program import program
from zerocron.cli.show import (
    WIDE,
    Json,
    clean,
    lines,
    note,
    output,
    plural,
    print_fields,
    print_json,
    print_table,
    say,
    table,
    word,
)
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid

NEXT_SHOWN = 3

app = typer.Typer(help="Create jobs, look at them, and tell them what to do.")


@app.command()
def create(
    context: typer.Context,
    name: o.NewName,
    schedule: o.NewSchedule,
    url: o.NewUrl,
    timezone: o.Timezone = None,
    catchup: o.Catchup = None,
    catchup_window: o.CatchupWindow = None,
    overlap: o.Overlap = None,
    method: o.Method = None,
    header: o.Headers = None,
    body: o.Body = None,
    timeout: o.Timeout = None,
    success_status: o.SuccessStatus = None,
    body_contains: o.BodyContains = None,
    body_not_contains: o.BodyNotContains = None,
    attempts: o.Attempts = None,
    backoff: o.Backoff = None,
    delay: o.Delay = None,
    on_lost: o.OnLost = None,
    tag: o.Tags = None,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
    api_url: o.JobsApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Create a job. It starts to run at its next slot.

    Lengths of time are seconds, or 30s, 5m, 2h, 1d. Defaults are in parentheses.
    """
    client = Client(find_server(api_url, api_key, data_dir))
    try:
        job = client.send("POST", "/v1/jobs", o.job_fields(context.params), idempotency_key=idempotency_key)
    except Invalid as error:
        raise o.in_options(error) from None
    _print_job(client, job, as_json, f'Created "{job["name"]}".')


@app.command("list")
def list_jobs(
    status: Annotated[Literal["active", "paused", "completed"] | None, typer.Option("--status")] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-q", metavar="TEXT", help="Part of the name or the URL.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """List jobs, newest first."""
    client = Client(find_server(api_url, api_key, data_dir))
    page = client.pages("/v1/jobs", limit=None if everything else limit, status=status, tag=tag, q=search)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        if status or tag or search:
            say("No job matches.")
        else:
            say(f"There are no jobs yet. Make one: {program()} jobs create --help")
        return
    _print_jobs(page["items"])
    if page["next_cursor"] is not None:
        note(f"\nThere are more than these {plural(len(page['items']), 'job')}: --all shows all, --limit N shows N.")


@app.command()
def show(
    job: o.JobName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Show one job with all that was set, its next runs and its figures."""
    client = Client(find_server(api_url, api_key, data_dir))
    _print_job(client, find_job(client, job), as_json)


@app.command()
def edit(
    context: typer.Context,
    job: o.JobName,
    name: o.Name = None,
    schedule: o.Schedule = None,
    url: o.Url = None,
    timezone: o.Timezone = None,
    catchup: o.Catchup = None,
    catchup_window: o.CatchupWindow = None,
    overlap: o.Overlap = None,
    method: o.Method = None,
    header: o.Headers = None,
    body: o.Body = None,
    timeout: o.Timeout = None,
    success_status: o.SuccessStatus = None,
    body_contains: o.BodyContains = None,
    body_not_contains: o.BodyNotContains = None,
    attempts: o.Attempts = None,
    backoff: o.Backoff = None,
    delay: o.Delay = None,
    on_lost: o.OnLost = None,
    tag: o.Tags = None,
    clear: o.Clear = None,
    as_json: o.AsJson = False,
    api_url: o.JobsApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Change a job. What you leave out stays as it is; what is running goes on as it was.

    --header, --tag and --success-status replace all that were there. In parentheses: the defaults of a new job.
    """
    change = o.job_fields(context.params)
    if not change:
        raise Invalid("There is nothing to change. Give at least one option, such as --schedule or --clear body.")
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_job(client, job)
    try:
        edited = client.send("PATCH", f"/v1/jobs/{found['id']}", change)
    except Invalid as error:
        raise o.in_options(error) from None
    _print_job(client, edited, as_json, f'Changed "{edited["name"]}".')


@app.command()
def pause(
    job: o.JobName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Stop a job's schedule and cancel waiting retries. A request under way goes on."""
    client = Client(find_server(api_url, api_key, data_dir))
    paused = client.send("POST", f"/v1/jobs/{find_job(client, job)['id']}/pause")
    if as_json:
        print_json(paused)
    else:
        say(f'Paused "{paused["name"]}". It runs no more until you resume it.')


@app.command()
def resume(
    job: o.JobName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Let a paused job go on with its next slot from now. Paused time is never made up for."""
    client = Client(find_server(api_url, api_key, data_dir))
    resumed = client.send("POST", f"/v1/jobs/{find_job(client, job)['id']}/resume")
    if as_json:
        print_json(resumed)
    else:
        say(f'Resumed "{resumed["name"]}". Next run: {_next_words(resumed)}.')


@app.command()
def trigger(
    job: o.JobName,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Until it ends; exit code 1 unless it succeeded.")] = False,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Run a job now, beside its schedule, which does not move. The overlap policy applies."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_job(client, job)
    run = client.send("POST", f"/v1/jobs/{found['id']}/trigger", idempotency_key=idempotency_key)
    if not as_json:
        say(f'Triggered "{found["name"]}": run {run["id"]}')
    if wait:
        run = runs.wait_for_end(client, run["id"])
    if as_json:
        print_json(run)
    elif wait:
        runs.print_end(run)
    else:
        say(f"See what came of it: {program()} runs show {run['id']}")
    if wait and run["status"] != "succeeded":
        raise typer.Exit(FAILED)


@app.command()
def delete(
    job: o.JobName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Delete a job and cancel waiting retries. Asks first when it runs on a terminal."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_job(client, job)
    if not yes and sys.stdin.isatty() and not typer.confirm(clean(f'Delete "{found["name"]}"?'), err=True):
        note("Nothing was deleted.")
        raise typer.Exit(FAILED)
    client.send("DELETE", f"/v1/jobs/{found['id']}")
    if as_json:
        print_json({"id": found["id"], "name": found["name"], "deleted": True})
    else:
        say(f'Deleted "{found["name"]}". Its runs can still be read by their ids.')


@app.command("runs")
def list_runs(
    job: o.JobName,
    status: Annotated[runs.Status | None, typer.Option("--status", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print each run as it ends, until Ctrl-C.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """List the runs of a job, latest first; with --follow, print each one as it ends.

    With --follow --json there is one JSON object a line.
    """
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_job(client, job)
    if follow:
        runs.follow(client, found, status=status, limit=limit, as_json=as_json)
    else:
        runs.print_runs(client, found, status=status, limit=limit, as_json=as_json)


def _print_jobs(jobs: list[Json]) -> None:
    """Two lines a job where eighty columns are all there is, one line on a wide terminal."""
    now = SystemClock().now()
    if output().width >= WIDE:
        made = table("NAME", "STATUS", "SCHEDULE", f"NEXT RUN ({times.here(now)})", "LAST RUN", "ID")
        for job in jobs:
            when, at = _next_cells(job, now)
            result, ago = _last_cells(job, now)
            made.add_row(
                Text(clean(job["name"])),
                word(job["status"]),
                Text(clean(_schedule_words(job))),
                Text(f"{when}, {at}" if at else when),
                Text.assemble(result, f" {ago}"),
                Text(job["id"], no_wrap=True),
            )
    else:
        made = table("NAME / ID", "SCHEDULE / STATUS", f"NEXT ({times.here(now)})", "LAST RUN")
        made.columns[0].overflow = "ellipsis"
        made.columns[0].no_wrap = True
        made.columns[0].min_width = 36
        for job in jobs:
            made.add_row(
                lines([job["name"], Text(job["id"], style="dim")]),
                lines([job["schedule"], word(job["status"])]),
                lines(_next_cells(job, now)),
                lines(_last_cells(job, now)),
            )
    print_table(made)


def _next_cells(job: Json, now: int) -> tuple[str, str]:
    if job["next_run_at"] is None:
        return "-", ""
    at = times.instant(job["next_run_at"])
    return times.relative(at, now), times.short(at, now)


def _last_cells(job: Json, now: int) -> tuple[Text, str]:
    last = job["last_run"]
    if last is None:
        return Text("-"), ""
    failures = job["stats"]["consecutive_failures"]
    result = word(last["status"])
    if last["status"] != "succeeded" and failures > 1:
        result.append(f" ×{failures}")
    return result, times.relative(times.instant(last["finished_at"]), now)


def _schedule_words(job: Json) -> str:
    """As it was typed, with its zone where that says something."""
    written = str(job["schedule"])
    return written if job["timezone"] == "UTC" else f"{written} ({job['timezone']})"


def _next_words(job: Json) -> str:
    now = SystemClock().now()
    if job["next_run_at"] is None:
        return "none"
    at = times.instant(job["next_run_at"])
    return f"{times.relative(at, now)}, {times.full(at)}"


def _print_job(client: Client, job: Json, as_json: bool, heading: str | None = None) -> None:
    if as_json:
        print_json(job)
        return
    say(heading or str(job["name"]), style="bold")
    print_fields(_job_fields(job, _next_runs(client, job)))
    for warning in job["warnings"]:
        say(f"warning: {warning}", style="yellow")


def _next_runs(client: Client, job: Json) -> list[int]:
    """The next slots: the one the server has, and those that would follow it."""
    if job["next_run_at"] is None:
        return []
    first = job["next_run_at"]
    following: list[str] = []
    if job["schedule_kind"] != "once":
        question = {"schedule": job["schedule_cron"] or job["schedule"], "timezone": job["timezone"], "after": first}
        following = client.send("POST", "/v1/schedules/preview", {**question, "count": NEXT_SHOWN - 1})["next"]
    return [times.instant(text) for text in (first, *following)]


def _job_fields(job: Json, next_runs: list[int]) -> list[tuple[str, str | Text]]:
    now = SystemClock().now()
    description = job["description"]
    if job["schedule"] != job["schedule_cron"] and job["schedule_cron"]:
        description = f"{description} = {job['schedule_cron']}"
    fields: list[tuple[str, str | Text]] = [
        ("id", job["id"]),
        ("status", word(job["status"])),
        ("schedule", lines([_schedule_words(job), Text(clean(description), style="dim")])),
        ("next runs", "\n".join(f"{times.full(at)}  {times.relative(at, now)}" for at in next_runs) or "none"),
        ("calls", f"{job['method']} {job['url']}"),
    ]
    if job["headers"]:
        fields.append(("headers", "\n".join(f"{name}: {value}" for name, value in job["headers"].items())))
    if job["body"] is not None:
        fields.append(("body", runs.shortened(job["body"], 400)))
    fields += [
        ("time-out", times.span(job["timeout"])),
        ("success", _success_words(job["success"])),
        ("retries", _retry_words(job["retry"])),
        ("policies", f"overlap {job['overlap']}, catch-up {_catchup_words(job)}, on lost {job['on_lost']}"),
    ]
    if job["tags"]:
        fields.append(("tags", ", ".join(job["tags"])))
    if job["last_run"] is not None:
        last = job["last_run"]
        at = times.full(times.instant(last["finished_at"]))
        fields.append(("last run", Text.assemble(word(last["status"]), f" {at}\nrun {last['id']}")))
    fields.append(("so far", _stats_words(job["stats"])))
    return fields


def _success_words(rule: Json) -> str:
    words = f"status {', '.join(rule['status'])}"
    if rule["body_contains"] is not None:
        words += f", body contains {rule['body_contains']!r}"
    if rule["body_not_contains"] is not None:
        words += f", body does not contain {rule['body_not_contains']!r}"
    return words


def _retry_words(retry: Json) -> str:
    if retry["attempts"] == 1:
        return "none (1 attempt)"
    return f"up to {retry['attempts']} attempts, {retry['backoff']} back-off from {times.span(retry['delay'])}"


def _catchup_words(job: Json) -> str:
    return str(job["catchup"]) + ("" if job["catchup"] == "none" else f" within {times.span(job['catchup_window'])}")


def _stats_words(stats: dict[str, Any]) -> str:
    words = f"{stats['succeeded']:,} succeeded, {stats['failed']:,} failed, {stats['skipped']:,} skipped"
    if stats["average_duration_ms"] is not None:
        words += f"; {times.duration(stats['average_duration_ms'])} on average"
    return words
