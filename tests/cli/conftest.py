"""A running server and a target for its jobs, shared by the tests of this folder; each test makes jobs of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.support import REPOSITORY, Cli, read_line, serving, stop


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A command line where no server is."""
    return Cli(tmp_path)


@pytest.fixture(scope="session")
def target() -> Iterator[str]:
    """The URL of the misbehaving target, as a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.target"], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as process:
        try:
            yield f"http://127.0.0.1:{read_line(process.stdout)}"
        finally:
            process.kill()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A command line beside a running server: it finds the server's URL and key in ./data."""
    cli = Cli(tmp_path_factory.mktemp("home"), {"ZEROCRON_OUTBOUND_ALLOW": "127.0.0.0/8"})
    with serving(cli) as (process, _banner):
        yield cli
        assert stop(process) == 0
