"""Wherever somebody chooses a time zone, the choice is the same."""

from __future__ import annotations

import pytest
from tests.dashboard.support import Pages

from zerocron.core.schedule.zones import timezones
from zerocron.dashboard.specimens.kinds import SESSION, session

FORMS = ["account", "job-new", "monitor-form", "setup", "invitation"]


@pytest.mark.parametrize("name", FORMS)
async def test_a_zone_is_chosen_from_all_that_people_live_in(name: str) -> None:
    tree = (await Pages.of(name).specimen(name)).tree
    offered = [each.get("value") for each in tree.one("datalist", id="zones").all("option")]

    assert tree.one("input", name="timezone").get("list") == "zones"
    assert sorted(offered) == sorted(timezones())
    assert {"UTC", "America/New_York", "Asia/Kolkata"} <= set(offered)
    assert not [zone for zone in offered if zone.startswith("Etc/") or zone == "PRC"]


@pytest.mark.parametrize("own", ["Europe/Paris", "UTC", "Asia/Calcutta"])
async def test_ones_own_zone_comes_first_and_once(own: str) -> None:
    """Also by an old name, which is offered to nobody else."""
    looks = session(person={**SESSION["person"], "timezone": own})
    tree = (await Pages.of("job-new", **{"GET /v1/session": looks}).get("/jobs/new")).tree
    offered = [each.get("value") for each in tree.one("datalist", id="zones").all("option")]

    assert offered == list(dict.fromkeys([own, *timezones()]))
