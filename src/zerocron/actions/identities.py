"""Who a person is at an issuer of OpenID Connect, as that person sees it: listed, linked and taken off.

Owns the rule that nobody takes off the last way by which they come in. To link is to give somebody else's word the key
to an account: it takes a fresh proof of who one is before (`api/me.py`), the sign-in in which it was begun, and
somebody who has just signed in at the issuer (`actions/single_sign_on.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from zerocron.actions.second_factors import held, of_person, subject_of
from zerocron.actions.sign_ins import SignIns
from zerocron.clock import Clock
from zerocron.core.access import Actor, Bearer
from zerocron.core.errors import Conflict, NotFound
from zerocron.core.model import Instant
from zerocron.core.people import Method, PersonStatus
from zerocron.core.single_sign_on import Refusal, SignInRefused
from zerocron.core.tokens import digest
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import identities as identity_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.identities import Identity
from zerocron.storage.ledger.people import Person

IDENTITIES_MAX = 10
"""That a person may link."""

LAST_WAY_IN = "This is the only way by which you come in. Set a password first, or link another identity."


@dataclass(frozen=True, slots=True)
class Shown:
    """An identity of whoever asks. `is_in_use`: its issuer is the one of this server now. `is_last_way_in`: taking it
    off would leave nothing to come in by."""

    id: str
    identity: Identity
    is_in_use: bool
    is_last_way_in: bool


class Identities:
    """Verbs on one's own identities. `issuer_url` None: this server has no issuer (any more)."""

    def __init__(self, *, ledger: Ledger, clock: Clock, sign_ins: SignIns, issuer_url: str | None) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sign_ins = sign_ins
        self._issuer_url = issuer_url

    async def mine(self, bearer: Bearer) -> list[Shown]:
        """The oldest first. Raises Forbidden for a key."""
        person_id, sign_in_id = of_person(bearer)

        def transaction(connection: Connection) -> list[Shown]:
            person = people_rows.get(connection, person_id)
            return [] if person is None else self._shown(connection, person, sign_in_id)

        return await self._ledger.read(transaction)

    async def remove(self, bearer: Bearer, identity_id: str) -> None:
        """Take one off, and end the person's sign-ins but this one: whoever came in by it is out. Raises NotFound,
        Conflict for the last way in."""
        person_id, sign_in_id = of_person(bearer)
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            person = held(connection, person_id)  # of two at once one sees what the other left
            found = next((one for one in self._shown(connection, person, sign_in_id) if one.id == identity_id), None)
            if found is None:
                raise NotFound("There is no such identity.")
            if found.is_last_way_in:
                raise Conflict(LAST_WAY_IN)
            identity_rows.remove(connection, person_id, found.identity)
            sign_in_rows.end_all(connection, person_id, now, but=sign_in_id)
            audit.record(
                connection,
                team_id=bearer.team_id,
                at=now,
                by=bearer.actor,
                action="identity.remove",
                subject=subject_of(person),
                before={"issuer": found.identity.issuer, "subject": found.identity.subject},
            )

        await self._ledger.write(transaction)
        self._sign_ins.forget(person_id)

    def link(self, connection: Connection, bearer: Bearer, issuer: str, subject: str, now: Instant) -> None:
        """What an issuer says somebody is, linked to the person who asked for it, in a transaction. One that is theirs
        already stays so. Raises SignInRefused."""
        person_id, sign_in_id = of_person(bearer)
        person = held(connection, person_id)
        sign_in = sign_in_rows.get(connection, sign_in_id)
        if sign_in is None or sign_in.ended_at is not None:
            raise SignInRefused(Refusal.EXPIRED)  # it ended while the browser was at the issuer
        if person.status != PersonStatus.ACTIVE:
            raise SignInRefused(Refusal.DISABLED)
        owner_id = identity_rows.find(connection, issuer, subject)
        if owner_id == person.id:
            return
        if owner_id is None and len(identity_rows.of_person(connection, person.id)) >= IDENTITIES_MAX:
            raise SignInRefused(Refusal.TOO_MANY_LINKED)
        if owner_id is not None or not bind(
            connection, person, issuer, subject, now, by=bearer.actor, team_id=bearer.team_id
        ):
            raise SignInRefused(Refusal.TAKEN)

    def _shown(self, connection: Connection, person: Person, sign_in_id: str) -> list[Shown]:
        mine = identity_rows.of_person(connection, person.id)
        sign_in = sign_in_rows.get(connection, sign_in_id)
        comes_by_proxy = sign_in is not None and sign_in.method == Method.TRUSTED_HEADER
        has_another = person.password_hash is not None or comes_by_proxy
        in_use = [one for one in mine if one.issuer == self._issuer_url]
        return [
            Shown(
                id_of(one),
                one,
                is_in_use=one in in_use,
                is_last_way_in=not has_another and not [other for other in in_use if other != one],
            )
            for one in mine
        ]


def id_of(identity: Identity) -> str:
    """What it is called in an address, where neither an issuer nor its name for somebody may stand."""
    return digest(f"{identity.issuer}\n{identity.subject}")[:32]


def bind(
    connection: Connection,
    person: Person,
    issuer: str,
    subject: str,
    now: Instant,
    *,
    by: Actor,
    team_id: str | None = None,
) -> bool:
    """Make it theirs, and write that down. False when it is somebody's already."""
    if not identity_rows.bind(connection, issuer, subject, person.id, now):
        return False
    audit.record(
        connection,
        team_id=team_id,
        at=now,
        by=by,
        action="identity.bind",
        subject=subject_of(person),
        after={"issuer": issuer, "subject": subject},
    )
    return True
