"""The shapes of a job in the API: what may be written, what may be changed, what is shown.

Owns every bound on what a user writes about a job. What the values mean together is checked in `zerocron.actions.jobs`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from zerocron.api.fields import (
    Identifier,
    Input,
    InstantText,
    NextCursor,
    Output,
    few,
    unset,
    visible_text,
)
from zerocron.api.wording import worded
from zerocron.core.model import Catchup, OnLost, Overlap, RunStatus
from zerocron.core.requests import (
    HEADER_NAME_CHARACTERS_MAX,
    HEADER_VALUE_CHARACTERS_MAX,
    METHOD_CHARACTERS_MAX,
    URL_CHARACTERS_MAX,
)
from zerocron.core.retry import ATTEMPTS_MAX, DELAY_SECONDS_MAX

HEADERS_MAX = 50
TAGS_MAX = 20
STATUS_RULES_MAX = 20
TIMEOUT_SECONDS_MAX = 900
CATCHUP_WINDOW_SECONDS_MAX = 31_622_400

Name = Annotated[str, *visible_text(200, "What people call the job.", "Nightly report")]
ScheduleText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description="In plain language (English, French, Spanish), such as `every weekday at 9am`, `every 90 minutes` "
        "or `tomorrow at 9am`; a cron expression (5 fields; 6 with leading seconds; 7 with a trailing year); or one "
        "instant such as `2027-01-01 09:00`.",
        examples=["every weekday at 9am"],
    ),
]
Timezone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        description="The IANA time zone that the schedule is read in. One named in the schedule itself "
        "(`at 9am Paris time`) sets it.",
        examples=["Europe/Paris"],
    ),
]
LanguageCode = Literal["en", "fr", "es"]
LanguageIn = Annotated[
    LanguageCode,
    Field(
        description="The language the schedule is written in, and that its description is worded in. When it is left "
        "out, the schedule is read in whichever language understands it."
    ),
]
Dst = Annotated[
    Literal["run_once", "skip", "run_both"],
    Field(
        description="What a change of the clocks does to a fixed time of day: `run_once` runs a skipped time right "
        "after the gap and a repeated one the first time; `skip` leaves a skipped time out; `run_both` runs a repeated "
        "one both times."
    ),
]
DayMatch = Annotated[
    Literal["either", "both"],
    Field(
        description="Where day of month and day of week are both restricted: whether one of them is enough (Debian's "
        "rule), or both must match."
    ),
]
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=URL_CHARACTERS_MAX,
        description="Where the request goes: http or https, without a user name.",
        examples=["https://example.com/hooks/nightly"],
    ),
]
Method = Annotated[
    str,
    Field(
        min_length=1,
        max_length=METHOD_CHARACTERS_MAX,
        description="The HTTP method. CONNECT and TRACE are refused.",
        examples=["POST"],
    ),
]
HeaderName = Annotated[str, Field(min_length=1, max_length=HEADER_NAME_CHARACTERS_MAX)]
HeaderValue = Annotated[str, Field(max_length=HEADER_VALUE_CHARACTERS_MAX)]
Headers = Annotated[
    dict[HeaderName, HeaderValue],
    Field(
        max_length=HEADERS_MAX,
        description="Sent with each request. Framing, `Idempotency-Key`, `X-0cron-*` and `webhook-*` are 0cron's.",
        examples=[{"X-Team": "reporting"}],
    ),
    BeforeValidator(lambda given: few(given, HEADERS_MAX)),
]
Timeout = Annotated[
    float, Field(ge=1, le=TIMEOUT_SECONDS_MAX, description="Seconds for the whole request, its answer included.")
]
OverlapChoice = Annotated[
    Literal["skip", "queue", "allow"],
    Field(description="What a slot does while the run before it is still running: it is skipped, waits, or runs."),
]
CatchupChoice = Annotated[
    Literal["latest", "all", "none"],
    Field(description="Which slots run that were missed while 0cron was away: the latest, all (at most 100), or none."),
]
CatchupWindow = Annotated[
    int,
    Field(ge=0, le=CATCHUP_WINDOW_SECONDS_MAX, description="How late a missed slot may still run, in seconds."),
]
OnLostChoice = Annotated[
    Literal["rerun", "give_up"],
    Field(description="When 0cron died during a request: send it again (at least once) or give up (at most once)."),
]
Tag = Annotated[str, *visible_text(50, "A word to find jobs by.", "reporting")]
Tags = Annotated[list[Tag], Field(max_length=TAGS_MAX, description="Words to find jobs by.", examples=[["reporting"]])]
Attempts = Annotated[
    int, Field(ge=1, le=ATTEMPTS_MAX, description="How often a run is tried, the first time included: 1 is no retry.")
]
Backoff = Annotated[
    str,
    *visible_text(
        32, "How waits grow: `exponential` (delay * 2^n), `linear` (delay * (n+1)) or `fixed`; others act as fixed."
    ),
]
Delay = Annotated[float, Field(ge=0, le=DELAY_SECONDS_MAX, description="Seconds before the first retry.")]
StatusRule = Annotated[str, Field(min_length=1, max_length=7, examples=["2xx", "200-299", "404"])]
StatusRules = Annotated[
    list[StatusRule],
    Field(
        min_length=1, max_length=STATUS_RULES_MAX, description="Statuses that are a success: `2xx`, `200-299`, `404`."
    ),
]
Condition = Annotated[str, Field(min_length=1, max_length=1_000)]


def _text_object_or_list(given: Any) -> Any:
    if given is None or isinstance(given, (str, dict, list)):
        return given
    raise worded("Give text, an object, a list or null. Put a single number or true into quotes.")


Body = Annotated[
    str | dict[str, Any] | list[Any] | None,
    BeforeValidator(_text_object_or_list),
    Field(
        description="Text is sent as it is; an object or a list is sent as JSON. At most 1,048,576 bytes.",
        examples=[{"report": "daily"}],
    ),
]


class RetryIn(Input):
    """What to do about a failed attempt."""

    attempts: Attempts = 1
    backoff: Backoff = "exponential"
    delay: Delay = 5


class SuccessIn(Input):
    """When an answer counts as a success. Every condition that is given has to hold."""

    status: StatusRules = Field(default=["2xx"])
    body_contains: Condition | None = Field(default=None, description="The answer's body has to contain this.")
    body_not_contains: Condition | None = Field(default=None, description="The answer's body must not contain this.")


class NotifyIn(Input):
    """Whom to tell. Nothing can be set here yet."""


class JobIn(Input):
    """A job to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Nightly report",
                    "schedule": "0 2 * * *",
                    "timezone": "Europe/Paris",
                    "url": "https://example.com/hooks/nightly",
                    "method": "POST",
                    "body": {"report": "daily"},
                    "retry": {"attempts": 3},
                }
            ]
        }
    )

    name: Name
    schedule: ScheduleText
    url: Url
    timezone: Timezone = "UTC"
    language: LanguageIn | None = None
    dst: Dst = "run_once"
    day_match: DayMatch = "either"
    method: Method = "GET"
    headers: Headers = Field(default={})
    body: Body = None
    timeout: Timeout = 30
    retry: RetryIn = Field(default_factory=RetryIn)
    overlap: OverlapChoice = "skip"
    catchup: CatchupChoice = "latest"
    catchup_window: CatchupWindow = 86_400
    on_lost: OnLostChoice = "rerun"
    success: SuccessIn = Field(default_factory=SuccessIn)
    notify: NotifyIn = Field(default_factory=NotifyIn)
    tags: Tags = Field(default=[])


