"""`0cron monitors ...`: what a person asks of monitors. `0cron ping` and `0cron exec` report for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.client import Client, find_server
from zerocron.cli.errors import FAILED
from zerocron.cli.names import find_monitor
from zerocron.cli.program import program
from zerocron.cli.show import (
    Json,
    clean,
    lines,
    note,
    plural,
    print_fields,
    print_json,
    print_table,
    say,
    shortened,
    table,
    word,
)
from zerocron.clock import SystemClock
from zerocron.core.errors import FieldError, Invalid

app = typer.Typer(help="Watch your own jobs: create monitors, look at them, and tell them what to do.")

BODY_CHARACTERS_SHOWN = 200
_EXPECTS = "What it expects"

MonitorName = Annotated[
    str,
    typer.Argument(metavar="MONITOR", help="Its exact name, its id, or the beginning of its id.", show_default=False),
]
_SCHEDULE_HELP = "A length ('every 5 minutes', 'every day') from ping to ping, or times ('every weekday at 9am', cron)."
NewSchedule = Annotated[
    str,
    typer.Option("--schedule", metavar="TEXT", help=_SCHEDULE_HELP, rich_help_panel=_EXPECTS, show_default=False),
]
Schedule = Annotated[
    str | None, typer.Option("--schedule", metavar="TEXT", help=_SCHEDULE_HELP, rich_help_panel=_EXPECTS)
]


def _length(option: str, text: str) -> Any:
    return typer.Option(
        option, metavar="SECONDS", parser=times.read_seconds, help=text, rich_help_panel=_EXPECTS, show_default=False
    )


Grace = Annotated[float | None, _length("--grace", "How long a ping may be overdue.  (5m)")]
MaxDuration = Annotated[float | None, _length("--max-duration", "How long a run may take.  (the grace)")]
MinDuration = Annotated[float | None, _length("--min-duration", "A run that ends sooner has failed.")]
PostOnly = Annotated[
    bool | None, typer.Option("--post-only/--any-method", help="Take POST alone.", rich_help_panel=_EXPECTS)
]
ResumeOnPing = Annotated[
    bool | None,
    typer.Option(
        "--resume-on-ping/--stay-paused", help="What a success does when it is paused.", rich_help_panel=_EXPECTS
    ),
]


class Clearable(StrEnum):
    """What a monitor can do without."""

    MAX_DURATION = "max-duration"
    MIN_DURATION = "min-duration"
    TAGS = "tags"


_CLEARED: Mapping[Clearable, Json] = {
    Clearable.MAX_DURATION: {"max_duration_seconds": None},
    Clearable.MIN_DURATION: {"min_duration_seconds": None},
    Clearable.TAGS: {"tags": []},
}
_FIELDS: Mapping[str, str] = {
    "name": "name",
    "schedule": "schedule",
    "timezone": "timezone",
    "language": "language",
    "dst": "dst",
    "day_match": "day_match",
    "grace": "grace_period_seconds",
    "max_duration": "max_duration_seconds",
    "min_duration": "min_duration_seconds",
    "post_only": "post_only",
    "resume_on_ping": "resume_on_ping",
    "tag": "tags",
}
"""The parameter of a command, and the API's name for it."""


