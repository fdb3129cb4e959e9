"""The shapes of a monitor in the API: what may be written, what may be changed, what is shown.

Owns every bound on what a user writes about a monitor. What the values mean together is checked in
`zerocron.actions.monitors`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from zerocron.api.fields import Identifier, Input, InstantText, NextCursor, Output, unset, visible_text
from zerocron.api.job_models import DayMatch, Dst, LanguageCode, LanguageIn, Tags, Timezone
from zerocron.api.notify_models import MonitorNotifyIn, MonitorNotifyOut
from zerocron.core.monitor import FlipReason, PingKind

DURATION_SECONDS_MAX = 31_622_400

Name = Annotated[str, *visible_text(200, "What people call the monitor.", "Nightly backup")]
ExpectedText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description="When a ping is expected. A length (`every 5 minutes`, `every day`) is a period that counts from "
        "the last success; everything else is read as for a job: plain language, a cron expression, or one instant.",
        examples=["every day at 2am"],
    ),
]
Grace = Annotated[
    int,
    Field(
        ge=0,
        le=DURATION_SECONDS_MAX,
        description="Seconds a ping may be overdue before the monitor is down.",
    ),
]
MaxDuration = Annotated[
    int | None,
    Field(
        ge=1,
        le=DURATION_SECONDS_MAX,
        description="Seconds a run may take from its start ping to its end; null: as long as the grace.",
    ),
]
MinDuration = Annotated[
    int | None,
    Field(ge=1, le=DURATION_SECONDS_MAX, description="A run that ends sooner has failed, in seconds; null: none has."),
]
PostOnly = Annotated[
    bool, Field(description="Take POST alone, so that whoever follows a link by accident reports nothing.")
]
ResumeOnPing = Annotated[bool, Field(description="Whether a success resumes the monitor when it is paused.")]


class MonitorIn(Input):
    """A monitor to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Nightly backup",
                    "schedule": "every day at 2am",
                    "timezone": "Europe/Paris",
                    "grace_period_seconds": 1800,
                }
            ]
        }
    )

    name: Name
    schedule: ExpectedText
    timezone: Timezone = "UTC"
    language: LanguageIn | None = None
    dst: Dst = "run_once"
    day_match: DayMatch = "either"
    grace_period_seconds: Grace = 300
    max_duration_seconds: MaxDuration = None
    min_duration_seconds: MinDuration = None
    post_only: PostOnly = False
    resume_on_ping: ResumeOnPing = True
    notify: MonitorNotifyIn = Field(default_factory=MonitorNotifyIn)
    tags: Tags = Field(default=[])


