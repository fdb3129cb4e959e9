"""A real node in a process of its own, with a place to die and, if asked, a fault of its own making.

    python -m tests.faults.node [--mutant NAME ...] [--clock-offset-ms N] [--death-note FILE]

serves like `0cron serve`, by `zerocron.app.serve` and the settings of the environment. `ZEROCRON_STOP_AT=name[:n]`
kills the process with SIGKILL the n-th time it passes the stop point of that name. `--mutant` applies patches of
`mutants.py` to this process; `--clock-offset-ms` makes its clock wrong by so much. The death note has the instant.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections import Counter
from pathlib import Path

import uvloop

from zerocron import settings
from zerocron.app import serve
from zerocron.clock import SystemClock
from zerocron.engine.starting import StopPoint


def stop_point_of(text: str | None, note: Path | None = None) -> StopPoint:
    """Kills this process where the text says, and notes when; does nothing without a text."""
    where, _, number = (text or "").partition(":")
    passed: Counter[str] = Counter()

    def stop(name: str) -> None:
        passed[name] += 1
        if name == where and passed[name] == int(number or 1):
            if note is not None:
                note.write_text(str(SystemClock().now()))
            os.kill(os.getpid(), signal.SIGKILL)

    return stop


def offset_clock(offset_ms: int) -> None:
    """Make the machine's clock of this process wrong by so much."""
    right = SystemClock.now
    SystemClock.now = lambda self: right(self) + offset_ms  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutant", action="append", default=[])
    parser.add_argument("--clock-offset-ms", type=int, default=0)
    parser.add_argument("--death-note", type=Path)
    options = parser.parse_args()
    if options.mutant:
        from tests.faults.mutants import MUTANTS

        for name in options.mutant:
            MUTANTS[name]()
    if options.clock_offset_ms:
        offset_clock(options.clock_offset_ms)
    stop_point = stop_point_of(settings.client_variable("STOP_AT"), options.death_note)
    uvloop.run(serve(settings.load(), stop_point=stop_point))


if __name__ == "__main__":
    main()
