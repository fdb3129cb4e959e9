"""/v1/schedules: what a schedule would mean, before a job has it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from zerocron.api.fields import Input, InstantText, Output, instant
from zerocron.api.job_models import ScheduleText, Timezone
from zerocron.api.services import Use, Who
from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339
from zerocron.core.schedule import parse

NEXT_MAX = 100

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


class PreviewIn(Input):
    """A schedule to look at."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"schedule": "0 9 * * 1-5", "timezone": "Europe/Paris", "count": 3}]}
    )

    schedule: ScheduleText
    timezone: Timezone = "UTC"
    after: Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})] | None = Field(
        None, description="RFC 3339, from 1970 on; now when left out.", examples=["2027-01-01T09:00:00Z"]
    )
    count: int = Field(5, ge=1, le=NEXT_MAX, description="How many instants, at most 100.")
    language: Literal["en"] = Field("en", description="What the description is written in.")


class PreviewOut(Output):
    """What the schedule means."""

    kind: Literal["cron", "interval", "once"]
    schedule_cron: str | None = Field(description="The canonical cron expression; null for intervals and instants.")
    timezone: str
    description: str = Field(description="The schedule in words.")
    next: list[InstantText] = Field(description="Its next instants, as many as there are.")
    warnings: list[str] = Field(description="What is accepted, but may not be what was meant.")


@router.post("/preview", response_model=PreviewOut)
async def preview_schedule(given: PreviewIn, _who: Who, services: Use) -> PreviewOut:
    """What a schedule means, in words and in its next instants. Nothing is created.

    A schedule that cannot be read is refused with `suggestions`.
    """
    after = _after(given.after, services.clock.now())
    parsed = parse(given.schedule, timezone=given.timezone, now=after)
    schedule = parsed.schedule
    found: list[str] = []
    slot = schedule.next_after(after)
    while slot is not None and len(found) < given.count:
        found.append(instant(slot))
        slot = schedule.next_after(slot)
    return PreviewOut(
        kind=schedule.kind,
        schedule_cron=schedule.cron,
        timezone=schedule.timezone,
        description=schedule.describe(),
        next=found,
        warnings=list(parsed.warnings),
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
