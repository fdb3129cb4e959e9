"""`0cron signing ...`: the key with which requests are signed."""

from __future__ import annotations

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.asking import ask
from zerocron.cli.client import Client
from zerocron.cli.program import program
from zerocron.cli.show import print_fields, print_json, say
from zerocron.clock import SystemClock

app = typer.Typer(help="The key that signs requests: look at it, rotate it.")


@app.command()
@o.with_server
def show(client: Client, as_json: o.AsJson = False) -> None:
    """Show since when the key signs. The key itself is shown to nobody."""
    key = client.get("/v1/signing-key")
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
@o.with_server
def rotate(client: Client, yes: o.Yes = False, as_json: o.AsJson = False) -> None:
    """Make a new signing key; the first time, make the first. It is shown this once and never again.

    The key before goes on signing beside it for a day. Asks first when it runs on a terminal.
    """
    ask("Make a new signing key? Receivers have a day to learn it.", yes=yes, otherwise="Nothing was changed.")
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
