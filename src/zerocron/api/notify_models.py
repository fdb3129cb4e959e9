"""The shape of `notify` in the API: what people want to be told of a job or a monitor.

Owns its fields and their bounds. What they mean together is checked in `zerocron.core.alerting`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from zerocron.api.fields import Identifier, Input, Output, unset
from zerocron.core.alerting import (
    CHANNELS_NAMED_MAX,
    LATE_SECONDS_MAX,
    REMIND_SECONDS_MAX,
    REMIND_SECONDS_MIN,
    RUNS_MAX,
    Notify,
    Subject,
    read_notify,
)

JobEvent = Literal["failed", "recovered", "disabled", "missed", "late", "succeeded"]
MonitorEvent = Literal["down", "up", "late"]

NotifyChannels = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=36)]] | None,
    Field(
        max_length=CHANNELS_NAMED_MAX,
        description="Ids of the channels to tell; null: all of the team. An empty list tells nobody.",
    ),
]
RemindEvery = Annotated[
    int | None,
    Field(
        ge=REMIND_SECONDS_MIN,
        le=REMIND_SECONDS_MAX,
        description="Seconds after which a trouble that lasts is told again; null: never.",
    ),
]


class JobNotifyIn(Input):
    """What to tell people of a job. Fields left out are as by default, or stay as they are."""

    channels: NotifyChannels = None
    on: Annotated[
        list[JobEvent],
        Field(
            max_length=6,
            description="The events that are told. By default `failed`, `recovered`, `disabled` and `missed`.",
        ),
    ] = unset()
    after_failures: Annotated[
        int, Field(ge=1, le=RUNS_MAX, description="So many failed runs in a row are told as `failed`. By default 1.")
    ] = unset()
    out_of: Annotated[
        int | None,
        Field(ge=1, le=RUNS_MAX, description="Count the failures among so many last runs instead of in a row."),
    ] = None
    remind_every: RemindEvery = None
    late_after: Annotated[
        int,
        Field(
            ge=1,
            le=LATE_SECONDS_MAX,
            description="A slot whose request began more than so many seconds late is told as `late`. By default 60.",
        ),
    ] = unset()


class MonitorNotifyIn(Input):
    """What to tell people of a monitor. Fields left out are as by default, or stay as they are."""

    channels: NotifyChannels = None
    on: Annotated[
        list[MonitorEvent],
        Field(max_length=3, description="The events that are told. By default `down` and `up`."),
    ] = unset()
    remind_every: RemindEvery = None


class JobNotifyOut(Output):
    """What people are told of a job."""

    channels: list[Identifier] | None = Field(description="Ids of channels; null: all of the team.")
    on: list[JobEvent] = Field(description="The events that are told.")
    after_failures: int = Field(description="So many failed runs are told as `failed`.")
    out_of: int | None = Field(description="Among so many last runs; null: in a row.")
    remind_every: int | None = Field(description="Seconds; null: a trouble is told once.")
    late_after: int = Field(description="Seconds.")


class MonitorNotifyOut(Output):
    """What people are told of a monitor."""

    channels: list[Identifier] | None = Field(description="Ids of channels; null: all of the team.")
    on: list[MonitorEvent] = Field(description="The events that are told.")
    remind_every: int | None = Field(description="Seconds; null: a trouble is told once.")


def changed_notify(notify: Notify, given: JobNotifyIn | MonitorNotifyIn) -> Notify:
    """The same with the given fields replaced."""
    values = {name: getattr(given, name) for name in given.model_fields_set}
    values |= {name: tuple(values[name]) for name in ("on", "channels") if values.get(name) is not None}
    return dataclasses.replace(notify, **values)


def notify_out(kept: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
    """The fields of the shape that shows it."""
    notify = read_notify(kept, subject)
    shown = JobNotifyOut if subject == "job" else MonitorNotifyOut
    values = {name: getattr(notify, name) for name in shown.model_fields}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
