"""Random schedules of faults in virtual time: thousands of them where real processes manage a few.

    python -m tests.faults.schedules --number 2000 --seed 1

Each has a handful of jobs of every kind and some minutes of kills (at any moment, or right before or after any write),
restarts with downtime, failing writes and calls; the checker judges each. A seed plays the same every time, as far as
SQLite's threads allow.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.faults.checker import Violation
from tests.faults.stage import Stage, open_ledger, quiet
from tests.faults.virtual import Outage, virtual_loop

from zerocron.actions.jobs import JobSpec
from zerocron.core.model import DEFAULT_TEAM_ID, Catchup, OnLost, Overlap, RetryPolicy, TriggeredBy
from zerocron.storage.ledger.database import SqliteLedger

SCHEDULES = ("every 3 seconds", "every 7 seconds", "*/5 * * * * *", "1-59/4 * * * * *", "every 20 seconds", "* * * * *")
FAULTS_SECONDS = 60
STEP_SECONDS = 0.25


class Schedule:
    """One random journey."""

    def __init__(self, inner: SqliteLedger, folder: Path, seed: int) -> None:
        folder.mkdir()
        self.pick = random.Random(seed)
        self.behave = random.Random(seed + 1)
        self.healthy = False
        self.specs = [self._spec(number) for number in range(self.pick.randint(2, 6))]
        self.stage = Stage(inner, folder, {f"/job-{number}": self._act for number in range(len(self.specs))})
        self.ids: list[str] = []

    def play(self) -> list[Violation]:
        return self.stage.play(self._journey)

    def _spec(self, number: int) -> JobSpec:
        pick = self.pick
        return JobSpec(
            name=f"job-{number}",
            schedule=pick.choice(SCHEDULES),
            url=f"http://target.test/job-{number}",
            overlap=pick.choice(list(Overlap)),
            catchup=pick.choice(list(Catchup)),
            catchup_window_seconds=pick.choice((10, 86_400)),
            on_lost=pick.choice((OnLost.RERUN, OnLost.RERUN, OnLost.GIVE_UP)),
            retry=RetryPolicy(pick.randint(1, 3), pick.choice(("fixed", "linear")), pick.choice((0.5, 2, 6))),
        )

    def _act(self, _before: int, _attempt: int) -> tuple[float, int]:
        if self.healthy:
            return 0.05, 200
        seconds = self.behave.choice((0.05, 0.05, 0.2, 2, 5, 9))
        return seconds, self.behave.choice((200, 200, 200, 500, 404))

    async def _journey(self) -> None:
        stage, pick = self.stage, self.pick
        self.ids = [(await stage.operate("create", stage.jobs.create(DEFAULT_TEAM_ID, spec))).id for spec in self.specs]
        await stage.start()
        loop = virtual_loop()
        end = loop.time() + FAULTS_SECONDS
        while loop.time() < end:
            await self._sleep(pick.choice((0.1, 0.7, 2, 4, 8)))
            if stage.engine is None:
                continue
            if pick.random() < 0.5:
                await self._fault()
            else:
                await self._verb()
        stage.ledger.outage = None
        self.healthy = True
        await self._sleep(50 if stage.ledger.failed else 18)
        await stage.caught_up()
        await stage.stop()

    async def _sleep(self, seconds: float) -> None:
        """Wait; a node that meets its end at a write meanwhile is away for a while and then started again."""
        clock, until = self.stage.clock, virtual_loop().time() + seconds
        while virtual_loop().time() < until:
            await clock.sleep(STEP_SECONDS)
            if self.stage.ledger.dead:
                await self._killed()

    async def _stopped(self) -> None:
        """A node may die while it stops."""
        stopping = asyncio.ensure_future(self.stage.stop())
        while not stopping.done():
            await self.stage.clock.sleep(STEP_SECONDS)
            if self.stage.ledger.dead:
                await self._killed()
                return
        await stopping
        await self._away()

    async def _killed(self) -> None:
        await self.stage.kill()
        await self._away()

    async def _away(self) -> None:
        await self.stage.clock.sleep(self.pick.choice((0.2, 1.5, 4, 15, 90)))
        self.stage.ledger.outage = None
        await self.stage.start()

    async def _fault(self) -> None:
        ledger = self.stage.ledger
        kind = self.pick.choice(("kill", "stop", "before", "after", "unclear", "error", "die-before", "die-after"))
        if kind == "kill":
            await self._killed()
        elif kind == "stop":
            await self._stopped()
        else:
            ledger.outage = Outage(kind, ledger.writes + self.pick.randint(1, 4))  # type: ignore[arg-type]

    async def _verb(self) -> None:
        stage, job_id, team = self.stage, self.pick.choice(self.ids), DEFAULT_TEAM_ID
        schedule = self.pick.choice(SCHEDULES)
        jobs, kind = stage.jobs, self.pick.choice(("trigger", "trigger", "edit", "pause", "resume", "resume"))
        verb: Any
        if kind == "trigger":
            verb = jobs.trigger(team, job_id, triggered_by=TriggeredBy.API)
        elif kind == "edit":
            verb = jobs.edit(team, job_id, lambda spec: dataclasses.replace(spec, schedule=schedule))
        else:
            verb = jobs.pause(team, job_id) if kind == "pause" else jobs.resume(team, job_id)
        await stage.calling(kind, verb, job_id)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    broken = requests = 0
    with (
        tempfile.TemporaryDirectory(prefix="zerocron-schedules-") as name,
        quiet(),
        open_ledger(Path(name, "l")) as inner,
    ):
        for seed in range(options.seed, options.seed + options.number):
            schedule = Schedule(inner, Path(name, str(seed)), seed)
            found = schedule.play()
            requests += schedule.stage.target.requests
            for violation in found:
                sys.stdout.write(f"seed {seed}: {violation}\n")
            broken += bool(found)
            sys.stdout.flush()
    sys.stdout.write(f"{options.number} schedules, {requests} requests, {broken} broken\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
