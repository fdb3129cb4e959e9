"""`0cron keys ...`: who may use the API."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.asking import ask
from zerocron.cli.client import Client, Server, segment
from zerocron.cli.program import program
from zerocron.cli.show import clean, print_json, print_table, say, table
from zerocron.clock import SystemClock
from zerocron.core.tokens import read_token

app = typer.Typer(help="API keys: make them, list them, revoke them.")


@app.command()
@o.with_server
def create(
    client: Client,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.", show_default=False)],
    as_json: o.AsJson = False,
) -> None:
    """Make an API key. It is shown this once and never again."""
    made = client.send("POST", "/v1/api-keys", {"name": name})
    if as_json:
        print_json(made)
        return
    say(f'Made a key for "{made["name"]}". Keep it now; it is not shown again:\n')
    say(f"  {made['key']}\n", style="bold")
    say("Programs send it as   Authorization: Bearer 0c_...")
    say("This command reads it from ZEROCRON_API_KEY.")
    say(f"It is taken back by   {program()} keys revoke {made['id']}")


@app.command("list")
@o.with_server
def list_keys(client: Client, as_json: o.AsJson = False) -> None:
    """List the keys that are not revoked. The keys themselves are shown to nobody."""
    page = client.pages("/v1/api-keys", limit=None)
    if as_json:
        print_json(page)
        return
    now = SystemClock().now()
    made = table("ID", "NAME", "MADE", "LAST USED")
    made.columns[0].no_wrap = True
    for key in sorted(page["items"], key=lambda key: str(key["created_at"])):
        used = "never" if key["last_used_at"] is None else times.relative(times.instant(key["last_used_at"]), now)
        name = clean(key["name"]) + (" (used now)" if key["id"] == _own_id(client.server) else "")
        age = times.relative(times.instant(key["created_at"]), now)
        made.add_row(Text(key["id"]), Text(name), Text(age), Text(used))
    print_table(made)


@app.command()
@o.with_server
def revoke(
    client: Client,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `keys list` shows it.", show_default=False)],
    yes: o.Yes = False,
    as_json: o.AsJson = False,
) -> None:
    """Revoke a key: within a second it opens nothing any more. Asks first when it runs on a terminal."""
    is_own = key_id == _own_id(client.server)
    warning = "This is the key that this command itself uses. " if is_own else ""
    ask(f"{warning}Revoke {key_id} for good?", yes=yes, otherwise="Nothing was revoked.")
    client.send("DELETE", f"/v1/api-keys/{segment(key_id)}")
    if as_json:
        print_json({"id": key_id, "revoked": True})
        return
    say(f"Revoked {key_id}.")
    if is_own:
        say("It was the key that this command used. A restart of the server makes a new one for its own machine.")


def _own_id(server: Server) -> str | None:
    token = read_token(server.key or "")
    return None if token is None else token.id
