"""For every test of the house: nothing may outlive it, and what is logged stays short.

A test that leaves a task running, or a ledger open, fails: the next one would be blamed for it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

# A deadline on an example would be a timed test, and machines are shared.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


WORKERS_MAX = 6
"""Each has a PostgreSQL, a Redis and servers of its own."""

NICENESS = 10
HERE = Path(__file__).parent
NODES = pytest.mark.xdist_group("nodes").mark


def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: one for each core that this process may use, also in a container that has a part of the
    machine, and one for what plays real nodes, which mostly waits."""
    return min(WORKERS_MAX, len(os.sched_getaffinity(0)) + 1, _cores_of_the_container() + 1)


def _cores_of_the_container() -> int:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no such limit, or "max"
        return WORKERS_MAX


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For several workers: a file stays together, because its tests share servers. What plays real nodes against the
    clock goes to one worker and first (its modules say so), or twice as many nodes would be late for want of a core."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(HERE))))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") != NODES)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where nodes are played beside other tests, the others give way: a node that waits for a core is late, and that is
    what is measured. The worker that plays nodes does so first, and then becomes one of the others."""
    if hasattr(item.config, "workerinput") and item.get_closest_marker("xdist_group") != NODES:
        os.nice(max(0, NICENESS - os.nice(0)))


@pytest.fixture(scope="session", autouse=True)
def _short_logs() -> None:
    """Tracebacks as plain text: drawing frames around the locals of a thousand expected failures takes minutes."""
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, plain])


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert not left, f"tasks outlived the test: {left}"


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up before, and so taken down after, everything else that a test asks for."""
    shared = _ledger_threads()  # of a ledger that several tests share; it may start further ones
    if isinstance(request.node, pytest.Function) and _is_asynchronous(request.node):
        request.getfixturevalue("_no_task_left")
    yield
    assert shared or not _ledger_threads(), f"a ledger was left open: {_ledger_threads()}"


def _is_asynchronous(item: pytest.Function) -> bool:
    function = getattr(item.function, "hypothesis", None)
    return inspect.iscoroutinefunction(function.inner_test if function is not None else item.function)


def _ledger_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("ledger-"))
