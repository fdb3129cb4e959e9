"""/v1/jobs: the jobs of a team."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import APIRouter, Query, Response

from zerocron.actions.jobs import JobSpec
from zerocron.api.fields import (
    SORT_TEXT,
    Cursor,
    JobId,
    Limit,
    instant,
    key_kind,
    maybe_instant,
    page_of,
    read_cursor,
)
from zerocron.api.job_models import (
    JobChange,
    JobIn,
    JobOut,
    JobPage,
    JsonRuleIn,
    JsonRuleOut,
    LanguageCode,
    LastRunOut,
    RetryChange,
    RetryOut,
    StatsOut,
    SuccessChange,
    SuccessIn,
    SuccessOut,
)
from zerocron.api.notify_models import JobNotifyOut, changed_notify, notify_out
from zerocron.api.runs import RunOut, run_out
from zerocron.api.services import KEY_REUSED, OnceKey, Use, Who, note_replay
from zerocron.core.alerting import JOB_DEFAULT
from zerocron.core.model import (
    Catchup,
    Job,
    JobState,
    JsonRule,
    OnLost,
    Overlap,
    RetryPolicy,
    RunStatus,
    SuccessRule,
    TriggeredBy,
)
from zerocron.core.understanding import describe

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

JobStatusIn = Literal["active", "paused", "disabled", "completed"]
JobStateIn = Literal["failing", "running", "passing"]
JobSortIn = Literal["created_at", "-created_at", "name", "-name", "next_run_at", "updated"]
_CHANGED_MEANWHILE = "Somebody else changed the job at the same moment."


@router.post(
    "",
    status_code=201,
    response_model=JobOut,
    responses={409: {"description": f"The team has as many jobs as it may, or: {KEY_REUSED}"}},
)
async def create_job(given: JobIn, who: Who, services: Use, response: Response, key: OnceKey = None) -> JobOut:
    """Create a job. It starts to run at its next slot."""
    job, is_new = await services.jobs.create(who.team_id, _spec(given), key)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    note_replay(response, is_new=is_new)
    return job_out(job)


@router.get("", response_model=JobPage)
async def list_jobs(
    who: Who,
    services: Use,
    status: Annotated[JobStatusIn | None, Query(description="Only jobs of this status.")] = None,
    state: Annotated[
        JobStateIn | None,
        Query(
            description="Only jobs whose last run failed and that are not stopped (`failing`), that have a run under "
            "way (`running`), or whose last run succeeded (`passing`)."
        ),
    ] = None,
    tag: Annotated[str | None, Query(max_length=50, description="Only jobs with this tag.")] = None,
    q: Annotated[str | None, Query(max_length=200, description="Only jobs with this in their name or URL.")] = None,
    sort: Annotated[JobSortIn, Query(description=f"The order. {SORT_TEXT} Jobs without a next run come last.")] = (
        "-created_at"
    ),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobPage:
    """Jobs, newest first unless `sort` says otherwise. A cursor goes on in the order it was made for."""
    found = await services.jobs.page(
        who.team_id,
        status=status,
        state=state,
        tag=tag,
        text=q,
        sort=sort,
        before=read_cursor(cursor, key_kind(sort), str),
        limit=limit + 1,
    )
    shown, more = page_of(found, limit, lambda row: (row[0], row[1].id))
    return JobPage(items=[job_out(job) for _, job in shown], next_cursor=more)


@router.get("/{job_id}", response_model=JobOut)
async def show_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """One job: what was written, and where it stands."""
    return job_out(await services.jobs.get(who.team_id, job_id))


@router.patch("/{job_id}", response_model=JobOut, responses={409: {"description": _CHANGED_MEANWHILE}})
async def edit_job(job_id: JobId, change: JobChange, who: Who, services: Use) -> JobOut:
    """Change a job. Fields left out stay as they are.

    A new schedule counts from now, and no slot of the old one is created any more; a request under way goes on as it
    was.
    """
    return job_out(await services.jobs.edit(who.team_id, job_id, lambda spec: _changed(spec, change)))


@router.delete("/{job_id}", status_code=204, responses={409: {"description": _CHANGED_MEANWHILE}})
async def delete_job(job_id: JobId, who: Who, services: Use) -> None:
    """Delete a job. Its runs can still be read by their ids.

    Waiting runs and retries are cancelled; a request under way goes on.
    """
    await services.jobs.delete(who.team_id, job_id)


@router.post(
    "/{job_id}/pause",
    response_model=JobOut,
    responses={409: {"description": "The job is completed, or somebody else changed it at the same moment."}},
)
async def pause_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """Stop the schedule of a job and cancel its waiting runs and retries.

    A request under way goes on. Pausing twice is no error.
    """
    return job_out(await services.jobs.pause(who.team_id, job_id))


@router.post(
    "/{job_id}/resume",
    response_model=JobOut,
    responses={409: {"description": "The schedule has no slot left, or somebody else changed the job."}},
)
async def resume_job(job_id: JobId, who: Who, services: Use) -> JobOut:
    """Go on with the next slot from now. Paused time is never replayed.

    A job that was disabled starts to count its failures anew. Resuming twice is no error.
    """
    return job_out(await services.jobs.resume(who.team_id, job_id))


@router.post(
    "/{job_id}/trigger",
    status_code=202,
    response_model=RunOut,
    responses={
        409: {"description": f"The job is paused or disabled. {KEY_REUSED}"},
        429: {"description": "The team has started as many runs in this minute as it may."},
    },
)
async def trigger_job(job_id: JobId, who: Who, services: Use, response: Response, key: OnceKey = None) -> RunOut:
    """Run a job now, outside of its schedule, which does not move. The overlap policy applies.

    The answer is the new run; look at it again to see how it ended.
    """
    run, is_new = await services.jobs.trigger(who.team_id, job_id, triggered_by=TriggeredBy.API, idempotency_key=key)
    response.headers["Location"] = f"/v1/runs/{run.id}"
    note_replay(response, is_new=is_new)
    return run_out(run)


def job_out(job: Job) -> JobOut:
    definition, state = job.definition, job.state
    return JobOut(
        id=job.id,
        version=job.version,
        name=job.name,
        schedule=job.schedule_text,
        schedule_kind=job.schedule.kind,
        schedule_cron=job.schedule.cron,
        description=describe(job.schedule, job.language),
        timezone=job.schedule.timezone,
        language=cast(LanguageCode, job.language),
        dst=job.schedule.dst,
        day_match=job.schedule.day_match,
        status=cast(JobStatusIn, job.status),
        status_reason=state.status_reason,
        url=definition.url,
        method=definition.method,
        headers=dict(definition.headers),
        body=definition.body,
        timeout=definition.timeout_seconds,
        retry=RetryOut(
            attempts=definition.retry.attempts,
            backoff=definition.retry.backoff,
            delay=definition.retry.delay_seconds,
            jitter=cast(Literal["none", "full"], definition.retry.jitter),
        ),
        overlap=Overlap(job.overlap),
        catchup=Catchup(job.catchup),
        catchup_window=job.catchup_window_seconds,
        on_lost=OnLost(job.on_lost),
        disable_after=job.disable_after,
        redirects=definition.redirects,
        verify_tls=definition.verify_tls,
        sign=definition.sign,
        success=_success_out(definition.success),
        notify=JobNotifyOut(**notify_out(job.notify, "job")),
        tags=list(job.tags),
        next_run_at=maybe_instant(state.next_run_at),
        last_run=_last_run(state),
        stats=_stats(state),
        warnings=list(job.warnings),
        created_at=instant(job.created_at),
        updated_at=instant(job.updated_at),
    )


def _success_out(rule: SuccessRule) -> SuccessOut:
    return SuccessOut(
        status=list(rule.status),
        body_contains=rule.body_contains,
        body_not_contains=rule.body_not_contains,
        body_matches=rule.body_matches,
        json=[JsonRuleOut(path=each.path, equals=orjson.loads(each.equals)) for each in rule.json],
        headers=dict(rule.headers),
        max_duration_ms=rule.max_duration_ms,
    )


def _last_run(state: JobState) -> LastRunOut | None:
    last = state.last_run
    if last is None:
        return None
    return LastRunOut(
        id=last.id,
        status=RunStatus(last.status),
        scheduled_for=instant(last.scheduled_for),
        finished_at=instant(last.finished_at),
    )


def _stats(state: JobState) -> StatsOut:
    ended = state.succeeded + state.failed
    return StatsOut(
        succeeded=state.succeeded,
        failed=state.failed,
        skipped=state.skipped,
        consecutive_failures=state.consecutive_failures,
        average_duration_ms=round(state.duration_ms_total / ended, 3) if ended else None,
    )


def _spec(given: JobIn) -> JobSpec:
    return JobSpec(
        name=given.name,
        schedule=given.schedule,
        url=given.url,
        timezone=given.timezone if "timezone" in given.model_fields_set else None,
        method=given.method,
        headers=given.headers,
        body=body_text(given.body),
        timeout_seconds=given.timeout,
        retry=RetryPolicy(given.retry.attempts, given.retry.backoff, given.retry.delay, given.retry.jitter),
        overlap=Overlap(given.overlap),
        catchup=Catchup(given.catchup),
        catchup_window_seconds=given.catchup_window,
        on_lost=OnLost(given.on_lost),
        success=success_rule(given.success),
        disable_after=given.disable_after,
        redirects=given.redirects,
        verify_tls=given.verify_tls,
        sign=given.sign,
        notify=changed_notify(JOB_DEFAULT, given.notify),
        tags=tuple(dict.fromkeys(given.tags)),
        dst=given.dst,
        day_match=given.day_match,
        language=given.language,
    )


def success_rule(given: SuccessIn) -> SuccessRule:
    return SuccessRule(
        status=tuple(given.status),
        body_contains=given.body_contains,
        body_not_contains=given.body_not_contains,
        body_matches=given.body_matches,
        json=_json_rules(given.json_),
        headers=tuple(given.headers.items()),
        max_duration_ms=given.max_duration_ms,
    )


def _json_rules(given: list[JsonRuleIn]) -> tuple[JsonRule, ...]:
    return tuple(JsonRule(each.path, orjson.dumps(each.equals).decode()) for each in given)


_RENAMED = {
    "timeout": "timeout_seconds",
    "catchup_window": "catchup_window_seconds",
    "delay": "delay_seconds",
    "json_": "json",
}


def _changed(spec: JobSpec, change: JobChange) -> JobSpec:
    """The specification with the given fields replaced."""
    convert: dict[str, Callable[[Any], Any]] = {
        "overlap": Overlap,
        "catchup": Catchup,
        "on_lost": OnLost,
        "tags": lambda tags: tuple(dict.fromkeys(tags)),
        "retry": lambda retry: dataclasses.replace(spec.retry, **_given(retry)),
        "success": lambda success: dataclasses.replace(spec.success, **_changed_rules(success)),
        "body": body_text,
        "notify": lambda notify: changed_notify(spec.notify, notify),
    }
    return dataclasses.replace(
        spec, **{name: convert.get(name, _same)(value) for name, value in _given(change).items()}
    )


def _changed_rules(change: SuccessChange) -> dict[str, Any]:
    convert: dict[str, Callable[[Any], Any]] = {
        "status": tuple,
        "json": _json_rules,
        "headers": lambda headers: tuple(headers.items()),
    }
    return {name: convert.get(name, _same)(value) for name, value in _given(change).items()}


def _given(change: JobChange | RetryChange | SuccessChange) -> dict[str, Any]:
    """The fields that were given, by the names they have in a specification."""
    values = {name: getattr(change, name) for name in change.model_fields_set}
    return {_RENAMED.get(name, name): value for name, value in values.items()}


def _same(value: Any) -> Any:
    return value


def body_text(given: str | dict[str, Any] | list[Any] | None) -> str | None:
    return given if given is None or isinstance(given, str) else orjson.dumps(given).decode()
