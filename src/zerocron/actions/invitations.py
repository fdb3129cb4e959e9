"""Invitations to a team, as who got one sees them: looked at, and accepted.

Owns what accepting means. An invitation is bound to an address: it makes the account of that address, or brings the one
that is there, with its password and second factor, into the team. Must never log a link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from zerocron.actions.hashing import Hashing
from zerocron.actions.people import USED_UP, People, new_person
from zerocron.actions.second_factors import held, subject_of
from zerocron.actions.sign_ins import Opened, Session, SignIns, Visitor
from zerocron.clock import Clock
from zerocron.core.access import Actor, Bearer, Role
from zerocron.core.errors import Invalid, NotFound
from zerocron.core.model import Instant
from zerocron.core.passwords import check_password
from zerocron.core.people import Method
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people import Person


@dataclass(frozen=True, slots=True)
class Invitation:
    """What is told to who has the link. `has_account`: somebody with this address may sign in already; `invited_by`:
    the name of the person who made it, None when that was a key."""

    team: str
    email: str
    role: Role
    has_account: bool
    invited_by: str | None
    expires_at: Instant


class Invitations:
    """Verbs on invitations of who was invited."""

    def __init__(self, *, ledger: Ledger, clock: Clock, hashing: Hashing, people: People, sign_ins: SignIns) -> None:
        self._ledger = ledger
        self._clock = clock
        self._hashing = hashing
        self._people = people
        self._sign_ins = sign_ins

    async def look(self, token: str, visitor: Visitor) -> Invitation:
        """Raises NotFound for a link that does not work, TooMany."""
        self._people.take_link_try(visitor)
        link = await self._people.find_link(LinkKind.INVITATION, token)

        def transaction(connection: Connection) -> Invitation:
            team = people_rows.team_name(connection, link.team_id or "")
            if team is None or link.email is None or link.role is None:
                raise NotFound(USED_UP)
            has_account = people_rows.find(connection, link.email) is not None
            inviter = None if link.created_by is None else people_rows.get(connection, link.created_by)
            invited_by = None if inviter is None else inviter.name
            return Invitation(team, link.email, Role(link.role), has_account, invited_by, link.expires_at)

        return await self._ledger.read(transaction)

    async def accept(
        self,
        token: str,
        *,
        name: str | None,
        password: str | None,
        code: str | None,
        visitor: Visitor,
        bearer: Bearer | None = None,
    ) -> Opened | Session:
        """Join the team, signed in. Who has an account has signed in to it (`bearer`), or proves as when signing in
        that it is theirs; a new one needs a name and a password. Raises Invalid, NotFound, Unauthorized, TooMany."""
        self._people.take_link_try(visitor)
        link = await self._people.find_link(LinkKind.INVITATION, token)
        email = link.email or ""
        known = await self._ledger.read(lambda connection: people_rows.find(connection, email))
        if known is None:
            return await self._accept_as_new(link, name, password, visitor)
        join = self._joining(link, visitor)
        if bearer is None or bearer.person_id != known.id:
            return await self._sign_ins.sign_in(
                email, password or "", code, visitor, first=self._joining(link, visitor)
            )
        join = self._joining(link, visitor)
        await self._ledger.write(lambda connection: join(connection, held(connection, known.id)))
        return await self._sign_ins.look_at(bearer, link.team_id or "")

    async def _accept_as_new(self, link: Link, name: str | None, password: str | None, visitor: Visitor) -> Opened:
        if name is None:
            raise Invalid("A new account needs a name.", field="name")
        email = link.email or ""
        password_hash = await self._hashing.hash(check_password(password or "", about=(email, name)))
        now = self._clock.now()
        person = new_person(email, name, password_hash, now)
        join = self._joining(link, visitor)

        def transaction(connection: Connection) -> Opened:
            if not people_rows.insert(connection, person):
                raise NotFound(USED_UP)  # somebody with this address came in at the same moment
            team_id = join(connection, person)
            return self._sign_ins.open(connection, person, Method.INVITATION, visitor, now, team_id=team_id)

        return await self._ledger.write(transaction)

    def _joining(self, link: Link, visitor: Visitor) -> Callable[[Connection, Person], str]:
        """Brings a person into the team, in the transaction of what proved who they are; the team's id."""
        now = self._clock.now()

        def join(connection: Connection, person: Person) -> str:
            team_id = link.team_id or ""
            is_there = people_rows.team_name(connection, team_id) is not None
            if not is_there or person.email != link.email or not link_rows.use(connection, link.id, now):
                raise NotFound(USED_UP)
            people_rows.add_membership(connection, team_id, person.id, Role(link.role or ""), now)
            audit.record(
                connection,
                team_id=team_id,
                at=now,
                by=Actor("person", person.id, person.name, visitor.address),
                action="invitation.accept",
                subject=subject_of(person),
                after={"role": link.role},
            )
            return team_id

        return join
