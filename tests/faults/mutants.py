"""Faults put into the engine on purpose, in a node's process only: what the checker must be able to see.

Each is a small patch with a name. A patch that no longer finds its place fails loudly, so that a mutant never quietly
becomes the engine as it is.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from zerocron.actions import jobs as actions
from zerocron.core import lifecycle, planning
from zerocron.core.errors import Unclear
from zerocron.engine import executor, finisher, finishing, judging, preparing, scheduler, sessions, starting, sweep
from zerocron.storage.ledger import dialect, executions, jobs, postgres, runs, telling
from zerocron.storage.ledger import sessions as session_rows

Patch = Callable[[], None]
EARLY_MS = 2_000
"""More than the scheduler's own: what it claims early, a mutant starts early."""


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put `make(what is there)` in its place."""
    setattr(owner, name, make(getattr(owner, name)))


def cursor_stands_still() -> None:
    """The start transaction does not move `next_run_at`: no compare-and-set."""

    def make(right: Any) -> Any:
        def move(self: Any, job: Any, next_run_at: int | None) -> None:
            due = job.state.next_run_at
            right(self, job, next_run_at)
            job.state.next_run_at = due

        return move

    replace(starting._Batch, "_move_cursor", make)


def cursor_committed_first() -> None:
    """The cursor moves in a transaction of its own, before the run is inserted. Seen by a kill in between."""

    def make(right: Any) -> Any:
        def write(self: Any, stop_point: Any) -> None:
            def between(name: str) -> None:
                self._connection.exec_driver_sql("COMMIT")
                sqlite = self._connection.dialect.name == "sqlite"
                self._connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "BEGIN READ WRITE")
                stop_point(name)

            right(self, between)

        return write

    replace(starting._Batch, "write", make)


def send_before_commit() -> None:
    """Requests leave before their runs are committed. Seen by a kill in between."""

    def make(right: Any) -> Any:
        async def start_together(self: Any, members: Any) -> None:
            class RolledBack(Exception):
                pass

            now, session_id, found = self._clock.now(), self._session.id, []

            def transaction(connection: Any) -> None:
                started = starting.start_batch(connection, members, now=now, early_ms=EARLY_MS, session_id=session_id)
                found.append(started)
                raise RolledBack

            try:
                await self._ledger.write(transaction)
            except RolledBack:
                for run in found[0].runs:
                    self._executor.launch(run)
                latest = max((run.run.scheduled_for for run in found[0].runs), default=now)
                await self._clock.sleep(max(0, latest - now) / 1000 + 0.2)
            await right(self, members)

        return start_together

    replace(scheduler.Scheduler, "_start_together", make)


def results_without_executions() -> None:
    """A run is settled and its execution is not recorded."""
    replace(executions, "insert", lambda _right: lambda _connection, _new: None)


def overlap_ignored() -> None:
    """A slot starts whatever holds the job's place."""
    replace(starting._Batch, "_occupancy", lambda _right: lambda _self, _job: planning.Occupancy())


def misses_unrecorded() -> None:
    """Missed slots are left out, and nobody writes that down."""
    replace(starting._Batch, "_skip_slots", lambda _right: lambda _self, _job, _skip: None)


def oldest_instead_of_latest() -> None:
    """`catchup: latest` runs the oldest missed slot, and forgets that the others are to be left out."""

    def make(_right: Any) -> Any:
        def sort_missed(_schedule: Any, due: int, *_: Any) -> Any:
            return due, ()

        return sort_missed

    replace(planning, "_sort_missed", make)


def retry_at_once() -> None:
    """A retry does not wait for its back-off."""
    replace(lifecycle, "wait_ms", lambda _right: lambda *_, **__: 0)


def everything_succeeds() -> None:
    """An answer is a success whatever its status."""
    replace(judging, "broken_rule", lambda _right: lambda *_, **__: None)


def trigger_moves_the_schedule() -> None:
    """A manual trigger counts as the job's next slot."""

    def make(right: Any) -> Any:
        def take_turn(self: Any, run_id: str, member: str) -> None:
            right(self, run_id, member)
            run = self._runs.get(run_id)
            job = self._jobs.get(run.job_id) if run is not None and run.trigger_key else None
            if job is not None and job.state.next_run_at is not None:
                self._move_cursor(job, planning.next_slot(job.schedule, job.state.next_run_at))

        return take_turn

    replace(starting._Batch, "take_turn", make)


def random_run_ids() -> None:
    """The id of a run cannot be computed again."""
    replace(starting, "run_id_of", lambda _right: lambda _job_id, _slot: str(uuid.uuid4()))


def lost_runs_always_rerun() -> None:
    """`on_lost: give_up` is not asked. Seen by a kill after the request."""

    def make(right: Any) -> Any:
        def settle_lost(**given: Any) -> Any:
            return right(**(given | {"on_lost": "rerun"}))

        return settle_lost

    replace(finishing, "settle_lost", make)


def pause_forgets_what_waits() -> None:
    """A pause leaves waiting retries alone, and they are sent."""
    replace(actions, "_cancel", lambda _right: lambda *_: None)
    replace(
        starting, "plan_turn", lambda right: lambda *given, **named: right(*given, **(named | {"job_paused": False}))
    )


