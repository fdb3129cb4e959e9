"""Asking before what cannot be undone: only where somebody can answer, and has not answered with --yes already."""

from __future__ import annotations

import sys

import typer

from zerocron.cli.errors import FAILED
from zerocron.cli.show import clean, note


def ask(question: str, *, yes: bool, otherwise: str) -> None:
    """Return when it is to be done; else say `otherwise` and end the command."""
    if not yes and sys.stdin.isatty() and not typer.confirm(clean(question), err=True):
        note(otherwise)
        raise typer.Exit(FAILED)
