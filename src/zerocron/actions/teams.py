"""The verbs on teams, their members and their invitations.

Owns who may give whom which role: nobody grants more than they may do themselves, nobody below an owner touches one,
and a team is never without an owner. Whoever is taken out of a team is out at once: their sign-ins that look at it end
in the same transaction (on other nodes within a second). Must never log a link.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from zerocron.actions.channels import Channels
from zerocron.actions.entrance import Entrance
from zerocron.actions.idempotency import Once, make, still_there
from zerocron.actions.jobs import Jobs
from zerocron.actions.keys import Keys
from zerocron.actions.monitors import Monitors
from zerocron.actions.one_time_links import new_link, path_of
from zerocron.actions.second_factors import held, of_person, subject_of
from zerocron.actions.secrets import Secrets
from zerocron.channels.letters import invitation_letter
from zerocron.clock import Clock
from zerocron.core.access import PERMISSIONS, SERVER, Actor, Bearer, Role
from zerocron.core.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from zerocron.core.ids import new_id
from zerocron.core.limits import Buckets, give_each_back, take_each
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.people import check_email
from zerocron.core.team_limits import Limits
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import teams as team_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.limits import Usage
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people import Membership
from zerocron.storage.ledger.teams import Invited, Member, Team

TEAMS_A_PERSON_MAX = 50
MEMBERS_MAX = 500
INVITATIONS_MAX = 100
"""That a team has out at a time."""

DELETED_AT_ONCE_MAX = 100
FINISH_SECONDS = 60.0

NO_TEAM = "There is no such team."
NO_MEMBER = "There is no such member."
LAST_OWNER = "This is the last owner of the team. Make somebody else an owner first."


@dataclass(frozen=True, slots=True)
class TeamShown:
    """A team with what it may have, and what it has of that."""

    team: Team
    limits: Limits
    usage: Usage


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation that was made. `path`: of its link, for whoever made it; None when it was mailed. `is_new`: it was
    not made before, by the same request."""

    invited: Invited
    path: str | None = field(repr=False)
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Belongings:
    """The verbs on what a team has."""

    jobs: Jobs
    monitors: Monitors
    channels: Channels
    secrets: Secrets


