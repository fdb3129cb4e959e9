"""/v1/schedules: what a schedule would mean, before a job has it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from zerocron.actions.schedules import read, spoken
from zerocron.api.access import needs
from zerocron.api.fields import Input, InstantText, Output, instant
from zerocron.api.job_models import DayMatch, Dst, LanguageCode, LanguageIn, ScheduleText, Timezone
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339
from zerocron.core.monitor_schedule import describe_expected, understand_expected
from zerocron.core.schedule import clock_changes
from zerocron.core.understanding import describe, understand

NEXT_MAX = 100

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


class PreviewIn(Input):
    """A schedule to look at."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"schedule": "every weekday at 9am", "timezone": "Europe/Paris", "count": 3}]}
    )

    schedule: ScheduleText
    timezone: Timezone = "UTC"
    after: Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})] | None = Field(
        None, description="RFC 3339, from 1970 on; now when left out.", examples=["2027-01-01T09:00:00Z"]
    )
    count: int = Field(5, ge=1, le=NEXT_MAX, description="How many instants, at most 100.")
    language: LanguageIn | None = None
    dst: Dst = "run_once"
    day_match: DayMatch = "either"
    subject: Literal["job", "monitor"] = Field(
        "job",
        description="What has the schedule. For a monitor a length alone (`every day`) is a period from ping to ping; "
        "its instants are shown as if a ping came at `after`.",
    )


class ClockChangeOut(Output):
    """A day on which `dst` decides something about the schedule."""

    at: InstantText
    kind: Literal["gap", "repeat"]
    effect: str = Field(description="What happens then, in a sentence.")


class PreviewOut(Output):
    """What the schedule means."""

    kind: Literal["cron", "interval", "once"]
    schedule_cron: str | None = Field(description="The canonical cron expression; null for intervals and instants.")
    timezone: str
    language: LanguageCode = Field(description="What the description is written in.")
    description: str = Field(description="The schedule in words.")
    next: list[InstantText] = Field(description="Its next instants, as many as there are.")
    warnings: list[str] = Field(description="What is accepted, but may not be what was meant.")
    clock_changes: list[ClockChangeOut] = Field(
        description="The days of the next two years on which a change of the clocks skips or repeats a time."
    )


@router.post("/preview", response_model=PreviewOut)
@needs(Permission.READ)
async def preview_schedule(given: PreviewIn, _who: Who, services: Use) -> PreviewOut:
    """What a schedule means, in words and in its next instants. Nothing is created.

    A schedule that cannot be read is refused with `suggestions`.
    """
    after = _after(given.after, services.clock.now())
    understood = read(
        given.schedule,
        timezone=given.timezone if "timezone" in given.model_fields_set else None,
        now=after,
        language=given.language,
        dst=given.dst,
        day_match=given.day_match,
        reader=understand if given.subject == "job" else understand_expected,
    )
    schedule = understood.schedule
    language = spoken(understood, given.language)
    found: list[str] = []
    slot = schedule.next_after(after)
    while slot is not None and len(found) < given.count:
        found.append(instant(slot))
        slot = schedule.next_after(slot)
    return PreviewOut(
        kind=schedule.kind,
        schedule_cron=schedule.cron,
        timezone=schedule.timezone,
        language=language,
        description=(describe if given.subject == "job" else describe_expected)(schedule, language),
        next=found,
        warnings=list(understood.warnings),
        clock_changes=[
            ClockChangeOut(at=instant(change.at), kind=change.kind, effect=change.effect)
            for change in clock_changes(schedule, after=after, language=language)
        ],
    )


def _after(text: str | None, now: int) -> int:
    if text is None:
        return now
    try:
        after = from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid("Write 'after' as 2027-01-01T09:00:00Z.", field="after") from None
    if after < 0:
        raise Invalid("Give an 'after' from 1970 on.", field="after")
    return after
