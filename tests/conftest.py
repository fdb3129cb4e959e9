"""For every test of the house: nothing may outlive it, and what is logged stays short.

A test that leaves a task running, or a ledger open, fails: the next one would be blamed for it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# A deadline on an example would be a timed test, and machines are shared.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


WORKERS_MAX = 6
"""Each has a PostgreSQL, a Redis and servers of its own."""

NICENESS = 10
PLAYS_NODES = frozenset(
    (
        "test_cluster_faults.py",
        "test_cluster_mutants.py",
        "test_cluster_random.py",
        "test_downtime.py",
        "test_kill.py",
        "test_mutants.py",
        "test_pings.py",
        "test_random.py",
    )
)
"""Modules of tests/faults that play real nodes against the clock. They share a worker and come first: twice as many
nodes at a time would be late for want of a core, and that is what they measure."""


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A file stays on one worker, because its tests share servers. Not xdist's own groups: it (3.8) writes them where
    pytest 9 does not look."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "nodes" if plays_nodes(Path(path)) else path


def plays_nodes(path: Path) -> bool:
    return path.parent.name == "faults" and path.name in PLAYS_NODES


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, also where they were started in the background of a shell, which ignores it for
    its children and theirs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
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


@pytest.hookimpl(trylast=True)  # after the shuffling
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: 0 if plays_nodes(item.path) else 1 if "gallery" in item.path.name else 2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where nodes are played beside other tests, the others give way: a node that waits for a core is late, and that is
    what is measured. The worker that plays nodes does so first, and then becomes one of the others."""
    if hasattr(item.config, "workerinput") and not plays_nodes(item.path):
        os.nice(max(0, NICENESS - os.nice(0)))


@pytest.fixture(autouse=True)
def _short_logs() -> None:
    """Tracebacks as plain text: drawing frames around the locals of a thousand expected failures takes minutes. Anew
    for each test, because a command that runs in this process sets its own."""
    structlog.reset_defaults()
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
