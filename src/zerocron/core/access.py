"""Who may do what: roles of people, scopes of API keys, and the permissions that both come down to.

Owns the one table of roles. Every route of the API names the one permission that it needs; a role or a key is a set of
them. Must never look anything up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Permission(StrEnum):
    """What a route may need. All but the last are scopes that an API key may have."""

    READ = "read"
    WRITE = "write"
    TRIGGER = "trigger"
    PING_ADMIN = "ping-admin"
    ADMIN = "admin"
    OWNER = "owner"


class Role(StrEnum):
    """What a person is in a team."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


_EDITS = frozenset({Permission.READ, Permission.WRITE, Permission.TRIGGER, Permission.PING_ADMIN})

KEY_SCOPES = _EDITS | {Permission.ADMIN}
"""Every scope that a key may have: what an owner alone may do needs a person."""

DEFAULT_SCOPES = _EDITS
"""The scopes of a key that is made without naming any."""


def in_order(permissions: Iterable[Permission]) -> list[Permission]:
    """As they are listed everywhere: the one that everybody has first."""
    return sorted(permissions, key=list(Permission).index)


PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission),
    Role.ADMIN: KEY_SCOPES,
    Role.EDITOR: _EDITS,
    Role.VIEWER: frozenset({Permission.READ}),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, as the audit log has it. `address` is the client's, empty where there was none."""

    kind: Literal["person", "key", "server"]
    id: str
    name: str
    address: str = ""


SERVER = Actor("server", "", "0cron")
"""What the server does of itself."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who makes a request, for which team, and what they may do.

    `is_elevated`: has proved a moment ago who they are, as some routes ask of people. Keys always have.
    """

    team_id: str
    actor: Actor
    permissions: frozenset[Permission]
    key_id: str | None = None
    person_id: str | None = None
    sign_in_id: str | None = None
    is_elevated: bool = True
