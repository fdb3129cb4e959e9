"""`0cron preview`: what a schedule means, before a job has it. Works without a server."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from zerocron.actions.schedules import read, spoken
from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.show import print_json, print_table, say, table
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339, to_rfc3339
from zerocron.core.schedule import Schedule, clock_changes
from zerocron.core.understanding import describe

COUNT_MAX = 100
CHANGES_SHOWN = 4
EXAMPLE = "Example: 0cron preview 'every weekday at 9am' --tz Europe/Paris"


def preview(
    schedule: Annotated[
        str,
        typer.Argument(
            metavar="SCHEDULE", help="In words or as cron; in quotes, as it has blanks.", show_default=False
        ),
    ],
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--tz", metavar="ZONE", help="Such as Europe/Paris.", show_default="UTC")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, max=COUNT_MAX, help="So many times.")] = 10,
    language: o.Language = None,
    dst: o.Dst = None,
    day_match: o.DayMatch = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="INSTANT", help="Such as 2027-01-01T09:00:00Z.", show_default="now"),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Show what a schedule means and when it would run. Needs no server."""
    now = SystemClock().now()
    start = now if after is None else _instant(after)
    understood = read(
        schedule,
        timezone=timezone,
        now=start,
        language=language,
        dst=dst or "run_once",
        day_match=day_match or "either",
    )
    meant = understood.schedule
    language = spoken(understood, language)
    description = describe(meant, language)
    changes = clock_changes(meant, after=start, language=language)
    found = _next(meant, start, count)
    if as_json:
        print_json(
            {
                "kind": meant.kind,
                "schedule_cron": meant.cron,
                "timezone": meant.timezone,
                "language": language,
                "description": description,
                "next": [to_rfc3339(at) for at in found],
                "warnings": list(understood.warnings),
                "clock_changes": [
                    {"at": to_rfc3339(change.at), "kind": change.kind, "effect": change.effect} for change in changes
                ],
            }
        )
        return
    say(description[:1].upper() + description[1:], style="bold")
    if meant.cron is not None and meant.cron != schedule:
        say(f"As cron: {meant.cron}")
    for warning in understood.warnings:
        say(f"warning: {warning}", style="yellow")
    say()
    _print_times(found, meant.timezone, now)
    if len(found) < count:
        say("Then never again.")
    if changes:
        say()
        say("When the clocks change:")
        for change in changes[:CHANGES_SHOWN]:
            say(f"  {change.local_date:%a %Y-%m-%d}  {change.effect}")


def _instant(text: str) -> int:
    try:
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid(f"--after: {text!r} is not an instant. Write it as 2027-01-01T09:00:00Z.") from None


def _next(schedule: Schedule, start: int, count: int) -> list[int]:
    found: list[int] = []
    slot = schedule.next_after(start)
    while slot is not None and len(found) < count:
        found.append(slot)
        slot = schedule.next_after(slot)
    return found


def _print_times(found: list[int], zone: str, now: int) -> None:
    """The times in the schedule's zone, in UTC, and on this machine's clock where that is a third thing."""
    is_utc = all(not times.in_zone(at, zone).utcoffset() for at in found)
    is_here = all(times.local(at).utcoffset() == times.in_zone(at, zone).utcoffset() for at in found)
    here_is_utc = all(not times.local(at).utcoffset() for at in found)
    headings = ["DAY", zone.upper() if zone == "UTC" else zone]
    headings += [] if is_utc else ["UTC"]
    headings += [] if is_here or here_is_utc else [f"HERE ({times.here(now)})"]
    made = table(*headings, "")
    for at in found:
        there, here, utc = times.in_zone(at, zone), times.local(at), times.in_zone(at, "UTC")
        cells = [there.strftime("%a"), there.strftime("%Y-%m-%d %H:%M:%S")]
        cells += [] if is_utc else [utc.strftime("%a %Y-%m-%d %H:%M:%S")]
        cells += [] if is_here or here_is_utc else [here.strftime("%a %H:%M:%S")]
        made.add_row(*(Text(cell) for cell in (*cells, times.relative(at, now))))
    print_table(made)
