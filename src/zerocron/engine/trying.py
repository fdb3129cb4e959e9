"""Sends a request once, as a job would, before there is one.

Owns the bounds of that: how many at once, for a team and in all, and for how long. It takes the executor's own steps
(unseal, render, sign, the guarded door, mask, judge), so that what it shows is what a run would have met. Nothing of it
is in the ledger, and it takes no place of a run. Works on nodes without an engine, too.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from zerocron.clock import Clock
from zerocron.core.errors import TooMany
from zerocron.core.exchange import Outcome, Request
from zerocron.core.ids import new_id
from zerocron.core.model import Definition, Execution, Run, RunStatus, TriggeredBy
from zerocron.core.sealing import Keyring
from zerocron.engine.attempt import Attempt
from zerocron.engine.judging import judge, takes_long
from zerocron.engine.preparing import prepare
from zerocron.engine.signing import Signer
from zerocron.engine.unsealing import Unsealer
from zerocron.storage.ledger.database import Ledger

TEAM_MAX = 3
"""So many of a team at once, on this node."""

NODE_MAX = 20
SECONDS_MAX = 60
"""Somebody waits for the answer."""

NO_JOB_ID = "00000000-0000-0000-0000-000000000000"
"""In the place of the job's id: there is none yet."""


class Trying:
    """One of a node."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: Clock,
        keyring: Keyring,
        send: Callable[[Request], Awaitable[Outcome]],
        allow_insecure_tls: bool,
    ) -> None:
        self._clock = clock
        self._send = send
        self._allow_insecure_tls = allow_insecure_tls
        self._unsealer = Unsealer(ledger=ledger, clock=clock, keyring=keyring)
        self._signer = Signer(ledger=ledger, clock=clock, keyring=keyring)
        self._of_team: Counter[str] = Counter()

    async def send(self, team_id: str, definition: Definition) -> Execution:
        """Send it once; what came of it, without the value of any secret. Raises TooMany."""
        if self._of_team[team_id] >= TEAM_MAX:
            raise TooMany(f"Your team is trying {TEAM_MAX} requests already. Wait until one of them has ended.", 2)
        if self._of_team.total() >= NODE_MAX:
            raise TooMany("This server is trying very many requests already. Try again in a moment.", 2)
        self._of_team[team_id] += 1
        try:
            return await self._attempt(_attempt(team_id, definition, self._clock.now()))
        finally:
            self._of_team[team_id] -= 1
            self._of_team += Counter()  # those that are left

    async def close(self) -> None:
        """Wait for queries under way, and note which secrets were used. Closing twice is no error."""
        await self._unsealer.close()
        await self._signer.close()
        await self._unsealer.save_use()

    async def _attempt(self, attempt: Attempt) -> Execution:
        prepared = await prepare(attempt, secrets=self._unsealer.secrets, signing_keys=self._signer.keys)
        started_at = self._clock.now()
        request = prepared.request
        if prepared.refusal is not None:
            outcome = prepared.refusal.outcome()
        else:
            request = prepared.to_send(attempt, started_at, allow_insecure_tls=self._allow_insecure_tls)
            outcome = await self._send(request)
        redactor = None if prepared.refusal is not None else prepared.redactor
        now = self._clock.now()
        verdict = partial(judge, attempt, request, outcome, started_at=started_at, now=now, redactor=redactor)
        is_long = takes_long(attempt.definition.success, request, outcome, redactor)
        result = await asyncio.to_thread(verdict) if is_long else verdict()
        return result.execution


def _attempt(team_id: str, definition: Definition, now: int) -> Attempt:
    """The first attempt of a run that is in no ledger."""
    run_id = new_id(now)
    run = Run(
        id=run_id,
        scheduled_for=now,
        trigger_key=run_id,
        job_id=NO_JOB_ID,
        team_id=team_id,
        job_version=0,
        triggered_by=TriggeredBy.MANUAL,
        status=RunStatus.RUNNING,
        attempt=1,
        created_at=now,
        started_at=now,
        attempt_started_at=now,
    )
    bounded = min(definition.timeout_seconds, SECONDS_MAX)
    return Attempt(run, dataclasses.replace(definition, timeout_seconds=bounded))
