"""The nouns of the house, as values: jobs, runs, executions.

Owns the words of a run's life and the shapes that travel between the ledger, the engine and the API. Must never do I/O
and never read a clock: an instant is an `int`, milliseconds since the Unix epoch, UTC (decision 0004).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha1
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from zerocron.core.schedule import Schedule

Instant = int
"""Milliseconds since the Unix epoch, UTC."""

DEFAULT_TEAM_ID = "00000000-0000-7000-8000-000000000001"
"""The one team until people can make more; every row carries a team from the first day."""

BODY_BYTES_MAX = 1_048_576
"""The most that is sent with a request, and the most that is kept of an answer."""

REDELIVERIES_MAX = 3
"""How often a run is sent again because its node was lost, before it counts as failed (promise 2)."""


class JobStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"  # by 0cron itself: too many runs failed in a row
    COMPLETED = "completed"  # a schedule with no slot left
    DELETED = "deleted"  # kept for its history only; nobody can see the job itself


class RunStatus(StrEnum):
    QUEUED = "queued"  # waits for its turn: a manual trigger, or a slot under `overlap: queue`
    RUNNING = "running"
    RETRYING = "retrying"  # waits for `retry_at`
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    LOST = "lost"


class Reason(StrEnum):
    """Why a run ended as it did, where its status alone does not say it. `REASON_TEXTS` has the sentences."""

    MISSED = "missed"
    OVERLAP = "overlap"
    QUEUE_FULL = "queue_full"
    TEAM_LIMIT = "team_limit"
    SUPERSEDED = "superseded"
    NO_TIME_FOR_RETRY = "no_time_for_retry"
    RETRY_WINDOW_OVER = "retry_window_over"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    RETRY_REFUSED = "retry_refused"
    RETRY_USELESS = "retry_useless"
    JOB_PAUSED = "job_paused"
    JOB_DISABLED = "job_disabled"
    JOB_DELETED = "job_deleted"
    JOB_EDITED = "job_edited"
    NODE_LOST = "node_lost"
    REDELIVERIES_EXHAUSTED = "redeliveries_exhausted"
    RESTORED = "restored"


REASON_TEXTS: dict[Reason, str] = {
    Reason.MISSED: "0cron could not run at that time, and the job's catch-up policy leaves it out.",
    Reason.OVERLAP: "The previous run was still running, and the job's overlap policy is 'skip'.",
    Reason.QUEUE_FULL: "One run was already waiting for the running one; 'queue' lets only one wait.",
    Reason.TEAM_LIMIT: "The team had started as many runs in that minute as it may.",
    Reason.SUPERSEDED: "The next slot came while this run waited for a retry; retries never delay the next slot.",
    Reason.NO_TIME_FOR_RETRY: "It failed, and the next retry would have come after the job's next slot.",
    Reason.RETRY_WINDOW_OVER: "It failed, and the next retry would have come more than a day after the first attempt.",
    Reason.ATTEMPTS_EXHAUSTED: "Every attempt failed.",
    Reason.RETRY_REFUSED: "It failed, and the target asked for no further attempt (status 489, or X-0cron-Retry: no).",
    Reason.RETRY_USELESS: "It failed in a way that comes back however often one tries, so it was not tried again.",
    Reason.JOB_PAUSED: "The job was paused before this could run, or run again.",
    Reason.JOB_DISABLED: "Too many runs failed in a row, which disabled the job before this could run, or run again.",
    Reason.JOB_DELETED: "The job was deleted before this could run, or run again.",
    Reason.JOB_EDITED: "The job got another schedule before this could run.",
    Reason.NODE_LOST: "The process running it stopped before the result was recorded; the request may have been sent.",
    Reason.REDELIVERIES_EXHAUSTED: "The process running it was lost again and again; it was not sent any more.",
    Reason.RESTORED: "The ledger was restored from a backup, and its operator chose to go on from now.",
}


STOPPED: dict[str, Reason] = {
    JobStatus.PAUSED: Reason.JOB_PAUSED,
    JobStatus.DISABLED: Reason.JOB_DISABLED,
    JobStatus.DELETED: Reason.JOB_DELETED,
}
"""Statuses of a job in which nothing of it starts any more, and why its waiting runs end."""


class Overlap(StrEnum):
    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Catchup(StrEnum):
    LATEST = "latest"
    ALL = "all"
    NONE = "none"


class OnLost(StrEnum):
    RERUN = "rerun"
    GIVE_UP = "give_up"


class TriggeredBy(StrEnum):
    SCHEDULE = "schedule"
    MANUAL = "manual"
    API = "api"


class Cause(StrEnum):
    """Why an execution was made."""

    FIRST = "first"
    RETRY = "retry"
    NODE_LOST = "node_lost"


class ExecutionStatus(StrEnum):
    SUCCESS = "success"
    FAILED = "failed"  # an answer came, and the job's rule does not accept it
    TIMEOUT = "timeout"
    ERROR = "error"  # no usable answer: DNS, connection, TLS, protocol, lost node


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` counts the first one too: 1 means no retry. The others feed `core.retry.wait_ms`."""

    attempts: int = 1
    backoff: str = "exponential"
    delay_seconds: float = 5
    jitter: str = "none"
    """"none", or "full": a random part of the wait."""


