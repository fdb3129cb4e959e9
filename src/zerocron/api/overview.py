"""/v1/overview, /v1/tags and the last day or the last months of jobs: what pages show at a glance."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query
from pydantic import Field

from zerocron.actions.overview import (
    ATTENTION_MAX,
    MARKS_MAX,
    POINTS_MAX,
    RUNS_COUNTED_MAX,
    STRIP_JOBS_MAX,
    UPCOMING_MAX,
    Glance,
    Hour,
    Stats,
    three_of,
)
from zerocron.api.access import needs
from zerocron.api.fields import Identifier, InstantText, JobId, Output, instant, read_ids
from zerocron.api.services import Use, Who
from zerocron.core.access import Permission
from zerocron.core.model import RunStatus

router = APIRouter(prefix="/v1")


class JobCountsOut(Output):
    """How many jobs there are."""

    active: int
    paused: int
    disabled: int
    completed: int
    failing: int = Field(description="Active or completed ones whose last run failed.")
    running: int = Field(description="Those with a run under way.")


class MonitorCountsOut(Output):
    """How many monitors show what."""

    new: int
    up: int
    late: int
    down: int
    paused: int


class AttentionOut(Output):
    """A job or a monitor that needs somebody."""

    kind: Literal["job", "monitor"]
    id: Identifier
    name: str
    state: Literal["down", "disabled", "failing", "late"]
    since: InstantText = Field(
        description="When it came to that; of a failing job its first failed slot since a success, looked for among "
        "its last 100 runs."
    )
    detail: str = Field(description="Why, in a sentence: of a failing job the last error. It may be empty.")


class UpcomingOut(Output):
    """The next slot of a job."""

    job_id: Identifier
    name: str
    at: InstantText


class HourOut(Output):
    """What happened in one hour of UTC.

    The counts are exact to the second in which the hour began. The lateness is what the nodes have added up so far,
    every 15 s, in sizes a quarter apart: a percentile is at most so much too large, and what a node had not added when
    it was killed is missing.
    """

    start: InstantText = Field(alias="from")
    is_counted: bool = Field(description="False when no server ran to count it; the counts are 0 then.")
    succeeded: int
    failed: int
    skipped: int = Field(description="Slots.")
    lost: int
    lateness_ms_p50: int | None = Field(description="From the slot to its first request; null without any.")
    lateness_ms_p99: int | None


class OverviewOut(Output):
    """A team as a whole."""

    jobs: JobCountsOut
    monitors: MonitorCountsOut
    attention: list[AttentionOut] = Field(description=f"The most urgent first, at most {ATTENTION_MAX}.")
    upcoming: list[UpcomingOut] = Field(description=f"What runs next, at most {UPCOMING_MAX} jobs.")
    hours: list[HourOut] = Field(description="The last 24, oldest first; the last one is under way.")
    now: InstantText


class MarkOut(Output):
    """A run in a strip."""

    run_id: Identifier
    scheduled_for: InstantText
    status: RunStatus
    count: int = Field(description="How many slots it stands for.")


class StripOut(Output):
    """The last 24 hours of a job."""

    job_id: Identifier
    marks: list[MarkOut] = Field(description=f"Oldest first; the newest {MARKS_MAX}.")


class StripsOut(Output):
    """The strips of some jobs."""

    items: list[StripOut]


class DurationsOut(Output):
    """Milliseconds, from the start of the last attempt to the record of its end."""

    p50: int
    p95: int
    max: int


class LatenessOut(Output):
    """Milliseconds, from the slot to the start of its first attempt."""

    p50: int
    p99: int
    max: int


class PointOut(Output):
    """A run in a chart."""

    at: InstantText
    duration_ms: int
    status: RunStatus
    run_id: Identifier


class StatsOfJob(Output):
    """How a job did in a period: exact, of its runs from `since` on."""

    since: InstantText = Field(
        description=f"The begin of the period, or where its newest {RUNS_COUNTED_MAX:,} runs begin."
    )
    is_complete: bool = Field(description=f"False when there were more than {RUNS_COUNTED_MAX:,} runs in the period.")
    succeeded: int
    failed: int
    skipped: int = Field(description="Slots.")
    lost: int
    success_rate: float | None = Field(description="Of the runs that ended, from 0 to 1; null without any.")
    duration_ms: DurationsOut | None
    lateness_ms: LatenessOut | None
    points: list[PointOut] = Field(
        description=f"At most {POINTS_MAX}, oldest first. Where there were more, each stands for its neighbours: one "
        "that failed, else the slowest."
    )


class TagOut(Output):
    """A tag."""

    tag: str
    jobs: int = Field(description="How many jobs have it.")


class TagList(Output):
    """The tags of a team's jobs."""

    items: list[TagOut]