class RetryChange(Input):
    """What to change about retries."""

    attempts: Attempts = unset()
    backoff: Backoff = unset()
    delay: Delay = unset()


class SuccessChange(Input):
    """What to change about when an answer counts as a success."""

    status: StatusRules = unset()
    body_contains: Condition | None = Field(default=None, description="What the body has to hold; null takes it away.")
    body_not_contains: Condition | None = Field(default=None, description="What it must not hold; null takes it away.")


class JobChange(Input):
    """What to change. Fields left out stay; `retry` and `success` are merged, everything else is replaced."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"schedule": "*/15 * * * *", "retry": {"attempts": 5}}]})

    name: Name = unset()
    schedule: ScheduleText = unset()
    url: Url = unset()
    timezone: Timezone = unset()
    language: LanguageIn = unset()
    dst: Dst = unset()
    day_match: DayMatch = unset()
    method: Method = unset()
    headers: Headers = unset()
    body: Body = None
    timeout: Timeout = unset()
    retry: RetryChange = unset()
    overlap: OverlapChoice = unset()
    catchup: CatchupChoice = unset()
    catchup_window: CatchupWindow = unset()
    on_lost: OnLostChoice = unset()
    success: SuccessChange = unset()
    notify: NotifyIn = unset()
    tags: Tags = unset()


class RetryOut(Output):
    """What is done about a failed attempt."""

    attempts: int = Field(description="How often a run is tried, the first time included.")
    backoff: str = Field(description="How waits grow.")
    delay: float = Field(description="Seconds before the first retry.")


class SuccessOut(Output):
    """When an answer counts as a success."""

    status: list[str] = Field(description="Which statuses are a success.")
    body_contains: str | None = Field(description="What the body has to contain.")
    body_not_contains: str | None = Field(description="What the body must not contain.")


class LastRunOut(Output):
    """The newest run that was really executed and has ended."""

    id: Identifier
    status: RunStatus
    scheduled_for: InstantText
    finished_at: InstantText


class StatsOut(Output):
    """Runs, not attempts. `skipped` counts slots."""

    succeeded: int
    failed: int
    skipped: int
    consecutive_failures: int = Field(description="Failed runs since the last one that succeeded.")
    average_duration_ms: float | None


class JobOut(Output):
    """A job: what was written, and where it stands."""

    id: Identifier
    version: int = Field(description="Grows with every change; requests carry it as `X-0cron-Job-Version`.")
    name: str
    schedule: str = Field(description="As it was written.")
    schedule_kind: Literal["cron", "interval", "once"]
    schedule_cron: str | None = Field(description="The canonical cron expression; null for intervals and instants.")
    description: str = Field(description="The schedule in words, in `language`.")
    timezone: str
    language: LanguageCode
    dst: Dst
    day_match: DayMatch
    status: Literal["active", "paused", "completed"] = Field(description="`completed`: the schedule has no slot left.")
    url: str
    method: str
    headers: dict[str, str]
    body: str | None
    timeout: float = Field(description="Seconds.")
    retry: RetryOut
    overlap: Overlap
    catchup: Catchup
    catchup_window: int = Field(description="Seconds.")
    on_lost: OnLost
    success: SuccessOut
    notify: dict[str, Any]
    tags: list[str]
    next_run_at: InstantText | None = Field(description="The next slot; null when the job is paused or completed.")
    last_run: LastRunOut | None
    stats: StatsOut
    warnings: list[str] = Field(description="What is accepted, but may not be what was meant.")
    created_at: InstantText
    updated_at: InstantText


class JobPage(Output):
    """Some of the jobs."""

    items: list[JobOut]
    next_cursor: NextCursor
