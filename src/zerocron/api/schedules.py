"""/v1/schedules: what a schedule would mean, before a job has it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from zerocron.api.fields import Input, Output, instant
from zerocron.api.services import Use, Who
from zerocron.core.errors import Invalid
from zerocron.core.instants import from_rfc3339
from zerocron.core.schedule import parse

NEXT_MAX = 100

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


class PreviewIn(Input):
    schedule: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] = Field(examples=["0 9 * * 1-5"])
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] = "UTC"
    after: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        None, description="RFC 3339; now when left out."
    )
    count: int = Field(5, ge=1, le=NEXT_MAX)
    language: Literal["en"] = "en"


class PreviewOut(Output):
    kind: Literal["cron", "interval", "once"]
    schedule_cron: str | None
    timezone: str
    description: str
    next: list[str]
    warnings: list[str]


@router.post("/preview", response_model=PreviewOut)
async def preview_schedule(given: PreviewIn, _who: Who, services: Use) -> PreviewOut:
    """What a schedule means, in words and in its next instants."""
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
        return from_rfc3339(text)
    except (ValueError, OverflowError):
        raise Invalid("Write the instant as 2027-01-01T09:00:00Z.", field="after") from None
