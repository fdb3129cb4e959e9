"""Teams and who is in them, in the ledger; and the invitations that a team has out.

Owns the queries on `teams` (but for limits) and on `members` that ask about one team. Who changes who is in a team
holds the team's row meanwhile, so that the last owner of two who leave at once stays. Must never decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select, update

from zerocron.core.access import Role
from zerocron.core.model import Instant
from zerocron.storage.ledger.alert_tables import channels
from zerocron.storage.ledger.dialect import fetch
from zerocron.storage.ledger.monitor_tables import monitors
from zerocron.storage.ledger.one_time_links import LinkKind
from zerocron.storage.ledger.people_tables import members, one_time_links, people, sign_ins
from zerocron.storage.ledger.tables import api_keys, jobs, secrets, teams


@dataclass(frozen=True, slots=True)
class Team:
    """A team that is not deleted."""

    id: str
    name: str
    created_at: Instant


@dataclass(frozen=True, slots=True)
class Member:
    """A place in a team, as the team sees it. `last_seen_at`: in a sign-in that looks at this team."""

    person_id: str
    email: str
    name: str
    role: Role
    has_totp: bool
    joined_at: Instant
    last_seen_at: Instant | None


@dataclass(frozen=True, slots=True)
class Invited:
    """An invitation that is out. `invited_by`: the name of the person; None when that was a key."""

    id: str
    email: str
    role: Role
    invited_by: str | None
    created_at: Instant
    expires_at: Instant


_TEAM = (teams.c.id, teams.c.name, teams.c.created_at)


def get(connection: Connection, team_id: str, *, lock: bool = False) -> Team | None:
    """The team; with `lock`, its row is held until the transaction ends."""
    query = select(*_TEAM).where(teams.c.id == team_id, teams.c.deleted_at.is_(None))
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else Team(*row)


def insert(connection: Connection, team: Team) -> None:
    connection.execute(teams.insert(), {"id": team.id, "name": team.name, "created_at": team.created_at})


def rename(connection: Connection, team_id: str, name: str) -> None:
    connection.execute(update(teams).where(teams.c.id == team_id).values(name=name))


def delete(connection: Connection, team_id: str, now: Instant) -> int:
    """Nobody is in it from now on: no sign-in looks at it, no key and no invitation of it works. How many keys there
    were. What it has is left to whoever calls."""
    connection.execute(update(teams).where(teams.c.id == team_id).values(deleted_at=now))
    connection.execute(
        update(sign_ins).where(sign_ins.c.team_id == team_id, sign_ins.c.ended_at.is_(None)).values(ended_at=now)
    )
    of_team = (one_time_links.c.team_id == team_id, one_time_links.c.used_at.is_(None))
    connection.execute(update(one_time_links).where(*of_team).values(used_at=now))
    keys = update(api_keys).where(api_keys.c.team_id == team_id, api_keys.c.revoked_at.is_(None))
    return connection.execute(keys.values(revoked_at=now)).rowcount


def unfinished(connection: Connection) -> str | None:
    """A deleted team that has something left."""
    left = [
        select(table.c.id).where(table.c.team_id == teams.c.id, table.c.status != "deleted").exists()
        for table in (jobs, monitors, channels)
    ]
    left.append(select(secrets.c.id).where(secrets.c.team_id == teams.c.id).exists())
    query = select(teams.c.id).where(teams.c.deleted_at.is_not(None), or_(*left)).limit(1)
    found: str | None = connection.scalar(query)
    return found


# who is in it


def page_of_members(
    connection: Connection, team_id: str, *, after: tuple[Instant, str] | None, limit: int
) -> list[Member]:
    """The team's members, the one who joined first first."""
    seen = (
        select(func.max(sign_ins.c.last_seen_at))
        .where(sign_ins.c.person_id == members.c.person_id, sign_ins.c.team_id == team_id)
        .scalar_subquery()
    )
    query = (
        select(
            people.c.id,
            people.c.email,
            people.c.name,
            members.c.role,
            people.c.totp_confirmed_at,
            members.c.created_at,
            seen.label("last_seen_at"),
        )
        .join(people, people.c.id == members.c.person_id)
        .where(members.c.team_id == team_id)
    )
    if after is not None:
        at, person_id = after
        query = query.where(
            or_(members.c.created_at > at, and_(members.c.created_at == at, members.c.person_id > person_id))
        )
    query = query.order_by(members.c.created_at, members.c.person_id).limit(limit)
    return [_member(*row) for row in fetch(connection, query, {})]


