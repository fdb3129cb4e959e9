"""The shapes of a job in the API: what may be written, what may be changed, what is shown.

Owns every bound on what a user writes about a job. What the values mean together is checked in `zerocron.actions.jobs`.
"""

from __future__ import annotations

import sys
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
from zerocron.api.notify_models import JobNotifyIn, JobNotifyOut
from zerocron.api.wording import worded
from zerocron.core.exchange import REDIRECTS_MAX
from zerocron.core.model import Catchup, OnLost, Overlap, RunStatus
from zerocron.core.requests import (
    HEADER_NAME_CHARACTERS_MAX,
    HEADER_VALUE_CHARACTERS_MAX,
    METHOD_CHARACTERS_MAX,
    URL_CHARACTERS_MAX,
)
from zerocron.core.retry import ATTEMPTS_MAX, DELAY_SECONDS_MAX
from zerocron.core.success import NUMBER_MAX, PATH_CHARACTERS_MAX, PATTERN_CHARACTERS_MAX

HEADERS_MAX = 50
TAGS_MAX = 20
STATUS_RULES_MAX = 20
JSON_RULES_MAX = 20
HEADER_RULES_MAX = 20
DISABLE_AFTER_MAX = 1_000
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
        "(`at 9am Paris time`) sets it; where both are given, they must be the same.",
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
Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=PATTERN_CHARACTERS_MAX,
        description="A regular expression (RE2's syntax) that has to match somewhere in the first 65,536 bytes of the "
        "body.",
        examples=["(?i)rows: [1-9][0-9]*"],
    ),
]
JsonPath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=PATH_CHARACTERS_MAX,
        description='`$`, then any of `.name`, `["any name"]` and `[index]`.',
        examples=["$.jobs[0].state"],
    ),
]


def _scalar(given: Any) -> Any:
    if isinstance(given, int) and abs(given) > NUMBER_MAX:
        raise worded("A whole number has at most 53 bits here: others would read it as another one.")
    if given is None or isinstance(given, (bool, int, float)) or (isinstance(given, str) and len(given) <= 1_000):
        return given
    raise worded("Give text of at most 1,000 characters, a number, true, false or null.")


Scalar = Annotated[
    Annotated[str, Field(max_length=1_000)]
    | bool
    | Annotated[int, Field(ge=-NUMBER_MAX, le=NUMBER_MAX)]
    | Annotated[float, Field(ge=-sys.float_info.max, le=sys.float_info.max)]
    | None,
    BeforeValidator(_scalar),
    Field(description="Text, a number, true, false or null.", examples=["done"]),
]
MaxDuration = Annotated[
    int, Field(ge=1, le=TIMEOUT_SECONDS_MAX * 1_000, description="The longest it may take, in milliseconds.")
]
HeaderRules = Annotated[
    dict[HeaderName, HeaderValue],
    Field(
        max_length=HEADER_RULES_MAX,
        description="Headers that the answer has to have, with exactly these values. Names may be in any capitals.",
        examples=[{"X-State": "complete"}],
    ),
    BeforeValidator(lambda given: few(given, HEADER_RULES_MAX)),
]
Redirects = Annotated[
    int,
    Field(
        ge=0,
        le=REDIRECTS_MAX,
        description="How many redirects to follow. At 0 a redirect is the answer, and none that `2xx` accepts. "
        "Credentials are not sent on to another origin, and a request with a body never is.",
    ),
]
VerifyTls = Annotated[
    bool,
    Field(
        description="Whether the target's certificate has to be valid. Off only where the operator allows it, and only "
        "for the origin of `url`."
    ),
]
Sign = Annotated[
    bool,
    Field(
        description="Send the headers of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`), "
        "made with the team's signing key."
    ),
]
DisableAfter = Annotated[
    int,
    Field(
        ge=0,
        le=DISABLE_AFTER_MAX,
        description="Disable the job once so many runs in a row have failed; 0: never. `resume` starts it again.",
    ),
]
Jitter = Annotated[
    Literal["none", "full"],
    Field(
        description="`full` waits a random part of the wait, behind what `Retry-After` asks for, so that many jobs do "
        "not come back at the same moment."
    ),
]


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
    jitter: Jitter = "none"


