"""Links that work once: made for the first owner, and for a person who has lost their password.

Owns how long they are good and what they look like. The token is in the link alone; the ledger has its hash. Whoever
can read the data directory, or the database's URL, may make one: the command line does, beside a running server. Must
never log a link.
"""

from __future__ import annotations

from sqlalchemy import Connection

from zerocron.core.access import SERVER
from zerocron.core.errors import Conflict, NotFound
from zerocron.core.ids import new_id
from zerocron.core.model import Instant
from zerocron.core.opaque import new_opaque
from zerocron.core.people import PersonStatus, check_email
from zerocron.core.tokens import digest
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import one_time_links as link_rows
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.audit import Subject
from zerocron.storage.ledger.one_time_links import Link, LinkKind

HOUR_MS = 3_600_000
GOOD_MS = {LinkKind.SETUP: HOUR_MS, LinkKind.RESET: HOUR_MS, LinkKind.INVITATION: 7 * 24 * HOUR_MS}


def new_link(
    connection: Connection,
    kind: LinkKind,
    now: Instant,
    *,
    team_id: str | None = None,
    person_id: str | None = None,
    email: str | None = None,
    role: str | None = None,
    created_by: str | None = None,
) -> tuple[Link, str]:
    """A link of that kind, and its token, which nobody can see again."""
    token = new_opaque()
    link = Link(
        id=new_id(now),
        kind=str(kind),
        token_hash=digest(token),
        created_at=now,
        expires_at=now + GOOD_MS[kind],
        team_id=team_id,
        person_id=person_id,
        email=email,
        role=role,
        created_by=created_by,
    )
    link_rows.insert(connection, link)
    return link, token


def new_setup_link(connection: Connection, now: Instant) -> str:
    """The path of a link by which the first owner is made. Those made before work as well, until they expire: nodes
    that start at once each print one. Raises Conflict once there is somebody."""
    if people_rows.is_anybody_there(connection):
        raise Conflict(
            "This server has its owner already. For a new password: 0cron setup-link --reset ADDRESS. More people come "
            "by invitation."
        )
    _, token = new_link(connection, LinkKind.SETUP, now)
    return path_of(LinkKind.SETUP, token)


def new_reset_link(connection: Connection, email: str, now: Instant, *, remove_totp: bool = False) -> str:
    """The path of a link by which the person of that address sets a new password; earlier ones work no more.
    `remove_totp`: for who has lost their second factor and its recovery codes. Raises NotFound, Invalid."""
    person = people_rows.find(connection, check_email(email))
    if person is None or person.status != PersonStatus.ACTIVE:
        raise NotFound("Nobody with this address may sign in to this server.")
    link_rows.withdraw(connection, LinkKind.RESET, now, person_id=person.id)
    _, token = new_link(connection, LinkKind.RESET, now, person_id=person.id)
    subject = Subject("person", person.id, person.email)
    audit.record(connection, team_id=None, at=now, by=SERVER, action="password.reset-link", subject=subject)
    if remove_totp and person.has_totp:
        people_rows.remove_totp(connection, person.id, now)
        audit.record(connection, team_id=None, at=now, by=SERVER, action="totp.remove", subject=subject)
    return path_of(LinkKind.RESET, token)


def path_of(kind: LinkKind, token: str) -> str:
    """Where the page of a link is, below the server's URL."""
    return f"/{kind}/{token}"
