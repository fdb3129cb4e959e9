"""What people see at a glance: all jobs and monitors of a team, and how a job has done.

Owns what is put together for that, and its bounds. Every answer is one snapshot of the ledger. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from zerocron.actions.monitors import verdicts
from zerocron.clock import Clock
from zerocron.core import hours as hour_rules
from zerocron.core.errors import NotFound
from zerocron.core.histogram import exact_percentile, percentile
from zerocron.core.hours import HOUR_MS, Totals
from zerocron.core.model import Instant, JobStatus, RunStatus, is_uuid
from zerocron.core.monitor import Health
from zerocron.storage.ledger import glances, hours
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.glances import JobCounts, Mark, RunFact, Troubled

DAY_MS = 86_400_000
HOURS_SHOWN = 24
ATTENTION_MAX = 20
UPCOMING_MAX = 10
MARKS_MAX = 100
STRIP_JOBS_MAX = 100
LATE_JUDGED_MAX = 1_000
"""So many monitors that may be late are looked at one by one."""

STREAK_LOOKED_AT = 100
"""So far back a streak of failures is followed to its beginning."""

RUNS_COUNTED_MAX = 5_000
"""Of the newest runs of a job in a period, for statistics."""

POINTS_MAX = 500
TAGS_MAX = 1_000

ENDED = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.LOST)


@dataclass(frozen=True, slots=True)
class Attention:
    """A job or a monitor that needs somebody."""

    kind: str
    id: str
    name: str
    state: str
    since: Instant
    detail: str


@dataclass(frozen=True, slots=True)
class Hour:
    """What happened in one hour. `totals` None: nobody counted it."""

    start: Instant
    totals: Totals | None
    lost: int
    lateness: dict[int, int]

    def late(self, percent: int) -> int | None:
        return percentile(self.lateness, percent)


@dataclass(frozen=True, slots=True)
class Glance:
    """A team as a whole."""

    jobs: JobCounts
    running: int
    monitors: dict[str, int]
    attention: list[Attention]
    upcoming: list[tuple[str, str, Instant]]
    hours: list[Hour]
    now: Instant


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a chart."""

    run_id: str
    at: Instant
    status: str
    duration_ms: int


@dataclass(slots=True)
class Stats:
    """How a job did. `since` is where the counting began, the begin of the period unless there were too many runs."""

    since: Instant
    is_complete: bool
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    lost: int = 0
    durations_ms: list[int] = field(default_factory=list)
    lateness_ms: list[int] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def success_rate(self) -> float | None:
        ended = self.succeeded + self.failed + self.lost
        return round(self.succeeded / ended, 6) if ended else None


class Overview:
    """Questions about the jobs and monitors of a team."""

    def __init__(self, *, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def glance(self, team_id: str) -> Glance:
        now = self._clock.now()

        def transaction(connection: Connection) -> Glance:
            counts = glances.job_counts(connection, team_id)
            monitors, of_monitors = _monitors(connection, team_id, now)
            are_troubled = counts.failing or counts.disabled
            attention = [*(_troubled(connection, team_id) if are_troubled else ()), *of_monitors]
            attention.sort(key=lambda one: (_URGENCY.index(one.state), -one.since, one.id))
            return Glance(
                counts,
                glances.running_jobs(connection, team_id),
                monitors,
                attention[:ATTENTION_MAX],
                glances.upcoming(connection, team_id, UPCOMING_MAX),
                _hours(connection, team_id, counts.totals, now),
                now,
            )

        return await self._ledger.read(transaction)

    async def strips(self, team_id: str, job_ids: Sequence[str]) -> dict[str, list[Mark]]:
        """The last day of each of the jobs, oldest first, by the ids that are known here."""
        since = self._clock.now() - DAY_MS
        wanted = list(dict.fromkeys(job_id for job_id in job_ids if is_uuid(job_id)))
        found: dict[str, list[Mark]] = {job_id: [] for job_id in wanted}
        if wanted:
            for mark in await self._ledger.read(
                lambda connection: glances.strips(connection, team_id, wanted, since, MARKS_MAX)
            ):
                found[mark.job_id].append(mark)
        return {job_id: marks[-MARKS_MAX:] for job_id, marks in found.items()}

    async def stats(self, team_id: str, job_id: str, days: int) -> Stats:
        """Raises NotFound."""
        since = self._clock.now() - days * DAY_MS

        def transaction(connection: Connection) -> list[RunFact]:
            if not (is_uuid(job_id) and glances.is_job(connection, team_id, job_id)):
                raise NotFound("There is no such job.")
            return glances.newest_runs(connection, job_id, since, RUNS_COUNTED_MAX + 1)

        return stats_of(await self._ledger.read(transaction), since)

    async def tags(self, team_id: str) -> list[tuple[str, int]]:
        """(tag, how many jobs have it), the most used first."""
        counted: dict[str, int] = {}
        for names, jobs in await self._ledger.read(lambda connection: glances.tags(connection, team_id)):
            for name in names:
                counted[name] = counted.get(name, 0) + jobs
        return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:TAGS_MAX]


