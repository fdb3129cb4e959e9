"""People, their places in teams and their second factors in the ledger.

Owns every query on `people` and `recovery_codes`, and those on `members` that ask about one person. A password, a
recovery code and a seed are here as hashes and sealed texts only. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, or_, select, update

from zerocron.core.access import Role
from zerocron.core.model import Instant
from zerocron.core.sealing import CannotOpen, DataKey
from zerocron.storage.ledger.dialect import fetch, insert_batch, pack
from zerocron.storage.ledger.people_tables import members, people, recovery_codes
from zerocron.storage.ledger.tables import teams

SEALED_FOR = "00000000-0000-0000-0000-000000000000"
"""The team whose data key seals second factors: they belong to a person, who may be in several teams or in none."""

_NAME = "second factor"
"""What a seed is sealed as: no secret of a user can have such a name."""


@dataclass(frozen=True, slots=True)
class Person:
    """`password_hash` None: signs in by other means. `totp_sealed` counts from `totp_confirmed_at` on."""

    id: str
    email: str
    name: str
    status: str
    password_hash: str | None
    password_changed_at: Instant | None
    totp_data_key_id: str | None
    totp_sealed: str | None
    totp_confirmed_at: Instant | None
    totp_step: int | None
    language: str
    timezone: str
    created_at: Instant
    updated_at: Instant

    @property
    def has_totp(self) -> bool:
        return self.totp_confirmed_at is not None


@dataclass(frozen=True, slots=True)
class Membership:
    """A place in a team, as its person sees it."""

    team_id: str
    team_name: str
    role: Role


_COLUMNS = tuple(people.c)


def insert(connection: Connection, person: Person) -> bool:
    """False when somebody has this address already."""
    row = [getattr(person, column.name) for column in _COLUMNS]
    statement = insert_batch(connection.dialect.name, _COLUMNS, ignore_existing=True)
    return connection.execute(statement, pack([row])).rowcount == 1


def get(connection: Connection, person_id: str) -> Person | None:
    row = connection.execute(select(*_COLUMNS).where(people.c.id == person_id)).first()
    return None if row is None else Person(*row)


def find(connection: Connection, email: str) -> Person | None:
    """By the address in its one form (`core.people.check_email`)."""
    row = connection.execute(select(*_COLUMNS).where(people.c.email == email)).first()
    return None if row is None else Person(*row)


def hold(connection: Connection, person_id: str) -> Person | None:
    """The person, whose row nobody else changes until the transaction ends."""
    row = connection.execute(select(*_COLUMNS).where(people.c.id == person_id).with_for_update()).first()
    return None if row is None else Person(*row)


def is_anybody_there(connection: Connection) -> bool:
    return connection.execute(select(people.c.id).limit(1)).first() is not None


def change(connection: Connection, person_id: str, now: Instant, **values: Any) -> None:
    """Write these columns of a person."""
    connection.execute(update(people).where(people.c.id == person_id).values(**values, updated_at=now))


def use_totp_step(connection: Connection, person_id: str, step: int) -> bool:
    """Take the code of a step: False when it, or a later one, was taken before."""
    statement = (
        update(people)
        .where(people.c.id == person_id, or_(people.c.totp_step.is_(None), people.c.totp_step < step))
        .values(totp_step=step)
    )
    return connection.execute(statement).rowcount == 1


# second factors


def seal_seed(key: DataKey, person_id: str, seed: str) -> str:
    """A seed as it is kept."""
    return key.seal(seed, secret_id=person_id, name=_NAME)


def open_seed(key: DataKey, person: Person) -> str:
    """Raises CannotOpen."""
    if person.totp_sealed is None:
        raise CannotOpen
    return key.open(person.totp_sealed, secret_id=person.id, name=_NAME)


def reseal(connection: Connection, opened_keys: Mapping[str, DataKey], key: DataKey) -> int:
    """Seal the seeds of all people with another data key; how many there were. Raises CannotOpen."""
    query = select(*_COLUMNS).where(people.c.totp_sealed.is_not(None)).with_for_update()
    kept = [Person(*row) for row in connection.execute(query)]
    for person in kept:
        old = opened_keys.get(person.totp_data_key_id or "")
        if old is None:
            raise CannotOpen
        sealed = seal_seed(key, person.id, open_seed(old, person))
        values = {"totp_sealed": sealed, "totp_data_key_id": key.id}
        connection.execute(update(people).where(people.c.id == person.id).values(values))
    return len(kept)


def remove_totp(connection: Connection, person_id: str, now: Instant) -> None:
    """No second factor is asked for any more, and no recovery code is good."""
    nothing = dict.fromkeys(("totp_sealed", "totp_data_key_id", "totp_confirmed_at", "totp_step"))
    change(connection, person_id, now, **nothing)
    replace_recovery_codes(connection, person_id, [])


def replace_recovery_codes(connection: Connection, person_id: str, code_hashes: list[str]) -> None:
    """These, and no others from before."""
    connection.execute(recovery_codes.delete().where(recovery_codes.c.person_id == person_id))
    rows = [{"person_id": person_id, "code_hash": code_hash, "used_at": None} for code_hash in code_hashes]
    if rows:
        connection.execute(recovery_codes.insert(), rows)


def use_recovery_code(connection: Connection, person_id: str, code_hash: str, now: Instant) -> bool:
    """False when there is no such code, or it was used before."""
    statement = (
        update(recovery_codes)
        .where(
            recovery_codes.c.person_id == person_id,
            recovery_codes.c.code_hash == code_hash,
            recovery_codes.c.used_at.is_(None),
        )
        .values(used_at=now)
    )
    return connection.execute(statement).rowcount == 1


# places in teams


def memberships(connection: Connection, person_id: str) -> list[Membership]:
    """The teams of a person that are there, the one joined first first."""
    query = (
        select(members.c.team_id, teams.c.name, members.c.role)
        .join(teams, and_(teams.c.id == members.c.team_id, teams.c.deleted_at.is_(None)))
        .where(members.c.person_id == person_id)
        .order_by(members.c.created_at, members.c.team_id)
    )
    return [Membership(team_id, name, Role(role)) for team_id, name, role in fetch(connection, query, {})]


def team_name(connection: Connection, team_id: str) -> str | None:
    """None when there is no such team (any more)."""
    name: str | None = connection.scalar(
        select(teams.c.name).where(teams.c.id == team_id, teams.c.deleted_at.is_(None))
    )
    return name


def add_membership(connection: Connection, team_id: str, person_id: str, role: Role, now: Instant) -> bool:
    """False when the person is in the team already: the role stays as it was."""
    columns = (members.c.team_id, members.c.person_id, members.c.role, members.c.created_at)
    statement = insert_batch(connection.dialect.name, columns, ignore_existing=True)
    return connection.execute(statement, pack([[team_id, person_id, str(role), now]])).rowcount == 1


def hold_team(connection: Connection, team_id: str, name: str, now: Instant) -> None:
    """See to it that the team is there, and hold its row until the transaction ends."""
    columns = (teams.c.id, teams.c.name, teams.c.created_at)
    statement = insert_batch(connection.dialect.name, columns, ignore_existing=True)
    connection.execute(statement, pack([[team_id, name, now]]))
    connection.execute(select(teams.c.id).where(teams.c.id == team_id).with_for_update())
