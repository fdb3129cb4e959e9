"""The verbs on jobs: create, edit, pause, resume, delete, trigger; and what can be read of them.

Owns the meaning of each verb, promise 8 above all: once pause, delete or an edit has returned, no new execution of the
old order of things starts. Each verb is one transaction; the timetable is told afterwards and may be told wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection

from zerocron.actions.channels import check_named
from zerocron.actions.counting import check_number_of_jobs, count_run
from zerocron.actions.idempotency import Once, make, still_there
from zerocron.actions.job_audit import changes_of
from zerocron.actions.schedules import given_timezone, read, spoken
from zerocron.clock import Clock
from zerocron.core import placeholders
from zerocron.core.access import SERVER, Actor
from zerocron.core.alerting import JOB_DEFAULT, Notify, checked, read_notify, write_notify
from zerocron.core.errors import Conflict, Invalid, NotFound
from zerocron.core.ids import new_id
from zerocron.core.lifecycle import OPEN, WAITING, Event, advance
from zerocron.core.model import (
    BODY_BYTES_MAX,
    STOPPED,
    Catchup,
    Definition,
    Execution,
    Instant,
    Job,
    JobState,
    JobStatus,
    OnLost,
    Overlap,
    Reason,
    RetryPolicy,
    Run,
    RunStatus,
    SuccessRule,
    is_uuid,
    skipped_run,
    split_execution_id,
)
from zerocron.core.phrases import Code as Language
from zerocron.core.planning import claim_on_place, left_behind
from zerocron.core.requests import check_header, check_method, check_url
from zerocron.core.retry import strategy_warning
from zerocron.core.schedule import DayMatch, DstPolicy
from zerocron.core.secret import SECRETS_A_REQUEST_MAX
from zerocron.core.success import check_path, check_pattern, check_status_pattern
from zerocron.core.team_limits import NO_LIMITS, Limits
from zerocron.core.understanding import DEFAULT_TIMEZONE, Understood
from zerocron.storage.ledger import audit, glances
from zerocron.storage.ledger import executions as execution_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger import signing as signing_rows
from zerocron.storage.ledger.database import Ledger, Transaction
from zerocron.storage.ledger.scheduled import Place
from zerocron.storage.timetable.contract import Timetable, job_member, run_member
from zerocron.storage.timetable.horizon import in_step, point_at

T = TypeVar("T")

UNVERIFIED = (
    "Certificates are not verified: whoever stands between 0cron and the target can read and change what is sent."
)

EARLY_MS_MAX = 1_000
"""No run is started earlier before its slot. More of it is a clock that was set back; nobody waits for that."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything a user may write about a job. Types and sizes are checked before; meanings are checked here."""

    name: str
    schedule: str
    url: str
    timezone: str | None = None
    """None: not given, so that a zone named in the schedule sets it; else UTC."""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    timeout_seconds: float = 30
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    overlap: Overlap = Overlap.SKIP
    catchup: Catchup = Catchup.LATEST
    catchup_window_seconds: int = 86_400
    on_lost: OnLost = OnLost.RERUN
    success: SuccessRule = field(default_factory=SuccessRule)
    disable_after: int = 0
    redirects: int = 0
    verify_tls: bool = True
    sign: bool = False
    tags: tuple[str, ...] = ()
    dst: DstPolicy = "run_once"
    day_match: DayMatch = "either"
    notify: Notify = JOB_DEFAULT
    language: Language | None = None
    """Of the schedule as typed; None: whichever understands it."""

    @classmethod
    def of(cls, job: Job) -> JobSpec:
        """The specification a job has now, for an edit to start from."""
        definition = job.definition
        return cls(
            name=job.name,
            schedule=job.schedule_text,
            url=definition.url,
            timezone=given_timezone(job.schedule),
            method=definition.method,
            headers=dict(definition.headers),
            body=definition.body,
            timeout_seconds=definition.timeout_seconds,
            retry=definition.retry,
            overlap=Overlap(job.overlap),
            catchup=Catchup(job.catchup),
            catchup_window_seconds=job.catchup_window_seconds,
            on_lost=OnLost(job.on_lost),
            success=definition.success,
            disable_after=job.disable_after,
            redirects=definition.redirects,
            verify_tls=definition.verify_tls,
            sign=definition.sign,
            tags=job.tags,
            dst=job.schedule.dst,
            day_match=job.schedule.day_match,
            notify=read_notify(job.notify, "job"),
        )


