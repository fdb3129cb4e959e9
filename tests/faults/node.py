"""A real node in a process of its own, with a place to die and, if asked, a fault of its own making.

    python -m tests.faults.node [--mutant NAME ...] [--clock-offset-ms N] [--death-note FILE] [--time-scale X]
                                [--node-name NAME] [--clock-log FILE]

serves like `0cron serve`, by `zerocron.app.serve` and the settings of the environment. `ZEROCRON_STOP_AT=name[:n]`
kills the process with SIGKILL the n-th time it passes the stop point of that name, and `name:n:pause` halts it there.
`--mutant` applies patches of `mutants.py` to this process; `--clock-offset-ms` makes its clock wrong by so much. The
death note has the instant.
`--time-scale 0.2` makes sessions, hiding times and time-outs five times shorter than they are in the product, all of
them, so that what outlasts what stays as it is; `--node-name` is what the node's sessions are called in the ledger. The
clock log says how far behind the database's the node's clock may be, as its samples leave open.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
from collections import Counter, deque
from pathlib import Path
from typing import Any

import uvloop

from zerocron import settings
from zerocron.app import serve
from zerocron.cli.logs import configure_logging
from zerocron.clock import SAMPLES_KEPT, LedgerClock, SystemClock
from zerocron.engine.starting import StopPoint


def stop_point_of(text: str | None, note: Path | None = None) -> StopPoint:
    """Kills or halts this process where the text says, and notes when; does nothing without a text."""
    where, number, how = [*(text or "").split(":"), "", ""][:3]
    passed: Counter[str] = Counter()

    def stop(name: str) -> None:
        passed[name] += 1
        if name == where and passed[name] == int(number or 1):
            if note is not None:
                note.write_text(str(SystemClock().now()))
            os.kill(os.getpid(), signal.SIGSTOP if how == "pause" else signal.SIGKILL)

    return stop


def offset_clock(offset_ms: int) -> None:
    """Make the machine's clock of this process wrong by so much."""
    right = SystemClock.now
    SystemClock.now = lambda self: right(self) + offset_ms  # type: ignore[method-assign]


SCALED = {
    "zerocron.engine.sessions": ("VALIDITY_MS", "RENEW_SECONDS", "SAFETY_MS", "GAP_SECONDS", "ORPHAN_MS"),
    "zerocron.engine.run": ("FAILURE_PAUSE_SECONDS_MAX",),
    "zerocron.app": ("RENEW_SECONDS",),
    "zerocron.engine.sweep": ("SWEEP_SECONDS", "OVERDUE_MS", "DUTY_SECONDS", "LOAD_MS"),
    "zerocron.storage.timetable.contract": ("HIDE_MS",),
    "zerocron.storage.timetable.redis": ("HIDE_MS", "PATIENCE_MS"),
    "zerocron.storage.ledger.postgres": (
        "BEGIN_SECONDS_MAX",
        "CONNECT_SECONDS_MAX",
        "POOL_WAIT_SECONDS",
        "STATEMENT_SECONDS_MAX",
        "ANSWER_SECONDS_MORE",
        "IDLE_IN_TRANSACTION_SECONDS_MAX",
    ),
}
"""What takes part in who outlasts whom. A constant that is no longer there fails loudly."""

CLOCK_LOG_MS = 10
TIME_OUT_SECONDS_MIN = 1.5
"""Shorter, and a busy machine would be taken for a server that is away."""


def scale_time(factor: float) -> None:
    """Make this process's sessions and time-outs shorter, in proportion."""
    for module_name, names in SCALED.items():
        module: Any = importlib.import_module(module_name)
        for name in names:
            real = getattr(module, name)
            value = real * factor
            if module_name.endswith("postgres"):
                value = min(real, max(value, TIME_OUT_SECONDS_MIN))
            setattr(module, name, round(value) if name.endswith("_MS") else value)
    timetable: Any = importlib.import_module("zerocron.storage.timetable.redis")
    (_,) = timetable.RedisTimetable.claim.__defaults__
    timetable.RedisTimetable.claim.__defaults__ = (timetable.HIDE_MS,)


def call_node(name: str) -> None:
    """What this node's sessions are called."""
    rows: Any = importlib.import_module("zerocron.storage.ledger.sessions")
    right = rows.insert
    rows.insert = lambda connection, **given: right(connection, **(given | {"node": name}))


def log_clock(file: Path) -> None:
    """Note how far behind this process's `LedgerClock` may be, whenever that changes: on a busy machine an answer takes
    a while, and the database's time in it is old by at most as much."""
    right = LedgerClock.observe
    uppers: deque[float] = deque(maxlen=SAMPLES_KEPT)
    noted = -CLOCK_LOG_MS

    def observe(self: LedgerClock, database_now: int, before: float, after: float) -> None:
        nonlocal noted
        right(self, database_now, before, after)
        if len(self._offsets_ms) == 1:  # the first, or the first after the database was set back
            uppers.clear()
        uppers.append(database_now - before * 1000)
        behind_ms = round(min(uppers) - self._offset_ms)
        if abs(behind_ms - noted) >= CLOCK_LOG_MS:
            noted = behind_ms
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"at": self.now(), "behind_ms": behind_ms}) + "\n")

    LedgerClock.observe = observe  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutant", action="append", default=[])
    parser.add_argument("--clock-offset-ms", type=int, default=0)
    parser.add_argument("--death-note", type=Path)
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--node-name")
    parser.add_argument("--clock-log", type=Path)
    options = parser.parse_args()
    if options.time_scale != 1:
        scale_time(options.time_scale)
    if options.clock_log:
        log_clock(options.clock_log)
    if options.node_name:
        call_node(options.node_name)
    if options.mutant:
        from tests.faults.mutants import CLUSTER_MUTANTS, MUTANTS

        for name in options.mutant:
            (MUTANTS | CLUSTER_MUTANTS)[name]()
    if options.clock_offset_ms:
        offset_clock(options.clock_offset_ms)
    configure_logging("info", "json")  # as the command does; structlog's own tracebacks take seconds to draw
    stop_point = stop_point_of(settings.client_variable("STOP_AT"), options.death_note)
    uvloop.run(serve(settings.load(), stop_point=stop_point))


if __name__ == "__main__":
    main()
