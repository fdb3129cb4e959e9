"""/v1/jobs: the jobs of a team."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, StringConstraints

from zerocron.actions.jobs import JobSpec
from zerocron.api.fields import (
    Cursor,
    Input,
    Limit,
    Name,
    Output,
    ShortText,
    instant,
    maybe_instant,
    read_cursor,
    write_cursor,
)
from zerocron.api.runs import RunOut, run_out
from zerocron.api.services import OnceKey, Use, Who
from zerocron.core.errors import FieldError, Invalid
from zerocron.core.model import Catchup, Job, OnLost, Overlap, RetryPolicy, SuccessRule, TriggeredBy
from zerocron.core.retry import ATTEMPTS_MAX, DELAY_SECONDS_MAX

HEADERS_MAX = 50
HEADER_CHARACTERS_MAX = 8_192
TAGS_MAX = 20

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

JobId = Annotated[str, Path(max_length=64, description="The job's `id`.")]
HeaderValue = Annotated[str, StringConstraints(max_length=HEADER_CHARACTERS_MAX)]
HeaderName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=r"^[^\x00-\x1f\x7f]+$")]
StatusPattern = Annotated[str, StringConstraints(min_length=1, max_length=7)]
Condition = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class RetryIn(Input):
    """What to do about a failed attempt. `attempts` counts the first one: 1 means no retry."""

    attempts: int = Field(1, ge=1, le=ATTEMPTS_MAX)
    backoff: str = Field(
        "exponential",
        min_length=1,
        max_length=32,
        description="exponential (delay * 2^n), linear (delay * (n+1)) or fixed; others act as fixed, with a warning.",
    )
    delay: float = Field(5, ge=0, le=DELAY_SECONDS_MAX, description="Seconds before the first retry.")


class SuccessIn(Input):
    """When an answer counts as a success."""

    status: list[StatusPattern] = Field(
        default=["2xx"], min_length=1, max_length=20, description="`2xx`, `200-299`, `404`"
    )
    body_contains: Condition | None = None
    body_not_contains: Condition | None = None


class NotifyIn(Input):
    """Whom to tell. Nothing can be set here yet."""


class JobIn(Input):
    """A job to create."""

    name: Name
    schedule: ShortText = Field(
        min_length=1,
        description="A cron expression (5 fields, or 6 with leading seconds), an interval such as `every 90 minutes`, "
        "or one instant such as `2027-01-01 09:00`.",
        examples=["0 9 * * 1-5"],
    )
    url: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        examples=["https://example.com/hooks/nightly"]
    )
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] = "UTC"
    method: Annotated[str, StringConstraints(min_length=1, max_length=32)] = "GET"
    headers: dict[HeaderName, HeaderValue] = Field(default={}, max_length=HEADERS_MAX)
    body: str | dict[str, Any] | list[Any] | None = Field(
        default=None, description="Text, sent as it is; an object or a list is sent as JSON. At most 1 MB."
    )
    timeout: float = Field(30, ge=1, le=900, description="Seconds for the whole request, answer included.")
    retry: RetryIn = Field(default_factory=lambda: RetryIn.model_validate({}))
    overlap: Literal["skip", "queue", "allow"] = "skip"
    catchup: Literal["latest", "all", "none"] = "latest"
    catchup_window: int = Field(86_400, ge=0, le=31_622_400, description="Seconds a missed slot may be late.")
    on_lost: Literal["rerun", "give_up"] = "rerun"
    success: SuccessIn = Field(default_factory=lambda: SuccessIn.model_validate({}))
    notify: NotifyIn = Field(default_factory=NotifyIn)
    tags: list[Tag] = Field(default=[], max_length=TAGS_MAX)


class RetryChange(Input):
    attempts: int | None = Field(None, ge=1, le=ATTEMPTS_MAX)
    backoff: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    delay: float | None = Field(None, ge=0, le=DELAY_SECONDS_MAX)


class SuccessChange(Input):
    status: list[StatusPattern] | None = Field(None, min_length=1, max_length=20)
    body_contains: Condition | None = None
    body_not_contains: Condition | None = None


class JobChange(Input):
    """What to change. Fields left out stay; `retry` and `success` are merged, everything else is replaced."""

    name: Name | None = None
    schedule: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = None
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    method: Annotated[str, StringConstraints(min_length=1, max_length=32)] | None = None
    headers: dict[HeaderName, HeaderValue] | None = Field(None, max_length=HEADERS_MAX)
    body: str | dict[str, Any] | list[Any] | None = None
    timeout: float | None = Field(None, ge=1, le=900)
    retry: RetryChange | None = None
    overlap: Literal["skip", "queue", "allow"] | None = None
    catchup: Literal["latest", "all", "none"] | None = None
    catchup_window: int | None = Field(None, ge=0, le=31_622_400)
    on_lost: Literal["rerun", "give_up"] | None = None
    success: SuccessChange | None = None
    notify: NotifyIn | None = None
    tags: list[Tag] | None = Field(None, max_length=TAGS_MAX)


class RetryOut(Output):
    attempts: int
    backoff: str
    delay: float


class SuccessOut(Output):
    status: list[str]
    body_contains: str | None
    body_not_contains: str | None


class LastRunOut(Output):
    id: str
    status: str
    scheduled_for: str
    finished_at: str


class StatsOut(Output):
    """Runs, not attempts. `skipped` counts slots."""

    succeeded: int
    failed: int
    skipped: int
    consecutive_failures: int
    average_duration_ms: float | None


class JobOut(Output):
    """A job: what was written, and where it stands."""

    id: str
    version: int
    name: str
    schedule: str
    schedule_kind: str
    schedule_cron: str | None
    description: str
    timezone: str
    status: str
    url: str
    method: str
    headers: dict[str, str]
    body: str | None
    timeout: float
    retry: RetryOut
    overlap: str
    catchup: str
    catchup_window: int
    on_lost: str
    success: SuccessOut
    notify: dict[str, Any]
    tags: list[str]
    next_run_at: str | None
    last_run: LastRunOut | None
    stats: StatsOut
    warnings: list[str]
    created_at: str
    updated_at: str


class JobPage(Output):
    items: list[JobOut]
    next_cursor: str | None


@router.post("", status_code=201, response_model=JobOut)
async def create_job(given: JobIn, who: Who, services: Use, response: Response, key: OnceKey = None) -> JobOut:
    """Create a job. It starts to run at its next slot."""
    job, is_new = await services.jobs.create(who.team_id, _spec(given), key)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    if not is_new:
        response.headers["Idempotent-Replay"] = "true"
    return job_out(job)


@router.get("", response_model=JobPage)
async def list_jobs(
    who: Who,
    services: Use,
    status: Annotated[Literal["active", "paused", "completed"] | None, Query()] = None,
    tag: Annotated[str | None, Query(max_length=50)] = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the name or the URL.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobPage:
    """Jobs, newest first."""
    found = await services.jobs.page(
        who.team_id, status=status, tag=tag, text=q, before=read_cursor(cursor, int, str), limit=limit + 1
    )
    more = write_cursor(found[limit - 1].created_at, found[limit - 1].id) if len(found) > limit else None
    return JobPage(items=[job_out(job) for job in found[:limit]], next_cursor=more)


@router.get("/{job_id}", response_model=JobOut)
async def show_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """One job."""
    return job_out(await services.jobs.get(who.team_id, job_id))


@router.patch("/{job_id}", response_model=JobOut)
async def edit_job(job_id: JobId, change: JobChange, who: Who, services: Use) -> JobOut:
    """Change a job. A new schedule counts from now; what is running goes on as it was."""
    return job_out(await services.jobs.edit(who.team_id, job_id, lambda spec: _changed(spec, change)))


@router.delete("/{job_id}", status_code=204)
async def delete_job(job_id: JobId, who: Who, services: Use) -> None:
    """Delete a job. Waiting retries are cancelled; its runs can still be read by their ids."""
    await services.jobs.delete(who.team_id, job_id)


@router.post("/{job_id}/pause", response_model=JobOut)
async def pause_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """Stop the schedule and cancel waiting retries. A request under way goes on."""
    return job_out(await services.jobs.pause(who.team_id, job_id))


@router.post("/{job_id}/resume", response_model=JobOut)
async def resume_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """Go on with the next slot from now. Paused time is never replayed."""
    return job_out(await services.jobs.resume(who.team_id, job_id))


@router.post("/{job_id}/trigger", status_code=202, response_model=RunOut)
async def trigger_job(job_id: JobId, who: Who, services: Use, response: Response, key: OnceKey = None) -> RunOut:
    """Run a job now, outside of its schedule, which does not move. The overlap policy applies."""
    run, _ = await services.jobs.trigger(who.team_id, job_id, triggered_by=TriggeredBy.API, idempotency_key=key)
    response.headers["Location"] = f"/v1/runs/{run.id}"
    return run_out(run)


def job_out(job: Job) -> JobOut:
    definition, state = job.definition, job.state
    ended = state.succeeded + state.failed
    return JobOut(
        id=job.id,
        version=job.version,
        name=job.name,
        schedule=job.schedule_text,
        schedule_kind=job.schedule.kind,
        schedule_cron=job.schedule.cron,
        description=job.schedule.describe(),
        timezone=job.schedule.timezone,
        status=job.status,
        url=definition.url,
        method=definition.method,
        headers=dict(definition.headers),
        body=definition.body,
        timeout=definition.timeout_seconds,
        retry=RetryOut(
            attempts=definition.retry.attempts,
            backoff=definition.retry.backoff,
            delay=definition.retry.delay_seconds,
        ),
        overlap=job.overlap,
        catchup=job.catchup,
        catchup_window=job.catchup_window_seconds,
        on_lost=job.on_lost,
        success=SuccessOut(
            status=list(definition.success.status),
            body_contains=definition.success.body_contains,
            body_not_contains=definition.success.body_not_contains,
        ),
        notify=job.notify,
        tags=list(job.tags),
        next_run_at=maybe_instant(state.next_run_at),
        last_run=None
        if state.last_run is None
        else LastRunOut(
            id=state.last_run.id,
            status=state.last_run.status,
            scheduled_for=instant(state.last_run.scheduled_for),
            finished_at=instant(state.last_run.finished_at),
        ),
        stats=StatsOut(
            succeeded=state.succeeded,
            failed=state.failed,
            skipped=state.skipped,
            consecutive_failures=state.consecutive_failures,
            average_duration_ms=round(state.duration_ms_total / ended, 3) if ended else None,
        ),
        warnings=list(job.warnings),
        created_at=instant(job.created_at),
        updated_at=instant(job.updated_at),
    )


def _spec(given: JobIn) -> JobSpec:
    return JobSpec(
        name=given.name,
        schedule=given.schedule,
        url=given.url,
        timezone=given.timezone,
        method=given.method,
        headers=given.headers,
        body=_body(given.body),
        timeout_seconds=given.timeout,
        retry=RetryPolicy(given.retry.attempts, given.retry.backoff, given.retry.delay),
        overlap=Overlap(given.overlap),
        catchup=Catchup(given.catchup),
        catchup_window_seconds=given.catchup_window,
        on_lost=OnLost(given.on_lost),
        success=SuccessRule(tuple(given.success.status), given.success.body_contains, given.success.body_not_contains),
        tags=tuple(dict.fromkeys(given.tags)),
    )


_NULLABLE = {"body"}
_RENAMED = {"timeout": "timeout_seconds", "catchup_window": "catchup_window_seconds"}
_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "overlap": Overlap,
    "catchup": Catchup,
    "on_lost": OnLost,
    "tags": lambda tags: tuple(dict.fromkeys(tags)),
}


def _changed(spec: JobSpec, change: JobChange) -> JobSpec:
    """The specification with the given fields replaced. Raises Invalid where null would leave a field without value."""
    given = {name: getattr(change, name) for name in change.model_fields_set if name != "notify"}
    empty = [name for name, value in given.items() if value is None and name not in _NULLABLE]
    if empty:
        faults = [FieldError(name, "this field cannot be null; leave it out to keep it") for name in sorted(empty)]
        raise Invalid(f"{faults[0].field}: {faults[0].message}", fields=faults)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name == "retry":
            values["retry"] = _merged_retry(spec.retry, value)
        elif name == "success":
            values["success"] = _merged_success(spec.success, value)
        elif name == "body":
            values["body"] = _body(value)
        else:
            convert = _CONVERTED.get(name)
            values[_RENAMED.get(name, name)] = convert(value) if convert else value
    return dataclasses.replace(spec, **values)


def _merged_retry(retry: RetryPolicy, change: RetryChange) -> RetryPolicy:
    given = {name: value for name in change.model_fields_set if (value := getattr(change, name)) is not None}
    if "delay" in given:
        given["delay_seconds"] = given.pop("delay")
    return dataclasses.replace(retry, **given)


def _merged_success(rule: SuccessRule, change: SuccessChange) -> SuccessRule:
    given = {name: getattr(change, name) for name in change.model_fields_set}
    if given.get("status") is not None:
        given["status"] = tuple(given["status"])
    elif "status" in given:
        del given["status"]
    return dataclasses.replace(rule, **given)


def _body(given: str | dict[str, Any] | list[Any] | None) -> str | None:
    return given if given is None or isinstance(given, str) else orjson.dumps(given).decode()