class Jobs:
    """Verbs on the jobs of a team. Another team's job is not there. `by`: who asked for it, for the audit log."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        allow_insecure_tls: bool = False,
        limits: Limits = NO_LIMITS,
    ) -> None:
        """`limits`: of teams that have none of their own."""
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._allow_insecure_tls = allow_insecure_tls
        self._limits = limits

    async def create(
        self, team_id: str, spec: JobSpec, idempotency_key: str | None = None, *, by: Actor = SERVER
    ) -> tuple[Job, bool]:
        """The new job and True; or the job this idempotency key made before and False. Raises Invalid, Conflict."""
        now = self._clock.now()
        once = Once.of(team_id, "jobs.create", idempotency_key, dataclasses.asdict(spec))

        def made_before(connection: Connection, earlier: str | None) -> Job | None:
            return None if earlier is None else still_there(job_rows.get(connection, team_id, earlier), "job")

        self._check_tls(spec)
        try:
            job = _build(spec, team_id=team_id, job_id=new_id(now), now=now)
        except Invalid:
            # An instant that was to come when the job was made may be past when the request is repeated.
            found = await self._ledger.read(lambda connection: made_before(connection, once.earlier(connection)))
            if found is None:
                raise
            return found, False

        def transaction(connection: Connection) -> tuple[Job, bool]:
            found = made_before(connection, once.claim(connection, job.id, now))
            if found is not None:
                return found, False
            check_number_of_jobs(connection, team_id, self._limits)
            _check_signing(connection, job, now)
            check_named(connection, team_id, spec.notify)
            job_rows.insert(connection, job)
            _, made = changes_of(JobSpec("", "", ""), spec)
            audit.record_of(connection, "job", job, "create", by, now, after=made)
            return job, True

        def look_up(connection: Connection) -> tuple[Job, bool] | None:
            found = job_rows.get(connection, team_id, job.id)
            return None if found is None else (found, True)

        made, is_new = await make(self._ledger, transaction, look_up)
        await self._point_at(made)
        return made, is_new

    async def get(self, team_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        return await self._ledger.read(lambda connection: _existing(connection, team_id, job_id, lock=False))

    async def page(
        self,
        team_id: str,
        *,
        status: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        sort: str = "-created_at",
        before: Place | None = None,
        limit: int = 50,
    ) -> list[tuple[Any, Job]]:
        """(what it is sorted by, job) in the order of `sort`: newest first, unless told otherwise."""
        condition = None if state is None else glances.JOB_STATES[state]
        return await self._ledger.read(
            lambda connection: job_rows.page(
                connection,
                team_id,
                status=status,
                state=condition,
                tag=tag,
                text=text,
                sort=sort,
                before=before,
                limit=limit,
            )
        )

    async def edit(self, team_id: str, job_id: str, change: Callable[[JobSpec], JobSpec], *, by: Actor = SERVER) -> Job:
        """Apply a change to the job as it is. A new schedule counts from now; no slot of the old one is created.

        Raises NotFound, Invalid.
        """

        def transaction(connection: Connection) -> Job:
            job = _existing(connection, team_id, job_id)
            now = self._clock.now()  # now that it is held: waiting for it may have taken longer than a run is early
            _check_begun(job, now)
            before = JobSpec.of(job)
            spec = change(before)
            if spec == before:
                return job
            if before.verify_tls:
                self._check_tls(spec)
            after = _first_free_instant(connection, job_id, now)
            edited = _rebuild(job, spec, before, now=now, after=after)
            if spec.notify != before.notify:
                check_named(connection, team_id, spec.notify)
            if not before.sign:
                _check_signing(connection, edited, now)
            if edited.state.next_run_at != job.state.next_run_at:
                _leave_behind(connection, job, edited, Reason.JOB_EDITED, now)
            if before.overlap == Overlap.ALLOW != spec.overlap:
                _give_place(connection, edited, now)
            _save(connection, edited, seen=job)
            was, became = changes_of(before, spec, {"status": job.status}, {"status": edited.status})
            audit.record_of(connection, "job", edited, "edit", by, now, before=was, after=became)
            return edited

        job = await self._write_when_begun(team_id, job_id, transaction)
        await self._point_at(job)
        return job

    async def pause(self, team_id: str, job_id: str, *, by: Actor = SERVER) -> Job:
        """Stop the schedule and cancel waiting runs. A paused job stays as it is, a disabled one becomes paused.

        Raises NotFound, Conflict.
        """

        def paused(job: Job, is_under_way: bool) -> JobStatus | None:
            if job.status == JobStatus.COMPLETED and not is_under_way:
                raise Conflict("The job is completed: its schedule has no slot left, so there is nothing to pause.")
            return None if job.status == JobStatus.PAUSED else JobStatus.PAUSED

        return await self._stop(team_id, job_id, paused, Reason.JOB_PAUSED, by)

    async def delete(self, team_id: str, job_id: str, *, by: Actor = SERVER) -> None:
        """Remove the job and cancel waiting runs; its history stays until it is old. Raises NotFound."""
        await self._stop(team_id, job_id, lambda _job, _is_under_way: JobStatus.DELETED, Reason.JOB_DELETED, by)

    async def resume(self, team_id: str, job_id: str, *, by: Actor = SERVER) -> Job:
        """Go on with the next slot from now; paused time is never replayed. A disabled job starts to count anew.

        Raises NotFound, Conflict.
        """
        now = self._clock.now()

        def transaction(connection: Connection) -> Job:
            job = _existing(connection, team_id, job_id)
            if job.status == JobStatus.ACTIVE:
                return job
            next_run_at = job.schedule.next_after(_first_free_instant(connection, job_id, now))
            if next_run_at is None:
                raise Conflict("The schedule has no slot left. Give the job a new schedule instead.")
            state = dataclasses.replace(job.state, next_run_at=next_run_at, status_reason=None)
            if job.status == JobStatus.DISABLED:
                state.consecutive_failures = 0  # the next failure is not to disable it at once
                job_rows.forget_failures(connection, job_id)
            resumed = dataclasses.replace(
                job, version=job.version + 1, status=JobStatus.ACTIVE, updated_at=now, state=state
            )
            _save(connection, resumed, seen=job)
            was, became = {"status": job.status}, {"status": resumed.status}
            audit.record_of(connection, "job", resumed, "resume", by, now, before=was, after=became)
            return resumed

        job = await self._write_when_begun(team_id, job_id, transaction)
        await self._point_at(job)
        return job

    async def trigger(
        self,
        team_id: str,
        job_id: str,
        *,
        triggered_by: str,
        idempotency_key: str | None = None,
        by: Actor = SERVER,
    ) -> tuple[Run, bool]:
        """Ask for a run now, outside of the schedule, which does not move; the run and whether it is new.

        Raises NotFound, Conflict when the job is paused or disabled, TooMany when the team has started as many runs in
        this minute as it may.
        """
        now = self._clock.now()
        run_id = new_id(now)
        once = Once.of(team_id, "jobs.trigger", idempotency_key, {"job_id": job_id})

        def transaction(connection: Connection) -> tuple[Run, bool]:
            job = _existing(connection, team_id, job_id)
            earlier = once.claim(connection, run_id, now)
            if earlier is not None:
                return still_there(run_rows.get(connection, team_id, earlier), "run"), False
            if job.status == JobStatus.PAUSED:
                raise Conflict("The job is paused. Resume it before triggering it.")
            if job.status == JobStatus.DISABLED:
                raise Conflict(f"The job is disabled: {job.state.status_reason} Resume it before triggering it.")
            count_run(connection, team_id, self._limits, now)
            run = Run(
                id=run_id,
                scheduled_for=now,
                trigger_key=run_id,
                job_id=job.id,
                team_id=team_id,
                job_version=job.version,
                triggered_by=triggered_by,
                status=RunStatus.QUEUED,
                retry_at=now,
                created_at=now,
            )
            run_rows.insert(connection, [run])
            audit.record_of(connection, "job", job, "trigger", by, now, after={"run_id": run.id})
            return run, True

        def look_up(connection: Connection) -> tuple[Run, bool] | None:
            found = run_rows.get(connection, team_id, run_id)
            return None if found is None else (found, True)

        run, is_new = await make(self._ledger, transaction, look_up)
        if is_new:
            await self._timetable.put({run_member(team_id, run.id): now})
        return run, is_new

    async def runs(
        self,
        team_id: str,
        job_id: str,
        *,
        status: str | None = None,
        before: tuple[Instant, str] | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Runs of a job, latest slot first. Raises NotFound."""

        def transaction(connection: Connection) -> list[Run]:
            _existing(connection, team_id, job_id, lock=False)
            return run_rows.page_of_job(connection, job_id, status=status, before=before, limit=limit)

        return await self._ledger.read(transaction)

    async def run(self, team_id: str, run_id: str) -> tuple[Run, list[Execution]]:
        """A run and its executions; also of a deleted job. Raises NotFound."""

        def transaction(connection: Connection) -> tuple[Run, list[Execution]]:
            run = run_rows.get(connection, team_id, run_id) if is_uuid(run_id) else None
            if run is None:
                raise NotFound("There is no such run.")
            return run, execution_rows.of_run(connection, run_id)

        return await self._ledger.read(transaction)

    async def executions(
        self, team_id: str, job_id: str, *, before: tuple[Instant, str, int] | None = None, limit: int = 50
    ) -> list[tuple[str, Execution]]:
        """(trigger key of its run, execution) of a job, latest slot first. Raises NotFound."""

        def transaction(connection: Connection) -> list[tuple[str, Execution]]:
            _existing(connection, team_id, job_id, lock=False)
            return execution_rows.page_of_job(connection, job_id, before=before, limit=limit)

        return await self._ledger.read(transaction)

    async def execution(self, team_id: str, execution_id: str) -> Execution:
        """One execution with its whole bodies. Raises NotFound."""
        key = split_execution_id(execution_id)
        if key is None:
            raise NotFound("There is no such execution.")
        run_id, attempt = key
        found = await self._ledger.read(lambda connection: execution_rows.get(connection, team_id, run_id, attempt))
        if found is None:
            raise NotFound("There is no such execution.")
        return found

    async def definition(self, team_id: str, spec: JobSpec) -> Definition:
        """The request of a specification, by the rules for one that is saved. Raises Invalid."""
        self._check_tls(spec)
        definition = _definition(spec)
        if definition.sign:
            now = self._clock.now()
            await self._ledger.read(lambda connection: _check_signing_key(connection, team_id, now))
        return definition

    def _check_tls(self, spec: JobSpec) -> None:
        if not (spec.verify_tls or self._allow_insecure_tls):
            raise Invalid(
                "This server does not let jobs switch the verification of certificates off. Its operator can allow it "
                "with ZEROCRON_ALLOW_INSECURE_TLS=true.",
                field="verify_tls",
            )

    async def _stop(
        self,
        team_id: str,
        job_id: str,
        status_after: Callable[[Job, bool], JobStatus | None],
        reason: Reason,
        by: Actor,
    ) -> Job:
        def transaction(connection: Connection) -> tuple[Job, list[Run]]:
            job = _existing(connection, team_id, job_id)
            now = self._clock.now()
            _check_begun(job, now)
            under_way = run_rows.open_of_job(connection, job_id, OPEN)
            status = status_after(job, bool(under_way))
            if status is None:
                return job, []
            waiting = [run for run in under_way if run.status in WAITING]
            state = dataclasses.replace(job.state, next_run_at=None, queued_run_id=None, status_reason=None)
            if state.active_run_id in {run.id for run in waiting}:
                state.active_run_id = state.active_since = None
            stopped = dataclasses.replace(job, version=job.version + 1, status=status, updated_at=now, state=state)
            _leave_behind(connection, job, stopped, reason, now)
            _save(connection, stopped, seen=job)
            _cancel(connection, waiting, reason, now)
            verb = "delete" if status == JobStatus.DELETED else "pause"
            audit.record_of(
                connection, "job", stopped, verb, by, now, before={"status": job.status}, after={"status": status}
            )
            return stopped, waiting

        job, cancelled = await self._write_when_begun(team_id, job_id, transaction)
        members = [run_member(team_id, run.id) for run in cancelled]
        await self._timetable.drop([job_member(team_id, job_id), *members])
        return job

    async def _write_when_begun(self, team_id: str, job_id: str, transaction: Transaction[T]) -> T:
        """Change a job, but not between the start of a run and the instant of its slot, some milliseconds later: what
        starts nothing more once it has returned must not return before the last thing has begun (promise 8)."""
        while True:
            try:
                async with in_step(self._timetable, job_member(team_id, job_id), self._clock):
                    return await self._ledger.write(transaction)
            except _BeginsSoon as soon:
                await self._clock.sleep(max(0, soon.at - self._clock.now()) / 1000)

    async def _point_at(self, job: Job) -> None:
        await point_at(self._timetable, job_member(job.team_id, job.id), job.state.next_run_at, self._clock.now())


