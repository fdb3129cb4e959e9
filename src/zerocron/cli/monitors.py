"""`0cron monitors ...`: what a person asks of monitors. `0cron ping` and `0cron exec` report for them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from zerocron.cli import notify, times
from zerocron.cli import options as o
from zerocron.cli.asking import ask_and_delete
from zerocron.cli.client import Client, find_server
from zerocron.cli.job_text import NEXT_SHOWN, schedule_words, slot_lines, slots_after
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
    print_result,
    print_table,
    say,
    shortened,
    table,
    word,
)
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid
from zerocron.core.instants import to_rfc3339
from zerocron.core.spans import span

app = typer.Typer(help="Watch your own jobs: create monitors, look at them, and tell them what to do.")

BODY_CHARACTERS_SHOWN = 200

MonitorName = Annotated[
    str,
    typer.Argument(metavar="MONITOR", help="Its exact name, its id, or the beginning of its id.", show_default=False),
]
_expects = partial(typer.Option, rich_help_panel="What it expects")
_schedule = partial(
    _expects,
    "--schedule",
    metavar="TEXT",
    help="A length ('every 5 minutes', 'every day') from ping to ping, or times ('every weekday at 9am', cron).",
)
NewSchedule = Annotated[str, _schedule(show_default=False)]
Schedule = Annotated[str | None, _schedule()]
_length = partial(_expects, **o.LENGTH, show_default=False)
MONITOR_OPTIONS: Mapping[str, Any] = {
    "timezone": o.Timezone,
    "language": o.Language,
    "dst": o.Dst,
    "day_match": o.DayMatch,
    "grace": Annotated[float | None, _length("--grace", help="How long a ping may be overdue.  (5m)")],
    "max_duration": Annotated[float | None, _length("--max-duration", help="How long a run may take.  (the grace)")],
    "min_duration": Annotated[float | None, _length("--min-duration", help="A run that ends sooner has failed.")],
    "post_only": Annotated[bool | None, _expects("--post-only/--any-method", help="Take POST alone.")],
    "resume_on_ping": Annotated[
        bool | None, _expects("--resume-on-ping/--stay-paused", help="What a success does when it is paused.")
    ],
    "notify_channel": notify.Channels,
    "notify_nobody": notify.Nobody,
    "notify_on": notify.MonitorOn,
    "remind_every": notify.RemindEvery,
    "tag": o.Tags,
}
"""What `create` and `edit` have in common, in the order of their help."""


class Clearable(StrEnum):
    """What a monitor can do without."""

    MAX_DURATION = "max-duration"
    MIN_DURATION = "min-duration"
    TAGS = "tags"
    NOTIFY_CHANNELS = "notify-channels"
    REMIND_EVERY = "remind-every"


_CLEARED: o.Cleared = {
    Clearable.MAX_DURATION: (("max_duration_seconds",), None),
    Clearable.MIN_DURATION: (("min_duration_seconds",), None),
    Clearable.TAGS: (("tags",), []),
    Clearable.NOTIFY_CHANNELS: (("notify", "channels"), None),
    Clearable.REMIND_EVERY: (("notify", "remind_every"), None),
}
_FIELDS: o.Fields = {
    "name": ("name",),
    "schedule": ("schedule",),
    "timezone": ("timezone",),
    "language": ("language",),
    "dst": ("dst",),
    "day_match": ("day_match",),
    "grace": ("grace_period_seconds",),
    "max_duration": ("max_duration_seconds",),
    "min_duration": ("min_duration_seconds",),
    "post_only": ("post_only",),
    "resume_on_ping": ("resume_on_ping",),
    "tag": ("tags",),
    **notify.FIELDS,
}
_READERS: Mapping[str, Any] = {
    "grace": o.whole,
    "max_duration": o.whole,
    "min_duration": o.whole,
    "remind_every": o.whole,
    "notify_channel": list,
    "notify_on": list,
    "tag": list,
}


@app.command(epilog="Example: 0cron monitors create --name backup --schedule 'every day at 2am' --tz Europe/Paris")
@o.with_server
@o.with_options(MONITOR_OPTIONS, behind="schedule")
def create(
    client: Client,
    context: typer.Context,
    name: o.NewName,
    schedule: NewSchedule,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
    **_fields: Any,
) -> None:
    """Create a monitor. It waits for its first ping, and from then on for each expected one.

    Lengths of time are seconds, or 30s, 5m, 2h, 1d. Defaults are in parentheses.
    """
    try:
        document = notify.with_ids(client, _told(context.params))
        made = client.send("POST", "/v1/monitors", document, idempotency_key=idempotency_key)
    except Invalid as error:
        raise o.in_options(error, _FIELDS) from None
    _print_monitor(client, made, as_json, f'Created "{made["name"]}".')
    if not as_json:
        say(f"\nLet the job report:   curl -fsS -m 10 --retry 5 -o /dev/null {made['ping_url']}")
        say(f"Or run it so:         {program()} exec {made['ping_url']} -- COMMAND")


@app.command("list")
@o.with_server
def list_monitors(
    client: Client,
    status: Annotated[Literal["active", "paused"] | None, typer.Option("--status", help="Only these.")] = None,
    health: Annotated[
        Literal["new", "up", "down"] | None, typer.Option("--health", help="Only these; up has the late ones, too.")
    ] = None,
    tag: o.WithTag = None,
    search: Annotated[str | None, typer.Option("--search", "-q", metavar="TEXT", help="Part of the name.")] = None,
    limit: o.Limit = 50,
    everything: o.Everything = False,
    as_json: o.AsJson = False,
) -> None:
    """List monitors, newest first."""
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
@o.with_server
def show(client: Client, monitor: MonitorName, as_json: o.AsJson = False) -> None:
    """Show one monitor with all that was set, where it stands, and its ping URL."""
    _print_monitor(client, find_monitor(client, monitor), as_json)


@app.command(epilog="Example: 0cron monitors edit backup --grace 1h")
@o.with_options(MONITOR_OPTIONS, behind="schedule")
def edit(
    context: typer.Context,
    monitor: MonitorName,
    name: o.Name = None,
    schedule: Schedule = None,
    clear: Annotated[list[Clearable] | None, o.clear_of(Clearable)] = None,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
    **_fields: Any,
) -> None:
    """Change a monitor. What you leave out stays as it is; its health is judged anew. --tag replaces all tags."""
    change = _told(context.params)
    if not change:
        raise Invalid("There is nothing to change. Give at least one option, such as --grace 1h.")
    client = Client(find_server(api_url, api_key, data_dir))
    found = find_monitor(client, monitor)
    try:
        edited = client.send("PATCH", f"/v1/monitors/{found['id']}", notify.with_ids(client, change))
    except Invalid as error:
        raise o.in_options(error, _FIELDS) from None
    _print_monitor(client, edited, as_json, f'Changed "{edited["name"]}".')


@app.command()
@o.with_server
def pause(
    client: Client,
    monitor: MonitorName,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="INSTANT", help="It resumes itself then, such as 2027-01-02T09:00:00Z."),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Judge a monitor no more, for good or until an instant. Pings are still taken."""
    found = find_monitor(client, monitor)
    paused = client.send("POST", f"/v1/monitors/{found['id']}/pause", {"until": until})
    if as_json:
        print_json(paused)
        return
    end = "you resume it" if until is None else times.full(times.instant(paused["paused_until"]))
    ping = " or its job reports a success" if paused["resume_on_ping"] else ""
    say(f'Paused "{paused["name"]}" until {end}{ping}.')


