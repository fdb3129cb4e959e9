"""What teams may still start in this minute, while a start transaction is being decided.

Owns the counting of new runs of teams that have a limit. A run counts once, in the minute in which its first request
is due to leave: retries and runs that are sent again because a node was lost are no new runs. Minutes are held from
the first question about them until the commit, so that no two transactions can pass the limit together. Where no team
of a batch has a limit, nothing is asked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from zerocron.core.model import EngineJob, Instant
from zerocron.core.team_limits import limit_of, minute_of
from zerocron.storage.ledger import limits as limit_rows
from zerocron.storage.ledger.limits import Minute, MinuteKey

TOLD_MAX = 10
"""Of slots that a team's limit leaves out in a minute, people are told of this many: a team that is far over it must
not cost more in alerts than it would have cost in runs."""


class TeamMinutes:
    """Of the teams of one batch. `default`: the limit of teams that have none of their own."""

    def __init__(
        self, connection: Connection, jobs: Iterable[EngineJob], *, default: int | None, now: Instant, early_ms: int
    ) -> None:
        self._connection = connection
        limits = {job.team_id: limit_of(job.runs_per_minute_max, default) for job in jobs}
        self._limits = {team_id: limit for team_id, limit in limits.items() if limit is not None}
        self._instants = {minute_of(now), minute_of(now + early_ms)}
        self._held: dict[MinuteKey, Minute] = {}

    def has_room(self, team_id: str, begins_at: Instant) -> bool:
        """Whether the team may start one more run in the minute of that instant."""
        limit = self._limits.get(team_id)
        return limit is None or self._minute(team_id, begins_at).runs < limit

    def take(self, team_id: str, begins_at: Instant) -> None:
        """Count a new run."""
        if team_id in self._limits:
            self._minute(team_id, begins_at).runs += 1

    def leave_out(self, team_id: str, begins_at: Instant) -> bool:
        """Count a slot for which there was no room; whether people are to be told of it."""
        minute = self._minute(team_id, begins_at)
        minute.skipped += 1
        return minute.skipped <= TOLD_MAX

    def write(self) -> None:
        """Write down what was counted."""
        if self._held:
            limit_rows.save_minutes(self._connection, self._held)

    def _minute(self, team_id: str, begins_at: Instant) -> Minute:
        if not self._held:  # all at once and in one order: who held one and waited for another could wait for ever
            keys = [(team, instant) for team in self._limits for instant in self._instants]
            self._held = limit_rows.hold_minutes(self._connection, keys)
        return self._held[team_id, minute_of(begins_at)]
