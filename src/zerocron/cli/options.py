"""The options that commands share: how to reach the server, and the fields of a job.

Owns their names and their words. One field of the API is one option here, and `FIELDS` says which, in both directions.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from zerocron.cli.show import Json
from zerocron.cli.times import read_seconds
from zerocron.core.errors import FieldError, Invalid, TooLarge
from zerocron.core.model import BODY_BYTES_MAX

_SERVER = "Server and output"
_WHEN = "When it runs"
_WHAT = "What it sends"
_JUDGED = "What counts as success, and what follows a failure"
_POLICY = "Policies"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.", rich_help_panel=_SERVER)]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        "--api-url",
        "--url",
        metavar="URL",
        help="The server. Else ZEROCRON_API_URL, else the one of the data directory.",
        rich_help_panel=_SERVER,
    ),
]
JobsApiUrl = Annotated[
    str | None,
    typer.Option(
        "--api-url",
        metavar="URL",
        help="The server. Else ZEROCRON_API_URL, else the one of the data directory.",
        rich_help_panel=_SERVER,
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        "--key",
        metavar="KEY",
        help="The API key. Better: ZEROCRON_API_KEY, which other users of the machine cannot see.",
        rich_help_panel=_SERVER,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Data directory of a server on this machine. Else ZEROCRON_DATA_DIR, else ./data.",
        rich_help_panel=_SERVER,
    ),
]

JobName = Annotated[
    str, typer.Argument(metavar="JOB", help="Its exact name, its id, or the beginning of its id.", show_default=False)
]
OnceKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="TEXT",
        help="A text of your own. Repeating the command with it does nothing twice.",
    ),
]


_LENGTH = "SECONDS"

NewName = Annotated[str, typer.Option("--name", metavar="TEXT", help="What you call it.", show_default=False)]
NewSchedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        metavar="TEXT",
        help="In words ('every weekday at 9am', 'in 20 minutes'; English, French or Spanish) or cron ('0 9 * * 1-5').",
        rich_help_panel=_WHEN,
        show_default=False,
    ),
]
NewUrl = Annotated[
    str,
    typer.Option("--url", metavar="URL", help="What it calls.", rich_help_panel=_WHAT, show_default=False),
]
Name = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="What you call it.")]
Schedule = Annotated[
    str | None,
    typer.Option(
        "--schedule", metavar="TEXT", help="A new schedule counts from now.", rich_help_panel=_WHEN, show_default=False
    ),
]
Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="What it calls.", rich_help_panel=_WHAT)]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", "--tz", metavar="ZONE", help="Such as Europe/Paris.  (UTC)", rich_help_panel=_WHEN),
]
Language = Annotated[
    Literal["en", "fr", "es"] | None,
    typer.Option(
        "--language",
        help="Of the schedule, where it could be read in more than one; else it is found.",
        rich_help_panel=_WHEN,
    ),
]
Dst = Annotated[
    Literal["run_once", "skip", "run_both"] | None,
    typer.Option(
        "--dst", help="A fixed time that a change of the clocks skips or repeats.  (run_once)", rich_help_panel=_WHEN
    ),
]
DayMatch = Annotated[
    Literal["either", "both"] | None,
    typer.Option(
        "--day-match", help="Where day of month and day of week are both given.  (either)", rich_help_panel=_WHEN
    ),
]
Catchup = Annotated[
    Literal["latest", "all", "none"] | None,
    typer.Option("--catchup", help="Which slots missed in a downtime still run.  (latest)", rich_help_panel=_WHEN),
]
CatchupWindow = Annotated[
    float | None,
    typer.Option(
        "--catchup-window",
        metavar=_LENGTH,
        parser=read_seconds,
        help="How late a missed slot may still run.  (1d)",
        rich_help_panel=_WHEN,
    ),
]
Overlap = Annotated[
    Literal["skip", "queue", "allow"] | None,
    typer.Option("--overlap", help="When the run before still runs.  (skip)", rich_help_panel=_WHEN),
]
Method = Annotated[
    str | None, typer.Option("--method", "-X", metavar="METHOD", help="GET, POST, ...  (GET)", rich_help_panel=_WHAT)
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="Repeatable.", rich_help_panel=_WHAT),
]
Body = Annotated[
    str | None,
    typer.Option(
        "--body",
        metavar="TEXT",
        help="Sent as it is. @FILE reads a file, @- standard input, @@ stands for a plain @.",
        rich_help_panel=_WHAT,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar=_LENGTH, parser=read_seconds, help="For the whole request.  (30)", rich_help_panel=_WHAT
    ),
]
SuccessStatus = Annotated[
    list[str] | None,
    typer.Option(
        "--success-status", metavar="STATUS", help="2xx, 200-299, 404; repeatable.  (2xx)", rich_help_panel=_JUDGED
    ),
]
BodyContains = Annotated[
    str | None,
    typer.Option("--body-contains", metavar="TEXT", help="The answer must hold it.", rich_help_panel=_JUDGED),
]
BodyNotContains = Annotated[
    str | None,
    typer.Option("--body-not-contains", metavar="TEXT", help="The answer must not hold it.", rich_help_panel=_JUDGED),
]
BodyMatches = Annotated[
    str | None,
    typer.Option(
        "--body-matches",
        metavar="REGEX",
        help="It must match the answer's body (syntax of RE2).",
        rich_help_panel=_JUDGED,
    ),
]
JsonEquals = Annotated[
    list[str] | None,
    typer.Option(
        "--json-equals",
        metavar="'PATH=VALUE'",
        help="Such as '$.jobs[0].state=done': the JSON answer must have it there. Repeatable.",
        rich_help_panel=_JUDGED,
    ),
]
HeaderEquals = Annotated[
    list[str] | None,
    typer.Option(
        "--header-equals",
        metavar="'NAME: VALUE'",
        help="The answer must have this header. Repeatable.",
        rich_help_panel=_JUDGED,
    ),
]
MaxDuration = Annotated[
    float | None,
    typer.Option(
        "--max-duration",
        metavar=_LENGTH,
        parser=read_seconds,
        help="A slower answer is no success.",
        rich_help_panel=_JUDGED,
    ),
]
Redirects = Annotated[
    int | None,
    typer.Option("--redirects", metavar="N", help="How many to follow, 5 at most.  (0)", rich_help_panel=_WHAT),
]
VerifyTls = Annotated[
    bool | None,
    typer.Option(
        "--verify-tls/--no-verify-tls",
        help="Whether the certificate must be valid. The operator may forbid 'no'.  (verify)",
        rich_help_panel=_WHAT,
    ),
]
Sign = Annotated[
    bool | None,
    typer.Option(
        "--sign/--no-sign",
        help="Sign with the key of `signing rotate`, as Standard Webhooks has it.  (no-sign)",
        rich_help_panel=_WHAT,
    ),
]
Jitter = Annotated[
    Literal["none", "full"] | None,
    typer.Option("--jitter", help="full: wait a random part of each wait.  (none)", rich_help_panel=_JUDGED),
]
DisableAfter = Annotated[
    int | None,
    typer.Option(
        "--disable-after",
        metavar="N",
        help="Disable the job after N failed runs in a row; 0: never.  (0)",
        rich_help_panel=_JUDGED,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option("--attempts", metavar="N", help="At most; the first one counts.  (1)", rich_help_panel=_JUDGED),
]
Backoff = Annotated[
    str | None,
    typer.Option(
        "--backoff", metavar="WORD", help="exponential, linear or fixed.  (exponential)", rich_help_panel=_JUDGED
    ),
]
Delay = Annotated[
    float | None,
    typer.Option(
        "--delay", metavar=_LENGTH, parser=read_seconds, help="Before the first retry.  (5)", rich_help_panel=_JUDGED
    ),
]
OnLost = Annotated[
    Literal["rerun", "give_up"] | None,
    typer.Option("--on-lost", help="When the server dies in the middle of a run.  (rerun)", rich_help_panel=_JUDGED),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Repeatable.")]


class Clearable(StrEnum):
    """What a job can do without."""

    BODY = "body"
    HEADERS = "headers"
    TAGS = "tags"
    BODY_CONTAINS = "body-contains"
    BODY_NOT_CONTAINS = "body-not-contains"
    BODY_MATCHES = "body-matches"
    JSON_EQUALS = "json-equals"
    HEADER_EQUALS = "header-equals"
    MAX_DURATION = "max-duration"


Clear = Annotated[
    list[Clearable] | None,
    typer.Option("--clear", metavar="PART", help=f"Take away: {', '.join(Clearable)}. Repeatable."),
]

JOB_OPTIONS: Mapping[str, Any] = {
    "timezone": Timezone,
    "language": Language,
    "dst": Dst,
    "day_match": DayMatch,
    "catchup": Catchup,
    "catchup_window": CatchupWindow,
    "overlap": Overlap,
    "method": Method,
    "header": Headers,
    "body": Body,
    "timeout": Timeout,
    "redirects": Redirects,
    "verify_tls": VerifyTls,
    "sign": Sign,
    "success_status": SuccessStatus,
    "body_contains": BodyContains,
    "body_not_contains": BodyNotContains,
    "body_matches": BodyMatches,
    "json_equals": JsonEquals,
    "header_equals": HeaderEquals,
    "max_duration": MaxDuration,
    "attempts": Attempts,
    "backoff": Backoff,
    "delay": Delay,
    "jitter": Jitter,
    "disable_after": DisableAfter,
    "on_lost": OnLost,
    "tag": Tags,
}
"""What `jobs create` and `jobs edit` have in common, in the order of their help."""


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a job behind its `url`; what is given of them it finds in its context."""
    signature = inspect.signature(command, eval_str=True)
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in JOB_OPTIONS.items()
    ]
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        if parameter.name == "url":
            parameters += shared
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


