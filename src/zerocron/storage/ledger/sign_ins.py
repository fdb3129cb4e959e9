"""Sign-ins in the ledger: browsers in which somebody has signed in.

Owns every query on `sign_ins`. A token is never here, only its hash. Must never decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, and_, or_, select, update

from zerocron.core.access import Role
from zerocron.core.model import Instant
from zerocron.storage.ledger.dialect import batch, columns_of, fetch, lock_rows, pack
from zerocron.storage.ledger.people_tables import members, people, sign_ins
from zerocron.storage.ledger.tables import teams


@dataclass(frozen=True, slots=True)
class SignIn:
    """`expires_at`: whatever happens meanwhile. `last_seen_at` is written down within 15 seconds."""

    id: str
    token_hash: str
    person_id: str
    team_id: str | None
    method: str
    address: str
    user_agent: str
    created_at: Instant
    last_seen_at: Instant
    expires_at: Instant
    elevated_until: Instant | None = None
    ended_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A sign-in with what is asked of it at every request. `role` None: not (any more) in that team."""

    sign_in: SignIn
    email: str
    name: str
    status: str
    role: Role | None


_COLUMNS = tuple(sign_ins.c)

ADDRESSES_MAX = 500


def insert(connection: Connection, sign_in: SignIn) -> None:
    connection.execute(sign_ins.insert(), {column.name: getattr(sign_in, column.name) for column in _COLUMNS})


def find(connection: Connection, token_hash: str) -> Known | None:
    """The sign-in that this token opens, ended or not."""
    query = (
        select(*_COLUMNS, people.c.email, people.c.name, people.c.status, members.c.role)
        .join(people, people.c.id == sign_ins.c.person_id)
        .outerjoin(teams, and_(teams.c.id == sign_ins.c.team_id, teams.c.deleted_at.is_(None)))
        .outerjoin(members, and_(members.c.team_id == teams.c.id, members.c.person_id == sign_ins.c.person_id))
        .where(sign_ins.c.token_hash == token_hash)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    *columns, email, name, status, role = row
    return Known(SignIn(*columns), email, name, status, None if role is None else Role(role))


def get(connection: Connection, sign_in_id: str) -> SignIn | None:
    row = connection.execute(select(*_COLUMNS).where(sign_ins.c.id == sign_in_id)).first()
    return None if row is None else SignIn(*row)


def open_of(
    connection: Connection,
    person_id: str,
    *,
    now: Instant,
    idle_since: Instant,
    before: tuple[Instant, str] | None,
    limit: int,
) -> list[SignIn]:
    """The person's sign-ins that are good at `now` and were seen after `idle_since`, the newest first."""
    query = select(*_COLUMNS).where(
        sign_ins.c.person_id == person_id,
        sign_ins.c.ended_at.is_(None),
        sign_ins.c.expires_at > now,
        sign_ins.c.last_seen_at > idle_since,
    )
    if before is not None:
        at, sign_in_id = before
        query = query.where(
            or_(sign_ins.c.created_at < at, and_(sign_ins.c.created_at == at, sign_ins.c.id < sign_in_id))
        )
    query = query.order_by(sign_ins.c.created_at.desc(), sign_ins.c.id.desc()).limit(limit)
    return [SignIn(*row) for row in fetch(connection, query, {})]


def addresses(connection: Connection, person_id: str) -> list[str]:
    """From where the person has signed in, as far as that is remembered; at most ADDRESSES_MAX."""
    query = select(sign_ins.c.address).where(sign_ins.c.person_id == person_id).distinct().limit(ADDRESSES_MAX)
    return [address for (address,) in fetch(connection, query, {})]


def last_team(connection: Connection, person_id: str) -> str | None:
    """The team that the person looked at in their newest sign-in."""
    query = (
        select(sign_ins.c.team_id)
        .where(sign_ins.c.person_id == person_id)
        .order_by(sign_ins.c.created_at.desc(), sign_ins.c.id.desc())
        .limit(1)
    )
    found: str | None = connection.scalar(query)
    return found


def elevate(connection: Connection, sign_in_id: str, token_hash: str, until: Instant) -> bool:
    """Another token opens it from now on, and until then it is elevated. False when it has ended."""
    statement = (
        update(sign_ins)
        .where(sign_ins.c.id == sign_in_id, sign_ins.c.ended_at.is_(None))
        .values(token_hash=token_hash, elevated_until=until)
    )
    return connection.execute(statement).rowcount == 1


def look_at(connection: Connection, sign_in_id: str, team_id: str) -> bool:
    """False when it has ended."""
    statement = (
        update(sign_ins).where(sign_ins.c.id == sign_in_id, sign_ins.c.ended_at.is_(None)).values(team_id=team_id)
    )
    return connection.execute(statement).rowcount == 1


def end(connection: Connection, person_id: str, sign_in_id: str, now: Instant) -> bool:
    """False when the person has no such sign-in, or it has ended before."""
    statement = (
        update(sign_ins)
        .where(sign_ins.c.id == sign_in_id, sign_ins.c.person_id == person_id, sign_ins.c.ended_at.is_(None))
        .values(ended_at=now)
    )
    return connection.execute(statement).rowcount == 1


def end_all(connection: Connection, person_id: str, now: Instant, *, but: str | None = None) -> int:
    """End the person's sign-ins, but for the one of that id; how many there were."""
    statement = update(sign_ins).where(sign_ins.c.person_id == person_id, sign_ins.c.ended_at.is_(None))
    if but is not None:
        statement = statement.where(sign_ins.c.id != but)
    return connection.execute(statement.values(ended_at=now)).rowcount


def save_last_seen(connection: Connection, seen: Mapping[str, Instant]) -> None:
    """Record when sign-ins were last used; of two nodes the later one counts. Rows that somebody else changes at this
    moment are passed over: two who take many rows in different orders would wait for each other."""
    rows = batch(connection.dialect.name, columns_of((sign_ins.c.id, sign_ins.c.last_seen_at)))
    free = lock_rows(select(sign_ins.c.id).where(sign_ins.c.id.in_(select(rows.c.id))))
    statement = (
        update(sign_ins)
        .values(last_seen_at=rows.c.last_seen_at)
        .where(sign_ins.c.id == rows.c.id, sign_ins.c.last_seen_at < rows.c.last_seen_at, sign_ins.c.id.in_(free))
    )
    connection.execute(statement, pack([list(item) for item in seen.items()]))


def forget(connection: Connection, before: Instant) -> None:
    """Drop what has ended, or could have been used for the last time, before the instant."""
    connection.execute(sign_ins.delete().where(or_(sign_ins.c.ended_at < before, sign_ins.c.expires_at < before)))
