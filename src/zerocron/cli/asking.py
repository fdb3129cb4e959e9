"""Asking before what cannot be undone: only where somebody can answer, and has not answered with --yes already."""

from __future__ import annotations

import sys

import typer

from zerocron.cli.client import Client
from zerocron.cli.errors import FAILED
from zerocron.cli.show import Json, clean, note, print_result


def ask(question: str, *, yes: bool, otherwise: str) -> None:
    """Return when it is to be done; else say `otherwise` and end the command."""
    if not yes and sys.stdin.isatty() and not typer.confirm(clean(question), err=True):
        note(otherwise)
        raise typer.Exit(FAILED)


def ask_and_delete(client: Client, path: str, found: Json, *, yes: bool, as_json: bool, then: str = "") -> None:
    """Delete what was found below a path of the API; `then` says what follows from it."""
    ask(f'Delete "{found["name"]}"?', yes=yes, otherwise="Nothing was deleted.")
    client.send("DELETE", f"{path}/{found['id']}")
    done = {"id": found["id"], "name": found["name"], "deleted": True}
    print_result(done, as_json, f'Deleted "{found["name"]}".{then}')