FIELDS: Mapping[str, tuple[str, ...]] = {
    "name": ("name",),
    "schedule": ("schedule",),
    "url": ("url",),
    "timezone": ("timezone",),
    "language": ("language",),
    "dst": ("dst",),
    "day_match": ("day_match",),
    "method": ("method",),
    "header": ("headers",),
    "body": ("body",),
    "timeout": ("timeout",),
    "redirects": ("redirects",),
    "verify_tls": ("verify_tls",),
    "sign": ("sign",),
    "attempts": ("retry", "attempts"),
    "backoff": ("retry", "backoff"),
    "delay": ("retry", "delay"),
    "jitter": ("retry", "jitter"),
    "disable_after": ("disable_after",),
    "overlap": ("overlap",),
    "catchup": ("catchup",),
    "catchup_window": ("catchup_window",),
    "on_lost": ("on_lost",),
    "success_status": ("success", "status"),
    "body_contains": ("success", "body_contains"),
    "body_not_contains": ("success", "body_not_contains"),
    "body_matches": ("success", "body_matches"),
    "json_equals": ("success", "json"),
    "header_equals": ("success", "headers"),
    "max_duration": ("success", "max_duration_ms"),
    "tag": ("tags",),
}
"""The parameter of a command, and where the API has its value."""

