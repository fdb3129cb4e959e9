"""A job: where it stands, what comes next, how it did, what it sends; and why it did or did not run at an instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape
from starlette.responses import Response

from zerocron.core.model import RetryPolicy
from zerocron.core.placeholders import names_in, names_of_request
from zerocron.core.retry import STRATEGIES, backoff_ms
from zerocron.dashboard import charts
from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.telling import read_instant
from zerocron.dashboard.views.jobs import UNDER_WAY, state_of
from zerocron.dashboard.visit import Visit, lines_of
from zerocron.dashboard.words import words_of

NEXT_SHOWN = 5
RUNS_LOOKED_AT = 5
"""So many of the latest runs say whether one is under way."""

DAYS = (7, 30, 90)


async def show(visit: Visit) -> Response:
    """GET /jobs/{job_id}. `part` is a part of it: `now` (where it stands), `figures`, `rows` or `more` (its runs)."""
    part = visit.query.get("part", "") if visit.is_fragment else ""
    if part == "now":
        return visit.page("job/now.html", **await _now(visit))
    if part == "figures":
        return visit.page("job/figures.html", job_id=visit.path["job_id"], **await _figures(visit))
    if part in ("rows", "more"):
        return visit.page("job/rows.html", part=part, job_id=visit.path["job_id"], **await _runs(visit))
    return visit.page("job/job.html", **await _whole(visit))


async def _whole(visit: Visit) -> dict[str, Any]:
    now = await _now(visit)
    job = now["job"]
    return {
        **now,
        **await _figures(visit),
        **await _runs(visit),
        "job_id": job["id"],
        "sent": _sent(job),
        "retries": _retries(job["retry"]),
        "channels": await _channels(visit, job["notify"]["channels"]),
    }


async def _now(visit: Visit) -> dict[str, Any]:
    """The job, what it shows at a glance, and its next slots."""
    job = await visit.api.get(f"/v1/jobs/{visit.path['job_id']}")
    latest, _ = await lines_of(visit.api, f"/v1/jobs/{job['id']}/runs", {"limit": RUNS_LOOKED_AT})
    return {
        "job": job,
        "state": state_of(job, latest),
        "next_runs": await _next_runs(visit, job),
        "words": await _words(visit, job),
    }


async def _next_runs(visit: Visit, job: Mapping[str, Any]) -> list[str]:
    """The next slots. Asked for from the next one on, which is the job's own: an interval counts from there."""
    first = job["next_run_at"]
    if first is None or job["schedule_kind"] == "once":
        return [] if first is None else [first]
    given = {name: job[name] for name in ("schedule", "timezone", "language", "dst", "day_match")}
    try:
        preview = await visit.api.send(
            "POST", "/v1/schedules/preview", {**given, "after": first, "count": NEXT_SHOWN - 1}
        )
    except Problem:
        return [first]
    return [first, *preview["next"]]


async def _words(visit: Visit, job: Mapping[str, Any]) -> str:
    """The schedule in the reader's language, where it can be said in another than the job's own."""
    description = str(job["description"])
    if job["language"] == visit.language or job["schedule_cron"] is None:
        return description
    given = {"schedule": job["schedule_cron"], "timezone": job["timezone"], "language": visit.language, "count": 1}
    try:
        return str((await visit.api.send("POST", "/v1/schedules/preview", given))["description"])
    except Problem:
        return description


async def _figures(visit: Visit) -> dict[str, Any]:
    """How the job did, and the points of the chart: for the server's own, and for the script's."""
    wanted = visit.query.get("days", "")
    days = int(wanted) if wanted in map(str, DAYS) else DAYS[0]
    stats = await visit.api.get(f"/v1/jobs/{visit.path['job_id']}/stats", {"days": days})
    points = stats["points"]
    top = charts.round_up(max((point["duration_ms"] for point in points), default=1))
    return {
        "days": days,
        "stats": stats,
        "top": top,
        "dots": charts.dots(points, top),
        "points": [
            (read_instant(each["at"]).timestamp(), each["duration_ms"], each["status"], each["run_id"])
            for each in points
        ],
    }


async def _runs(visit: Visit) -> dict[str, Any]:
    """A page of the runs, each with how long it took."""
    status = visit.query.get("status", "")
    cursor = visit.query.get("cursor", "")
    runs, next_cursor = await lines_of(
        visit.api, f"/v1/jobs/{visit.path['job_id']}/runs", {"status": status, "cursor": cursor}
    )
    return {
        "runs": [{**run, "duration_ms": _duration_ms(run)} for run in runs],
        "next_cursor": next_cursor,
        "status": status,
        "given": {"status": status} if status else {},
        "cursor": cursor,
        "under_way": UNDER_WAY,
    }


def _duration_ms(run: Mapping[str, Any]) -> float | None:
    if run["started_at"] is None or run["finished_at"] is None:
        return None
    return (read_instant(run["finished_at"]) - read_instant(run["started_at"])).total_seconds() * 1_000


def _sent(job: Mapping[str, Any]) -> dict[str, Any]:
    """The request with its secrets marked by name, and those names."""
    headers = [(name, _marked(value)) for name, value in job["headers"].items()]
    body = None if job["body"] is None else _marked(job["body"])
    names = names_of_request(job["url"], job["headers"].items(), job["body"])
    return {"url": _marked(job["url"]), "headers": headers, "body": body, "secrets": sorted(names)}


