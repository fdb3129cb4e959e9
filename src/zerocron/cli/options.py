"""The options that commands share: how to reach the server, and the fields of a job.

Owns their names and their words. One field of the API is one option here, and `FIELDS` says which, in both directions.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from zerocron.cli import notify
from zerocron.cli.client import Client, find_server
from zerocron.cli.given import read_text
from zerocron.cli.show import Json
from zerocron.core.errors import FieldError, Invalid
from zerocron.core.model import BODY_BYTES_MAX
from zerocron.core.spans import read_seconds

Command = Callable[..., None]
Fields = Mapping[str, tuple[str, ...]]
"""The parameters of a command, and where the API has their values."""
Cleared = Mapping[Any, tuple[tuple[str, ...], object]]
"""What can be taken away, and where the API is told so, and how."""

_server = partial(typer.Option, rich_help_panel="Server and output")
_when = partial(typer.Option, rich_help_panel="When it runs")
_what = partial(typer.Option, rich_help_panel="What it sends")
_judged = partial(typer.Option, rich_help_panel="What counts as success, and what follows a failure")
LENGTH: Any = {"metavar": "SECONDS", "parser": read_seconds}

_API_URL = "The server. Else ZEROCRON_API_URL, else the one of the data directory."
AsJson = Annotated[bool, _server("--json", help="Print JSON for scripts.")]
ApiUrl = Annotated[str | None, _server("--api-url", "--url", metavar="URL", help=_API_URL)]
JobsApiUrl = Annotated[str | None, _server("--api-url", metavar="URL", help=_API_URL)]
ApiKey = Annotated[
    str | None,
    _server(
        "--api-key",
        "--key",
        metavar="KEY",
        help="The API key. Better: ZEROCRON_API_KEY, which other users of the machine cannot see.",
    ),
]
DataDir = Annotated[
    Path | None,
    _server(
        "--data-dir",
        metavar="DIR",
        help="Data directory of a server on this machine. Else ZEROCRON_DATA_DIR, else ./data.",
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
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many.")]
Everything = Annotated[bool, typer.Option("--all", help="All of them.")]
WithTag = Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only those with it.")]

NewName = Annotated[str, typer.Option("--name", metavar="TEXT", help="What you call it.", show_default=False)]
NewSchedule = Annotated[
    str,
    _when(
        "--schedule",
        metavar="TEXT",
        help="In words ('every weekday at 9am', 'in 20 minutes'; English, French or Spanish) or cron ('0 9 * * 1-5').",
        show_default=False,
    ),
]
NewUrl = Annotated[str, _what("--url", metavar="URL", help="What it calls.", show_default=False)]
Name = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="What you call it.")]
Schedule = Annotated[
    str | None, _when("--schedule", metavar="TEXT", help="A new schedule counts from now.", show_default=False)
]
Url = Annotated[str | None, _what("--url", metavar="URL", help="What it calls.")]
Timezone = Annotated[str | None, _when("--timezone", "--tz", metavar="ZONE", help="Such as Europe/Paris.  (UTC)")]
Language = Annotated[
    Literal["en", "fr", "es"] | None,
    _when("--language", help="Of the schedule, where it could be read in more than one; else it is found."),
]
Dst = Annotated[
    Literal["run_once", "skip", "run_both"] | None,
    _when("--dst", help="A fixed time that a change of the clocks skips or repeats.  (run_once)"),
]
DayMatch = Annotated[
    Literal["either", "both"] | None,
    _when("--day-match", help="Where day of month and day of week are both given.  (either)"),
]
Catchup = Annotated[
    Literal["latest", "all", "none"] | None,
    _when("--catchup", help="Which slots missed in a downtime still run.  (latest)"),
]
CatchupWindow = Annotated[
    float | None, _when("--catchup-window", **LENGTH, help="How late a missed slot may still run.  (1d)")
]
Overlap = Annotated[
    Literal["skip", "queue", "allow"] | None, _when("--overlap", help="When the run before still runs.  (skip)")
]
Method = Annotated[str | None, _what("--method", "-X", metavar="METHOD", help="GET, POST, ...  (GET)")]
Headers = Annotated[list[str] | None, _what("--header", "-H", metavar="'NAME: VALUE'", help="Repeatable.")]
Body = Annotated[
    str | None,
    _what(
        "--body",
        metavar="TEXT",
        help="Sent as it is. @FILE reads a file, @- standard input, @@ stands for a plain @.",
    ),
]
Timeout = Annotated[float | None, _what("--timeout", **LENGTH, help="For the whole request.  (30)")]
SuccessStatus = Annotated[
    list[str] | None, _judged("--success-status", metavar="STATUS", help="2xx, 200-299, 404; repeatable.  (2xx)")
]
BodyContains = Annotated[str | None, _judged("--body-contains", metavar="TEXT", help="The answer must hold it.")]
BodyNotContains = Annotated[
    str | None, _judged("--body-not-contains", metavar="TEXT", help="The answer must not hold it.")
]
BodyMatches = Annotated[
    str | None, _judged("--body-matches", metavar="REGEX", help="It must match the answer's body (syntax of RE2).")
]
JsonEquals = Annotated[
    list[str] | None,
    _judged(
        "--json-equals",
        metavar="'PATH=VALUE'",
        help="Such as '$.jobs[0].state=done': the JSON answer must have it there. Repeatable.",
    ),
]
HeaderEquals = Annotated[
    list[str] | None,
    _judged("--header-equals", metavar="'NAME: VALUE'", help="The answer must have this header. Repeatable."),
]
MaxDuration = Annotated[float | None, _judged("--max-duration", **LENGTH, help="A slower answer is no success.")]
Redirects = Annotated[int | None, _what("--redirects", metavar="N", help="How many to follow, 5 at most.  (0)")]
VerifyTls = Annotated[
    bool | None,
    _what(
        "--verify-tls/--no-verify-tls",
        help="Whether the certificate must be valid. The operator may forbid 'no'.  (verify)",
    ),
]
Sign = Annotated[
    bool | None,
    _what("--sign/--no-sign", help="Sign with the key of `signing rotate`, as Standard Webhooks has it.  (no-sign)"),
]
Jitter = Annotated[
    Literal["none", "full"] | None, _judged("--jitter", help="full: wait a random part of each wait.  (none)")
]
DisableAfter = Annotated[
    int | None,
    _judged("--disable-after", metavar="N", help="Disable the job after N failed runs in a row; 0: never.  (0)"),
]
Attempts = Annotated[int | None, _judged("--attempts", metavar="N", help="At most; the first one counts.  (1)")]
Backoff = Annotated[
    str | None, _judged("--backoff", metavar="WORD", help="exponential, linear or fixed.  (exponential)")
]
Delay = Annotated[float | None, _judged("--delay", **LENGTH, help="Before the first retry.  (5)")]
OnLost = Annotated[
    Literal["rerun", "give_up"] | None,
    _judged("--on-lost", help="When the server dies in the middle of a run.  (rerun)"),
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
    NOTIFY_CHANNELS = "notify-channels"
    OUT_OF = "out-of"
    REMIND_EVERY = "remind-every"


def clear_of(parts: type[StrEnum]) -> Any:
    return typer.Option(
        "--clear",
        metavar="PART",
        help=f"Take away: {', '.join(parts)}. Repeatable. Without notify-channels all are told.",
    )


Clear = Annotated[list[Clearable] | None, clear_of(Clearable)]

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
    "notify_channel": notify.Channels,
    "notify_nobody": notify.Nobody,
    "notify_on": notify.JobOn,
    "after_failures": notify.AfterFailures,
    "out_of": notify.OutOf,
    "remind_every": notify.RemindEvery,
    "late_after": notify.LateAfter,
    "tag": Tags,
}
"""What `jobs create` and `jobs edit` have in common, in the order of their help."""


def with_options(options: Mapping[str, Any], *, behind: str) -> Callable[[Command], Command]:
    """A command with these options behind a parameter of its own; what is given of them it finds in its context."""

    def decorate(command: Command) -> Command:
        parameters = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                parameters.append(parameter)
            if parameter.name == behind:
                parameters += _parameters(options)
        return _declared(command, parameters)

    return decorate


def with_server(command: Command) -> Command:
    """A command with the options that say which server; its first parameter is the client of that one."""

    @wraps(command)
    def connected(*, api_url: str | None, api_key: str | None, data_dir: Path | None, **given: Any) -> None:
        command(Client(find_server(api_url, api_key, data_dir)), **given)

    _client, *own = inspect.signature(command, eval_str=True).parameters.values()
    return _declared(connected, [*own, *_parameters({"api_url": ApiUrl, "api_key": ApiKey, "data_dir": DataDir})])


def _parameters(options: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in options.items()
    ]


def _declared(command: Command, parameters: Iterable[inspect.Parameter]) -> Command:
    """The command with these parameters, as typer finds them."""
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return command


FIELDS: Fields = {
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
    **notify.JOB_FIELDS,
}
"""The parameter of a command, and where the API has its value."""

_CLEARED: Cleared = {
    Clearable.BODY: (("body",), None),
    Clearable.HEADERS: (("headers",), {}),
    Clearable.TAGS: (("tags",), []),
    Clearable.BODY_CONTAINS: (("success", "body_contains"), None),
    Clearable.BODY_NOT_CONTAINS: (("success", "body_not_contains"), None),
    Clearable.BODY_MATCHES: (("success", "body_matches"), None),
    Clearable.JSON_EQUALS: (("success", "json"), []),
    Clearable.HEADER_EQUALS: (("success", "headers"), {}),
    Clearable.MAX_DURATION: (("success", "max_duration_ms"), None),
    Clearable.NOTIFY_CHANNELS: (("notify", "channels"), None),
    Clearable.OUT_OF: (("notify", "out_of"), None),
    Clearable.REMIND_EVERY: (("notify", "remind_every"), None),
}


def job_fields(given: Mapping[str, Any]) -> Json:
    """What the API is told of a job."""
    return told(given, FIELDS, _READERS, _CLEARED)


def told(given: Mapping[str, Any], fields: Fields, readers: Mapping[str, Any], cleared: Cleared) -> Json:
    """What the API is told, from the parameters of a command; those that were not given are left out."""
    document: Json = {}
    for parameter, place in fields.items():
        value = given.get(parameter)
        if value is None or value in ([], ()):
            continue
        _put(document, place, readers.get(parameter, _as_it_is)(value))
    for what in given.get("clear") or ():
        _put(document, *cleared[what])
    return document


def in_options(error: Invalid, fields: Fields = FIELDS) -> Invalid:
    """The refusal of a thing with the names of options for the names of fields."""
    names = {".".join(place): "--" + parameter.replace("_", "-") for parameter, place in fields.items()}

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


def _put(document: Json, place: tuple[str, ...], value: object) -> None:
    *outer, last = place
    for name in outer:
        document = document.setdefault(name, {})
    document[last] = value


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
    return read_text(text, BODY_BYTES_MAX, option="--body", noun="body")


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


def whole(value: float) -> float:
    """A whole number without its point: some fields of the API are integers."""
    return int(value) if value == int(value) else value


_READERS: Mapping[str, Any] = {
    "header": partial(_headers, "--header"),
    "header_equals": partial(_headers, "--header-equals"),
    "json_equals": _json_rules,
    "max_duration": _milliseconds,
    "body": _body,
    "catchup_window": whole,
    "tag": list,
    "success_status": list,
    "notify_channel": list,
    "notify_on": list,
    "remind_every": whole,
    "late_after": whole,
}
