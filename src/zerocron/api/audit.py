"""/v1/audit: who did what, and when; also as a table for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from zerocron.api.access import needs
from zerocron.api.fields import (
    Cursor,
    Identifier,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    page_of,
    read_cursor,
)
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.storage.ledger.audit import Entry

router = APIRouter(prefix="/v1", tags=["audit"])

CSV_PAGE = 500
"""So many entries are held at a time while a table is written."""

CSV_COLUMNS = (
    "at",
    "actor_kind",
    "actor_id",
    "actor_name",
    "address",
    "action",
    "subject_kind",
    "subject_id",
    "subject_name",
    "before",
    "after",
)
_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Also in full width, as some spreadsheets take them."""

SubjectId = Annotated[
    str | None,
    Query(max_length=64, description="Only what was done to the thing of this `id`; to a secret, by its name."),
]
ActionName = Annotated[
    str | None, Query(max_length=64, description="Only this action, such as `job.pause`.", examples=["job.pause"])
]

ActorId = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=36,
        description="Only what this person (`person_id`) or API key (`id`) did, also one that is gone; `server`: what "
        "0cron did of itself.",
    ),
]


class ActorOut(Output):
    """Who did it."""

    kind: Literal["person", "key", "server"] = Field(description="`server`: 0cron of itself.")
    id: str = Field(description="Of the person or the API key; empty for the server.")
    name: str = Field(description="As it was then.")


class AuditSubjectOut(Output):
    """What it was done to."""

    kind: str = Field(examples=["job"])
    id: str
    name: str = Field(description="As it was then.")


class AuditEntryOut(Output):
    """One act."""

    id: Identifier
    at: InstantText
    actor: ActorOut
    address: str = Field(description="Where the request came from; empty where there was none.")
    action: str = Field(description="A noun and a verb.", examples=["job.edit"])
    subject: AuditSubjectOut
    before: dict[str, Any] | None = Field(
        description="The fields that changed, as they were; null when there were none. Values that may be, or hold, a "
        "secret read `(not recorded)`."
    )
    after: dict[str, Any] | None = Field(description="The same fields as they became.")


class AuditPage(Output):
    """Some of the entries."""

    items: list[AuditEntryOut]
    next_cursor: NextCursor


class CsvResponse(StreamingResponse):
    """A table that is sent while it is written."""

    media_type = "text/csv"


@router.get("/audit", response_model=AuditPage)
@needs(Permission.ADMIN)
async def list_audit_entries(
    who: Who,
    services: Use,
    subject_id: SubjectId = None,
    action: ActionName = None,
    actor_id: ActorId = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AuditPage:
    """What was done in the team, newest first: by whom, from where, and what it changed.

    Entries cannot be changed, and are removed only when they are old.
    """
    found = await services.audit.page(
        who.team_id,
        subject_id=subject_id,
        action=action,
        actor_id=actor_id,
        before=read_cursor(cursor, int, str),
        limit=limit + 1,
    )
    shown, more = page_of(found, limit, lambda entry: (entry.at, entry.id))
    return AuditPage(items=[_out(entry) for entry in shown], next_cursor=more)


@router.get(
    "/audit.csv",
    response_class=CsvResponse,
    responses={200: {"description": "The table; `before` and `after` are JSON.", "content": {"text/csv": {}}}},
)
@needs(Permission.ADMIN)
async def export_audit_entries(
    who: Who, services: Use, subject_id: SubjectId = None, action: ActionName = None, actor_id: ActorId = None
) -> CsvResponse:
    """The whole audit log as a table (CSV in UTF-8), newest first. No cell is a formula for a spreadsheet."""

    async def page(before: tuple[int, str] | None) -> list[Entry]:
        return await services.audit.page(
            who.team_id, subject_id=subject_id, action=action, actor_id=actor_id, before=before, limit=CSV_PAGE
        )

    first = await page(None)  # so that an error is an answer of its own, and not a table that ends

    async def lines() -> AsyncIterator[str]:
        yield _line(CSV_COLUMNS)
        found = first
        while found:
            yield "".join(_line(_cells(entry)) for entry in found)
            found = await page((found[-1].at, found[-1].id)) if len(found) == CSV_PAGE else []

    return CsvResponse(lines(), headers={"Content-Disposition": 'attachment; filename="0cron-audit.csv"'})


def _cells(entry: Entry) -> tuple[str, ...]:
    return (
        instant(entry.at),
        entry.actor_kind,
        entry.actor_id,
        entry.actor_name,
        entry.address,
        entry.action,
        entry.subject_kind,
        entry.subject_id,
        entry.subject_name,
        *("" if detail is None else orjson.dumps(dict(detail)).decode() for detail in (entry.before, entry.after)),
    )


def _line(cells: tuple[str, ...]) -> str:
    """One row as RFC 4180 has it. What a spreadsheet would take for a formula has an apostrophe before it."""
    text = io.StringIO()
    csv.writer(text).writerow(f"'{cell}" if cell.startswith(_STARTS_A_FORMULA) else cell for cell in cells)
    return text.getvalue()


def _out(entry: Entry) -> AuditEntryOut:
    return AuditEntryOut(
        id=entry.id,
        at=instant(entry.at),
        actor=ActorOut(
            kind=cast(Literal["person", "key", "server"], entry.actor_kind), id=entry.actor_id, name=entry.actor_name
        ),
        address=entry.address,
        action=entry.action,
        subject=AuditSubjectOut(kind=entry.subject_kind, id=entry.subject_id, name=entry.subject_name),
        before=None if entry.before is None else dict(entry.before),
        after=None if entry.after is None else dict(entry.after),
    )
