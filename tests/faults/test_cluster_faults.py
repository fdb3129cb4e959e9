"""Every fault of the catalogue, over real nodes, PostgreSQL and Redis; see `cluster_faults.py`.

Most of a journey is waiting, so several are played at once.
"""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import pytest
from tests.faults.cluster import SCALE
from tests.faults.cluster_faults import CASES, Case, may_mount, scene_of

from zerocron.storage.timetable import scripts

pytestmark = pytest.mark.timeout(400)

AT_ONCE = 4
GROUPS = {
    "nodes": ("1", "2", "3", "4", "5", "6", "8", "9", "11", "12", "13", "34", "35", "43", "46", "48"),
    "servers": ("16", "17", "18", "19", "21", "22", "23", "25", "26", "27", "28", "30", "31", "49"),
}


@pytest.mark.parametrize("group", GROUPS)
async def test_faults(group: str, tmp_path: Path) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def play(case: Case, folder: Path) -> str | None:
        async with places:
            try:
                async with scene_of(case, folder, scale=SCALE) as cluster:
                    await case.journey(cluster)
            except Exception:
                return f"{case.number} {case.name}, logs in {folder}:\n{traceback.format_exc(limit=-4)}"
        return None

    cases = [case for case in CASES if case.number in GROUPS[group] and not case.is_variant]
    cases = [case for case in cases if may_mount() or not case.disk_mb]
    failures = await asyncio.gather(*(play(case, tmp_path / str(number)) for number, case in enumerate(cases)))
    assert not any(failures), "\n\n".join(filter(None, failures))


def test_every_case_is_played() -> None:
    assert {case.number for case in CASES if not case.is_variant} == {case.number for case in CASES}
    assert {case.number for case in CASES} == {number for group in GROUPS.values() for number in group}


@pytest.mark.skipif(not may_mount(), reason="a small disk needs root and the right to mount")
def test_a_full_disk_was_tried() -> None:
    assert any(case.disk_mb for case in CASES)


@pytest.mark.parametrize("name", ["PUT", "RESTORE", "DROP", "CLAIM", "LOST", "DUTY", "SIZE", "CLEAR"])
def test_the_clock_of_redis_is_nobodys_business(name: str) -> None:
    """Fault 24, a Redis an hour ahead or behind: no script asks it for the time, so there is nothing to be wrong."""
    text: str = getattr(scripts, name).text
    code = "\n".join(line.partition("--")[0] for line in text.splitlines())
    assert "'TIME'" not in code.upper()
    assert '"TIME"' not in code.upper()
    assert "EXPIREAT" not in code.upper()
