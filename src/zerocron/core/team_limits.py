"""What a team may have: so many jobs, so many runs a minute, so much history.

Owns what a limit means and where a minute begins. Must never count anything: the ledger does, in the transaction of
what is counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from zerocron.core.model import Instant

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one team, or of all that have none of their own. None: no limit."""

    jobs_max: int | None = None
    runs_per_minute_max: int | None = None
    history_bytes_max: int | None = None


NO_LIMITS = Limits()


def limit_of(own: int | None, default: int | None) -> int | None:
    """A team's own limit wins over the server's, also where it is 0: none."""
    return (default if own is None else own) or None


def minute_of(at: Instant) -> Instant:
    """The instant at which the minute of the ledger's time begins that this one is in."""
    return at - at % MINUTE_MS
