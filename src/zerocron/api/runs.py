"""/v1/runs and /v1/executions: what happened, with the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from zerocron.api.access import needs
from zerocron.api.fields import (
    Cursor,
    ExecutionId,
    Identifier,
    InstantText,
    JobId,
    Limit,
    NextCursor,
    Output,
    RunId,
    instant,
    maybe_instant,
    page_of,
    read_cursor,
)
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.core.model import (
    REASON_TEXTS,
    Cause,
    Execution,
    ExecutionStatus,
    Reason,
    Run,
    RunStatus,
    TriggeredBy,
)

router = APIRouter(prefix="/v1", tags=["runs"])

RunStatusIn = Literal["queued", "running", "retrying", "succeeded", "failed", "skipped", "cancelled", "lost"]


class SentRequestOut(Output):
    """What was sent."""

    url: str
    method: str
    headers: dict[str, str] = Field(description="By lower-case name.")
    body: str | None


class ReceivedAnswerOut(Output):
    """What came back."""

    status: int
    headers: dict[str, str] = Field(description="By lower-case name; repeated ones joined.")
    body: str | None = Field(description="The first 1,048,576 bytes; null in lists when it is long.")
    body_bytes: int = Field(
        description="How many bytes came over the wire; of an answer that held a secret, how "
        "many are left with its value masked."
    )
    truncated: bool = Field(description="There was more than is kept.")
    encoding: Literal["utf-8", "base64"] = Field(description="How `body` is written.")


class AttemptErrorOut(Output):
    """Why an attempt was no success."""

    kind: str = Field(
        description="Such as `timeout`, `dns_not_found`, `tls_expired`, `rule` (the success rule), `node_lost`."
    )
    message: str


class TimingsOut(Output):
    """Milliseconds; null where a phase did not happen. `first_byte` and `total` count from the start."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None
    total: float | None = None


class HopOut(Output):
    """One request of a chain of redirects."""

    method: str
    url: str
    status: int | None = Field(description="Null when no answer came.")
    with_body: bool = Field(description="Whether the body was sent.")


class ExecutionOut(Output):
    """One HTTP attempt of a run."""

    id: str = Field(examples=["01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11.1"])
    run_id: Identifier
    attempt: int = Field(description="From 1.")
    cause: Cause
    status: ExecutionStatus
    started_at: InstantText
    finished_at: InstantText
    duration_ms: float
    timings_ms: TimingsOut
    request: SentRequestOut | None
    hops: list[HopOut] = Field(description="Every request that was made, when redirects were followed; else empty.")
    response: ReceivedAnswerOut | None
    error: AttemptErrorOut | None


class RunOut(Output):
    """The one record of a slot, or of a trigger.

    A skipped run may stand for `count` slots, from `scheduled_for` to `scheduled_until`.
    """

    id: Identifier
    job_id: Identifier
    job_version: int = Field(description="The version of the job that it keeps to.")
    scheduled_for: InstantText
    triggered_by: TriggeredBy
    status: RunStatus
    reason: Reason | None = Field(description="Why it ended so, where the status alone does not say it.")
    explanation: str | None = Field(description="The reason in words.")
    attempts: int = Field(description="How many were made so far.")
    retry_at: InstantText | None = Field(description="When the next attempt is due.")
    lateness_ms: int | None = Field(description="From the slot to the first attempt.")
    created_at: InstantText
    started_at: InstantText | None
    finished_at: InstantText | None
    count: int = Field(description="How many slots this record stands for.")
    scheduled_until: InstantText | None


class RunWithExecutions(RunOut):
    """A run and every attempt that was made."""

    executions: list[ExecutionOut]


class RunPage(Output):
    """Some runs of a job."""

    items: list[RunOut]
    next_cursor: NextCursor


class ExecutionPage(Output):
    """Some executions of a job."""

    items: list[ExecutionOut]
    next_cursor: NextCursor


