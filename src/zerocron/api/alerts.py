"""/v1/alerts: what people were told, by which channel, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query
from pydantic import AfterValidator, Field

from zerocron.api.access import needs
from zerocron.api.fields import (
    Cursor,
    Identifier,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    maybe_instant,
    page_of,
    read_cursor,
)
from zerocron.api.services import Use, Who
from zerocron.api.wording import worded
from zerocron.core.access import Permission
from zerocron.core.model import is_uuid
from zerocron.core.notice import EventKind
from zerocron.storage.ledger.alerts import AlertRow

router = APIRouter(prefix="/v1/alerts", tags=["alerts"])

Status = Literal["pending", "sent", "folded", "dead"]


def _an_id(given: str | None) -> str | None:
    if given is not None and not is_uuid(given):
        raise worded("This has to be an id (36 characters, as lists show it); a name is none.")
    return given


class AlertOut(Output):
    """One message owed to one channel about one event."""

    id: Identifier
    event_id: Identifier = Field(description="The same for every channel that is told of the event.")
    event: str = Field(description="What happened, such as `job.failed`.", examples=[str(EventKind.JOB_FAILED)])
    reminder: bool = Field(description="Whether the same was told before, and lasts.")
    subject_id: Identifier = Field(description="The job, monitor, channel or team it is about.")
    subject_name: str
    happened_at: InstantText
    reason: str | None = Field(description="What happened, in a sentence.")
    channel_id: Identifier
    channel_name: str
    channel_kind: str
    status: Status = Field(
        description="`folded`: told in the message of another alert, `digest_id`. `dead`: it was not delivered and is "
        "not tried any more; `last_error` says why, also of those folded into it."
    )
    tries: int = Field(description="How often it was sent, or tried to.")
    next_attempt_at: InstantText | None = Field(description="When it is sent next; null when it is not any more.")
    digest_id: Identifier | None = Field(description="The alert in whose message this one travels.")
    detail: str | None = Field(description="What the service said when it took the message.")
    last_error: str | None = Field(description="Why the last try failed.")
    created_at: InstantText
    finished_at: InstantText | None = Field(
        description="When it was sent (`folded`: that other one) or given up; null while it waits."
    )


class AlertPage(Output):
    """Some of the alerts."""

    items: list[AlertOut]
    next_cursor: NextCursor


@router.get("", response_model=AlertPage)
@needs(Permission.READ)
async def list_alerts(
    who: Who,
    services: Use,
    status: Annotated[Status | None, Query(description="Only alerts of this status.")] = None,
    channel: Annotated[
        str | None, Query(max_length=36, description="Only those of the channel of this id."), AfterValidator(_an_id)
    ] = None,
    subject: Annotated[
        str | None,
        Query(max_length=36, description="Only those about the job or monitor of this id."),
        AfterValidator(_an_id),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AlertPage:
    """Alerts, newest first. Those that ended are kept for 30 days."""
    found = await services.channels.alerts(
        who.team_id,
        status=status,
        channel_id=channel,
        subject_id=subject,
        before=read_cursor(cursor, int, str),
        limit=limit + 1,
    )
    shown, more = page_of(found, limit, lambda item: (item[0].created_at, item[0].id))
    return AlertPage(items=[_out(*item) for item in shown], next_cursor=more)


def _out(alert: AlertRow, channel_name: str, channel_kind: str) -> AlertOut:
    notice = alert.notice
    return AlertOut(
        id=alert.id,
        event_id=alert.event_id,
        event=alert.kind,
        reminder=notice is not None and notice.reminder,
        subject_id=alert.subject_id,
        subject_name=notice.subject_name if notice else "",
        happened_at=instant(notice.at if notice else alert.created_at),
        reason=notice.reason if notice else None,
        channel_id=alert.channel_id,
        channel_name=channel_name,
        channel_kind=channel_kind,
        status=cast(Any, str(alert.status)),
        tries=alert.tries,
        next_attempt_at=maybe_instant(alert.next_attempt_at),
        digest_id=alert.digest_id,
        detail=alert.detail,
        last_error=alert.last_error,
        created_at=instant(alert.created_at),
        finished_at=maybe_instant(alert.finished_at),
    )
