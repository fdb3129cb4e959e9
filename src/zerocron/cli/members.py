"""`0cron members ...` and `0cron teams list`: who works together, and as what."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.client import Client
from zerocron.cli.show import clean, print_json, print_table, say, table
from zerocron.clock import SystemClock

app = typer.Typer(help="Members of the team: list them, invite people.")


@app.command("list")
@o.with_server
def list_members(client: Client, as_json: o.AsJson = False) -> None:
    """List the people in the team."""
    page = client.pages("/v1/members", limit=None)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say("Nobody is in the team; programs use it by their keys.")
        return
    now = SystemClock().now()
    made = table("ADDRESS", "NAME", "ROLE", "SECOND FACTOR", "LAST SEEN")
    for member in page["items"]:
        seen = member["last_seen_at"]
        made.add_row(
            Text(clean(member["email"])),
            Text(clean(member["name"])),
            Text(member["role"]),
            Text("yes" if member["has_totp"] else "no"),
            Text("never" if seen is None else times.relative(times.instant(seen), now)),
        )
    print_table(made)


@app.command()
@o.with_server
def invite(
    client: Client,
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="Whom.", show_default=False)],
    role: Annotated[
        Literal["owner", "admin", "editor", "viewer"], typer.Option("--role", help="What they may do.")
    ] = "editor",
    as_json: o.AsJson = False,
) -> None:
    """Invite somebody to the team: by mail, or by a link that you give them. Needs a key with the scope admin."""
    made = client.send("POST", "/v1/invitations", {"email": email, "role": role})
    if as_json:
        print_json(made)
        return
    until = times.full(times.instant(made["expires_at"]))
    if made["is_mailed"]:
        say(f"Mailed an invitation to {made['email']}. It can be accepted until {until}.")
        return
    say(f"Give this link to {made['email']}. It works once, until {until}, and is not shown again:\n")
    say(f"  {made['url']}")


@o.with_server
def list_teams(client: Client, as_json: o.AsJson = False) -> None:
    """List the team that the key belongs to."""
    page = client.get("/v1/teams")
    if as_json:
        print_json(page)
        return
    made = table("ID", "NAME")
    for team in page["items"]:
        made.add_row(Text(team["id"]), Text(clean(team["name"])))
    print_table(made)
