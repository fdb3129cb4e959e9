"""What the audit log is told of a job.

Owns which of its fields may be told. Must never tell what may be a credential.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zerocron.core.auditing import changes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NOT_RECORDED = ("headers", "body")
"""They may hold credentials."""

_NAMES_IN_API = {
    "timeout_seconds": "timeout",
    "catchup_window_seconds": "catchup_window",
    "retry.delay_seconds": "retry.delay",
}


def changes_of(
    before: DataclassInstance,
    after: DataclassInstance,
    was: Mapping[str, object] | None = None,
    became: Mapping[str, object] | None = None,
) -> tuple[dict[str, object], dict[str, object]]:
    """What differs between two specifications of a job, and in what goes with them, as the audit log tells it."""
    return changes(
        dataclasses.asdict(before) | dict(was or {}),
        dataclasses.asdict(after) | dict(became or {}),
        hidden=_NOT_RECORDED,
        renamed=_NAMES_IN_API,
    )