def _member(person_id: str, email: str, name: str, role: str, totp_at: Any, joined_at: int, seen_at: Any) -> Member:
    return Member(person_id, email, name, Role(role), totp_at is not None, joined_at, seen_at)


def role_of(connection: Connection, team_id: str, person_id: str) -> Role | None:
    """None when the person is not in the team."""
    role = connection.scalar(
        select(members.c.role).where(members.c.team_id == team_id, members.c.person_id == person_id)
    )
    return None if role is None else Role(role)


def count_members(connection: Connection, team_id: str, role: Role | None = None) -> int:
    query = select(func.count()).select_from(members).where(members.c.team_id == team_id)
    if role is not None:
        query = query.where(members.c.role == str(role))
    return connection.scalar(query) or 0


def set_role(connection: Connection, team_id: str, person_id: str, role: Role) -> None:
    connection.execute(
        update(members).where(members.c.team_id == team_id, members.c.person_id == person_id).values(role=str(role))
    )


def remove_member(connection: Connection, team_id: str, person_id: str, now: Instant) -> None:
    """Take the person out of the team, and end their sign-ins that look at it."""
    connection.execute(members.delete().where(members.c.team_id == team_id, members.c.person_id == person_id))
    connection.execute(
        update(sign_ins)
        .where(sign_ins.c.person_id == person_id, sign_ins.c.team_id == team_id, sign_ins.c.ended_at.is_(None))
        .values(ended_at=now)
    )


# invitations


def page_of_invitations(
    connection: Connection, team_id: str, now: Instant, *, before: tuple[Instant, str] | None, limit: int
) -> list[Invited]:
    """Invitations of the team that can still be accepted, newest first."""
    links = one_time_links.c
    query = _invited(team_id, now)
    if before is not None:
        at, link_id = before
        query = query.where(or_(links.created_at < at, and_(links.created_at == at, links.id < link_id)))
    query = query.order_by(links.created_at.desc(), links.id.desc()).limit(limit)
    return [_invitation(*row) for row in fetch(connection, query, {})]


def invitation(connection: Connection, team_id: str, link_id: str, now: Instant) -> Invited | None:
    """The one of that id, while it can be accepted."""
    row = connection.execute(_invited(team_id, now).where(one_time_links.c.id == link_id)).first()
    return None if row is None else _invitation(*row)


def _invited(team_id: str, now: Instant) -> Select[Any]:
    links = one_time_links.c
    return (
        select(links.id, links.email, links.role, people.c.name, links.created_at, links.expires_at)
        .select_from(one_time_links.outerjoin(people, people.c.id == links.created_by))
        .where(*_is_out(team_id, now))
    )


def _invitation(
    link_id: str, email: str, role: str, name: str | None, created_at: Instant, expires_at: Instant
) -> Invited:
    return Invited(link_id, email, Role(role), name, created_at, expires_at)


def count_invitations(connection: Connection, team_id: str, now: Instant) -> int:
    query = select(func.count()).select_from(one_time_links).where(*_is_out(team_id, now))
    return connection.scalar(query) or 0


def withdraw_invitation(
    connection: Connection, team_id: str, now: Instant, *, link_id: str | None = None, email: str | None = None
) -> str | None:
    """Let the invitation of that id, or those to that address, work no more; the address, None when there was none."""
    statement = update(one_time_links).where(*_is_out(team_id, now))
    if link_id is not None:
        statement = statement.where(one_time_links.c.id == link_id)
    if email is not None:
        statement = statement.where(one_time_links.c.email == email)
    row = connection.execute(statement.values(used_at=now).returning(one_time_links.c.email)).first()
    return None if row is None else str(row[0])


def _is_out(team_id: str, now: Instant) -> tuple[Any, ...]:
    links = one_time_links.c
    return (
        links.team_id == team_id,
        links.kind == str(LinkKind.INVITATION),
        links.used_at.is_(None),
        links.expires_at > now,
    )
