"""`0cron jobs ...`: what a person asks of jobs. `runs` lists and follows what came of one."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import typer

from zerocron.cli import notify, runs
from zerocron.cli import options as o
from zerocron.cli.asking import ask_and_delete
from zerocron.cli.client import Client, find_server
from zerocron.cli.errors import FAILED
from zerocron.cli.job_text import next_words, print_explanation, print_job, print_jobs
from zerocron.cli.names import find_job
from zerocron.cli.program import program
from zerocron.cli.run_text import print_end
from zerocron.cli.show import note, plural, print_json, print_result, say
from zerocron.core.errors import Invalid

app = typer.Typer(help="Create jobs, look at them, and tell them what to do.")


@app.command(
    epilog="Example: 0cron jobs create --name backup --schedule '30 2 * * *' --tz Europe/Paris "
    "--url https://example.com/backup --attempts 3"
)
@o.with_options(o.JOB_OPTIONS, behind="url")
def create(
    context: typer.Context,
    name: o.NewName,
    schedule: o.NewSchedule,
    url: o.NewUrl,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
    api_url: o.JobsApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
    **_fields: Any,
) -> None:
    """Create a job. It starts to run at its next slot.

    Lengths of time are seconds, or 30s, 5m, 2h, 1d. Defaults are in parentheses.
    """
    client = Client(find_server(api_url, api_key, data_dir))
    try:
        document = notify.with_ids(client, o.job_fields(context.params))
        job = client.send("POST", "/v1/jobs", document, idempotency_key=idempotency_key)
    except Invalid as error:
        raise o.in_options(error) from None
    print_job(client, job, as_json, f'Created "{job["name"]}".')


@app.command("list")
@o.with_server
def list_jobs(
    client: Client,
    status: Annotated[
        Literal["active", "paused", "disabled", "completed"] | None, typer.Option("--status", help="Only these.")
    ] = None,
    tag: o.WithTag = None,
    search: Annotated[
        str | None, typer.Option("--search", "-q", metavar="TEXT", help="Part of the name or the URL.")
    ] = None,
    limit: o.Limit = 50,
    everything: o.Everything = False,
    as_json: o.AsJson = False,
) -> None:
    """List jobs, newest first."""
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
    print_jobs(page["items"])
    if page["next_cursor"] is not None:
        note(f"\nThere are more than these {plural(len(page['items']), 'job')}: --all shows all, --limit N shows N.")


@app.command()
@o.with_server
def show(client: Client, job: o.JobName, as_json: o.AsJson = False) -> None:
    """Show one job with all that was set, its next runs and its figures."""
    print_job(client, find_job(client, job), as_json)


@app.command(epilog="Example: 0cron jobs edit backup --schedule '0 3 * * *' --timeout 5m")
@o.with_options(o.JOB_OPTIONS, behind="url")
def edit(
    context: typer.Context,
    job: o.JobName,
    name: o.Name = None,
    schedule: o.Schedule = None,
    url: o.Url = None,
    clear: o.Clear = None,
    as_json: o.AsJson = False,
    api_url: o.JobsApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
    **_fields: Any,
) -> None:
    """Change a job. What you leave out stays as it is; what is running goes on as it was.

    What is repeatable replaces all that was there. In parentheses: the defaults of a new job.
    """
    change = o.job_fields(context.params)
    if not change:
        raise Invalid("There is nothing to change. Give at least one option, such as --schedule or --clear body.")
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_job(client, job)
    try:
        edited = client.send("PATCH", f"/v1/jobs/{found['id']}", notify.with_ids(client, change))
    except Invalid as error:
        raise o.in_options(error) from None
    print_job(client, edited, as_json, f'Changed "{edited["name"]}".')


@app.command()
@o.with_server
def pause(client: Client, job: o.JobName, as_json: o.AsJson = False) -> None:
    """Stop a job's schedule and cancel waiting retries. A request under way goes on."""
    paused = client.send("POST", f"/v1/jobs/{find_job(client, job)['id']}/pause")
    print_result(paused, as_json, f'Paused "{paused["name"]}". It runs no more until you resume it.')


@app.command()
@o.with_server
def resume(client: Client, job: o.JobName, as_json: o.AsJson = False) -> None:
    """Let a paused or disabled job go on with its next slot from now. Paused time is never made up for."""
    resumed = client.send("POST", f"/v1/jobs/{find_job(client, job)['id']}/resume")
    print_result(resumed, as_json, f'Resumed "{resumed["name"]}". Next run: {next_words(resumed)}.')


@app.command()
@o.with_server
def trigger(
    client: Client,
    job: o.JobName,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Until it ends; exit code 1 unless it succeeded.")] = False,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
) -> None:
    """Run a job now, beside its schedule, which does not move. The overlap policy applies."""
    found = find_job(client, job)
    run = client.send("POST", f"/v1/jobs/{found['id']}/trigger", idempotency_key=idempotency_key)
    if not as_json:
        say(f'Triggered "{found["name"]}": run {run["id"]}')
    if wait:
        run = runs.wait_for_end(client, run["id"])
    if as_json:
        print_json(run)
    elif wait:
        print_end(run)
    else:
        say(f"See what came of it: {program()} runs show {run['id']}")
    if wait and run["status"] != "succeeded":
        raise typer.Exit(FAILED)


@app.command(epilog="Example: 0cron jobs explain backup --at 2027-01-01T02:30:00+01:00")
@o.with_server
def explain(
    client: Client,
    job: o.JobName,
    at: Annotated[
        str | None, typer.Option("--at", metavar="INSTANT", help="RFC 3339, such as 2027-01-01T09:00:00Z; else now.")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Say why a job did or did not run at an instant, with the evidence."""
    query = {} if at is None else {"at": at}
    try:
        found = client.get(f"/v1/jobs/{find_job(client, job)['id']}/explain", **query)
    except Invalid as error:
        raise o.in_options(error) from None
    if as_json:
        print_json(found)
    else:
        print_explanation(found)


@app.command()
@o.with_server
def delete(client: Client, job: o.JobName, yes: o.Yes = False, as_json: o.AsJson = False) -> None:
    """Delete a job and cancel waiting retries. Asks first when it runs on a terminal."""
    ask_and_delete(
        client,
        "/v1/jobs",
        find_job(client, job),
        yes=yes,
        as_json=as_json,
        then=" Its runs can still be read by their ids.",
    )


@app.command("runs", epilog="Example: 0cron jobs runs backup --follow")
@o.with_server
def list_runs(
    client: Client,
    job: o.JobName,
    status: Annotated[
        runs.Status | None, typer.Option("--status", metavar="STATUS", help=f"Only {', '.join(get_args(runs.Status))}.")
    ] = None,
    limit: o.Limit = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print each run as it ends, until Ctrl-C.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """List the runs of a job, latest first; with --follow, print each one as it ends.

    With --follow --json there is one JSON object a line.
    """
    found = find_job(client, job)
    if follow:
        runs.follow(client, found, status=status, limit=limit, as_json=as_json)
    else:
        runs.print_runs(client, found, status=status, limit=limit, as_json=as_json)
