"""/v1/teams, /v1/team, /v1/members and /v1/invitations: who works together, and as what."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ConfigDict, Field

from zerocron.actions.teams import LAST_OWNER, TeamShown
from zerocron.api.access import needs
from zerocron.api.fields import (
    NAME_CHARACTERS_MAX,
    Cursor,
    Identifier,
    Input,
    InstantText,
    Limit,
    NextCursor,
    Output,
    instant,
    maybe_instant,
    page_of,
    read_cursor,
    unset,
    visible_text,
)
from zerocron.api.people_models import Email
from zerocron.api.services import KEY_REUSED, OnceKey, Use, Who, note_replay
from zerocron.core.access import Permission, Role
from zerocron.storage.ledger.teams import Invited, Member

router = APIRouter(prefix="/v1", tags=["teams"])

TeamName = Annotated[str, *visible_text(NAME_CHARACTERS_MAX, "What people call the team.", "Operations")]
RoleIn = Annotated[
    Literal["owner", "admin", "editor", "viewer"],
    Field(description="What they may do; at most what you may.", examples=["editor"]),
]
PersonId = Annotated[str, Path(description="The member's `person_id`.")]
_ABOVE = "A role that may more than you is given, or taken from somebody."


class TeamIn(Input):
    """A team to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Operations"}]})

    name: TeamName


class TeamChange(Input):
    """What to change. Fields left out stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Operations"}]})

    name: TeamName = unset()


class OwnTeamOut(Output):
    """A team of whoever asks."""

    id: Identifier
    name: str = Field(examples=["Operations"])
    role: Role | None = Field(description="What the person is in it; null for a key.")


class OwnTeamsOut(Output):
    """The teams of whoever asks, the one joined first first."""

    items: list[OwnTeamOut]


class TeamLimitsOut(Output):
    """What a team may have; null: as much as it likes. The operator of the server sets it."""

    jobs_max: int | None
    runs_per_minute_max: int | None
    history_bytes_max: int | None


class TeamUsageOut(Output):
    """What a team has of it."""

    jobs: int
    runs_this_minute: int = Field(description="Counted only where it is limited.")
    history_bytes: int | None = Field(description="Counted once an hour, and only where it is limited; else null.")


class TeamOut(Output):
    """The team that requests are about."""

    id: Identifier
    name: str = Field(examples=["Operations"])
    created_at: InstantText
    limits: TeamLimitsOut
    usage: TeamUsageOut


class MemberOut(Output):
    """A person in the team."""

    person_id: Identifier
    email: str = Field(examples=["ada@example.com"])
    name: str = Field(examples=["Ada Lovelace"])
    role: Role
    has_totp: bool = Field(description="Whether a second factor is asked of them.")
    joined_at: InstantText
    last_seen_at: InstantText | None = Field(description="When they last looked at this team; null: never.")


class MemberPage(Output):
    """Some of the members."""

    items: list[MemberOut]
    next_cursor: NextCursor


class MemberChange(Input):
    """What to change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "editor"}]})

    role: RoleIn


