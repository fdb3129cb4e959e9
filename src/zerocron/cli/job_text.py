"""How jobs read: a table of many, the fields of one.

Owns the words for a job's settings. It asks the server for nothing but the slots that follow the next one.
"""

from __future__ import annotations

import json

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from zerocron.cli import notify, times
from zerocron.cli.client import Client
from zerocron.cli.show import (
    WIDE,
    Json,
    clean,
    lines,
    note,
    output,
    plural,
    print_fields,
    print_json,
    print_table,
    say,
    shortened,
    table,
    word,
)
from zerocron.clock import SystemClock
from zerocron.core.spans import span

NEXT_SHOWN = 3
BODY_CHARACTERS_SHOWN = 400
ID_COLUMNS = 36
SCHEDULE_COLUMNS_MAX = 17


def print_jobs(jobs: list[Json]) -> None:
    """Two lines a job where eighty columns are all there is, one line on a wide terminal."""
    now = SystemClock().now()
    width = output().width
    print_table(_wide_table(jobs, now) if width >= WIDE else _narrow_table(jobs, now, width))


def _wide_table(jobs: list[Json], now: int) -> Table:
    made = table("NAME", "STATUS", "SCHEDULE", f"NEXT RUN ({times.here(now)})", "LAST RUN", "ID")
    for number in (1, 3, 4, 5):
        made.columns[number].no_wrap = True
    for job in jobs:
        when, at = _next_cells(job, now)
        result, ago = _last_cells(job, now)
        made.add_row(
            Text(clean(job["name"])),
            word(job["status"]),
            Text(clean(schedule_words(job))),
            Text(f"{when}, {at}" if at else when),
            Text.assemble(result, f" {ago}" if ago else ""),
            Text(job["id"]),
        )
    return made


def _narrow_table(jobs: list[Json], now: int, width: int) -> Table:
    """An id is never broken and times are not either; names and schedules wrap."""
    nexts = [lines(_next_cells(job, now)) for job in jobs]
    lasts = [lines(_last_cells(job, now)) for job in jobs]
    headings = ("NAME / ID", "SCHEDULE / STATUS", f"NEXT ({times.here(now)})", "LAST RUN")
    made = table(*headings)
    taken = [
        max(len(heading), *(cell_len(line.plain) for cell in cells for line in cell.split()))
        for heading, cells in zip(headings[2:], (nexts, lasts), strict=True)
    ]
    schedule = max(len(headings[1]), *(cell_len(job["schedule"]) for job in jobs))
    longest = max(cell_len(job["name"]) for job in jobs)
    room = width - sum(taken) - min(schedule, SCHEDULE_COLUMNS_MAX) - 2 * len(taken) - 2
    made.columns[0].width = max(ID_COLUMNS, min(longest, room))
    made.columns[2].no_wrap = made.columns[3].no_wrap = True
    for job, following, last in zip(jobs, nexts, lasts, strict=True):
        made.add_row(
            lines([job["name"], Text(job["id"], style="dim")]),
            lines([job["schedule"], word(job["status"])]),
            following,
            last,
        )
    return made


def _next_cells(job: Json, now: int) -> tuple[str, str]:
    if job["next_run_at"] is None:
        return "-", ""
    at = times.instant(job["next_run_at"])
    return times.relative(at, now), times.short(at, now)


def _last_cells(job: Json, now: int) -> tuple[Text, str]:
    last = job["last_run"]
    if last is None:
        return Text("-"), ""
    failures = job["stats"]["consecutive_failures"]
    result = word(last["status"])
    if last["status"] != "succeeded" and failures > 1:
        result.append(f" ×{failures}")
    return result, times.relative(times.instant(last["finished_at"]), now)


def schedule_words(thing: Json) -> str:
    """As it was typed, with its zone where that says something."""
    written = str(thing["schedule"])
    return written if thing["timezone"] == "UTC" else f"{written} ({thing['timezone']})"


def _meaning(job: Json) -> list[Text]:
    """What the schedule means, where that is not what was typed."""
    meaning = [job["description"], job["schedule_cron"]]
    return [Text(clean(text), style="dim") for text in meaning if text not in (None, job["schedule"])]


def next_words(job: Json) -> str:
    return times.when(job["next_run_at"], SystemClock().now())


def print_job(client: Client, job: Json, as_json: bool, heading: str | None = None) -> None:
    if as_json:
        print_json(job)
        return
    say(heading or str(job["name"]), style="bold")
    print_fields(_job_fields(job, _next_runs(client, job)))
    for warning in job["warnings"]:
        say(f"warning: {warning}", style="yellow")


def _next_runs(client: Client, job: Json) -> list[int]:
    """The next slots: the one the server has, and those that would follow it."""
    if job["next_run_at"] is None:
        return []
    first = job["next_run_at"]
    following = [] if job["schedule_kind"] == "once" else slots_after(client, job, first, NEXT_SHOWN - 1)
    return [times.instant(first), *following]


