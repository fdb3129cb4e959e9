"""The overview: what needs somebody comes first, and a new team learns how to begin."""

from __future__ import annotations

import pytest
from tests.dashboard.support import Pages

from zerocron.dashboard.specimens.kinds import session
from zerocron.dashboard.specimens.overview import OVERVIEW, job_id


async def test_what_needs_somebody_comes_first() -> None:
    main = (await Pages.of("overview").get("/")).tree.one("main")

    assert "4 things need you." in main.text
    first = main.all("section")[0]
    assert first.one("h2").text == "Needs attention"
    links = [each.get("href") for each in first.all("a")]
    assert links == [f"/monitors/{job_id(90)}", f"/jobs/{job_id(4)}", f"/jobs/{job_id(2)}", f"/monitors/{job_id(91)}"]
    assert "The status was 502" in first.text


async def test_when_all_is_well_it_says_so_once() -> None:
    main = (await Pages.of("overview-well").get("/")).tree.one("main")

    assert main.text.count("All is well") == 1
    assert "Needs attention" not in main.text


async def test_figures_lead_to_what_they_count() -> None:
    main = (await Pages.of("overview").get("/")).tree.one("main")

    counts = {each.get("href"): each.one("strong").text for each in main.all("a", class_="count")}
    assert counts["/jobs?state=failing"] == "1"
    assert counts["/jobs?status=active"] == "38"
    assert counts["/monitors?state=down"] == "1"
    assert len(counts) == 11


async def test_the_charts_are_a_table_too() -> None:
    main = (await Pages.of("overview").get("/")).tree.one("main")

    assert len(main.one("table").one("tbody").all("tr")) == len(OVERVIEW["hours"])
    bars = main.one("section", aria_labelledby="day").all("svg")[0]
    assert len(bars.all("title")) == len(OVERVIEW["hours"])
    assert "9 failed, 1 lost" in bars.text


async def test_strips_are_asked_for_those_in_trouble_and_those_that_run_next() -> None:
    pages = Pages.of("overview")
    await pages.get("/")

    (asked,) = pages.api.questions("/v1/jobs/strips")
    wanted = asked.query["ids"].split(",")
    assert wanted[:2] == [job_id(4), job_id(2)]
    assert len(wanted) == len(set(wanted)) == 8


async def test_what_refreshes_itself_is_a_part_of_the_page() -> None:
    pages = Pages.of("overview")

    part = await pages.get("/?part=live", is_fragment=True)
    whole = await pages.get("/?part=live")

    assert [each.get("id") for each in part.tree.children if not isinstance(each, str)] == ["overview"]
    assert part.tree.one(id="overview").get("hx-get") == "/?part=live"
    assert whole.tree.all("main")


async def test_a_new_team_learns_how_to_begin() -> None:
    pages = Pages.of("overview-new")
    main = (await pages.get("/")).tree.one("main")

    assert [each.get("href") for each in main.all("a", class_="button")] == [
        "/jobs/new",
        "/jobs/new?curl=1",
        "/monitors/new",
    ]
    assert not pages.api.questions("/v1/jobs/strips")


@pytest.mark.parametrize("name", ["overview", "overview-new"])
async def test_a_viewer_is_not_offered_what_they_may_not_do(name: str) -> None:
    pages = Pages.of(name, **{"GET /v1/session": session(permissions=["read"])})

    assert not (await pages.get("/")).tree.one("main").all("a", class_="button")


async def test_a_job_that_never_ran_is_not_a_new_team() -> None:
    main = (await Pages.of("overview-quiet").get("/")).tree.one("main")

    assert "Nothing ran." in main.text
    assert "No job has a next run." in main.text
    assert main.one("section", aria_labelledby="day").all("svg")[0].text.count("no server ran") == 21


async def test_what_the_api_puts_between_backticks_is_code() -> None:
    """And no markup of somebody else's."""
    (first, *rest) = OVERVIEW["attention"]
    said = "`<b>` 10 runs failed, and `disable_after` is 10; a lone ` stays."
    answer = {**OVERVIEW, "attention": [{**first, "detail": said}, *rest]}
    why = (await Pages.of("overview", **{"GET /v1/overview": answer}).get("/")).tree.all("p", class_="why")[0]

    assert [each.text for each in why.all("code")] == ["<b>", "disable_after"]
    assert why.text.endswith("a lone ` stays.")
    assert not why.all("b")