@router.get("/jobs/{job_id}/runs", response_model=RunPage)
@needs(Permission.READ)
async def list_runs(
    job_id: JobId,
    who: Who,
    services: Use,
    status: Annotated[RunStatusIn | None, Query(description="Only runs of this status.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """Runs of a job, latest slot first. Every slot is there: as a run, or as skipped with a reason."""
    found = await services.jobs.runs(
        who.team_id, job_id, status=status, before=read_cursor(cursor, int, str), limit=limit + 1
    )
    shown, more = page_of(found, limit, lambda run: (run.scheduled_for, run.trigger_key))
    return RunPage(items=[run_out(run) for run in shown], next_cursor=more)


@router.get("/runs/{run_id}", response_model=RunWithExecutions)
@needs(Permission.READ)
async def show_run(run_id: RunId, who: Who, services: Use) -> RunWithExecutions:
    """One run with its executions. Long bodies are null here; the execution itself has them."""
    run, executions = await services.jobs.run(who.team_id, run_id)
    return RunWithExecutions(
        **run_out(run).model_dump(), executions=[execution_out(execution) for execution in executions]
    )


@router.get("/jobs/{job_id}/executions", response_model=ExecutionPage)
@needs(Permission.READ)
async def list_executions(
    job_id: JobId, who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None
) -> ExecutionPage:
    """Executions of a job, latest slot first. Long bodies are null here; the execution itself has them."""
    found = await services.jobs.executions(
        who.team_id, job_id, before=read_cursor(cursor, int, str, int), limit=limit + 1
    )
    shown, more = page_of(found, limit, lambda row: (row[1].scheduled_for, row[0], row[1].attempt))
    return ExecutionPage(items=[execution_out(execution) for _, execution in shown], next_cursor=more)


@router.get("/executions/{execution_id}", response_model=ExecutionOut)
@needs(Permission.READ)
async def show_execution(execution_id: ExecutionId, who: Who, services: Use) -> ExecutionOut:
    """One execution, with its whole bodies: exactly what was sent and what came back."""
    return execution_out(await services.jobs.execution(who.team_id, execution_id))


def run_out(run: Run) -> RunOut:
    return RunOut(
        id=run.id,
        job_id=run.job_id,
        job_version=run.job_version,
        scheduled_for=instant(run.scheduled_for),
        triggered_by=TriggeredBy(run.triggered_by),
        status=RunStatus(run.status),
        reason=None if run.reason is None else Reason(run.reason),
        explanation=None if run.reason is None else REASON_TEXTS[Reason(run.reason)],
        attempts=run.attempt,
        retry_at=maybe_instant(run.retry_at),
        lateness_ms=None if run.started_at is None else run.started_at - run.scheduled_for,
        created_at=instant(run.created_at),
        started_at=maybe_instant(run.started_at),
        finished_at=maybe_instant(run.finished_at),
        count=run.count,
        scheduled_until=maybe_instant(run.scheduled_until),
    )


def execution_out(execution: Execution) -> ExecutionOut:
    request, response = execution.request, execution.response
    return ExecutionOut(
        id=execution.id,
        run_id=execution.run_id,
        attempt=execution.attempt,
        cause=Cause(execution.cause),
        status=ExecutionStatus(execution.status),
        started_at=instant(execution.started_at),
        finished_at=instant(execution.finished_at),
        duration_ms=execution.duration_ms,
        timings_ms=TimingsOut(**execution.timings),
        request=SentRequestOut(
            url=request["url"],
            method=request["method"],
            headers=_joined(request["headers"]),
            body=execution.request_body,
        )
        if request
        else None,
        hops=[
            HopOut(method=method, url=url, status=status, with_body=with_body)
            for method, url, status, with_body in request.get("hops", ())
        ],
        response=ReceivedAnswerOut(
            status=response["status"],
            headers=_joined(response["headers"]),
            body=execution.response_body,
            body_bytes=response["body_bytes"],
            truncated=response["truncated"],
            encoding=response["encoding"],
        )
        if response
        else None,
        error=AttemptErrorOut(kind=execution.error_kind, message=execution.error_message or "")
        if execution.error_kind
        else None,
    )


def _joined(pairs: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Headers by lower-case name; repeated ones joined as RFC 9110 5.3 allows, cookies by line."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        separator = "\n" if key == "set-cookie" else ", "
        joined[key] = joined[key] + separator + value if key in joined else value
    return joined
