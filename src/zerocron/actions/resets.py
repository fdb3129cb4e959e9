"""New passwords for people who have lost theirs.

Owns the way from asking to the new password. Whether there is such a person is told to nobody: the answer is the same,
and the mail goes out beside it. The link alone is not enough where a second factor is set up. Must never log a link.
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import Connection

from zerocron.actions.hashing import Hashing
from zerocron.actions.mailing import Mailing
from zerocron.actions.one_time_links import new_link, path_of
from zerocron.actions.people import USED_UP, People, set_password
from zerocron.actions.second_factors import SecondFactors, held, subject_of
from zerocron.actions.sign_ins import CODE_NEEDED, REFUSED, Limits, SignIns, Visitor
from zerocron.channels.letters import Letter, reset_letter
from zerocron.clock import Clock
from zerocron.core.access import Actor
from zerocron.core.errors import NotFound, TooMany, Unauthorized
from zerocron.core.limits import give_each_back, take_each
from zerocron.core.passwords import check_password
from zerocron.core.people import PersonStatus, known_email
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import Link, LinkKind


class Resets:
    """Verbs on lost passwords."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        hashing: Hashing,
        people: People,
        sign_ins: SignIns,
        second_factors: SecondFactors,
        mailing: Mailing,
        limits: Limits,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._hashing = hashing
        self._people = people
        self._sign_ins = sign_ins
        self._second_factors = second_factors
        self._mailing = mailing
        self._limits = limits

    async def ask(self, email: str, visitor: Visitor) -> None:
        """A mail with a link, if there is such a person; nobody is told. Raises TooMany, of an address alone."""
        self._people.take_link_try(visitor)
        email = known_email(email)
        try:
            take_each([(self._limits.mail, email)], self._clock.monotonic())
        except TooMany:
            return  # the person has links enough; that somebody else asks for more is no reason to tell of it
        if email:
            self._mailing.send_beside(partial(self._write, email, visitor))

    async def _write(self, email: str, visitor: Visitor) -> Letter | None:
        now = self._clock.now()

        def transaction(connection: Connection) -> Letter | None:
            person = people_rows.find(connection, email)
            if person is None or person.status != PersonStatus.ACTIVE:
                return None
            link_rows.withdraw(connection, LinkKind.RESET, now, person_id=person.id)
            link, token = new_link(connection, LinkKind.RESET, now, person_id=person.id)
            audit.record(
                connection,
                team_id=None,
                at=now,
                by=Actor("server", "", "0cron", visitor.address),
                action="password.reset-link",
                subject=subject_of(person),
            )
            path = path_of(LinkKind.RESET, token)
            return reset_letter(
                link.id, person.email, base_url=self._mailing.base_url, path=path, language=person.language
            )

        return await self._ledger.write(transaction)

    async def use(self, token: str, new_password: str, code: str | None, visitor: Visitor) -> None:
        """Set the password. All sign-ins of the person end. Raises Invalid, NotFound for a link that does not work,
        Unauthorized where a code is needed, too, or is wrong, TooMany."""
        self._people.take_link_try(visitor)
        link = await self._people.find_link(LinkKind.RESET, token)
        person_id = link.person_id or ""
        person = await self._ledger.read(lambda connection: people_rows.get(connection, person_id))
        if person is None or person.status != PersonStatus.ACTIVE:
            raise NotFound(USED_UP)
        check_password(new_password, field="new_password", about=(person.email, person.name))
        if person.has_totp and not code:
            raise Unauthorized("A code of your second factor is needed, too.", CODE_NEEDED)
        # Of all networks together: who has the mailbox could else guess on from one network after another. Only holders
        # of a link use it up, so that it keeps nobody from signing in.
        claims = [(self._limits.code, (person.id, "reset"))] if person.has_totp else []
        take_each(claims, self._clock.monotonic())
        password_hash = await self._hashing.hash(new_password)
        await self._ledger.write(lambda connection: self._set(connection, link, password_hash, code, visitor))
        give_each_back(claims, self._clock.monotonic())
        self._sign_ins.forget(person_id)

    def _set(self, connection: Connection, link: Link, password_hash: str, code: str | None, visitor: Visitor) -> None:
        now = self._clock.now()
        person = held(connection, link.person_id or "")
        if person.has_totp and not self._second_factors.accepts(connection, person, code or "", now):
            raise Unauthorized(REFUSED)
        if person.status != PersonStatus.ACTIVE or not link_rows.use(connection, link.id, now):
            raise NotFound(USED_UP)
        set_password(connection, person, password_hash, now, but=None)
        audit.record(
            connection,
            team_id=None,
            at=now,
            by=Actor("person", person.id, person.name, visitor.address),
            action="password.reset",
            subject=subject_of(person),
        )
