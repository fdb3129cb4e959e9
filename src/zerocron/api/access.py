"""What each route needs of whoever asks.

Owns the mark that every route under `/v1/` carries. Must never let a route without one answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from zerocron.core.access import Permission

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__zerocron_needs__"


@dataclass(frozen=True, slots=True)
class Need:
    """A permission, and whether a person has to have proved a moment ago who they are."""

    permission: Permission
    is_elevated: bool = False


def needs(permission: Permission, *, elevated: bool = False) -> Callable[[F], F]:
    """Mark an endpoint; written below the router's decorator."""

    def mark(endpoint: F) -> F:
        setattr(endpoint, _MARK, Need(permission, elevated))
        return endpoint

    return mark


def need_of(endpoint: Callable[..., Any]) -> Need | None:
    """What the endpoint was marked with."""
    found: Need | None = getattr(endpoint, _MARK, None)
    return found