@app.command()
@o.with_server
def resume(client: Client, monitor: MonitorName, as_json: o.AsJson = False) -> None:
    """Judge a monitor again, from now on."""
    resumed = client.send("POST", f"/v1/monitors/{find_monitor(client, monitor)['id']}/resume")
    next_ping = times.when(resumed["expected_at"], SystemClock().now())
    print_result(resumed, as_json, f'Resumed "{resumed["name"]}". Next ping expected: {next_ping}.')


@app.command()
@o.with_server
def rotate(client: Client, monitor: MonitorName, as_json: o.AsJson = False) -> None:
    """Give a monitor a new token. The one before opens nothing any more."""
    rotated = client.send("POST", f"/v1/monitors/{find_monitor(client, monitor)['id']}/rotate-token")
    print_result(rotated, as_json, f'"{rotated["name"]}" has a new ping URL:\n\n  {rotated["ping_url"]}')


@app.command()
@o.with_server
def delete(client: Client, monitor: MonitorName, yes: o.Yes = False, as_json: o.AsJson = False) -> None:
    """Delete a monitor with its history. Asks first when it runs on a terminal."""
    ask_and_delete(client, "/v1/monitors", find_monitor(client, monitor), yes=yes, as_json=as_json)


@app.command("pings")
@o.with_server
def list_pings(
    client: Client,
    monitor: MonitorName,
    kind: Annotated[
        Literal["success", "start", "fail", "log"] | None, typer.Option("--kind", help="Only these.")
    ] = None,
    limit: o.Limit = 20,
    as_json: o.AsJson = False,
) -> None:
    """List the pings of a monitor, latest first."""
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
@o.with_server
def list_flips(client: Client, monitor: MonitorName, limit: o.Limit = 20, as_json: o.AsJson = False) -> None:
    """List when a monitor went up and down, latest first."""
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
    return o.told(given, _FIELDS, _READERS, _CLEARED)


