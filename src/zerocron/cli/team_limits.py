"""`0cron teams limits`: what teams may have, for the operator on the server's machine.

Owns the translation of options into limits, and how both are shown. Works on the ledger, like `migrate`, and beside a
running server.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerocron.cli import options as o
from zerocron.cli.serve import explained
from zerocron.cli.show import Json, clean, print_fields, print_json, say
from zerocron.core.errors import Invalid
from zerocron.settings import Settings, load

if TYPE_CHECKING:
    from zerocron.actions.team_limits import TeamState

app = typer.Typer(help="Teams: what each may have.")

NUMBER_MAX = 10**15
"""As of the settings with the same meaning."""

_SMALL_MAX = 100_000_000


def _limit(maximum: int) -> Any:
    def read(text: str) -> int | str:
        lowered = text.lower()
        if lowered in ("default", "none"):
            return lowered
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not 0 <= number <= maximum:
            raise ValueError(f"{text!r} is no number from 0 to {maximum:,}, nor none, nor default.")
        return number

    return read


_HELP = "0 or none: no limit; default: the server's, which is set by ZEROCRON_TEAM_{}."
Team = Annotated[str | None, typer.Argument(metavar="TEAM", help="Its id or exact name; all, when none is given.")]
Jobs = Annotated[
    Any, typer.Option("--jobs", metavar="N", parser=_limit(_SMALL_MAX), help=f"Jobs. {_HELP.format('JOBS_MAX')}")
]
Runs = Annotated[
    Any,
    typer.Option(
        "--runs-per-minute",
        metavar="N",
        parser=_limit(_SMALL_MAX),
        help=f"Runs that may start in a minute. {_HELP.format('RUNS_PER_MINUTE_MAX')}",
    ),
]
Bytes = Annotated[
    Any,
    typer.Option(
        "--history-bytes",
        metavar="N",
        parser=_limit(NUMBER_MAX),
        help=f"Bytes of requests and answers that are kept. {_HELP.format('HISTORY_BYTES_MAX')}",
    ),
]


@app.command()
def limits(
    team: Team = None,
    jobs: Jobs = None,
    runs_per_minute: Runs = None,
    history_bytes: Bytes = None,
    as_json: o.AsJson = False,
    data_dir: o.DataDir = None,
) -> None:
    """Show or change the limits of teams, on the server's machine. A running server keeps to them at once."""
    given = {"jobs_max": jobs, "runs_per_minute_max": runs_per_minute, "history_bytes_max": history_bytes}
    changes = {name: _number(value) for name, value in given.items() if value is not None}
    if changes and team is None:
        raise Invalid("Name the team whose limits are to change: 0cron teams limits TEAM --jobs N")
    settings = load({"data_dir": data_dir})
    with explained(settings):
        found = asyncio.run(_look(settings, team, changes))
    if as_json:
        print_json({"items": [_json(one) for one in found]})
        return
    for one in found:
        say(f"{clean(one.name)}  {one.id}", style="bold")
        print_fields(
            (
                ("jobs", _cell(one.usage.jobs, one.limits.jobs_max, one.own.jobs_max)),
                (
                    "runs this minute",
                    _cell(one.usage.runs_this_minute, one.limits.runs_per_minute_max, one.own.runs_per_minute_max),
                ),
                (
                    "history bytes",
                    _cell(one.usage.history_bytes, one.limits.history_bytes_max, one.own.history_bytes_max),
                ),
            )
        )


async def _look(settings: Settings, team: str | None, changes: Mapping[str, int | None]) -> list[TeamState]:
    from zerocron import app as joiner
    from zerocron.cli.logs import configure_logging

    configure_logging(settings.log_level, settings.log_format)
    async with joiner.team_limits(settings) as verbs:
        return await verbs.all() if team is None else [await verbs.change(team, changes)]


def _number(value: int | str) -> int | None:
    return {"none": 0, "default": None}[value] if isinstance(value, str) else value


def _cell(used: int | None, limit: int | None, own: int | None) -> str:
    """`12 of 100`, or what is not limited; a limit that is not the team's own is the server's."""
    if limit is None:
        return "no limit" if not used else f"{used:,}, no limit"
    so_far = "not counted" if used is None else f"{used:,}"
    return f"{so_far} of {limit:,}" + (" (server's)" if own is None else "")


def _json(one: TeamState) -> Json:
    return {
        "id": one.id,
        "name": one.name,
        "own_limits": dataclasses.asdict(one.own),
        "limits": dataclasses.asdict(one.limits),
        "usage": dataclasses.asdict(one.usage),
    }