def acknowledged_before_the_commit() -> None:
    """A trigger is answered while its transaction still waits. Seen by a kill soon after."""

    def make(right: Any) -> Any:
        async def trigger(self: Any, team_id: str, job_id: str, **given: Any) -> Any:
            class RolledBack(Exception):
                pass

            ledger, found = self._ledger, []

            class Rehearsal:
                async def write(self, transaction: Any) -> Any:
                    def rolled_back(connection: Any) -> None:
                        found.append(transaction(connection))
                        raise RolledBack

                    try:
                        await ledger.write(rolled_back)
                    except RolledBack:
                        _soon(ledger, transaction)
                    return found[0]

            rehearsing = type(self)(ledger=Rehearsal(), timetable=self._timetable, clock=self._clock)
            return await right(rehearsing, team_id, job_id, **given)

        return trigger

    replace(actions.Jobs, "trigger", make)


_tasks: set[asyncio.Task[Any]] = set()


def _soon(ledger: Any, transaction: Any) -> None:
    async def write() -> None:
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(3, done.set)
        await done.wait()
        await ledger.write(transaction)

    _tasks.add(asyncio.create_task(write()))


def version_of_yesterday() -> None:
    """Requests say another job version than their run has."""

    def make(right: Any) -> Any:
        def render(attempt: Any, *secrets: Any) -> Any:
            request = right(attempt, *secrets)
            headers = [(name, "7" if name == "X-0cron-Job-Version" else value) for name, value in request.headers]
            return type(request)(request.method, request.url, headers, request.body, request.timeout_seconds)

        return render

    replace(preparing, "render", make)


# --- of a cluster


def failures_untold() -> None:
    """The finish transaction leaves out the alerts of what it settles, as if they were written after it and lost."""

    def make(right: Any) -> Any:
        def write(self: Any) -> Any:
            self._events.clear()
            return right(self)

        return write

    replace(telling.JobTelling, "write", make)


def no_compare_and_set() -> None:
    """Nobody holds a job and nobody compares: of two nodes that see a slot, both start it. Seen without Redis."""
    replace(jobs, "lock_rows", lambda _right: lambda query: query)

    def make(right: Any) -> Any:
        def save_states(connection: Any, changed: Any, seen: Any) -> int:
            right(connection, changed, seen)
            return len(changed)

        return save_states

    replace(jobs, "save_states", make)
    replace(
        runs,
        "_insert_statement",
        lambda _right: lambda name: dialect.insert_batch(name, runs.COLUMNS, ignore_existing=True),
    )


def redis_is_the_truth() -> None:
    """What the timetable has lost is lost. Seen by FLUSHALL."""

    async def repair(_self: Any, _now: int) -> None:
        pass

    replace(sweep.Sweep, "_repair", lambda _right: repair)


def claims_are_believed() -> None:
    """A member that was claimed is due, whatever its job's cursor says. Seen by scores that are too early."""

    async def at_once(_self: Any, _run: Any) -> None:
        pass

    replace(starting._Batch, "_may_start_early", lambda _right: lambda _self, _job, _due: True)
    replace(executor.Executor, "_due", lambda _right: at_once)


def unclear_commits_repeated() -> None:
    """A transaction whose outcome is not known is done again. Seen by answers to COMMIT that are lost."""

    def make(right: Any) -> Any:
        async def write(self: Any, transaction: Any) -> Any:
            try:
                return await right(self, transaction)
            except Unclear:
                return await right(self, transaction)

        return write

    replace(postgres.PostgresLedger, "write", make)


def late_results_count() -> None:
    """The result of an attempt that was given up replaces what came after it. Seen by a pause after sending."""

    def make(right: Any) -> Any:
        def finish_batch(connection: Any, results: Any, **given: Any) -> Any:
            for result in results:
                run = result.run
                values = {"run": run.id, "attempt": run.attempt, "session": run.session_id}
                gone = "DELETE FROM executions WHERE run_id = :run AND attempt >= :attempt"
                again = (
                    "UPDATE runs SET status = 'running', attempt = :attempt, session_id = :session, finished_at = NULL "
                    "WHERE id = :run AND (status <> 'running' OR attempt <> :attempt)"
                )
                if connection.execute(text(again), values).rowcount:
                    connection.execute(text(gone), values)
            return right(connection, results, **given)

        return finish_batch

    replace(finisher, "finish_batch", make)


def take_over_at_once() -> None:
    """After an outage whoever comes back first takes over from everybody else."""
    replace(sessions.Session, "_may_take_over", lambda _right: lambda self: self.is_valid())


def sessions_not_held() -> None:
    """A start does not look whether its session has ended. Seen by a pause between claim and start."""
    replace(session_rows, "hold", lambda _right: lambda _connection, _session_id: True)


CLUSTER_MUTANTS: dict[str, Patch] = {
    patch.__name__: patch
    for patch in (
        no_compare_and_set,
        cursor_committed_first,
        redis_is_the_truth,
        claims_are_believed,
        unclear_commits_repeated,
        send_before_commit,
        late_results_count,
        take_over_at_once,
        sessions_not_held,
    )
}


MUTANTS: dict[str, Patch] = {
    patch.__name__: patch
    for patch in (
        cursor_stands_still,
        cursor_committed_first,
        send_before_commit,
        results_without_executions,
        overlap_ignored,
        misses_unrecorded,
        oldest_instead_of_latest,
        retry_at_once,
        everything_succeeds,
        trigger_moves_the_schedule,
        random_run_ids,
        lost_runs_always_rerun,
        pause_forgets_what_waits,
        acknowledged_before_the_commit,
        version_of_yesterday,
        failures_untold,
    )
}
