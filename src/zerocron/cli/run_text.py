"""How runs read: a table of many, a line of one as it ends, and one with all its attempts.

Owns the words for what came of a run, and how requests and responses look.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from rich.table import Table
from rich.text import Text

from zerocron.cli import times
from zerocron.cli.program import program
from zerocron.cli.show import Json, clean, output, plural, print_fields, print_table, say, shortened, table, word
from zerocron.clock import SystemClock

ROOMY = 96
"""From this many columns on, there is room for how late a run was."""

BODY_CHARACTERS_SHOWN = 2_000

_REASONS = {
    "missed": "missed",
    "overlap": "overlap",
    "queue_full": "queue full",
    "team_limit": "team limit",
    "superseded": "superseded",
    "job_paused": "job paused",
    "job_deleted": "job deleted",
    "job_disabled": "job disabled",
    "node_lost": "server lost",
    "redeliveries_exhausted": "server lost",
}
"""Two words for why a run was not simply carried out; the explanation of the API has the sentence."""

_WIDTHS = (14, 9, 15)
"""Of the columns of a followed job; with a run's id they are eighty."""


def print_page(runs: list[Json], executions: list[Json]) -> None:
    """A table of runs; `executions` are of the same job, and tell what the last attempt of each run met."""
    last: dict[str, Json] = {}
    for execution in executions:
        known = last.get(execution["run_id"])
        if known is None or execution["attempt"] > known["attempt"]:
            last[execution["run_id"]] = execution
    roomy = output().width >= ROOMY
    made = table(
        f"SLOT ({times.here(SystemClock().now())})", "STATUS", "RESULT", *(["LATE"] if roomy else []), "RUN ID"
    )
    made.columns[-1].no_wrap = True
    made.columns[0].no_wrap = True
    for run in runs:
        late = [Text(_late(run))] if roomy else []
        slot = Text(times.row(times.instant(run["scheduled_for"])))
        made.add_row(slot, word(run["status"]), Text(result(run, last.get(run["id"]))), *late, Text(run["id"]))
    print_table(made)


def follow_heading() -> str:
    when, status, what = _WIDTHS
    zone = times.here(SystemClock().now())
    return f"{f'SLOT ({zone})':{when}}  {'STATUS':{status}}  {'RESULT':{what}}  RUN ID"


def follow_line(run: Json) -> Text:
    """A run that is over, in the columns of the heading; its executions are with it if it has any."""
    when, status, what = _WIDTHS
    last = (run.get("executions") or [None])[-1]
    return Text.assemble(
        f"{times.row(times.instant(run['scheduled_for'])):{when}}  ",
        word(run["status"]),
        f"{'':{status - len(run['status'])}}  {clean(result(run, last)):{what}}  {run['id']}",
    )


def result(run: Json, last: Json | None) -> str:
    """What came of it, in a few words: `200 in 12 ms`, `500 ×3`, `timeout`, `missed ×12`."""
    if run["status"] in ("queued", "running"):
        return ""
    if run["status"] in ("skipped", "cancelled", "lost") or (last is None and run["reason"]):
        reason = str(run["reason"] or "")
        words = _REASONS.get(reason, reason.replace("_", " "))
        return words + (f" ×{run['count']:,}" if run["count"] > 1 else "")
    if last is None:
        return ""
    tries = f" ×{run['attempts']}" if run["attempts"] > 1 else ""
    if last["status"] == "success":
        return f"{last['response']['status']}{tries} in {times.duration(last['duration_ms'])}"
    return _failure_words(last) + tries


def _failure_words(execution: Json) -> str:
    error = execution["error"] or {"kind": "error", "message": ""}
    if error["kind"] != "rule":
        return str(error["kind"]).replace("_", " ")
    status = str(execution["response"]["status"])
    part = next((part for opening, part in _BROKEN_PARTS.items() if error["message"].startswith(opening)), None)
    return status if part is None else f"{status}, {part}"


_BROKEN_PARTS = {"The body": "wrong body", "The header": "wrong header", "The answer took": "too slow"}
"""By how the sentence of a broken success rule begins: what it is about, when it is not the status."""


def _late(run: Json) -> str:
    return "" if run["lateness_ms"] is None else times.duration(max(0, run["lateness_ms"]))


def print_end(run: Json) -> None:
    """How a run that was waited for ended; with its executions."""
    executions = run["executions"]
    if run["status"] == "succeeded":
        say(f"It succeeded: {result(run, executions[-1])}.", style="green")
        return
    reason = run["explanation"] or ""
    error = executions[-1]["error"] if executions else None
    sentences = [
        f"The run {_ended_words(run['status'])}." if not reason else f"It {_ended_words(run['status'])}: {reason}"
    ]
    if error is not None:
        sentences.append(error["message"])
    say(" ".join(sentences), style="red")
    say(f"See what was sent and what came back: {program()} runs show {run['id']}")


