"""The overview: what needs somebody, how much there is, what runs next, and how the last day went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from zerocron.dashboard import charts
from zerocron.dashboard.routes import Page, page
from zerocron.dashboard.visit import Visit

STRIPS_SHOWN = 8


async def show(visit: Visit) -> Response:
    """GET /. With `part=live` what changes by itself, for the script that keeps it fresh."""
    overview = await visit.api.get("/v1/overview")
    content: dict[str, Any] = {"overview": overview, "is_new": _is_new(overview)}
    if not content["is_new"]:
        content |= {
            "strips": await _strips(visit, overview),
            "runs": charts.bars([_counts(hour) for hour in overview["hours"]]),
            "lateness": _lateness(overview["hours"]),
        }
    is_part = visit.is_fragment and visit.query.get("part") == "live"
    return visit.page("overview/live.html" if is_part else "overview/overview.html", **content)


def _is_new(overview: Mapping[str, Any]) -> bool:
    """Whether the team has nothing yet. `failing` and `running` count jobs that another state counts, too."""
    jobs, monitors = overview["jobs"], overview["monitors"]
    return not any(jobs[state] for state in ("active", "paused", "disabled", "completed")) and not any(
        monitors.values()
    )


async def _strips(visit: Visit, overview: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The last day of the jobs that matter most: those in trouble, then those that run next."""
    names = {each["id"]: each["name"] for each in overview["attention"] if each["kind"] == "job"}
    names |= {each["job_id"]: each["name"] for each in overview["upcoming"] if each["job_id"] not in names}
    shown = list(names)[:STRIPS_SHOWN]
    if not shown:
        return []
    found = await visit.api.get("/v1/jobs/strips", {"ids": ",".join(shown)})
    return [{**each, "name": names[each["job_id"]]} for each in found["items"] if each["job_id"] in names]


def _counts(hour: Mapping[str, Any]) -> dict[str, int]:
    return {
        "failed": hour["failed"] + hour["lost"],
        "skipped": hour["skipped"],
        "succeeded": hour["succeeded"],
    }


def _lateness(hours: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The two lines of the second chart; None when nothing ran."""
    p50 = [hour["lateness_ms_p50"] for hour in hours]
    p99 = [hour["lateness_ms_p99"] for hour in hours]
    known = [value for value in (*p50, *p99) if value is not None]
    if not known:
        return None
    scale = charts.Scale.up_to(max(known))
    drawn = {name: charts.line([scale.place(value) for value in of], 1) for name, of in (("p50", p50), ("p99", p99))}
    return {"ticks": scale.ticks(), **drawn}


PAGES: tuple[Page, ...] = (page("/", show),)