def slots_after(client: Client, thing: Json, after: str, count: int) -> list[int]:
    """The slots of a job's or a monitor's schedule behind an instant (RFC 3339)."""
    question = {"schedule": thing["schedule_cron"] or thing["schedule"], "after": after, "count": count}
    question |= {name: thing[name] for name in ("timezone", "dst", "day_match")}
    return [times.instant(text) for text in client.send("POST", "/v1/schedules/preview", question)["next"]]


def slot_lines(slots: list[int], now: int) -> str:
    return "\n".join(f"{times.full(at)}  {times.relative(at, now)}" for at in slots) or "none"


def _job_fields(job: Json, next_runs: list[int]) -> list[tuple[str, str | Text]]:
    now = SystemClock().now()
    fields: list[tuple[str, str | Text]] = [
        ("id", job["id"]),
        (
            "status",
            Text.assemble(word(job["status"]), f"  {clean(job['status_reason'])}" if job["status_reason"] else ""),
        ),
        ("schedule", lines([schedule_words(job), *_meaning(job)])),
        ("next runs", slot_lines(next_runs, now)),
        ("calls", f"{job['method']} {job['url']}"),
    ]
    if job["headers"]:
        fields.append(("headers", "\n".join(f"{name}: {value}" for name, value in job["headers"].items())))
    if job["body"] is not None:
        fields.append(("body", shortened(job["body"], BODY_CHARACTERS_SHOWN)))
    if delivery := _delivery_words(job):
        fields.append(("sent", delivery))
    fields += [
        ("time-out", span(job["timeout"])),
        ("success", _success_words(job["success"])),
        ("retries", _retry_words(job)),
        ("policies", f"overlap {job['overlap']}, catch-up {_catchup_words(job)}, on lost {job['on_lost']}"),
    ]
    fields.append(("tells", notify.words(job["notify"])))
    if job["tags"]:
        fields.append(("tags", ", ".join(job["tags"])))
    if job["last_run"] is not None:
        last = job["last_run"]
        at = times.full(times.instant(last["finished_at"]))
        fields.append(("last run", Text.assemble(word(last["status"]), f" {at}\nrun {last['id']}")))
    fields.append(("so far", _stats_words(job["stats"])))
    return fields


def _delivery_words(job: Json) -> str:
    """How it is sent, where that is not as usual."""
    words = [plural(job["redirects"], "redirect") + " followed at most"] if job["redirects"] else []
    words += ["certificates not verified"] if not job["verify_tls"] else []
    words += ["signed"] if job["sign"] else []
    return ", ".join(words)


def _success_words(rule: Json) -> str:
    words = [f"status {', '.join(rule['status'])}"]
    for name, phrase in _BODY_RULES.items():
        if rule[name] is not None:
            words.append(f"body {phrase} {rule[name]!r}")
    words += [f"{each['path']} is {json.dumps(each['equals'], ensure_ascii=False)}" for each in rule["json"]]
    words += [f"header {name} is {value!r}" for name, value in rule["headers"].items()]
    if rule["max_duration_ms"] is not None:
        words.append(f"within {times.duration(rule['max_duration_ms'])}")
    return ", ".join(words)


_BODY_RULES = {
    "body_contains": "contains",
    "body_not_contains": "does not contain",
    "body_matches": "matches",
}


def _retry_words(job: Json) -> str:
    retry, after = job["retry"], job["disable_after"]
    words = "none (1 attempt)"
    if retry["attempts"] > 1:
        jitter = " with full jitter" if retry["jitter"] == "full" else ""
        back_off = f"{retry['backoff']} back-off{jitter} from {span(retry['delay'])}"
        words = f"up to {retry['attempts']} attempts, {back_off}"
    return words + (f"; disabled after {plural(after, 'failed run')} in a row" if after else "")


def _catchup_words(job: Json) -> str:
    return str(job["catchup"]) + ("" if job["catchup"] == "none" else f" within {span(job['catchup_window'])}")


def _stats_words(stats: Json) -> str:
    words = f"{stats['succeeded']:,} succeeded, {stats['failed']:,} failed, {stats['skipped']:,} skipped"
    if stats["average_duration_ms"] is not None:
        words += f"; {times.duration(stats['average_duration_ms'])} on average"
    return words


def print_explanation(found: Json) -> None:
    """Why a job did or did not run."""
    say(found["sentence"])
    for each in found["evidence"]:
        say(f"  {times.row(times.instant(each['at']))}  {each['what']}")
    near = [
        f"{name}: {times.full(times.instant(found[key]))}"
        for name, key in (("Slot before", "nearest_before"), ("slot after", "nearest_after"))
        if found[key] is not None
    ]
    if near:
        note(f"{', '.join(near)}.")
