"""Second factors: set up, confirmed, asked for, taken off.

Owns the life of a seed and of the recovery codes. A seed is sealed as secrets are, with the data key of a team that is
none, so that a rotation seals it anew with the rest. A code counts in the transaction of what it allows. Must never log
a seed or a code.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from zerocron.actions.secrets import Secrets
from zerocron.clock import Clock
from zerocron.core.access import Bearer
from zerocron.core.errors import Conflict, Forbidden, Invalid, NotFound
from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen
from zerocron.core.second_factor import (
    enrolment_uri,
    new_recovery_codes,
    new_seed,
    qr_svg,
    recovery_hash,
    step_of,
)
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import sign_ins as sign_in_rows
from zerocron.storage.ledger.audit import Subject
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.people import SEALED_FOR, Person

NONE_YET = "You have no second factor. Set one up first."
WRONG_CODE = "This code is wrong, or it was used before. Wait for the next one and try that."


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator app needs, shown once. `qr_svg` holds the `uri`, which holds the `secret`."""

    secret: str
    uri: str
    qr_svg: str


class SecondFactors:
    """Verbs on a person's own second factor. All raise Forbidden for a key."""

    def __init__(self, *, ledger: Ledger, clock: Clock, secrets: Secrets) -> None:
        self._ledger = ledger
        self._clock = clock
        self._secrets = secrets

    async def begin(self, bearer: Bearer) -> Enrolment:
        """A new seed, which counts once a code of it was given. Raises Conflict when one counts already."""
        person_id, _ = of_person(bearer)
        self._secrets.need_keys()
        now = self._clock.now()
        seed = new_seed()

        def transaction(connection: Connection) -> Person:
            person = held(connection, person_id)
            if person.has_totp:
                raise Conflict("You have a second factor already. Take it off before you set up another one.")
            key, _ = self._secrets.sealing_key(connection, SEALED_FOR, now)
            sealed = people_rows.seal_seed(key, person_id, seed)
            people_rows.change(connection, person_id, now, totp_sealed=sealed, totp_data_key_id=key.id, totp_step=None)
            return person

        uri = enrolment_uri(seed, (await self._ledger.write(transaction)).email)
        return Enrolment(seed, uri, qr_svg(uri))

    async def confirm(self, bearer: Bearer, code: str) -> list[str]:
        """From now on it is asked for; the recovery codes, shown once. Ends the other sign-ins. Raises Invalid for a
        wrong code, Conflict when nothing was begun."""
        person_id, own_id = of_person(bearer)
        now = self._clock.now()
        codes = new_recovery_codes()

        def transaction(connection: Connection) -> None:
            person = held(connection, person_id)
            if person.has_totp or person.totp_sealed is None:
                raise Conflict("There is no second factor to confirm. Begin its set-up anew.")
            step = step_of(self._seed(connection, person), code, now)
            if step is None or not people_rows.use_totp_step(connection, person_id, step):
                raise Invalid(WRONG_CODE, field="code")
            people_rows.change(connection, person_id, now, totp_confirmed_at=now)
            _keep(connection, person_id, codes)
            sign_in_rows.end_all(connection, person_id, now, but=own_id)
            _record(connection, person, "totp.confirm", bearer, now)

        await self._ledger.write(transaction)
        return codes

    async def remove(self, bearer: Bearer) -> None:
        """It is asked for no more, and its recovery codes are gone. Ends the other sign-ins. Raises NotFound."""
        person_id, own_id = of_person(bearer)
        now = self._clock.now()

        def transaction(connection: Connection) -> None:
            person = held(connection, person_id)
            if not person.has_totp:
                raise NotFound(NONE_YET)
            people_rows.remove_totp(connection, person_id, now)
            sign_in_rows.end_all(connection, person_id, now, but=own_id)
            _record(connection, person, "totp.remove", bearer, now)

        await self._ledger.write(transaction)

    async def renew_recovery_codes(self, bearer: Bearer) -> list[str]:
        """Ten new codes, shown once; those before are worth nothing. Raises Conflict without a second factor."""
        person_id, _ = of_person(bearer)
        now = self._clock.now()
        codes = new_recovery_codes()

        def transaction(connection: Connection) -> None:
            person = held(connection, person_id)
            if not person.has_totp:
                raise Conflict(NONE_YET)
            _keep(connection, person_id, codes)
            _record(connection, person, "recovery-codes.renew", bearer, now)

        await self._ledger.write(transaction)
        return codes

    def accepts(self, connection: Connection, person: Person, code: str, now: Instant) -> bool:
        """Whether a code of the app, or a recovery code, lets this person in; it is used up by that."""
        code_hash = recovery_hash(person.id, code)
        if code_hash is not None:
            return people_rows.use_recovery_code(connection, person.id, code_hash, now)
        step = step_of(self._seed(connection, person), code, now)
        return step is not None and people_rows.use_totp_step(connection, person.id, step)

    def _seed(self, connection: Connection, person: Person) -> str:
        key = self._secrets.opening_key(connection, person.totp_data_key_id or "")
        try:
            return people_rows.open_seed(key, person)
        except CannotOpen:
            raise Conflict("The seed of this second factor is damaged. Use a recovery code.") from None


def of_person(bearer: Bearer) -> tuple[str, str]:
    """(person, sign-in). Raises Forbidden for a key."""
    if bearer.person_id is None or bearer.sign_in_id is None:
        raise Forbidden("This is about a person who has signed in; an API key is none.")
    return bearer.person_id, bearer.sign_in_id


def held(connection: Connection, person_id: str) -> Person:
    """The person, whose row nobody else changes meanwhile. Raises NotFound."""
    person = people_rows.hold(connection, person_id)
    if person is None:
        raise NotFound("There is no such person.")
    return person


def subject_of(person: Person) -> Subject:
    """A person in the audit log."""
    return Subject("person", person.id, person.email)


def _keep(connection: Connection, person_id: str, codes: list[str]) -> None:
    hashes = [recovery_hash(person_id, code) for code in codes]
    people_rows.replace_recovery_codes(connection, person_id, [each for each in hashes if each is not None])


def _record(connection: Connection, person: Person, action: str, bearer: Bearer, now: Instant) -> None:
    subject = subject_of(person)
    audit.record(connection, team_id=bearer.team_id, at=now, by=bearer.actor, action=action, subject=subject)
