"""The list of jobs: found by words, states and tags, kept fresh, and changed many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.forms import Form
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.visit import Visit, lines_of
from zerocron.dashboard.words import words_of

FILTERS = ("q", "status", "state", "tag", "sort")
UNDER_WAY = frozenset(("queued", "running", "retrying"))
ACTIONS = frozenset(("pause", "resume", "delete", "add_tags", "remove_tags"))
PICKED_MAX = 200
NAMED_MAX = 10
"""So many jobs are named where somebody is asked whether to delete them."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A job that was chosen in the list, and the status it had there: what pausing changed can be undone."""

    id: str
    status: str

    @classmethod
    def of(cls, value: str) -> Picked:
        status, _, job_id = value.rpartition(":")
        return cls(job_id, status)

    @property
    def value(self) -> str:
        return f"{self.status}:{self.id}"


async def show(visit: Visit) -> Response:
    """GET /jobs. `part=rows` is one page of the table by itself, `part=more` also what leads to the next one."""
    part = visit.query.get("part", "") if visit.is_fragment else ""
    content = await _listed(visit, {name: visit.query.get(name, "") for name in FILTERS})
    if part in ("rows", "more"):
        return visit.page("jobs/rows.html", part=part, **content)
    return visit.page("jobs/jobs.html", **content, **await _around(visit))


async def _listed(visit: Visit, filters: Mapping[str, str]) -> dict[str, Any]:
    """A page of the list, each job with its last day."""
    cursor = visit.query.get("cursor", "")
    jobs, next_cursor = await lines_of(visit.api, "/v1/jobs", {**filters, "cursor": cursor})
    marks: dict[str, list[Any]] = {}
    if jobs:
        found = await visit.api.get("/v1/jobs/strips", {"ids": ",".join(job["id"] for job in jobs)})
        marks = {each["job_id"]: each["marks"] for each in found["items"]}
    rows = [_row(job, marks.get(job["id"], [])) for job in jobs]
    given = {name: value for name, value in filters.items() if value}
    return {
        "rows": rows,
        "next_cursor": next_cursor,
        "filters": filters,
        "given": given,
        "cursor": cursor,
    }


def _row(job: Mapping[str, Any], marks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A job with its last day, and with the run that is under way."""
    now = [mark for mark in marks if mark["status"] in UNDER_WAY]
    return {"job": job, "marks": marks, "state": state_of(job, marks), "now": now[-1] if now else None}


async def _around(visit: Visit) -> dict[str, Any]:
    """What the page has around the table."""
    tags = await visit.api.get("/v1/tags")
    return {"tags": tags["items"], "told": None, "here": ""}


def state_of(job: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    """What a job shows at a glance: that it runs now, why it does not run any more, that it fails, or that it is well.

    `runs` are some of its latest ones, as marks or as runs.
    """
    if any(run["status"] in UNDER_WAY for run in runs):
        return "running"
    if job["status"] == "active" and job["stats"]["consecutive_failures"] > 0:
        return "failing"
    return str(job["status"])


# --- many at once


async def change(visit: Visit) -> Response:
    """POST /jobs/bulk: what is to be done with the chosen jobs; deleting asks first."""
    form = await visit.form()
    picked = [Picked.of(value) for value in dict.fromkeys(form.all("ids"))]
    action = form.get("action")
    filters = {name: form.get(name) for name in FILTERS}
    try:
        _check(visit, action, picked, form)
        if action == "delete" and form.get("asked") != "yes":
            return await _ask(visit, picked, filters)
        body = {"ids": [each.id for each in picked], "action": action, "tags": _tags(action, form)}
        answer = await visit.api.send("POST", "/v1/jobs/bulk", body)
    except Problem as problem:
        content = await _listed(visit, filters) | await _around(visit)
        return visit.refused(problem, "jobs/jobs.html", **content | {"here": _address(filters)})
    content = await _listed(visit, filters) | await _around(visit)
    told = _told(action, picked, answer, {row["job"]["id"]: row["job"]["name"] for row in content["rows"]})
    return visit.page("jobs/jobs.html", **content | {"told": told, "here": _address(filters)})


def _check(visit: Visit, action: str, picked: Sequence[Picked], form: Form) -> None:
    """Raises Problem for what the API need not be asked about."""
    _ = words_of(visit.language).gettext
    detail = ""
    if action not in ACTIONS:
        detail = _("Choose what to do with the jobs.")
    elif not picked:
        detail = _("Choose at least one job.")
    elif len(picked) > PICKED_MAX:
        detail = _("Choose at most 200 jobs at once.")
    elif action in ("add_tags", "remove_tags") and not form.get("new_tag"):
        detail = _("Write the tag to add or to remove.")
    if detail:
        raise Problem(Answer(422, {"title": "Unprocessable Content", "detail": detail}))


def _tags(action: str, form: Form) -> list[str]:
    if action not in ("add_tags", "remove_tags"):
        return []
    return [tag for tag in (each.strip() for each in form.get("new_tag").split(",")) if tag]


async def _ask(visit: Visit, picked: Sequence[Picked], filters: Mapping[str, str]) -> Response:
    """Whether to delete these, by name as far as a page has room."""
    names = []
    for each in picked[:NAMED_MAX]:
        try:
            names.append(str((await visit.api.get(f"/v1/jobs/{each.id}"))["name"]))
        except Problem:
            names.append(each.id)
    return visit.page("jobs/delete.html", picked=picked, names=names, filters=filters, back=_address(filters))


def _told(action: str, picked: Sequence[Picked], answer: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """What came of it. Pausing can be undone for those that it stopped."""
    done = set(answer["done"])
    undo = [each.value for each in picked if each.id in done and each.status == "active"] if action == "pause" else []
    refused = [{**each, "name": names.get(each["id"], each["id"])} for each in answer["refused"]]
    return {"action": action, "done": len(done), "refused": refused, "undo": undo}


def _address(filters: Mapping[str, str]) -> str:
    given = {name: value for name, value in filters.items() if value}
    return "/jobs" + (f"?{urlencode(given)}" if given else "")


async def back(visit: Visit) -> Response:
    """GET /jobs/bulk: somebody came back to where a form was sent."""
    return visit.go("/jobs")


PAGES: tuple[Page, ...] = (page("/jobs", show), act("/jobs/bulk", change), page("/jobs/bulk", back))
