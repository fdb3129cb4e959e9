"""A run: why it came out as it did, with every attempt, exactly what was sent and what came back.

Owns what is shown of an exchange, and the way a body leaves as a file: as text that no browser makes a page of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from zerocron.core.exchange import ERROR_KINDS, OWN_KINDS
from zerocron.core.model import REASON_TEXTS
from zerocron.dashboard.asking import Answer, Problem
from zerocron.dashboard.exchange import Shown, whole_body
from zerocron.dashboard.routes import Page, act, page
from zerocron.dashboard.telling import read_instant
from zerocron.dashboard.visit import Visit, segment

UNDER_WAY = ("queued", "running", "retrying")
PARTS = {"request": "request", "response": "response"}
FILE_POLICY = "sandbox; default-src 'none'"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An execution on the line of time. `waited_ms`: since the one before had ended, or since the slot."""

    shown: Shown
    waited_ms: float


async def show(visit: Visit) -> Response:
    """GET /runs/{run_id}; `?attempt=2` shows that one, `?raw=1` its bodies as they came."""
    run = await visit.api.get(f"/v1/runs/{segment(visit.path['run_id'])}")
    return visit.page("runs/live.html" if visit.is_fragment else "runs/run.html", **await _content(visit, run))


async def replay(visit: Visit) -> Response:
    """POST /runs/{run_id}/replay: the job is triggered, as it is now."""
    run = await visit.api.get(f"/v1/runs/{segment(visit.path['run_id'])}")
    once = (await visit.form()).get("once")
    try:
        made = await visit.api.make(f"/v1/jobs/{run['job_id']}/trigger", once=once)
    except Problem as problem:
        return visit.refused(problem, "runs/run.html", **await _content(visit, run))
    return visit.go(f"/runs/{made.data['id']}", done="triggered_before" if made.is_replay else "triggered")


async def body(visit: Visit) -> Response:
    """GET /executions/{execution_id}/body?part=request: the whole body as a file."""
    execution = await visit.api.get(f"/v1/executions/{segment(visit.path['execution_id'])}")
    part = PARTS.get(visit.query.get("part", "response"))
    found = whole_body(execution, part) if part else None
    if found is None:
        raise Problem(Answer(404, {"title": "Not Found", "detail": "There is no such body."}))
    content, is_text = found
    name = f"{part}-{segment(execution['id'])}.{'txt' if is_text else 'bin'}"
    return Response(
        content,
        media_type="text/plain; charset=utf-8" if is_text else "application/octet-stream",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": FILE_POLICY,
            "Cache-Control": "private, no-store",
        },
    )


async def outcomes(visit: Visit) -> Response:
    """GET /outcomes: what each reason and each kind of error means."""
    reasons = [(reason, visit.said(text)) for reason, text in REASON_TEXTS.items()]
    kinds = [(kind, visit.said(text)) for kind, text in sorted((ERROR_KINDS | OWN_KINDS).items())]
    return visit.page("runs/outcomes.html", reasons=reasons, kinds=kinds)


async def _content(visit: Visit, run: Mapping[str, Any]) -> dict[str, Any]:
    is_raw = visit.query.get("raw") == "1"
    attempts = _attempts(run)
    chosen = await _chosen(visit, run["executions"], is_raw=is_raw)
    return {
        "run": run,
        "job": await _job_of(visit, run),
        "attempts": attempts,
        "scale_ms": max((each.shown.total_ms for each in attempts), default=1.0),
        "chosen": chosen,
        "is_raw": is_raw,
        "is_under_way": run["status"] in UNDER_WAY,
        "explanation": visit.said(run["explanation"]),
        "meaning": visit.said(_meaning(chosen)),
    }


def _meaning(shown: Shown | None) -> str:
    """What the kind of an error means, where its message does not say it already, as that of a rule always does."""
    error = None if shown is None else shown.execution["error"]
    if error is None or error["kind"] == "rule":
        return ""
    meaning = (ERROR_KINDS | OWN_KINDS).get(error["kind"], "")
    return "" if meaning == error["message"] else meaning


def _attempts(run: Mapping[str, Any]) -> list[Attempt]:
    made = []
    before = read_instant(run["scheduled_for"])
    for execution in sorted(run["executions"], key=lambda it: it["attempt"]):
        waited = (read_instant(execution["started_at"]) - before).total_seconds() * 1_000
        made.append(Attempt(Shown.of(execution), max(waited, 0.0)))
        before = read_instant(execution["finished_at"])
    return made


async def _chosen(visit: Visit, executions: list[Mapping[str, Any]], *, is_raw: bool) -> Shown | None:
    """The execution that is shown whole: the one asked for, else the last. Its long bodies are asked for by itself."""
    if not executions:
        return None
    wanted = visit.query.get("attempt", "")
    last = max(executions, key=lambda it: it["attempt"])
    brief = next((it for it in executions if str(it["attempt"]) == wanted), last)
    whole = await visit.api.get(f"/v1/executions/{segment(brief['id'])}")
    return Shown.of(whole, is_raw=is_raw)


async def _job_of(visit: Visit, run: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The job, unless it was deleted since."""
    try:
        found: Mapping[str, Any] = await visit.api.get(f"/v1/jobs/{run['job_id']}")
    except Problem as problem:
        if problem.status != 404:
            raise
        return None
    return found


PAGES: tuple[Page, ...] = (
    page("/runs/{run_id}", show),
    act("/runs/{run_id}/replay", replay),
    page("/executions/{execution_id}/body", body),
    page("/outcomes", outcomes),
)