def _ended_words(status: str) -> str:
    return {"failed": "failed", "skipped": "was skipped", "cancelled": "was cancelled"}.get(status, f"is {status}")


def print_run(run: Json, job: Json) -> None:
    """Everything about a run."""
    say(Text.assemble(("Run ", "bold"), (run["id"], "bold"), " ", word(run["status"])))
    print_fields(_fields(run, job))
    for execution in run["executions"]:
        say()
        _print_execution(execution, job)


def _fields(run: Json, job: Json) -> Iterable[tuple[str, str]]:
    slot = times.full(times.instant(run["scheduled_for"]))
    yield "job", f"{job['name']}  {run['job_id']}"
    if run["count"] > 1:
        yield "slots", f"{run['count']:,}, from {slot} to {times.full(times.instant(run['scheduled_until']))}"
    elif run["triggered_by"] == "schedule":
        yield "slot", slot
    else:
        yield "asked for", f"{slot}, {'by the API' if run['triggered_by'] == 'api' else 'by hand'}"
    if run["explanation"] is not None:
        yield "why", run["explanation"]
    if run["started_at"] is not None:
        yield "started", f"{times.full(times.instant(run['started_at']))}, {_late(run)} late"
    if run["retry_at"] is not None and run["status"] == "retrying":
        yield "next try", times.full(times.instant(run["retry_at"]))
    if run["finished_at"] is not None:
        yield "ended", _end_words(run)


def _end_words(run: Json) -> str:
    end = times.instant(run["finished_at"])
    text = times.full(end)
    if run["started_at"] is not None:
        text += f", after {times.duration(end - times.instant(run['started_at']))}"
        if run["attempts"] > 1:
            text += f" and {plural(run['attempts'], 'attempt')}"
    return text


def _print_execution(execution: Json, job: Json) -> None:
    allowed = f" of {job['retry']['attempts']}" if job["retry"] and job["retry"]["attempts"] > 1 else ""
    started = times.local(times.instant(execution["started_at"])).strftime("%H:%M:%S.%f")[:-3]
    again = " (sent again: the server that ran it was lost)" if execution["cause"] == "node_lost" else ""
    status = "succeeded" if execution["status"] == "success" else execution["status"]
    heading = Text.assemble((f"Attempt {execution['attempt']}{allowed}{again} ", "bold"), word(status))
    heading.append(f" at {started}, after {times.duration(execution['duration_ms'])}")
    say(heading)
    if execution["error"] is not None:
        say(f"  {execution['error']['message']}", style="red")
    say(f"  {_timings_words(execution['timings_ms'])}", style="dim")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    exchange = (
        *_request_lines(execution["request"]),
        *_hop_lines(execution["hops"]),
        *_response_lines(execution["response"]),
    )
    for mark, text in exchange:
        grid.add_row(Text(f"  {mark}", style="dim"), Text(clean(text)))
    print_table(grid)


def _timings_words(timings: Json) -> str:
    names = {"dns": "name", "connect": "connection", "tls": "TLS", "first_byte": "first byte", "total": "total"}
    known = [f"{name} {times.duration(timings[key])}" for key, name in names.items() if timings.get(key) is not None]
    return f"timings: {', '.join(known) or 'none'}"


def _request_lines(request: Json | None) -> Iterable[tuple[str, str]]:
    if request is None:
        return
    yield ">", f"{request['method']} {request['url']}"
    yield from _message(">", request["headers"], request["body"])


def _hop_lines(hops: list[Json]) -> Iterable[tuple[str, str]]:
    """The redirects that were followed, with what each request met."""
    for number, hop in enumerate(hops):
        if number == 0:
            yield "", ""
        met = "no answer" if hop["status"] is None else f"{hop['status']} {_phrase(hop['status'])}".rstrip()
        body = " with the body" if hop["with_body"] else ""
        yield "~", f"{hop['method']} {hop['url']}{body}: {met}"


def _response_lines(response: Json | None) -> Iterable[tuple[str, str]]:
    if response is None:
        return
    yield "", ""
    yield "<", f"{response['status']} {_phrase(response['status'])}".rstrip()
    if response["encoding"] == "base64":
        body = f"({response['body_bytes']:,} bytes that are no text; --json has them in base64)"
    else:
        body = response["body"]
    yield from _message("<", response["headers"], body)
    if response["truncated"]:
        yield "", f"(cut off after {response['body_bytes']:,} bytes; there was more)"


def _message(mark: str, headers: Json, body: str | None) -> Iterable[tuple[str, str]]:
    for name, value in headers.items():
        for line in value.split("\n"):
            yield mark, f"{name}: {line}"
    if body:
        yield mark, ""
        for line in shortened(body, BODY_CHARACTERS_SHOWN).splitlines():
            yield mark, line


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
