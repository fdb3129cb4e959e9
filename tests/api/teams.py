"""Teams with people in them, each with a browser in which they have signed in."""

from __future__ import annotations

from sqlalchemy import Connection, insert
from tests.api.browsers import Browser

from zerocron.actions.people import new_person
from zerocron.actions.sign_ins import Visitor
from zerocron.app import Node
from zerocron.core.access import Role
from zerocron.core.people import Method
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger import tables

COOKIE = "__Host-0cron"
VISITOR = Visitor("203.0.113.7", "Testfox/1.0")


async def make_team(node: Node, team_id: str, name: str = "Operations") -> None:
    """The row of a team, which a key alone does not need."""
    row = {"id": team_id, "name": name, "created_at": node.clock.now()}
    await node.ledger.write(lambda connection: connection.execute(insert(tables.teams), row))


async def join(node: Node, team_id: str, email: str, role: Role, *, is_elevated: bool = True) -> tuple[str, Browser]:
    """A person, who may be there already, in a team; their id, and a browser that looks at it."""
    sign_ins = node.application.state.services.entrance.sign_ins
    now = node.clock.now()

    def transaction(connection: Connection) -> tuple[str, str]:
        made = new_person(email, email.partition("@")[0].title(), None, now)
        people_rows.insert(connection, made)
        person = people_rows.find(connection, email)
        assert person is not None
        people_rows.add_membership(connection, team_id, person.id, role, now)
        opened = sign_ins.open(
            connection, person, Method.PASSWORD, VISITOR, now, team_id=team_id, is_elevated=is_elevated
        )
        return person.id, opened.token

    person_id, token = await node.ledger.write(transaction)
    return person_id, Browser(node.application, cookies={COOKIE: token})
