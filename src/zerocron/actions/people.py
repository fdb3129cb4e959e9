"""People: the first owner, what a person says of themselves, and their password.

Owns the meaning of each verb. A password that is changed ends every other sign-in of its person in the same
transaction. Must never keep or log a password.
"""

from __future__ import annotations

from sqlalchemy import Connection

from zerocron.actions.hashing import Hashing
from zerocron.actions.second_factors import held, of_person, subject_of
from zerocron.actions.sign_ins import Limits, Opened, SignIns, Visitor
from zerocron.clock import Clock
from zerocron.core.access import Actor, Bearer, Role
from zerocron.core.errors import Conflict, Invalid, NotFound
from zerocron.core.ids import new_id
from zerocron.core.limits import give_each_back, network_of, take_each
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.opaque import is_opaque
from zerocron.core.passwords import check_password
from zerocron.core.people import DEFAULT_TIMEZONE, LANGUAGES, Method, PersonStatus, check_email
from zerocron.core.schedule import check_timezone
from zerocron.core.tokens import digest
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import Link, LinkKind
from zerocron.storage.ledger.people import Person

DEFAULT_TEAM_NAME = "Team"
USED_UP = "This link does not work (any more): it was used, it expired, or a newer one was made."


class People:
    """Verbs on people."""

    def __init__(self, *, ledger: Ledger, clock: Clock, hashing: Hashing, sign_ins: SignIns, limits: Limits) -> None:
        self._ledger = ledger
        self._clock = clock
        self._hashing = hashing
        self._sign_ins = sign_ins
        self._limits = limits

    async def is_setup_open(self) -> bool:
        """Whether nobody is there yet, so that a set-up link makes the first owner."""
        return not await self._ledger.read(people_rows.is_anybody_there)

    async def set_up(
        self,
        token: str,
        *,
        email: str,
        name: str,
        password: str,
        language: str,
        timezone: str,
        visitor: Visitor,
    ) -> Opened:
        """The first owner, who owns the team of everything that is there already, signed in. Raises Invalid, NotFound
        for a link that does not work, TooMany."""
        self.take_link_try(visitor)
        link = await self.find_link(LinkKind.SETUP, token)
        email = check_email(email)
        password_hash = await self._hashing.hash(check_password(password, about=(email, name)))
        now = self._clock.now()
        person = new_person(email, name, password_hash, now, language=language, timezone=timezone)

        def transaction(connection: Connection) -> Opened:
            people_rows.hold_team(connection, DEFAULT_TEAM_ID, DEFAULT_TEAM_NAME, now)  # of two at once one waits here
            if people_rows.is_anybody_there(connection) or not link_rows.use(connection, link.id, now):
                raise NotFound(USED_UP)
            people_rows.insert(connection, person)
            people_rows.add_membership(connection, DEFAULT_TEAM_ID, person.id, Role.OWNER, now)
            link_rows.withdraw(connection, LinkKind.SETUP, now)
            audit.record(
                connection,
                team_id=DEFAULT_TEAM_ID,
                at=now,
                by=Actor("person", person.id, person.name, visitor.address),
                action="setup.use",
                subject=subject_of(person),
                after={"email": email, "name": name, "role": Role.OWNER},
            )
            return self._sign_ins.open(connection, person, Method.SETUP, visitor, now)

        return await self._ledger.write(transaction)

    async def edit(self, bearer: Bearer, *, name: str | None, language: str | None, timezone: str | None) -> Person:
        """What is not None is changed. Raises Invalid for a time zone or language that there is not."""
        person_id, _ = of_person(bearer)
        now = self._clock.now()
        given = {"name": name, "language": language, "timezone": timezone and check_timezone(timezone)}
        if language is not None and language not in LANGUAGES:
            raise Invalid(f"There are {', '.join(LANGUAGES)}.", field="language")

        def transaction(connection: Connection) -> Person:
            person = held(connection, person_id)
            changed = {
                key: value for key, value in given.items() if value is not None and value != getattr(person, key)
            }
            if changed:
                people_rows.change(connection, person.id, now, **changed)
                audit.record(
                    connection,
                    team_id=bearer.team_id,
                    at=now,
                    by=bearer.actor,
                    action="person.edit",
                    subject=subject_of(person),
                    before={key: getattr(person, key) for key in changed},
                    after=changed,
                )
            return held(connection, person.id)

        person = await self._ledger.write(transaction)
        self._sign_ins.forget(person.id)
        return person

    async def change_password(self, bearer: Bearer, current: str | None, new: str) -> None:
        """Ends all other sign-ins. `current` may be None only for who has none yet. Raises Invalid, TooMany."""
        person_id, _ = of_person(bearer)
        person = await self._ledger.read(lambda connection: people_rows.get(connection, person_id))
        if person is None:
            raise NotFound("There is no such person.")
        check_password(new, field="new_password", about=(person.email, person.name))
        if person.password_hash is not None:
            claims = self._sign_ins.proof_claims(bearer)
            take_each(claims, self._clock.monotonic())
            if not await self._hashing.matches(person.password_hash, current or ""):
                raise Invalid("This is not your password of now.", field="current_password")
            give_each_back(claims, self._clock.monotonic())
        password_hash = await self._hashing.hash(new)
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            held_now = held(connection, person_id)
            if held_now.password_hash != person.password_hash:
                raise Conflict("Your password was changed at the same moment. Sign in again.")
            set_password(connection, held_now, password_hash, now, but=bearer.sign_in_id)
            audit.record(
                connection,
                team_id=bearer.team_id,
                at=now,
                by=bearer.actor,
                action="password.change",
                subject=subject_of(held_now),
            )

        await self._ledger.write(transaction)
        self._sign_ins.forget(person_id)

    def take_link_try(self, visitor: Visitor) -> None:
        """Nobody guesses 256 bits; but each try is a question to the ledger. Raises TooMany."""
        take_each([(self._limits.link, network_of(visitor.address))], self._clock.monotonic())

    async def find_link(self, kind: LinkKind, token: str) -> Link:
        """Raises NotFound for a link that does not work."""
        now = self._clock.now()
        found = (
            await self._ledger.read(lambda connection: link_rows.find(connection, kind, digest(token), now))
            if is_opaque(token)
            else None
        )
        if found is None:
            raise NotFound(USED_UP)
        return found


def new_person(
    email: str,
    name: str,
    password_hash: str | None,
    now: Instant,
    *,
    language: str = LANGUAGES[0],
    timezone: str = DEFAULT_TIMEZONE,
) -> Person:
    """A person who is not in the ledger yet. `email` in its one form. Raises Invalid for a time zone that there is
    not."""
    return Person(
        id=new_id(now),
        email=email,
        name=name,
        status=PersonStatus.ACTIVE,
        password_hash=password_hash,
        password_changed_at=None if password_hash is None else now,
        totp_data_key_id=None,
        totp_sealed=None,
        totp_confirmed_at=None,
        totp_step=None,
        language=language,
        timezone=check_timezone(timezone),
        created_at=now,
        updated_at=now,
    )


def set_password(connection: Connection, person: Person, password_hash: str, now: Instant, *, but: str | None) -> None:
    """The new password, the end of all sign-ins but that one, and of links that would set another."""
    people_rows.change(connection, person.id, now, password_hash=password_hash, password_changed_at=now)
    sign_in_rows.end_all(connection, person.id, now, but=but)
    link_rows.withdraw(connection, LinkKind.RESET, now, person_id=person.id)