class _BeginsSoon(Exception):
    """A run of the job is committed and will be sent at the instant of its slot."""

    def __init__(self, at: Instant) -> None:
        super().__init__(at)
        self.at = at


def _check_begun(job: Job, now: Instant) -> None:
    if job.state.active_since is not None and now < job.state.active_since <= now + EARLY_MS_MAX:
        raise _BeginsSoon(job.state.active_since)


def _existing(connection: Connection, team_id: str, job_id: str, *, lock: bool = True) -> Job:
    job = job_rows.get(connection, team_id, job_id, lock=lock) if is_uuid(job_id) else None
    if job is None:
        raise NotFound("There is no such job.")
    return job


def _save(connection: Connection, job: Job, *, seen: Job) -> None:
    if not job_rows.update_definition(connection, job, seen_version=seen.version):
        raise Conflict("Somebody else changed the job at the same moment. Look at it again, then repeat your change.")


def _first_free_instant(connection: Connection, job_id: str, now: Instant) -> Instant:
    """The instant after which a slot has no record yet: now, or later when the clock was set back."""
    return max(now, run_rows.newest_slot(connection, job_id) or now)


def _leave_behind(connection: Connection, job: Job, changed: Job, reason: Reason, now: Instant) -> None:
    """Account for slots that were due and will not run, because the job's cursor leaves them."""
    skip = left_behind(job.schedule, job.state.next_run_at, now, reason)
    if skip is not None:
        run_rows.insert(connection, [skipped_run(job, skip.first, skip.last, skip.count, reason, now)])
        changed.state.skipped += skip.count


