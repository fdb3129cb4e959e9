"""The small functions that words are made of: times, lengths, fields of a job, lines of the log."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.cli.support import Cli

from zerocron.actions.jobs import JobSpec
from zerocron.cli import options, times
from zerocron.cli.run_text import result
from zerocron.cli.show import clean, shortened
from zerocron.core.errors import FieldError, Invalid, TooLarge
from zerocron.core.instants import from_rfc3339
from zerocron.core.spans import read_seconds, span
from zerocron.core.understanding import DEFAULT_TIMEZONE

NOW = from_rfc3339("2026-11-29T12:00:00Z")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "now"),
        (1, "in 1 s"),
        (-3, "3 s ago"),
        (60, "in 1 min"),
        (61, "in 61 s"),
        (119, "in 119 s"),
        (120, "in 2 min"),
        (5400, "in 90 min"),
        (-3600, "1 h ago"),
        (7200, "in 2 h"),
        (100_000, "in 28 h"),
        (86_400, "in 1 d"),
        (-400 * 86_400, "400 d ago"),
    ],
)
def test_relative_times(seconds: float, words: str) -> None:
    assert times.relative(NOW + round(seconds * 1000), NOW) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0.0 ms"),
        (0.44, "0.4 ms"),
        (0.99, "1 ms"),
        (12.3, "12 ms"),
        (999.6, "1.00 s"),
        (1234, "1.23 s"),
        (12_345, "12.3 s"),
        (59_990, "1 min"),
        (125_000, "2 min 5 s"),
        (3_720_000, "1 h 2 min"),
    ],
)
def test_durations(milliseconds: float, words: str) -> None:
    assert times.duration(milliseconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(30, "30 s"), (90, "90 s"), (120, "2 min"), (86_400, "1 d"), (0.5, "0.5 s"), (0, "0 s")]
)
def test_lengths_that_were_set(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1.5", 1.5), ("90s", 90), ("5m", 300), ("2H", 7200)])
def test_lengths_that_are_read(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5x", "-1", "1e3", "nan", "1.2.3", "٣"])
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        read_seconds(text)


def test_short_times_never_have_more_than_twelve_characters() -> None:
    days = (0, 1, -6, 7, 200, 400, 100_000)
    words = [times.short(NOW + day * 86_400_000, NOW) for day in days]
    assert words[:5] == ["12:00:00", "Mon 12:00", "Mon 12:00", "Dec 06 12:00", "Jun 17 12:00"]
    assert all(len(word) <= 12 for word in words)


def test_what_comes_from_a_server_cannot_act_on_a_terminal() -> None:
    assert clean("a\x1b[31m\x07\r\x9b\u202e\tb\nc") == r"a\x1b[31m\x07\x0d\x9b\u202e    b" + "\nc"
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "abc... (1 characters more; --json has them)"


@pytest.mark.parametrize(
    ("run", "last", "words"),
    [
        ({"status": "running"}, None, ""),
        ({"status": "skipped", "reason": "missed", "count": 1200}, None, "missed ×1,200"),
        ({"status": "lost", "reason": "node_lost"}, {"status": "error"}, "server lost"),
        ({"status": "failed"}, {"error": {"kind": "timeout", "message": ""}}, "timeout"),
        ({"status": "failed", "attempts": 3}, {"error": {"kind": "rule", "message": "The status was"}}, "500 ×3"),
        ({"status": "failed"}, {"error": {"kind": "rule", "message": "The body does"}}, "500, wrong body"),
        ({"status": "failed"}, {"error": {"kind": "rule", "message": "The header X"}}, "500, wrong header"),
        ({"status": "failed"}, {"error": {"kind": "rule", "message": "The answer took"}}, "500, too slow"),
        ({"status": "succeeded"}, {"status": "success", "duration_ms": 12}, "500 in 12 ms"),
        ({"status": "failed"}, None, ""),
    ],
)
def test_what_came_of_a_run_in_a_few_words(run: dict[str, Any], last: dict[str, Any] | None, words: str) -> None:
    whole = {"reason": None, "count": 1, "attempts": 1, **run}
    execution = None if last is None else {"status": "failed", "response": {"status": 500}, **last}
    assert result(whole, execution) == words


def test_every_field_of_a_job_has_an_option(cli: Cli) -> None:
    schemas = cli.here("openapi").json["components"]["schemas"]
    places = {".".join(place) for place in options.FIELDS.values()}
    assert {place.partition(".")[0] for place in places} == set(schemas["JobInput"]["properties"])
    for name, schema in (("retry", "RetryInput"), ("success", "SuccessInput"), ("notify", "JobNotifyInput")):
        inner = {place.partition(".")[2] for place in places if place.startswith(f"{name}.")}
        assert inner - {"nobody"} == set(schemas[schema]["properties"])  # which is an empty list of channels


def test_the_defaults_that_help_tells_are_those_of_the_api() -> None:
    spec = JobSpec(name="", schedule="", url="")
    told: tuple[tuple[Any, str], ...] = (
        (options.Timezone, spec.timezone or DEFAULT_TIMEZONE),
        (options.Method, spec.method),
        (options.Timeout, f"{spec.timeout_seconds}"),
        (options.Catchup, spec.catchup),
        (options.CatchupWindow, span(spec.catchup_window_seconds).replace(" ", "")),
        (options.Overlap, spec.overlap),
        (options.OnLost, spec.on_lost),
        (options.Attempts, f"{spec.retry.attempts}"),
        (options.Backoff, spec.retry.backoff),
        (options.Delay, f"{spec.retry.delay_seconds}"),
        (options.SuccessStatus, spec.success.status[0]),
    )
    for option, default in told:
        (info,) = option.__metadata__
        assert info.help.endswith(f"  ({default})")


def test_fields_are_told_only_when_they_are_given() -> None:
    given = {"name": "x", "tag": [], "attempts": None, "delay": 1.0, "clear": ["headers"], "body": "@@home"}
    assert options.job_fields(given) == {"name": "x", "retry": {"delay": 1.0}, "headers": {}, "body": "@home"}


def test_a_body_from_a_file_has_bounds_and_is_text(tmp_path: Any) -> None:
    file = tmp_path / "body"
    with pytest.raises(Invalid, match="cannot be read: No such file") as caught:
        options.job_fields({"body": f"@{file}"})
    assert "write @@ for a plain @" in options.in_options(caught.value).__notes__[0]
    file.write_bytes(b"\xff")
    with pytest.raises(Invalid, match="is not UTF-8 text"):
        options.job_fields({"body": f"@{file}"})
    file.write_bytes(b"x" * 1_048_577)
    with pytest.raises(TooLarge, match="at most 1,048,576 bytes"):
        options.job_fields({"body": f"@{file}"})
    with pytest.raises(Invalid, match="write it as 'Name: value'"):
        options.job_fields({"header": ["nonsense"]})


def test_refusals_speak_of_options() -> None:
    fields = [FieldError("retry.attempts", "too many"), FieldError("headers.X-A", "too long"), FieldError("", "odd")]
    translated = options.in_options(Invalid("retry.attempts: too many", fields=fields))
    assert translated.message == "--attempts: too many"
    assert [fault.field for fault in translated.fields] == ["--attempts", "--header", ""]


LOGGING = """
import logging, structlog, warnings
from zerocron.cli.logs import configure_logging
configure_logging("{level}", "{format}")
log = structlog.get_logger("x")
log.debug("quiet")
log.info("said", url="a b", forged="x\\nlevel=error", number=3)
logging.getLogger("uvicorn.error").info("quiet too")
logging.getLogger("aiohttp.client").warning("heard %s", "this")
secret = "hunter2"
try:
    raise ValueError("no")
except ValueError:
    log.exception("failed", job="j")
"""


def logged(level: str, form: str) -> list[str]:
    code = LOGGING.format(level=level, format=form)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == ""
    assert "hunter2" not in done.stderr
    return done.stderr.splitlines()


def test_the_log_as_json_has_one_object_a_line() -> None:
    said, heard, failed = (json.loads(line) for line in logged("info", "auto"))
    assert said.pop("timestamp").endswith("Z")
    assert said == {"level": "info", "event": "said", "url": "a b", "forged": "x\nlevel=error", "number": 3}
    assert (heard["logger"], heard["event"], heard["level"]) == ("aiohttp.client", "heard this", "warning")
    assert failed["exception"].startswith("Traceback")
    assert failed["exception"].endswith("ValueError: no")


def test_the_log_as_text_cannot_be_forged_and_debug_hears_everything() -> None:
    lines = logged("debug", "text")
    assert [line.split()[1] for line in lines[:4]] == ["debug", "info", "info", "warning"]
    assert lines[1].endswith(r'said  url="a b"  forged="x\nlevel=error"  number=3')
    assert lines[-1] == "    ValueError: no"
    assert "hunter2" not in "".join(logged("warning", "text"))