class MonitorChange(Input):
    """What to change. Fields left out stay; `notify` is merged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_period_seconds": 3600}]})

    name: Name = unset()
    schedule: ExpectedText = unset()
    timezone: Timezone = unset()
    language: LanguageIn = unset()
    dst: Dst = unset()
    day_match: DayMatch = unset()
    grace_period_seconds: Grace = unset()
    max_duration_seconds: MaxDuration = None
    min_duration_seconds: MinDuration = None
    post_only: PostOnly = unset()
    resume_on_ping: ResumeOnPing = unset()
    notify: MonitorNotifyIn = unset()
    tags: Tags = unset()


class PauseIn(Input):
    """How long to pause."""

    until: str | None = Field(
        default=None,
        max_length=40,
        description="RFC 3339; the monitor resumes itself then. Null: until somebody resumes it.",
        examples=["2027-01-02T09:00:00Z"],
        json_schema_extra={"format": "date-time"},
    )


class MonitorOut(Output):
    """A monitor: what was written, and where it stands."""

    id: Identifier
    version: int = Field(description="Grows with every change.")
    name: str
    status: Literal["active", "paused"]
    health: Literal["new", "up", "late", "down"] = Field(
        description="`new`: no ping yet; `late`: overdue, within its grace. Of a paused monitor: when it was paused."
    )
    health_since: InstantText
    reason: FlipReason | None = Field(description="Why its health is what it is.")
    explanation: str | None = Field(description="The reason as a sentence.")
    schedule: str = Field(description="As it was written.")
    schedule_kind: Literal["cron", "interval", "once"] = Field(
        description="`interval` is a period, counted from the last success."
    )
    schedule_cron: str | None
    description: str = Field(description="The schedule in words, in `language`.")
    timezone: str
    language: LanguageCode
    dst: Dst
    day_match: DayMatch
    grace_period_seconds: int
    max_duration_seconds: int | None
    min_duration_seconds: int | None
    post_only: bool
    resume_on_ping: bool
    notify: MonitorNotifyOut
    tags: list[str]
    expected_at: InstantText | None = Field(description="When the next ping is expected.")
    down_at: InstantText | None = Field(description="When the monitor is down if no ping comes.")
    last_ping_at: InstantText | None
    last_ping_kind: PingKind | None
    running: int = Field(description="Runs that started and have not ended.")
    paused_until: InstantText | None
    ping_token: str | None = Field(
        description="Whoever has it can report for this monitor. Null for who lacks the permission `ping-admin`."
    )
    ping_url: str | None = Field(
        description="GET, HEAD or POST it; `/start`, `/fail`, `/log` or an exit code may follow. Null as `ping_token`."
    )
    pings: int = Field(description="How many came.")
    warnings: list[str]
    created_at: InstantText
    updated_at: InstantText


class MonitorPage(Output):
    """Some of the monitors."""

    items: list[MonitorOut]
    next_cursor: NextCursor


class PingOut(Output):
    """A ping."""

    number: int = Field(description="Counts the monitor's pings from 1.")
    kind: PingKind
    received_at: InstantText
    rid: str | None = Field(description="The run it was about, as its sender named it.")
    exit_code: int | None
    duration_ms: int | None = Field(description="From the start ping of the run to this one.")
    method: str
    source: str = Field(description="The address it came from.")
    user_agent: str
    body: str | None = Field(description="The first 10,000 bytes; what is no UTF-8 is replaced.")
    body_bytes: int


class PingPage(Output):
    """Some of the pings."""

    items: list[PingOut]
    next_cursor: NextCursor


class FlipOut(Output):
    """A change of what a monitor showed."""

    id: str = Field(description="The monitor's id, a dot and its number.")
    at: InstantText
    noticed_at: InstantText = Field(description="When 0cron found out; `at` is when it was so.")
    before: Literal["new", "up", "down", "paused"]
    after: Literal["new", "up", "down", "paused"]
    reason: FlipReason
    explanation: str
    expected_at: InstantText | None = Field(description="The ping that did not come.")
    last_ping_at: InstantText | None
    exit_code: int | None
    missed: int = Field(description="Expected pings that had not come by then.")
    lasted_ms: int = Field(description="How long the monitor had shown what it showed before.")


class FlipPage(Output):
    """Some of the flips."""

    items: list[FlipOut]
    next_cursor: NextCursor


class DayOut(Output):
    """One day by the monitor's clocks. Time that it was new or paused counts as neither."""

    date: str = Field(examples=["2027-01-15"])
    up_seconds: float
    down_seconds: float
    downs: int = Field(description="How often it went down.")
    uptime: float | None = Field(description="Between 0 and 1; null when there was nothing to judge.")


class UptimeOut(Output):
    """How long it was up and down, together and day by day, oldest first."""

    timezone: str
    up_ratio: float | None = Field(
        description="Of all the days, between 0 and 1; null when there was nothing to judge."
    )
    downs: int
    down_seconds: float
    items: list[DayOut]


class UptimeOfMonitor(UptimeOut):
    """The same, of one of several."""

    monitor_id: Identifier


class UptimesOut(Output):
    """The uptimes of some monitors."""

    items: list[UptimeOfMonitor]