def _give_place(connection: Connection, job: Job, now: Instant) -> None:
    """Runs of a job that may overlap hold no place. Now that it may not, those under way do (promise 6)."""
    under_way = run_rows.open_of_job(connection, job.id, [RunStatus.RUNNING, RunStatus.RETRYING])
    holder = min(under_way, key=claim_on_place, default=None)
    job.state.active_run_id = holder.id if holder else None
    job.state.active_since = now if holder else None
    job.state.crowded = int(len(under_way) > 1)


def _cancel(connection: Connection, waiting: list[Run], reason: Reason, now: Instant) -> None:
    moved = []
    for run in waiting:
        seen = run_rows.seen(run)
        run.status = advance(run.status, Event.CANCEL)
        run.reason = reason
        run.retry_at = None
        run.finished_at = now
        moved.append((run, seen))
    if moved:
        run_rows.move(connection, moved)


def _build(spec: JobSpec, *, team_id: str, job_id: str, now: Instant) -> Job:
    understood = _understand(spec, now)
    return Job(
        id=job_id,
        team_id=team_id,
        version=1,
        status=JobStatus.ACTIVE,
        name=spec.name,
        schedule_text=spec.schedule,
        schedule=understood.schedule,
        definition=_definition(spec),
        overlap=spec.overlap,
        catchup=spec.catchup,
        catchup_window_seconds=spec.catchup_window_seconds,
        on_lost=spec.on_lost,
        disable_after=spec.disable_after,
        notify=write_notify(checked(spec.notify, "job"), "job"),
        tags=spec.tags,
        warnings=_warnings(understood.warnings, spec),
        state=JobState(next_run_at=understood.schedule.next_after(now)),
        created_at=now,
        updated_at=now,
        language=spoken(understood, spec.language),
    )