def _shown(monitor: Json) -> str:
    return "paused" if monitor["status"] == "paused" else str(monitor["health"])


def _print_monitors(monitors: list[Json]) -> None:
    now = SystemClock().now()
    made = table("NAME / ID", "HEALTH", "LAST PING", "EXPECTED / SCHEDULE")
    made.columns[0].min_width = 36
    made.columns[1].no_wrap = made.columns[2].no_wrap = True  # in 80 columns the last one folds, and none is lost
    for monitor in monitors:
        last, expected = monitor["last_ping_at"], monitor["expected_at"]
        made.add_row(
            lines([monitor["name"], Text(monitor["id"], style="dim")]),
            word(_shown(monitor)),
            Text("-" if last is None else times.relative(times.instant(last), now)),
            lines(
                [
                    "-" if expected is None else times.relative(times.instant(expected), now),
                    Text(clean(monitor["schedule"]), style="dim"),
                ]
            ),
        )
    print_table(made)


def _print_monitor(client: Client, monitor: Json, as_json: bool, heading: str | None = None) -> None:
    if as_json:
        print_json(monitor)
        return
    now = SystemClock().now()
    since = times.full(times.instant(monitor["health_since"]))
    why = f"\n{monitor['explanation']}" if monitor["explanation"] else ""
    meaning, schedule = monitor["description"], schedule_words(monitor)
    fields: list[tuple[str, str | Text]] = [
        ("id", monitor["id"]),
        ("health", Text.assemble(word(_shown(monitor)), f" since {since}{why}")),
        ("schedule", lines([schedule, *([Text(clean(meaning), style="dim")] if meaning != schedule else [])])),
        ("grace", span(monitor["grace_period_seconds"])),
    ]
    for name, key in (("longest run", "max_duration_seconds"), ("shortest run", "min_duration_seconds")):
        if monitor[key] is not None:
            fields.append((name, span(monitor[key])))
    if monitor["schedule_kind"] == "cron":  # a period has no slots: it counts from the last success
        fields.append(("next slots", slot_lines(slots_after(client, monitor, to_rfc3339(now), NEXT_SHOWN), now)))
    fields += [("expected", times.when(monitor["expected_at"], now)), ("down", times.when(monitor["down_at"], now))]
    if monitor["last_ping_at"] is not None:
        fields.append(("last ping", f"{monitor['last_ping_kind']}, {times.when(monitor['last_ping_at'], now)}"))
    if monitor["paused_until"] is not None:
        fields.append(("paused until", times.when(monitor["paused_until"], now)))
    fields.append(("tells", notify.words(monitor["notify"])))
    if monitor["tags"]:
        fields.append(("tags", ", ".join(monitor["tags"])))
    fields.append(("pings", f"{monitor['pings']:,}"))
    say(heading or str(monitor["name"]), style="bold")
    print_fields(fields)
    say(f"\n  {monitor['ping_url']}")  # on a line of its own, whole: people copy it
    for warning in monitor["warnings"]:
        say(f"warning: {warning}", style="yellow")
