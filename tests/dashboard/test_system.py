"""What is wrong is said with what to do about it, the gravest first; what works is not made a fuss of."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.support import Pages

from zerocron.api.access import OF_SERVER
from zerocron.dashboard.specimens.kinds import SESSION, session
from zerocron.dashboard.specimens.system import ILL, ONE, SYSTEM
from zerocron.dashboard.views.system import troubles_of
from zerocron.dashboard.words import said


@pytest.mark.parametrize("system", [SYSTEM, ONE])
def test_where_all_is_well_there_is_no_trouble(system: Any) -> None:
    assert list(troubles_of(system)) == []


def test_troubles_are_named_with_whom_they_are_about() -> None:
    assert [(each.name, each.about, each.is_grave) for each in troubles_of(ILL)] == [
        ("clock", "cron-3", True),
        ("loop", "notifier", True),
        ("timetable", "", True),
        ("node", "cron-2", True),
        ("late", "", True),
        ("versions", "", False),
    ]
    away = {**SYSTEM, "ledger": {**SYSTEM["ledger"], "status": "away"}}
    assert [each.name for each in troubles_of(away)] == ["ledger"]
    off = {**SYSTEM, "nodes": [{**SYSTEM["nodes"][0], "clock_difference_ms": -1_500}]}
    assert [(each.name, each.is_grave) for each in troubles_of(off)] == [("clock_a_little", False)]


async def test_each_trouble_is_told_with_what_to_do() -> None:
    tree = (await Pages.of("system-ill").specimen("system-ill")).tree

    notes = [each.text for each in tree.all(class_="note")]
    assert len(notes) == len(list(troubles_of(ILL)))
    assert all(len(each) > 40 for each in notes), notes
    assert "cron-3" in notes[0]


async def test_a_machine_alone_is_fine() -> None:
    tree = (await Pages.of("system-one").specimen("system-one")).tree

    assert tree.one(class_="note-good").text == "Everything works."


async def test_while_the_ledger_is_away_the_page_says_what_it_knows() -> None:
    tree = (await Pages.of("system-away").specimen("system-away")).tree

    assert "database does not answer" in tree.one(class_="note-bad").text
    assert [each.one("strong").text for each in tree.all(class_="figure")] == ["—"] * 5


async def test_nodes_that_ended_are_history() -> None:
    tables = (await Pages.of("system").specimen("system")).tree.all("table")

    assert [len(each.one("tbody").all("tr")) for each in tables] == [3, 2]


@pytest.mark.parametrize("language", ["en", "fr", "es"])
async def test_admins_of_other_teams_are_not_offered_the_page_and_told_why(language: str) -> None:
    person, team = {**SESSION["person"], "language": language}, {**SESSION["team"], "id": "another"}
    pages = Pages.of("system", **{"GET /v1/session": session(team=team, person=person)})
    pages.api.answers["GET /v1/system"] = (403, {"title": "Forbidden", "detail": OF_SERVER})
    shown = await pages.get("/system")

    assert shown.status == 403
    assert " ".join(said(language, OF_SERVER).split()) in shown.tree.text
    assert not shown.tree.all("a", href="/system")
    at_home = await Pages.of("system").get("/system")
    assert len(at_home.tree.all("a", href="/system")) == 1
