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
    """A permission (None: whoever is known may), and whether a person has to have proved a moment ago who they are.

    `is_public`: nobody has to be known.
    """

    permission: Permission | None
    is_elevated: bool = False
    is_public: bool = False


def needs(permission: Permission | None, *, elevated: bool = False) -> Callable[[F], F]:
    """Mark an endpoint; written below the router's decorator. None: every key and sign-in will do."""

    def mark(endpoint: F) -> F:
        setattr(endpoint, _MARK, Need(permission, elevated))
        return endpoint

    return mark


def public(endpoint: F) -> F:
    """Mark an endpoint that answers everybody; written below the router's decorator."""
    setattr(endpoint, _MARK, Need(None, is_public=True))
    return endpoint


def need_of(endpoint: Callable[..., Any]) -> Need | None:
    """What the endpoint was marked with."""
    found: Need | None = getattr(endpoint, _MARK, None)
    return found