_CLEARED: Mapping[Clearable, tuple[tuple[str, ...], object]] = {
    Clearable.BODY: (("body",), None),
    Clearable.HEADERS: (("headers",), {}),
    Clearable.TAGS: (("tags",), []),
    Clearable.BODY_CONTAINS: (("success", "body_contains"), None),
    Clearable.BODY_NOT_CONTAINS: (("success", "body_not_contains"), None),
    Clearable.BODY_MATCHES: (("success", "body_matches"), None),
    Clearable.JSON_EQUALS: (("success", "json"), []),
    Clearable.HEADER_EQUALS: (("success", "headers"), {}),
    Clearable.MAX_DURATION: (("success", "max_duration_ms"), None),
}


def job_fields(given: Mapping[str, Any]) -> Json:
    """What the API is told, from the parameters of a command; those that were not given are left out."""
    told: Json = {}
    for parameter, place in FIELDS.items():
        value = given.get(parameter)
        if value is None or value in ([], ()):
            continue
        _put(told, place, _READERS.get(parameter, _as_it_is)(value))
    for what in given.get("clear") or ():
        _put(told, *_CLEARED[what])
    return told


def in_options(error: Invalid) -> Invalid:
    """The refusal of a job with the names of options for the names of fields."""
    names = {".".join(place): "--" + parameter.replace("_", "-") for parameter, place in FIELDS.items()}

    def option_of(field: str) -> str:
        parts = field.split(".")
        known = (names.get(".".join(parts[:length])) for length in range(len(parts), 0, -1))
        return next((option for option in known if option is not None), field)

    message = error.message
    for fault in error.fields:
        if fault.field and message.startswith(f"{fault.field}: "):
            message = f"{option_of(fault.field)}: {message.removeprefix(f'{fault.field}: ')}"
            break
    translated = Invalid(
        message,
        fields=[FieldError(option_of(fault.field), fault.message) for fault in error.fields],
        suggestions=error.suggestions,
    )
    for hint in getattr(error, "__notes__", ()):
        translated.add_note(hint)
    return translated