def _rebuild(job: Job, spec: JobSpec, before: JobSpec, *, now: Instant, after: Instant) -> Job:
    """The job with a new specification. Its cursor moves only if its schedule did."""
    language = spec.language or job.language
    if _schedule_of(spec) == _schedule_of(before):
        of_request = _request_warnings(before)
        schedule, status, state = job.schedule, job.status, job.state
        schedule_warnings = tuple(text for text in job.warnings if text not in of_request)
    else:
        understood = _understand(spec, now)
        schedule, schedule_warnings = understood.schedule, understood.warnings
        language = spoken(understood, spec.language)
        status = JobStatus(job.status) if job.status in STOPPED else JobStatus.ACTIVE
        next_run_at = schedule.next_after(after) if status == JobStatus.ACTIVE else None
        if next_run_at is None and status == JobStatus.ACTIVE:
            raise Invalid("This schedule has no slot left.", field="schedule")
        state = dataclasses.replace(job.state, next_run_at=next_run_at)
    return dataclasses.replace(
        job,
        version=job.version + 1,
        status=status,
        name=spec.name,
        schedule_text=spec.schedule,
        schedule=schedule,
        definition=_definition(spec),
        overlap=spec.overlap,
        catchup=spec.catchup,
        catchup_window_seconds=spec.catchup_window_seconds,
        on_lost=spec.on_lost,
        disable_after=spec.disable_after,
        notify=write_notify(checked(spec.notify, "job"), "job"),
        tags=spec.tags,
        warnings=_warnings(schedule_warnings, spec),
        state=state,
        updated_at=now,
        language=language,
    )


