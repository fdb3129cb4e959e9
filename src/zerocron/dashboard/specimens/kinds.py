"""What a specimen is, and the person and team that all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NOW = "2027-03-10T14:32:07Z"
"""When all specimens are looked at."""

SESSION: Mapping[str, Any] = {
    "person": {
        "id": "01a22a0b-0af8-7952-bb7c-f148bfd7b701",
        "email": "ada@example.com",
        "name": "Ada Moreau",
        "language": "en",
        "timezone": "Europe/Paris",
        "has_password": True,
        "has_totp": True,
        "created_at": "2026-12-01T08:00:00Z",
    },
    "team": {"id": "00000000-0000-7000-8000-000000000001", "name": "Bakery", "role": "owner"},
    "teams": [
        {"id": "00000000-0000-7000-8000-000000000001", "name": "Bakery", "role": "owner"},
        {"id": "01a22a0b-0af8-7952-bb7c-f148bfd7b702", "name": "Data platform", "role": "editor"},
    ],
    "permissions": ["read", "write", "trigger", "ping-admin", "admin", "owner"],
    "method": "password",
    "elevated_until": None,
    "is_secure": True,
}
UNSIGNED = (401, {"title": "Unauthorized", "status": 401, "detail": "Sign in."})


@dataclass(frozen=True, slots=True)
class Specimen:
    """`answers` maps "GET /v1/jobs" to what the API answers, or to a status and that; `form` is sent by POST."""

    name: str
    title: str
    path: str
    answers: Mapping[str, Any] = field(default_factory=dict)
    form: Sequence[tuple[str, str]] | None = None
    is_shown: bool = False
    """Its pictures are in the documentation."""


def session(**changes: Any) -> dict[str, Any]:
    """The session of somebody else: `session(permissions=["read"])`."""
    return {**SESSION, **changes}


def page_of(items: Sequence[Any], next_cursor: str | None = None) -> dict[str, Any]:
    """A page of a list."""
    return {"items": list(items), "next_cursor": next_cursor}