def _marked(text: str) -> Markup:
    """The text, with the places where a secret is put marked."""
    shown = escape(text)
    for name in sorted(names_in(text)):
        place = escape(f"${{secrets.{name}}}")
        shown = shown.replace(place, Markup('<mark class="secret-name">{}</mark>').format(place))
    return shown


def _retries(retry: Mapping[str, Any]) -> dict[str, Any]:
    """The waits between the attempts, in seconds."""
    policy = RetryPolicy(retry["attempts"], retry["backoff"], retry["delay"], retry["jitter"])
    waits = [backoff_ms(policy, failures) / 1_000 for failures in range(1, retry["attempts"])]
    return {"waits": waits, "is_known": retry["backoff"] in STRATEGIES, **retry}


async def _channels(visit: Visit, named: list[str] | None) -> list[tuple[str, str]]:
    """The channels that a job names: id and name; a deleted one goes by its id."""
    if not named:
        return []
    found, _ = await lines_of(visit.api, "/v1/channels", {"limit": 100})
    names = {each["id"]: each["name"] for each in found}
    return [(each, names.get(each, each)) for each in named]


# --- what can be done


async def trigger(visit: Visit) -> Response:
    """POST /jobs/{job_id}/trigger: one run for each time that the button was shown."""
    job_id = visit.path["job_id"]
    once = (await visit.form()).get("once")
    try:
        made = await visit.api.make(f"/v1/jobs/{job_id}/trigger", once=once)
    except Problem as problem:
        return await _not_done(visit, problem)
    return visit.go(f"/jobs/{job_id}", done="triggered_before" if made.is_replay else "triggered")


async def pause(visit: Visit) -> Response:
    """POST /jobs/{job_id}/pause."""
    return await _done(visit, "pause", "paused")


async def resume(visit: Visit) -> Response:
    """POST /jobs/{job_id}/resume."""
    return await _done(visit, "resume", "resumed")


async def _done(visit: Visit, what: str, told: str) -> Response:
    job_id = visit.path["job_id"]
    try:
        await visit.api.send("POST", f"/v1/jobs/{job_id}/{what}")
    except Problem as problem:
        return await _not_done(visit, problem)
    return visit.go(f"/jobs/{job_id}", done=told)


async def _not_done(visit: Visit, problem: Problem) -> Response:
    if problem.status in (403, 404):
        raise problem
    return visit.refused(problem, "job/job.html", **await _whole(visit))


async def delete(visit: Visit) -> Response:
    """POST /jobs/{job_id}/delete: asks, unless the page before it did."""
    job_id = visit.path["job_id"]
    form = await visit.form()
    if form.get("asked") != "yes":
        return visit.page("job/delete.html", job=await visit.api.get(f"/v1/jobs/{job_id}"))
    await visit.api.send("DELETE", f"/v1/jobs/{job_id}")
    return visit.go("/jobs", done="deleted")


async def again(visit: Visit) -> Response:
    """GET of an address where only a form is sent: somebody came back to it."""
    return visit.go(f"/jobs/{visit.path['job_id']}")


# --- why, at an instant


async def explain(visit: Visit) -> Response:
    """GET /jobs/{job_id}/explain?at=. A date and a time of the reader's zone lead to their instant."""
    job = await visit.api.get(f"/v1/jobs/{visit.path['job_id']}")
    at = visit.query.get("at", "")
    date, time = visit.query.get("date", ""), visit.query.get("time", "")
    content: dict[str, Any] = {"job": job, "date": date, "time": time, "explained": None}
    if date or time:
        try:
            instant = _instant(visit, date, time)
        except Problem as problem:
            # A browser shows nothing else in these fields than what it would have sent.
            return visit.refused(problem, "job/explain.html", **content | {"date": "", "time": ""})
        return visit.go(f"/jobs/{job['id']}/explain?at={instant}")
    if not at:
        local = visit.telling.now.astimezone(visit.telling.zone)
        content |= {"date": local.strftime("%Y-%m-%d"), "time": local.strftime("%H:%M:%S")}
        return visit.page("job/explain.html", **content)
    try:
        explained = await visit.api.get(f"/v1/jobs/{job['id']}/explain", {"at": at})
    except Problem as problem:
        return visit.refused(problem, "job/explain.html", **content)
    local = read_instant(explained["at"]).astimezone(visit.telling.zone)
    content |= {"date": local.strftime("%Y-%m-%d"), "time": local.strftime("%H:%M:%S"), "explained": explained}
    return visit.page("job/explain.html", **content)


def _instant(visit: Visit, date: str, time: str) -> str:
    """The instant of a local time, as the API writes it; of one that comes twice, the first. Raises Problem."""
    _ = words_of(visit.language).gettext
    try:
        local = datetime.fromisoformat(f"{date}T{time or '00:00'}")
    except ValueError:
        local = None
    if local is None or local.tzinfo is not None or not 1970 <= local.year <= 9998:
        message = _("Give a date such as 2027-01-31, and a time such as 09:00.")
        errors = [{"field": "date", "message": message}]
        raise Problem(Answer(422, {"title": "Unprocessable Content", "detail": message, "errors": errors}))
    return local.replace(tzinfo=visit.telling.zone).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


PAGES: tuple[Page, ...] = (
    page("/jobs/{job_id}", show),
    act("/jobs/{job_id}/trigger", trigger),
    act("/jobs/{job_id}/pause", pause),
    act("/jobs/{job_id}/resume", resume),
    act("/jobs/{job_id}/delete", delete),
    *(page(f"/jobs/{{job_id}}/{what}", again) for what in ("trigger", "pause", "resume", "delete")),
    page("/jobs/{job_id}/explain", explain),
)
