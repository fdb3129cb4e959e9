"""The options by which jobs and monitors say whom to tell of what, and the words for it."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from zerocron.cli.client import Client
from zerocron.cli.names import find_channel
from zerocron.cli.show import Json, plural
from zerocron.core.errors import Invalid
from zerocron.core.spans import read_seconds, span

_told = partial(typer.Option, rich_help_panel="Whom it tells of what")
_LENGTH: Any = {"metavar": "SECONDS", "parser": read_seconds}


class JobEvent(StrEnum):
    """What a job may tell."""

    FAILED = "failed"
    RECOVERED = "recovered"
    DISABLED = "disabled"
    MISSED = "missed"
    LATE = "late"
    SUCCEEDED = "succeeded"


class MonitorEvent(StrEnum):
    """What a monitor may tell."""

    DOWN = "down"
    UP = "up"
    LATE = "late"


Channels = Annotated[
    list[str] | None,
    _told("--notify-channel", metavar="CHANNEL", help="Name or id; repeatable.  (all channels)"),
]
Nobody = Annotated[bool | None, _told("--notify-nobody", help="Tell no channel. Not with --notify-channel.")]
JobOn = Annotated[
    list[JobEvent] | None,
    _told("--notify-on", metavar="EVENT", help="Repeatable.  (failed, recovered, disabled, missed)"),
]
MonitorOn = Annotated[
    list[MonitorEvent] | None,
    _told("--notify-on", metavar="EVENT", help="down, up, late; repeatable.  (down, up)"),
]
AfterFailures = Annotated[
    int | None, _told("--after-failures", metavar="N", help="Failed runs in a row that are told.  (1)")
]
OutOf = Annotated[int | None, _told("--out-of", metavar="N", help="Count them among the last N runs, not in a row.")]
RemindEvery = Annotated[float | None, _told("--remind-every", **_LENGTH, help="Tell it again while it lasts.")]
LateAfter = Annotated[
    float | None, _told("--late-after", **_LENGTH, help="How late a request has to begin to be told as late.  (60)")
]

FIELDS = {
    "notify_channel": ("notify", "channels"),
    "notify_nobody": ("notify", "nobody"),
    "notify_on": ("notify", "on"),
    "remind_every": ("notify", "remind_every"),
}
JOB_FIELDS = FIELDS | {
    "after_failures": ("notify", "after_failures"),
    "out_of": ("notify", "out_of"),
    "late_after": ("notify", "late_after"),
}


def with_ids(client: Client, document: Json) -> Json:
    """The document with the ids of the channels it names; none of them for nobody."""
    notify = document.get("notify", {})
    if notify.pop("nobody", None):
        if notify.get("channels"):
            raise Invalid("--notify-nobody and --notify-channel exclude each other.")
        notify["channels"] = []
    if notify.get("channels"):
        notify["channels"] = [find_channel(client, name)["id"] for name in notify["channels"]]
    return document


def words(notify: Json) -> str:
    """Whom it tells of what, in a line."""
    channels = notify["channels"]
    if not notify["on"] or channels == []:
        return "nobody"
    whom = "all channels" if channels is None else plural(len(channels), "channel")
    told = f"{', '.join(notify['on'])} to {whom}"
    failures, out_of = notify.get("after_failures", 1), notify.get("out_of")
    if out_of is not None:
        told += f", after {plural(failures, 'failure')} of {out_of}"
    elif failures > 1:
        told += f", after {failures} failures in a row"
    if notify["remind_every"] is not None:
        told += f", again every {span(notify['remind_every'])}"
    return told
