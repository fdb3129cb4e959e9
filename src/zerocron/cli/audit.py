"""`0cron audit list`: who did what, and when."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.client import Client
from zerocron.cli.show import Json, clean, lines, note, print_json, print_table, say, table
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid

app = typer.Typer(help="The audit log: who did what, and when.")

_SHOWN_MAX = 60
"""Characters of a value in the table; --json and --csv have all of it."""


@app.command("list")
@o.with_server
def list_entries(
    client: Client,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="ID", help="Only what was done to the thing of this id.")
    ] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="ACTION", help="Only this, such as job.pause.")
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            "--actor", metavar="ID", help="Only what the person or key of this id did; server: 0cron of itself."
        ),
    ] = None,
    limit: o.Limit = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the whole log as CSV, for a spreadsheet.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """List what was done in the team, newest first. Needs a key with the scope admin."""
    filters = {"subject_id": subject, "action": action, "actor_id": actor}
    if as_csv:
        if as_json:
            raise Invalid("--csv and --json contradict each other.")
        for part in client.stream("/v1/audit.csv", **filters):
            sys.stdout.write(clean(part.replace("\r", "")))  # line ends as they are everywhere here
        return
    page = client.pages("/v1/audit", limit=limit, **filters)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say("Nothing matches." if any(filters.values()) else "Nothing was done yet.")
        return
    now = SystemClock().now()
    made = table(f"AT ({times.here(now)})", "WHO", "ACTION", "WHAT", "CHANGED")
    for entry in page["items"]:
        made.add_row(
            Text(times.row(times.instant(entry["at"]))),
            lines([clean(entry["actor"]["name"]), *([entry["address"]] if entry["address"] else [])]),
            Text(entry["action"]),
            Text(clean(entry["subject"]["name"])),
            lines(_changes(entry)),
        )
    print_table(made)
    if page["next_cursor"] is not None:
        note("\nThere are more: --limit N shows N.")


def _changes(entry: Json) -> list[str]:
    before, after = entry["before"] or {}, entry["after"] or {}
    told = []
    for name in {**before, **after}:
        was, became = (_shown(side[name]) if name in side else "" for side in (before, after))
        told.append(f"{name}: {was} → {became}" if was and became else f"{name}: {was or became}")
    return told


def _shown(value: object) -> str:
    text = clean(str(value))
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
