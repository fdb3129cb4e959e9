"""/v1/runs and /v1/executions: what happened, with the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from zerocron.api.fields import Cursor, Limit, Output, instant, maybe_instant, read_cursor, write_cursor
from zerocron.api.services import Use, Who
from zerocron.core.model import REASON_TEXTS, Execution, Reason, Run

router = APIRouter(prefix="/v1", tags=["runs"])

JobId = Annotated[str, Path(max_length=64, description="The job's `id`.")]
RunStatusIn = Literal["queued", "running", "retrying", "succeeded", "failed", "skipped", "cancelled", "lost"]


class RequestOut(Output):
    """What was sent."""

    url: str
    method: str
    headers: dict[str, str]
    body: str | None


class ResponseOut(Output):
    """What came back, up to 1 MB of body. `truncated` says that there was more."""

    status: int
    headers: dict[str, str]
    body: str | None
    body_bytes: int
    truncated: bool
    encoding: str


class ErrorOut(Output):
    kind: str
    message: str


class ExecutionOut(Output):
    """One HTTP attempt of a run."""

    id: str
    run_id: str
    attempt: int
    cause: str
    status: str
    started_at: str
    finished_at: str
    duration_ms: float
    timings_ms: dict[str, float | None]
    request: RequestOut | None
    response: ResponseOut | None
    error: ErrorOut | None


class RunOut(Output):
    """The one record of a slot, or of a trigger.

    A skipped run may stand for `count` slots, from `scheduled_for` to `scheduled_until`.
    """

    id: str
    job_id: str
    job_version: int
    scheduled_for: str
    triggered_by: str
    status: str
    reason: str | None
    explanation: str | None
    attempts: int
    retry_at: str | None
    lateness_ms: int | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    count: int
    scheduled_until: str | None


class RunWithExecutions(RunOut):
    executions: list[ExecutionOut]


class RunPage(Output):
    items: list[RunOut]
    next_cursor: str | None


class ExecutionPage(Output):
    items: list[ExecutionOut]
    next_cursor: str | None


@router.get("/jobs/{job_id}/runs", response_model=RunPage)
async def list_runs(
    job_id: JobId,
    who: Who,
    services: Use,
    status: Annotated[RunStatusIn | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """Runs of a job, latest slot first."""
    found = await services.jobs.runs(
        who.team_id, job_id, status=status, before=read_cursor(cursor, int, str), limit=limit + 1
    )
    last = found[limit - 1] if len(found) > limit else None
    more = write_cursor(last.scheduled_for, last.trigger_key) if last else None
    return RunPage(items=[run_out(run) for run in found[:limit]], next_cursor=more)


@router.get("/runs/{run_id}", response_model=RunWithExecutions)
async def show_run(
    run_id: Annotated[str, Path(max_length=64, description="The run's `id`.")], who: Who, services: Use
) -> RunWithExecutions:
    """One run with its executions."""
    run, executions = await services.jobs.run(who.team_id, run_id)
    return RunWithExecutions(
        **run_out(run).model_dump(), executions=[execution_out(execution) for execution in executions]
    )


@router.get("/jobs/{job_id}/executions", response_model=ExecutionPage)
async def list_executions(
    job_id: JobId, who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None
) -> ExecutionPage:
    """Executions of a job, latest slot first. Long bodies are null here; the execution itself has them."""
    found = await services.jobs.executions(
        who.team_id, job_id, before=read_cursor(cursor, int, str, int), limit=limit + 1
    )
    more = None
    if len(found) > limit:
        trigger_key, last = found[limit - 1]
        more = write_cursor(last.scheduled_for, trigger_key, last.attempt)
    return ExecutionPage(items=[execution_out(execution) for _, execution in found[:limit]], next_cursor=more)


@router.get("/executions/{execution_id}", response_model=ExecutionOut)
async def show_execution(
    execution_id: Annotated[str, Path(max_length=64, description="The execution's `id`.")], who: Who, services: Use
) -> ExecutionOut:
    """One execution, with its whole bodies."""
    return execution_out(await services.jobs.execution(who.team_id, execution_id))


def run_out(run: Run) -> RunOut:
    return RunOut(
        id=run.id,
        job_id=run.job_id,
        job_version=run.job_version,
        scheduled_for=instant(run.scheduled_for),
        triggered_by=run.triggered_by,
        status=run.status,
        reason=run.reason,
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
        cause=execution.cause,
        status=execution.status,
        started_at=instant(execution.started_at),
        finished_at=instant(execution.finished_at),
        duration_ms=execution.duration_ms,
        timings_ms=execution.timings,
        request=RequestOut(
            url=request["url"],
            method=request["method"],
            headers=_joined(request["headers"]),
            body=execution.request_body,
        )
        if request
        else None,
        response=ResponseOut(
            status=response["status"],
            headers=_joined(response["headers"]),
            body=execution.response_body,
            body_bytes=response["body_bytes"],
            truncated=response["truncated"],
            encoding=response["encoding"],
        )
        if response
        else None,
        error=ErrorOut(kind=execution.error_kind, message=execution.error_message or "")
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
