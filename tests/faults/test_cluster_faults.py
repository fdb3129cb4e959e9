"""Every fault of the catalogue, over real nodes, PostgreSQL and Redis; see `cluster_faults.py`.

Most of a journey is waiting, so several are played at once, each in a thread and an event loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.faults.cluster import SCALE
from tests.faults.cluster_faults import CASES, Case, may_mount, scene_of
from tests.support.postgres import postgres_server

from zerocron.storage.timetable import scripts

AT_ONCE = 4
PLAYED = [case for case in CASES if not case.is_variant]


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> None:
    """Journeys go on while a test ends, and see to their own: `make_cluster` leaves nothing running."""


@pytest.fixture(scope="module")
def journeys(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    """Of every test that was asked for, in the order of the tests; by the name of the case."""

    def play(case: Case, folder: Path) -> None:
        async def whole() -> None:
            async with scene_of(case, folder, scale=SCALE) as cluster:
                await case.journey(cluster)

        asyncio.run(whole())

    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    params = (item.callspec.params["case"] for item in tests if item.originalname == test_fault.__name__)
    asked = [case for case in params if isinstance(case, Case)]
    postgres_server()  # here, so that the threads do not start one each
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="journey") as pool:
        yield {
            case.name: pool.submit(play, case, tmp_path_factory.mktemp(f"fault-{case.number}"))
            for case in asked
            if may_mount() or not case.disk_mb
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(600)  # the longest, and those that are played before it
@pytest.mark.parametrize("case", PLAYED, ids=lambda case: f"{case.number} {case.name}")
def test_fault(case: Case, journeys: Mapping[str, Future[None]]) -> None:
    if case.disk_mb and not may_mount():
        pytest.skip("a full disk needs a small one, and this process may mount none (CAP_SYS_ADMIN)")
    journeys[case.name].result()


def test_every_fault_is_played() -> None:
    assert {case.number for case in PLAYED} == {case.number for case in CASES}


@pytest.mark.parametrize("name", ["PUT", "RESTORE", "DROP", "CLAIM", "LOST", "DUTY", "SIZE", "CLEAR"])
def test_the_clock_of_redis_is_nobodys_business(name: str) -> None:
    """Fault 24, a Redis an hour ahead or behind: no script asks it for the time, so there is nothing to be wrong."""
    text: str = getattr(scripts, name).text
    code = "\n".join(line.partition("--")[0] for line in text.splitlines())
    assert "'TIME'" not in code.upper()
    assert '"TIME"' not in code.upper()
    assert "EXPIREAT" not in code.upper()