class Teams:
    """Verbs on teams. Another team is not there."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        entrance: Entrance,
        limits: Limits,
        belongings: Belongings,
        keys: Keys,
    ) -> None:
        """`limits`: of teams that have none of their own."""
        self._ledger = ledger
        self._clock = clock
        self._entrance = entrance
        self._limits = limits
        self._of_team = belongings
        self._keys = keys
        self._mails = Buckets(3, 3_600)
        self._mails_of_team = Buckets(50, 3_600)

    # teams

    async def of_bearer(self, bearer: Bearer) -> list[tuple[str, str, Role | None]]:
        """(id, name, role) of the person's teams; of a key, the one it belongs to."""

        def transaction(connection: Connection) -> list[tuple[str, str, Role | None]]:
            if bearer.person_id is None:
                team = team_rows.get(connection, bearer.team_id)
                return [] if team is None else [(team.id, team.name, None)]
            found: list[Membership] = people_rows.memberships(connection, bearer.person_id)
            return [(one.team_id, one.team_name, one.role) for one in found]

        return await self._ledger.read(transaction)

    async def create(self, bearer: Bearer, name: str, idempotency_key: str | None = None) -> tuple[Team, Role, bool]:
        """A team, what the person is in it (its owner), and True; or the one that this idempotency key of theirs made
        before, and False. Raises Forbidden for a key, Conflict for who has many teams."""
        person_id, _ = of_person(bearer)
        now = self._clock.now()
        team = Team(new_id(now), name, now)
        once = Once.of(person_id, "teams.create", idempotency_key, {"name": name})  # a person's, whatever they look at

        def transaction(connection: Connection) -> tuple[Team, Role, bool]:
            earlier = once.claim(connection, team.id, now)
            if earlier is not None:
                role = team_rows.role_of(connection, earlier, person_id)
                made = None if role is None else team_rows.get(connection, earlier)
                return still_there(made, "team"), role or Role.OWNER, False
            held(connection, person_id)  # so that of two at once one counts the other
            if len(people_rows.memberships(connection, person_id)) >= TEAMS_A_PERSON_MAX:
                raise Conflict(f"A person is in at most {TEAMS_A_PERSON_MAX} teams. Leave one that you do not need.")
            team_rows.insert(connection, team)
            people_rows.add_membership(connection, team.id, person_id, Role.OWNER, now)
            _record(connection, team, "create", bearer.actor, now, after={"name": name})
            return team, Role.OWNER, True

        def look_up(connection: Connection) -> tuple[Team, Role, bool] | None:
            return None if team_rows.get(connection, team.id) is None else (team, Role.OWNER, True)

        return await make(self._ledger, transaction, look_up)

    async def show(self, team_id: str) -> TeamShown:
        """Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> TeamShown:
            return TeamShown(
                _existing(connection, team_id),
                limit_rows.of_team(connection, team_id, self._limits),
                limit_rows.usage(connection, team_id, now),
            )

        return await self._ledger.read(transaction)

    async def rename(self, team_id: str, name: str, *, by: Actor = SERVER) -> TeamShown:
        """Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            team = _existing(connection, team_id, lock=True)
            if team.name != name:
                team_rows.rename(connection, team_id, name)
                _record(connection, team, "edit", by, now, before={"name": team.name}, after={"name": name})

        await self._ledger.write(transaction)
        return await self.show(team_id)

    async def delete(self, team_id: str, name: str, *, by: Actor = SERVER) -> None:
        """Nobody is in the team from now on, its keys are revoked, and all that it has is deleted, one thing after the
        other as by its own verb. `name`: the team's, to be sure. Raises Invalid, Conflict, NotFound.

        What an end of the process leaves undone, `finish` does.
        """
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            team = _existing(connection, team_id, lock=True)
            if team_id == DEFAULT_TEAM_ID:
                raise Conflict("This is the server's first team, to which its own key belongs. It cannot be deleted.")
            if name != team.name:
                raise Invalid("This is not the name of the team. Give it as it is, to be sure.", field="name")
            keys = team_rows.delete(connection, team_id, now)
            _record(connection, team, "delete", by, now, before={"name": team.name}, after={"keys_revoked": keys})

        await self._ledger.write(transaction)
        self._keys.forget(team_id)
        self._entrance.sign_ins.forget_team(team_id)
        while await self._empty(team_id, by):
            pass

    async def finish(self) -> float:
        """Go on with the deletion of a team that was begun; returns the seconds until the next time."""
        team_id = await self._ledger.read(team_rows.unfinished)
        if team_id is None:
            return FINISH_SECONDS
        await self._empty(team_id, SERVER)
        return 0.0

    async def _empty(self, team_id: str, by: Actor) -> bool:
        """Delete some of what the team has; False when nothing was left."""
        jobs = await self._of_team.jobs.page(team_id, limit=DELETED_AT_ONCE_MAX)
        for _, job in jobs:
            await _gone(self._of_team.jobs.delete(team_id, job.id, by=by))
        monitors, _ = await self._of_team.monitors.page(team_id, limit=DELETED_AT_ONCE_MAX)
        for seen in monitors:
            await _gone(self._of_team.monitors.delete(team_id, seen.monitor.id, by=by))
        if jobs or monitors:  # while one of these names a channel, that cannot be deleted
            return True
        channels = await self._of_team.channels.page(team_id, limit=DELETED_AT_ONCE_MAX)
        for channel in channels:
            await _gone(self._of_team.channels.delete(team_id, channel.id, by=by))
        secrets = await self._of_team.secrets.page(team_id, after="", limit=DELETED_AT_ONCE_MAX)
        for secret in secrets:
            await _gone(self._of_team.secrets.delete(team_id, secret.name, by=by))
        return bool(channels or secrets)

    # members

    async def members(self, team_id: str, *, after: tuple[Instant, str] | None = None, limit: int = 50) -> list[Member]:
        """The one who joined first first."""
        return await self._ledger.read(
            lambda connection: team_rows.page_of_members(connection, team_id, after=after, limit=limit)
        )

    async def set_role(self, bearer: Bearer, person_id: str, role: Role) -> None:
        """Raises NotFound, Forbidden, Conflict for the last owner."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            team = _existing(connection, bearer.team_id, lock=True)
            before = _role(connection, team.id, person_id)
            if before == role:
                return
            _check_grant(connection, bearer, before, role)
            _check_owner_left(connection, team.id, before)
            team_rows.set_role(connection, team.id, person_id, role)
            _record_person(connection, bearer, "member.edit", person_id, now, {"role": before}, {"role": role})

        await self._ledger.write(transaction)
        self._entrance.sign_ins.forget(person_id)

    async def remove(self, bearer: Bearer, person_id: str) -> None:
        """Take somebody out of the team. Raises NotFound, Forbidden, Conflict for the last owner."""
        await self._take_out(bearer, person_id, "member.remove")

    async def leave(self, bearer: Bearer) -> None:
        """Go out of the team that the person looks at. Raises Forbidden for a key, Conflict for the last owner."""
        person_id, _ = of_person(bearer)
        await self._take_out(bearer, person_id, "member.leave")

    async def _take_out(self, bearer: Bearer, person_id: str, action: str) -> None:
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            team = _existing(connection, bearer.team_id, lock=True)
            before = _role(connection, team.id, person_id)
            if person_id != bearer.person_id:
                _check_grant(connection, bearer, before)
            _check_owner_left(connection, team.id, before)
            team_rows.remove_member(connection, team.id, person_id, now)
            _record_person(connection, bearer, action, person_id, now, {"role": before}, None)

        await self._ledger.write(transaction)
        self._entrance.sign_ins.forget(person_id)

    # invitations

    async def invitations(
        self, team_id: str, *, before: tuple[Instant, str] | None = None, limit: int = 50
    ) -> list[Invited]:
        """Those that can still be accepted, newest first."""
        now = self._clock.now()
        return await self._ledger.read(
            lambda connection: team_rows.page_of_invitations(connection, team_id, now, before=before, limit=limit)
        )

    async def invite(self, bearer: Bearer, email: str, role: Role, idempotency_key: str | None = None) -> Invitation:
        """An invitation to an address, mailed where there is a mail server; earlier ones to it work no more. Or the one
        that this idempotency key made before, if its letter is known to be sent.

        Raises Invalid, Forbidden, TooMany, and Conflict, also when this key made one before whose letter is not: the
        link may have been shown, and cannot be shown a second time.
        """
        email = check_email(email)
        request = {"email": email, "role": role}
        once = Once.of(bearer.team_id, "invitations.create", idempotency_key, request)
        mailed = Once.of(bearer.team_id, "invitations.mail", idempotency_key, request)
        made_before = await self._ledger.read(lambda connection: self._made_before(connection, once, mailed))
        if made_before is not None:  # it costs none of the mails that may be sent
            return made_before
        claims = [(self._mails, (bearer.team_id, email)), (self._mails_of_team, bearer.team_id)]
        take_each(claims, self._clock.monotonic())
        now = self._clock.now()

        def transaction(connection: Connection) -> tuple[Link, str, str, str] | None:
            team = _existing(connection, bearer.team_id, lock=True)
            if once.earlier(connection) is not None:  # by another request, while this one waited for the team
                return None
            _check_grant(connection, bearer, role)
            person = people_rows.find(connection, email)
            if person is not None and team_rows.role_of(connection, team.id, person.id) is not None:
                raise Conflict("Somebody with this address is in the team already. Change their role instead.")
            team_rows.withdraw_invitation(connection, team.id, now, email=email)
            if team_rows.count_invitations(connection, team.id, now) >= INVITATIONS_MAX:
                raise Conflict(f"A team has at most {INVITATIONS_MAX} invitations out. Withdraw one first.")
            if team_rows.count_members(connection, team.id) >= MEMBERS_MAX:
                raise Conflict(f"A team has at most {MEMBERS_MAX} members.")
            link, token = new_link(
                connection,
                LinkKind.INVITATION,
                now,
                team_id=team.id,
                email=email,
                role=str(role),
                created_by=bearer.person_id,
            )
            once.claim(connection, link.id, now)
            inviter = None if bearer.person_id is None else people_rows.get(connection, bearer.person_id)
            reader = person or inviter
            language = "en" if reader is None else reader.language
            _record_invitation(connection, bearer, "create", link.id, email, now, {"role": role})
            return link, token, team.name, language

        made = await self._ledger.write(transaction)
        if made is None:
            give_each_back(claims, self._clock.monotonic())
            return await self.invite(bearer, email, role, idempotency_key)
        link, token, team_name, language = made
        path = path_of(LinkKind.INVITATION, token)
        letter = invitation_letter(
            link.id,
            email,
            base_url=self._entrance.mailing.base_url,
            path=path,
            language=language,
            team=team_name,
            inviter=bearer.actor.name,
        )
        invited_by = bearer.actor.name if bearer.person_id is not None else None
        invited = Invited(link.id, email, role, invited_by, link.created_at, link.expires_at)
        if not await self._entrance.mailing.send(letter):
            return Invitation(invited, path)
        if idempotency_key is not None:
            with contextlib.suppress(Unavailable):  # a repetition is refused then; this letter is sent
                await self._ledger.write(lambda connection: mailed.claim(connection, link.id, now))
        return Invitation(invited, None)

    def _made_before(self, connection: Connection, once: Once, mailed: Once) -> Invitation | None:
        """Raises Conflict for one that is out no more, or whose letter is not known to be sent."""
        earlier = once.earlier(connection)
        if earlier is None:
            return None
        found = team_rows.invitation(connection, once.team_id, earlier, self._clock.now())
        invited = still_there(found, "invitation")
        if mailed.earlier(connection) is not None:
            return Invitation(invited, None, is_new=False)
        if self._entrance.mailing.can_mail:
            raise Conflict(
                "This Idempotency-Key made an invitation before, and its mail may be on its way. If it does not "
                "come, ask with a new Idempotency-Key: a newer invitation takes the place of that one.",
                code="mail_not_known",
            )
        raise Conflict(
            "This Idempotency-Key made an invitation before, and a link is shown only once. Ask with a new "
            "Idempotency-Key: a newer invitation takes the place of that one.",
            code="made_before",
        )

    async def withdraw(self, bearer: Bearer, invitation_id: str) -> None:
        """Raises NotFound."""
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            email = team_rows.withdraw_invitation(connection, bearer.team_id, now, link_id=invitation_id)
            if email is None:
                raise NotFound("There is no such invitation.")
            _record_invitation(connection, bearer, "withdraw", invitation_id, email, now, None)

        await self._ledger.write(transaction)


async def _gone(deletion: Awaitable[None]) -> None:
    """What somebody else has deleted meanwhile is deleted."""
    with contextlib.suppress(NotFound):
        await deletion


def _existing(connection: Connection, team_id: str, *, lock: bool = False) -> Team:
    team = team_rows.get(connection, team_id, lock=lock)
    if team is None:
        raise NotFound(NO_TEAM)
    return team


def _role(connection: Connection, team_id: str, person_id: str) -> Role:
    role = team_rows.role_of(connection, team_id, person_id)
    if role is None:
        raise NotFound(NO_MEMBER)
    return role


def _check_grant(connection: Connection, bearer: Bearer, *roles: Role) -> None:
    """Raises Forbidden for a role that may more than who asks: to give it, or to take it from somebody. What a person
    may is looked up in the transaction: of two owners who take each other's place one comes first."""
    permissions = bearer.permissions
    if bearer.person_id is not None:
        own = team_rows.role_of(connection, bearer.team_id, bearer.person_id)
        permissions = frozenset() if own is None else PERMISSIONS[own]
    for role in roles:
        if not PERMISSIONS[role] <= permissions:
            raise Forbidden(f"The role {role} may more than you. Ask an owner of the team to do this.")


