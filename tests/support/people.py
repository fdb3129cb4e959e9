"""People over a ledger, without a server: the verbs on them, on a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pyotp
from sqlalchemy import Connection, select
from tests.support.clock import ManualClock

from zerocron.actions.entrance import Entrance
from zerocron.actions.one_time_links import new_link, new_setup_link
from zerocron.actions.people import new_person
from zerocron.actions.secrets import Secrets
from zerocron.actions.sign_ins import Opened, Visitor
from zerocron.channels.contract import Ways
from zerocron.channels.sending import Outlets
from zerocron.core.access import Role
from zerocron.core.mail import Mail
from zerocron.core.model import DEFAULT_TEAM_ID, Instant
from zerocron.core.sealing import Keyring, MasterKey
from zerocron.core.second_factor import STEP_MS
from zerocron.storage.ledger import people as people_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.one_time_links import LinkKind
from zerocron.storage.ledger.people import Person
from zerocron.storage.ledger.people_tables import (
    audit_entries,
    one_time_links,
    people,
    recovery_codes,
    sign_ins,
)

NOON: Instant = 1_800_014_400_000
PASSWORD = "four words in a row"
ISSUER = "https://accounts.example.com"
ROUNDS = 10
"""Two who act at once do not always meet."""

HOME = Visitor("203.0.113.7", "Testfox/1.0")
AWAY = Visitor("198.51.100.9", "curl/8.14")
MASTER = MasterKey(bytes(range(32)))
BASE_URL = "https://cron.example.com"
MAIL = Mail("mail.example.com", 587, "starttls", "0cron@example.com")


class House:
    """One node. Several over one ledger are a cluster; give them one clock."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        clock: ManualClock | None = None,
        keys: tuple[MasterKey, ...] = (MASTER,),
        mail: bool = False,
    ) -> None:
        self.ledger = ledger
        self.clock = clock or ManualClock(NOON)
        self.secrets = Secrets(ledger=ledger, clock=self.clock, keyring=Keyring(keys))
        ways = Ways(cast(Any, None), self.clock.now, mail=MAIL if mail else None)
        outlets = Outlets({}, ways, BASE_URL if mail else "")
        self.entrance = Entrance(ledger=ledger, clock=self.clock, secrets=self.secrets, outlets=outlets)
        self.sign_ins = self.entrance.sign_ins

    async def setup_token(self) -> str:
        path = await self.ledger.write(lambda connection: new_setup_link(connection, self.clock.now()))
        return path.rpartition("/")[2]

    async def set_up(self, token: str | None = None, email: str = "ada@example.com", visitor: Visitor = HOME) -> Opened:
        """Ada, the owner, signed in at home."""
        return await self.entrance.people.set_up(
            token or await self.setup_token(),
            email=email,
            name="Ada Lovelace",
            password=PASSWORD,
            language="en",
            timezone="UTC",
            visitor=visitor,
        )

    async def person(self, email: str, *, team_id: str = DEFAULT_TEAM_ID, role: Role = Role.EDITOR) -> Person:
        """Another person, in a team, with the password of all."""
        person = new_person(email, email, await self.entrance.hashing.hash(PASSWORD), self.clock.now())

        def transaction(connection: Connection) -> None:
            people_rows.hold_team(connection, team_id, f"Team {team_id[-1]}", self.clock.now())
            people_rows.insert(connection, person)
            people_rows.add_membership(connection, team_id, person.id, role, self.clock.now())

        await self.ledger.write(transaction)
        return person

    async def sign_in(
        self, email: str = "ada@example.com", password: str = PASSWORD, code: str | None = None, visitor: Visitor = HOME
    ) -> Opened:
        return await self.sign_ins.sign_in(email, password, code, visitor)

    async def with_totp(self, opened: Opened) -> tuple[str, list[str]]:
        """Set up a second factor: its seed, and the recovery codes."""
        seed = (await self.entrance.second_factors.begin(opened.session.bearer)).secret
        codes = await self.entrance.second_factors.confirm(opened.session.bearer, self.code(seed))
        self.sign_ins.forget(opened.session.bearer.person_id or "")
        return seed, codes

    def code(self, seed: str, steps: int = 0) -> str:
        """What the app shows so many steps from now."""
        return pyotp.HOTP(seed).at(self.clock.now() // STEP_MS + steps)

    async def link(self, kind: LinkKind, **fields: Any) -> str:
        """The token of a new link."""
        make = partial(new_link, kind=kind, now=self.clock.now(), **fields)
        return (await self.ledger.write(make))[1]

    async def get(self, person_id: str) -> Person:
        found = await self.ledger.read(lambda connection: people_rows.get(connection, person_id))
        assert found is not None
        return found

    async def audited(self) -> list[tuple[str, str, str]]:
        """(action, kind of the actor, address) of every entry, sorted."""
        query = select(audit_entries.c.action, audit_entries.c.actor_kind, audit_entries.c.address)
        rows = await self.ledger.read(lambda connection: connection.execute(query).all())
        return sorted((row[0], row[1], row[2]) for row in rows)

    async def dump(self) -> str:
        """All that the tables of people hold."""
        tables = (people, sign_ins, one_time_links, recovery_codes, audit_entries)
        return await self.ledger.read(lambda c: repr([c.execute(select(table)).all() for table in tables]))

    async def close(self) -> None:
        await self.entrance.close()


@asynccontextmanager
async def house_over(ledger: Ledger, **options: Any) -> AsyncIterator[House]:
    house = House(ledger, **options)
    try:
        yield house
    finally:
        await house.close()
