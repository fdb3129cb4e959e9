"""`python -m bench [name ...]`: burst, steady, idle, startup, schedules, restart; all of them without a name."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import idle, lateness, schedules

BENCHES: dict[str, Callable[[], None]] = {
    "burst": lateness.burst,
    "steady": lateness.steady,
    "idle": idle.idle,
    "startup": idle.startup,
    "schedules": schedules.schedules,
    "restart": schedules.restart,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