def _check_owner_left(connection: Connection, team_id: str, before: Role) -> None:
    if before == Role.OWNER and team_rows.count_members(connection, team_id, Role.OWNER) < 2:
        raise Conflict(LAST_OWNER)


def _record(
    connection: Connection,
    team: Team,
    verb: str,
    by: Actor,
    at: Instant,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    audit.record(
        connection,
        team_id=team.id,
        at=at,
        by=by,
        action=f"team.{verb}",
        subject=audit.Subject("team", team.id, team.name),
        before=before,
        after=after,
    )


def _record_person(
    connection: Connection,
    bearer: Bearer,
    action: str,
    person_id: str,
    at: Instant,
    before: Mapping[str, object] | None,
    after: Mapping[str, object] | None,
) -> None:
    person = people_rows.get(connection, person_id)
    subject = audit.Subject("person", person_id, "") if person is None else subject_of(person)
    audit.record(
        connection,
        team_id=bearer.team_id,
        at=at,
        by=bearer.actor,
        action=action,
        subject=subject,
        before=before,
        after=after,
    )


def _record_invitation(
    connection: Connection,
    bearer: Bearer,
    verb: str,
    link_id: str,
    email: str,
    at: Instant,
    after: Mapping[str, object] | None,
) -> None:
    audit.record(
        connection,
        team_id=bearer.team_id,
        at=at,
        by=bearer.actor,
        action=f"invitation.{verb}",
        subject=audit.Subject("invitation", link_id, email),
        after=after,
    )