@dataclass(frozen=True, slots=True)
class JsonRule:
    """What a place in a JSON body has to equal. `equals` is JSON text, because to Python 1 and true are the same."""

    path: str
    equals: str


@dataclass(frozen=True, slots=True)
class SuccessRule:
    """What makes an answer a success; all that is given has to hold. `core.success` owns the meaning of each."""

    status: tuple[str, ...] = ("2xx",)
    body_contains: str | None = None
    body_not_contains: str | None = None
    body_matches: str | None = None
    json: tuple[JsonRule, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    max_duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """What is sent and how it is judged: the part of a job that a run keeps to, whatever is edited meanwhile."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    timeout_seconds: float
    retry: RetryPolicy
    success: SuccessRule
    redirects: int = 0
    verify_tls: bool = True
    sign: bool = False

    def to_json(self) -> dict[str, Any]:
        """The shape kept in `job_versions`; `from_json` reads it back, also when written by an older release."""
        return {
            "method": self.method,
            "url": self.url,
            "headers": [list(pair) for pair in self.headers],
            "body": self.body,
            "timeout_seconds": self.timeout_seconds,
            "delivery": self.delivery_json(),
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Definition:
        return cls(
            method=raw["method"],
            url=raw["url"],
            headers=tuple((name, value) for name, value in raw["headers"]),
            body=raw["body"],
            timeout_seconds=raw["timeout_seconds"],
            **delivery_of_json(raw["delivery"]),
        )

    def delivery_json(self) -> dict[str, Any]:
        """How it is delivered and judged; `delivery_of_json` reads it back.

        What is none is left out. Every other value is written down, so that a new default does not change old jobs.
        """
        return {
            "retry": _given(self.retry),
            "success": _given(self.success),
            "redirects": self.redirects,
            "verify_tls": self.verify_tls,
            "sign": self.sign,
        }


def delivery_of_json(raw: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a Definition that `delivery_json` wrote down. What only a newer release knows is passed over."""
    success = {name: tuple(value) if isinstance(value, list) else value for name, value in raw["success"].items()}
    if "json" in success:
        success["json"] = tuple(JsonRule(path, equals) for path, equals in success["json"])
    if "headers" in success:
        success["headers"] = tuple((name, value) for name, value in success["headers"])
    return {
        "retry": RetryPolicy(**_known(RetryPolicy, raw["retry"])),
        "success": SuccessRule(**_known(SuccessRule, success)),
        "redirects": raw["redirects"],
        "verify_tls": raw["verify_tls"],
        "sign": raw["sign"],
    }


def _known(kind: type[RetryPolicy | SuccessRule], raw: dict[str, Any]) -> dict[str, Any]:
    return {name: raw[name] for name in kind.__slots__ if name in raw}


def _given(value: RetryPolicy | SuccessRule) -> dict[str, Any]:
    given = {name: part for name in value.__slots__ if (part := getattr(value, name)) is not None}
    if "json" in given:
        given["json"] = [[rule.path, rule.equals] for rule in given["json"]]
    return given


@dataclass(frozen=True, slots=True)
class LastRun:
    """The run of a job that was really executed and ended last."""

    id: str
    status: str
    scheduled_for: Instant
    finished_at: Instant


@dataclass(slots=True)
class JobState:
    """The part of a job that only the engine writes: the cursor, who holds its place, and the counters."""

    next_run_at: Instant | None = None
    active_run_id: str | None = None
    active_since: Instant | None = None
    queued_run_id: str | None = None
    crowded: int = 0
    """1 while more runs than the active one are under way, from before an edit forbade that."""

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    consecutive_failures: int = 0
    duration_ms_total: float = 0
    status_reason: str | None = None
    """Why the job is disabled, in a sentence; None while it is not."""

    last_run: LastRun | None = None


@dataclass(slots=True)
class Job:
    """What a user wrote, and the state the engine keeps beside it."""

    id: str
    team_id: str
    version: int
    status: str
    name: str
    schedule_text: str
    schedule: Schedule
    definition: Definition
    overlap: str
    catchup: str
    catchup_window_seconds: int
    on_lost: str
    notify: dict[str, Any]
    tags: tuple[str, ...]
    warnings: tuple[str, ...]
    state: JobState
    created_at: Instant
    updated_at: Instant
    language: str = "en"
    """Of the schedule as typed, and so of its description."""

    disable_after: int = 0
    """So many failed runs in a row disable the job; 0: none do."""


@dataclass(slots=True)
class EngineJob:
    """What the engine needs of a job: its policies and its state. `schedule` and `definition` only to start runs."""

    id: str
    team_id: str
    version: int
    status: str
    overlap: str
    catchup: str
    catchup_window_seconds: int
    on_lost: str
    disable_after: int
    state: JobState
    schedule: Schedule | None = None
    definition: Definition | None = None
    url: str = ""
    notify: str = "{}"
    alert_state: str = ""
    """JSON of `core.alerting`: what people want to be told, and what they were."""

    runs_per_minute_max: int | None = None
    """The limit of its team as that is written; as `definition` only to start runs."""


class Due(NamedTuple):
    """A job or a waiting run, and when it is due."""

    team_id: str
    id: str
    at: Instant


@dataclass(slots=True)
class Run:
    """One record of a slot or of a manual trigger, as the ledger holds it."""

    id: str
    scheduled_for: Instant
    trigger_key: str
    job_id: str
    team_id: str
    job_version: int
    triggered_by: str
    status: str
    reason: str | None = None
    attempt: int = 0
    cause: str = Cause.FIRST
    redeliveries: int = 0
    retry_at: Instant | None = None
    session_id: str | None = None
    attempt_started_at: Instant | None = None
    created_at: Instant = 0
    started_at: Instant | None = None
    finished_at: Instant | None = None
    count: int = 1
    scheduled_until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """One HTTP attempt of a run. Bodies are text; `*_encoding` says whether as it is ("utf-8") or "base64"."""

    run_id: str
    scheduled_for: Instant
    attempt: int
    job_id: str
    team_id: str
    session_id: str
    cause: str
    status: str
    started_at: Instant
    finished_at: Instant
    duration_ms: float
    timings: dict[str, float | None] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    request_body: str | None = None
    response: dict[str, Any] | None = None
    response_body: str | None = None
    error_kind: str | None = None
    error_message: str | None = None

    @property
    def id(self) -> str:
        return execution_id(self.run_id, self.attempt)


def skipped_run(job: Job | EngineJob, first: Instant, last: Instant, count: int, reason: Reason, now: Instant) -> Run:
    """The one record of `count` slots of a job that did not run, from `first` to `last`."""
    return Run(
        id=run_id_of(job.id, first),
        scheduled_for=first,
        trigger_key="",
        job_id=job.id,
        team_id=job.team_id,
        job_version=job.version,
        triggered_by=TriggeredBy.SCHEDULE,
        status=RunStatus.SKIPPED,
        reason=reason,
        created_at=now,
        finished_at=now,
        count=count,
        scheduled_until=last if count > 1 else None,
    )


_RUN_NAMESPACE = uuid5(NAMESPACE_URL, "https://0cron.dev/run").bytes


def run_id_of(job_id: str, slot: Instant) -> str:
    """The id of the run of a slot: UUIDv5 of job and instant, so that it can be computed again after any loss.

    Written out from RFC 9562 5.5, because it is made for every run and uuid.uuid5 takes three times as long.
    """
    digest = sha1(_RUN_NAMESPACE + f"{job_id}@{slot}".encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def execution_id(run_id: str, attempt: int) -> str:
    """An execution is named by its run and its number; no second index is needed to find it."""
    return f"{run_id}.{attempt}"


def split_execution_id(text: str) -> tuple[str, int] | None:
    """Read an execution's id back into (run id, attempt), or None when it is not one."""
    run, dot, attempt = text.rpartition(".")
    if not dot or not attempt.isascii() or not attempt.isdigit() or len(attempt) > 6 or not is_uuid(run):
        return None
    return run, int(attempt)


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in its canonical form (lower case, hyphens)."""
    try:
        return len(text) == 36 and str(UUID(text)) == text
    except ValueError:
        return False
