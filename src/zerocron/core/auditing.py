"""What the audit log tells of a change: the fields that differ, before and after, and of some only that they do.

Pure. Fields have the names that the API has for them, with a dot between a field and what is in it: `retry.attempts`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

HIDDEN = "(not recorded)"
"""Stands for a value that may be, or hold, a secret."""


def changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    hidden: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that differ, as they were and as they are; a field that one side lacks is left out on that side.

    Of the fields in `hidden`, and of what is in them, the name is told and not the value. `renamed` gives the names
    that fields have elsewhere.
    """
    names = renamed or {}
    was = {names.get(name, name): value for name, value in _flat(before)}
    now = {names.get(name, name): value for name, value in _flat(after)}
    differing = [name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]]

    def told(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _shown(name, fields[name], hidden) for name in differing if name in fields}

    return told(was), told(now)


def _flat(fields: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


def _shown(name: str, value: Any, hidden: Collection[str]) -> Any:
    is_hidden = value is not None and any(name == one or name.startswith(f"{one}.") for one in hidden)
    return HIDDEN if is_hidden else value
