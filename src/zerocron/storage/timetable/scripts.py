"""The Lua scripts of the Redis timetable, as they are sent.

Owns the reading of `lua/*.lua`: each file is one script and says in its header what it takes, gives and costs.
`_lanes.lua` is put in front of every one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib import resources


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a script, and the name by which Redis knows it once it has seen the text."""

    name: str
    text: str = field(repr=False)
    sha: str


def _read(name: str) -> Script:
    folder = resources.files(__package__) / "lua"
    text = "".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("_lanes", name))
    # Redis names scripts by their SHA-1; nothing is kept safe by it.
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


PUT = _read("put")
RESTORE = _read("restore")
DROP = _read("drop")
CLAIM = _read("claim")
LOST = _read("lost")
DUTY = _read("duty")
SIZE = _read("size")
CLEAR = _read("clear")
