"""`0cron migrate`: bring the ledger's schema up to date without starting a server."""

from __future__ import annotations

import asyncio
import dataclasses

from zerocron.cli import options as o
from zerocron.cli.serve import explained
from zerocron.cli.show import say
from zerocron.settings import load


def migrate(data_dir: o.DataDir = None) -> None:
    """Bring the database's schema up to date, and stop. A server does the same when it starts."""
    settings = load({"data_dir": data_dir})

    from zerocron import commands

    with explained(settings):
        placed = dataclasses.replace(settings, data_dir=settings.data_dir.absolute())
        asyncio.run(commands.migrate(placed))
    say("The schema is up to date.")
