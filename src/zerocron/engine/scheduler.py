"""Turns due members into committed runs, and wakes for the next one.

Owns the claim and the wait between claims. One tick claims what there is room for and starts it in one transaction;
between ticks it sleeps until the next due instant, and less when an earlier member is put or a place becomes free.
While the timetable is away it claims straight from the ledger. Must never let one bad member stop the others: it is set
aside for a moment and the rest of its batch goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence

import structlog
from sqlalchemy import Connection

from zerocron.clock import Clock
from zerocron.core.errors import TimetableAway, Unavailable, Unclear
from zerocron.core.model import Instant, RunStatus
from zerocron.core.monitor import JUDGED_AFTER_MS
from zerocron.engine.executor import Executor
from zerocron.engine.heartbeat import Heartbeat, is_monitor
from zerocron.engine.notifier import Notifier, is_alert
from zerocron.engine.sessions import Session
from zerocron.engine.starting import SessionEnded, StartedBatch, StopPoint, start_batch
from zerocron.metrics import Metrics
from zerocron.storage.ledger import alerts as alert_rows
from zerocron.storage.ledger import jobs as job_rows
from zerocron.storage.ledger import monitors as monitor_rows
from zerocron.storage.ledger import runs as run_rows
from zerocron.storage.ledger.database import Ledger
from zerocron.storage.timetable.contract import (
    CLAIM_LIMIT_MAX,
    Claim,
    Timetable,
    alert_member,
    job_member,
    monitor_member,
    run_member,
)
from zerocron.storage.timetable.horizon import put_near

log = structlog.get_logger(__name__)

FULL_BATCH = 50
COMPANY_SECONDS = 0.015
"""After a smaller batch the next claim waits this long, so that runs that come due one by one share a transaction. What
is claimed early is no later for it."""

BEHIND_MAX = 2
"""So much of what full batches have left to do goes on behind the next claim."""

IDLE_SECONDS_MAX = 1.0
"""The longest sleep: a clock that was set, or an index another process changed, is noticed after it."""

DIRECT_CANDIDATES = 1_000
"""Of so many due members a claim made straight from the ledger takes some at random: nodes that do so at the same time
seldom meet."""

DIRECT_SECONDS = 0.25
"""How often the ledger is asked while the timetable is away."""

FULL_TEAM_SECONDS = 0.05
"""While a team has all the places it may have, the others are looked after this often."""

NAMED_MAX = 5
LOOK_UP_SECONDS = 0.5
SET_ASIDE_MS = 250
SET_ASIDE_MS_MAX = 10_000
SET_ASIDE_MAX = 10_000
"""A member that cannot be started comes back after this long, then after twice as long, and so on."""


class Scheduler:
    """One loop of one node."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        timetable: Timetable,
        clock: Clock,
        session: Session,
        executor: Executor,
        heartbeat: Heartbeat,
        notifier: Notifier,
        metrics: Metrics,
        stop_point: StopPoint,
        early_ms: int = 0,
        runs_per_minute_max: int | None = None,
        index_is_sound: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ledger = ledger
        self._timetable = timetable
        self._clock = clock
        self._session = session
        self._executor = executor
        self._heartbeat = heartbeat
        self._notifier = notifier
        self._metrics = metrics
        self._stop_point = stop_point
        self._early_ms = early_ms
        self._runs_per_minute_max = runs_per_minute_max
        self._index_is_sound = index_is_sound
        self._is_direct = False
        self._asked_ledger_at = float("-inf")
        self._set_aside: dict[str, tuple[int, Instant]] = {}  # member: failures, and when it is tried again
        self._random = random.Random(session.id)
        self._behind: list[asyncio.Task[None]] = []  # what goes on behind the next claim

    async def tick(self) -> float:
        """Start what is due; returns how many seconds nothing will be."""
        self._timetable.earlier.clear()  # before every way out: left set, it would end each pause at once
        self._executor.freed.clear()  # before the places are counted: one that becomes free from here on is news
        if not self._session.is_valid():
            return IDLE_SECONDS_MAX  # a node that may have been given up starts nothing
        full_teams, team_room = self._executor.team_room()
        limit = min(self._executor.free, team_room, CLAIM_LIMIT_MAX)
        if limit <= 0:
            await self._clock.wait(self._executor.freed, IDLE_SECONDS_MAX)
            return 0
        claim = await self._claim(limit, full_teams)
        if claim.members:
            self._stop_point("claimed")
            monitors = [member for member in claim.members if is_monitor(member)]
            alerts = [member for member in claim.members if is_alert(member)]
            # Slots first: they would count as missed before their hiding ends.
            try:
                started = await self._start(
                    [member for member in claim.members if not (is_monitor(member) or is_alert(member))]
                )
            except Exception:
                # Nobody has looked at what was claimed beside them, and it would stay hidden as long.
                await self._put_back([*monitors, *alerts])
                raise
            started += await self._look(self._notifier.take, alerts)
            if len(claim.members) < limit or self._works_from_the_ledger:
                started += await self._look(self._heartbeat.look, monitors)
                await self._settle(self._behind)
            else:
                if monitors:
                    self._go_on(self._look(self._heartbeat.look, monitors))
                await self._settle(self._behind[:-BEHIND_MAX])
            if self._works_from_the_ledger and not started:
                return DIRECT_SECONDS
            return 0 if len(claim.members) >= FULL_BATCH else COMPANY_SECONDS
        if full_teams:
            self._metrics.deferred.labels("team").inc()
            await self._clock.wait(self._executor.freed, FULL_TEAM_SECONDS)
            return 0
        idle_seconds = DIRECT_SECONDS if self._works_from_the_ledger else IDLE_SECONDS_MAX
        if claim.next_due is None:
            return idle_seconds
        return min((claim.next_due - self._early_ms - self._clock.now()) / 1000, idle_seconds)

    @property
    def _works_from_the_ledger(self) -> bool:
        return self._is_direct or not self._index_is_sound()

    async def pause(self, seconds: float) -> None:
        """Sleep between ticks, unless an earlier member is put."""
        if seconds == COMPANY_SECONDS:
            await self._clock.sleep(seconds)
        elif seconds > 0:
            await self._clock.wait(self._timetable.earlier, seconds)

    async def stop(self, seconds: float) -> None:
        """Let what goes on behind the claims end, after the last tick; what takes longer is given up."""
        if self._behind:
            _, late = await asyncio.wait(self._behind, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _claim(self, limit: int, full_teams: Sequence[str]) -> Claim:
        now = self._clock.now()
        if self._is_direct_due():
            direct = await self._claim_from_ledger(now, limit, full_teams)
            if direct.members:
                return direct
        try:
            claim = await self._timetable.claim(now + self._early_ms, limit, without=full_teams)
        except TimetableAway as error:
            if not self._is_direct:
                log.error("timetable_away", error=str(error), hint="Work goes on straight from the ledger.")
            self._is_direct = True
            self._metrics.timetable_up.set(0)
            return await self._claim_from_ledger(now, limit, full_teams)
        if self._is_direct:
            log.info("timetable_back")
        self._is_direct = False
        self._metrics.timetable_up.set(1)
        return claim

    def _is_direct_due(self) -> bool:
        """Also while the index has something to give: one of its shards may be away, or not yet be restored."""
        return not self._index_is_sound() and self._clock.monotonic() - self._asked_ledger_at >= DIRECT_SECONDS

    async def _claim_from_ledger(self, now: Instant, limit: int, full_teams: Sequence[str]) -> Claim:
        """What is due by the ledger. Nobody else is kept from it: the start transaction finds out who is first."""
        self._metrics.direct_claims.inc()
        self._asked_ledger_at = self._clock.monotonic()

        def due(connection: Connection) -> dict[str, Instant]:
            jobs = job_rows.overdue(connection, before=now + 1, limit=DIRECT_CANDIDATES, without=full_teams)
            runs = run_rows.due(connection, until=now, limit=DIRECT_CANDIDATES, without=full_teams)
            monitors = monitor_rows.overdue(
                connection, before=now - JUDGED_AFTER_MS, limit=DIRECT_CANDIDATES, without=full_teams
            )
            alerts = alert_rows.overdue(connection, before=now + 1, limit=DIRECT_CANDIDATES, without=full_teams)
            return (
                {job_member(due.team_id, due.id): due.at for due in jobs}
                | {run_member(due.team_id, due.id): due.at for due in runs}
                | {monitor_member(due.team_id, due.id): due.at for due in monitors}
                | {alert_member(due.team_id, due.id): due.at for due in alerts}
            )

        found = await self._ledger.read(due)
        members = [member for member in found if self._is_not_set_aside(member, now)]
        return Claim(self._random.sample(members, min(limit, len(members))), None)

    def _is_not_set_aside(self, member: str, now: Instant) -> bool:
        _, until = self._set_aside.get(member, (0, 0))
        return until <= now

    async def _look(self, together: Callable[[Sequence[str]], Awaitable[int]], members: Sequence[str]) -> int:
        """Judge monitors or take alerts in one transaction, or one by one if that fails; what `together` counts.

        When the ledger cannot do it now, they come back in a moment: slots do not wait for them.
        """
        if not members:
            return 0
        try:
            return await together(members)
        except Unavailable:
            self._metrics.ledger_unavailable.inc()
            await self._put_back(members)
            return 0
        except Exception:
            if len(members) == 1:
                await self._put_aside(members[0])
                return 0
            log.exception("batch_look_failed", members=len(members))
            return sum([await self._look(together, [member]) for member in members])

    async def _put_back(self, members: Sequence[str]) -> None:
        """What nobody has looked at is due again soon. When the timetable is away, too, its hiding ends by itself."""
        if members:
            with contextlib.suppress(TimetableAway):
                await self._timetable.put(dict.fromkeys(members, self._clock.now() + SET_ASIDE_MS))

    async def _start(self, members: Sequence[str]) -> int:
        """Start them in one transaction, or one by one if that fails; how many runs were started or slots skipped."""
        if not members:
            return 0
        try:
            return await self._start_together(members)
        except Unavailable:
            # They would come back by themselves, but only after the hiding time, and then count as missed.
            self._metrics.ledger_unavailable.inc()
            self._executor.ledger_took(float("inf"))
            await self._timetable.put(dict.fromkeys(members, self._clock.now()))
            raise
        except SessionEnded as ended:
            log.error("start_refused", members=len(members), reason="another node has ended this node's session")
            self._session.lose(ended.session_id)
            await self._timetable.put(dict.fromkeys(members, self._clock.now()))
            return 0
        except Exception:
            if len(members) == 1:
                await self._put_aside(members[0])
                return 0
            log.exception("batch_start_failed", members=len(members))
            return await self._start_one_by_one(members)

    async def _start_one_by_one(self, members: Sequence[str]) -> int:
        count = 0
        for done, member in enumerate(members):
            try:
                count += await self._start([member])
            except Unavailable:
                await self._timetable.put(dict.fromkeys(members[done + 1 :], self._clock.now()))
                raise
        return count

    async def _start_together(self, members: Sequence[str]) -> int:
        session_id, stop_point = self._session.id, self._stop_point
        begun = self._clock.monotonic()
        decided: list[StartedBatch] = []

        def transaction(connection: Connection) -> StartedBatch:
            batch = start_batch(
                connection,
                members,
                now=self._clock.now(),  # when it is its turn: of two transactions the later one has the later time
                session_id=session_id,
                early_ms=self._early_ms,
                host_room=self._executor.host_room,
                runs_per_minute_max=self._runs_per_minute_max,
                stop_point=stop_point,
            )
            decided.append(batch)
            self._executor.expected = batch.runs
            return batch

        try:
            try:
                started = await self._ledger.write(transaction)
            except Unclear:
                if not decided or not await self._was_committed(decided[-1], session_id):
                    raise
                started = decided[-1]
            seconds = self._clock.monotonic() - begun
            self._metrics.transaction.labels("start").observe(seconds)
            self._executor.ledger_took(seconds)
            self._stop_point("started")
            for run in started.runs:
                self._executor.launch(run)
        finally:
            self._executor.expected = ()
        if self._set_aside:
            for member in members:
                self._set_aside.pop(member, None)
        self._go_on(self._publish(started, self._clock.now()))
        return len(started.runs) + started.skipped

    def _go_on(self, work: Coroutine[object, object, object]) -> None:
        """After a claim that took as much as there was room for, the next ones do not wait for this; what was claimed
        stays hidden meanwhile."""
        self._behind.append(asyncio.create_task(self._to_its_end(work)))

    async def _to_its_end(self, work: Coroutine[object, object, object]) -> None:
        """Whatever comes of it: a member that is not moved comes back when its hiding ends."""
        try:
            await work
        except Unavailable:
            pass  # the next claim finds out, and says so
        except Exception:
            log.exception("claim_not_settled")
            self._metrics.loop_errors.labels("scheduler").inc()

    async def _settle(self, behind: Sequence[asyncio.Task[None]]) -> None:
        """Wait until the timetable knows of what was started, and what was claimed with it is looked at."""
        if behind:
            await asyncio.wait(behind)
        self._behind = [task for task in self._behind if not task.done()]

    async def _was_committed(self, batch: StartedBatch, session_id: str) -> bool:
        """Look a start transaction up whose answer was lost, as soon as the ledger answers again."""
        if not batch.runs:
            return False  # it sent nobody on the way; doing it again finds the cursors moved
        run = batch.runs[0].run

        def look(connection: Connection) -> bool:
            job_rows.wait_for(connection, run.job_id)  # the commit may still be under way
            found = run_rows.of_ids(connection, [run.id]).get(run.id)
            return (
                found is not None
                and found.status == RunStatus.RUNNING
                and (found.session_id, found.attempt) == (session_id, run.attempt)
            )

        while self._session.id == session_id:
            try:
                committed = await self._ledger.write(look)
            except Unavailable:
                await self._clock.sleep(LOOK_UP_SECONDS)
            else:
                log.warning("unclear_start_looked_up", runs=len(batch.runs), committed=committed)
                return committed
        return False

    async def _publish(self, started: StartedBatch, now: Instant) -> None:
        if started.skipped:
            self._metrics.runs.labels("skipped").inc(started.skipped)
        if started.deferred:
            self._metrics.deferred.labels("host").inc(started.deferred)
        if started.unknown:
            log.warning("unknown_members_dropped", count=len(started.unknown), members=started.unknown[:NAMED_MAX])
        if started.drop:
            await self._timetable.drop(started.drop)
        await put_near(self._timetable, started.put, now)

    async def _put_aside(self, member: str) -> None:
        """Try it again soon, and then ever later; nothing waits for it meanwhile."""
        failures, _ = self._set_aside.pop(member, (0, 0))
        delay_ms = min(SET_ASIDE_MS * 2 ** min(failures, 10), SET_ASIDE_MS_MAX)
        log.exception("member_set_aside", member=member, failures=failures + 1, again_in_seconds=delay_ms / 1000)
        self._metrics.loop_errors.labels("scheduler").inc()
        until = self._clock.now() + delay_ms
        self._set_aside[member] = (failures + 1, until)
        if len(self._set_aside) > SET_ASIDE_MAX:
            del self._set_aside[next(iter(self._set_aside))]
        await self._timetable.put({member: until})
