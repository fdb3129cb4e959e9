"""Why a job did or did not run at an instant: the facts that `core.explain` judges.

Owns what is looked up for that, all of it in one snapshot and by an index. Changes nothing.
"""

from __future__ import annotations

from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import Invalid, NotFound
from zerocron.core.explain import Explanation, Facts, chosen, explain, moment
from zerocron.core.model import Instant, is_uuid
from zerocron.core.schedule.zones import END_SECOND
from zerocron.storage.ledger import glances
from zerocron.storage.ledger.database import Ledger

VERSIONS_MAX = 50
RUNS_MAX = 20
ACTS_MAX = 4
ATTEMPTS_MAX = 10


class Explaining:
    """The question why."""

    def __init__(self, *, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def explain(self, team_id: str, job_id: str, at: Instant | None) -> tuple[Instant, Explanation]:
        """(the instant, by default now; what became of it), also of a deleted job. Raises NotFound, Invalid."""
        now = self._clock.now()
        instant = now if at is None else at
        if not 0 <= instant < END_SECOND * 1000:
            raise Invalid("Give an instant from 1970 to 2499.", field="at")
        return instant, await self._ledger.read(lambda connection: _explain(connection, team_id, job_id, instant, now))


def _explain(connection: Connection, team_id: str, job_id: str, at: Instant, now: Instant) -> Explanation:
    job = glances.job_ever(connection, team_id, job_id) if is_uuid(job_id) else None
    if job is None:
        raise NotFound("There is no such job.")
    first, last = moment(at)
    runs = glances.runs_at(connection, job_id, first, last, RUNS_MAX)
    run = chosen(runs)
    return explain(
        Facts(
            at=at,
            now=now,
            created_at=job.created_at,
            versions=glances.versions_around(connection, job_id, last, VERSIONS_MAX),
            runs=runs,
            attempts=[] if run is None else glances.attempts_of(connection, run.id, ATTEMPTS_MAX),
            before=glances.slot_before(connection, job_id, first),
            acts=glances.acts_around(connection, team_id, job_id, at, ACTS_MAX),
            oldest_slot=glances.oldest_slot(connection, job_id),
            next_run_at=job.next_run_at,
        )
    )
