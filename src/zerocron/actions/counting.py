"""Whether a team may have one more job, and start one more run in this minute.

Owns what is asked in the transaction that makes either. `limits` are of teams that have none of their own.
"""

from __future__ import annotations

from sqlalchemy import Connection

from zerocron.core.errors import Conflict, TooMany
from zerocron.core.model import Instant
from zerocron.core.team_limits import MINUTE_MS, Limits, minute_of
from zerocron.storage.ledger import limits as limit_rows


def check_number_of_jobs(connection: Connection, team_id: str, limits: Limits) -> None:
    """Whether the team may have one more job. Raises Conflict."""
    jobs_max = limit_rows.of_team(connection, team_id, limits).jobs_max
    if jobs_max is None:
        return
    limit_rows.hold(connection, team_id)
    if limit_rows.count_jobs(connection, team_id) >= jobs_max:
        raise Conflict(
            f"The team has as many jobs as it may: {jobs_max:,}. Delete one that is no longer needed, or ask the "
            "operator of this server for more (0cron teams limits)."
        )


def count_run(connection: Connection, team_id: str, limits: Limits, now: Instant) -> None:
    """Count one more run of the team in this minute. Raises TooMany."""
    runs_max = limit_rows.of_team(connection, team_id, limits).runs_per_minute_max
    if runs_max is None:
        return
    key = (team_id, minute_of(now))
    minute = limit_rows.hold_minutes(connection, [key])[key]
    if minute.runs >= runs_max:
        raise TooMany(
            f"The team has started as many runs in this minute as it may: {runs_max:,}. Try again in the next one, "
            "or ask the operator of this server for more (0cron teams limits).",
            retry_after_seconds=-(-(key[1] + MINUTE_MS - now) // 1000),
        )
    minute.runs += 1
    limit_rows.save_minutes(connection, {key: minute})