class JsonRuleIn(Input):
    """What a place in the answer's JSON body has to equal."""

    path: JsonPath
    equals: Scalar


JsonRules = Annotated[
    list[JsonRuleIn],
    Field(
        max_length=JSON_RULES_MAX,
        description="The body has to be JSON, and to have these values at these places.",
    ),
]


class SuccessIn(Input):
    """When an answer counts as a success. Every condition that is given has to hold."""

    status: StatusRules = Field(default=["2xx"])
    body_contains: Condition | None = Field(default=None, description="The answer's body has to contain this.")
    body_not_contains: Condition | None = Field(default=None, description="The answer's body must not contain this.")
    body_matches: Pattern | None = None
    json_: JsonRules = Field(default=[], alias="json")
    headers: HeaderRules = Field(default={})
    max_duration_ms: MaxDuration | None = None


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
    disable_after: DisableAfter = 0
    redirects: Redirects = 0
    verify_tls: VerifyTls = True
    sign: Sign = False
    success: SuccessIn = Field(default_factory=SuccessIn)
    notify: JobNotifyIn = Field(default_factory=JobNotifyIn)
    tags: Tags = Field(default=[])


def _nothing() -> Any:
    """As `unset` has it, for a field with an alias."""
    return None


class RetryChange(Input):
    """What to change about retries."""

    attempts: Attempts = unset()
    backoff: Backoff = unset()
    delay: Delay = unset()
    jitter: Jitter = unset()


class SuccessChange(Input):
    """What to change about when an answer counts as a success."""

    status: StatusRules = unset()
    body_contains: Condition | None = Field(default=None, description="What the body has to hold; null takes it away.")
    body_not_contains: Condition | None = Field(default=None, description="What it must not hold; null takes it away.")
    body_matches: Pattern | None = Field(default=None, description="What has to match it; null takes it away.")
    json_: JsonRules = Field(default_factory=_nothing, alias="json")
    headers: HeaderRules = unset()
    max_duration_ms: MaxDuration | None = Field(default=None, description="In milliseconds; null takes it away.")


class JobChange(Input):
    """What to change. Fields left out stay; `retry`, `success` and `notify` are merged, everything else is replaced."""

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
    disable_after: DisableAfter = unset()
    redirects: Redirects = unset()
    verify_tls: VerifyTls = unset()
    sign: Sign = unset()
    success: SuccessChange = unset()
    notify: JobNotifyIn = unset()
    tags: Tags = unset()


class RetryOut(Output):
    """What is done about a failed attempt."""

    attempts: int = Field(description="How often a run is tried, the first time included.")
    backoff: str = Field(description="How waits grow.")
    delay: float = Field(description="Seconds before the first retry.")
    jitter: Jitter


class JsonRuleOut(Output):
    """What a place in the answer's JSON body has to equal."""

    path: str
    equals: str | bool | int | float | None


class SuccessOut(Output):
    """When an answer counts as a success."""

    status: list[str] = Field(description="Which statuses are a success.")
    body_contains: str | None = Field(description="What the body has to contain.")
    body_not_contains: str | None = Field(description="What the body must not contain.")
    body_matches: str | None = Field(description="What has to match the body.")
    json_: list[JsonRuleOut] = Field(alias="json", description="What the body has to have where.")
    headers: dict[str, str] = Field(description="Which headers the answer has to have.")
    max_duration_ms: int | None = Field(description="How long it may take.")


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
    status: Literal["active", "paused", "disabled", "completed"] = Field(
        description="`disabled`: too many runs failed in a row. `completed`: the schedule has no slot left."
    )
    status_reason: str | None = Field(description="Why it is disabled; null while it is not.")
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
    disable_after: int = Field(description="So many failed runs in a row disable it; 0: none do.")
    redirects: int = Field(description="How many are followed.")
    verify_tls: bool
    sign: bool
    success: SuccessOut
    notify: JobNotifyOut
    tags: list[str]
    next_run_at: InstantText | None = Field(description="The next slot; null when the job is not active.")
    last_run: LastRunOut | None
    stats: StatsOut
    warnings: list[str] = Field(description="What is accepted, but may not be what was meant.")
    created_at: InstantText
    updated_at: InstantText


class JobPage(Output):
    """Some of the jobs."""

    items: list[JobOut]
    next_cursor: NextCursor
