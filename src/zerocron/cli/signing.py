"""`0cron signing ...`: the key with which requests are signed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.client import Client, find_server
from zerocron.cli.errors import FAILED
from zerocron.cli.program import program
from zerocron.cli.show import note, print_fields, print_json, say
from zerocron.clock import SystemClock

app = typer.Typer(help="The key that signs requests: look at it, rotate it.")


@app.command()
def show(
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Show since when the key signs. The key itself is shown to nobody."""
    key = Client(find_server(api_url, api_key, data_dir)).get("/v1/signing-key")
    if as_json:
        print_json(key)
        return
    made = times.instant(key["created_at"])
    fields: list[tuple[str, str | Text]] = [
        ("id", key["id"]),
        ("made", f"{times.full(made)}, {times.relative(made, SystemClock().now())}"),
    ]
    if key["previous_expires_at"] is not None:
        fields.append(("the one before", f"signs too until {times.full(times.instant(key['previous_expires_at']))}"))
    print_fields(fields)


@app.command()
def rotate(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: o.AsJson = False,
    api_url: o.ApiUrl = None,
    api_key: o.ApiKey = None,
    data_dir: o.DataDir = None,
) -> None:
    """Make a new signing key; the first time, make the first. It is shown this once and never again.

    The key before goes on signing beside it for a day. Asks first when it runs on a terminal.
    """
    client = Client(find_server(api_url, api_key, data_dir))
    question = "Make a new signing key? Receivers have a day to learn it."
    if not yes and sys.stdin.isatty() and not typer.confirm(question, err=True):
        note("Nothing was changed.")
        raise typer.Exit(FAILED)
    made = client.send("POST", "/v1/signing-key/rotate")
    if as_json:
        print_json(made)
        return
    say("Made a signing key. Keep it now; it is not shown again:\n")
    say(f"  {made['key']}\n", style="bold")
    if made["previous_expires_at"] is not None:
        until = times.full(times.instant(made["previous_expires_at"]))
        say(f"The key before signs too until {until}; give receivers the new one by then.")
    say(f"Let a job use it:   {program()} jobs edit JOB --sign")