def _understand(spec: JobSpec, now: Instant) -> Understood:
    return read(
        spec.schedule,
        timezone=spec.timezone,
        now=now,
        language=spec.language,
        dst=spec.dst,
        day_match=spec.day_match,
    )


def _schedule_of(spec: JobSpec) -> tuple[str, ...]:
    """What decides when a job runs: as long as it is the same, an edit leaves the cursor alone."""
    return spec.schedule, spec.timezone or DEFAULT_TIMEZONE, spec.dst, spec.day_match


def _definition(spec: JobSpec) -> Definition:
    """The request as it will be sent. Raises Invalid for what could not be."""
    method = check_method(spec.method)
    if placeholders.is_before_path(spec.url):
        raise Invalid(
            "A secret stands in the path or query of a URL, not in its scheme, host or port: who is called is no "
            "secret.",
            field="url",
        )
    url = check_url(spec.url)
    for name, value in spec.headers.items():
        try:
            check_header(name, value)
        except Invalid as refusal:
            raise Invalid(refusal.message, field=f"headers.{name[:60]}") from None
    lowered = [name.lower() for name in spec.headers]
    if len(set(lowered)) < len(lowered):
        raise Invalid("A header is given twice in different capitals.", field="headers")
    if spec.body is not None and len(spec.body.encode("utf-8", "surrogatepass")) > BODY_BYTES_MAX:
        message = f"The body is longer than {BODY_BYTES_MAX:,} bytes. Keep large data where the job can fetch it."
        raise Invalid(message, field="body")
    if len(placeholders.names_of_request(url, spec.headers.items(), spec.body)) > SECRETS_A_REQUEST_MAX:
        raise Invalid(f"A request names at most {SECRETS_A_REQUEST_MAX} secrets.", field="body")
    return Definition(
        method=method,
        url=url,
        headers=tuple(spec.headers.items()),
        body=spec.body,
        timeout_seconds=spec.timeout_seconds,
        retry=spec.retry,
        success=_success(spec.success),
        redirects=spec.redirects,
        verify_tls=spec.verify_tls,
        sign=spec.sign,
    )


def _success(rule: SuccessRule) -> SuccessRule:
    """The rule as it will be applied. Raises Invalid for what could not be."""
    if rule.body_matches is not None:
        check_pattern(rule.body_matches)
    for condition in rule.json:
        check_path(condition.path)
    names = [name.lower() for name, _ in rule.headers]
    if len(set(names)) < len(names):
        raise Invalid("A header is given twice in different capitals.", field="success.headers")
    return dataclasses.replace(rule, status=tuple(check_status_pattern(pattern) for pattern in rule.status))


def _check_signing(connection: Connection, job: Job, now: Instant) -> None:
    if job.definition.sign:
        _check_signing_key(connection, job.team_id, now)


def _check_signing_key(connection: Connection, team_id: str, now: Instant) -> None:
    """Raises Invalid when requests are to be signed and there is nothing to sign with."""
    if not signing_rows.valid(connection, team_id, now):
        raise Invalid(
            "There is no signing key yet. Make one first: POST /v1/signing-key/rotate, or `0cron signing rotate`.",
            field="sign",
        )


def _warnings(of_schedule: tuple[str, ...], spec: JobSpec) -> tuple[str, ...]:
    return (*of_schedule, *_request_warnings(spec))


def _request_warnings(spec: JobSpec) -> tuple[str, ...]:
    of_delivery = (strategy_warning(spec.retry.backoff), None if spec.verify_tls else UNVERIFIED)
    of_placeholders = placeholders.warnings(spec.url, spec.headers.items(), spec.body)
    return (*filter(None, of_delivery), *of_placeholders)
