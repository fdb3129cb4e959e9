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
from zerocron.cli.show import Json, clean, print_json, print_table, say, table
from zerocron.clock import SystemClock
from zerocron.core.access import Permission
from zerocron.core.instants import to_rfc3339
from zerocron.core.tokens import read_token

app = typer.Typer(help="API keys: make them, list them, revoke them.")


@app.command()
@o.with_server
def create(
    client: Client,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.", show_default=False)],
    scopes: Annotated[
        list[Permission] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="What it may do: read, write, trigger, ping-admin or admin. Repeatable.  (all but admin)",
        ),
    ] = None,
    expires_in: Annotated[
        float | None,
        typer.Option("--expires-in", **o.LENGTH, help="From then on it opens nothing; a year at most.  (never)"),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Make an API key. It is shown this once and never again."""
    given: Json = {"name": name}
    if scopes:
        given["scopes"] = list(dict.fromkeys(scopes))
    if expires_in is not None:
        given["expires_at"] = to_rfc3339(SystemClock().now() + round(expires_in * 1000))
    made = client.send("POST", "/v1/api-keys", given)
    if as_json:
        print_json(made)
        return
    say(f'Made a key for "{made["name"]}". Keep it now; it is not shown again:\n')
    say(f"  {made['key']}\n", style="bold")
    say(f"It may                {', '.join(made['scopes'])}")
    if made["expires_at"] is not None:
        say(f"It expires            {times.when(made['expires_at'], SystemClock().now())}")
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
    made = table("ID", "NAME", "MAY", "MADE", "EXPIRES", "LAST USED")
    made.columns[0].no_wrap = True
    for key in sorted(page["items"], key=lambda key: str(key["created_at"])):
        used = "never" if key["last_used_at"] is None else times.relative(times.instant(key["last_used_at"]), now)
        name = clean(key["name"]) + (" (used now)" if key["id"] == _own_id(client.server) else "")
        age = times.relative(times.instant(key["created_at"]), now)
        by = f" by {clean(key['created_by'])}" if key["created_by"] else ""
        expiry = "never" if key["expires_at"] is None else times.relative(times.instant(key["expires_at"]), now)
        expiry = f"expired {expiry}" if key["status"] == "expired" else expiry
        may = ", ".join(key["scopes"])
        made.add_row(Text(key["id"]), Text(name), Text(may), Text(age + by), Text(expiry), Text(used))
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
