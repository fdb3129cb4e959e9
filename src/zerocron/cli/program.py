"""What this program is called from where the person stands, for commands that can be copied."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def name() -> str:
    """`0cron`, or `zerocron` when it was called so."""
    called = Path(sys.argv[0]).name
    return called if called in ("0cron", "zerocron") else "0cron"


def program() -> str:
    """The first word of a command that works here: the name when it is on PATH, else the way to the file."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m zerocron"
    if called.name not in ("0cron", "zerocron"):
        return "0cron"
    found = shutil.which(called.name)
    try:
        if found is not None and Path(found).samefile(called):
            return called.name
        path = called.absolute()
        if path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
    except OSError:
        return called.name
    text = str(path)
    return shlex.quote(text if "/" in text else f"./{text}")