@router.get("/overview", response_model=OverviewOut, tags=["overview"])
@needs(Permission.READ)
async def show_overview(who: Who, services: Use) -> OverviewOut:
    """All jobs and monitors at a glance: how many, what needs somebody, what runs next, and the last 24 hours."""
    return _overview(await services.overview.glance(who.team_id))


@router.get("/tags", response_model=TagList, tags=["jobs"])
@needs(Permission.READ)
async def list_tags(who: Who, services: Use) -> TagList:
    """The tags of all jobs, the most used first; at most 1,000."""
    return TagList(items=[TagOut(tag=tag, jobs=jobs) for tag, jobs in await services.overview.tags(who.team_id)])


@router.get("/jobs/strips", response_model=StripsOut, tags=["jobs"])
@needs(Permission.READ)
async def show_strips(
    who: Who,
    services: Use,
    ids: Annotated[
        str,
        Query(
            max_length=STRIP_JOBS_MAX * 37,
            description=f"Ids of jobs, at most {STRIP_JOBS_MAX}, with commas between them. One that is not known has "
            "no marks.",
            examples=["01999b6e-0c1d-7a52-9c07-1f6d6f0a4c11"],
        ),
    ],
) -> StripsOut:
    """The last 24 hours of some jobs, one mark for each run."""
    found = await services.overview.strips(who.team_id, read_ids(ids, "ids", STRIP_JOBS_MAX))
    return StripsOut(
        items=[
            StripOut(
                job_id=job_id,
                marks=[
                    MarkOut(
                        run_id=mark.run_id,
                        scheduled_for=instant(mark.scheduled_for),
                        status=RunStatus(mark.status),
                        count=mark.slots,
                    )
                    for mark in marks
                ],
            )
            for job_id, marks in found.items()
        ]
    )


@router.get("/jobs/{job_id}/stats", response_model=StatsOfJob, tags=["jobs"])
@needs(Permission.READ)
async def show_stats(
    job_id: JobId,
    who: Who,
    services: Use,
    days: Annotated[Literal["7", "30", "90"], Query(description="How many days back.")] = "7",
) -> StatsOfJob:
    """How a job did in the last days: counts, durations, lateness, and points for a chart."""
    return _stats(await services.overview.stats(who.team_id, job_id, int(days)))


def _overview(glance: Glance) -> OverviewOut:
    jobs = glance.jobs
    return OverviewOut(
        jobs=JobCountsOut(
            active=jobs.active,
            paused=jobs.paused,
            disabled=jobs.disabled,
            completed=jobs.completed,
            failing=jobs.failing,
            running=glance.running,
        ),
        monitors=MonitorCountsOut(**glance.monitors),
        attention=[
            AttentionOut(
                kind=cast(Literal["job", "monitor"], one.kind),
                id=one.id,
                name=one.name,
                state=cast(Literal["down", "disabled", "failing", "late"], one.state),
                since=instant(one.since),
                detail=one.detail,
            )
            for one in glance.attention
        ],
        upcoming=[UpcomingOut(job_id=job_id, name=name, at=instant(at)) for job_id, name, at in glance.upcoming],
        hours=[_hour(hour) for hour in glance.hours],
        now=instant(glance.now),
    )


def _hour(hour: Hour) -> HourOut:
    totals = hour.totals
    return HourOut(
        **{"from": instant(hour.start)},
        is_counted=totals is not None,
        succeeded=totals.succeeded if totals else 0,
        failed=totals.failed if totals else 0,
        skipped=totals.skipped if totals else 0,
        lost=hour.lost,
        lateness_ms_p50=hour.late(50),
        lateness_ms_p99=hour.late(99),
    )


def _stats(stats: Stats) -> StatsOfJob:
    durations, lateness = three_of(stats.durations_ms, 50, 95), three_of(stats.lateness_ms, 50, 99)
    return StatsOfJob(
        since=instant(stats.since),
        is_complete=stats.is_complete,
        succeeded=stats.succeeded,
        failed=stats.failed,
        skipped=stats.skipped,
        lost=stats.lost,
        success_rate=stats.success_rate,
        duration_ms=DurationsOut(p50=durations[0], p95=durations[1], max=durations[2]) if durations else None,
        lateness_ms=LatenessOut(p50=lateness[0], p99=lateness[1], max=lateness[2]) if lateness else None,
        points=[
            PointOut(
                at=instant(point.at),
                duration_ms=point.duration_ms,
                status=RunStatus(point.status),
                run_id=point.run_id,
            )
            for point in stats.points
        ],
    )
