"""What each route needs of whoever asks, and the one place where that is compared with what they may do.

Owns the mark that every route under `/v1/` carries. It is looked at before anything else of a request, so that who may
not do a thing learns nothing by trying: not what is wrong with their input, and not which ids there are. Must never let
a route without a mark answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from fastapi import Request

from zerocron.api.services import BEARER
from zerocron.core.access import KEY_SCOPES, PERMISSIONS, Bearer, Permission, Role
from zerocron.core.errors import Forbidden, Unauthorized
from zerocron.core.model import DEFAULT_TEAM_ID

log = structlog.get_logger(__name__)

OF_SERVER = (
    "This is about all teams of the server, so it is for the owners and admins of its first team, and for keys of that "
    "team; such as the server's own key, which 0cron on its machine uses."
)

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__zerocron_needs__"

REAUTHENTICATE = "reauthenticate"
"""The `code` of a refusal that a fresh proof of who one is would turn into an answer."""


@dataclass(frozen=True, slots=True)
class Need:
    """A permission (None: whoever is known may), and whether a person has to have proved a moment ago who they are.

    `is_public`: nobody has to be known. `is_of_server`: it is about all teams, so the permission counts in the server's
    first team alone, whose owner is the server's.
    """

    permission: Permission | None
    is_elevated: bool = False
    is_public: bool = False
    is_of_server: bool = False


def needs(permission: Permission | None, *, elevated: bool = False, of_server: bool = False) -> Callable[[F], F]:
    """Mark an endpoint; written below the router's decorator. None: every key and sign-in will do."""

    def mark(endpoint: F) -> F:
        setattr(endpoint, _MARK, Need(permission, elevated, is_of_server=of_server))
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


async def only_who_may(request: Request) -> None:
    """The dependency of the whole application, before all others. Raises Forbidden, Unauthorized."""
    if not request.scope["path"].startswith("/v1/"):
        return
    need = need_of(request.scope["endpoint"])
    if need is None:
        log.error("route_without_a_mark", path=request.scope["route"].path, hint="Mark it: zerocron.api.access.needs.")
        raise Forbidden("Nobody may do this: the server does not say who could. Please report it.")
    if need.is_public:
        return
    bearer: Bearer | None = request.scope.get(BEARER)
    if bearer is None:
        raise Unauthorized
    check(need, bearer)


def check(need: Need, bearer: Bearer) -> None:
    """Raises Forbidden, and says what is missing and who can give it."""
    if need.permission is not None and need.permission not in bearer.permissions:
        raise Forbidden(_missing(need.permission, bearer))
    if need.is_of_server and bearer.team_id != DEFAULT_TEAM_ID:
        raise Forbidden(OF_SERVER)
    if need.is_elevated and not bearer.is_elevated:
        raise Forbidden(
            "Prove first that it is you: give your password, or a code of your second factor, to "
            "POST /v1/session/elevate.",
            code=REAUTHENTICATE,
        )


_A_ROLE = {Role.OWNER: "an owner", Role.ADMIN: "an admin", Role.EDITOR: "an editor", Role.VIEWER: "a viewer"}


def _missing(permission: Permission, bearer: Bearer) -> str:
    if bearer.person_id is not None:
        roles = [role for role in reversed(Role) if permission in PERMISSIONS[role]]
        giver = (
            "An owner of the team can give you that role."
            if roles[0] == Role.OWNER
            else "An owner or admin of the team can give you that role."
        )
        return f"This needs the permission {permission}, which {_A_ROLE[roles[0]]} has. {giver}"
    if permission in KEY_SCOPES:
        return (
            f"This API key lacks the scope {permission}. An owner or admin of the team can make one that has it, "
            f"such as by `0cron keys create NAME --scope {permission}`."
        )
    return f"This needs the permission {permission}, which no API key has. An owner of the team can do it, signed in."