_URGENCY = ("down", "disabled", "failing", "late")


def stats_of(newest_first: Sequence[RunFact], since: Instant) -> Stats:
    """Statistics of the first RUNS_COUNTED_MAX of these runs."""
    is_complete = len(newest_first) <= RUNS_COUNTED_MAX
    counted = newest_first[:RUNS_COUNTED_MAX]
    made = Stats(since if is_complete else counted[-1].scheduled_for, is_complete)
    timed: list[Point] = []
    for run in reversed(counted):
        made.succeeded += run.status == RunStatus.SUCCEEDED
        made.failed += run.status == RunStatus.FAILED
        made.lost += run.status == RunStatus.LOST
        made.skipped += run.slots if run.status == RunStatus.SKIPPED else 0
        if run.started_at is not None:
            made.lateness_ms.append(max(0, run.started_at - run.scheduled_for))
        if run.status in ENDED and run.attempt_started_at is not None and run.finished_at is not None:
            duration = max(0, run.finished_at - run.attempt_started_at)
            timed.append(Point(run.run_id, run.scheduled_for, run.status, duration))
    made.durations_ms = sorted(point.duration_ms for point in timed)
    made.lateness_ms.sort()
    made.points = _thinned(timed)
    return made


def _thinned(points: list[Point]) -> list[Point]:
    """At most POINTS_MAX of them, in order: of neighbours one that failed, else the slowest."""
    step = -(-len(points) // POINTS_MAX) or 1
    groups = (points[first : first + step] for first in range(0, len(points), step))
    return [max(group, key=lambda point: (point.status != RunStatus.SUCCEEDED, point.duration_ms)) for group in groups]


def _troubled(connection: Connection, team_id: str) -> list[Attention]:
    found = glances.troubled_jobs(connection, team_id, ATTENTION_MAX)
    errors = glances.last_errors(connection, [job.last_run_id for job in found if job.last_run_id])
    failing = [job.id for job in found if job.status != JobStatus.DISABLED]
    runs: dict[str, list[Mark]] = {}
    if failing:
        for mark in glances.strips(connection, team_id, failing, 0, STREAK_LOOKED_AT):
            runs.setdefault(mark.job_id, []).append(mark)
    return [_of_job(job, errors.get(job.last_run_id or "", ""), runs.get(job.id, [])) for job in found]


def _of_job(job: Troubled, error: str, marks: list[Mark]) -> Attention:
    if job.status == JobStatus.DISABLED:
        return Attention("job", job.id, job.name, "disabled", job.updated_at, job.status_reason or error)
    since = job.last_run_finished_at or job.updated_at
    for mark in reversed(marks):
        if mark.status == RunStatus.SUCCEEDED:
            break
        if mark.status in ENDED:
            since = min(since, mark.scheduled_for)
    return Attention("job", job.id, job.name, "failing", since, error)


def _monitors(connection: Connection, team_id: str, now: Instant) -> tuple[dict[str, int], list[Attention]]:
    """(how many show what, those that need somebody)."""
    counts = dict.fromkeys(("new", "up", "late", "down", "paused"), 0) | glances.shown_counts(connection, team_id)
    attention = [
        Attention("monitor", monitor.id, monitor.name, "down", monitor.watch.since, "")
        for monitor in glances.down_monitors(connection, team_id, ATTENTION_MAX)
    ]
    candidates = glances.monitors_maybe_late(connection, team_id, now, LATE_JUDGED_MAX)
    for monitor, verdict in zip(candidates, verdicts(connection, candidates, now), strict=True):
        if verdict.health == Health.LATE:
            counts["late"] += 1
            counts["up"] -= monitor.watch.health == Health.UP
            counts["new"] -= monitor.watch.health == Health.NEW
            attention.append(Attention("monitor", monitor.id, monitor.name, "late", verdict.at or now, ""))
    return counts, attention


def _hours(connection: Connection, team_id: str, totals: Totals, now: Instant) -> list[Hour]:
    shown = hour_rules.hours_back(now, HOURS_SHOWN)
    looked_at, noted = hours.counters_of(connection, team_id, shown[0] - HOURS_SHOWN * HOUR_MS)
    grown = hour_rules.growth(shown, looked_at, noted, totals)
    lateness = hours.lateness_of(connection, team_id, shown[0])
    lost: dict[Instant, int] = {}
    for at in hours.lost_since(connection, team_id, shown[0]):
        lost[at - at % HOUR_MS] = lost.get(at - at % HOUR_MS, 0) + 1
    made = []
    for start in shown:
        found = grown.get(start)
        if found is not None:  # a job counts its lost runs as failed
            found = found._replace(failed=max(0, found.failed - lost.get(start, 0)))
        made.append(Hour(start, found, lost.get(start, 0), lateness.get(start, {})))
    return made


def three_of(ascending: list[int], middle: int, high: int) -> tuple[int, int, int] | None:
    """(the percentile `middle`, that of `high`, the largest) of values in order; None of none."""
    if not ascending:
        return None
    return exact_percentile(ascending, middle), exact_percentile(ascending, high), ascending[-1]