@app.command(epilog="Example: 0cron monitors create --name backup --schedule 'every day at 2am' --tz Europe/Paris")
def create(
    context: typer.Context,
    name: o.NewName,
    schedule: NewSchedule,
    timezone: o.Timezone = None,
    language: o.Language = None,
    dst: o.Dst = None,
    day_match: o.DayMatch = None,
    grace: Grace = None,
    max_duration: MaxDuration = None,
    min_duration: MinDuration = None,
    post_only: PostOnly = None,
    resume_on_ping: ResumeOnPing = None,
    tag: o.Tags = None,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Create a monitor. It waits for its first ping, and from then on for each expected one.

    Lengths of time are seconds, or 30s, 5m, 2h, 1d. Defaults are in parentheses.
    """
    client = Client(find_server(api_url, api_key, data_dir))
    try:
        made = client.send("POST", "/v1/monitors", _told(context.params), idempotency_key=idempotency_key)
    except Invalid as error:
        raise _in_options(error) from None
    _print_monitor(made, as_json, f'Created "{made["name"]}".')
    if not as_json:
        say(f"\nLet the job report:   curl -fsS -m 10 --retry 5 -o /dev/null {made['ping_url']}")
        say(f"Or run it so:         {program()} exec {made['ping_url']} -- COMMAND")


@app.command("list")
def list_monitors(
    status: Annotated[Literal["active", "paused"] | None, typer.Option("--status", help="Only these.")] = None,
    health: Annotated[
        Literal["new", "up", "down"] | None, typer.Option("--health", help="Only these; up has the late ones, too.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only those with it.")] = None,
    search: Annotated[str | None, typer.Option("--search", "-q", metavar="TEXT", help="Part of the name.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """List monitors, newest first."""
    client = Client(find_server(api_url, api_key, data_dir))
    page = client.pages(
        "/v1/monitors", limit=None if everything else limit, status=status, health=health, tag=tag, q=search
    )
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        filtered = status or health or tag or search
        say("No monitor matches." if filtered else f"There are none yet. Make one: {program()} monitors create --help")
        return
    _print_monitors(page["items"])
    if page["next_cursor"] is not None:
        note(f"\nThere are more than these {plural(len(page['items']), 'monitor')}: --all shows all.")


@app.command()
def show(
    monitor: MonitorName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Show one monitor with all that was set, where it stands, and its ping URL."""
    _print_monitor(find_monitor(Client(find_server(api_url, api_key, data_dir)), monitor), as_json)


@app.command(epilog="Example: 0cron monitors edit backup --grace 1h")
def edit(
    context: typer.Context,
    monitor: MonitorName,
    name: o.Name = None,
    schedule: Schedule = None,
    timezone: o.Timezone = None,
    language: o.Language = None,
    dst: o.Dst = None,
    day_match: o.DayMatch = None,
    grace: Grace = None,
    max_duration: MaxDuration = None,
    min_duration: MinDuration = None,
    post_only: PostOnly = None,
    resume_on_ping: ResumeOnPing = None,
    tag: o.Tags = None,
    clear: Annotated[
        list[Clearable] | None,
        typer.Option("--clear", metavar="PART", help=f"Take away: {', '.join(Clearable)}. Repeatable."),
    ] = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Change a monitor. What you leave out stays as it is; its health is judged anew. --tag replaces all tags."""
    change = _told(context.params)
    for part in clear or ():
        change |= _CLEARED[part]
    if not change:
        raise Invalid("There is nothing to change. Give at least one option, such as --grace 1h.")
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    try:
        edited = client.send("PATCH", f"/v1/monitors/{found['id']}", change)
    except Invalid as error:
        raise _in_options(error) from None
    _print_monitor(edited, as_json, f'Changed "{edited["name"]}".')


@app.command()
def pause(
    monitor: MonitorName,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="INSTANT", help="It resumes itself then, such as 2027-01-02T09:00:00Z."),
    ] = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Judge a monitor no more, for good or until an instant. Pings are still taken."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    paused = client.send("POST", f"/v1/monitors/{found['id']}/pause", {"until": until})
    if as_json:
        print_json(paused)
        return
    end = "you resume it" if until is None else times.full(times.instant(paused["paused_until"]))
    ping = " or its job reports a success" if paused["resume_on_ping"] else ""
    say(f'Paused "{paused["name"]}" until {end}{ping}.')


@app.command()
def resume(
    monitor: MonitorName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Judge a monitor again, from now on."""
    client = Client(find_server(api_url, api_key, data_dir))
    resumed = client.send("POST", f"/v1/monitors/{find_monitor(client, monitor)['id']}/resume")
    if as_json:
        print_json(resumed)
    else:
        say(f'Resumed "{resumed["name"]}". Next ping expected: {_when(resumed["expected_at"])}.')


@app.command()
def rotate(
    monitor: MonitorName,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Give a monitor a new token. The one before opens nothing any more."""
    client = Client(find_server(api_url, api_key, data_dir))
    rotated = client.send("POST", f"/v1/monitors/{find_monitor(client, monitor)['id']}/rotate-token")
    if as_json:
        print_json(rotated)
    else:
        say(f'"{rotated["name"]}" has a new ping URL:\n\n  {rotated["ping_url"]}')


@app.command()
def delete(
    monitor: MonitorName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Delete a monitor with its history. Asks first when it runs on a terminal."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    if not yes and sys.stdin.isatty() and not typer.confirm(clean(f'Delete "{found["name"]}"?'), err=True):
        note("Nothing was deleted.")
        raise typer.Exit(FAILED)
    client.send("DELETE", f"/v1/monitors/{found['id']}")
    if as_json:
        print_json({"id": found["id"], "name": found["name"], "deleted": True})
    else:
        say(f'Deleted "{found["name"]}".')


@app.command("pings")
def list_pings(
    monitor: MonitorName,
    kind: Annotated[
        Literal["success", "start", "fail", "log"] | None, typer.Option("--kind", help="Only these.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")] = 20,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """List the pings of a monitor, latest first."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    page = client.pages(f"/v1/monitors/{found['id']}/pings", limit=limit, kind=kind)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say("No ping came yet.")
        return
    made = table("#", "KIND", f"RECEIVED ({times.here(SystemClock().now())})", "TOOK", "FROM", "MESSAGE")
    for ping in page["items"]:
        kind_word = word(ping["kind"])
        if ping["exit_code"] is not None:
            kind_word.append(f" {ping['exit_code']}")
        made.add_row(
            Text(str(ping["number"])),
            kind_word,
            Text(times.row(times.instant(ping["received_at"]))),
            Text("-" if ping["duration_ms"] is None else times.duration(ping["duration_ms"])),
            Text(clean(ping["source"])),
            Text(clean(shortened(ping["body"] or "", BODY_CHARACTERS_SHOWN))),
        )
    print_table(made)


@app.command("flips")
def list_flips(
    monitor: MonitorName,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")] = 20,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """List when a monitor went up and down, latest first."""
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    page = client.pages(f"/v1/monitors/{found['id']}/flips", limit=limit)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say("It has not changed yet.")
        return
    made = table(f"AT ({times.here(SystemClock().now())})", "BEFORE", "AFTER", "LASTED", "WHY")
    for flip in page["items"]:
        made.add_row(
            Text(times.row(times.instant(flip["at"]))),
            word(flip["before"]),
            word(flip["after"]),
            Text(times.duration(flip["lasted_ms"])),
            Text(flip["explanation"]),
        )
    print_table(made)


def _told(given: Mapping[str, Any]) -> Json:
    """What the API is told, from the parameters of a command; those that were not given are left out."""
    told: Json = {}
    for parameter, field in _FIELDS.items():
        value = given.get(parameter)
        if value is None or value in ([], ()):
            continue
        told[field] = list(value) if parameter == "tag" else _whole(value)
    return told


def _whole(value: Any) -> Any:
    """A whole number without its point: these fields of the API are integers."""
    return int(value) if isinstance(value, float) and value == int(value) else value


def _in_options(error: Invalid) -> Invalid:
    """The refusal with the names of options for the names of fields."""
    names = {field: "--" + parameter.replace("_", "-") for parameter, field in _FIELDS.items()}
    message = error.message
    for fault in error.fields:
        first = fault.field.split(".")[0]
        if fault.field and message.startswith(f"{fault.field}: "):
            message = f"{names.get(first, first)}: {message.removeprefix(f'{fault.field}: ')}"
            break
    fields = [FieldError(names.get(fault.field.split(".")[0], fault.field), fault.message) for fault in error.fields]
    return Invalid(message, fields=fields, suggestions=error.suggestions)


def _shown(monitor: Json) -> str:
    return "paused" if monitor["status"] == "paused" else str(monitor["health"])


def _when(instant: str | None) -> str:
    if instant is None:
        return "none"
    at = times.instant(instant)
    return f"{times.relative(at, SystemClock().now())}, {times.full(at)}"


def _print_monitors(monitors: list[Json]) -> None:
    now = SystemClock().now()
    made = table("NAME / ID", "HEALTH", "SCHEDULE", "LAST PING", "EXPECTED")
    made.columns[0].min_width = 36
    for monitor in monitors:
        last, expected = monitor["last_ping_at"], monitor["expected_at"]
        made.add_row(
            lines([monitor["name"], Text(monitor["id"], style="dim")]),
            word(_shown(monitor)),
            Text(clean(monitor["schedule"])),
            Text("-" if last is None else times.relative(times.instant(last), now)),
            Text("-" if expected is None else times.relative(times.instant(expected), now)),
        )
    print_table(made)


def _print_monitor(monitor: Json, as_json: bool, heading: str | None = None) -> None:
    if as_json:
        print_json(monitor)
        return
    since = times.full(times.instant(monitor["health_since"]))
    why = f"\n{monitor['explanation']}" if monitor["explanation"] else ""
    meaning = monitor["description"]
    schedule = [
        monitor["schedule"] if monitor["timezone"] == "UTC" else f"{monitor['schedule']} ({monitor['timezone']})"
    ]
    fields: list[tuple[str, str | Text]] = [
        ("id", monitor["id"]),
        ("health", Text.assemble(word(_shown(monitor)), f" since {since}{why}")),
        ("schedule", lines([*schedule, *([Text(clean(meaning), style="dim")] if meaning != schedule[0] else [])])),
        ("grace", times.span(monitor["grace_period_seconds"])),
    ]
    for name, key in (("longest run", "max_duration_seconds"), ("shortest run", "min_duration_seconds")):
        if monitor[key] is not None:
            fields.append((name, times.span(monitor[key])))
    fields += [("expected", _when(monitor["expected_at"])), ("down", _when(monitor["down_at"]))]
    if monitor["last_ping_at"] is not None:
        fields.append(("last ping", f"{monitor['last_ping_kind']}, {_when(monitor['last_ping_at'])}"))
    if monitor["paused_until"] is not None:
        fields.append(("paused until", _when(monitor["paused_until"])))
    if monitor["tags"]:
        fields.append(("tags", ", ".join(monitor["tags"])))
    fields.append(("pings", f"{monitor['pings']:,}"))
    say(heading or str(monitor["name"]), style="bold")
    print_fields(fields)
    say(f"\n  {monitor['ping_url']}")  # on a line of its own, whole: people copy it
    for warning in monitor["warnings"]:
        say(f"warning: {warning}", style="yellow")
