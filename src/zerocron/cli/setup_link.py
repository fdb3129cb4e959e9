"""`0cron setup-link`: the link by which the first owner is made, or one by which somebody sets a new password.

Whoever may read the data directory, or has the database's URL, may make one; a running server is not asked.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from typing import Annotated

import typer

from zerocron.cli import options as o
from zerocron.cli.serve import explained
from zerocron.cli.show import note, print_json
from zerocron.core.errors import Invalid
from zerocron.settings import load


def setup_link(
    reset: Annotated[
        str | None,
        typer.Option("--reset", metavar="EMAIL", help="For a new password of the person with this address."),
    ] = None,
    remove_second_factor: Annotated[
        bool,
        typer.Option("--remove-second-factor", help="With --reset: take off the second factor, which was lost."),
    ] = False,
    as_json: o.AsJson = False,
    data_dir: o.DataDir = None,
) -> None:
    """Print a link that makes the first owner of this server, or lets somebody set a new password.

    It works once and for an hour. Run it where the server's data directory is, or with ZEROCRON_DATABASE_URL.
    """
    if remove_second_factor and reset is None:
        raise Invalid("--remove-second-factor needs --reset EMAIL.")
    settings = load({"data_dir": data_dir})

    from zerocron import app

    with explained(settings):
        placed = dataclasses.replace(settings, data_dir=settings.data_dir.absolute())
        url = asyncio.run(app.one_time_url(placed, reset_email=reset, remove_totp=remove_second_factor))
    if as_json:
        print_json({"url": url})
        return
    sys.stdout.write(url + "\n")
    if sys.stdout.isatty():
        note("It works once, within the next hour. Give it to nobody else.")