class InvitationIn(Input):
    """Whom to invite, and as what."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"email": "ada@example.com", "role": "editor"}]})

    email: Email
    role: RoleIn


class InvitationOut(Output):
    """An invitation that can still be accepted."""

    id: Identifier
    email: str = Field(examples=["ada@example.com"])
    role: Role
    invited_by: str | None = Field(description="The person who did; null when that was a key.")
    created_at: InstantText
    expires_at: InstantText = Field(description="Seven days after it was made.")


class NewInvitationOut(InvitationOut):
    """An invitation that was made."""

    is_mailed: bool = Field(description="Of a repeated request: whether this server sends mail.")
    url: str | None = Field(
        description="The link, which works once and is shown this once: give it to whom you invite. Null when it was "
        "mailed. A mail that the mail server does not take now is tried again all the same."
    )


class InvitationPage(Output):
    """Some of the invitations."""

    items: list[InvitationOut]
    next_cursor: NextCursor


@router.get("/teams", response_model=OwnTeamsOut)
@needs(None)
async def list_teams(who: Who, services: Use) -> OwnTeamsOut:
    """Your teams, with what you are in each; of a key, the one it belongs to."""
    found = await services.teams.of_bearer(who)
    return OwnTeamsOut(items=[OwnTeamOut(id=team_id, name=name, role=role) for team_id, name, role in found])


@router.post(
    "/teams",
    status_code=201,
    response_model=OwnTeamOut,
    responses={
        403: {"description": "A team is made by a person who has signed in, not by a key."},
        409: {"description": f"You are in as many teams as a person may be, or: {KEY_REUSED}"},
    },
)
@needs(None)
async def create_team(given: TeamIn, who: Who, services: Use, response: Response, key: OnceKey = None) -> OwnTeamOut:
    """Make a team, and be its owner. POST /v1/session/team looks at it."""
    made, role, is_new = await services.teams.create(who, given.name, key)
    note_replay(response, is_new=is_new)
    return OwnTeamOut(id=made.id, name=made.name, role=role)


@router.get("/team", response_model=TeamOut, responses={404: {"description": "The team is not there any more."}})
@needs(Permission.READ)
async def show_team(who: Who, services: Use) -> TeamOut:
    """The team that you look at, or that the key belongs to: what it may have, and what it has."""
    return _team_out(await services.teams.show(who.team_id))


@router.patch("/team", response_model=TeamOut, responses={404: {"description": "The team is not there any more."}})
@needs(Permission.ADMIN)
async def edit_team(change: TeamChange, who: Who, services: Use) -> TeamOut:
    """Rename the team."""
    if "name" not in change.model_fields_set:
        return _team_out(await services.teams.show(who.team_id))
    return _team_out(await services.teams.rename(who.team_id, change.name, by=who.actor))


@router.delete(
    "/team",
    status_code=204,
    responses={
        404: {"description": "The team is not there any more."},
        409: {"description": "It is the server's first team, which stays."},
    },
)
@needs(Permission.OWNER, elevated=True)
async def delete_team(
    who: Who,
    services: Use,
    name: Annotated[
        str,
        Query(max_length=NAME_CHARACTERS_MAX, description="The name of the team, to be sure.", examples=["Operations"]),
    ],
) -> None:
    """Delete the team: nobody is in it any more, its keys are revoked, and its jobs, monitors, channels and secrets are
    deleted one after the other.

    Its audit log and the history of its jobs stay in the ledger until they are old.
    """
    await services.teams.delete(who.team_id, name, by=who.actor)


@router.post(
    "/team/leave",
    status_code=204,
    responses={
        403: {"description": "A key is no member."},
        404: {"description": "You are not in the team any more."},
        409: {"description": LAST_OWNER},
    },
)
@needs(None)
async def leave_team(who: Who, services: Use) -> None:
    """Go out of the team that you look at. Every browser in which you look at it is signed out."""
    await services.teams.leave(who)


@router.get("/members", response_model=MemberPage)
@needs(Permission.READ)
async def list_members(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> MemberPage:
    """The people in the team, the one who joined first first."""
    found = await services.teams.members(who.team_id, after=read_cursor(cursor, int, str), limit=limit + 1)
    shown, more = page_of(found, limit, lambda one: (one.joined_at, one.person_id))
    return MemberPage(items=[_member_out(one) for one in shown], next_cursor=more)


@router.patch(
    "/members/{person_id}",
    status_code=204,
    responses={403: {"description": _ABOVE}, 409: {"description": LAST_OWNER}},
)
@needs(Permission.ADMIN, elevated=True)
async def edit_member(person_id: PersonId, change: MemberChange, who: Who, services: Use) -> None:
    """Make a member something else. It counts at once, on other nodes within a second."""
    await services.teams.set_role(who, person_id, Role(change.role))


@router.delete(
    "/members/{person_id}",
    status_code=204,
    responses={403: {"description": _ABOVE}, 409: {"description": LAST_OWNER}},
)
@needs(Permission.ADMIN, elevated=True)
async def remove_member(person_id: PersonId, who: Who, services: Use) -> None:
    """Take a person out of the team. Every browser in which they look at it is signed out.

    What they made stays, their API keys too: those belong to the team.
    """
    await services.teams.remove(who, person_id)


@router.get("/invitations", response_model=InvitationPage)
@needs(Permission.ADMIN)
async def list_invitations(who: Who, services: Use, limit: Limit = 50, cursor: Cursor = None) -> InvitationPage:
    """Invitations that can still be accepted, newest first. Their links are shown to nobody again."""
    found = await services.teams.invitations(who.team_id, before=read_cursor(cursor, int, str), limit=limit + 1)
    shown, more = page_of(found, limit, lambda one: (one.created_at, one.id))
    return InvitationPage(items=[InvitationOut(**_invited(one)) for one in shown], next_cursor=more)


@router.post(
    "/invitations",
    status_code=201,
    response_model=NewInvitationOut,
    responses={
        403: {"description": _ABOVE},
        404: {"description": "The team is not there any more."},
        409: {
            "description": "They are in the team already, it has as many members or invitations as it may, or the "
            "`Idempotency-Key` made an invitation before whose letter is not known to be sent, and a link is shown "
            "only once."
        },
        429: {"description": "There were too many invitations to this address, or of this team."},
    },
)
@needs(Permission.ADMIN, elevated=True)
async def create_invitation(
    given: InvitationIn, who: Who, services: Use, request: Request, response: Response, key: OnceKey = None
) -> NewInvitationOut:
    """Invite somebody to the team. It is mailed where the server has a mail server; else the link is in this answer.

    The link works once, for seven days, and for that address alone. An earlier one to the same address works no more.
    """
    made = await services.teams.invite(who, given.email, Role(given.role), key)
    note_replay(response, is_new=made.is_new)
    base = services.base_url or str(request.base_url).rstrip("/")
    url = None if made.path is None else base + made.path
    return NewInvitationOut(**_invited(made.invited), is_mailed=url is None, url=url)


@router.delete("/invitations/{invitation_id}", status_code=204)
@needs(Permission.ADMIN, elevated=True)
async def withdraw_invitation(
    invitation_id: Annotated[str, Path(description="The invitation's `id`.")], who: Who, services: Use
) -> None:
    """Withdraw an invitation. Its link works no more."""
    await services.teams.withdraw(who, invitation_id)


def _team_out(shown: TeamShown) -> TeamOut:
    limits, usage = shown.limits, shown.usage
    return TeamOut(
        id=shown.team.id,
        name=shown.team.name,
        created_at=instant(shown.team.created_at),
        limits=TeamLimitsOut(
            jobs_max=limits.jobs_max,
            runs_per_minute_max=limits.runs_per_minute_max,
            history_bytes_max=limits.history_bytes_max,
        ),
        usage=TeamUsageOut(jobs=usage.jobs, runs_this_minute=usage.runs_this_minute, history_bytes=usage.history_bytes),
    )


def _member_out(member: Member) -> MemberOut:
    return MemberOut(
        person_id=member.person_id,
        email=member.email,
        name=member.name,
        role=member.role,
        has_totp=member.has_totp,
        joined_at=instant(member.joined_at),
        last_seen_at=maybe_instant(member.last_seen_at),
    )


def _invited(invited: Invited) -> dict[str, Any]:
    return {
        "id": invited.id,
        "email": invited.email,
        "role": invited.role,
        "invited_by": invited.invited_by,
        "created_at": instant(invited.created_at),
        "expires_at": instant(invited.expires_at),
    }
