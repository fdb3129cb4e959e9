"""`0cron channels ...`: the ways out to people.

A setting that is secret comes from a file, standard input or a prompt that shows nothing, like a secret's value.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.asking import ask_and_delete
from zerocron.cli.client import Client
from zerocron.cli.errors import FAILED
from zerocron.cli.given import read_text
from zerocron.cli.names import find_channel
from zerocron.cli.program import program
from zerocron.cli.show import (
    Json,
    clean,
    lines,
    note,
    print_fields,
    print_json,
    print_result,
    print_table,
    say,
    table,
    word,
)
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid

app = typer.Typer(help="Channels: the ways out to people, who are told when something fails.")

VALUE_BYTES_MAX = 16_384

ChannelName = Annotated[
    str,
    typer.Argument(metavar="CHANNEL", help="Its exact name, its id, or the beginning of its id.", show_default=False),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="'KEY=VALUE'",
        help="A setting; repeatable. KEY=@FILE reads a file, KEY=@- standard input, and secret ones that are left "
        "out are asked for.",
    ),
]


@app.command(epilog="Example: 0cron channels create webhook --name on-call --set url=https://example.com/hooks/alerts")
@o.with_server
def create(
    client: Client,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Which kind; `channels kinds` lists them.")],
    name: o.NewName,
    setting: Settings = None,
    idempotency_key: o.OnceKey = None,
    as_json: o.AsJson = False,
) -> None:
    """Create a channel. From now on it is told of everything that does not name others."""
    config = _config(client, kind, setting or [])
    document = {"kind": kind, "name": name, "config": config}
    try:
        made = client.send("POST", "/v1/channels", document, idempotency_key=idempotency_key)
    except Invalid as error:
        raise _in_settings(error) from None
    _print_channel(made, as_json, f'Created "{made["name"]}".')
    if not as_json:
        say(f"\nSee whether it works:   {program()} channels test {made['id']}")


@app.command("list")
@o.with_server
def list_channels(client: Client, as_json: o.AsJson = False) -> None:
    """List channels, newest first. Their settings are shown to nobody."""
    page = client.pages("/v1/channels", limit=None)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say(f"There are none yet, so nobody is told of anything. Make one: {program()} channels create --help")
        return
    now = SystemClock().now()
    made = table("NAME / ID", "KIND", "STATUS", "LEADS TO", "SENT")
    made.columns[0].min_width = 36
    for channel in page["items"]:
        sent = channel["last_sent_at"]
        made.add_row(
            lines([channel["name"], Text(channel["id"], style="dim")]),
            Text(clean(channel["kind"])),
            word(channel["status"]),
            Text(clean(channel["destination"])),
            Text("never" if sent is None else times.relative(times.instant(sent), now)),
        )
    print_table(made)


@app.command()
@o.with_server
def kinds(client: Client, as_json: o.AsJson = False) -> None:
    """List the kinds of channels there are, and what each asks for."""
    found = client.get("/v1/channel-kinds")
    if as_json:
        print_json(found)
        return
    made = table("KIND", "SETTING", "", "WHAT IT IS")
    for kind in found["items"]:
        for number, field in enumerate(kind["fields"] or [None]):
            made.add_row(
                Text(clean(kind["kind"]) if number == 0 else ""),
                Text("" if field is None else clean(field["name"])),
                Text(_nature(field)),
                Text("" if field is None else clean(field["help"])),
            )
    print_table(made)


@app.command()
@o.with_server
def show(client: Client, channel: ChannelName, as_json: o.AsJson = False) -> None:
    """Show one channel."""
    _print_channel(find_channel(client, channel), as_json)


@app.command(epilog="Example: 0cron channels edit on-call --set url=https://example.com/hooks/other")
@o.with_server
def edit(
    client: Client,
    channel: ChannelName,
    name: o.Name = None,
    setting: Settings = None,
    as_json: o.AsJson = False,
) -> None:
    """Rename a channel, or give it other settings: all of them anew, because nobody can see the old ones."""
    found = find_channel(client, channel)
    change: Json = {} if name is None else {"name": name}
    if setting:
        change["config"] = _config(client, found["kind"], setting)
    if not change:
        raise Invalid("There is nothing to change. Give --name or --set.")
    try:
        edited = client.send("PATCH", f"/v1/channels/{found['id']}", change)
    except Invalid as error:
        raise _in_settings(error) from None
    _print_channel(edited, as_json, f'Changed "{edited["name"]}".')


@app.command("test")
@o.with_server
def send_test(client: Client, channel: ChannelName, as_json: o.AsJson = False) -> None:
    """Send a test message now; exit code 1 when it was not taken."""
    found = find_channel(client, channel)
    result = client.send("POST", f"/v1/channels/{found['id']}/test")
    if result["accepted"]:
        detail = f" It said: {result['detail']}" if result["detail"] else ""
        print_result(result, as_json, f'"{found["name"]}" took the message.{detail}')
        return
    print_result(result, as_json, f'"{found["name"]}" did not take the message: {result["reason"]}')
    raise typer.Exit(FAILED)


@app.command()
@o.with_server
def pause(client: Client, channel: ChannelName, as_json: o.AsJson = False) -> None:
    """Tell nothing through a channel. What waits for it is not sent either."""
    paused = client.send("POST", f"/v1/channels/{find_channel(client, channel)['id']}/pause")
    print_result(paused, as_json, f'Paused "{paused["name"]}". Nothing is told through it until you resume it.')


@app.command()
@o.with_server
def resume(client: Client, channel: ChannelName, as_json: o.AsJson = False) -> None:
    """Tell what happens from now on through a channel that was paused or disabled."""
    resumed = client.send("POST", f"/v1/channels/{find_channel(client, channel)['id']}/resume")
    print_result(resumed, as_json, f'Resumed "{resumed["name"]}".')


@app.command()
@o.with_server
def delete(client: Client, channel: ChannelName, yes: o.Yes = False, as_json: o.AsJson = False) -> None:
    """Delete a channel with its settings. Asks first when it runs on a terminal."""
    ask_and_delete(client, "/v1/channels", find_channel(client, channel), yes=yes, as_json=as_json)


def _nature(field: Json | None) -> str:
    if field is None:
        return ""
    return ", ".join(filter(None, ("" if field["required"] else "optional", "secret" if field["secret"] else "")))


def _config(client: Client, kind: str, settings: list[str]) -> dict[str, object]:
    """What a kind asks for, from the settings that were given and, on a terminal, from whoever sits there."""
    known = {one["kind"]: one for one in client.get("/v1/channel-kinds")["items"]}
    if kind not in known:
        raise Invalid(f"There is no kind of channel {kind!r}. There are: {', '.join(known) or 'none'}.")
    config: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise Invalid("--set: write it as KEY=VALUE.")
        config[key] = read_text(value, VALUE_BYTES_MAX, option=f"--set {key}", noun="setting", keep_line_end=False)
    for field in known[kind]["fields"]:
        name = field["name"]
        if field["required"] and field["secret"] and name not in config and sys.stdin.isatty():
            config[name] = str(typer.prompt(f"{clean(name)} ({clean(field['help'])})", hide_input=True, err=True))
    return config


def _in_settings(error: Invalid) -> Invalid:
    """A refusal that names the setting as it was written."""
    for fault in error.fields:
        prefix, _, name = fault.field.partition(".")
        if prefix == "config" and name:
            return Invalid(f"--set {name}: {fault.message}")
    return error


def _print_channel(channel: Json, as_json: bool, heading: str | None = None) -> None:
    if as_json:
        print_json(channel)
        return
    now = SystemClock().now()
    status = word(channel["status"])
    if channel["status_reason"]:
        status = Text.assemble(status, f"\n{clean(channel['status_reason'])}")
    sent = channel["last_sent_at"]
    fields: list[tuple[str, str | Text]] = [
        ("id", channel["id"]),
        ("kind", channel["kind"]),
        ("status", status),
        ("leads to", channel["destination"]),
        ("last sent", "never" if sent is None else times.when(sent, now)),
    ]
    if channel["failures"]:
        fields.append(("not taken", f"{channel['failures']:,} in a row"))
    say(heading or str(channel["name"]), style="bold")
    print_fields(fields)
    if channel.get("warning"):
        note(f"Nothing can be sent by it yet. {channel['warning']}")
    if channel["status"] == "disabled":
        note(f"Mend it, then: {program()} channels resume {channel['id']}")