def _put(told: Json, place: tuple[str, ...], value: object) -> None:
    *outer, last = place
    for name in outer:
        told = told.setdefault(name, {})
    told[last] = value


def _as_it_is(value: object) -> object:
    return value


def _headers(option: str, lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Invalid(f"{option}: write it as 'Name: value', not {line!r}.")
        headers[name.strip()] = value.strip()
    return headers


def _body(text: str) -> str:
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text
    try:
        if text == "@-":
            data = sys.stdin.buffer.read(BODY_BYTES_MAX + 1)
        else:
            with Path(text[1:]).open("rb") as file:
                data = file.read(BODY_BYTES_MAX + 1)
        if len(data) > BODY_BYTES_MAX:
            raise TooLarge(f"--body: a body has at most {BODY_BYTES_MAX:,} bytes, and {text[1:]} has more.")
        return data.decode()
    except OSError as error:
        refusal = Invalid(f"--body: {text[1:]} cannot be read: {error.strerror}.")
        refusal.add_note("A body that begins with @ is the name of a file; write @@ for a plain @.")
        raise refusal from None
    except UnicodeDecodeError:
        raise Invalid(f"--body: {text[1:]} is not UTF-8 text, and a body is text.") from None


_JSON_EQUALS = re.compile(r'(\$(?:[^="]|"(?:[^"\\]|\\.)*")*)=(.*)', re.DOTALL)


def _json_rules(lines: list[str]) -> list[Json]:
    rules: list[Json] = []
    for line in lines:
        match = _JSON_EQUALS.fullmatch(line)
        if match is None:
            raise Invalid(f"--json-equals: write it as '$.path=value', not {line!r}.")
        rules.append({"path": match[1].strip(), "equals": _json_value(match[2].strip())})
    return rules


def _json_value(text: str) -> object:
    """A number, true, false, null or a text in quotes; anything else is a text as it stands."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _whole(value: float) -> float:
    """A whole number without its point: some fields of the API are integers."""
    return int(value) if value == int(value) else value


_READERS: Mapping[str, Any] = {
    "header": partial(_headers, "--header"),
    "header_equals": partial(_headers, "--header-equals"),
    "json_equals": _json_rules,
    "max_duration": _milliseconds,
    "body": _body,
    "catchup_window": _whole,
    "tag": list,
    "success_status": list,
}
