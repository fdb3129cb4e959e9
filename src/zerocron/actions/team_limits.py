"""The operator's verbs on the limits of teams: look at them, change them.

Owns what is changed and what is told of it. They work on the ledger itself, also beside a running server: every
transaction that counts reads the limits anew, so nobody has to be told. No team can reach them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.access import SERVER
from zerocron.core.errors import Invalid, NotFound
from zerocron.core.team_limits import Limits
from zerocron.storage.ledger import audit
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.ledger.limits import Usage


@dataclass(frozen=True, slots=True)
class TeamState:
    """A team: its own limits as they are written (None: the server's, 0: none), those that hold, and what it has."""

    id: str
    name: str
    own: Limits
    limits: Limits
    usage: Usage


class TeamLimits:
    """`defaults`: of teams that have none of their own, where no server has said yet what they are: it is the server's
    word that counts, and not that of the environment of a command beside it."""

    def __init__(self, *, ledger: Ledger, clock: Clock, defaults: Limits) -> None:
        self._ledger = ledger
        self._clock = clock
        self._defaults = defaults

    async def all(self) -> list[TeamState]:
        """Every team, by its name."""

        def transaction(connection: Connection) -> list[TeamState]:
            return [self._state(connection, team_id, name) for team_id, name in limit_rows.teams_named(connection)]

        return await self._ledger.read(transaction)

    async def change(self, team: str, given: Mapping[str, int | None]) -> TeamState:
        """Give the team (its id or its exact name) these limits of its own; those not given stay.

        Raises NotFound, and Invalid when several teams have the name.
        """

        def transaction(connection: Connection) -> TeamState:
            team_id, name = _found(connection, team)
            before = limit_rows.own(connection, team_id)
            after = dataclasses.replace(before, **given)
            if after != before:
                limit_rows.save(connection, team_id, after)
                was, is_now = dataclasses.asdict(before), dataclasses.asdict(after)
                changed = [field for field in was if was[field] != is_now[field]]
                audit.record(
                    connection,
                    team_id=team_id,
                    at=self._clock.now(),
                    by=SERVER,
                    action="team.limits",
                    subject=audit.Subject("team", team_id, name),
                    before={field: was[field] for field in changed},
                    after={field: is_now[field] for field in changed},
                )
            return self._state(connection, team_id, name)

        return await self._ledger.write(transaction)

    def _state(self, connection: Connection, team_id: str, name: str) -> TeamState:
        return TeamState(
            team_id,
            name,
            limit_rows.own(connection, team_id),
            limit_rows.of_team(connection, team_id, limit_rows.noted_defaults(connection) or self._defaults),
            limit_rows.usage(connection, team_id, self._clock.now()),
        )


async def note_defaults(ledger: Ledger, defaults: Limits) -> None:
    """Let who looks beside the server know what it keeps to."""
    await ledger.write(lambda connection: limit_rows.note_defaults(connection, defaults))


def _found(connection: Connection, team: str) -> tuple[str, str]:
    found = [one for one in limit_rows.teams_named(connection) if team in one]
    if not found:
        raise NotFound(f"There is no team with the name or id {team!r}.")
    if len(found) > 1:
        raise Invalid(f"{len(found)} teams have the name {team!r}. Name one by its id.")
    return found[0]
