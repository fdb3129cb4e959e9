"""Long lists grow below themselves: the next page is asked for as a part of the table, and without scripts it is a
page of its own."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.dashboard.support import Element, Pages

from zerocron.dashboard.specimens import SPECIMENS
from zerocron.dashboard.specimens.channels import SLACK
from zerocron.dashboard.specimens.monitors import BACKUP

ONE = BACKUP["id"]
LISTS = [
    ("jobs", "/jobs?tag=mail", "/v1/jobs", True),
    ("job", "", "/v1/jobs/{}/runs", True),
    ("monitors", "/monitors?tag=prod", "/v1/monitors", True),
    ("channels", "/channels", "/v1/channels", True),
    ("alerts", f"/alerts?channel={SLACK['id']}", "/v1/alerts", True),
    ("monitor", f"/monitors/{ONE}/pings?kind=fail", f"/v1/monitors/{ONE}/pings", False),
    ("monitor", f"/monitors/{ONE}/flips", f"/v1/monitors/{ONE}/flips", False),
    ("secrets", "/secrets", "/v1/secrets", False),
    ("members", "/members", "/v1/members", False),
    ("keys", "/keys", "/v1/api-keys", False),
    ("audit", "/audit?action=job.edit", "/v1/audit", False),
]
CURSOR = "WyIyMDI3Il0="
NEXT = "WyIyMDI2Il0="


def parts(tree: Element) -> list[Element]:
    """What a script takes of an answer (`hx-select`)."""
    return [each for each in tree.all("tbody") if {"page-rows", "more-rows"} & set(each.get("class").split())]


async def opened(specimen: str, path: str, asked: str) -> tuple[Pages, str, str]:
    """A list of which there is more than a page."""
    path = path or SPECIMENS[specimen].path
    asked = asked.format(path.rpartition("/")[2])
    pages = Pages.of(specimen)
    answer: dict[str, Any] = dict(pages.api.answers[f"GET {asked}"])
    pages.api.answers[f"GET {asked}"] = {**answer, "next_cursor": CURSOR}
    return pages, path, asked


@pytest.mark.parametrize(("specimen", "path", "asked", "is_live"), LISTS)
async def test_the_next_page_takes_the_place_of_what_leads_to_it(
    specimen: str, path: str, asked: str, is_live: bool
) -> None:
    pages, path, asked = await opened(specimen, path, asked)
    shown = (await pages.get(path)).tree
    first, more = parts(shown)
    link = more.one("a", rel="next")

    assert (first.get("id"), link.get("hx-target")) == ("rows-1", f"#{more.get('id')}")
    assert link.get("hx-swap") == "outerHTML"
    assert ("data-live-part" in first.attributes) is is_live
    pages.api.answers[f"GET {asked}"]["next_cursor"] = NEXT
    second, more = parts((await pages.get(link.get("hx-get"), is_fragment=True)).tree)
    filters = dict(parse_qsl(path.partition("?")[2]))
    assert dict(pages.api.questions(asked)[-1].query).items() >= {**filters, "cursor": CURSOR}.items()
    assert second.get("id") == "rows-2"
    assert second.all("tr")
    assert dict(parse_qsl(more.one("a").get("hx-get").partition("?")[2]))["cursor"] == NEXT


@pytest.mark.parametrize(("specimen", "path", "asked", "is_live"), LISTS)
async def test_without_scripts_the_next_page_is_a_link(specimen: str, path: str, asked: str, is_live: bool) -> None:
    pages, path, asked = await opened(specimen, path, asked)
    link = (await pages.get(path)).tree.one("a", rel="next")
    pages.api.answers[f"GET {asked}"]["next_cursor"] = None
    shown = await pages.get(link.get("href").partition("#")[0])

    assert dict(pages.api.questions(asked)[-1].query)["cursor"] == CURSOR
    (rows,) = parts(shown.tree)
    assert len(shown.tree.all("h1")) == 1
    assert ("data-live-part" in rows.attributes) is is_live


@pytest.mark.parametrize(("specimen", "path", "asked"), [each[:3] for each in LISTS if each[3]])
async def test_each_page_of_a_list_refreshes_itself_alone(specimen: str, path: str, asked: str) -> None:
    pages, path, asked = await opened(specimen, path, asked)
    mark = "&" if "?" in path else "?"
    (rows, _more) = parts((await pages.get(f"{path}{mark}cursor=here&chunk=3")).tree)
    again = (await pages.get(rows.get("hx-get"), is_fragment=True)).tree

    assert dict(pages.api.questions(asked)[-1].query)["cursor"] == "here"
    assert again.one(id=rows.get("hx-select").removeprefix("#")).get("id") == rows.get("id") == "rows-3"
