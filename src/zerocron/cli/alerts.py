"""`0cron alerts list`: what people were told, by which channel, and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.text import Text

from zerocron.cli import options as o
from zerocron.cli import times
from zerocron.cli.client import Client
from zerocron.cli.names import find_channel, find_job, find_monitor
from zerocron.cli.show import Json, clean, lines, note, print_json, print_table, say, table, word
from zerocron.clock import SystemClock
from zerocron.core.errors import Invalid
from zerocron.core.model import Instant

app = typer.Typer(help="Alerts: what people were told, and what came of it.")


@app.command("list")
@o.with_server
def list_alerts(
    client: Client,
    status: Annotated[
        Literal["pending", "sent", "folded", "dead"] | None, typer.Option("--status", help="Only these.")
    ] = None,
    channel: Annotated[str | None, typer.Option("--channel", metavar="CHANNEL", help="Only those of it.")] = None,
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only those about it.")] = None,
    monitor: Annotated[str | None, typer.Option("--monitor", metavar="MONITOR", help="Only those about it.")] = None,
    limit: o.Limit = 20,
    as_json: o.AsJson = False,
) -> None:
    """List alerts, newest first. Those that ended are kept for 30 days."""
    if job and monitor:
        raise Invalid("--job and --monitor contradict each other.")
    subject = find_job(client, job) if job else find_monitor(client, monitor) if monitor else None
    page = client.pages(
        "/v1/alerts",
        limit=limit,
        status=status,
        channel=find_channel(client, channel)["id"] if channel else None,
        subject=subject["id"] if subject else None,
    )
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        say("No alert matches." if status or channel or subject else "Nobody was told of anything yet.")
        return
    now = SystemClock().now()
    made = table(f"AT ({times.here(now)})", "ABOUT", "EVENT", "CHANNEL", "STATUS")
    for alert in page["items"]:
        made.add_row(
            Text(times.row(times.instant(alert["created_at"]))),
            Text(clean(alert["subject_name"])),
            lines([alert["event"], *(["again"] if alert["reminder"] else [])]),
            Text(clean(alert["channel_name"])),
            _state(alert, now),
        )
    print_table(made)
    if page["next_cursor"] is not None:
        note("\nThere are more: --limit N shows N.")


def _state(alert: Json, now: Instant) -> Text:
    """What became of it; of one that travels in the message of another, what became of that."""
    state = word(alert["status"])
    if alert["status"] == "folded":
        state.append("\nwaits with others" if alert["finished_at"] is None else "\nsent with others")
    if alert["tries"] > 1:
        state.append(f" ×{alert['tries']}")
    if alert["next_attempt_at"] is not None:
        state.append(f"\nnext {times.relative(times.instant(alert['next_attempt_at']), now)}")
    if alert["last_error"] and alert["status"] != "sent":
        state.append(f"\n{clean(alert['last_error'])}")
    return state
